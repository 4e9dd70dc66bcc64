//! Whether an arriving task preempts the running one.
//!
//! The kernel answers a wake-up by setting, or not setting, the need-resched bit of the running task. Events show the
//! bit of the CPU that they happen on, so if a wake-up ends on the target itself, its own event contains the answer.
//! Otherwise the target's next event contains it: a bit in its flags, or a switch away from a task that is still
//! runnable. A task that goes to sleep first does not show it. A switch that no wake-up requested is judged in
//! [turns](crate::judge::preempt::slice).

pub mod possible;
pub mod slice;

use std::mem::take;

use schedlab_sched::{Curr, FairPolicy, PreemptDecision, Reason, SeId, wf};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind};
use schedlab_units::{TaskId, Time};

use self::possible::{Question, is_by_time, possible, slice, turn};
use crate::follow::pairing::by_itself;
use crate::follow::running::{Arrived, Before};
use crate::judge::Audit;
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Choice, Decision, Possible, Verdict};
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;
use crate::unknown::lost_turn;
use crate::unknown::slice_end;
use crate::unknown::virtual_time;

/// Whether the flags of an event show that the running task must be preempted at once.
pub fn bit_full(flags: Flags) -> Option<bool> {
    flags.is_known().then(|| flags.has(Flags::NEED_RESCHED))
}

/// Whether the flags of an event, if it has any, show that an arriving task requested preemption of the running one.
/// If arriving tasks make lazy requests, a full request alone comes from elsewhere and hides theirs.
fn bit(shadow: &Shadow, flags: Flags) -> Option<Option<bool>> {
    let full = flags.has(Flags::NEED_RESCHED) || flags.has(Flags::PREEMPT_RESCHED);
    let lazy = flags.has(Flags::NEED_RESCHED_LAZY);
    let hides = full && !lazy && shadow.sched.kernel.preempt.lazy_request(false, false);
    flags.is_known().then_some(if hides { None } else { Some(full || lazy) })
}

impl<S: Listener> Audit<S> {
    /// A task was queued on a CPU that runs another.
    pub(crate) fn judge_preempt(
        &mut self,
        event: &Event,
        before: Option<Before>,
        task: TaskId,
        decided: Option<PreemptDecision>,
    ) {
        let Some(before) = before else { return };
        let Some(decided) = decided else {
            // The event that woke it was not seen, so neither was a request.
            self.asked[before.at].told = true;
            return;
        };
        if self.asked[before.at].pending {
            return;
        }
        let who = self.shadow.known(before.curr).who();
        let mut verdict = Verdict::begun(event.time, before.at, Decision::Preempt, who, Choice::Nothing);
        verdict.hidden = Some(Unknown::Request);
        let mut over = None;
        verdict.ours = if !decided.preempt && self.shadow.is_asked(before.at) {
            // The charge found the slice of the task, or that of its group, to be over.
            let mut found = slice(&mut self.spare, true, Reason::SliceEnd);
            let left = before.left_at_most(&self.shadow);
            if left > 0 {
                found.push(turn(false, Reason::SliceEnd, Some(Unknown::VirtualTime)));
            } else {
                let error = self.shadow.error_of(SeId(before.curr.0));
                over = Some((left.unsigned_abs() + 2 * error, error));
            }
            found
        } else {
            possible(&mut self.shadow, &mut self.spare, before, task, &decided)
        };
        let by_time = is_by_time(decided.reason).then_some(decided.preempt);
        let question = Question { verdict, task, by_time, over };
        // A new task's event is written before the request.
        let shown = event.cpu == before.at && !matches!(event.kind, Kind::SchedWakeupNew { .. });
        match bit(&self.shadow, event.flags).filter(|_| shown) {
            Some(Some(asked)) => self.answered(question, asked, false, true, event.time),
            Some(None) => self.unanswered(question.verdict),
            None => self.asked[before.at].verdicts.push(question),
        }
    }

