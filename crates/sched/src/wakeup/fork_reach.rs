//! The CPUs that a new task can reach, whatever the averages are within their bounds.
//!
//! Groups with fewer tasks than CPUs are compared by the number of idle CPUs, whatever their averages; averages decide
//! only ties, full groups and groups without an idle CPU. So the walk down the domains is made once with both ends of
//! the bounds, and follows every group and CPU that no other certainly beats. CPUs that it does not reach need not be
//! tried; a CPU that it reaches may still follow from no values within the bounds.

use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

use crate::{
    Feature, ForkGroup, GroupType, Reason, Sched, SchedDomain, SchedGroup, SdFlags, SgId, SgLbStats,
    Supposed, View,
};

use super::ForkFacts;
use super::find_idlest_cpu::{below, find_idlest_group_cpu};
use super::find_idlest_group::{leaves_with_spare, update_sg_wakeup_stats};
use super::select_task_rq::top_domain;

/// The CPUs that a new task can reach.
#[derive(Clone, Debug)]
pub struct ForkReach {
    /// All of them.
    pub cpus: CpuMask,
    /// CPUs that the task reaches, each as the only one of its group, if their averages are the lowest and those of
    /// all others the highest. The placement need not be computed for them.
    pub sure: CpuMask,
}

impl ForkReach {
    fn unsure(cpus: CpuMask) -> ForkReach {
        ForkReach { sure: CpuMask::default(), cpus }
    }
}

impl Sched {
    /// All CPUs to which [`View::decide_fork`] can send a task that `this` forks, with averages between `least` and
    /// `most`, with these marks of groups, and if one of the `unknown` CPUs went idle at `stamp`.
    pub fn fork_reach(
        &self,
        task: TaskId,
        this: CpuId,
        now: Time,
        (least, most): (&ForkFacts, &ForkFacts),
        imbalance: &[(u32, bool)],
        unknown: impl Fn(CpuId) -> bool,
        stamp: u64,
    ) -> ForkReach {
        let nr_cpus = self.rqs.len();
        let p = self.task(task);
        let flag = SdFlags::BALANCE_FORK;
        let top =
            top_domain(self, this, flag).filter(|&top| self.domains.sd(top).span.intersects(&p.allowed));
        if top.is_none() || p.nr_cpus_allowed <= 1 || !p.policy.is_fair() {
            return ForkReach::unsure(CpuMask::one(nr_cpus, self.decide_fork(task, this, now, None).cpu));
        }
        let asym = self.domains.walk(this).any(|(_, sd)| sd.flags.has(SdFlags::ASYM_CPUCAPACITY));
        if self.kernel.rules.fork_group == ForkGroup::Load || asym {
            return ForkReach::unsure(CpuMask::all(nr_cpus));
        }
        let [least, most] =
            [least, most].map(|facts| Supposed { fork: Some(facts), imbalance, ..Supposed::NOTHING });
        let (least, most) = (View::supposing(self, now, &least), View::supposing(self, now, &most));
        let walk = Walk { sched: self, task, least, most };
        let mut reached = CpuMask::new(nr_cpus);
        let mut sure = CpuMask::new(nr_cpus);
        let mut met = Vec::with_capacity(2 * nr_cpus);
        met.push((this, top));
        let mut at = 0;
        while let Some(&(cpu, domain)) = met.get(at) {
            at += 1;
            let Some(id) = domain else {
                reached.set(cpu);
                continue;
            };
            let sd = self.domains.sd(id);
            let mut go = |cpu, domain| {
                if !met.contains(&(cpu, domain)) {
                    met.push((cpu, domain));
                }
            };
            if !sd.flags.has(flag) {
                go(cpu, sd.child);
                continue;
            }
            let (stays, groups) = walk.groups(sd, cpu);
            if stays {
                go(cpu, sd.child);
            }
            for (group, surely) in groups {
                walk.cpus(self.domains.sg(group), cpu, &unknown, stamp, |found| {
                    let next = if found == cpu { sd.child } else { below(&self.domains, found, sd, flag) };
                    go(found, next);
                    if surely && domain == top && next.is_none() && self.rqs[found].active {
                        sure.set(found);
                    }
                });
            }
        }
        if !reached.is_subset(&p.allowed) {
            reached.set(self.select_fallback_rq(task));
        }
        ForkReach { cpus: reached, sure }
    }
}

