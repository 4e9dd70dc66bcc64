//! Summary of a set of samples, by the formulas of mmtests.
//!
//! mmtests sorts all samples of one operation, best first, and everything else follows
//! from that order: sums run along it, percentiles count along it, and the "best 95 %"
//! is its beginning. Keeping it means that neither the order of runs nor the number of
//! threads that made them can change a digit.

use crate::Direction;

/// Samples in order of merit.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Invariant: finite, and sorted by `direction`, best first.
    best_first: Vec<f64>,
    direction: Direction,
}

impl Summary {
    /// Sorts the samples. Panics when one is not a finite number.
    pub fn new(samples: impl IntoIterator<Item = f64>, direction: Direction) -> Summary {
        let mut best_first: Vec<f64> = samples.into_iter().collect();
        for x in &best_first {
            assert!(x.is_finite(), "a sample is {x}");
        }
        match direction {
            Direction::Lower => best_first.sort_by(f64::total_cmp),
            Direction::Higher => best_first.sort_by(|a, b| b.total_cmp(a)),
        }
        Summary { best_first, direction }
    }

    /// How many samples.
    pub fn n(&self) -> usize {
        self.best_first.len()
    }

    /// Which direction is better.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The samples, best first.
    pub fn samples(&self) -> &[f64] {
        &self.best_first
    }

    /// The lowest sample, NaN when there is none.
    pub fn min(&self) -> f64 {
        self.best_first.iter().copied().min_by(f64::total_cmp).unwrap_or(f64::NAN)
    }

    /// The highest sample, NaN when there is none.
    pub fn max(&self) -> f64 {
        self.best_first.iter().copied().max_by(f64::total_cmp).unwrap_or(f64::NAN)
    }

    /// The arithmetic mean.
    pub fn amean(&self) -> f64 {
        amean(&self.best_first)
    }

    /// The harmonic mean, NaN unless every sample is positive.
    pub fn hmean(&self) -> f64 {
        hmean(&self.best_first)
    }

    /// The geometric mean, NaN unless every sample is positive.
    ///
    /// By logarithms, since the plain product of a hundred throughputs overflows.
    pub fn gmean(&self) -> f64 {
        if self.best_first.iter().any(|&x| x <= 0.0) {
            return f64::NAN;
        }
        libm::exp(amean(&self.best_first.iter().map(|&x| libm::log(x)).collect::<Vec<_>>()))
    }

    /// The mean that tables print: arithmetic for times, harmonic for rates.
    pub fn mean(&self) -> f64 {
        match self.direction {
            Direction::Lower => self.amean(),
            Direction::Higher => self.hmean(),
        }
    }

    /// The sample standard deviation around the arithmetic mean, NaN for n <= 1.
    pub fn stddev(&self) -> f64 {
        let (n, mean) = (self.n(), self.amean());
        if n <= 1 {
            return f64::NAN;
        }
        let squares: f64 = self.best_first.iter().map(|x| (x - mean) * (x - mean)).sum();
        (squares / (n - 1) as f64).sqrt()
    }

    /// The spread around the harmonic mean H: sqrt(sum((1/x - 1/H)^2) H^4 / n).
    ///
    /// It carries the variance of the reciprocals back to the scale of H, as the slope
    /// of 1/x at H does, and divides by n, not n - 1.
    pub fn hstddev(&self) -> f64 {
        let (n, mean) = (self.n(), self.hmean());
        if n <= 1 || mean.is_nan() {
            return f64::NAN;
        }
        let squares: f64 =
            self.best_first.iter().map(|x| (1.0 / x - 1.0 / mean) * (1.0 / x - 1.0 / mean)).sum();
        (squares / n as f64).sqrt() * mean * mean
    }

    /// The printed kind of mean over the best `percent` of the samples, at least one.
    pub fn best_mean(&self, percent: f64) -> f64 {
        let best = &self.best_first[..self.n().min(self.count(percent))];
        match self.direction {
            Direction::Lower => amean(best),
            Direction::Higher => hmean(best),
        }
    }

    /// The worst of the best `percent` of the samples, NaN when there is none.
    pub fn percentile(&self, percent: f64) -> f64 {
        self.best_first.get(self.count(percent) - 1).copied().unwrap_or(f64::NAN)
    }