    /// Tasks were moved to busy CPUs, where preemption may have been requested.
    pub(crate) fn moved_there(&mut self, arrived: Vec<Arrived>) {
        for Arrived { before, task, decided } in arrived {
            let found = possible(&mut self.shadow, &mut self.spare, before, task, &decided);
            let asked = |possible: &Possible| possible.choice == Choice::Preempt(true);
            self.asked[before.at].moved_there |= found.iter().any(asked);
            self.spare.give_back(found);
        }
    }

    /// Preemption of the running task was requested for a task that has been pushed elsewhere since.
    pub(crate) fn asked_in_vain(&mut self, at: CpuId) {
        self.shadow.sched.rqs[at].need_resched.full = true;
        self.asked[at].moved_there = true;
    }

    /// A task is woken; if it is running, it was about to sleep.
    pub(crate) fn woken_running(&mut self, task: TaskId, at: CpuId) {
        self.asked[at].meant_to_sleep |= self.shadow.sched.rqs[at].curr == Curr::Task(task);
    }

    /// A task that preempts becomes a buddy.
    fn apply_answer(&mut self, at: CpuId, task: TaskId, ours: bool, asked: bool) {
        let sched = &mut self.shadow.sched;
        if ours != asked && sched.kernel.rules.policy == FairPolicy::Cfs {
            let decision = sched.preempt_with_answer(at, task, asked);
            sched.apply_preempt(at, &decision);
            virtual_time::learn_from_answer(&mut self.shadow, at, task, asked);
        }
    }

    /// Whether the kernel's answer follows if the CPU lost its turn in a switch.
    fn is_of_lost_turn(&mut self, at: CpuId, task: TaskId, asked: bool) -> bool {
        if !self.tries(lost_turn::LOST_TURN) {
            return false;
        }
        let pending = take(&mut self.shadow.sched.rqs[at].need_resched);
        let is_so = |shadow: &mut Shadow| shadow.sched.check_preempt(at, task, wf::TTWU).preempt == asked;
        let found = self.shadow.find_lost_turn(at, is_so);
        self.shadow.sched.rqs[at].need_resched = pending;
        found
    }

    /// The kernel's answer is known. `else_asked`: something else may have requested preemption as well. `alone`: no
    /// other task arrived.
    fn answered(&mut self, question: Question, asked: bool, else_asked: bool, alone: bool, now: Time) {
        let Question { mut verdict, task, by_time, over } = question;
        let at = verdict.cpu;
        verdict.kernel = Choice::Preempt(asked);
        verdict.judge();
        verdict.doubt(2);
        if verdict.answer == Answer::Differs && asked && else_asked {
            verdict.without(Unknown::SliceEnd);
        }
        let is_there = |shadow: &Shadow| {
            let entry = shadow.sched.task(task);
            entry.on_rq
                && entry.cpu == at
                && shadow.sched.rqs[at].curr.task().is_some_and(|curr| curr != task)
        };
        let wrong = |ours| ours != asked || verdict.answer == Answer::Differs;
        let to_learn = by_time.filter(|&ours| alone && wrong(ours) && is_there(&self.shadow));
        if to_learn.is_some() && verdict.answer == Answer::Differs && self.is_of_lost_turn(at, task, asked) {
            verdict.without(Unknown::LostTurn);
        }
        verdict.nearest = self.why(&verdict, |audit| match (over, by_time) {
            (Some((by, error)), _) => Some(slice_end::had_ended(false, by, error)),
            (None, Some(_)) => audit.nearest_of_answer(at, task, asked, now),
            (None, None) => None,
        });
        if let Some(ours) = to_learn {
            self.apply_answer(at, task, ours, asked);
        }
        self.asked[at].told |= asked;
        self.asked[at].pending |= asked;
        self.give(verdict);
    }

