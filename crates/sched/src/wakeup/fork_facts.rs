//! The values of each CPU that the placement of a new task reads, as a table that can be changed.
//!
//! An audit knows averages and idle stamps only within bounds, and has to evaluate many values within them. These
//! values are copied from the state once and changed here, where each question is a sum over a short table. Everything
//! else is read from the state.

use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::cpu_load::UtilParts;
use crate::group_sums::CpuStats;
use crate::{CpuLoad, Sched, View};

use super::find_idlest_group::cpu_stats_without;

/// Averages and idle stamps of all CPUs, for [`Supposed::fork`](crate::Supposed::fork).
#[derive(Debug, Default)]
pub struct ForkFacts {
    cpus: Vec<Facts>,
}

impl Clone for ForkFacts {
    fn clone(&self) -> ForkFacts {
        ForkFacts { cpus: self.cpus.clone() }
    }

    fn clone_from(&mut self, other: &ForkFacts) {
        self.cpus.clone_from(&other.cpus);
    }
}

#[derive(Clone, Copy, Debug)]
struct Facts {
    /// As if the task were not there.
    stats: CpuStats,
    load: u64,
    load_avg: u64,
    idle_stamp: u64,
    /// The task's part of the averages.
    own_load: u64,
    own_runnable: u64,
    util: UtilParts,
}

impl ForkFacts {
    /// Copies the values that a window shows, for a task to be placed.
    pub fn fill(&mut self, view: &View, task: TaskId) {
        let sched = view.sched;
        let cpus = sched.rqs.iter().map(|(cpu, rq)| {
            let counted = sched.contributes(task, cpu);
            let own = |average: u64| if counted { average } else { 0 };
            Facts {
                stats: if counted { cpu_stats_without(view, cpu, task) } else { sched.cpu_stats(cpu) },
                load: sched.cpu_load(cpu),
                load_avg: sched.root_cfs(cpu).avg.load_avg,
                idle_stamp: rq.idle_stamp,
                own_load: if counted { view.task_h_load(task) } else { 0 },
                own_runnable: own(sched.task(task).se.avg.runnable_avg),
                util: sched.util_without(task, cpu),
            }
        });
        self.cpus.clear();
        self.cpus.extend(cpus);
    }

    /// Replaces the averages of a CPU.
    #[inline]
    pub fn set_averages(&mut self, sched: &Sched, cpu: CpuId, load: u64, runnable: u64, util: u64) {
        let facts = &mut self.cpus[cpu.index()];
        facts.load_avg = load;
        if sched.kernel.rules.cpu_load == CpuLoad::LoadAvg {
            facts.load = load;
            facts.stats.load = load.saturating_sub(facts.own_load);
        }
        facts.stats.runnable = runnable.saturating_sub(facts.own_runnable);
        facts.stats.util = facts.util.of(util);
    }

    /// Swaps the values of a CPU with those of another table.
    #[inline]
    pub fn swap(&mut self, others: &mut ForkFacts, cpu: CpuId) {
        core::mem::swap(&mut self.cpus[cpu.index()], &mut others.cpus[cpu.index()]);
    }

    /// Sets another time at which a CPU went idle; returns the previous one.
    pub fn set_idle_stamp(&mut self, cpu: CpuId, stamp: u64) -> u64 {
        core::mem::replace(&mut self.cpus[cpu.index()].idle_stamp, stamp)
    }

    #[inline]
    pub(crate) fn stats(&self, cpu: CpuId) -> &CpuStats {
        &self.cpus[cpu.index()].stats
    }

    #[inline]
    pub(crate) fn load(&self, cpu: CpuId) -> u64 {
        self.cpus[cpu.index()].load
    }

    #[inline]
    pub(crate) fn load_avg(&self, cpu: CpuId) -> u64 {
        self.cpus[cpu.index()].load_avg
    }

    #[inline]
    pub(crate) fn idle_stamp(&self, cpu: CpuId) -> u64 {
        self.cpus[cpu.index()].idle_stamp
    }
}
