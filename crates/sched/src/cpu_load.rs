//! Load, runnable time and utilisation of a CPU, as placement and balancing read them.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{CfsRq, CfsRqId, CpuLoad, Feature, Sched};

impl Sched {
    /// Root queue of a CPU.
    #[inline]
    pub fn root_cfs(&self, cpu: CpuId) -> &CfsRq {
        &self.cfs_rqs[cpu.index()]
    }

    /// Number of the root queue of a CPU.
    #[inline]
    pub fn root_cfs_id(&self, cpu: CpuId) -> CfsRqId {
        CfsRqId(cpu.index() as u32)
    }

    /// Load of a CPU: of queued tasks in v4.13, later of blocked tasks as well.
    ///
    /// Kernel: cpu_load(), kernel/sched/fair.c, v6.12; weighted_cpuload() in v4.13.
    #[inline]
    pub fn cpu_load(&self, cpu: CpuId) -> u64 {
        let avg = &self.root_cfs(cpu).avg;
        match self.kernel.rules.cpu_load {
            CpuLoad::RunnableLoadAvg => avg.runnable_load_avg,
            CpuLoad::LoadAvg => avg.load_avg,
        }
    }

    /// Runnable time of a CPU.
    ///
    /// Kernel: cpu_runnable(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn cpu_runnable(&self, cpu: CpuId) -> u64 {
        self.root_cfs(cpu).avg.runnable_avg
    }

    /// Runnable time of a CPU as if a task were not there.
    ///
    /// Kernel: cpu_runnable_without(), kernel/sched/fair.c, v6.12.
    pub fn cpu_runnable_without(&self, task: TaskId, cpu: CpuId) -> u64 {
        let own = if self.contributes(task, cpu) { self.task(task).se.avg.runnable_avg } else { 0 };
        self.cpu_runnable(cpu).saturating_sub(own)
    }

    /// Utilisation of a CPU: the larger of its average and the sum of its tasks' estimates.
    ///
    /// Kernel: cpu_util_cfs(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn cpu_util(&self, cpu: CpuId) -> u64 {
        self.cpu_util_of(cpu, self.root_cfs(cpu).avg.util_avg)
    }

    /// The same if its average is this.
    #[inline]
    pub fn cpu_util_of(&self, cpu: CpuId, util_avg: u64) -> u64 {
        let rq = &self.rqs[cpu];
        let estimated = if self.kernel.has(Feature::UtilEst) { rq.util_est_enqueued.into() } else { 0 };
        util_avg.max(estimated).min(rq.cpu_capacity_orig)
    }

    /// Utilisation of a CPU as if a task were not there.
    ///
    /// Kernel: cpu_util_without(), kernel/sched/fair.c, v6.12.
    pub fn cpu_util_without(&self, task: TaskId, cpu: CpuId) -> u64 {
        self.util_without(task, cpu).of(self.root_cfs(cpu).avg.util_avg)
    }

    /// The parts of a CPU's utilisation besides its average, as if a task were not there.
    pub(crate) fn util_without(&self, task: TaskId, cpu: CpuId) -> UtilParts {
        let rq = &self.rqs[cpu];
        let p = self.task(task);
        let counted = self.contributes(task, cpu);
        let estimated = if self.kernel.has(Feature::UtilEst) {
            let own = if counted && p.on_rq { p.estimate(self.kernel.rules.util_est_form) } else { 0 };
            rq.util_est_enqueued.saturating_sub(own).into()
        } else {
            0
        };
        let own = if counted { p.se.avg.util_avg } else { 0 };
        UtilParts { own, estimated, most: rq.cpu_capacity_orig }
    }

    pub(crate) fn contributes(&self, task: TaskId, cpu: CpuId) -> bool {
        let task = self.task(task);
        task.cpu == cpu && task.se.avg.last_update_time != 0
    }
}

/// The parts of a CPU's utilisation besides its average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UtilParts {
    /// The part of the average that does not count.
    own: u64,
    /// Sum of the tasks' estimates: the lower bound.
    estimated: u64,
    /// The CPU's capacity: the upper bound.
    most: u64,
}

impl UtilParts {
    /// The utilisation, given the average.
    #[inline]
    pub fn of(&self, util_avg: u64) -> u64 {
        util_avg.saturating_sub(self.own).max(self.estimated).min(self.most)
    }
}
