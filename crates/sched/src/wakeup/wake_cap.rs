//! Whether the smaller of two CPUs is too small for the wakee.
//!
//! Where CPUs differ, pulling a large task to a small CPU costs more than a cold cache.
//! Later kernels leave that to the idle search (`select_idle_capacity`).

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{View, WakeCap};

/// Kernel: wake_cap(), kernel/sched/fair.c, v4.13, v5.5; gone in v5.8.
pub(super) fn wake_cap(view: &View, task: TaskId, this: CpuId, prev: CpuId) -> bool {
    let sched = view.sched;
    match view.kernel().rules.wake_cap {
        WakeCap::Off => return false,
        WakeCap::Asym if !sched.domains.asym_active => return false,
        WakeCap::Asym | WakeCap::All => {}
    }
    let min = view.rq(prev).cpu_capacity_orig.min(view.rq(this).cpu_capacity_orig);
    let max = sched.domains.max_cpu_capacity;
    if max - min < max >> 3 {
        return false;
    }
    let util = match view.kernel().rules.wake_cap {
        WakeCap::All => sched.task(task).se.avg.util_avg,
        _ => sched.task_util_est(task),
    };
    util * 1280 >= min * 1024
}
