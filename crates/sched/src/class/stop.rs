//! The stopper: above all, bound to its CPU, in no queue.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::Sched;

impl Sched {
    /// Kernel: enqueue_task_stop(), kernel/sched/stop_task.c, v6.12.
    pub(crate) fn enqueue_task_stop(&mut self, cpu: CpuId, task: TaskId) {
        assert!(self.rqs[cpu].stop.is_none(), "a CPU has one stopper");
        self.rqs[cpu].stop = Some(task);
        self.add_nr_running(cpu, 1);
    }

    /// Kernel: dequeue_task_stop(), kernel/sched/stop_task.c, v6.12.
    pub(crate) fn dequeue_task_stop(&mut self, cpu: CpuId, task: TaskId) {
        assert_eq!(self.rqs[cpu].stop.take(), Some(task), "the stopper wanted to run");
        self.rqs[cpu].nr_running -= 1;
    }
}
