//! Capacity that RT, deadline and interrupt time leave to the fair class.
//!
//! It is computed only when a balance pass evaluates the CPU's own lowest group, so on a busy CPU it may be tens of
//! milliseconds old. [`Sched::capacity_of`] returns the stored value, as in the kernel.

use schedlab_topology::CpuId;

use crate::pelt::cap_scale;
use crate::{Pressure, Sched, SchedDomain};

impl Sched {
    /// Capacity left to the fair class when last computed, at least 1.
    ///
    /// Kernel: capacity_of(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn capacity_of(&self, cpu: CpuId) -> u64 {
        self.rqs[cpu].cpu_capacity
    }

    /// Whether RT, deadline and interrupts take more of a CPU than the domain tolerates.
    ///
    /// Kernel: check_cpu_capacity(), kernel/sched/fair.c, v6.12.
    pub fn check_cpu_capacity(&self, cpu: CpuId, sd: &SchedDomain) -> bool {
        let rq = &self.rqs[cpu];
        rq.cpu_capacity * u64::from(sd.imbalance_pct) < rq.cpu_capacity_orig * 100
    }

    /// Recomputes the capacity of a CPU.
    ///
    /// Kernel: update_cpu_capacity(), kernel/sched/fair.c, v6.12 and v4.13.
    pub fn update_cpu_capacity(&mut self, cpu: CpuId) {
        let left = match self.kernel.rules.pressure {
            Pressure::RtAvg => {
                cap_scale(self.rqs[cpu].cpu_capacity_orig, self.scale_rt_capacity_by_rt_avg(cpu))
            }
            Pressure::Pelt => self.scale_rt_capacity(cpu),
        };
        self.rqs[cpu].cpu_capacity = left.max(1);
    }

    /// Kernel: scale_rt_capacity(), kernel/sched/fair.c, v6.12.
    ///
    /// Capping by firmware (thermal or hardware pressure) is left out: no machine here has any.
    pub fn scale_rt_capacity(&self, cpu: CpuId) -> u64 {
        let rq = &self.rqs[cpu];
        let max = rq.cpu_capacity_orig;
        let irq = rq.avg_irq.util_avg;
        let used = rq.avg_rt.util_avg + rq.avg_dl.util_avg;
        if irq >= max || used >= max {
            return 1;
        }
        (max - used) * (max - irq) / max
    }

    /// The remaining share, of 1024, by the sum that is halved every half averaging time.
    ///
    /// Kernel: scale_rt_capacity(), kernel/sched/fair.c, v4.13.
    pub fn scale_rt_capacity_by_rt_avg(&self, cpu: CpuId) -> u64 {
        let rq = &self.rqs[cpu];
        let total = self.sched_avg_period() + rq.clock.saturating_sub(rq.age_stamp);
        let used = rq.rt_avg / total;
        if used < 1024 { 1024 - used } else { 1 }
    }

    /// Kernel: sched_avg_period(), kernel/sched/sched.h, v4.13.
    fn sched_avg_period(&self) -> u64 {
        self.kernel.tunables.sched_time_avg_ms * 1_000_000 / 2
    }

    /// Adds RT, deadline or interrupt time to the sum of v4.13.
    ///
    /// Kernel: sched_rt_avg_update(), sched_avg_update(), kernel/sched/core.c, v4.13.
    pub fn sched_rt_avg_update(&mut self, cpu: CpuId, ns: u64) {
        let period = self.sched_avg_period();
        let rq = &mut self.rqs[cpu];
        rq.rt_avg += ns * rq.freq_scale;
        while rq.clock as i64 - rq.age_stamp as i64 > period as i64 {
            rq.age_stamp += period;
            rq.rt_avg /= 2;
        }
    }

    /// Decays the average of RT time and adds what has run since.
    ///
    /// Kernel: update_rt_rq_load_avg(), kernel/sched/pelt.c, v6.12.
    pub fn update_rt_rq_load_avg(&mut self, cpu: CpuId, running: bool) -> bool {
        let now = self.rq_clock_pelt(cpu);
        self.rqs[cpu].avg_rt.update_running(now, running)
    }

    /// Decays the average of deadline time and adds what has run since.
    ///
    /// Kernel: update_dl_rq_load_avg(), kernel/sched/pelt.c, v6.12.
    pub fn update_dl_rq_load_avg(&mut self, cpu: CpuId, running: bool) -> bool {
        let now = self.rq_clock_pelt(cpu);
        self.rqs[cpu].avg_dl.update_running(now, running)
    }

    /// Adds `irq` ns of interrupt time, assumed to have passed just now.
    ///
    /// Kernel: update_irq_load_avg(), kernel/sched/pelt.c, v6.12.
    pub fn update_irq_load_avg(&mut self, cpu: CpuId, irq: u64) -> bool {
        let rq = &mut self.rqs[cpu];
        if irq == 0 {
            return rq.avg_irq.update_running(rq.clock, false);
        }
        let irq = cap_scale(cap_scale(irq, rq.freq_scale), rq.cpu_capacity_orig);
        let before = rq.avg_irq.update_sum(rq.clock - irq, 0, 0, false);
        let after = rq.avg_irq.update_sum(rq.clock, 1, 1, true);
        if before || after {
            rq.avg_irq.update_avg(1);
        }
        before || after
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::drawing::{NOW, by_kernel, draw};

    /// RT takes `taken` of every 100 ms; the remaining capacity according to v4.13, at some of the steps.
    #[track_caller]
    fn check_rt_avg(taken_ms: u64, at: [usize; 5], expected: [u64; 5]) {
        let mut drawn = draw("v4.13", "1x1x2 | 0[]");
        let sched = &mut drawn.sched;
        sched.rqs[CpuId(0)].age_stamp = NOW.0;
        let left: Vec<u64> = (1..=60)
            .map(|step| {
                sched.update_rq_clock(CpuId(0), Time(NOW.0 + step * 100_000_000));
                sched.sched_rt_avg_update(CpuId(0), taken_ms * 1_000_000);
                sched.scale_rt_capacity_by_rt_avg(CpuId(0))
            })
            .collect();
        assert_eq!(at.map(|step| left[step - 1]), expected);
    }

    /// Values from a separate calculation.
    #[test]
    fn v4_13_halves_a_sum_every_500_ms() {
        check_rt_avg(20, [1, 5, 10, 20, 30], [990, 922, 881, 850, 843]);
        check_rt_avg(50, [1, 5, 10, 20, 60], [939, 768, 666, 589, 564]);
        check_rt_avg(100, [1, 5, 10, 20, 30], [854, 512, 308, 154, 116]);
    }

    #[test]
    fn capacity_is_what_rt_and_interrupts_leave_each_of_the_other() {
        let left = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[]");
            let sched = &mut drawn.sched;
            let cells = [(0, 0, 0), (300, 0, 0), (0, 0, 300), (300, 100, 300), (600, 500, 0), (0, 0, 1024)]
                .map(|(rt, dl, irq)| {
                    let rq = &mut sched.rqs[CpuId(0)];
                    (rq.avg_rt.util_avg, rq.avg_dl.util_avg, rq.avg_irq.util_avg) = (rt, dl, irq);
                    sched.update_cpu_capacity(CpuId(0));
                    format!("{}", sched.capacity_of(CpuId(0)))
                });
            cells.join(" ")
        };
        expect![[r#"
            v4.13: 1024 1024 1024 1024 1024 1024
            v5.5..v7.3: 1024 724 724 441 1 1"#]]
        .assert_eq(&by_kernel("", left));
    }

    #[test]
    fn interrupt_time_lowers_capacity_if_it_is_accounted() {
        let left = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[]");
            let sched = &mut drawn.sched;
            sched.rqs[CpuId(0)].age_stamp = NOW.0;
            for ms in 1..=400 {
                sched.steal(CpuId(0), 250_000, Time(NOW.0 + ms * 1_000_000));
            }
            sched.update_cpu_capacity(CpuId(0));
            let rq = &sched.rqs[CpuId(0)];
            format!(
                "{} of {}, task clock {} ms",
                rq.cpu_capacity,
                rq.cpu_capacity_orig,
                (rq.clock_task - NOW.0) / 1_000_000
            )
        };
        expect![[r#"
            v4.13: 911 of 1024, task clock 300 ms
            v5.5..v7.3: 766 of 1024, task clock 300 ms"#]]
        .assert_eq(&by_kernel("", left));
        expect!["v4.13..v7.3: 1024 of 1024, task clock 0 ms"]
            .assert_eq(&by_kernel("+NO_IRQ_TIME_ACCOUNTING", left));
        expect!["v4.13..v7.3: 1024 of 1024, task clock 300 ms"]
            .assert_eq(&by_kernel("+NO_NONTASK_CAPACITY", left));
    }

    #[test]
    fn a_thread_of_a_core_was_smaller_once() {
        let orig = |kernel: &str| {
            let drawn = draw(kernel, "1x1x1x2 | 0[]");
            format!("{}", drawn.sched.rqs[CpuId(0)].cpu_capacity_orig)
        };
        expect![[r#"
            v4.13: 589
            v5.5..v7.3: 1024"#]]
        .assert_eq(&by_kernel("", orig));
    }
}
