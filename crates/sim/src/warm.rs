//! A run stopped where its workload is warm, which can be continued from there any number of times.
//!
//! ```text
//!                               .--> as it was ----------------------------->
//!   beginning --> warm (mark) --+--> with another constant --> settled ------>
//!                               '--> without a mechanism ----> settled ------>
//! ```
//!
//! Reaching the steady state of a workload often takes longer than measuring it. A copy that continues with
//! other constants shows their effect on a running workload; it does not show their effect on its start.

use schedlab_machine::{Machine, Mechanism, Rate};
use schedlab_sched::{Sched, Scheduler};
use schedlab_trace::Sink;
use schedlab_units::{Duration, TaskId};

use crate::engine::{Engine, Limits, Listens, Paths, took};
use crate::outcome::{End, Outcome};
use crate::simulation::{Simulation, TASKS_MAX};

/// A run in the middle.
#[derive(Clone)]
pub struct Warm<'a> {
    engine: Engine<'a, Sched>,
}

impl<'a> Simulation<'a> {
    /// Runs up to the mark `steady`, and passes the events to the sink.
    ///
    /// # Errors
    /// How the run ended, if it never became warm.
    pub fn warm_up(&self, sink: &mut dyn Sink) -> Result<Warm<'a>, End> {
        let mut engine = self.engine(Listens::of(sink));
        let end = engine.run(Limits { when_warm: true, ..self.limits(&engine) }, sink);
        match engine.warm {
            true => Ok(Warm { engine }),
            false => Err(end),
        }
    }
}

impl<'a> Warm<'a> {
    /// A copy that continues with another machine of the same topology. Work in progress, such as a system call that
    /// is already paid for, ends as it began; constants that a run reads once, at its start, have no effect.
    ///
    /// # Panics
    /// If the machine has other CPUs.
    pub fn on<'b>(&self, machine: &'b Machine) -> Warm<'b>
    where
        'a: 'b,
    {
        let mut copy: Warm<'b> = self.clone();
        copy.engine.use_machine(machine);
        copy
    }

    /// Continues for at most `span`, and passes the events to the sink. The profile counts from here.
    pub fn run(&mut self, span: Duration, sink: &mut dyn Sink) -> Outcome {
        let engine = &mut self.engine;
        engine.listen(Listens::of(sink));
        if engine.begun_at != engine.now {
            engine.begin_profile();
        }
        let limits =
            Limits { until: engine.now + span, events: u64::MAX, tasks: TASKS_MAX, when_warm: false };
        let end = engine.run(limits, sink);
        engine.outcome(end)
    }
}

impl<'a, S: Scheduler> Engine<'a, S> {
    /// Takes constants and mechanisms from another machine from now on.
    fn use_machine(&mut self, machine: &'a Machine) {
        // A CPU that has not yet noticed the other tasks on its cache does not notice them through this.
        let rates: Vec<Rate> = machine.topology.online().iter().map(|cpu| self.rate_of(cpu)).collect();
        let before = std::mem::replace(&mut self.machine, machine);
        assert!(
            before.topology.nr_cpus() == machine.topology.nr_cpus(),
            "a run goes on with the CPUs it has"
        );
        self.paths = Paths::of(machine);
        // The measured time of looking at a CPU is kept.
        let (plain, told) = (took(machine), self.sched.took());
        (told.pass, told.pass_task, told.blocked_update) =
            (plain.pass, plain.pass_task, plain.blocked_update);
        self.places.adapt(machine);
        self.searches = machine.has(Mechanism::SearchCosts);
        self.smt = machine.topology.is_smt() && machine.has(Mechanism::Smt);
        self.warmth = machine.has(Mechanism::CacheWarmth);
        self.clocks.adapt(&before.freq, machine);
        for (cpu, was) in machine.topology.online().iter().zip(rates) {
            let rate = self.rate_of(cpu);
            if rate != was {
                self.set_rate(cpu, rate);
            }
        }
    }

