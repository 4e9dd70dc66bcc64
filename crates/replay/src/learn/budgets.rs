//! The budgets of deadline tasks.
//!
//! No event shows them. A runnable deadline task that is preempted is out of budget. It has a new budget when an
//! interrupt pushes it to another CPU, or when it runs again. Its run time before that is its budget, and the time
//! between two new budgets its period.

use schedlab_units::{Duration, Time};

use crate::learned::Budget;

/// The least budget there is.
///
/// Kernel: DL_SCALE of __checkparam_dl(), kernel/sched/deadline.c, v6.12.
const LEAST: Duration = Duration(1 << 10);

/// What is known about a task's budget.
#[derive(Clone, Debug, Default)]
pub(super) struct Budgets {
    /// When its period seems to have begun, and whether at a wake-up, which need not begin a period.
    began: Option<(Time, bool)>,
    /// Run time in this period.
    used: Duration,
    /// It waits for the next period.
    waits: bool,
    /// Run time in a period that used up the budget.
    most: Duration,
    /// Lengths of periods that are certain, and of those that may be too short.
    periods: [Vec<Duration>; 2],
}

impl Budgets {
    /// It wakes.
    pub fn woken(&mut self, now: Time) {
        (self.began, self.used) = (Some((now, true)), Duration::ZERO);
    }

    /// It leaves a CPU.
    pub fn ran(&mut self, ran: Duration) {
        self.used += ran;
    }

    /// It is out of budget.
    pub fn used_up(&mut self) {
        self.most = self.most.max(self.used);
        self.waits = true;
    }

    /// It can run again; returns whether it waited for that.
    pub fn renewed(&mut self, now: Time) -> bool {
        if !std::mem::take(&mut self.waits) {
            return false;
        }
        if let Some((began, woken)) = self.began {
            self.periods[usize::from(woken)].push(now.since(began));
        }
        (self.began, self.used) = (Some((now, false)), Duration::ZERO);
        true
    }

    /// Its budget and period; `None` if no event ever showed it out of budget for a known time.
    pub fn learned(&self) -> Option<Budget> {
        let [whole, others] = &self.periods;
        let mut periods = if whole.is_empty() { others.clone() } else { whole.clone() };
        periods.sort();
        let period = (*periods.get(periods.len() / 2)?).max(LEAST);
        // A replayed task is charged for more than its work.
        let runtime = Duration(self.most.0 + self.most.0 / 8);
        Some(Budget { runtime: runtime.clamp(LEAST, period), period })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_period_is_from_one_new_budget_to_the_next() {
        let us = |us: u64| Time(us * 1000);
        let mut budgets = Budgets::default();
        budgets.woken(us(500));
        for (out, renewed) in [(700, 1000), (1300, 2000), (2200, 3001)] {
            budgets.ran(Duration::micros(out % 1000));
            budgets.used_up();
            assert!(budgets.renewed(us(renewed)));
            assert!(!budgets.renewed(us(renewed + 1)), "it has one");
        }
        let learned = Budget { runtime: Duration(787_500), period: Duration::micros(1001) };
        assert_eq!(budgets.learned(), Some(learned));
        assert_eq!(Budgets::default().learned(), None);
    }
}
