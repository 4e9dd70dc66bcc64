//! Waiting tasks, first come first.

use std::collections::VecDeque;

use schedlab_units::TaskId;

/// A wait queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiters(VecDeque<TaskId>);

impl Waiters {
    /// A task begins to wait.
    pub fn add(&mut self, task: TaskId) {
        debug_assert!(!self.0.contains(&task), "task {} waits twice", task.0);
        self.0.push_back(task);
    }

    /// The task that came first stops waiting.
    pub fn take_first(&mut self) -> Option<TaskId> {
        self.0.pop_front()
    }

    /// The task that came first stops waiting and is added to `to`.
    pub fn take_one(&mut self, to: &mut Vec<TaskId>) {
        to.extend(self.take_first());
    }

    /// All stop waiting and are added to `to`.
    pub fn take_all(&mut self, to: &mut Vec<TaskId>) {
        to.extend(self.0.drain(..));
    }

    /// A task gives up: its place, if it was waiting.
    pub fn remove(&mut self, task: TaskId) -> Option<usize> {
        let at = self.0.iter().position(|&waiter| waiter == task)?;
        self.0.remove(at);
        Some(at)
    }

    /// All waiting tasks, first come first.
    pub fn iter(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.0.iter().copied()
    }

    /// The task that came first.
    pub fn first(&self) -> Option<TaskId> {
        self.0.front().copied()
    }

    /// Whether a task waits.
    pub fn contains(&self, task: TaskId) -> bool {
        self.0.contains(&task)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}
