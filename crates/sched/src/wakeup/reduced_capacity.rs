//! Pass over idle CPUs that lose much of their time to interrupts and RT.
//!
//! Such a CPU looks idle between two bursts, but a task placed there makes slow progress. The search takes an
//! idle CPU that keeps at least 80 % of its capacity; if there is none, the idle one with most capacity left.
//!
//! Source: mail of 25 Sep 2017, "Make scheduler scaled capacity aware" (v4 0/3). The mail has no code; our
//! interpretation: every candidate of the idle search (target, previous CPU, recently used CPU, core, CPU,
//! sibling) and of `find_idlest_group_cpu` must be idle *and* of full capacity, and candidates that failed
//! only on capacity are remembered; the remembered one with most capacity is taken instead of the target when
//! the search finds nothing. Of an idle core the first thread of full capacity is taken.

use core::cell::Cell;

use schedlab_topology::CpuId;

use crate::{Refused, View};

/// Whether a CPU keeps at least 80 % of its capacity (819 of 1024).
pub(super) fn full_capacity(view: &View, cpu: CpuId) -> bool {
    let rq = view.rq(cpu);
    rq.cpu_capacity >= (rq.cpu_capacity_orig * 819) >> 10
}

/// The best idle CPU that was passed over.
#[derive(Default)]
pub(super) struct Backup(Cell<Option<(u64, CpuId)>>);

impl Backup {
    /// Whether an idle CPU is of full capacity; if not, it is remembered.
    pub(super) fn accepts(&self, view: &View, cpu: CpuId) -> bool {
        if full_capacity(view, cpu) {
            return true;
        }
        view.refuse(cpu, Refused::ReducedCapacity);
        let capacity = view.rq(cpu).cpu_capacity;
        if self.0.get().is_none_or(|(best, _)| capacity > best) {
            self.0.set(Some((capacity, cpu)));
        }
        false
    }

    /// The remembered CPU, the first of equals.
    pub(super) fn best(&self) -> Option<CpuId> {
        self.0.get().map(|(_, cpu)| cpu)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;

    use crate::wakeup::drawn::check_wakeup;

    #[test]
    fn an_idle_cpu_full_of_interrupts_is_passed_over() {
        check_wakeup(
            "v4.13",
            "llc0: 0[waker*] 1[ ; capacity=500] 2[ ; capacity=600] 3[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 1, IDLE_CPU, examined 2"],
        );
        check_wakeup(
            "v4.13+SIS_CAPACITY",
            "llc0: 0[waker*] 1[ ; capacity=500] 2[ ; capacity=600] 3[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 3, IDLE_CPU, examined 4"],
        );
        check_wakeup(
            "v6.12+SIS_CAPACITY",
            "llc0: 0[waker*] 1[ ; capacity=500] 2[ ; capacity=600] 3[]",
            "wake x prev=0 waker=waker",
            expect!["cpu 3, IDLE_CPU, examined 3, remote"],
        );
    }

    #[test]
    fn the_best_of_them_is_taken_when_no_other_is_idle() {
        check_wakeup(
            "v4.13+SIS_CAPACITY",
            "llc0: 0[waker*] 1[ ; capacity=500] 2[ ; capacity=600] 3[a*]",
            "wake x prev=0 waker=waker",
            expect!["cpu 2, BEST_REDUCED, examined 4"],
        );
        check_wakeup(
            "v6.12+SIS_CAPACITY",
            "llc0: 0[waker*] 1[ ; capacity=500] 2[ ; capacity=600] 3[a*]",
            "wake x prev=0 waker=waker",
            expect!["cpu 2, BEST_REDUCED, examined 4, remote"],
        );
    }

    #[test]
    fn target_and_previous_cpu_are_judged_alike() {
        check_wakeup(
            "v4.13+SIS_CAPACITY",
            "llc0: 0[waker*] 1[ ; capacity=500] 2[] 3[a*]",
            "wake x prev=1 waker=waker",
            expect!["cpu 2, IDLE_CPU, examined 3, WA_SHARE_CACHE 0"],
        );
        check_wakeup(
            "v4.13+SIS_CAPACITY",
            "llc0: 0[waker*] 1[ ; capacity=819] 2[] 3[a*]",
            "wake x prev=1 waker=waker",
            expect!["cpu 1, PREV_IDLE, examined 0, WA_SHARE_CACHE 0"],
        );
    }

    #[test]
    fn an_idle_core_gives_its_thread_of_full_capacity() {
        for (kernel, queues, expected) in [
            ("v4.13+SIS_CAPACITY", "2[ ; capacity=200]", expect!["cpu 3, IDLE_CORE, examined 4"]),
            ("v6.12+SIS_CAPACITY", "2[ ; capacity=500]", expect!["cpu 3, IDLE_CORE, examined 4, remote"]),
            (
                "v4.13+SIS_CAPACITY",
                "2[ ; capacity=200] 3[ ; capacity=300]",
                expect!["cpu 4, IDLE_CORE, examined 6"],
            ),
            (
                "v6.12+SIS_CAPACITY",
                "2[ ; capacity=500] 3[ ; capacity=300]",
                expect!["cpu 4, IDLE_CORE, examined 6, remote"],
            ),
        ] {
            check_wakeup(
                kernel,
                &format!("1x1x3x2 | 0[waker*] {queues} llc0{{cores}}"),
                "wake x prev=0 waker=waker",
                expected,
            );
        }
    }

    #[test]
    fn forks_avoid_them_by_the_second_patch() {
        check_wakeup(
            "v5.5",
            "2x1x2 | 0[make* a] 1[b* c] 2[ ; exit=2 capacity=500] 3[ ; exit=9]",
            "fork by=make",
            expect!["cpu 2, IDLEST_SHALLOW, examined 8"],
        );
        check_wakeup(
            "v5.5+FIC_CAPACITY",
            "2x1x2 | 0[make* a] 1[b* c] 2[ ; exit=2 capacity=500] 3[ ; exit=9]",
            "fork by=make",
            expect!["cpu 3, IDLEST_SHALLOW, examined 8"],
        );
        check_wakeup(
            "v6.12+FIC_CAPACITY",
            "2x1x2 | 0[make* a] 1[b* c] 2[ ; exit=2 capacity=500] 3[ ; exit=9]",
            "fork by=make",
            expect!["cpu 3, IDLEST_SHALLOW, examined 8"],
        );
        check_wakeup(
            "v6.12+FIC_CAPACITY",
            "2x1x2 | 0[make*] 1[a*] 2[ ; exit=2 capacity=500] 3[ ; exit=9 capacity=600]",
            "fork by=make allowed=2-3",
            expect!["cpu 3, BEST_REDUCED, examined 6"],
        );
    }
}
