//! How long tasks wait between being woken and running.

use schedlab_stats::Histogram;
use schedlab_trace::{Event, Kind, Sink};
use schedlab_units::Time;

use super::PidTable;

/// Wake-up latency, ns: from `sched_waking` (or `sched_wakeup` where the former was
/// not recorded) to the switch to the task. Needs those and `sched_switch`.
#[derive(Clone, Debug)]
pub struct WakeupLatency {
    /// All latencies.
    pub histogram: Histogram,
    woken: PidTable<Option<Time>>,
}

impl Default for WakeupLatency {
    fn default() -> WakeupLatency {
        WakeupLatency { histogram: Histogram::new(), woken: PidTable::default() }
    }
}

impl Sink for WakeupLatency {
    fn event(&mut self, event: &Event) {
        match event.kind {
            Kind::SchedWaking { pid, .. } => *self.woken.entry(pid) = Some(event.time),
            Kind::SchedWakeup { pid, .. } | Kind::SchedWakeupNew { pid, .. } => {
                self.woken.entry(pid).get_or_insert(event.time);
            }
            Kind::SchedSwitch { next_pid, .. } => {
                if let Some(woken) = self.woken.entry(next_pid).take() {
                    self.histogram.record(event.time.since(woken).0);
                }
            }
            _ => {}
        }
    }
}
