//! Which RT tasks are pushed and pulled, and where to.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::class::Class;
use crate::{Curr, Push, RtPush, Sched};

impl Sched {
    /// Priority of what a CPU runs, as RT tasks see it: 0 is lower than all of them.
    pub(crate) fn rt_level(&self, cpu: CpuId) -> u8 {
        match self.rqs[cpu].curr {
            Curr::Idle => 0,
            Curr::Task(task) if self.class_of(task) > Class::Rt => u8::MAX,
            Curr::Task(task) => self.task(task).policy.rt_priority(),
        }
    }

    /// The highest RT task that waits on a CPU and may run on `on` (or on any other CPU).
    ///
    /// Kernel: pick_next_pushable_task(), pick_highest_pushable_task(), kernel/sched/rt.c, v6.12.
    fn pushable_rt(&self, cpu: CpuId, on: Option<CpuId>) -> Option<TaskId> {
        self.rqs[cpu].rt_queue.iter().copied().find(|&task| self.is_pushable(task, cpu, on))
    }

    /// How many RT tasks are queued on a CPU that may have some to give.
    ///
    /// Kernel: update_rt_migration(), kernel/sched/rt.c, v6.1; enqueue_pushable_task(), v6.12.
    pub(crate) fn rt_overload(&self) -> usize {
        match self.kernel.rules.rt_push {
            RtPush::Overloaded => 2,
            RtPush::Waiting => 1,
        }
    }

    /// Kernel: push_rt_task(), kernel/sched/rt.c, v6.1, v6.12.
    pub(super) fn decide_push_rt(&self, cpu: CpuId) -> Push {
        if self.rqs[cpu].rt_queue.len() < self.rt_overload() {
            return Push::Nothing;
        }
        let Some(task) = self.pushable_rt(cpu, None) else { return Push::Nothing };
        if self.task(task).policy.rt_priority() > self.rt_level(cpu) {
            return Push::RunsHere;
        }
        self.push_of(task, cpu)
    }

    /// Kernel: pull_rt_task(), kernel/sched/rt.c, v6.12.
    pub(super) fn decide_pull_rt(&self, to: CpuId, from: CpuId) -> Option<TaskId> {
        if self.rqs[from].rt_queue.len() < self.rt_overload() {
            return None;
        }
        let left = self.rqs[to].rt_queue.first().map_or(0, |&task| self.task(task).policy.rt_priority());
        let task = self.pushable_rt(from, Some(to))?;
        let priority = self.task(task).policy.rt_priority();
        // One that outranks the running task is about to run there.
        (priority > left && priority <= self.rt_level(from)).then_some(task)
    }
}
