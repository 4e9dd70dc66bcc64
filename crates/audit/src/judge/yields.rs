//! Whether a task that is switched out early, without a request, called sched_yield().

use schedlab_trace::Kind;
use schedlab_units::{TaskId, Time};

use super::Audit;
use crate::report::listener::Listener;
use crate::unknown::list::Reading;
use crate::unknown::yields::OFTEN;

impl<S: Listener> Audit<S> {
    /// A task is switched out before its turn is over without a request. If that happens often, including in its next
    /// turn as far as that is seen, it is assumed to yield.
    pub(crate) fn left_early(&mut self, task: TaskId, now: Time) -> bool {
        let ran = now.since(self.shadow.known(task).began);
        if !self.shadow.is_early(task, ran) || !self.tries(Reading::Yields) {
            return false;
        }
        let again = self.leaves_early_again(task);
        let known = self.shadow.known_mut(task);
        known.learned.left_early = if again { OFTEN } else { known.learned.left_early + 1 };
        again
    }

    /// Whether a task is switched out early in its next turn although no task arrives.
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
