//! Tasks that leave their CPU though they could go on and nobody asked: by sched_yield().
//!
//! A call of sched_yield() is no event of the scheduler. It shows in who does it again and again: he makes way soon after he
//! began, for somebody who waited all the time, far from the end of his turn.

use schedlab_sched::FairPolicy;
use schedlab_units::{TaskId, Time};

use crate::shadow::{Known, Shadow};

/// Who made way early so often is taken to yield.
const OFTEN: u8 = 2;

impl Known {
    /// Whether a task is taken to yield.
    pub fn yields(&self) -> bool {
        self.left_early >= OFTEN
    }
}

impl Shadow {
    /// A task makes way before its turn is over, which nobody asked of it. Who ran for less than half of the least turn
    /// did so early.
    pub fn left_early(&mut self, task: TaskId, now: Time) {
        let least = match self.sched.kernel.rules.policy {
            FairPolicy::Cfs => self.sched.scaled.min_granularity,
            FairPolicy::Eevdf => self.sched.task(task).se.slice,
        };
        let known = self.known_mut(task);
        if now.since(known.began).0 < least / 2 {
            known.left_early += 1;
        }
    }
}
