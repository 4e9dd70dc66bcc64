//! A mutex of the kernel: waiters spin while its owner runs, and sleep otherwise.
//!
//! ```text
//!   owner <- first spinner <- next spinner <- ...     (awake, in a queue of their own)
//!         <- first waiter  <- next waiter  <- ...     (asleep, the first perhaps awake)
//! ```
//!
//! A task that finds it locked spins behind those that spin already, as long as the owner is on a CPU and the spinner's
//! own CPU has no request to reschedule; otherwise it sleeps at the end of the waiters. A released lock goes to the
//! first spinner, and the first waiter is woken as well: it stays a waiter until it has the lock. If it finds the lock
//! taken again it requests a handover, may spin for it with the others, and then gets it next, asleep or not.
//!
//! If CPUs execute in turn the first spinner is not executing at that moment, and can only check the lock when its turn
//! comes: until then the lock is free, and the task that executes may take it.
//!
//! Left out: that elsewhere, too, another may take the lock between the end of one owner and the first
//! spinner's notice; that spinners behind the first notice one after another that the owner has left.
//!
//! Kernel: __mutex_lock_common(), mutex_optimistic_spin(), __mutex_unlock_slowpath(),
//! kernel/locking/mutex.c, v6.12.

use schedlab_units::TaskId;

use super::Waiters;

/// The lock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelMutex {
    /// The task that has it, or was handed it and has not noticed yet.
    owner: Option<TaskId>,
    spinners: Waiters,
    waiters: Waiters,
    /// The first waiter is awake and spins.
    first_spins: bool,
    /// The first waiter found it taken when woken: it is handed over next.
    handoff: bool,
}

/// The effects of releasing the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// This task spins and has it now, or must look again.
    pub spinner: Option<TaskId>,
    /// This waiter must be woken, if it sleeps.
    pub wakes: Option<TaskId>,
}

impl KernelMutex {
    /// A task tries to take it. One that was handed it has it.
    pub fn take(&mut self, task: TaskId) -> bool {
        let free = self.owner.is_none_or(|owner| owner == task);
        if free {
            self.owner = Some(task);
            self.leave(task);
        }
        free
    }

    /// Whether others spin or sleep for it.
    pub fn is_wanted(&self) -> bool {
        self.spinners.len() + self.waiters.len() > 0
    }

    /// The task that has it.
    pub fn owner(&self) -> Option<TaskId> {
        self.owner
    }

    /// A task goes to sleep for it; one that waits already keeps its place.
    pub fn wait(&mut self, task: TaskId) {
        if !self.waiters.contains(task) {
            self.waiters.add(task);
        }
    }

    /// Whether a task is among the waiters.
    pub fn waits(&self, task: TaskId) -> bool {
        self.waiters.contains(task)
    }

    /// Whether it is the one that waits longest.
    pub fn is_first(&self, task: TaskId) -> bool {
        self.waiters.first() == Some(task)
    }

    /// A waiter was woken and found it taken.
    pub fn ask_handoff(&mut self, task: TaskId) {
        self.handoff |= self.is_first(task);
    }

    /// A task that found it taken spins.
    pub fn spin(&mut self, task: TaskId) {
        if self.is_first(task) {
            self.first_spins = true;
        } else {
            self.spinners.add(task);
        }
    }

    /// A task stops spinning without it.
    pub fn stop_spinning(&mut self, task: TaskId) {
        if self.spinners.remove(task).is_none() && self.is_first(task) {
            self.first_spins = false;
        }
    }

    /// The next of the spinning tasks, which all stop because the owner has left its CPU.
    pub fn next_spinner(&mut self) -> Option<TaskId> {
        if std::mem::take(&mut self.first_spins) {
            return self.waiters.first();
        }
        self.spinners.take_first()
    }

    /// The owner releases it: the first spinner gets it, unless it cannot see that `at_once`.
    pub fn give(&mut self, task: TaskId, at_once: bool) -> Given {
        assert_eq!(self.owner, Some(task), "the owner unlocks a mutex");
        if std::mem::take(&mut self.handoff)
            && let Some(first) = self.waiters.first()
        {
            self.owner = Some(first);
            if std::mem::take(&mut self.first_spins) {
                self.leave(first);
                return Given { spinner: Some(first), wakes: None };
            }
            return Given { spinner: None, wakes: Some(first) };
        }
        let spinner = self.spinners.take_first();
        self.owner = spinner.filter(|_| at_once);
        Given { spinner, wakes: self.waiters.first() }
    }

