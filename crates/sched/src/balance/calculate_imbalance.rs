//! How much to move, and in what it is counted.

use super::env::LbEnv;
use super::find_busiest_group::SdLbStats;
use super::numa_imbalance::after_numa_tolerance;
use super::{GroupType, MigrationType};
use crate::{Feature, Reason, SdFlags, SiblingImbalance};

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
            // No room by utilisation, which lags behind; but the CPU is idle and tasks wait.
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
            (i64::from(local.idle_cpus) - i64::from(busiest.idle_cpus), Reason::LbIdleEven)
        };
        let difference = difference.max(0);
        let rule = kernel.rules.lb_numa_imbalance;
        let before_halving = kernel.has(Feature::LbNumaBeforeHalving);
        let amount = if before_halving { difference } else { difference / 2 };
        let tolerated = after_numa_tolerance(rule, self.sd, amount, local, busiest);
        self.imbalance = if before_halving { tolerated / 2 } else { tolerated };
        if amount != 0 && tolerated == 0 { Reason::LbNumaAllowed } else { even }
    }

    /// Both groups are or become overloaded: bring them to the average of the domain.
    fn even_load(&mut self, sds: &mut SdLbStats) -> Reason {
        if sds.local.group_type < GroupType::Overloaded {
            sds.local.avg_load = sds.local.load_per_capacity();
            if sds.local.avg_load >= sds.busiest.avg_load {
                self.imbalance = 0;
                return Reason::LbLocalBusier;
            }
            sds.avg_load = sds.total_load * 1024 / sds.total_capacity;
            if sds.local.avg_load >= sds.avg_load && self.sched.kernel.has(Feature::LbLocalAboveAverage) {
                self.imbalance = 0;
                return Reason::LbBalanced;
            }
        }
        // Neither below the average here nor above it there. Differences are taken without
        // sign, as the kernel does: below zero is a very large number.
        let give = sds.busiest.avg_load.wrapping_sub(sds.avg_load).wrapping_mul(sds.busiest.group_capacity);
        let take = sds.avg_load.wrapping_sub(sds.local.avg_load).wrapping_mul(sds.local.group_capacity);
        self.migration_type = MigrationType::Load;
        self.imbalance = (give.min(take) / 1024) as i64;
        Reason::LbBalanced
    }

    /// Tasks that sibling groups differ by, weighed by their cores from v6.4 on.
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
