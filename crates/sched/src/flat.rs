//! One time line for all tasks of a CPU; tasks of groups have their share as weight.
//!
//! Up to v7.2 each group has a time line of its own, and its entity competes in that of its parent; a task waits until
//! all its groups are picked. Under FLAT_GROUPS entities of groups only carry load: the queue of each level counts it
//! and averages it, and shares follow from it. Tasks compete in the queue of the root by [`Entity::h_load`], which is
//! the product of their shares on the way up, recomputed when they are queued, when they are picked and at their
//! ticks.
//!
//! Kernel: enqueue_hierarchy(), dequeue_hierarchy(), __calc_prop_weight(), reweight_eevdf(), kernel/sched/fair.c, v7.3.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::group::MIN_SHARES;
use crate::weight::NICE_0_LOAD;
use crate::{
    CfsRq, CfsRqId, DequeueFlags, EnqueueFlags, FairPolicy, Feature, Kernel, LoadWeight, Sched, SeId,
    UpdateFlags, UtilEstUpdate,
};

/// `value * old / new` in the kernel's integers.
fn rescale(value: i64, old: u64, new: u64) -> i64 {
    value.wrapping_mul(old as i64) / new.max(1) as i64
}

impl Kernel {
    /// Whether tasks of all groups of a CPU are in one timeline.
    #[inline]
    pub(crate) fn is_flat(&self) -> bool {
        self.has(Feature::FlatGroups) && self.rules.policy == FairPolicy::Eevdf
    }
}

impl CfsRq {
    /// How many entities compete in the time line of this queue, the running one included.
    #[inline]
    pub(crate) fn nr_competing(&self, kernel: &Kernel) -> u32 {
        if kernel.is_flat() { self.h_nr_queued } else { self.nr_queued }
    }
}

impl Sched {
    /// [`Kernel::is_flat`].
    #[inline]
    pub(crate) fn is_flat(&self) -> bool {
        self.kernel.is_flat()
    }

    /// The queue in whose time line an entity competes.
    #[inline]
    pub(crate) fn line_of(&self, se: SeId) -> CfsRqId {
        let cfs = self.cfs_rq_of(se);
        if self.is_flat() { self.root_cfs_id(self.cfs(cfs).cpu) } else { cfs }
    }

    /// [`CfsRq::nr_competing`].
    #[inline]
    pub(crate) fn nr_competing(&self, cfs: CfsRqId) -> u32 {
        self.cfs(cfs).nr_competing(&self.kernel)
    }

    /// Changes that number while an entity is placed.
    #[inline]
    pub(crate) fn count_competing(&mut self, cfs: CfsRqId, change: fn(u32) -> u32) {
        let flat = self.is_flat();
        let queue = self.cfs_mut(cfs);
        let nr = if flat { &mut queue.h_nr_queued } else { &mut queue.nr_queued };
        *nr = change(*nr);
    }

    /// Charges the running entity of a time line.
    ///
    /// Kernel: update_curr_eevdf(), kernel/sched/fair.c, v7.3.
    #[inline]
    pub(crate) fn update_curr_line(&mut self, line: CfsRqId) {
        if self.is_flat() {
            if let Some(curr) = self.cfs(line).curr {
                let cfs = self.cfs_rq_of(curr);
                self.update_curr(cfs);
            }
        } else {
            self.update_curr(line);
        }
    }

