//! Which CPUs the pool of a workqueue's worker has.
//!
//! A pool has the CPUs of a cache unless the administrator changes that, but its workers may run elsewhere. Since v6.6,
//! when there is work for a worker that is elsewhere, it is woken as if it had slept on a CPU of its pool. Each CPU
//! takes its turn, and no event shows which.
//!
//! Kernel: kick_pool(), kernel/workqueue.c, v6.12.

use schedlab_sched::Feature;
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::Shadow;
use super::about::{About, Reading};

/// Tried where nothing else leads a worker to its CPU.
pub const SENT_BACK: Reading = Reading::new("SENT_BACK", "a worker was sent back to the CPUs of its pool");

pub(super) const ABOUT: About = About {
    readings: &[SENT_BACK],
    ..About::new("WORKER_POOL", "on which CPU of its pool a worker was woken")
};

/// Looks for a CPU of another cache on which a worker was woken as if it had slept there, `first` first, and keeps it.
pub fn find(shadow: &mut Shadow, task: TaskId, first: CpuId, mut is_so: impl FnMut(&mut Shadow) -> bool) {
    let is_worker = shadow.known(task).comm.as_bytes().starts_with(b"kworker/u");
    if !is_worker || !shadow.sched.kernel.has(Feature::PoolSendsBack) {
        return;
    }
    let slept_on = shadow.sched.task(task).wake_cpu;
    for cpu in std::iter::once(first).chain(shadow.cpus()) {
        if shadow.sched.cpus_share_cache(cpu, slept_on) {
            continue;
        }
        shadow.sched.task_mut(task).wake_cpu = cpu;
        if is_so(shadow) {
            return;
        }
    }
    shadow.sched.task_mut(task).wake_cpu = slept_on;
}
