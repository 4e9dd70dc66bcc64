//! Puts records in order that come in rounds.
//!
//! A recorder empties one CPU's buffer after the other and then marks the end of
//! the round. What an event of a later round can be older than is only what the
//! round before it brought, so up to the newest time of that one all is there.

use std::collections::VecDeque;

use schedlab_units::Time;

/// Without marks no more than this many wait.
const WAITING_MAX: usize = 1 << 20;

/// What waits for its time.
pub(super) struct Rounds<T> {
    waiting: Vec<(Time, T)>,
    ready: VecDeque<(Time, T)>,
    /// The newest time of all, and of all but this round.
    newest: Time,
    newest_before: Time,
}

impl<T> Default for Rounds<T> {
    fn default() -> Rounds<T> {
        Rounds { waiting: Vec::new(), ready: VecDeque::new(), newest: Time::ZERO, newest_before: Time::ZERO }
    }
}

impl<T> Rounds<T> {
    /// Adds an item at its time.
    pub fn push(&mut self, time: Time, item: T) {
        self.newest = self.newest.max(time);
        self.waiting.push((time, item));
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.sort_by_key(|(time, _)| *time);
            self.ready.extend(self.waiting.drain(..WAITING_MAX / 2));
        }
    }

    /// The item that is next, if it is known which one.
    pub fn pop(&mut self) -> Option<(Time, T)> {
        self.ready.pop_front()
    }

    /// Ends a round.
    pub fn finish_round(&mut self) {
        self.waiting.sort_by_key(|(time, _)| *time);
        let end = self.waiting.partition_point(|(time, _)| *time <= self.newest_before);
        self.ready.extend(self.waiting.drain(..end));
        self.newest_before = self.newest;
    }

    /// Ends the last round.
    pub fn finish(&mut self) {
        self.newest_before = Time::MAX;
        self.finish_round();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_passed_on_when_the_next_cannot_precede_it() {
        let mut rounds = Rounds::default();
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
        let mut rounds = Rounds::default();
        (0..WAITING_MAX as u64 + 10).rev().for_each(|time| rounds.push(Time(time), ()));
        assert!(rounds.waiting.len() < WAITING_MAX);
        assert_eq!(rounds.pop().map(|(time, ())| time), Some(Time(10)));
    }
}
