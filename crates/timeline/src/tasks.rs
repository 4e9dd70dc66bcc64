//! The tasks of a trace, each with its own number.
//!
//! A pid may be reused: a task created with a pid that another task had is a different task. Two numbers are
//! reserved: [`IDLE`] is the idle task of every CPU, [`UNKNOWN`] any task that ran while the recording lost events.

use std::collections::HashMap;

use schedlab_trace::{Comm, Event, Kind};
use schedlab_units::Pid;

use crate::head::TaskColumns;

/// The number of the idle task of every CPU.
pub const IDLE: u32 = 0;

/// The number of a task that the trace does not show.
pub const UNKNOWN: u32 = 1;

/// What is known about a task.
#[derive(Clone, Debug, Default)]
pub(crate) struct Task {
    pid: Pid,
    comm: Comm,
    /// Number of its parent plus one; 0 if it is not known.
    parent: u32,
    first: u64,
    last: u64,
    pub run_ns: u64,
    pub switches: u64,
    pub wakeups: u64,
    pub migrations: u64,
    pub wait_ns: u64,
    pub wait_ns_max: u64,
    /// It runs, or waits to run.
    pub awake: bool,
    /// It has left its CPU for good, so its pid may come back.
    pub dead: bool,
}

/// All tasks so far.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    all: Vec<Task>,
    by_pid: HashMap<Pid, u32>,
}

impl Tasks {
    pub fn new() -> Tasks {
        let named = |name: &str| Task { comm: Comm::from(name), ..Task::default() };
        let unknown = Task { pid: Pid(-1), ..named("unknown") };
        Tasks { all: vec![named("idle"), unknown], by_pid: HashMap::new() }
    }

    /// The number of the task with a pid at a time.
    pub fn number(&mut self, pid: Pid, now: u64) -> u32 {
        if pid == Pid::IDLE {
            return IDLE;
        }
        if pid.0 < 0 {
            return UNKNOWN;
        }
        let number = match self.by_pid.get(&pid) {
            Some(&number) => number,
            None => self.add(pid, now),
        };
        self.all[number as usize].last = now;
        number
    }

    fn add(&mut self, pid: Pid, now: u64) -> u32 {
        let number = self.all.len() as u32;
        self.all.push(Task { pid, first: now, last: now, ..Task::default() });
        self.by_pid.insert(pid, number);
        number
    }

    pub fn get(&mut self, number: u32) -> &mut Task {
        &mut self.all[number as usize]
    }

    /// Learns names, parents and creations of tasks from an event.
    pub fn learn(&mut self, event: &Event, now: u64) {
        match &event.kind {
            Kind::SchedSwitch { prev_comm, prev_pid, next_comm, next_pid, .. } => {
                self.name(*prev_pid, *prev_comm, now);
                self.name(*next_pid, *next_comm, now);
            }
            Kind::SchedWaking { comm, pid, .. } | Kind::SchedWakeup { comm, pid, .. } => {
                self.name(*pid, *comm, now);
            }
            Kind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
                self.name(*pid, *comm, now);
                self.born(*child_pid, now);
                self.name(*child_pid, *child_comm, now);
                let parent = self.number(*pid, now);
                let child = self.number(*child_pid, now);
                if parent > UNKNOWN {
                    self.get(child).parent = parent + 1;
                }
            }
            Kind::SchedWakeupNew { comm, pid, .. } => {
                self.born(*pid, now);
                self.name(*pid, *comm, now);
                let parent = self.number(event.pid, now);
                let child = self.number(*pid, now);
                if parent > UNKNOWN && child != parent && self.get(child).parent == 0 {
                    self.get(child).parent = parent + 1;
                }
            }
            Kind::TaskRename { pid, newcomm, .. } => self.name(*pid, *newcomm, now),
            _ => {}
        }
    }

    /// A newly born task is not the one that had its pid before.
    fn born(&mut self, pid: Pid, now: u64) {
        let is_old = |&number: &u32| self.all[number as usize].dead;
        if self.by_pid.get(&pid).is_some_and(is_old) {
            self.add(pid, now);
        }
    }

    fn name(&mut self, pid: Pid, comm: Comm, now: u64) {
        let number = self.number(pid, now);
        if number > UNKNOWN && !comm.is_empty() {
            self.get(number).comm = comm;
        }
    }

    /// As columns.
    pub fn into_columns(self) -> TaskColumns {
        let mut columns = TaskColumns::default();
        for task in self.all {
            columns.name.push(task.comm.to_str_lossy().into_owned());
            columns.pid.push(task.pid.0);
            columns.parent.push(task.parent);
            columns.first.push(task.first);
            columns.last.push(task.last);
            columns.run_ns.push(task.run_ns);
            columns.switches.push(task.switches);
            columns.wakeups.push(task.wakeups);
            columns.migrations.push(task.migrations);
            columns.wait_ns.push(task.wait_ns);
            columns.wait_ns_max.push(task.wait_ns_max);
        }
        columns
    }
}
