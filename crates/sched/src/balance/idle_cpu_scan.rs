//! SIS_UTIL: how many CPUs an idle search may examine, computed by the balancer.
//!
//! The busier the CPUs of a cache are, the fewer are idle, and the less a search is worth. The balancer sums
//! up utilisation anyway, so it sets the limit: all CPUs when nothing runs, none from 85 % on, a falling
//! parabola between.

use schedlab_topology::CpuId;

use super::env::LbEnv;
use crate::{Feature, IdleType, Sched};

/// How many CPUs a search may examine in a span of `weight` CPUs.
///
/// Kernel: update_idle_cpu_scan(), kernel/sched/fair.c, v6.1.
pub fn nr_idle_scan(sum_util: u64, weight: u64, imbalance_pct: u64) -> u32 {
    let x = sum_util / weight;
    let used = (x * x * imbalance_pct * imbalance_pct / (10_000 * 1024)).min(1024);
    ((1024 - used) * weight / 1024) as u32
}

impl Sched {
    /// Sets the limit in the last-level cache of a CPU, as a pass that finds this utilisation.
    pub fn bound_idle_scans(&mut self, cpu: CpuId, sum_util: u64) {
        let shortcuts = &self.domains.per_cpu[cpu];
        if let (true, Some(llc), Some(shared)) =
            (self.kernel.has(Feature::SisUtil), shortcuts.llc, shortcuts.llc_shared)
        {
            let sd = self.domains.sd(llc);
            let scan = nr_idle_scan(sum_util, sd.span_weight.into(), sd.imbalance_pct.into());
            self.domains.shared[shared.0 as usize].nr_idle_scan = scan;
        }
    }
}

impl LbEnv<'_> {
    /// Records the limit if this pass examined a whole last-level cache, or a domain with all capacities that has its
    /// own.
    ///
    /// Kernel: update_idle_cpu_scan(), kernel/sched/fair.c, v7.2 and v6.1.
    pub(super) fn update_idle_cpu_scan(&mut self, sum_util: u64) {
        if self.idle == IdleType::NewlyIdle || !self.sched.kernel.has(Feature::SisUtil) {
            return;
        }
        let shortcuts = &self.sched.domains.per_cpu[self.dst_cpu];
        // It is that of the domain, even when tasks are moved to a neighbour.
        let own = &self.sched.domains.per_cpu[self.this_cpu];
        let shared = if own.asym_cpucapacity == Some(self.sd_id) && own.llc != Some(self.sd_id) {
            own.asym_shared()
        } else {
            shortcuts.llc_shared.filter(|_| self.sd.span_weight == shortcuts.llc_size)
        };
        if let Some(shared) = shared {
            let scan = nr_idle_scan(sum_util, self.sd.span_weight.into(), self.sd.imbalance_pct.into());
            self.decision.nr_idle_scan = Some((shared, scan));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_units::Time;

    #[test]
    fn v7_2_keeps_a_limit_for_all_capacities() {
        let limits = crate::drawing::by_kernel("", |kernel| {
            let mut drawn = crate::drawing::draw(kernel, "1x2x4:capacity=0-3/400 | 0[a*] 4[b*] 5[c*]");
            let sched = &mut drawn.sched;
            for rq in 4..6 {
                let root = sched.root_cfs_id(CpuId(rq));
                sched.cfs_mut(root).avg.util_avg = 1024;
            }
            for cut in 0..8u16 {
                if let Some(shared) = sched.domains.per_cpu[CpuId(cut)].balance_shared {
                    sched.domains.shared[shared.0 as usize].nr_idle_scan = 99;
                }
            }
            let now = Time(crate::drawing::NOW.0 + 1_000_000_000);
            sched.run_rebalance_domains(CpuId(1), now);
            let cut = &sched.domains.per_cpu[CpuId(1)];
            let of = |shared: Option<crate::SharedId>| {
                shared.map(|s| sched.domains.shared[s.0 as usize].nr_idle_scan)
            };
            alloc::format!("cache {:?}, all {:?}", of(cut.llc_shared), of(cut.balance_shared))
        });
        expect_test::expect![[r#"
            v4.13..v5.18: cache Some(99), all Some(99)
            v6.1..v6.12: cache Some(4), all Some(4)
            v7.2..v7.3: cache Some(4), all Some(7)"#]]
        .assert_eq(&limits);
    }

    #[test]
    fn a_pass_for_a_neighbour_sets_the_limit_for_all_capacities_too() {
        let drawn = crate::drawing::draw("v7.2", "1x2x4:capacity=0-3/400 | 4[b*]");
        let cut = &drawn.sched.domains.per_cpu[CpuId(6)];
        let sd = cut.asym_cpucapacity.expect("its capacities differ");
        let mut env = LbEnv::new(&drawn.sched, CpuId(6), sd, IdleType::Idle, crate::drawing::NOW);
        env.dst_cpu = CpuId(7);
        env.update_idle_cpu_scan(0);
        assert_eq!(env.decision.nr_idle_scan, cut.asym_shared().map(|shared| (shared, 8)));
        assert!(env.decision.nr_idle_scan.is_some());
    }

    #[test]
    fn the_limit_falls_from_all_to_none_at_85_percent() {
        // Per cent of a span of 16 CPUs in use, imbalance_pct 117.
        let limits = [0, 10, 25, 40, 50, 60, 75, 80, 85, 86, 100];
        let found = limits.map(|percent| nr_idle_scan(16 * 1024 * percent / 100, 16, 117));
        assert_eq!(found, [16, 15, 14, 12, 10, 8, 3, 2, 0, 0, 0]);
    }
}
