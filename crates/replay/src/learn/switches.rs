//! What switches and moves show about running tasks.

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind, TaskState};
use schedlab_units::{Duration, Pid, Time};

use super::context::is_softirq;
use super::programs::State;
use super::{Curr, Learner};
use crate::learned::{Begin, Step, Task, TaskIndex};
use crate::passes::Pass;

/// The task that leaves a CPU, and how.
pub(super) struct Left {
    pub pid: Pid,
    pub comm: Comm,
    pub prio: i32,
    pub state: TaskState,
    /// It is runnable, and no task was queued with it since it began.
    pub unasked: bool,
    /// A stopper comes next, which preempts even a deadline task with budget.
    pub for_stopper: bool,
}

impl Learner {
    /// The task in whose context an event happened; `None` for the idle task.
    pub(super) fn current(&mut self, event: &Event) -> Option<TaskIndex> {
        if event.pid == Pid::IDLE {
            return None;
        }
        let known = self.programs.by_pid.get(&event.pid).copied();
        if let Curr::Task(task) = self.cpus[event.cpu.index()]
            && known == Some(task)
        {
            return Some(task);
        }
        let unknown = self.cpus[event.cpu.index()] == Curr::Unknown;
        // A task that was only woken so far, and runs on a CPU without a switch to it, has been running: the wake-up
        // found it awake.
        let was_woken_awake = known.is_some_and(|task| unknown && self.programs.is_taken_for_asleep(task));
        if let Some(task) = known.filter(|_| was_woken_awake) {
            self.programs.learned.tasks[task.index()].begin = Begin::Running(event.cpu);
        }
        let from_the_first = unknown && (known.is_none() || was_woken_awake);
        let since = if from_the_first { self.programs.learned.first } else { event.time };
        let task = known.unwrap_or_else(|| {
            let begin = Begin::Running(event.cpu);
            self.meet(event.pid, event.comm, 120, begin, State::On { since }, event.time)
        });
        self.programs.runs_since(task, event.cpu, since);
        self.programs.runs_on(task, &event.comm, event.cpu);
        self.cpus[event.cpu.index()] = Curr::Task(task);
        Some(task)
    }

    pub(super) fn switch_out(&mut self, event: &Event, left: Left) {
        let Left { pid, comm, prio, state, unasked, for_stopper } = left;
        let was = Event { pid, comm, ..event.clone() };
        let Some(task) = self.current(&was) else { return };
        self.programs.advance(task, event.time);
        self.changes_priority(task, &left, event.time, event.cpu);
        self.programs.seen(task, comm, prio);
        let ran = event.time.since(self.programs.life(task).began);
        self.programs.life(task).budgets.ran(ran);
        if state.is_runnable() {
            if prio < 0 && !for_stopper {
                self.programs.flush(task);
                self.programs.step(task, Step::OutOfBudget);
                self.programs.life(task).budgets.used_up();
            } else if unasked && !state.is_preempted() && self.yields.makes_way(task.index(), ran) {
                self.programs.flush(task);
                self.programs.step(task, Step::Yield);
            }
            self.programs.life(task).state = State::Runnable;
            self.programs.life(task).waits_since = event.time;
            return;
        }
        self.programs.flush(task);
        if state.is_dead() {
            self.programs.life(task).state = State::Dead;
            self.programs.learned.tasks[task.index()].ended = true;
            if !self.programs.life(task).is_thread_told {
                self.programs.learned.tasks[task.index()].is_thread =
                    is_thread(&self.programs.learned.tasks, task, state);
            }
            self.programs.by_pid.remove(&pid);
            return;
        }
        self.yields.sleeps(task.index());
        let served = state.bits() & TaskState::UNINTERRUPTIBLE.bits() != 0;
        self.programs.life(task).state = State::Asleep { since: event.time, served };
    }

