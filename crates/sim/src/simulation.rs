//! The public interface: one run of a workload on a machine under a kernel.

use std::sync::Arc;

use schedlab_machine::Machine;
use schedlab_sched::{Curr, Experience, Kernel, Sched, Scheduler};
use schedlab_topology::CpuId;
use schedlab_trace::Sink;
use schedlab_units::{Duration, TaskId};
use schedlab_workload::{Op, Workload};

use crate::change::{self, Timed};
use crate::engine::{Engine, Limits, Listens, took};
use crate::noise::Noise;
use crate::outcome::{End, Outcome};
use crate::past::Past;

/// A run that cannot begin, with the part that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimError(String);

impl std::fmt::Display for SimError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SimError {}

/// Default limit on the tasks of a run: 600 MB of them, as ended ones are kept too.
pub(crate) const TASKS_MAX: usize = 1 << 19;

/// One run: machine, kernel, workload and seed. The same four give the same trace,
/// byte for byte.
#[derive(Clone, Debug)]
pub struct Simulation<'a> {
    machine: &'a Machine,
    kernel: &'a Kernel,
    workload: &'a Workload,
    seed: u64,
    limit: Duration,
    events: u64,
    tasks: usize,
    noise: Noise,
    past: Past,
    changes: Arc<[Timed]>,
    settles: bool,
}

impl<'a> Simulation<'a> {
    /// A run that ends with its last foreground task, or when the workload's duration is over.
    ///
    /// # Errors
    /// A CPU that the workload names and the machine lacks, or something that the
    /// engine cannot execute.
    pub fn new(
        machine: &'a Machine,
        kernel: &'a Kernel,
        workload: &'a Workload,
    ) -> Result<Simulation<'a>, SimError> {
        check(machine, workload)?;
        for part in &workload.parts {
            kernel.clone().switch(part).map_err(|e| SimError(e.to_string()))?;
        }
        let limit = workload.duration.unwrap_or(Duration::MAX);
        Ok(Simulation {
            machine,
            kernel,
            workload,
            seed: 1,
            limit,
            events: u64::MAX,
            tasks: TASKS_MAX,
            noise: Noise::QUIET,
            past: Past::default(),
            changes: Arc::from([]),
            settles: false,
        })
    }

    /// The same with another seed.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Simulation { seed, ..self }
    }

    /// The same, ended after this time if it has not ended before.
    #[must_use]
    pub fn limit(self, duration: Duration) -> Self {
        Simulation { limit: self.limit.min(duration), ..self }
    }

    /// The same, aborted after this many events.
    #[must_use]
    pub fn limit_events(self, events: u64) -> Self {
        Simulation { events, ..self }
    }

    /// The same, aborted when it has made more than this many tasks, ended ones included.
    #[must_use]
    pub fn limit_tasks(self, tasks: usize) -> Self {
        Simulation { tasks, ..self }
    }

    /// The same with background noise.
    #[must_use]
    pub fn noise(self, noise: Noise) -> Self {
        Simulation { noise, ..self }
    }

    /// The same, starting in this known state.
    #[must_use]
    pub fn past(self, past: Past) -> Self {
        Simulation { past, ..self }
    }

    /// The same with changes from outside while it runs.
    ///
    /// # Errors
    /// A CPU that the machine does not have, no CPU left online, or a rule that does not exist.
    pub fn changes(self, changes: Vec<Timed>) -> Result<Self, SimError> {
        let topology = &self.machine.topology;
        let nr_specs = self.workload.tasks.len();
        change::check(&changes, topology.nr_cpus(), nr_specs, topology.online(), self.kernel)
            .map_err(SimError)?;
        Ok(Simulation { changes: changes.into(), ..self })
    }

    pub(crate) fn engine(&self, listens: Listens) -> Engine<'a, Sched> {
        let sched = Sched::new(&self.machine.topology, self.kernel, took(self.machine), self.seed);
        self.engine_on(sched, listens)
    }

    fn engine_on<S: Scheduler>(&self, sched: S, listens: Listens) -> Engine<'a, S> {
        let mut engine = Engine::new(self.machine, sched, self.workload, self.seed, &self.past, listens);
        engine.make_noise(self.noise);
        engine.plan(&self.changes);
        engine.settling.before_window = self.settles && self.workload.duration.is_none();
        engine
    }

    pub(crate) fn limits<S>(&self, engine: &Engine<'_, S>) -> Limits {
        Limits { until: engine.began + self.limit, events: self.events, tasks: self.tasks, when_warm: false }
    }

    /// The same, but time begins when the figures have settled: the mark `steady`. Only a workload that has a
    /// duration, or a warm-up and a window of its own, waits for that.
    #[must_use]
    pub fn settle(self) -> Self {
        Simulation { settles: true, ..self }
    }

    /// Runs, and passes the events to the sink.
    pub fn run(&self, sink: &mut dyn Sink) -> Outcome {
        let engine = self.engine(Listens::of(sink));
        self.run_engine(engine, sink)
    }

    fn run_engine<S: Scheduler>(&self, mut engine: Engine<'_, S>, sink: &mut dyn Sink) -> Outcome {
        let mut limits = self.limits(&engine);
        if self.settles && self.workload.duration.is_some() {
            if let Some(end) = engine.stand_still(self.limit, limits, sink) {
                return engine.outcome(end);
            }
            limits.until = engine.now + self.limit;
        }
        let end = engine.run(limits, sink);
        engine.outcome(end)
    }

    /// Runs as [`Simulation::run`] with another scheduler than that of the kernel's rules. It must be one of an idle machine
    /// at time 0, with what work [`took`] on this one.
    pub fn run_on<S: Scheduler>(&self, sched: S, sink: &mut dyn Sink) -> Outcome {
        let engine = self.engine_on(sched, Listens::of(sink));
        self.run_engine(engine, sink)
    }

    /// Runs as [`Simulation::run`], and returns what balancing has learned by the end.
    pub fn run_learning(&self, sink: &mut dyn Sink) -> (Outcome, Experience) {
        let mut engine = self.engine(Listens::of(sink));
        let end = engine.run(self.limits(&engine), sink);
        (engine.outcome(end), engine.sched.experience())
    }

    /// Runs as [`Simulation::run`], and checks all invariants of the scheduler's state after every `every`
    /// events. Slow.
    ///
    /// # Panics
    /// At the first invariant that does not hold.
    pub fn run_checked(&self, every: u64, sink: &mut dyn Sink) -> Outcome {
        let mut engine = self.engine(Listens::of(sink));
        let mut limit = every;
        loop {
            let limits = Limits { events: limit.min(self.events), ..self.limits(&engine) };
            let end = engine.run(limits, sink);
            engine.sched.check();
            engine.check_waiting();
            if end != End::Events(limit) || limit >= self.events {
                return engine.outcome(end);
            }
            limit += every;
        }
    }
}

