//! Picks that depend on the budgets of deadline tasks, which no event shows.

use schedlab_sched::Curr;
use schedlab_topology::CpuId;
use schedlab_trace::{Event, IDLE_EXIT};
use schedlab_units::{TaskId, Time};

use super::Audit;
use crate::judge::pick::may_be_first;
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Verdict};
use crate::unknown::deadlines;
use crate::unknown::list::Unknown;

impl<S: Listener> Audit<S> {
    /// Notes on a pick that no event shows whether the tasks it passed over had a budget.
    pub(crate) fn may_have_budget(&self, verdict: &mut Verdict, passed_over: &[TaskId]) {
        if passed_over.is_empty() || !matches!(verdict.answer, Answer::Agrees | Answer::AgreesInSet) {
            return;
        }
        verdict.ours.extend(passed_over.iter().map(|&task| may_be_first(&self.shadow, task)));
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
