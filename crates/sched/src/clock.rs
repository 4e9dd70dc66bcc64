//! Clocks of a run queue.
//!
//! `clock` is time; `clock_task` leaves out the time of interrupts and of the hypervisor; `clock_pelt` runs slower on a
//! small or slow CPU, so that averages measure work done, and catches up while the CPU is idle.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::pelt::{LOAD_AVG_MAX, cap_scale};
use crate::{CfsRq, CfsRqId, Curr, Feature, PeltClock, Pressure, Rq, Sched};

/// Added to the clock of the averages. An average whose last update is at 0 is not
/// attached to a queue, so that clock must not start there. A whole number of periods.
pub(crate) const PELT_EPOCH: u64 = 1 << 30;

impl Sched {
    /// Advances the clocks of a CPU to `now`.
    ///
    /// Kernel: update_rq_clock(), update_rq_clock_task(), kernel/sched/core.c, v6.12.
    #[inline]
    pub fn update_rq_clock(&mut self, cpu: CpuId, now: Time) {
        let rq = self.rqs.clocks_of(cpu);
        let delta = now.0.wrapping_sub(rq.clock);
        if delta as i64 <= 0 {
            if delta == 0 && rq.curr == Curr::Idle {
                // It went idle at this very time, and up to v5.19 this reading is the first.
                rq.sync_clock_pelt();
            }
            return;
        }
        let scaled = self.kernel.rules.pelt == PeltClock::ScaledClock;
        rq.clock = now.0;
        // The part of the interrupt time that fits; the rest is taken next time.
        let irq = rq.irq_time_pending.min(delta);
        let delta = delta - irq;
        let stolen = rq.stolen.min(delta);
        let delta = delta - stolen;
        rq.clock_task += delta;
        if irq + stolen == 0 {
            rq.update_clock_pelt(delta, scaled);
        } else {
            rq.irq_time_pending -= irq;
            rq.stolen = if self.kernel.has(Feature::StealCatchesUp) { rq.stolen - stolen } else { 0 };
            self.account_irq(cpu, irq + stolen);
            self.rqs.clocks_of(cpu).update_clock_pelt(delta, scaled);
        }
    }

    /// A task was queued on a CPU. If the CPU's task is preempted, the scheduler will be called and need not read
    /// the clock again. So the next task is charged for the time until then.
    ///
    /// Kernel: rq_clock_skip_update(), in wakeup_preempt(), kernel/sched/core.c, v6.12; check_preempt_curr() before v6.7.
    pub(crate) fn rq_clock_skip_update(&mut self, cpu: CpuId) {
        let rq = &self.rqs[cpu];
        let queued = match rq.curr {
            Curr::Idle => true,
            Curr::Task(task) => self.task(task).on_rq,
        };
        if queued && rq.switches_at_once() {
            self.rqs[cpu].skip_clock_update = true;
        }
    }

    /// The time that the scheduler uses when it is called at `now`: earlier if it was asked to leave the clock
    /// unchanged.
    ///
    /// Kernel: __schedule(), kernel/sched/core.c, v6.1, v6.12, v7.2.
    pub fn schedule_clock(&mut self, cpu: CpuId, now: Time) -> Time {
        let rq = &mut self.rqs[cpu];
        rq.called = now.0;
        if core::mem::take(&mut rq.skip_clock_update) { Time(rq.clock.min(now.0)) } else { now }
    }

    #[cold]
    fn account_irq(&mut self, cpu: CpuId, irq: u64) {
        if !self.kernel.has(Feature::NonTaskCapacity) {
            return;
        }
        match self.kernel.rules.pressure {
            Pressure::RtAvg => self.sched_rt_avg_update(cpu, irq),
            Pressure::Pelt => {
                self.update_irq_load_avg(cpu, irq);
            }
        }
    }

    /// The clock of a CPU changed: 1024 is the highest. Kernels that do not scale by it continue as if it always were.
    ///
    /// Kernel: arch_scale_freq_capacity(), arch/x86/include/asm/topology.h, v5.7.
    pub fn set_freq_scale(&mut self, cpu: CpuId, scale: u64) {
        if self.kernel.has(Feature::FreqInvariance) {
            self.rqs[cpu].freq_scale = scale;
        }
    }

