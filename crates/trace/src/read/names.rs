//! The names of tasks, where a format does not repeat them with each event.

use std::collections::HashMap;

use schedlab_units::Pid;

use crate::comm::Comm;
use crate::event::{Event, Kind};

/// What is known about each task so far. Each event looks up two or three tasks, and Linux pids are below four million;
/// larger numbers, in a damaged recording, are kept separately.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// By pid, in pages.
    pages: Vec<Option<Box<[Option<Task>; PAGE]>>>,
    beyond: HashMap<Pid, Task>,
}

const PAGE: usize = 256;

/// The name of the idle tasks.
const IDLE: Comm = Comm::new(b"<idle>");

/// PID_MAX_LIMIT: pids are smaller.
const PID_MAX: usize = 1 << 22;

/// What is known about a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Task {
    pub comm: Comm,
    pub tgid: Option<Pid>,
}

impl Names {
    /// What is known about a task, for changes.
    pub fn task(&mut self, pid: Pid) -> &mut Task {
        let Some(place) = place(pid) else { return self.beyond.entry(pid).or_default() };
        let page = place / PAGE;
        if self.pages.len() <= page {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([None; PAGE]));
        page[place % PAGE].get_or_insert_default()
    }

    fn known(&self, pid: Pid) -> Option<&Task> {
        let Some(place) = place(pid) else { return self.beyond.get(&pid) };
        self.pages.get(place / PAGE)?.as_ref()?[place % PAGE].as_ref()
    }

    /// Sets the name and process of an event's current task, and learns the names that the event contains.
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
            event.comm = IDLE;
        } else if let Some(task) = self.known(event.pid) {
            event.comm = task.comm;
            event.tgid = event.tgid.or(task.tgid);
        }
        if let Kind::SchedSwitch { next_comm, next_pid, .. } = &event.kind {
            self.task(*next_pid).comm = *next_comm;
        }
    }
}

fn place(pid: Pid) -> Option<usize> {
    usize::try_from(pid.0).ok().filter(|&place| place < PID_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_found_again() {
        let mut names = Names::default();
        for pid in [0, 1, 255, 256, 4_194_303, 4_194_304, i32::MAX, -1].map(Pid) {
            assert!(names.known(pid).is_none(), "{pid}");
            names.task(pid).comm = Comm::from(pid.to_string().as_str());
        }
        for pid in [0, 256, 4_194_303, 4_194_304, -1].map(Pid) {
            assert_eq!(names.known(pid).map(|task| task.comm.to_string()), Some(pid.to_string()));
        }
        assert!(names.known(Pid(2)).is_none(), "a neighbour of one that is known");
    }
}
