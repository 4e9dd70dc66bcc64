//! The stopper's part: pushing a task off a CPU on which it was running.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::env::LbEnv;
use crate::{DequeueFlags, IdleType, MigrationCause, Sched, SdId};

impl Sched {
    /// Lowest domain of the destination that spans the source.
    fn common_domain(&self, cpu: CpuId, to: CpuId) -> Option<SdId> {
        self.domains.walk(to).find(|(_, sd)| sd.span.contains(cpu)).map(|(id, _)| id)
    }

    /// The task that active balancing would move from `cpu` to `to`, where the stopper runs.
    ///
    /// Kernel: detach_one_task(), kernel/sched/fair.c, v6.12.
    pub fn decide_active_balance(&self, cpu: CpuId, to: CpuId, now: Time) -> Option<TaskId> {
        let mut env = LbEnv::new(self, to, self.common_domain(cpu, to)?, IdleType::Idle, now);
        env.src_cpu = cpu;
        env.flags.active = true;
        env.flags.active_llc = self.rqs[cpu].active_balance_llc;
        env.begin_source();
        let mut next = env.cursor;
        while let Some(task) = next {
            if env.can_migrate_task(task).is_ok() {
                return Some(task);
            }
            next = env.following(task);
        }
        None
    }

    /// Body of the stopper: moves one task to `to` if it can, and clears the mark.
    ///
    /// Kernel: active_load_balance_cpu_stop(), kernel/sched/fair.c, v6.12.
    pub fn active_balance(&mut self, cpu: CpuId, to: CpuId, now: Time) -> Option<TaskId> {
        let wanted = self.rqs[cpu].active && self.rqs[to].active && self.rqs[cpu].active_balance;
        let task = if wanted { self.decide_active_balance(cpu, to, now) } else { None };
        self.rqs[cpu].active_balance = false;
        self.rqs[cpu].active_balance_llc = false;
        let task = task?;
        let sd = self.common_domain(cpu, to)?;
        self.domains.sd_mut(sd).nr_balance_failed = 0;
        self.deactivate(task, DequeueFlags { migrate: true, ..DequeueFlags::default() }, now);
        self.set_task_cpu(task, to, MigrationCause::Active, now);
        self.attach_task(task, to, now);
        Some(task)
    }
}
