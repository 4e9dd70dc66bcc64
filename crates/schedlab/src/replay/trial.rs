//! Replays of a recording on its own machine in one form, each with its own seed.

use std::collections::BTreeMap;

use schedlab_replay::{MARK, TaskIndex};
use schedlab_report::metrics::Busy;
use schedlab_sim::{End, Simulation};
use schedlab_trace::{Event, Kind, Sink, Tee};
use schedlab_units::Pid;

use super::beginning::BEGINNING;
use super::fidelity::{FIGURES, values};
use super::{Form, Home, Place, figures, ms};
use crate::error::Error;
use crate::experiment::spread;
use crate::measured::Measured;
use crate::scenario::Row;

/// The result of one replay.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Replayed {
    /// Its figures, in the order of [`values`].
    pub figures: [f64; FIGURES],
    /// How long each recorded task ran, ms.
    pub busy: Vec<f64>,
}

/// A form, ready to be replayed.
#[derive(Clone, Debug)]
pub(super) struct Trial<'a> {
    home: &'a Home<'a>,
    place: Place,
    row: Row,
    /// The form.
    pub form: Form,
}

impl<'a> Trial<'a> {
    /// A form of a replay where the recording was made.
    pub fn new(home: &'a Home<'a>, form: Form) -> Result<Trial<'a>, Error> {
        let place = Place { placed: BEGINNING, ..home.recorded.own(home.topology.clone(), form) };
        let row = home.recorded.row(&place)?;
        Ok(Trial { home, place, row, form })
    }

    /// One replay.
    pub fn run(&self, seed: u64) -> Result<Replayed, Error> {
        let Home { recorded, kernel, past, .. } = self.home;
        let simulation = Simulation::new(&self.place.machine, kernel, &self.row.workload)
            .map_err(|e| Error::new(e.to_string()))?;
        let mut sinks = Tee(Measured::new(self.row.prologue, figures()), Tasks::default());
        let outcome = simulation.past(past.clone()).seed(seed).limit(recorded.endless()).run(&mut sinks);
        if outcome.end == End::Duration {
            return Err(Error::new(format!(
                "{}: the replay on its own machine did not end within {}, though the recording did within {}; replay \
                 a part of it",
                recorded.name,
                recorded.endless(),
                recorded.figures.busy.span()
            )));
        }
        if !outcome.is_ok() {
            return Err(Error::new(format!(
                "{}: the replay on its own machine: {}",
                recorded.name, outcome.end
            )));
        }
        let Tee(replayed, tasks) = sinks;
        let mut busy = vec![0.0; recorded.learned.tasks.len()];
        for (pid, _, ran) in tasks.busy.tasks() {
            if let Some(task) = tasks.known.get(&pid) {
                busy[task.index()] += ms(ran);
            }
        }
        let half = recorded.half();
        Ok(Replayed { figures: values(&replayed.into_inner().into_inner(), half), busy })
    }

    /// Replays with these seeds.
    pub fn runs(
        &self,
        seeds: impl Iterator<Item = u64>,
        progress: impl Fn() + Sync,
    ) -> Result<Vec<Replayed>, Error> {
        let seeds: Vec<u64> = seeds.collect();
        let one = |index: usize| {
            let result = self.run(seeds[index]);
            progress();
            result
        };
        spread(seeds.len(), self.home.threads, one)?.into_iter().collect()
    }
}

/// Finds which task of a replay is which of the recording, and how long each ran.
#[derive(Clone, Debug, Default)]
struct Tasks {
    known: BTreeMap<Pid, TaskIndex>,
    busy: Busy,
}

impl Sink for Tasks {
    fn event(&mut self, event: &Event) {
        if let Kind::Mark { label, value } = event.kind
            && label.as_str() == MARK
        {
            self.known.insert(event.pid, TaskIndex(value as u32));
        }
        self.busy.event(event);
    }
}
