//! What tasks did before the recording, guessed from what they did at its start.
//!
//! A task's averages lose half of their value in 32 periods. The guess is that the past mirrors what follows: what a
//! task does at some time after the start counts as much as the same that long before it.

use schedlab_sched::{LOAD_AVG_MAX, decay_load};
use schedlab_units::Duration;
use schedlab_workload::Did;

/// A task that ran less than this, out of 1024, is assumed to have done nothing: its waiting belongs to load that is
/// just starting.
const LEAST: u16 = 64;

/// The half-life of averages: 32 periods.
const HALF_LIFE: Duration = Duration(32 << 20);

/// What a task did, with lower weight for later times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Before {
    running: u64,
    waiting: u64,
}

impl Before {
    /// It ran between two times since the start.
    pub fn ran(&mut self, from: Duration, to: Duration) {
        self.running += weight(to).saturating_sub(weight(from));
    }

    /// It waited to run.
    pub fn waited(&mut self, from: Duration, to: Duration) {
        self.waiting += weight(to).saturating_sub(weight(from));
    }

    /// The guess, for a recording of length `all`; `None` if it is too short.
    pub fn did(self, all: Duration, awake: bool) -> Option<Did> {
        if all < HALF_LIFE {
            return None;
        }
        let all = weight(all);
        let part = |weight: u64| (weight * 1024).div_ceil(all).min(1024) as u16;
        let did = Did { running: part(self.running), runnable: part(self.running + self.waiting), awake };
        Some(did).filter(|did| did.running >= LEAST)
    }
}

/// The total weight of the time from the start to `until`.
fn weight(until: Duration) -> u64 {
    let (periods, rest) = (until.0 >> 20, (until.0 >> 10) & 1023);
    LOAD_AVG_MAX - decay_load(LOAD_AVG_MAX, periods) + decay_load(rest, periods)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::millis;

    /// For a task that ran and waited in these spans, each a start and an end in ms, of one second.
    fn did(ran: &[(u64, u64)], waited: &[(u64, u64)]) -> Option<(u16, u16)> {
        let mut before = Before::default();
        ran.iter().for_each(|&(from, to)| before.ran(MS(from), MS(to)));
        waited.iter().for_each(|&(from, to)| before.waited(MS(from), MS(to)));
        before.did(MS(1000), true).map(|did| (did.running, did.runnable))
    }

    #[test]
    fn the_past_is_what_follows_in_a_mirror() {
        assert_eq!(did(&[(0, 1000)], &[]), Some((1024, 1024)));
        let turns: Vec<(u64, u64)> = (0..100).map(|turn| (turn * 10, turn * 10 + 5)).collect();
        let waits: Vec<(u64, u64)> = turns.iter().map(|&(_, to)| (to, to + 5)).collect();
        // Half of the time, the first half of each ten ms, which is closer to the start.
        assert_eq!([did(&turns, &[]), did(&turns, &waits)], [Some((539, 539)), Some((539, 1024))]);
        assert!(did(&[(0, 33)], &[]) > did(&[(33, 66)], &[]), "what is nearer counts for more");
        assert_eq!(Before::default().did(MS(20), true), None, "too short");
        assert_eq!([did(&[(0, 1)], &[(1, 500)]), did(&[(400, 1000)], &[])], [None; 2], "as good as nothing");
    }
}
