//! Workers of unbound workqueues, which are sent back to the CPUs of their pool.
//!
//! A pool has the CPUs of a cache unless the administrator changes that, but its workers may run elsewhere. Since v6.6,
//! when there is work for a worker that is elsewhere, it is woken as if it had slept on a CPU of its pool. Each CPU
//! takes its turn, and no event shows which.
//!
//! Kernel: kick_pool(), kernel/workqueue.c, v6.12.

use schedlab_sched::Feature;
use schedlab_units::{TaskId, Time};

use crate::judge::Audit;
use crate::judge::opens::Open;
use crate::judge::placement;
use crate::report::listener::Listener;
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;

impl Shadow {
    /// Whether a task may be sent back to the CPUs of a pool.
    fn may_be_sent_back(&self, task: TaskId) -> bool {
        self.known(task).comm.as_bytes().starts_with(b"kworker/u")
            && self.sched.kernel.has(Feature::PoolSendsBack)
    }
}

impl<S: Listener> Audit<S> {
    /// Whether the choice follows if a worker was sent back to another cache.
    pub(crate) fn judge_sent_back(&mut self, open: &mut Open, now: Time) {
        let task = open.wakeup.task;
        if !self.shadow.may_be_sent_back(task) {
            return;
        }
        let slept_on = self.shadow.sched.task(task).wake_cpu;
        for cpu in std::iter::once(open.fate.cpu).chain(self.shadow.cpus()) {
            if self.shadow.sched.cpus_share_cache(cpu, slept_on) {
                continue;
            }
            self.shadow.sched.task_mut(task).wake_cpu = cpu;
            let possible = placement::of_wakeup(&mut self.shadow, &mut self.spare, &open.wakeup, now);
            if self.takes(open, possible, Unknown::WorkerPool) {
                return;
            }
        }
        self.shadow.sched.task_mut(task).wake_cpu = slept_on;
    }
}
