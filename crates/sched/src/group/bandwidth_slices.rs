//! The rest of a quota slice when its period is over.
//!
//! It was meant to expire: a group must not save time on one CPU for the next period. But from v3.16 to v4.17 the
//! check was inverted: if the pool was refilled meanwhile, the queue keeps its rest, tick by tick, and only cannot
//! return it. This was fixed in v4.18, by a sequence number that each refill raises. Then slices really expired, and
//! groups that had used little were throttled; so since v5.4 slices do not expire.
//!
//! Kernel: expire_cfs_rq_runtime(), __return_cfs_rq_runtime(), kernel/sched/fair.c, v4.13; commits 512ac999d275, de53fd7aedb1.

use crate::{BandwidthSlices, CfsRqId, Sched};

impl Sched {
    /// A charged queue may lose its rest if its time is over: from v4.18 on if the pool was refilled, before that if
    /// it was not. Otherwise the clocks of two CPUs differ, and the queue gets one more tick.
    ///
    /// Kernel: expire_cfs_rq_runtime(), kernel/sched/fair.c, v4.13; commit 512ac999d275.
    pub(super) fn expire_cfs_rq_runtime(&mut self, cfs: CfsRqId) {
        if self.kernel.rules.bandwidth_slices == BandwidthSlices::Used {
            return;
        }
        let (tick, queue) = (self.tick_ns(), self.cfs(cfs));
        if self.rqs[queue.cpu].clock < queue.runtime_expires || queue.runtime_remaining < 0 {
            return;
        }
        let pool = &self.tg(queue.tg).bandwidth;
        let is_lost = match self.kernel.rules.bandwidth_slices {
            BandwidthSlices::Lost => queue.expires_seq != pool.expires_seq,
            _ => queue.runtime_expires == pool.runtime_expires,
        };
        let queue = self.cfs_mut(cfs);
        if is_lost {
            queue.runtime_remaining = 0;
        } else {
            queue.runtime_expires += tick;
        }
    }

    /// Whether a queue may return its rest.
    ///
    /// Kernel: __return_cfs_rq_runtime(), kernel/sched/fair.c, v4.13.
    pub(super) fn may_return(&self, cfs: CfsRqId) -> bool {
        let queue = self.cfs(cfs);
        self.kernel.rules.bandwidth_slices == BandwidthSlices::Used
            || queue.runtime_expires == self.tg(queue.tg).bandwidth.runtime_expires
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{CfsRqId, NICE_0_LOAD, NewTask, TgId};

    /// A task alone in a group with 20 ms per 100 ms.
    fn limited(kernel: &str) -> (Lab, schedlab_units::TaskId, TgId, CfsRqId) {
        let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
        let now = lab.time();
        let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), now);
        lab.sched.set_bandwidth(group, Some(20 * MS), 100 * MS, 0, now);
        let task = lab.fork("a", 0, NewTask { tg: group, ..lab.spec() });
        let cfs = lab.sched.tg(group).cfs_rq[0];
        (lab, task, group, cfs)
    }

    #[test]
    fn what_is_left_is_not_given_back_after_its_period_up_to_v5_3() {
        let given = |wait: u64| {
            move |kernel: &str| {
                let (mut lab, task, group, cfs) = limited(kernel);
                lab.run(wait * MS);
                // As if it had not run since it took its slice.
                lab.sched.update_rq_clock(CpuId(0), lab.time());
                lab.sched.task_mut(task).se.exec_start = lab.sched.rqs[CpuId(0)].clock_task;
                lab.sched.cfs_mut(cfs).runtime_remaining = 4_000_000;
                let before = lab.sched.tg(group).bandwidth.runtime;
                lab.sleep(task);
                let pool = &lab.sched.tg(group).bandwidth;
                format!("{} us", (pool.runtime - before) / 1000)
            }
        };
        expect!["v4.13..v7.3: 3000 us"].assert_eq(&by_kernel("", given(1)));
        expect![[r#"
            v4.13: 0 us
            v5.5..v7.3: 3000 us"#]]
        .assert_eq(&by_kernel("", given(101)));
    }

    #[test]
    fn what_is_left_is_lost_up_to_v5_3_where_the_pool_was_not_filled_again() {
        let left = |refilled: u64| {
            move |kernel: &str| {
                let (mut lab, _, group, cfs) = limited(kernel);
                lab.now += 110 * MS;
                lab.sched.update_rq_clock(CpuId(0), lab.time());
                lab.sched.tgs[group.0 as usize].bandwidth.runtime_expires += refilled * 100 * MS;
                lab.sched.cfs_mut(cfs).runtime_remaining = 4_000_000;
                lab.sched.expire_cfs_rq_runtime(cfs);
                format!("{} us", lab.sched.cfs(cfs).runtime_remaining / 1000)
            }
        };
        expect!["v4.13..v7.3: 4000 us"].assert_eq(&by_kernel("", left(1)));
        expect![[r#"
            v4.13: 0 us
            v5.5..v7.3: 4000 us"#]]
        .assert_eq(&by_kernel("", left(0)));
    }

    #[test]
    fn what_is_left_is_lost_from_v4_18_to_v5_3_once_the_pool_was_filled_again() {
        let left = |refills: u64| {
            let (mut lab, _, group, cfs) = limited("v5.5+BANDWIDTH_SLICES=lost");
            lab.now += 110 * MS;
            lab.sched.update_rq_clock(CpuId(0), lab.time());
            lab.sched.tgs[group.0 as usize].bandwidth.expires_seq += refills;
            let queue = lab.sched.cfs_mut(cfs);
            (queue.runtime_remaining, queue.runtime_expires) = (4_000_000, 0);
            lab.sched.expire_cfs_rq_runtime(cfs);
            lab.sched.cfs(cfs).runtime_remaining / 1000
        };
        assert_eq!([left(0), left(1)], [4000, 0]);
    }

    #[test]
    fn each_return_put_off_that_it_is_handed_out_up_to_v5_2() {
        let at = |kernel: &str| {
            let (mut lab, _, group, cfs) = limited(kernel);
            let start = lab.now;
            let elsewhere = lab.sched.tg(group).cfs_rq[1];
            let pool = &mut lab.sched.tgs[group.0 as usize].bandwidth;
            pool.runtime = 10 * MS;
            pool.throttled_cfs_rq.push(elsewhere);
            let mut told = alloc::vec::Vec::new();
            for ms in [0, 3] {
                let now = Time(start + ms * MS);
                lab.sched.update_rq_clock(CpuId(0), now);
                let queue = lab.sched.cfs_mut(cfs);
                queue.runtime_remaining = 2_000_000;
                queue.nr_queued = 0;
                lab.sched.return_cfs_rq_runtime(cfs);
                told.push((lab.sched.tg(group).bandwidth.slack_expires.unwrap() - start) / MS);
            }
            format!("after {told:?} ms")
        };
        expect![[r#"
            v4.13: after [5, 8] ms
            v5.5..v7.3: after [5, 5] ms"#]]
        .assert_eq(&by_kernel("", at));
    }
}
