//! The slice timer: ends a slice, or the budget of a deadline task, between ticks.
//!
//! Kernel: hrtick_start_fair(), kernel/sched/fair.c; start_hrtick_dl(), kernel/sched/deadline.c; hrtick(), kernel/sched/core.c.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::class::Class;
use crate::weight::NICE_0_LOAD;
use crate::{Curr, Feature, HrtickEnd, Sched, SeId};

/// The timer is not set shorter than this, ns.
const HRTICK_MIN: u64 = 10_000;

/// v7.2: a timer this close to the wanted time is left alone, ns.
const REARM_DISTANCE: u64 = 5_000;

impl Sched {
    /// When the slice timer of a CPU expires, if it is set.
    pub fn hrtick_at(&self, cpu: CpuId) -> Option<u64> {
        self.rqs[cpu].hrtick
    }

    /// The slice timer of a CPU expired.
    ///
    /// Kernel: hrtick(), kernel/sched/core.c, v6.12, v7.2.
    pub fn hrtick(&mut self, cpu: CpuId, now: Time) {
        self.rqs[cpu].hrtick = None;
        self.update_rq_clock(cpu, now);
        let Curr::Task(task) = self.rqs[cpu].curr else { return };
        match self.class_of(task) {
            Class::Fair => {
                self.entity_ticks(SeId(task.0), true);
                if self.kernel.rules.hrtick_end == HrtickEnd::Slice {
                    self.update_misfit_status(cpu, Some(task));
                }
            }
            // It was set for a fair task and goes off in the turn of another.
            Class::Rt => self.task_tick_rt(cpu, task),
            Class::Dl => {
                self.task_tick_dl(cpu);
                // On a slow CPU the budget lasts longer than it was set for.
                if self.task(task).dl_runtime > 0 && self.is_leftmost_dl(cpu, task) {
                    self.hrtick_start_dl(cpu, task);
                }
            }
            Class::Stop | Class::Idle => {}
        }
    }

    /// The scheduler is called. Up to v6.12 that ends the slice's timer; later one may go off in
    /// the turn of another task, if that was alone when it began.
    ///
    /// Kernel: hrtick_clear(), in __schedule(), kernel/sched/core.c, v6.12.
    #[inline]
    pub(crate) fn clear_hrtick(&mut self, cpu: CpuId) {
        if self.kernel.rules.hrtick_end == HrtickEnd::Slice {
            self.rqs.clocks_of(cpu).hrtick = None;
        }
    }

    /// The scheduler begins. From v7.2 on a timer that it sets is set when it is done.
    ///
    /// Kernel: hrtick_schedule_enter(), kernel/sched/core.c, v7.2.
    #[inline]
    pub(crate) fn hrtick_schedule_enter(&mut self, cpu: CpuId) {
        self.clear_hrtick(cpu);
        let deferred = self.kernel.rules.hrtick_end == HrtickEnd::Deadline;
        self.rqs.clocks_of(cpu).hrtick_deferred = deferred.then_some(None);
    }

    /// The scheduler is done. If it set no timer and the CPU goes idle, the timer is cancelled.
    ///
    /// Kernel: hrtick_schedule_exit(), kernel/sched/core.c, v7.2.
    #[inline]
    pub(crate) fn hrtick_schedule_exit(&mut self, cpu: CpuId) {
        match self.rqs.clocks_of(cpu).hrtick_deferred.take() {
            Some(Some(delay)) => self.hrtick_restart(cpu, delay),
            Some(None) => self.stop_hrtick(cpu),
            None => {}
        }
    }

    /// From v7.2 on a CPU that is idle has no timer, unless a task is on the way there.
    ///
    /// Kernel: hrtick_schedule_exit(), idle_rq(), kernel/sched, v7.2.
    #[inline]
    pub(crate) fn stop_hrtick(&mut self, cpu: CpuId) {
        let rq = &self.rqs[cpu];
        if rq.hrtick.is_some() && rq.curr == Curr::Idle && rq.nr_running == 0 && !self.wake_pending(cpu) {
            self.rqs[cpu].hrtick = None;
        }
    }