    /// How many samples the best `percent` are, rounded down, at least one.
    fn count(&self, percent: f64) -> usize {
        assert!((0.0..=100.0).contains(&percent), "{percent} %");
        ((self.n() as f64 * percent / 100.0) as usize).max(1)
    }
}

fn amean(x: &[f64]) -> f64 {
    if x.is_empty() { f64::NAN } else { x.iter().sum::<f64>() / x.len() as f64 }
}

fn hmean(x: &[f64]) -> f64 {
    if x.is_empty() || x.iter().any(|&x| x <= 0.0) {
        return f64::NAN;
    }
    x.len() as f64 / x.iter().map(|x| 1.0 / x).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{A, D, X, close};

    #[test]
    fn means_and_deviations_agree_with_scipy() {
        // amean, hmean, gmean, stddev, hstddev: numpy and scipy.stats.hmean, gmean.
        let expected = [
            (&A[..], [22.63, 22.60997845600798, 22.619937364355383, 0.714998057495419, 0.6676983054821048]),
            (&D[..], [29.0, 25.148115467036433, 26.853950745022882, 13.435028842544403, 8.235857261770649]),
        ];
        for (samples, expected) in expected {
            let s = Summary::new(samples.iter().copied(), Direction::Lower);
            for (found, expected) in
                [s.amean(), s.hmean(), s.gmean(), s.stddev(), s.hstddev()].into_iter().zip(expected)
            {
                close(found, expected, 1e-12);
            }
        }
    }

    #[test]
    fn the_best_come_first() {
        let lower = Summary::new(X, Direction::Lower);
        let higher = Summary::new(X, Direction::Higher);
        assert_eq!((lower.min(), lower.max()), (0.4, 12.3));
        assert_eq!((higher.min(), higher.max()), (0.4, 12.3));
        // 95 % of 12 are 11: all but the worst.
        close(lower.best_mean(95.0), (38.8 - 12.3) / 11.0, 1e-12);
        assert!(higher.best_mean(95.0) > higher.mean());
        // The p-th percentile is the last of the best p %, and never less than the best.
        let percentiles = |s: &Summary| [0.0, 9.0, 50.0, 99.9, 100.0].map(|p| s.percentile(p));
        assert_eq!(percentiles(&lower), [0.4, 0.4, 1.8, 7.9, 12.3]);
        assert_eq!(percentiles(&higher), [12.3, 12.3, 2.2, 0.7, 0.4]);
    }

    #[test]
    fn the_printed_mean_follows_the_direction() {
        assert_eq!(Summary::new([2.0, 6.0], Direction::Lower).mean(), 4.0);
        assert_eq!(Summary::new([2.0, 6.0], Direction::Higher).mean(), 3.0);
    }

    #[test]
    fn what_is_not_defined_is_nan() {
        let none = Summary::new([], Direction::Lower);
        for x in
            [none.min(), none.max(), none.mean(), none.stddev(), none.best_mean(95.0), none.percentile(50.0)]
        {
            assert!(x.is_nan(), "{x}");
        }
        let one = Summary::new([3.0], Direction::Higher);
        assert_eq!((one.mean(), one.min(), one.best_mean(95.0)), (3.0, 3.0, 3.0));
        assert!(one.stddev().is_nan() && one.hstddev().is_nan());
        let zero = Summary::new([0.0, 3.0], Direction::Higher);
        assert!(zero.hmean().is_nan() && zero.gmean().is_nan() && zero.hstddev().is_nan());
    }

    #[test]
    fn the_geometric_mean_of_many_large_samples_does_not_overflow() {
        close(Summary::new([1e6; 200], Direction::Higher).gmean(), 1e6, 1e-9);
    }

    #[test]
    fn the_order_of_samples_changes_no_bit() {
        let mut reversed = X;
        reversed.reverse();
        assert_eq!(Summary::new(X, Direction::Lower), Summary::new(reversed, Direction::Lower));
    }

    #[test]
    #[should_panic(expected = "a sample is NaN")]
    fn a_sample_is_a_number() {
        Summary::new([1.0, f64::NAN], Direction::Lower);
    }
}
