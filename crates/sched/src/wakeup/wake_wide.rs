//! Whether a wake-up spreads instead of pulling the wakee to the waker.

use crate::View;

use super::Wakeup;

/// True for one-to-many relations: both sides change partners at least as often as the
/// cache has CPUs, and one so much more than the other that all would be pulled together.
///
/// Kernel: wake_wide(), kernel/sched/fair.c, v6.12.
pub fn wake_wide(view: &View, wakeup: &Wakeup) -> bool {
    let waker = view.sched.wakees(wakeup).after(wakeup.task, view.jiffies(), view.kernel().tunables.hz);
    let wakee = view.sched.task(wakeup.task).wakee_flips;
    let factor = view.sched.domains.per_cpu[wakeup.this_cpu].llc_size;
    flips_spread(waker.flips, wakee, factor)
}

/// The comparison: both sides flip at least `factor` times, one of them that many times
/// as often as the other.
#[inline]
pub fn flips_spread(waker: u32, wakee: u32, factor: u32) -> bool {
    let (less, more) = (waker.min(wakee), waker.max(wakee));
    less >= factor && u64::from(more) >= u64::from(less) * u64::from(factor)
}
