//! Tasks that leave their CPU while runnable and without a request: by sched_yield().
//!
//! A call of sched_yield() is no scheduler event. It shows in a task that does it repeatedly: it is switched out soon
//! after it began, for a task that has waited all the time, far from the end of its turn.

use schedlab_sched::{FairPolicy, SeId, calc_delta_fair};
use schedlab_trace::Kind;
use schedlab_units::{Duration, TaskId, Time};

use super::Shadow;
use super::about::{About, Reading};
use crate::follow::pairing::Pairing;

/// Learned from turns that end early.
pub const YIELDS: Reading =
    Reading::new("YIELDS", "a task that repeatedly leaves its CPU early calls sched_yield()");

pub(super) const ABOUT: About = About {
    readings: &[YIELDS],
    ..About::new("YIELD", "whether the task called sched_yield(), as it seems to do")
};

/// A task that was switched out early this often is assumed to yield.
const OFTEN: u8 = 2;

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
    fn is_early(&self, task: TaskId, ran: Duration) -> bool {
        let least = match self.sched.kernel.rules.policy {
            FairPolicy::Cfs => self.sched.scaled.min_granularity,
            FairPolicy::Eevdf => self.sched.task(task).se.slice,
        };
        ran.0 < least / 2
    }

    /// A task is switched out before its turn is over without a request. If that happens often, including in its next
    /// turn as far as that is seen, it is assumed to yield.
    pub fn left_early(&mut self, task: TaskId, pairing: &Pairing, now: Time) -> bool {
        let ran = now.since(self.known(task).began);
        if !self.is_early(task, ran) {
            return false;
        }
        let again = self.leaves_early_again(task, pairing);
        let learned = &mut self.known_mut(task).learned;
        learned.left_early = if again { OFTEN } else { learned.left_early + 1 };
        again
    }

    /// Whether a task is switched out early in its next turn although no task arrives.
    fn leaves_early_again(&self, task: TaskId, pairing: &Pairing) -> bool {
        let pid = self.known(task).pid;
        let mut began = None;
        for next in pairing.ahead(Time::MAX) {
            match next.kind {
                Kind::SchedSwitch { next_pid, .. } if next_pid == pid => began = Some((next.cpu, next.time)),
                Kind::SchedSwitch { prev_pid, prev_state, .. } if prev_pid == pid => {
                    let ran = began.map(|(_, began)| next.time.since(began));
                    let could_go_on = prev_state.is_runnable() && !prev_state.is_preempted();
                    return could_go_on && ran.is_some_and(|ran| self.is_early(task, ran));
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
