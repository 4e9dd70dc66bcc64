//! Mechanisms of the machine that can be switched off by name.
//!
//! Running the same workload with one mechanism off at a time shows which of them causes a result:
//! `--without cache-warmth`.

/// A mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Mechanism {
    /// Refilling caches after a migration or after other tasks ran.
    CacheWarmth,
    /// Threads of a core slowing each other.
    Smt,
    /// Limits of memory bandwidth.
    Bandwidth,
    /// Exit latencies of idle states.
    IdleStates,
    /// Clocks that change.
    Frequency,
    /// Time taken by interrupts of devices and the network.
    Interrupts,
    /// Waiting for contended lines.
    CacheLines,
    /// Delay of interrupts from one CPU to another.
    Ipi,
    /// Prices of the kernel's own paths: switches, system calls, wake-ups, ticks.
    KernelCosts,
    /// Prices of searching and balancing.
    SearchCosts,
}

impl Mechanism {
    /// Each of them.
    pub const ALL: [Mechanism; Mechanism::TABLE.len()] = {
        let mut all = [Mechanism::TABLE[0].0; Mechanism::TABLE.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = Mechanism::TABLE[at].0;
            at += 1;
        }
        all
    };

    /// Every mechanism with its name and the effect of its absence.
    pub const TABLE: &'static [(Mechanism, &'static str, &'static str)] = &[
        (Mechanism::CacheWarmth, "cache-warmth", "a task finds its caches warm wherever it runs"),
        (Mechanism::Smt, "smt", "each thread of a core runs as if alone"),
        (Mechanism::Bandwidth, "bandwidth", "every core streams at its own limit"),
        (Mechanism::IdleStates, "idle-states", "idle CPUs come back at once"),
        (Mechanism::Frequency, "frequency", "every CPU holds its highest clock"),
        (Mechanism::Interrupts, "interrupts", "interrupts take no time"),
        (Mechanism::CacheLines, "cache-lines", "contended lines are always at hand"),
        (Mechanism::Ipi, "ipi", "CPUs hear each other at once"),
        (Mechanism::KernelCosts, "kernel-costs", "the kernel's own paths take no time"),
        (Mechanism::SearchCosts, "search-costs", "searching and balancing take no time"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Mechanism::TABLE[self as usize].1
    }
}

/// The mechanisms that are off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Without(u16);

impl Without {
    /// Everything on.
    pub const NOTHING: Without = Without(0);

    /// This one alone.
    pub fn one(mechanism: Mechanism) -> Without {
        Without::NOTHING.with(mechanism)
    }

    /// Reads `cache-warmth,smt`; the empty text is nothing.
    ///
    /// # Errors
    /// An unknown name, with the known ones.
    pub fn parse(list: &str) -> Result<Without, String> {
        let mut off = Without::NOTHING;
        for name in list.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let Some((mechanism, _, _)) = Mechanism::TABLE.iter().find(|(_, known, _)| *known == name) else {
                let names: Vec<_> = Mechanism::TABLE.iter().map(|row| row.1).collect();
                return Err(format!("there is no mechanism \"{name}\"; there are {}", names.join(", ")));
            };
            off = off.with(*mechanism);
        }
        Ok(off)
    }

    /// These and one more.
    #[must_use]
    pub fn with(self, mechanism: Mechanism) -> Without {
        Without(self.0 | 1 << mechanism as u8)
    }

    /// Whether a mechanism is off.
    #[inline]
    pub fn is_off(self, mechanism: Mechanism) -> bool {
        self.0 >> mechanism as u8 & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mechanisms_are_switched_off_by_name() {
        for (i, (mechanism, name, _)) in Mechanism::TABLE.iter().enumerate() {
            assert_eq!(*mechanism as usize, i, "{name} stands in its row");
            assert!(Without::parse(name).unwrap().is_off(*mechanism));
        }
        let two = Without::parse("smt, ipi").unwrap();
        assert!(
            two.is_off(Mechanism::Smt) && two.is_off(Mechanism::Ipi) && !two.is_off(Mechanism::Bandwidth)
        );
        assert_eq!(Without::parse("").unwrap(), Without::NOTHING);
        let error = Without::parse("smt,cache").unwrap_err();
        assert!(
            error.starts_with("there is no mechanism \"cache\"; there are cache-warmth, smt, "),
            "{error}"
        );
    }
}
