//! Whether a task that arrives may preempt the running one, given how far virtual times may be off; and what the
//! kernel's answer says about those errors.

use std::mem::take;

use schedlab_sched::{
    CfsRqId, Curr, FairPolicy, Feature, PreemptDecision, Reason, SeId, calc_delta_fair, wf,
};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::follow::running::Before;
use crate::judge::spare::Spare;
use crate::report::verdict::Verdict;
use crate::report::verdict::{Choice, Possible};
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;

/// Fractions of the error by which a single virtual time is moved.
const PARTS: [i64; 2] = [1, 8];

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
    let Before { curr, at, .. } = before;
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
    let (running, woken) = shadow.sched.find_matching_se(SeId(curr.0), SeId(task.0));
    let off = |shadow: &Shadow, se| shadow.likely_error(se) as i64;
    let errors = [off(shadow, running), off(shadow, woken)];
    let pending = std::mem::take(&mut shadow.sched.rqs[at].need_resched);
    let ask = |shadow: &Shadow| {
        let flags = [wf::TTWU, wf::TTWU | wf::SYNC];
        let flags = if shadow.sched.kernel.has(Feature::NextBuddy) { &flags[..] } else { &flags[..1] };
        flags.iter().any(|&flags| shadow.sched.check_preempt(at, task, flags).preempt != decided.preempt)
    };
    let times = [running, woken].map(|se| (shadow.sched.se(se).vruntime, shadow.sched.se(se).deadline));
    let set = |shadow: &mut Shadow, by: [i64; 2]| {
        // The deadline of the task that was just placed moves with its virtual time.
        let (curr, placed) = (times[0].0.wrapping_add(by[0] as u64), by[1] as u64);
        shadow.sched.set_virtual_time(running, curr, times[0].1);
        shadow.sched.set_virtual_time(
            woken,
            times[1].0.wrapping_add(placed),
            times[1].1.wrapping_add(placed),
        );
    };
    // The later the running task and the earlier the new one, the stronger the case for preemption.
    let directions = [(1, -1), (-1, 1)];
    let directions = match (shadow.sched.preempt_is_monotone(running), decided.preempt) {
        (false, _) => &directions[..],
        (true, false) => &directions[..1],
        (true, true) => &directions[1..],
    };
    let cfs = shadow.sched.cfs_rq_of(running);
    let others = others(shadow, spare, cfs, running, woken);
    let by_others = |shadow: &mut Shadow| {
        let mut moved = |sign| {
            shadow.sched.shift_vruntimes(cfs, &others, sign);
            let open = ask(shadow);
            shadow.sched.shift_vruntimes(cfs, &others, -sign);
            open
        };
        !others.is_empty() && (moved(1) || moved(-1))
    };
    let open = directions.iter().any(|(one, two)| {
        set(shadow, [one * errors[0], two * errors[1]]);
        ask(shadow) || by_others(shadow)
    });
    // With other tasks in between, a small shift may change the answer although a large shift changes it back: by then
    // the other tasks are owed service.
    let less = |shadow: &mut Shadow| {
        let moves = [(1, 0), (-1, 0), (0, 1), (0, -1)].into_iter();
        let mut moves = moves.flat_map(|signs| PARTS.map(|part| (signs, part)));
        let some = moves.any(|((one, two), part)| {
            set(shadow, [one * errors[0] / part, two * errors[1] / part]);
            ask(shadow)
        });
        set(shadow, [0, 0]);
        some || by_others(shadow)
    };
    let open = open || directions.len() > 1 && less(shadow);
    spare.others = others;
    set(shadow, [0, 0]);
    shadow.sched.rqs[at].need_resched = pending;
    if open {
        found.push(other);
    }
    found
}

/// The other tasks that wait in the same queue as these two, with their errors. Under EEVDF they move the average that
/// decides eligibility.
fn others(shadow: &Shadow, spare: &mut Spare, cfs: CfsRqId, running: SeId, woken: SeId) -> Vec<(SeId, i64)> {
    let mut others = std::mem::take(&mut spare.others);
    others.clear();
    if shadow.sched.kernel.rules.policy == FairPolicy::Eevdf {
        let waiting = shadow.sched.cfs(cfs).timeline.entries().iter().map(|entry| entry.se);
        let beside = waiting.filter(|&se| se != running && se != woken);
        others.extend(beside.map(|se| (se, shadow.likely_error(se) as i64)));
    }
    others
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

/// Under CFS the kernel's answer shows on which side of the granularity the difference of two virtual times lies. If
/// ours lies on the other side, both times are moved there, each in proportion to its error.
pub fn learn(shadow: &mut Shadow, at: CpuId, task: TaskId, asked: bool) {
    let Curr::Task(curr) = shadow.sched.rqs[at].curr else { return };
    let (running, woken) = shadow.sched.find_matching_se(SeId(curr.0), SeId(task.0));
    let errors = [running, woken].map(|se| shadow.error_of(se) as i64);
    let [one, two] = [running, woken].map(|se| shadow.sched.se(se));
    let granularity = calc_delta_fair(shadow.sched.scaled.wakeup_granularity, &two.load) as i64;
    let beyond = one.vruntime.wrapping_sub(two.vruntime) as i64 - granularity;
    let by = if asked { (1 - beyond).max(0) } else { beyond.max(0) };
    if by > errors[0] + errors[1] {
        return;
    }
    let first = (by as i128 * errors[0] as i128 / (errors[0] + errors[1]).max(1) as i128) as i64;
    let sign = if asked { 1 } else { -1 };
    let to = [(running, one, sign * first), (woken, two, -sign * (by - first))];
    let to = to.map(|(se, entity, by)| (se, entity.vruntime.wrapping_add(by as u64), entity.deadline));
    for (se, vruntime, deadline) in to {
        shadow.sched.set_virtual_time(se, vruntime, deadline);
    }
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
