//! Changing the CPU of a task.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::{Effect, FairPolicy, Feature, MigrationCause, Sched, SeId, TaskState};

impl Sched {
    /// Moves a task that is off its queue to another CPU: woken and placed elsewhere
    /// (state `Waking`), or dequeued with `migrate`.
    ///
    /// Kernel: set_task_cpu(), kernel/sched/core.c; migrate_task_rq_fair(), kernel/sched/fair.c, v6.1, v6.12.
    pub fn set_task_cpu(&mut self, task: TaskId, cpu: CpuId, cause: MigrationCause, now: Time) {
        let from = self.task(task).cpu;
        if from == cpu {
            return;
        }
        let se = SeId(task.0);
        let waking = self.task(task).state == TaskState::Waking;
        if self.task(task).policy.is_fair() {
            if waking && self.kernel.rules.policy == FairPolicy::Cfs {
                let floor = self.cfs(self.cfs_rq_of(se)).min_vruntime;
                let entity = self.se_mut(se);
                entity.vruntime = entity.vruntime.wrapping_sub(floor);
            }
            self.migrate_load_avg(task, !waking, now);
            if !self.kernel.has(Feature::ExecStartAtEnqueue) {
                self.se_mut(se).exec_start = 0;
            }
        }
        if waking && self.task(task).dl_non_contending {
            // Kernel: migrate_task_rq_dl(), kernel/sched/deadline.c, v6.12.
            self.update_rq_clock(from, now);
            self.dl_contends(task);
        }
        self.set_cpu(task, cpu);
        self.effects.push(Effect::Migrated { task, from, to: cpu, cause });
    }

    /// Sets the CPU of a task, and with it the queue of its group there.
    ///
    /// Kernel: __set_task_cpu(), set_task_rq(), kernel/sched/sched.h, v6.12.
    pub fn set_cpu(&mut self, task: TaskId, cpu: CpuId) {
        let (cfs, parent) = self.made_on_cpu(self.task(task).tg, cpu);
        let depth = parent.map_or(0, |parent| self.se(parent).depth + 1);
        let prev = self.task(task).se.cfs_rq;
        if let Some(prev) = prev.filter(|&prev| prev != cfs) {
            self.set_task_rq_fair(SeId(task.0), prev, cfs);
        }
        let entry = self.task_mut(task);
        entry.cpu = cpu;
        entry.wake_cpu = cpu;
        entry.se.cfs_rq = Some(cfs);
        entry.se.parent = parent;
        entry.se.depth = depth;
    }
}
