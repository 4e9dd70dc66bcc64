//! Propagating a change of load from a group's queue to the levels above.
//!
//! When a task joins or leaves a group on a CPU, the group's entity one level up must change by as much at
//! once, not by slow decay. Utilisation and runnable time are copied; load is not simply additive, so the
//! runnable sum of the tasks that joined or left is propagated and clipped to the maximum of one CPU.

use crate::pelt::{LOAD_AVG_MAX, PELT_MIN_DIVIDER, add_positive};
use crate::{CfsRqId, Feature, PeltClock, PeltSums, Sched, SeId, TgId, UpdateFlags};

impl Sched {
    /// Records a change of a queue for the level above.
    ///
    /// Kernel: add_tg_cfs_propagate(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub(crate) fn add_tg_cfs_propagate(&mut self, cfs: CfsRqId, runnable_sum: i64) {
        let queue = self.cfs_mut(cfs);
        if queue.tg != TgId::ROOT {
            queue.propagate = true;
            queue.prop_runnable_sum += runnable_sum;
        }
    }

    /// Updates a group entity from its queue if the queue changed. True if it did.
    ///
    /// Kernel: propagate_entity_load_avg(), kernel/sched/fair.c, v6.12 and v4.13.
    #[inline]
    pub(crate) fn propagate_entity_load_avg(&mut self, se: SeId) -> bool {
        let Some(my_q) = self.se(se).my_q else { return false };
        if !self.cfs(my_q).propagate {
            return false;
        }
        self.propagate(se, my_q);
        true
    }

    #[cold]
    fn propagate(&mut self, se: SeId, my_q: CfsRqId) {
        let cfs = self.se(se).cfs_rq.expect("entity has a queue");
        self.cfs_mut(my_q).propagate = false;
        if self.kernel.rules.pelt == PeltClock::InContribution {
            self.cfs_mut(cfs).propagate = self.cfs(cfs).tg != TgId::ROOT;
            self.update_tg_cfs_util(cfs, se, my_q);
            self.update_tg_cfs_load_weighted(cfs, se, my_q);
            return;
        }
        self.add_tg_cfs_propagate(cfs, self.cfs(my_q).prop_runnable_sum);
        self.update_tg_cfs_util(cfs, se, my_q);
        self.update_tg_cfs_runnable(cfs, se, my_q);
        self.update_tg_cfs_load(cfs, se, my_q);
    }

    /// Kernel: update_tg_cfs_util(), kernel/sched/fair.c, v6.12 and v5.5.
    fn update_tg_cfs_util(&mut self, cfs: CfsRqId, se: SeId, my_q: CfsRqId) {
        let form = self.kernel.rules.pelt_sums;
        let util_avg = self.cfs(my_q).avg.util_avg;
        let (mut queue, mut own) = (self.cfs(cfs).avg, self.se(se).avg);
        let delta = util_avg as i64 - own.util_avg as i64;
        if delta == 0 {
            return;
        }
        own.util_avg = util_avg;
        add_positive(&mut queue.util_avg, delta);
        if form == PeltSums::Plain {
            own.util_sum = util_avg * LOAD_AVG_MAX;
            queue.util_sum = queue.util_avg * LOAD_AVG_MAX;
        } else {
            let sum = util_avg * queue.divider();
            add_positive(&mut queue.util_sum, sum as i64 - own.util_sum as i64);
            own.util_sum = sum;
            queue.util_sum = queue.util_sum.max(queue.util_avg * PELT_MIN_DIVIDER);
        }
        if form == PeltSums::Synced {
            queue.util_sum = queue.util_avg * queue.divider();
        }
        self.cfs_mut(cfs).avg = queue;
        self.se_mut(se).avg = own;
    }

    /// Kernel: update_tg_cfs_runnable(), kernel/sched/fair.c, v6.12.
    fn update_tg_cfs_runnable(&mut self, cfs: CfsRqId, se: SeId, my_q: CfsRqId) {
        let form = self.kernel.rules.pelt_sums;
        let runnable_avg = self.cfs(my_q).avg.runnable_avg;
        let (mut queue, mut own) = (self.cfs(cfs).avg, self.se(se).avg);
        let delta = runnable_avg as i64 - own.runnable_avg as i64;
        if delta == 0 {
            return;
        }
        let sum = runnable_avg * queue.divider();
        add_positive(&mut queue.runnable_avg, delta);
        add_positive(&mut queue.runnable_sum, sum as i64 - own.runnable_sum as i64);
        queue.runnable_sum = queue.runnable_sum.max(queue.runnable_avg * PELT_MIN_DIVIDER);
        if form == PeltSums::Synced {
            queue.runnable_sum = queue.runnable_avg * queue.divider();
        }
        own.runnable_avg = runnable_avg;
        own.runnable_sum = sum;
        self.cfs_mut(cfs).avg = queue;
        self.se_mut(se).avg = own;
    }

    /// Kernel: update_tg_cfs_load(), kernel/sched/fair.c, v6.12; update_tg_cfs_runnable() in v5.5.
    fn update_tg_cfs_load(&mut self, cfs: CfsRqId, se: SeId, my_q: CfsRqId) {
        let form = self.kernel.rules.pelt_sums;
        let change = core::mem::take(&mut self.cfs_mut(my_q).prop_runnable_sum);
        if change == 0 {
            return;
        }
        let below = self.cfs(my_q);
        let below_weight = self.scale_load_down(below.load.weight);
        let per_weight = below.avg.load_sum.checked_div(below_weight).unwrap_or(0);
        let weight = self.scale_load_down(self.se(se).load.weight);
        let (mut queue, mut own) = (self.cfs(cfs).avg, self.se(se).avg);
        let divider = if form == PeltSums::Plain { LOAD_AVG_MAX } else { queue.divider() };

        // Joining tasks add up to the CPU's limit; leaving ones are assumed to have had an equal share.
        let runnable = if change >= 0 {
            (own.load_sum + change as u64).min(divider)
        } else {
            own.load_sum.min(per_weight)
        };
        let runnable = runnable.max(own.util_sum >> 10);
        let load_sum = weight * runnable;
        let load_avg = load_sum / divider;
        let delta_avg = load_avg as i64 - own.load_avg as i64;
        if delta_avg == 0 && !matches!(form, PeltSums::Plain | PeltSums::Synced) {
            return;
        }
        let delta_sum = load_sum as i64 - (weight * own.load_sum) as i64;
        own.load_sum = runnable;
        own.load_avg = load_avg;
        add_positive(&mut queue.load_avg, delta_avg);
        add_positive(&mut queue.load_sum, delta_sum);
        crate::load_avg::raise(form, queue.load_avg, &mut queue.load_sum);
        if form == PeltSums::Synced {
            queue.load_sum = queue.load_avg * divider;
        }
        self.cfs_mut(cfs).avg = queue;
        self.se_mut(se).avg = own;
    }

    /// Sets the entity's load directly to its share of the group's load.
    ///
    /// Kernel: update_tg_cfs_load(), kernel/sched/fair.c, v4.13.
    fn update_tg_cfs_load_weighted(&mut self, cfs: CfsRqId, se: SeId, my_q: CfsRqId) {
        let below = self.cfs(my_q);
        let (tg, contrib, mut load) = (below.tg, below.tg_load_avg_contrib, below.avg.load_avg);
        if load != 0 {
            let tg_load = (self.read_tg_load_avg(my_q) + 1 - contrib as i64 + load as i64) as u64;
            let shares = self.scale_load_down(self.tg(tg).shares);
            if tg_load > shares {
                load = load * shares / tg_load;
            }
        }
        let on_rq = self.se(se).on_rq;
        let (mut queue, mut own) = (self.cfs(cfs).avg, self.se(se).avg);
        let delta = load as i64 - own.load_avg as i64;
        if delta == 0 {
            return;
        }
        own.load_avg = load;
        own.load_sum = load * LOAD_AVG_MAX;
        add_positive(&mut queue.load_avg, delta);
        queue.load_sum = queue.load_avg * LOAD_AVG_MAX;
        if on_rq {
            add_positive(&mut queue.runnable_load_avg, delta);
            queue.runnable_load_sum = queue.runnable_load_avg * LOAD_AVG_MAX;
        }
        self.cfs_mut(cfs).avg = queue;
        self.se_mut(se).avg = own;
    }

    /// Informs all levels above that an entity was attached or detached.
    ///
    /// Kernel: propagate_entity_cfs_rq(), kernel/sched/fair.c, v6.12.
    pub(crate) fn propagate_entity_cfs_rq(&mut self, se: SeId) {
        let cfs = self.se(se).cfs_rq.expect("entity has a queue");
        if self.kernel.has(Feature::LoadPastThrottled) {
            self.propagate_beyond_throttled(cfs, self.se(se).parent);
            return;
        }
        // In kernels that throttle task by task, a throttled queue is still averaged while any of its tasks
        // runs.
        let goes_on = self.kernel.has(Feature::BandwidthPerTask);
        if self.cfs(cfs).throttled && !goes_on {
            return;
        }
        let attach_lists = self.kernel.has(Feature::AttachLists);
        let lists = |queue: &crate::CfsRq| {
            attach_lists && if goes_on { !queue.pelt_clock_throttled } else { queue.throttle_count == 0 }
        };
        if lists(self.cfs(cfs)) {
            self.list_add_leaf_cfs_rq(cfs);
        }
        let mut next = self.se(se).parent;
        while let Some(se) = next {
            let cfs = self.se(se).cfs_rq.expect("entity has a queue");
            self.update_load_avg(cfs, se, UpdateFlags::UPDATE_TG);
            if self.cfs(cfs).throttled && !goes_on {
                return;
            }
            if lists(self.cfs(cfs)) {
                self.list_add_leaf_cfs_rq(cfs);
            }
            next = self.se(se).parent;
        }
    }

    /// Informs the levels above a queue, throttled or not, up to a throttled one. If queues are listed on the
    /// way, that level is skipped if no queue above it was on the list.
    ///
    /// Kernel: propagate_entity_cfs_rq(), kernel/sched/fair.c, v4.13, v5.10.
    fn propagate_beyond_throttled(&mut self, cfs: CfsRqId, parent: Option<SeId>) {
        let lists = self.kernel.has(Feature::AttachLists);
        let mut connected = !lists || self.list_connected(cfs, true);
        let mut next = parent;
        while let Some(se) = next {
            let cfs = self.se(se).cfs_rq.expect("entity has a queue");
            let throttled = self.cfs(cfs).throttled;
            if !throttled {
                self.update_load_avg(cfs, se, UpdateFlags::UPDATE_TG);
            }
            if lists {
                connected = self.list_connected(cfs, connected);
            }
            if throttled && connected {
                return;
            }
            next = self.se(se).parent;
        }
    }

    /// Puts a queue on the list of queues to decay. True if the queues put there before are below one that was on it.
    ///
    /// Kernel: list_add_leaf_cfs_rq(), kernel/sched/fair.c, v5.10.
    fn list_connected(&mut self, cfs: CfsRqId, connected: bool) -> bool {
        let queue = self.cfs(cfs);
        if queue.on_list {
            return connected;
        }
        let (cpu, tg) = (queue.cpu, queue.tg);
        self.list_add_leaf_cfs_rq(cfs);
        self.tg(tg).parent.is_none_or(|above| self.cfs(self.tg(above).cfs_rq[cpu.index()]).on_list)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NICE_0_LOAD, NewTask, SeId, TgId};

    #[test]
    fn load_that_leaves_a_queue_without_time_leaves_the_level_above_or_waits() {
        let above = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            let now = lab.time();
            let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), now);
            let task = lab.fork("a", 0, NewTask { tg: group, ..lab.spec() });
            lab.run(100 * MS);
            let (queue, entity) = (lab.sched.tg(group).cfs_rq[0], lab.sched.tg(group).se[0]);
            lab.sched.cfs_mut(queue).throttled = true;
            lab.sched.detach_entity_cfs_rq(SeId(task.0));
            let left = lab.sched.se(entity).avg.util_avg;
            if left == 0 { "leaves" } else { "waits" }.into()
        });
        expect![[r#"
            v4.13..v5.18: leaves
            v6.1..v6.12: waits
            v7.2..v7.3: leaves"#]]
        .assert_eq(&above);
    }

    #[test]
    fn load_that_leaves_below_a_queue_without_time_stays_on_its_own_level() {
        let above = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            let now = lab.time();
            let outer = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), now);
            let inner = lab.sched.new_group(outer, NICE_0_LOAD, CpuId(0), now);
            let task = lab.fork("a", 0, NewTask { tg: inner, ..lab.spec() });
            lab.run(100 * MS);
            lab.sched.bandwidth_used = true;
            let queue = lab.sched.tg(outer).cfs_rq[0];
            lab.sched.cfs_mut(queue).throttled = true;
            lab.sched.detach_entity_cfs_rq(SeId(task.0));
            let left = [inner, outer].map(|tg| lab.sched.se(lab.sched.tg(tg).se[0]).avg.util_avg == 0);
            alloc::format!("{left:?}")
        });
        expect![[r#"
            v4.13..v5.18: [false, false]
            v6.1..v6.12: [true, false]
            v7.2..v7.3: [true, true]"#]]
        .assert_eq(&above);
    }

    #[test]
    fn a_queue_below_one_without_time_is_not_aged_when_load_comes_to_it() {
        let listed = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x1");
            let now = lab.time();
            let outer = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), now);
            let inner = lab.sched.new_group(outer, NICE_0_LOAD, CpuId(0), now);
            let task = lab.hog("a", 0);
            lab.run(10 * MS);
            lab.sleep(task);
            lab.sched.bandwidth_used = true;
            let [below, above] = [inner, outer].map(|tg| lab.sched.made_on_cpu(tg, CpuId(0)).0);
            lab.sched.cfs_mut(above).throttled = true;
            for cfs in [below, above] {
                lab.sched.cfs_mut(cfs).throttle_count = 1;
            }
            let now = lab.time();
            lab.sched.move_task_to_group(task, inner, now);
            alloc::format!("{}", lab.sched.cfs(below).on_list)
        });
        expect![[r#"
            v4.13..v5.5: false
            v5.18: true
            v6.1..v6.12: false
            v7.2..v7.3: true"#]]
        .assert_eq(&listed);
    }
}
