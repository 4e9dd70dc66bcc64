//! Whether a CPU is idle, to those who would give it work.

use schedlab_topology::CpuId;

use crate::{Curr, PendingWake, Sched};

impl Sched {
    /// Nothing runs, nothing is queued, and no wake-up is on its way.
    ///
    /// Kernel: idle_cpu(), kernel/sched/core.c, v6.12 and v5.5.
    #[inline]
    pub fn idle_cpu(&self, cpu: CpuId) -> bool {
        let rq = &self.rqs[cpu];
        let pending = match self.kernel.rules.pending_wake {
            PendingWake::List => !rq.wake_list.is_empty(),
            PendingWake::Flag => rq.ttwu_pending,
        };
        rq.curr == Curr::Idle && rq.nr_running == 0 && !pending
    }

    /// All other threads of the CPU's core are idle.
    ///
    /// Kernel: is_core_idle(), kernel/sched/fair.c, v6.12.
    pub fn is_core_idle(&self, cpu: CpuId) -> bool {
        self.domains.smt_mask[cpu].iter().all(|thread| thread == cpu || self.idle_cpu(thread))
    }

    /// The CPUs share a last-level cache.
    ///
    /// Kernel: cpus_share_cache(), kernel/sched/core.c, v6.12.
    #[inline]
    pub fn cpus_share_cache(&self, a: CpuId, b: CpuId) -> bool {
        a == b || self.domains.per_cpu[a].llc_id == self.domains.per_cpu[b].llc_id
    }
}
