//! Creating groups and setting their weight.

use alloc::vec;
use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::weight::{LOAD_SHIFT, NICE_0_LOAD, WEIGHT_IDLEPRIO};
use crate::{
    Bandwidth, CfsRq, CfsRqId, Entity, Feature, LoadWeight, Sched, SeId, TaskGroup, TgId, Uclamp, UpdateFlags,
};

/// Bounds of a group's shares, scaled.
const MIN_SHARES: u64 = 2 << LOAD_SHIFT;
const MAX_SHARES: u64 = (1 << 18) << LOAD_SHIFT;

impl Sched {
    fn has_slice_trees(&self) -> bool {
        self.is_eevdf() && self.kernel.has(Feature::SliceNotRotated)
    }

    /// Keeps the trees of all CPUs' queues from now on, if the rules have them. They matter only to entities of groups, so
    /// the first group does that. The shape of a queue's tree is the kernel's once the queue has been empty.
    pub fn keep_slice_trees(&mut self) {
        if self.has_slice_trees() {
            for cpu in (0..self.rqs.len()).map(CpuId::from) {
                let root = self.root_cfs_id(cpu);
                self.cfs_mut(root).timeline.keep_tree();
            }
        }
    }

    /// Creates a group below another, with shares in 64-bit scale (nice 0 = [`NICE_0_LOAD`]). `creator` is the CPU
    /// whose node's memory holds it.
    ///
    /// Kernel: sched_create_group(), alloc_fair_sched_group(), online_fair_sched_group(), kernel/sched/fair.c, v6.12.
    pub fn new_group(&mut self, parent: TgId, shares: u64, creator: CpuId, now: Time) -> TgId {
        let tg = TgId(self.tgs.len() as u32);
        let counters = self.tg(TgId::ROOT).load_avg.len();
        self.tgs.push(TaskGroup {
            parent: Some(parent),
            shares: NICE_0_LOAD,
            idle: false,
            load_avg: vec![0; counters],
            runnable_avg: 0,
            home_node: self.topology.cpu(creator).node.0,
            cfs_rq: Vec::new(),
            se: Vec::new(),
            blank: None,
            stamps: Vec::new(),
            bandwidth: Bandwidth::default(),
            uclamp_req: Uclamp::default(),
            uclamp: Uclamp::default(),
        });
        self.tgs[tg.0 as usize].uclamp = self.allowed_uclamp(tg);
        let entity = Entity { load: LoadWeight::new(NICE_0_LOAD), ..Entity::default() };
        let mut queue = CfsRq::new(creator, tg);
        if self.has_slice_trees() {
            queue.timeline.keep_tree();
            self.keep_slice_trees();
        }
        self.begin_on_each_cpu(tg, &queue, &entity, |sched, cpu, cfs, se| {
            sched.update_rq_clock(cpu, now);
            sched.init_entity_runnable_average(se);
            sched.attach_entity_cfs_rq(se);
            if sched.cfs(cfs).throttle_count > 0 {
                sched.stop_pelt_clock(cfs);
            }
        });
        if shares != NICE_0_LOAD {
            self.set_shares(tg, shares, now);
        }
        tg
    }

    /// Changes a group's weight, in 64-bit scale. An idle group keeps the weight that it has.
    ///
    /// Kernel: sched_group_set_shares(), kernel/sched/fair.c, v6.12.
    pub fn set_shares(&mut self, tg: TgId, shares: u64, now: Time) {
        assert!(tg != TgId::ROOT, "the root group has no weight");
        if !self.tg(tg).idle {
            self.give_shares(tg, shares, now);
        }
    }

    fn give_shares(&mut self, tg: TgId, shares: u64, now: Time) {
        let shares = shares.clamp(MIN_SHARES, MAX_SHARES);
        if self.tg(tg).shares == shares {
            return;
        }
        self.tgs[tg.0 as usize].shares = shares;
        self.on_each_cpu(tg, |sched, cpu, _, se| {
            sched.update_rq_clock(cpu, now);
            let mut level = Some(se);
            while let Some(se) = level {
                let cfs = sched.cfs_rq_of(se);
                sched.update_load_avg(cfs, se, UpdateFlags::UPDATE_TG);
                sched.update_cfs_group(se);
                level = sched.se(se).parent;
            }
        });
    }

