//! How uneven NUMA nodes may be left.
//!
//! Two tasks that talk to each other are better off on one node even if another is
//! idle. So a small difference is tolerated while the node is far from full; what
//! "far from full" means changed three times.

use crate::wakeup::adjust_numa_imbalance;
use crate::{LbNumaImbalance, SchedDomain, SdFlags, SgLbStats};

/// Tasks that may be together whatever the other nodes do.
const NUMA_IMBALANCE_MIN: i64 = 2;

/// An imbalance between nodes after tolerance. `local` counts without the task that would come.
///
/// Kernel: calculate_imbalance(), kernel/sched/fair.c, v5.6, v5.17 and v5.18.
pub(super) fn after_numa_tolerance(
    rule: LbNumaImbalance,
    sd: &SchedDomain,
    imbalance: i64,
    local: &SgLbStats,
    busiest: &SgLbStats,
) -> i64 {
    if !sd.flags.has(SdFlags::NUMA) {
        return imbalance;
    }
    let small = imbalance <= NUMA_IMBALANCE_MIN;
    let tolerated = match rule {
        LbNumaImbalance::Off => false,
        LbNumaImbalance::Pair => i64::from(busiest.sum_nr_running) <= NUMA_IMBALANCE_MIN,
        LbNumaImbalance::Quarter => small && busiest.sum_nr_running < busiest.group_weight / 4,
        LbNumaImbalance::PerLlc => {
            return adjust_numa_imbalance(imbalance as u64, local.sum_nr_running + 1, sd.imb_numa_nr) as i64;
        }
    };
    if tolerated { 0 } else { imbalance }
}
