//! How entities enter and leave a queue's time line, and become and cease to be its running entity.

use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::level::Level;
use crate::{
    BuddiesClear, CandidateOrder, CfsRqId, FairPolicy, Feature, LoadWeight, Protection, Queued, Sched, SeId,
    UpdateFlags,
};

impl Level<'_> {
    #[inline]
    fn timeline_add(&mut self, se: SeId) {
        let (rules, vruntime) = (&self.kernel.rules, self.entity.vruntime);
        if rules.policy == FairPolicy::Eevdf {
            self.queue.account_avg(rules, vruntime, self.entity.line_load().weight, true);
        }
        let (key, slice) = (self.entity.key(rules), self.entity.slice);
        self.queue.timeline.insert(Queued { key, vruntime, slice, se });
    }

    #[inline]
    fn timeline_remove(&mut self, se: SeId) {
        let rules = &self.kernel.rules;
        self.queue.timeline.remove(self.entity.key(rules), se);
        if rules.policy == FairPolicy::Eevdf {
            self.queue.account_avg(rules, self.entity.vruntime, self.entity.line_load().weight, false);
        }
    }
}

impl Sched {
    /// Puts an entity on the time line.
    ///
    /// Kernel: __enqueue_entity(), kernel/sched/fair.c, v6.1, v6.12.
    #[inline]
    pub(crate) fn timeline_add(&mut self, cfs: CfsRqId, se: SeId) {
        if self.kernel.has(Feature::ParanoidAvg) {
            self.make_room(cfs, se);
        }
        self.level(cfs, se).timeline_add(se);
    }

    /// With PARANOID_AVG, weights are permanently halved when an entity that joins a queue would make a sum of the
    /// average overflow.
    ///
    /// Kernel: sum_w_vruntime_add(), kernel/sched/fair.c, v7.2.
    #[cold]
    fn make_room(&mut self, cfs: CfsRqId, se: SeId) {
        let (vruntime, weight) = (self.se(se).vruntime, self.se(se).line_load().weight);
        let rules = &self.kernel.rules;
        while self.is_eevdf() && self.cfs(cfs).avg_would_overflow(rules, vruntime, weight) {
            assert!(self.cfs(cfs).sum_shift < 10, "the average overflows with the smallest weights");
            let entries: Vec<Queued> = self.cfs(cfs).timeline.entries().to_vec();
            let weights: Vec<u64> = entries.iter().map(|q| self.se(q.se).line_load().weight).collect();
            let queue = &mut self.cfs_rqs[cfs.0 as usize];
            queue.sum_shift += 1;
            queue.avg_vruntime = 0;
            queue.avg_load = 0;
            for (entry, weight) in entries.iter().zip(weights) {
                queue.account_avg(rules, entry.vruntime, weight, true);
            }
        }
    }

    /// Removes an entity from the time line.
    ///
    /// Kernel: __dequeue_entity(), kernel/sched/fair.c, v6.1, v6.12.
    #[inline]
    pub(crate) fn timeline_remove(&mut self, cfs: CfsRqId, se: SeId) {
        self.level(cfs, se).timeline_remove(se);
    }

    /// Sets the virtual time of a task to the value that it must have had in a recorded kernel.
    pub fn set_virtual_time(&mut self, se: SeId, vruntime: u64, deadline: u64) {
        let cfs = self.line_of(se);
        let paranoid = self.kernel.has(Feature::ParanoidAvg);
        let Level { kernel, queue, entity, .. } = self.level(cfs, se);
        let rules = &kernel.rules;
        let queued = entity.on_rq && queue.curr != Some(se);
        let (from, before) = (entity.key(rules), entity.vruntime);
        if !queued || paranoid {
            if queued {
                self.timeline_remove(cfs, se);
            }
            let entity = self.se_mut(se);
            (entity.vruntime, entity.deadline) = (vruntime, deadline);
            if queued {
                self.timeline_add(cfs, se);
            }
            return;
        }
        (entity.vruntime, entity.deadline) = (vruntime, deadline);
        queue.timeline.shift(from, se, entity.key(rules), vruntime);
        if rules.policy == FairPolicy::Eevdf {
            queue.shift_avg(rules, vruntime.wrapping_sub(before) as i64, entity.line_load().weight);
        }
    }

    /// Shifts some entities of a queue in virtual time, each by a multiple of its own amount; deadlines do not change.
    /// The entities are in the order of the time line. EEVDF only, whose order is that of deadlines.
    pub fn shift_vruntimes(&mut self, cfs: CfsRqId, some: &[(SeId, i64)], times: i64) {
        debug_assert!(self.is_eevdf(), "by deadlines");
        if self.kernel.has(Feature::ParanoidAvg) {
            for &(se, by) in some {
                let (vruntime, deadline) = (self.se(se).vruntime, self.se(se).deadline);
                self.set_virtual_time(se, vruntime.wrapping_add((by * times) as u64), deadline);
            }
            return;
        }
        for &(se, by) in some {
            let Level { kernel, queue, entity, .. } = self.level(cfs, se);
            entity.vruntime = entity.vruntime.wrapping_add((by * times) as u64);
            queue.shift_avg(&kernel.rules, by * times, entity.line_load().weight);
        }
        self.cfs_mut(cfs).timeline.shift_vruntimes(some, times);
    }