    /// The CPU is about to idle: time that a full CPU could not make up for is lost.
    ///
    /// Kernel: update_idle_rq_clock_pelt(), kernel/sched/pelt.h, v6.12.
    pub fn update_idle_rq_clock_pelt(&mut self, cpu: CpuId) {
        const FULL: u64 = ((LOAD_AVG_MAX - 1024) << 10) - LOAD_AVG_MAX;
        let util_sum = self.root_cfs(cpu).avg.util_sum;
        let rq = &mut self.rqs[cpu];
        if util_sum + rq.avg_rt.util_sum + rq.avg_dl.util_sum >= FULL {
            rq.lost_idle_time += rq.clock_task - rq.clock_pelt;
        }
        // Kernels without the rule wait for the first reading of the idle CPU's clock.
        if self.kernel.has(Feature::MigratePeltLag) {
            rq.sync_clock_pelt();
        }
    }

    /// Time taken from the CPU by an interrupt or the hypervisor, reported by the driver. Without IRQ_TIME_ACCOUNTING
    /// it is charged to the running task without notice.
    ///
    /// Kernel: irqtime_account_irq(), kernel/sched/cputime.c, v6.12.
    pub fn steal(&mut self, cpu: CpuId, ns: u64, now: Time) {
        if self.kernel.has(Feature::IrqTimeAccounting) {
            self.rqs[cpu].irq_time_pending += ns;
            self.update_rq_clock(cpu, now);
        }
    }

    /// The hypervisor took time from a CPU, ns. That shows when the CPU next reads its clock.
    ///
    /// Kernel: update_rq_clock_task(), paravirt_steal_clock(), kernel/sched/core.c, v6.12, v7.2.
    pub fn steal_by_hypervisor(&mut self, cpu: CpuId, ns: u64) {
        self.rqs[cpu].stolen += ns;
    }

    /// What a CPU's task clock would be at `now`.
    pub(crate) fn clock_task_at(&self, cpu: CpuId, now: Time) -> u64 {
        let rq = &self.rqs[cpu];
        let delta = now.0.saturating_sub(rq.clock);
        rq.clock_task + delta - (rq.irq_time_pending + rq.stolen).min(delta)
    }

    /// Clock of the averages of a CPU.
    ///
    /// Kernel: rq_clock_pelt(), kernel/sched/pelt.h, v6.12.
    #[inline]
    pub fn rq_clock_pelt(&self, cpu: CpuId) -> u64 {
        self.rqs[cpu].pelt_now()
    }

    /// Clock of the averages of a queue: it is stopped while the group is throttled.
    ///
    /// Kernel: cfs_rq_clock_pelt(), kernel/sched/pelt.h, v6.12; cfs_rq_clock_task() in v4.13.
    #[inline]
    pub fn cfs_rq_clock_pelt(&self, cfs: CfsRqId) -> u64 {
        let queue = self.cfs(cfs);
        queue.clock_pelt(&self.rqs[queue.cpu])
    }

    /// What [`Sched::cfs_rq_clock_pelt`] would be if the clock of the CPU were advanced to `now`.
    pub(crate) fn cfs_rq_clock_pelt_at(&self, cfs: CfsRqId, now: Time) -> u64 {
        let queue = self.cfs(cfs);
        let rq = &self.rqs[queue.cpu];
        let task = self.clock_task_at(queue.cpu, now);
        let ahead = match rq.curr {
            _ if queue.pelt_clock_throttled => 0,
            Curr::Idle => task - rq.clock_pelt,
            Curr::Task(_) => rq.scaled_delta(task - rq.clock_task),
        };
        queue.clock_pelt(rq) + ahead
    }

    /// Throttling begins: stops the queue's clock.
    ///
    /// Kernel: tg_throttle_down(), kernel/sched/fair.c, v6.12.
    pub fn stop_pelt_clock(&mut self, cfs: CfsRqId) {
        let clock = self.rq_clock_pelt(self.cfs(cfs).cpu);
        let queue = self.cfs_mut(cfs);
        queue.throttled_clock_pelt = clock;
        queue.pelt_clock_throttled = true;
    }

    /// Throttling ends: the queue's clock continues where it stopped.
    ///
    /// Kernel: tg_unthrottle_up(), kernel/sched/fair.c, v6.12.
    pub fn start_pelt_clock(&mut self, cfs: CfsRqId) {
        let clock = self.rq_clock_pelt(self.cfs(cfs).cpu);
        let queue = self.cfs_mut(cfs);
        queue.throttled_clock_pelt_time += clock - queue.throttled_clock_pelt;
        queue.pelt_clock_throttled = false;
    }

