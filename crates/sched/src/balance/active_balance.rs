//! The stopper's part: pushing a task off a CPU on which it was running.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::env::LbEnv;
use crate::{DequeueFlags, IdleType, MigrationCause, Sched, SdId};

impl Sched {
    /// Lowest domain of the destination that spans the source.
    pub fn common_domain(&self, cpu: CpuId, to: CpuId) -> Option<SdId> {
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

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schedlab_topology::{CpuId, CpuMask};

    use crate::balance::drawings::{Pass, queues};
    use crate::drawing::{NOW, by_kernel, draw};
    use crate::{Curr, NewTask, Sched, TaskState};

    /// The stopper of a CPU takes over.
    fn stopper_runs(sched: &mut Sched, cpu: CpuId) {
        let spec = NewTask::stopper(sched.rqs.len(), cpu);
        let stopper = sched.new_task(&spec, None, NOW);
        sched.set_cpu(stopper, cpu);
        sched.task_mut(stopper).state = TaskState::Running;
        sched.activate(stopper, cpu, crate::EnqueueFlags::default(), NOW);
        let prev = sched.rqs[cpu].curr.task();
        sched.switch_to(cpu, Curr::Task(stopper), NOW);
        prev.into_iter().for_each(|prev| sched.finish_task_switch(prev));
    }

    #[test]
    fn the_stopper_pushes_the_task_that_ran() {
        let after = |kernel: &str| {
            let mut pass = Pass::new(kernel, "1x2x2 | 0[] 1[] 2[a*] 3[b*]", "cpu=0 idle level=1 failed=4");
            let sched = &mut pass.drawn.sched;
            let decision = sched.load_balance(pass.cpu, pass.sd, pass.idle, NOW);
            assert!(decision.active && sched.rqs[CpuId(2)].active_balance);
            stopper_runs(sched, CpuId(2));
            sched.active_balance(CpuId(2), CpuId(0), NOW);
            assert!(!sched.rqs[CpuId(2)].active_balance);
            alloc::format!(
                "{}; failed {}",
                queues(&pass.drawn),
                pass.drawn.sched.domains.sd(pass.sd).nr_balance_failed
            )
        };
        expect!["v4.13..v7.3: 0[a] 1[] 2[] 3[b*]; failed 0"].assert_eq(&by_kernel("", after));
    }

    #[test]
    fn bound_tasks_stay_and_a_stopper_nobody_asked_for_does_nothing() {
        let mut drawn = draw("v6.12", "1x2x2 | 0[] 1[] 2[a* b] 3[]");
        let one = CpuMask::one(4, CpuId(2));
        let a = drawn.task("a");
        drawn.sched.task_mut(a).allowed = alloc::sync::Arc::new(one);
        stopper_runs(&mut drawn.sched, CpuId(2));
        assert_eq!(drawn.sched.active_balance(CpuId(2), CpuId(0), NOW), None, "not asked for");
        drawn.sched.rqs[CpuId(2)].active_balance = true;
        assert_eq!(drawn.sched.active_balance(CpuId(2), CpuId(0), NOW), Some(drawn.task("b")));
        drawn.sched.rqs[CpuId(2)].active_balance = true;
        assert_eq!(drawn.sched.active_balance(CpuId(2), CpuId(0), NOW), None, "only the bound one is left");
    }
}
