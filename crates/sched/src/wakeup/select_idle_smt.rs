//! An idle thread of a core that is known to be warm.

use schedlab_topology::CpuId;

use crate::{Feature, IdleSmt, SchedDomain};

use super::select_idle_sibling::Search;

impl Search<'_> {
    /// The first idle thread of the core of `of`: the target (up to v5.11), after the scan,
    /// or the previous CPU, before it.
    ///
    /// Kernel: select_idle_smt(), kernel/sched/fair.c, v5.5, v5.18, v6.12.
    pub(super) fn select_idle_smt(&self, llc: &SchedDomain, of: CpuId) -> Option<CpuId> {
        let (sched, kernel) = (self.view.sched, self.view.kernel());
        let target_last = kernel.rules.idle_smt == IdleSmt::TargetLast;
        let skip_self = !target_last && kernel.has(Feature::SmtSkipPrev);
        let in_llc = !target_last && kernel.has(Feature::SmtLlcSpan);
        let mut sched_idle = None;
        for cpu in sched.domains.smt_mask[of].iter() {
            if skip_self && cpu == of || !self.allowed.contains(cpu) || in_llc && !llc.span.contains(cpu) {
                continue;
            }
            if self.scans(cpu) {
                // The old form prefers an idle thread to one that runs SCHED_IDLE tasks.
                if !target_last || sched.available_idle_cpu(cpu) {
                    return Some(cpu);
                }
                sched_idle = sched_idle.or(Some(cpu));
            }
        }
        sched_idle
    }
}
