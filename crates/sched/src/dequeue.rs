//! Leaving a run queue, at once or when lag is paid off.
//!
//! A task that sleeps while it has run more than its due would come back without its
//! debt if it left at once. From v6.12 on it stays queued, asleep, and competes until
//! it is picked or owed service again; only then it really leaves (delayed dequeue).

use schedlab_topology::CpuId;
use schedlab_units::{Duration, TaskId, Time};

use crate::calc_delta::calc_delta_fair;
use crate::class::Class;
use crate::{
    AvgReference, CfsRqId, DelayedRequeue, EnqueueFlags, FairPolicy, Feature, LagLimit, Sched, SeId,
    UpdateFlags, UtilEstUpdate,
};

/// Why a task leaves a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DequeueFlags {
    /// It goes to sleep.
    pub sleep: bool,
    /// It must leave at once (dead, stopped, frozen): no delayed dequeue.
    pub special: bool,
    /// It moves to another CPU.
    pub migrate: bool,
    /// It will come back after a change of its parameters.
    pub save: bool,
    /// With `save`: it comes back to another place, as its priority or group is another.
    pub moves: bool,
    /// It slept before; now its delayed dequeue is completed.
    pub delayed: bool,
    /// Its group is out of quota (v7.2).
    pub throttle: bool,
}

impl Sched {
    /// Takes a task off the queue of its CPU. False if it stays queued because its
    /// dequeue is delayed.
    ///
    /// Kernel: deactivate_task(), block_task(), kernel/sched/core.c, v6.12.
    pub fn deactivate(&mut self, task: TaskId, flags: DequeueFlags, now: Time) -> bool {
        let cpu = self.task(task).cpu;
        self.update_rq_clock(cpu, now);
        let gone = self.dequeue_task(cpu, task, flags);
        if gone {
            self.task_mut(task).on_rq = false;
        }
        gone
    }

    /// Kernel: dequeue_task(), kernel/sched/core.c, v6.12.
    pub(crate) fn dequeue_task(&mut self, cpu: CpuId, task: TaskId, flags: DequeueFlags) -> bool {
        match self.class_of(task) {
            Class::Fair => return self.dequeue_task_fair(cpu, task, flags),
            Class::Rt => self.dequeue_task_rt(cpu, task),
            Class::Dl => self.dequeue_task_dl(cpu, task, flags),
            Class::Stop => self.dequeue_task_stop(cpu, task),
            Class::Idle => unreachable!("idle tasks are not tasks"),
        }
        true
    }

