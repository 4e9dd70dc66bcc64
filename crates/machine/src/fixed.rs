//! Rates and decays in fixed point: 65536 is one.
//!
//! All arithmetic is on integers, so a run gives the same bytes on every host and
//! in every build.

/// One in this fixed point.
pub const ONE: u64 = 1 << 16;

/// How fast work gets done: [`Rate::FULL`] is one ns of work per ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(pub u32);

impl Rate {
    /// A CPU of capacity 1024 at its full clock, alone on its core.
    pub const FULL: Rate = Rate(ONE as u32);

    /// The fraction `part` / `whole` of full speed, at least the smallest step.
    pub fn of(part: u64, whole: u64) -> Rate {
        Rate(((part * ONE) / whole).clamp(1, u64::from(u32::MAX)) as u32)
    }

    /// This rate slowed by another.
    #[must_use]
    pub fn times(self, other: Rate) -> Rate {
        Rate(((u64::from(self.0) * u64::from(other.0)) >> 16).max(1) as u32)
    }
}

/// Work left to do, exact: ns of work times 65536.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work(pub u64);

impl Work {
    /// Nothing left.
    pub const NONE: Work = Work(0);

    /// This many ns of work, at most a day.
    #[inline]
    pub fn nanos(ns: u64) -> Work {
        Work(ns.min(1 << 47) << 16)
    }

    /// The work done in `ns` at a rate.
    #[inline]
    pub fn done_in(ns: u64, rate: Rate) -> Work {
        Work(ns.saturating_mul(u64::from(rate.0)))
    }

    /// The rest of the current block, if all of the work is in whole blocks of `ns`.
    pub fn left_of_block(self, ns: u64) -> Work {
        Work(self.0 % Work::nanos(ns.max(1)).0)
    }

    /// Whole ns of work, rounded up.
    #[inline]
    pub fn as_nanos(self) -> u64 {
        self.0.div_ceil(ONE)
    }

    /// How long it takes at a rate, rounded up.
    #[inline]
    pub fn time_at(self, rate: Rate) -> u64 {
        if rate == Rate::FULL { self.as_nanos() } else { self.0.div_ceil(u64::from(rate.0)) }
    }

    /// The work left after `ns` at a rate.
    #[inline]
    #[must_use]
    pub fn after(self, ns: u64, rate: Rate) -> Work {
        Work(self.0.saturating_sub(Work::done_in(ns, rate).0))
    }

    /// With this many ns of work more.
    #[inline]
    #[must_use]
    pub fn plus_nanos(self, ns: u64) -> Work {
        self.plus(Work::nanos(ns))
    }

    /// With other work added.
    #[inline]
    #[must_use]
    pub fn plus(self, other: Work) -> Work {
        Work(self.0.saturating_add(other.0))
    }
}

/// `2^(-i/16)` for i in 0..=16, in 32-bit fixed point.
const POWERS: [u64; 17] = [
    4_294_967_296,
    4_112_874_773,
    3_938_502_376,
    3_771_522_796,
    3_611_622_603,
    3_458_501_653,
    3_311_872_529,
    3_171_459_999,
    3_037_000_500,
    2_908_241_642,
    2_784_941_738,
    2_666_869_345,
    2_553_802_834,
    2_445_529_972,
    2_341_847_524,
    2_242_560_872,
    2_147_483_648,
];

/// `exp(-t/tau)` as a fraction of 65536; zero `tau` decays at once.
///
/// As `2^-x`, x = t/tau * log2(e): whole part by shifting, sixteenths from a
/// table, linear between. The error is below 2^-10 of the value.
pub fn decay(t: u64, tau: u64) -> u64 {
    if t == 0 {
        return ONE;
    }
    if tau == 0 || t / tau >= 24 {
        return 0;
    }
    // log2(e) = 94548 / 65536; x in units of 2^-16.
    let x = ((u128::from(t) * 94_548) / u128::from(tau)) as u64;
    let (whole, rest) = (x >> 16, x & 0xffff);
    let (step, inside) = ((rest >> 12) as usize, rest & 0xfff);
    let fraction = POWERS[step] - (((POWERS[step] - POWERS[step + 1]) * inside) >> 12);
    fraction >> whole >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decay_follows_the_exponential() {
        for (t, tau) in
            [(0u64, 100u64), (1, 1000), (100, 100), (250, 100), (69, 100), (1000, 100), (2399, 100)]
        {
            let exact = (-(t as f64) / tau as f64).exp() * ONE as f64;
            let ours = decay(t, tau) as f64;
            assert!((exact - ours).abs() <= exact / 1000.0 + 1.0, "{t}/{tau}: {exact} and {ours}");
        }
        assert_eq!(decay(2400, 100), 0);
        assert_eq!(decay(5, 0), 0);
    }

    #[test]
    fn work_keeps_its_remainder() {
        let third = Rate::of(1, 3);
        let mut left = Work::nanos(1_000);
        assert_eq!(left.time_at(third), 3_001, "1/3 is rounded down, the time up");
        for _ in 0..3_000 {
            left = left.after(1, third);
        }
        assert_eq!(left.time_at(third), 1);
        assert_eq!(left.after(1, third), Work::NONE);
        assert_eq!(Work::nanos(7).time_at(Rate::FULL), 7);
    }

    #[test]
    fn rates_multiply() {
        assert_eq!(Rate::of(1, 2).times(Rate::of(1, 2)), Rate::of(1, 4));
        assert_eq!(Rate::FULL.times(Rate::of(620, 1000)), Rate::of(620, 1000));
        assert_eq!(Rate(1).times(Rate(1)), Rate(1), "work never stops for good");
    }
}
