//! The sub-selection interval that some mmtests tables use.
//!
//! After Kalibera, Bulej and Tuma: samples within one iteration (one boot, one run)
//! resemble each other, so an interval must know both the spread inside iterations and
//! the spread between them. Per iteration, many random subsets of 80 % of its samples
//! are drawn with replacement; the median of their means stands for the iteration's
//! value, the median of their variances for its inner spread. mmtests draws from an
//! unseeded generator, so its table changes from print to print; ours repeats.

use crate::{Direction, Estimate, Interval, Rng, Summary, normal_quantile};

/// How many subsets are drawn per iteration.
const SELECTIONS: usize = 1000;

/// The mean over `iterations` with its sub-selection interval at level `alpha`.
///
/// Iterations too short to draw from (80 % of one sample is none) are pooled into one, which is what a lab
/// with one number per run has. `None` when even that is too short, or when a harmonic mean does not exist.
pub fn submean(iterations: &[&[f64]], direction: Direction, alpha: f64, seed: u64) -> Option<Estimate> {
    let pooled: Vec<f64>;
    let pooled_slice: [&[f64]; 1];
    let mut iterations = iterations;
    if iterations.iter().any(|x| selected(x) == 0) {
        pooled = iterations.concat();
        pooled_slice = [&pooled];
        iterations = &pooled_slice;
    }
    if iterations.is_empty() || iterations.iter().any(|x| selected(x) == 0) {
        return None;
    }

    let mut rng = Rng::new(seed, "submean");
    let (mut means, mut variances, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for samples in iterations {
        let size = selected(samples);
        let mut subset = || -> Vec<f64> { (0..size).map(|_| samples[rng.below(samples.len())]).collect() };
        means.push(median((0..SELECTIONS).map(|_| Summary::new(subset(), direction).mean())));
        variances.push(median((0..SELECTIONS).map(|_| population_variance(&subset()))));
        sizes.push(size as f64);
    }
    let nr_iterations = means.len() as f64;
    let mean = means.iter().sum::<f64>() / nr_iterations;
    if mean.is_nan() {
        return None;
    }
    let inside = variances.iter().sum::<f64>() / nr_iterations;
    let mut between = 0.0;
    if means.len() > 1 {
        between = means.iter().zip(&sizes).map(|(m, size)| (m - mean) * (m - mean) * size).sum::<f64>();
        between /= nr_iterations - 1.0;
    }
    let half = normal_quantile(1.0 - alpha / 2.0) * ((between + inside) / sizes.iter().sum::<f64>()).sqrt();
    Some(Estimate { value: mean, interval: Interval::around(mean, half) })
}

/// How many samples a subset has: 80 %, rounded down.
fn selected(samples: &[f64]) -> usize {
    samples.len() * 4 / 5
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { 0.5 * (values[middle - 1] + values[middle]) }
}

fn population_variance(x: &[f64]) -> f64 {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{A, B, C, D, X, close};

    #[test]
    fn intervals_agree_with_the_published_procedure() {
        // The procedure written with numpy, 20,000 subsets: (iterations, mean, half width).
        let cases: [(&[&[f64]], Direction, f64, f64); 4] = [
            (&[&A, &B], Direction::Lower, 21.65625, 1.8967284216578963),
            (&[&A], Direction::Lower, 22.6125, 0.4361160725310572),
            (&[&A, &B, &C, &D], Direction::Lower, 23.428125, 3.4010967193486463),
            (&[&X], Direction::Higher, 1.4002373714654723, 2.203727626306478),
        ];
        for (iterations, direction, mean, half) in cases {
            let found = submean(iterations, direction, 0.05, 1).unwrap();
            close(found.value, mean, 0.05);
            close(found.interval.high - found.value, half, 0.05);
        }
    }

    #[test]
    fn the_seed_decides_the_subsets() {
        let with_seed = |seed| submean(&[&A, &B], Direction::Lower, 0.05, seed);
        assert_eq!(with_seed(4), with_seed(4));
        assert_ne!(with_seed(4), with_seed(5));
    }

    #[test]
    fn iterations_of_one_sample_are_taken_together() {
        let singles: Vec<&[f64]> = A.chunks(1).collect();
        assert_eq!(submean(&singles, Direction::Lower, 0.05, 1), submean(&[&A], Direction::Lower, 0.05, 1));
        assert_eq!(submean(&[&[1.0]], Direction::Lower, 0.05, 1), None);
        assert_eq!(submean(&[], Direction::Lower, 0.05, 1), None);
        assert_eq!(submean(&[&[0.0, 0.0]], Direction::Higher, 0.05, 1), None);
    }
}