struct Walk<'a> {
    sched: &'a Sched,
    task: TaskId,
    least: View<'a>,
    most: View<'a>,
}

/// Statistics of a group at both ends.
struct Bounded {
    id: SgId,
    least: SgLbStats,
    most: SgLbStats,
}

impl Bounded {
    /// It certainly has room.
    fn has_spare(&self) -> bool {
        self.most.group_type == GroupType::HasSpare
    }
}

impl Walk<'_> {
    /// Whether the task may stay in the group of a CPU, and the groups it may move to. For each of these: whether it
    /// is a single CPU that the task certainly reaches if that CPU has the lowest averages and all others the highest.
    fn groups(&self, sd: &SchedDomain, cpu: CpuId) -> (bool, Vec<(SgId, bool)>) {
        let domains = &self.sched.domains;
        let mut local = None;
        let mut others: Vec<Bounded> = Vec::with_capacity(sd.groups.len());
        for id in sd.groups.iter() {
            let span = &domains.sg(id).span;
            if !span.intersects(&self.sched.task(self.task).allowed) {
                continue;
            }
            let stats = |view| update_sg_wakeup_stats(view, sd, id, self.task, None);
            let group = Bounded { id, least: stats(&self.least), most: stats(&self.most) };
            if span.contains(cpu) {
                local = Some(group);
            } else {
                others.push(group);
            }
        }
        let beaten = |at: usize| {
            let group = &others[at];
            others.iter().enumerate().any(|(other, by)| other != at && self.beats(by, group, other < at))
        };
        let mut stays = others.is_empty();
        let mut found = Vec::with_capacity(others.len());
        for group in (0..others.len()).filter(|&at| !beaten(at)).map(|at| &others[at]) {
            let (may_stay, may_leave) =
                local.as_ref().map_or((false, true), |local| self.leaves(sd, local, group));
            stays |= may_stay;
            if may_leave {
                found.push((group.id, self.surely(sd, local.as_ref(), group)));
            }
        }
        (stays, found)
    }

    /// Whether a CPU that no other beats at its best is then certainly chosen: it has room, so only idle CPUs and
    /// utilisation are compared, and both are compared as [`Walk::beats`] does.
    fn surely(&self, sd: &SchedDomain, local: Option<&Bounded>, group: &Bounded) -> bool {
        let leaves = |local: &Bounded| !local.has_spare() || local.most.idle_cpus < group.least.idle_cpus;
        self.sched.domains.sg(group.id).group_weight == 1
            && group.least.group_type == GroupType::HasSpare
            && !sd.flags.has(SdFlags::NUMA)
            && local.is_none_or(leaves)
    }

    /// Whether a group is certainly idler than another; of equal groups the first is.
    fn beats(&self, by: &Bounded, group: &Bounded, first: bool) -> bool {
        if by.most.group_type < group.least.group_type {
            return true;
        }
        if !by.has_spare() {
            return false;
        }
        if by.most.idle_cpus != group.least.idle_cpus || !self.sched.kernel.has(Feature::ForkTieUtil) {
            return by.most.idle_cpus > group.least.idle_cpus
                || first && by.most.idle_cpus == group.least.idle_cpus;
        }
        let less = by.most.group_util < group.least.group_util;
        less || first && by.most.group_util == group.least.group_util
    }

    /// Whether the task may stay in the local group, and whether it may leave it for another.
    fn leaves(&self, sd: &SchedDomain, local: &Bounded, group: &Bounded) -> (bool, bool) {
        if local.least.group_type > group.most.group_type {
            return (false, true);
        }
        if local.most.group_type < group.least.group_type {
            return (true, false);
        }
        let pair = ((local.id, &local.least), (group.id, &group.least));
        let leaves = leaves_with_spare(&self.least, sd, self.task, pair.0, pair.1);
        match (local.has_spare(), group.has_spare()) {
            (true, true) => (!leaves, leaves),
            // If the local group has no room, leaving it is only more likely; if the other group has none, only less.
            (false, true) if leaves => (false, true),
            (true, false) if !leaves => (true, false),
            _ => (true, true),
        }
    }

    /// The CPUs of a group that may be taken.
    fn cpus(
        &self,
        group: &SchedGroup,
        cpu: CpuId,
        unknown: impl Fn(CpuId) -> bool,
        stamp: u64,
        mut take: impl FnMut(CpuId),
    ) {
        let (found, reason) = find_idlest_group_cpu(&self.most, group, self.task, cpu);
        take(found);
        if group.group_weight == 1 {
            return;
        }
        let allowed = &self.sched.task(self.task).allowed;
        let cpus = || group.cpus.iter().copied().filter(|&cpu| allowed.contains(cpu));
        let newer = reason != Reason::IdlestRecent || self.most.idle_stamp(found) <= stamp;
        let idle = |cpu: CpuId| self.sched.available_idle_cpu(cpu);
        cpus().filter(|&cpu| newer && idle(cpu) && unknown(cpu)).for_each(&mut take);
        if reason == Reason::IdlestLoad {
            let most = cpus().filter(|&cpu| !idle(cpu));
            let most = most.map(|cpu| self.most.cpu_load(cpu)).min().unwrap_or(u64::MAX);
            cpus().filter(|&cpu| self.least.cpu_load(cpu) <= most).for_each(take);
        }
    }
}

