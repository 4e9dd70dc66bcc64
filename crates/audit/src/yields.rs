//! Tasks that leave their CPU while runnable and without a request: by sched_yield().
//!
//! A call of sched_yield() is no scheduler event. It shows in a task that does it repeatedly: it makes way soon after
//! it began, for a task that has waited all the time, far from the end of its turn.

use schedlab_sched::FairPolicy;
use schedlab_trace::Kind;
use schedlab_units::{Duration, TaskId, Time};

use crate::audit::Audit;
use crate::listener::Listener;
use crate::readings::Reading;
use crate::shadow::{Known, Shadow};

/// A task that made way early this often is assumed to yield.
const OFTEN: u8 = 2;

impl Known {
    /// Whether a task is assumed to yield.
    pub fn yields(&self) -> bool {
        self.left_early >= OFTEN
    }
}

impl Shadow {
    /// Whether a turn of a task ended early: after less than half of the shortest turn.
    fn is_early(&self, task: TaskId, ran: Duration) -> bool {
        let least = match self.sched.kernel.rules.policy {
            FairPolicy::Cfs => self.sched.scaled.min_granularity,
            FairPolicy::Eevdf => self.sched.task(task).se.slice,
        };
        ran.0 < least / 2
    }
}

impl<S: Listener> Audit<S> {
    /// A task makes way before its turn is over without a request. If it does so often, including in its next turn as
    /// far as that is seen, it is assumed to yield.
    pub(crate) fn left_early(&mut self, task: TaskId, now: Time) -> bool {
        let ran = now.since(self.shadow.known(task).began);
        if !self.shadow.is_early(task, ran) || !self.shadow.tries(Reading::Yields) {
            return false;
        }
        let again = self.leaves_early_again(task);
        let known = self.shadow.known_mut(task);
        known.left_early = if again { OFTEN } else { known.left_early + 1 };
        again
    }

    /// Whether a task makes way early in its next turn although no task arrives.
    fn leaves_early_again(&self, task: TaskId) -> bool {
        let pid = self.shadow.known(task).pid;
        let mut began = None;
        for next in self.pairing.ahead(Time::MAX) {
            match next.kind {
                Kind::SchedSwitch { next_pid, .. } if next_pid == pid => began = Some((next.cpu, next.time)),
                Kind::SchedSwitch { prev_pid, prev_state, .. } if prev_pid == pid => {
                    let ran = began.map(|(_, began)| next.time.since(began));
                    let could_go_on = prev_state.is_runnable() && !prev_state.is_preempted();
                    return could_go_on && ran.is_some_and(|ran| self.shadow.is_early(task, ran));
                }
                Kind::SchedWakeup { target_cpu, .. } | Kind::SchedWakeupNew { target_cpu, .. }
                    if began.is_some_and(|(cpu, _)| cpu == target_cpu) =>
                {
                    return false;
                }
                _ => {}
            }
        }
        false
    }
}
