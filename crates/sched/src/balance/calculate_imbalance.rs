//! How much to move, and in what unit.

use super::env::LbEnv;
use super::find_busiest_group::SdLbStats;
use super::numa_imbalance::after_numa_tolerance;
use super::{GroupType, MigrationType};
use crate::{EvenLoad, Feature, Reason, SdFlags, SiblingImbalance};

impl LbEnv<'_> {
    /// Sets the imbalance and its unit. Zero means balanced after all, for the reason given.
    ///
    /// Kernel: calculate_imbalance(), kernel/sched/fair.c, v7.2, v6.12, v6.1 and v5.5.
    pub(super) fn calculate_imbalance(&mut self, sds: &mut SdLbStats) -> Reason {
        let busiest_type = sds.busiest.group_type;
        let (migration_type, imbalance) = match busiest_type {
            GroupType::MisfitTask => {
                if self.sd.flags.has(SdFlags::ASYM_CPUCAPACITY) {
                    (MigrationType::Misfit, 1)
                } else {
                    // The CPU itself is weak: let its task's load go.
                    (MigrationType::Load, sds.busiest.group_misfit_task_load as i64)
                }
            }
            GroupType::AsymPacking => (MigrationType::Task, i64::from(sds.busiest.sum_h_nr_running)),
            GroupType::LlcBalance => (MigrationType::LlcTask, 1),
            GroupType::SmtBalance | GroupType::Imbalanced => (MigrationType::Task, 1),
            _ if sds.local.group_type == GroupType::HasSpare => return self.fill_spare(sds),
            _ => return self.even_load(sds),
        };
        self.migration_type = migration_type;
        self.imbalance = imbalance;
        Reason::LbBalanced
    }

    /// The local group has room: fill it, or even out tasks or idle CPUs.
    fn fill_spare(&mut self, sds: &SdLbStats) -> Reason {
        let kernel = &self.sched.kernel;
        let (local, busiest) = (&sds.local, &sds.busiest);
        let inside_llc = self.sd.flags.has(SdFlags::SHARE_LLC) && kernel.has(Feature::LlcEvensTasks);
        if busiest.group_type > GroupType::FullyBusy && !inside_llc {
            self.migration_type = MigrationType::Util;
            self.imbalance = local.group_capacity.saturating_sub(local.group_util) as i64;
            // No room by utilisation, which lags; but the CPU is idle and tasks wait.
            if self.is_idle() && self.imbalance == 0 {
                self.migration_type = MigrationType::Task;
                self.imbalance = 1;
            }
            return Reason::LbBalanced;
        }
        self.migration_type = MigrationType::Task;
        let (difference, even) = if busiest.group_weight == 1 || sds.prefer_sibling {
            (self.sibling_imbalance(sds), Reason::LbBalanced)
        } else {
            // In unsigned 32 bits, as in the kernel: a negative difference is very large.
            (i64::from(local.idle_cpus.wrapping_sub(busiest.idle_cpus)), Reason::LbIdleEven)
        };
        let rule = kernel.rules.lb_numa_imbalance;
        let before_halving = kernel.has(Feature::LbNumaBeforeHalving);
        let amount = if before_halving { difference } else { difference / 2 };
        let tolerated = after_numa_tolerance(rule, self.sd, amount, local, busiest);
        self.imbalance = if before_halving { tolerated / 2 } else { tolerated };
        if amount != 0 && tolerated == 0 { Reason::LbNumaAllowed } else { even }
    }

    /// Both groups are or become overloaded: moves both to the average of the domain.
    fn even_load(&mut self, sds: &mut SdLbStats) -> Reason {
        if sds.local.group_type < GroupType::Overloaded {
            sds.local.avg_load = sds.local.load_per_capacity();
            let none = self.sched.kernel.rules.even_load == EvenLoad::Nothing;
            if none && sds.local.avg_load >= sds.busiest.avg_load {
                self.imbalance = 0;
                return Reason::LbLocalBusier;
            }
            sds.avg_load = sds.total_load * 1024 / sds.total_capacity;
            if sds.local.avg_load >= sds.avg_load && self.sched.kernel.has(Feature::LbLocalAboveAverage) {
                self.imbalance = 0;
                return Reason::LbBalanced;
            }
        }
        // Neither below the average here nor above it there. Differences are unsigned, as in the kernel: a
        // negative one is a very large number.
        let give = sds.busiest.avg_load.wrapping_sub(sds.avg_load).wrapping_mul(sds.busiest.group_capacity);
        let take = sds.avg_load.wrapping_sub(sds.local.avg_load).wrapping_mul(sds.local.group_capacity);
        self.migration_type = MigrationType::Load;
        self.imbalance = (give.min(take) / 1024) as i64;
        Reason::LbBalanced
    }

    /// The difference of sibling groups in tasks, weighted by their cores from v6.4 on.
    ///
    /// Kernel: sibling_imbalance(), kernel/sched/fair.c, v6.12.
    pub(super) fn sibling_imbalance(&self, sds: &SdLbStats) -> i64 {
        let (busiest, local) = (sds.busiest.sum_nr_running, sds.local.sum_nr_running);
        let plain = i64::from(busiest.saturating_sub(local));
        if self.sched.kernel.rules.sibling_imbalance == SiblingImbalance::Plain {
            return plain;
        }
        if !self.is_idle() || busiest == 0 {
            return 0;
        }
        let domains = &self.sched.domains;
        let cores = |group| i64::from(domains.sg(group).cores);
        let (cores_busiest, cores_local) =
            (sds.busiest_group.map_or(1, cores), cores(self.sd.groups.local()));
        if cores_busiest == cores_local {
            return plain;
        }
        let even = (cores_local * i64::from(busiest) - cores_busiest * i64::from(local)).max(0);
        let imbalance = (2 * even + cores_local + cores_busiest) / (cores_local + cores_busiest);
        if imbalance <= 1 && local == 0 && busiest > 1 { 2 } else { imbalance }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::balance::drawings::{check_kernels, check_pass};

    #[test]
    fn spare_capacity_is_filled_by_utilisation_across_caches() {
        check_kernels(
            "",
            "1x2x2 | 0[] 1[] 2[a* b c ;util=1000] 3[d* e f;util=1000]",
            "cpu=0 newidle level=1 util:b=300 util:c=300 util:e=900 util:f=900",
            expect![[r#"
                v4.13: LB_LOAD load 3072 from 2, c to 0, b to 0
                v5.5: LB_UTIL util 2048 from 2, b to 0, c to 0
                v5.18..v7.3: LB_UTIL util 2048 from 2, b to 0"#]],
        );
    }

    #[test]
    fn without_room_by_utilisation_one_task_comes() {
        check_kernels(
            "",
            "1x2x1 | 0[; util=1024] 1[a* b ;util=1024]",
            "cpu=0 newidle",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 1, b to 0
                v5.5..v7.3: LB_TASK task 1 from 1, b to 0"#]],
        );
    }

    #[test]
    fn inside_a_cache_tasks_are_evened_out() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b ;util=900] 1[c* ;util=900] 2[] 3[]",
            "cpu=2 newidle",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 0, b to 2
                v5.5: LB_UTIL util 1024 from 0, b to 2
                v5.18..v7.3: LB_TASK task 1 from 0, b to 2"#]],
        );
    }

    #[test]
    fn sibling_groups_are_evened_out_by_tasks() {
        check_kernels(
            "",
            "1x2x4 | 0[] 1[] 2[] 3[] 4[a* b] 5[c* d] 6[e*] 7[]",
            "cpu=0 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 2560 from 4, b to 0
                v5.5..v7.3: LB_TASK task 2 from 4, b to 0"#]],
        );
    }

    #[test]
    fn groups_of_unequal_size_are_evened_out_by_their_cores() {
        check_kernels(
            "",
            "1x2x4:cpus=6 | 0[] 4[a* b] 5[c* d]",
            "cpu=0 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 2728 from 4, b to 0
                v5.5..v6.3: LB_TASK task 2 from 4, b to 0
                v6.10..v7.3: LB_TASK task 3 from 4, b to 0"#]],
        );
    }

    #[test]
    fn nodes_are_evened_out_by_idle_cpus() {
        check_kernels(
            "+PREFER_SIBLING=smt_die",
            "2x1x8 | 0[] 8[a* b] 9[c*] 10[d*] 11[e*] 12[f*] 13[g*]",
            "cpu=0 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 3584 from 8, b to 0
                v5.5..v7.3: LB_TASK task 3 from 8, b to 0"#]],
        );
    }

    #[test]
    fn of_an_overloaded_group_with_more_idle_cpus_as_many_as_there_are() {
        // The groups are clusters, over which tasks are not spread, as CPUs differ in capacity.
        for kernel in ["v5.18", "v6.1", "v6.12", "v7.2"] {
            check_pass(
                kernel,
                "1x1x8:cluster=4,capacity=0-3/446 | 0[a* b c d e ;util=446] 1[;util=446] 2[;util=446] 3[;util=446] 4[w*] 5[x*] 6[y*] 7[z*]",
                "cpu=4 busy level=1",
                expect!["LB_TASK task 2147483646 from 0, b to 4, c to 4, d to 4, e to 4, a Running"],
            );
        }
    }

    #[test]
    fn a_local_group_above_the_average_takes_nothing() {
        check_kernels(
            "",
            "1x3x1 | 0[x* ;load=1200 util=1000] 1[a* b ;load=1500 util=1024] 2[ ;load=0]",
            "cpu=0 busy",
            expect![[r#"
                v4.13: LB_BALANCED local_avg_load=1200
                v5.5: LB_LOAD load 600 from 1, b to 0
                v5.18: LB_NOTHING_MOVABLE load 600 from 1, b TooLarge, a Running
                v6.1..v7.3: LB_BALANCED imbalance=0"#]],
        );
    }

    #[test]
    fn a_local_group_with_more_load_than_the_busiest_took_nearly_all_up_to_v5_6() {
        check_kernels(
            "",
            "1x1x2 | 0[x* ;load=2500 util=1000] 1[a* b c;load=1500 util=1024]",
            "cpu=0 busy",
            expect![[r#"
                v4.13: LB_LOCAL_BUSIER local_avg_load=2500
                v5.5: LB_LOAD load 18014398509481484 from 1, b to 0, c to 0, a Running
                v5.18..v7.3: LB_LOCAL_BUSIER imbalance=0"#]],
        );
    }

    #[test]
    fn full_groups_even_out_load() {
        check_kernels(
            "",
            "1x2x2 | 0[x* ;load=500 util=900] 1[y*;load=500 util=900] 2[a* b ;load=2000 util=1000] 3[c* d;load=2000 util=1000]",
            "cpu=0 busy level=1 load:b=900 load:d=300",
            expect!["v4.13..v7.3: LB_LOAD load 1076 from 2, b to 0, a Running"],
        );
    }
}
