//! A clock that never goes back.
//!
//! The clock of one recording does not go back, but one file may contain several recordings, and a damaged line may
//! contain any time. Averages and virtual times cannot be rewound. So time stops for a small step back, and
//! after a large one continues from where it was. Time also stops for a single event far ahead of its
//! neighbours; only if the next event is also there has the time really passed.

use schedlab_units::{Duration, Time};

/// A larger step back begins another recording.
const RESET: Duration = Duration::millis(100);

/// A larger step forward counts only if two events confirm it, and then begins another recording too.
const LEAP: Duration = Duration::secs(86_400);

/// No recording is longer. After that, time stops, while sums of virtual times are still far from overflow.
const LONGEST: Duration = Duration::secs(30 * 86_400);

/// No clock gets this far, which is 146 years: a later time is damaged.
const RECORDED_MAX: Time = Time(1 << 62);

/// The time of the last event, and the offset added to recorded times.
#[derive(Debug, Default)]
pub struct Steady {
    last: Time,
    /// Wraps: it is negative after a leap.
    ahead: u64,
    /// Time ends this long after the first event; zero before the first event.
    end: Time,
    /// The last event was far ahead.
    leapt: bool,
}

impl Steady {
    /// The time at which an event is followed.
    #[inline]
    pub fn at(&mut self, recorded: Time) -> Time {
        let time = Time(recorded.0.wrapping_add(self.ahead));
        if time.0.wrapping_sub(self.last.0) > LEAP.0 || time >= self.end {
            return self.step(recorded);
        }
        (self.last, self.leapt) = (time, false);
        time
    }

    /// The same for an event that does not simply come a little later.
    #[cold]
    fn step(&mut self, recorded: Time) -> Time {
        if self.end == Time::ZERO {
            self.last = recorded.min(RECORDED_MAX);
            self.end = self.last + LONGEST;
            return self.last;
        }
        if recorded > RECORDED_MAX {
            return self.last;
        }
        let by = recorded.0.wrapping_add(self.ahead).wrapping_sub(self.last.0) as i64;
        let leaps = by > LEAP.0 as i64;
        let goes_on_here = if leaps { self.leapt } else { by <= -(RESET.0 as i64) };
        if goes_on_here {
            self.ahead = self.ahead.wrapping_sub(by as u64);
        } else if by >= 0 && !leaps {
            self.last = self.end;
        }
        self.leapt = leaps && !self.leapt;
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When events with these recorded times are followed.
    fn followed<const N: usize>(millis: [u64; N]) -> [u64; N] {
        let mut steady = Steady::default();
        millis.map(|ms| steady.at(Time(ms.saturating_mul(1_000_000))).0 / 1_000_000)
    }

    #[test]
    fn time_stands_still_or_goes_on_but_never_back() {
        let recorded = [5000, 5001, 4999, 5002, 17, 18, 16, 20, 30_000, 5];
        assert_eq!(followed(recorded), [5000, 5001, 5001, 5002, 5002, 5003, 5003, 5005, 34_985, 34_985]);
    }

    #[test]
    fn one_event_does_not_make_years_pass_but_two_do() {
        let (year, end) = (365 * 86_400_000, u64::MAX);
        assert_eq!(followed([year, year + 1]), [year, year + 1], "a machine that is up for long");
        assert_eq!(followed([5, end, 6, year, 7, 8]), [5, 5, 6, 6, 7, 8]);
        assert_eq!(followed([5, year, year + 1, year + 2]), [5, 5, 5, 6], "another recording");
    }

    #[test]
    fn whatever_the_times_are_they_do_not_go_back_nor_far() {
        let day = LEAP.0;
        let mut dice = 1u64;
        for first in [0, 1, day, 1 << 61, 1 << 62, u64::MAX - 1, u64::MAX] {
            let mut steady = Steady::default();
            let begin = steady.at(Time(first));
            let mut last = begin;
            for _ in 0..1000 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let recorded = [0, u64::MAX, dice, last.0, last.0 + day, last.0 + day + 1, first];
                let time = steady.at(Time(recorded[(dice >> 60) as usize % 7]));
                assert!(last <= time && time <= begin + LONGEST, "{time} after {last}");
                last = time;
            }
        }
    }
}
