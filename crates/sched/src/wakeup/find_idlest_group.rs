//! The best group of a domain for a new task, by the types of the groups.
//!
//! The local group keeps the task unless another is of a better type, or of the same type with more idle CPUs
//! or sufficiently less load. The older comparison, by loads alone, is in `find_idlest_group_load.rs`.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::group_sums::{CpuStats, GroupSums};
use crate::{
    AsymFits, Curr, Feature, ForkGroup, GroupType, NICE_0_LOAD, PendingWake, Refused, SchedDomain,
    SchedGroup, SdFlags, SgId, SgLbStats, View,
};

use super::find_idlest_group_load::find_idlest_group_by_load;
use super::numa_imbalance::stays_on_node;
use super::util_fits_cpu::{fits_capacity, util_fits_cpu};

/// The group for a new task, or `None` to keep it in the group of `this`.
///
/// Kernel: find_idlest_group(), kernel/sched/fair.c, v5.5, v5.18, v6.12;
/// sched_balance_find_dst_group(), v7.2.
pub fn find_idlest_group(
    view: &View,
    sd: &SchedDomain,
    task: TaskId,
    this: CpuId,
    fork: bool,
) -> Option<SgId> {
    if view.kernel().rules.fork_group == ForkGroup::Load {
        return find_idlest_group_by_load(view, sd, task, this, fork);
    }
    let domains = &view.sched.domains;
    let allowed = &view.sched.task(task).allowed;
    let mut local: Option<(SgId, SgLbStats)> = None;
    let mut idlest: Option<SgId> = None;
    let mut best = SgLbStats {
        avg_load: u64::from(u32::MAX),
        group_type: GroupType::Overloaded,
        ..SgLbStats::default()
    };
    // Between some of those that certainly have room, utilisation decides.
    let mut tie = false;
    let sums = if view.facts().is_none() { view.sched.valid_group_sums() } else { None };
    for id in sd.groups.iter() {
        let group = domains.sg(id);
        if !group.span.intersects(allowed) {
            refuse_group(view, group, Refused::NotAllowed);
            continue;
        }
        let stats = update_sg_wakeup_stats(view, sd, id, task, sums);
        if group.span.contains(this) {
            local = Some((id, stats));
            continue;
        }
        if let Some(best_id) = idlest {
            let (best_sure, sure) =
                (surely_has_spare(view, best_id, &best), surely_has_spare(view, id, &stats));
            // A group that certainly has room beats any with fewer idle CPUs.
            if sure && stats.idle_cpus > best.idle_cpus {
                tie = false;
            } else if best_sure && sure && best.idle_cpus == stats.idle_cpus {
                tie |= view.kernel().has(Feature::ForkTieUtil);
            } else {
                view.leans_if(!(best_sure && best.idle_cpus > stats.idle_cpus));
            }
        }
        if picks_idlest(view, &best, idlest, &stats, id) {
            idlest = Some(id);
            best = stats;
        }
    }
    let found = idlest?;
    let Some((local_id, local)) = local else {
        view.leans_if(tie);
        return Some(found);
    };
    let leave = leaves_local(view, sd, task, (local_id, &local), (found, &best));
    let sure = (surely_has_spare(view, local_id, &local), surely_has_spare(view, found, &best));
    view.leans_if(match sure {
        // The group that wins the tie has as many idle CPUs.
        (true, true) => tie && leave,
        // If the local group has no room, leaving it is even more likely; if the other has none, even less
        // likely.
        (false, true) => {
            tie || !(leave && leaves_with_spare(view, sd, task, (local_id, &local), (found, &best)))
        }
        (true, false) => leaves_with_spare(view, sd, task, (local_id, &local), (found, &best)),
        (false, false) => true,
    });
    if view.lists_refused() {
        for id in sd.groups.iter().filter(|&id| id != if leave { found } else { local_id }) {
            refuse_group(view, domains.sg(id), Refused::WorseGroup);
        }
    }
    leave.then_some(found)
}

/// Whether a group has room whatever its averages are: fewer tasks than CPUs, and no mark.
fn surely_has_spare(view: &View, id: SgId, stats: &SgLbStats) -> bool {
    stats.group_type == GroupType::HasSpare
        && stats.sum_nr_running < stats.group_weight
        && !view.is_imbalanced(view.sched.domains.sg(id).sgc)
        && stats.group_misfit_task_load == 0
}

