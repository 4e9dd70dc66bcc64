//! Whether the turn of a running task is over.
//!
//! No event shows a tick or the slice timer. A runnable task that is switched out without a request from an arriving
//! task was preempted by one of those, or yielded.

use schedlab_sched::{Curr, Feature, Reason, SeId};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind};
use schedlab_units::{Duration, Pid, TaskId, Time};

use crate::follow::running::slice_left;
use crate::judge::Audit;
use crate::judge::preempt::possible::{slice, turn};
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Choice, Decision, Verdict};
use crate::unknown::list::Unknown;
use crate::unknown::{slice_end, yields};

/// The event of a task that moves itself to a control group follows within this time.
const GROUP_PATIENCE: Duration = Duration::millis(1);

impl<S: Listener> Audit<S> {
    /// Whether the turn of a CPU's task may be over by now.
    pub(crate) fn turn_over(&mut self, event: &Event) -> bool {
        let Curr::Task(curr) = self.shadow.sched.rqs[event.cpu].curr else { return false };
        if !self.shadow.sched.rqs[event.cpu].skip_clock_update {
            self.shadow.sched.update_rq_clock(event.cpu, event.time);
        }
        self.shadow.charge_levels(curr);
        slice_left(&self.shadow, event.cpu, curr).map_or_else(|left| left <= 0, |_| true)
    }

    /// A CPU whose task should have been preempted some time ago shows that no request was made.
    pub(crate) fn overrun(&mut self, event: &Event) {
        let cpu = event.cpu;
        let Some(ended) = self.shadow.slice_ended[cpu].take() else { return };
        let late = event.time.since(ended.at);
        if late <= Duration(self.shadow.sched.tick_ns()) || !self.shadow.is_asked(cpu) {
            return;
        }
        let Curr::Task(curr) = self.shadow.sched.rqs[cpu].curr else { return };
        let error = self.shadow.error_of(SeId(curr.0));
        let mut verdict = self.of_slice(event.time, cpu, curr, false);
        verdict.ours = slice(&mut self.spare, true, Reason::SliceEnd);
        if error > late.0 {
            verdict.ours.push(turn(false, Reason::SliceEnd, Some(Unknown::VirtualTime)));
        }
        verdict.judge();
        verdict.doubt(2);
        if verdict.answer == Answer::Differs
            && ended.by_timer
            && self.shadow.learned.budget_timers.may_be_set(cpu)
        {
            // The slice timer was not set again while it was set for a deadline task.
            verdict.without(Unknown::Deadlines);
        }
        if verdict.answer == Answer::Differs {
            verdict.nearest = Some(Box::new(slice_end::had_ended(false, late.0, error)));
        }
        self.give(verdict);
    }

    /// A runnable task is switched out: if no arriving task requested that, its turn is over.
    pub(crate) fn judge_slice(&mut self, event: &Event, next: Curr, clock: Time) -> Option<Verdict> {
        let cpu = event.cpu;
        let (told, by_another_way) = self.asked[cpu].left();
        let ended = self.shadow.slice_ended[cpu].take();
        let Kind::SchedSwitch { prev_state, prev_pid, .. } = event.kind else { return None };
        let (Some(prev), Curr::Task(next)) = (self.shadow.find(prev_pid), next) else { return None };
        let fair = |task| self.shadow.sched.task(task).policy.is_fair();
        let entry = self.shadow.sched.task(prev);
        let goes_on = prev_state.is_runnable() && prev_pid != Pid::IDLE && entry.on_rq && entry.cpu == cpu;
        // A task that appears without an event arrived unseen and may have requested it.
        let next_entry = self.shadow.sched.task(next);
        let arrived = !next_entry.on_rq || next_entry.se.sched_delayed || next_entry.cpu != cpu;
        if told || !goes_on || !fair(prev) || !fair(next) || arrived {
            return None;
        }
        self.shadow.sched.update_rq_clock(cpu, clock);
        self.shadow.charge_levels(prev);
        // A task that requests a later deadline causes its own preemption.
        let by_another_way = by_another_way || self.shadow.known(prev).other_prio;
        let mut verdict = self.of_slice(event.time, cpu, prev, true);
        // A request also counts if we would have continued with the same task.
        let ended = ended.filter(|ended| event.time <= ended.until).map(|_| Reason::SliceEnd);
        // No event shows when during its exit it leaves its group.
        let exits = self.shadow.made_way_to_end(prev).then_some(Reason::GroupChange);
        let mut end = None;
        match ended.or(exits).map_or_else(|| slice_left(&self.shadow, cpu, prev), Ok) {
            Ok(reason) => verdict.ours = slice(&mut self.spare, true, reason),
            Err(_) if by_another_way => return None,
            Err(_) if self.joins_group(prev_pid, event.time) => {
                verdict.ours = slice(&mut self.spare, true, Reason::GroupChange);
            }
            Err(left) => {
                verdict.ours = slice(&mut self.spare, false, Reason::SliceEnd);
                verdict.ours[0].numbers.push(("left", left));
                end = Some(left.max(0) as u64);
                if left <= 0 || self.shadow.groups_hidden || self.shadow.just_renewed(prev) {
                    verdict.ours.push(turn(true, Reason::SliceEnd, Some(Unknown::VirtualTime)));
                }
            }
        }
        verdict.judge();
        verdict.doubt(2);
        if verdict.answer == Answer::Differs && self.shadow.limit_of(prev).is_some() {
            verdict.without(Unknown::Quota);
        } else if verdict.answer == Answer::Differs && self.shadow.learned.budget_timers.may_be_set(cpu) {
            verdict.without(Unknown::Deadlines);
            self.shadow.learned.budget_timers.ended(cpu);
        } else if !prev_state.is_preempted() {
            match verdict.answer {
                Answer::Differs | Answer::Undecided if self.shadow.yields(prev) => {
                    verdict.without(Unknown::Yield);
                }
                Answer::Differs
                    if self.tries(yields::YIELDS) && self.shadow.left_early(prev, &self.pairing, clock) =>
                {
                    verdict.without(Unknown::Yield);
                }
                _ => {}
            }
        }
        if let Some(left) = end.filter(|_| verdict.answer == Answer::Differs) {
            let error = self.shadow.error_of(SeId(prev.0));
            verdict.nearest = Some(Box::new(slice_end::had_ended(true, left + error, error)));
        }
        Some(verdict)
    }

    /// Whether a task is just moving itself to a control group; the event comes when that is done.
    ///
    /// Kernel: sched_move_task(), kernel/sched/core.c, v6.1 and v6.12, which makes a running task give way.
    fn joins_group(&self, task: Pid, now: Time) -> bool {
        let asks = self.shadow.sched.kernel.has(Feature::RegroupAsks);
        asks && self.pairing.ahead(now + GROUP_PATIENCE).any(|event| {
            event.pid == task && matches!(event.kind, Kind::CgroupAttachTask { pid, .. } if pid == task)
        })
    }

    fn of_slice(&self, time: Time, cpu: CpuId, task: TaskId, preempted: bool) -> Verdict {
        let who = self.shadow.known(task).who();
        Verdict::begun(time, cpu, Decision::Preempt, who, Choice::Preempt(preempted))
    }
}
