//! Finds the busiest group of a domain by group types (v5.5 on).

use super::env::LbEnv;
use super::{GroupSeen, GroupType, SgLbStats};
use crate::group_sums::{CpuStats, GroupSums};
use crate::wakeup::fits_capacity;
use crate::{AsymGroups, AsymPacking, Feature, FullyBusyTie, IdleType, Reason, SchedGroup, SdFlags, SgId};
use schedlab_topology::CpuId;
use schedlab_units::Time;

/// Statistics of a domain, as in `struct sd_lb_stats`.
pub(super) struct SdLbStats {
    pub busiest_group: Option<SgId>,
    pub busiest: SgLbStats,
    pub local: SgLbStats,
    pub total_load: u64,
    pub total_capacity: u64,
    /// Load of the whole domain relative to its capacity.
    pub avg_load: u64,
    /// Tasks should go to siblings of the busiest group first.
    pub prefer_sibling: bool,
}

/// The domain is balanced: the reason, and the number that decided.
pub(super) type Balanced = (Reason, Option<(&'static str, i64)>);

impl LbEnv<'_> {
    /// The busiest group, if it should give up tasks; sets what is moved, and how much.
    ///
    /// Kernel: find_busiest_group(), kernel/sched/fair.c, v7.2, v6.12, v6.1 and v5.5.
    pub(super) fn find_busiest_group_by_type(&mut self) -> Result<SgId, Balanced> {
        let mut sds = self.update_sd_lb_stats();
        let Some(group) = sds.busiest_group else { return Err((Reason::LbNoBusiest, None)) };
        self.worth_balancing(&mut sds)?;
        let balanced = self.calculate_imbalance(&mut sds);
        if self.imbalance == 0 { Err((balanced, Some(("imbalance", 0)))) } else { Ok(group) }
    }

    /// The decision matrix: forced, balanced, or by numbers.
    fn worth_balancing(&self, sds: &mut SdLbStats) -> Result<(), Balanced> {
        let pct = u64::from(self.sd.imbalance_pct);
        let busiest_type = sds.busiest.group_type;
        if matches!(busiest_type, GroupType::MisfitTask | GroupType::AsymPacking | GroupType::Imbalanced) {
            return Ok(());
        }
        if sds.local.group_type > busiest_type {
            return Err((Reason::LbLocalBusier, Some(("local_type", sds.local.group_type as i64))));
        }
        if sds.local.group_type == GroupType::Overloaded {
            let local = sds.local.avg_load;
            if local >= sds.busiest.avg_load {
                return Err((Reason::LbLocalBusier, Some(("local_avg_load", local as i64))));
            }
            sds.avg_load = sds.total_load * 1024 / sds.total_capacity;
            if local >= sds.avg_load || 100 * sds.busiest.avg_load <= pct * local {
                return Err((Reason::LbBalanced, Some(("busiest_avg_load", sds.busiest.avg_load as i64))));
            }
        }
        if sds.prefer_sibling
            && sds.local.group_type == GroupType::HasSpare
            && (busiest_type == GroupType::LlcBalance || self.sibling_imbalance(sds) > 1)
        {
            return Ok(());
        }
        if busiest_type != GroupType::Overloaded {
            if !self.is_idle() {
                return Err((Reason::LbNotIdle, Some(("busiest_type", busiest_type as i64))));
            }
            if busiest_type == GroupType::SmtBalance && self.smt_vs_nonsmt(sds) {
                return Ok(());
            }
            if sds.busiest.group_weight > 1 && sds.local.idle_cpus <= sds.busiest.idle_cpus + 1 {
                return Err((Reason::LbIdleEven, Some(("local_idle_cpus", sds.local.idle_cpus.into()))));
            }
            if sds.busiest.sum_h_nr_running == 1 {
                return Err((Reason::LbOneTask, Some(("busiest_nr_running", 1))));
            }
        }
        Ok(())
    }

    /// One of the local and the busiest group consists of threads of a core, the other does not.
    ///
    /// Kernel: smt_vs_nonsmt_groups(), kernel/sched/fair.c, v6.12.
    fn smt_vs_nonsmt(&self, sds: &SdLbStats) -> bool {
        let smt = |group: SgId| self.sched.domains.sg(group).flags.has(SdFlags::SHARE_CPUCAPACITY);
        sds.busiest_group.is_some_and(|busiest| smt(busiest) != smt(self.sd.groups.local()))
    }

    /// Collects statistics of all groups and finds the busiest.
    ///
    /// Kernel: update_sd_lb_stats(), kernel/sched/fair.c, v7.2, v6.12 and v5.5.
    pub(super) fn update_sd_lb_stats(&mut self) -> SdLbStats {
        let sched = self.sched;
        let domains = &sched.domains;
        let mut sds = SdLbStats {
            busiest_group: None,
            busiest: SgLbStats { idle_cpus: u32::MAX, ..SgLbStats::default() },
            local: SgLbStats::default(),
            total_load: 0,
            total_capacity: 0,
            avg_load: 0,
            prefer_sibling: false,
        };
        let dst_core_idle = !domains.smt_active || sched.is_core_idle(self.dst_cpu);
        let (mut overload, mut sum_util) = (false, 0);
        let sums = sched.valid_group_sums().filter(|_| self.without.is_empty());
        for id in self.sd.groups.iter() {
            let group = domains.sg(id);
            let local = self.is_local(id, group);
            if let Some(idle) = sums.and_then(|all| self.gives_nothing(all.of(id), local)) {
                self.examine_group(group);
                overload |= idle.overloaded > 0;
                sds.total_load += idle.load;
                sds.total_capacity += domains.sgcs[group.sgc as usize].capacity;
                sum_util += idle.util;
                continue;
            }
            let mut stats = self.update_sg_lb_stats(id, local, &sds.local, sums, &mut overload);
            self.classify(group, &mut stats);
            self.record_sg_llc_stats(group, &stats);
            if sched.balance_log.is_some() {
                self.decision.groups.push(GroupSeen { group: id, local, stats });
            }
            sds.total_load += stats.group_load;
            sds.total_capacity += stats.group_capacity;
            sum_util += stats.group_util;
            if local {
                sds.local = stats;
            } else if self.is_busier(&sds, group, &stats, dst_core_idle) {
                sds.busiest_group = Some(id);
                sds.busiest = stats;
            }
        }
        sds.prefer_sibling = if sched.kernel.has(Feature::PreferSiblingOfBusiest) {
            sds.busiest_group.is_some_and(|id| domains.sg(id).flags.has(SdFlags::PREFER_SIBLING))
        } else {
            self.sd.child.is_some_and(|child| domains.sd(child).flags.has(SdFlags::PREFER_SIBLING))
        };
        if self.sd.parent.is_none() {
            self.decision.overload = Some(overload);
        }
        self.update_idle_cpu_scan(sum_util);
        sds
    }

    /// Statistics of a group, without its type.
    ///
    /// Kernel: update_sg_lb_stats(), kernel/sched/fair.c, v7.2, v6.12, v6.1 and v5.5.
    fn update_sg_lb_stats(
        &self,
        id: SgId,
        local: bool,
        local_stats: &SgLbStats,
        all_sums: Option<&GroupSums>,
        overload: &mut bool,
    ) -> SgLbStats {
        let sched = self.sched;
        let kernel = &sched.kernel;
        let group = sched.domains.sg(id);
        let mut stats = SgLbStats::default();
        let sums = match all_sums.and_then(|all| self.suffice(all.of(id), local)) {
            Some(sums) => {
                self.examine_group(group);
                if sched.sched_cache_active() {
                    stats.nr_pref_dst_llc = sched.nr_prefer_llc_among(&group.cpus, self.dst_cpu);
                }
                *sums
            }
            None => self.sum_up(group, local, &mut stats, overload),
        };
        stats.set_sums(&sums);
        *overload |= sums.overloaded > 0;
        stats.group_capacity = sched.domains.sgcs[group.sgc as usize].capacity;
        stats.group_weight = group.group_weight;
        if !local {
            stats.group_asym_packing = self.is_idle()
                && self.sd.flags.has(SdFlags::ASYM_PACKING)
                && stats.sum_h_nr_running != 0
                && self.group_asym(group, &stats, local_stats);
            stats.group_smt_balance = self.is_idle()
                && kernel.has(Feature::SmtBalance)
                && group.flags.has(SdFlags::SHARE_CPUCAPACITY)
                && stats.sum_h_nr_running > 1;
            stats.group_llc_balance = self.llc_balance(group, &stats);
        }
        stats
    }

    /// The sums over a group, if a pass reads nothing else of its CPUs except which tasks prefer which cache.
    fn suffice<'s>(&self, sums: &'s CpuStats, local: bool) -> Option<&'s CpuStats> {
        let misfits = !local && (self.has_misfits() || self.looks_for_reduced() && sums.maybe_reduced > 0);
        (!misfits).then_some(sums)
    }

    /// The sums over another group without fair tasks: it is never the busiest, so only the totals of the domain need
    /// them, unless all groups have to be listed.
    fn gives_nothing<'s>(&self, sums: &'s CpuStats, local: bool) -> Option<&'s CpuStats> {
        let unseen = !local && sums.h_nr_running == 0 && self.sched.balance_log.is_none();
        if unseen && !self.records_llc_stats() { self.suffice(sums, local) } else { None }
    }

    fn has_misfits(&self) -> bool {
        self.sd.flags.has(SdFlags::ASYM_CPUCAPACITY)
    }

    fn looks_for_reduced(&self) -> bool {
        self.is_idle() && self.sched.kernel.has(Feature::ReducedCapacityMisfit)
    }

    /// Examines each CPU of a group.
    fn sum_up(
        &self,
        group: &SchedGroup,
        local: bool,
        stats: &mut SgLbStats,
        overload: &mut bool,
    ) -> CpuStats {
        let sched = self.sched;
        let (misfits, reduced) = (self.has_misfits(), self.looks_for_reduced());
        let cache_aware = sched.sched_cache_active();
        let mut sums = CpuStats::default();
        for cpu in self.group_cpus(group) {
            self.examine(cpu);
            let one = sched.cpu_stats(cpu);
            sums.add(&one);
            if cache_aware {
                stats.nr_pref_dst_llc += sched.nr_prefer_llc_of(cpu, self.dst_cpu);
            }
            if local || one.idle > 0 {
                continue;
            }
            if misfits {
                let misfit = sched.rqs[cpu].misfit_task_load;
                *overload |= stats.group_misfit_task_load < misfit;
                if !sched.kernel.has(Feature::MisfitIfLarger) || self.is_larger_than(group) {
                    stats.group_misfit_task_load = stats.group_misfit_task_load.max(misfit);
                }
            } else if reduced && one.h_nr_running == 1 && sched.check_cpu_capacity(cpu, self.sd) {
                stats.group_misfit_task_load = stats.group_misfit_task_load.max(one.load);
            }
        }
        sums
    }

    fn classify(&self, group: &SchedGroup, stats: &mut SgLbStats) {
        let imbalanced = self.view.is_imbalanced(group.sgc);
        stats.group_type = stats.classify(self.sched.kernel.features, self.sd.imbalance_pct, imbalanced);
        if stats.group_type == GroupType::Overloaded {
            stats.avg_load = stats.load_per_capacity();
        }
    }

    /// Whether a group is busier than the busiest so far.
    ///
    /// Kernel: update_sd_pick_busiest(), kernel/sched/fair.c, v7.2, v6.12, v6.1 and v5.5.
    fn is_busier(&self, sds: &SdLbStats, group: &SchedGroup, stats: &SgLbStats, dst_core_idle: bool) -> bool {
        let sched = self.sched;
        if stats.sum_h_nr_running == 0 {
            return false;
        }
        let asym = self.sd.flags.has(SdFlags::ASYM_CPUCAPACITY);
        if asym && stats.group_type == GroupType::MisfitTask && !self.helps_misfit(sds, group, dst_core_idle)
        {
            return false;
        }
        // Its CPUs can run the tasks they have by themselves.
        let stronger = asym && stats.group_type <= GroupType::FullyBusy && self.is_stronger(group);
        if stronger && sched.kernel.rules.asym_groups == AsymGroups::IdleCore {
            return false;
        }
        let busiest = &sds.busiest;
        if stats.group_type != busiest.group_type {
            return stats.group_type > busiest.group_type;
        }
        if stronger {
            return false;
        }
        let busiest_group = sds.busiest_group.map(|id| sched.domains.sg(id));
        let late = sched.kernel.rules.fully_busy_tie == FullyBusyTie::LastUnlessSmt;
        match stats.group_type {
            GroupType::Overloaded => stats.avg_load > busiest.avg_load,
            GroupType::LlcBalance => stats.nr_pref_dst_llc > busiest.nr_pref_dst_llc,
            GroupType::Imbalanced => false,
            GroupType::AsymPacking => {
                busiest_group.is_none_or(|b| sched_asym_prefer(b.asym_prefer_cpu, group.asym_prefer_cpu))
            }
            GroupType::MisfitTask if late => stats.group_misfit_task_load > busiest.group_misfit_task_load,
            GroupType::MisfitTask => stats.group_misfit_task_load >= busiest.group_misfit_task_load,
            GroupType::SmtBalance if stats.idle_cpus != 0 || busiest.idle_cpus != 0 => {
                less_spare(stats, busiest)
            }
            GroupType::SmtBalance | GroupType::FullyBusy => {
                // The average load of such groups is never computed, so it is 0 = 0.
                late && busiest_group.is_none_or(|b| !b.flags.has(SdFlags::SHARE_CPUCAPACITY))
            }
            GroupType::HasSpare => {
                let smt = SdFlags::SHARE_CPUCAPACITY;
                match busiest_group {
                    Some(b) if late && b.flags.has(smt) != group.flags.has(smt) => {
                        !(group.flags.has(smt) && stats.sum_h_nr_running <= 1)
                    }
                    _ => less_spare(stats, busiest),
                }
            }
        }
    }

    /// Whether a misfit task of a group is better off at the destination.
    ///
    /// Kernel: update_sd_pick_busiest(), kernel/sched/fair.c, v6.12, v6.3; group_smaller_max_cpu_capacity(), v5.5.
    fn helps_misfit(&self, sds: &SdLbStats, group: &SchedGroup, dst_core_idle: bool) -> bool {
        let domains = &self.sched.domains;
        let max = domains.sgcs[group.sgc as usize].max_capacity;
        let larger = match self.sched.kernel.rules.asym_groups {
            AsymGroups::Extremes => fits_capacity(max, domains.sgc(self.sd.groups.local()).max_capacity),
            AsymGroups::Destination => self.is_larger_than(group),
            AsymGroups::IdleCore => dst_core_idle && self.is_larger_than(group),
        };
        larger && sds.local.group_type == GroupType::HasSpare
    }

    /// Whether the destination is larger than each CPU of a group.
    fn is_larger_than(&self, group: &SchedGroup) -> bool {
        let sgc = &self.sched.domains.sgcs[group.sgc as usize];
        capacity_greater(self.sched.capacity_of(self.dst_cpu), sgc.max_capacity)
    }

    /// Whether each CPU of a group is larger than the destination.
    ///
    /// Kernel: update_sd_pick_busiest(), kernel/sched/fair.c, v6.12; group_smaller_min_cpu_capacity(), v5.5.
    fn is_stronger(&self, group: &SchedGroup) -> bool {
        let domains = &self.sched.domains;
        let min = domains.sgcs[group.sgc as usize].min_capacity;
        match self.sched.kernel.rules.asym_groups {
            AsymGroups::Extremes => fits_capacity(domains.sgc(self.sd.groups.local()).min_capacity, min),
            AsymGroups::Destination | AsymGroups::IdleCore => {
                capacity_greater(min, self.sched.capacity_of(self.dst_cpu))
            }
        }
    }

    /// Whether the destination should take over because of its place in the order of CPUs.
    ///
    /// Kernel: sched_group_asym(), kernel/sched/fair.c, v6.12; asym_smt_can_pull_tasks(), v6.1.
    fn group_asym(&self, group: &SchedGroup, stats: &SgLbStats, local_stats: &SgLbStats) -> bool {
        let prefer = sched_asym_prefer(self.dst_cpu, group.asym_prefer_cpu);
        let smt = SdFlags::SHARE_CPUCAPACITY;
        let busy = stats.group_weight - stats.idle_cpus;
        match self.sched.kernel.rules.asym_packing {
            AsymPacking::Prefer => prefer,
            AsymPacking::SmtPull => {
                let local = self.sched.domains.sg(self.sd.groups.local());
                match (local.flags.has(smt), group.flags.has(smt)) {
                    (false, false) => prefer,
                    (false, true) => busy >= 2 || prefer,
                    (true, true) => busy == local.group_weight - local_stats.idle_cpus + 1 && prefer,
                    (true, false) => local_stats.sum_nr_running == 0 && prefer,
                }
            }
            AsymPacking::IdleCore => {
                !(group.flags.has(smt) && busy != 1) && self.sched_asym(self.dst_cpu, group.asym_prefer_cpu)
            }
        }
    }

    /// Whether the order of CPUs counts for `a`, and puts it before `b`.
    ///
    /// Kernel: sched_asym(), kernel/sched/fair.c, v6.12.
    pub(super) fn sched_asym(&self, a: CpuId, b: CpuId) -> bool {
        self.sched.use_asym_prio(self.sd, a) && sched_asym_prefer(a, b)
    }
}

