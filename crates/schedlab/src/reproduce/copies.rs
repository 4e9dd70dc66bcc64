//! Repeats a verdict from copies of a warm run.
//!
//! If warming up a workload takes far longer than measuring it, it is warmed up once for each row, kernel and
//! seed. A copy then continues with a constant pushed, settles, and is measured; so does a copy without a push,
//! as the reference.

use std::collections::BTreeMap;
use std::sync::Mutex;

use schedlab_machine::Machine;
use schedlab_sched::Kernel;
use schedlab_sim::{Outcome, Simulation, Warm};
use schedlab_trace::NullSink;
use schedlab_units::Duration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::Error;
use crate::experiment::Run;
use crate::folds::Folds;
use crate::scenario::{Row, parse_duration};

/// How long copies run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Spans {
    /// From the push until figures are gathered.
    #[serde(deserialize_with = "duration", serialize_with = "as_text")]
    pub settle: Duration,
    /// How long figures are gathered.
    #[serde(deserialize_with = "duration", serialize_with = "as_text")]
    pub sample: Duration,
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    parse_duration(&text).map_err(serde::de::Error::custom)
}

fn as_text<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(duration)
}

/// A row of a scenario under one of its kernels with a seed: names and places.
pub type Place<'s> = (&'s str, usize, usize, u64);

/// Runs that are warm. A thread that takes a copy locks the original for as long as that takes.
#[derive(Default)]
pub struct Copies<'s>(pub BTreeMap<Place<'s>, (Spans, Mutex<Warm<'s>>)>);

/// Runs a workload until it is warm.
///
/// # Errors
/// A workload that ends before it marks the end of its warm-up.
pub fn warm_up<'s>(
    machine: &'s Machine,
    kernel: &'s Kernel,
    row: &'s Row,
    seed: u64,
) -> Result<Warm<'s>, Error> {
    let simulation =
        Simulation::new(machine, kernel, &row.workload).map_err(|e| Error::new(e.to_string()))?;
    simulation
        .seed(seed)
        .warm_up(&mut NullSink)
        .map_err(|end| Error::new(format!("it ended before it was warm: {end}")))
}

/// Continues a copy.
///
/// # Errors
/// A deadlock.
pub fn run_copy(mut copy: Warm, spans: Spans, row: &Row, seed: u64) -> Result<Run, Error> {
    let right = |outcome: Outcome| match outcome.is_ok() {
        true => Ok(outcome),
        false => Err(Error::new(outcome.end.to_string())),
    };
    let begins = right(copy.run(spans.settle, &mut NullSink))?.time;
    let mut folds = Folds::new(&row.workload).unexplained();
    folds.begin_again(begins);
    let outcome = right(copy.run(spans.sample, &mut folds))?;
    Ok(Run {
        seed,
        elapsed: outcome.time.since(begins),
        simulated: outcome.elapsed(),
        ipis: outcome.counts.ipis,
        profile: outcome.profile,
        engine: outcome.counts,
        account: outcome.account,
        slower: outcome.slower,
        settled: outcome.settled,
        folds,
    })
}
