//! Runs a recording again: on its own machine to see whether it is reproduced, then elsewhere.
//!
//! What tasks do is learned from the recording; the simulated kernel decides where and when they do it. The
//! lengths of work include everything that the recorded kernel and machine added to them: its system calls
//! and switches, a sibling's share of the core, cold caches. So those costs are not charged again.

mod beginning;
mod course;
mod fidelity;
mod fit;
mod form;
mod gaps;
mod home;
mod lacks;
mod passes;
mod state;
mod trial;

use schedlab_machine::{Machine, Mechanism, Without};
use schedlab_recording::{AffinityHint, Steady};
use schedlab_replay::{Known, Learned, Learner, Options, PROLOGUE};
use schedlab_report::metrics::{Busy, Counts, Migrations, WakeupLatency};
use schedlab_report::{Direction, Table};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::{Comm, Event, Kept, Sink};
use schedlab_units::Duration;

use self::lacks::Lacks;
use crate::columns::Experiment;
use crate::error::Error;
use crate::experiment::{ENDLESS, Results};
use crate::scenario::{Row, Scenario};

pub use beginning::Beginning;
pub use fidelity::{Fidelity, Line, Runs};
pub use form::{Form, Hears};
pub use gaps::Gaps;
pub use home::Home;
pub use schedlab_replay::Wakers;
pub use state::State;

/// Figures of a recording or its replay, without the tasks that a simulated kernel creates itself.
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
    /// What happened by when.
    pub course: course::Course,
}

impl Sink for Figures {
    fn event(&mut self, event: &Event) {
        self.counts.event(event);
        self.migrations.event(event);
        self.latency.event(event);
        self.busy.event(event);
        self.course.event(event, &self.counts, &self.migrations);
    }
}

/// Whether a task is compared: all except stoppers, which move tasks.
fn is_compared(comm: Comm) -> bool {
    !comm.as_bytes().starts_with(b"migration/")
}

fn figures() -> Kept<fn(Comm) -> bool, Figures> {
    Kept::new(is_compared as fn(Comm) -> bool, Figures::default())
}

/// Listens to a recording.
#[derive(Debug)]
pub struct Listener {
    /// An event that is out of order is assigned the time of the previous one.
    steady: Steady,
    gaps: Gaps,
    learner: Learner,
    figures: Kept<fn(Comm) -> bool, Figures>,
    lacks: Lacks,
    known: Known,
}

impl Listener {
    /// An empty listener.
    pub fn new() -> Listener {
        Listener::knowing(Known::default())
    }

    /// An empty listener for a recording with facts about its tasks and groups.
    pub fn knowing(known: Known) -> Listener {
        Listener {
            steady: Steady::default(),
            gaps: Gaps::default(),
            learner: Learner::knowing(known.clone()),
            figures: figures(),
            lacks: Lacks::default(),
            known,
        }
    }

    /// The result of listening.
    ///
    /// # Errors
    /// Events that the recording lacks, with the command that records them.
    pub fn finish(self, name: &str) -> Result<Recorded, Error> {
        let learned = self.learner.finish().map_err(|e| Error::new(format!("{name}: {e}")))?;
        let nr_cpus = learned.nr_cpus;
        Ok(Recorded {
            name: name.to_string(),
            learned,
            gaps: self.gaps,
            figures: self.figures.into_inner(),
            lacks: self.lacks,
            nr_cpus,
            affinity: Vec::new(),
            known: self.known,
            sched_ext: None,
        })
    }
}

impl Default for Listener {
    fn default() -> Listener {
        Listener::new()
    }
}

impl Sink for Listener {
    fn event(&mut self, event: &Event) {
        let time = self.gaps.cut(self.steady.at(event.time));
        let moved = (time != event.time).then(|| Event { time, ..event.clone() });
        let event = moved.as_ref().unwrap_or(event);
        self.learner.event(event);
        self.figures.event(event);
        self.lacks.event(event);
    }
}

/// A recording that was read to its end.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The file.
    pub name: String,
    /// What its tasks do.
    pub learned: Learned,
    /// Gaps of its clock, which were cut.
    pub gaps: Gaps,
    /// Its figures.
    pub figures: Figures,
    /// What happened without an event.
    lacks: Lacks,
    /// Number of CPUs of its machine; the number that events show, unless the facts say more.
    pub nr_cpus: usize,
    /// Allowed CPUs of tasks by name, if known from elsewhere.
    pub affinity: Vec<AffinityHint>,
    /// What was known about tasks and groups when it was recorded.
    pub known: Known,
    /// The scheduler of sched_ext that made it, if one did.
    pub sched_ext: Option<String>,
}

/// Where a recording is replayed.
#[derive(Clone, Debug)]
pub struct Place {
    /// The machine.
    pub machine: Machine,
    /// Its idle CPUs notice each wake-up as late as in the recording.
    heard: bool,
    /// Interrupts arrive on the CPUs where they arrived in the recording.
    interrupts: bool,
    /// What wakers do.
    wakers: Wakers,
    /// Tasks yield once per this many of their usual intervals.
    yields: u8,
    /// How long new tasks are placed as recorded.
    placed: Duration,
}

impl Recorded {
    /// Its own machine: nothing costs time, except the time an idle CPU took to notice work in the recording,
    /// and whatever the form of the replay adds.
    pub fn own(&self, topology: Topology, form: Form) -> Place {
        let mut machine = Machine::of(topology);
        machine.newidle_cost = form.newidle_us * 1000;
        let hears = form.hears.latency(&self.learned).0;
        for (name, value) in
            [("ipi.send_ns", 0), ("ipi.handle_ns", 0), ("ipi.deliver_ns", hears), ("ipi.polling_ns", hears)]
        {
            machine.set(name, value).expect("a constant of every machine");
        }
        let all = Mechanism::TABLE.iter().map(|row| row.0).filter(|m| *m != Mechanism::Ipi);
        let machine = machine.without(all.fold(Without::NOTHING, Without::with));
        let Form { wakers, yields, hears, interrupts, .. } = form;
        let heard = hears == Hears::Each;
        Place { machine, heard, interrupts, wakers, yields, placed: Duration::ZERO }
    }

