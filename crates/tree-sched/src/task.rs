//! Tasks of a tree: new ones, their attributes and the CPUs that the kernel binds them to.

use schedlab_lockstep::policy_number;
use schedlab_sched::{MigrationCause, Policy, Task};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::told::Call;
use crate::{TreeSched, number};

impl TreeSched {
    /// A new task is queued, on a given CPU or on one that the library chooses.
    pub(crate) fn wakes_new(&mut self, by: CpuId, task: TaskId, at: Option<CpuId>) -> CpuId {
        let Task { policy, nice, cpu, .. } = self.tasks[task.index()];
        // The kernel forks no deadline task: it becomes one when it is queued, on the CPU where that class keeps it.
        let deadline = matches!(policy, Policy::Deadline { .. });
        let cpu = self.library.wake_new_at(by, number(task), at.or(deadline.then_some(cpu)));
        if deadline {
            self.sync(task);
            self.attributes(task, policy, nice, 0);
        }
        self.told(by, MigrationCause::Fork, Call::Other);
        cpu
    }

    /// Sets policy, nice value and slice of a task; a slice of 0 is that of its policy.
    pub(crate) fn attributes(&mut self, task: TaskId, policy: Policy, nice: i8, slice: u64) {
        let cpu = self.tasks[task.index()].cpu;
        let (policy, prio, mut dl) = policy_number(policy, nice);
        if slice > 0 {
            dl[0] = slice;
        }
        // A deadline task that is not admitted keeps its policy, as in the kernel.
        let _ = self.library.set_policy(cpu, number(task), policy, prio, dl);
        self.told(cpu, MigrationCause::Affinity, Call::Other);
        self.sync(task);
    }

    /// A task got its CPUs from the kernel: balancing passes over threads that the kernel has bound to a CPU, and does not
    /// count them as tasks that must stay.
    pub(crate) fn bound(&mut self, task: TaskId) {
        let entry = &self.tasks[task.index()];
        if entry.kthread {
            let cpu = entry.allowed.first().filter(|_| entry.kthread_is_per_cpu());
            self.library.set_per_cpu(number(task), cpu);
        }
    }
}
