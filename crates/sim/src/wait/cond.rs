//! A condition variable: signals wake waiting tasks and are otherwise lost.

use schedlab_units::TaskId;

use super::Waiters;

/// A condition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cond {
    waiters: Waiters,
}

impl Cond {
    /// A task begins to wait; it has released its mutex.
    pub fn wait(&mut self, task: TaskId) {
        self.waiters.add(task);
    }

    /// Wakes the task that has waited longest.
    pub fn signal(&mut self) -> Option<TaskId> {
        self.waiters.take_first()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiters.len()
    }

    /// A task gives up.
    pub fn give_up(&mut self, task: TaskId) -> bool {
        self.waiters.remove(task).is_some()
    }
}
