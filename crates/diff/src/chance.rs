//! What chance alone would change.
//!
//! A trace is one run. If events were independent of each other, a count would vary between runs by its square root,
//! and a share by the variation of a random draw of that size. That is the minimum that chance causes: runs of one
//! kernel often vary by more, which only several runs can show.

use serde::Serialize;

/// A difference, compared with chance alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Chance {
    /// The difference, B minus A.
    pub difference: f64,
    /// Chance alone stays within this in 95 of 100 cases.
    pub within: f64,
}

/// Number of standard deviations that contain 95 % of a normal distribution.
const TWO_SIDED_95: f64 = 1.96;

impl Chance {
    /// For two counts, each over a number of seconds, as rates per second.
    pub fn of_rates(a: u64, seconds_a: f64, b: u64, seconds_b: f64) -> Chance {
        let rate = |count: u64, seconds: f64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let variance =
            |count: u64, seconds: f64| if seconds > 0.0 { count as f64 / (seconds * seconds) } else { 0.0 };
        Chance {
            difference: rate(b, seconds_b) - rate(a, seconds_a),
            within: TWO_SIDED_95 * (variance(a, seconds_a) + variance(b, seconds_b)).sqrt(),
        }
    }

    /// For two shares, in percentage points.
    pub fn of_shares(a: u64, total_a: u64, b: u64, total_b: u64) -> Chance {
        let share = |count: u64, total: u64| if total > 0 { count as f64 / total as f64 } else { 0.0 };
        let pooled = share(a + b, total_a + total_b);
        let each = |total: u64| if total > 0 { pooled * (1.0 - pooled) / total as f64 } else { 0.0 };
        Chance {
            difference: 100.0 * (share(b, total_b) - share(a, total_a)),
            within: 100.0 * TWO_SIDED_95 * (each(total_a) + each(total_b)).sqrt(),
        }
    }

    /// Whether it is larger than chance alone explains.
    pub fn stands_out(&self) -> bool {
        self.difference.abs() > self.within
    }

    /// The result in a few words.
    pub fn word(&self) -> &'static str {
        if self.stands_out() { "more than chance" } else { "within chance" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_counts_are_within_chance_and_a_tenfold_one_is_not() {
        assert!(!Chance::of_rates(100, 1.0, 110, 1.0).stands_out());
        assert!(Chance::of_rates(100, 1.0, 1000, 1.0).stands_out());
        // The same rate in twice the time.
        assert!(!Chance::of_rates(100, 1.0, 200, 2.0).stands_out());
        let chance = Chance::of_rates(400, 2.0, 400, 2.0);
        assert!((chance.within - 1.96 * 200f64.sqrt()).abs() < 1e-9, "{chance:?}");
    }

    #[test]
    fn a_share_of_few_may_differ_by_much() {
        assert!(!Chance::of_shares(1, 4, 2, 4).stands_out());
        assert!(Chance::of_shares(100, 400, 200, 400).stands_out());
        assert_eq!(Chance::of_shares(0, 0, 0, 0), Chance { difference: 0.0, within: 0.0 });
    }
}
