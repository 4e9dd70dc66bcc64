//! Groups with a CPU quota, and when they run out of it.
//!
//! No event shows that a group is throttled on a CPU, or unthrottled. Both show in which task runs: a task of a
//! throttled group makes way without a request, is passed over, or waits on an idle CPU; later it runs without a
//! wake-up.

use schedlab_sched::{Curr, TgId};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::audit::Audit;
use crate::listener::Listener;
use crate::pick;
use crate::readings::Reading;
use crate::shadow::Shadow;
use crate::verdict::{Choice, Decision, Hidden, Possible, Verdict};

/// Maximum number of queues on a CPU that may be found throttled at one switch.
const PASSED_OVER_MAX: usize = 8;

impl Shadow {
    /// The group whose quota limits a task.
    pub fn limit_of(&self, task: TaskId) -> Option<TgId> {
        self.grouping.limit(self.sched.task(task).tg).filter(|_| self.sched.task(task).policy.is_fair())
    }

    /// A task is runnable and does not run on; if its group has a quota, the group is out of it.
    pub fn throttle(&mut self, task: TaskId, now: Time) {
        if let Some(tg) = self.limit_of(task) {
            self.sched.throttle_as_recorded(task, tg, now);
            self.generation += 1;
        }
    }

    /// A CPU switches to a task; if its group was out of quota, it has some again. Returns whether that is so.
    pub fn unthrottle(&mut self, next: Curr, cpu: CpuId, now: Time) -> bool {
        let Curr::Task(task) = next else { return false };
        let was = self.limit_of(task).is_some()
            && self.sched.task(task).cpu == cpu
            && self.sched.throttled_hierarchy_of(task);
        if was {
            self.sched.unthrottle_as_recorded(task, now);
        }
        was
    }

    /// Whether a verdict depends on a quota: that of its task, or of the task that we would have picked.
    pub fn hangs_on_quota(&self, verdict: &Verdict) -> bool {
        let decides = matches!(verdict.decision, Decision::Preempt | Decision::Balance);
        let of = |choice: Choice| match choice {
            Choice::Task(pid) | Choice::Move { pid, .. } => self.find(pid),
            _ => None,
        };
        let tasks = [
            self.find(verdict.pid),
            of(verdict.kernel),
            verdict.ours.first().and_then(|ours| of(ours.choice)),
        ];
        decides && tasks.into_iter().flatten().any(|task| self.limit_of(task).is_some())
    }
}

impl<S: Listener> Audit<S> {
    /// Whether a pick follows if the tasks that come first here were out of quota, one after the other.
    pub(crate) fn judge_throttled(&mut self, verdict: &mut Verdict, next: Curr, clock: Time) {
        let of = |shadow: &Shadow, found: &[Possible]| match found.first()?.choice {
            Choice::Task(pid) => shadow.find(pid).filter(|&task| shadow.limit_of(task).is_some()),
            _ => None,
        };
        let mut first = of(&self.shadow, &verdict.ours);
        if first.is_none() || !self.shadow.tries(Reading::Throttled) {
            return;
        }
        let before = self.shadow.sched.clone();
        for _ in 0..PASSED_OVER_MAX {
            let Some(task) = first else { break };
            self.shadow.throttle(task, clock);
            let found = pick::of_switch(&mut self.shadow, verdict.cpu, next, clock);
            if verdict.takes(&found, Hidden::Quota) {
                return;
            }
            first = of(&self.shadow, &found);
        }
        self.shadow.sched = before;
    }
}
