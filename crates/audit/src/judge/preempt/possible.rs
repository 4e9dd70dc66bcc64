//! Whether a task that arrives may preempt the running one, given how far virtual times may be off.

use std::mem::take;

use schedlab_sched::{PreemptDecision, Reason};
use schedlab_units::TaskId;

use crate::follow::running::Before;
use crate::judge::spare::Spare;
use crate::report::verdict::Verdict;
use crate::report::verdict::{Choice, Possible};
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;
use crate::unknown::virtual_time;

/// Pending reschedule requests of a CPU whose outcome is not known yet.
#[derive(Debug, Default)]
pub struct Asked {
    pub(super) verdicts: Vec<Question>,
    /// An arriving task has requested a reschedule, and it is known that the request was made.
    pub(super) told: bool,
    /// An event has shown that a reschedule is pending, so later requests are not visible.
    pub(super) pending: bool,
    /// Its task was woken while it ran: it was about to sleep and calls the scheduler itself.
    pub(super) meant_to_sleep: bool,
    /// A task that was moved to or from this CPU may have made a request.
    pub(super) moved_there: bool,
}

impl Asked {
    /// Its task leaves the CPU. Returns whether a request is known, and whether it may leave for a reason that is not
    /// judged here.
    pub fn left(&mut self) -> (bool, bool) {
        let otherwise = take(&mut self.meant_to_sleep) | take(&mut self.moved_there);
        (take(&mut self.told), otherwise)
    }
}

/// Whether a task that arrived preempts the running one.
#[derive(Debug)]
pub struct Question {
    pub(super) verdict: Verdict,
    /// The task that arrived.
    pub(super) task: TaskId,
    /// Our answer, if virtual times decided it.
    pub(super) by_time: Option<bool>,
    /// If our answer was that the turn of the running task was over: the least time by which it was over, and the error
    /// of that time, ns.
    pub(super) over: Option<(u64, u64)>,
}

/// The possible outcomes when a task arrives: our decision, and the opposite one if small errors in virtual times could
/// cause it.
pub fn possible(
    shadow: &mut Shadow,
    spare: &mut Spare,
    before: Before,
    task: TaskId,
    decided: &PreemptDecision,
) -> Vec<Possible> {
    let number = decided.number.into_iter().collect();
    let choice = Choice::Preempt(decided.preempt);
    let mut found = spare.list();
    found.push(Possible { choice, reason: decided.reason.name(), hidden: None, numbers: number });
    let hidden = shadow.groups_or(Unknown::VirtualTime);
    let other = Possible {
        choice: Choice::Preempt(!decided.preempt),
        reason: decided.reason.name(),
        hidden: Some(hidden),
        numbers: Default::default(),
    };
    if !is_by_time(decided.reason) {
        return found;
    }
    if shadow.groups_hidden {
        found.push(other);
        return found;
    }
    if virtual_time::answer_is_open(shadow, &mut spare.others, before, task, decided.preempt) {
        found.push(other);
    }
    found
}

/// Whether virtual times made the decision.
pub fn is_by_time(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::PreemptVruntime
            | Reason::PreemptDeadline
            | Reason::PreemptShort
            | Reason::KeepGranularity
            | Reason::KeepProtected
            | Reason::KeepDeadline
            | Reason::PreemptSync
            | Reason::KeepSync
    )
}

/// The single answer that a turn is over, or is not.
pub fn slice(spare: &mut Spare, over: bool, reason: Reason) -> Vec<Possible> {
    let mut found = spare.list();
    found.push(turn(over, reason, None));
    found
}

/// An answer to whether a turn is over.
pub fn turn(over: bool, reason: Reason, hidden: Option<Unknown>) -> Possible {
    Possible { choice: Choice::Preempt(over), reason: reason.name(), hidden, numbers: Default::default() }
}
