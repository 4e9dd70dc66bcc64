//! The clock of a core or package, and the law that sets it (equation E6).
//!
//! *Pstate*, as intel_pstate without HWP: at each sample the share of busy time gives
//! `target = 1.25 * max * busy`, at least the lowest clock; when the average of the last sample was above the
//! target, half of the difference is added, so the clock falls more slowly than it rises. *Hardware*: the
//! processor holds its highest clock while the domain was busy for a small part of the last sample, else the
//! base clock. *Fixed*: always the highest.
//!
//! The highest clock falls evenly from that of one active core to that of all. Work is counted at the highest
//! clock of one core, so a rate is clock / that clock, except for the share of the work that waits for
//! memory.
//!
//! Left out: differences of this share between tasks, the boost after waiting for I/O, temperature, and wide vector
//! code.
//!
//! Kernel: get_target_pstate(), drivers/cpufreq/intel_pstate.c.

use crate::Rate;
use crate::cost::{Cost, constants};

constants! {
    /// Clocks.
    Freq = "freq" {
        /// The lowest clock.
        min_mhz: MHz = 1_200, 400..=2_000, "data sheets";
        /// The clock held without turbo.
        base_mhz: MHz = 2_500, 1_500..=4_000, "data sheets";
        /// The highest clock with one active core.
        one_core_mhz: MHz = 3_500, 2_000..=5_500, "data sheets";
        /// The highest clock with all cores active.
        all_cores_mhz: MHz = 3_500, 1_500..=5_500, "no turbo unless the machine's file says so";
        /// Time between two samples of the governor.
        sample_ns: Ns = 10_000_000, 1_000_000..=30_000_000, "intel_pstate: 10 ms; hardware about 1 ms";
        /// Share of the work at the highest clock that waits for memory and so takes the same time at any clock.
        stall_permille: Permille = 0, 0..=500, "estimate; 0 means that all work scales with the clock";
        /// Hardware governor: least busy share of a sample that keeps the clock high.
        active_permille: Permille = 10, 1..=200, "estimate";
    }
}

/// What sets the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// Always the highest.
    #[default]
    Fixed,
    /// intel_pstate, active mode, powersave, no HWP.
    Pstate,
    /// The processor itself.
    Hardware,
}

/// The unit that has one clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockDomain {
    /// Each core.
    #[default]
    Core,
    /// All cores of a package.
    Package,
}

/// The clock of one domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Chosen clock, before the limit by active cores.
    mhz: u64,
    /// When the current sample began.
    began_ns: u64,
}

impl Clock {
    /// A clock at the start of a run: at its lowest under a law that follows load.
    pub fn new(freq: &Freq, law: Law) -> Clock {
        let mhz = match law {
            Law::Fixed => freq.one_core_mhz.get(),
            Law::Pstate => freq.min_mhz.get(),
            Law::Hardware => freq.base_mhz.get(),
        };
        Clock { mhz, began_ns: 0 }
    }

    /// The clock after a change of constants: a clock at a limit moves to the new limit.
    pub fn adapt(&mut self, from: &Freq, to: &Freq) {
        let limits = [&from.one_core_mhz, &from.base_mhz, &from.min_mhz].map(Cost::get);
        let new = [&to.one_core_mhz, &to.base_mhz, &to.min_mhz].map(Cost::get);
        let at = limits.iter().position(|&limit| limit == self.mhz);
        self.mhz = at.map_or(self.mhz, |at| new[at]).min(new[0]);
    }

