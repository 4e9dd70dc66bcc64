//! A filter that keeps only the events of some tasks of a trace.
//!
//! The tasks are selected by name. All others count as idle: a switch from a kworker to a selected task becomes one
//! from the idle task, so that reports see a machine that runs only the selected tasks.

use schedlab_units::Pid;

use crate::read::Lost;
use crate::{Comm, Event, Kind, Sink, TaskState};

/// The filter.
#[derive(Clone, Debug)]
pub struct Kept<F, S> {
    keeps: F,
    inner: S,
}

impl<F: Fn(Comm) -> bool, S: Sink> Kept<F, S> {
    /// Passes on the events of tasks whose name is selected.
    pub fn new(keeps: F, inner: S) -> Kept<F, S> {
        Kept { keeps, inner }
    }

    /// The sink behind the filter.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<F: Fn(Comm) -> bool, S: Sink> Sink for Kept<F, S> {
    fn event(&mut self, event: &Event) {
        match &event.kind {
            Kind::SchedSwitch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                next_comm,
                next_pid,
                next_prio,
            } => {
                let (from, to) = ((self.keeps)(*prev_comm), (self.keeps)(*next_comm));
                if !from && !to {
                    return;
                }
                let idle = Comm::swapper(event.cpu);
                let kind = Kind::SchedSwitch {
                    prev_comm: if from { *prev_comm } else { idle },
                    prev_pid: if from { *prev_pid } else { Pid::IDLE },
                    prev_prio: *prev_prio,
                    prev_state: if from { *prev_state } else { TaskState::RUNNING },
                    next_comm: if to { *next_comm } else { idle },
                    next_pid: if to { *next_pid } else { Pid::IDLE },
                    next_prio: *next_prio,
                };
                self.inner.event(&Event { kind, ..event.clone() });
            }
            Kind::SchedWaking { comm, .. }
            | Kind::SchedWakeup { comm, .. }
            | Kind::SchedWakeupNew { comm, .. }
            | Kind::SchedMigrateTask { comm, .. }
                if (self.keeps)(*comm) =>
            {
                self.inner.event(event);
            }
            _ => {}
        }
    }

    fn lost(&mut self, lost: &Lost) {
        self.inner.lost(lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::Flags;

    #[test]
    fn others_count_as_idle() {
        let (own, other) = (Comm::new(b"hg-1"), Comm::new(b"kworker/0:1"));
        let switch = |prev_comm, prev_pid, next_comm, next_pid| Event {
            time: Time::ZERO,
            cpu: CpuId(0),
            pid: Pid(prev_pid),
            tgid: None,
            comm: prev_comm,
            flags: Flags::NONE,
            kind: Kind::SchedSwitch {
                prev_comm,
                prev_pid: Pid(prev_pid),
                prev_prio: 120,
                prev_state: TaskState::INTERRUPTIBLE,
                next_comm,
                next_pid: Pid(next_pid),
                next_prio: 120,
            },
        };
        let mut filter = Kept::new(|comm| comm.as_bytes().starts_with(b"hg-"), Vec::new());
        filter.event(&switch(other, 7, own, 8));
        filter.event(&switch(own, 8, own, 9));
        filter.event(&switch(other, 7, other, 6));
        let pids: Vec<(i32, i32)> = filter
            .into_inner()
            .iter()
            .map(|event: &Event| match event.kind {
                Kind::SchedSwitch { prev_pid, next_pid, .. } => (prev_pid.0, next_pid.0),
                _ => unreachable!(),
            })
            .collect();
        assert_eq!(pids, [(0, 8), (8, 9)]);
    }
}
