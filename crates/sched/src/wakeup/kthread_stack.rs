//! Let a per-CPU kthread stack with the task it wakes.
//!
//! A bound kworker that completes an I/O is running on its CPU, so that CPU does
//! not look idle and the task it wakes is sent elsewhere, once per completion.
//! The kworker is about to sleep: leaving the task where it was costs a short
//! wait and saves a migration.

use schedlab_topology::CpuId;

use crate::{Feature, View};

use super::Wakeup;

/// Whether the wakee may queue behind the kthread that wakes it.
///
/// Kernel: select_idle_sibling(), kernel/sched/fair.c, v5.6, v6.12.
pub(super) fn may_stack(view: &View, wakeup: &Wakeup, prev: CpuId) -> bool {
    wakeup.waker(view).is_some_and(|waker| waker.is_per_cpu_kthread())
        && (wakeup.in_task || !view.kernel().has(Feature::KthreadStackInTask))
        && prev == wakeup.this_cpu
        && view.rq(prev).nr_running <= 1
}
