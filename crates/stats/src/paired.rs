//! Two kernels, the same seeds: how far apart are they?
//!
//! A run under one kernel and a run under another with the same seed share their
//! arrival times, their memory layout, their noise. Comparing within pairs takes that
//! shared part out, and what remains is often ten times narrower than the spread of
//! either side.
//!
//! The change is stated as mail states it, relative to the baseline's mean, so the number that needs an interval is a
//! ratio of two correlated means. Fieller's method gives it: a ratio r is believed unless the paired t test rejects
//! that the mean of `value - r * base` is zero. For normal pairs this is exact at any number of runs; it needs no
//! logarithm, so zeros are allowed; swapping the sides inverts the interval; and the interval excludes "no change"
//! exactly when the paired t test on the plain differences is significant. If the baseline's own mean cannot be
//! distinguished from zero, the set of believable ratios is unbounded, and there is no interval.

use crate::interval::t_two_sided;
use crate::{Direction, Estimate, Interval, mean_t};

/// Which mean the two sides are compared by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// For times: the sum matters.
    Arithmetic,
    /// For rates: the time they represent matters.
    Harmonic,
}

/// A comparison of runs that share their seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    /// How many pairs.
    pub n: usize,
    /// How runs were averaged. Rates are averaged harmonically, unless one is zero.
    pub mean: Mean,
    /// The baseline's mean over the paired runs.
    pub base: f64,
    /// The other side's mean over the paired runs.
    pub value: f64,
    /// value / base - 1; `None` when the baseline's mean is zero.
    pub change: Option<f64>,
    /// The interval of the true change. `None` for fewer than two pairs, or when the baseline cannot be distinguished
    /// from zero.
    pub interval: Option<Interval>,
    /// The mean of value - base, arithmetic always; `None` for fewer than two pairs.
    pub difference: Option<Estimate>,
}

impl Paired {
    /// Compares pairs of (baseline, value).
    pub fn new(pairs: &[(f64, f64)], direction: Direction, confidence: f64) -> Paired {
        let harmonic = direction == Direction::Higher && pairs.iter().all(|&(b, v)| b > 0.0 && v > 0.0);
        let n = pairs.len();
        let differences: Vec<f64> = pairs.iter().map(|(b, v)| v - b).collect();
        let difference = mean_t(&differences, confidence);

        // The ratio of harmonic means is the inverse ratio of the means of reciprocals.
        let (mean, above, below): (_, Vec<f64>, Vec<f64>) = if harmonic {
            let inverse = pairs.iter().map(|(b, v)| (1.0 / b, 1.0 / v));
            let (above, below) = inverse.unzip();
            (Mean::Harmonic, above, below)
        } else {
            let (below, above) = pairs.iter().copied().unzip();
            (Mean::Arithmetic, above, below)
        };
        let (above_mean, below_mean) = (average(&above), average(&below));
        let (base, value) = if harmonic {
            (inverse_average(&above), inverse_average(&below))
        } else {
            (below_mean, above_mean)
        };
        let ratio = (below_mean != 0.0).then(|| above_mean / below_mean);
        Paired {
            n,
            mean,
            base,
            value,
            change: ratio.map(|r| r - 1.0),
            interval: ratio.and_then(|r| fieller(&above, &below, r, confidence)),
            difference,
        }
    }
}

/// The believable values of mean(above) / mean(below) - 1.
///
/// With residuals e = above - ratio * below, whose mean is zero, and a shift s of the
/// ratio, the paired t test accepts while
///
/// ```text
///   s^2 mean(below)^2  <=  k (var(e) - 2 s cov(e, below) + s^2 var(below)),   k = t^2 / n
/// ```
///
/// a quadratic in s that is solved around the estimate, where nothing cancels.
fn fieller(above: &[f64], below: &[f64], ratio: f64, confidence: f64) -> Option<Interval> {
    let n = below.len();
    if n < 2 {
        return None;
    }
    let below_mean = average(below);
    let residuals: Vec<f64> = above.iter().zip(below).map(|(a, b)| a - ratio * b).collect();
    // The ratio is the same in every pair, so it is certain, whatever the spread of the pairs.
    if residuals.iter().all(|&residual| residual == 0.0) {
        return Some(Interval { low: ratio - 1.0, high: ratio - 1.0 });
    }
    let k = t_two_sided(confidence, n - 1).powi(2) / n as f64;
    let square = below_mean * below_mean - k * covariance(below, below);
    if square <= 0.0 {
        return None;
    }
    let linear = k * covariance(&residuals, below);
    let constant = k * covariance(&residuals, &residuals);
    let root = (linear * linear + square * constant).sqrt();
    let at = |shift: f64| ratio - 1.0 + shift / square;
    Some(Interval { low: at(-linear - root), high: at(-linear + root) })
}

fn average(x: &[f64]) -> f64 {
    if x.is_empty() { f64::NAN } else { x.iter().sum::<f64>() / x.len() as f64 }
}

/// Divided once, so that equal rates average to themselves.
fn inverse_average(x: &[f64]) -> f64 {
    x.len() as f64 / x.iter().sum::<f64>()
}

