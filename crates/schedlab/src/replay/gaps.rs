//! Gaps in the clock of a recording: a damaged time stamp, or two recordings in one file.
//!
//! A machine is never silent for long: its kernel threads wake every few seconds. A replay would simulate each second of
//! such a gap, with nothing in it, so a gap is cut to a second.

use std::fmt;

use schedlab_units::{Duration, Time};

/// A longer time without any event is a gap.
const GAP: Duration = Duration::secs(20);

/// The length to which a gap is cut.
const LEFT: Duration = Duration::secs(1);

/// The gaps of a recording.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaps {
    last: Option<Time>,
    /// Total time cut so far.
    cut: Duration,
    count: u64,
    longest: Duration,
}

impl Gaps {
    /// The time of the next event without the gaps before it. Times must not go backwards.
    pub fn cut(&mut self, time: Time) -> Time {
        let silent = time.since(self.last.unwrap_or(time));
        if silent > GAP {
            self.count += 1;
            self.longest = self.longest.max(silent);
            self.cut += silent.saturating_sub(LEFT);
        }
        self.last = Some(time);
        Time(time.0 - self.cut.0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (gaps, are) = if self.count == 1 { ("gap", "is") } else { ("gaps", "are") };
        write!(
            f,
            "{} {gaps} of more than {GAP} in its clock, the longest {:.0} s, {are} cut to {LEFT}: is a time stamp damaged, or \
             are two recordings in one file?",
            self.count,
            self.longest.0 as f64 / 1e9
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_cut_to_a_second_and_later_times_move_with_it() {
        let mut gaps = Gaps::default();
        let second = 1_000_000_000;
        let times = [1, 5, 5000, 5001, 9001].map(|s| gaps.cut(Time(s * second)).0 / second);
        assert_eq!(times, [1, 5, 6, 7, 8]);
        assert_eq!(
            gaps.to_string(),
            "2 gaps of more than 20s in its clock, the longest 4995 s, are cut to 1s: is a time stamp damaged, or are two \
             recordings in one file?"
        );
    }
}
