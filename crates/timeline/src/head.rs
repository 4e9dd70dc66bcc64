//! What is known about a whole trace: its machine, tasks and names, and where its chunks are.

use schedlab_topology::{CpuId, Topology};
use serde::Serialize;

/// The whole of a trace, except its chunks.
#[derive(Clone, Debug, Serialize)]
pub struct Head {
    /// Version of the columns.
    pub version: u32,
    /// Title for display.
    pub title: String,
    /// First instant by the clock of the trace, ns; every other time counts from here.
    pub start_ns: String,
    /// Length, ns.
    pub duration: u64,
    /// Events read.
    pub events: u64,
    /// Events that the recorder lost, if counted.
    pub lost_events: u64,
    /// Places where the recorder lost events.
    pub losses: u64,
    /// The position of each CPU.
    pub cpus: Cpus,
    /// The tasks.
    pub tasks: TaskColumns,
    /// Words that columns name by number.
    pub names: Vec<String>,
    /// In order of time.
    pub chunks: Vec<ChunkHead>,
    /// Bins of the overview per CPU, and their width in ns.
    pub bins: usize,
    /// Width of a bin, ns.
    pub bin_ns: u64,
    /// The overview: for each CPU and bin the busy share (0 to 255), then in the same way the task with the longest
    /// single stretch, then the longest run queue; see [`crate::Columns`].
    #[serde(skip)]
    pub overview: Vec<u8>,
}

/// The position of each CPU, and its totals. Every column has one entry per CPU.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Cpus {
    /// Name of the machine; empty if it is not known.
    pub machine: String,
    /// NUMA node.
    pub node: Vec<u16>,
    /// Last-level cache.
    pub llc: Vec<u16>,
    /// Core.
    pub core: Vec<u16>,
    /// Time with a task, ns.
    pub busy_ns: Vec<u64>,
    /// Time in interrupts that interrupted a task or the idle task, ns.
    pub stolen_ns: Vec<u64>,
    /// Switches.
    pub switches: Vec<u64>,
}

impl Cpus {
    /// The CPUs of a machine, or `nr_cpus` CPUs about which nothing is known.
    pub(crate) fn new(topology: Option<&Topology>, nr_cpus: usize) -> Cpus {
        let mut cpus =
            Cpus { machine: topology.map_or(String::new(), |t| t.name.clone()), ..Cpus::default() };
        for cpu in 0..nr_cpus {
            let place = topology.filter(|t| cpu < t.nr_cpus()).map(|t| t.cpu(CpuId(cpu as u16)));
            cpus.node.push(place.map_or(0, |place| place.node.0));
            cpus.llc.push(place.map_or(0, |place| place.llc));
            cpus.core.push(place.map_or(cpu as u16, |place| place.core));
        }
        cpus
    }
}

/// The tasks; every column has one entry per task.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs)] // a column is what its name says; times and spans are in ns
pub struct TaskColumns {
    pub name: Vec<String>,
    pub pid: Vec<i32>,
    /// Number of the parent plus one; 0 if it is not known.
    pub parent: Vec<u32>,
    pub first: Vec<u64>,
    pub last: Vec<u64>,
    pub run_ns: Vec<u64>,
    pub switches: Vec<u64>,
    pub wakeups: Vec<u64>,
    pub migrations: Vec<u64>,
    /// From wake-up to run, summed.
    pub wait_ns: Vec<u64>,
    /// From wake-up to run, the longest.
    pub wait_ns_max: Vec<u64>,
}

/// The time span of a chunk, and how much is in it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ChunkHead {
    /// First instant.
    pub from: u64,
    /// Where the next chunk begins.
    pub to: u64,
    /// Stretches of tasks on CPUs.
    pub stretches: u64,
    /// Decisions.
    pub decisions: u64,
}
