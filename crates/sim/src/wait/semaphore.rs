//! A counting semaphore: a post is kept for the next waiter.
//!
//! A woken waiter competes with newcomers for the count, as in the C library.

use schedlab_units::TaskId;

use super::Waiters;

/// A semaphore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Semaphore {
    count: u32,
    waiters: Waiters,
}

impl Semaphore {
    /// A semaphore with a count.
    pub fn new(count: u32) -> Semaphore {
        Semaphore { count, waiters: Waiters::default() }
    }

    /// Takes one, or (false) the task begins to wait.
    pub fn wait(&mut self, task: TaskId) -> bool {
        if self.count > 0 {
            self.count -= 1;
            return true;
        }
        self.waiters.add(task);
        false
    }

    /// Adds one, and returns the task to wake.
    pub fn post(&mut self) -> Option<TaskId> {
        self.count = self.count.saturating_add(1);
        self.waiters.take_first()
    }

    /// A task gives up.
    pub fn give_up(&mut self, task: TaskId) -> bool {
        self.waiters.remove(task).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_post_is_kept_and_a_waiter_competes_for_it() {
        let (a, b) = (TaskId(0), TaskId(1));
        let mut sem = Semaphore::new(1);
        assert!(sem.wait(a));
        assert!(!sem.wait(a));
        assert_eq!(sem.post(), Some(a));
        assert!(sem.wait(b), "b comes before a runs");
        assert!(!sem.wait(a));
        assert_eq!(sem.post(), Some(a));
        assert_eq!(sem.post(), None);
        assert!(sem.wait(a) && sem.wait(b));
    }
}
