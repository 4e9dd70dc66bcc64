//! Running an endless workload until its figures settle.
//!
//! Slow state reaches its level long after a short run is over: averages take a tenth of a second, and the bound of
//! idle searches is set by passes of the cache's domain, which a large busy machine makes every other second. So a run
//! that settles begins nearer to the end: after a while the bound is set from how busy each cache was found to be, as
//! a pass then would, and again after each span, as CPUs that search less have other work. From there on spans of time
//! are compared until one is like the one before:
//!
//! ```text
//!   begun |--- first look ---| guess |-- span --| guess |-- span --| guess |-- span --| steady, what counts begins
//!                                        wake-ups and switches alike? ^
//! ```
//!
//! A workload with a duration waits from its start. A model that has a warm-up and a window of its own waits at the
//! end of its warm-up: the task that marks the beginning of the window sleeps for another span instead.
//!
//! Left out: other slow state, such as intervals of domains that no pass has doubled yet, and averages of tasks, which
//! begin with the kernel's values for a new task.

use schedlab_sched::Scheduler;
use schedlab_topology::CpuId;
use schedlab_trace::{Kind, Label, Sink};
use schedlab_units::{Duration, TaskId};
use schedlab_workload::{Op, STEADY};

use crate::account::Account;
use crate::emit::Context;
use crate::engine::{Engine, Limits};
use crate::outcome::{Counts, End};

/// How a run settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// After how long.
    pub after: Duration,
    /// Whether the last span was like the previous one. If not, settling was abandoned.
    pub stands: bool,
}

/// Until the first guess.
const FIRST_LOOK: Duration = Duration::millis(10);
/// Maximum number of spans that are compared.
const SPANS_MAX: u32 = 12;
/// Shortest span.
const SPAN_MIN: Duration = Duration::millis(5);
/// How much the counts of two spans that are alike may differ, permille.
const ALIKE_PERMILLE: u64 = 30;

/// Whether figures have settled, and the spans compared so far.
#[derive(Clone, Debug, Default)]
pub struct Settling {
    /// The run waits for that before the window of its model begins.
    pub before_window: bool,
    /// How it came out.
    pub settled: Option<Settled>,
    spans: u32,
    /// Counts and account at the beginning of the present span.
    from: Option<(Counts, Account)>,
    /// Wake-ups and switches of the span before.
    before: Option<[u64; 2]>,
}

impl<S: Scheduler> Engine<'_, S> {
    /// Goes on until figures stand still; the end of a run that ended before.
    pub fn stand_still(&mut self, duration: Duration, limits: Limits, sink: &mut dyn Sink) -> Option<End> {
        let span = span_of(duration);
        let go_on = |engine: &mut Self, by: Duration, sink: &mut dyn Sink| {
            let until = engine.now.max(engine.began) + by;
            match engine.run(Limits { until, ..limits }, sink) {
                End::Duration => None,
                end => Some(end),
            }
        };
        if let Some(end) = go_on(self, FIRST_LOOK, sink) {
            return Some(end);
        }
        let before = self.account();
        if let Some(end) = go_on(self, FIRST_LOOK, sink) {
            return Some(end);
        }
        self.guess(&self.account().since(&before), FIRST_LOOK);
        while !self.span_ends(span) {
            if let Some(end) = go_on(self, span, sink) {
                return Some(end);
            }
        }
        self.warm = true;
        self.begin_profile();
        if self.tracing {
            self.emit(CpuId(0), Context::Task, Kind::Mark { label: Label::new(STEADY), value: 0 });
        }
        None
    }

    /// How long a task that is at the mark that ends the warm-up of its model waits for the next span. `None` if figures
    /// have settled, if the run does not wait for that, or if no window of fixed length follows the mark.
    pub fn span_before_window(&mut self, task: TaskId) -> Option<Duration> {
        if !self.settling.before_window {
            return None;
        }
        let next = self.tasks[task.index()].cursor.pc();
        let window = match self.workload.code.get(next.index()) {
            Some(&Op::Sleep { span }) => span_of(span),
            _ => return None,
        };
        self.settling.before_window = !self.span_ends(window);
        self.settling.before_window.then_some(window)
    }

    /// Ends a span and begins another. True if it was like the one before, or the last that is tried.
    fn span_ends(&mut self, span: Duration) -> bool {
        let (counts, account) = (self.counts, self.account());
        if let Some((begun, from)) = self.settling.from.take() {
            // How busy CPUs are depends on the limit, so the next pass finds another utilization.
            self.guess(&account.since(&from), span);
            let of_span = [counts.wakeups - begun.wakeups, counts.switches - begun.switches];
            let before = self.settling.before.replace(of_span);
            let stands = before.is_some_and(|before| alike(before, of_span));
            self.settling.spans += 1;
            if stands || self.settling.spans == SPANS_MAX {
                self.settling.settled = Some(Settled { after: self.now.since(self.began), stands });
            }
        }
        self.settling.from = Some((counts, account));
        self.settling.settled.is_some()
    }

    /// Sets the bound of searches in each cache by how long its CPUs were busy in the last span, and at which clock:
    /// utilization is invariant of frequency.
    fn guess(&mut self, lately: &Account, span: Duration) {
        for llc in self.machine.topology.llcs() {
            let share =
                |cpu: CpuId| lately.cpus[cpu.index()].busy().min(span.0) * self.freq_scale(cpu) / span.0;
            let util = llc.iter().map(share).sum();
            if let Some(first) = llc.first() {
                self.sched.bound_scans(first, util);
            }
        }
    }
}

