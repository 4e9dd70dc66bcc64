//! A group's queue and entity on a CPU are created when a task of the group is first queued there.
//!
//! Until then they are equal on every CPU, except for the time up to which the entity's averages are known: that of the
//! parent queue when the group was created. So a group has one [`Blank`] for all of them, and two numbers for each CPU.
//! A change of the whole group, such as its shares, is applied to each CPU's queue and entity in turn as if they had
//! always existed, because it updates the averages above; those that are still blank after that are dropped again.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec;

use schedlab_topology::CpuId;

use crate::{CfsRq, CfsRqId, Entity, Sched, SeId, TgId};

/// The queue and entity of a group on CPUs where it never had a task.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Blank {
    queue: CfsRq,
    entity: Entity,
}

/// The time up to which the averages of a blank entity are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    last_update_time: u64,
    period_contrib: u32,
}

impl Blank {
    /// The blank of a queue and an entity, and their own numbers. `None` if a task has been there.
    fn of(queue: &CfsRq, entity: &Entity) -> Option<(Blank, Stamp)> {
        let used = queue.on_list || queue.throttled || queue.nr_queued > 0 || entity.on_rq;
        if used || !queue.timeline.is_empty() || !queue.throttled_limbo.is_empty() {
            return None;
        }
        let (mut queue, mut entity) = (queue.clone(), entity.clone());
        let stamp = Stamp {
            last_update_time: core::mem::take(&mut entity.avg.last_update_time),
            period_contrib: core::mem::take(&mut entity.avg.period_contrib),
        };
        queue.cpu = CpuId(0);
        (entity.parent, entity.cfs_rq, entity.my_q) = (None, None, None);
        Some((Blank { queue, entity }, stamp))
    }
}

impl CfsRqId {
    /// Stands in for a queue that does not exist yet.
    const UNMADE: CfsRqId = CfsRqId(u32::MAX);
}

impl Sched {
    /// A group's queue on a CPU, and its entity there, if they exist; the root has no entity.
    #[inline]
    pub fn on_cpu(&self, tg: TgId, cpu: CpuId) -> Option<(CfsRqId, Option<SeId>)> {
        let group = self.tg(tg);
        let cfs = group.cfs_rq[cpu.index()];
        (cfs != CfsRqId::UNMADE).then(|| (cfs, group.se.get(cpu.index()).copied()))
    }

    /// The same; creates them if they do not exist.
    #[inline]
    pub fn made_on_cpu(&mut self, tg: TgId, cpu: CpuId) -> (CfsRqId, Option<SeId>) {
        if self.tg(tg).cfs_rq[cpu.index()] == CfsRqId::UNMADE {
            self.make_on_cpu(tg, cpu);
        }
        let group = self.tg(tg);
        (group.cfs_rq[cpu.index()], group.se.get(cpu.index()).copied())
    }

    /// How many throttled groups contain a group on a CPU, itself included.
    pub(crate) fn throttle_count(&self, tg: TgId, cpu: CpuId) -> u32 {
        self.queue_or_blank(tg, cpu).throttle_count
    }

    /// Whether quota is in force for the queue of a group on a CPU.
    pub(crate) fn runtime_enabled(&self, tg: TgId, cpu: CpuId) -> bool {
        self.queue_or_blank(tg, cpu).runtime_enabled
    }

    fn queue_or_blank(&self, tg: TgId, cpu: CpuId) -> &CfsRq {
        match self.on_cpu(tg, cpu) {
            Some((cfs, _)) => self.cfs(cfs),
            None => &self.blank(tg).queue,
        }
    }

    fn blank(&self, tg: TgId) -> &Blank {
        self.tg(tg).blank.as_deref().expect("a group that is not made everywhere has a blank")
    }

    /// A group's queue and entity on a CPU, whether they exist or not; the group is not the root. Where they do not exist, these
    /// are shared by all such CPUs: the number of the CPU and the times of the averages are missing.
    #[inline]
    pub fn queue_and_entity(&self, tg: TgId, cpu: CpuId) -> (&CfsRq, &Entity) {
        if let Some((cfs, se)) = self.on_cpu(tg, cpu) {
            return (self.cfs(cfs), self.se(se.expect("not the root")));
        }
        let blank = self.blank(tg);
        (&blank.queue, &blank.entity)
    }

    /// The same with what is missing, as they will be made.
    pub(crate) fn seen_on_cpu(&self, tg: TgId, cpu: CpuId) -> (Cow<'_, CfsRq>, Cow<'_, Entity>) {
        if let Some((cfs, se)) = self.on_cpu(tg, cpu) {
            return (Cow::Borrowed(self.cfs(cfs)), Cow::Borrowed(self.se(se.expect("not the root"))));
        }
        let blank = self.blank(tg);
        let (mut queue, mut entity) = (blank.queue.clone(), blank.entity.clone());
        let stamp = self.tg(tg).stamps[cpu.index()];
        queue.cpu = cpu;
        entity.avg.last_update_time = stamp.last_update_time;
        entity.avg.period_contrib = stamp.period_contrib;
        (Cow::Owned(queue), Cow::Owned(entity))
    }

