//! The answer in one word.
//!
//! A test that is not significant says nothing about why: there may be no difference, or too few runs to see one. The
//! interval shows which. If it excludes zero, the change is real; if it is so narrow that every believable change is
//! too small to matter, there is no difference; if it is wider than that, the answer is not known yet.
//!
//! ```text
//!              -5 %         0         +5 %
//!   ------------|-----------|-----------|------------
//!       [===]   |           |           |               better (lower is better)
//!               |       [===]           |               no difference
//!        [======================]       |               too few runs
//! ```

use std::fmt;

use crate::interval::t_two_sided;
use crate::{Direction, Interval, Paired};

/// What a comparison found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The change is real, and an improvement.
    Better,
    /// The change is real, and a regression.
    Worse,
    /// Any change is too small to matter.
    NoDifference,
    /// No change that matters was found, but the change acts on something that has no price.
    NotPriced,
    /// A change that matters can neither be shown nor excluded.
    TooFewRuns,
    /// The change is real in these runs, but its sign depends on facts that no source reports. Intervals do not show
    /// that; further runs with other values of these facts do.
    Coin,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifference => "no difference",
            Verdict::NotPriced => "not priced",
            Verdict::TooFewRuns => "too few runs",
            Verdict::Coin => "coin",
        })
    }
}

/// What counts as an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judge {
    /// Changes inside this fraction of the baseline do not matter: 0.05 is 5 %.
    pub negligible: f64,
    /// Fewer pairs than this are too few, whatever they show: two runs that agree by
    /// chance would otherwise prove anything.
    pub pairs_min: usize,
}

/// A change smaller than this fraction, which prints as 0.0 %, is none, however certain it is.
const NO_CHANGE: f64 = 5e-4;

/// The maximum number of pairs to advise.
const PAIRS_ADVISED_MAX: usize = 100_000;

impl Default for Judge {
    fn default() -> Judge {
        Judge { negligible: 0.05, pairs_min: 3 }
    }
}

impl Judge {
    /// Reads the intervals of `paired`.
    pub fn verdict(&self, paired: &Paired, direction: Direction) -> Verdict {
        if paired.n < self.pairs_min {
            return Verdict::TooFewRuns;
        }
        // Without a baseline there is no relative change; a plain difference still has a sign.
        if paired.change.is_some_and(|change| change.abs() < NO_CHANGE)
            && paired.interval.is_some_and(|i| i.within(Interval::around(0.0, self.negligible)))
        {
            return Verdict::NoDifference;
        }
        let interval = paired.interval.or(paired.difference.map(|d| d.interval));
        let Some(interval) = interval else {
            return Verdict::TooFewRuns;
        };
        let negligible = match paired.interval {
            Some(_) => Interval::around(0.0, self.negligible),
            None => Interval::around(0.0, 0.0),
        };
        if !interval.contains(0.0) {
            let lower = interval.high < 0.0;
            let good = lower == (direction == Direction::Lower);
            if good { Verdict::Better } else { Verdict::Worse }
        } else if interval.within(negligible) {
            Verdict::NoDifference
        } else {
            Verdict::TooFewRuns
        }
    }

    /// About how many pairs would give an answer, if the spread and the change stay the same. `None` if that
    /// cannot be estimated: for one pair, or if there is no relative change.
    pub fn pairs_needed(&self, paired: &Paired, confidence: f64) -> Option<usize> {
        let (interval, change) = (paired.interval?, paired.change?);
        // Either the interval will exclude zero, or it will be within the negligible range.
        let target = change.abs().max(self.negligible - change.abs());
        let half = (interval.high - interval.low) / 2.0;
        let width = |n: usize| t_two_sided(confidence, n - 1) / (n as f64).sqrt();
        let spread = half / width(paired.n);
        let mut n = paired.n.max(self.pairs_min);
        while spread * width(n) >= target && n < PAIRS_ADVISED_MAX {
            n += 1 + n / 16;
        }
        (n < PAIRS_ADVISED_MAX).then_some(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{A, B, C, D, zip};

    #[track_caller]
    fn check(pairs: &[(f64, f64)], direction: Direction, expected: &str) {
        let paired = Paired::new(pairs, direction, 0.95);
        assert_eq!(Judge::default().verdict(&paired, direction).to_string(), expected, "{paired:?}");
    }

    #[test]
    fn the_direction_decides_what_is_better() {
        check(&zip(&A, &B), Direction::Lower, "better");
        check(&zip(&B, &A), Direction::Lower, "worse");
        check(&zip(&A, &B), Direction::Higher, "worse");
        check(&zip(&B, &A), Direction::Higher, "better");
    }

    #[test]
    fn no_difference_needs_evidence_too() {
        check(&zip(&A, &C), Direction::Lower, "no difference");
        // The mean is as close, but these five are not conclusive.
        check(&zip(&[22.0, 23.0, 22.5, 23.5, 22.2], &D), Direction::Lower, "too few runs");
    }

    #[test]
    fn two_runs_prove_nothing() {
        check(&[(20.0, 10.0); 2], Direction::Lower, "too few runs");
        check(&[(20.0, 10.0); 3], Direction::Lower, "better");
        check(&[], Direction::Lower, "too few runs");
    }

    #[test]
    fn nothing_is_better_by_nothing() {
        check(&[(1e6, 1e6 + 400.0); 3], Direction::Lower, "no difference");
        check(&[(1e6, 1e6 + 600.0); 3], Direction::Lower, "worse");
    }

    #[test]
    fn so_many_runs_as_are_advised_would_do() {
        // Noise of 20 %, a change of 10 %.
        let pairs: Vec<(f64, f64)> =
            (0..2000).map(|i| (100.0, 110.0 + [-20.0, 20.0, -15.0, 15.0][i % 4])).collect();
        let of = |n: usize| Paired::new(&pairs[..n], Direction::Lower, 0.95);
        let judge = Judge::default();
        assert_eq!(judge.verdict(&of(8), Direction::Lower), Verdict::TooFewRuns);
        let advised = judge.pairs_needed(&of(8), 0.95).unwrap();
        assert!((10..40).contains(&advised), "{advised}");
        assert_eq!(judge.verdict(&of(advised), Direction::Lower), Verdict::Worse);
        assert_eq!(judge.pairs_needed(&of(1), 0.95), None);
    }

    #[test]
    fn without_a_baseline_the_difference_speaks() {
        check(&[(0.0, 5.0), (0.0, 7.0), (0.0, 6.0)], Direction::Lower, "worse");
        check(&[(0.0, 5.0), (0.0, 7.0), (0.0, 6.0)], Direction::Higher, "better");
        check(&[(0.0, 0.0); 3], Direction::Lower, "no difference");
        check(&[(0.0, -5.0), (0.0, 7.0), (0.0, 1.0)], Direction::Lower, "too few runs");
    }
}
