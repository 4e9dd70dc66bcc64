//! Decaying the averages of a CPU on which nothing happens.
//!
//! Load of sleepers decays only when it is updated. Balancing does that for all queues of the CPU that still have some
//! ("leaf" queues, children before parents), and drops queues that are empty and fully decayed.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::{CfsRq, CfsRqId, Curr, Feature, PeltClock, Policy, Pressure, Sched, SeId, UpdateFlags};

impl Sched {
    /// Puts a queue on its CPU's list of queues whose averages must be decayed. Enqueue calls it for every level. Returns
    /// whether no branch of the list waits for a parent.
    ///
    /// Kernel: list_add_leaf_cfs_rq(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn list_add_leaf_cfs_rq(&mut self, cfs: CfsRqId) -> bool {
        let queue = self.cfs(cfs);
        if queue.on_list { self.rqs[queue.cpu].alone_branch.is_none() } else { self.add_leaf(cfs) }
    }

    /// Puts the queue of an entity and those above it on that list, until the branch is complete.
    pub(crate) fn list_all_above(&mut self, se: SeId) {
        let mut level = Some(se);
        while let Some(se) = level
            && !self.list_add_leaf_cfs_rq(self.cfs_rq_of(se))
        {
            level = self.se(se).parent;
        }
    }

    /// Puts the first throttled queue above an entity and those above that one on the list.
    ///
    /// Kernel: enqueue_task_fair(), kernel/sched/fair.c, v5.10.
    pub(crate) fn list_above_throttled(&mut self, se: SeId) {
        let mut level = Some(se);
        while let Some(se) = level {
            if self.cfs(self.cfs_rq_of(se)).throttled {
                return self.list_all_above(se);
            }
            level = self.se(se).parent;
        }
    }

    /// Before its parent if that is on the list. If not, its parent comes later, and is put after it: until then it is
    /// the end of a branch at the head of the list, to which the next queue without a listed parent is added.
    #[cold]
    fn add_leaf(&mut self, cfs: CfsRqId) -> bool {
        let queue = self.cfs(cfs);
        let (cpu, tg) = (queue.cpu, queue.tg);
        let parent = self.tg(tg).parent.and_then(|above| self.tg(above).cfs_rq.get(cpu.index()).copied());
        let rq = &self.rqs[cpu];
        let place = |of: CfsRqId| rq.leaf_cfs_rqs.iter().position(|&other| other == of);
        let (at, connected) = match parent {
            None => (rq.leaf_cfs_rqs.len(), true),
            Some(parent) => match place(parent) {
                Some(at) => (at, true),
                None => (rq.alone_branch.and_then(place).map_or(0, |at| at + 1), false),
            },
        };
        let rq = &mut self.rqs[cpu];
        rq.leaf_cfs_rqs.insert(at, cfs);
        rq.alone_branch = (!connected).then_some(cfs);
        self.cfs_mut(cfs).on_list = true;
        connected
    }

    /// Removes a queue from its place on that list. If it is the end of a branch, the one before it is now.
    ///
    /// Kernel: list_del_leaf_cfs_rq(), kernel/sched/fair.c, v6.12.
    pub(crate) fn remove_leaf(&mut self, cpu: CpuId, at: usize) {
        let rq = &mut self.rqs[cpu];
        let cfs = rq.leaf_cfs_rqs.remove(at);
        if rq.alone_branch == Some(cfs) {
            rq.alone_branch = at.checked_sub(1).map(|before| rq.leaf_cfs_rqs[before]);
        }
        self.cfs_mut(cfs).on_list = false;
    }

    /// Whether a child of a queue is listed, as far as the queue before it, or the end of a branch, shows.
    ///
    /// Kernel: child_cfs_rq_on_list(), kernel/sched/fair.c, v5.16.
    fn child_on_list(&self, cfs: CfsRqId) -> bool {
        let queue = self.cfs(cfs);
        let rq = &self.rqs[queue.cpu];
        let before = match queue.on_list {
            true => {
                let at = rq.leaf_cfs_rqs.iter().position(|&other| other == cfs);
                at.and_then(|at| at.checked_sub(1)).map(|before| rq.leaf_cfs_rqs[before])
            }
            false => rq.alone_branch,
        };
        before.is_some_and(|before| self.tg(self.cfs(before).tg).parent == Some(queue.tg))
    }

    /// Updates all averages of a CPU.
    ///
    /// Kernel: update_blocked_averages(), kernel/sched/fair.c, v6.12.
    pub fn update_blocked_averages(&mut self, cpu: CpuId, now: Time) {
        self.update_rq_clock(cpu, now);
        self.age_blocked(cpu, now);
    }

    /// The same with the clock as it is.
    ///
    /// Kernel: __sched_balance_update_blocked_averages(), kernel/sched/fair.c, v7.2.
    pub(crate) fn age_blocked(&mut self, cpu: CpuId, now: Time) {
        self.rqs[cpu].last_blocked_load_update = self.jiffies(now);
        let others = self.update_blocked_others(cpu);
        let fair = self.update_blocked_fair(cpu);
        if !others && !fair {
            self.rqs[cpu].has_blocked_load = false;
        }
    }

    /// True if some load is left.
    ///
    /// Kernel: __update_blocked_others(), update_other_load_avgs(), kernel/sched/fair.c and pelt.c, v6.12.
    fn update_blocked_others(&mut self, cpu: CpuId) -> bool {
        if self.kernel.rules.pressure == Pressure::RtAvg {
            return false;
        }
        let policy = match self.rqs[cpu].curr {
            Curr::Idle => None,
            Curr::Task(task) => Some(self.task(task).policy),
        };
        self.update_rt_rq_load_avg(cpu, matches!(policy, Some(Policy::Fifo(_) | Policy::Rr(_))));
        self.update_dl_rq_load_avg(cpu, matches!(policy, Some(Policy::Deadline { .. })));
        self.update_irq_load_avg(cpu, 0);
        let rq = &self.rqs[cpu];
        rq.avg_rt.util_avg != 0 || rq.avg_dl.util_avg != 0 || rq.avg_irq.util_avg != 0
    }

    /// True if some load is left.
    ///
    /// Kernel: __update_blocked_fair(), kernel/sched/fair.c, v6.12.
    fn update_blocked_fair(&mut self, cpu: CpuId) -> bool {
        let mut left = false;
        let mut at = 0;
        while let Some(&cfs) = self.rqs[cpu].leaf_cfs_rqs.get(at) {
            let skip =
                self.kernel.rules.pelt == PeltClock::InContribution && self.cfs(cfs).throttle_count > 0;
            if !skip {
                self.update_blocked_queue(cpu, cfs);
                left |= self.cfs(cfs).has_blocked();
            }
            if !skip && self.is_decayed(cfs) {
                self.remove_leaf(cpu, at);
            } else {
                at += 1;
            }
        }
        left
    }

    fn update_blocked_queue(&mut self, cpu: CpuId, cfs: CfsRqId) {
        let clock = self.cfs_rq_clock_pelt(cfs);
        if self.update_cfs_rq_load_avg(clock, cfs) {
            self.update_tg_load_avg(cfs);
            if self.cfs(cfs).nr_queued == 0 {
                self.update_idle_cfs_rq_clock_pelt(cfs);
            }
        }
        // Changes below are propagated up, unless there is nothing left to propagate.
        if let Some(&se) = self.tg(self.cfs(cfs).tg).se.get(cpu.index()) {
            let entity = self.se(se);
            if entity.avg.load_avg != 0 || entity.avg.util_avg != 0 || self.cfs(cfs).propagate {
                let parent = entity.cfs_rq.expect("entity has a queue");
                let update_tg = self.kernel.has(Feature::BlockedUpdateTg);
                self.update_load_avg(parent, se, UpdateFlags { update_tg, ..UpdateFlags::NONE });
            }
        }
    }

    /// Whether a queue is empty, has nothing left to decay and, in later kernels, no listed child.
    ///
    /// Kernel: cfs_rq_is_decayed(), kernel/sched/fair.c, v5.10, v6.12.
    pub(crate) fn is_decayed(&self, cfs: CfsRqId) -> bool {
        let queue = self.cfs(cfs);
        queue.load.weight == 0
            && queue.avg.is_decayed()
            && queue.avg.runnable_load_sum == 0
            && (queue.tg_load_avg_contrib == 0 || !self.kernel.has(Feature::TgLoadAvgRateLimit))
            && !(self.kernel.has(Feature::ListedByDecay) && self.child_on_list(cfs))
    }
}

