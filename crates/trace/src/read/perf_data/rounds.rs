//! Sorts records that come in rounds.
//!
//! A recorder empties the buffer of one CPU after the other and then marks the end of the round. An event of a later
//! round can be older only than events of the round just before it, so everything up to the newest time of the previous
//! round is complete. All events of two rounds must wait, because nothing else shows what is complete.

use std::collections::VecDeque;

use schedlab_units::Time;

/// If no rounds are marked, at most this many items wait: a tool that drops the marks, such as `perf inject`, has
/// sorted the records.
const WAITING_MAX: usize = 1 << 20;

/// Items that wait for their time.
pub(super) struct Rounds<T> {
    /// All items; the first `ready` in order, and no older ones will come before them.
    items: VecDeque<(Time, T)>,
    ready: usize,
    waiting_max: usize,
    /// The newest time overall, and the newest of the previous rounds.
    newest: Time,
    newest_before: Time,
}

impl<T> Rounds<T> {
    /// For a file in which rounds are marked, or are not.
    pub fn new(marked: bool) -> Rounds<T> {
        Rounds {
            items: VecDeque::new(),
            ready: 0,
            waiting_max: if marked { usize::MAX } else { WAITING_MAX },
            newest: Time::ZERO,
            newest_before: Time::ZERO,
        }
    }

    /// Adds an item at its time.
    #[inline]
    pub fn push(&mut self, time: Time, item: T) {
        self.newest = self.newest.max(time);
        self.items.push_back((time, item));
        if self.items.len() - self.ready >= self.waiting_max {
            self.sort();
            self.ready += self.waiting_max / 2;
        }
    }

    /// Adds an item after everything that came so far.
    pub fn push_last(&mut self, item: T) {
        self.push(self.newest, item);
    }

    /// The next item, if it is certain which one that is.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, T)> {
        self.ready = self.ready.checked_sub(1)?;
        self.items.pop_front()
    }

    /// Ends a round.
    pub fn finish_round(&mut self) {
        let end = self.newest_before;
        let complete = self.sort().partition_point(|(time, _)| *time <= end);
        self.ready += complete;
        self.newest_before = self.newest;
    }

    /// Ends the last round.
    pub fn finish(&mut self) {
        self.newest_before = Time::MAX;
        self.finish_round();
    }

    /// Sorts the items that are not ready, and returns them.
    fn sort(&mut self) -> &[(Time, T)] {
        let waiting = &mut self.items.make_contiguous()[self.ready..];
        waiting.sort_by_key(|(time, _)| *time);
        waiting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_passed_on_when_the_next_cannot_precede_it() {
        let mut rounds = Rounds::new(true);
        let mut shown = Vec::new();
        for round in [&[5, 7, 3, 9][..], &[8, 10, 12], &[11, 13], &[]] {
            round.iter().for_each(|&time| rounds.push(Time(time), time));
            rounds.finish_round();
            shown.push(std::iter::from_fn(|| rounds.pop()).map(|(_, n)| n).collect::<Vec<_>>());
        }
        rounds.finish();
        assert_eq!(shown, [vec![], vec![3, 5, 7, 8, 9], vec![10, 11, 12], vec![13]]);
    }

    #[test]
    fn without_marks_memory_is_bounded() {
        let mut rounds = Rounds::new(false);
        (0..WAITING_MAX as u64 + 10).rev().for_each(|time| rounds.push(Time(time), ()));
        assert!(rounds.items.len() - rounds.ready < WAITING_MAX);
        assert_eq!(rounds.pop().map(|(time, ())| time), Some(Time(10)));
    }

    #[test]
    fn with_marks_a_round_may_be_as_large_as_it_is() {
        let mut rounds = Rounds::new(true);
        // Two CPUs, the buffer of the second emptied after that of the first.
        let cpu = 0..WAITING_MAX as u64;
        cpu.clone().chain(cpu).for_each(|time| rounds.push(Time(time), ()));
        assert!(rounds.pop().is_none());
        rounds.finish();
        let times: Vec<Time> = std::iter::from_fn(|| rounds.pop()).map(|(time, ())| time).collect();
        assert!(times.is_sorted() && times.len() == 2 * WAITING_MAX, "{}", times.len());
    }
}
