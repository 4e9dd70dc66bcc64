//! Mean and variance of a stream, in three numbers.
//!
//! Welford's update does not lose digits when the mean is large relative to the spread, as sums of squares
//! do. Two halves of a stream can be summed separately and merged; the result depends on which parts are
//! merged in which order, so callers merge in the order of their seeds or CPUs, never in the order in which
//! threads finish.

/// Count, mean and sum of squared distances from the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    n: u64,
    mean: f64,
    /// Sum of (x - mean)^2.
    m2: f64,
}

impl Moments {
    /// No values yet.
    pub const fn new() -> Moments {
        Moments { n: 0, mean: 0.0, m2: 0.0 }
    }

    /// Adds one value.
    pub fn push(&mut self, x: f64) {
        self.n += 1;
        let from_old = x - self.mean;
        self.mean += from_old / self.n as f64;
        self.m2 += from_old * (x - self.mean);
    }

    /// Adds all that `other` has seen, as if it had come after.
    pub fn merge(&mut self, other: &Moments) {
        if other.n == 0 {
            return;
        }
        if self.n == 0 {
            *self = *other;
            return;
        }
        let (n, m) = (self.n as f64, other.n as f64);
        let apart = other.mean - self.mean;
        self.mean += apart * m / (n + m);
        self.m2 += other.m2 + apart * apart * n * m / (n + m);
        self.n += other.n;
    }

    /// How many values.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Their mean, NaN when there are none.
    pub fn mean(&self) -> f64 {
        if self.n == 0 { f64::NAN } else { self.mean }
    }

    /// Their sample variance, NaN for fewer than two.
    pub fn variance(&self) -> f64 {
        if self.n < 2 { f64::NAN } else { self.m2 / (self.n - 1) as f64 }
    }

    /// The square root of the variance.
    pub fn stddev(&self) -> f64 {
        self.variance().sqrt()
    }

    /// The standard error of the mean.
    pub fn stderr(&self) -> f64 {
        self.stddev() / (self.n as f64).sqrt()
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Moments {
        let mut moments = Moments::new();
        values.into_iter().for_each(|x| moments.push(x));
        moments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_textbook_example() {
        let m: Moments = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().collect();
        assert_eq!((m.n(), m.mean()), (8, 5.0));
        assert!((m.variance() - 32.0 / 7.0).abs() < 1e-15);
    }

    #[test]
    fn a_large_mean_costs_no_digits() {
        // Sums of squares would be wrong in every digit here: 1e9^2 has no room for 1.
        let m: Moments = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0].into_iter().collect();
        assert_eq!(m.variance(), 30.0);
    }

    #[test]
    fn merged_parts_equal_the_whole() {
        let all: Vec<f64> = (0..1000u32).map(|i| f64::from(i * 7919 % 1013)).collect();
        let whole: Moments = all.iter().copied().collect();
        let mut merged = Moments::new();
        for part in all.chunks(17) {
            merged.merge(&part.iter().copied().collect());
        }
        assert_eq!(merged.n(), whole.n());
        assert!((merged.mean() - whole.mean()).abs() < 1e-9);
        assert!((merged.variance() / whole.variance() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn too_few_values_have_no_variance() {
        let one: Moments = [3.0].into_iter().collect();
        assert_eq!(one.mean(), 3.0);
        assert!(one.variance().is_nan() && Moments::new().mean().is_nan());
    }
}
