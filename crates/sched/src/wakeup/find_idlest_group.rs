//! The group of a domain where a new task has it best, by the type of the groups.
//!
//! The local group keeps the task unless another is of a better type, or of the same
//! type with more idle CPUs or enough less load. How the older generation compared, by
//! loads alone, is in `find_idlest_group_load.rs`.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{
    AsymFits, Curr, Feature, ForkGroup, GroupType, NICE_0_LOAD, PendingWake, Refused, SchedDomain,
    SchedGroup, SdFlags, SgId, SgLbStats, View,
};

use super::find_idlest_group_load::find_idlest_group_by_load;
use super::numa_imbalance::stays_on_node;
use super::util_fits_cpu::{fits_capacity, util_fits_cpu};

/// The group to send a new task to, or none to keep it in the group of `this`.
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
    for id in sd.groups.iter() {
        let group = domains.sg(id);
        if !group.span.intersects(allowed) {
            refuse_group(view, group, Refused::NotAllowed);
            continue;
        }
        let stats = update_sg_wakeup_stats(view, sd, id, task);
        if group.span.contains(this) {
            local = Some((id, stats));
        } else if picks_idlest(view, &best, idlest, &stats, id) {
            idlest = Some(id);
            best = stats;
        }
    }
    let found = idlest?;
    let Some((local_id, local)) = local else { return Some(found) };
    let leave = leaves_local(view, sd, task, (local_id, &local), (found, &best));
    for id in sd.groups.iter().filter(|&id| id != if leave { found } else { local_id }) {
        refuse_group(view, domains.sg(id), Refused::WorseGroup);
    }
    leave.then_some(found)
}

/// A group stands in the list of those passed over by its first CPU.
pub(super) fn refuse_group(view: &View, group: &SchedGroup, refused: Refused) {
    if let Some(cpu) = group.span.first() {
        view.refuse(cpu, refused);
    }
}

/// Kernel: update_sg_wakeup_stats(), kernel/sched/fair.c, v5.5, v6.12, v7.2.
fn update_sg_wakeup_stats(view: &View, sd: &SchedDomain, id: SgId, task: TaskId) -> SgLbStats {
    let (sched, kernel) = (view.sched, view.kernel());
    let group = sched.domains.sg(id);
    let sgc = sched.domains.sgc(id);
    let p = sched.task(task);
    let only_allowed = kernel.has(Feature::ForkStatsAllowed);
    let asym = sd.flags.has(SdFlags::ASYM_CPUCAPACITY);
    let mut stats = SgLbStats { group_capacity: sgc.capacity, ..SgLbStats::default() };
    let mut fits = false;
    for cpu in group.span.iter() {
        if only_allowed && !p.allowed.contains(cpu) {
            continue;
        }
        view.examine();
        let own = u32::from(p.cpu == cpu && p.on_rq && p.se.avg.last_update_time != 0);
        stats.group_load += sched.cpu_load_without(task, cpu, view.now);
        stats.group_util += sched.cpu_util_without(task, cpu);
        stats.group_runnable += sched.cpu_runnable_without(task, cpu);
        let nr_running = view.rq(cpu).nr_running - own;
        stats.sum_nr_running += nr_running;
        stats.sum_h_nr_running += sched.root_cfs(cpu).h_nr_runnable.saturating_sub(own);
        if nr_running == 0 && idle_cpu_without(view, cpu, task) {
            stats.idle_cpus += 1;
        }
        fits |= asym && kernel.rules.asym_fits >= AsymFits::Uclamp && util_fits_cpu(view, task, cpu) > 0;
    }
    if asym {
        if kernel.rules.asym_fits < AsymFits::Uclamp {
            fits = fits_capacity(sched.task_util_est(task), sgc.max_capacity);
        }
        stats.group_misfit_task_load = u64::from(!fits);
    }
    if !kernel.has(Feature::GroupWeightZero) {
        stats.group_weight = group.group_weight;
    }
    stats.group_type = stats.classify(kernel.features, sd.imbalance_pct, sgc.imbalance);
    let busy = matches!(stats.group_type, GroupType::FullyBusy | GroupType::Overloaded);
    let computed =
        if kernel.has(Feature::ForkAvgLoadInverted) { stats.group_type == GroupType::HasSpare } else { busy };
    if computed {
        stats.avg_load = stats.load_per_capacity();
    }
    stats
}

/// Idle as if the task were not there; that nobody else is queued is known.
///
/// Kernel: idle_cpu_without(), kernel/sched/fair.c, v6.12.
fn idle_cpu_without(view: &View, cpu: CpuId, task: TaskId) -> bool {
    let rq = view.rq(cpu);
    let pending = match view.kernel().rules.pending_wake {
        PendingWake::List => !rq.wake_list.is_empty(),
        PendingWake::Flag => rq.ttwu_pending,
    };
    (rq.curr == Curr::Idle || rq.curr == Curr::Task(task)) && !pending
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

/// Whether the idlest group is enough better than the local one.
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
