//! Tasks that have left a queue before the event that shows it.
//!
//! A task that goes to sleep leaves its queue first. Then its CPU picks another task, dequeues sleepers whose dequeue
//! was delayed, and may balance for long; only the switch at the end is traced. Events in between show that the task
//! had already left: its CPU pulls tasks, or a sleeper in the same queue is no longer queued.

use schedlab_sched::TaskState;
use schedlab_trace::{self as trace, Event, Kind};
use schedlab_units::Pid;

/// How the running task is about to leave its CPU, if it moves another task in task context and then goes to sleep.
pub fn leaves<'a>(event: &Event, mut ahead: impl Iterator<Item = &'a Event>) -> Option<TaskState> {
    if event.flags.in_interrupt() || event.pid == Pid::IDLE {
        return None;
    }
    let switch = ahead.find(|next| next.cpu == event.cpu && matches!(next.kind, Kind::SchedSwitch { .. }))?;
    left_by(switch, event.pid)
}

/// How a task leaves its CPU in a switch, if it goes to sleep.
pub(crate) fn left_by(switch: &Event, pid: Pid) -> Option<TaskState> {
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
