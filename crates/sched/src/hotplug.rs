//! CPUs that come and go.

use alloc::sync::Arc;
use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

use crate::{Curr, MigrationCause, Scaled, Sched};

impl Sched {
    /// Takes a CPU into use or out of it. When it leaves, every task that may run
    /// elsewhere is moved away; the driver must have switched it to its idle task or to
    /// a bound task first. Domains are built anew.
    ///
    /// Kernel: sched_cpu_activate(), sched_cpu_deactivate(), migrate_tasks(), kernel/sched/core.c, v6.12.
    pub fn set_online(&mut self, cpu: CpuId, online: bool, now: Time) {
        if self.rqs[cpu].online == online {
            return;
        }
        self.update_rq_clock(cpu, now);
        self.rqs[cpu].active = online;
        let bandwidth = if online { Sched::enable_runtime } else { Sched::unthrottle_offline };
        bandwidth(self, cpu);
        if !online {
            self.move_tasks_away(cpu, now);
            self.clear_tg_offline_cfs_rqs(cpu);
        }
        self.rqs[cpu].online = online;
        let nr_online = self.rqs.iter().filter(|(_, rq)| rq.online).count();
        self.scaled = Scaled::new(&self.kernel.tunables, nr_online);
        self.rebuild_domains();
    }

    /// Moves every task that is queued on a CPU that leaves; a task all of whose CPUs are
    /// gone may run anywhere from then on.
    fn move_tasks_away(&mut self, cpu: CpuId, now: Time) {
        let tasks: Vec<TaskId> = (0..self.tasks.len() as u32)
            .map(TaskId)
            .filter(|&task| self.task(task).cpu == cpu && self.task(task).on_rq)
            .filter(|&task| self.rqs[cpu].curr != Curr::Task(task))
            .collect();
        for task in tasks {
            let to = self.select_fallback_rq(task);
            self.widen_affinity(task, to);
            self.move_queued_task(task, to, MigrationCause::Affinity, now);
        }
    }

    /// Lets a task run anywhere if it may not use the CPU it falls back to.
    ///
    /// Kernel: select_fallback_rq(), kernel/sched/core.c, v6.12.
    fn widen_affinity(&mut self, task: TaskId, to: CpuId) {
        if !self.task(task).allowed.contains(to) {
            let all = Arc::new(CpuMask::all(self.rqs.len()));
            let entry = self.task_mut(task);
            entry.nr_cpus_allowed = all.weight() as u32;
            entry.allowed = all;
        }
    }

    /// Kernel: update_runtime_enabled(), kernel/sched/fair.c, v6.12.
    fn enable_runtime(&mut self, cpu: CpuId) {
        for tg in 1..self.tgs.len() {
            let cfs = self.tgs[tg].cfs_rq[cpu.index()];
            self.cfs_mut(cfs).runtime_enabled = self.tgs[tg].bandwidth.quota.is_some();
        }
    }

    /// Kernel: unthrottle_offline_cfs_rqs(), kernel/sched/fair.c, v6.12.
    fn unthrottle_offline(&mut self, cpu: CpuId) {
        for tg in 1..self.tgs.len() {
            let cfs = self.tgs[tg].cfs_rq[cpu.index()];
            let queue = self.cfs_mut(cfs);
            queue.runtime_enabled = false;
            if queue.throttled {
                queue.runtime_remaining = 1;
                self.unthrottle_cfs_rq(cfs);
            }
        }
    }
}
