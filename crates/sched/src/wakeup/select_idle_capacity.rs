//! An idle CPU large enough for the task, on machines whose CPUs differ.
//!
//! The best is one that fits; among those that do not, the one that misses least, then
//! the one with most capacity.

use schedlab_topology::CpuId;

use crate::{AsymFits, Feature, Refused, SchedDomain};

use super::select_idle_sibling::{Effects, Search};
use super::util_fits_cpu::{fits_capacity, util_fits_cpu};

/// An idle thread fits, but its core is busy.
const THREAD_FITS: i32 = -2;
/// An idle core is better than any thread of a busy one by this much.
const CORE_BIAS: i32 = -3;
/// Ranks from here down are of idle cores.
const CORE_MISFIT: i32 = -3;

impl Search<'_> {
    /// Kernel: select_idle_capacity(), kernel/sched/fair.c, v5.18, v6.12, v7.2. The limit
    /// that v7.2 keeps for the asymmetric domain itself is that of the cache it equals, or none.
    pub(super) fn select_idle_capacity(
        &self,
        sd: &SchedDomain,
        target: CpuId,
        effects: &mut Effects,
    ) -> Option<CpuId> {
        let (view, sched, kernel) = (self.view, self.view.sched, self.view.kernel());
        let cores = kernel.rules.asym_fits == AsymFits::UclampCores;
        let has_idle_core = cores && sched.domains.smt_active && sched.test_idle_cores(target);
        let mut left = u64::MAX;
        if cores
            && kernel.has(Feature::SisUtil)
            && let Some(shared) = sd.shared
        {
            let nr = sched.domains.shared[shared.0 as usize].nr_idle_scan;
            self.view.decided_by("nr_idle_scan", i64::from(nr));
            if nr == 0 {
                return None;
            }
            left = u64::from(nr) + 1;
        }
        let start = target.index() + usize::from(kernel.has(Feature::AsymScanFromNext));
        // Rank (lower is better), then capacity.
        let mut best: Option<(i32, u64, CpuId)> = None;
        for cpu in sd.span.iter_wrap(start).filter(|&c| self.allowed.contains(c)) {
            let preferred = !has_idle_core || sched.is_core_idle(cpu);
            if !has_idle_core {
                left -= 1;
                if left == 0 {
                    return best.map(|(.., cpu)| cpu);
                }
            }
            if !self.scans(cpu) {
                continue;
            }
            let mut capacity = sched.capacity_of(cpu);
            let mut rank = match kernel.rules.asym_fits {
                AsymFits::Off | AsymFits::Capacity => {
                    i32::from(fits_capacity(sched.task_util_est(self.wakeup.task), capacity))
                }
                AsymFits::Uclamp | AsymFits::UclampCores => util_fits_cpu(view, self.wakeup.task, cpu),
            };
            if rank > 0 && (preferred || !cores) {
                return Some(cpu);
            }
            if rank < 0 {
                capacity = view.rq(cpu).cpu_capacity_orig;
            } else if rank > 0 {
                rank = THREAD_FITS;
            }
            if cores && preferred {
                rank += CORE_BIAS;
            }
            view.refuse(cpu, Refused::TooSmall);
            let better = best.map_or(rank < 0 || capacity > 0, |(best_rank, best_capacity, _)| {
                rank < best_rank || rank == best_rank && capacity > best_capacity
            });
            if better {
                best = Some((rank, capacity, cpu));
            }
        }
        if has_idle_core && best.is_none_or(|(rank, ..)| rank > CORE_MISFIT) {
            effects.clear_idle_cores = Some(target);
        }
        best.map(|(.., cpu)| cpu)
    }
}
