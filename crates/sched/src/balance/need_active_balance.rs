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
        let order = self.sched.kernel.has(Feature::AsymBeforeCache) && self.asym_active_balance();
        if !order && self.alb_breaks_llc() {
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
    /// Kernel: voluntary_active_balance(), kernel/sched/fair.c, v6.12 and v5.5.
    pub(super) fn voluntary(&self) -> bool {
        let sched = self.sched;
        if self.asym_active_balance() {
            return true;
        }
        let pct = u64::from(self.sd.imbalance_pct);
        if self.is_idle()
            && sched.lb_h_nr(self.src_cpu) == 1
            && sched.check_cpu_capacity(self.src_cpu, self.sd)
            && sched.capacity_of(self.src_cpu) * pct < sched.capacity_of(self.dst_cpu) * 100
        {
            return true;
        }
        matches!(self.migration_type, MigrationType::Misfit | MigrationType::LlcTask)
    }

    /// By CPU priority the task belongs on the destination.
    ///
    /// Kernel: asym_active_balance(), kernel/sched/fair.c, v6.12 and v5.5.
    fn asym_active_balance(&self) -> bool {
        let sched = self.sched;
        // v4.13 checks CPU priority only when newly idle.
        let asym_time = match sched.kernel.rules.balance_model {
            BalanceModel::Load => self.idle == IdleType::NewlyIdle,
            BalanceModel::Types => self.is_idle(),
        };
        let src_busy_core = || {
            sched.kernel.rules.asym_packing == AsymPacking::IdleCore
                && !sched.use_asym_prio(self.sd, self.src_cpu)
        };
        asym_time
            && sched.use_asym_prio(self.sd, self.dst_cpu)
            && (sched_asym_prefer(self.dst_cpu, self.src_cpu) || src_busy_core())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::balance::drawings::check_kernels;

    #[test]
    fn after_failures_the_running_task_is_pushed() {
        check_kernels(
            "",
            "1x2x2 | 0[] 1[] 2[a*] 3[b*]",
            "cpu=0 idle level=1 failed=4",
            expect![[r#"
                v4.13: LB_ACTIVE load 1024 from 2
                v5.5..v7.3: LB_ACTIVE task 1 from 2"#]],
        );
    }

    #[test]
    fn not_before() {
        check_kernels(
            "",
            "1x2x2 | 0[] 1[] 2[a*] 3[b*]",
            "cpu=0 idle level=1 failed=1",
            expect![[r#"
                v4.13: LB_NOTHING_MOVABLE load 1024 from 2
                v5.5..v7.3: LB_NOTHING_MOVABLE task 1 from 2"#]],
        );
    }

    #[test]
    fn a_bound_one_stays() {
        check_kernels(
            "",
            "1x2x2 | 0[] 1[] 2[a*] 3[b*]",
            "cpu=0 idle level=1 failed=4 bind:a=2 bind:b=2-3",
            expect![[r#"
                v4.13: LB_RUNNING_PINNED load 1024 from 2
                v5.5..v7.3: LB_RUNNING_PINNED task 1 from 2"#]],
        );
    }

    #[test]
    fn only_uneven_task_counts_push_from_v5_13_on() {
        check_kernels(
            "",
            "1x1x2 | 0[x* ;util=1000 load=500] 1[a* b ;util=1000 load=2500]",
            "cpu=0 busy failed=9 bind:b=1",
            expect![[r#"
                v4.13: LB_ACTIVE load 1250 from 1, b NotAllowed, a Running
                v5.5: LB_ACTIVE load 1000 from 1, b NotAllowed, a Running
                v5.18..v7.3: LB_NOTHING_MOVABLE load 1000 from 1, b NotAllowed, a Running"#]],
        );
    }

    #[test]
    fn a_weak_cpu_loses_its_task_at_once() {
        check_kernels(
            "",
            "1x1x2 | 0[a* ;capacity=600] 1[]",
            "cpu=1 idle",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=1
                v5.5..v5.18: LB_ONE_TASK busiest_nr_running=1
                v6.1..v7.3: LB_ACTIVE load 1024 from 0"#]],
        );
    }
}
