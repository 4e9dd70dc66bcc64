//! What wake-ups and forks show about the tasks that make them.

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::Placed;

use super::context::{is_interrupt, is_softirq};
use super::programs::{State, Waking};
use super::{Curr, Learner};
use crate::learned::{Begin, Sleep, Step, TaskIndex};

impl Learner {
    pub(super) fn waking(&mut self, event: &Event, pid: Pid, comm: Comm, prio: i32, prev: CpuId) {
        let task = match self.programs.by_pid.get(&pid) {
            Some(&task) => task,
            None => {
                let asleep = State::Asleep { since: self.programs.learned.first, served: false };
                self.meet(pid, comm, prio, Begin::Asleep(prev), asleep, event.time)
            }
        };
        let waker = if is_interrupt(event) { None } else { self.current(event) };
        if waker == Some(task) {
            return;
        }
        if self.programs.life(task).waking.is_some() {
            self.programs.learned.wakeups_of_awake += 1;
            self.programs.drop_waking(task);
        }
        if waker.is_some() {
            self.programs.life(task).woken[usize::from(event.cpu != prev)] += 1;
        }
        let waker = waker.map(|waker| {
            self.programs.acts(waker, event.time);
            self.programs.step(waker, Step::Wake(task));
            (waker, self.programs.learned.tasks[waker.index()].steps.len() - 1)
        });
        let in_softirq = is_softirq(event);
        self.programs.life(task).waking =
            Some(Waking { at: event.time, by: event.cpu, prev, waker, in_softirq });
    }

    /// How long an idle CPU took to notice a wake-up by another CPU; `None` if it has been busy since.
    pub(super) fn heard(&self, waking: Option<Waking>, cpu: CpuId, now: Time) -> Option<Duration> {
        let waking = waking.filter(|waking| waking.by != cpu)?;
        let idle = self.cpus[cpu.index()] == Curr::Idle && self.idle_since[cpu.index()] <= waking.at;
        idle.then(|| now.since(waking.at))
    }

    /// A task continues after a sleep.
    pub(super) fn woken(
        &mut self,
        task: TaskIndex,
        slept: Time,
        served: bool,
        now: Time,
        heard: Option<Duration>,
    ) {
        let waking = self.programs.life(task).waking.take();
        let at = waking.map_or(now, |waking| waking.at);
        match waking.and_then(|waking| waking.waker) {
            Some((waker, _)) if !self.programs.learned.tasks[waker.index()].is_left_out => {
                if let Some(after) = heard {
                    self.programs.step(task, Step::Heard(after));
                }
                self.programs.step(task, Step::Wait(waker));
            }
            waker => {
                let served = served || waker.is_some();
                let since_last = at.since(self.programs.life(task).last_timer);
                if !served {
                    let life = self.programs.life(task);
                    life.last_timer = at;
                    life.timers[usize::from(!waking.is_some_and(|waking| waking.in_softirq))] += 1;
                }
                let sleep = Sleep { span: Duration(at.0.saturating_sub(slept.0)), since_last, served };
                self.programs.sleeps_longer_than_late(task, sleep.span);
                // The timer's own CPU notices it at once, and its time includes the delay. If it places the task on
                // another CPU, it is a wake-up like any other.
                if let Some(after) = heard {
                    self.programs.late_timer(task, after);
                }
                if let Some(Waking { by: cpu, prev: task_on, waker: None, .. }) = waking {
                    self.programs.step(task, Step::InterruptOn { cpu, task_on });
                }
                self.programs.step(task, Step::Sleep(sleep));
            }
        }
    }

    /// A task was queued, and the task running there may be preempted.
    pub(super) fn queued(&mut self, event: &Event, pid: Pid, prio: i32, target: CpuId) {
        let Some(&task) = self.programs.by_pid.get(&pid) else { return };
        let by = match self.cpus[event.cpu.index()] {
            Curr::Task(by) if target == event.cpu && self.programs.lives[by.index()].prio == prio => Some(by),
            _ => None,
        };
        self.lags.woken(task, event.cpu.index(), by);
    }

    pub(super) fn fork(&mut self, event: &Event, child_comm: Comm, child_pid: Pid) {
        let Some(parent) = self.current(event) else { return };
        self.programs.acts(parent, event.time);
        let prio = self.programs.life(parent).prio;
        let begin = Begin::Forked(parent);
        let child = self.meet(child_pid, child_comm, prio, begin, State::Runnable, event.time);
        if let Some(is_thread) = self.clones.is_thread(child_pid) {
            self.programs.learned.tasks[child.index()].is_thread = is_thread;
            self.programs.life(child).is_thread_told = true;
            if is_thread {
                self.programs.life(child).process = self.programs.life(parent).process;
            }
        }
        self.programs.step(parent, Step::Fork(child));
    }

    /// The new task is queued: from now on it can run.
    pub(super) fn wakeup_new(&mut self, event: &Event, pid: Pid, comm: Comm, prio: i32, to: CpuId) {
        match self.programs.by_pid.get(&pid).copied() {
            None => self.fork(event, comm, pid),
            Some(child) => {
                let Begin::Forked(parent) = self.programs.learned.tasks[child.index()].begin else { return };
                let steps = &mut self.programs.learned.tasks[parent.index()].steps;
                if let Some(fork) = steps.iter_mut().rev().find(|step| **step == Step::Fork(child)) {
                    *fork = Step::Nothing;
                }
                self.programs.acts(parent, event.time);
                self.programs.step(parent, Step::Fork(child));
                self.programs.life(child).last_timer = event.time;
            }
        }
        if let Some(&child) = self.programs.by_pid.get(&pid) {
            self.programs.seen(child, comm, prio);
            let placed = Placed { from: event.cpu, to, was_idle: false, heard: None };
            self.programs.learned.tasks[child.index()].placed = Some((event.time, placed));
            if to != event.cpu && matches!(self.cpus.get(to.index()), Some(Curr::Task(_))) {
                self.unheard[to.index()] = Some(child);
            }
        }
    }

    /// A busy CPU acts: by now it has noticed a new task.
    pub(super) fn hears(&mut self, event: &Event) {
        let Some(task) = self.unheard[event.cpu.index()].take() else { return };
        if let Some((at, placed)) = &mut self.programs.learned.tasks[task.index()].placed {
            placed.heard = Some(event.time.since(*at));
        }
    }
}
