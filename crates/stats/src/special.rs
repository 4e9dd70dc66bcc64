//! Tails and quantiles of the normal and of Student's t distribution.
//!
//! Written here rather than taken from a statistics crate because those call the C
//! library's `ln` and `exp`, whose last bit differs between hosts. Quantiles are found by
//! bisection on the tail: slower than a rational approximation and exact to the last
//! few bits, which suits tables of a few hundred cells.

use libm::{erfc, exp, lgamma, log, log1p};

/// P(Z > z) for a standard normal Z.
pub fn normal_sf(z: f64) -> f64 {
    0.5 * erfc(z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The z with P(Z <= z) = `p`; infinite at 0 and 1.
pub fn normal_quantile(p: f64) -> f64 {
    assert!((0.0..=1.0).contains(&p), "{p} is not a probability");
    quantile(p, normal_sf)
}

/// P(T > t) for Student's t with `df` degrees of freedom, which need not be whole.
pub fn t_sf(t: f64, df: f64) -> f64 {
    assert!(df > 0.0, "{df} degrees of freedom");
    if t.is_nan() {
        return f64::NAN;
    }
    let tail = if t.is_infinite() { 0.0 } else { 0.5 * incomplete_beta(0.5 * df, 0.5, df / (df + t * t)) };
    if t >= 0.0 { tail } else { 1.0 - tail }
}

/// The t with P(T <= t) = `p`; infinite at 0 and 1.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    assert!((0.0..=1.0).contains(&p), "{p} is not a probability");
    quantile(p, |t| t_sf(t, df))
}

/// Quantile of a distribution symmetric about zero, given its upper tail.
fn quantile(p: f64, sf: impl Fn(f64) -> f64) -> f64 {
    if p < 0.5 { -upper(p, sf) } else { upper(1.0 - p, sf) }
}

/// The x >= 0 whose upper tail is `tail`, at most one half.
fn upper(tail: f64, sf: impl Fn(f64) -> f64) -> f64 {
    if tail == 0.0 {
        return f64::INFINITY;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while sf(high) > tail {
        low = high;
        high *= 2.0;
    }
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if sf(middle) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The regularised incomplete beta function I_x(a, b).
///
/// The continued fraction converges quickly below the mean of the distribution; above
/// it the symmetry I_x(a, b) = 1 - I_{1-x}(b, a) is used.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let ln_front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x);
    let front = exp(ln_front);
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            step = d * c;
            fraction *= step;
        }
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testdata::close;

    // Expected values: scipy 1.17.1, scipy.stats.norm and scipy.stats.t.

    #[test]
    fn normal_tails_agree_with_scipy() {
        for (z, tail) in [
            (-3.0, 0.9986501019683699),
            (0.0, 0.5),
            (0.5, 0.3085375387259869),
            (1.0, 0.15865525393145707),
            (3.0, 0.0013498980316300933),
            (6.0, 9.865876450376946e-10),
            (10.0, 7.61985302416047e-24),
            (30.0, 4.906713927147908e-198),
        ] {
            close(normal_sf(z), tail, 1e-12);
        }
    }

    #[test]
    fn normal_quantiles_agree_with_scipy() {
        for (p, z) in [
            (1e-10, -6.361340902404056),
            (0.001, -3.090232306167813),
            (0.3, -0.5244005127080409),
            (0.8413447460685429, 1.0),
            (0.95, 1.6448536269514722),
            (0.975, 1.959963984540054),
            (0.9999999, 5.199337582290661),
        ] {
            close(normal_quantile(p), z, 1e-9);
        }
        assert!(normal_quantile(0.5).abs() < 1e-15);
        assert_eq!(normal_quantile(1.0), f64::INFINITY);
        assert_eq!(normal_quantile(0.0), f64::NEG_INFINITY);
    }

    #[test]
    fn t_tails_agree_with_scipy() {
        for (t, df, tail) in [
            (0.0, 5.0, 0.5),
            (1.0, 1.0, 0.25),
            (-1.0, 1.0, 0.75),
            (2.0, 3.0, 0.06966298427942152),
            (2.0, 3.7, 0.06090860095261699),
            (1.7341, 18.0, 0.049996699905505586),
            (5.0, 18.0, 4.642071278688405e-05),
            (10.0, 2.0, 0.004926228511662845),
            (40.0, 30.0, 6.863022597203209e-28),
            (3.0, 998.0, 0.0013834220060167876),
            (1.96, 1e6, 0.024998033792634926),
            (0.01, 0.5, 0.49730337181805234),
        ] {
            close(t_sf(t, df), tail, 1e-9);
        }
        assert_eq!((t_sf(f64::INFINITY, 3.0), t_sf(f64::NEG_INFINITY, 3.0)), (0.0, 1.0));
    }

    #[test]
    fn t_quantiles_agree_with_scipy() {
        for (p, df, t) in [
            (0.975, 1.0, 12.706204736174694),
            (0.975, 2.0, 4.302652729749462),
            (0.975, 9.0, 2.262157162798205),
            (0.95, 18.0, 1.7340636066175388),
            (0.025, 19.0, -2.09302405440831),
            (0.995, 29.0, 2.756385903670605),
            (0.6, 4.5, 0.2687518355421751),
            (0.9999, 7.0, 7.063432828157639),
            (0.975, 99999.0, 1.9599877077718442),
        ] {
            close(t_quantile(p, df), t, 1e-9);
        }
    }
}
