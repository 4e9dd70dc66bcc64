//! Whether a task fits a CPU, on machines with CPUs of different capacity.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{AsymFits, View};

/// Whether a utilisation, or a capacity, is less than a capacity with a fifth to spare.
///
/// Kernel: fits_capacity(), kernel/sched/fair.c, v5.5, v6.12; group_smaller_cpu_capacity(), v4.13.
pub(crate) fn fits_capacity(util: u64, capacity: u64) -> bool {
    util * 1280 < capacity * 1024
}

/// 1 if the task fits with that utilisation, 0 if not, -1 if all but its lower clamp does.
///
/// Kernel: util_fits_cpu(), kernel/sched/fair.c, v6.12; task_fits_capacity(), v5.18. Pressure by firmware is left out.
pub(crate) fn util_fits_cpu(view: &View, task: TaskId, util: u64, cpu: CpuId) -> i32 {
    if view.kernel().rules.asym_fits < AsymFits::Uclamp {
        let util = view.sched.uclamp_task_util(task, util);
        return i32::from(fits_capacity(util, view.sched.capacity_of(cpu)));
    }
    let bounds = view.sched.uclamp_eff(task);
    let orig = view.rq(cpu).cpu_capacity_orig;
    let (min, max) = (u64::from(bounds.min), u64::from(bounds.max));
    let mut fits = fits_capacity(util, view.sched.capacity_of(cpu));
    // A task capped to the CPU's size is made to fit, but nothing is capped to the largest.
    fits |= !(orig == 1024 && max == 1024) && max <= orig;
    let min = min.min(max);
    if fits && util < min && min > orig { -1 } else { i32::from(fits) }
}

/// Whether the early candidates of the idle search fit; always true if all CPUs have the same capacity.
///
/// Kernel: asym_fits_cpu(), kernel/sched/fair.c, v6.12; asym_fits_capacity(), v5.18.
pub(super) fn asym_fits_cpu(view: &View, task: TaskId, util: u64, cpu: CpuId) -> bool {
    if !view.sched.domains.asym_active {
        return true;
    }
    match view.kernel().rules.asym_fits {
        AsymFits::Off => true,
        AsymFits::Capacity | AsymFits::Uclamp => util_fits_cpu(view, task, util, cpu) > 0,
        AsymFits::UclampCores => {
            (!view.sched.domains.smt_active || view.sched.is_core_idle(cpu))
                && util_fits_cpu(view, task, util, cpu) > 0
        }
    }
}