/// Whether the idlest group would be sufficiently better if both had room.
pub(super) fn leaves_with_spare(
    view: &View,
    sd: &SchedDomain,
    task: TaskId,
    (local_id, local): (SgId, &SgLbStats),
    (idlest_id, idlest): (SgId, &SgLbStats),
) -> bool {
    let spare = |stats: &SgLbStats| SgLbStats { group_type: GroupType::HasSpare, ..*stats };
    // Notes for explanations concern only the decision itself.
    let apart = View::new(view.sched, view.now, None);
    leaves_local(&apart, sd, task, (local_id, &spare(local)), (idlest_id, &spare(idlest)))
}

/// In the list of those passed over a group is represented by its first CPU.
pub(super) fn refuse_group(view: &View, group: &SchedGroup, refused: Refused) {
    if let Some(cpu) = group.span.first() {
        view.refuse(cpu, refused);
    }
}

/// Kernel: update_sg_wakeup_stats(), kernel/sched/fair.c, v5.5, v6.12, v7.2.
pub(super) fn update_sg_wakeup_stats(
    view: &View,
    sd: &SchedDomain,
    id: SgId,
    task: TaskId,
    all_sums: Option<&GroupSums>,
) -> SgLbStats {
    let (sched, kernel) = (view.sched, view.kernel());
    let group = sched.domains.sg(id);
    let sgc = sched.domains.sgc(id);
    let p = sched.task(task);
    let only_allowed = kernel.has(Feature::ForkStatsAllowed);
    let asym = sd.flags.has(SdFlags::ASYM_CPUCAPACITY);
    let mut stats = SgLbStats { group_capacity: sgc.capacity, ..SgLbStats::default() };
    let mut fits = false;
    let counted_on = (p.se.avg.last_update_time != 0).then_some(p.cpu);
    let whole = || {
        !asym
            && (!only_allowed || group.span.is_subset(&p.allowed))
            && counted_on.is_none_or(|cpu| !group.span.contains(cpu))
    };
    let mut sums = CpuStats::default();
    if let Some(all) = all_sums.filter(|_| whole()) {
        view.examine_group(group);
        sums = *all.of(id);
    } else if let (Some(facts), &[cpu], false) = (view.facts(), &*group.cpus, asym) {
        // Callers that ask repeatedly mostly ask about CPUs one by one.
        if !only_allowed || p.allowed.contains(cpu) {
            view.examine(cpu);
            sums = *facts.stats(cpu);
        }
    } else {
        for &cpu in group.cpus.iter().filter(|&&cpu| !only_allowed || p.allowed.contains(cpu)) {
            view.examine(cpu);
            match view.facts() {
                Some(facts) => sums.add(facts.stats(cpu)),
                None if counted_on == Some(cpu) => sums.add(&cpu_stats_without(view, cpu, task)),
                None => sums.add(&sched.cpu_stats(cpu)),
            }
            fits |= asym
                && kernel.rules.asym_fits >= AsymFits::Uclamp
                && util_fits_cpu(view, task, sched.task_util_est(task), cpu) > 0;
        }
    }
    stats.set_sums(&sums);
    stats.sum_h_nr_running = sums.h_nr_runnable;
    if asym {
        if kernel.rules.asym_fits < AsymFits::Uclamp {
            let util = sched.uclamp_task_util(task, sched.task_util_est(task));
            fits = fits_capacity(util, sgc.max_capacity);
        }
        stats.group_misfit_task_load = u64::from(!fits);
    }
    if !kernel.has(Feature::GroupWeightZero) {
        stats.group_weight = group.group_weight;
    }
    stats.group_type = stats.classify(kernel.features, sd.imbalance_pct, view.is_imbalanced(group.sgc));
    let busy = matches!(stats.group_type, GroupType::FullyBusy | GroupType::Overloaded);
    let computed =
        if kernel.has(Feature::ForkAvgLoadInverted) { stats.group_type == GroupType::HasSpare } else { busy };
    if computed {
        stats.avg_load = stats.load_per_capacity();
    }
    stats
}

/// Load of a CPU as if a task were not there.
///
/// Kernel: cpu_load_without(), kernel/sched/fair.c, v6.12.
fn cpu_load_without(view: &View, task: TaskId, cpu: CpuId) -> u64 {
    let load = view.sched.cpu_load(cpu);
    if view.sched.contributes(task, cpu) { load.saturating_sub(view.task_h_load(task)) } else { load }
}

