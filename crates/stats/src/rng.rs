//! Random numbers that repeat.
//!
//! SplitMix64: a counter passed through a mixing function. Small, well tested, and
//! enough to draw indices; nothing here needs more than 2^64 draws. Each use names its
//! stream, so that one more draw in one place does not change another.

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream called `name` of `seed`.
    pub fn new(seed: u64, name: &str) -> Rng {
        // FNV-1a of the name, so that streams of one seed start far apart.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        Rng(mix(seed.wrapping_add(hash)))
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// An index below `n`, each with the same probability.
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0, "nothing to draw from");
        let n = n as u64;
        // The product's high word is uniform once draws with a too small low word,
        // 2^64 mod n of them, are drawn again.
        let reject = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.bits()) * u128::from(n);
            if wide as u64 >= reject {
                return (wide >> 64) as usize;
            }
        }
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_seed_and_name() {
        let draw = |seed, name| Rng::new(seed, name).bits();
        assert_eq!(draw(1, "bootstrap"), draw(1, "bootstrap"));
        assert_ne!(draw(1, "bootstrap"), draw(2, "bootstrap"));
        assert_ne!(draw(1, "bootstrap"), draw(1, "submean"));
    }

    #[test]
    fn the_mixer_is_splitmix64() {
        // The first outputs of the published generator for state 0.
        let mut rng = Rng(0);
        assert_eq!([rng.bits(), rng.bits()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn every_index_is_drawn_equally_often() {
        let mut rng = Rng::new(7, "test");
        let mut seen = [0u32; 6];
        for _ in 0..60_000 {
            seen[rng.below(6)] += 1;
        }
        assert!(seen.iter().all(|&n| (9_600..10_400).contains(&n)), "{seen:?}");
    }
}
