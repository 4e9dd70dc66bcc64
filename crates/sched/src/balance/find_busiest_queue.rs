//! Which CPU of the busiest group gives.

use schedlab_topology::CpuId;

use super::MigrationType;
use super::env::LbEnv;
use super::find_busiest_group::capacity_greater;
use crate::{AsymPacking, BalanceModel, Feature, SdFlags, SgId};

impl LbEnv<'_> {
    /// The CPU with most of what is to be moved; the first of equals.
    ///
    /// Tasks are not told apart by NUMA locality: NUMA balancing is not modelled.
    ///
    /// Kernel: find_busiest_queue(), kernel/sched/fair.c, v7.2, v6.12, v5.5 and v4.13.
    pub(super) fn find_busiest_queue(&self, group: SgId) -> Option<CpuId> {
        let sched = self.sched;
        let kernel = &sched.kernel;
        let by_load = kernel.rules.balance_model == BalanceModel::Load;
        let asym_capacity = self.sd.flags.has(SdFlags::ASYM_CPUCAPACITY);
        let asym_packing = self.sd.flags.has(SdFlags::ASYM_PACKING) && !by_load;
        let (mut busiest, mut most, mut most_capacity) = (None, 0, 1);
        for cpu in self.cpus(&sched.domains.sg(group).span) {
            self.examine();
            let rq = &sched.rqs[cpu];
            let cfs = sched.root_cfs(cpu);
            let capacity = rq.cpu_capacity;
            let h_nr = if kernel.has(Feature::LbCountRunnable) { cfs.h_nr_runnable } else { cfs.h_nr_queued };
            // v4.13 counts tasks of all classes here.
            let nr = if by_load { rq.nr_running } else { h_nr };
            if nr == 0 && !by_load {
                continue;
            }
            if asym_capacity && !by_load && nr == 1 {
                let dst = sched.capacity_of(self.dst_cpu);
                if !capacity_greater(dst, capacity) {
                    continue;
                }
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
                MigrationType::Util if nr <= 1 => continue,
                MigrationType::Util => {
                    let util = sched.cpu_util(cpu);
                    if kernel.has(Feature::LbUtilBoost) {
                        util.max(cfs.avg.runnable_avg.min(rq.cpu_capacity_orig))
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

    /// The CPU comes before the destination in the order of CPUs.
    fn keeps_its_task(&self, cpu: CpuId) -> bool {
        match self.sched.kernel.rules.asym_packing {
            AsymPacking::Prefer | AsymPacking::SmtPull => {
                super::find_busiest_group::sched_asym_prefer(cpu, self.dst_cpu)
            }
            AsymPacking::IdleCore => self.sched_asym(cpu, self.dst_cpu),
        }
    }
}