    /// A queue became empty: remembers how much its clock lags, for tasks that leave later.
    ///
    /// Kernel: update_idle_cfs_rq_clock_pelt(), kernel/sched/pelt.h, v6.12.
    #[inline]
    pub fn update_idle_cfs_rq_clock_pelt(&mut self, cfs: CfsRqId) {
        let queue = self.cfs_mut(cfs);
        queue.throttled_pelt_idle = (!queue.pelt_clock_throttled).then_some(queue.throttled_clock_pelt_time);
    }
}

impl CfsRq {
    /// [`Sched::cfs_rq_clock_pelt`], given the run queue of its CPU.
    #[inline]
    pub(crate) fn clock_pelt(&self, rq: &Rq) -> u64 {
        let clock = if self.pelt_clock_throttled { self.throttled_clock_pelt } else { rq.pelt_now() };
        clock - self.throttled_clock_pelt_time
    }
}

impl Rq {
    /// Clock of the averages.
    #[inline]
    fn pelt_now(&self) -> u64 {
        self.clock_pelt + PELT_EPOCH - self.lost_idle_time
    }

    /// Kernel: update_rq_clock_pelt(), kernel/sched/pelt.h, v6.12.
    #[inline]
    fn update_clock_pelt(&mut self, delta: u64, scaled: bool) {
        if self.curr == Curr::Idle || !scaled {
            self.sync_clock_pelt();
        } else {
            self.clock_pelt += self.scaled_delta(delta);
        }
    }

    /// Converts time that a task ran to the clock of the averages.
    #[inline]
    fn scaled_delta(&self, delta: u64) -> u64 {
        if self.cpu_capacity_orig == 1024 && self.freq_scale == 1024 {
            delta
        } else {
            cap_scale(cap_scale(delta, self.cpu_capacity_orig), self.freq_scale)
        }
    }

