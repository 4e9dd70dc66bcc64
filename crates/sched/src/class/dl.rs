//! SCHED_DEADLINE: earliest deadline first, with a budget per period.
//!
//! Modelled as far as it affects the fair class: order, budgets (CBS), migration to a CPU that is free of earlier
//! deadlines, and the pressure on capacity. Admission control, bandwidth reclaiming and priority inheritance are left
//! out.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::cfs_rq::before;
use crate::class::Class;
use crate::pelt::cap_scale;
use crate::{Curr, DequeueFlags, DlBudget, Effect, EnqueueFlags, Policy, Pressure, Rq, Sched, Task};

/// Parameters of a deadline task: budget, relative deadline, period.
pub(super) fn params(policy: Policy) -> (u64, u64, u64) {
    match policy {
        Policy::Deadline { runtime, deadline, period } => (runtime, deadline, period),
        other => panic!("{other:?} is not a deadline policy"),
    }
}

/// Number of fractional bits of a bandwidth.
///
/// Kernel: BW_SHIFT, kernel/sched/sched.h.
pub(super) const BW_SHIFT: u32 = 20;

/// Start of the period after that of a task's deadline.
///
/// Kernel: dl_next_period(), kernel/sched/deadline.c, v6.12.
fn next_period(task: &Task) -> u64 {
    let (_, deadline, period) = params(task.policy);
    task.dl_deadline.wrapping_sub(deadline).wrapping_add(period)
}

/// Adds periods, each with its budget, until some budget is left.
///
/// Kernel: replenish_dl_entity(), kernel/sched/deadline.c, v6.1, v6.12.
pub(super) fn add_periods(deadline: &mut u64, left: &mut i64, period: u64, budget: u64) {
    while *left <= 0 {
        *deadline = deadline.wrapping_add(period);
        *left += budget as i64;
    }
}

/// Whether using up `left` before a deadline that is `laxity` away takes more than the reserved bandwidth. The kernel
/// counts in units of 1024 ns, in unsigned numbers that wrap: a deadline that has passed is far away.
///
/// Kernel: dl_entity_overflow(), kernel/sched/deadline.c, v4.13, v6.12.
pub(super) fn dl_entity_overflow(left: i64, laxity: u64, runtime: u64, deadline: u64) -> bool {
    const DL_SCALE: u32 = 10;
    let left = (deadline >> DL_SCALE).wrapping_mul((left >> DL_SCALE) as u64);
    let right = (laxity >> DL_SCALE).wrapping_mul(runtime >> DL_SCALE);
    before(right, left)
}

impl Rq {
    /// Kernel: pick_task_dl(), kernel/sched/deadline.c, v6.12.
    #[inline]
    pub(crate) fn pick_task_dl(&self) -> Option<TaskId> {
        self.dl_queue.first().copied()
    }

    /// Whether deadline tasks are queued, or a fair server that runs.
    ///
    /// Kernel: sched_dl_runnable(), kernel/sched/sched.h, v6.12.
    #[inline]
    pub(crate) fn dl_runnable(&self) -> bool {
        !self.dl_queue.is_empty() || self.fair_server.runs()
    }
}

impl Sched {
    /// A task that is out of budget is not queued: its timer does that.
    ///
    /// Kernel: enqueue_task_dl(), setup_new_dl_entity(), kernel/sched/deadline.c, v6.1, v6.12.
    pub(crate) fn enqueue_task_dl(&mut self, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        if !self.task(task).dl_throttled {
            self.throttle_past_deadline(task);
        }
        if flags.wakeup {
            self.dl_contends(task);
        }
        if self.task(task).dl_throttled {
            return;
        }
        let entry = self.task(task);
        if flags.wakeup || flags.initial {
            self.update_dl_entity(task);
        } else if flags.restore && before(entry.dl_deadline, self.rqs[cpu].clock) {
            self.new_dl_period(task);
        }
        self.insert_dl(cpu, task);
    }

    /// A task whose deadline is not the end of its period, and has passed, waits for the next period.
    ///
    /// Kernel: dl_check_constrained_dl(), kernel/sched/deadline.c, v6.1, v6.12.
    fn throttle_past_deadline(&mut self, task: TaskId) {
        let entry = self.task(task);
        let (_, deadline, period) = params(entry.policy);
        let (now, ends) = (self.rqs[entry.cpu].clock, entry.dl_deadline);
        let is_new = ends == 0;
        if deadline == period || is_new || !before(ends, now) || !before(now, next_period(entry)) {
            return;
        }
        if self.start_dl_timer(task) {
            let entry = self.task_mut(task);
            entry.dl_throttled = true;
            entry.dl_runtime = entry.dl_runtime.min(0);
        }
    }

