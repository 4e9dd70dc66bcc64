//! Instants and spans in whole nanoseconds.

use core::fmt;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// An instant: nanoseconds since the start of the run or of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A span of time in nanoseconds, never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

impl Time {
    /// The first instant.
    pub const ZERO: Time = Time(0);
    /// An instant later than any that is reached.
    pub const MAX: Time = Time(u64::MAX);

    /// The span since `earlier`, or zero when `earlier` is later.
    #[inline]
    pub fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// Longer than any run.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `n` nanoseconds.
    pub const fn nanos(n: u64) -> Duration {
        Duration(n)
    }

    /// `n` microseconds.
    pub const fn micros(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000))
    }

    /// `n` milliseconds.
    pub const fn millis(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000))
    }

    /// `n` seconds.
    pub const fn secs(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000_000))
    }

    /// The difference, or zero when `other` is longer.
    pub fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    #[inline]
    fn add(self, span: Duration) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Add for Duration {
    type Output = Duration;

    #[inline]
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    #[inline]
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Duration;

    #[inline]
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl SubAssign for Duration {
    #[inline]
    fn sub_assign(&mut self, other: Duration) {
        *self = *self - other;
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;

    fn mul(self, times: u64) -> Duration {
        Duration(self.0.saturating_mul(times))
    }
}

impl fmt::Display for Time {
    /// Seconds with nine decimals, as a trace prints them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Display for Duration {
    /// The largest unit that leaves a whole number: `250us`, `4ms`, `1s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => write!(f, "0"),
            n if n % 1_000_000_000 == 0 => write!(f, "{}s", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => write!(f, "{}ms", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{}us", n / 1_000),
            n => write!(f, "{n}ns"),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::string::ToString;

    #[test]
    fn spans_print_in_the_largest_whole_unit() {
        assert_eq!(Duration::micros(250).to_string(), "250us");
        assert_eq!(Duration::secs(2).to_string(), "2s");
        assert_eq!(Duration(1_001).to_string(), "1001ns");
    }

    #[test]
    fn what_is_longer_than_any_span_is_the_longest() {
        let most = u64::MAX;
        assert_eq!(
            [Duration::micros(most), Duration::millis(most), Duration::secs(most)],
            [Duration::MAX; 3]
        );
    }

    #[test]
    fn since_never_goes_below_zero() {
        assert_eq!(Time(5).since(Time(9)), Duration::ZERO);
    }
}
