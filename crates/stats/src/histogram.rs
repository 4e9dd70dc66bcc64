//! Latencies by the billion in fixed memory.
//!
//! Buckets are exact up to 255 and from there on split every power of two into 128, so
//! a bucket is never wider than 1/128 of its values and its middle never further than
//! 1/256 (0.4 %) from any of them. Sums are whole numbers kept beside the buckets, so
//! the mean is exact, and merging is the same in every order and grouping.

use std::fmt;

/// Each power of two has 2^7 buckets.
const PRECISION_BITS: u32 = 7;
const PER_OCTAVE: usize = 1 << PRECISION_BITS;
/// The first octave of exact values, the one after it, then one per remaining bit.
const BUCKETS: usize = (64 - PRECISION_BITS as usize + 1) * PER_OCTAVE;

/// A log-linear histogram of whole numbers, usually nanoseconds.
#[derive(Clone)]
pub struct Histogram {
    /// `BUCKETS` long once a value is counted; empty before, and when `packed` has the counts.
    counts: Box<[u64]>,
    /// The buckets in use and their counts, in order, of a complete histogram.
    packed: Box<[(u16, u32)]>,
    n: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// Maximum relative error of a percentile.
    pub const ERROR_MAX: f64 = 0.5 / PER_OCTAVE as f64;

    /// Empty. Takes 58 KiB from the first value on, and never more.
    pub fn new() -> Histogram {
        Histogram { counts: Box::default(), packed: Box::default(), n: 0, sum: 0, min: u64::MAX, max: 0 }
    }

    /// Counts `value` once.
    pub fn record(&mut self, value: u64) {
        match self.counts.get_mut(bucket(value)) {
            Some(count) => *count += 1,
            None => self.unpack()[bucket(value)] += 1,
        }
        self.n += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Makes room for all buckets.
    #[cold]
    fn unpack(&mut self) -> &mut [u64] {
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS].into();
            for (index, count) in std::mem::take(&mut self.packed) {
                self.counts[usize::from(index)] = count.into();
            }
        }
        &mut self.counts
    }

    /// Keeps only the buckets in use: a few hundred bytes for a complete histogram. It can still count.
    pub fn pack(&mut self) {
        // A count beyond 32 bits has no room in the packed form.
        if self.counts.iter().all(|&count| u32::try_from(count).is_ok()) {
            self.packed = self.used().map(|(index, count)| (index as u16, count as u32)).collect();
            self.counts = Box::default();
        }
    }

    /// The buckets in use and their counts, in order.
    fn used(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counted = self.counts.iter().enumerate().map(|(index, &count)| (index, count));
        let packed = self.packed.iter().map(|&(index, count)| (index.into(), count.into()));
        counted.filter(|(_, count)| *count > 0).chain(packed)
    }

    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Histogram) {
        if other.n > 0 {
            let counts = self.unpack();
            for (index, more) in other.used() {
                counts[index] += more;
            }
        }
        self.n += other.n;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// How many values.
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Their exact sum.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The smallest, exactly.
    pub fn min(&self) -> Option<u64> {
        (self.n > 0).then_some(self.min)
    }

    /// The largest, exactly.
    pub fn max(&self) -> Option<u64> {
        (self.n > 0).then_some(self.max)
    }

    /// Their mean, NaN when there are none.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.n as f64
    }

    /// The smallest value that at least `percent` of all values do not exceed, within
    /// [`Histogram::ERROR_MAX`]. Percentages count to three decimals. `None` when empty.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        assert!((0.0..=100.0).contains(&percent), "{percent} %");
        let max = self.max()?;
        let thousandths = (percent * 1000.0).round() as u128;
        // In whole numbers: 99.9 % of 1000 is the 999th, not one later by a rounding.
        let rank = (u128::from(self.n) * thousandths).div_ceil(100_000).max(1) as u64;
        if rank == self.n {
            return Some(max);
        }
        let mut seen = 0;
        let reached = self.used().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        let (low, width) = range(reached.expect("the buckets sum to n").0);
        Some((low + (width - 1) / 2).clamp(self.min, max))
    }

    /// Each bucket in use: its lowest value, its width, how many values fell in.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.used().map(|(index, count)| {
            let (low, width) = range(index);
            (low, width, count)
        })
    }
}

/// Compares the counts, packed or not.
impl PartialEq for Histogram {
    fn eq(&self, other: &Histogram) -> bool {
        let whole = |h: &Histogram| (h.n, h.sum, h.min, h.max);
        whole(self) == whole(other) && self.used().eq(other.used())
    }
}

