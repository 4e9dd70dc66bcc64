//! The event queue: events in order of time, and at one instant in order of insertion.
//!
//! A wheel of eleven rings of 64 slots. An event is in the ring of the highest group of six bits in which its
//! time differs from now, in the slot of those bits:
//!
//! ```text
//!   now    ... 000010 110100 000111
//!   event  ... 000010 111000 010101     ring 1, slot 111000
//! ```
//!
//! So everything in a lower ring precedes anything in a higher one, and the slots of a ring are in order. The first
//! slot of the lowest ring in use contains the next event: a single event is taken; otherwise the present moves to the
//! start of the slot and its events move to lower rings. Lists preserve the order of insertion throughout. Pushing has
//! a constant cost, and an event moves at most once per ring. Events are never removed; their owner's number shows
//! whether they still count.

use schedlab_units::Time;

const RINGS: usize = 11;
const NONE: u32 = u32::MAX;

/// An event in the list of its slot.
#[derive(Clone, Copy, Debug)]
struct Node<E> {
    time: u64,
    next: u32,
    event: E,
}

/// A list of nodes, oldest first.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

/// Events to come.
#[derive(Clone, Debug)]
pub(crate) struct Queue<E> {
    /// No event is before this.
    now: u64,
    /// Rings and slots in use, a bit each.
    rings: u32,
    used: [u64; RINGS],
    slots: Box<[[List; 64]; RINGS]>,
    nodes: Vec<Node<E>>,
    /// Head of the list of free nodes.
    free: u32,
}

impl<E: Copy> Queue<E> {
    /// An empty queue.
    pub fn new() -> Queue<E> {
        Queue {
            now: 0,
            rings: 0,
            used: [0; RINGS],
            slots: Box::new([[List { first: NONE, last: NONE }; 64]; RINGS]),
            nodes: Vec::new(),
            free: NONE,
        }
    }

    /// Adds an event, which is not earlier than the last one taken.
    #[inline]
    pub fn push(&mut self, time: Time, event: E) {
        debug_assert!(time.0 >= self.now, "an event in the past");
        let node = Node { time: time.0, next: NONE, event };
        let id = if self.free == NONE {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        } else {
            let id = self.free;
            self.free = self.nodes[id as usize].next;
            self.nodes[id as usize] = node;
            id
        };
        self.place(id, time.0);
    }

    /// The largest number of events queued at once.
    #[cfg(test)]
    pub fn room(&self) -> usize {
        self.nodes.len()
    }

    #[inline]
    fn place(&mut self, id: u32, time: u64) {
        let ring = (63 - ((time ^ self.now) | 1).leading_zeros()) as usize / 6;
        let slot = (time >> (6 * ring)) as usize & 63;
        let list = &mut self.slots[ring][slot];
        if self.used[ring] >> slot & 1 == 0 {
            self.used[ring] |= 1 << slot;
            self.rings |= 1 << ring;
            *list = List { first: id, last: id };
        } else {
            self.nodes[list.last as usize].next = id;
            list.last = id;
        }
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        loop {
            if self.rings == 0 {
                return None;
            }
            let ring = self.rings.trailing_zeros() as usize;
            let slot = self.used[ring].trailing_zeros() as usize;
            let list = &mut self.slots[ring][slot];
            let id = list.first;
            let node = self.nodes[id as usize];
            if ring == 0 || node.next == NONE {
                // All events in a slot of the lowest ring are due at once; a single one is next in any case.
                if node.next == NONE {
                    self.clear(ring, slot);
                } else {
                    list.first = node.next;
                }
                self.now = node.time;
                self.nodes[id as usize].next = self.free;
                self.free = id;
                return Some((Time(node.time), node.event));
            }
            self.clear(ring, slot);
            self.now = node.time >> (6 * ring) << (6 * ring);
            let mut next = id;
            while next != NONE {
                let id = next;
                let node = &mut self.nodes[id as usize];
                next = std::mem::replace(&mut node.next, NONE);
                let time = node.time;
                self.place(id, time);
            }
        }
    }

    #[inline]
    fn clear(&mut self, ring: usize, slot: usize) {
        self.used[ring] &= !(1 << slot);
        if self.used[ring] == 0 {
            self.rings &= !(1 << ring);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn events_come_by_time_and_then_in_order_of_insertion() {
        let mut queue = Queue::new();
        for (event, time) in [5u64, 3, 5, 9, 3, 0, 5, 1 << 40, u64::MAX].into_iter().enumerate() {
            queue.push(Time(time), event);
        }
        let order: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(time, event)| (time.0, event)).collect();
        let expected = [(0, 5), (3, 1), (3, 4), (5, 0), (5, 2), (5, 6), (9, 3), (1 << 40, 7), (u64::MAX, 8)];
        assert_eq!(order, expected);
    }

    /// Compared with a sorted list, with pushes and pops mixed, near and far.
    #[test]
    fn a_long_random_run_stays_in_order() {
        for spread in [1u64, 50, 5_000, 1 << 30] {
            let mut queue = Queue::new();
            let mut model = std::collections::BTreeSet::new();
            let mut random = Stream::new(7, "queue", spread);
            let mut now = 0;
            for number in 0..20_000u64 {
                let far = random.next().is_multiple_of(8);
                let time = now + random.next() % spread * if far { 1_000 } else { 1 };
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
            assert!(queue.room() <= 20_000);
        }
    }
}
