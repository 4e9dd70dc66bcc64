//! Joining a run queue.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::class::Class;
use crate::pick::place_entity::{PlaceCfs, place_eevdf};
use crate::{CfsRqId, DelayedRequeue, Feature, Sched, SeId, UpdateFlags};

/// Why a task joins a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EnqueueFlags {
    /// It was asleep.
    pub wakeup: bool,
    /// It comes from another CPU.
    pub migrated: bool,
    /// It is new.
    pub initial: bool,
    /// It comes back after a change of its parameters.
    pub restore: bool,
    /// It goes before the others of its priority, as it fell to theirs.
    pub head: bool,
    /// It never left: it slept, but its dequeue was delayed.
    pub delayed: bool,
}

impl Sched {
    /// Puts a task on the queue of its CPU.
    ///
    /// Kernel: activate_task(), enqueue_task(), kernel/sched/core.c, v6.12.
    pub fn activate(&mut self, task: TaskId, cpu: CpuId, flags: EnqueueFlags, now: Time) {
        debug_assert_eq!(self.task(task).cpu, cpu, "set_task_cpu() comes first");
        self.update_rq_clock(cpu, now);
        self.enqueue_task(cpu, task, flags);
        self.task_mut(task).on_rq = true;
    }

    /// Kernel: enqueue_task(), kernel/sched/core.c, v6.12.
    pub(crate) fn enqueue_task(&mut self, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        match self.class_of(task) {
            Class::Fair => {
                self.enqueue_task_fair(cpu, task, flags);
                if self.lists_throttled() {
                    self.list_above_throttled(SeId(task.0));
                }
            }
            Class::Rt => self.enqueue_task_rt(cpu, task, flags),
            Class::Dl => self.enqueue_task_dl(cpu, task, flags),
            Class::Stop => self.enqueue_task_stop(cpu, task),
            Class::Idle => unreachable!("idle tasks are not tasks"),
        }
    }

    /// Adds to the number of tasks of a CPU.
    ///
    /// Kernel: add_nr_running(), kernel/sched/sched.h, v6.12.
    #[inline]
    pub(crate) fn add_nr_running(&mut self, cpu: CpuId, nr: u32) {
        let rq = &mut self.rqs[cpu];
        let before = rq.nr_running;
        rq.nr_running += nr;
        if before < 2 && rq.nr_running >= 2 && self.has_domains(cpu) {
            self.domains.overload = true;
        }
    }

