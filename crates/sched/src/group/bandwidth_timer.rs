//! Timers that hand out a group's CPU time: one at each period, one for returned time.
//!
//! A timer expires on one CPU, and gives throttled queues of all CPUs as much time as they need to run. From v6.4 on
//! it unthrottles only the queue of its own CPU; the other CPUs are interrupted and do it themselves.
//!
//! Left out: periods scaled up when they are too short to be kept.

use core::mem::take;

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::bandwidth::MIN_BANDWIDTH_EXPIRATION;
use crate::{CfsRqId, Effect, Feature, Sched, TgId};

impl Sched {
    /// The period timer of a group expired on a CPU. Returns its next expiry, if it continues.
    ///
    /// Kernel: sched_cfs_period_timer(), do_sched_cfs_period_timer(), kernel/sched/fair.c, v6.12.
    pub fn period_timer(&mut self, tg: TgId, this: CpuId, now: Time) -> Option<Time> {
        let pool = &mut self.tgs[tg.0 as usize].bandwidth;
        let mut overrun = 0;
        while pool.period_expires <= now.0 {
            pool.period_expires += pool.period;
            overrun += 1;
        }
        if pool.quota.is_none() {
            pool.period_active = false;
            return None;
        }
        pool.nr_periods += overrun;
        let throttled = !pool.throttled_cfs_rq.is_empty();
        let idle = pool.idle && !throttled;
        pool.period_active = !idle;
        if throttled {
            pool.nr_throttled += overrun;
        }
        if !idle || self.kernel.has(Feature::IdlePeriodRefills) {
            self.refill(tg, now);
        }
        if idle {
            return None;
        }
        let mut waiting = throttled;
        while waiting && self.tg(tg).bandwidth.runtime > 0 {
            waiting = self.distribute_cfs_runtime(tg, this, now);
        }
        let pool = &mut self.tgs[tg.0 as usize].bandwidth;
        pool.idle = !throttled;
        Some(Time(pool.period_expires))
    }

    /// The timer that hands out returned time expired on a CPU; or an earlier expiry of it, if it has been postponed
    /// since.
    ///
    /// Kernel: do_sched_cfs_slack_timer(), kernel/sched/fair.c, v6.12.
    pub fn slack_timer(&mut self, tg: TgId, this: CpuId, now: Time) {
        let slice = self.bandwidth_slice();
        let pool = &mut self.tgs[tg.0 as usize].bandwidth;
        if pool.slack_expires.is_none_or(|at| now.0 < at) {
            return;
        }
        pool.slack_expires = None;
        let soon = pool.period_expires < now.0 + MIN_BANDWIDTH_EXPIRATION;
        if !soon && pool.quota.is_some() && pool.runtime > slice {
            self.distribute_cfs_runtime(tg, this, now);
        }
    }

    /// Gives throttled queues as much time as they need to run. True if some still wait for time.
    ///
    /// Kernel: distribute_cfs_runtime(), kernel/sched/fair.c, v6.1, v6.12.
    fn distribute_cfs_runtime(&mut self, tg: TgId, this: CpuId, now: Time) -> bool {
        let by_interrupt = self.kernel.has(Feature::UnthrottleAsync);
        let mut lacks = false;
        let mut own = None;
        for cfs in self.tg(tg).bandwidth.throttled_cfs_rq.clone() {
            let cpu = self.cfs(cfs).cpu;
            if self.tg(tg).bandwidth.runtime == 0 {
                lacks = true;
                break;
            }
            if self.rqs[cpu].cfsb_csd_list.contains(&cfs) {
                continue;
            }
            // If tasks stop one by one, one may still run on its way to user mode.
            if self.cfs(cfs).runs().is_some() && self.kernel.has(Feature::BandwidthPerTask) {
                self.update_rq_clock(cpu, now);
                self.update_curr(cfs);
            }
            if !self.give_runtime(cfs) {
                lacks = true;
            } else if !by_interrupt {
                self.update_rq_clock(cpu, now);
                self.unthrottle_cfs_rq(cfs);
            } else if cpu == this {
                own = Some(cfs);
            } else {
                self.unthrottle_cfs_rq_async(cfs);
            }
        }
        if let Some(cfs) = own {
            self.update_rq_clock(this, now);
            self.unthrottle_cfs_rq(cfs);
        }
        // A queue that was unthrottled may have found others without time.
        lacks || !by_interrupt && !self.tg(tg).bandwidth.throttled_cfs_rq.is_empty()
    }

