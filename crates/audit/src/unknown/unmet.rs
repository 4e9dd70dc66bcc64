//! What happened before the recording first showed a task or CPU.

use schedlab_units::TaskId;

use super::Shadow;
use super::about::About;

pub(super) const ABOUT: About =
    About::new("UNMET", "what happened before the recording first showed the task or CPU");

impl Shadow {
    /// Whether a task from before the recording has not been in any queue yet.
    pub fn was_never_queued(&self, task: TaskId) -> bool {
        let entry = self.sched.task(task);
        self.known(task).lived_before && !entry.on_rq && entry.se.avg.last_update_time == 0
    }
}
