//! The logarithm behind exponential draws, in integers: the same bits on every host.
//!
//! A draw is by definition the result of 32 squarings ([`log2_by_squaring`]). Most are computed with a table and five
//! products ([`log2_near`]), ten times as fast: if the two could round differently, in one draw of 8,000, the squarings
//! decide.

/// 1 in 32-bit fixed point.
const ONE: u64 = 1 << 32;
/// ln 2 in 32-bit fixed point.
const LN_2: u64 = 2_977_044_472;

/// Bits behind the point of a mantissa.
const POINT: u32 = 62;
/// log2 e.
const LOG2_E: i64 = 6_653_256_548_922_161_246;
/// A bound of the error of [`log2_near`], much larger than the actual one: the series ends within 2^7 of the last bit,
/// and the table and each product are exact to a few.
const DOUBT: u64 = 1 << 16;

/// `-ln(u)` in 32-bit fixed point for `u = (bits + 1) / 2^64`.
///
/// With `u = m * 2^-k`, `1 <= m < 2`: `-ln u = k ln 2 - ln m`.
pub(crate) fn minus_ln(bits: u64) -> u64 {
    let Some(u) = bits.checked_add(1) else { return 0 };
    let zeros = u.leading_zeros();
    let mantissa = (u << zeros) >> 1;
    let near = log2_near(mantissa);
    let rest = near as u64 & ((1 << (POINT - 32)) - 1);
    let log2_fraction = if (DOUBT..(1 << (POINT - 32)) - DOUBT).contains(&rest) {
        (near >> (POINT - 32)) as u64
    } else {
        log2_by_squaring(mantissa, 32)
    };
    let minus_log2 = (u64::from(zeros) + 1) * ONE - log2_fraction;
    ((u128::from(minus_log2) * u128::from(LN_2)) >> 32) as u64
}

/// The first bits of `log2 m`, one for each squaring.
const fn log2_by_squaring(mut mantissa: u64, bits: u32) -> u64 {
    let mut log2 = 0;
    let mut bit = bits;
    while bit > 0 {
        bit -= 1;
        let square = mantissa as u128 * mantissa as u128;
        mantissa = (square >> POINT) as u64;
        if mantissa >> 63 == 1 {
            mantissa >>= 1;
            log2 |= 1 << bit;
        }
    }
    log2
}

/// Parts into which mantissas are cut.
const PARTS: usize = 256;

/// For the middle of each part, its inverse in 16 bits, and `-log2` of that inverse.
const MIDDLES: [(u64, i64); PARTS] = {
    let mut middles = [(0, 0); PARTS];
    let mut part = 0;
    while part < PARTS {
        let inverse = (1u64 << 25) / (2 * (PARTS + part) as u64 + 1);
        // The inverse is between 1/2 and 1: twice it is a mantissa.
        let log2 = log2_by_squaring(inverse << (POINT - 15), 60) << (POINT - 60);
        middles[part] = (inverse, (1 << POINT) - log2 as i64);
        part += 1;
    }
    middles
};

/// An approximation of `log2 m`: the value at the middle of its part, and a series for the rest, which is
/// below 1/500.
fn log2_near(mantissa: u64) -> i64 {
    const fn times(a: i64, b: i64) -> i64 {
        ((a as i128 * b as i128) >> POINT) as i64
    }
    const WHOLE: i64 = 1 << POINT;
    let (inverse, log2) = MIDDLES[(mantissa >> (POINT - 8)) as usize % PARTS];
    let r = ((u128::from(mantissa) * u128::from(inverse)) >> 16) as i64 - WHOLE;
    // ln (1 + r) = r - r^2/2 + r^3/3 - r^4/4 + r^5/5
    let sum = WHOLE / 4 - times(r, WHOLE / 5);
    let sum = WHOLE / 3 - times(r, sum);
    let sum = WHOLE / 2 - times(r, sum);
    let ln = times(r, WHOLE - times(r, sum));
    log2 + times(ln, LOG2_E)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mantissas at all edges, and many between.
    fn mantissas() -> impl Iterator<Item = u64> {
        let edges = (0..=62).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, u64::MAX << bit]);
        let parts =
            (0..PARTS as u64).flat_map(|part| [part << 54, (part << 54) + 1, (part << 54).wrapping_sub(1)]);
        let mut state = 1u64;
        let drawn = (0..400_000).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        });
        edges.chain(parts).chain(drawn).map(|bits| 1 << POINT | bits >> 2)
    }

    #[test]
    fn the_quick_way_is_as_near_as_it_says() {
        let off = mantissas().map(|mantissa| {
            let exact = log2_by_squaring(mantissa, 60) << (POINT - 60);
            log2_near(mantissa).abs_diff(exact as i64)
        });
        assert!(off.max().unwrap() < DOUBT / 64);
    }

    #[test]
    fn a_draw_is_what_squaring_gives() {
        for mantissa in mantissas() {
            for zeros in [0, 1, 17, 62] {
                let bits = ((mantissa << 1) >> zeros).wrapping_sub(1);
                let u = bits + 1;
                let zeros = u.leading_zeros();
                let slow = (u64::from(zeros) + 1) * ONE - log2_by_squaring((u << zeros) >> 1, 32);
                let slow = ((u128::from(slow) * u128::from(LN_2)) >> 32) as u64;
                assert_eq!(minus_ln(bits), slow, "{bits:#x}");
            }
        }
        assert_eq!(minus_ln(u64::MAX), 0);
    }
}