impl CfsRq {
    /// Kernel: cfs_rq_has_blocked(), kernel/sched/fair.c, v6.12.
    fn has_blocked(&self) -> bool {
        self.avg.load_avg != 0 || self.avg.util_avg != 0
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{Access, CfsRqId, Effect, NICE_0_LOAD, NewTask, Sched, Shared, TgId};

    #[test]
    fn a_group_learns_that_the_blocked_load_of_a_group_below_it_shrank() {
        // A task sleeps in the inner of two groups; 100 ms later its load is decayed. The inner queue comes first, and
        // updates its parent queue as well.
        let written = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let outer = lab.sched.new_group(TgId::ROOT, 1_048_576, CpuId(0), lab.time());
            let inner = lab.sched.new_group(outer, 1_048_576, CpuId(0), lab.time());
            let a = lab.fork("a", 0, NewTask { tg: inner, ..lab.spec() });
            lab.run(100 * MS);
            lab.sleep(a);
            lab.run(100 * MS);
            lab.sched.effects.clear();
            lab.sched.update_blocked_averages(CpuId(0), lab.time());
            let mut written = String::new();
            for effect in &lab.sched.effects {
                if let Effect::Touch { what: Shared::TgLoadAvg(tg), how: Access::Write, .. } = effect {
                    written += if *tg == inner { "inner " } else { "outer " };
                }
            }
            written
        };
        expect![[r#"
            v4.13..v5.5: inner 
            v5.18..v7.3: inner outer "#]]
        .assert_eq(&by_kernel("", written));
    }

    /// The list of a CPU after these queues of nested groups were put on it: `r` is the root's, `a` is above `b`, `b`
    /// above `c`.
    #[test]
    fn queues_are_listed_before_their_parents_unless_those_come_later() {
        let mut drawn = draw("v5.10", "1x1x1 | 0[]");
        let (sched, cpu) = (&mut drawn.sched, CpuId(0));
        let mut above = TgId::ROOT;
        let mut queues = alloc::vec![('r', sched.root_cfs_id(cpu))];
        for name in ['a', 'b', 'c'] {
            above = sched.new_group(above, NICE_0_LOAD, cpu, NOW);
            queues.push((name, sched.made_on_cpu(above, cpu).0));
        }
        let mut listed = |added: &str, removed: &str| -> String {
            let named = |name: char| queues.iter().find(|(known, _)| *known == name).unwrap().1;
            added.chars().for_each(|name| _ = sched.list_add_leaf_cfs_rq(named(name)));
            removed.chars().for_each(|name| sched.list_del_leaf_cfs_rq(named(name)));
            let list = sched.rqs[cpu].leaf_cfs_rqs.iter();
            list.map(|cfs| queues.iter().find(|(_, known)| known == cfs).unwrap().0).collect()
        };
        assert_eq!(listed("cbar", ""), "cbar");
        assert_eq!(listed("", "ab"), "cr");
        // The parent of a listed queue joins at the head, so it is aged before that queue.
        assert_eq!(listed("ba", ""), "bcar");
    }

    /// `a` is above `b` and `d`, `b` above `c`. None is listed, nor is the root's queue.
    fn forked_groups(sched: &mut Sched) -> [(TgId, CfsRqId); 4] {
        let cpu = CpuId(0);
        let a = sched.new_group(TgId::ROOT, NICE_0_LOAD, cpu, NOW);
        let b = sched.new_group(a, NICE_0_LOAD, cpu, NOW);
        let c = sched.new_group(b, NICE_0_LOAD, cpu, NOW);
        let d = sched.new_group(a, NICE_0_LOAD, cpu, NOW);
        let groups = [a, b, c, d].map(|group| (group, sched.made_on_cpu(group, cpu).0));
        while let Some(&queue) = sched.rqs[cpu].leaf_cfs_rqs.first() {
            sched.list_del_leaf_cfs_rq(queue);
        }
        groups
    }

    #[test]
    fn branches_without_a_listed_parent_follow_each_other() {
        let mut drawn = draw("v6.12", "1x1x1 | 0[]");
        let [(_, a), (_, b), (_, c), (_, d)] = forked_groups(&mut drawn.sched);
        let root = drawn.sched.root_cfs_id(CpuId(0));
        // As they are unthrottled; the root's is there.
        let complete = [root, d, c, b, a].map(|queue| drawn.sched.list_add_leaf_cfs_rq(queue));
        assert_eq!(complete, [true, false, false, false, true]);
        assert_eq!(drawn.sched.rqs[CpuId(0)].leaf_cfs_rqs, [d, c, b, a, root]);
        // The end of a branch that leaves makes room for the one before it.
        for queue in [a, b] {
            drawn.sched.list_del_leaf_cfs_rq(queue);
        }
        assert!(!drawn.sched.list_add_leaf_cfs_rq(b));
        drawn.sched.list_del_leaf_cfs_rq(b);
        assert_eq!(drawn.sched.rqs[CpuId(0)].alone_branch, None);
    }

    #[test]
    fn the_newest_group_below_a_throttled_one_is_listed_first() {
        let mut drawn = draw("v6.12", "1x1x1 | 0[]");
        let sched = &mut drawn.sched;
        let [(_, a), (_, b), (_, c), (_, d)] = forked_groups(sched);
        let root = sched.root_cfs_id(CpuId(0));
        sched.list_add_leaf_cfs_rq(root);
        sched.cfs_mut(a).throttled = true;
        for queue in [a, b, c, d] {
            let queue = sched.cfs_mut(queue);
            // Some load is left everywhere.
            (queue.throttle_count, queue.avg.load_sum) = (1, 1);
        }
        sched.unthrottle_cfs_rq(a);
        assert_eq!(sched.rqs[CpuId(0)].leaf_cfs_rqs, [d, c, b, a, root]);
    }

    #[test]
    fn a_queue_sees_a_listed_child_only_right_before_itself() {
        let seen = |order: &dyn Fn([CfsRqId; 4]) -> [CfsRqId; 4]| {
            let mut drawn = draw("v6.12", "1x1x1 | 0[]");
            let [(_, a), (_, b), (_, c), (_, d)] = forked_groups(&mut drawn.sched);
            let root = drawn.sched.root_cfs_id(CpuId(0));
            drawn.sched.list_add_leaf_cfs_rq(root);
            for queue in order([a, b, c, d]) {
                drawn.sched.list_add_leaf_cfs_rq(queue);
            }
            drawn.sched.child_on_list(b)
        };
        assert!(seen(&|[a, b, c, d]| [a, d, b, c]), "d b after c, a after b");
        // c waits for its parent at the head; that comes right before its own parent, behind d.
        assert!(!seen(&|[a, b, c, d]| [a, d, c, b]));
    }

    #[test]
    fn an_unthrottled_queue_lists_those_above_only_if_one_of_them_is_throttled() {
        let listed = |throttled: bool| {
            let mut drawn = draw("v5.10", "1x1x1 | 0[]");
            let sched = &mut drawn.sched;
            let [(_, a), (_, b), (c_group, c), _] = forked_groups(sched);
            let root = sched.root_cfs_id(CpuId(0));
            sched.bandwidth_used = true;
            sched.cfs_mut(a).throttled = throttled;
            let running = NewTask::plain(1);
            let task = sched.new_task(&NewTask { tg: c_group, ..running }, None, NOW);
            let decided = sched.decide_fork(task, CpuId(0), NOW, None);
            sched.apply_fork(task, decided.cpu, NOW);
            // As if c had been throttled with its task, and all levels had left the list.
            sched.cfs_mut(c).throttled = true;
            sched.cfs_mut(c).throttle_count = 1;
            while let Some(&queue) = sched.rqs[CpuId(0)].leaf_cfs_rqs.first() {
                sched.list_del_leaf_cfs_rq(queue);
            }
            sched.unthrottle_cfs_rq(c);
            let list = sched.rqs[CpuId(0)].leaf_cfs_rqs.iter();
            let names = [(root, 'r'), (a, 'a'), (b, 'b'), (c, 'c')];
            list.map(|cfs| names.iter().find(|(known, _)| known == cfs).unwrap().1).collect::<String>()
        };
        assert_eq!([listed(false), listed(true)], ["c", "car"]);
    }

    #[test]
    fn the_levels_above_are_listed_until_the_branch_is_complete() {
        let mut drawn = draw("v5.10", "1x1x1 | 0[]");
        let sched = &mut drawn.sched;
        let [(_, a), (_, b), (c_group, c), _] = forked_groups(sched);
        let below = sched.new_group(c_group, NICE_0_LOAD, CpuId(0), NOW);
        let (_, entity) = sched.made_on_cpu(below, CpuId(0));
        let root = sched.root_cfs_id(CpuId(0));
        for queue in [root, a, b] {
            sched.list_add_leaf_cfs_rq(queue);
        }
        sched.list_del_leaf_cfs_rq(a);
        sched.list_all_above(entity.expect("not the root"));
        assert_eq!(sched.rqs[CpuId(0)].leaf_cfs_rqs, [c, b, root], "a stays away");
    }
}
