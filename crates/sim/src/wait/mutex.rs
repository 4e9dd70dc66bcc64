//! A user-space lock by futex: a task that finds it locked sleeps, and when it is released the woken waiter competes
//! with tasks that come in between.

use schedlab_units::TaskId;

use super::Waiters;

/// A lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mutex {
    owner: Option<TaskId>,
    waiters: Waiters,
}

impl Mutex {
    /// A task tries to take it.
    pub fn take(&mut self, task: TaskId) -> bool {
        let free = self.owner.is_none();
        if free {
            self.owner = Some(task);
        }
        free
    }

    /// A task that did not get it goes to sleep.
    pub fn wait(&mut self, task: TaskId) {
        self.waiters.add(task);
    }

    /// The owner gives it back: the waiter to be woken.
    pub fn give(&mut self, task: TaskId) -> Option<TaskId> {
        assert_eq!(self.owner, Some(task), "a mutex is given back by who holds it");
        self.owner = None;
        self.waiters.take_first()
    }

    /// The task that has it.
    pub fn owner(&self) -> Option<TaskId> {
        self.owner
    }

    /// A task that slept gives up.
    pub fn give_up(&mut self, task: TaskId) -> bool {
        self.waiters.remove(task).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_woken_waiter_competes_with_newcomers() {
        let [a, b, c] = [TaskId(0), TaskId(1), TaskId(2)];
        let mut mutex = Mutex::default();
        assert!(mutex.take(a));
        assert!(!mutex.take(b));
        mutex.wait(b);
        assert_eq!(mutex.give(a), Some(b));
        assert!(mutex.take(c), "C came before B ran");
        assert!(!mutex.take(b));
    }
}