    #[cold]
    fn make_on_cpu(&mut self, tg: TgId, cpu: CpuId) {
        let (queue, entity) = self.seen_on_cpu(tg, cpu);
        let (queue, entity) = (queue.into_owned(), entity.into_owned());
        self.add_on_cpu(tg, cpu, queue, entity);
    }

    /// Adds a queue and an entity of a group, made for any CPU, to this CPU.
    fn add_on_cpu(&mut self, tg: TgId, cpu: CpuId, mut queue: CfsRq, mut entity: Entity) {
        let cfs = CfsRqId(self.cfs_rqs.len() as u32);
        let se = SeId(self.group_ses.len() as u32 | SeId::GROUP);
        let parent = self.tg(tg).parent.expect("the root is made everywhere");
        let (above, parent_se) = self.made_now(parent, cpu);
        queue.cpu = cpu;
        entity.depth = parent_se.map_or(0, |above| self.se(above).depth + 1);
        (entity.parent, entity.cfs_rq, entity.my_q) = (parent_se, Some(above), Some(cfs));
        self.cfs_rqs.push(queue);
        self.group_ses.push(entity);
        let group = &mut self.tgs[tg.0 as usize];
        group.cfs_rq[cpu.index()] = cfs;
        group.se[cpu.index()] = se;
    }

    fn made_now(&self, tg: TgId, cpu: CpuId) -> (CfsRqId, Option<SeId>) {
        self.on_cpu(tg, cpu).expect("a group with groups below is made everywhere")
    }

    /// Creates a new group's queue and entity on each CPU in turn; blank ones are dropped again.
    pub(crate) fn begin_on_each_cpu(
        &mut self,
        tg: TgId,
        queue: &CfsRq,
        entity: &Entity,
        mut begin: impl FnMut(&mut Sched, CpuId, CfsRqId, SeId),
    ) {
        let nr_cpus = self.rqs.len();
        let parent = self.tg(tg).parent.expect("the root is not new");
        let group = &mut self.tgs[tg.0 as usize];
        group.cfs_rq = vec![CfsRqId::UNMADE; nr_cpus];
        group.se = vec![SeId(u32::MAX); nr_cpus];
        group.stamps = vec![Stamp::default(); nr_cpus];
        let mut blank = None;
        for cpu in (0..nr_cpus).map(CpuId::from) {
            let (above, _) = self.made_on_cpu(parent, cpu);
            let mut queue = queue.clone();
            queue.throttle_count = self.cfs(above).throttle_count;
            self.add_on_cpu(tg, cpu, queue, entity.clone());
            self.do_on_cpu(tg, cpu, &mut begin);
            self.drop_if_blank(tg, cpu, &mut blank);
        }
        self.tgs[tg.0 as usize].blank = blank;
    }

    /// Calls a function on a group's queue and entity on each CPU in turn, blank or not.
    pub(crate) fn on_each_cpu(&mut self, tg: TgId, mut act: impl FnMut(&mut Sched, CpuId, CfsRqId, SeId)) {
        let mut blank = None;
        for cpu in (0..self.rqs.len()).map(CpuId::from) {
            let was_made = self.on_cpu(tg, cpu).is_some();
            self.made_on_cpu(tg, cpu);
            self.do_on_cpu(tg, cpu, &mut act);
            if !was_made {
                self.drop_if_blank(tg, cpu, &mut blank);
            }
        }
        self.tgs[tg.0 as usize].blank = blank;
    }

    fn do_on_cpu(&mut self, tg: TgId, cpu: CpuId, act: &mut impl FnMut(&mut Sched, CpuId, CfsRqId, SeId)) {
        let (cfs, se) = self.made_now(tg, cpu);
        act(self, cpu, cfs, se.expect("the root is not asked for"));
    }

    /// Drops the queue and the entity that were created last if they equal the blank, or are the first blank
    /// ones.
    fn drop_if_blank(&mut self, tg: TgId, cpu: CpuId, blank: &mut Option<Box<Blank>>) {
        let (cfs, se) = self.made_now(tg, cpu);
        debug_assert_eq!(cfs.0 as usize + 1, self.cfs_rqs.len(), "it was made last");
        let Some((own, stamp)) = Blank::of(self.cfs(cfs), self.se(se.expect("not the root"))) else { return };
        if **blank.get_or_insert_with(|| Box::new(own.clone())) != own {
            return;
        }
        self.cfs_rqs.pop();
        self.group_ses.pop();
        let group = &mut self.tgs[tg.0 as usize];
        group.cfs_rq[cpu.index()] = CfsRqId::UNMADE;
        group.se[cpu.index()] = SeId(u32::MAX);
        group.stamps[cpu.index()] = stamp;
    }

