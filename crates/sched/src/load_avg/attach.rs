//! An entity's part in a queue's averages: when it joins, leaves, migrates asleep, or is new.

use super::adjust;
use crate::pelt::{LOAD_AVG_MAX, sub_positive};
use crate::{CfsRqId, Curr, Feature, PeltClock, PeltSums, Sched, SchedAvg, SeId, UpdateFlags};
use schedlab_units::{TaskId, Time};

impl Sched {
    /// Adds an entity to its queue's average, which must be up to date.
    ///
    /// Kernel: attach_entity_load_avg(), kernel/sched/fair.c, v6.12 and v4.13.
    pub fn attach_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        let SchedAvg { last_update_time, period_contrib, .. } = self.cfs(cfs).avg;
        if self.kernel.rules.pelt == PeltClock::InContribution {
            let own = &mut self.se_mut(se).avg;
            own.last_update_time = last_update_time;
            let own = *own;
            let queue = self.cfs_mut(cfs);
            queue.avg.load_avg += own.load_avg;
            queue.avg.load_sum += own.load_sum;
            queue.avg.util_avg += own.util_avg;
            queue.avg.util_sum += own.util_sum;
            queue.propagate = true;
            return;
        }
        let weight = self.scale_load_down(self.se(se).load.weight);
        let own = &mut self.se_mut(se).avg;
        own.last_update_time = last_update_time;
        own.period_contrib = period_contrib;
        let divider = own.divider();
        own.util_sum = own.util_avg * divider;
        own.runnable_sum = own.runnable_avg * divider;
        let load_sum = own.load_avg * divider;
        own.load_sum = if weight < load_sum { load_sum / weight } else { 1 };
        let own = *own;
        self.enqueue_load_avg(cfs, se);
        let avg = &mut self.cfs_mut(cfs).avg;
        avg.util_avg += own.util_avg;
        avg.util_sum += own.util_sum;
        avg.runnable_avg += own.runnable_avg;
        avg.runnable_sum += own.runnable_sum;
        self.add_tg_cfs_propagate(cfs, own.load_sum as i64);
    }

    /// Removes an entity from its queue's average, which must be up to date.
    ///
    /// Kernel: detach_entity_load_avg(), kernel/sched/fair.c, v6.12 and v4.13.
    pub fn detach_entity_load_avg(&mut self, cfs: CfsRqId, se: SeId) {
        let own = self.se(se).avg;
        let form = self.kernel.rules.pelt_sums;
        if self.kernel.rules.pelt == PeltClock::InContribution {
            let queue = self.cfs_mut(cfs);
            let avg = &mut queue.avg;
            sub_positive(&mut avg.load_avg, own.load_avg);
            sub_positive(&mut avg.load_sum, own.load_sum);
            sub_positive(&mut avg.util_avg, own.util_avg);
            sub_positive(&mut avg.util_sum, own.util_sum);
            queue.propagate = true;
            return;
        }
        self.dequeue_load_avg(cfs, se);
        let avg = &mut self.cfs_mut(cfs).avg;
        let (util, runnable) = (own.util_avg as i64, own.runnable_avg as i64);
        adjust(form, &mut avg.util_avg, &mut avg.util_sum, -util, -(own.util_sum as i64));
        adjust(form, &mut avg.runnable_avg, &mut avg.runnable_sum, -runnable, -(own.runnable_sum as i64));
        if form == PeltSums::Synced {
            avg.util_sum = avg.util_avg * avg.divider();
            avg.runnable_sum = avg.runnable_avg * avg.divider();
        }
        self.add_tg_cfs_propagate(cfs, -(own.load_sum as i64));
    }

    /// Decays a sleeper's average to its queue's last update, without changing the queue.
    ///
    /// Kernel: sync_entity_load_avg(), kernel/sched/fair.c, v6.12.
    pub fn sync_entity_load_avg(&mut self, se: SeId) {
        let cfs = self.se(se).cfs_rq.expect("entity has a queue");
        let last = self.cfs(cfs).avg.last_update_time;
        self.age_blocked_se(last, cfs, se);
    }

    /// The utilisation of a sleeper after [`Sched::sync_entity_load_avg`].
    pub(crate) fn synced_util_avg(&self, se: SeId) -> u64 {
        let cfs = self.se(se).cfs_rq.expect("entity has a queue");
        self.aged_blocked(self.cfs(cfs).avg.last_update_time, cfs, se).util_avg
    }

    /// A sleeper leaves its queue: records its load for the queue's next update.
    ///
    /// Kernel: remove_entity_load_avg(), kernel/sched/fair.c, v6.12.
    pub fn remove_entity_load_avg(&mut self, se: SeId) {
        self.sync_entity_load_avg(se);
        let own = self.se(se).avg;
        let cfs = self.se(se).cfs_rq.expect("entity has a queue");
        let removed = &mut self.cfs_mut(cfs).removed;
        removed.nr += 1;
        removed.load_avg += own.load_avg;
        removed.load_sum += own.load_sum;
        removed.util_avg += own.util_avg;
        removed.runnable_avg += own.runnable_avg;
    }

    /// Decays an entity that leaves an idle CPU by the time that the CPU's clock lags.
    ///
    /// Kernel: migrate_se_pelt_lag(), kernel/sched/fair.c, v6.1.
    pub fn migrate_se_pelt_lag(&mut self, se: SeId, now: Time) {
        let cfs = self.se(se).cfs_rq.expect("entity has a queue");
        let queue = self.cfs(cfs);
        let rq = &self.rqs[queue.cpu];
        if rq.curr != Curr::Idle || self.se(se).avg.is_decayed() {
            return;
        }
        // None: the clock has been stopped for throttling.
        let Some(throttled) = queue.throttled_pelt_idle else { return };
        let idle_at = rq.clock_pelt_idle - throttled;
        let last = queue.avg.last_update_time;
        let estimate = if idle_at < last { last } else { idle_at + now.0.saturating_sub(rq.clock_idle) };
        self.age_blocked_se(estimate, cfs, se);
    }

    /// The effect of a migration on a task's average; call before its queue is changed. `migrating` means
    /// that it is queued, and moved by the balancer or by affinity.
    ///
    /// Kernel: migrate_task_rq_fair(), kernel/sched/fair.c, v6.12, v5.18 and v4.13: the part about averages.
    pub fn migrate_load_avg(&mut self, task: TaskId, migrating: bool, now: Time) {
        let se = SeId(task.0);
        if self.kernel.rules.pelt == PeltClock::InContribution {
            self.remove_entity_load_avg(se);
        } else if !migrating {
            self.remove_entity_load_avg(se);
            if self.kernel.has(Feature::MigratePeltLag) {
                self.migrate_se_pelt_lag(se, now);
            }
        } else if !self.kernel.has(Feature::DetachAtDequeue) {
            self.detach_entity_cfs_rq(se);
        }
        self.se_mut(se).avg.last_update_time = 0;
    }

    /// A task's queue changes without a change of CPU (another group): decays its average to the old queue's
    /// last update and continues from the new queue's clock.
    ///
    /// Kernel: set_task_rq_fair(), kernel/sched/fair.c, v6.12.
    pub fn set_task_rq_fair(&mut self, se: SeId, prev: CfsRqId, next: CfsRqId) {
        if !self.kernel.has(Feature::AttachAgeLoad) || self.se(se).avg.last_update_time == 0 {
            return;
        }
        self.age_blocked_se(self.cfs(prev).avg.last_update_time, prev, se);
        self.se_mut(se).avg.last_update_time = self.cfs(next).avg.last_update_time;
    }

    /// Detaches an entity and propagates that to all levels above.
    ///
    /// Kernel: detach_entity_cfs_rq(), kernel/sched/fair.c, v6.12.
    pub fn detach_entity_cfs_rq(&mut self, se: SeId) {
        let cfs = self.se(se).cfs_rq.expect("entity has a queue");
        if self.se(se).avg.last_update_time == 0 {
            return;
        }
        self.update_load_avg(cfs, se, UpdateFlags::NONE);
        self.detach_entity_load_avg(cfs, se);
        self.update_tg_load_avg(cfs);
        self.propagate_entity_cfs_rq(se);
    }

    /// Attaches an entity and propagates that to all levels above.
    ///
    /// Kernel: attach_entity_cfs_rq(), kernel/sched/fair.c, v6.12.
    pub fn attach_entity_cfs_rq(&mut self, se: SeId) {
        let cfs = self.se(se).cfs_rq.expect("entity has a queue");
        let skip_age = !self.kernel.has(Feature::AttachAgeLoad);
        self.update_load_avg(cfs, se, UpdateFlags { skip_age, ..UpdateFlags::NONE });
        self.attach_entity_load_avg(cfs, se);
        self.update_tg_load_avg(cfs);
        self.propagate_entity_cfs_rq(se);
    }

    /// Replaces a task's averages by those of a task that was running and runnable for `running` and `runnable` parts
    /// of 1024 in an unknown past.
    pub fn set_averages(&mut self, task: TaskId, running: u16, runnable: u16, now: Time) {
        if !self.task(task).policy.is_fair() {
            return;
        }
        let se = SeId(task.0);
        self.update_rq_clock(self.task(task).cpu, now);
        self.detach_entity_cfs_rq(se);
        let weighted = self.kernel.rules.pelt == PeltClock::InContribution;
        let weight = self.scale_load_down(self.se(se).load.weight);
        let avg = &mut self.se_mut(se).avg;
        avg.load_avg = weight * u64::from(runnable) / 1024;
        avg.runnable_avg = runnable.into();
        avg.util_avg = running.into();
        avg.last_update_time = 0;
        if weighted {
            (avg.load_sum, avg.util_sum) = (avg.load_avg * LOAD_AVG_MAX, avg.util_avg * LOAD_AVG_MAX);
        }
        self.attach_entity_cfs_rq(se);
    }

    /// A new entity: a task starts as if it had always been runnable, a group's entity at zero. Its first sleep makes
    /// an estimate of its utilisation, however short it ran.
    ///
    /// Kernel: init_entity_runnable_average(), kernel/sched/fair.c, v6.12 and v4.13.
    pub fn init_entity_runnable_average(&mut self, se: SeId) {
        let weighted = self.kernel.rules.pelt == PeltClock::InContribution;
        let load_avg = if se.is_task() { self.scale_load_down(self.se(se).load.weight) } else { 0 };
        let entity = self.se_mut(se);
        entity.util_avg_changed = true;
        let avg = &mut entity.avg;
        *avg = SchedAvg { load_avg, ..SchedAvg::default() };
        if weighted {
            // One unit short of a period, so that the first update computes averages.
            avg.period_contrib = 1023;
            avg.load_sum = load_avg * LOAD_AVG_MAX;
        }
    }

    /// Initial utilisation of a new task: its weight's share of the queue's, at most half of the CPU's
    /// remaining capacity.
    ///
    /// Kernel: post_init_entity_util_avg(), kernel/sched/fair.c, v6.12, v6.1 and v4.13.
    pub fn post_init_entity_util_avg(&mut self, task: TaskId) {
        let se = SeId(task.0);
        let cfs = self.se(se).cfs_rq.expect("entity has a queue");
        let queue = self.cfs(cfs);
        let weighted = self.kernel.rules.pelt == PeltClock::InContribution;
        let scale = if weighted { 1024 } else { u64::from(self.topology.cpu(queue.cpu).capacity) };
        let cap = (scale as i64 - queue.avg.util_avg as i64) / 2;
        if !self.task(task).policy.is_fair() {
            self.se_mut(se).avg.last_update_time = self.cfs_rq_clock_pelt(cfs);
            return;
        }
        let weight = self.se(se).load.weight;
        let weight =
            if self.kernel.has(Feature::InitialUtilUnscaled) { self.scale_load_down(weight) } else { weight };
        let (queue_util, queue_load) = (queue.avg.util_avg, queue.avg.load_avg);
        let runnable_on = self.kernel.has(Feature::RunnableAvg);
        let avg = &mut self.se_mut(se).avg;
        if cap > 0 {
            let cap = cap as u64;
            avg.util_avg =
                if queue_util != 0 { (queue_util * weight / (queue_load + 1)).min(cap) } else { cap };
            if weighted {
                avg.util_sum = avg.util_avg * LOAD_AVG_MAX;
            }
        }
        if runnable_on {
            avg.runnable_avg = avg.util_avg;
        }
        if self.kernel.has(Feature::AttachAtFork) {
            self.attach_entity_cfs_rq(se);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::{Curr, DequeueFlags, NICE_0_LOAD, Policy, SeId, TgId};

    #[test]
    fn what_was_detached_for_32_periods_comes_back_halved_or_as_it_was() {
        // As when a task is SCHED_FIFO for a while. Half of 1024, rounded down on the way.
        let load = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a* b] 1[]");
            let b = drawn.task("b");
            let se = SeId(b.0);
            let sched = &mut drawn.sched;
            sched.deactivate(b, DequeueFlags { save: true, ..DequeueFlags::default() }, NOW);
            sched.detach_entity_cfs_rq(se);
            let before = sched.se(se).avg.load_avg;
            sched.update_rq_clock(CpuId(0), Time(NOW.0 + 32 * 1024 * 1024));
            sched.attach_entity_cfs_rq(se);
            format!("{before} -> {}", sched.se(se).avg.load_avg)
        };
        for kernel in ["v5.5", "v6.12", "v7.2"] {
            assert_eq!(load(kernel), "1024 -> 511", "{kernel}");
            assert_eq!(load(&format!("{kernel}+NO_ATTACH_AGE_LOAD")), "1024 -> 1024", "{kernel}");
        }
    }

    #[test]
    fn sums_of_a_queue_are_what_its_averages_come_to_or_keep_their_own_rest() {
        // Two tasks of 1024, and a rest of 5 units in each sum.
        let sums = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a* b] 1[]");
            let (b, sched) = (drawn.task("b"), &mut drawn.sched);
            let cfs = sched.se(SeId(b.0)).cfs_rq.unwrap();
            let avg = &mut sched.cfs_mut(cfs).avg;
            (avg.util_avg, avg.runnable_avg) = (1500, 1500);
            (avg.util_sum, avg.runnable_sum) = (1500 * avg.divider() + 5, 1500 * avg.divider() + 5);
            let own = &mut sched.se_mut(SeId(b.0)).avg;
            (own.util_avg, own.util_sum) = (500, 500 * own.divider());
            (own.runnable_avg, own.runnable_sum) = (500, 500 * own.divider());
            sched.detach_entity_load_avg(cfs, SeId(b.0));
            let avg = sched.cfs(cfs).avg;
            let rest = |sum: u64, average: u64| sum as i64 - (average * avg.divider()) as i64;
            (rest(avg.util_sum, avg.util_avg), rest(avg.runnable_sum, avg.runnable_avg))
        };
        assert_eq!(sums("v5.10"), (0, 0));
        assert_eq!(sums("v6.1"), (5, 5));
    }

    #[test]
    fn averages_that_are_set_are_those_of_the_queue_too() {
        for kernel in ["v4.13", "v5.5", "v6.12", "v7.2"] {
            let mut drawn = draw(kernel, "1x1x2 | 0[a*] 1[]");
            let (a, sched) = (drawn.task("a"), &mut drawn.sched);
            sched.set_averages(a, 256, 512, NOW);
            let own = sched.se(SeId(a.0)).avg;
            let queue = sched.cfs(sched.se(SeId(a.0)).cfs_rq.unwrap()).avg;
            assert_eq!((own.load_avg, own.util_avg), (512, 256), "{kernel}");
            assert_eq!((queue.load_avg, queue.util_avg), (512, 256), "{kernel}");
            assert_eq!(own.last_update_time, queue.last_update_time, "{kernel}");
        }
    }

    #[test]
    fn load_that_left_a_group_leaves_the_level_above_at_once_or_at_its_next_update() {
        // A task of the group follows one of another class.
        let left = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a* b] 1[]");
            let [a, b] = ["a", "b"].map(|name| drawn.task(name));
            let (sched, cpu) = (&mut drawn.sched, CpuId(0));
            let group = sched.new_group(TgId::ROOT, NICE_0_LOAD, cpu, NOW);
            sched.move_task_to_group(b, group, NOW);
            sched.set_policy(cpu, a, Policy::Fifo(1), NOW);
            let (queue, se) = (sched.tg(group).cfs_rq[0], sched.tg(group).se[0]);
            sched.cfs_mut(queue).avg.util_avg += 300;
            sched.se_mut(se).avg.util_avg = sched.cfs(queue).avg.util_avg;
            let removed = &mut sched.cfs_mut(queue).removed;
            (removed.nr, removed.util_avg) = (1, 300);
            sched.switch_to(cpu, Curr::Task(b), NOW);
            let [below, above] = [sched.cfs(queue).avg.util_avg, sched.se(se).avg.util_avg];
            format!("{} more", above as i64 - below as i64)
        };
        expect![[r#"
            v4.13..v6.10: 300 more
            v6.12..v7.3: 0 more"#]]
        .assert_eq(&by_kernel("", left));
    }
}
