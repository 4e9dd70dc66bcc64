//! The busiest group of a domain, by load averages alone (v4.13).
//!
//! Every group has a load per capacity, and the domain has an average. The amount moved from the busiest
//! group brings it and the local group as close as possible to that average. Past loads make the pass
//! conservative: a source counts with the lower of its past and current load, a destination with the higher.

use super::env::LbEnv;
use super::find_busiest_group::{Balanced, sched_asym_prefer};
use super::{GroupSeen, GroupType, MigrationType, SgLbStats};
use crate::wakeup::fits_capacity;
use crate::{IdleType, Reason, SchedGroup, SdFlags, SgId};
use schedlab_topology::CpuId;

/// Statistics of a group: those of later kernels, and those that only this form needs.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LoadStats {
    stats: SgLbStats,
    /// Average load of a task.
    load_per_task: u64,
    /// Full, or to be treated so.
    no_capacity: bool,
}

/// Statistics of a domain.
struct SdLoadStats {
    busiest_group: Option<SgId>,
    busiest: LoadStats,
    local: LoadStats,
    total_load: u64,
    total_capacity: u64,
    avg_load: u64,
}

impl LbEnv<'_> {
    /// The busiest group, if load should be moved from it; sets how much.
    ///
    /// Kernel: find_busiest_group(), kernel/sched/fair.c, v4.13.
    pub(super) fn find_busiest_group_by_load(&mut self) -> Result<SgId, Balanced> {
        self.migration_type = MigrationType::Load;
        let mut sds = self.update_sd_load_stats();
        let Some(group) = sds.busiest_group else { return Err((Reason::LbNoBusiest, None)) };
        if self.asym_packing_by_load(group, &sds) {
            return Ok(group);
        }
        if sds.busiest.stats.sum_nr_running == 0 {
            return Err((Reason::LbNoBusiest, None));
        }
        sds.avg_load = 1024 * sds.total_load / sds.total_capacity;
        self.worth_balancing_load(&sds)?;
        // It is the source even if the imbalance is zero, or less than any of its tasks: the pass then fails,
        // and failures lead to active balancing.
        self.imbalance = self.load_imbalance(&mut sds) as i64;
        Ok(group)
    }

    fn worth_balancing_load(&self, sds: &SdLoadStats) -> Result<(), Balanced> {
        let features = self.sched.kernel.features;
        let pct = self.sd.imbalance_pct;
        let (local, busiest) = (&sds.local.stats, &sds.busiest.stats);
        if busiest.group_type == GroupType::Imbalanced {
            return Ok(());
        }
        if self.idle == IdleType::NewlyIdle && local.has_capacity(features, pct) && sds.busiest.no_capacity {
            return Ok(());
        }
        if local.avg_load >= busiest.avg_load {
            return Err((Reason::LbLocalBusier, Some(("local_avg_load", local.avg_load as i64))));
        }
        if local.avg_load >= sds.avg_load {
            return Err((Reason::LbBalanced, Some(("local_avg_load", local.avg_load as i64))));
        }
        if self.idle == IdleType::Idle {
            if busiest.group_type != GroupType::Overloaded && local.idle_cpus <= busiest.idle_cpus + 1 {
                return Err((Reason::LbIdleEven, Some(("local_idle_cpus", local.idle_cpus.into()))));
            }
        } else if 100 * busiest.avg_load <= u64::from(pct) * local.avg_load {
            return Err((Reason::LbBalanced, Some(("busiest_avg_load", busiest.avg_load as i64))));
        }
        Ok(())
    }

    /// Whether all load of the busiest group belongs on the destination, which comes first
    /// in the order of CPUs.
    ///
    /// Kernel: check_asym_packing(), kernel/sched/fair.c, v4.13.
    fn asym_packing_by_load(&mut self, group: SgId, sds: &SdLoadStats) -> bool {
        if !self.sd.flags.has(SdFlags::ASYM_PACKING) || !self.is_idle() {
            return false;
        }
        if sched_asym_prefer(self.sched.domains.sg(group).asym_prefer_cpu, self.dst_cpu) {
            return false;
        }
        let busiest = &sds.busiest.stats;
        self.imbalance = ((busiest.avg_load * busiest.group_capacity + 512) / 1024) as i64;
        true
    }

    /// Kernel: update_sd_lb_stats(), kernel/sched/fair.c, v4.13.
    fn update_sd_load_stats(&mut self) -> SdLoadStats {
        let sched = self.sched;
        let domains = &sched.domains;
        let features = sched.kernel.features;
        let pct = self.sd.imbalance_pct;
        let prefer_sibling =
            self.sd.child.is_some_and(|child| domains.sd(child).flags.has(SdFlags::PREFER_SIBLING));
        let mut sds = SdLoadStats {
            busiest_group: None,
            busiest: LoadStats::default(),
            local: LoadStats::default(),
            total_load: 0,
            total_capacity: 0,
            avg_load: 0,
        };
        let mut overload = false;
        for id in self.sd.groups.iter() {
            let group = domains.sg(id);
            let local = self.is_local(id, group);
            let mut stats = self.group_load_stats(group, local, &mut overload);
            if !local {
                // Excess tasks should move to siblings first: the group counts as full.
                let here = &sds.local.stats;
                if prefer_sibling
                    && here.has_capacity(features, pct)
                    && stats.stats.sum_nr_running > here.sum_nr_running + 1
                {
                    stats.no_capacity = true;
                    stats.stats.group_type = GroupType::Overloaded;
                }
            }
            if sched.balance_log.is_some() {
                self.decision.groups.push(GroupSeen { group: id, local, stats: stats.stats });
            }
            sds.total_load += stats.stats.group_load;
            sds.total_capacity += stats.stats.group_capacity;
            if local {
                sds.local = stats;
            } else if self.has_more_load(&sds, group, &stats) {
                sds.busiest_group = Some(id);
                sds.busiest = stats;
            }
        }
        if self.sd.parent.is_none() {
            self.decision.overload = Some(overload);
        }
        sds
    }

    /// Kernel: update_sg_lb_stats(), kernel/sched/fair.c, v4.13.
    fn group_load_stats(&self, group: &SchedGroup, local: bool, overload: &mut bool) -> LoadStats {
        let sched = self.sched;
        let index = match self.idle {
            IdleType::NotIdle => self.sd.busy_idx,
            IdleType::Idle => self.sd.idle_idx,
            IdleType::NewlyIdle => 0,
        };
        let mut stats = SgLbStats::default();
        let mut present = 0;
        for cpu in self.group_cpus(group) {
            self.examine(cpu);
            let rq = &sched.rqs[cpu];
            stats.group_load +=
                if local { sched.target_load(cpu, index) } else { sched.source_load(cpu, index) };
            stats.group_util += sched.cpu_util(cpu);
            stats.sum_nr_running += sched.root_cfs(cpu).h_nr_queued;
            present += sched.cpu_load(cpu);
            *overload |= rq.nr_running > 1;
            if rq.nr_running == 0 && sched.idle_cpu(cpu) {
                stats.idle_cpus += 1;
            }
        }
        let sgc = &sched.domains.sgcs[group.sgc as usize];
        stats.sum_h_nr_running = stats.sum_nr_running;
        stats.group_capacity = sgc.capacity;
        stats.group_weight = group.group_weight;
        stats.avg_load = stats.load_per_capacity();
        let no_capacity = stats.is_overloaded(sched.kernel.features, self.sd.imbalance_pct);
        stats.group_type = if no_capacity {
            GroupType::Overloaded
        } else if self.view.is_imbalanced(group.sgc) {
            GroupType::Imbalanced
        } else {
            GroupType::HasSpare
        };
        let load_per_task = present.checked_div(stats.sum_nr_running.into()).unwrap_or(0);
        LoadStats { stats, load_per_task, no_capacity }
    }

    /// Kernel: update_sd_pick_busiest(), kernel/sched/fair.c, v4.13.
    fn has_more_load(&self, sds: &SdLoadStats, group: &SchedGroup, stats: &LoadStats) -> bool {
        let (new, old) = (&stats.stats, &sds.busiest.stats);
        if new.group_type != old.group_type {
            return new.group_type > old.group_type;
        }
        if new.avg_load <= old.avg_load {
            return false;
        }
        if self.sd.flags.has(SdFlags::ASYM_CPUCAPACITY) && new.sum_nr_running <= new.group_weight {
            // Do not pull tasks from larger CPUs that have room for them.
            let domains = &self.sched.domains;
            let local = domains.sg(self.sd.groups.local());
            let capacity = |sg: &SchedGroup| domains.sgcs[sg.sgc as usize].min_capacity;
            if fits_capacity(capacity(local), capacity(group)) {
                return false;
            }
        }
        if !self.sd.flags.has(SdFlags::ASYM_PACKING) || !self.is_idle() {
            return true;
        }
        let prefer: fn(CpuId, CpuId) -> bool = sched_asym_prefer;
        new.sum_nr_running != 0
            && prefer(self.dst_cpu, group.asym_prefer_cpu)
            && sds.busiest_group.is_none_or(|busiest| {
                prefer(self.sched.domains.sg(busiest).asym_prefer_cpu, group.asym_prefer_cpu)
            })
    }

    /// Kernel: calculate_imbalance(), kernel/sched/fair.c, v4.13.
    fn load_imbalance(&self, sds: &mut SdLoadStats) -> u64 {
        if sds.busiest.stats.group_type == GroupType::Imbalanced {
            sds.busiest.load_per_task = sds.busiest.load_per_task.min(sds.avg_load);
        }
        let (local, busiest) = (sds.local.stats, sds.busiest.stats);
        if busiest.avg_load <= sds.avg_load || local.avg_load >= sds.avg_load {
            return self.fix_small_imbalance(sds).unwrap_or(0);
        }
        let mut above_capacity = u64::MAX;
        if busiest.group_type == GroupType::Overloaded && local.group_type == GroupType::Overloaded {
            let wanted = u64::from(busiest.sum_nr_running) * 1024;
            if wanted > busiest.group_capacity {
                above_capacity = (wanted - busiest.group_capacity) * 1024 / busiest.group_capacity;
            }
        }
        let pull = (busiest.avg_load - sds.avg_load).min(above_capacity);
        let room = sds.avg_load - local.avg_load;
        let imbalance = (pull * busiest.group_capacity).min(room * local.group_capacity) / 1024;
        let raised = if imbalance < sds.busiest.load_per_task { self.fix_small_imbalance(sds) } else { None };
        raised.unwrap_or(imbalance)
    }

    /// The imbalance is less than a task: an average task moves if that helps. If not, `None`: only smaller
    /// ones may move.
    ///
    /// Kernel: fix_small_imbalance(), kernel/sched/fair.c, v4.13.
    fn fix_small_imbalance(&self, sds: &mut SdLoadStats) -> Option<u64> {
        let mut tasks = 2;
        if sds.local.stats.sum_nr_running == 0 {
            let cfs = self.sched.root_cfs(self.dst_cpu);
            let load = self.sched.cpu_load(self.dst_cpu);
            sds.local.load_per_task = load.checked_div(cfs.h_nr_queued.into()).unwrap_or(0);
        } else if sds.busiest.load_per_task > sds.local.load_per_task {
            tasks = 1;
        }
        let (local, busiest) = (&sds.local.stats, &sds.busiest.stats);
        let (local_task, busy_task) = (sds.local.load_per_task, sds.busiest.load_per_task);
        let scaled = busy_task * 1024 / busiest.group_capacity;
        if busiest.avg_load + scaled >= local.avg_load + scaled * tasks {
            return Some(busy_task);
        }
        // Capacity in use now, and after moving one task.
        let now = busiest.group_capacity * busy_task.min(busiest.avg_load)
            + local.group_capacity * local_task.min(local.avg_load);
        let mut moved = 0;
        if busiest.avg_load > scaled {
            moved += busiest.group_capacity * busy_task.min(busiest.avg_load - scaled);
        }
        let added = (busiest.avg_load * busiest.group_capacity).min(busy_task * 1024) / local.group_capacity;
        moved += local.group_capacity * local_task.min(local.avg_load + added);
        (moved / 1024 > now / 1024).then_some(busy_task)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use crate::balance::drawings::check_pass;

    /// CPU 0 has a hog that is bound to it and is a little less loaded than CPU 1 with two tasks.
    #[track_caller]
    fn check(words: &str, expected: Expect) {
        check_pass(
            "v4.13",
            "1x1x2 | 0[x* ;util=1000] 1[a* b ;util=1000]",
            &alloc::format!("cpu=0 busy load:x=1277 bind:x=0 {words}"),
            expected,
        );
    }

    #[test]
    fn less_than_a_task_fails_and_four_failures_push_the_running_one() {
        check("", expect!["LB_NOTHING_MOVABLE load 385 from 1, b TooLarge, a Running"]);
        check("failed=4", expect!["LB_ACTIVE load 385 from 1, b TooLarge, a Running"]);
    }

    #[test]
    fn but_a_smaller_task_may_go() {
        check("load:a=1348 load:b=700", expect!["LB_LOAD load 385 from 1, b to 0"]);
    }
}