    /// Whether the current sample is over.
    pub fn is_due(&self, freq: &Freq, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.began_ns) >= freq.sample_ns.get()
    }

    /// A sample is over: chooses a new clock from the domain's busy time in it, and begins the next sample.
    pub fn update(&mut self, freq: &Freq, law: Law, now_ns: u64, busy_ns: u64) {
        let elapsed = now_ns.saturating_sub(self.began_ns).max(1);
        self.began_ns = now_ns;
        let max = freq.one_core_mhz.get();
        let busy_ns = busy_ns.min(elapsed);
        self.mhz = match law {
            Law::Fixed => max,
            Law::Pstate => {
                let target = (u128::from(max) * 5 / 4 * u128::from(busy_ns) / u128::from(elapsed)) as u64;
                let target = target.max(freq.min_mhz.get());
                (target + self.mhz.saturating_sub(target) / 2).min(max)
            }
            Law::Hardware => {
                let active = busy_ns * 1000 >= freq.active_permille.get() * elapsed;
                if active { max } else { freq.base_mhz.get() }
            }
        };
    }

    /// The clock with this many of the package's cores active, MHz.
    pub fn mhz(&self, freq: &Freq, active: u64, cores: u64) -> u64 {
        let (one, all) = (freq.one_core_mhz.get(), freq.all_cores_mhz.get());
        let limit = if cores <= 1 || active <= 1 {
            one
        } else {
            one - one.saturating_sub(all) * (active - 1).min(cores - 1) / (cores - 1)
        };
        self.mhz.min(limit)
    }

    /// The same as a rate of work: the share that waits for memory takes the same time, the rest is longer by
    /// highest clock / clock.
    pub fn rate(&self, freq: &Freq, active: u64, cores: u64) -> Rate {
        let (mhz, max) = (self.mhz(freq, active, cores), freq.one_core_mhz.get());
        let stall = freq.stall_permille.get().min(1000);
        Rate::of(1000 * mhz, stall * mhz + (1000 - stall) * max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn pstate_rises_at_once_and_falls_by_halves() {
        let freq = Freq::default();
        let mut clock = Clock::new(&freq, Law::Pstate);
        let mut now = 0;
        // busy share of 10 ms, then the clock by 1.25 * 3500 * share, at least 1200
        for (busy_ms, mhz) in [
            (10, 3_500), // 4375, limited to the highest
            (4, 2_625),  // 1750 and half of (3500 - 1750)
            (4, 2_187),  // 1750 and half of (2625 - 1750)
            (0, 1_693),  // 1200 and half of (2187 - 1200)
            (8, 3_500),
        ] {
            now += 10 * MS;
            assert!(clock.is_due(&freq, now));
            clock.update(&freq, Law::Pstate, now, busy_ms * MS);
            assert_eq!(clock.mhz(&freq, 1, 8), mhz, "busy {busy_ms} of 10 ms");
        }
        assert!(!clock.is_due(&freq, now + MS), "the sample is not over");
    }

    #[test]
    fn the_highest_clock_falls_with_active_cores() {
        let mut freq = Freq::default();
        freq.all_cores_mhz.set(3_000);
        let clock = Clock::new(&freq, Law::Fixed);
        for (active, mhz) in [(0, 3_500), (1, 3_500), (2, 3_445), (6, 3_223), (10, 3_000), (99, 3_000)] {
            assert_eq!(clock.mhz(&freq, active, 10), mhz, "{active} active");
        }
        assert_eq!(clock.rate(&freq, 10, 10), Rate::of(3_000, 3_500));
        assert_eq!(clock.mhz(&freq, 1, 1), 3_500, "a single core has one limit");
    }

    #[test]
    fn what_waits_for_memory_takes_as_long_at_any_clock() {
        let mut freq = Freq::default();
        freq.min_mhz.set(1_750);
        let clock = Clock::new(&freq, Law::Pstate);
        assert_eq!(clock.rate(&freq, 1, 8), Rate::of(1, 2));
        freq.stall_permille.set(200);
        // 0.2 unchanged and 0.8 twice as long: 1.8 times the time.
        assert_eq!(clock.rate(&freq, 1, 8), Rate::of(10, 18));
    }

    #[test]
    fn hardware_holds_the_clock_of_whatever_is_used_a_little() {
        let freq = Freq::default();
        let mut clock = Clock::new(&freq, Law::Hardware);
        assert_eq!(clock.mhz(&freq, 1, 8), 2_500);
        clock.update(&freq, Law::Hardware, 10 * MS, MS / 10);
        assert_eq!(clock.mhz(&freq, 1, 8), 3_500);
        clock.update(&freq, Law::Hardware, 20 * MS, MS / 20);
        assert_eq!(clock.mhz(&freq, 1, 8), 2_500);
    }
}
