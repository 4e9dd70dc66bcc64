//! Whether a wake-up spreads instead of pulling the wakee to the waker.

use crate::View;

use super::Wakeup;

/// True for one-to-many relations: both sides change partners at least as often as the cache has CPUs, and
/// one so much more often than the other that all tasks would be pulled together.
///
/// Kernel: wake_wide(), kernel/sched/fair.c, v6.12.
pub fn wake_wide(view: &View, wakeup: &Wakeup) -> bool {
    let waker = view.sched.wakees(wakeup).after(wakeup.task, view.jiffies(), view.kernel().tunables.hz);
    let wakee = view.sched.task(wakeup.task).wakee_flips;
    let factor = view.sched.domains.per_cpu[wakeup.this_cpu].llc_size;
    let wide = flips_spread(waker.flips, wakee, factor);
    if wide {
        view.decided_by("wakee_flips", i64::from(waker.flips.min(wakee)));
    }
    wide
}

/// The comparison: both sides flip at least `factor` times, one of them that many times
/// as often as the other.
#[inline]
pub fn flips_spread(waker: u32, wakee: u32, factor: u32) -> bool {
    let (less, more) = (waker.min(wakee), waker.max(wakee));
    less >= factor && u64::from(more) >= u64::from(less) * u64::from(factor)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::check_all;

    #[test]
    fn a_server_of_many_does_not_pull() {
        check_all(
            "llc0: 0[server*] 1[] 2[] 3[] llc1: 4[a*] 5[] 6[] 7[]",
            "wake client prev=4 waker=server sync flips=16/4",
            expect![[r#"
                v4.13..v5.5: cpu 5, IDLE_CPU, examined 2, WAKE_WIDE 4, remote
                v5.18..v7.3: cpu 5, IDLE_CPU, examined 1, WAKE_WIDE 4, remote"#]],
        );
    }

    #[test]
    fn a_pair_does() {
        check_all(
            "llc0: 0[server*] 1[] 2[] 3[] llc1: 4[a*] 5[] 6[] 7[]",
            "wake client prev=4 waker=server sync flips=15/4",
            expect![[r#"
                v4.13: cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0
                v5.5: cpu 1, IDLE_CPU, examined 2, WA_SYNC 0
                v5.18: cpu 1, IDLE_CPU, examined 1, WA_SYNC 0
                v6.1..v7.3: cpu 1, IDLE_CPU, examined 1, WA_SYNC 0, remote"#]],
        );
        check_all(
            "llc0: 0[server*] 1[] 2[] 3[] llc1: 4[a*] 5[] 6[] 7[]",
            "wake client prev=4 waker=server sync flips=99/3",
            expect![[r#"
                v4.13: cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0
                v5.5: cpu 1, IDLE_CPU, examined 2, WA_SYNC 0
                v5.18: cpu 1, IDLE_CPU, examined 1, WA_SYNC 0
                v6.1..v7.3: cpu 1, IDLE_CPU, examined 1, WA_SYNC 0, remote"#]],
        );
    }
}
