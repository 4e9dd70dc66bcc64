//! A running task that is too large for its CPU, on machines whose CPUs differ.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::wakeup::util_fits_cpu;
use crate::{Sched, View};

impl Sched {
    /// Whether a task fits a CPU, its clamps considered.
    ///
    /// Kernel: task_fits_cpu(), kernel/sched/fair.c, v6.12.
    pub(crate) fn task_fits_cpu(&self, task: TaskId, cpu: CpuId, now: Time) -> bool {
        util_fits_cpu(&View::new(self, now, None), task, cpu) > 0
    }

    /// Notes the load of the running task if it would do better on another CPU.
    ///
    /// Kernel: update_misfit_status(), kernel/sched/fair.c, v6.1.
    pub(crate) fn update_misfit_status(&mut self, cpu: CpuId, task: Option<TaskId>) {
        if !self.domains.asym_active {
            return;
        }
        let now = Time(self.rqs[cpu].clock);
        let misfit =
            task.filter(|&task| self.task(task).nr_cpus_allowed > 1 && !self.task_fits_cpu(task, cpu, now));
        self.rqs[cpu].misfit_task_load = misfit.map_or(0, |task| self.task_h_load(task, now).max(1));
    }
}
