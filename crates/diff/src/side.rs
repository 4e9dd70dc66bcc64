//! What one trace shows about its tasks: where the scheduler placed them, step by step, and the totals.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_report::metrics::{Reasons, Wakes};
use schedlab_stats::Histogram;
use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind, Sink};
use schedlab_units::{Pid, Time};

/// Number of steps kept for one task. Later differences are not found, which bounds memory.
const STEPS: usize = 1 << 16;

/// A decision about a task, as any trace shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It was placed on a CPU when created or woken; with the reason if the trace contains it.
    Placed {
        /// Whether it was created.
        born: bool,
        /// The CPU chosen.
        cpu: CpuId,
        /// The rule that chose it; empty if the trace does not contain it.
        reason: String,
    },
    /// It was moved to another CPU while it waited.
    Moved(CpuId),
    /// It was preempted.
    Preempted,
    /// It left its CPU by itself.
    Left,
}

impl Step {
    /// Whether another trace has the same step. Reasons may differ if the outcome is the same.
    fn is_like(&self, other: &Step) -> bool {
        match (self, other) {
            (Step::Placed { born, cpu, .. }, Step::Placed { born: other_born, cpu: other_cpu, .. }) => {
                (born, cpu) == (other_born, other_cpu)
            }
            _ => self == other,
        }
    }
}

/// A task of one trace.
#[derive(Clone, Debug, Default)]
pub struct TaskOfSide {
    /// Its pid.
    pub pid: Pid,
    /// Its latest name.
    pub comm: Comm,
    /// The index of its parent, if the trace shows its creation.
    pub parent: Option<usize>,
    /// Its decisions in order, each with its time.
    pub steps: Vec<(Time, Step)>,
    /// Time it ran on each CPU, ns.
    pub ran_on: BTreeMap<CpuId, u64>,
    /// From wake-up to run, ns.
    pub waits: Histogram,
    /// How often it was preempted.
    pub preempted: u64,
    /// How often it was moved.
    pub moved: u64,
    /// It runs, or waits to run.
    awake: bool,
    dead: bool,
}

/// How often things happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Switches between tasks.
    pub switches: u64,
    /// Preemptions.
    pub preemptions: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// New tasks.
    pub forks: u64,
    /// Moves to another CPU.
    pub migrations: u64,
}

/// Folds one trace.
#[derive(Debug, Default)]
pub struct Side {
    /// Tasks in the order of their first event.
    pub tasks: Vec<TaskOfSide>,
    /// How often each rule decided, if the trace contains decisions.
    pub reasons: Reasons,
    /// How often things happened.
    pub counts: Counts,
    /// The first and the last instant.
    pub span: Option<(Time, Time)>,
    by_pid: BTreeMap<Pid, usize>,
    /// The task that runs on each CPU, and since when.
    running: BTreeMap<CpuId, (Pid, Time)>,
    wakes: Wakes,
    /// Reasons of placements that are not complete yet.
    placing: BTreeMap<Pid, String>,
    /// Tasks whose wake-up has begun and not ended.
    waking: BTreeSet<Pid>,
}

impl Side {
    /// How long the trace is, s.
    pub fn seconds(&self) -> f64 {
        self.span.map_or(0.0, |(first, last)| last.since(first).0 as f64 / 1e9)
    }

    /// The number of the first step in which two tasks differ. If one has fewer steps, the rest of the other is
    /// ignored.
    pub fn parts(a: &TaskOfSide, b: &TaskOfSide) -> Option<usize> {
        a.steps.iter().zip(&b.steps).position(|((_, a), (_, b))| !a.is_like(b))
    }

    fn index(&mut self, pid: Pid) -> usize {
        if let Some(&index) = self.by_pid.get(&pid) {
            return index;
        }
        self.tasks.push(TaskOfSide { pid, ..TaskOfSide::default() });
        self.by_pid.insert(pid, self.tasks.len() - 1);
        self.tasks.len() - 1
    }

    fn task(&mut self, pid: Pid, comm: Comm) -> &mut TaskOfSide {
        let index = self.index(pid);
        let task = &mut self.tasks[index];
        if !comm.is_empty() {
            task.comm = comm;
        }
        task
    }

