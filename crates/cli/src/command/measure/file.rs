//! The machine file of a measurement: the topology, and each constant with its spread and how it was measured.

use std::fmt::Write as _;

use schedlab::machine::Machine;
use schedlab::topology::{CpuMask, Topology};

use super::probe::Figure;
use crate::error::Error;

/// What is known about this host so far.
pub struct Findings {
    /// As `schedlab topo host` has it.
    pub topology: Topology,
    constants: Vec<Constant>,
    /// How long a CPU takes to leave idle after a long time.
    pub idle_exit: Option<Figure>,
    /// What could not be measured, each in a sentence.
    pub missing: Vec<String>,
}

struct Constant {
    table: &'static str,
    name: &'static str,
    figure: Figure,
    how: String,
}

impl Findings {
    /// Only the topology is known.
    pub fn new(topology: Topology) -> Findings {
        Findings { topology, constants: Vec::new(), idle_exit: None, missing: Vec::new() }
    }

    /// A constant of the machine, in the unit of its table, and how it was measured; replaces an earlier value.
    pub fn set(&mut self, table: &'static str, name: &'static str, figure: Figure, how: impl Into<String>) {
        self.constants.retain(|known| (known.table, known.name) != (table, name));
        self.constants.push(Constant { table, name, figure, how: how.into() });
    }

    /// Something that could not be measured.
    pub fn lacks(&mut self, sentence: impl Into<String>) {
        self.missing.push(sentence.into());
    }

    /// The machine as far as it is known.
    ///
    /// # Errors
    /// A constant that no machine can have.
    pub fn machine(&self) -> Result<Machine, Error> {
        Ok(Machine::from_toml("measured", &self.to_toml(&[]))?)
    }

    /// The file, with some lines of comment on top.
    pub fn to_toml(&self, story: &[String]) -> String {
        let mut text = String::new();
        for line in story {
            _ = writeln!(text, "# {line}");
        }
        for sentence in &self.missing {
            _ = writeln!(text, "# Not measured: {sentence}");
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&topology(&self.topology));
        let mut tables: Vec<&str> = self.constants.iter().map(|constant| constant.table).collect();
        tables.sort_unstable();
        tables.dedup();
        for table in tables {
            _ = writeln!(text, "\n[{table}]");
            for Constant { name, figure, how, .. } in self.constants.iter().filter(|c| c.table == table) {
                let [value, low, high] =
                    [figure.value, figure.low, figure.high].map(|x| x.round().max(1.0) as u64);
                let (low, high) = (low.min(value), high.max(value));
                _ = writeln!(
                    text,
                    "{name} = {{ value = {value}, range = [{low}, {high}], source = \"measured: {how}\" }}"
                );
            }
        }
        if let Some(exit) = &self.idle_exit {
            let exit = exit.value.round() as u64;
            _ = writeln!(
                text,
                "\n# Measured: what a wake-up takes longer after 4 ms of idleness than in a ping-pong.\n[[idle_state]]\n\
                 name = \"measured\"\nexit_ns = {exit}\nresidency_ns = {}",
                2 * exit
            );
        }
        text
    }
}

/// A `[topology]` that reads back as the same machine.
fn topology(t: &Topology) -> String {
    let list = |masks: &[CpuMask]| {
        let masks: Vec<String> = masks.iter().map(|mask| format!("\"{mask}\"")).collect();
        format!("[{}]", masks.join(", "))
    };
    let mut text = format!("[topology]\ncpus = {}\n", t.nr_cpus());
    for (name, masks) in [
        ("packages", t.packages()),
        ("dies", t.dies()),
        ("nodes", t.nodes()),
        ("llcs", t.llcs()),
        ("clusters", t.clusters()),
        ("cores", t.cores()),
    ] {
        _ = writeln!(text, "{name} = {}", list(masks));
    }
    _ = writeln!(text, "distances = {:?}", t.distances());
    _ = writeln!(text, "reclaim_distance = {}", t.reclaim_distance());
    let small: Vec<String> = t
        .cpus()
        .filter(|(_, cpu)| cpu.capacity < 1024)
        .map(|(id, cpu)| format!("{{ cpus = \"{id}\", capacity = {} }}", cpu.capacity))
        .collect();
    if !small.is_empty() {
        _ = writeln!(text, "capacities = [{}]", small.join(", "));
    }
    let offline: Vec<String> =
        t.cpus().filter(|(_, cpu)| !cpu.online).map(|(id, _)| id.to_string()).collect();
    if !offline.is_empty() {
        _ = writeln!(text, "offline = \"{}\"", offline.join(","));
    }
    if !t.isolated().is_empty() {
        _ = writeln!(text, "isolcpus = \"{}\"", t.isolated());
    }
    let sizes =
        t.cpus().map(|(id, _)| t.cache_sizes(id)).find(|sizes| sizes.l2.is_some() || sizes.llc.is_some());
    if let Some(sizes) = sizes {
        for (name, bytes) in [("l2_size", sizes.l2), ("llc_size", sizes.llc)] {
            if let Some(bytes) = bytes {
                _ = writeln!(text, "{name} = \"{}K\"", bytes >> 10);
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_topology_reads_back_as_the_same_machine() {
        for name in [
            "zen3-2s",
            "numa-48c",
            "power10-12c",
            "2x2x4x2:smt=interleaved,isolcpus=3",
            "6:capacity=0-3/446,offline=5",
        ] {
            let machine = Machine::preset(name).unwrap();
            let text = topology(&machine.topology);
            let back = Topology::from_toml("x", &text).unwrap_or_else(|e| panic!("{name}: {e}\n{text}"));
            let as_named = back.named(&machine.topology.name);
            assert_eq!(as_named, machine.topology, "{name}\n{text}");
        }
    }

    #[test]
    fn a_machine_file_has_each_constant_with_spread_and_source() {
        let mut findings = Findings::new(Topology::regular("1x1x2").unwrap());
        findings.set("cost", "syscall_ns", Figure { value: 70.4, low: 68.0, high: 75.0 }, "getppid()");
        findings.set("cost", "syscall_ns", Figure { value: 71.0, low: 72.0, high: 75.0 }, "getppid() again");
        findings.idle_exit = Some(Figure { value: 3000.0, low: 2000.0, high: 4000.0 });
        findings.lacks("other packages: there is one");
        let machine = findings.machine().unwrap();
        assert_eq!((machine.cost.syscall_ns.get(), machine.cost.syscall_ns.range()), (71, 71..=75));
        assert_eq!(machine.cost.syscall_ns.source(), "measured: getppid() again");
        assert_eq!(machine.idle.states().len(), 1);
        let text = findings.to_toml(&["a host".to_string()]);
        assert!(
            text.starts_with("# a host\n# Not measured: other packages: there is one\n\n[topology]\n"),
            "{text}"
        );
    }
}
