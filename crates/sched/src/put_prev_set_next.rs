//! How the next task takes over from the previous one: both classes, and for fair tasks each level of their groups.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::class::Class;
use crate::{BalanceFair, BandwidthAtPick, BuddiesClear, CfsRqId, Curr, Feature, Sched, SeId};

impl Sched {
    /// `by_server`: the CPU's fair server picked the next task. Its time may be used up since.
    ///
    /// Kernel: put_prev_set_next_task(), kernel/sched/sched.h, v7.2; pick_next_task_fair(), v6.1; pick_next_entity(), v5.10.
    pub(crate) fn put_prev_set_next(&mut self, cpu: CpuId, prev: Curr, next: Curr, by_server: bool) {
        self.rqs[cpu].next_class = self.class_of_curr(next);
        if let Curr::Task(task) = next
            && self.kernel.rules.buddies_clear == BuddiesClear::Picked
            && self.class_of(task) == Class::Fair
        {
            self.each_level(SeId(task.0), self.root_cfs_id(cpu), Sched::clear_buddies);
        }
        let put_back = core::mem::take(&mut self.rqs[cpu].put_back);
        if next == prev && !put_back {
            self.picked_again(cpu, next);
            return;
        }
        let prev_class = self.class_of_curr(prev);
        if put_back {
            self.set_next(cpu, next, prev_class);
        } else if let (Curr::Task(from), Curr::Task(to), Class::Fair) = (prev, next, prev_class)
            && self.class_of(to) == Class::Fair
            && (self.kernel.rules.balance_fair == BalanceFair::NoTask || !by_server)
        {
            // Up to v6.12 a task that the fair server picks is set as one of another class.
            self.switch_fair(cpu, SeId(from.0), SeId(to.0));
        } else if next == Curr::Idle && self.loses_idle_time_first(cpu, prev_class) {
            self.update_idle_rq_clock_pelt(cpu);
            self.put_prev(cpu);
            self.leave_for_idle(cpu);
        } else {
            self.put_prev(cpu);
            self.set_next(cpu, next, prev_class);
        }
        self.rqs[cpu].curr = next;
    }

    /// A task is picked from a CPU that is offline, and put back at once to be moved: that updates the averages of its levels,
    /// as a switch to it would.
    ///
    /// Kernel: __pick_migrate_task(), kernel/sched/core.c, v5.10.
    pub(crate) fn set_and_put_back(&mut self, cpu: CpuId, task: TaskId) {
        let runs = self.rqs[cpu].curr;
        if self.class_of(task) == Class::Fair {
            self.each_level(SeId(task.0), self.root_cfs_id(cpu), Sched::clear_buddies);
        }
        self.set_next(cpu, Curr::Task(task), self.class_of_curr(runs));
        self.rqs[cpu].curr = Curr::Task(task);
        self.put_prev(cpu);
        self.rqs[cpu].curr = runs;
    }

    /// The running task stays, or the CPU stays idle. This is as if it went idle again, or as if the task of a higher
    /// class was put back and picked again, unless nothing is put back then.
    ///
    /// Kernel: __pick_next_task(), kernel/sched/core.c, v6.1; put_prev_set_next_task(), kernel/sched/sched.h, v6.12.
    fn picked_again(&mut self, cpu: CpuId, next: Curr) {
        let anew = !self.kernel.has(Feature::IdleShortcut);
        if next == Curr::Idle && anew {
            self.set_next_task_idle(cpu);
        }
        if let Curr::Task(task) = next
            && anew
            && matches!(self.class_of(task), Class::Rt | Class::Dl)
        {
            let class = self.class_of(task);
            self.put_prev(cpu);
            self.set_next(cpu, next, class);
        }
        if let Curr::Task(task) = next
            && self.class_of(task) == Class::Fair
            && self.kernel.has(Feature::MruOnRepick)
        {
            self.touch_cfs_task(cpu, task);
            self.hrtick_start_fair(cpu, task);
            self.update_misfit_status(cpu, Some(task));
        }
    }

    /// Switches between fair tasks: only the levels on which they differ.
    #[inline]
    fn switch_fair(&mut self, cpu: CpuId, prev: SeId, next: SeId) {
        if self.is_flat() {
            self.put_prev_flat(cpu, prev, Some(next));
            self.set_next_flat(cpu, next, true);
            return self.set_next_task_fair(cpu, TaskId(next.0));
        }
        let shared = self.shared_queue(prev, next);
        self.each_level(prev, shared, Sched::put_prev_entity);
        self.each_level(next, shared, |sched, cfs, se| sched.set_next_entity(cfs, se, true));
        if self.kernel.rules.bandwidth_at_pick == BandwidthAtPick::LevelsSet {
            self.account_levels(TaskId(next.0), shared);
        }
        self.set_next_task_fair(cpu, TaskId(next.0));
    }