    /// Gives a queue as much time as it needs to run, or the rest. True if that is enough.
    fn give_runtime(&mut self, cfs: CfsRqId) -> bool {
        let queue = self.cfs(cfs);
        let (tg, needed) = (queue.tg, (1 - queue.runtime_remaining).max(0) as u64);
        let pool = &mut self.tgs[tg.0 as usize].bandwidth;
        let amount = needed.min(pool.runtime);
        pool.runtime -= amount;
        let expires = pool.runtime_expires;
        let queue = self.cfs_mut(cfs);
        queue.runtime_remaining += amount as i64;
        queue.runtime_expires = expires;
        queue.runtime_remaining > 0
    }

    /// Makes the CPU of a queue unthrottle it.
    ///
    /// Kernel: __unthrottle_cfs_rq_async(), kernel/sched/fair.c, v6.12.
    fn unthrottle_cfs_rq_async(&mut self, cfs: CfsRqId) {
        let cpu = self.cfs(cfs).cpu;
        let list = &mut self.rqs[cpu].cfsb_csd_list;
        list.push(cfs);
        if list.len() == 1 {
            self.effects.push(Effect::Unthrottle { cpu });
        }
    }

    /// An interrupted CPU unthrottles the queues that were given time.
    ///
    /// Kernel: __cfsb_csd_unthrottle(), kernel/sched/fair.c, v6.12.
    pub fn cfsb_csd_unthrottle(&mut self, cpu: CpuId, now: Time) {
        self.update_rq_clock(cpu, now);
        for cfs in take(&mut self.rqs[cpu].cfsb_csd_list) {
            if self.cfs(cfs).throttled {
                self.unthrottle_cfs_rq(cfs);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{Effect, EnqueueFlags, NICE_0_LOAD, NewTask, TgId};

    #[test]
    fn a_period_that_ends_without_a_quota_moves_the_timer_on() {
        let mut lab = Lab::new("v7.2", "1x1x1").without_ticks();
        let began = lab.time();
        let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), began);
        lab.sched.set_bandwidth(group, Some(20 * MS), 100 * MS, 0, began);
        lab.sched.set_bandwidth(group, None, 100 * MS, 0, began);
        let expires = lab.sched.tg(group).bandwidth.period_expires;
        lab.now = expires;
        assert_eq!(lab.sched.period_timer(group, CpuId(0), lab.time()), None);
        // A quota of a shorter period waits for the end of that one.
        lab.now += MS;
        lab.sched.set_bandwidth(group, Some(2 * MS), 10 * MS, 0, lab.time());
        assert_eq!(lab.sched.tg(group).bandwidth.period_expires, expires + 100 * MS);
    }

    /// A CPU that was offline calls the scheduler, which leaves the clock alone.
    #[test]
    fn periods_begin_again_from_the_time_of_day() {
        let mut lab = Lab::new("v7.2", "1x1x1").without_ticks();
        let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), lab.time());
        lab.sched.set_bandwidth(group, Some(20 * MS), 10 * MS, 0, lab.time());
        let before = lab.sched.tg(group).bandwidth.period_expires;
        lab.sched.tgs[group.0 as usize].bandwidth.period_active = false;
        lab.sched.rqs[CpuId(0)].called = before + 25 * MS;
        let (cfs, _) = lab.sched.made_on_cpu(group, CpuId(0));
        lab.sched.assign_cfs_rq_runtime(cfs, MS);
        assert_eq!(lab.sched.tg(group).bandwidth.period_expires, before + 30 * MS);
    }

    #[test]
    fn a_period_without_use_fills_the_pool_from_v5_14_on() {
        let left = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
            let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), lab.time());
            lab.sched.set_bandwidth(group, Some(20 * MS), 100 * MS, 0, lab.time());
            let pool = &mut lab.sched.tgs[group.0 as usize].bandwidth;
            // A CPU has returned time of an earlier period.
            (pool.idle, pool.runtime) = (true, 23 * MS);
            lab.now = pool.period_expires;
            assert_eq!(lab.sched.period_timer(group, CpuId(0), lab.time()), None);
            format!("{} ms", lab.sched.tg(group).bandwidth.runtime / MS)
        };
        expect![[r#"
            v4.13..v5.5: 23 ms
            v5.18..v7.3: 20 ms"#]]
        .assert_eq(&by_kernel("", left));
    }

    #[test]
    fn an_idle_cpu_is_asked_or_not_when_an_empty_queue_has_quota_again() {
        let asked = |load: u64| {
            by_kernel("", |kernel| {
                let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
                let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), lab.time());
                let (cfs, _) = lab.sched.made_on_cpu(group, CpuId(0));
                let task = lab.hog("root", 0);
                lab.sleep(task);
                while lab.sched.task(task).on_rq {
                    lab.run(MS);
                }
                // Queued without a request to switch, as when a task moves to another group.
                lab.sched.activate(task, CpuId(0), EnqueueFlags::default(), lab.time());
                lab.sched.bandwidth_used = true;
                let queue = lab.sched.cfs_mut(cfs);
                (queue.throttled, queue.throttle_count, queue.avg.load_sum) = (true, 1, load);
                lab.sched.unthrottle_cfs_rq(cfs);
                format!("asked {}", lab.sched.rqs[CpuId(0)].need_resched != crate::NeedResched::default())
            })
        };
        // The averages of a queue with some load left go on to be updated.
        expect![[r#"
            v4.13..v5.5: asked false
            v5.18..v7.3: asked true"#]]
        .assert_eq(&asked(1000));
        expect!["v4.13..v7.3: asked false"].assert_eq(&asked(0));
    }

    #[test]
    fn other_cpus_are_let_go_on_at_once_or_interrupted_and_asked_once() {
        let told = |kernel: &str| -> String {
            let mut lab = Lab::new(kernel, "1x1x3").without_ticks();
            let now = lab.time();
            let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), now);
            lab.sched.set_bandwidth(group, Some(20 * MS), 100 * MS, 0, now);
            for cpu in 0..3 {
                let spec = NewTask { tg: group, ..lab.spec() };
                lab.fork("hog", cpu, spec);
            }
            for _ in 0..20 {
                lab.run(MS);
                for cpu in 0..3 {
                    lab.sched.tick(CpuId(cpu), lab.time());
                }

                lab.settle();
            }
            let throttled = |lab: &Lab| -> String {
                let queues = lab.sched.tg(group).cfs_rq.iter();
                queues.map(|&cfs| if lab.sched.cfs(cfs).throttled { 'x' } else { '.' }).collect()
            };
            let mut told = throttled(&lab);
            lab.sched.effects.clear();
            // The timer is late, and expires again before the other CPUs handled their interrupts.
            lab.now += 200 * MS;
            for _ in 0..2 {
                lab.sched.period_timer(group, CpuId(1), lab.time());
                told += &format!(" timer {}", throttled(&lab));
                lab.now += 100 * MS;
            }
            for effect in core::mem::take(&mut lab.sched.effects) {
                if let Effect::Unthrottle { cpu } = effect {
                    lab.sched.cfsb_csd_unthrottle(cpu, lab.time());
                    told += &format!(" irq {} {}", cpu.0, throttled(&lab));
                }
            }
            told
        };
        expect![[r#"
            v4.13..v6.3: xxx timer ... timer ...
            v6.10..v7.3: xxx timer x.x timer x.x irq 2 x.. irq 0 ..."#]]
        .assert_eq(&by_kernel("", told));
    }
}