    /// Whether the timer is used for a class. A CPU that is leaving sets it no more.
    ///
    /// Kernel: hrtick_enabled(), kernel/sched/sched.h, v6.1, v7.2.
    #[inline]
    fn hrtick_enabled(&self, cpu: CpuId, class: Feature) -> bool {
        self.kernel.has(class) && self.rqs[cpu].active
    }

    /// Sets the timer to the end of the running task's slice, if others wait.
    ///
    /// Kernel: hrtick_start_fair(), kernel/sched/fair.c; hrtick_start(), kernel/sched/core.c, v6.1, v6.12, v7.2.
    #[inline]
    pub(crate) fn hrtick_start_fair(&mut self, cpu: CpuId, task: TaskId) {
        if self.hrtick_enabled(cpu, Feature::Hrtick) && self.cfs(self.root_cfs_id(cpu)).h_nr_queued > 1 {
            self.hrtick_set(cpu, task);
        }
    }

    /// Sets the timer to the end of the running deadline task's budget.
    ///
    /// Kernel: start_hrtick_dl(), kernel/sched/deadline.c, v6.12, v7.2.
    pub(crate) fn hrtick_start_dl(&mut self, cpu: CpuId, task: TaskId) {
        let left = self.task(task).dl_runtime;
        if self.hrtick_enabled(cpu, Feature::HrtickDl) && left > 0 {
            self.hrtick_start(cpu, left as u64);
        }
    }

    fn hrtick_set(&mut self, cpu: CpuId, task: TaskId) {
        let se = SeId(task.0);
        let entity = self.se(se);
        let left = match self.kernel.rules.hrtick_end {
            HrtickEnd::Slice => {
                let slice = match self.is_eevdf() {
                    true => entity.slice,
                    false => self.sched_slice(self.cfs_rq_of(se), se),
                };
                slice.wrapping_sub(entity.sum_exec_runtime - entity.prev_sum_exec_runtime) as i64
            }
            HrtickEnd::Deadline => entity.deadline.wrapping_sub(entity.vruntime) as i64,
        };
        if left < 0 {
            if self.rqs[cpu].curr == Curr::Task(task) {
                self.resched_now(cpu);
            }
            return;
        }
        let mut delay = left as u64;
        if self.kernel.rules.hrtick_end == HrtickEnd::Deadline {
            delay = (entity.line_load().weight as u128 * delay as u128 / NICE_0_LOAD as u128) as u64;
            // Interrupts take their part of the time until then.
            let irq = self.rqs[cpu].avg_irq.util_avg;
            let scale = if irq > 0 && irq < 1024 { 1024 * 1024 / (1024 - irq) } else { 1024 };
            delay = scale * delay / 1024;
        }
        self.hrtick_start(cpu, delay);
    }

    /// Kernel: hrtick_start(), kernel/sched/core.c, v6.12, v7.2.
    fn hrtick_start(&mut self, cpu: CpuId, delay: u64) {
        let delay = delay.max(HRTICK_MIN);
        match &mut self.rqs[cpu].hrtick_deferred {
            Some(deferred) => *deferred = Some(delay),
            None => self.hrtick_restart(cpu, delay),
        }
    }

    /// Kernel: hrtick_cond_restart(), kernel/sched/core.c, v7.2.
    fn hrtick_restart(&mut self, cpu: CpuId, delay: u64) {
        let rq = &mut self.rqs[cpu];
        let at = rq.ktime() + delay;
        let close = |set: u64| set.abs_diff(at) <= REARM_DISTANCE;
        if self.kernel.rules.hrtick_end == HrtickEnd::Slice || !rq.hrtick.is_some_and(close) {
            rq.hrtick = Some(at);
        }
    }

