//! Capacity that RT, deadline and interrupt time leave to the fair class.
//!
//! It is computed only when a balance pass looks at the CPU's own lowest group, so on a
//! busy CPU it may be tens of milliseconds old; whoever asks [`Sched::capacity_of`] gets
//! the remembered value, as in the kernel.

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

    /// Computes the capacity of a CPU anew.
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

    /// The share left, of 1024, by the sum that is halved every half averaging time.
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

    /// Ages the average of RT time and adds what ran since.
    ///
    /// Kernel: update_rt_rq_load_avg(), kernel/sched/pelt.c, v6.12.
    pub fn update_rt_rq_load_avg(&mut self, cpu: CpuId, running: bool) -> bool {
        let now = self.rq_clock_pelt(cpu);
        let avg = &mut self.rqs[cpu].avg_rt;
        let crossed = avg.update_sum(now, running.into(), running.into(), running);
        if crossed {
            avg.update_avg(1);
        }
        crossed
    }

    /// Ages the average of deadline time and adds what ran since.
    ///
    /// Kernel: update_dl_rq_load_avg(), kernel/sched/pelt.c, v6.12.
    pub fn update_dl_rq_load_avg(&mut self, cpu: CpuId, running: bool) -> bool {
        let now = self.rq_clock_pelt(cpu);
        let avg = &mut self.rqs[cpu].avg_dl;
        let crossed = avg.update_sum(now, running.into(), running.into(), running);
        if crossed {
            avg.update_avg(1);
        }
        crossed
    }

    /// Adds `irq` ns of interrupt time, taken to have passed just now.
    ///
    /// Kernel: update_irq_load_avg(), kernel/sched/pelt.c, v6.12.
    pub fn update_irq_load_avg(&mut self, cpu: CpuId, irq: u64) -> bool {
        let rq = &mut self.rqs[cpu];
        let irq = cap_scale(cap_scale(irq, rq.freq_scale), rq.cpu_capacity_orig);
        let before = rq.avg_irq.update_sum(rq.clock - irq, 0, 0, false);
        let after = rq.avg_irq.update_sum(rq.clock, 1, 1, true);
        if before || after {
            rq.avg_irq.update_avg(1);
        }
        before || after
    }
}
