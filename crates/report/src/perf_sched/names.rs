//! The names of tasks, their processes and parents.

use schedlab_trace::{Comm, Event, Kind};
use schedlab_units::Pid;

use super::by_pid::ByPid;

/// The latest name of each task. Needs no particular event: every event that names a task adds to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(ByPid<Name>);

/// One task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Name {
    pub comm: Comm,
    /// The process of which it is a thread.
    pub tgid: Option<Pid>,
    /// The process that created it.
    pub parent: Option<Pid>,
    /// Whether it ended.
    pub dead: bool,
}

impl Names {
    /// Learns names from an event. The name of its current task is ignored: recorders look it up later, when the task
    /// may have another.
    pub fn event(&mut self, event: &Event) {
        if let Some(tgid) = event.tgid {
            self.0.of(event.pid).tgid = Some(tgid);
        }
        match event.kind {
            Kind::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid, .. } => {
                self.call(prev_pid, prev_comm);
                if prev_state.is_dead() {
                    self.0.of(prev_pid).dead = true;
                }
                self.call(next_pid, next_comm);
            }
            Kind::SchedWaking { comm, pid, .. }
            | Kind::SchedWakeup { comm, pid, .. }
            | Kind::SchedWakeupNew { comm, pid, .. }
            | Kind::SchedMigrateTask { comm, pid, .. }
            | Kind::SchedStatRuntime { comm, pid, .. } => self.call(pid, comm),
            Kind::TaskRename { pid, newcomm, .. } => self.call(pid, newcomm),
            Kind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
                self.call(pid, comm);
                let parent = self.0.get(pid).and_then(|name| name.tgid).unwrap_or(pid);
                let child = Name { comm: child_comm, parent: Some(parent), ..Name::default() };
                *self.0.of(child_pid) = child;
            }
            Kind::SchedProcessExit { comm, pid, .. } => {
                self.call(pid, comm);
                self.0.of(pid).dead = true;
            }
            _ => {}
        }
    }

    /// What is known about a task.
    pub fn of(&self, pid: Pid) -> Name {
        self.0.get(pid).copied().unwrap_or_default()
    }

    fn call(&mut self, pid: Pid, comm: Comm) {
        if pid != Pid::IDLE && !comm.is_empty() {
            self.0.of(pid).comm = comm;
        }
    }
}