    /// Takes a fair task off its queue, and groups that become empty with it.
    ///
    /// Kernel: dequeue_task_fair(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    pub(crate) fn dequeue_task_fair(&mut self, cpu: CpuId, task: TaskId, flags: DequeueFlags) -> bool {
        if self.task(task).throttled {
            self.dequeue_throttled_task(task, flags);
            return true;
        }
        let order = self.kernel.rules.util_est_update;
        let again = flags.delayed && self.kernel.has(Feature::UtilEstTwice);
        if !self.task(task).se.sched_delayed || again {
            self.util_est_dequeue(task, cpu);
        }
        if order == UtilEstUpdate::Before {
            self.util_est_update(task, cpu, flags.sleep);
        }
        if !self.dequeue_entities(SeId(task.0), flags) {
            return false;
        }
        if order == UtilEstUpdate::After {
            self.util_est_update(task, cpu, flags.sleep);
        }
        if self.kernel.rules.hrtick_end == crate::HrtickEnd::Slice {
            self.hrtick_update(cpu);
        }
        true
    }

    /// Takes an entity off its queue, and the groups above that become empty. False if
    /// the entity itself stays because its dequeue is delayed.
    ///
    /// Kernel: dequeue_entities(), kernel/sched/fair.c, v6.12; dequeue_task_fair(), v6.1.
    pub(crate) fn dequeue_entities(&mut self, se: SeId, mut flags: DequeueFlags) -> bool {
        if self.is_flat() {
            return self.dequeue_task_flat(se, flags);
        }
        let cpu = self.cfs(self.cfs_rq_of(se)).cpu;
        let was_sched_idle = self.sched_idle_rq(cpu);
        let task_sleep = flags.sleep;
        let completes = flags.delayed;
        let nr = se.is_task() as u32;
        // A delayed task was removed from the runnable ones when it fell asleep, and clear_delayed() counts it again
        // before it leaves.
        let runnable = nr == 1 && (task_sleep || completes || !self.se(se).sched_delayed);
        let mut idle = nr == 1 && self.se_is_idle(se);
        let mut slice = None;
        let mut level = Some(se);
        let mut off_cpu = false;
        while let Some(entity) = level {
            let cfs = self.cfs_rq_of(entity);
            if !self.dequeue_entity(cfs, entity, flags) {
                if entity == se && nr == 1 {
                    return false;
                }
                slice = self.group_slice(cfs);
                break;
            }
            self.count_dequeued(cfs, nr, runnable, &mut idle);
            if self.stops_hierarchy(cfs) {
                off_cpu = true;
                break;
            }
            level = self.se(entity).parent;
            if self.cfs(cfs).load.weight > 0 {
                slice = self.group_slice(cfs);
                // Prefer the group again when a task of it went to sleep.
                if let Some(parent) = level
                    && task_sleep
                    && (self.cfs(cfs).throttle_count == 0 || self.kernel.has(Feature::BandwidthPerTask))
                {
                    self.set_next_buddy(parent);
                }
                break;
            }
            flags.sleep = true;
            flags.delayed = false;
            flags.special = false;
        }
        while let Some(entity) = level.filter(|_| !off_cpu) {
            let cfs = self.cfs_rq_of(entity);
            self.update_group_level(cfs, entity, slice);
            slice = self.group_slice(cfs);
            self.count_dequeued(cfs, nr, runnable, &mut idle);
            off_cpu = self.stops_hierarchy(cfs);
            level = self.se(entity).parent;
        }
        if !off_cpu {
            self.rqs[cpu].nr_running -= nr;
            if !was_sched_idle && self.sched_idle_rq(cpu) {
                // Balance soon: the others have real work, this CPU has not.
                self.rqs[cpu].next_balance = self.rqs[cpu].clock / self.tick_ns();
            }
        }
        if completes && nr == 1 {
            if self.kernel.rules.hrtick_end == crate::HrtickEnd::Slice {
                self.hrtick_update(cpu);
            }
            self.tasks[se.0 as usize].on_rq = false;
        }
        true
    }

    #[inline]
    pub(crate) fn count_dequeued(&mut self, cfs: CfsRqId, nr: u32, runnable: bool, idle: &mut bool) {
        let queue = self.cfs_mut(cfs);
        queue.h_nr_queued -= nr;
        // Under FLAT_GROUPS it is one too small for a moment while a sleeper leaves.
        queue.h_nr_runnable = queue.h_nr_runnable.wrapping_sub(runnable as u32);
        queue.h_nr_idle -= *idle as u32;
        *idle |= nr > 0 && queue.idle;
    }

    /// Only SCHED_IDLE tasks, or tasks of idle groups, are there.
    ///
    /// Kernel: sched_idle_rq(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub(crate) fn sched_idle_rq(&self, cpu: CpuId) -> bool {
        let nr = self.rqs[cpu].nr_running;
        nr > 0 && nr == self.cfs(self.root_cfs_id(cpu)).h_nr_idle
    }

    /// Takes an entity off one level. False if it stays because its dequeue is delayed.
    ///
    /// Kernel: dequeue_entity(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    #[inline]
    pub(crate) fn dequeue_entity(&mut self, cfs: CfsRqId, se: SeId, flags: DequeueFlags) -> bool {
        self.update_curr(cfs);
        let within = se.is_task() && flags.sleep && !flags.delayed && {
            self.kernel.rules.util_est_update == UtilEstUpdate::Within
        };
        if self.delays_dequeue(cfs, se, flags) {
            self.clear_buddies(cfs, se);
            self.update_load_avg(cfs, se, UpdateFlags::NONE);
            if within {
                self.util_est_update(TaskId(se.0), self.cfs(cfs).cpu, true);
            }
            if self.kernel.rules.delayed_requeue == DelayedRequeue::BetterLag {
                self.update_entity_lag(cfs, se);
            }
            self.set_delayed(se);
            return false;
        }
        let migrates = se.is_task() && flags.migrate && self.kernel.has(Feature::DetachAtDequeue);
        self.update_load_avg(cfs, se, if migrates { UpdateFlags::MIGRATE } else { UpdateFlags::UPDATE_TG });
        self.dequeue_runnable_load_avg(cfs, se);
        if within {
            self.util_est_update(TaskId(se.0), self.cfs(cfs).cpu, true);
        }
        self.se_update_runnable(se);
        self.clear_buddies(cfs, se);
        if self.is_eevdf() {
            self.update_entity_lag(cfs, se);
        }
        if self.cfs(cfs).curr != Some(se) {
            self.timeline_remove(cfs, se);
        }
        if self.is_eevdf() && self.kernel.has(Feature::PlaceRelDeadline) && !flags.sleep {
            let entity = self.se_mut(se);
            entity.deadline = entity.deadline.wrapping_sub(entity.vruntime);
            entity.rel_deadline = true;
        }
        self.se_mut(se).on_rq = false;
        self.account_entity_dequeue(cfs, se);
        let has_floor = match self.kernel.rules.policy {
            FairPolicy::Cfs => {
                if !flags.sleep {
                    let floor = self.cfs(cfs).min_vruntime;
                    let entity = self.se_mut(se);
                    entity.vruntime = entity.vruntime.wrapping_sub(floor);
                }
                true
            }
            FairPolicy::Eevdf => self.kernel.rules.avg_reference == AvgReference::MinVruntime,
        };
        if self.bandwidth_used {
            self.return_cfs_rq_runtime(cfs);
        }
        self.update_cfs_group(se);
        if has_floor && (!flags.save || flags.moves) {
            self.update_min_vruntime(cfs);
        }
        if flags.delayed {
            self.finish_delayed_dequeue_entity(se);
        }
        if self.cfs(cfs).nr_queued == 0 {
            self.last_dequeued(cfs);
        }
        true
    }

    /// A queue ran empty.
    pub(crate) fn last_dequeued(&mut self, cfs: CfsRqId) {
        self.update_idle_cfs_rq_clock_pelt(cfs);
        if self.cfs(cfs).throttle_count > 0 && self.kernel.has(Feature::BandwidthPerTask) {
            self.list_del_leaf_cfs_rq(cfs);
            self.stop_pelt_clock(cfs);
            self.cfs_mut(cfs).pelt_clock_throttled = true;
        }
    }

    #[inline]
    pub(crate) fn delays_dequeue(&self, cfs: CfsRqId, se: SeId, flags: DequeueFlags) -> bool {
        flags.sleep
            && !flags.delayed
            && !flags.special
            && !flags.throttle
            && self.is_eevdf()
            && self.kernel.has(Feature::DelayDequeue)
            && !self.entity_eligible(cfs, se)
    }

    /// An entity sleeps but stays queued.
    ///
    /// Kernel: set_delayed(), kernel/sched/fair.c, v6.12.
    pub(crate) fn set_delayed(&mut self, se: SeId) {
        if se.is_task() {
            self.account_llc_delayed(TaskId(se.0), true);
        }
        self.se_mut(se).sched_delayed = true;
        self.count_runnable(se, |nr| nr - 1);
    }

    /// Puts a sleeper back on the queue that it left, as if its dequeue had been delayed; for callers that learn this
    /// later.
    pub fn undo_dequeue(&mut self, task: TaskId, now: Time) {
        self.activate(task, self.task(task).cpu, EnqueueFlags::default(), now);
        self.set_delayed(SeId(task.0));
    }

    /// An entity that slept but stayed queued is awake again, or gone.
    ///
    /// Kernel: clear_delayed(), kernel/sched/fair.c, v6.12.
    pub(crate) fn clear_delayed(&mut self, se: SeId) {
        self.se_mut(se).sched_delayed = false;
        if se.is_task() {
            self.account_llc_delayed(TaskId(se.0), false);
        }
        self.count_runnable(se, |nr| nr.wrapping_add(1));
    }

    /// Changes the number of runnable tasks on all levels above a task.
    fn count_runnable(&mut self, se: SeId, change: fn(u32) -> u32) {
        let mut level = se.is_task().then_some(se);
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            let queue = self.cfs_mut(cfs);
            queue.h_nr_runnable = change(queue.h_nr_runnable);
            if self.stops_hierarchy(cfs) {
                return;
            }
            level = self.se(se).parent;
        }
    }

    /// Kernel: finish_delayed_dequeue_entity(), kernel/sched/fair.c, v6.12; dequeue_entity(), v7.2.
    fn finish_delayed_dequeue_entity(&mut self, se: SeId) {
        self.clear_delayed(se);
        if self.kernel.has(Feature::DelayZero) {
            let entity = self.se_mut(se);
            entity.vlag = entity.vlag.min(0);
        }
    }

    /// Records the lag of an entity that is about to leave, within its bound. True if
    /// placing it by that lag would move it.
    ///
    /// Kernel: update_entity_lag(), entity_lag(), kernel/sched/fair.c, v6.12, v7.2.
    #[inline]
    pub(crate) fn update_entity_lag(&mut self, cfs: CfsRqId, se: SeId) -> bool {
        let average = self.avg_vruntime(cfs);
        let mut vlag = self.entity_lag(cfs, se, average);
        let delay_zero = self.kernel.has(Feature::DelayZero);
        let better = self.kernel.rules.delayed_requeue == DelayedRequeue::BetterLag;
        let entity = self.se_mut(se);
        if better && entity.sched_delayed {
            vlag = vlag.max(entity.vlag);
            if delay_zero {
                vlag = vlag.min(0);
            }
        }
        entity.vlag = vlag;
        average.wrapping_sub(vlag as u64) != entity.vruntime
    }

    /// The lag of an entity, within its bound.
    #[inline]
    pub fn entity_lag(&self, cfs: CfsRqId, se: SeId, average: u64) -> i64 {
        let entity = self.se(se);
        let limit = self.lag_limit(cfs, se);
        (average.wrapping_sub(entity.vruntime) as i64).clamp(-limit, limit)
    }

    /// Sets the lag that a sleeping task has from an unknown past, within its bound. Does nothing under CFS, or
    /// if the task is still queued.
    pub fn set_lag(&mut self, task: TaskId, owed: Duration) {
        let se = SeId(task.0);
        if self.kernel.rules.policy != FairPolicy::Eevdf || self.se(se).on_rq {
            return;
        }
        let limit = self.lag_limit(self.line_of(se), se);
        let lag = calc_delta_fair(owed.0, self.se(se).line_load()) as i64;
        self.se_mut(se).vlag = lag.min(limit);
    }

    /// The bound of an entity's lag, in its virtual time.
    #[inline]
    pub(crate) fn lag_limit(&self, cfs: CfsRqId, se: SeId) -> i64 {
        let entity = self.se(se);
        let request = match self.kernel.rules.lag_limit {
            LagLimit::SliceOrTick => (2 * entity.slice).max(self.tick_ns()),
            LagLimit::MaxSliceTick => self.cfs_rq_max_slice(cfs) + self.tick_ns(),
        };
        calc_delta_fair(request, entity.line_load()) as i64
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::{Duration, Time};

    use crate::drawing::{Drawn, NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{
        CfsRqId, Deactivate, DequeueFlags, EnqueueFlags, MigrationCause, NewTask, SeId, TaskState,
        UtilEstForm,
    };

    const CPU: CpuId = CpuId(0);
    const ROOT: CfsRqId = CfsRqId(0);
    const SLEEP: Deactivate = Deactivate::Sleep(TaskState::Interruptible);

    #[test]
    fn lag_is_bounded_by_own_slices_or_by_the_longest_one_queued() {
        // Owed 100 ms each: a has a slice of 3 or 2.8 ms, b one of 10 ms; a tick is 4 ms.
        let bounds = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x8").without_ticks();
            let a = lab.hog("a", 0);
            let bound = |lab: &Lab, se: SeId| {
                let average = lab.sched.se(se).vruntime.wrapping_add(100 * MS);
                lab.sched.entity_lag(ROOT, se, average) / 1000
            };
            let alone = bound(&lab, SeId(a.0));
            let b = lab.fork("b", 0, NewTask { slice: Some(10 * MS), ..lab.spec() });
            format!("alone {alone} us, then {} and {} us", bound(&lab, SeId(a.0)), bound(&lab, SeId(b.0)))
        };
        for (kernel, expected) in [
            ("v6.12", "alone 5600 us, then 5600 and 20000 us"),
            ("v7.2", "alone 6800 us, then 14000 and 14000 us"),
        ] {
            assert_eq!(bounds(kernel), expected, "{kernel}");
        }
    }

    /// Sets how far the virtual time of a drawn task is beyond that of `base`.
    fn ahead(drawn: &mut Drawn, name: &str, base: u64, by: u64) {
        let se = SeId(drawn.task(name).0);
        let runs = drawn.sched.cfs(ROOT).curr == Some(se);
        if !runs {
            drawn.sched.timeline_remove(ROOT, se);
        }
        let entity = drawn.sched.se_mut(se);
        entity.vruntime = base.wrapping_add(by);
        entity.deadline = entity.vruntime.wrapping_add(entity.slice);
        if !runs {
            drawn.sched.timeline_add(ROOT, se);
        }
    }

    #[test]
    fn the_floor_rises_to_the_waiting_task_when_one_leaves_and_stays_if_it_comes_back() {
        let risen = |kernel: &str| {
            let by = [false, true].map(|moves| {
                let mut drawn = draw(kernel, "1x1x8 | 0[a* b]");
                let base = drawn.sched.task(drawn.task("b")).se.vruntime;
                ahead(&mut drawn, "b", base, 4 * MS);
                let before = drawn.sched.cfs(ROOT).min_vruntime;
                let a = drawn.task("a");
                drawn.sched.dequeue_task(
                    CPU,
                    a,
                    DequeueFlags { save: true, moves, ..DequeueFlags::default() },
                );
                drawn.sched.cfs(ROOT).min_vruntime.wrapping_sub(before) / MS
            });
            format!("by {} ms in its place, {} ms to another", by[0], by[1])
        };
        expect![[r#"
            v4.13..v6.3: by 0 ms in its place, 15 ms to another
            v6.10: by 0 ms in its place, 4 ms to another
            v6.12..v7.3: by 0 ms in its place, 0 ms to another"#]]
        .assert_eq(&by_kernel("", risen));
    }

    #[test]
    fn a_delayed_task_keeps_or_loses_the_better_lag_it_fell_asleep_with() {
        // At 4, 0 and 6 ms the average is 3 1/3 ms: a sleeps 2/3 ms in debt. When c goes, the
        // average falls to 2 ms and a is 2 ms in debt without having run.
        let lag = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x8 | 0[a* b c]");
            let [a, c] = ["a", "c"].map(|name| drawn.task(name));
            let base = drawn.sched.task(drawn.task("b")).se.vruntime;
            ahead(&mut drawn, "a", base, 4 * MS);
            ahead(&mut drawn, "c", base, 6 * MS);
            let sched = &mut drawn.sched;
            sched.schedule(CPU, SLEEP, NOW);
            assert!(sched.task(a).se.sched_delayed, "{kernel}");
            sched.move_queued_task(c, CpuId(1), MigrationCause::Periodic, NOW);
            let mut lag = || {
                let average = sched.avg_vruntime(ROOT);
                average.wrapping_sub(sched.task(a).se.vruntime) as i64 / 1000
            };
            let before = lag();
            let flags = EnqueueFlags { wakeup: true, delayed: true, ..EnqueueFlags::default() };
            drawn.sched.activate(a, CPU, flags, NOW);
            let average = drawn.sched.avg_vruntime(ROOT);
            let after = average.wrapping_sub(drawn.sched.task(a).se.vruntime) as i64 / 1000;
            format!("{before} us -> {after} us")
        };
        assert_eq!(lag("v6.12"), "-2000 us -> -2000 us");
        assert_eq!(lag("v7.2"), "-2000 us -> -666 us");
    }

    #[test]
    fn a_sleeper_is_placed_by_the_lag_that_it_was_given_within_its_bound() {
        let lag = |kernel: &str, owed: Duration| {
            let mut drawn = draw(kernel, "1x1x8 | 0[a* b]");
            let a = drawn.task("a");
            drawn.sched.schedule(CPU, SLEEP, NOW);
            drawn.sched.set_lag(a, owed);
            let flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            drawn.sched.activate(a, CPU, flags, NOW);
            let average = drawn.sched.avg_vruntime(ROOT);
            average.wrapping_sub(drawn.sched.task(a).se.vruntime) as i64 / 1000
        };
        assert_eq!(lag("v6.12", Duration::ZERO), 0);
        assert_eq!(lag("v6.12", Duration::millis(1)), 1000);
        assert_eq!(lag("v6.12", Duration::millis(100)), 5600);
    }

    #[test]
    fn the_estimate_of_a_sleeper_follows_what_it_used_before_or_up_to_its_dequeue() {
        // A task of utilisation 100 runs for 4 ms and sleeps; it ran ahead of another, so that
        // its dequeue is delayed where that is done.
        let estimate = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x8 | 0[a* b]");
            let a = drawn.task("a");
            let sched = &mut drawn.sched;
            let task = sched.task_mut(a);
            task.se.avg.util_avg = 100;
            task.se.avg.util_sum = 100 * task.se.avg.divider();
            task.se.util_avg_changed = true;
            sched.schedule(CPU, SLEEP, Time(NOW.0 + 4 * MS));
            let (form, task) = (sched.kernel.rules.util_est_form, sched.task(a));
            // Without the flag of v5.5.
            let estimate = u64::from(task.estimate(form));
            let flag = u64::from(form == UtilEstForm::FlagInLowestBit);
            let what = match estimate {
                _ if estimate <= flag => "none",
                _ if estimate | flag == 100 | flag => "as before it ran",
                _ if estimate | flag == task.se.avg.util_avg | flag => "up to now",
                _ => "something else",
            };
            format!("{what}, delayed {}", task.se.sched_delayed)
        };
        expect![[r#"
            v4.13: none, delayed false
            v5.5..v6.10: up to now, delayed false
            v6.12: as before it ran, delayed true
            v7.2..v7.3: up to now, delayed true"#]]
        .assert_eq(&by_kernel("", estimate));
    }

    #[test]
    fn a_sleeper_that_is_queued_leaves_the_sum_of_estimates_once_or_twice_if_it_changes_its_class() {
        let sum = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x8 | 0[a* b]");
            let a = drawn.task("a");
            let sched = &mut drawn.sched;
            let task = sched.task_mut(a);
            (task.util_est_ewma, task.util_est_enqueued) = (100, 100);
            sched.rqs[CPU].util_est_enqueued = 500;
            sched.schedule(CPU, SLEEP, Time(NOW.0 + 4 * MS));
            let asleep = sched.rqs[CPU].util_est_enqueued & !1;
            sched.set_policy(CPU, a, crate::Policy::Fifo(5), Time(NOW.0 + 4 * MS));
            format!("{asleep}, then {}", sched.rqs[CPU].util_est_enqueued & !1)
        };
        expect![[r#"
            v4.13: 500, then 500
            v5.5: 398, then 398
            v5.18..v6.10: 400, then 400
            v6.12: 400, then 324
            v7.2..v7.3: 400, then 400"#]]
        .assert_eq(&by_kernel("", sum));
    }

    #[test]
    fn a_task_that_is_moved_leaves_the_averages_at_its_dequeue_or_at_the_change_of_cpu() {
        // Two tasks of load 1024; b is moved. v4.13 records its load as removed, for the next update.
        let loads = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a* b] 1[]");
            let b = drawn.task("b");
            let sched = &mut drawn.sched;
            let load = |sched: &crate::Sched| sched.cfs(ROOT).avg.load_avg;
            let queued = load(sched);
            sched.deactivate(b, DequeueFlags { migrate: true, ..DequeueFlags::default() }, NOW);
            let dequeued = load(sched);
            sched.set_task_cpu(b, CpuId(1), MigrationCause::Periodic, NOW);
            format!("{queued}, dequeued {dequeued}, gone {}", load(sched))
        };
        expect![[r#"
            v4.13: 2048, dequeued 2048, gone 2048
            v5.5..v5.18: 2048, dequeued 2048, gone 1024
            v6.1..v7.3: 2048, dequeued 1024, gone 1024"#]]
        .assert_eq(&by_kernel("", loads));
    }
}
