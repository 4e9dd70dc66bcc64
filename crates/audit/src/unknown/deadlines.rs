//! Deadline tasks and their budgets, which no event shows.
//!
//! A deadline task that is out of budget is in no queue until its next period. This shows when its CPU runs something
//! of a lower class: the task is preempted although it is runnable, or is passed over after its wake-up. That it has a
//! budget again shows when it runs or is pushed. Deadlines are not shown either, so of several waiting tasks any may
//! have the earliest one.
//!
//! Where the timer that ends a budget is not cancelled when the task leaves early, it ends the turn of another task.

use schedlab_sched::{Class, Curr, Feature, HrtickEnd, Kernel};
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
