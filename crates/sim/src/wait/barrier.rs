//! A barrier: a waiting task spins for a while and then sleeps; the last to arrive releases all.

use schedlab_units::TaskId;

use super::Waiters;

/// A barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Barrier {
    parties: u32,
    arrived: u32,
    /// Spinning, on a CPU or preempted.
    spinners: Vec<TaskId>,
    sleepers: Waiters,
    /// How many sleepers, from the first on, the opening has freed without a wake-up so far.
    freed: usize,
}

/// The result of an arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// Others are missing.
    Wait,
    /// All have arrived: these spin and may continue; sleeping ones are woken one by one with
    /// [`Barrier::wake`].
    Open(Vec<TaskId>),
}

impl Barrier {
    /// A barrier for this many tasks.
    pub fn new(parties: u32) -> Barrier {
        Barrier { parties, arrived: 0, spinners: Vec::new(), sleepers: Waiters::default(), freed: 0 }
    }

    /// A task arrives and spins, unless it is the last.
    pub fn arrive(&mut self, task: TaskId) -> Arrival {
        self.arrived += 1;
        if self.arrived < self.parties {
            self.spinners.push(task);
            return Arrival::Wait;
        }
        self.arrived = 0;
        self.freed = self.sleepers.len();
        Arrival::Open(std::mem::take(&mut self.spinners))
    }

    /// A task has spun long enough and sleeps.
    pub fn sleep(&mut self, task: TaskId) {
        let at = self.spinners.iter().position(|&t| t == task).expect("the task spins");
        self.spinners.remove(at);
        self.sleepers.add(task);
    }

    /// After the barrier has opened: the next sleeper to wake. Tasks that arrive for
    /// the next round stand behind them, so the opener asks only for as many as
    /// slept when it opened.
    pub fn wake(&mut self) -> Option<TaskId> {
        self.freed = self.freed.checked_sub(1)?;
        self.sleepers.take_first()
    }

    /// How many sleep.
    pub fn nr_sleepers(&self) -> usize {
        self.sleepers.len()
    }

    /// A task that waits is killed.
    pub fn give_up(&mut self, task: TaskId) -> bool {
        if let Some(at) = self.spinners.iter().position(|&t| t == task) {
            self.spinners.remove(at);
            self.arrived -= 1;
            return true;
        }
        let Some(at) = self.sleepers.remove(task) else { return false };
        // A freed task already belongs to the round that is over.
        if at < self.freed {
            self.freed -= 1
        } else {
            self.arrived -= 1
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_frees_those_that_spin_and_wakes_those_that_sleep() {
        let [a, b, c] = [0, 1, 2].map(TaskId);
        let mut barrier = Barrier::new(3);
        for _ in 0..2 {
            assert_eq!(barrier.arrive(a), Arrival::Wait);
            barrier.sleep(a);
            assert_eq!(barrier.arrive(b), Arrival::Wait);
            assert_eq!(barrier.arrive(c), Arrival::Open(vec![b]));
            assert_eq!(barrier.nr_sleepers(), 1);
            assert_eq!(barrier.wake(), Some(a));
            assert_eq!(barrier.wake(), None);
        }
    }

    #[test]
    fn a_barrier_of_one_never_waits() {
        assert_eq!(Barrier::new(1).arrive(TaskId(0)), Arrival::Open(vec![]));
    }
}