    pub(super) fn switch_in(&mut self, event: &Event, pid: Pid, comm: Comm, prio: i32, was_idle: bool) {
        let cpu = event.cpu;
        if pid == Pid::IDLE {
            self.cpus[cpu.index()] = Curr::Idle;
            self.idle_since[cpu.index()] = event.time;
            return;
        }
        let task = match self.programs.by_pid.get(&pid) {
            Some(&task) => task,
            None => self.meet(pid, comm, prio, Begin::Runnable(cpu), State::Runnable, event.time),
        };
        if let Some(waking) = self.programs.life(task).waking
            && was_idle
            && waking.by != cpu
        {
            *self.programs.learned.idle_wakeups.entry(event.time.since(waking.at).0 / 1000).or_default() += 1;
        }
        self.programs.runs_on(task, &comm, cpu);
        let has_run = self.programs.life(task).run > Duration::ZERO;
        let entry = &mut self.programs.learned.tasks[task.index()];
        if let Some((at, placed)) = &mut entry.placed
            && placed.to == cpu
            && !has_run
            && entry.steps.is_empty()
            && was_idle
        {
            placed.was_idle = true;
            placed.heard = (placed.from != cpu).then(|| event.time.since(*at));
        }
        self.has_budget(task, event.time);
        let first = self.programs.learned.first;
        let life = self.programs.life(task);
        if let (State::Asleep { .. }, Some(waking)) = (life.state, life.waking) {
            life.budgets.woken(waking.at);
        }
        let waits_since = match (life.waking, life.state) {
            (Some(waking), _) => waking.at,
            (None, State::Runnable) => life.waits_since,
            // The event that ended its sleep is not in the recording.
            _ => event.time,
        };
        life.before.waited(waits_since.since(first), event.time.since(first));
        let state = life.state;
        match state {
            State::Asleep { since, served } => {
                let waking = self.programs.life(task).waking;
                let heard = self.heard(waking, cpu, event.time);
                self.woken(task, since, served, event.time, heard);
            }
            State::Left { since } if self.programs.life(task).waking.is_some() => {
                self.woken(task, since, false, event.time, None);
            }
            _ if self.programs.life(task).waking.is_some() => {
                self.programs.learned.wakeups_of_awake += 1;
                self.programs.drop_waking(task);
            }
            _ => {}
        }
        let steps = self.programs.learned.tasks[task.index()].steps.len();
        self.programs.life(task).stretch = (steps, self.programs.life(task).run);
        self.programs.seen(task, comm, prio);
        self.programs.life(task).began = event.time;
        self.programs.runs_since(task, cpu, event.time);
        self.cpus[cpu.index()] = Curr::Task(task);
    }

    /// A task is moved; by the balancing of a busy CPU if it waited and that CPU gets it.
    pub(super) fn migrate(&mut self, event: &Event, pid: Pid, from: CpuId, cpu: CpuId) {
        let waited = |task: &TaskIndex| self.programs.lives[task.index()].state == State::Runnable;
        if cpu == event.cpu
            && event.pid != Pid::IDLE
            && is_softirq(event)
            && self.programs.by_pid.get(&pid).is_some_and(waited)
        {
            self.programs.learned.passes.moved(Pass { cpu, from, at: event.time });
        }
        let Some(&task) = self.programs.by_pid.get(&pid) else { return };
        if from == event.cpu {
            self.has_budget(task, event.time);
        }
        if self.programs.life(task).waking.is_some() && cpu != event.cpu {
            let task = &mut self.programs.learned.tasks[task.index()];
            if !matches!(task.begin, Begin::Forked(_)) {
                task.recent_used_cpu.get_or_insert(cpu);
            }
        }
    }

    /// A task that was out of budget has a new one, and waits for a CPU from now on.
    fn has_budget(&mut self, task: TaskIndex, now: Time) {
        let life = self.programs.life(task);
        if life.budgets.renewed(now) {
            life.waits_since = now;
        }
    }

    /// Whether a task gives up its CPU although no task was queued with it.
    pub(super) fn makes_way_unasked(&mut self, event: &Event) -> bool {
        match event.kind {
            Kind::SchedWakeup { target_cpu: cpu, .. }
            | Kind::SchedWakeupNew { target_cpu: cpu, .. }
            | Kind::SchedMigrateTask { dest_cpu: cpu, .. } => {
                self.yields.arrives(cpu);
                false
            }
            Kind::SchedSwitch { prev_pid, prev_state, .. } => {
                !self.yields.switches(event.cpu) && prev_pid != Pid::IDLE && prev_state.is_runnable()
            }
            _ => false,
        }
    }
}

/// If its creation does not show whether it is a thread, its end does: a thread is freed at once; a process waits for
/// its parent. Up to v4.13 both end alike, and are assumed to be processes.
fn is_thread(tasks: &[Task], task: TaskIndex, state: TaskState) -> bool {
    let forked = matches!(tasks[task.index()].begin, Begin::Forked(_));
    forked && state == TaskState::DEAD
}
