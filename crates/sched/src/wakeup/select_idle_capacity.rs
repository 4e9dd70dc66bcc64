//! An idle CPU large enough for the task, on machines with CPUs of different capacity.
//!
//! The best is one that fits; among those that do not, the one that misses least, then
//! the one with most capacity.

use schedlab_topology::CpuId;

use crate::{AsymFits, Feature, Refused, SchedDomain};

use super::select_idle_sibling::{Effects, Search};
use super::util_fits_cpu::util_fits_cpu;

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
        let has_idle_core = cores && sched.domains.smt_active && view.test_idle_cores(target);
        let mut left = u64::MAX;
        if cores
            && kernel.has(Feature::SisUtil)
            && let Some(shared) = sd.shared
        {
            let nr = view.nr_idle_scan(shared);
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
            let mut rank = util_fits_cpu(view, self.wakeup.task, self.util, cpu);
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

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::{check_all, check_wakeup};

    #[test]
    fn the_first_that_fits_else_the_largest() {
        check_all(
            "1x1x4:capacity=0-1/400 | 0[waker*] 2[a*]",
            "wake x prev=0 waker=waker util=500",
            expect![[r#"
                v4.13: cpu 2, IDLEST_ONLY, examined 4
                v5.5: cpu 3, IDLEST_ONLY, examined 4
                v5.18: cpu 3, ASYM_CAPACITY, examined 4
                v6.1: cpu 3, ASYM_CAPACITY, examined 4, remote
                v6.3: cpu 3, ASYM_CAPACITY, examined 3, remote
                v6.10..v7.3: cpu 3, ASYM_CAPACITY, examined 4, remote"#]],
        );
        check_all(
            "1x1x4:capacity=0-1/400 | 0[waker*] 2[a*] 3[b*]",
            "wake x prev=0 waker=waker util=500",
            expect![[r#"
                v4.13..v5.5: cpu 2, IDLEST_ONLY, examined 4
                v5.18: cpu 1, ASYM_CAPACITY, examined 4
                v6.1..v7.3: cpu 1, ASYM_CAPACITY, examined 4, remote"#]],
        );
        check_all(
            "1x1x4:capacity=0-1/400 | 0[waker*] 1[c*] 2[a*] 3[b*]",
            "wake x prev=0 waker=waker util=500",
            expect![[r#"
                v4.13..v5.5: cpu 2, IDLEST_ONLY, examined 4
                v5.18..v7.3: cpu 0, ASYM_NONE, examined 4"#]],
        );
    }

    #[test]
    fn an_idle_target_too_small_is_passed_over() {
        check_all(
            "1x1x4:capacity=0-1/400 | 2[waker*]",
            "wake x prev=0 waker=waker util=500",
            expect![[r#"
            v4.13: cpu 0, STAY_LOCAL, examined 4
            v5.5: cpu 3, IDLEST_ONLY, examined 4
            v5.18: cpu 3, ASYM_CAPACITY, examined 4, WA_PREV_AVAILABLE 0
            v6.1: cpu 3, ASYM_CAPACITY, examined 4, WA_PREV_AVAILABLE 0, remote
            v6.3: cpu 3, ASYM_CAPACITY, examined 3, WA_PREV_AVAILABLE 0, remote
            v6.10..v7.3: cpu 3, ASYM_CAPACITY, examined 4, WA_PREV_AVAILABLE 0, remote"#]],
        );
    }

    #[test]
    fn v6_3_begins_behind_the_target() {
        check_wakeup(
            "v6.3",
            "1x1x4:capacity=0-1/400 | 2[waker*] 3[a*]",
            "wake x prev=0 waker=waker util=500",
            expect!["cpu 1, ASYM_CAPACITY, examined 4, WA_PREV_AVAILABLE 0, remote"],
        );
        check_wakeup(
            "v6.3+NO_ASYM_SCAN_FROM_NEXT",
            "1x1x4:capacity=0-1/400 | 2[waker*] 3[a*]",
            "wake x prev=0 waker=waker util=500",
            expect!["cpu 0, ASYM_CAPACITY, examined 4, WA_PREV_AVAILABLE 0, remote"],
        );
    }

    #[test]
    fn v7_2_prefers_an_idle_core() {
        check_wakeup(
            "v7.2",
            "1x1x4x2:capacity=0-3/400 | 4[waker*] llc0{cores}",
            "wake x prev=4 waker=waker util=500",
            expect!["cpu 6, ASYM_CAPACITY, examined 3, remote"],
        );
        check_wakeup(
            "v6.12",
            "1x1x4x2:capacity=0-3/400 | 4[waker*] llc0{cores}",
            "wake x prev=4 waker=waker util=500",
            expect!["cpu 5, ASYM_CAPACITY, examined 2, remote"],
        );
    }
}
