//! Reuses the slots of dead tasks for new ones.
//!
//! A recording of builds can contain millions of forks, and each task takes more than half a kilobyte here. So a new
//! task gets the slot of a task that has been dead for a while.

use std::collections::VecDeque;

use schedlab_units::{Duration, TaskId, Time};

/// How long decisions about a dead task may still be open.
const REST: Duration = Duration::secs(1);

/// Which task died when, the earliest first.
#[derive(Debug, Default)]
pub struct Dead(VecDeque<(Time, TaskId)>);

impl Dead {
    /// A task has left its CPU for good.
    pub fn died(&mut self, task: TaskId, now: Time) {
        self.0.push_back((now, task));
    }

    /// The slot of a task that has been dead for long enough. The caller must check that the task has not come back to
    /// life, which can happen where events were lost.
    pub fn place(&mut self, now: Time) -> Option<TaskId> {
        let &(died, task) = self.0.front()?;
        (died + REST <= now).then(|| {
            self.0.pop_front();
            task
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_in_the_order_of_deaths_after_a_rest() {
        let mut dead = Dead::default();
        let at = |ms| Time::ZERO + Duration::millis(ms);
        dead.died(TaskId(7), at(10));
        dead.died(TaskId(3), at(20));
        assert_eq!(dead.place(at(1009)), None);
        assert_eq!(dead.place(at(1015)), Some(TaskId(7)));
        assert_eq!(dead.place(at(1015)), None, "the other has not rested yet");
        assert_eq!(dead.place(at(5000)), Some(TaskId(3)));
        assert_eq!(dead.place(at(9000)), None);
    }
}
