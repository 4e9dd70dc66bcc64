//! Deadline tasks and their budgets, which no event shows.
//!
//! A deadline task that is out of budget is in no queue until its next period. This shows when its CPU runs something
//! of a lower class: the task is preempted although it is runnable, or is passed over after its wake-up. That it has a
//! budget again shows when it runs or is pushed. Deadlines are not shown either, so of several waiting tasks any may
//! have the earliest one.
//!
//! Where the timer that ends a budget is not cancelled when the task leaves early, it ends the turn of another task.

use schedlab_sched::{Class, Curr, Feature, HrtickEnd, Kernel, Placement, Push, Reason, Wakeup};
use schedlab_topology::{CpuId, PerCpu};
use schedlab_units::{TaskId, Time};

use super::Shadow;
use super::about::{About, Reading};

/// Learned from what CPUs run instead.
pub const BUDGETS: Reading = Reading::new("BUDGETS", "deadline tasks that are passed over are out of budget");

pub(super) const ABOUT: About =
    About { readings: &[BUDGETS], ..About::new("DEADLINES", "the deadlines and budgets of deadline tasks") };

/// For each CPU, whether the slice timer may be set to the time, unknown to us, at which a deadline task's budget ends.
pub struct BudgetTimers {
    set: PerCpu<bool>,
    /// Whether this kernel has timers that outlive the turn for which they were set.
    outlive: bool,
}

impl BudgetTimers {
    /// Creates them with no timer set.
    pub fn new(nr_cpus: usize, kernel: &Kernel) -> BudgetTimers {
        let outlive = kernel.has(Feature::HrtickDl) && kernel.rules.hrtick_end == HrtickEnd::Deadline;
        BudgetTimers { set: PerCpu::new(nr_cpus, |_| false), outlive }
    }

    /// Whether a CPU's timer may be set.
    pub fn may_be_set(&self, cpu: CpuId) -> bool {
        self.set[cpu]
    }

    /// A CPU's timer fired or was cancelled.
    pub fn ended(&mut self, cpu: CpuId) {
        self.set[cpu] = false;
    }
}

impl Shadow {
    /// A CPU has switched. A deadline task sets the timer, a fair task that is not alone sets it again, and an idle CPU
    /// cancels it.
    pub(crate) fn sets_budget_timer(&mut self, cpu: CpuId, next: Curr) {
        if !self.learned.budget_timers.outlive {
            return;
        }
        let set = &mut self.learned.budget_timers.set[cpu];
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

    /// A CPU continues with `next`. If `next` has a lower class than the deadline tasks queued there, all of them are
    /// out of budget, the running one included. Returns the tasks that waited.
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
                self.learned.budget_timers.ended(cpu);
            }
            self.sched.apply_dl_throttle(task, now);
        }
        self.generation += 1;
        queued.into_iter().filter(|&task| !self.runs(task)).collect()
    }

    /// A deadline task runs or is pushed: if it was out of budget, it has one again. Returns whether it was.
    pub(crate) fn replenish(&mut self, task: TaskId, now: Time) -> bool {
        let was = self.sched.task(task).dl_throttled && self.sched.class_of(task) == Class::Dl;
        if was {
            self.sched.apply_dl_replenishment(task, now);
            self.generation += 1;
        }
        was
    }
}

/// Pushes of deadline tasks, any of which may have the earliest deadline. A task that was not seen before waits there
/// too. Tasks that wait elsewhere while a lower class runs are about to run there or are out of budget.
pub fn pushes(shadow: &mut Shadow, task: TaskId, from: CpuId, to: CpuId) -> Vec<Push> {
    let waited = shadow.sched.rqs[from].dl_queue.contains(&task);
    if !waited {
        shadow.sched.rqs[from].dl_queue.push(task);
    }
    let mut pushes = ask_pushes(shadow, from);
    let leads =
        |push: &Push| matches!(*push, Push::Moves { task: one, to: other, .. } if (one, other) == (task, to));
    if !pushes.iter().any(leads) {
        let lower: Vec<CpuId> =
            shadow.cpus().filter(|&cpu| cpu != from && shadow.sched.curr_class(cpu) < Class::Dl).collect();
        let empty = |shadow: &mut Shadow, cpu| std::mem::take(&mut shadow.sched.rqs[cpu].dl_queue);
        let queues: Vec<_> = lower.iter().map(|&cpu| empty(shadow, cpu)).collect();
        pushes.extend(ask_pushes(shadow, from));
        for (cpu, queue) in lower.into_iter().zip(queues) {
            shadow.sched.rqs[cpu].dl_queue = queue;
        }
    }
    if !waited {
        shadow.sched.rqs[from].dl_queue.retain(|&other| other != task);
    }
    pushes
}

fn ask_pushes(shadow: &Shadow, from: CpuId) -> Vec<Push> {
    let sched = &shadow.sched;
    if !sched.is_dl_overloaded(from) {
        return vec![Push::Nothing];
    }
    let each = sched.pushable_dls(from, None).map(|task| sched.push_of(from, task, from));
    each.filter(|push| *push != Push::Nothing).collect()
}

/// Where a deadline task may be woken: on its own CPU, or on another one if the deadline task running there may have an
/// earlier deadline.
pub fn later_cpus(shadow: &Shadow, wakeup: &Wakeup) -> Vec<Placement> {
    let sched = &shadow.sched;
    if sched.curr_class(sched.task(wakeup.task).wake_cpu) != Class::Dl {
        return Vec::new();
    }
    let nearest = sched.find_later_rq(wakeup.task, wakeup.this_cpu);
    let at = |cpu| Placement { in_turn: nearest.in_turn, ..Placement::new(cpu, Reason::LaterDl) };
    nearest.cpus.iter().map(at).collect()
}
