//! Intervals by resampling.
//!
//! For statistics without a formula, and for samples too skewed for one: draw as many samples as there were, with
//! replacement, compute the statistic, repeat. For few samples the plain percentiles of the results are too narrow and
//! biased. The bias-corrected and accelerated form (BCa, Efron 1987) corrects for the median bias and for how fast the
//! spread changes with the value, which is estimated by leaving out one sample at a time.

use crate::{Estimate, Interval, Rng, normal_quantile, normal_sf};

/// How to resample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// How many sets to draw.
    pub resamples: usize,
    /// Confidence of the interval, between 0 and 1.
    pub confidence: f64,
    /// The same seed draws the same sets.
    pub seed: u64,
}

impl Bootstrap {
    /// 2000 sets at 95 %.
    pub fn new(seed: u64) -> Bootstrap {
        Bootstrap { resamples: 2000, confidence: 0.95, seed }
    }

    /// The BCa interval of `statistic`.
    ///
    /// `sizes` are the numbers of samples of each independent group: one group for
    /// paired data, where an index draws a whole pair, two for unpaired. The statistic
    /// gets the drawn indices, one list per group. `None` for a group of fewer than two,
    /// and when the statistic is not a number on some draw.
    pub fn interval(&self, sizes: &[usize], statistic: impl Fn(&[Vec<usize>]) -> f64) -> Option<Estimate> {
        if sizes.iter().any(|&n| n < 2) {
            return None;
        }
        let all: Vec<Vec<usize>> = sizes.iter().map(|&n| (0..n).collect()).collect();
        let value = statistic(&all);
        let mut drawn = self.draw(sizes, &statistic);
        if !value.is_finite() || drawn.iter().any(|x| !x.is_finite()) {
            return None;
        }
        drawn.sort_by(f64::total_cmp);
        let (first, last) = (drawn[0], drawn[drawn.len() - 1]);
        if first == last {
            return Some(Estimate { value, interval: Interval { low: first, high: last } });
        }

        let below = drawn.partition_point(|&x| x < value);
        let not_above = drawn.partition_point(|&x| x <= value);
        // Ties count half; the clamp keeps an estimate at the very edge finite.
        let share = (below + not_above) as f64 / (2 * drawn.len()) as f64;
        let edge = 0.5 / drawn.len() as f64;
        let bias = normal_quantile(share.clamp(edge, 1.0 - edge));
        let acceleration = acceleration(&all, &statistic);
        let corrected = |p: f64| {
            let z = bias + normal_quantile(p);
            1.0 - normal_sf(bias + z / (1.0 - acceleration * z))
        };
        let tail = 0.5 * (1.0 - self.confidence);
        let interval = Interval {
            low: quantile(&drawn, corrected(tail)),
            high: quantile(&drawn, corrected(1.0 - tail)),
        };
        Some(Estimate { value, interval })
    }

    fn draw(&self, sizes: &[usize], statistic: impl Fn(&[Vec<usize>]) -> f64) -> Vec<f64> {
        assert!(self.resamples > 0, "no resamples");
        let mut rng = Rng::new(self.seed, "bootstrap");
        let mut draw = || {
            let indices: Vec<Vec<usize>> =
                sizes.iter().map(|&n| (0..n).map(|_| rng.below(n)).collect()).collect();
            statistic(&indices)
        };
        (0..self.resamples).map(|_| draw()).collect()
    }
}

/// Skewness of the jackknife values, over six, as the estimate's spread accelerates.
fn acceleration(all: &[Vec<usize>], statistic: impl Fn(&[Vec<usize>]) -> f64) -> f64 {
    let (mut cubes, mut squares) = (0.0, 0.0);
    for group in 0..all.len() {
        let n = all[group].len();
        let without: Vec<f64> = (0..n)
            .map(|left_out| {
                let mut indices = all.to_vec();
                indices[group].remove(left_out);
                statistic(&indices)
            })
            .collect();
        let mean = without.iter().sum::<f64>() / n as f64;
        let influence = without.iter().map(|x| (mean - x) * (n - 1) as f64 / n as f64);
        for u in influence {
            cubes += u * u * u;
            squares += u * u;
        }
    }
    if squares > 0.0 { cubes / (6.0 * squares * squares.sqrt()) } else { 0.0 }
}

/// The `p` quantile of sorted values, interpolated between neighbours.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = p.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let low = at.floor() as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (sorted[high] - sorted[low]) * (at - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{A, B, D, X, close};

    fn mean(values: &[f64], drawn: &[usize]) -> f64 {
        drawn.iter().map(|&i| values[i]).sum::<f64>() / drawn.len() as f64
    }

    /// scipy.stats.bootstrap(method="BCa") with 200,000 draws; ours are fewer and different.
    #[track_caller]
    fn check(estimate: Option<Estimate>, low: f64, high: f64) {
        let interval = estimate.unwrap().interval;
        close(interval.low, low, 0.02);
        close(interval.high, high, 0.02);
    }

    #[test]
    fn bca_intervals_agree_with_scipy() {
        let bootstrap = Bootstrap { resamples: 20_000, ..Bootstrap::new(1) };
        check(bootstrap.interval(&[X.len()], |d| mean(&X, &d[0])), 1.8333333333333333, 6.066666666666666);
        let ratio = bootstrap.interval(&[A.len()], |d| mean(&B, &d[0]) / mean(&A, &d[0]));
        check(ratio, 0.9051878354203937, 0.9248220640569396);
        let two = bootstrap.interval(&[X.len(), D.len()], |d| mean(&D, &d[1]) - mean(&X, &d[0]));
        check(two, 17.1, 39.30833333333334);
    }

    #[test]
    fn the_seed_decides_the_draws() {
        let with_seed = |seed| Bootstrap::new(seed).interval(&[X.len()], |d| mean(&X, &d[0])).unwrap();
        assert_eq!(with_seed(1), with_seed(1));
        assert_ne!(with_seed(1), with_seed(2));
    }

    #[test]
    fn what_cannot_be_drawn_has_no_interval() {
        let bootstrap = Bootstrap::new(1);
        assert_eq!(bootstrap.interval(&[1], |d| mean(&X, &d[0])), None);
        assert_eq!(bootstrap.interval(&[5, 1], |_| 0.0), None);
        assert_eq!(bootstrap.interval(&[5], |_| f64::NAN), None);
        let constant = bootstrap.interval(&[5], |_| 3.0).unwrap();
        assert_eq!(constant.interval, Interval { low: 3.0, high: 3.0 });
    }
}
