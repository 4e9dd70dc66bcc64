//! Carrying out the placement of a new task.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::{EnqueueFlags, PreemptDecision, RecentUsedCpu, Sched, TaskState, wf};

impl Sched {
    /// Queues a new task on the CPU chosen for it. The forker's CPU counts as its recently
    /// used one. [`Sched::task_woken`] comes next.
    ///
    /// Kernel: wake_up_new_task(), kernel/sched/core.c, v6.12.
    pub fn apply_fork(&mut self, task: TaskId, cpu: CpuId, now: Time) -> PreemptDecision {
        let keeps_recent = self.kernel.rules.recent_used_cpu != RecentUsedCpu::Off;
        let p = self.task_mut(task);
        p.state = TaskState::Running;
        if keeps_recent {
            p.recent_used_cpu = Some(p.cpu);
        }
        if !self.task(task).allowed.contains(cpu) {
            self.mover.widen_affinity(self, task, cpu, now);
        }
        self.set_cpu(task, cpu);
        self.update_rq_clock(cpu, now);
        self.post_init_entity_util_avg(task);
        self.activate(task, cpu, EnqueueFlags { initial: true, ..EnqueueFlags::default() }, now);
        self.wakeup_preempt(cpu, task, wf::FORK)
    }
}
