//! Tasks asleep on a word of memory.

use schedlab_units::TaskId;

use super::Waiters;

/// The tasks that sleep on one word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Futex {
    waiters: Waiters,
}

impl Futex {
    /// A task goes to sleep; the word has the value it expects.
    pub fn wait(&mut self, task: TaskId) {
        self.waiters.add(task);
    }

    /// The task that has slept longest is to be woken.
    pub fn wake(&mut self) -> Option<TaskId> {
        self.waiters.take_first()
    }

    /// How many sleep.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// A task's time is up.
    pub fn give_up(&mut self, task: TaskId) -> bool {
        self.waiters.remove(task).is_some()
    }
}
