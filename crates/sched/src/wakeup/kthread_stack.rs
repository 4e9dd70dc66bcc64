//! Let a per-CPU kthread stack with the task it wakes.
//!
//! A bound kworker that completes an I/O is running on its CPU, so that CPU does
//! not look idle and the task it wakes is sent elsewhere, once per completion.
//! The kworker is about to sleep: leaving the task where it was costs a short
//! wait and saves a migration.

use schedlab_topology::CpuId;

use crate::{Curr, Feature, View};

use super::Wakeup;

/// Whether the wakee may queue behind the kthread that wakes it. The idle task is such a kthread too; this shows when
/// a task was queued on its CPU without a request to switch.
///
/// Kernel: select_idle_sibling(), kernel/sched/fair.c, v5.6, v6.12.
pub(super) fn may_stack(view: &View, wakeup: &Wakeup, prev: CpuId) -> bool {
    let idle = view.rq(wakeup.this_cpu).curr == Curr::Idle;
    wakeup.waker(view).map_or(idle, |waker| waker.is_per_cpu_kthread())
        && (wakeup.in_task || !view.kernel().has(Feature::KthreadStackInTask))
        && prev == wakeup.this_cpu
        && view.rq(prev).nr_running <= 1
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::{check_all, check_wakeup};

    #[test]
    fn a_bound_kworker_stacks_with_the_task_it_wakes() {
        check_all(
            "llc0: 0[kworker/0:1*] 1[] 2[make* cc1] 3[]",
            "wake dbench prev=0 waker=kworker/0:1",
            expect![[r#"
                v4.13..v5.5: cpu 1, IDLE_CPU, examined 2
                v5.18..v7.3: cpu 0, KTHREAD_STACK, examined 0"#]],
        );
        check_wakeup(
            "v5.5+SIS_KTHREAD_STACK",
            "llc0: 0[kworker/0:1*] 1[] 2[make* cc1] 3[]",
            "wake dbench prev=0 waker=kworker/0:1",
            expect!["cpu 0, KTHREAD_STACK, examined 0"],
        );
        check_wakeup(
            "v6.12+NO_SIS_KTHREAD_STACK",
            "llc0: 0[kworker/0:1*] 1[] 2[make* cc1] 3[]",
            "wake dbench prev=0 waker=kworker/0:1",
            expect!["cpu 1, IDLE_CPU, examined 1, remote"],
        );
    }

    #[test]
    fn the_idle_task_does_so_where_a_task_was_queued_without_a_switch() {
        check_all(
            "llc0: 0[cc1] 1[] 2[make*] 3[]",
            "wake dbench prev=0 this=0",
            expect![[r#"
            v4.13..v5.5: cpu 1, IDLE_CPU, examined 2
            v5.18..v7.3: cpu 0, KTHREAD_STACK, examined 0"#]],
        );
        check_wakeup(
            "v6.12",
            "llc0: 0[cc1] 1[] 2[make*] 3[]",
            "wake dbench prev=0 this=0 irq",
            expect!["cpu 1, IDLE_CPU, examined 1, remote"],
        );
    }

    #[test]
    fn an_unbound_kworker_does_not() {
        check_all(
            "llc0: 0[kworker/u4*] 1[] 2[make* cc1] 3[]",
            "wake dbench prev=0 waker=kworker/u4",
            expect![[r#"
                v4.13..v5.5: cpu 1, IDLE_CPU, examined 2
                v5.18: cpu 1, IDLE_CPU, examined 1
                v6.1..v7.3: cpu 1, IDLE_CPU, examined 1, remote"#]],
        );
    }

    #[test]
    fn nor_one_with_a_task_waiting_behind_it() {
        check_wakeup(
            "v6.12",
            "llc0: 0[kworker/0:1* cc1] 1[] 2[make*] 3[]",
            "wake dbench prev=0 waker=kworker/0:1",
            expect!["cpu 1, IDLE_CPU, examined 1, remote"],
        );
    }

    #[test]
    fn nor_an_interrupt_that_hits_it_except_in_the_first_form() {
        check_wakeup(
            "v5.5+SIS_KTHREAD_STACK",
            "llc0: 0[kworker/0:1*] 1[]",
            "wake dbench prev=0 waker=kworker/0:1 irq",
            expect!["cpu 0, KTHREAD_STACK, examined 0"],
        );
        check_wakeup(
            "v6.12",
            "llc0: 0[kworker/0:1*] 1[]",
            "wake dbench prev=0 waker=kworker/0:1 irq",
            expect!["cpu 1, IDLE_CPU, examined 1, remote"],
        );
        check_wakeup(
            "v6.12+NO_KTHREAD_STACK_IN_TASK",
            "llc0: 0[kworker/0:1*] 1[]",
            "wake dbench prev=0 waker=kworker/0:1 irq",
            expect!["cpu 0, KTHREAD_STACK, examined 0"],
        );
    }
}
