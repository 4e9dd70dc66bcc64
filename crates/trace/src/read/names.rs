//! What tasks are called, where a format does not say so with each event.

use std::collections::HashMap;

use schedlab_units::Pid;

use crate::comm::Comm;
use crate::event::{Event, Kind};

/// What is known of each task so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(HashMap<Pid, Task>);

/// What is known of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Task {
    pub comm: Comm,
    pub tgid: Option<Pid>,
}

impl Names {
    /// What is known of a task, to be changed.
    pub fn task(&mut self, pid: Pid) -> &mut Task {
        self.0.entry(pid).or_default()
    }

    /// Gives an event the name and process of the task it happened under, and learns the
    /// names that it holds.
    pub fn name(&mut self, event: &mut Event) {
        match &event.kind {
            Kind::SchedSwitch { prev_comm, prev_pid, .. } => self.task(*prev_pid).comm = *prev_comm,
            Kind::SchedWaking { comm, pid, .. }
            | Kind::SchedWakeup { comm, pid, .. }
            | Kind::SchedWakeupNew { comm, pid, .. }
            | Kind::SchedMigrateTask { comm, pid, .. }
            | Kind::SchedProcessFork { comm, pid, .. } => self.task(*pid).comm = *comm,
            Kind::TaskRename { pid, newcomm, .. } => self.task(*pid).comm = *newcomm,
            _ => {}
        }
        if event.pid == Pid::IDLE {
            event.comm = Comm::from("<idle>");
        } else if let Some(task) = self.0.get(&event.pid) {
            event.comm = task.comm;
            event.tgid = event.tgid.or(task.tgid);
        }
        if let Kind::SchedSwitch { next_comm, next_pid, .. } = &event.kind {
            self.task(*next_pid).comm = *next_comm;
        }
    }
}
