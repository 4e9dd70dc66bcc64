//! Statistics of whole groups, kept from one decision to the next.
//!
//! A balance pass over a large domain reads each of its CPUs, although few changed since the previous pass, and so does
//! the placement of a new task. So the contribution of each CPU is stored, with the sums over each group:
//! [`Sched::update_group_sums`] reads the CPUs that may have changed again, and a decision after that reads one sum per
//! group. The numbers equal those of a walk over all CPUs. A decision in a state that has not been updated walks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use schedlab_topology::{CpuId, PerCpu};

use crate::{Domains, Feature, Sched, SchedGroup, SgId};

/// Sums are kept if some group has this many CPUs; a walk over fewer is as quick.
const WORTH_A_SUM: u32 = 4;

/// What a CPU, or all CPUs of a group together, add to the statistics of a pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuStats {
    pub load: u64,
    pub util: u64,
    pub runnable: u64,
    /// Tasks of all classes.
    pub nr_running: u32,
    /// Fair tasks, as balancing counts them.
    pub h_nr_running: u32,
    /// Fair tasks that are not delayed.
    pub h_nr_runnable: u32,
    /// CPUs that are idle.
    pub idle: u32,
    /// CPUs with more than one task.
    pub overloaded: u32,
    /// CPUs with one fair task on which other classes and interrupts may take too much for it.
    pub maybe_reduced: u32,
}

impl CpuStats {
    /// Adds the contribution of a CPU.
    #[inline]
    pub fn add(&mut self, one: &CpuStats) {
        self.replace(&CpuStats::default(), one);
    }

    /// Replaces the contribution of a CPU.
    #[inline]
    fn replace(&mut self, old: &CpuStats, new: &CpuStats) {
        self.load = self.load - old.load + new.load;
        self.util = self.util - old.util + new.util;
        self.runnable = self.runnable - old.runnable + new.runnable;
        self.nr_running = self.nr_running - old.nr_running + new.nr_running;
        self.h_nr_running = self.h_nr_running - old.h_nr_running + new.h_nr_running;
        self.h_nr_runnable = self.h_nr_runnable - old.h_nr_runnable + new.h_nr_runnable;
        self.idle = self.idle - old.idle + new.idle;
        self.overloaded = self.overloaded - old.overloaded + new.overloaded;
        self.maybe_reduced = self.maybe_reduced - old.maybe_reduced + new.maybe_reduced;
    }
}

/// The last known contribution of each CPU, and the sums.
#[derive(Clone, Default)]
pub(crate) struct GroupSums {
    /// First those of the CPUs, then those of groups of several.
    stats: Vec<CpuStats>,
    /// By group: which of `stats`.
    of_group: Vec<u32>,
    /// By CPU: its part of `memberships`.
    members: PerCpu<Range<u32>>,
    memberships: Vec<u32>,
}

impl GroupSums {
    /// Empty sums over the groups of some domains. Groups of the same CPUs share one. `None` if no group is
    /// large.
    fn new(domains: &Domains, nr_cpus: usize) -> Option<GroupSums> {
        if domains.sgs.iter().all(|group| group.group_weight < WORTH_A_SUM) {
            return None;
        }
        let mut by_span = BTreeMap::new();
        let mut lists = vec![Vec::new(); nr_cpus];
        let mut place = |group: &SchedGroup| match *group.cpus {
            [cpu] => cpu.index() as u32,
            _ => {
                let next = (nr_cpus + by_span.len()) as u32;
                *by_span.entry(group.span.clone()).or_insert_with(|| {
                    group.cpus.iter().for_each(|cpu| lists[cpu.index()].push(next));
                    next
                })
            }
        };
        let of_group = domains.sgs.iter().map(&mut place).collect();
        let mut memberships = Vec::new();
        let members = PerCpu::new(nr_cpus, |cpu| {
            let first = memberships.len() as u32;
            memberships.append(&mut lists[cpu.index()]);
            first..memberships.len() as u32
        });
        Some(GroupSums {
            stats: vec![CpuStats::default(); nr_cpus + by_span.len()],
            of_group,
            members,
            memberships,
        })
    }

    /// The sums over a group.
    #[inline]
    pub fn of(&self, group: SgId) -> &CpuStats {
        &self.stats[self.of_group[group.0 as usize] as usize]
    }
}