    /// Kernel: _update_idle_rq_clock_pelt(), kernel/sched/pelt.h, v6.12.
    #[inline]
    fn sync_clock_pelt(&mut self) {
        self.clock_pelt = self.clock_task;
        self.clock_idle = self.clock;
        self.clock_pelt_idle = self.clock_pelt + PELT_EPOCH - self.lost_idle_time;
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use super::PELT_EPOCH;
    use crate::drawing::{NOW, by_kernel, draw};
    use crate::{Curr, NeedResched, Sched};

    #[test]
    fn stolen_time_beyond_the_clock_is_taken_later_or_never() {
        // The hypervisor reports 5 us when 2 us have passed since the last reading. 4 us more pass.
        let found = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a*]");
            let (sched, cpu) = (&mut drawn.sched, CpuId(0));
            sched.steal_by_hypervisor(cpu, 5_000);
            [2_000, 6_000].map(|ns| {
                sched.update_rq_clock(cpu, Time(NOW.0 + ns));
                sched.rqs[cpu].clock_task - NOW.0
            })
        };
        assert_eq!(found("v6.12"), [0, 4_000]);
        assert_eq!(found("v6.12+STEAL_CATCHES_UP"), [0, 1_000]);
    }

    #[test]
    fn interrupt_time_beyond_the_clock_is_taken_later() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[a*]");
        let sched = &mut drawn.sched;
        let cpu = CpuId(0);
        sched.rqs[cpu].irq_time_pending = 3_000;
        sched.update_rq_clock(cpu, Time(NOW.0 + 2_000));
        assert_eq!((sched.rqs[cpu].clock_task, sched.rqs[cpu].irq_time_pending), (NOW.0, 1_000));
        sched.update_rq_clock(cpu, Time(NOW.0 + 4_000));
        assert_eq!((sched.rqs[cpu].clock_task, sched.rqs[cpu].irq_time_pending), (NOW.0 + 1_000, 0));
    }

    #[test]
    fn work_on_a_slow_cpu_takes_less_of_the_clock_and_idle_time_catches_up() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[a*]");
        let sched = &mut drawn.sched;
        let cpu = CpuId(0);
        sched.rqs[cpu].freq_scale = 512;
        sched.update_rq_clock(cpu, Time(NOW.0 + 8_000));
        assert_eq!(sched.rq_clock_pelt(cpu), NOW.0 + 4_000 + PELT_EPOCH);
        sched.rqs[cpu].curr = Curr::Idle;
        sched.update_idle_rq_clock_pelt(cpu);
        assert_eq!(sched.rq_clock_pelt(cpu), NOW.0 + 8_000 + PELT_EPOCH);
    }

    #[test]
    fn the_clock_of_a_small_cpu_that_idles_catches_up_at_once_from_v6_0_on() {
        let ahead = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2:capacity=0/512 | 0[a*]");
            let sched = &mut drawn.sched;
            sched.update_rq_clock(CpuId(0), Time(NOW.0 + 8_000));
            sched.update_idle_rq_clock_pelt(CpuId(0));
            let late = |sched: &Sched| sched.rqs[CpuId(0)].clock_task - sched.rqs[CpuId(0)].clock_pelt;
            let before = late(sched);
            sched.rqs[CpuId(0)].curr = Curr::Idle;
            sched.update_rq_clock(CpuId(0), Time(NOW.0 + 8_000));
            alloc::format!("{before}, then {}", late(sched))
        };
        expect![[r#"
            v4.13: 0, then 0
            v5.5..v5.18: 4000, then 0
            v6.1..v7.3: 0, then 0"#]]
        .assert_eq(&by_kernel("", ahead));
    }

    #[test]
    fn a_low_clock_counts_less_from_v5_7_on() {
        let passed = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a*]");
            drawn.sched.set_freq_scale(CpuId(0), 512);
            drawn.sched.rqs[CpuId(0)].freq_scale.to_string()
        };
        expect![[r#"
            v4.13..v5.5: 1024
            v5.18..v7.3: 512"#]]
        .assert_eq(&by_kernel("", passed));
    }

    #[test]
    fn a_full_cpu_that_idles_has_lost_the_time() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[a*]");
        let sched = &mut drawn.sched;
        let cpu = CpuId(0);
        let root = sched.root_cfs_id(cpu);
        sched.cfs_mut(root).avg.util_sum = 46718 << 10;
        sched.rqs[cpu].freq_scale = 512;
        sched.update_rq_clock(cpu, Time(NOW.0 + 8_000));
        sched.update_idle_rq_clock_pelt(cpu);
        assert_eq!(sched.rqs[cpu].lost_idle_time, 4_000);
        assert_eq!(sched.rq_clock_pelt(cpu), NOW.0 + 4_000 + PELT_EPOCH);
    }

    #[test]
    fn the_next_task_pays_for_the_way_there_unless_asked_for_lazily() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[a*]");
        let sched = &mut drawn.sched;
        let cpu = CpuId(0);
        let (queued, called) = (Time(NOW.0 + 1_000), Time(NOW.0 + 3_000));
        for (full, lazy, clock) in [(false, false, called), (false, true, called), (true, false, queued)] {
            sched.rqs[cpu].clock = queued.0;
            sched.rqs[cpu].need_resched = NeedResched { full, lazy };
            sched.rq_clock_skip_update(cpu);
            assert_eq!(sched.schedule_clock(cpu, called), clock, "{full} {lazy}");
            assert_eq!(sched.schedule_clock(cpu, called), called, "once");
        }
        sched.rqs[cpu].curr = Curr::Idle;
        sched.rq_clock_skip_update(cpu);
        assert_eq!(sched.schedule_clock(cpu, called), queued, "the idle task is preempted like any other");
    }

    #[test]
    fn what_is_asked_while_the_scheduler_chooses_is_lost_at_its_end_or_kept() {
        let kept = |kernel: &str| {
            let sched = &mut draw(kernel, "1x1x2 | 0[a*]").sched;
            let cpu = CpuId(0);
            sched.rqs[cpu].skip_clock_update = true;
            sched.switch_to(cpu, sched.rqs[cpu].curr, NOW);
            sched.rqs[cpu].skip_clock_update.to_string()
        };
        expect![[r#"
            v4.13..v6.3: false
            v6.10..v7.3: true"#]]
        .assert_eq(&by_kernel("", kept));
    }

    #[test]
    fn a_throttled_queue_has_a_clock_that_stands_still() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[a*]");
        let sched = &mut drawn.sched;
        let (cpu, root) = (CpuId(0), sched.root_cfs_id(CpuId(0)));
        let before = sched.cfs_rq_clock_pelt(root);
        sched.stop_pelt_clock(root);
        sched.update_rq_clock(cpu, Time(NOW.0 + 5_000));
        assert_eq!(sched.cfs_rq_clock_pelt(root), before);
        sched.start_pelt_clock(root);
        sched.update_rq_clock(cpu, Time(NOW.0 + 7_000));
        assert_eq!(sched.cfs_rq_clock_pelt(root), before + 2_000);
    }
}
