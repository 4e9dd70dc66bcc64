//! Decisions that depend on whether a group was out of its quota.

use schedlab_sched::Curr;
use schedlab_units::Time;

use super::{Audit, pick};
use crate::report::listener::Listener;
use crate::report::verdict::{Choice, Decision, Possible, Verdict};
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;
use crate::unknown::quota;

/// Maximum number of queues on a CPU that may be found throttled at one switch.
const PASSED_OVER_MAX: usize = 8;

impl<S: Listener> Audit<S> {
    /// Whether a pick follows if the tasks that come first here were out of quota, one after the other.
    pub(crate) fn judge_throttled(&mut self, verdict: &mut Verdict, next: Curr, clock: Time) {
        let of = |shadow: &Shadow, found: &[Possible]| match found.first()?.choice {
            Choice::Task(pid) => shadow.find(pid).filter(|&task| shadow.limit_of(task).is_some()),
            _ => None,
        };
        let mut first = of(&self.shadow, &verdict.ours);
        if first.is_none() || !self.tries(quota::THROTTLED) {
            return;
        }
        let before = self.shadow.sched.clone();
        for _ in 0..PASSED_OVER_MAX {
            let Some(task) = first else { break };
            self.shadow.throttle(task, clock);
            let found = pick::of_switch(&mut self.shadow, &mut self.spare, verdict.cpu, next, clock);
            if verdict.takes(&found, Unknown::Quota) {
                return;
            }
            first = of(&self.shadow, &found);
        }
        self.shadow.sched = before;
    }
}

/// Whether a verdict depends on a quota: that of its task, or of the task that we would have picked.
pub fn hangs_on_quota(shadow: &Shadow, verdict: &Verdict) -> bool {
    let decides = matches!(verdict.decision, Decision::Preempt | Decision::Balance);
    let of = |choice: Choice| match choice {
        Choice::Task(pid) | Choice::Move { pid, .. } => shadow.find(pid),
        _ => None,
    };
    let tasks =
        [shadow.find(verdict.pid), of(verdict.kernel), verdict.ours.first().and_then(|ours| of(ours.choice))];
    decides && tasks.into_iter().flatten().any(|task| shadow.limit_of(task).is_some())
}
