//! Tasks that leave their CPU while runnable and without a request: by sched_yield().
//!
//! A call of sched_yield() is no scheduler event. It shows in a task that does it repeatedly: it is switched out soon
//! after it began, for a task that has waited all the time, far from the end of its turn.

use schedlab_sched::FairPolicy;
use schedlab_units::{Duration, TaskId};

use crate::follow::shadow::{Known, Shadow};

/// A task that was switched out early this often is assumed to yield.
pub(crate) const OFTEN: u8 = 2;

impl Known {
    /// Whether a task is assumed to yield.
    pub fn yields(&self) -> bool {
        self.left_early >= OFTEN
    }
}

impl Shadow {
    /// Whether a turn of a task ended early: after less than half of the shortest turn.
    pub(crate) fn is_early(&self, task: TaskId, ran: Duration) -> bool {
        let least = match self.sched.kernel.rules.policy {
            FairPolicy::Cfs => self.sched.scaled.min_granularity,
            FairPolicy::Eevdf => self.sched.task(task).se.slice,
        };
        ran.0 < least / 2
    }
}
