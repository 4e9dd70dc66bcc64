//! When a running task must be pushed away by the stopper.

use super::MigrationType;
use super::env::LbEnv;
use super::find_busiest_group::sched_asym_prefer;
use crate::{ActiveBalance, AsymPacking, BalanceModel, Feature, IdleType};

impl LbEnv<'_> {
    /// Whether the source's running task should be pushed to the destination.
    ///
    /// Kernel: need_active_balance(), kernel/sched/fair.c, v7.2, v6.12, v5.5 and v4.13.
    pub(super) fn need_active_balance(&self) -> bool {
        if self.alb_breaks_llc() {
            return false;
        }
        let failed_often = self.nr_balance_failed > self.sd.cache_nice_tries + 2;
        let uneven = match self.sched.kernel.rules.active_balance {
            ActiveBalance::AnyFailure => failed_often,
            ActiveBalance::UnevenTasks => failed_often && self.migration_type == MigrationType::Task,
        };
        uneven || self.voluntary()
    }

    /// Reasons that do not need failures: order of CPUs, lost capacity, misfit.
    ///
    /// Kernel: asym_active_balance(), voluntary_active_balance(), kernel/sched/fair.c, v6.12 and v5.5.
    pub(super) fn voluntary(&self) -> bool {
        let sched = self.sched;
        // v4.13 asks the order of CPUs only when newly idle.
        let asym_time = match sched.kernel.rules.balance_model {
            BalanceModel::Load => self.idle == IdleType::NewlyIdle,
            BalanceModel::Types => self.is_idle(),
        };
        if asym_time && sched.use_asym_prio(self.sd, self.dst_cpu) {
            let src_busy_core = sched.kernel.rules.asym_packing == AsymPacking::IdleCore
                && !sched.use_asym_prio(self.sd, self.src_cpu);
            if sched_asym_prefer(self.dst_cpu, self.src_cpu) || src_busy_core {
                return true;
            }
        }
        let cfs = sched.root_cfs(self.src_cpu);
        let nr = if sched.kernel.has(Feature::LbCountRunnable) { cfs.h_nr_runnable } else { cfs.h_nr_queued };
        let pct = u64::from(self.sd.imbalance_pct);
        if self.is_idle()
            && nr == 1
            && sched.check_cpu_capacity(self.src_cpu, self.sd)
            && sched.capacity_of(self.src_cpu) * pct < sched.capacity_of(self.dst_cpu) * 100
        {
            return true;
        }
        matches!(self.migration_type, MigrationType::Misfit | MigrationType::LlcTask)
    }
}
