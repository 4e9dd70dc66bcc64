//! Random spans of time, in integers.
//!
//! The bits come from outside (a named stream of the run), so a draw is the same
//! on every host: no floating point is involved.

use schedlab_units::Duration;

use crate::minus_ln::minus_ln;

/// A distribution of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dist {
    /// Always the same.
    Constant(Duration),
    /// Every length from `low` to `high` equally likely, both included.
    Uniform {
        /// The shortest.
        low: Duration,
        /// The longest.
        high: Duration,
    },
    /// Memoryless with this mean: arrivals at random.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// Mostly the same, but one in `one_in` is longer by a memoryless stall: devices.
    Stalls {
        /// All but the stalls.
        usual: Duration,
        /// Mean of what a stall adds.
        stall: Duration,
        /// One in how many stalls.
        one_in: u32,
    },
    /// Bell-shaped, cut off at zero and at six deviations.
    Normal {
        /// The mean.
        mean: Duration,
        /// The standard deviation.
        sd: Duration,
    },
}

/// One in 32-bit fixed point.
const ONE: u64 = 1 << 32;

impl Dist {
    /// The mean, exact except for the normal distribution's cut at zero.
    pub fn mean(&self) -> Duration {
        match *self {
            Dist::Constant(span) => span,
            Dist::Uniform { low, high } => Duration(low.0 + (high.0 - low.0) / 2),
            Dist::Stalls { usual, stall, one_in } => Duration(usual.0 + stall.0 / u64::from(one_in.max(1))),
            Dist::Exponential { mean } | Dist::Normal { mean, .. } => mean,
        }
    }

    /// Draws a span; `bits` gives 64 random bits at each call.
    pub fn draw(&self, mut bits: impl FnMut() -> u64) -> Duration {
        match *self {
            Dist::Constant(span) => span,
            Dist::Uniform { low, high } => {
                let width = u128::from(high.0 - low.0) + 1;
                Duration(low.0 + ((u128::from(bits()) * width) >> 64) as u64)
            }
            Dist::Exponential { mean } => exponential(mean, bits()),
            Dist::Stalls { usual, stall, one_in } => {
                // Two draws each time, so that a stall shifts nothing that follows.
                let (which, length) = (bits(), bits());
                let stalls = (u128::from(which) * u128::from(one_in.max(1))) >> 64 == 0;
                if stalls { usual + exponential(stall, length) } else { usual }
            }
            Dist::Normal { mean, sd } => {
                // The sum of twelve uniform numbers in [0,1) has mean 6 and deviation 1.
                let sum: u64 = (0..12).map(|_| bits() >> 32).sum();
                let shift = ((i128::from(sum) - 6 * i128::from(ONE)) * i128::from(sd.0)) >> 32;
                Duration((i128::from(mean.0) + shift).clamp(0, i128::from(u64::MAX)) as u64)
            }
        }
    }
}

/// A memoryless span of this mean, from 64 random bits: [`Dist::Exponential`].
#[inline]
pub fn exponential(mean: Duration, bits: u64) -> Duration {
    Duration(((u128::from(mean.0) * u128::from(minus_ln(bits))) >> 32) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator good enough to check shapes (splitmix64).
    fn bits() -> impl FnMut() -> u64 {
        let mut state = 1u64;
        move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }
    }

    #[test]
    fn minus_ln_agrees_with_the_formula() {
        for u in [1u64, 2, 3, 1 << 20, 1 << 62, 3 << 62, (1 << 63) + 12345, u64::MAX - 1, u64::MAX] {
            let exact = -((u as f64 + 1.0) / 18_446_744_073_709_551_616.0).ln() * ONE as f64;
            let ours = minus_ln(u) as f64;
            assert!((exact - ours).abs() <= 64.0, "{u}: {exact} and {ours}");
        }
    }

    #[test]
    fn each_form_has_its_mean_and_spread() {
        let us = Duration::micros;
        let cases = [
            (Dist::Constant(us(50)), 50_000.0, 0.0),
            (Dist::Uniform { low: us(20), high: us(80) }, 50_000.0, 17_320.5),
            (Dist::Exponential { mean: us(50) }, 50_000.0, 50_000.0),
            (Dist::Normal { mean: us(50), sd: us(5) }, 50_000.0, 5_000.0),
            // Variance of the stalls: 2 * 100^2 / 5 - 20^2 = 60^2.
            (Dist::Stalls { usual: us(30), stall: us(100), one_in: 5 }, 50_000.0, 60_000.0),
        ];
        for (dist, mean, sd) in cases {
            let mut bits = bits();
            let draws: Vec<f64> = (0..100_000).map(|_| dist.draw(&mut bits).0 as f64).collect();
            let average = draws.iter().sum::<f64>() / draws.len() as f64;
            let spread =
                (draws.iter().map(|d| (d - average).powi(2)).sum::<f64>() / draws.len() as f64).sqrt();
            assert!((average - mean).abs() <= mean * 0.01, "{dist:?}: mean {average}");
            assert!((spread - sd).abs() <= mean * 0.015, "{dist:?}: deviation {spread}");
            assert_eq!(dist.mean(), us(50));
        }
    }

    #[test]
    fn a_normal_draw_is_never_below_zero() {
        let dist = Dist::Normal { mean: Duration(1), sd: Duration(1_000) };
        assert_eq!(dist.draw(|| 0), Duration::ZERO);
    }
}