impl Sched {
    /// What a CPU adds to the statistics of its groups.
    #[inline]
    pub(crate) fn cpu_stats(&self, cpu: CpuId) -> CpuStats {
        let rq = &self.rqs[cpu];
        let cfs = self.root_cfs(cpu);
        let h_nr_running = self.lb_h_nr(cpu);
        // No domain tolerates less than 10 % of imbalance.
        let reduced = h_nr_running == 1 && rq.cpu_capacity * 110 < rq.cpu_capacity_orig * 100;
        CpuStats {
            load: self.cpu_load(cpu),
            util: self.cpu_util(cpu),
            runnable: cfs.avg.runnable_avg,
            nr_running: rq.nr_running,
            h_nr_running,
            h_nr_runnable: cfs.h_nr_runnable,
            idle: (rq.nr_running == 0 && self.idle_cpu(cpu)).into(),
            overloaded: (rq.nr_running > 1).into(),
            maybe_reduced: reduced.into(),
        }
    }

    /// Fair tasks of a CPU, as balancing counts them.
    #[inline]
    pub(crate) fn lb_h_nr(&self, cpu: CpuId) -> u32 {
        let cfs = self.root_cfs(cpu);
        if self.kernel.has(Feature::LbCountRunnable) { cfs.h_nr_runnable } else { cfs.h_nr_queued }
    }

    /// Creates the sums for the existing groups, and watches the state that they depend on.
    pub(crate) fn keep_group_sums(&mut self) {
        let nr_cpus = self.rqs.len();
        self.group_sums = GroupSums::new(&self.domains, nr_cpus);
        let watched = if self.group_sums.is_some() { nr_cpus } else { 0 };
        self.rqs.watch(watched);
        self.cfs_rqs.watch(watched);
    }

    /// Updates the sums of groups, so that the next decisions are quick.
    pub fn update_group_sums(&mut self) {
        for word in 0..self.rqs.touched().len() {
            let mut touched = self.rqs.take_touched(word) | self.cfs_rqs.take_touched(word);
            while touched != 0 {
                let index = word * 64 + touched.trailing_zeros() as usize;
                touched &= touched - 1;
                if index < self.rqs.len() {
                    self.update_sums_of(CpuId::from(index));
                }
            }
        }
    }

    fn update_sums_of(&mut self, cpu: CpuId) {
        let new = self.cpu_stats(cpu);
        let Some(GroupSums { stats, members, memberships, .. }) = &mut self.group_sums else { return };
        let old = core::mem::replace(&mut stats[cpu.index()], new);
        if old == new {
            return;
        }
        let Range { start, end } = members[cpu];
        for &sum in &memberships[start as usize..end as usize] {
            stats[sum as usize].replace(&old, &new);
        }
    }

    /// The sums over all groups, if no CPU may have changed since their update.
    pub(crate) fn valid_group_sums(&self) -> Option<&GroupSums> {
        let is_marked = |words: &[u64]| words.iter().any(|&word| word != 0);
        let touched = is_marked(self.rqs.touched()) || is_marked(self.cfs_rqs.touched());
        self.group_sums.as_ref().filter(|_| !touched)
    }

    /// A CPU that changed without being marked, or a group whose sum differs from that of its CPUs, for
    /// [`check`](crate::check).
    pub(crate) fn wrong_group_sum(&self) -> Option<String> {
        let GroupSums { stats, of_group, .. } = self.group_sums.as_ref()?;
        let marked = |cpu: CpuId| {
            let (word, bit) = (cpu.index() / 64, cpu.index() % 64);
            (self.rqs.touched()[word] | self.cfs_rqs.touched()[word]) >> bit & 1 != 0
        };
        let unmarked = self.rqs.iter().find_map(|(cpu, _)| {
            let (kept, now) = (stats[cpu.index()], self.cpu_stats(cpu));
            (!marked(cpu) && kept != now).then(|| format!("cpu {cpu} has {now:?}, not {kept:?}"))
        });
        unmarked.or_else(|| {
            self.domains.sgs.iter().zip(of_group).find_map(|(group, &sum)| {
                let kept = stats[sum as usize];
                let mut counted = CpuStats::default();
                group.cpus.iter().for_each(|cpu| counted.add(&stats[cpu.index()]));
                (kept != counted).then(|| format!("group {:?} has {kept:?}, not {counted:?}", group.span))
            })
        })
    }
}
