//! Two-sample tests: each answers with the probability of a difference this large
//! when there is none.

use crate::{Direction, Moments, Summary, t_sf};

/// The test behind the stars of mmtests until December 2024.
///
/// It divides by the unpooled standard error, as Welch does, but takes the degrees of
/// freedom of the pooled test, which is too many when the variances differ. The means
/// are the printed ones, harmonic for rates, while the deviations are always the
/// plain ones. Without any spread, equal means are certain (1) and different ones
/// impossible (0).
pub fn t_2020(base: &Summary, value: &Summary) -> f64 {
    let squared_error = |s: &Summary| s.stddev() * s.stddev() / s.n() as f64;
    let error = (squared_error(base) + squared_error(value)).sqrt();
    let df = (base.n() + value.n()) as f64 - 2.0;
    t_p_value(base.mean() - value.mean(), error, df)
}

/// Welch's test: unequal variances, degrees of freedom by Satterthwaite.
///
/// Rates are compared by their reciprocals when all are positive, since it is their
/// harmonic means that are printed.
pub fn welch(base: &Summary, value: &Summary) -> f64 {
    let positive = |s: &Summary| s.samples().iter().all(|&x| x > 0.0);
    let invert = base.direction() == Direction::Higher && positive(base) && positive(value);
    let moments =
        |s: &Summary| -> Moments { s.samples().iter().map(|&x| if invert { 1.0 / x } else { x }).collect() };
    let (b, v) = (moments(base), moments(value));
    let (eb, ev) = (b.variance() / b.n() as f64, v.variance() / v.n() as f64);
    let df = (eb + ev) * (eb + ev) / (eb * eb / (b.n() as f64 - 1.0) + ev * ev / (v.n() as f64 - 1.0));
    t_p_value(b.mean() - v.mean(), (eb + ev).sqrt(), df)
}

/// The paired t test on (baseline, value); NaN for fewer than two pairs.
pub fn paired_t(pairs: &[(f64, f64)]) -> f64 {
    let differences: Moments = pairs.iter().map(|(b, v)| v - b).collect();
    t_p_value(differences.mean(), differences.stderr(), differences.n() as f64 - 1.0)
}

/// Two-sided; NaN when the difference or its error is unknown.
fn t_p_value(difference: f64, error: f64, df: f64) -> f64 {
    if difference.is_nan() || error.is_nan() {
        return f64::NAN;
    }
    if error == 0.0 {
        return if difference == 0.0 { 1.0 } else { 0.0 };
    }
    2.0 * t_sf((difference / error).abs(), df)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{A, B, C, D, EF, close, zip};

    fn summary(samples: &[f64], direction: Direction) -> Summary {
        Summary::new(samples.iter().copied(), direction)
    }

    #[test]
    fn two_sample_tests_agree_with_scipy() {
        // t-2020 by its formula with scipy.stats.t.sf, then ttest_ind(equal_var=False), first
        // by arithmetic means, then t-2020 by harmonic means and Welch on the reciprocals.
        for (a, b, expected) in [
            (
                &A[..],
                &B[..],
                [5.470516154963468e-06, 5.8563190128530444e-06, 5.574288489090033e-06, 4.509700904502821e-06],
            ),
            (&A, &C, [0.9476013562152974, 0.9476146774557455, 0.9359331057772916, 0.9355269439724003]),
            (&A, &D, [0.30868542419445655, 0.3489750936776264, 0.6798222347672676, 0.5312162216307273]),
            (&B, &D, [0.19116366455327258, 0.23984015920475552, 0.471802886228315, 0.2592260416207844]),
        ] {
            let mut found = Vec::new();
            for direction in [Direction::Lower, Direction::Higher] {
                let (a, b) = (summary(a, direction), summary(b, direction));
                found.extend([t_2020(&a, &b), welch(&a, &b)]);
            }
            for (found, expected) in found.into_iter().zip(expected) {
                close(found, expected, 1e-8);
            }
        }
    }

    #[test]
    fn the_paired_test_agrees_with_scipy() {
        close(paired_t(&zip(&A, &B)), 8.350762038521188e-08, 1e-8);
        close(paired_t(&zip(&A, &C)), 0.7976245209720988, 1e-8);
        close(paired_t(&EF), 0.01572972530692898, 1e-8);
    }

    #[test]
    fn without_spread_only_equality_is_possible() {
        let constant = |x| summary(&[x; 3], Direction::Lower);
        for test in [t_2020, welch] {
            assert_eq!(test(&constant(5.0), &constant(5.0)), 1.0);
            assert_eq!(test(&constant(5.0), &constant(6.0)), 0.0);
            assert!(test(&summary(&[5.0], Direction::Lower), &constant(5.0)).is_nan());
            assert!(test(&summary(&[], Direction::Lower), &constant(5.0)).is_nan());
        }
    }
}
