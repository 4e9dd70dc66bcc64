//! Until when the bandwidth of a deadline task counts as in use: while it is runnable, and then until its zero-lag time, at
//! which it would be owed nothing.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::dl::params;
use crate::class::Class;
use crate::{Effect, Policy, Sched};

impl Sched {
    /// A task sleeps or leaves the class: its bandwidth stays in use until the task would be owed nothing. If that
    /// time has passed, the bandwidth is released at once.
    ///
    /// Kernel: task_non_contending(), kernel/sched/deadline.c, v6.12.
    pub(super) fn task_non_contending(&mut self, cpu: CpuId, task: TaskId, policy: Policy) {
        let (runtime, _, period) = params(policy);
        let entry = self.task(task);
        let owed = entry.dl_runtime as i128 * period as i128 / runtime.max(1) as i128;
        let zero_lag = entry.dl_deadline as i128 - owed - self.rqs[cpu].clock as i128;
        if zero_lag < 0 || entry.dl_inactive_at.is_some() {
            if entry.policy.class() != Class::Dl {
                self.clear_dl_params(task);
            }
            return;
        }
        let after = zero_lag as u64;
        let at = self.rqs[cpu].ktime() + after;
        let entry = self.task_mut(task);
        (entry.dl_non_contending, entry.dl_inactive_at) = (true, Some(at));
        self.effects.push(Effect::StartDlInactiveTimer { task, after });
    }

    /// Kernel: task_contending(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn dl_contends(&mut self, task: TaskId) {
        let entry = self.task_mut(task);
        if core::mem::take(&mut entry.dl_non_contending) {
            entry.dl_inactive_at = None;
        }
    }

    /// A task leaves the class; its timer continues.
    ///
    /// Kernel: switched_from_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn leave_dl(&mut self, cpu: CpuId, task: TaskId, from: Policy) {
        if self.task(task).on_rq {
            self.task_non_contending(cpu, task, from);
        }
        self.task_mut(task).dl_non_contending = false;
    }

    /// The bandwidth of a task that sleeps or has left the class is no longer in use.
    ///
    /// Kernel: inactive_task_timer(), kernel/sched/deadline.c, v6.12.
    pub fn dl_inactive_timer(&mut self, task: TaskId, now: Time) {
        if !self.dl_inactive_due(task, now) {
            return;
        }
        self.update_rq_clock(self.task(task).cpu, now);
        let entry = self.task_mut(task);
        (entry.dl_inactive_at, entry.dl_non_contending) = (None, false);
        if entry.policy.class() != Class::Dl {
            self.clear_dl_params(task);
        }
    }

    /// A task outside the class has no bandwidth any more: if it returns, it is not out of budget.
    ///
    /// Kernel: __dl_clear_params(), kernel/sched/deadline.c, v6.1, v7.3.
    fn clear_dl_params(&mut self, task: TaskId) {
        let entry = self.task_mut(task);
        (entry.dl_throttled, entry.dl_yielded) = (false, false);
    }

    /// Whether that timer has not been cancelled and is due.
    pub fn dl_inactive_due(&self, task: TaskId, now: Time) -> bool {
        self.task(task).dl_inactive_at.is_some_and(|at| at <= now.0)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{NewTask, Policy};

    const US: u64 = 1000;

    #[test]
    fn the_bandwidth_of_a_sleeper_is_in_use_until_it_is_owed_nothing_and_the_clock_is_read_then() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let policy = Policy::Deadline { runtime: 5 * MS, deadline: 10 * MS, period: 10 * MS };
            let task = lab.fork("dl", 0, NewTask { policy, ..lab.spec() });
            lab.run(2 * MS);
            lab.sleep(task);
            let begins = lab.time().0;
            let due = lab.sched.task(task).dl_inactive_at.map(|at| (at - begins) / US);
            let clock = |lab: &Lab| (lab.sched.rqs[CpuId(0)].clock - begins) / US;
            lab.run(5 * MS);
            let slept = clock(&lab);
            lab.wake(task);
            lab.sleep(task);
            lab.wake(task);
            format!("due after {due:?} us; clock {slept} us; awake {:?}", lab.sched.task(task).dl_inactive_at)
        });
        expect!["v4.13..v7.3: due after Some(2000) us; clock 2000 us; awake None"].assert_eq(&found);
    }

    #[test]
    fn that_time_counts_from_the_call_of_the_scheduler_even_if_that_did_not_read_the_clock() {
        let due = |called: u64| {
            let mut drawn = draw("v7.3", "1x1x2 | 1[a* b]");
            let (a, sched) = (drawn.task("a"), &mut drawn.sched);
            let of = Policy::Deadline { runtime: MS, deadline: 10 * MS, period: 10 * MS };
            sched.set_policy(CpuId(0), a, of, NOW);
            sched.rqs[CpuId(1)].called = NOW.0 + called;
            sched.task_non_contending(CpuId(1), a, of);
            sched.task(a).dl_inactive_at.map(|at| at - NOW.0)
        };
        let at_once = due(0).expect("a timer is set");
        assert_eq!(due(300 * US), Some(at_once + 300 * US));
    }

    #[test]
    fn a_task_out_of_budget_that_leaves_after_its_zero_lag_time_may_return_with_a_budget() {
        let throttled = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a*]");
            let (a, sched) = (drawn.task("a"), &mut drawn.sched);
            let of = Policy::Deadline { runtime: 1_000_000, deadline: 10_000_000, period: 10_000_000 };
            let at = |us: u64| Time(NOW.0 + us * 1000);
            sched.set_policy(CpuId(0), a, of, NOW);
            sched.apply_dl_throttle(a, NOW);
            // All of its budget is left, so it is owed nothing before its period began.
            sched.set_policy(CpuId(0), a, Policy::Normal, at(300));
            let left = sched.task(a).dl_throttled;
            sched.set_policy(CpuId(0), a, of, at(400));
            format!("{left} {}, {} ns", sched.task(a).dl_throttled, sched.task(a).dl_runtime)
        };
        expect!["v4.13..v7.3: false false, 1000000 ns"].assert_eq(&by_kernel("", throttled));
    }
}
