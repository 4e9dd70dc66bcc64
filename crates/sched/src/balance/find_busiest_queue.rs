//! Which CPU of the busiest group is the source.

use schedlab_topology::CpuId;

use super::MigrationType;
use super::env::LbEnv;
use super::find_busiest_group::capacity_greater;
use crate::{AsymGroups, AsymPacking, BalanceModel, Feature, QueueGives, SdFlags, SgId};

impl LbEnv<'_> {
    /// The CPU with most load, utilisation or tasks to move; the first of equals.
    ///
    /// Tasks are not distinguished by NUMA locality: NUMA balancing is not modelled.
    ///
    /// Kernel: find_busiest_queue(), kernel/sched/fair.c, v7.2, v6.12, v5.5 and v4.13.
    pub(super) fn find_busiest_queue(&self, group: SgId) -> Option<CpuId> {
        let sched = self.sched;
        let kernel = &sched.kernel;
        let by_load = kernel.rules.balance_model == BalanceModel::Load;
        let gives = kernel.rules.queue_gives;
        let asym_capacity = self.sd.flags.has(SdFlags::ASYM_CPUCAPACITY) && !by_load;
        let asym_packing = self.sd.flags.has(SdFlags::ASYM_PACKING);
        let (mut busiest, mut most, mut most_capacity) = (None, 0, 1);
        for cpu in self.group_cpus(sched.domains.sg(group)) {
            self.examine(cpu);
            let rq = &sched.rqs[cpu];
            let capacity = rq.cpu_capacity;
            // v4.13 counts tasks of all classes here.
            let nr = if by_load { rq.nr_running } else { sched.lb_h_nr(cpu) };
            if nr == 0 && gives == QueueGives::WithFair {
                continue;
            }
            if asym_capacity && nr == 1 && self.is_as_large(capacity) && !self.gives_its_task(cpu) {
                continue;
            }
            if asym_packing && nr == 1 && self.keeps_its_task(cpu) {
                continue;
            }
            let amount = match self.migration_type {
                MigrationType::Load => {
                    let load = sched.cpu_load(cpu);
                    if nr == 1 && load as i64 > self.imbalance && !sched.check_cpu_capacity(cpu, self.sd) {
                        continue;
                    }
                    if load * most_capacity > most * capacity {
                        (busiest, most, most_capacity) = (Some(cpu), load, capacity);
                    }
                    continue;
                }
                MigrationType::Util if nr <= 1 && gives != QueueGives::Any => continue,
                MigrationType::Util => {
                    let util = sched.cpu_util(cpu);
                    if kernel.has(Feature::LbUtilBoost) {
                        util.max(sched.root_cfs(cpu).avg.runnable_avg.min(rq.cpu_capacity_orig))
                    } else {
                        util
                    }
                }
                MigrationType::Task => nr.into(),
                MigrationType::Misfit => rq.misfit_task_load,
                MigrationType::LlcTask => sched.nr_prefer_llc_of(cpu, self.dst_cpu).into(),
            };
            if amount > most {
                (busiest, most) = (Some(cpu), amount);
            }
        }
        busiest
    }

    /// Whether a CPU of this capacity keeps its only task rather than lose it to the destination.
    fn is_as_large(&self, capacity: u64) -> bool {
        let dst = self.sched.capacity_of(self.dst_cpu);
        match self.sched.kernel.rules.asym_groups {
            AsymGroups::Extremes => dst < capacity,
            AsymGroups::Destination | AsymGroups::IdleCore => !capacity_greater(dst, capacity),
        }
    }

    /// Whether the only task of a CPU as large as the destination does better there: a sibling thread is busy, or both
    /// CPUs belong to clusters, over which load should be even.
    fn gives_its_task(&self, cpu: CpuId) -> bool {
        let sched = self.sched;
        let capacity = |cpu: CpuId| sched.rqs[cpu].cpu_capacity_orig;
        let shared = sched.domains.smt_active && !sched.is_core_idle(cpu);
        let equal = sched.domains.cluster_active && capacity(self.dst_cpu) == capacity(cpu);
        sched.kernel.has(Feature::AsymCoreGives) && (shared || equal)
    }

    /// Whether the CPU is preferred to the destination by priority. Up to v5.15 only the group is checked.
    fn keeps_its_task(&self, cpu: CpuId) -> bool {
        match self.sched.kernel.rules.asym_packing {
            AsymPacking::Prefer => false,
            AsymPacking::SmtPull => super::find_busiest_group::sched_asym_prefer(cpu, self.dst_cpu),
            AsymPacking::IdleCore => self.sched_asym(cpu, self.dst_cpu),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::balance::drawings::{check_kernels, check_pass};

    #[test]
    fn the_cpu_with_most_tasks_gives_tasks() {
        check_kernels(
            "",
            "2x1x4 | 0[] 4[a* b] 5[c* d e] 6[f*] 7[g* h]",
            "cpu=0 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 4096 from 5, e to 0, d to 0
                v5.5..v7.3: LB_TASK task 4 from 5, d to 0, e to 0"#]],
        );
    }

    #[test]
    fn the_cpu_with_most_utilisation_gives_utilisation() {
        check_kernels(
            "",
            "2x1x2 | 0[] 1[] 2[a* b ;util=900] 3[c* d;util=1000]",
            "cpu=0 newidle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 2048 from 2, b to 0
                v5.5..v7.3: LB_UTIL util 2048 from 3, d to 0"#]],
        );
    }

    #[test]
    fn a_thread_of_a_shared_core_gives_its_only_task_where_capacities_differ_since_v7_3() {
        check_kernels(
            "",
            "1x1x4x2:capacity=6-7/446 | 0[a*] 1[b*] 2[] 3[] 4[c*] 5[d*] 6[] 7[]",
            "cpu=2 idle level=1",
            expect![[r#"
                v4.13: LB_NOTHING_MOVABLE load 1024 from 4
                v5.5: LB_NOTHING_MOVABLE task 1 from 4
                v5.18..v7.2: LB_NO_QUEUE imbalance=1
                v7.3: LB_NOTHING_MOVABLE task 1 from 4"#]],
        );
    }

    #[test]
    fn a_cpu_with_one_task_has_none_to_give_since_v5_7() {
        check_kernels(
            "",
            "2x1x2 | 0[] 1[] 2[a* b c;util=900] 3[d*;util=1024]",
            "cpu=0 newidle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 2048 from 2, c to 0, b to 0
                v5.5: LB_NOTHING_MOVABLE util 2048 from 3
                v5.18..v7.3: LB_UTIL util 2048 from 2, b to 0"#]],
        );
    }

    #[test]
    fn nor_has_one_without_fair_tasks_since_v5_12() {
        // CPU 3 is idle and still has the load of tasks that sleep.
        for (kernel, expected) in [
            ("v5.5", expect!["LB_NOTHING_MOVABLE load 1750 from 3"]),
            ("v5.10", expect!["LB_NOTHING_MOVABLE load 1750 from 3"]),
            ("v5.18", expect!["LB_LOAD load 1750 from 2, b to 0, c TooLarge, a Running"]),
        ] {
            check_pass(
                kernel,
                "2x1x2 | 0[w* x ;util=1000 load=500] 1[y* z;util=1000 load=500] 2[a* b c ;util=1000 load=2000] 3[;util=1000 load=2500]",
                "cpu=0 busy level=1",
                expected,
            );
        }
    }

    #[test]
    fn the_cpu_with_most_load_for_its_capacity_gives_load() {
        check_kernels(
            "",
            "2x1x2 | 0[w* x ;util=1000 load=500] 1[y* z;util=1000 load=500] 2[a* b ;util=1000 load=2000] 3[c* d ;util=1000 load=1500 capacity=500]",
            "cpu=0 busy level=1",
            expect!["v4.13..v7.3: LB_LOAD load 1250 from 3, d to 0, c Running"],
        );
    }

    #[test]
    fn waiting_counts_as_use_from_v6_5_on() {
        check_kernels(
            "",
            "2x1x2 | 0[] 1[] 2[a* b ;util=900 runnable=1000] 3[c* d;util=950]",
            "cpu=0 newidle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 2048 from 2, b to 0
                v5.5..v6.3: LB_UTIL util 2048 from 3, d to 0
                v6.10..v7.3: LB_UTIL util 2048 from 2, b to 0"#]],
        );
    }

    #[test]
    fn cpus_with_one_task_each_have_no_utilisation_to_give() {
        check_kernels(
            "",
            "2x1x2 | 0[] 1[] 2[a* b;util=1000 delayed=1] 3[c* d;util=1000 delayed=1]",
            "cpu=0 newidle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 2048 from 2, b to 0
                v5.5..v6.12: LB_UTIL util 2048 from 2, b to 0
                v7.2..v7.3: LB_NO_QUEUE imbalance=2048"#]],
        );
    }
}
