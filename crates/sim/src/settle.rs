//! Running an endless workload until its slow mechanisms have gone round and its figures settle.
//!
//! Slow state reaches its level long after a short run is over: averages take a third of a second, and the bound of
//! idle searches is set by passes of the cache's domain, which a large busy machine makes every other second. So a run
//! that settles waits for each slow mechanism that completes a period within a length that it can afford, and begins nearer
//! to the end with the others: the bound of searches is set from how busy each cache was found to be, as a pass then would, and again
//! after each span, as CPUs that search less have other work; pages go where their tasks are. Then spans of time are
//! compared until one is like the one before:
//!
//! ```text
//!   begun |-- first look --| guess |-- span --| guess ... |-- span --| guess |-- span --| what counts begins
//!                                slow mechanisms have gone round ^     alike? ^
//! ```
//!
//! A workload with a duration waits from its start. A model that has a warm-up and a window of its own waits at the
//! end of its warm-up: the task that marks the beginning of the window sleeps for another span instead. Marks say when the
//! second half of what is measured begins and ends, for readers that compare the halves.
//!
//! Not guessed: the intervals of domains. A run begins with those that passes leave that find nothing to do, and each CPU's
//! next pass comes at a random time within its interval, so passes come as often from the start as later on.

use schedlab_sched::Scheduler;
use schedlab_topology::CpuId;
use schedlab_trace::{Kind, Label, Sink};
use schedlab_units::{Duration, TaskId, Time};
use schedlab_workload::{HALF, Op, STEADY};

use crate::account::Account;
use crate::emit::Context;
use crate::engine::{Engine, Limits};
use crate::event::Event;
use crate::outcome::{Counts, End};
use crate::slow_clocks::{AVERAGES, Slow, SlowClock};

/// How a run settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// After how long.
    pub after: Duration,
    /// Whether the last span was like the previous one. If not, settling was abandoned.
    pub stands: bool,
    /// Whether the limit of searches is a guess: no busy CPU had balanced its cache by then.
    pub guessed_limit: bool,
    /// Whether pages were put on the nodes of their tasks before they had followed.
    pub guessed_pages: bool,
}

/// Until the first guess.
const FIRST_LOOK: Duration = Duration::millis(10);
/// Maximum number of spans that are compared once slow mechanisms have gone round.
const SPANS_MAX: u32 = 12;
/// Shortest span: in shorter ones it matters how many ticks they contain.
const SPAN_MIN: Duration = Duration::millis(20);
/// How long a run may wait for slow mechanisms: so much time of the CPUs that its tasks can keep busy, twice what it
/// measures if that is more, and always as long as averages take.
const AFFORDABLE: Duration = Duration::secs(100);
/// How much the counts of two spans that are alike may differ, permille.
const ALIKE_PERMILLE: u64 = 30;

/// Whether figures have settled, and the spans compared so far.
#[derive(Clone, Debug, Default)]
pub struct Settling {
    /// The run waits for that before the window of its model begins.
    pub before_window: bool,
    /// How it came out.
    pub settled: Option<Settled>,
    guessed_limit: bool,
    guessed_pages: bool,
    spans: u32,
    /// Counts and account at the beginning of the present span, and when it began.
    from: Option<(Counts, Account, Time)>,
    /// Wake-ups and switches of the span before.
    before: Option<[u64; 2]>,
}