    /// The rest of the old budget may be kept if using it up by the old deadline takes no more than the reserved
    /// bandwidth. If it takes more, a task whose deadline is the end of its period begins a new period, and other
    /// tasks keep as much of the budget as they may.
    ///
    /// Kernel: update_dl_entity(), update_dl_revised_wakeup(), dl_entity_overflow(), kernel/sched/deadline.c, v6.1, v6.12.
    fn update_dl_entity(&mut self, task: TaskId) {
        let entry = self.task(task);
        let (runtime, deadline, period) = params(entry.policy);
        let now = self.rqs[entry.cpu].clock;
        let past = before(entry.dl_deadline, now);
        let laxity = entry.dl_deadline.wrapping_sub(now);
        let overflow = dl_entity_overflow(entry.dl_runtime, laxity, runtime, deadline);
        if past || overflow && deadline == period {
            self.new_dl_period(task);
        } else if overflow {
            let density = ((runtime as u128) << BW_SHIFT) / deadline as u128;
            self.task_mut(task).dl_runtime = ((density * laxity as u128) >> BW_SHIFT) as i64;
        }
    }

    /// Kernel: replenish_dl_new_period(), kernel/sched/deadline.c, v6.1, v6.12.
    fn new_dl_period(&mut self, task: TaskId) {
        let now = self.rqs[self.task(task).cpu].clock;
        let entry = self.task_mut(task);
        let (runtime, deadline, _) = params(entry.policy);
        entry.dl_deadline = now.wrapping_add(deadline);
        entry.dl_runtime = runtime as i64;
    }

    fn insert_dl(&mut self, cpu: CpuId, task: TaskId) {
        let deadline = self.task(task).dl_deadline;
        let queue = &self.rqs[cpu].dl_queue;
        let at = queue.partition_point(|&other| !before(deadline, self.task(other).dl_deadline));
        let rq = &mut self.rqs[cpu];
        rq.cpupri_higher |= !rq.dl_runnable();
        rq.dl_queue.insert(at, task);
        self.add_nr_running(cpu, 1);
    }

    /// Takes a task off the queue, unless it left when its budget ended.
    fn remove_dl(&mut self, cpu: CpuId, task: TaskId) {
        let rq = &mut self.rqs[cpu];
        if let Some(at) = rq.dl_queue.iter().position(|&other| other == task) {
            rq.dl_queue.remove(at);
            rq.cpupri_higher &= rq.dl_runnable();
            rq.nr_running -= 1;
        }
    }

