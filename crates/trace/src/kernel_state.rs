//! State of the scheduler as it changes, under the names of the kernel's bare tracepoints.
//!
//! The kernel declares these points without a format, for modules to attach to; here they print what such modules print.
//! The kernel does not have those whose name begins with `schedlab_`. They are passed only to a sink that requests them,
//! each when its value has changed.
//!
//! Kernel: DECLARE_TRACE(), include/trace/events/sched.h, v6.12.

use schedlab_topology::CpuId;
use schedlab_units::Pid;

use crate::comm::Comm;
use crate::fields::Value;

/// One value that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Which point: one of [`State::NAMES`].
    pub point: &'static str,
    /// The subject of the state.
    pub about: About,
    /// Its values under their names. Averages are 1024 for one CPU; times are in ns.
    pub values: Vec<(&'static str, i64)>,
}

/// The subject of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// The whole machine.
    Machine,
    /// A CPU's run queue.
    Cpu(CpuId),
    /// The queue of a group on a CPU, by the group's path.
    Queue(CpuId, Box<str>),
    /// A domain of a CPU.
    Domain(CpuId, Box<str>),
    /// A task, on the CPU whose queue it is on.
    Task(CpuId, Comm, Pid),
}

impl State {
    /// Every point.
    pub const NAMES: [&'static str; 11] = [
        "pelt_cfs",
        "pelt_se",
        "pelt_rt",
        "pelt_dl",
        "pelt_irq",
        "sched_util_est_cfs",
        "sched_util_est_se",
        "sched_update_nr_running",
        "sched_overutilized",
        "schedlab_se",
        "schedlab_next_balance",
    ];

    /// Passes on each field.
    pub fn fields<'a>(&'a self, field: &mut dyn FnMut(&'static str, Value<'a>)) {
        let number = |cpu: CpuId| Value::Uint(cpu.0.into());
        match &self.about {
            About::Machine => {}
            About::Cpu(cpu) => field("cpu", number(*cpu)),
            About::Queue(cpu, path) => {
                field("cpu", number(*cpu));
                field("path", Value::text(path));
            }
            About::Domain(cpu, domain) => {
                field("cpu", number(*cpu));
                field("domain", Value::text(domain));
            }
            About::Task(cpu, comm, pid) => {
                field("cpu", number(*cpu));
                field("comm", Value::Text(comm.as_bytes().into()));
                field("pid", Value::Int(pid.0.into()));
            }
        }
        for (name, value) in &self.values {
            field(name, Value::Int(*value));
        }
    }

    /// Its subject, for the name of a track.
    pub fn subject(&self) -> String {
        match &self.about {
            About::Machine => "machine".to_string(),
            About::Cpu(cpu) => format!("CPU {cpu}"),
            About::Queue(cpu, path) => format!("CPU {cpu} {path}"),
            About::Domain(cpu, domain) => format!("CPU {cpu} {domain}"),
            About::Task(_, comm, pid) => format!("{comm} {pid}"),
        }
    }
}
