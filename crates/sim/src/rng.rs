//! Random numbers: one named stream per source.
//!
//! Each source of chance in a run (a task's dice, a device's service times) draws from a stream of its own,
//! made from the run's seed and the source's name and number. So a change in one place does not shift the
//! numbers drawn in another, and two kernels run with the same random numbers.

/// A stream of random bits (splitmix64).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream(u64);

impl Stream {
    /// The stream of the source `name` with this number in a run with this seed.
    pub fn new(seed: u64, name: &str, number: u64) -> Stream {
        // FNV-1a over the name, then mixed with the numbers.
        let name = name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        let mut stream = Stream(seed ^ name);
        let first = stream.next();
        Stream(first ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next 64 bits.
    #[inline]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_name_and_number() {
        let mut firsts: Vec<u64> =
            [(1, "task", 0), (2, "task", 0), (1, "disk", 0), (1, "task", 1), (1, "task", 2)]
                .map(|(seed, name, number)| Stream::new(seed, name, number).next())
                .into();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), 5);
        assert_eq!(Stream::new(3, "x", 4), Stream::new(3, "x", 4));
    }

    #[test]
    fn bits_are_even() {
        let mut stream = Stream::new(1, "bits", 0);
        let ones: u32 = (0..10_000).map(|_| stream.next().count_ones()).sum();
        assert!((318_000..322_000).contains(&ones), "{ones} of 640000");
    }
}
