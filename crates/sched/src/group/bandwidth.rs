//! CFS bandwidth: a group may use a limited CPU time per period.
//!
//! The group has a pool that its period timer refills. A CPU takes a slice from it before it runs the group and
//! requests more when the slice is used up; if the pool is empty, the group's queue on that CPU is throttled: its
//! entity leaves the queue above until the timer hands out time again. From v6.18 on the queue stays and its tasks
//! leave one by one, each on its way to user mode, so that a task that holds a lock in the kernel is not stopped;
//! those that have left wait in the queue's limbo.
//!
//! For when the timers hand out time, see `bandwidth_timer.rs`.

use alloc::vec::Vec;
use core::mem::take;

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::task_work::TaskWork;
use crate::{
    BandwidthSlices, CfsRqId, Curr, DequeueFlags, Effect, EnqueueFlags, Feature, PeltClock, Sched, SeId,
    TgId, UpdateFlags,
};

/// Run time that a CPU keeps for its next turn when its queue becomes empty, ns.
const MIN_CFS_RQ_RUNTIME: i64 = 1_000_000;
/// Time left in a period below which nothing more is handed out, ns.
pub(super) const MIN_BANDWIDTH_EXPIRATION: u64 = 2_000_000;
/// Delay after which returned slices are handed out, ns.
const CFS_BANDWIDTH_SLACK_PERIOD: u64 = 5_000_000;

impl Sched {
    /// Sets a group's quota and period, ns; no quota means no limit.
    ///
    /// Kernel: tg_set_cfs_bandwidth(), kernel/sched/core.c, v6.12.
    pub fn set_bandwidth(&mut self, tg: TgId, quota: Option<u64>, period: u64, burst: u64, now: Time) {
        assert!(tg != TgId::ROOT, "the root group has no quota");
        assert!(period > 0 && quota != Some(0), "a quota and its period are not zero");
        let pool = &mut self.tgs[tg.0 as usize].bandwidth;
        pool.quota = quota;
        pool.period = period;
        pool.burst = burst;
        self.refill(tg, now);
        self.bandwidth_used = self.tgs.iter().any(|tg| tg.bandwidth.quota.is_some());
        if quota.is_some() {
            self.start_cfs_bandwidth(tg, now.0);
        }
        // A queue at zero counts as out of time if nothing checks it again.
        let remaining = self.kernel.has(Feature::BandwidthPerTask) as i64;
        self.on_each_cpu(tg, |sched, cpu, cfs, _| {
            if !sched.rqs[cpu].online {
                return;
            }
            let queue = sched.cfs_mut(cfs);
            queue.runtime_enabled = quota.is_some();
            queue.runtime_remaining = remaining;
            if queue.throttled {
                // The kernel reads no clock of a CPU on which nothing changes.
                sched.update_rq_clock(cpu, now);
                sched.unthrottle_cfs_rq(cfs);
            }
        });
    }

    /// Kernel: __refill_cfs_bandwidth_runtime(), kernel/sched/fair.c, v6.12.
    pub(super) fn refill(&mut self, tg: TgId, now: Time) {
        let pool = &mut self.tgs[tg.0 as usize].bandwidth;
        if let Some(quota) = pool.quota {
            pool.runtime = (pool.runtime + quota).min(quota + pool.burst);
            pool.runtime_expires = now.0 + pool.period;
            pool.expires_seq += 1;
        }
    }

    /// Kernel: start_cfs_bandwidth(), kernel/sched/fair.c, v6.12.
    fn start_cfs_bandwidth(&mut self, tg: TgId, now: u64) {
        let pool = &mut self.tgs[tg.0 as usize].bandwidth;
        if pool.period_active {
            return;
        }
        pool.period_active = true;
        if pool.period_expires <= now {
            let missed = (now - pool.period_expires) / pool.period + 1;
            pool.period_expires += missed * pool.period;
        }
        let at = pool.period_expires;
        self.effects.push(Effect::StartPeriodTimer { tg, at });
    }

    /// Whether a queue is off its CPU, so that the levels above do not count its contents.
    #[inline]
    pub(crate) fn stops_hierarchy(&self, cfs: CfsRqId) -> bool {
        self.bandwidth_used && self.cfs(cfs).throttled && !self.kernel.has(Feature::BandwidthPerTask)
    }

