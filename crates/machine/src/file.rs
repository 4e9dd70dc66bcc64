//! Machine files: a topology, a hardware class, and the differences from it.
//!
//! ```toml
//! [topology]
//! regular = "2x8x8x2:smt=interleaved,distance=10/32,l2=512K,llc=32M"
//!
//! [hardware]
//! class = "zen3"
//! law = "fixed"              # or "pstate", "hardware"
//! clock_domain = "core"      # or "package"
//! shared_clock = false       # true: an emulator that counts instructions
//!
//! [bandwidth]
//! core_mbps = 30000
//! node_mbps = { value = 168000, range = [165000, 175000], source = "derived" }
//!
//! [[idle_state]]             # any replace those of the class
//! name = "C1"
//! exit_ns = 1000
//! residency_ns = 1000
//! ```
//!
//! A class is a file of the same form without a topology, built in. Constants that
//! neither names keep the defaults of their table.

use std::collections::BTreeMap;

use schedlab_topology::{Topology, preset_toml};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use crate::machine::{TABLES, meant};
use crate::{ClockDomain, Cost, IdleState, IdleStates, Law, Machine, MachineError, Row, Unit};

macro_rules! classes {
    ($($name:literal),* $(,)?) => {
        &[$(($name, concat!("class/", $name, ".toml"),
             include_str!(concat!("../../../machines/class/", $name, ".toml")))),*]
    };
}

/// Name, file and text of each class.
const CLASSES: &[(&str, &str, &str)] = classes! {
    "haswell-ep", "skylake-sp", "icelake-sp", "sapphire-rapids", "zen3", "zen4", "kvm-guest", "emulator", "power10",
    "desktop",
};

impl Machine {
    /// The project's machine of this name, or a regular one such as `2x8x8x2` with the defaults of all
    /// tables.
    ///
    /// # Errors
    /// An unknown name, with the known ones.
    pub fn preset(name: &str) -> Result<Machine, MachineError> {
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            return Machine::regular(name);
        }
        let text = preset_toml(name)?;
        let mut machine = Machine::from_toml(&format!("machines/{name}.toml"), text)?;
        machine.topology = machine.topology.named(name);
        Ok(machine)
    }

    /// A regular machine, with a hardware class if it names one: `2x8x2:class=zen3`.
    fn regular(name: &str) -> Result<Machine, MachineError> {
        let is_class = |part: &&str| part.starts_with("class=");
        let (lead, options) = name.split_once(':').unwrap_or((name, ""));
        let class = options.split(',').find(is_class);
        let others: Vec<&str> =
            options.split(',').filter(|part| !part.is_empty() && !is_class(part)).collect();
        let shape = if others.is_empty() { lead.to_string() } else { format!("{lead}:{}", others.join(",")) };
        let mut machine = Machine::of(Topology::regular(&shape)?);
        if let Some(class) = class {
            let table = format!("[hardware]\nclass = \"{}\"\n", class.trim_start_matches("class="));
            machine.apply_toml(name, &table)?;
            machine.topology = machine.topology.named(name);
        }
        Ok(machine)
    }

    /// Reads a machine file; `file` is what errors call it.
    ///
    /// # Errors
    /// The line that is wrong and what would be right.
    pub fn from_toml(file: &str, text: &str) -> Result<Machine, MachineError> {
        let mut machine = Machine::of(Topology::from_toml(file, text)?);
        machine.apply_toml(file, text)?;
        Ok(machine)
    }

    /// Applies the tables of a machine file, except the topology, to this machine.
    ///
    /// # Errors
    /// As of [`Machine::from_toml`].
    pub fn apply_toml(&mut self, file: &str, text: &str) -> Result<(), MachineError> {
        let place = Place { file, text };
        let parsed: File = toml::from_str(text).map_err(|error| place.at(error.span(), error.message()))?;
        if let Some(name) = &parsed.hardware.class {
            let Some((_, file, text)) = CLASSES.iter().find(|(known, _, _)| known == name.get_ref()) else {
                let names: Vec<_> = CLASSES.iter().map(|row| row.0).collect();
                let problem =
                    format!("there is no class \"{}\"; there are {}", name.get_ref(), names.join(", "));
                return Err(place.at(Some(name.span()), &problem));
            };
            self.apply_toml(file, text)?;
        }
        if let Some(law) = parsed.hardware.law {
            self.law = law.into();
        }
        if let Some(domain) = parsed.hardware.clock_domain {
            self.clock_domain = domain.into();
        }
        if let Some(shared) = parsed.hardware.shared_clock {
            self.shared_clock = shared;
        }
        for (table, numbers) in parsed.tables() {
            for (name, number) in numbers {
                let Some((row, cost)) = self.constant_mut(table, name.get_ref()) else {
                    let names = TABLES.iter().flat_map(|rows| rows.iter());
                    let hint = meant(name.get_ref(), names.filter(|r| r.table == table).map(|r| r.name));
                    let problem = format!("[{table}] has no \"{}\"{hint}", name.get_ref());
                    return Err(place.at(Some(name.span()), &problem));
                };
                number.apply(row, cost).map_err(|problem| place.at(Some(name.span()), &problem))?;
            }
        }
        if let Some(first) = parsed.idle_state.first() {
            let span = first.span();
            for row in &parsed.idle_state {
                row.get_ref().check().map_err(|problem| place.at(Some(row.span()), &problem))?;
            }
            let states = parsed.idle_state.into_iter().map(|row| row.into_inner().into()).collect();
            self.idle = IdleStates::new(states, self.idle.prices.clone())
                .map_err(|problem| place.at(Some(span), &problem))?;
        }
        Ok(())
    }
}

