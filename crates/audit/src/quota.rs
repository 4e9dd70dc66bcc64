//! Groups with a quota of CPU time, and when they are out of it.
//!
//! No event tells that a group is throttled on a CPU, nor that it may go on. Both show in who runs: a task of such a group
//! makes way unasked, or is passed over, or waits on a CPU that idles; and later it runs without having been woken.

use schedlab_sched::{Curr, TgId};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::audit::Audit;
use crate::listener::Listener;
use crate::pick;
use crate::shadow::Shadow;
use crate::verdict::{Choice, Decision, Hidden, Possible, Verdict};

/// So many queues of a CPU may be found to be throttled at one switch.
const PASSED_OVER_MAX: usize = 8;

impl Shadow {
    /// The group whose quota a task may use up.
    pub fn limit_of(&self, task: TaskId) -> Option<TgId> {
        self.grouping.limit(self.sched.task(task).tg).filter(|_| self.sched.task(task).policy.is_fair())
    }

    /// A task could go on and does not; if its group has a quota, it is out of it.
    pub fn throttle(&mut self, task: TaskId, now: Time) {
        if let Some(tg) = self.limit_of(task) {
            self.sched.throttle_as_recorded(task, tg, now);
            self.generation += 1;
        }
    }

    /// A CPU switches to a task; if its group was out of quota, it has some again. Whether that is so.
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

    /// Whether a verdict hangs on a quota: that of a task it is about, or of the one we would have chosen.
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
    /// Whether a pick follows if those who come first here were out of quota, one after the other.
    pub(crate) fn judge_throttled(&mut self, verdict: &mut Verdict, next: Curr, clock: Time) {
        let of = |shadow: &Shadow, found: &[Possible]| match found.first()?.choice {
            Choice::Task(pid) => shadow.find(pid).filter(|&task| shadow.limit_of(task).is_some()),
            _ => None,
        };
        let mut first = of(&self.shadow, &verdict.ours);
        if first.is_none() {
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