/// The length of spans that are compared, before what lasts so long.
fn span_of(window: Duration) -> Duration {
    Duration(window.0 / 2).max(SPAN_MIN)
}

fn alike(a: [u64; 2], b: [u64; 2]) -> bool {
    a.iter().zip(b).all(|(&a, b)| a.abs_diff(b) * 1000 <= a.max(b).max(1) * ALIKE_PERMILLE)
}

#[cfg(test)]
mod tests {
    use schedlab_machine::Machine;
    use schedlab_sched::Kernel;
    use schedlab_trace::{Event, Kind, Label};
    use schedlab_units::Duration;
    use schedlab_workload::{FOREVER, Op, Pc, STEADY, TaskSpec, WorkloadBuilder};

    use super::alike;
    use crate::Simulation;

    #[test]
    fn spans_are_alike_within_three_percent() {
        assert!(alike([1000, 500], [1020, 490]) && alike([0, 0], [0, 0]));
        assert!(!alike([1000, 500], [1000, 520]) && !alike([0, 0], [1, 0]));
    }

    #[test]
    fn what_counts_begins_when_figures_stand_still() {
        let mut w = WorkloadBuilder::new("test");
        let program = w.program("sleeps", |p| {
            p.op(Op::Loop { times: FOREVER, slot: 0, end: Pc(3) }).run(Duration::micros(100));
            p.op(Op::Sleep { span: Duration::micros(300) });
            p.op(Op::EndLoop { times: FOREVER, slot: 0, begin: Pc(0) });
        });
        w.task(TaskSpec::root("sleeps", program));
        w.stop_after(Duration::millis(40));
        let workload = w.finish().unwrap();
        let (machine, kernel) = (Machine::preset("2").unwrap(), Kernel::parse("v6.12").unwrap());
        let mut events: Vec<Event> = Vec::new();
        let outcome = Simulation::new(&machine, &kernel, &workload).unwrap().settle().run(&mut events);
        let settled = outcome.settled.expect("it settled");
        assert!(settled.stands && settled.after < Duration::millis(200), "{settled:?}");
        let steady =
            |event: &&Event| matches!(event.kind, Kind::Mark { label, .. } if label == Label::new(STEADY));
        let mark = events.iter().find(steady).expect("a mark");
        assert_eq!(outcome.time.since(mark.time), Duration::millis(40), "the duration begins there");
    }

    #[test]
    fn the_window_of_a_model_begins_when_figures_stand_still() {
        let mut w = WorkloadBuilder::new("test");
        let sleeps = w.program("sleeps", |p| {
            p.forever(|p| {
                p.run(Duration::micros(100)).sleep(Duration::micros(300));
            });
        });
        w.task(TaskSpec { background: true, ..TaskSpec::root("sleeps", sleeps) });
        let steady = w.label(STEADY);
        let main = w.program("main", |p| {
            p.sleep(Duration::millis(2)).mark(steady, 0).sleep(Duration::millis(40)).exit_group();
        });
        w.task(TaskSpec::root("main", main));
        let workload = w.finish().unwrap();
        let (machine, kernel) = (Machine::preset("2").unwrap(), Kernel::parse("v6.12").unwrap());
        let run = |settles: bool| {
            let mut events: Vec<Event> = Vec::new();
            let simulation = Simulation::new(&machine, &kernel, &workload).unwrap();
            let simulation = if settles { simulation.settle() } else { simulation };
            let outcome = simulation.run(&mut events);
            let steady = |event: &&Event| matches!(event.kind, Kind::Mark { label, .. } if label == Label::new(STEADY));
            let marks: Vec<_> = events.iter().filter(steady).map(|event| event.time).collect();
            let window = outcome.time.since(marks[0]).0 / 1_000_000;
            (outcome.settled, marks.len(), window)
        };
        let (settled, marks, window) = run(true);
        let settled = settled.expect("it settled");
        assert!(settled.stands && settled.after >= Duration::millis(42), "two spans of 20 ms: {settled:?}");
        assert_eq!((marks, window), (1, 40));
        assert_eq!(run(false), (None, 1, 40));
    }
}