    /// Kernel: dequeue_task_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn dequeue_task_dl(&mut self, cpu: CpuId, task: TaskId, flags: DequeueFlags) {
        self.update_curr_dl(cpu);
        self.remove_dl(cpu, task);
        if flags.sleep {
            self.task_non_contending(cpu, task, self.task(task).policy);
        }
    }

    /// Kernel: put_prev_task_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn put_prev_task_dl(&mut self, cpu: CpuId) {
        self.update_curr_dl(cpu);
        self.update_dl_rq_load_avg(cpu, true);
    }

    /// Kernel: set_next_task_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn set_next_task_dl(&mut self, cpu: CpuId, task: TaskId, prev_class: Class) {
        if prev_class != Class::Dl {
            self.update_dl_rq_load_avg(cpu, false);
        }
        self.hrtick_start_dl(cpu, task);
    }

    /// Charges the running deadline task, if it has not left the queue.
    ///
    /// Kernel: update_curr_dl(), kernel/sched/deadline.c, v6.1, v6.12.
    pub(crate) fn update_curr_dl(&mut self, cpu: CpuId) {
        self.charge_dl(cpu, false);
    }

    /// Charges the running deadline task, which may give up the rest of its budget.
    fn charge_dl(&mut self, cpu: CpuId, yields: bool) {
        let Curr::Task(task) = self.rqs[cpu].curr else { return };
        if self.class_of(task) != Class::Dl || !self.rqs[cpu].dl_queue.contains(&task) {
            return;
        }
        let delta = self.update_curr_common(cpu);
        let entry = self.task_mut(task);
        entry.dl_yielded |= yields;
        let yielded = entry.dl_yielded;
        if delta == 0 && !yielded {
            return;
        }
        if self.kernel.rules.pressure == Pressure::RtAvg {
            self.sched_rt_avg_update(cpu, delta);
        }
        let used = self.dl_scaled_delta_exec(cpu, delta);
        let left = &mut self.task_mut(task).dl_runtime;
        *left -= used as i64;
        if *left <= 0 || yielded {
            self.throttle_dl(cpu, task);
        }
        self.account_dl_as_rt(cpu, delta);
    }

    /// How much of a budget is used up by running this long.
    ///
    /// Kernel: update_curr_dl(), kernel/sched/deadline.c, v6.1; dl_scaled_delta_exec(), v6.12.
    fn dl_scaled_delta_exec(&self, cpu: CpuId, delta: u64) -> u64 {
        let rq = &self.rqs[cpu];
        match self.kernel.rules.dl_budget {
            DlBudget::Time => delta,
            DlBudget::Work => cap_scale(cap_scale(delta, rq.freq_scale), rq.cpu_capacity_orig),
        }
    }

    /// A task is out of budget: it leaves until its next period, or continues with a new budget if that period has
    /// begun.
    ///
    /// Kernel: update_curr_dl(), kernel/sched/deadline.c, v6.1; update_curr_dl_se(), v6.12.
    fn throttle_dl(&mut self, cpu: CpuId, task: TaskId) {
        self.remove_dl(cpu, task);
        if self.start_dl_timer(task) {
            self.task_mut(task).dl_throttled = true;
        } else {
            self.replenish_dl_entity(task);
            self.insert_dl(cpu, task);
        }
        if !self.is_leftmost_dl(cpu, task) {
            self.resched_now(cpu);
        }
    }

    /// Kernel: is_leftmost(), kernel/sched/deadline.c, v6.12.
    #[inline]
    pub(crate) fn is_leftmost_dl(&self, cpu: CpuId, task: TaskId) -> bool {
        self.rqs[cpu].dl_queue.first() == Some(&task) && !self.fair_server_first(cpu)
    }

    /// Sets a task's timer to its next period; false if that began more than a microsecond ago. A timer that was set for an
    /// earlier budget stays as it is.
    ///
    /// Kernel: start_dl_timer(), kernel/sched/deadline.c, v6.1, v6.12.
    fn start_dl_timer(&mut self, task: TaskId) -> bool {
        let entry = self.task(task);
        let (now, at) = (self.rqs[entry.cpu].clock, next_period(entry));
        let ahead = at.wrapping_sub(now) as i64;
        if ahead <= -1000 {
            return false;
        }
        if !core::mem::replace(&mut self.task_mut(task).dl_timer_queued, true) {
            self.effects.push(Effect::StartDlTimer { task, after: ahead.max(0) as u64 });
        }
        true
    }

    /// Gives a task that is out of budget its next budget, or one that begins now if it lags too far behind.
    ///
    /// Kernel: replenish_dl_entity(), kernel/sched/deadline.c, v6.1, v6.12.
    fn replenish_dl_entity(&mut self, task: TaskId) {
        let now = self.rqs[self.task(task).cpu].clock;
        let entry = self.task_mut(task);
        let (runtime, _, period) = params(entry.policy);
        if core::mem::take(&mut entry.dl_yielded) {
            entry.dl_runtime = entry.dl_runtime.min(0);
        }
        add_periods(&mut entry.dl_deadline, &mut entry.dl_runtime, period, runtime.max(1));
        entry.dl_throttled = false;
        if before(entry.dl_deadline, now) {
            self.new_dl_period(task);
        }
    }

    /// A deadline task that was out of budget gets a new one, from the timer of the CPU `by`.
    ///
    /// Kernel: dl_task_timer(), kernel/sched/deadline.c, v6.1, v6.12.
    pub fn dl_timer(&mut self, by: CpuId, task: TaskId, now: Time) {
        self.task_mut(task).dl_timer_queued = false;
        if !self.task(task).dl_throttled || self.class_of(task) != Class::Dl {
            return;
        }
        let mut cpu = self.task(task).cpu;
        self.update_rq_clock(cpu, now);
        let queued = self.task(task).on_rq;
        if queued && !self.rqs[cpu].active {
            cpu = self.dl_task_offline_migration(by, task, now);
        }
        self.replenish_dl_entity(task);
        if queued {
            self.insert_dl(cpu, task);
            if self.curr_class(cpu) == Class::Dl {
                self.preempt_for(cpu, task, 0);
            } else {
                self.resched_now(cpu);
            }
            self.push_task(by, cpu, Class::Dl, now);
        }
    }

    /// Takes a deadline task off its queue until it is replenished, whatever is left of its budget.
    pub fn apply_dl_throttle(&mut self, task: TaskId, now: Time) {
        let cpu = self.task(task).cpu;
        self.update_rq_clock(cpu, now);
        self.update_curr_dl(cpu);
        self.remove_dl(cpu, task);
        self.task_mut(task).dl_throttled = true;
    }

    /// Gives a deadline task a budget and a deadline that begin now, and queues it if it is runnable.
    pub fn apply_dl_replenishment(&mut self, task: TaskId, now: Time) {
        let cpu = self.task(task).cpu;
        self.update_rq_clock(cpu, now);
        self.new_dl_period(task);
        self.task_mut(task).dl_throttled = false;
        if self.task(task).on_rq {
            self.insert_dl(cpu, task);
        }
    }

    /// Kernel: task_tick_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn task_tick_dl(&mut self, cpu: CpuId) {
        self.update_curr_dl(cpu);
        self.update_dl_rq_load_avg(cpu, true);
    }

    /// Gives up the rest of the budget.
    ///
    /// Kernel: yield_task_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn yield_task_dl(&mut self, cpu: CpuId) {
        self.charge_dl(cpu, true);
    }

    /// Whether a woken deadline task precedes the running one, of the same class.
    ///
    /// Kernel: wakeup_preempt_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn dl_preempts(&self, cpu: CpuId, task: TaskId) -> bool {
        match self.rqs[cpu].curr {
            Curr::Task(curr) => before(self.task(task).dl_deadline, self.task(curr).dl_deadline),
            Curr::Idle => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::TaskId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NewTask, Policy};

    const US: u64 = 1000;

    fn in_ms(runtime: u64, deadline: u64, period: u64) -> Policy {
        Policy::Deadline { runtime: runtime * MS, deadline: deadline * MS, period: period * MS }
    }

    /// A deadline task alone on a machine, with these times in ms.
    fn lab_with(kernel: &str, runtime: u64, deadline: u64, period: u64) -> (Lab, TaskId) {
        let mut lab = Lab::new(kernel, "1x1x1");
        let policy = in_ms(runtime, deadline, period);
        let task = lab.fork("dl", 0, NewTask { policy, ..lab.spec() });
        (lab, task)
    }

    /// The budget of a task, us, and whether it runs.
    fn state(lab: &Lab, task: TaskId) -> String {
        format!("{} us, {}", lab.sched.task(task).dl_runtime / 1000, lab.running(0))
    }

    #[test]
    fn a_task_woken_after_the_deadline_waits_for_the_next_period() {
        for (runs, name) in [(4, "with budget left"), (7, "without")] {
            let found = by_kernel("+NO_HRTICK_DL", |kernel| {
                let (mut lab, task) = lab_with(kernel, 5, 10, 100);
                lab.run(runs * MS);
                lab.sleep(task);
                lab.run(8 * MS);
                lab.wake(task);
                let woken = String::from(lab.running(0));
                lab.run(99 * MS - (runs + 8) * MS);
                let before = String::from(lab.running(0));
                lab.run(MS);
                format!("{woken}, {before}, then {}", lab.running(0))
            });
            assert_eq!(found, "v4.13..v7.3: idle, idle, then dl", "{name}");
        }
    }

    #[test]
    fn a_task_woken_too_late_for_its_budget_gets_another_or_keeps_a_part_of_it() {
        let woken = |period: u64| {
            move |kernel: &str| {
                let (mut lab, task) = lab_with(kernel, 5, 10, period);
                lab.run(2 * MS);
                lab.sleep(task);
                lab.run(7 * MS);
                lab.wake(task);
                state(&lab, task)
            }
        };
        expect!["v4.13..v7.3: 5000 us, dl"].assert_eq(&by_kernel("", woken(10)));
        // Half of the millisecond that is left until the deadline.
        expect!["v4.13..v7.3: 500 us, dl"].assert_eq(&by_kernel("", woken(100)));
    }

    #[test]
    fn a_budget_that_ends_when_the_next_period_has_begun_is_followed_by_another() {
        let found = by_kernel("", |kernel| {
            let (mut lab, task) = lab_with(kernel, 1, 2, 2);
            lab.run(5 * MS);
            let after_tick = state(&lab, task);
            lab.run(4 * MS);
            let after_next = state(&lab, task);
            lab.run(MS + 100 * US);
            format!("{after_tick}; {after_next}; {}", state(&lab, task))
        });
        expect![[r#"
            v4.13..v6.12: 1000 us, dl; -3000 us, idle; 1000 us, dl
            v7.2..v7.3: 0 us, idle; 0 us, idle; 1000 us, dl"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_budget_that_ends_at_a_switch_ends_before_the_next_task_is_picked_up_to_v6_11() {
        let found = by_kernel("+NO_HRTICK_DL", |kernel| {
            let (lab, _) = lab_with(kernel, 1, 10, 10);
            let mut lab = lab.without_ticks();
            lab.run(2 * MS);
            lab.sched.schedule(CpuId(0), crate::Deactivate::Preempted, lab.time());
            String::from(lab.running(0))
        });
        expect![[r#"
            v4.13..v6.10: idle
            v6.12..v7.3: dl"#]]
        .assert_eq(&found);
    }

    #[test]
    fn an_overflow_is_counted_in_units_of_1024_ns() {
        // Computed exactly, 978261 ns of a budget of 1 ms are less than what 9782758 ns of a period of 10 ms allow.
        assert!(super::dl_entity_overflow(978_261, 9_782_758, MS, 10 * MS));
        assert!(!super::dl_entity_overflow(977_000, 9_782_758, MS, 10 * MS));
    }

    #[test]
    fn a_server_that_is_late_and_has_overrun_begins_a_new_period_as_numbers_wrap() {
        let (late, overrun) = (1_578_493u64.wrapping_neg(), -1_578_493);
        assert!(super::dl_entity_overflow(overrun, late, 50 * MS, 1000 * MS));
        assert!(!super::dl_entity_overflow(overrun, 1_578_493, 50 * MS, 1000 * MS));
    }

    #[test]
    fn a_task_back_in_the_class_goes_on_with_its_budget_until_the_deadline() {
        let found = by_kernel("", |kernel| {
            let (mut lab, task) = lab_with(kernel, 5, 10, 10);
            let policy = lab.sched.task(task).policy;
            lab.run(2 * MS);
            let back = [MS, 10 * MS].map(|away| {
                let now = lab.time();
                lab.sched.set_policy(CpuId(0), task, Policy::Normal, now);
                lab.run(away);
                let now = lab.time();
                lab.sched.set_policy(CpuId(0), task, policy, now);
                format!("{} us", lab.sched.task(task).dl_runtime / 1000)
            });
            back.join(", ")
        });
        expect!["v4.13..v7.3: 3000 us, 5000 us"].assert_eq(&found);
    }

    #[test]
    fn a_timer_set_before_the_task_left_the_class_is_not_set_again() {
        let found = by_kernel("", |kernel| {
            let (mut lab, task) = lab_with(kernel, 3, 30, 30);
            let yields = lab.time();
            lab.sched.yield_task(CpuId(0), yields);
            lab.settle();
            lab.sched.set_policy(CpuId(0), task, Policy::Normal, yields);
            lab.settle();
            lab.sleep(task);
            lab.run(15 * MS);
            lab.sched.set_policy(CpuId(0), task, in_ms(1, 10, 10), lab.time());
            lab.wake(task);
            // Its budget is used up by 17 ms, the next could begin at 25 ms, and the timer of the yield is due at 30 ms.
            let runs = [20_000, 25_500, 30_500].map(|at| {
                lab.run(at * US - (lab.time().0 - yields.0));
                format!("{at}: {}", lab.running(0))
            });
            runs.join(", ")
        });
        expect!["v4.13..v7.3: 20000: idle, 25500: idle, 30500: dl"].assert_eq(&found);
    }

    #[test]
    fn a_child_of_a_task_that_left_the_class_has_its_budget_until_the_deadline() {
        let found = by_kernel("", |kernel| {
            let (mut lab, task) = lab_with(kernel, 5, 10, 10);
            let policy = lab.sched.task(task).policy;
            let deadline = lab.sched.task(task).dl_deadline;
            lab.run(2 * MS);
            lab.sched.set_policy(CpuId(0), task, Policy::Normal, lab.time());
            let children = [0, 10 * MS].map(|later| {
                lab.run(later);
                let child = lab.hog("child", 0);
                lab.sched.set_policy(CpuId(0), child, policy, lab.time());
                let entry = lab.sched.task(child);
                let until = (entry.dl_deadline - deadline) / MS;
                lab.sched.set_policy(CpuId(0), child, Policy::Normal, lab.time());
                format!("{} us until {until} ms after", lab.sched.task(child).dl_runtime / 1000)
            });
            children.join(", ")
        });
        expect!["v4.13..v7.3: 3000 us until 0 ms after, 5000 us until 12 ms after"].assert_eq(&found);
    }

    #[test]
    fn another_budget_asks_for_a_switch_or_not_as_long_as_the_deadline_stays() {
        let found = by_kernel("", |kernel| {
            let (mut lab, task) = lab_with(kernel, 5, 20, 20);
            lab.hog("f", 0);
            lab.run(MS);
            let now = lab.time();
            lab.sched.yield_task(CpuId(0), now);
            lab.settle();
            assert_eq!(lab.running(0), "f", "the task waits for its next budget");
            lab.sched.set_policy(CpuId(0), task, in_ms(4, 20, 20), now);
            format!("{}", lab.sched.rqs[CpuId(0)].need_resched.any())
        });
        expect![[r#"
            v4.13..v6.12: true
            v7.2..v7.3: false"#]]
        .assert_eq(&found);
    }

    #[test]
    fn time_before_a_task_joins_the_class_is_none_of_the_class() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let task = lab.hog("f", 0);
            lab.run(50 * MS);
            let policy = in_ms(5, 10, 10);
            let now = lab.time();
            lab.sched.set_policy(CpuId(0), task, policy, now);
            lab.run(MS);
            lab.sleep(task);
            format!("{}", lab.sched.rqs[CpuId(0)].avg_dl.util_avg)
        });
        expect!["v4.13..v7.3: 20"].assert_eq(&found);
    }

    #[test]
    fn a_budget_lasts_longer_on_a_slow_cpu_and_at_a_low_clock() {
        let left = |scale: u64| {
            move |kernel: &str| {
                // The first of both CPUs has half the capacity.
                let mut lab = Lab::new(kernel, "1x1x2:capacity=0/512").without_ticks();
                lab.sched.set_freq_scale(CpuId(0), scale);
                let policy = in_ms(40, 100, 100);
                let task = lab.fork("dl", 0, NewTask { policy, ..lab.spec() });
                lab.run(16 * MS);
                lab.sleep(task);
                format!("{} ms", lab.sched.task(task).dl_runtime / MS as i64)
            }
        };
        expect![[r#"
            v4.13: 24 ms
            v5.5..v7.3: 32 ms"#]]
        .assert_eq(&by_kernel("", left(1024)));
        expect![[r#"
            v4.13: 24 ms
            v5.5: 32 ms
            v5.18..v7.3: 36 ms"#]]
        .assert_eq(&by_kernel("", left(512)));
    }

    #[test]
    fn a_task_throttled_by_the_driver_is_in_no_queue_until_it_is_replenished() {
        let found = by_kernel("", |kernel| {
            let (mut lab, task) = lab_with(kernel, 50, 100, 100);
            let other = lab.hog("f", 0);
            lab.run(MS);
            let before = String::from(lab.running(0));
            let now = lab.time();
            lab.sched.apply_dl_throttle(task, now);
            lab.sched.switch_to(CpuId(0), crate::Curr::Task(other), now);
            let rq = &lab.sched.rqs[CpuId(0)];
            let queued = (rq.nr_running, lab.sched.choose_next(CpuId(0)).next == crate::Curr::Task(other));
            lab.sched.apply_dl_replenishment(task, now);
            let next = lab.sched.choose_next(CpuId(0)).next == crate::Curr::Task(task);
            format!("{before}, {queued:?}, {}, {next}", lab.sched.rqs[CpuId(0)].nr_running)
        });
        expect!["v4.13..v7.3: dl, (1, true), 2, true"].assert_eq(&found);
    }

    #[test]
    fn a_task_that_gives_up_the_rest_of_a_budget_waits_for_the_next() {
        let found = by_kernel("", |kernel| {
            let (mut lab, task) = lab_with(kernel, 5, 20, 20);
            lab.run(MS);
            let now = lab.time();
            lab.sched.yield_task(CpuId(0), now);
            lab.settle();
            let yielded = state(&lab, task);
            lab.run(19 * MS);
            format!("{yielded}; {}", state(&lab, task))
        });
        // It is throttled with what is left, and loses that when it gets the next budget.
        expect!["v4.13..v7.3: 4000 us, idle; 5000 us, dl"].assert_eq(&found);
    }
}
