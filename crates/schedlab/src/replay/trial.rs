//! Replays of a recording on its own machine in one form, each with a seed of its own.

use std::collections::BTreeMap;

use schedlab_replay::{MARK, TaskIndex};
use schedlab_report::metrics::Busy;
use schedlab_sched::Kernel;
use schedlab_sim::{End, Past, Simulation};
use schedlab_topology::Topology;
use schedlab_trace::{Event, Kind, Sink, Tee};
use schedlab_units::Pid;

use super::beginning::BEGINNING;
use super::fidelity::{FIGURES, values};
use super::{Form, Place, Recorded, figures, ms};
use crate::error::Error;
use crate::experiment::{ENDLESS, spread};
use crate::measured::Measured;
use crate::scenario::Row;

/// What became of one replay.
#[derive(Clone, Debug)]
pub(super) struct Replayed {
    /// Its figures, in the order of [`values`].
    pub figures: [f64; FIGURES],
    /// How long each recorded task ran, ms.
    pub busy: Vec<f64>,
}

/// A form, ready to be replayed.
#[derive(Clone, Debug)]
pub(super) struct Trial<'a> {
    recorded: &'a Recorded,
    kernel: &'a Kernel,
    place: Place,
    row: Row,
    /// What the recording tells of the state it began from.
    past: Past,
    /// What it is.
    pub form: Form,
}

impl<'a> Trial<'a> {
    /// A form of a replay where the recording was made.
    pub fn new(
        recorded: &'a Recorded,
        topology: &Topology,
        kernel: &'a Kernel,
        form: Form,
    ) -> Result<Trial<'a>, Error> {
        let place = Place { placed: BEGINNING, ..recorded.own(topology.clone(), form) };
        let row = recorded.row(&place)?;
        let past = recorded.past(topology, kernel)?;
        Ok(Trial { recorded, kernel, place, row, past, form })
    }

    /// One replay.
    pub fn run(&self, seed: u64) -> Result<Replayed, Error> {
        let simulation = Simulation::new(&self.place.machine, self.kernel, &self.row.workload)
            .map_err(|e| Error::new(e.to_string()))?;
        let mut sinks = Tee(Measured::new(self.row.prologue, figures()), Tasks::default());
        let outcome = simulation.past(self.past.clone()).seed(seed).limit(ENDLESS).run(&mut sinks);
        if outcome.end == End::Duration || !outcome.is_ok() {
            return Err(Error::new(format!(
                "{}: the replay on its own machine: {}",
                self.recorded.name, outcome.end
            )));
        }
        let Tee(replayed, tasks) = sinks;
        let mut busy = vec![0.0; self.recorded.learned.tasks.len()];
        for (pid, _, ran) in tasks.busy.tasks() {
            if let Some(task) = tasks.known.get(&pid) {
                busy[task.index()] += ms(ran);
            }
        }
        let half = self.recorded.half();
        Ok(Replayed { figures: values(&replayed.into_inner().into_inner(), half), busy })
    }

    /// Replays with these seeds.
    pub fn runs(
        &self,
        seeds: impl Iterator<Item = u64>,
        threads: usize,
        progress: impl Fn() + Sync,
    ) -> Result<Vec<Replayed>, Error> {
        let seeds: Vec<u64> = seeds.collect();
        let one = |index: usize| {
            let result = self.run(seeds[index]);
            progress();
            result
        };
        spread(seeds.len(), threads, one)?.into_iter().collect()
    }
}

/// Tells which task of a replay is which of the recording, and how long each ran.
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