    /// Another machine, without the costs that the recorded work already includes. Only the parts of the form that
    /// belong to the programs are kept.
    pub fn elsewhere(&self, machine: Machine, recorded_on: &Topology, form: Form) -> Place {
        let mut without = machine.without.with(Mechanism::KernelCosts);
        if recorded_on.is_smt() {
            without = without.with(Mechanism::Smt);
        }
        let Form { wakers, yields, .. } = form;
        let machine = machine.without(without);
        Place { machine, heard: false, interrupts: false, wakers, yields, placed: Duration::ZERO }
    }

    /// The programs on a machine, as the one row of a scenario.
    ///
    /// # Errors
    /// Programs that contradict themselves.
    pub fn row(&self, place: &Place) -> Result<Row, Error> {
        let name = format!("replay of {}", self.name);
        let options = Options {
            name,
            recorded_cpus: self.nr_cpus,
            nr_cpus: place.machine.topology.nr_cpus(),
            heard: place.heard,
            interrupts: place.interrupts,
            wakers: place.wakers,
            yields: place.yields,
            placed: place.placed,
            past: place.placed > Duration::ZERO,
            affinity: self.affinity.clone(),
            known: self.known.clone(),
        };
        let workload =
            self.learned.workload(&options).map_err(|e| Error::new(format!("{}: {e}", self.name)))?;
        Ok(Row { key: String::new(), workload, notes: Vec::new(), prologue: PROLOGUE, over: None })
    }

    /// The comparison of kernels on a machine.
    ///
    /// # Errors
    /// Programs that contradict themselves.
    pub fn scenario(
        &self,
        place: Place,
        kernels: Vec<Kernel>,
        runs: u32,
        seed: u64,
    ) -> Result<Scenario, Error> {
        let rows = vec![self.row(&place)?];
        let story = format!("What was recorded in {}, replayed.", self.name);
        let (file, machine) = (self.name.clone(), place.machine);
        let endless = self.endless();
        Ok(Scenario {
            file,
            story,
            machine,
            kernels,
            runs,
            seed,
            settles: false,
            limit: None,
            endless,
            rows,
            expect: Vec::new(),
            noise: schedlab_sim::Noise::QUIET,
            reference: None,
            settings: Vec::new(),
        })
    }
}

impl Recorded {
    /// A replay that takes ten times as long as the recording, and an hour more, is considered endless.
    fn endless(&self) -> Duration {
        // Damaged time stamps span centuries.
        let span = self.figures.busy.span().min(Duration::secs(365 * 86_400));
        ENDLESS + span * 10
    }

    /// Caveats about figures from a machine.
    pub fn notes(&self, machine: &Machine, recorded_on: &Topology) -> Vec<String> {
        let mut notes = Vec::new();
        if recorded_on.is_smt() {
            notes.push(
                "run lengths were recorded on CPUs that share their core with a sibling and stay as they were; \
                 SMT is not charged again"
                    .to_string(),
            );
        }
        if !self.learned.has_waking {
            notes.push(
                "there is no sched_waking in the recording: the waker of a task that another CPU queued is not known, and \
                 such a sleep ends at its recorded time; record with -e sched_waking"
                    .to_string(),
            );
        }
        let unrecorded = self.unrecorded();
        if !unrecorded.is_empty() {
            notes.push(format!(
                "{} are not in the recording, though there were some, and are not compared (events sched_wakeup, \
                 sched_migrate_task)",
                unrecorded.join(" and ")
            ));
        }
        let (here, there) = (recorded_on.nr_cpus(), machine.topology.nr_cpus());
        if there < here {
            notes.push(format!(
                "{} has {there} CPUs, the recording {here}: masks and threads bound to CPUs that are not there go to \
                 the CPU of the remaining number",
                machine.name()
            ));
        }
        notes
    }
}

/// Run time and wake-up latency of the replays, one column per kernel.
pub fn table(experiment: &Experiment, results: &Results) -> Table {
    let mut table = crate::tables::titled(experiment, results);
    let runs = || results.runs[0].iter().enumerate().flat_map(|(k, runs)| runs.iter().map(move |r| (k, r)));
    let time = table.metric("run time", "ms", Direction::Lower);
    for (kernel, run) in runs() {
        time.record("", kernel, run.seed, ms(run.elapsed));
    }
    let latency = table.metric("wake-up latency", "us", Direction::Lower);
    for (percent, key) in [(50.0, "p50"), (99.0, "p99"), (99.9, "p99.9")] {
        for (kernel, run) in runs() {
            let value = run.folds.latency.histogram.percentile(percent).unwrap_or(0);
            latency.record(key, kernel, run.seed, value as f64 / 1e3);
        }
    }
    let counts = table.metric("switches and migrations", "", Direction::Lower);
    for (kernel, run) in runs() {
        let folds = &run.folds;
        counts.record("voluntary", kernel, run.seed, folds.counts.voluntary as f64);
        counts.record("involuntary", kernel, run.seed, folds.counts.involuntary as f64);
        counts.record("migrations", kernel, run.seed, folds.migrations.total() as f64);
    }
    table
}

fn ms(time: Duration) -> f64 {
    time.0 as f64 / 1e6
}
