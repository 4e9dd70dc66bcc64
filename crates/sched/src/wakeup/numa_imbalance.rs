//! How uneven two nodes may be before a task leaves its parent's.
//!
//! A pair of tasks that talk to each other should share a node even if another one is
//! wholly idle. The first rules compared with a share of the node; a node of many caches
//! then stacked tasks in one while memory of the others was unused, so now it is a
//! number per domain (`imb_numa_nr`). A task bound to a few CPUs of each node was still
//! kept until it ran out of that number, however few CPUs it had: hence the limit by affinity.

use schedlab_topology::CpuMask;

use crate::{Feature, NumaImbalance, SchedDomain, SgLbStats, View};

/// An imbalance of this many tasks is tolerated while few enough run.
pub(crate) const NUMA_IMBALANCE_MIN: u64 = 2;

/// What remains of an imbalance between nodes when `dst_running` tasks would run.
///
/// Kernel: adjust_numa_imbalance(), kernel/sched/fair.c, v6.12.
pub fn adjust_numa_imbalance(imbalance: u64, dst_running: u32, imb_numa_nr: u32) -> u64 {
    if dst_running <= imb_numa_nr && imbalance <= NUMA_IMBALANCE_MIN { 0 } else { imbalance }
}

/// Whether a new task stays on its node although another one has more idle CPUs, and the
/// number of tasks that was allowed.
///
/// Kernel: find_idlest_group(), kernel/sched/fair.c, v5.5, v5.17, v5.18, v6.0.
pub(super) fn stays_on_node(
    view: &View,
    sd: &SchedDomain,
    allowed: &CpuMask,
    local_span: &CpuMask,
    local: &SgLbStats,
    idlest: &SgLbStats,
) -> (bool, u32) {
    let kernel = view.kernel();
    let mut imb_numa_nr = sd.imb_numa_nr;
    if kernel.has(Feature::NumaImbAffinity) {
        imb_numa_nr = imb_numa_nr.min(allowed.weight_and(local_span) as u32);
    }
    let running = local.sum_nr_running;
    match kernel.rules.numa_imbalance {
        NumaImbalance::Off => (false, 0),
        NumaImbalance::AnyIdle => (local.idle_cpus > 0, 0),
        NumaImbalance::Quarter => (running < sd.span_weight >> 2, sd.span_weight >> 2),
        NumaImbalance::PerLlc => (running < imb_numa_nr, imb_numa_nr),
        NumaImbalance::PerLlcIdleDifference => {
            let difference = u64::from(local.idle_cpus.abs_diff(idlest.idle_cpus));
            (adjust_numa_imbalance(difference, running + 1, imb_numa_nr) == 0, imb_numa_nr)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_imbalance_is_left_while_few_tasks_run() {
        let table = [((0, 1, 8), 0), ((2, 8, 8), 0), ((3, 8, 8), 3), ((2, 9, 8), 2), ((1, 1, 0), 1)];
        for ((imbalance, running, allowed), left) in table {
            assert_eq!(adjust_numa_imbalance(imbalance, running, allowed), left);
        }
    }
}
