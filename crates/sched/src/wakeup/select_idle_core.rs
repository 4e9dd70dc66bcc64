//! A core of which all threads are idle.
//!
//! The cache's `has_idle_cores` says whether a search may succeed; a search that fails
//! clears it, a CPU that goes idle on an idle core sets it again.

use schedlab_topology::{CpuId, CpuMask};

use crate::{Feature, Reason, Refused, ScanCounts, SchedDomain};

use super::select_idle_sibling::Search;

impl Search<'_> {
    /// Searches all cores from the target on, before anything else.
    ///
    /// Kernel: select_idle_core(), kernel/sched/fair.c, v4.13, v5.5, v5.10.
    pub(super) fn select_idle_core_alone(&self, llc: &SchedDomain, target: CpuId) -> Option<CpuId> {
        let sched = self.view.sched;
        let to_the_end = self.view.kernel().rules.scan_counts == ScanCounts::All;
        let mut cpus = llc.span.and(self.allowed);
        let mut next = target.index();
        while let Some(core) = next_wrapped(&cpus, next) {
            let mut idle = true;
            for cpu in sched.domains.smt_mask[core].iter() {
                self.view.examine(cpu);
                idle &= sched.available_idle_cpu(cpu);
                if !idle && !to_the_end {
                    break;
                }
            }
            cpus.remove_all(&sched.domains.smt_mask[core]);
            let taken = if idle { self.thread_of_idle_core(core) } else { None };
            if taken.is_some() {
                return taken;
            }
            if !idle {
                self.view.refuse(core, Refused::CoreBusy);
            }
            next = core.index() + 1;
        }
        None
    }

    /// The thread of an idle core to take: the one that the search found. With SIS_CAPACITY the first of full
    /// capacity, itself before its siblings.
    fn thread_of_idle_core(&self, core: CpuId) -> Option<CpuId> {
        if self.has_capacity(core) {
            return Some(core);
        }
        let mut siblings = self.view.sched.domains.smt_mask[core].iter();
        siblings.find(|&cpu| cpu != core && self.allowed.contains(cpu) && self.has_capacity(cpu))
    }

    /// The thread to take if the core of `core` is idle; if not, removes its threads from `cpus`. The first
    /// idle thread found is kept in `fallback`.
    ///
    /// Kernel: select_idle_core(), kernel/sched/fair.c, v5.18, v6.12.
    pub(super) fn select_idle_core(
        &self,
        core: CpuId,
        cpus: &mut CpuMask,
        fallback: &mut Option<(CpuId, Reason)>,
    ) -> Option<CpuId> {
        let sched = self.view.sched;
        let whole_mask = self.view.kernel().has(Feature::IdleCoreMaskAllowed);
        let may =
            |cpu, cpus: &CpuMask| if whole_mask { self.allowed.contains(cpu) } else { cpus.contains(cpu) };
        let mut idle = true;
        for cpu in sched.domains.smt_mask[core].iter() {
            self.view.examine(cpu);
            if sched.available_idle_cpu(cpu) {
                if fallback.is_none() && may(cpu, cpus) && self.has_capacity(cpu) {
                    *fallback = Some((cpu, Reason::IdleCoreFallback));
                }
                continue;
            }
            idle = false;
            if fallback.is_some() {
                break;
            }
            if sched.choose_sched_idle(cpu, self.has_idle_policy) && may(cpu, cpus) && self.has_capacity(cpu)
            {
                *fallback = Some((cpu, Reason::SchedIdleCpu));
                break;
            }
        }
        let taken = if idle { self.thread_of_idle_core(core) } else { None };
        if taken.is_some() {
            return taken;
        }
        if !idle {
            self.view.refuse(core, Refused::CoreBusy);
        }
        cpus.remove_all(&sched.domains.smt_mask[core]);
        None
    }
}