    /// The lowest queue in which both have an entity.
    #[inline]
    pub(crate) fn shared_queue(&self, a: SeId, b: SeId) -> CfsRqId {
        let (a, b) = self.siblings(a, b);
        debug_assert_eq!(self.cfs_rq_of(a), self.cfs_rq_of(b), "both are on one CPU");
        self.cfs_rq_of(a)
    }

    /// The ancestors of two entities, or the entities themselves, that compete with each other.
    ///
    /// Kernel: find_matching_se(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn find_matching_se(&self, a: SeId, b: SeId) -> (SeId, SeId) {
        if self.is_flat() { (a, b) } else { self.siblings(a, b) }
    }

    #[inline]
    fn siblings(&self, a: SeId, b: SeId) -> (SeId, SeId) {
        if self.se(a).cfs_rq == self.se(b).cfs_rq { (a, b) } else { self.matching_ancestors(a, b) }
    }

    fn matching_ancestors(&self, mut a: SeId, mut b: SeId) -> (SeId, SeId) {
        let up = |se: SeId| self.se(se).parent.expect("the root queue is shared");
        while self.se(a).cfs_rq != self.se(b).cfs_rq {
            let (deep_a, deep_b) = (self.se(a).depth, self.se(b).depth);
            if deep_a >= deep_b {
                a = up(a);
            }
            if deep_b >= deep_a {
                b = up(b);
            }
        }
        (a, b)
    }

    /// Sets an entity as the next of its queue after those above it: they see what it leaves there only later.
    ///
    /// Kernel: pick_next_task_fair(), kernel/sched/fair.c, v5.10, v6.1.
    fn set_next_from_top(&mut self, se: SeId) {
        if let Some(parent) = self.se(se).parent {
            self.set_next_from_top(parent);
        }
        let cfs = self.cfs_rq_of(se);
        self.set_next_entity(cfs, se, true);
    }

    /// Calls `act` on an entity and its ancestors up to the one in `last`.
    #[inline]
    fn each_level(&mut self, se: SeId, last: CfsRqId, act: impl Fn(&mut Sched, CfsRqId, SeId)) {
        let mut level = Some(se);
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            act(self, cfs, se);
            level = if cfs == last { None } else { self.se(se).parent };
        }
    }

    /// Puts the running task of a CPU back among the waiting ones.
    ///
    /// Kernel: put_prev_task(), kernel/sched/sched.h, v6.1.
    pub fn put_prev(&mut self, cpu: CpuId) {
        match (self.rqs[cpu].curr, self.curr_class(cpu)) {
            (Curr::Idle, _) => self.put_prev_task_idle(cpu),
            (Curr::Task(task), Class::Fair) if self.is_flat() => {
                self.put_prev_flat(cpu, SeId(task.0), None);
            }
            (Curr::Task(task), Class::Fair) => {
                let root = self.root_cfs_id(cpu);
                self.each_level(SeId(task.0), root, Sched::put_prev_entity);
            }
            (Curr::Task(_), Class::Rt) => self.put_prev_task_rt(cpu),
            (Curr::Task(_), Class::Dl) => self.put_prev_task_dl(cpu),
            (Curr::Task(_), _) => {
                self.update_curr_common(cpu);
            }
        }
    }

    /// Makes a CPU run `next`; the previous task, of class `prev_class`, has been put back.
    ///
    /// Kernel: set_next_task(), kernel/sched/sched.h, v6.12.
    pub fn set_next(&mut self, cpu: CpuId, next: Curr, prev_class: Class) {
        let Curr::Task(task) = next else { return self.set_next_task_idle(cpu) };
        match self.class_of(task) {
            Class::Fair if self.is_flat() => {
                self.set_next_flat(cpu, SeId(task.0), true);
                self.set_next_task_fair(cpu, task);
            }
            Class::Fair => {
                let root = self.root_cfs_id(cpu);
                if self.kernel.has(Feature::SetNextFromTop) {
                    self.set_next_from_top(SeId(task.0));
                } else {
                    self.each_level(SeId(task.0), root, |sched, cfs, se| {
                        sched.set_next_entity(cfs, se, true)
                    });
                }
                if self.kernel.rules.bandwidth_at_pick != BandwidthAtPick::Never {
                    self.account_levels(task, root);
                }
                self.set_next_task_fair(cpu, task);
            }
            class => {
                let now = self.rqs[cpu].clock_task;
                self.task_mut(task).se.exec_start = now;
                match class {
                    Class::Rt => self.set_next_task_rt(cpu, prev_class),
                    Class::Dl => self.set_next_task_dl(cpu, task, prev_class),
                    _ => {}
                }
            }
        }
    }

    /// Kernel: __set_next_task_fair(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub(crate) fn set_next_task_fair(&mut self, cpu: CpuId, task: TaskId) {
        self.touch_cfs_task(cpu, task);
        self.hrtick_start_fair(cpu, task);
        if self.domains.asym_active {
            self.update_misfit_status(cpu, Some(task));
        }
    }

    /// Kernel: set_next_task_idle(), kernel/sched/idle.c, v6.12.
    fn set_next_task_idle(&mut self, cpu: CpuId) {
        self.leave_for_idle(cpu);
        let rq = &mut self.rqs[cpu];
        rq.idle_exec_start = rq.clock_task;
        self.update_idle_rq_clock_pelt(cpu);
    }

    /// Whether a CPU that goes idle notes idle time as lost before its task is put back, which can stop the clock of a queue
    /// that is out of quota. It does so when it finds no fair task, and has not put back the previous one for that.
    ///
    /// Kernel: pick_next_task_fair(), kernel/sched/fair.c, pick_next_task(), kernel/sched/core.c, v5.10.
    fn loses_idle_time_first(&self, cpu: CpuId, prev_class: Class) -> bool {
        prev_class == Class::Fair
            && !self.kernel.has(Feature::MigratePeltLag)
            && self.rqs[cpu].nr_running == self.root_cfs(cpu).h_nr_queued
    }

    fn leave_for_idle(&mut self, cpu: CpuId) {
        let rq = &mut self.rqs[cpu];
        if self.lingers {
            rq.leaving = rq.leaving.or(rq.curr.task());
        }
        if rq.leaving.is_none() {
            self.update_idle_core(cpu);
        }
    }

    /// Kernel: put_prev_task_idle(), kernel/sched/idle.c, v6.12, v7.2.
    pub(crate) fn put_prev_task_idle(&mut self, cpu: CpuId) {
        if self.kernel.has(Feature::ArrivalEndsRun) {
            self.server_update_idle_time(cpu);
        }
        self.update_curr_idle(cpu);
        if self.kernel.has(Feature::AvgIdleAtSwitch) {
            self.update_rq_avg_idle(cpu);
        }
    }

    /// A CPU stops being idle: adds its idle time to the average.
    ///
    /// Kernel: update_rq_avg_idle(), kernel/sched/core.c, v7.2; ttwu_do_wakeup(), v6.1.
    pub fn update_rq_avg_idle(&mut self, cpu: CpuId) {
        let rq = &mut self.rqs[cpu];
        if rq.idle_stamp == 0 {
            return;
        }
        let delta = rq.clock.wrapping_sub(rq.idle_stamp) as i64;
        let average = rq.avg_idle as i64;
        rq.avg_idle = (average + (delta - average) / 8).max(0) as u64;
        rq.avg_idle = rq.avg_idle.min(2 * rq.max_idle_balance_cost);
        rq.idle_stamp = 0;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{Curr, NewTask, TgId};

    /// Of two tasks of a group, one runs after the other. The queue above the group is updated, or left alone.
    #[test]
    fn a_task_that_a_server_has_picked_is_set_on_all_levels_up_to_v6_12() {
        let updated = |kernel: &str| {
            [false, true].map(|by_server| {
                let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
                let group = lab.sched.new_group(TgId::ROOT, 1024 << 10, CpuId(0), lab.time());
                let [a, b] = ["a", "b"].map(|name| lab.fork(name, 0, NewTask { tg: group, ..lab.spec() }));
                let (prev, next) = if lab.running(0) == "a" { (a, b) } else { (b, a) };
                lab.now += MS;
                lab.sched.update_rq_clock(CpuId(0), lab.time());
                let before = lab.sched.cfs_rqs[0].avg.last_update_time;
                lab.sched.put_prev_set_next(CpuId(0), Curr::Task(prev), Curr::Task(next), by_server);
                lab.sched.cfs_rqs[0].avg.last_update_time != before
            })
        };
        assert_eq!(["v6.12", "v7.2"].map(updated), [[false, true], [false, false]]);
    }

    /// A task of a group that is out of quota sleeps on a small CPU that was fully used. Idle time is lost, whether the
    /// queue's clock stops before that or after it.
    #[test]
    fn idle_time_is_lost_before_the_clock_of_a_queue_without_quota_stops_up_to_v5_18() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x4:capacity=0-1/512").without_ticks();
            let (group, cpu) = (lab.sched.new_group(TgId::ROOT, 1024 << 10, CpuId(0), lab.time()), CpuId(0));
            lab.sched.set_bandwidth(group, Some(MS), 1000 * MS, 0, lab.time());
            let task = lab.fork("limited", 0, NewTask { tg: group, ..lab.spec() });
            lab.run(2 * MS);
            let root = lab.sched.root_cfs_id(cpu);
            lab.sched.cfs_mut(root).avg.util_sum = 1 << 27;
            lab.sleep(task);
            let queue = lab.sched.cfs(lab.sched.tg(group).cfs_rq[0]);
            let (lost, clock) = (lab.sched.rqs[cpu].lost_idle_time, lab.sched.rq_clock_pelt(cpu));
            let ahead = queue.throttled_clock_pelt as i64 - clock as i64;
            format!("{} ns lost, stopped {ahead} ns ahead: {}", lost, queue.pelt_clock_throttled)
        });
        expect![[r#"
            v4.13: 0 ns lost, stopped 0 ns ahead: true
            v5.5..v7.3: 1000000 ns lost, stopped 0 ns ahead: true"#]]
        .assert_eq(&found);
    }
}
