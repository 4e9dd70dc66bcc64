//! The closed loop: recorded programs are run again by the simulator, and both runs are measured in the same way.
//!
//! A recording contains the program and its arguments (`cmd.txt`), the machine (`facts/topology.txt`) and the trace.
//! The same program as a model, on the same machine under the same rules, should give the same figures. Both traces
//! pass the same filter, which keeps only the program's own tasks, and the same folds.
//!
//! The emulator that made the recordings has costs and a clock of its own:
//! `machines/class/emulator.toml`.

mod bystanders;
mod company;
mod course;
mod led;
mod placed;
mod program;
mod session;
mod turns;

use std::io::{Read, Seek};

use schedlab_audit::{Audit, Options};
use schedlab_machine::Machine;
use schedlab_report::metrics::{Busy, Cause, Counts, Migrations, Placements, WakeupLatency};
use schedlab_sched::{Experience, Kernel, Lately};
use schedlab_sim::{Past, Simulation};
use schedlab_topology::{CpuId, Topology};
use schedlab_trace::read::{Record, open};
use schedlab_trace::{Comm, Event, Kept, Kind, Sink, Tee};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::{Flips, SpecId, Start};

use schedlab::Error;

pub use bystanders::Bystanders;
pub use company::Company;
pub use course::{Course, Courses};
pub use led::{Led, Share, bare_machine, shares};
pub use placed::{Placed, Step, compare};
pub use program::Program;
pub use session::{SESSION, idle_balance_costs, learned};

/// Longest virtual time of a simulated program; the recorded ones take at most some seconds.
const LIMIT: Duration = Duration::secs(30);

/// What a program's own tasks did.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Switches, wake-ups, new tasks.
    pub counts: Counts,
    /// Migrations by cause.
    pub migrations: Migrations,
    /// Wake-up latency.
    pub latency: WakeupLatency,
    /// Run time.
    pub busy: Busy,
    /// New tasks.
    pub placements: Placements,
    /// How hogs shared CPUs.
    pub company: Company,
    /// How the program began.
    pub begun: Begun,
    /// What balancing had learned at its end.
    pub left: Experience,
}

/// What is known about a program's run besides its command line.
#[derive(Clone, Debug, Default)]
pub struct Begun {
    /// When it began.
    pub at: Option<Time>,
    /// Kernel threads that ran with it.
    pub bystanders: Bystanders,
    /// The CPU of the task that created the first new one.
    pub cpu: Option<CpuId>,
    /// The wakee flips of its parent, which all tasks of the program inherit. The audit learns them from where tasks
    /// were woken.
    pub flips: Option<Flips>,
    /// What balancing had learned by then; `None` if that is not known.
    pub experience: Option<Experience>,
}

impl Figures {
    /// The figures of the program's own tasks: `wl_NAME` from the exec on, then the names it sets.
    fn of(program: &Program) -> Kept<impl Fn(Comm) -> bool + use<>, Figures> {
        let company = Company::new(program.prefix(), program.nice());
        Kept::new(program.own(), Figures { company, ..Figures::default() })
    }
}

impl Sink for Figures {
    fn event(&mut self, event: &Event) {
        self.begun.at.get_or_insert(event.time);
        let is_new = matches!(event.kind, Kind::SchedWakeupNew { .. });
        if is_new && event.pid == Pid::IDLE {
            // A simulation begins with its first task, which no task forked.
            return;
        }
        self.counts.event(event);
        self.migrations.event(event);
        self.latency.event(event);
        self.busy.event(event);
        self.company.event(event);
        self.placements.event(event);
        if is_new {
            self.begun.cpu.get_or_insert(event.cpu);
        }
    }
}

/// The rows of the table of counts.
pub const ROWS: [&str; 13] = [
    "run time ms",
    "elapsed ms",
    "voluntary",
    "involuntary",
    "wake-ups",
    "new tasks",
    "moved at wake-up",
    "moved newly idle",
    "moved periodic",
    "moved nohz",
    "moved stopper",
    "latency p50 us",
    "latency p99 us",
];

impl Figures {
    /// The same for a program without bystanders.
    #[must_use]
    pub fn alone(mut self) -> Figures {
        self.begun.bystanders = Bystanders::default();
        self
    }

    /// The figures in the order of [`ROWS`].
    pub fn row(&self) -> [f64; ROWS.len()] {
        let us = |percent| self.latency.histogram.percentile(percent).unwrap_or(0) as f64 / 1e3;
        let moved = |cause| self.migrations.of(cause) as f64;
        [
            self.busy.total().0 as f64 / 1e6,
            self.busy.span().0 as f64 / 1e6,
            self.counts.voluntary as f64,
            self.counts.involuntary as f64,
            self.counts.wakeups as f64,
            self.counts.forks as f64,
            moved(Cause::Wakeup),
            moved(Cause::NewlyIdle),
            moved(Cause::Periodic),
            moved(Cause::Nohz),
            moved(Cause::Stopper),
            us(50.0),
            us(99.0),
        ]
    }