    /// A task that has it no longer waits.
    #[inline]
    fn leave(&mut self, task: TaskId) {
        // Nearly always no task waits.
        if self.waiters.len() == 0 {
            return;
        }
        let was_first = self.is_first(task);
        if self.waiters.remove(task).is_some() && was_first {
            self.handoff = false;
            self.first_spins = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);
    const C: TaskId = TaskId(2);
    const D: TaskId = TaskId(3);

    fn held_by_a() -> KernelMutex {
        let mut mutex = KernelMutex::default();
        assert!(mutex.take(A));
        mutex
    }

    #[test]
    fn spinners_get_it_in_the_order_in_which_they_came() {
        let mut mutex = held_by_a();
        for task in [B, C] {
            assert!(!mutex.take(task));
            mutex.spin(task);
        }
        assert_eq!(mutex.give(A, true), Given { spinner: Some(B), wakes: None });
        assert_eq!(mutex.give(B, true), Given { spinner: Some(C), wakes: None });
        assert_eq!(mutex.give(C, true), Given::default());
        assert_eq!(mutex.owner(), None);
    }

    #[test]
    fn a_spinner_that_stands_still_looks_again_later() {
        let mut mutex = held_by_a();
        mutex.spin(B);
        assert_eq!(mutex.give(A, false), Given { spinner: Some(B), wakes: None });
        assert!(mutex.take(A), "it is free, and A goes on");
        assert!(!mutex.take(B), "B's turn comes too late");
        mutex.spin(B);
        mutex.wait(C);
        mutex.ask_handoff(C);
        assert_eq!(mutex.give(A, false), Given { spinner: None, wakes: Some(C) });
        assert_eq!(
            mutex.owner(),
            Some(C),
            "the task that is handed the mutex owns it, whether it runs or not"
        );
    }

    #[test]
    fn the_first_waiter_is_woken_even_if_a_spinner_has_it() {
        let mut mutex = held_by_a();
        mutex.wait(B);
        mutex.spin(C);
        assert_eq!(mutex.give(A, true), Given { spinner: Some(C), wakes: Some(B) });
        // B runs and finds that C has it.
        assert!(!mutex.take(B));
        mutex.ask_handoff(B);
        mutex.spin(B);
        mutex.spin(D);
        assert_eq!(
            mutex.give(C, true),
            Given { spinner: Some(B), wakes: None },
            "B before D, which came later"
        );
        assert_eq!(mutex.give(B, true), Given { spinner: Some(D), wakes: None });
    }

    #[test]
    fn a_waiter_that_sleeps_again_is_handed_it_asleep() {
        let mut mutex = held_by_a();
        mutex.wait(B);
        mutex.wait(C);
        assert!(!mutex.take(B));
        mutex.ask_handoff(B);
        mutex.wait(B);
        assert_eq!(mutex.give(A, true), Given { spinner: None, wakes: Some(B) });
        assert_eq!(mutex.owner(), Some(B), "before it has run");
        assert!(!mutex.take(D), "and nobody comes in between");
        assert!(mutex.take(B));
        assert_eq!(mutex.give(B, true), Given { spinner: None, wakes: Some(C) });
        assert!(mutex.take(D), "free: C was woken for the first time");
        assert!(!mutex.take(C));
    }

    #[test]
    fn all_stop_when_the_owner_leaves_its_cpu() {
        let mut mutex = held_by_a();
        mutex.wait(B);
        mutex.ask_handoff(B);
        for task in [B, C, D] {
            mutex.spin(task);
        }
        let stopped: Vec<TaskId> = std::iter::from_fn(|| mutex.next_spinner()).collect();
        assert_eq!(stopped, [B, C, D]);
        mutex.wait(C);
        assert_eq!(mutex.give(A, true), Given { spinner: None, wakes: Some(B) }, "B is still the first");
    }

    #[test]
    fn one_that_stops_spinning_is_passed_over() {
        let mut mutex = held_by_a();
        mutex.spin(B);
        mutex.spin(C);
        mutex.stop_spinning(B);
        assert_eq!(mutex.give(A, true), Given { spinner: Some(C), wakes: None });
    }
}