    /// Charges a running task in its own queue; in v7.3 in those of its groups as well.
    ///
    /// Kernel: update_curr_fair(), kernel/sched/fair.c, v7.2, v7.3.
    pub(crate) fn update_curr_fair(&mut self, task: SeId) {
        let mut level = Some(task);
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            self.update_curr(cfs);
            level = self.se(se).parent.filter(|_| self.is_flat());
        }
    }

    /// A weight scaled by the share that an entity has of its queue.
    ///
    /// Kernel: __calc_prop_weight(), kernel/sched/fair.c, v7.3.
    fn prop_weight(&self, cfs: CfsRqId, se: SeId, weight: u64) -> u64 {
        let entity = self.se(se);
        let whole = if entity.parent.is_some() { self.cfs(cfs).load.weight } else { NICE_0_LOAD };
        (weight * entity.load.weight / whole).max(MIN_SHARES)
    }

    /// Queues a task: its load on all levels, itself in the time line of the root.
    ///
    /// Kernel: enqueue_task_fair(), kernel/sched/fair.c, v7.3.
    pub(crate) fn enqueue_task_flat(&mut self, cpu: CpuId, se: SeId, flags: EnqueueFlags) {
        let root = self.root_cfs_id(cpu);
        let curr = self.cfs(root).curr == Some(se);
        let first = self.cfs(root).h_nr_queued == 0;
        if curr {
            self.place_entity(root, se, flags.initial);
        }
        let weight = self.enqueue_hierarchy(se, flags);
        if !curr {
            self.reweight_line(root, se, weight, false);
            self.count_competing(root, |nr| nr - 1);
            self.place_entity(root, se, flags.initial);
            self.count_competing(root, |nr| nr + 1);
            self.timeline_add(root, se);
        }
        if first {
            self.first_fair_task(cpu);
        }
        self.add_nr_running(cpu, 1);
        self.hrtick_update(cpu);
    }

    fn enqueue_hierarchy(&mut self, task: SeId, mut flags: EnqueueFlags) -> u64 {
        let runnable = !self.se(task).sched_delayed || flags.wakeup;
        let mut idle = self.se_is_idle(task);
        let mut weight = NICE_0_LOAD;
        let mut level = Some(task);
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            self.update_curr(cfs);
            if self.se(se).on_rq {
                self.update_group_level(cfs, se, None);
            } else {
                self.update_load_avg(cfs, se, UpdateFlags::ENQUEUE);
                self.se_update_runnable(se);
                self.update_cfs_group(se);
                self.account_entity_enqueue(cfs, se);
                if flags.migrated {
                    self.se_mut(se).exec_start = 0;
                }
                self.se_mut(se).on_rq = true;
                if self.cfs(cfs).nr_queued == 1 {
                    self.first_queued(cfs);
                }
            }
            self.count_enqueued(cfs, runnable, &mut idle);
            weight = self.prop_weight(cfs, se, weight);
            flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            level = self.se(se).parent;
        }
        weight
    }

    /// Removes a task from the time line of the root and its load from all levels. False if it stays because its
    /// dequeue is delayed.
    ///
    /// Kernel: __dequeue_task(), kernel/sched/fair.c, v7.3.
    pub(crate) fn dequeue_task_flat(&mut self, se: SeId, flags: DequeueFlags) -> bool {
        let cfs = self.cfs_rq_of(se);
        let cpu = self.cfs(cfs).cpu;
        let root = self.root_cfs_id(cpu);
        let was_sched_idle = self.sched_idle_rq(cpu);
        self.clear_buddies(root, se);
        self.update_curr_line(root);
        self.update_entity_lag(root, se);
        if self.delays_dequeue(root, se, flags) {
            self.update_load_avg(cfs, se, UpdateFlags::NONE);
            if self.kernel.rules.util_est_update == UtilEstUpdate::Within {
                self.util_est_update(TaskId(se.0), cpu, true);
            }
            self.set_delayed(se);
            return false;
        }
        self.dequeue_hierarchy(se, flags);
        if self.cfs(root).curr != Some(se) {
            self.timeline_remove(root, se);
        }
        if self.kernel.has(Feature::PlaceRelDeadline) && !flags.sleep {
            let entity = self.se_mut(se);
            entity.deadline = entity.deadline.wrapping_sub(entity.vruntime);
            entity.rel_deadline = true;
        }
        self.rqs[cpu].nr_running -= 1;
        if !was_sched_idle && self.sched_idle_rq(cpu) {
            self.rqs[cpu].next_balance = self.rqs[cpu].clock / self.tick_ns();
        }
        if flags.delayed {
            self.clear_delayed(se);
            self.tasks[se.0 as usize].on_rq = false;
        }
        true
    }

    fn dequeue_hierarchy(&mut self, task: SeId, mut flags: DequeueFlags) {
        let runnable = flags.sleep || flags.delayed || !self.se(task).sched_delayed;
        let mut idle = self.se_is_idle(task);
        let mut leaves = true;
        let mut level = Some(task);
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            self.update_curr(cfs);
            if leaves {
                self.dequeue_level(cfs, se, flags);
                leaves = self.cfs(cfs).load.weight == 0;
            } else {
                self.update_group_level(cfs, se, None);
            }
            self.count_dequeued(cfs, 1, runnable, &mut idle);
            flags.sleep = true;
            flags.delayed = false;
            flags.special = false;
            level = self.se(se).parent;
        }
    }

    /// Kernel: dequeue_entity(), kernel/sched/fair.c, v7.3.
    fn dequeue_level(&mut self, cfs: CfsRqId, se: SeId, flags: DequeueFlags) {
        let migrates = se.is_task() && flags.migrate;
        self.update_load_avg(cfs, se, if migrates { UpdateFlags::MIGRATE } else { UpdateFlags::UPDATE_TG });
        if se.is_task() && flags.sleep && !flags.delayed {
            self.util_est_update(TaskId(se.0), self.cfs(cfs).cpu, true);
        }
        self.se_update_runnable(se);
        self.se_mut(se).on_rq = false;
        self.account_entity_dequeue(cfs, se);
        if self.bandwidth_used {
            self.return_cfs_rq_runtime(cfs);
        }
        self.update_cfs_group(se);
        if self.cfs(cfs).nr_queued == 0 {
            self.last_dequeued(cfs);
        }
    }

    /// Changes a task's weight in the time line of the root, around the average.
    ///
    /// Kernel: reweight_eevdf(), rescale_entity(), kernel/sched/fair.c, v7.3.
    fn reweight_line(&mut self, root: CfsRqId, se: SeId, weight: u64, on_rq: bool) {
        let old = self.se(se).line_load().weight;
        if old == weight {
            return;
        }
        let rules = self.kernel.rules;
        let load = self.kernel.divisor(LoadWeight::new(weight));
        if !on_rq {
            let entity = self.se_mut(se);
            entity.vlag = rescale(entity.vlag, old, weight);
            if entity.rel_deadline {
                entity.deadline = rescale(entity.deadline as i64, old, weight) as u64;
            }
            entity.h_load = Some(load);
            return;
        }
        let curr = self.cfs(root).curr == Some(se);
        let average = self.avg_vruntime(root);
        let lag = rescale(self.entity_lag(root, se, average), old, weight);
        let protected = curr && self.se(se).is_protected(&rules);
        if !curr {
            self.timeline_remove(root, se);
        }
        let around = |value: u64| {
            let distance = value.wrapping_sub(average) as i64;
            average.wrapping_add(rescale(distance, old, weight) as u64)
        };
        let entity = self.se_mut(se);
        entity.vlag = lag;
        entity.deadline = around(entity.deadline);
        entity.rel_deadline = false;
        if protected {
            entity.vprot = around(entity.vprot);
        }
        entity.vruntime = average.wrapping_sub(lag as u64);
        entity.h_load = Some(load);
        if !curr {
            self.timeline_add(root, se);
        }
    }

    /// The weight of a task at the tick follows the shares of its groups.
    ///
    /// Kernel: task_tick_fair(), kernel/sched/fair.c, v7.3.
    pub(crate) fn reweight_running(&mut self, task: SeId) {
        let mut weight = NICE_0_LOAD;
        let mut level = Some(task);
        while let Some(se) = level {
            weight = self.prop_weight(self.cfs_rq_of(se), se, weight);
            level = self.se(se).parent;
        }
        let root = self.line_of(task);
        self.reweight_line(root, task, weight, self.se(task).on_rq);
    }

    /// Puts the running task back among the waiting ones; `next` is the fair task that follows, if one does.
    ///
    /// Kernel: put_prev_task_fair(), kernel/sched/fair.c, v7.3.
    pub(crate) fn put_prev_flat(&mut self, cpu: CpuId, prev: SeId, next: Option<SeId>) {
        let root = self.root_cfs_id(cpu);
        let last = match next {
            Some(next) => self.shared_queue(prev, next),
            None => root,
        };
        let mut level = Some(prev);
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            if self.se(se).on_rq {
                self.update_curr(cfs);
                self.update_load_avg(cfs, se, UpdateFlags::NONE);
            }
            self.cfs_mut(cfs).h_curr = None;
            level = if cfs == last { None } else { self.se(se).parent };
        }
        self.cfs_mut(root).curr = None;
        if self.se(prev).on_rq {
            self.timeline_add(root, prev);
        }
    }

    /// Lets a task run; `first` is false if it runs already and only its parameters changed.
    ///
    /// Kernel: set_next_task_fair(), kernel/sched/fair.c, v7.3.
    pub(crate) fn set_next_flat(&mut self, cpu: CpuId, task: SeId, first: bool) {
        let root = self.root_cfs_id(cpu);
        self.clear_buddies(root, task);
        let on_rq = self.se(task).on_rq;
        if on_rq {
            self.timeline_remove(root, task);
        }
        let mut weight = NICE_0_LOAD;
        let mut level = Some(task);
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            if !first || self.cfs(cfs).h_curr.is_none() {
                self.set_next_level(cfs, se);
            }
            if on_rq {
                weight = self.prop_weight(cfs, se, weight);
            }
            level = self.se(se).parent;
        }
        self.account_levels(TaskId(task.0), root);
        self.cfs_mut(root).curr = Some(task);
        if on_rq {
            self.reweight_line(root, task, weight, true);
            if first {
                self.level(root, task).set_protect_slice();
            }
        }
    }

    /// Kernel: set_next_entity(), kernel/sched/fair.c, v7.3.
    fn set_next_level(&mut self, cfs: CfsRqId, se: SeId) {
        if self.se(se).on_rq {
            self.update_load_avg(cfs, se, UpdateFlags::UPDATE_TG);
        }
        let clock = self.rqs[self.cfs(cfs).cpu].clock_task;
        self.cfs_mut(cfs).h_curr = Some(se);
        let entity = self.se_mut(se);
        entity.exec_start = clock;
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{CfsRqId, NewTask, SeId, TgId};

    /// A CPU with tasks of a group and one task without a group, and the group.
    fn beside_a_group(kernel: &str, tasks: usize, shares: u64) -> (Lab, Vec<schedlab_units::TaskId>, TgId) {
        let mut lab = Lab::new(kernel, "1x1x1");
        let tg = lab.sched.new_group(TgId::ROOT, shares, CpuId(0), lab.time());
        let mut all: Vec<_> =
            (0..tasks).map(|_| lab.fork("member", 0, NewTask { tg, ..lab.spec() })).collect();
        all.push(lab.hog("alone", 0));
        (lab, all, tg)
    }

    #[test]
    fn tasks_of_a_group_share_its_weight_in_one_time_line() {
        let told = |kernel: &str| -> String {
            let (mut lab, tasks, tg) = beside_a_group(kernel, 3, 3 << 20);
            lab.run(200 * MS);
            let shares = lab.shares(&tasks, 4000 * MS);
            let root = lab.sched.cfs(CfsRqId(0)).timeline.len();
            let own = lab.sched.tg(tg).cfs_rq[0];
            alloc::format!("{shares:?}, {root} and {} wait", lab.sched.cfs(own).timeline.len())
        };
        expect![[r#"
            v4.13..v6.12: [250, 250, 250, 250], 1 and 2 wait
            v7.2: [250, 249, 249, 250], 1 and 2 wait
            v7.3: [250, 250, 250, 250], 3 and 0 wait"#]]
        .assert_eq(&by_kernel("", told));
    }

    #[test]
    fn the_weight_in_the_time_line_is_the_product_of_the_shares() {
        let (mut lab, tasks, tg) = beside_a_group("v7.3", 2, 1 << 20);
        let below = lab.sched.new_group(tg, 1 << 19, CpuId(0), lab.time());
        let nested = lab.fork("nested", 0, NewTask { tg: below, ..lab.spec() });
        lab.run(20 * MS);
        let line = |lab: &Lab, task: schedlab_units::TaskId| lab.sched.se(SeId(task.0)).line_load().weight;
        let weights: Vec<u64> = tasks.iter().chain([&nested]).map(|&task| line(&lab, task)).collect();
        expect!["[419430, 419430, 1048576, 209715]"].assert_eq(&alloc::format!("{weights:?}"));
        // A sleeping task leaves its share to the others once each of them is queued, picked or ticked again.
        while lab.sched.rqs[CpuId(0)].curr.task() != Some(nested) {
            lab.run(MS);
        }
        lab.sleep(nested);
        lab.run(100 * MS);
        expect!["[524288, 524288, 1048576]"].assert_eq(&alloc::format!(
            "{:?}",
            tasks.iter().map(|&task| line(&lab, task)).collect::<Vec<_>>()
        ));
    }

    #[test]
    fn a_sleeper_that_stayed_queued_brings_the_queue_of_the_root_up_to_date_when_it_wakes() {
        let told = |kernel: &str| -> String {
            let (mut lab, tasks, tg) = beside_a_group(kernel, 2, 1 << 20);
            lab.run(50 * MS);
            let sleeper = loop {
                if let Some(task) = lab.sched.rqs[CpuId(0)].curr.task() {
                    lab.sleep(task);
                    if lab.sched.se(SeId(task.0)).sched_delayed && task != tasks[2] {
                        break task;
                    }
                    lab.wake(task);
                }
                lab.run(MS / 2);
            };
            lab.now += MS;
            let own = lab.sched.tg(tg).cfs_rq[0];
            let times = |lab: &Lab| [CfsRqId(0), own].map(|cfs| lab.sched.cfs(cfs).avg.last_update_time);
            let before = times(&lab);
            lab.sched.update_rq_clock(CpuId(0), lab.time());
            lab.sched.requeue_delayed_entity(SeId(sleeper.0));
            let after = times(&lab);
            let moved = |level: usize| if after[level] > before[level] { "aged" } else { "left" };
            alloc::format!("root {}, group {}", moved(0), moved(1))
        };
        for (kernel, expected) in [("v7.2", "root left, group aged"), ("v7.3", "root aged, group left")] {
            assert_eq!(told(kernel), expected, "{kernel}");
        }
    }
}
