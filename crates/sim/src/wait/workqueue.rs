//! A pool of kernel workers: work in order, with as few workers awake as are needed.
//!
//! When work is queued and no worker of the pool runs, an idle one is woken. A worker that sleeps in the
//! middle of its work lets another take the next item, so that it does not hold up the rest. A worker that
//! finishes takes the next item or goes idle. The worker that went idle last is woken first: its caches are
//! warm. Unbound workers are not counted in this way: each queued item wakes one.
//!
//! Kernel: insert_work(), wq_worker_sleeping(), worker_thread(), kernel/workqueue.c.

use std::collections::VecDeque;

use schedlab_units::TaskId;

/// A pool with items of some kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool<W> {
    items: VecDeque<W>,
    idle: Vec<TaskId>,
    /// Workers awake: woken, or at work and not asleep in it.
    running: u32,
    /// Workers created so far.
    made: u32,
    /// Whether a running worker keeps others asleep.
    managed: bool,
}

/// What must be done after a change of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// None.
    Nothing,
    /// This idle worker is to be woken.
    Wake(TaskId),
    /// There is no idle worker; one is to be made.
    Worker,
}

impl<W> Pool<W> {
    /// A pool without workers; `managed` if they are bound to one CPU.
    pub fn new(managed: bool) -> Pool<W> {
        Pool { items: VecDeque::new(), idle: Vec::new(), running: 0, made: 0, managed }
    }

    /// Work is queued.
    pub fn queue(&mut self, item: W) -> Needs {
        self.items.push_back(item);
        self.check()
    }

    /// The next work for a worker that has finished or just begun; `None` sends it to sleep.
    pub fn next(&mut self, worker: TaskId) -> Option<W> {
        let item = self.items.pop_front();
        if item.is_none() {
            self.running -= 1;
            self.idle.push(worker);
        }
        item
    }

    /// The number of the next worker to be made.
    pub fn new_number(&mut self) -> u32 {
        self.made += 1;
        self.made
    }

    /// A worker was made, and is awake.
    pub fn add(&mut self) {
        self.running += 1;
    }

    /// A worker goes to sleep in the middle of its work.
    pub fn sleeping(&mut self) -> Needs {
        self.running -= 1;
        self.check()
    }

    /// It wakes up again.
    pub fn waking(&mut self) {
        self.running += 1;
    }

    fn check(&mut self) -> Needs {
        if self.items.is_empty() || (self.managed && self.running > 0) {
            return Needs::Nothing;
        }
        match self.idle.pop() {
            Some(worker) => {
                self.running += 1;
                Needs::Wake(worker)
            }
            None => Needs::Worker,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_does_all_until_it_sleeps() {
        let [a, b] = [0, 1].map(TaskId);
        let mut pool = Pool::new(true);
        assert_eq!(pool.queue(1), Needs::Worker);
        pool.add();
        assert_eq!(pool.next(a), Some(1));
        assert_eq!(pool.queue(2), Needs::Nothing, "a is awake");
        assert_eq!(pool.sleeping(), Needs::Worker, "a sleeps in its work and there is more");
        pool.add();
        assert_eq!(pool.next(b), Some(2));
        assert_eq!(pool.next(b), None);
        assert_eq!(pool.queue(3), Needs::Wake(b), "a still sleeps");
        pool.waking();
        assert_eq!(pool.next(b), Some(3));
        assert_eq!(pool.next(a), None);
        assert_eq!(pool.next(b), None);
        assert_eq!(pool.queue(4), Needs::Wake(b), "the one that was idle last");
    }

    #[test]
    fn unbound_workers_work_side_by_side() {
        let [a, b] = [0, 1].map(TaskId);
        let mut pool = Pool::new(false);
        for (item, worker) in [(1, a), (2, b)] {
            assert_eq!(pool.queue(item), Needs::Worker);
            pool.add();
            assert_eq!(pool.next(worker), Some(item));
        }
        assert_eq!(pool.next(a), None);
        assert_eq!(pool.queue(3), Needs::Wake(a));
    }
}