    /// All members of a queue: waiting and running entities, and tasks that sleep.
    pub fn members(&self, cfs: CfsRqId) -> impl Iterator<Item = SeId> + '_ {
        let queue = self.cfs(cfs);
        let queued = queue.curr.into_iter().chain(queue.timeline.entries().iter().map(|entry| entry.se));
        let tasks = (0..self.tasks.len() as u32).map(SeId);
        queued.filter(|se| !se.is_task()).chain(tasks.filter(move |&se| self.se(se).cfs_rq == Some(cfs)))
    }

    /// Shifts a queue in virtual time, its floor and all members except those in `stay`, to where a recorded kernel
    /// has it.
    pub fn shift_virtual_times(&mut self, cfs: CfsRqId, by: u64, stay: &[SeId]) {
        let queue = self.cfs_mut(cfs);
        queue.min_vruntime = queue.min_vruntime.wrapping_add(by);
        let moved: Vec<SeId> = self.members(cfs).filter(|se| !stay.contains(se)).collect();
        for se in moved {
            let entity = self.se(se);
            let (vruntime, deadline) = (entity.vruntime.wrapping_add(by), entity.deadline.wrapping_add(by));
            self.set_virtual_time(se, vruntime, deadline);
        }
    }

    /// Changes the slice of a group's entity, wherever it is stored.
    #[inline]
    pub(crate) fn set_group_slice(&mut self, cfs: CfsRqId, se: SeId, slice: u64) {
        if self.se(se).slice == slice && !self.cfs(cfs).timeline.has_tree() {
            return;
        }
        self.se_mut(se).slice = slice;
        let Level { kernel, queue, entity, .. } = self.level(cfs, se);
        if queue.curr != Some(se) {
            queue.timeline.set_slice(entity.key(&kernel.rules), se, slice);
        }
    }

    /// Counts an entity that was queued, running or not.
    ///
    /// Kernel: account_entity_enqueue(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub(crate) fn account_entity_enqueue(&mut self, cfs: CfsRqId, se: SeId) {
        let idle = self.se_is_idle(se);
        let Level { queue, entity, .. } = self.level(cfs, se);
        queue.load = LoadWeight { weight: queue.load.weight + entity.load.weight, inv_weight: 0 };
        queue.nr_queued += 1;
        queue.idle_nr_queued += idle as u32;
        let cpu = queue.cpu;
        if se.is_task() {
            self.cfs_tasks_add(cpu, TaskId(se.0));
            self.account_llc_enqueue(cpu, TaskId(se.0));
        }
    }

    /// Counts an entity that left.
    ///
    /// Kernel: account_entity_dequeue(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub(crate) fn account_entity_dequeue(&mut self, cfs: CfsRqId, se: SeId) {
        let idle = self.se_is_idle(se);
        let Level { queue, entity, .. } = self.level(cfs, se);
        queue.load = LoadWeight { weight: queue.load.weight - entity.load.weight, inv_weight: 0 };
        queue.nr_queued -= 1;
        queue.idle_nr_queued -= idle as u32;
        let cpu = queue.cpu;
        if se.is_task() {
            self.cfs_tasks_remove(cpu, TaskId(se.0));
            self.account_llc_dequeue(cpu, TaskId(se.0));
        }
    }

    /// Makes an entity the running one at its level. `first` is false when it already runs and only its parameters
    /// changed; then v7.2 leaves its protection as it was.
    ///
    /// Kernel: set_next_entity(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    #[inline]
    pub(crate) fn set_next_entity(&mut self, cfs: CfsRqId, se: SeId, first: bool) {
        if self.kernel.rules.buddies_clear == BuddiesClear::Set {
            self.clear_buddies(cfs, se);
        }
        let mut level = self.level(cfs, se);
        if level.entity.on_rq {
            level.timeline_remove(se);
            if !level.update_load_avg(se, UpdateFlags::UPDATE_TG) {
                self.update_load_avg_anywhere(cfs, se, UpdateFlags::UPDATE_TG);
                level = self.level(cfs, se);
            }
            let rules = &level.kernel.rules;
            if rules.policy == FairPolicy::Eevdf && (first || rules.protection != Protection::MinSlice) {
                level.set_protect_slice();
            }
        }
        let Level { rq, queue, entity, .. } = level;
        debug_assert!(queue.curr.is_none(), "one entity runs at a level");
        queue.curr = Some(se);
        entity.exec_start = rq.clock_task;
        entity.prev_sum_exec_runtime = entity.sum_exec_runtime;
    }

    /// Puts the running entity of a level back among the waiting ones.
    ///
    /// Kernel: put_prev_entity(), kernel/sched/fair.c, v6.1, v6.12.
    #[inline]
    pub(crate) fn put_prev_entity(&mut self, cfs: CfsRqId, se: SeId) {
        if self.se(se).on_rq {
            self.update_curr(cfs);
        }
        if self.bandwidth_used {
            self.check_cfs_rq_runtime(cfs);
        }
        if self.kernel.has(Feature::ParanoidAvg) && self.se(se).on_rq {
            self.make_room(cfs, se);
        }
        let mut level = self.level(cfs, se);
        if level.entity.on_rq {
            level.timeline_add(se);
            if !level.update_load_avg(se, UpdateFlags::NONE) {
                self.update_load_avg_anywhere(cfs, se, UpdateFlags::NONE);
                level = self.level(cfs, se);
            }
        }
        debug_assert_eq!(level.queue.curr, Some(se), "the previous one ran");
        level.queue.curr = None;
    }

    /// Records that a task runs, for the order in which the balancer takes tasks.
    #[inline]
    pub(crate) fn touch_cfs_task(&mut self, cpu: CpuId, task: TaskId) {
        if self.kernel.rules.candidate_order == CandidateOrder::LeastRecentlyRun && self.task(task).on_list {
            self.cfs_tasks_move_to_head(cpu, task);
        }
    }
}
