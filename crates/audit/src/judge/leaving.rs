//! Tasks that must have left their queue before the switch that shows it.

use schedlab_sched::{SeId, TaskState};
use schedlab_topology::CpuId;
use schedlab_trace::Kind;
use schedlab_units::{Duration, TaskId, Time};

use super::Audit;
use crate::follow::leaving::left_by;
use crate::report::listener::Listener;
use crate::unknown::list::Reading;

/// A task that has left its queue is switched out within this time.
const PATIENCE: Duration = Duration::millis(10);

impl<S: Listener> Audit<S> {
    /// A sleeper whose dequeue was delayed has left its queue, so its CPU has picked a task. If the sleeper could not
    /// come before the running task, and that task only leaves next, then the running task had already left, with the
    /// lag that it had with the sleeper queued.
    pub(crate) fn let_go(&mut self, sleeper: TaskId, now: Time) {
        let cpu = self.shadow.sched.task(sleeper).cpu;
        if self.tries(Reading::LeftAlready)
            && self.shadow.is_surely_ahead(SeId(sleeper.0))
            && let Some((task, state)) = self.is_leaving(cpu, now)
        {
            self.leave_early(task, cpu, state, now);
        }
        if self.shadow.sched.task(sleeper).se.sched_delayed {
            self.shadow.sched.complete_delayed_dequeue(sleeper, now);
        }
    }

    /// A task leaves its queue before its switch event. Its CPU picks another task and so dequeues delayed sleepers
    /// that come first.
    pub(crate) fn leave_early(&mut self, task: TaskId, cpu: CpuId, state: TaskState, now: Time) {
        self.shadow.leave(task, state, now);
        self.shadow.sched.choose_next(cpu);
    }

    /// The task that runs on a CPU and how it leaves, if leaving is its next action. Where the recording contains
    /// charges, one comes just before a task leaves its queue.
    fn is_leaving(&self, cpu: CpuId, now: Time) -> Option<(TaskId, TaskState)> {
        let curr = self.shadow.sched.rqs[cpu].curr.task()?;
        let pid = self.shadow.known(curr).pid;
        let mut balances = false;
        for next in self.pairing.ahead(now + PATIENCE) {
            match next.kind {
                Kind::SchedStatRuntime { pid: charged, .. } if charged == pid && !balances => return None,
                Kind::SchedStatRuntime { .. } | Kind::Unknown(_) => {}
                _ if next.cpu != cpu || next.flags.in_interrupt() => {}
                Kind::SchedMigrateTask { dest_cpu, .. } if dest_cpu == cpu => balances = true,
                Kind::SchedSwitch { .. } => return left_by(next, pid).map(|state| (curr, state)),
                _ => return None,
            }
        }
        None
    }
}
