//! How the threads of one core slow each other (equation E3).
//!
//! With k busy threads each runs at a share s(k) of its speed alone. Memory-bound work loses more, since the
//! core's miss buffers are shared as well. Between the given points the share is interpolated so that the
//! core's total throughput k * s(k) grows linearly.
//!
//! Left out: the share depends on *which* two programs meet, and a spinning thread that pauses takes less
//! than a computing one.

use crate::Rate;
use crate::cost::constants;

constants! {
    /// Speed of one thread if several of its core are busy, in permille of its speed alone.
    Smt = "smt" {
        /// Two busy threads that compute.
        two_permille: Permille = 620, 550..=700, "estimate; calibrated on the 32-thread row of the mail of 25 Sep 2017";
        /// Two busy threads that wait for memory.
        two_memory_permille: Permille = 550, 500..=650, "estimate";
        /// Four busy threads.
        four_permille: Permille = 400, 300..=480, "estimate";
        /// Eight busy threads.
        eight_permille: Permille = 220, 150..=280, "estimate";
    }
}

impl Smt {
    /// The speed of one of `busy` threads of a core that compute, or wait for memory.
    pub fn share(&self, busy: u32, memory_bound: bool) -> Rate {
        if busy <= 1 {
            return Rate::FULL;
        }
        let two = if memory_bound { &self.two_memory_permille } else { &self.two_permille };
        let whole_core = |threads: u64| match threads {
            1 => 1000,
            2 => 2 * two.get(),
            4 => 4 * self.four_permille.get(),
            _ => 8 * self.eight_permille.get(),
        };
        let busy = u64::from(busy.min(8));
        let (k0, k1) = match busy {
            2 => (1, 2),
            3..=4 => (2, 4),
            _ => (4, 8),
        };
        let (whole0, whole1) = (whole_core(k0), whole_core(k1));
        let whole = (whole0 * (k1 - busy) + whole1 * (busy - k0)) / (k1 - k0);
        Rate::of(whole, 1000 * busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_the_given_ones_and_even_between() {
        let smt = Smt::default();
        for (busy, memory, permille, of) in [
            (0, false, 1, 1),
            (1, true, 1, 1),
            (2, false, 620, 1000),
            (2, true, 550, 1000),
            // whole core: 1240 for two, 1600 for four, so 1420 for three
            (3, false, 1420, 3000),
            (4, false, 400, 1000),
            // 1600 for four, 1760 for eight: 1680 for six
            (6, false, 280, 1000),
            (8, false, 220, 1000),
        ] {
            assert_eq!(smt.share(busy, memory), Rate::of(permille, of), "{busy} busy");
        }
    }
}