    /// A group's existing queues.
    pub fn queues_of(&self, tg: TgId) -> impl Iterator<Item = CfsRqId> + '_ {
        self.tg(tg).cfs_rq.iter().copied().filter(|&cfs| cfs != CfsRqId::UNMADE)
    }
}

#[cfg(test)]
mod tests {
    use schedlab_units::{TaskId, Time};

    use super::*;
    use crate::drawing::{NOW, draw};
    use crate::lab::Random;
    use crate::{NICE_0_LOAD, Sched};

    fn made(sched: &Sched, tg: TgId) -> usize {
        sched.queues_of(tg).count()
    }

    /// Whatever happens to groups: one created on all CPUs at once and one created where its tasks run are equal on
    /// every CPU, and so are the queues above them.
    #[test]
    fn a_group_looks_the_same_made_late() {
        for kernel in ["v4.13", "v5.5", "v5.18", "v6.3", "v6.12", "v7.2"] {
            let new = || draw(kernel, "1x2x2 | 0[a*] 1[b*] 2[] 3[c*]").sched;
            let (mut early, mut late) = (new(), new());
            let mut random = Random(11);
            let mut tgs = alloc::vec![TgId::ROOT];
            for step in 0..120 {
                let now = Time(NOW.0 + step * 700_123);
                let (what, which, value) = (random.below(9), random.below(64), random.below(500));
                let tg = tgs[which as usize % tgs.len()];
                for (sched, at_once) in [(&mut early, true), (&mut late, false)] {
                    match what {
                        0 | 1 if tgs.len() < 6 => {
                            let new = sched.new_group(tg, NICE_0_LOAD * (value % 3 + 1), CpuId(0), now);
                            assert!(made(sched, new) == 0, "{kernel}: nothing is made at once");
                            if at_once {
                                (0..4).for_each(|cpu| _ = sched.made_on_cpu(new, CpuId(cpu)));
                            }
                        }
                        2 if tg != TgId::ROOT => sched.set_shares(tg, NICE_0_LOAD + value * 1024, now),
                        3 if tg != TgId::ROOT => sched.set_idle_group(tg, value % 2 == 0, now),
                        4 if tg != TgId::ROOT => {
                            let quota = (value % 2 == 0).then_some(40_000_000 + value);
                            sched.set_bandwidth(tg, quota, 100_000_000, 0, now);
                        }
                        5 | 6 => sched.move_task_to_group(TaskId(value as u32 % 3), tg, now),
                        _ => sched.update_blocked_averages(CpuId(which as u16 % 4), now),
                    }
                    sched.check();
                }
                if matches!(what, 0 | 1) && tgs.len() < 6 {
                    tgs.push(TgId(tgs.len() as u32));
                }
                compare(&early, &late, &tgs, &alloc::format!("{kernel}, step {step}, {what}"));
            }
            let least = tgs.iter().map(|&tg| made(&late, tg)).min();
            assert!(least < Some(4), "{kernel}: some are not made everywhere");
        }
    }

    fn compare(early: &Sched, late: &Sched, tgs: &[TgId], what: &str) {
        for cpu in (0..4).map(CpuId) {
            let (a, b) = (early.cfs(early.root_cfs_id(cpu)), late.cfs(late.root_cfs_id(cpu)));
            assert_eq!(
                (a.avg, a.load, a.min_vruntime),
                (b.avg, b.load, b.min_vruntime),
                "{what}, root on {cpu}"
            );
            for &tg in &tgs[1..] {
                let ((a, x), (b, y)) = (early.seen_on_cpu(tg, cpu), late.seen_on_cpu(tg, cpu));
                assert_eq!(
                    (x.avg, x.load, x.idle, x.depth),
                    (y.avg, y.load, y.idle, y.depth),
                    "{what}, {tg:?} on {cpu}"
                );
                assert_eq!((a.avg, a.load, a.idle), (b.avg, b.load, b.idle), "{what}, {tg:?} on {cpu}");
                assert_eq!(
                    (a.runtime_enabled, a.runtime_remaining, a.throttle_count),
                    (b.runtime_enabled, b.runtime_remaining, b.throttle_count),
                    "{what}, {tg:?} on {cpu}"
                );
            }
        }
        for &tg in tgs {
            assert_eq!(early.tg(tg).load_avg, late.tg(tg).load_avg, "{what}, {tg:?}");
        }
        assert_eq!(early.effects, late.effects, "{what}");
    }
}
