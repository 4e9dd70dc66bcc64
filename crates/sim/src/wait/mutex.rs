//! A user-space lock by futex: a task that finds it locked sleeps, and when it is released the woken waiter competes
//! with tasks that come in between.

use schedlab_units::TaskId;

use super::Waiters;

/// A lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mutex {
    owner: Option<TaskId>,
    waiters: Waiters,
    /// Tasks that spin in user mode, on a CPU or preempted.
    spinners: Waiters,
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

    /// The owner releases it.
    pub fn give(&mut self, task: TaskId) {
        assert_eq!(self.owner, Some(task), "the owner unlocks a mutex");
        self.owner = None;
    }

    /// The waiter to be woken after that.
    pub fn wakes(&mut self) -> Option<TaskId> {
        self.waiters.take_first()
    }

    /// A task that found it taken spins.
    pub fn spin(&mut self, task: TaskId) {
        self.spinners.add(task);
    }

    /// A task stops spinning.
    pub fn stop_spinning(&mut self, task: TaskId) {
        self.spinners.remove(task);
    }

    /// Spinning tasks, first come first.
    pub fn spinners(&self) -> impl Iterator<Item = TaskId> + '_ {
        self.spinners.iter()
    }

    /// The first spinner stops spinning.
    pub fn next_spinner(&mut self) -> Option<TaskId> {
        self.spinners.take_first()
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
        mutex.give(a);
        assert_eq!(mutex.wakes(), Some(b));
        assert!(mutex.take(c), "C came before B ran");
        assert!(!mutex.take(b));
    }
}