    /// The number of tasks on a CPU changed: the timer may be needed.
    ///
    /// Kernel: hrtick_update(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    #[inline]
    pub(crate) fn hrtick_update(&mut self, cpu: CpuId) {
        if !self.hrtick_enabled(cpu, Feature::Hrtick) || self.curr_class(cpu) != Class::Fair {
            return;
        }
        let Curr::Task(curr) = self.rqs[cpu].curr else { return };
        let wanted = match self.kernel.rules.hrtick_end {
            HrtickEnd::Deadline => self.rqs[cpu].hrtick.is_none(),
            HrtickEnd::Slice if self.is_eevdf() => true,
            HrtickEnd::Slice => {
                (self.cfs(self.cfs_rq_of(SeId(curr.0))).nr_queued as u64) < self.scaled.nr_latency
            }
        };
        if wanted {
            self.hrtick_start_fair(cpu, curr);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;

    use super::*;
    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{Deactivate, NewTask, Policy, TaskState, TgId};

    #[test]
    fn the_timer_of_one_task_goes_off_in_the_turn_of_the_next_from_v7_2_on() {
        // a sleeps a millisecond before its timer; b, alone now, needs none of its own.
        let asked = |kernel: &str| {
            let mut sched = draw(kernel, "1x1x8 | 0[a* b]").sched;
            let cpu = CpuId(0);
            let at = Time(NOW.0 + 1_000_000);
            sched.rqs[cpu].hrtick = Some(at.0);
            sched.schedule(cpu, Deactivate::Sleep(TaskState::Interruptible), NOW);
            if sched.hrtick_at(cpu) == Some(at.0) {
                sched.hrtick(cpu, at);
            }
            sched.rqs[cpu].need_resched.full
        };
        assert!(!asked("v6.12+HRTICK"));
        assert!(asked("v7.2"));
    }

    #[test]
    fn a_cpu_that_goes_idle_keeps_its_timer_for_a_task_on_the_way() {
        let kept = |pending: bool| {
            let mut sched = draw("v7.2", "1x1x8 | 0[a*]").sched;
            let cpu = CpuId(0);
            sched.rqs[cpu].hrtick = Some(NOW.0 + 1_000_000);
            sched.rqs[cpu].ttwu_pending = pending;
            sched.schedule(cpu, Deactivate::Sleep(TaskState::Interruptible), NOW);
            sched.hrtick_at(cpu).is_some()
        };
        assert!(kept(true) && !kept(false));
    }

    #[test]
    fn the_end_of_a_groups_slice_does_not_add_a_lazy_request_to_the_timers_own() {
        let mut lab = Lab::new("v7.2+preempt=lazy", "1x1x1");
        let group = lab.sched.new_group(TgId::ROOT, 1024 << 10, CpuId(0), lab.time());
        let spec = NewTask { tg: group, ..lab.spec() };
        let task = lab.fork("of the group", 0, spec);
        lab.hog("other", 0);
        while lab.running(0) != "of the group" {
            lab.run(MS);
        }
        let (se, now) = (SeId(task.0), lab.time());
        let above = lab.sched.se(se).parent.expect("it is in a group");
        let sched = &mut lab.sched;
        sched.rqs[CpuId(0)].need_resched = crate::NeedResched::default();
        sched.se_mut(se).deadline = sched.se(se).vruntime + 100 * MS;
        sched.se_mut(above).deadline = sched.se(above).vruntime;
        sched.hrtick(CpuId(0), Time(now.0 + MS));
        let asked = &sched.rqs[CpuId(0)].need_resched;
        assert_eq!((asked.full, asked.lazy), (true, false));
    }

    #[test]
    fn a_cpu_that_leaves_sets_its_timer_no_more() {
        let set = |active: bool| {
            let mut drawn = draw("v7.2", "1x1x2 | 0[a* b]");
            let (a, sched) = (drawn.task("a"), &mut drawn.sched);
            sched.rqs[CpuId(0)].hrtick = None;
            sched.rqs[CpuId(0)].active = active;
            sched.hrtick_start_fair(CpuId(0), a);
            sched.hrtick_at(CpuId(0)).is_some()
        };
        assert!(set(true) && !set(false));
    }

    #[test]
    fn what_the_scheduler_sets_is_set_when_it_is_done_from_v7_2_on() {
        // Both are close to each other, but only the one before the scheduler's call is compared with the last.
        let set = |kernel: &str| {
            let mut sched = draw(kernel, "1x1x8 | 0[a* b]").sched;
            let cpu = CpuId(0);
            sched.rqs[cpu].hrtick = Some(NOW.0 + MS);
            sched.hrtick_schedule_enter(cpu);
            sched.hrtick_start(cpu, 2 * MS);
            let within = sched.hrtick_at(cpu).map(|at| at - NOW.0);
            sched.hrtick_start(cpu, 2 * MS + 3_000);
            sched.hrtick_schedule_exit(cpu);
            (within, sched.hrtick_at(cpu).map(|at| at - NOW.0))
        };
        assert_eq!(set("v6.12+HRTICK"), (Some(2 * MS), Some(2 * MS + 3_000)));
        assert_eq!(set("v7.2"), (Some(MS), Some(2 * MS + 3_000)));
    }

    #[test]
    fn a_sleeper_that_leaves_its_queue_at_last_sets_the_timer_up_to_v6_12() {
        let set = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x8 | 0[a* b c]");
            let (b, sched) = (SeId(drawn.task("b").0), &mut drawn.sched);
            sched.set_delayed(b);
            sched.rqs[CpuId(0)].hrtick = None;
            sched.dequeue_delayed(b);
            sched.hrtick_at(CpuId(0)).is_some()
        };
        assert!(set("v6.12+HRTICK"));
        assert!(!set("v7.2"));
    }

    #[test]
    fn the_timer_does_not_look_for_the_end_of_a_slice_as_a_tick_does() {
        // a has run 20 ms of a slice of 12; a tick would take the preference for it away.
        let preferred = |timer: bool| {
            let mut drawn = draw("v6.1+HRTICK", "1x1x8 | 0[a* b]");
            let (a, sched) = (SeId(drawn.task("a").0), &mut drawn.sched);
            let (root, cpu, now) = (sched.root_cfs_id(CpuId(0)), CpuId(0), Time(NOW.0 + 20 * MS));
            sched.set_next_buddy(a);
            sched.rqs[cpu].hrtick = None;
            if timer {
                sched.hrtick(cpu, now);
            } else {
                sched.tick(cpu, now);
            }
            assert!(sched.rqs[cpu].need_resched.full);
            sched.cfs(root).next == Some(a)
        };
        assert!(preferred(true) && !preferred(false));
    }

    #[test]
    fn the_timer_goes_by_the_time_of_day() {
        // A task that preempts `a` was queued 300 us ago, and the clock stays there.
        let set = |kernel: &str, skips: bool| {
            let mut sched = draw(kernel, "1x1x8 | 0[a* b c]").sched;
            let (cpu, now) = (CpuId(0), Time(NOW.0 + 300_000));
            sched.rqs[cpu].skip_clock_update = skips;
            sched.schedule(cpu, Deactivate::Sleep(TaskState::Interruptible), now);
            assert_eq!(sched.rqs[cpu].clock < now.0, skips);
            sched.hrtick_at(cpu).unwrap()
        };
        for kernel in ["v6.12+HRTICK", "v7.2"] {
            assert_eq!(set(kernel, true), set(kernel, false), "{kernel}");
        }
    }

    #[test]
    fn a_budget_ends_by_the_timer_or_at_the_tick() {
        // Of 1 ms in each 20; a tick comes every 4 ms.
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            let policy = Policy::Deadline { runtime: MS, deadline: 20 * MS, period: 20 * MS };
            let task = lab.fork("dl", 0, NewTask { policy, ..lab.spec() });
            lab.run(5 * MS);
            let idle = lab.running(0) == "idle";
            format!("idle {idle}, ran {} us", lab.sched.task(task).se.sum_exec_runtime / 1000)
        });
        expect![[r#"
            v4.13..v6.12: idle true, ran 4000 us
            v7.2..v7.3: idle true, ran 1000 us"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_timer_left_over_is_a_tick_to_a_task_of_real_time() {
        let mut drawn = draw("v7.2", "1x1x8 | 0[a* b]");
        let cpu = CpuId(0);
        let b = drawn.task("b");
        let sched = &mut drawn.sched;
        sched.rqs[cpu].hrtick = Some(NOW.0 + 1_000_000);
        sched.set_policy(CpuId(0), b, Policy::Rr(5), NOW);
        sched.schedule(cpu, Deactivate::Preempted, NOW);
        let at = sched.hrtick_at(cpu).unwrap();
        sched.hrtick(cpu, Time(at));
        assert_eq!(sched.task(b).rr_ticks_left, 24, "a turn has 25 ticks");
    }
}
