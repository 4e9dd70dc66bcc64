//! A recorded pick.

pub mod possible;

use std::ops::ControlFlow;

use schedlab_sched::Curr;
use schedlab_topology::CpuId;
use schedlab_trace::{Event, IDLE_EXIT, Kind};
use schedlab_units::{Pid, TaskId, Time};

use crate::judge::Audit;
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Choice, Decision, Possible, Verdict};
use crate::unknown::Shadow;
use crate::unknown::deadlines;
use crate::unknown::list::Unknown;
use crate::unknown::lost_turn;
use crate::unknown::quota;
use crate::unknown::virtual_time;

impl<S: Listener> Audit<S> {
    /// Whether a pick that differs is explained by the largest errors of virtual times, or by a fact that no event
    /// shows.
    fn judge_pick_otherwise(
        &mut self,
        verdict: &mut Verdict,
        next: Curr,
        clock: Time,
        has_quota_again: bool,
    ) {
        let cpu = verdict.cpu;
        let found = possible::of_switch(&mut self.shadow, &mut self.spare, cpu, next, clock);
        self.spare.give_back(std::mem::replace(&mut verdict.ours, found));
        verdict.judge();
        if verdict.answer == Answer::Differs {
            self.judge_throttled(verdict, next, clock);
        }
        if verdict.answer == Answer::Differs && has_quota_again {
            verdict.without(Unknown::Quota);
        }
        if verdict.answer == Answer::Differs && !self.shadow.groups_hidden && self.tries(lost_turn::LOST_TURN)
        {
            let kernel = verdict.kernel;
            let spare = &mut self.spare;
            let is_so = |shadow: &mut Shadow| {
                let found = possible::of_switch(shadow, spare, cpu, next, clock);
                let is_so = found.iter().any(|possible| possible.choice == kernel);
                spare.give_back(found);
                is_so
            };
            if self.shadow.find_lost_turn(cpu, is_so) {
                verdict.answer = Answer::AgreesInSet;
                verdict.hidden = Some(Unknown::LostTurn);
            }
        }
    }

    /// Whether a pick follows if the tasks that come first here were out of quota, one after the other.
    fn judge_throttled(&mut self, verdict: &mut Verdict, next: Curr, clock: Time) {
        if !self.tries(quota::THROTTLED) {
            return;
        }
        let first = |found: &[Possible]| match found.first()?.choice {
            Choice::Task(pid) => Some(pid),
            _ => None,
        };
        let Audit { shadow, spare, .. } = self;
        quota::find(shadow, first(&verdict.ours), clock, |shadow| {
            let found = possible::of_switch(shadow, spare, verdict.cpu, next, clock);
            if verdict.takes(&found, Unknown::Quota) {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(first(&found))
        });
    }

    /// A CPU switches; its scheduler used the time `clock`.
    pub(crate) fn switching(&mut self, event: &Event, next: Curr, clock: Time) {
        let Kind::SchedSwitch { prev_pid, prev_comm, .. } = event.kind else { return };
        let (cpu, now) = (event.cpu, event.time);
        let has_quota_again = self.shadow.unthrottle(next, cpu, clock);
        let has_budget_again = next.task().is_some_and(|next| self.shadow.replenish(next, clock));
        let passed_over = self.passes_over(cpu, next, clock);
        let slice = self.judge_slice(event, next, clock).filter(|_| !has_quota_again);
        match slice.as_ref().and_then(|slice| slice.hidden) {
            Some(Unknown::Yield) => self.shadow.sched.yield_task(cpu, clock),
            Some(Unknown::Quota) => {
                if let Some(prev) = self.shadow.find(prev_pid) {
                    self.shadow.throttle(prev, clock);
                }
            }
            _ => {}
        }
        let idle = Choice::Task(Pid::IDLE);
        let mut verdict = Verdict::begun(now, cpu, Decision::Pick, (prev_pid, prev_comm), idle);
        verdict.hidden = Some(Unknown::Unmet);
        let mut here = true;
        if let Curr::Task(task) = next {
            verdict.kernel = Choice::Task(self.shadow.known(task).pid);
            let entry = self.shadow.sched.task(task);
            here = entry.on_rq && entry.cpu == cpu && !entry.se.sched_delayed;
        }
        verdict.ours = possible::of_switch(&mut self.shadow, &mut self.spare, cpu, next, clock);
        if here {
            verdict.judge();
        }
        if verdict.answer == Answer::Differs {
            self.shadow.learned.trusts = false;
            self.judge_pick_otherwise(&mut verdict, next, clock, has_quota_again);
            self.shadow.learned.trusts = true;
        }
        if verdict.answer == Answer::Differs
            && !self.moves_recorded
            && let Some(Choice::Task(ours)) = verdict.ours.first().map(|ours| ours.choice)
            && let Some((task, to)) = self.shadow.moved_unseen(ours, cpu, &self.pairing, now)
        {
            verdict.without(Unknown::UnseenMove);
            self.shadow.migrate(&[task], to, now);
        }
        if self.shadow.groups_hidden {
            // Any waiting task may come first.
            verdict.doubt(verdict.ours.len());
        }
        if has_budget_again {
            verdict.without(Unknown::Deadlines);
        }
        self.may_have_budget(&mut verdict, &passed_over);
        verdict.nearest = self.why(&verdict, |audit| {
            let ours = audit.shadow.sched.choose_next(cpu).next;
            audit.nearest_of_pick(cpu, ours, next, clock)
        });
        let surprise = verdict.ours.first().is_some_and(|ours| ours.choice != verdict.kernel);
        let answer = verdict.answer;
        self.give(verdict);
        if let Some(slice) = slice {
            self.give(slice);
        }
        if let Curr::Task(task) = next {
            self.shadow.join(task, cpu, now);
            if surprise && here {
                let (explained, contradicted) = (answer == Answer::AgreesInSet, answer == Answer::Differs);
                let of = virtual_time::Pick { explained, contradicted };
                virtual_time::learn_from_pick(&mut self.shadow, task, of);
            }
        }
    }

    /// Notes on a pick that no event shows whether the tasks it passed over had a budget.
    pub(crate) fn may_have_budget(&self, verdict: &mut Verdict, passed_over: &[TaskId]) {
        if passed_over.is_empty() || !matches!(verdict.answer, Answer::Agrees | Answer::AgreesInSet) {
            return;
        }
        verdict.ours.extend(passed_over.iter().map(|&task| possible::may_be_first(&self.shadow, task)));
        (verdict.answer, verdict.hidden) = (Answer::AgreesInSet, Some(Unknown::Deadlines));
    }

    /// An idle CPU goes to sleep, so no runnable task is waiting there.
    pub(crate) fn stays_idle(&mut self, event: &Event, state: u32) {
        let cpu = event.cpu;
        if state != IDLE_EXIT && self.shadow.sched.rqs[cpu].curr == Curr::Idle {
            self.passes_over(cpu, Curr::Idle, event.time);
        }
    }

    /// A CPU continues with `next`: deadline tasks that it passes over are out of budget. Returns the tasks that
    /// waited.
    pub(crate) fn passes_over(&mut self, cpu: CpuId, next: Curr, now: Time) -> Vec<TaskId> {
        if self.tries(deadlines::BUDGETS) { self.shadow.passes_over(cpu, next, now) } else { Vec::new() }
    }
}
