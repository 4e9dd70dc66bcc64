//! The order of tasks in the list from which balancing takes them, which the trace shows only in part.

use schedlab_sched::Curr;
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::Shadow;
use super::about::About;

pub(super) const ABOUT: About =
    About::new("TASK_ORDER", "the order of tasks in the list from which balancing takes them");

impl Shadow {
    /// Whether a pass between two CPUs could take a task, in some order of the list.
    pub fn may_be_taken(&self, task: TaskId, from: CpuId, to: CpuId) -> bool {
        let entry = self.sched.task(task);
        let runs = self.sched.rqs[from].curr == Curr::Task(task);
        entry.on_rq && entry.cpu == from && entry.allowed.contains(to) && !runs
    }

    /// Whether a pass examines fewer tasks than the list contains: tasks that are out of quota are on the list and do
    /// not count.
    pub fn pass_ends_before_all(&self, from: CpuId) -> bool {
        self.sched.cfs_tasks(from).count() > self.sched.rqs[from].nr_running as usize
    }
}
