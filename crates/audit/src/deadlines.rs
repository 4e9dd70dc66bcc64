//! Deadline tasks and their budgets, which no event tells.
//!
//! One that is out of budget waits in no queue until its next period. That shows when its CPU does something lower: it
//! makes way though it could go on, or is passed over after it was woken. That it has a budget again shows when it runs,
//! or is pushed. The deadlines are not told either: of several that wait any may be the earliest.
//!
//! Where a timer ends the budget and is not taken back when the task leaves before, it ends the turn of another.

use schedlab_sched::{Class, Curr, Feature, HrtickEnd, Kernel, Reason};
use schedlab_topology::{CpuId, PerCpu};
use schedlab_trace::{Event, IDLE_EXIT};
use schedlab_units::{TaskId, Time};

use crate::audit::Audit;
use crate::listener::Listener;
use crate::shadow::Shadow;
use crate::verdict::{Answer, Choice, Hidden, Numbers, Possible, Verdict};

/// By CPU, whether the slice timer may be set to the end of the budget of a deadline task, who knows when.
pub struct BudgetTimers {
    set: PerCpu<bool>,
    /// Whether there are such timers that outlive the turn for which they were set.
    outlive: bool,
}

impl BudgetTimers {
    /// None is set.
    pub fn new(nr_cpus: usize, kernel: &Kernel) -> BudgetTimers {
        let outlive = kernel.has(Feature::HrtickDl) && kernel.rules.hrtick_end == HrtickEnd::Deadline;
        BudgetTimers { set: PerCpu::new(nr_cpus, |_| false), outlive }
    }

    /// Whether that of a CPU may be set.
    pub fn may_be_set(&self, cpu: CpuId) -> bool {
        self.set[cpu]
    }

    /// That of a CPU went off, or was taken back.
    pub fn ended(&mut self, cpu: CpuId) {
        self.set[cpu] = false;
    }
}

impl Shadow {
    /// A CPU has switched: a deadline task sets the timer, a fair one that is not alone sets it anew, and an idle CPU takes
    /// it back.
    pub(crate) fn sets_budget_timer(&mut self, cpu: CpuId, next: Curr) {
        if !self.budget_timers.outlive {
            return;
        }
        let set = &mut self.budget_timers.set[cpu];
        match next.task().map(|task| self.sched.class_of(task)) {
            None => *set = false,
            Some(Class::Dl) => *set = true,
            Some(Class::Fair) => {
                let sets = self.sched.kernel.has(Feature::Hrtick) && self.sched.root_cfs(cpu).h_nr_queued > 1;
                *set &= !sets;
            }
            Some(_) => {}
        }
    }

    /// A CPU goes on with `next`. If that is of a lower class than the deadline tasks that are queued there, they are out
    /// of budget, all but those it made way for before. Gives who waited.
    pub(crate) fn passes_over(&mut self, cpu: CpuId, next: Curr, now: Time) -> Vec<TaskId> {
        let lower = match next {
            Curr::Idle => true,
            Curr::Task(task) => self.sched.class_of(task) < Class::Dl,
        };
        if !lower || self.sched.rqs[cpu].dl_queue.is_empty() {
            return Vec::new();
        }
        let queued = self.sched.rqs[cpu].dl_queue.clone();
        for &task in &queued {
            if self.runs(task) {
                self.budget_timers.ended(cpu);
            }
            self.sched.throttle_dl_as_recorded(task, now);
        }
        self.generation += 1;
        queued.into_iter().filter(|&task| !self.runs(task)).collect()
    }

    /// A deadline task may be picked, who knows its budget and its deadline.
    pub(crate) fn may_be_first(&self, task: TaskId) -> Possible {
        Possible {
            choice: Choice::Task(self.known(task).pid),
            reason: Reason::PickClass.name(),
            hidden: Some(Hidden::Deadlines),
            numbers: Numbers::default(),
        }
    }

    /// A deadline task runs, or is pushed: if it was out of budget, it has one again. Whether it was.
    pub(crate) fn replenish(&mut self, task: TaskId, now: Time) -> bool {
        let was = self.sched.task(task).dl_throttled && self.sched.class_of(task) == Class::Dl;
        if was {
            self.sched.replenish_dl_as_recorded(task, now);
            self.generation += 1;
        }
        was
    }
}

impl<S: Listener> Audit<S> {
    /// Of a pick that passed these over: whether they had a budget hung on no event.
    pub(crate) fn may_have_budget(&self, verdict: &mut Verdict, passed_over: &[TaskId]) {
        if passed_over.is_empty() || !matches!(verdict.answer, Answer::Agrees | Answer::AgreesInSet) {
            return;
        }
        verdict.ours.extend(passed_over.iter().map(|&task| self.shadow.may_be_first(task)));
        (verdict.answer, verdict.hidden) = (Answer::AgreesInSet, Some(Hidden::Deadlines));
    }

    /// An idle CPU goes to sleep, so nobody waits there who could run.
    pub(crate) fn stays_idle(&mut self, event: &Event, state: u32) {
        let cpu = event.cpu;
        if state != IDLE_EXIT && self.shadow.sched.rqs[cpu].curr == Curr::Idle {
            self.shadow.passes_over(cpu, Curr::Idle, event.time);
        }
    }
}
