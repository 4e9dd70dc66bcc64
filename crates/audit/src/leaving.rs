//! Tasks that have left a queue before the event that shows it.
//!
//! A task that goes to sleep leaves its queue first. Then its CPU picks another task, dequeues sleepers whose dequeue
//! was delayed, and may balance for long; only the switch at the end is traced. Events in between show that the task
//! was gone by then: its CPU pulls tasks, or a sleeper beside it is no longer queued.

use schedlab_sched::{SeId, TaskState};
use schedlab_topology::CpuId;
use schedlab_trace::{self as trace, Event, Kind};
use schedlab_units::{Duration, Pid, TaskId, Time};

use crate::audit::Audit;
use crate::listener::Listener;
use crate::readings::Reading;

/// A task that has left its queue is switched out within this time.
const PATIENCE: Duration = Duration::millis(10);

impl<S: Listener> Audit<S> {
    /// A sleeper whose dequeue was delayed has left its queue, so its CPU has picked a task. If the sleeper could not
    /// come before the running task, and that task only leaves next, then the running task had already left, with the
    /// lag that it had beside the sleeper.
    pub(crate) fn let_go(&mut self, sleeper: TaskId, now: Time) {
        let cpu = self.shadow.sched.task(sleeper).cpu;
        if self.shadow.tries(Reading::LeftAlready)
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

/// How the running task is about to leave its CPU, if it moves another task in task context and then goes to sleep.
pub fn leaves<'a>(event: &Event, mut ahead: impl Iterator<Item = &'a Event>) -> Option<TaskState> {
    if event.flags.in_interrupt() || event.pid == Pid::IDLE {
        return None;
    }
    let switch = ahead.find(|next| next.cpu == event.cpu && matches!(next.kind, Kind::SchedSwitch { .. }))?;
    left_by(switch, event.pid)
}

/// How a task leaves its CPU in a switch, if it goes to sleep.
fn left_by(switch: &Event, pid: Pid) -> Option<TaskState> {
    match switch.kind {
        Kind::SchedSwitch { prev_pid, prev_state, .. } if prev_pid == pid && !prev_state.is_runnable() => {
            Some(left_as(prev_state))
        }
        _ => None,
    }
}

/// The scheduler's state for a task that leaves with this recorded state.
pub fn left_as(state: trace::TaskState) -> TaskState {
    if state.is_dead() { TaskState::Dead } else { TaskState::Interruptible }
}
