//! The idlest group by load averages and spare capacity, as v4.13 compares them.
//!
//! Quirk: if the task may use no CPU of the local group, its loads count as 0, so the
//! task usually stays at a level where it cannot run; the last step takes it elsewhere.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{Refused, SchedDomain, SgId, View};

use super::find_idlest_group::refuse_group;

/// Sums of a group, scaled to its capacity.
#[derive(Clone, Copy)]
struct Loads {
    runnable: u64,
    avg: u64,
    /// Largest spare capacity of its CPUs.
    spare: u64,
}

/// Kernel: find_idlest_group(), kernel/sched/fair.c, v4.13.
pub(super) fn find_idlest_group_by_load(
    view: &View,
    sd: &SchedDomain,
    task: TaskId,
    this: CpuId,
    fork: bool,
) -> Option<SgId> {
    let domains = &view.sched.domains;
    let p = view.sched.task(task);
    let pct = u64::from(sd.imbalance_pct);
    let imbalance_scale = 100 + (pct - 100) / 2;
    let imbalance = 1024 * (pct - 100) / 100;
    let mut local = Loads { runnable: 0, avg: 0, spare: 0 };
    let (mut min_runnable, mut min_avg) = (u64::MAX, u64::MAX);
    let mut idlest = None;
    let (mut most_spare, mut most_spare_group) = (0, None);
    for id in sd.groups.iter() {
        let group = domains.sg(id);
        if !group.span.intersects(&p.allowed) {
            refuse_group(view, group, Refused::NotAllowed);
            continue;
        }
        let loads = loads(view, id, task);
        if group.span.contains(this) {
            local = loads;
            continue;
        }
        if min_runnable > loads.runnable.saturating_add(imbalance) {
            (min_runnable, min_avg, idlest) = (loads.runnable, loads.avg, Some(id));
        } else if loads.runnable < min_runnable.saturating_add(imbalance)
            && 100u128 * u128::from(min_avg) > u128::from(imbalance_scale) * u128::from(loads.avg)
        {
            (min_avg, idlest) = (loads.avg, Some(id));
        }
        if most_spare < loads.spare {
            (most_spare, most_spare_group) = (loads.spare, Some(id));
        }
    }
    let util = p.se.avg.util_avg;
    // A fork has no utilisation yet, so spare capacity is meaningless for it.
    if !fork {
        if local.spare > util / 2 && imbalance_scale * local.spare > 100 * most_spare {
            return None;
        }
        if most_spare > util / 2 {
            return most_spare_group;
        }
    }
    let found = idlest?;
    if min_runnable > local.runnable + imbalance
        || local.runnable < min_runnable + imbalance && 100 * local.avg < imbalance_scale * min_avg
    {
        return None;
    }
    Some(found)
}

fn loads(view: &View, id: SgId, task: TaskId) -> Loads {
    let sched = view.sched;
    let mut loads = Loads { runnable: 0, avg: 0, spare: 0 };
    for cpu in sched.domains.sg(id).span.iter() {
        view.examine(cpu);
        loads.runnable += sched.cpu_load(cpu);
        let (avg, util) = match view.facts() {
            Some(facts) => (facts.load_avg(cpu), facts.stats(cpu).util),
            None => (sched.root_cfs(cpu).avg.load_avg, sched.cpu_util_without(task, cpu)),
        };
        loads.avg += avg;
        let spare = view.rq(cpu).cpu_capacity_orig.saturating_sub(util);
        loads.spare = loads.spare.max(spare);
    }
    let capacity = sched.domains.sgc(id).capacity.max(1);
    loads.runnable = (loads.runnable << 10) / capacity;
    loads.avg = (loads.avg << 10) / capacity;
    loads
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::check_wakeup;

    #[test]
    fn less_load_by_more_than_the_imbalance() {
        check_wakeup(
            "v4.13",
            "1x2x2 | 0[make* ; load=1024] 1[a* ; load=1024] 2[b* ; load=700] 3[c* ; load=600]",
            "fork by=make",
            expect!["cpu 3, IDLEST_LOAD, examined 8"],
        );
        check_wakeup(
            "v4.13",
            "1x2x2 | 0[make* ; load=1024] 1[a* ; load=1024] 2[b* ; load=1000] 3[c* ; load=900]",
            "fork by=make",
            expect!["cpu 0, STAY_LOCAL, examined 6"],
        );
    }

    #[test]
    fn exec_looks_at_spare_capacity_first() {
        check_wakeup(
            "v4.13",
            "1x2x2 | 0[make* a ; util=900] 1[b* ; util=900] 2[c* ; util=200] 3[d* ; util=800]",
            "exec make util=400",
            expect!["cpu 2, IDLEST_LOAD, examined 8"],
        );
        check_wakeup(
            "v4.13",
            "1x2x2 | 0[make* a ; util=200] 1[b* ; util=300] 2[c* ; util=200] 3[d* ; util=800]",
            "exec make util=200",
            expect!["cpu 0, STAY_LOCAL, examined 6"],
        );
    }

    #[test]
    fn the_local_group_without_an_allowed_cpu_looks_empty() {
        check_wakeup(
            "v4.13",
            "1x2x2 | 0[make* ; load=1024] 1[a* ; load=1024] 2[b* ; load=700] 3[ ]",
            "fork by=make allowed=2-3",
            expect!["cpu 2, FALLBACK, examined 2"],
        );
    }
}