/// A file with its text, to find line numbers.
struct Place<'a> {
    file: &'a str,
    text: &'a str,
}

impl Place<'_> {
    fn at(&self, span: Option<std::ops::Range<usize>>, problem: &str) -> MachineError {
        let upto = span.map_or(0, |span| span.start.min(self.text.len()));
        let line = self.text.as_bytes()[..upto].iter().filter(|&&b| b == b'\n').count() + 1;
        MachineError::Line { file: self.file.to_string(), line, problem: problem.trim().replace('\n', "; ") }
    }
}

type Numbers = BTreeMap<Spanned<String>, Number>;

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "topology")]
    _topology: Option<IgnoredAny>,
    #[serde(default)]
    hardware: Hardware,
    #[serde(default)]
    cost: Numbers,
    #[serde(default)]
    ipi: Numbers,
    #[serde(default)]
    smt: Numbers,
    #[serde(default)]
    idle: Numbers,
    #[serde(default)]
    softirq: Numbers,
    #[serde(default)]
    cache: Numbers,
    #[serde(default)]
    bandwidth: Numbers,
    #[serde(default)]
    freq: Numbers,
    #[serde(default)]
    cacheline: Numbers,
    #[serde(default)]
    idle_state: Vec<Spanned<StateRow>>,
}