    /// Makes a group idle (the whole group counts as SCHED_IDLE among its siblings), or not. A kernel without
    /// `cpu.idle` has no such file: the group does not change.
    ///
    /// Kernel: sched_group_set_idle(), kernel/sched/fair.c, v6.12.
    pub fn set_idle_group(&mut self, tg: TgId, idle: bool, now: Time) {
        assert!(tg != TgId::ROOT, "the root group is not idle");
        if self.tg(tg).idle == idle || !self.kernel.has(Feature::IdleGroups) {
            return;
        }
        self.tgs[tg.0 as usize].idle = idle;
        self.on_each_cpu(tg, |sched, _, cfs, se| sched.set_idle_on_cpu(cfs, se, idle));
        let shares = if idle { WEIGHT_IDLEPRIO << LOAD_SHIFT } else { NICE_0_LOAD };
        self.give_shares(tg, shares, now);
    }

    fn set_idle_on_cpu(&mut self, cfs: CfsRqId, se: SeId, idle: bool) {
        self.cfs_mut(cfs).idle = idle;
        let was_idle = self.se_is_idle(se);
        self.se_mut(se).idle = idle;
        let now_idle = self.se_is_idle(se);
        if self.se(se).on_rq {
            let above = self.cfs_rq_of(se);
            let queue = self.cfs_mut(above);
            queue.idle_nr_queued = queue.idle_nr_queued + now_idle as u32 - was_idle as u32;
        }
        // Tasks that are not idle themselves become so, or cease to be, on all levels
        // up to the next idle group.
        let queue = self.cfs(cfs);
        let delta = queue.h_nr_queued - queue.h_nr_idle;
        let mut level = Some(se);
        while let Some(se) = level.filter(|&se| self.se(se).on_rq) {
            let above = self.cfs_rq_of(se);
            let queue = self.cfs_mut(above);
            queue.h_nr_idle = if idle { queue.h_nr_idle + delta } else { queue.h_nr_idle - delta };
            if queue.idle {
                return;
            }
            level = self.se(se).parent;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use schedlab_topology::CpuId;

    use crate::drawing::{NOW, draw};
    use crate::lab::{Lab, MS};
    use crate::{NICE_0_LOAD, NewTask, TgId};

    #[test]
    fn an_idle_group_gets_no_other_shares() {
        let mut drawn = draw("v7.2", "1x1x1 | 0[a*]");
        let sched = &mut drawn.sched;
        let group = sched.new_group(TgId::ROOT, 2 * NICE_0_LOAD, CpuId(0), NOW);
        let mut shares = Vec::new();
        for idle in [false, true, false] {
            sched.set_idle_group(group, idle, NOW);
            shares.push(sched.tg(group).shares >> 10);
            sched.set_shares(group, 512 << 10, NOW);
            shares.push(sched.tg(group).shares >> 10);
        }
        assert_eq!(shares, [2048, 512, 3, 3, 1024, 512]);
    }

    /// The last task of CPU 0 leaves while a group that is asleep is still queued there: the group leaves first, and a
    /// task that is pulled then joins an empty queue, where its lag does not matter.
    #[test]
    fn a_sleeping_group_leaves_before_a_cpu_looks_for_work() {
        for kernel in ["v6.12", "v7.2"] {
            let mut lab = Lab::new(&alloc::format!("{kernel}+NO_HRTICK"), "1x1x2").without_ticks();
            let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), lab.time());
            let spec = NewTask { tg: group, ..lab.spec() };
            let grouped = lab.fork("grouped", 0, spec);
            let alone = lab.hog("alone", 0);
            for name in ["c", "d", "e"] {
                lab.hog(name, 1);
            }
            lab.run(MS);
            if lab.running(0) == "alone" {
                let now = lab.time();
                lab.sched.yield_task(CpuId(0), now);
                lab.sched.rqs[CpuId(0)].need_resched.full = true;
                lab.settle();
            }
            assert_eq!(lab.running(0), "grouped", "{kernel}");
            lab.run(2 * MS);
            lab.sleep(grouped);
            let entity = lab.sched.tg(group).se[0];
            assert!(lab.sched.se(entity).sched_delayed, "{kernel}: it ran too much and stays queued");
            lab.sleep(alone);
            assert!(!lab.sched.se(entity).on_rq, "{kernel}");
            let pulled = lab.sched.rqs[CpuId(0)].curr.task().expect("one of three is pulled");
            let (se, zero) = (&lab.sched.task(pulled).se, lab.sched.cfs(crate::CfsRqId(0)).zero_vruntime);
            assert_eq!(se.vruntime, zero, "{kernel}: alone it is the average");
        }
    }
}
