//! Caches that several CPUs fill: how much of a task's data fits in its share (equation E12).
//!
//! The tasks that run on a cache divide it in proportion to their data. Data that does not fit is fetched
//! again and again. How much that is depends on how the data is used:
//!
//! ```text
//!   passed over in order   h = exp(-(1 - h) / x)     a fixed point: each miss pushes out what is wanted later
//!   touched at random      h = x
//!   a program's own mix    1 - h = exp(-reuse x)     near things more often than far ones
//! ```
//!
//! h is the share of touches that hit, x the share of the data that fits. So there is no cliff when a cache is
//! too small for two tasks.
//!
//! Left out: associativity, prefetching into a cache, lines that two tasks share.

use crate::cache::CachePrices;
use crate::fixed::{ONE, Rate, decay};

/// h of passes in order, of 65536, for x in sixteenths.
const SWEPT: [u64; 17] = [
    0, 0, 22, 325, 1_299, 3_109, 5_755, 9_180, 13_316, 18_097, 23_463, 29_365, 35_757, 42_601, 49_865,
    57_518, 65_536,
];

/// The share of touches that hit when data of `bytes` is passed over again and again in a cache's part of `part` bytes;
/// of 65536.
pub fn swept(part: u64, bytes: u64) -> u64 {
    if bytes <= part {
        return ONE;
    }
    let sixteenths = ((u128::from(part) << 20) / u128::from(bytes)) as u64;
    let (at, rest) = ((sixteenths >> 16) as usize, sixteenths & 0xffff);
    SWEPT[at] + (((SWEPT[at + 1] - SWEPT[at]) * rest) >> 16)
}

/// The same for data touched at random.
pub fn at_random(part: u64, bytes: u64) -> u64 {
    if bytes <= part { ONE } else { ((u128::from(part) << 16) / u128::from(bytes)) as u64 }
}

/// A cache as a task finds it.
#[derive(Clone, Copy, Debug)]
pub struct Crowd {
    /// Its size.
    pub bytes: u64,
    /// Bytes of data that all tasks on it use, this task included.
    pub wanted: u64,
}

impl Crowd {
    /// The part of a task that wants `footprint`.
    fn part(self, footprint: u64) -> u64 {
        (u128::from(self.bytes) * u128::from(footprint) / u128::from(self.wanted.max(1))) as u64
    }
}

impl CachePrices {
    /// Share of a program's touches that miss a part of a cache, of 65536.
    fn missed(&self, part: u64, footprint: u64) -> u64 {
        decay(part.saturating_mul(self.reuse_permille.get()) / 1000, footprint)
    }

    /// The speed that a program with this footprint loses by sharing its L2 and its LLC, as a rate. Its misses
    /// when alone are part of its work.
    pub fn crowding(&self, footprint: u64, l2: Crowd, llc: Crowd) -> Rate {
        if footprint == 0 {
            return Rate::FULL;
        }
        let stall = |l2_part: u64, llc_part: u64| {
            let missed = self.missed(l2_part, footprint);
            let beyond = (missed * self.missed(llc_part, footprint)) >> 16;
            missed * self.llc_ns.get() + beyond * self.local_ns.get().saturating_sub(self.llc_ns.get())
        };
        let alone = stall(l2.bytes, llc.bytes);
        let more = stall(l2.part(footprint), llc.part(footprint)).saturating_sub(alone);
        // The number of touches of its lines in the time in which a cache is filled, and the misses in
        // flight.
        let lines = footprint / 64;
        let lost =
            u128::from(more) * u128::from(lines) / u128::from(self.mlp.get() * self.fill_ns.get().max(1));
        Rate::of(ONE, ONE + lost.min(1 << 24) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_in_order_hit_as_the_fixed_point_says() {
        for (part, bytes) in [(1u64, 2u64), (3, 4), (7, 8), (1, 4), (5, 16)] {
            let h = swept(part, bytes) as f64 / 65536.0;
            let x = part as f64 / bytes as f64;
            let right = (-(1.0 - h) / x).exp();
            assert!((h - right).abs() < 0.02, "{part} of {bytes}: {h} and {right}");
        }
        assert_eq!([swept(4, 4), swept(9, 4), swept(0, 4)], [ONE, ONE, 0]);
        assert_eq!([at_random(1, 4), at_random(4, 1)], [ONE / 4, ONE]);
    }

    #[test]
    fn a_shared_cache_costs_by_degrees() {
        let prices = CachePrices::default();
        const MB: u64 = 1 << 20;
        let lost = |others: u64| {
            let l2 = Crowd { bytes: 4 * MB, wanted: (1 + others) * 2 * MB };
            let llc = Crowd { bytes: 64 * MB, wanted: (1 + others) * 2 * MB };
            1000 - prices.crowding(2 * MB, l2, llc).0 as u64 * 1000 / ONE
        };
        assert_eq!(lost(0), 0, "alone");
        let (one, two, three, seven) = (lost(1), lost(2), lost(3), lost(7));
        assert!(0 < one && one < 200, "both fit, with little to spare: {one}");
        assert!(one < two && two < three && three < seven && seven < 700, "{two} {three} {seven}");
    }
}
