//! Where tasks were moved, if the recording has no `sched_migrate_task`.

use schedlab_topology::CpuId;
use schedlab_trace::Kind;
use schedlab_units::{Duration, Pid, TaskId, Time};

use super::Shadow;
use super::about::About;
use crate::follow::pairing::Pairing;

pub(super) const ABOUT: About =
    About::new("UNSEEN_MOVE", "where a task was moved, as the recording has no sched_migrate_task");

/// A task that was moved runs within this time.
const PATIENCE: Duration = Duration::millis(10);

impl Shadow {
    /// A task that we would pick on a CPU, and the CPU where it is seen to run next: it was moved there without an event,
    /// for instance by the stopper that has just left.
    pub fn moved_unseen(
        &self,
        pid: Pid,
        here: CpuId,
        pairing: &Pairing,
        now: Time,
    ) -> Option<(TaskId, CpuId)> {
        let task = self.find(pid).filter(|_| pid != Pid::IDLE)?;
        let runs = |kind: &Kind| matches!(*kind, Kind::SchedSwitch { next_pid, .. } if next_pid == pid);
        let switch = pairing.ahead(now + PATIENCE).find(|event| runs(&event.kind));
        switch.filter(|event| event.cpu != here).map(|event| (task, event.cpu))
    }

    /// Whether a moved task was asleep: then a wake-up moved it, and not balancing, which takes only queued tasks.
    pub fn was_asleep(&self, task: TaskId) -> bool {
        let queued = self.sched.task(task).on_rq || self.runs(task) || self.may_be_queued(task);
        !queued && !self.was_never_queued(task)
    }
}
