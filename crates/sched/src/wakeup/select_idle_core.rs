//! A core of which all threads are idle.
//!
//! The cache's `has_idle_cores` says whether a search may succeed; a search that fails
//! clears it, a CPU that goes idle on an idle core sets it again.

use schedlab_topology::{CpuId, CpuMask};

use crate::{Feature, Reason, Refused, SchedDomain};

use super::select_idle_sibling::Search;

impl Search<'_> {
    /// Searches all cores from the target on, before anything else.
    ///
    /// Kernel: select_idle_core(), kernel/sched/fair.c, v4.13, v5.5.
    pub(super) fn select_idle_core_alone(&self, llc: &SchedDomain, target: CpuId) -> Option<CpuId> {
        let sched = self.view.sched;
        let mut cpus = llc.span.and(self.allowed);
        let mut next = target.index();
        while let Some(core) = next_wrapped(&cpus, next) {
            let mut idle = true;
            for cpu in sched.domains.smt_mask[core].iter() {
                cpus.clear(cpu);
                self.view.examine();
                idle &= sched.available_idle_cpu(cpu);
            }
            if idle && self.has_capacity(core) {
                return Some(core);
            }
            if !idle {
                self.view.refuse(core, Refused::CoreBusy);
            }
            next = core.index() + 1;
        }
        None
    }

    /// Whether the core of `core` is idle; if not, takes its threads off `cpus`. The first
    /// idle thread met on the way is kept in `fallback`.
    ///
    /// Kernel: select_idle_core(), kernel/sched/fair.c, v5.18, v6.12.
    pub(super) fn select_idle_core(
        &self,
        core: CpuId,
        cpus: &mut CpuMask,
        fallback: &mut Option<(CpuId, Reason)>,
    ) -> bool {
        let sched = self.view.sched;
        let whole_mask = self.view.kernel().has(Feature::IdleCoreMaskAllowed);
        let may =
            |cpu, cpus: &CpuMask| if whole_mask { self.allowed.contains(cpu) } else { cpus.contains(cpu) };
        let mut idle = true;
        for cpu in sched.domains.smt_mask[core].iter() {
            self.view.examine();
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
        if idle && self.has_capacity(core) {
            return true;
        }
        if !idle {
            self.view.refuse(core, Refused::CoreBusy);
        }
        cpus.remove_all(&sched.domains.smt_mask[core]);
        false
    }
}

/// The first CPU at or above `start`, else the first of all.
fn next_wrapped(cpus: &CpuMask, start: usize) -> Option<CpuId> {
    cpus.next_from(start).or_else(|| cpus.first())
}