    fn step(&mut self, pid: Pid, time: Time, step: Step) {
        let index = self.index(pid);
        let steps = &mut self.tasks[index].steps;
        if steps.len() < STEPS {
            steps.push((time, step));
        }
    }

    fn born(&mut self, child: Pid, comm: Comm, parent: Pid) {
        if self.by_pid.get(&child).is_some_and(|&index| self.tasks[index].dead) {
            self.by_pid.remove(&child);
        }
        let parent = (parent != Pid::IDLE && parent != child).then(|| self.index(parent));
        let task = self.task(child, comm);
        task.parent = task.parent.or(parent);
    }

    fn placed(&mut self, pid: Pid, time: Time, born: bool, cpu: CpuId) {
        let reason = self.placing.remove(&pid).unwrap_or_default();
        self.step(pid, time, Step::Placed { born, cpu, reason });
    }

    fn switch(&mut self, event: &Event) {
        let Kind::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid, .. } = event.kind
        else {
            return;
        };
        let now = event.time;
        self.counts.switches += 1;
        if prev_pid != Pid::IDLE {
            let since =
                self.running.get(&event.cpu).filter(|(pid, _)| *pid == prev_pid).map(|(_, since)| *since);
            let task = self.task(prev_pid, prev_comm);
            if let Some(since) = since {
                *task.ran_on.entry(event.cpu).or_default() += now.since(since).0;
            }
            task.awake = prev_state.is_runnable();
            if task.awake {
                task.preempted += 1;
                self.counts.preemptions += 1;
                self.step(prev_pid, now, Step::Preempted);
            } else {
                task.dead = prev_state.is_dead();
                self.step(prev_pid, now, Step::Left);
            }
        }
        self.running.insert(event.cpu, (next_pid, now));
        if next_pid != Pid::IDLE {
            self.task(next_pid, next_comm).awake = true;
            // If the end of the wake-up was not recorded, the task was placed where it runs.
            if self.waking.remove(&next_pid) {
                self.placed(next_pid, now, false, event.cpu);
            }
        }
    }
}

impl Sink for Side {
    fn event(&mut self, event: &Event) {
        let now = event.time;
        let first = self.span.map_or(now, |(first, _)| first);
        self.span = Some((first, now));
        if event.kind.is_decision() {
            self.reasons.event(event);
            if let Kind::Placement(placement) = &event.kind {
                self.placing.insert(placement.pid, placement.reason.to_string());
            }
            return;
        }
        if let Some(waited) = self.wakes.event(event)
            && let Kind::SchedSwitch { next_pid, next_comm, .. } = event.kind
        {
            self.task(next_pid, next_comm).waits.record(waited.0);
        }
        match event.kind {
            Kind::SchedSwitch { .. } => self.switch(event),
            Kind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
                self.task(pid, comm);
                self.born(child_pid, child_comm, pid);
            }
            Kind::SchedWakeupNew { comm, pid, target_cpu, .. } => {
                self.counts.forks += 1;
                self.born(pid, comm, event.pid);
                self.placed(pid, now, true, target_cpu);
            }
            // A waking may also concern a task that is awake.
            Kind::SchedWaking { comm, pid, .. } if pid != Pid::IDLE && !self.task(pid, comm).awake => {
                self.waking.insert(pid);
            }
            Kind::SchedWakeup { comm, pid, target_cpu, .. } if pid != Pid::IDLE => {
                self.task(pid, comm);
                self.counts.wakeups += 1;
                self.waking.remove(&pid);
                self.placed(pid, now, false, target_cpu);
            }
            Kind::SchedMigrateTask { comm, pid, dest_cpu, .. } => {
                self.counts.migrations += 1;
                self.task(pid, comm).moved += 1;
                // A task that is being woken is placed, which its wake-up reports.
                if !self.waking.contains(&pid) {
                    self.step(pid, now, Step::Moved(dest_cpu));
                }
            }
            Kind::TaskRename { pid, newcomm, .. } => {
                self.task(pid, newcomm);
            }
            _ => {}
        }
    }

    fn wants_decisions(&self) -> bool {
        true
    }
}
