//! Samples values: at random, or as a Latin hypercube, each only from the index of the sample.
//!
//! In a Latin hypercube of `n` samples each axis is cut into `n` strips, and each strip is used once. The
//! assignment of strips to samples is a permutation; a Feistel network computes it one index at a time, so that no
//! memory grows with `n`.

use schedlab_stats::Rng;

use crate::axis::{Axis, Spread};
use crate::value::Value;

/// The position of a sample along an axis, in `[0, 1)`.
pub(crate) fn place(seed: u64, axis: &Axis, nth: u64, draws: u64, latin: bool) -> f64 {
    let mut rng = Rng::new(seed, &format!("{} {nth}", axis.path));
    let within = (rng.bits() >> 11) as f64 / (1u64 << 53) as f64;
    if !latin {
        return within;
    }
    let strip = permuted(Rng::new(seed, &axis.path).bits(), nth, draws);
    (strip as f64 + within) / draws as f64
}

/// The value at a position of an axis.
pub(crate) fn value(axis: &Axis, place: f64) -> Value {
    match &axis.spread {
        Spread::List(values) => {
            values[((place * values.len() as f64) as usize).min(values.len() - 1)].clone()
        }
        Spread::Between { low, high, whole, log } => {
            let to = if *whole { high + 1.0 } else { *high };
            let at = if *log { low * libm_pow(to / low, place) } else { low + (to - low) * place };
            match whole {
                true => Value::Int((at.floor() as i64).min(*high as i64)),
                // Six digits are enough for any parameter, and the same on every host.
                false => Value::Float(format!("{at:.6e}").parse().unwrap_or(at)),
            }
        }
    }
}

/// Powers by squaring and roots, whose last bits do not depend on a C library: IEEE 754 rounds both exactly.
fn libm_pow(base: f64, exponent: f64) -> f64 {
    let (mut result, mut root, mut rest) = (1.0, base, exponent);
    for _ in 0..52 {
        root = root.sqrt();
        rest *= 2.0;
        if rest >= 1.0 {
            rest -= 1.0;
            result *= root;
        }
    }
    result
}

/// The position of `index` in a permutation of `0..n`.
fn permuted(key: u64, index: u64, n: u64) -> u64 {
    let half = (64 - (n - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half) - 1;
    let mut at = index;
    // The network permutes a power of four that is at least n; a value outside n is permuted again.
    loop {
        let (mut left, mut right) = (at >> half, at & mask);
        for round in 0..6u64 {
            let mixed = Rng::new(key ^ (round << 40) ^ right, "round").bits() & mask;
            (left, right) = (right, left ^ mixed);
        }
        at = left << half | right;
        if at < n {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_has_each_index_once() {
        for n in [1, 2, 3, 10, 64, 65, 1000] {
            let mut seen: Vec<u64> = (0..n).map(|index| permuted(7, index, n)).collect();
            assert!(n < 10 || seen.windows(2).any(|pair| pair[1] != pair[0] + 1));
            seen.sort_unstable();
            assert_eq!(seen, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_latin_hypercube_draws_each_strip_once_and_random_does_not() {
        let axis = Axis::parse("a=0.0..1.0").unwrap();
        let strips = |latin| {
            let mut strips: Vec<u64> =
                (0..50).map(|nth| (place(3, &axis, nth, 50, latin) * 50.0) as u64).collect();
            strips.sort_unstable();
            strips
        };
        assert_eq!(strips(true), (0..50).collect::<Vec<_>>());
        assert_ne!(strips(false), (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn draws_stay_between_their_bounds() {
        for (text, low, high) in
            [("a=1..1000:log", 1.0, 1000.0), ("a=0.5..2.0", 0.5, 2.0), ("a=3..5", 3.0, 5.0)]
        {
            let axis = Axis::parse(text).unwrap();
            let mut ends = [f64::MAX, f64::MIN];
            for nth in 0..400 {
                let at = match value(&axis, place(1, &axis, nth, 400, true)) {
                    Value::Int(int) => int as f64,
                    Value::Float(float) => float,
                    other => panic!("{other:?}"),
                };
                assert!((low..=high).contains(&at), "{text}: {at}");
                ends = [ends[0].min(at), ends[1].max(at)];
            }
            assert!(ends[0] < low * 1.1 && ends[1] > high * 0.9, "{text}: {ends:?}");
        }
        assert!((libm_pow(1000.0, 0.5) - 1000f64.sqrt()).abs() < 1e-9);
    }
}
