//! The rules by which a mean in a table gets a star, by name.
//!
//! A star in a published table means what mmtests meant when it was printed, and that changed without notice at the end
//! of 2024. So the rule has a name and is always printed: `t-2020` and `ci-2024` repeat the two generations,
//! `subci-2024` the variant of tests with many samples per run; `welch`, `rank` and `bootstrap` are the statistician's
//! choices.

use std::fmt;
use std::str::FromStr;

use crate::{
    Bootstrap, Direction, Interval, Summary, cidiff, normal_quantile, rank_sum, submean, t_2020, welch,
};

/// Which generation of mmtests a table looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Deviations are always around the arithmetic mean.
    Until2024,
    /// Rates have deviations around their harmonic mean.
    Since2024,
}

/// How to decide whether a mean gets a star.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// The t test of mmtests until December 2024; its level was 0.10.
    T2020 {
        /// A star below this p.
        level: f64,
    },
    /// The intervals of mmtests since: mean give or take a normal quantile times the
    /// standard *deviation*, so about sqrt(n) stricter than a test. A star when the
    /// intervals do not touch.
    Ci2024 {
        /// One minus the confidence of the intervals.
        alpha: f64,
    },
    /// The same with sub-selection intervals.
    SubCi2024 {
        /// One minus the confidence of the intervals.
        alpha: f64,
        /// For the subsets drawn.
        seed: u64,
    },
    /// Welch's t test.
    Welch {
        /// A star below this p.
        level: f64,
    },
    /// The rank-sum test.
    Rank {
        /// A star below this p.
        level: f64,
    },
    /// The bootstrap interval of the ratio of means leaves out 1.
    Bootstrap {
        /// One minus the confidence of the interval.
        level: f64,
        /// For the samples drawn.
        seed: u64,
    },
}

/// The result of a rule for two sets of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Star {
    /// Whether the mean is starred.
    pub significant: bool,
    /// The p of rules that are tests.
    pub p: Option<f64>,
    /// For interval rules: the distance of the means in units of the halves of their
    /// intervals, positive when the baseline's is the larger.
    pub distance: Option<f64>,
}

impl Star {
    const NONE: Star = Star { significant: false, p: None, distance: None };
}

impl Rule {
    /// Every rule, at its usual level.
    pub const ALL: [Rule; 6] = [
        Rule::T2020 { level: 0.10 },
        Rule::Ci2024 { alpha: 0.05 },
        Rule::SubCi2024 { alpha: 0.05, seed: 1 },
        Rule::Welch { level: 0.05 },
        Rule::Rank { level: 0.05 },
        Rule::Bootstrap { level: 0.05, seed: 1 },
    ];

    /// The name that selects it.
    pub fn name(&self) -> &'static str {
        match self {
            Rule::T2020 { .. } => "t-2020",
            Rule::Ci2024 { .. } => "ci-2024",
            Rule::SubCi2024 { .. } => "subci-2024",
            Rule::Welch { .. } => "welch",
            Rule::Rank { .. } => "rank",
            Rule::Bootstrap { .. } => "bootstrap",
        }
    }

    /// Its level of significance.
    pub fn level(&self) -> f64 {
        match *self {
            Rule::T2020 { level }
            | Rule::Welch { level }
            | Rule::Rank { level }
            | Rule::Bootstrap { level, .. } => level,
            Rule::Ci2024 { alpha } | Rule::SubCi2024 { alpha, .. } => alpha,
        }
    }

    /// The generation of tables that goes with it.
    pub fn era(&self) -> Era {
        if matches!(self, Rule::T2020 { .. }) { Era::Until2024 } else { Era::Since2024 }
    }

    /// Compares two sets of runs, each a list of its samples.
    pub fn star(&self, base: &[&[f64]], value: &[&[f64]], direction: Direction) -> Star {
        let summary = |runs: &[&[f64]]| Summary::new(runs.iter().flat_map(|r| r.iter().copied()), direction);
        let (b, v) = (summary(base), summary(value));
        if b.n() == 0 || v.n() == 0 {
            return Star::NONE;
        }
        match *self {
            Rule::T2020 { level } => by_p(t_2020(&b, &v), level),
            Rule::Welch { level } => by_p(welch(&b, &v), level),
            Rule::Rank { level } => by_p(rank_sum(b.samples(), v.samples()), level),
            Rule::Ci2024 { alpha } => {
                let z = normal_quantile(1.0 - alpha / 2.0);
                let around_mean = |s: &Summary| (s.mean(), Interval::around(s.mean(), z * deviation(s)));
                by_distance(around_mean(&b), around_mean(&v))
            }
            Rule::SubCi2024 { alpha, seed } => {
                let interval = |runs| submean(runs, direction, alpha, seed).map(|e| (e.value, e.interval));
                match (interval(base), interval(value)) {
                    (Some(b), Some(v)) => by_distance(b, v),
                    _ => Star::NONE,
                }
            }
            Rule::Bootstrap { level, seed } => {
                let (b, v) = (one_group(base), one_group(value));
                let mean_of = |runs: &[&[f64]], drawn: &[usize]| {
                    Summary::new(drawn.iter().flat_map(|&i| runs[i].iter().copied()), direction).mean()
                };
                let bootstrap = Bootstrap { confidence: 1.0 - level, ..Bootstrap::new(seed) };
                let ratio =
                    bootstrap.interval(&[b.len(), v.len()], |d| mean_of(&v, &d[1]) / mean_of(&b, &d[0]));
                Star { significant: ratio.is_some_and(|r| !r.interval.contains(1.0)), ..Star::NONE }
            }
        }
    }
}

