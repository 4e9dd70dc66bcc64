//! Which RT tasks are pushed and pulled, and their destinations.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{Curr, Policy, Push, RtPush, Sched};

/// The highest priority that an RT task can have.
///
/// Kernel: MAX_RT_PRIO, include/linux/sched/prio.h.
const MAX_RT_PRIORITY: u8 = 99;

impl Sched {
    /// RT priority of the current task of a CPU; 0 is lower than all RT tasks.
    pub(crate) fn rt_level(&self, cpu: CpuId) -> u8 {
        match self.rqs[cpu].curr_seen() {
            Curr::Idle => 0,
            Curr::Task(task) => self.task(task).policy.rt_level(),
        }
    }

    /// The highest RT task that waits on a CPU and may run on `on` (or on any other CPU).
    ///
    /// Kernel: pick_next_pushable_task(), pick_highest_pushable_task(), kernel/sched/rt.c, v6.12.
    fn pushable_rt(&self, cpu: CpuId, on: Option<CpuId>) -> Option<TaskId> {
        self.rqs[cpu].rt_queue.iter().copied().find(|&task| self.is_pushable(task, cpu, on))
    }

    /// Whether a CPU is marked as overloaded with RT tasks.
    ///
    /// Kernel: rt_set_overload(), update_rt_migration(), kernel/sched/rt.c, v6.1; enqueue_pushable_task(), v6.12.
    pub(super) fn is_rt_overloaded(&self, cpu: CpuId) -> bool {
        let queue = &self.rqs[cpu].rt_queue;
        match self.kernel.rules.rt_push {
            RtPush::Overloaded => {
                queue.len() > 1 && queue.iter().any(|&task| self.task(task).nr_cpus_allowed > 1)
            }
            RtPush::Waiting => self.pushable_rt(cpu, None).is_some(),
        }
    }

    /// How many RT tasks are queued on a CPU that may have pushable ones.
    ///
    /// Kernel: update_rt_migration(), kernel/sched/rt.c, v6.1; enqueue_pushable_task(), v6.12.
    pub(crate) fn rt_overload(&self) -> usize {
        match self.kernel.rules.rt_push {
            RtPush::Overloaded => 2,
            RtPush::Waiting => 1,
        }
    }

    /// Kernel: push_rt_task(), kernel/sched/rt.c, v6.1, v6.12.
    pub(super) fn decide_push_rt(&self, by: CpuId, cpu: CpuId) -> Push {
        if self.rqs[cpu].rt_queue.len() < self.rt_overload() {
            return Push::Nothing;
        }
        let Some(task) = self.pushable_rt(cpu, None) else { return Push::Nothing };
        if self.task(task).policy.rt_priority() > self.rt_level(cpu) {
            return Push::RunsHere;
        }
        self.push_of(by, task, cpu)
    }

    /// Whether a task of RT or a higher class that leaves a CPU outranks all RT tasks that are queued there. The
    /// stopper outranks those below the highest priority.
    ///
    /// Kernel: need_pull_rt_task(), kernel/sched/rt.c, v6.1, v6.12.
    pub(crate) fn need_pull_rt_task(&self, cpu: CpuId, prev: TaskId) -> bool {
        let level = match self.task(prev).policy {
            Policy::Stop => MAX_RT_PRIORITY,
            policy => policy.rt_level(),
        };
        level > self.highest_rt(cpu)
    }

    /// The highest priority of the RT tasks that are queued on a CPU; 0 if none is.
    fn highest_rt(&self, cpu: CpuId) -> u8 {
        self.rqs[cpu].rt_queue.first().map_or(0, |&task| self.task(task).policy.rt_priority())
    }

    /// Kernel: pull_rt_task(), kernel/sched/rt.c, v6.12.
    pub(super) fn decide_pull_rt(&self, to: CpuId, from: CpuId) -> Option<TaskId> {
        if self.rqs[from].rt_queue.len() < self.rt_overload() {
            return None;
        }
        let left = self.highest_rt(to);
        let task = self.pushable_rt(from, Some(to))?;
        let priority = self.task(task).policy.rt_priority();
        // One that outranks the running task is about to run there.
        (priority > left && priority <= self.rt_level(from)).then_some(task)
    }
}
