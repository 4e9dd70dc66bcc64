//! The future: events in order of time, and at one instant in order of insertion.
//!
//! A heap of four children per node, since pops are as many as pushes and a level
//! costs a cache miss. The next event is held outside of it: an event that is due
//! before all others, as most notices between CPUs are, comes and goes without
//! touching the heap. Events are never removed; their owner's number tells whether
//! they still count.

use schedlab_units::Time;

/// An event with its place in the order.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    time: u64,
    number: u64,
    event: E,
}

impl<E> Entry<E> {
    #[inline]
    fn before(&self, other: &Entry<E>) -> bool {
        (self.time, self.number) < (other.time, other.number)
    }
}

/// Events to come.
#[derive(Clone, Debug)]
pub(crate) struct Queue<E> {
    next: Option<Entry<E>>,
    heap: Vec<Entry<E>>,
    number: u64,
}

impl<E: Copy> Queue<E> {
    /// Nothing to come.
    pub fn new() -> Queue<E> {
        Queue { next: None, heap: Vec::new(), number: 0 }
    }

    /// Adds an event.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        self.number += 1;
        let entry = Entry { time: time.0, number: self.number, event };
        match &mut self.next {
            Some(next) if entry.before(next) => {
                let later = std::mem::replace(next, entry);
                self.sift_up(later);
            }
            Some(_) => self.sift_up(entry),
            None if self.heap.first().is_some_and(|top| top.before(&entry)) => self.sift_up(entry),
            None => self.next = Some(entry),
        }
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        let entry = match self.next.take() {
            Some(entry) => entry,
            None => self.pop_heap()?,
        };
        Some((Time(entry.time), entry.event))
    }

    #[inline]
    fn sift_up(&mut self, entry: Entry<E>) {
        let mut at = self.heap.len();
        self.heap.push(entry);
        while at > 0 {
            let parent = (at - 1) / 4;
            if !entry.before(&self.heap[parent]) {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    #[inline]
    fn pop_heap(&mut self) -> Option<Entry<E>> {
        let last = self.heap.pop()?;
        let Some(&top) = self.heap.first() else { return Some(last) };
        let len = self.heap.len();
        let mut at = 0;
        loop {
            let first = 4 * at + 1;
            if first >= len {
                break;
            }
            let mut least = first;
            for child in first + 1..len.min(first + 4) {
                if self.heap[child].before(&self.heap[least]) {
                    least = child;
                }
            }
            if !self.heap[least].before(&last) {
                break;
            }
            self.heap[at] = self.heap[least];
            at = least;
        }
        self.heap[at] = last;
        Some(top)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_order_of_insertion() {
        let mut queue = Queue::new();
        for (event, time) in [5u64, 3, 5, 9, 3, 0, 5].into_iter().enumerate() {
            queue.push(Time(time), event);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(time, event)| (time.0, event)).collect();
        assert_eq!(order, [(0, 5), (3, 1), (3, 4), (5, 0), (5, 2), (5, 6), (9, 3)]);
    }

    /// Against a sorted list, with pushes and pops mixed.
    #[test]
    fn a_long_random_run_stays_in_order() {
        let mut queue = Queue::new();
        let mut model = std::collections::BTreeSet::new();
        let mut random = crate::rng::Stream::new(7, "queue", 0);
        let mut now = 0;
        for number in 0..20_000u64 {
            let time = now + random.next() % 50;
            queue.push(Time(time), number);
            model.insert((time, number));
            while random.next() % 5 < 2 {
                let ours = queue.pop().map(|(time, event)| (time.0, event));
                assert_eq!(ours, model.pop_first());
                now = ours.map_or(now, |(time, _)| time);
            }
        }
        while let Some((time, event)) = queue.pop() {
            assert_eq!(Some((time.0, event)), model.pop_first());
        }
        assert!(model.is_empty());
    }
}