    /// Whether a task is off its CPU because of missing quota.
    pub fn throttled_hierarchy_of(&self, task: TaskId) -> bool {
        self.bandwidth_used
            && match self.kernel.has(Feature::BandwidthPerTask) {
                true => self.task(task).throttled,
                false => self.cfs(self.cfs_rq_of(SeId(task.0))).throttle_count > 0,
            }
    }

    /// Takes time from the pool so that the queue has `target` left.
    ///
    /// Kernel: __assign_cfs_rq_runtime(), kernel/sched/fair.c, v6.12.
    pub(super) fn assign_cfs_rq_runtime(&mut self, cfs: CfsRqId, target: u64) -> bool {
        let queue = self.cfs(cfs);
        let (tg, now) = (queue.tg, self.rqs[queue.cpu].ktime());
        let wanted = (target as i64 - queue.runtime_remaining).max(0) as u64;
        let mut amount = wanted;
        if self.tg(tg).bandwidth.quota.is_some() {
            self.start_cfs_bandwidth(tg, now);
            let pool = &mut self.tgs[tg.0 as usize].bandwidth;
            amount = wanted.min(pool.runtime);
            if pool.runtime > 0 {
                pool.runtime -= amount;
                pool.idle = false;
            }
        }
        let pool = &self.tg(tg).bandwidth;
        let (expires, expires_seq) = (pool.runtime_expires, pool.expires_seq);
        let by_number = self.kernel.rules.bandwidth_slices == BandwidthSlices::Lost;
        let queue = self.cfs_mut(cfs);
        queue.runtime_remaining += amount as i64;
        if !by_number {
            queue.runtime_expires = queue.runtime_expires.max(expires);
        } else if queue.expires_seq != expires_seq {
            queue.runtime_expires = expires;
        }
        queue.expires_seq = expires_seq;
        queue.runtime_remaining > 0
    }

    pub(super) fn bandwidth_slice(&self) -> u64 {
        self.kernel.tunables.cfs_bandwidth_slice_us * 1000
    }

    /// Charges a queue for time its entities ran. True if it is throttled (v7.2).
    ///
    /// Kernel: account_cfs_rq_runtime(), kernel/sched/fair.c, v6.12, v7.2.
    pub(crate) fn account_cfs_rq_runtime(&mut self, cfs: CfsRqId, delta: u64) -> bool {
        let queue = self.cfs_mut(cfs);
        if !queue.runtime_enabled {
            return false;
        }
        queue.runtime_remaining -= delta as i64;
        self.expire_cfs_rq_runtime(cfs);
        let queue = self.cfs(cfs);
        if queue.runtime_remaining > 0 {
            return false;
        }
        if queue.throttled {
            return true;
        }
        if self.kernel.has(Feature::BandwidthPerTask) {
            return self.throttle_cfs_rq(cfs);
        }
        let cpu = self.cfs(cfs).cpu;
        if !self.assign_cfs_rq_runtime(cfs, self.bandwidth_slice()) && self.cfs(cfs).runs().is_some() {
            self.resched_now(cpu);
        }
        false
    }