/// What a CPU adds to the statistics of its group, as if the task were not there.
pub(super) fn cpu_stats_without(view: &View, cpu: CpuId, task: TaskId) -> CpuStats {
    let sched = view.sched;
    let own = u32::from(sched.task(task).on_rq);
    // Tasks that still run in a throttled group are no longer counted.
    let nr_running = view.rq(cpu).nr_running.saturating_sub(own);
    CpuStats {
        load: cpu_load_without(view, task, cpu),
        util: sched.cpu_util_without(task, cpu),
        runnable: sched.cpu_runnable_without(task, cpu),
        nr_running,
        h_nr_runnable: sched.root_cfs(cpu).h_nr_runnable.saturating_sub(own),
        idle: (nr_running == 0 && idle_cpu_without(view, cpu, task)).into(),
        ..CpuStats::default()
    }
}

/// Idle as if the task were not there; it is known that no other task is queued.
///
/// Kernel: idle_cpu_without(), kernel/sched/fair.c, v6.12.
fn idle_cpu_without(view: &View, cpu: CpuId, task: TaskId) -> bool {
    let rq = view.rq(cpu);
    let pending = match view.kernel().rules.pending_wake {
        PendingWake::List => !rq.wake_list.is_empty(),
        PendingWake::Flag => rq.ttwu_pending,
    };
    let curr = rq.curr_seen();
    (curr == Curr::Idle || curr == Curr::Task(task)) && !pending
}

/// Whether a group is idler than the idlest so far; the first of equals stays.
///
/// Kernel: update_pick_idlest(), kernel/sched/fair.c, v5.5, v5.18, v7.2.
fn picks_idlest(view: &View, best: &SgLbStats, best_id: Option<SgId>, stats: &SgLbStats, id: SgId) -> bool {
    if stats.group_type != best.group_type {
        return stats.group_type < best.group_type;
    }
    let max_capacity = |id| view.sched.domains.sgc(id).max_capacity;
    match stats.group_type {
        GroupType::Overloaded | GroupType::FullyBusy => best.avg_load > stats.avg_load,
        GroupType::MisfitTask => best_id.is_none_or(|best| max_capacity(best) < max_capacity(id)),
        GroupType::HasSpare if best.idle_cpus != stats.idle_cpus => best.idle_cpus < stats.idle_cpus,
        GroupType::HasSpare => view.kernel().has(Feature::ForkTieUtil) && best.group_util > stats.group_util,
        GroupType::LlcBalance | GroupType::Imbalanced | GroupType::AsymPacking | GroupType::SmtBalance => {
            false
        }
    }
}

