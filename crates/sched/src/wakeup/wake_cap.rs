//! Whether the smaller of two CPUs is too small for the wakee.
//!
//! If CPUs differ in capacity, pulling a large task to a small CPU costs more than a cold cache. Later
//! kernels leave that to the idle search (`select_idle_capacity`).

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::fits_capacity;
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
    !fits_capacity(util, min)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::{check_all, check_wakeup};

    #[test]
    fn a_large_task_is_not_pulled_to_a_small_cpu() {
        check_all(
            "1x2x2:capacity=0-1/400 | 0[waker*] 2[a*]",
            "wake x prev=2 waker=waker sync util=500",
            expect![[r#"
                v4.13..v5.5: cpu 3, IDLEST_RECENT, examined 8, remote
                v5.18..v6.1: cpu 3, ASYM_CAPACITY, examined 4, WA_SYNC 0, remote
                v6.3: cpu 3, ASYM_CAPACITY, examined 3, WA_SYNC 0, remote
                v6.10..v7.3: cpu 3, ASYM_CAPACITY, examined 4, WA_SYNC 0, remote"#]],
        );
        check_wakeup(
            "v5.5+WAKE_CAP=off",
            "1x2x2:capacity=0-1/400 | 0[waker*] 2[a*]",
            "wake x prev=2 waker=waker sync util=500",
            expect!["cpu 1, IDLE_CPU, examined 2, WA_SYNC 0"],
        );
        check_wakeup(
            "v5.5",
            "1x2x2:capacity=0-1/400 | 0[waker*] 2[a*]",
            "wake x prev=2 waker=waker sync util=100",
            expect!["cpu 1, IDLE_CPU, examined 2, WA_SYNC 0"],
        );
    }
}
