//! A machine: its CPUs, and its costs.

use schedlab_topology::{CpuId, Topology};

use crate::cost::{Constants, Row};
use crate::{
    Bandwidth, CachePrices, ClockDomain, Cost, Freq, IdlePrices, IdleStates, Ipi, KernelCosts, Law,
    LinePrices, MachineError, Mechanism, Smt, Softirq, Without,
};

/// A machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Its CPUs.
    pub topology: Topology,
    /// The kernel's own paths.
    pub cost: KernelCosts,
    /// Interrupts between CPUs.
    pub ipi: Ipi,
    /// Threads of a core.
    pub smt: Smt,
    /// Idle states.
    pub idle: IdleStates,
    /// Limits of soft interrupts.
    pub softirq: Softirq,
    /// Caches.
    pub cache: CachePrices,
    /// Memory bandwidth.
    pub bandwidth: Bandwidth,
    /// Clocks.
    pub freq: Freq,
    /// What sets the clock.
    pub law: Law,
    /// The unit that has one clock.
    pub clock_domain: ClockDomain,
    /// Whether one processor executes all busy CPUs in turn, like an emulator whose clock counts
    /// instructions: with n busy each works at 1/n.
    pub shared_clock: bool,
    /// The measured cost of newly idle balancing before the run begins, ns: kernels consider a domain expensive once
    /// its passes took long, and then skip most of them.
    pub newidle_cost: u64,
    /// Contended lines.
    pub line: LinePrices,
    /// Mechanisms that are off.
    pub without: Without,
}

impl Machine {
    /// A generic machine: the defaults of all tables, fixed clocks, no idle states.
    pub fn of(topology: Topology) -> Machine {
        Machine {
            topology,
            cost: KernelCosts::default(),
            ipi: Ipi::default(),
            smt: Smt::default(),
            idle: IdleStates::default(),
            softirq: Softirq::default(),
            cache: CachePrices::default(),
            bandwidth: Bandwidth::default(),
            freq: Freq::default(),
            law: Law::default(),
            clock_domain: ClockDomain::default(),
            shared_clock: false,
            newidle_cost: 0,
            line: LinePrices::default(),
            without: Without::NOTHING,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.topology.name
    }

    /// The same machine with some mechanisms off.
    #[must_use]
    pub fn without(mut self, without: Without) -> Machine {
        self.without = without;
        self
    }

    /// Whether a mechanism is on.
    #[inline]
    pub fn has(&self, mechanism: Mechanism) -> bool {
        !self.without.is_off(mechanism)
    }

    /// Size of the core's own cache.
    pub fn l2_bytes(&self, cpu: CpuId) -> u64 {
        self.topology.cache_sizes(cpu).l2.unwrap_or_else(|| self.cache.l2_bytes.get())
    }

    /// Size of the last-level cache.
    pub fn llc_bytes(&self, cpu: CpuId) -> u64 {
        self.topology.cache_sizes(cpu).llc.unwrap_or_else(|| self.cache.llc_bytes.get())
    }

    /// Every constant with its row.
    pub fn constants(&self) -> Vec<(&'static Row, &Cost)> {
        fn of<T: Constants>(table: &T) -> impl Iterator<Item = (&'static Row, &Cost)> {
            T::ROWS.iter().enumerate().map(|(i, row)| (row, table.cost(i)))
        }
        of(&self.cost)
            .chain(of(&self.ipi))
            .chain(of(&self.smt))
            .chain(of(&self.idle.prices))
            .chain(of(&self.softirq))
            .chain(of(&self.cache))
            .chain(of(&self.bandwidth))
            .chain(of(&self.freq))
            .chain(of(&self.line))
            .collect()
    }

    /// A constant by table and name, to change.
    pub(crate) fn constant_mut(&mut self, table: &str, name: &str) -> Option<(&'static Row, &mut Cost)> {
        fn of<'a, T: Constants>(
            constants: &'a mut T,
            table: &str,
            name: &str,
        ) -> Option<(&'static Row, &'a mut Cost)> {
            let row = T::ROWS.iter().position(|row| row.table == table && row.name == name)?;
            Some((&T::ROWS[row], constants.cost_mut(row)))
        }
        of(&mut self.cost, table, name)
            .or_else(|| of(&mut self.ipi, table, name))
            .or_else(|| of(&mut self.smt, table, name))
            .or_else(|| of(&mut self.idle.prices, table, name))
            .or_else(|| of(&mut self.softirq, table, name))
            .or_else(|| of(&mut self.cache, table, name))
            .or_else(|| of(&mut self.bandwidth, table, name))
            .or_else(|| of(&mut self.freq, table, name))
            .or_else(|| of(&mut self.line, table, name))
    }

    /// The names of all constants, as [`Machine::set`] takes them.
    pub fn constant_names() -> impl Iterator<Item = String> {
        TABLES.iter().flat_map(|rows| rows.iter()).map(Row::path)
    }

    /// Sets a constant by its name, `cost.syscall_ns`.
    ///
    /// # Errors
    /// An unknown name, with the nearest known one.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), MachineError> {
        let found = name.split_once('.').and_then(|(table, name)| self.constant_mut(table, name));
        match found {
            Some((_, cost)) => {
                cost.set(value);
                Ok(())
            }
            None => {
                let names: Vec<String> = Machine::constant_names().collect();
                let hint = meant(name, names.iter().map(String::as_str));
                Err(MachineError::Constant(format!("there is no constant \"{name}\"{hint}")))
            }
        }
    }
}

/// The rows of all tables.
pub(crate) const TABLES: &[&[Row]] = &[
    KernelCosts::ROWS,
    Ipi::ROWS,
    Smt::ROWS,
    IdlePrices::ROWS,
    Softirq::ROWS,
    CachePrices::ROWS,
    Bandwidth::ROWS,
    Freq::ROWS,
    LinePrices::ROWS,
];

/// A suggestion for an unknown name, or else the known names, as the end of a sentence.
pub(crate) fn meant<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.collect();
    match nearest(name, known.iter().copied()) {
        "" => format!("; there are {}", known.join(", ")),
        hint => format!("; did you mean {hint}?"),
    }
}

/// The name with the longest common prefix and suffix.
fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> &'a str {
    let same = |k: &&str| {
        let front = k.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        let back = k.bytes().rev().zip(name.bytes().rev()).take_while(|(a, b)| a == b).count();
        front + back
    };
    // The first of the best, so that the answer does not depend on the order of ties.
    known.fold(("", 0), |best, k| if same(&k) > best.1 { (k, same(&k)) } else { best }).0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine::of(Topology::regular("2x4").unwrap())
    }

    #[test]
    fn every_constant_can_be_set_by_name() {
        let mut machine = machine();
        let names: Vec<String> = Machine::constant_names().collect();
        assert_eq!(names.len(), machine.constants().len());
        for (i, name) in names.iter().enumerate() {
            machine.set(name, 1_000_003 + i as u64).unwrap();
        }
        for (i, (row, cost)) in machine.constants().into_iter().enumerate() {
            assert_eq!(cost.get(), 1_000_003 + i as u64, "{}.{}", row.table, row.name);
        }
    }

    #[test]
    fn no_two_constants_share_a_name() {
        let mut names: Vec<String> = Machine::constant_names().collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn an_unknown_constant_is_answered_with_a_near_one() {
        let error = machine().set("cost.syscal_ns", 1).unwrap_err();
        assert_eq!(
            error.to_string(),
            "there is no constant \"cost.syscal_ns\"; did you mean cost.syscall_ns?"
        );
    }
}