impl crate::Sched {
    /// Whether the local group's capacity is recomputed: always, or, when newly idle, only if it is time.
    pub(super) fn refreshes_capacity(&self, sd: crate::SdId, idle: IdleType, now: Time) -> bool {
        let local = self.domains.sg(self.domains.sd(sd).groups.local());
        let sgc = &self.domains.sgcs[local.sgc as usize];
        idle != IdleType::NewlyIdle || self.jiffies(now) >= sgc.next_update
    }

    /// Between cores the order of CPUs counts only for a CPU whose core is idle.
    ///
    /// Kernel: sched_use_asym_prio(), kernel/sched/fair.c, v6.12.
    pub(super) fn use_asym_prio(&self, sd: &crate::SchedDomain, cpu: CpuId) -> bool {
        sd.flags.has(SdFlags::ASYM_PACKING)
            && (self.kernel.rules.asym_packing != AsymPacking::IdleCore
                || !self.domains.smt_active
                || sd.flags.has(SdFlags::SHARE_CPUCAPACITY)
                || self.is_core_idle(cpu))
    }
}

/// Fewer idle CPUs, or equally many and more tasks.
fn less_spare(stats: &SgLbStats, busiest: &SgLbStats) -> bool {
    stats.idle_cpus < busiest.idle_cpus
        || stats.idle_cpus == busiest.idle_cpus && stats.sum_nr_running > busiest.sum_nr_running
}