fn covariance(x: &[f64], y: &[f64]) -> f64 {
    let (mx, my) = (average(x), average(y));
    x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum::<f64>() / (x.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paired_t;
    use crate::testdata::{A, B, C, EF, close, zip};
    use proptest::prelude::*;

    #[test]
    fn pairs_that_are_equal_do_not_differ_however_they_scatter() {
        let pairs = [(1.0, 1.0), (90.0, 90.0), (0.0, 0.0)];
        let paired = Paired::new(&pairs, Direction::Lower, 0.95);
        assert_eq!(paired.interval, Some(Interval { low: 0.0, high: 0.0 }));
        assert_eq!(Paired::new(&[(1.0, 1.0), (90.0, 91.0)], Direction::Lower, 0.95).interval, None);
    }

    #[track_caller]
    fn check(paired: &Paired, change: f64, low: f64, high: f64) {
        close(paired.change.unwrap(), change, 1e-9);
        close(paired.interval.unwrap().low, low, 1e-8);
        close(paired.interval.unwrap().high, high, 1e-8);
    }

    #[test]
    fn intervals_agree_with_inverting_the_paired_t_test() {
        // Found with scipy by solving |t(value - r * base)| = t_0.975 for r on either side.
        let lower = |pairs: &[(f64, f64)]| Paired::new(pairs, Direction::Lower, 0.95);
        check(&lower(&zip(&A, &B)), -0.08484312859036669, -0.09634039072773315, -0.07316954400074338);
        check(&lower(&zip(&A, &C)), 0.0008837825894829621, -0.006608227609512407, 0.00855576539038716);
        check(&lower(&EF), -0.2450930817610062, -0.4708091477231049, -0.06072330243323598);
        let at_90 = Paired::new(&zip(&A, &B), Direction::Lower, 0.90);
        check(&at_90, -0.08484312859036669, -0.09417244485420684, -0.07539805078402362);
    }

    #[test]
    fn rates_are_compared_by_their_harmonic_means() {
        let paired = Paired::new(&zip(&A, &B), Direction::Higher, 0.95);
        assert_eq!(paired.mean, Mean::Harmonic);
        close(paired.base, 22.60997845600798, 1e-12);
        close(paired.value, 20.692813909177275, 1e-12);
        check(&paired, -0.08479285155272986, -0.09658507703525021, -0.07287456817886007);
    }

    #[test]
    fn a_rate_of_zero_falls_back_on_the_arithmetic_mean() {
        let paired = Paired::new(&[(10.0, 0.0), (12.0, 11.0)], Direction::Higher, 0.95);
        assert_eq!((paired.mean, paired.base, paired.value), (Mean::Arithmetic, 11.0, 5.5));
    }

    #[test]
    fn runs_without_noise_have_an_interval_of_no_width() {
        let paired = Paired::new(&[(200.0, 150.0); 4], Direction::Lower, 0.95);
        assert_eq!(paired.change, Some(-0.25));
        assert_eq!(paired.interval, Some(Interval { low: -0.25, high: -0.25 }));
    }

    #[test]
    fn without_a_baseline_only_the_difference_is_left() {
        let zero = Paired::new(&[(0.0, 5.0), (0.0, 7.0), (0.0, 6.0)], Direction::Lower, 0.95);
        assert_eq!((zero.change, zero.interval), (None, None));
        assert_eq!(zero.difference.unwrap().value, 6.0);
        // A baseline that cannot be distinguished from zero: the change exists, its interval does not.
        let noisy = Paired::new(&[(-3.0, 5.0), (4.0, 7.0), (0.5, 6.0)], Direction::Lower, 0.95);
        assert!(noisy.change.is_some() && noisy.interval.is_none());
        let lone = Paired::new(&[(2.0, 1.0)], Direction::Lower, 0.95);
        assert_eq!((lone.change, lone.interval, lone.difference), (Some(-0.5), None, None));
        let none = Paired::new(&[], Direction::Lower, 0.95);
        assert!(none.base.is_nan() && none.interval.is_none());
    }

    proptest! {
        #[test]
        fn the_interval_leaves_out_zero_exactly_when_the_paired_t_test_is_significant(
            pairs in prop::collection::vec((50.0..150.0, 50.0..150.0), 2..12)
        ) {
            let p = paired_t(&pairs);
            prop_assume!((p - 0.05).abs() > 1e-6);
            if let Some(interval) = Paired::new(&pairs, Direction::Lower, 0.95).interval {
                prop_assert_eq!(!interval.contains(0.0), p < 0.05);
            }
        }

        #[test]
        fn swapping_the_sides_inverts_the_interval(
            pairs in prop::collection::vec((90.0..110.0, 90.0..110.0), 4..12)
        ) {
            let swapped: Vec<(f64, f64)> = pairs.iter().map(|&(b, v)| (v, b)).collect();
            let there = Paired::new(&pairs, Direction::Lower, 0.95).interval.unwrap();
            let back = Paired::new(&swapped, Direction::Lower, 0.95).interval.unwrap();
            close(1.0 / (1.0 + back.high), 1.0 + there.low, 1e-9);
            close(1.0 / (1.0 + back.low), 1.0 + there.high, 1e-9);
        }
    }
}
