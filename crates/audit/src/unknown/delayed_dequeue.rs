//! Whether a sleeper is still queued.
//!
//! Under EEVDF the dequeue of a task that falls asleep without being owed service is delayed until it is picked. No event
//! shows when that is.

use schedlab_sched::SeId;
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::Shadow;

impl Shadow {
    /// Whether a sleeping task may still be queued: it may not have been owed service when it fell asleep, and its CPU
    /// has not been idle since, which would have dequeued it.
    pub fn may_be_queued(&self, task: TaskId) -> bool {
        self.known(task)
            .may_stay
            .is_some_and(|since| since > self.clocks.went_idle(self.sched.task(task).cpu))
    }

    /// Sleepers on some CPUs of which it is uncertain whether they are still queued, and whether they are queued here.
    pub fn doubtful_sleepers(&self, on: impl Fn(CpuId) -> bool) -> Vec<(TaskId, bool)> {
        let tasks = (0..self.known.len() as u32).map(TaskId);
        tasks
            .filter_map(|task| match self.sched.task(task) {
                entry if !on(entry.cpu) => None,
                entry if entry.se.sched_delayed => Some((task, true)),
                entry if !entry.on_rq && self.may_be_queued(task) => Some((task, false)),
                _ => None,
            })
            .collect()
    }

    /// Dequeues a delayed sleeper, or queues it again if it is not queued.
    pub fn turn_sleeper(&mut self, task: TaskId, now: Time) {
        if self.sched.task(task).se.sched_delayed {
            self.sched.complete_delayed_dequeue(task, now);
        } else if !self.sched.task(task).on_rq {
            self.sched.undo_dequeue(task, now);
        }
    }

    /// Whether a sleeper that is not queued here may still be queued on a CPU.
    pub fn may_keep_sleepers(&self, cpu: CpuId) -> bool {
        let mut tasks = (0..self.known.len() as u32).map(TaskId);
        tasks.any(|task| {
            let entry = self.sched.task(task);
            entry.cpu == cpu && !entry.on_rq && self.may_be_queued(task)
        })
    }

    /// Whether an entity has had more than its share of service whatever the errors are, so that it is not picked.
    pub fn is_surely_ahead(&self, se: SeId) -> bool {
        let (lag, error) = self.lag_of(se);
        lag < -error
    }
}
