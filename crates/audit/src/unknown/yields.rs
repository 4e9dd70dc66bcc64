//! Tasks that leave their CPU while runnable and without a request: by sched_yield().
//!
//! A call of sched_yield() is no scheduler event. It shows in a task that does it repeatedly: it is switched out soon
//! after it began, for a task that has waited all the time, far from the end of its turn.

use schedlab_sched::{FairPolicy, SeId, calc_delta_fair};
use schedlab_units::{Duration, TaskId};

use super::Shadow;

/// A task that was switched out early this often is assumed to yield.
pub(crate) const OFTEN: u8 = 2;

impl Shadow {
    /// Whether a task is assumed to yield.
    pub fn yields(&self, task: TaskId) -> bool {
        self.known(task).learned.left_early >= OFTEN
    }

    /// A task that is assumed to yield begins to run. If it yields and is picked again it leaves no event, but has given
    /// up a turn.
    pub(super) fn may_have_yielded(&mut self, task: TaskId) {
        if self.yields(task) && self.sched.kernel.rules.policy == FairPolicy::Eevdf {
            let entity = &self.sched.task(task).se;
            self.add_error(SeId(task.0), calc_delta_fair(entity.slice, &entity.load));
        }
    }

    /// Whether a turn of a task ended early: after less than half of the shortest turn.
    pub(crate) fn is_early(&self, task: TaskId, ran: Duration) -> bool {
        let least = match self.sched.kernel.rules.policy {
            FairPolicy::Cfs => self.sched.scaled.min_granularity,
            FairPolicy::Eevdf => self.sched.task(task).se.slice,
        };
        ran.0 < least / 2
    }
}