    /// A sink attached now receives no earlier events.
    fn listen(&mut self, listens: Listens) {
        if listens.events && !self.tracing {
            for (id, entry) in self.tasks.iter_mut().enumerate() {
                [entry.runtime_told, _] = self.sched.runtime(TaskId(id as u32));
            }
        }
        self.tracing = listens.events;
        (self.explaining, self.counting) = (listens.decisions, listens.reasons);
        (self.details, self.wants_details) = (true, listens.details);
        self.log_balancing();
    }
}

#[cfg(test)]
mod tests {
    use schedlab_machine::Without;
    use schedlab_sched::Kernel;
    use schedlab_trace::{Event, Kind, Label, NullSink};
    use schedlab_workload::models::Hackbench;
    use schedlab_workload::{STEADY, Workload};

    use super::*;

    const SAMPLE: Duration = Duration::millis(4);

    fn workload() -> Workload {
        let model = Hackbench {
            groups: 3,
            pairs: 4,
            loops: 100_000,
            sample: SAMPLE,
            warmup: Duration::millis(5),
            ..Hackbench::default()
        };
        model.workload().unwrap()
    }

    #[test]
    fn a_copy_goes_on_as_the_run_itself() {
        let (machine, workload) = (Machine::preset("2x2x2x2").unwrap(), workload());
        let kernel = Kernel::parse("v6.12").unwrap();
        let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
        let mut whole: Vec<Event> = Vec::new();
        let end = simulation.run(&mut whole);

        let mut parts: Vec<Event> = Vec::new();
        let warm = simulation.warm_up(&mut parts).unwrap();
        assert!(
            parts
                .iter()
                .any(|event| matches!(event.kind, Kind::Mark { label, .. } if label == Label::new(STEADY)))
        );
        assert!(parts.len() > 1000 && parts.len() + 1000 < whole.len(), "{} of {}", parts.len(), whole.len());
        for machine in [machine.clone(), machine.clone()] {
            let mut parts = parts.clone();
            assert_eq!(warm.on(&machine).run(SAMPLE + SAMPLE, &mut parts), end);
            assert!(parts == whole, "{} and {} events", parts.len(), whole.len());
        }
    }

    #[test]
    fn a_run_that_is_never_warm_says_how_it_ended() {
        let machine = Machine::preset("1x4").unwrap();
        let workload = Hackbench { groups: 1, loops: 1, ..Hackbench::default() }.workload().unwrap();
        let kernel = Kernel::parse("v6.12").unwrap();
        let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
        assert_eq!(simulation.warm_up(&mut NullSink).err(), Some(End::Done));
    }

    /// Every constant at both ends of its range and every mechanism off: a copy continues, and those that
    /// affect it change it.
    #[test]
    fn a_copy_takes_the_constants_of_another_machine() {
        let (machine, workload) = (Machine::preset("xeon-20c").unwrap(), workload());
        let kernel = Kernel::parse("v6.12").unwrap();
        let warm = Simulation::new(&machine, &kernel, &workload).unwrap().warm_up(&mut NullSink).unwrap();
        let run = |machine: &Machine| {
            let mut copy = warm.on(machine);
            let outcome = copy.run(Duration::millis(1), &mut NullSink);
            assert!(outcome.is_ok(), "{}", outcome.end);
            copy.engine.sched.check();
            outcome.counts
        };
        let was = run(&machine);
        let mut changed = Vec::new();
        for (row, cost) in machine.constants() {
            for value in [*cost.range().start(), *cost.range().end()] {
                let mut other = machine.clone();
                other.set(&row.path(), value).unwrap();
                if run(&other) != was {
                    changed.push(row.path());
                }
            }
        }
        for name in ["cost.syscall_ns", "cost.socket_ns", "freq.stall_permille"] {
            assert!(changed.iter().any(|changed| changed == name), "{name} not in {changed:?}");
        }
        assert!(!changed.iter().any(|changed| changed == "cost.fork_ns"), "all forks are over");
        for &(mechanism, name, _) in Mechanism::TABLE {
            let other = machine.clone().without(Without::NOTHING.with(mechanism));
            let acts = ["kernel-costs", "smt", "frequency"].contains(&name);
            assert!(run(&other) != was || !acts, "{name}");
        }
    }
}