impl File {
    fn tables(&self) -> [(&'static str, &Numbers); 9] {
        [
            ("cost", &self.cost),
            ("ipi", &self.ipi),
            ("smt", &self.smt),
            ("idle", &self.idle),
            ("softirq", &self.softirq),
            ("cache", &self.cache),
            ("bandwidth", &self.bandwidth),
            ("freq", &self.freq),
            ("cacheline", &self.cacheline),
        ]
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Hardware {
    class: Option<Spanned<String>>,
    law: Option<LawName>,
    clock_domain: Option<DomainName>,
    shared_clock: Option<bool>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum LawName {
    Fixed,
    Pstate,
    Hardware,
}

impl From<LawName> for Law {
    fn from(name: LawName) -> Law {
        match name {
            LawName::Fixed => Law::Fixed,
            LawName::Pstate => Law::Pstate,
            LawName::Hardware => Law::Hardware,
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum DomainName {
    Core,
    Package,
}

impl From<DomainName> for ClockDomain {
    fn from(name: DomainName) -> ClockDomain {
        match name {
            DomainName::Core => ClockDomain::Core,
            DomainName::Package => ClockDomain::Package,
        }
    }
}

/// A constant: the value alone, or with range and source.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a whole number, or { value, range = [low, high], source }")]
enum Number {
    Value(u64),
    Full {
        value: u64,
        range: Option<[u64; 2]>,
        #[serde(default)]
        source: String,
    },
}

impl Number {
    fn apply(&self, row: &Row, cost: &mut Cost) -> Result<(), String> {
        let limits = row.limits();
        let (Number::Value(value) | Number::Full { value, .. }) = self;
        if !limits.contains(value) {
            let (least, most) = (limits.start(), limits.end());
            let unit = if row.unit == Unit::Count { String::new() } else { format!(" {}", row.unit.name()) };
            return Err(format!("{} is {value}; {least} to {most}{unit} can be set", row.path()));
        }
        match self {
            Number::Value(value) => cost.set(*value),
            Number::Full { value, range: None, source } => {
                cost.set(*value);
                *cost = cost.clone().from_source(source.clone());
            }
            Number::Full { value, range: Some([low, high]), source } => {
                if value < low || high < value {
                    return Err(format!("{value} is outside its range {low} to {high}"));
                }
                *cost = Cost::new(*value, *low..=*high).from_source(source.clone());
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateRow {
    name: String,
    exit_ns: u64,
    residency_ns: u64,
    #[serde(default)]
    flushes: bool,
}

impl StateRow {
    fn check(&self) -> Result<(), String> {
        for (key, ns, most) in
            [("exit_ns", self.exit_ns, 1_000_000_000), ("residency_ns", self.residency_ns, 3_600_000_000_000)]
        {
            if ns > most {
                return Err(format!("{key} of idle state {} is {ns}; 0 to {most} ns can be set", self.name));
            }
        }
        Ok(())
    }
}

impl From<StateRow> for IdleState {
    fn from(row: StateRow) -> IdleState {
        let StateRow { name, exit_ns, residency_ns, flushes } = row;
        IdleState { name, exit_ns, residency_ns, flushes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Machine, MachineError> {
        Machine::from_toml("m.toml", &format!("[topology]\nregular = \"2x4\"\n{text}"))
    }

    #[test]
    fn a_file_overrides_its_class_and_the_class_the_defaults() {
        let machine = read(
            "[hardware]\nclass = \"haswell-ep\"\n[cost]\nsyscall_ns = 333\n\
             [smt]\ntwo_permille = { value = 600, range = [590, 610], source = \"measured\" }\n",
        )
        .unwrap();
        assert_eq!(machine.cost.syscall_ns.get(), 333);
        assert_eq!(machine.cost.wakeup_ns, Machine::of(machine.topology.clone()).cost.wakeup_ns);
        assert_eq!(machine.smt.two_permille.range(), 590..=610);
        assert_eq!(machine.smt.two_permille.source(), "measured");
        let names: Vec<_> = machine.idle.states().iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["C1", "C1E", "C3", "C6"]);
        assert_eq!(machine.line.llc_ns.get(), 44);
    }

    #[test]
    fn idle_states_of_a_file_replace_those_of_the_class() {
        let machine = read(
            "[hardware]\nclass = \"haswell-ep\"\n[[idle_state]]\nname = \"C1\"\nexit_ns = 2\nresidency_ns = 2\n",
        )
        .unwrap();
        assert_eq!(machine.idle.states().len(), 1);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let cases = [
            ("[cost]\nsyscal_ns = 1\n", "m.toml:4: [cost] has no \"syscal_ns\"; did you mean syscall_ns?"),
            (
                "[hardware]\nclass = \"zen\"\n",
                "m.toml:4: there is no class \"zen\"; there are haswell-ep, skylake-sp, icelake-sp, \
                 sapphire-rapids, zen3, zen4, kvm-guest, emulator, power10, desktop",
            ),
            (
                "[smt]\n\ntwo_permille = { value = 9, range = [10, 20] }\n",
                "m.toml:5: 9 is outside its range 10 to 20",
            ),
            ("[freq]\none_core_mhz = 0\n", "m.toml:4: freq.one_core_mhz is 0; 1 to 1000000 MHz can be set"),
            (
                "[freq]\none_core_mhz = { value = 4611686018427387904, range = [0, 4611686018427387904] }\n",
                "m.toml:4: freq.one_core_mhz is 4611686018427387904; 1 to 1000000 MHz can be set",
            ),
            ("[softirq]\nmax_restart = 0\n", "m.toml:4: softirq.max_restart is 0; 1 to 1000000 can be set"),
            (
                "[[idle_state]]\nname = \"C1\"\nexit_ns = 4611686018427387904\nresidency_ns = 1\n",
                "m.toml:3: exit_ns of idle state C1 is 4611686018427387904; 0 to 1000000000 ns can be set",
            ),
            (
                "[softirq]\n_ = 1\n",
                "m.toml:4: [softirq] has no \"_\"; there are max_time_ns, max_restart, net_budget, entry_ns",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text).unwrap_err().to_string(), expected);
        }
        for (text, line, part) in [
            ("[hardware]\nlaw = \"slow\"\n", 4, "unknown variant `slow`"),
            ("[costs]\n", 3, "unknown field `costs`"),
            ("[cost]\nsyscall_ns = -1\n", 3, "a whole number, or { value, range = [low, high], source }"),
            ("[[idle_state]]\nname = \"C1\"\n", 3, "missing field `exit_ns`"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with("m.toml:") && error.contains(part), "{error}");
            let found: usize = error.split(':').nth(1).unwrap().parse().unwrap();
            assert!(found.abs_diff(line) <= 1, "{error}");
        }
    }

    #[test]
    fn every_preset_and_class_can_be_read() {
        for name in schedlab_topology::preset_names() {
            let machine = Machine::preset(name).unwrap();
            assert_eq!(machine.name(), name);
            assert!(!machine.idle.states().is_empty(), "{name} has a class with idle states");
        }
        let plain = Machine::preset("2x4:cluster=2").unwrap();
        let zen3 = Machine::preset("2x4:cluster=2,class=zen3").unwrap();
        assert_eq!(plain.topology.nr_cpus(), zen3.topology.nr_cpus());
        assert!(plain.idle.states().is_empty() && !zen3.idle.states().is_empty());
        assert!(Machine::preset("2x4:class=zen9").unwrap_err().to_string().contains("there is no class"));
        for (name, _, _) in CLASSES {
            read(&format!("[hardware]\nclass = \"{name}\"\n")).unwrap();
        }
    }
}
