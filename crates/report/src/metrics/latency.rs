//! How long tasks wait between being woken and running.

use schedlab_stats::Histogram;
use schedlab_trace::{Event, Sink};
use schedlab_units::Duration;

use super::Wakes;

/// Wake-up latency, ns: from `sched_waking` (or `sched_wakeup` if the former was not recorded) of a sleeping task to
/// the switch to the task. Needs those and `sched_switch`.
#[derive(Clone, Debug)]
pub struct WakeupLatency {
    /// All latencies.
    pub histogram: Histogram,
    wakes: Wakes,
}

impl Default for WakeupLatency {
    fn default() -> WakeupLatency {
        WakeupLatency { histogram: Histogram::new(), wakes: Wakes::default() }
    }
}

impl WakeupLatency {
    /// A task waited this long; for callers that follow the wake-ups themselves.
    pub fn waited(&mut self, latency: Duration) {
        self.histogram.record(latency.0);
    }

    /// The trace is over.
    pub fn end(&mut self) {
        self.histogram.pack();
        self.wakes = Wakes::default();
    }
}

impl Sink for WakeupLatency {
    fn event(&mut self, event: &Event) {
        if let Some(latency) = self.wakes.event(event) {
            self.waited(latency);
        }
    }
}
