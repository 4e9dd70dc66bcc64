//! Where new tasks went, in order.

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, Sink};
use schedlab_units::{Pid, Time};

/// One new task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// When it was made runnable.
    pub time: Time,
    /// Its pid.
    pub pid: Pid,
    /// CPU of the task that created it.
    pub from: CpuId,
    /// CPU it was placed on.
    pub to: CpuId,
}

/// The first new tasks of a trace, in order. Needs `sched_wakeup_new`. Tasks that no task created (those with
/// which a simulation begins) are left out.
#[derive(Clone, Debug, Default)]
pub struct Placements {
    /// The tasks.
    pub tasks: Vec<NewTask>,
}

/// A run may create millions of tasks; only this many are kept for reading.
const KEPT: usize = 4096;

impl Sink for Placements {
    fn event(&mut self, event: &Event) {
        if let Kind::SchedWakeupNew { pid, target_cpu, .. } = event.kind
            && event.pid != Pid::IDLE
            && self.tasks.len() < KEPT
        {
            self.tasks.push(NewTask { time: event.time, pid, from: event.cpu, to: target_cpu });
        }
    }
}