/// The first CPU at or above `start`, else the first of all.
fn next_wrapped(cpus: &CpuMask, start: usize) -> Option<CpuId> {
    cpus.next_from(start).or_else(|| cpus.first())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::{check_all, check_wakeup};

    #[test]
    fn an_idle_core_is_preferred_to_an_idle_thread() {
        check_all(
            "1x1x3x2 | 0[waker*] 2[a*] llc0{cores}",
            "wake x prev=0 waker=waker",
            expect![[r#"
            v4.13..v5.5: cpu 4, IDLE_CORE, examined 6
            v5.18: cpu 4, IDLE_CORE, examined 5
            v6.1..v7.3: cpu 4, IDLE_CORE, examined 5, remote"#]],
        );
        check_wakeup(
            "v5.10",
            "1x1x3x2 | 0[waker*] 2[a*] llc0{cores}",
            "wake x prev=0 waker=waker",
            expect!["cpu 4, IDLE_CORE, examined 4"],
        );
    }

    #[test]
    fn without_the_hint_nobody_looks_for_one() {
        check_all(
            "1x1x3x2 | 0[waker*] 2[a*]",
            "wake x prev=0 waker=waker",
            expect![[r#"
            v4.13..v5.5: cpu 1, IDLE_CPU, examined 2
            v5.18: cpu 1, IDLE_SMT, examined 2
            v6.1..v7.3: cpu 1, IDLE_SMT, examined 1, remote"#]],
        );
    }

    #[test]
    fn a_failed_search_takes_an_idle_thread_met_on_the_way() {
        check_all(
            "1x1x3x2 | 0[waker*] 2[a*] 4[b*] llc0{cores}",
            "wake x prev=0 waker=waker",
            expect![[r#"
                v4.13..v5.5: cpu 1, IDLE_CPU, examined 8, no idle core
                v5.18: cpu 1, IDLE_CORE_FALLBACK, examined 4, no idle core
                v6.1..v7.3: cpu 1, IDLE_CORE_FALLBACK, examined 4, no idle core, remote"#]],
        );
        check_wakeup(
            "v6.12+IDLE_CORE_MASK_ALLOWED",
            "1x1x3x2 | 0[waker*] 2[a*] 4[b*] llc0{cores}",
            "wake x prev=0 waker=waker allowed=0,2,4-5",
            expect!["cpu 5, IDLE_CORE_FALLBACK, examined 5, no idle core, remote"],
        );
        check_wakeup(
            "v6.12",
            "1x1x3x2 | 0[waker*] 1[c*] 2[a*] 3[idle:d*] 4[b*] 5[idle:e*] llc0{cores}",
            "wake x prev=0 waker=waker",
            expect!["cpu 3, SCHED_IDLE_CPU, examined 5, no idle core"],
        );
    }

    #[test]
    fn up_to_v5_18_it_may_be_an_isolated_one() {
        check_all(
            "1x1x3x2:isolcpus=1 | 0[waker*] 2[a*] 3[c*] 4[b*] 5[d*] llc0{cores}",
            "wake x prev=0 waker=waker",
            expect![[r#"
                v4.13..v5.5: cpu 1, IDLE_SMT, examined 13, no idle core, remote
                v5.18: cpu 1, IDLE_CORE_FALLBACK, examined 6, no idle core, remote
                v6.1..v7.3: cpu 0, NO_IDLE_CPU, examined 6, no idle core"#]],
        );
    }

    #[test]
    fn a_failed_search_without_any_idle_thread_stays() {
        check_all(
            "1x1x3x2 | 0[waker*] 1[c*] 2[a*] 3[d*] 4[b*] 5[e*] llc0{cores}",
            "wake x prev=0 waker=waker",
            expect![[r#"
                v4.13..v5.5: cpu 0, NO_IDLE_CPU, examined 14, no idle core
                v5.18..v7.3: cpu 0, NO_IDLE_CPU, examined 6, no idle core"#]],
        );
    }
}