/// Whether the idlest group is sufficiently better than the local one.
fn leaves_local(
    view: &View,
    sd: &SchedDomain,
    task: TaskId,
    (local_id, local): (SgId, &SgLbStats),
    (idlest_id, idlest): (SgId, &SgLbStats),
) -> bool {
    if local.group_type != idlest.group_type {
        return local.group_type > idlest.group_type;
    }
    let domains = &view.sched.domains;
    let numa = sd.flags.has(SdFlags::NUMA);
    let pct = u64::from(sd.imbalance_pct);
    match local.group_type {
        GroupType::Overloaded | GroupType::FullyBusy => {
            let imbalance = (NICE_0_LOAD >> 10) * (pct - 100) / 100;
            // Between nodes the allowance counts against leaving, so that a lightly
            // loaded node does not look worse than it is.
            !(numa && idlest.avg_load + imbalance >= local.avg_load)
                && idlest.avg_load < local.avg_load + imbalance
                && 100 * local.avg_load > pct * idlest.avg_load
        }
        GroupType::LlcBalance | GroupType::Imbalanced | GroupType::AsymPacking | GroupType::SmtBalance => {
            false
        }
        GroupType::MisfitTask => domains.sgc(local_id).max_capacity < domains.sgc(idlest_id).max_capacity,
        GroupType::HasSpare => {
            let allowed = &view.sched.task(task).allowed;
            if numa {
                let (stays, limit) =
                    stays_on_node(view, sd, allowed, &domains.sg(local_id).span, local, idlest);
                view.decided_by("imb_numa_nr", i64::from(limit));
                if stays {
                    return false;
                }
            }
            local.idle_cpus < idlest.idle_cpus
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::{check_all, check_wakeup};

    #[test]
    fn a_few_tasks_stay_on_their_node() {
        check_all(
            "2x1x16 | 0[make*]",
            "fork by=make",
            expect![[r#"
            v4.13: cpu 17, IDLEST_ONLY, examined 64
            v5.5..v7.3: cpu 1, IDLEST_ONLY, examined 48"#]],
        );
        check_all(
            "2x1x16 | 0[make*] 1[a*]",
            "fork by=make",
            expect![[r#"
            v4.13: cpu 17, IDLEST_ONLY, examined 64
            v5.5..v5.18: cpu 2, IDLEST_ONLY, examined 48
            v6.1..v7.3: cpu 16, IDLEST_RECENT, examined 64"#]],
        );
        check_all(
            "2x1x16 | 0[make*] 1[a*] 2[b*]",
            "fork by=make",
            expect![[r#"
            v4.13: cpu 17, IDLEST_ONLY, examined 64
            v5.5..v5.18: cpu 3, IDLEST_ONLY, examined 48
            v6.1..v7.3: cpu 16, IDLEST_RECENT, examined 64"#]],
        );
        check_all(
            "2x1x16 | 0[make*] 1[a*] 2[b*] 3[c*]",
            "fork by=make",
            expect![[r#"
            v4.13: cpu 17, IDLEST_ONLY, examined 64
            v5.5: cpu 4, IDLEST_ONLY, examined 48
            v5.18..v7.3: cpu 16, IDLEST_RECENT, examined 64"#]],
        );
        check_all(
            "2x1x16 | 0[make*] 1[a*] 16[b*]",
            "fork by=make",
            expect![[r#"
            v4.13: cpu 18, IDLEST_ONLY, examined 64
            v5.5..v5.18: cpu 2, IDLEST_ONLY, examined 48
            v6.1..v7.3: cpu 17, IDLEST_RECENT, examined 64"#]],
        );
    }

    #[test]
    fn affinity_limits_what_is_tolerated() {
        check_wakeup(
            "v5.18",
            "2x4x4 | 0[make*] 1[a*] 16[ ; exit=2]",
            "fork by=make allowed=0-1,16-31",
            expect!["cpu 0, STAY_LOCAL, examined 38"],
        );
        check_wakeup(
            "v5.18+NUMA_IMB_AFFINITY",
            "2x4x4 | 0[make*] 1[a*] 16[ ; exit=2]",
            "fork by=make allowed=0-1,16-31",
            expect!["cpu 16, IDLEST_SHALLOW, examined 68"],
        );
        check_wakeup(
            "v6.12",
            "2x4x4 | 0[make*] 1[a*] 16[ ; exit=2]",
            "fork by=make allowed=0-1,16-17",
            expect!["cpu 16, IDLEST_SHALLOW, examined 10"],
        );
        check_wakeup(
            "v6.12+NO_NUMA_IMB_AFFINITY",
            "2x4x4 | 0[make*] 1[a*] 16[ ; exit=2]",
            "fork by=make allowed=0-1,16-17",
            expect!["cpu 0, STAY_LOCAL, examined 8"],
        );
    }

    #[test]
    fn each_form_of_the_numa_rule() {
        check_wakeup(
            "v6.12+NUMA_IMBALANCE=off",
            "2x4x4 | 0[make*] 16[ ; exit=2]",
            "fork by=make",
            expect!["cpu 16, IDLEST_SHALLOW, examined 68"],
        );
        check_wakeup(
            "v6.12+NUMA_IMBALANCE=any_idle",
            "2x4x4 | 0[make*] 1[a*] 2[b*] 3[c*] 16[ ; exit=2]",
            "fork by=make",
            expect!["cpu 4, IDLEST_RECENT, examined 56"],
        );
        check_wakeup(
            "v6.12+NUMA_IMBALANCE=quarter",
            "2x4x4 | 0[make*] 1[a*] 2[b*] 3[c*] 16[ ; exit=2]",
            "fork by=make",
            expect!["cpu 4, IDLEST_RECENT, examined 56"],
        );
        check_wakeup(
            "v6.12+NUMA_IMBALANCE=per_llc",
            "2x4x4 | 0[make*] 1[a*] 2[b*] 3[c*] 16[ ; exit=2]",
            "fork by=make",
            expect!["cpu 16, IDLEST_SHALLOW, examined 68"],
        );
        check_wakeup(
            "v6.12+NUMA_IMBALANCE=per_llc",
            "2x4x4 | 0[make*] 1[a*] 2[b*] 16[ ; exit=2]",
            "fork by=make",
            expect!["cpu 4, IDLEST_RECENT, examined 56"],
        );
    }

    #[test]
    fn of_equally_idle_groups_the_less_used() {
        check_all(
            "1x3x2 | 0[make*] 1[a*] 2[b* ; util=500] 4[c* ; util=300] 3[ ; exit=2] 5[ ; exit=2]",
            "fork by=make",
            expect![[r#"
                v4.13..v5.5: cpu 3, IDLEST_SHALLOW, examined 10
                v5.18..v7.3: cpu 5, IDLEST_SHALLOW, examined 10"#]],
        );
        check_wakeup(
            "v6.12+NO_FORK_TIE_UTIL",
            "1x3x2 | 0[make*] 1[a*] 2[b* ; util=500] 4[c* ; util=300] 3[ ; exit=2] 5[ ; exit=2]",
            "fork by=make",
            expect!["cpu 3, IDLEST_SHALLOW, examined 10"],
        );
    }

    #[test]
    fn groups_without_an_allowed_cpu_are_skipped() {
        check_all(
            "1x3x2 | 0[make*] 1[a*] 3[ ; exit=2] 5[ ; exit=2]",
            "fork by=make allowed=4-5",
            expect![[r#"
                v4.13: cpu 4, IDLEST_ONLY, examined 6
                v5.5..v7.3: cpu 5, IDLEST_SHALLOW, examined 6"#]],
        );
    }

    #[test]
    fn of_full_groups_the_least_loaded_by_the_percentage() {
        check_wakeup(
            "v6.12",
            "1x2x2 | 0[make* a ; util=1024 runnable=2048] 1[b* c ; util=1024 runnable=2048] 2[d* e ; load=900 util=1024 runnable=2048] 3[f* g ; load=800 util=1024 runnable=2048]",
            "fork by=make",
            expect!["cpu 3, IDLEST_LOAD, examined 8"],
        );
        check_wakeup(
            "v6.12",
            "1x2x2 | 0[make* a ; util=1024 runnable=2048] 1[b* c ; util=1024 runnable=2048] 2[d* e ; load=1800 util=1024 runnable=2048] 3[f* g ; load=1800 util=1024 runnable=2048]",
            "fork by=make",
            expect!["cpu 0, STAY_LOCAL, examined 6"],
        );
        check_wakeup(
            "v5.5",
            "1x2x2 | 0[make* a ; util=1024] 1[b* c ; util=1024] 2[d* e ; load=900 util=1024] 3[f* g ; load=800 util=1024]",
            "fork by=make",
            expect!["cpu 0, STAY_LOCAL, examined 6"],
        );
        check_wakeup(
            "v5.5+NO_FORK_AVG_LOAD_INVERTED+NO_GROUP_WEIGHT_ZERO",
            "1x2x2 | 0[make* a ; util=1024] 1[b* c ; util=1024] 2[d* e ; load=900 util=1024] 3[f* g ; load=800 util=1024]",
            "fork by=make",
            expect!["cpu 3, IDLEST_LOAD, examined 8"],
        );
    }

    #[test]
    fn a_task_too_large_goes_to_larger_cpus() {
        check_all(
            "2x1x2:capacity=0-1/400 | 0[make*] 1[a*] 2[b*] 3[ ; exit=2]",
            "fork by=make util=700",
            expect!["v4.13..v7.3: cpu 3, IDLEST_SHALLOW, examined 8"],
        );
    }

    #[test]
    fn statistics_over_allowed_cpus_see_fewer_idle_ones() {
        check_wakeup(
            "v6.10",
            "1x2x4 | 0[make*] 4[a*] 5[ ; exit=2]",
            "fork by=make allowed=0-1,4-7",
            expect!["cpu 1, IDLEST_ONLY, examined 10"],
        );
        check_wakeup(
            "v6.12",
            "1x2x4 | 0[make*] 4[a*] 5[ ; exit=2]",
            "fork by=make allowed=0-1,4-7",
            expect!["cpu 5, IDLEST_SHALLOW, examined 14"],
        );
    }

    #[test]
    fn a_group_that_is_used_much_has_room_while_a_cpu_has_no_task() {
        // The used group has one task for two CPUs. With a weight of 0 that is one too many,
        // and as its utilisation leaves nothing it counts as overloaded.
        let used = "1x2x2 | 0[make*] 1[a*] 2[b* ; util=1000] 3[ ; util=1000]";
        check_all(
            used,
            "fork by=make",
            expect![[r#"
            v4.13: cpu 3, IDLEST_RECENT, examined 8
            v5.5: cpu 0, STAY_LOCAL, examined 6
            v5.18..v7.3: cpu 3, IDLEST_RECENT, examined 8"#]],
        );
        check_wakeup(
            "v5.5+NO_GROUP_WEIGHT_ZERO",
            used,
            "fork by=make",
            expect!["cpu 3, IDLEST_RECENT, examined 8"],
        );
    }
}
