//! A lock that is slept on.
//!
//! A futex lock of user space is free once given back: the waiter that is woken
//! competes with whoever comes in between. A mutex of the kernel first spins while
//! its holder runs, in order of arrival, and sleeps when the holder does; what is
//! given back goes to the first that spins.
//!
//! Kernel: mutex_optimistic_spin(), kernel/locking/mutex.c.

use schedlab_units::TaskId;

use super::Waiters;

/// A lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mutex {
    holder: Option<TaskId>,
    sleepers: Waiters,
    spinners: Waiters,
}

/// Whether a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// It is the asker's.
    Yes,
    /// This task holds it.
    HeldBy(TaskId),
}

impl Mutex {
    /// A task asks for the lock.
    pub fn take(&mut self, task: TaskId) -> Taken {
        match self.holder {
            Some(holder) => Taken::HeldBy(holder),
            None => {
                self.holder = Some(task);
                Taken::Yes
            }
        }
    }

    /// A task that did not get it goes to sleep.
    pub fn sleep(&mut self, task: TaskId) {
        self.sleepers.add(task);
    }

    /// A task that did not get it spins.
    pub fn spin(&mut self, task: TaskId) {
        self.spinners.add(task);
    }

    /// The holder gives it back: it goes to the first that spins (true), or is free
    /// and the first sleeper is to be woken (false).
    pub fn give(&mut self, task: TaskId) -> Option<(TaskId, bool)> {
        assert_eq!(self.holder, Some(task), "a mutex is given back by who holds it");
        self.holder = self.spinners.take_first();
        match self.holder {
            Some(next) => Some((next, true)),
            None => self.sleepers.take_first().map(|next| (next, false)),
        }
    }

    /// A task stops spinning, because the holder sleeps or it must make way itself.
    pub fn stop_spinning(&mut self, task: TaskId) -> bool {
        self.spinners.remove(task).is_some()
    }

    /// The first of those that spin stops: the holder went to sleep.
    pub fn next_spinner(&mut self) -> Option<TaskId> {
        self.spinners.take_first()
    }

    /// Who holds it.
    pub fn holder(&self) -> Option<TaskId> {
        self.holder
    }

    /// A task that slept gives up.
    pub fn give_up(&mut self, task: TaskId) -> bool {
        self.sleepers.remove(task).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);
    const C: TaskId = TaskId(2);

    #[test]
    fn a_woken_sleeper_competes_with_newcomers() {
        let mut mutex = Mutex::default();
        assert_eq!(mutex.take(A), Taken::Yes);
        assert_eq!(mutex.take(B), Taken::HeldBy(A));
        mutex.sleep(B);
        assert_eq!(mutex.give(A), Some((B, false)));
        assert_eq!(mutex.take(C), Taken::Yes, "C came before B ran");
        assert_eq!(mutex.take(B), Taken::HeldBy(C));
    }

    #[test]
    fn a_spinner_is_handed_the_lock_before_any_sleeper() {
        let mut mutex = Mutex::default();
        mutex.take(A);
        mutex.sleep(B);
        mutex.spin(C);
        assert_eq!(mutex.give(A), Some((C, true)));
        assert_eq!(mutex.holder(), Some(C));
        assert_eq!(mutex.give(C), Some((B, false)));
        assert_eq!(mutex.holder(), None);
    }
}