    /// Whether the task that arrived has been queued on another CPU since.
    fn has_left(&self, question: &Question) -> bool {
        let task = self.shadow.sched.task(question.task);
        task.on_rq && task.cpu != question.verdict.cpu
    }

    /// The kernel's answer will not be known.
    fn unanswered(&mut self, mut verdict: Verdict) {
        verdict.without(Unknown::Request);
        self.give(verdict);
    }

    /// A CPU shows whether its task must be preempted.
    pub(crate) fn shown(&mut self, event: &Event) {
        let cpu = event.cpu;
        let answer = match event.kind {
            // A task that meant to sleep or that yields calls the scheduler with or without a request.
            Kind::SchedSwitch { prev_state, prev_pid, .. } => {
                let of_itself = self.asked[cpu].meant_to_sleep
                    || !prev_state.is_preempted()
                        && self.shadow.find(prev_pid).is_some_and(|prev| self.shadow.yields(prev));
                (prev_state.is_runnable() && !of_itself).then_some(true)
            }
            _ => match bit(&self.shadow, event.flags) {
                None => return,
                Some(known) => known,
            },
        };
        if !self.asked[cpu].verdicts.is_empty() {
            self.show_all(event, answer);
        }
        match event.kind {
            Kind::SchedSwitch { .. } => self.asked[cpu].pending = false,
            // This event itself may be the request.
            Kind::SchedWakeup { .. } | Kind::SchedWakeupNew { .. } => {}
            _ => self.asked[cpu].pending = answer == Some(true),
        }
        // A probe within an interrupt may come before the request that the interrupt makes.
        let within = matches!(event.kind, Kind::Unknown(_)) && event.flags.has(Flags::HARDIRQ);
        if answer == Some(false)
            && !within
            && !self.ends(event)
            && self.shadow.sched.rqs[cpu].curr != Curr::Idle
        {
            self.passes_over(cpu, self.shadow.sched.rqs[cpu].curr, event.time);
            self.overrun(event);
            // The task for which preemption was requested has been moved away.
            self.shadow.goes_on(cpu, event.time);
            // If no request shows here, none is pending in the kernel either.
            let rq = &mut self.shadow.sched.rqs[cpu];
            (rq.need_resched, rq.skip_clock_update) = Default::default();
        }
    }

    /// Whether an event charges an exiting task, whose preemption is requested just after that.
    fn ends(&self, event: &Event) -> bool {
        let charged = matches!(event.kind, Kind::SchedStatRuntime { pid, .. } if pid == event.pid);
        let curr = self.shadow.sched.rqs[event.cpu].curr.task();
        charged && by_itself(event.flags) && curr.is_some_and(|curr| self.shadow.sched.task(curr).exiting)
    }

    /// A CPU's answer to all its open questions; `None` if its task went to sleep instead.
    fn show_all(&mut self, event: &Event, answer: Option<bool>) {
        let cpu = event.cpu;
        let asks = matches!(event.kind, Kind::SchedWakeup { .. } | Kind::SchedWakeupNew { .. });
        let mut verdicts = take(&mut self.asked[cpu].verdicts);
        if bit_full(event.flags) == Some(true) {
            self.shadow.sched.rqs[cpu].skip_clock_update = true;
        }
        let several = verdicts.len() > 1;
        for question in verdicts.drain(..) {
            match answer {
                // Preemption may have been requested, and the task may have called the scheduler after the arrived
                // task had been moved away.
                Some(false) if question.by_time.is_some() && self.has_left(&question) => {
                    self.unanswered(question.verdict);
                }
                Some(asked) => {
                    // The running task is charged when another task is moved away, and that charge may find its turn
                    // to be over.
                    let over = asked && (self.turn_over(event) || self.has_left(&question));
                    self.answered(question, asked, asks || several || over, !several, event.time);
                }
                None => self.unanswered(question.verdict),
            }
        }
        self.asked[cpu].verdicts = verdicts;
    }
}