impl<S: Scheduler> Engine<'_, S> {
    /// Goes on until figures stand still; the end of a run that ended before.
    pub fn stand_still(&mut self, duration: Duration, limits: Limits, sink: &mut dyn Sink) -> Option<End> {
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
        self.guess_limit(&self.account().since(&before), FIRST_LOOK);
        while let Some(span) = self.next_span(duration) {
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
        let Some(&Op::Sleep { span: window }) = self.workload.code.get(next.index()) else { return None };
        let span = self.next_span(window);
        self.settling.before_window = span.is_some();
        span
    }

    /// Ends a span and returns the length of the next one. `None` if the span was like the one before, or the last that is
    /// tried: what counts begins, and lasts for `window`.
    fn next_span(&mut self, window: Duration) -> Option<Duration> {
        let (counts, account) = (self.counts, self.account());
        let elapsed = self.now.since(self.began);
        let Some((begun, from, since)) = self.settling.from.take() else {
            self.settling.from = Some((counts, account, self.now));
            return Some(span_of(window));
        };
        let lately = account.since(&from);
        let waits = self.goes_on_for(&lately, window) > elapsed;
        self.guess(&lately, self.now.since(since), elapsed, window);
        let of_span = [counts.wakeups - begun.wakeups, counts.switches - begun.switches];
        let before = self.settling.before.replace(of_span);
        self.settling.from = Some((counts, account, self.now));
        if waits {
            return Some(span_of(window));
        }
        let stands = before.is_some_and(|before| alike(before, of_span));
        self.settling.spans += 1;
        if !stands && self.settling.spans < SPANS_MAX {
            return Some(span_of(window));
        }
        let Settling { guessed_limit, guessed_pages, .. } = self.settling;
        self.settling.settled = Some(Settled { after: elapsed, stands, guessed_limit, guessed_pages });
        self.queue.push(self.now + Duration(window.0 / 2), Event::Half { over: false });
        self.queue.push(self.now + window, Event::Half { over: true });
        None
    }

    /// How long it waits for slow mechanisms, from the start of the run on.
    fn goes_on_for(&self, lately: &Account, window: Duration) -> Duration {
        let affordable = self.affordable(window);
        let rounds = self.slow_clocks(lately).into_iter().map(|clock| clock.round_at());
        rounds.filter(|&round| round <= affordable).max().unwrap_or_default()
    }

    fn affordable(&self, window: Duration) -> Duration {
        let cpus = self.machine.topology.online().weight().min(self.tasks.len()).max(1);
        Duration(AFFORDABLE.0 / cpus as u64).max(Duration(window.0.saturating_mul(2))).max(AVERAGES)
    }

    /// Guesses the state of mechanisms that have not gone round: the limit of searches after each span, and where pages
    /// end up, once, if the run does not wait for that.
    fn guess(&mut self, lately: &Account, span: Duration, elapsed: Duration, window: Duration) {
        let clocks = self.slow_clocks(lately);
        let sets_limit = |clock: &&SlowClock| matches!(clock.does, Slow::Balancing { limit: true, .. });
        let passed = clocks.iter().find(sets_limit).is_some_and(|clock| clock.round_at() <= elapsed);
        self.settling.guessed_limit = !passed;
        if !passed {
            self.guess_limit(lately, span);
        }
        let pages = clocks.iter().find(|clock| clock.does == Slow::Pages);
        if !self.settling.guessed_pages && pages.is_some_and(|c| c.round_at() > self.affordable(window)) {
            self.settling.guessed_pages = self.memory.went_round(self.page_scan_mbps(), self.now);
        }
    }

    /// The second half of what is measured begins, or is over.
    pub fn half(&mut self, over: bool) {
        if self.tracing {
            self.emit(CpuId(0), Context::Task, Kind::Mark { label: Label::new(HALF), value: over.into() });
        }
    }

    /// Sets the bound of searches in each cache by how long its CPUs were busy in the last span, and at which clock:
    /// utilization is invariant of frequency.
    fn guess_limit(&mut self, lately: &Account, span: Duration) {
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
    use schedlab_workload::{FOREVER, HALF, Op, Pc, STEADY, TaskSpec, WorkloadBuilder};

    use super::{AVERAGES, Settled, alike};
    use crate::{Simulation, Slow, SlowClock};

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
        assert!(settled.stands && settled.after >= AVERAGES && settled.after < AVERAGES * 2, "{settled:?}");
        let steady =
            |event: &&Event| matches!(event.kind, Kind::Mark { label, .. } if label == Label::new(STEADY));
        let mark = events.iter().find(steady).expect("a mark");
        assert_eq!(outcome.time.since(mark.time), Duration::millis(40), "the duration begins there");
        let half =
            |event: &&Event| matches!(event.kind, Kind::Mark { label, .. } if label == Label::new(HALF));
        let halves: Vec<_> = events.iter().filter(half).map(|event| event.time.since(mark.time)).collect();
        assert_eq!(halves, [20, 40].map(Duration::millis), "its second half begins, and ends");
    }

    /// A busy CPU for each of `cpus`, settled and then for 40 ms.
    fn hogs(cpus: u32, kernel: &str) -> (Settled, Vec<SlowClock>) {
        let mut w = WorkloadBuilder::new("test");
        let program = w.program("hog", |p| {
            p.forever(|p| {
                p.run(Duration::millis(5));
            });
        });
        for _ in 0..cpus {
            w.task(TaskSpec::root("hog", program));
        }
        w.stop_after(Duration::millis(40));
        let workload = w.finish().unwrap();
        let (machine, kernel) =
            (Machine::preset(&format!("1x{cpus}")).unwrap(), Kernel::parse(kernel).unwrap());
        let simulation = Simulation::new(&machine, &kernel, &workload).unwrap().settle();
        let outcome = simulation.run(&mut schedlab_trace::NullSink);
        (outcome.settled.expect("it settled"), outcome.slower)
    }

    #[test]
    fn it_waits_for_slow_passes_that_it_can_afford_and_guesses_the_rest() {
        // 64 CPUs: busy CPUs balance their cache every 2 s, of which a run affords 1.6.
        let (settled, slower) = hogs(64, "v6.12");
        assert!(settled.guessed_limit && settled.after < Duration::secs(1), "{settled:?}");
        let limit = Slow::Balancing { level: "MC", limit: true };
        let periods: Vec<_> = slower.iter().map(|clock| (clock.does, clock.period.0 / 1_000_000)).collect();
        assert_eq!(periods, [(limit, 2044)]);
        // 24 CPUs: every 0.8 s, of 4.
        let (settled, slower) = hogs(24, "v6.12");
        assert!(!settled.guessed_limit && settled.after >= Duration::millis(767), "{settled:?}");
        assert_eq!(slower, []);
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
        assert!(settled.stands && settled.after >= AVERAGES && settled.after < AVERAGES * 2, "{settled:?}");
        assert_eq!((marks, window), (1, 40));
        assert_eq!(run(false), (None, 1, 40));
    }
}
