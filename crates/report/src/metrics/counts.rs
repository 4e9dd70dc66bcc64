//! How often things happened: switches, wake-ups, births.

use schedlab_trace::{Event, Kind, Sink};
use schedlab_units::Pid;

/// Counts over a trace. Needs `sched_switch`, `sched_wakeup`, `sched_wakeup_new`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Every switch, including those to and from idle, as `perf stat -a` counts them.
    pub switches: u64,
    /// Switches away from a task that went to sleep or ended.
    pub voluntary: u64,
    /// Switches away from a runnable task.
    pub involuntary: u64,
    /// Wake-ups that were completed.
    pub wakeups: u64,
    /// New tasks.
    pub forks: u64,
    /// Events of any kind.
    pub events: u64,
}

impl Counts {
    /// Switches away from a task, as `perf stat COMMAND` counts them.
    pub fn task_switches(&self) -> u64 {
        self.voluntary + self.involuntary
    }

    /// Switches away from an idle task.
    pub fn from_idle(&self) -> u64 {
        self.switches - self.task_switches()
    }
}

impl Sink for Counts {
    #[inline]
    fn event(&mut self, event: &Event) {
        self.events += 1;
        match event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, .. } => {
                self.switches += 1;
                if prev_pid != Pid::IDLE {
                    if prev_state.is_runnable() {
                        self.involuntary += 1;
                    } else {
                        self.voluntary += 1;
                    }
                }
            }
            Kind::SchedWakeup { .. } => self.wakeups += 1,
            Kind::SchedWakeupNew { .. } => self.forks += 1,
            _ => {}
        }
    }
}