impl Eq for Histogram {}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram::new()
    }
}

/// Counts, not the thousands of empty buckets.
impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.buckets()).finish()
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Histogram {
        let mut histogram = Histogram::new();
        values.into_iter().for_each(|value| histogram.record(value));
        histogram
    }
}

/// The bucket of a value: its octave, then its highest bits.
///
/// ```text
///   value   1 b b b b b b b x x x x        octave = number of x
///             `-- within --'
/// ```
fn bucket(value: u64) -> usize {
    let octave = (63 - (value | 1).leading_zeros()).saturating_sub(PRECISION_BITS);
    octave as usize * PER_OCTAVE + (value >> octave) as usize
}

/// The lowest value of a bucket and how many values share it.
fn range(index: usize) -> (u64, u64) {
    let octave = (index / PER_OCTAVE).saturating_sub(1);
    (((index - octave * PER_OCTAVE) as u64) << octave, 1 << octave)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_cover_every_value_once() {
        let mut next = 0;
        for index in 0..BUCKETS {
            let (low, width) = range(index);
            assert_eq!(low, next, "bucket {index}");
            assert_eq!((bucket(low), bucket(low + (width - 1))), (index, index));
            next = low.wrapping_add(width);
        }
        assert_eq!(next, 0, "the last bucket ends at 2^64");
    }

    #[test]
    fn percentiles_of_small_values_are_exact() {
        let h: Histogram = (1..=200).collect();
        for (percent, value) in
            [(0.0, 1), (0.5, 1), (0.6, 2), (50.0, 100), (99.5, 199), (99.9, 200), (100.0, 200)]
        {
            assert_eq!(h.percentile(percent), Some(value), "{percent} %");
        }
        assert_eq!((h.n(), h.mean(), h.min(), h.max()), (200, 100.5, Some(1), Some(200)));
    }

    #[test]
    fn a_percentile_that_falls_between_samples_is_not_rounded_up_a_rank() {
        let h: Histogram = (0..1000).map(|i| if i < 999 { 7 } else { 9 }).collect();
        assert_eq!(h.percentile(99.9), Some(7));
        assert_eq!(h.percentile(99.901), Some(9));
    }

    #[test]
    fn an_empty_histogram_has_no_percentiles() {
        let h = Histogram::new();
        assert_eq!((h.percentile(50.0), h.min(), h.max()), (None, None, None));
        assert!(h.mean().is_nan());
    }

    fn latencies() -> impl Strategy<Value = Vec<u64>> {
        // Spread over all magnitudes, as latencies are.
        prop::collection::vec((0u32..64, any::<u64>()).prop_map(|(bits, x)| x >> bits), 1..200)
    }

    proptest! {
        #[test]
        fn a_packed_histogram_is_the_same_and_counts_on(before in latencies(), after in latencies(), percent in 0u32..=100) {
            let whole: Histogram = before.iter().chain(&after).copied().collect();
            let mut packed: Histogram = before.iter().copied().collect();
            let open = packed.clone();
            packed.pack();
            prop_assert!(packed.counts.is_empty() && packed == open);
            prop_assert_eq!(packed.percentile(f64::from(percent)), open.percentile(f64::from(percent)));
            let mut merged = packed.clone();
            merged.merge(&after.iter().copied().collect());
            after.iter().for_each(|&value| packed.record(value));
            prop_assert_eq!(&packed, &whole);
            prop_assert_eq!(&merged, &whole);
        }

        #[test]
        fn percentiles_stay_within_the_stated_error(mut values in latencies(), percent in 0u32..=100) {
            let h: Histogram = values.iter().copied().collect();
            values.sort_unstable();
            let rank = (values.len() * percent as usize).div_ceil(100).max(1);
            let exact = values[rank - 1] as f64;
            let found = h.percentile(f64::from(percent)).unwrap() as f64;
            prop_assert!((found - exact).abs() <= Histogram::ERROR_MAX * exact, "{found} for {exact}");
        }

        #[test]
        fn merging_is_the_same_in_every_order(a in latencies(), b in latencies(), c in latencies()) {
            let [ha, hb, hc] = [&a, &b, &c].map(|v| v.iter().copied().collect::<Histogram>());
            let whole: Histogram = a.iter().chain(&b).chain(&c).copied().collect();
            let mut left = ha.clone();
            left.merge(&hb);
            left.merge(&hc);
            let mut right = hc;
            right.merge(&hb);
            right.merge(&ha);
            prop_assert_eq!(&left, &whole);
            prop_assert_eq!(&right, &whole);
        }
    }
}