/// Whether a capacity is larger by a margin of about 5 %.
///
/// Kernel: capacity_greater(), kernel/sched/fair.c, v5.13.
pub(super) fn capacity_greater(a: u64, b: u64) -> bool {
    a * 1024 > b * 1078
}

/// Whether CPU `a` is to be used before `b`: lower numbers first.
///
/// Kernel: sched_asym_prefer(), arch_asym_cpu_priority(), kernel/sched/sched.h and fair.c, v6.12.
pub(super) fn sched_asym_prefer(a: CpuId, b: CpuId) -> bool {
    a < b
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::balance::drawings::{check_kernels, check_pass};

    #[test]
    fn nobody_has_anything() {
        check_kernels("", "1x1x4 | 0[] 1[] 2[] 3[]", "cpu=2 newidle", expect!["v4.13..v7.3: LB_NO_BUSIEST"]);
    }

    #[test]
    fn a_group_with_one_task_keeps_it() {
        check_kernels(
            "",
            "1x1x4 | 0[a*] 1[]",
            "cpu=1 idle",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=1
                v5.5..v7.3: LB_ONE_TASK busiest_nr_running=1"#]],
        );
    }

    #[test]
    fn a_busy_cpu_leaves_spare_groups_to_idle_ones() {
        check_kernels(
            "",
            "1x1x4 | 0[a*] 1[b* c d] 2[e*] 3[f*]",
            "cpu=0 busy",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 1, d to 0, c TooLarge, b Running
                v5.5..v7.3: LB_NOT_IDLE busiest_type=0"#]],
        );
    }

    #[test]
    fn groups_with_as_many_idle_cpus_are_even() {
        check_kernels(
            "",
            "2x1x4 | 0[a*] 1[b*] 4[c*]",
            "cpu=5 idle level=1",
            expect!["v4.13..v7.3: LB_IDLE_EVEN local_idle_cpus=3"],
        );
    }

    #[test]
    fn an_overloaded_group_does_not_take_from_a_spare_one() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b ;util=1000] 1[c* d]",
            "cpu=0 busy",
            expect![[r#"
                v4.13: LB_LOCAL_BUSIER local_avg_load=2048
                v5.5..v7.3: LB_LOCAL_BUSIER local_type=7"#]],
        );
    }

    #[test]
    fn of_overloaded_groups_the_one_with_more_load_gives() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b ;util=1000] 1[c* d e ;util=1000] 2[f* g h i ;util=1000] 3[j* k ;util=1000]",
            "cpu=0 busy",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 2, i to 0, h TooLarge, g TooLarge, f Running
                v5.5: LB_LOAD load 768 from 2, g to 0
                v5.18..v7.3: LB_NOTHING_MOVABLE load 768 from 2, g TooLarge, h TooLarge, i TooLarge, f Running"#]],
        );
    }

    #[test]
    fn but_only_if_the_difference_is_worth_it() {
        check_kernels(
            "",
            "1x1x2 | 0[a* b ;util=1000 load=2000] 1[c* d ;util=1000 load=2300]",
            "cpu=0 busy",
            expect!["v4.13..v7.3: LB_BALANCED busiest_avg_load=2300"],
        );
    }

    #[test]
    fn and_not_to_a_cpu_above_the_average() {
        check_kernels(
            "",
            "1x1x3 | 0[a* b c;util=1000 load=3000] 1[d* e f;util=1000 load=4000] 2[g*;load=100]",
            "cpu=0 busy",
            expect![[r#"
                v4.13: LB_BALANCED local_avg_load=3000
                v5.5..v7.3: LB_BALANCED busiest_avg_load=4000"#]],
        );
    }

    #[test]
    fn of_spare_groups_the_one_with_fewer_idle_cpus_gives() {
        check_kernels(
            "",
            "1x3x2 | 0[] 1[] 2[a* b] 3[] 4[c*] 5[d*]",
            "cpu=0 idle level=1",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=2
                v5.5..v7.3: LB_NOTHING_MOVABLE task 1 from 4"#]],
        );
    }

    #[test]
    fn two_busy_threads_of_a_core_are_relieved() {
        check_kernels(
            "",
            "1x1x4x2 | 0[] 1[] 2[a* f] 3[b* c] 4[d*] 5[] 6[e*] 7[]",
            "cpu=0 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 1535 from 2, f to 0
                v5.5..v6.3: LB_TASK task 2 from 2, f to 0
                v6.10..v7.3: LB_TASK task 1 from 2, f to 0"#]],
        );
    }

    #[test]
    fn without_the_rule_task_counts_decide() {
        check_pass(
            "v6.12+NO_SMT_BALANCE",
            "1x1x4x2 | 0[] 1[] 2[a* f] 3[b* c] 4[d*] 5[] 6[e*] 7[]",
            "cpu=0 idle level=1",
            expect!["LB_TASK task 2 from 2, f to 0"],
        );
    }

    #[test]
    fn a_marked_group_gives_whatever_the_counts() {
        check_kernels(
            "",
            "2x1x2 | 0[] 1[a*] 2[b* c] 3[d*]",
            "cpu=0 idle level=1 imbalanced=2",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 2, c to 0
                v5.5..v7.3: LB_TASK task 1 from 2, c to 0"#]],
        );
    }

    #[test]
    fn a_cpu_that_lost_capacity_gives_its_only_task() {
        check_kernels(
            "",
            "1x1x4 | 0[a* ;capacity=600] 1[]",
            "cpu=1 idle failed=4",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=1
                v5.5..v5.18: LB_ONE_TASK busiest_nr_running=1
                v6.1..v7.3: LB_ACTIVE load 1024 from 0"#]],
        );
    }

    #[test]
    fn the_order_of_cpus_packs_tasks() {
        check_kernels(
            "",
            "1x1x1x4 | 0[] 1[] 2[a* b] 3[]",
            "cpu=0 idle asym_packing",
            expect![[r#"
                v4.13: LB_LOAD load 2048 from 2, b to 0
                v5.5..v7.3: LB_TASK task 2 from 2, b to 0"#]],
        );
    }

    #[test]
    fn and_does_not_unpack_them() {
        check_kernels(
            "",
            "1x1x1x4 | 0[a*] 1[] 2[] 3[]",
            "cpu=2 idle asym_packing",
            expect![[r#"
                v4.13: LB_NO_BUSIEST
                v5.5..v7.3: LB_ONE_TASK busiest_nr_running=1"#]],
        );
    }

    #[test]
    fn between_caches_25_percent_more_is_worth_it_and_since_v5_10_17() {
        check_kernels(
            "",
            "1x2x2 | 0[a* b ;util=1000 load=1000] 1[c* d ;util=1000 load=1000] 2[e* f ;util=1000 load=2074] 3[g* h ;util=1000 load=1200]",
            // Without most of f, CPU 2 is as loaded as CPU 3: a fifth more than 0 and 1.
            "cpu=0 busy level=1 load:f=150",
            expect![[r#"
                v4.13..v5.5: LB_BALANCED busiest_avg_load=1200
                v5.18..v7.3: LB_LOAD load 200 from 2, f to 0, e Running"#]],
        );
    }

    #[test]
    fn a_core_that_runs_something_does_not_attract_by_its_number_since_v5_16() {
        // The groups are even; only the order of CPUs could move b.
        check_kernels(
            "+NO_CLS_LEVEL",
            "1x1x2x2 | 0[] 1[x*] 2[a* b] 3[]",
            "cpu=0 idle level=1 asym_packing",
            expect![[r#"
                v4.13: LB_LOAD load 2048 from 2, b to 0
                v5.5: LB_TASK task 2 from 2, b to 0
                v5.18..v7.3: LB_IDLE_EVEN local_idle_cpus=1"#]],
        );
    }

    #[test]
    fn but_one_of_two_busy_threads_was_relieved_up_to_v6_5() {
        check_kernels(
            "+NO_CLS_LEVEL",
            "1x1x2x2 | 0[] 1[x*] 2[a*] 3[b*]",
            "cpu=0 idle level=1 asym_packing",
            expect![[r#"
                v4.13: LB_NOTHING_MOVABLE load 2048 from 2
                v5.5..v6.3: LB_ACTIVE task 2 from 2
                v6.10..v7.3: LB_IDLE_EVEN local_idle_cpus=1"#]],
        );
    }

    #[test]
    fn a_cpu_without_siblings_can_ask_how_those_of_the_busiest_are() {
        // CPU 0 has a cache to itself, so its lowest domain has none below it.
        check_kernels(
            "",
            "llc0: 0[] llc1: 1[a* b] 2[]",
            "cpu=0 idle",
            expect![[r#"
                v4.13..v6.3: LB_IDLE_EVEN local_idle_cpus=1
                v6.10..v7.3: LB_TASK task 1 from 1, b to 0"#]],
        );
    }

    #[test]
    fn a_little_larger_cpu_helps_a_misfit_task_since_v5_13() {
        check_kernels(
            "",
            "1x1x4:capacity=0-1/900 | 0[a*] 1[] 2[] 3[]",
            "cpu=2 idle util:a=880 misfit=0",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=1
                v5.5: LB_NO_BUSIEST
                v5.18..v7.3: LB_ACTIVE misfit 1 from 0"#]],
        );
    }

    #[test]
    fn larger_cpus_keep_what_they_can_do() {
        check_kernels(
            "",
            "1x1x4:capacity=0-1/900 | 0[] 1[] 2[a* ;util=1020] 3[]",
            "cpu=0 idle",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=1
                v5.5..v5.18: LB_ONE_TASK busiest_nr_running=1
                v6.1: LB_NO_BUSIEST
                v6.3..v6.10: LB_ONE_TASK busiest_nr_running=1
                v6.12..v7.3: LB_NO_BUSIEST"#]],
        );
    }

    #[test]
    fn a_misfit_task_went_to_a_core_that_is_half_idle_before_late_stable_releases() {
        check_kernels(
            "",
            "1x1x4x2:capacity=0-3/446 | 0[a*] 4[b*]",
            "cpu=5 idle level=1 util:a=440 misfit=0",
            expect![[r#"
                v4.13: LB_LOCAL_BUSIER local_avg_load=890
                v5.5..v5.18: LB_ACTIVE misfit 1 from 0
                v6.1: LB_NO_BUSIEST
                v6.3..v6.10: LB_ACTIVE misfit 1 from 0
                v6.12..v7.3: LB_NO_BUSIEST"#]],
        );
    }

    #[test]
    fn of_fully_busy_groups_the_first_or_the_last_gives() {
        check_kernels(
            "",
            "1x3x2 | 0[] 1[] 2[a* b ;util=1000] 3[;util=1000] 4[c* d ;util=1000] 5[;util=1000]",
            "cpu=0 idle level=1",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=2
                v5.5..v6.3: LB_TASK task 1 from 2, b to 0
                v6.10..v7.3: LB_TASK task 1 from 4, d to 0"#]],
        );
    }
}
