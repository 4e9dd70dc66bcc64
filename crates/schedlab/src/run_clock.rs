//! The progress of a run, for callers that display it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use schedlab_units::{Duration, Time};

/// The virtual time reached by the run that reported last. Several threads may set it; no result depends on it.
#[derive(Clone, Debug, Default)]
pub struct RunClock(Arc<AtomicU64>);

impl RunClock {
    /// From the first event of that run.
    pub fn reached(&self) -> Duration {
        Duration(self.0.load(Ordering::Relaxed))
    }

    /// A handle that sets it in a run.
    pub(crate) fn hand(&self) -> Hand {
        Hand { clock: self.clone(), began: None }
    }
}

/// Sets the clock at each event of a run.
#[derive(Clone, Debug)]
pub(crate) struct Hand {
    clock: RunClock,
    began: Option<Time>,
}

impl Hand {
    #[inline]
    pub fn at(&mut self, time: Time) {
        let began = *self.began.get_or_insert(time);
        self.clock.0.store(time.since(began).0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Experiment, NoFiles, Scenario};

    #[test]
    fn a_run_moves_the_clock_to_its_end() {
        let text = "machine = \"2\"\nkernels = [\"v6.12\"]\nruns = 1\n[workload]\nmodel = \"hogs\"\nnice = [0, 0]\nwall = \"30ms\"\n";
        let experiment = Experiment::of(&Scenario::parse("test", text, &NoFiles).unwrap());
        assert_eq!(experiment.clock.reached(), Duration::ZERO);
        let mut results = experiment.nothing();
        experiment.extend(&mut results, 1, 1, false, || true, |_, _| ()).unwrap();
        // The warm-up does not count.
        let (reached, elapsed) = (experiment.clock.reached(), results.runs[0][0][0].elapsed);
        assert!(reached >= elapsed && reached < elapsed + Duration::millis(5), "{reached:?} of {elapsed:?}");
    }
}