/// The deviation that goes with the printed mean.
fn deviation(summary: &Summary) -> f64 {
    match summary.direction() {
        Direction::Lower => summary.stddev(),
        Direction::Higher => summary.hstddev(),
    }
}

/// The units that are resampled: whole runs, or the samples themselves if there is only one run.
fn one_group<'a>(runs: &[&'a [f64]]) -> Vec<&'a [f64]> {
    match runs {
        [only] => only.chunks(1).collect(),
        _ => runs.to_vec(),
    }
}

fn by_p(p: f64, level: f64) -> Star {
    if p.is_nan() { Star::NONE } else { Star { significant: p < level, p: Some(p), distance: None } }
}

/// mmtests passes the baseline as the new value, which turns the sign and nothing else.
fn by_distance(base: (f64, Interval), value: (f64, Interval)) -> Star {
    let ends = |i: Interval| (i.low, i.high);
    let distance = cidiff(base.0, ends(base.1), value.0, ends(value.1));
    if distance.is_nan() {
        return Star::NONE;
    }
    Star { significant: distance.abs() > 1.0, p: None, distance: Some(distance) }
}

/// A rule was requested by an unknown name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRule(String);

impl fmt::Display for UnknownRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Rule::ALL.iter().map(Rule::name).collect();
        write!(f, "there is no significance rule {:?}: use one of {}", self.0, names.join(", "))
    }
}

impl std::error::Error for UnknownRule {}

impl FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(name: &str) -> Result<Rule, UnknownRule> {
        Rule::ALL.into_iter().find(|rule| rule.name() == name).ok_or_else(|| UnknownRule(name.to_owned()))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name(), self.level())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{A, B, C, D};

    #[track_caller]
    fn check(rule: &str, base: &[f64], value: &[f64], expected: bool) {
        let rule: Rule = rule.parse().unwrap();
        let (base, value): (Vec<&[f64]>, Vec<&[f64]>) = (base.chunks(1).collect(), value.chunks(1).collect());
        for direction in [Direction::Lower, Direction::Higher] {
            let star = rule.star(&base, &value, direction);
            assert_eq!(star.significant, expected, "{rule}, {direction}: {star:?}");
        }
    }

    #[test]
    fn the_rule_of_2024_asks_for_more_than_a_test_does() {
        // p is 5e-6, and yet the intervals made of deviations touch.
        check("t-2020", &A, &B, true);
        check("welch", &A, &B, true);
        check("rank", &A, &B, true);
        check("bootstrap", &A, &B, true);
        check("subci-2024", &A, &B, true);
        check("ci-2024", &A, &B, false);
        let far = B.map(|x| x - 1.0);
        check("ci-2024", &A, &far, true);
    }

    #[test]
    fn no_rule_stars_noise() {
        for rule in Rule::ALL {
            check(rule.name(), &A, &C, false);
            check(rule.name(), &A, &D, false);
        }
    }

    #[test]
    fn no_rule_stars_a_lone_or_missing_run() {
        for rule in Rule::ALL {
            check(rule.name(), &[5.0], &[50.0], false);
            check(rule.name(), &[], &B, false);
        }
    }

    #[test]
    fn without_spread_any_difference_is_starred() {
        for rule in ["t-2020", "ci-2024", "subci-2024", "welch", "bootstrap"] {
            check(rule, &[5.0; 4], &[7.0; 4], true);
            check(rule, &[5.0; 4], &[5.0; 4], false);
        }
    }

    #[test]
    fn the_distance_is_positive_when_the_baseline_is_larger() {
        let star = Rule::Ci2024 { alpha: 0.05 }.star(&[&A], &[&B], Direction::Lower);
        // (22.63 - 20.71) / (1.96 * (0.715 + 0.633))
        assert!((star.distance.unwrap() - 0.7266).abs() < 1e-4, "{star:?}");
        assert_eq!(star.p, None);
    }

    #[test]
    fn a_rule_is_asked_for_by_name() {
        for rule in Rule::ALL {
            assert_eq!(rule.name().parse(), Ok(rule));
        }
        assert_eq!(
            "t-2021".parse::<Rule>().unwrap_err().to_string(),
            "there is no significance rule \"t-2021\": use one of t-2020, ci-2024, subci-2024, welch, rank, bootstrap"
        );
    }
}
