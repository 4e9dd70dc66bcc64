//! Load, runnable time and utilisation of a CPU, as placement and balancing read them.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

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

    /// Load of a CPU: of what is queued in v4.13, of blocked tasks as well later.
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

    /// Load of a CPU as if a task were not there.
    ///
    /// Kernel: cpu_load_without(), kernel/sched/fair.c, v6.12.
    pub fn cpu_load_without(&self, task: TaskId, cpu: CpuId, now: Time) -> u64 {
        let load = self.cpu_load(cpu);
        if self.contributes(task, cpu) { load.saturating_sub(self.task_h_load(task, now)) } else { load }
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
        let rq = &self.rqs[cpu];
        let mut util = self.root_cfs(cpu).avg.util_avg;
        if self.kernel.has(Feature::UtilEst) {
            util = util.max(rq.util_est_enqueued.into());
        }
        util.min(rq.cpu_capacity_orig)
    }

    /// Utilisation of a CPU as if a task were not there.
    ///
    /// Kernel: cpu_util_without(), kernel/sched/fair.c, v6.12.
    pub fn cpu_util_without(&self, task: TaskId, cpu: CpuId) -> u64 {
        if !self.contributes(task, cpu) {
            return self.cpu_util(cpu);
        }
        let rq = &self.rqs[cpu];
        let p = self.task(task);
        let mut util = self.root_cfs(cpu).avg.util_avg.saturating_sub(p.se.avg.util_avg);
        if self.kernel.has(Feature::UtilEst) {
            let own = if p.on_rq { p.estimate(self.kernel.rules.util_est_form) } else { 0 };
            util = util.max(rq.util_est_enqueued.saturating_sub(own).into());
        }
        util.min(rq.cpu_capacity_orig)
    }

    fn contributes(&self, task: TaskId, cpu: CpuId) -> bool {
        let task = self.task(task);
        task.cpu == cpu && task.se.avg.last_update_time != 0
    }
}
