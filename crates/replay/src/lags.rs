//! The lag that tasks have from before the recording.
//!
//! Under EEVDF a sleeping task keeps its lag. A task that is owed CPU time preempts its waker on the same CPU, and what
//! it then runs reduces the lag: for two tasks of the same weight the average of both moves by half of what one of them
//! runs. Turns of some kernel threads last a few us, so one lag lasts for hundreds of them.
//!
//! A task's first wake-ups reveal the lag, as long as each comes from the task running where it is woken, with the same
//! priority. As long as it preempts at each of them, it was owed as much as its turns consumed. The first wake-up
//! without preemption ends that. So does one that finds its CPU idle, because a task that leaves an empty queue has no
//! lag.

use schedlab_units::{Duration, Time};

use crate::learned::TaskIndex;

/// What is known so far.
#[derive(Debug, Default)]
pub(crate) struct Lags {
    /// By task; `None` if nothing more can be learned.
    open: Vec<Option<Duration>>,
    /// The task that was woken on a CPU by the task running there, and that waker.
    asked: Vec<Option<(TaskIndex, TaskIndex)>>,
    /// The task that took a CPU, and since when.
    took: Vec<Option<(TaskIndex, Time)>>,
    /// What each task was owed.
    owed: Vec<Duration>,
}

impl Lags {
    pub fn cpus(&mut self, nr_cpus: usize) {
        self.asked.resize(nr_cpus, None);
        self.took.resize(nr_cpus, None);
    }

    /// The first event of a task.
    pub fn add(&mut self, was_asleep: bool) {
        self.open.push(was_asleep.then_some(Duration::ZERO));
        self.owed.push(Duration::ZERO);
    }

    /// A task was queued on a CPU; `by` is the one that runs there, of the same priority, if it woke it.
    pub fn woken(&mut self, task: TaskIndex, cpu: usize, by: Option<TaskIndex>) {
        if self.open[task.index()].is_none() {
            return;
        }
        match by {
            Some(by) => self.asked[cpu] = Some((task, by)),
            None => self.open[task.index()] = None,
        }
    }

    /// A CPU switches from one task to another.
    pub fn switched(
        &mut self,
        cpu: usize,
        prev: Option<TaskIndex>,
        is_runnable: bool,
        next: Option<TaskIndex>,
        now: Time,
    ) {
        if let Some((task, since)) = self.took[cpu].take()
            && prev == Some(task)
            && let Some(owed) = &mut self.open[task.index()]
        {
            *owed += Duration(now.since(since).0 / 2);
            self.owed[task.index()] = *owed;
        }
        let Some((task, by)) = self.asked[cpu].take() else { return };
        if prev == Some(by) && is_runnable && next == Some(task) {
            self.took[cpu] = Some((task, now));
        } else {
            self.open[task.index()] = None;
        }
    }

    /// What a task was owed.
    pub fn owed(&self, task: usize) -> Duration {
        self.owed[task]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAKEE: TaskIndex = TaskIndex(1);
    const WAKER: TaskIndex = TaskIndex(0);

    /// Turns of the wakee in us, with whether it preempted its waker; `None` for a wake-up on an idle CPU. Compares
    /// what it was owed.
    fn check(turns: &[Option<(u64, bool)>], expected: u64) {
        let mut lags = Lags::default();
        lags.cpus(1);
        lags.add(true);
        lags.add(true);
        let mut now = Time(0);
        for turn in turns {
            let (ran, preempts) = turn.unwrap_or((10, true));
            lags.woken(WAKEE, 0, turn.map(|_| WAKER));
            lags.switched(0, turn.map(|_| WAKER), turn.is_some() && preempts, Some(WAKEE), now);
            now += Duration::micros(ran);
            lags.switched(0, Some(WAKEE), false, Some(WAKER), now);
        }
        assert_eq!(lags.owed(WAKEE.index()), Duration::micros(expected), "{turns:?}");
    }

    #[test]
    fn what_it_ran_while_it_took_the_cpu_at_each_wakeup_ate_up_twice_what_it_was_owed() {
        check(&[], 0);
        check(&[Some((8, true)), Some((4, true))], 6);
        check(&[Some((8, true)), Some((4, false)), Some((20, true))], 4);
        check(&[Some((8, false)), Some((4, true))], 0);
    }

    #[test]
    fn an_idle_cpu_leaves_no_lag() {
        check(&[None, Some((8, true))], 0);
        check(&[Some((8, true)), None, Some((8, true))], 4);
    }
}