    /// Shares of the total run time by nice value, for tasks whose name is a prefix and a number; the number selects
    /// the nice value.
    pub fn shares(&self, prefix: &str, nice: &[i8]) -> Vec<(i8, f64)> {
        let mut shares: Vec<(i8, f64)> = Vec::new();
        let mut whole = 0.0;
        for (_, comm, ran) in self.busy.tasks() {
            let name = comm.to_str_lossy();
            let Some(number) = name.strip_prefix(prefix).and_then(|n| n.parse::<usize>().ok()) else {
                continue;
            };
            let nice = nice[number % nice.len()];
            whole += ran.0 as f64;
            match shares.iter_mut().find(|(n, _)| *n == nice) {
                Some((_, sum)) => *sum += ran.0 as f64,
                None => shares.push((nice, ran.0 as f64)),
            }
        }
        shares.sort_by_key(|&(nice, _)| nice);
        for (_, share) in &mut shares {
            *share /= whole;
        }
        shares
    }
}

/// Measures a recorded trace.
///
/// # Errors
/// The trace cannot be read.
pub fn recorded(
    trace: impl Read + Seek + 'static,
    program: &Program,
    machine: &Machine,
    kernel: &Kernel,
) -> Result<Figures, Error> {
    let audit = Audit::new(&machine.topology, kernel, Options::default());
    let mut all = Tee(Figures::of(program), Tee(audit, Courses::default()));
    read_into(trace, &mut all)?;
    let Tee(own, Tee(audit, courses)) = all;
    let inherited = audit.finish().0.inherited;
    let mut figures = own.into_inner();
    let begin = figures.begun.at.unwrap_or_default();
    figures.begun.bystanders = Bystanders::of(&courses, begin, program.own());
    figures.begun.flips = inherited.map(|past| Flips { count: past.flips, halved: past.halved });
    Ok(figures)
}

/// What a recorded trace shows about where each task was, and when.
///
/// # Errors
/// The trace cannot be read.
pub fn courses(trace: impl Read + Seek + 'static) -> Result<Courses, Error> {
    let mut courses = Courses::default();
    read_into(trace, &mut courses)?;
    Ok(courses)
}

fn read_into(trace: impl Read + Seek + 'static, sink: &mut dyn Sink) -> Result<(), Error> {
    let wrong = |e: schedlab_trace::read::Error| Error::new(e.to_string());
    let spool = || -> std::io::Result<std::io::Cursor<Vec<u8>>> { Ok(std::io::Cursor::default()) };
    for record in open(trace, spool).map_err(wrong)? {
        if let Record::Event(event) = record.map_err(wrong)? {
            sink.event(&event);
        }
    }
    Ok(())
}

/// Runs the program in the simulator, with the same start and bystanders as recorded, and measures that.
///
/// # Errors
/// The run does not end.
pub fn simulated(
    machine: &Machine,
    kernel: &Kernel,
    program: &Program,
    begun: &Begun,
    seed: u64,
) -> Result<Figures, Error> {
    let mut workload = program.model(machine.topology.nr_cpus(), begun.cpu)?;
    workload.change_tasks(SpecId(0), |task| {
        if task.start != Start::ByFork {
            task.flips = begun.flips;
        }
    });
    let workload = begun.bystanders.beside(workload).map_err(|e| Error::new(e.to_string()))?;
    // The program that wrote the recording before was active until then.
    let past = Past { experience: begun.experience.clone(), lately: Lately::AtWork, ..Past::default() };
    let simulation = Simulation::new(machine, kernel, &workload).map_err(|e| Error::new(e.to_string()))?;
    let mut own = Figures::of(program);
    let (outcome, left) = simulation.seed(seed).limit(LIMIT).past(past).run_learning(&mut own);
    if !outcome.is_ok() {
        return Err(Error::new(outcome.end.to_string()));
    }
    Ok(Figures { left, ..own.into_inner() })
}

/// The emulated machine of a recording, from its `facts/topology.txt`.
///
/// # Errors
/// The facts do not describe a machine.
pub fn machine(name: &str, topology: &str) -> Result<Machine, Error> {
    let topology = Topology::from_sysfs_lines(name, topology).map_err(|e| Error::new(e.to_string()))?;
    let mut machine = Machine::of(topology);
    machine
        .apply_toml("emulator", "[hardware]\nclass = \"emulator\"\n")
        .map_err(|e| Error::new(e.to_string()))?;
    let none = schedlab_machine::Without::parse("cache-warmth,smt,bandwidth,cache-lines");
    Ok(machine.without(none.map_err(Error::new)?))
}