impl Engine<'_, Sched> {
    /// A task that waits in a queue is on no CPU: balance passes take one that is for the one that runs.
    fn check_waiting(&self) {
        for (number, task) in self.sched.tasks.iter().enumerate() {
            let waits = task.on_rq && self.sched.rqs[task.cpu].curr != Curr::Task(TaskId(number as u32));
            assert!(
                !waits || !task.on_cpu,
                "task {number} waits on CPU {}, and is said to be on one",
                task.cpu
            );
        }
    }
}

fn check(machine: &Machine, workload: &Workload) -> Result<(), SimError> {
    let topology = &machine.topology;
    let there = |cpu: CpuId| cpu.index() < topology.nr_cpus() && topology.cpu(cpu).online;
    let range = format!("machine \"{}\" ({} CPUs)", machine.name(), topology.nr_cpus());
    for list in &workload.cpu_lists {
        if let Some(cpu) = list.cpus().iter().find(|cpu| cpu.index() >= topology.nr_cpus()) {
            return Err(SimError(format!("CPU {cpu} of the list {list} is not in {range}")));
        }
        if !list.cpus().iter().any(|&cpu| there(cpu)) {
            return Err(SimError(format!("no CPU of the list {list} is online in {range}")));
        }
    }
    for task in &workload.tasks {
        if let Some(cpu) = task.start_cpu.filter(|&cpu| !there(cpu)) {
            return Err(SimError(format!(
                "task \"{}\" starts on CPU {cpu}, which is not in {range}",
                task.name()
            )));
        }
    }
    for op in &workload.code {
        let (cpu, what) = match *op {
            Op::InterruptOn { cpu } => (cpu, "an interrupt comes to"),
            Op::Hotplug { cpu, .. } => (cpu, "a task plugs"),
            _ => continue,
        };
        if cpu.index() >= topology.nr_cpus() {
            return Err(SimError(format!("{what} CPU {cpu}, which is not in {range}")));
        }
    }
    for source in &workload.objects.sources {
        if !there(source.cpu) {
            let (name, cpu) = (&source.name, source.cpu);
            return Err(SimError(format!("\"{name}\" interrupts CPU {cpu}, which is not in {range}")));
        }
    }
    for device in &workload.objects.devices {
        if let schedlab_workload::Completion::IrqAt(cpu) = device.completion
            && !there(cpu)
        {
            let name = &device.name;
            return Err(SimError(format!("device \"{name}\" interrupts CPU {cpu}, which is not in {range}")));
        }
    }
    if let Some(mutex) = workload.objects.mutexes.iter().find(|mutex| mutex.pi) {
        return Err(SimError(format!(
            "mutex \"{}\" asks for priority inheritance, which is not modelled; leave it out",
            mutex.name
        )));
    }
    Ok(())
}