    /// A task was set running: its queues, up to `last`, must have time.
    ///
    /// Kernel: set_next_task_fair(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    pub(crate) fn account_levels(&mut self, task: TaskId, last: CfsRqId) {
        if !self.bandwidth_used {
            return;
        }
        let mut throttled = false;
        let mut level = Some(SeId(task.0));
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            throttled |= self.account_cfs_rq_runtime(cfs, 0);
            level = if cfs == last { None } else { self.se(se).parent };
        }
        if throttled && self.kernel.has(Feature::BandwidthPerTask) {
            self.task_throttle_setup_work(task);
        }
    }

    /// Throttles a queue that is out of time. True if it is throttled.
    ///
    /// Kernel: check_cfs_rq_runtime(), kernel/sched/fair.c, v6.12.
    pub(crate) fn check_cfs_rq_runtime(&mut self, cfs: CfsRqId) -> bool {
        let queue = self.cfs(cfs);
        if self.kernel.has(Feature::BandwidthPerTask) || !queue.runtime_enabled || queue.runtime_remaining > 0
        {
            return false;
        }
        queue.throttled || self.throttle_cfs_rq(cfs)
    }

    /// A queue that was empty gets its first entity: it must have time.
    ///
    /// Kernel: check_enqueue_throttle(), kernel/sched/fair.c, v6.12, v7.2.
    pub(crate) fn check_enqueue_throttle(&mut self, cfs: CfsRqId) {
        let queue = self.cfs(cfs);
        if !queue.runtime_enabled || queue.runs().is_some() || queue.throttled {
            return;
        }
        self.account_cfs_rq_runtime(cfs, 0);
        if self.cfs(cfs).runtime_remaining <= 0 && !self.kernel.has(Feature::BandwidthPerTask) {
            self.throttle_cfs_rq(cfs);
        }
    }

    /// Returns time to the pool when a queue becomes empty.
    ///
    /// Kernel: return_cfs_rq_runtime(), kernel/sched/fair.c, v6.12.
    pub(crate) fn return_cfs_rq_runtime(&mut self, cfs: CfsRqId) {
        let queue = self.cfs_mut(cfs);
        let (tg, cpu) = (queue.tg, queue.cpu);
        let slack = queue.runtime_remaining - MIN_CFS_RQ_RUNTIME;
        if !queue.runtime_enabled || queue.nr_queued > 0 || slack <= 0 {
            return;
        }
        queue.runtime_remaining -= slack;
        let may_return = self.may_return(cfs);
        let (slice, now) = (self.bandwidth_slice(), self.rqs[cpu].ktime());
        let put_off = self.kernel.rules.bandwidth_slices != BandwidthSlices::Used;
        let pool = &mut self.tgs[tg.0 as usize].bandwidth;
        if pool.quota.is_none() || !may_return {
            return;
        }
        pool.runtime += slack as u64;
        let soon = pool.period_expires < now + CFS_BANDWIDTH_SLACK_PERIOD + MIN_BANDWIDTH_EXPIRATION;
        let starts = pool.slack_expires.is_none() || put_off;
        if pool.runtime > slice && !pool.throttled_cfs_rq.is_empty() && !soon && starts {
            let at = now + CFS_BANDWIDTH_SLACK_PERIOD;
            pool.slack_expires = Some(at);
            self.effects.push(Effect::StartSlackTimer { tg, at });
        }
    }

    /// The queues of a group and of all groups below it on a CPU: parents after all that is below them, the newest of the
    /// groups of one parent first.
    ///
    /// Kernel: walk_tg_tree_from(), sched_online_group(), kernel/sched/core.c, v6.12.
    fn queues_below(&mut self, tg: TgId, cpu: CpuId) -> Vec<CfsRqId> {
        // Groups are newer than their parents, so those from this one on suffice.
        let mut children = alloc::vec![Vec::new(); self.tgs.len() - tg.0 as usize];
        for at in (tg.0 + 1..self.tgs.len() as u32).map(TgId) {
            if let Some(above) = self.tg(at).parent.and_then(|above| above.0.checked_sub(tg.0)) {
                children[above as usize].push(at);
            }
        }
        // The reverse is easier: parents first, the oldest group first.
        let mut reversed = Vec::new();
        let mut open = alloc::vec![tg];
        while let Some(at) = open.pop() {
            reversed.push(at);
            open.extend(children[(at.0 - tg.0) as usize].iter().rev());
        }
        reversed.into_iter().rev().map(|at| self.made_on_cpu(at, cpu).0).collect()
    }

    /// Removes a queue from the list of queues whose averages are decayed.
    ///
    /// Kernel: list_del_leaf_cfs_rq(), kernel/sched/fair.c, v6.12.
    pub(crate) fn list_del_leaf_cfs_rq(&mut self, cfs: CfsRqId) {
        let (on_list, cpu) = (self.cfs(cfs).on_list, self.cfs(cfs).cpu);
        if on_list && let Some(at) = self.rqs[cpu].leaf_cfs_rqs.iter().position(|&other| other == cfs) {
            self.remove_leaf(cpu, at);
        }
    }

    /// Whether a queued task runs at or below a level.
    fn is_running(&self, cfs: CfsRqId) -> bool {
        self.cfs(cfs).runs().is_some_and(|curr| self.se(curr).on_rq)
    }

    /// Stops a queue, unless the pool has time after all. True if it is stopped.
    ///
    /// Kernel: throttle_cfs_rq(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    fn throttle_cfs_rq(&mut self, cfs: CfsRqId) -> bool {
        let per_task = self.kernel.has(Feature::BandwidthPerTask);
        let running = self.is_running(cfs);
        let target = if per_task && running { self.bandwidth_slice() } else { 1 };
        if self.assign_cfs_rq_runtime(cfs, target) {
            return false;
        }
        self.stop_cfs_rq(cfs);
        true
    }

    /// Handles a queue that is out of time.
    fn stop_cfs_rq(&mut self, cfs: CfsRqId) {
        let per_task = self.kernel.has(Feature::BandwidthPerTask);
        let running = self.is_running(cfs);
        let (tg, cpu) = (self.cfs(cfs).tg, self.cfs(cfs).cpu);
        self.tgs[tg.0 as usize].bandwidth.throttled_cfs_rq.push(cfs);
        for below in self.queues_below(tg, cpu) {
            self.throttle_down(below);
        }
        if per_task {
            self.cfs_mut(cfs).throttled = true;
            if let (true, Curr::Task(task)) = (running, self.rqs[cpu].curr) {
                self.task_throttle_setup_work(task);
            }
        } else {
            self.leave_queues(cfs);
            self.cfs_mut(cfs).throttled = true;
        }
        self.effects.push(Effect::Throttled { tg, cpu, on: true });
    }

    /// Throttles the queue of a task's group, or of the one above that has the quota, on the task's CPU, whatever is
    /// left of the quota. From v6.18 on only the task leaves. No reschedule is requested.
    pub fn apply_throttle(&mut self, task: TaskId, tg: TgId, now: Time) {
        let cpu = self.task(task).cpu;
        self.update_rq_clock(cpu, now);
        self.bandwidth_used = true;
        let cfs = self.tg(tg).cfs_rq[cpu.index()];
        let asked = self.rqs[cpu].need_resched;
        if !self.cfs(cfs).throttled {
            self.stop_cfs_rq(cfs);
        }
        if self.kernel.has(Feature::BandwidthPerTask) {
            self.task_mut(task).works.add(TaskWork::Throttle);
            self.throttle_cfs_rq_work(task, now);
        }
        self.rqs[cpu].need_resched = asked;
    }

    /// Lets the queues of a task's group and of those above run again on the task's CPU. No reschedule is requested.
    pub fn apply_unthrottle(&mut self, task: TaskId, now: Time) {
        let (cpu, mut level) = (self.task(task).cpu, Some(self.task(task).tg));
        self.update_rq_clock(cpu, now);
        let asked = self.rqs[cpu].need_resched;
        while let Some(tg) = level {
            let cfs = self.tg(tg).cfs_rq[cpu.index()];
            if self.cfs(cfs).throttled {
                self.unthrottle_cfs_rq(cfs);
            }
            level = self.tg(tg).parent;
        }
        self.rqs[cpu].need_resched = asked;
    }

    /// Kernel: tg_throttle_down(), kernel/sched/fair.c, v6.12, v7.2.
    fn throttle_down(&mut self, cfs: CfsRqId) {
        let queue = self.cfs_mut(cfs);
        queue.throttle_count += 1;
        if queue.throttle_count > 1 {
            return;
        }
        if !self.kernel.has(Feature::BandwidthPerTask) || self.cfs(cfs).nr_queued == 0 {
            self.list_del_leaf_cfs_rq(cfs);
            self.stop_pelt_clock(cfs);
        }
    }

    /// Removes the entity of a throttled queue, and those of groups that become empty, from their queues.
    fn leave_queues(&mut self, cfs: CfsRqId) {
        let queue = self.cfs(cfs);
        let (cpu, tg) = (queue.cpu, queue.tg);
        let mut delta =
            Counts { queued: queue.h_nr_queued, runnable: queue.h_nr_runnable, idle: queue.h_nr_idle };
        let all = delta.queued;
        let mut level = Some(self.tg(tg).se[cpu.index()]);
        let mut leaving = true;
        while let Some(se) = level {
            let above = self.cfs_rq_of(se);
            if !self.se(se).on_rq {
                return;
            }
            if leaving {
                let delayed = self.se(se).sched_delayed;
                let flags = DequeueFlags { sleep: true, special: true, delayed, ..DequeueFlags::default() };
                self.dequeue_entity(above, se, flags);
            } else {
                self.update_load_avg(above, se, UpdateFlags::NONE);
                self.se_update_runnable(se);
            }
            if self.group_is_idle(se) {
                delta.idle = all;
            }
            let queue = self.cfs_mut(above);
            queue.h_nr_queued -= delta.queued;
            queue.h_nr_runnable -= delta.runnable;
            queue.h_nr_idle -= delta.idle;
            leaving &= queue.load.weight == 0;
            level = self.se(se).parent;
        }
        self.rqs[cpu].nr_running -= all;
    }

    fn group_is_idle(&self, se: SeId) -> bool {
        self.se(se).my_q.is_some_and(|my_q| self.cfs(my_q).idle)
    }

    /// Lets a queue run again.
    ///
    /// Kernel: unthrottle_cfs_rq(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    pub fn unthrottle_cfs_rq(&mut self, cfs: CfsRqId) {
        let per_task = self.kernel.has(Feature::BandwidthPerTask);
        if per_task {
            self.update_curr(cfs);
            let queue = self.cfs(cfs);
            if queue.runtime_enabled && queue.runtime_remaining <= 0 {
                return;
            }
        }
        let (tg, cpu) = (self.cfs(cfs).tg, self.cfs(cfs).cpu);
        self.cfs_mut(cfs).throttled = false;
        self.tgs[tg.0 as usize].bandwidth.throttled_cfs_rq.retain(|&other| other != cfs);
        // Children before parents, so that a parent is not queued empty.
        for below in self.queues_below(tg, cpu) {
            self.unthrottle_up(below);
        }
        self.effects.push(Effect::Throttled { tg, cpu, on: false });
        if self.cfs(cfs).load.weight == 0 {
            if !self.kernel.has(Feature::UnthrottleAsksEmpty) || !self.cfs(cfs).on_list {
                return;
            }
            // Nothing to run, but something to decay: the levels above are aged with it.
            self.list_all_above(self.tg(tg).se[cpu.index()]);
        }
        if !per_task && self.cfs(cfs).load.weight > 0 {
            self.rejoin_queues(cfs);
        }
        if self.rqs[cpu].curr == Curr::Idle && self.cfs(self.root_cfs_id(cpu)).nr_queued > 0 {
            self.resched_now(cpu);
        }
    }

    /// Kernel: tg_unthrottle_up(), kernel/sched/fair.c, v6.12, v7.2.
    fn unthrottle_up(&mut self, cfs: CfsRqId) {
        if self.kernel.has(Feature::BandwidthPerTask) {
            self.update_curr(cfs);
        }
        let queue = self.cfs_mut(cfs);
        queue.throttle_count -= 1;
        if queue.throttle_count > 0 {
            return;
        }
        if queue.pelt_clock_throttled {
            self.start_pelt_clock(cfs);
        }
        let cpu = self.cfs(cfs).cpu;
        let mut waiting = take(&mut self.cfs_mut(cfs).throttled_limbo).into_iter();
        while self.cfs(cfs).throttle_count == 0
            && let Some(task) = waiting.next()
        {
            self.task_mut(task).throttled = false;
            let flags = EnqueueFlags { wakeup: true, ..EnqueueFlags::default() };
            self.enqueue_task(cpu, task, flags);
        }
        // It ran out of time again while tasks were queued: the rest continues to wait.
        self.cfs_mut(cfs).throttled_limbo.extend(waiting);
        let lists = match self.kernel.has(Feature::ListedByDecay) {
            true => !self.is_decayed(cfs),
            false => self.cfs(cfs).nr_queued > 0 || self.kernel.rules.pelt == PeltClock::InContribution,
        };
        if lists {
            self.list_add_leaf_cfs_rq(cfs);
        }
    }

    /// Puts the entity of a queue, and those of groups above that were empty, back on their queues.
    fn rejoin_queues(&mut self, cfs: CfsRqId) {
        let queue = self.cfs(cfs);
        let (cpu, tg) = (queue.cpu, queue.tg);
        let mut delta =
            Counts { queued: queue.h_nr_queued, runnable: queue.h_nr_runnable, idle: queue.h_nr_idle };
        let all = delta.queued;
        let first = self.root_cfs(cpu).h_nr_queued == 0;
        let mut level = Some(self.tg(tg).se[cpu.index()]);
        let mut joining = true;
        let lists = self.lists_throttled();
        while let Some(se) = level {
            let above = self.cfs_rq_of(se);
            if joining && self.se(se).sched_delayed {
                let flags = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
                self.dequeue_entity(above, se, flags);
            } else if self.se(se).on_rq {
                joining = false;
            }
            if joining {
                if lists && self.cfs(above).nr_queued > 0 {
                    self.list_add_leaf_cfs_rq(above);
                }
                self.enqueue_entity(above, se, EnqueueFlags { wakeup: true, ..EnqueueFlags::default() });
            } else {
                self.update_load_avg(above, se, UpdateFlags::UPDATE_TG);
                self.se_update_runnable(se);
            }
            if self.group_is_idle(se) {
                delta.idle = all;
            }
            let queue = self.cfs_mut(above);
            queue.h_nr_queued += delta.queued;
            queue.h_nr_runnable += delta.runnable;
            queue.h_nr_idle += delta.idle;
            if queue.throttled {
                if lists {
                    self.list_all_above(se);
                }
                return;
            }
            if !joining && lists && queue.throttle_count > 0 {
                self.list_add_leaf_cfs_rq(above);
            }
            level = self.se(se).parent;
        }
        if first && all > 0 {
            self.fair_server_start(cpu);
        }
        self.add_nr_running(cpu, all);
    }

    /// The task must leave its queue before it returns to user mode.
    ///
    /// Kernel: task_throttle_setup_work(), kernel/sched/fair.c, v7.2.
    fn task_throttle_setup_work(&mut self, task: TaskId) {
        let entry = self.task_mut(task);
        if !entry.exiting && !entry.kthread {
            entry.works.add(TaskWork::Throttle);
        }
    }

    /// A task leaves its queue if its group is out of quota. Returns whether it does.
    ///
    /// Kernel: throttle_cfs_rq_work(), kernel/sched/fair.c, v7.2.
    pub(crate) fn throttle_cfs_rq_work(&mut self, task: TaskId, now: Time) -> bool {
        if !self.task_mut(task).works.take(TaskWork::Throttle) || self.task(task).exiting {
            return false;
        }
        let cfs = self.cfs_rq_of(SeId(task.0));
        if !self.task(task).policy.is_fair() || self.cfs(cfs).throttle_count == 0 {
            return false;
        }
        let cpu = self.task(task).cpu;
        self.update_rq_clock(cpu, now);
        let flags = DequeueFlags { sleep: true, throttle: true, ..DequeueFlags::default() };
        self.dequeue_task(cpu, task, flags);
        self.cfs_mut(cfs).throttled_limbo.insert(0, task);
        self.task_mut(task).throttled = true;
        self.resched_now(cpu);
        true
    }

    /// A task that waits for quota is woken, moved or changed. True if it continues to wait.
    ///
    /// Kernel: enqueue_throttled_task(), kernel/sched/fair.c, v7.2.
    pub(crate) fn enqueue_throttled_task(&mut self, task: TaskId) -> bool {
        let cfs = self.cfs_rq_of(SeId(task.0));
        let running = self.rqs[self.cfs(cfs).cpu].curr == Curr::Task(task);
        if self.cfs(cfs).throttle_count > 0 && !running {
            self.cfs_mut(cfs).throttled_limbo.insert(0, task);
            return true;
        }
        self.task_mut(task).throttled = false;
        false
    }

    /// A task that waits for quota ends, moves or changes.
    ///
    /// Kernel: dequeue_throttled_task(), kernel/sched/fair.c, v7.2.
    pub(crate) fn dequeue_throttled_task(&mut self, task: TaskId, flags: DequeueFlags) {
        let cfs = self.cfs_rq_of(SeId(task.0));
        self.cfs_mut(cfs).throttled_limbo.retain(|&other| other != task);
        if flags.sleep {
            self.task_mut(task).throttled = false;
        } else if flags.migrate {
            self.detach_entity_cfs_rq(SeId(task.0));
        }
    }
}

/// Tasks that leave or join the levels above a queue together.
struct Counts {
    queued: u32,
    runnable: u32,
    idle: u32,
}
