//! A number and its uncertainty.

use std::fmt;

use crate::{Moments, t_quantile};

/// A closed range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// `center` give or take `half`.
    pub fn around(center: f64, half: f64) -> Interval {
        Interval { low: center - half, high: center + half }
    }

    /// Whether `x` lies inside or on an end.
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    /// Whether the whole of it lies inside `other`.
    pub fn within(&self, other: Interval) -> bool {
        other.contains(self.low) && other.contains(self.high)
    }

    /// Both ends multiplied by a positive `factor`.
    pub fn scaled(&self, factor: f64) -> Interval {
        Interval { low: self.low * factor, high: self.high * factor }
    }
}

/// With a precision, as `[-9.9, -7.5]`: both ends carry their sign.
impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let precision = f.precision().unwrap_or(1);
        write!(f, "[{:+.precision$}, {:+.precision$}]", self.low, self.high)
    }
}

/// A value with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The best guess.
    pub value: f64,
    /// The range of the true value, at the requested confidence.
    pub interval: Interval,
}

/// The mean with its t interval; `None` for fewer than two values.
///
/// Exact for normal samples; for others good enough from some ten values on, unless a
/// few outliers carry the mean, when [`crate::Bootstrap`] is the better choice.
pub fn mean_t(values: &[f64], confidence: f64) -> Option<Estimate> {
    if values.len() < 2 {
        return None;
    }
    let moments: Moments = values.iter().copied().collect();
    let half = t_two_sided(confidence, values.len() - 1) * moments.stderr();
    Some(Estimate { value: moments.mean(), interval: Interval::around(moments.mean(), half) })
}

/// How many standard errors a two-sided t interval reaches to either side.
pub(crate) fn t_two_sided(confidence: f64, df: usize) -> f64 {
    assert!(0.0 < confidence && confidence < 1.0, "confidence {confidence}");
    t_quantile(0.5 + 0.5 * confidence, df as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::{A, D, close};

    #[test]
    fn t_intervals_agree_with_scipy() {
        // scipy.stats.t.interval(0.95, n - 1, mean, sem)
        for (values, low, high) in [
            (&A[..], 22.118521201815042, 23.141478798184956),
            (&D[..], 12.318208371383427, 45.68179162861657),
        ] {
            let estimate = mean_t(values, 0.95).unwrap();
            close(estimate.interval.low, low, 1e-10);
            close(estimate.interval.high, high, 1e-10);
        }
        assert_eq!(mean_t(&[1.0], 0.95), None);
    }

    #[test]
    fn an_interval_prints_its_signs() {
        let interval = Interval { low: -0.9, high: 0.7 };
        assert_eq!(format!("{interval}"), "[-0.9, +0.7]");
        assert_eq!(format!("{:.2}", interval.scaled(10.0)), "[-9.00, +7.00]");
    }
}
