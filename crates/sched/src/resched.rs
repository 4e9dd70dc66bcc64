//! Requests to reschedule the current task of a CPU.

use schedlab_topology::CpuId;

use crate::{Curr, Effect, Sched};

impl Sched {
    /// Sets a reschedule bit of a CPU's current task, unless one that subsumes it is set.
    ///
    /// Kernel: __resched_curr(), kernel/sched/core.c, v7.2.
    #[inline]
    pub fn resched_curr(&mut self, cpu: CpuId, lazy: bool) {
        let rq = &mut self.rqs[cpu];
        let lazy = lazy && rq.curr != Curr::Idle;
        if rq.switches_at_once() || lazy && rq.need_resched.lazy {
            return;
        }
        if lazy {
            rq.need_resched.lazy = true;
        } else {
            rq.need_resched.full = true;
        }
        self.effects.push(Effect::Resched { cpu, lazy });
    }

    /// Requests a reschedule on behalf of a fair task, with the bit of the preemption model.
    ///
    /// Kernel: resched_curr_lazy(), kernel/sched/core.c, v7.2.
    #[inline]
    pub(crate) fn resched_fair(&mut self, cpu: CpuId) {
        let lazy = self.kernel.preempt.lazy_request(false, self.rqs[cpu].curr == Curr::Idle);
        self.resched_curr(cpu, lazy);
    }

    /// Requests a reschedule on behalf of a higher class, or for a change that cannot wait.
    ///
    /// Kernel: resched_curr(), kernel/sched/core.c, v7.2.
    pub(crate) fn resched_now(&mut self, cpu: CpuId) {
        let lazy = self.kernel.preempt.lazy_request(true, self.rqs[cpu].curr == Curr::Idle);
        self.resched_curr(cpu, lazy);
    }
}