    /// Queues a fair task, and the groups above it that were not queued.
    ///
    /// Kernel: enqueue_task_fair(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    fn enqueue_task_fair(&mut self, cpu: CpuId, task: TaskId, mut flags: EnqueueFlags) {
        let se = SeId(task.0);
        if self.task(task).throttled && self.enqueue_throttled_task(task) {
            return;
        }
        let delayed = self.se(se).sched_delayed;
        let first = self.root_cfs(cpu).h_nr_queued == 0;
        if !delayed || flags.delayed {
            self.util_est_enqueue(task, cpu);
        }
        if self.is_flat() {
            self.update_curr_line(self.root_cfs_id(cpu));
        }
        if flags.delayed {
            self.requeue_delayed_entity(se);
            return;
        }
        if self.is_flat() {
            self.enqueue_task_flat(cpu, se, flags);
            return;
        }
        let runnable = !delayed || flags.wakeup;
        let mut idle = self.se_is_idle(se);
        let mut slice = None;
        let mut level = Some(se);
        while let Some(se) = level {
            if self.se(se).on_rq {
                if self.se(se).sched_delayed {
                    self.requeue_delayed_entity(se);
                }
                break;
            }
            let cfs = self.cfs_rq_of(se);
            if let Some(slice) = slice {
                let entity = self.se_mut(se);
                entity.slice = slice;
                entity.custom_slice = true;
            }
            if self.lists_throttled() && self.cfs(cfs).nr_queued > 0 {
                self.list_add_leaf_cfs_rq(cfs);
            }
            self.enqueue_entity(cfs, se, flags);
            if !self.count_enqueued(cfs, runnable, &mut idle) {
                self.hrtick_update(cpu);
                return;
            }
            slice = self.group_slice(cfs);
            flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            level = self.se(se).parent;
        }
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            self.update_group_level(cfs, se, slice);
            if !self.count_enqueued(cfs, runnable, &mut idle) {
                self.hrtick_update(cpu);
                return;
            }
            if self.lists_throttled() && self.cfs(cfs).throttle_count > 0 {
                self.list_add_leaf_cfs_rq(cfs);
            }
            slice = self.group_slice(cfs);
            level = self.se(se).parent;
        }
        if first {
            self.first_fair_task(cpu);
        }
        self.add_nr_running(cpu, 1);
        self.hrtick_update(cpu);
    }

    /// Whether throttled queues are among those whose averages are updated.
    #[inline]
    pub(crate) fn lists_throttled(&self) -> bool {
        self.bandwidth_used && self.kernel.has(Feature::ThrottledLists)
    }

    /// Counts a task at one level of its hierarchy; false if the level is off its CPU,
    /// so that the ones above do not count it.
    #[inline]
    pub(crate) fn count_enqueued(&mut self, cfs: CfsRqId, runnable: bool, idle: &mut bool) -> bool {
        let queue = self.cfs_mut(cfs);
        queue.h_nr_queued += 1;
        queue.h_nr_runnable += runnable as u32;
        queue.h_nr_idle += *idle as u32;
        *idle |= queue.idle;
        !self.stops_hierarchy(cfs)
    }

    /// The slice a group's entity takes from the queue below it.
    #[inline]
    pub(crate) fn group_slice(&self, cfs: CfsRqId) -> Option<u64> {
        (self.is_eevdf() && self.kernel.has(Feature::GroupMinSlice)).then(|| self.cfs_rq_min_slice(cfs))
    }

    /// Updates the averages, weight and slice of an entity that stays queued while something changed below it.
    #[inline]
    pub(crate) fn update_group_level(&mut self, cfs: CfsRqId, se: SeId, slice: Option<u64>) {
        self.update_load_avg(cfs, se, UpdateFlags::UPDATE_TG);
        self.se_update_runnable(se);
        self.update_cfs_group(se);
        if let Some(slice) = slice {
            self.set_group_slice(cfs, se, slice);
        }
    }

    /// Queues an entity at one level.
    ///
    /// Kernel: enqueue_entity(), kernel/sched/fair.c, v6.1, v6.12.
    #[inline]
    pub(crate) fn enqueue_entity(&mut self, cfs: CfsRqId, se: SeId, flags: EnqueueFlags) {
        let curr = self.cfs(cfs).curr == Some(se);
        if self.is_eevdf() {
            if curr {
                self.place_entity(cfs, se, flags.initial);
            }
            self.update_curr(cfs);
            self.update_load_avg(cfs, se, UpdateFlags::ENQUEUE);
            self.se_update_runnable(se);
            self.update_cfs_group(se);
            if !curr {
                self.place_entity(cfs, se, flags.initial);
            }
            self.account_entity_enqueue(cfs, se);
        } else {
            // Away from a queue vruntime is relative to its floor, but for sleepers that stay.
            let relative = !flags.wakeup || flags.migrated;
            if relative && curr {
                self.add_floor(cfs, se);
            }
            self.update_curr(cfs);
            if relative && !curr {
                self.add_floor(cfs, se);
            }
            self.update_load_avg(cfs, se, UpdateFlags::ENQUEUE);
            self.se_update_runnable(se);
            self.update_cfs_group(se);
            self.account_entity_enqueue(cfs, se);
            if flags.wakeup {
                self.place_entity_cfs(cfs, se, false);
            }
        }
        if flags.migrated && self.kernel.has(Feature::ExecStartAtEnqueue) {
            self.se_mut(se).exec_start = 0;
        }
        if !curr {
            self.timeline_add(cfs, se);
        }
        self.se_mut(se).on_rq = true;
        if self.cfs(cfs).nr_queued == 1 {
            self.first_queued(cfs);
        }
    }

    /// A queue that was empty is no longer.
    pub(crate) fn first_queued(&mut self, cfs: CfsRqId) {
        if self.bandwidth_used {
            if self.kernel.has(Feature::ThrottledLists) {
                self.list_add_leaf_cfs_rq(cfs);
                self.check_enqueue_throttle(cfs);
                return;
            }
            self.check_enqueue_throttle(cfs);
            if self.cfs(cfs).throttle_count > 0 && !self.kernel.has(Feature::BandwidthPerTask) {
                return;
            }
        }
        self.list_add_leaf_cfs_rq(cfs);
        if self.cfs(cfs).pelt_clock_throttled {
            self.start_pelt_clock(cfs);
            self.cfs_mut(cfs).pelt_clock_throttled = false;
        }
    }

    #[inline]
    fn add_floor(&mut self, cfs: CfsRqId, se: SeId) {
        let floor = self.cfs(cfs).min_vruntime;
        let entity = self.se_mut(se);
        entity.vruntime = entity.vruntime.wrapping_add(floor);
    }

    /// Kernel: place_entity(), kernel/sched/fair.c, v6.12, v7.2.
    #[inline]
    pub(crate) fn place_entity(&mut self, cfs: CfsRqId, se: SeId, initial: bool) {
        let sums = self.avg_sums(cfs);
        self.move_to_average(cfs, sums.offset());
        let placed =
            place_eevdf(&self.kernel, self.scaled.base_slice, self.cfs(cfs), &sums, self.se(se), initial);
        if placed.zero_shift != 0 {
            self.cfs_rqs[cfs.0 as usize].move_zero(&self.kernel.rules, placed.zero_shift);
        }
        let entity = self.se_mut(se);
        entity.vruntime = placed.vruntime;
        entity.deadline = placed.deadline;
        entity.slice = placed.slice;
        entity.rel_deadline = false;
    }

    /// Places a queued entity as if it left, changed and joined.
    #[inline]
    pub(crate) fn place_again(&mut self, cfs: CfsRqId, se: SeId, change: impl FnOnce(&mut Sched)) {
        let curr = self.cfs(cfs).curr == Some(se);
        self.count_competing(cfs, |nr| nr - 1);
        if !curr {
            self.timeline_remove(cfs, se);
        }
        change(self);
        self.place_entity(cfs, se, false);
        if !curr {
            self.timeline_add(cfs, se);
        }
        self.count_competing(cfs, |nr| nr + 1);
    }

    /// Kernel: place_entity(), kernel/sched/fair.c, v6.1.
    #[inline]
    pub(crate) fn place_entity_cfs(&mut self, cfs: CfsRqId, se: SeId, initial: bool) {
        let queue = self.cfs(cfs);
        let entity = self.se(se);
        let idle = self.kernel.has(Feature::IdleMinGranularity) && self.se_is_idle(se);
        let clock = self.rqs[queue.cpu].clock_task;
        let place = PlaceCfs {
            min_vruntime: queue.min_vruntime,
            initial_vslice: initial.then(|| self.sched_vslice(cfs, se)),
            thresh: if idle { self.scaled.min_granularity } else { self.scaled.latency },
            absent: (entity.exec_start != 0).then(|| clock.saturating_sub(entity.exec_start)),
        };
        let vruntime = place.place(&self.kernel, entity.vruntime);
        self.se_mut(se).vruntime = vruntime;
    }

    /// A task is about to be queued on a CPU: if the first of its groups that is queued there sleeps, it is woken.
    ///
    /// Kernel: enqueue_task_fair(), kernel/sched/fair.c, v6.12.
    pub fn requeue_delayed_group(&mut self, task: TaskId, cpu: CpuId) {
        let (_, group) = self.made_on_cpu(self.task(task).tg, cpu);
        let mut levels = core::iter::successors(group, |&se| self.se(se).parent);
        let queued = levels.find(|&se| self.se(se).on_rq);
        if let Some(se) = queued.filter(|&se| self.se(se).sched_delayed) {
            self.requeue_delayed_entity(se);
        }
    }

    /// Wakes an entity that sleeps but is still queued.
    ///
    /// Kernel: requeue_delayed_entity(), kernel/sched/fair.c, v6.12, v7.2.
    pub(crate) fn requeue_delayed_entity(&mut self, se: SeId) {
        let cfs = self.line_of(se);
        debug_assert!(self.se(se).sched_delayed && self.se(se).on_rq, "the dequeue was delayed");
        let moves = match self.kernel.rules.delayed_requeue {
            DelayedRequeue::BetterLag => {
                self.update_curr_line(cfs);
                self.update_entity_lag(cfs, se)
            }
            DelayedRequeue::ZeroIfEligible if self.kernel.has(Feature::DelayZero) => {
                self.update_entity_lag(cfs, se);
                let entity = self.se_mut(se);
                let owed = entity.vlag > 0;
                if owed {
                    entity.vlag = 0;
                }
                owed
            }
            DelayedRequeue::ZeroIfEligible => false,
        };
        if moves {
            self.place_again(cfs, se, |_| {});
        }
        // Under FLAT_GROUPS that is the queue of the root, whatever the task's own is.
        self.update_load_avg(cfs, se, UpdateFlags::NONE);
        self.clear_delayed(se);
    }
}