#[cfg(test)]
mod tests {
    use schedlab_topology::CpuId;

    use crate::drawing::{NOW, draw};
    use crate::lab::Random;
    use crate::wakeup::ForkFacts;
    use crate::{Curr, PRESETS, Placement, Reason, Supposed, View};

    #[test]
    fn what_is_sure_is_so() {
        let mut random = Random(0x51AB);
        let (mut asked, mut sure) = (0, 0);
        for preset in PRESETS.into_iter().filter(|&preset| preset != "v4.13") {
            let mut drawn = draw(preset, "1x1x6 | 0[make*]");
            let (task, this) = (drawn.make("new", CpuId(0)), CpuId(0));
            for _ in 0..100 {
                for (cpu, rq) in drawn.sched.rqs.iter_mut() {
                    let busy = cpu != this && random.below(3) == 0;
                    rq.nr_running = if cpu == this { 1 } else { busy.into() };
                    if cpu != this {
                        rq.curr = if busy { Curr::Task(task) } else { Curr::Idle };
                    }
                }
                let sched = &drawn.sched;
                let (mut least, mut most) = (ForkFacts::default(), ForkFacts::default());
                for facts in [&mut least, &mut most] {
                    facts.fill(&View::new(sched, NOW, None), task);
                }
                for (cpu, _) in sched.rqs.iter() {
                    let util = random.below(1400);
                    least.set_averages(sched, cpu, util, util, util);
                    let util = util + random.below(300);
                    most.set_averages(sched, cpu, util, util, util);
                }
                let reach = sched.fork_reach(task, this, NOW, (&least, &most), &[], |_| false, 0);
                for (cpu, _) in sched.rqs.iter().filter(|&(cpu, _)| reach.cpus.contains(cpu)) {
                    most.swap(&mut least, cpu);
                    let supposed = Supposed { fork: Some(&most), ..Supposed::NOTHING };
                    let found = View::supposing(sched, NOW, &supposed).decide_fork(task, this);
                    if reach.sure.contains(cpu) {
                        let expected = Placement::new(cpu, Reason::IdlestOnly);
                        assert_eq!(Placement { examined: 0, ..found }, expected, "{preset}");
                        sure += 1;
                    }
                    asked += 1;
                    most.swap(&mut least, cpu);
                }
            }
        }
        assert!(sure * 2 > asked, "of {asked} CPUs {sure} are sure");
    }
}
