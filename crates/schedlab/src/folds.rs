//! Everything that is computed from one run, gathered as its events stream by.

use schedlab_report::metrics::{
    Busy, Counts, Kinds, MarkRule, Marks, Migrations, Placements, Reasons, Traffic, Wakes, WakeupLatency,
};
use schedlab_trace::{Decided, Event, Kind, Label, Sink};
use schedlab_units::Time;
use schedlab_workload::{HALF, LabelId, MeasureRule, STEADY, Workload};

use crate::halves::Halves;
use crate::run_clock::{Hand, RunClock};

/// The figures of one run.
#[derive(Clone, Debug)]
pub struct Folds {
    /// Switches, wake-ups, forks.
    pub counts: Counts,
    /// Migrations by cause.
    pub migrations: Migrations,
    /// Wake-up latency.
    pub latency: WakeupLatency,
    /// Run time of CPUs and tasks.
    pub busy: Busy,
    /// New tasks in order.
    pub placements: Placements,
    /// Reasons of decisions; empty if not requested.
    pub reasons: Reasons,
    /// One per measure of the workload.
    pub marks: Vec<Marks>,
    /// When the workload marked the end of its warm-up; figures count from there.
    pub steady_at: Option<Time>,
    /// Its two halves, if a mark says where the second begins.
    pub halves: Option<Box<Halves>>,
    /// Followed once for migrations and latencies.
    wakes: Wakes,
    /// Statistics of each kind of task, and of the rest of the traffic; `None` if not requested.
    pub figures: Option<Box<Figures>>,
    steady: Label,
    half: Label,
    explained: bool,
    clock: Option<Hand>,
}

/// Figures that take time to collect, only for callers that request them.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// By kind of task.
    pub kinds: Kinds,
    /// Interrupts, passes, births, marks.
    pub traffic: Traffic,
    /// Wake-ups as the kinds count them, including those from before the end of the warm-up; `None` until
    /// then.
    wakes: Option<Wakes>,
}

impl Folds {
    /// Empty folds for a workload's measures.
    pub fn new(workload: &Workload) -> Folds {
        let label = |id: LabelId| Label::new(&workload.labels[id.index()]);
        let rule = |rule: MeasureRule| match rule {
            MeasureRule::Elapsed { from, to } => MarkRule::Elapsed { from: label(from), to: label(to) },
            MeasureRule::Spans { from, to } => MarkRule::Spans { from: label(from), to: label(to) },
            MeasureRule::SpanAt { from, to, permille } => {
                MarkRule::SpanAt { from: label(from), to: label(to), permille }
            }
            MeasureRule::BestRate { from, to, amount, skip } => {
                MarkRule::BestRate { from: label(from), to: label(to), amount, skip }
            }
            MeasureRule::Values { label: of, permille } => MarkRule::Values { label: label(of), permille },
            MeasureRule::Rate { label: of } => MarkRule::Rate { label: label(of) },
            MeasureRule::Whole { label: of, whole } => MarkRule::Whole { label: label(of), whole },
        };
        Folds {
            counts: Counts::default(),
            migrations: Migrations::default(),
            latency: WakeupLatency::default(),
            busy: Busy::default(),
            placements: Placements::default(),
            reasons: Reasons::default(),
            marks: workload.measures.iter().map(|m| Marks::new(rule(m.rule))).collect(),
            steady_at: None,
            halves: None,
            wakes: Wakes::default(),
            figures: None,
            steady: Label::new(STEADY),
            half: Label::new(HALF),
            explained: true,
            clock: None,
        }
    }

    /// The same without reasons, which take time to collect.
    pub fn unexplained(self) -> Folds {
        Folds { explained: false, ..self }
    }

    /// The same, reporting its progress to a clock.
    pub fn timed(self, clock: &RunClock) -> Folds {
        Folds { clock: Some(clock.hand()), ..self }
    }

    /// The same with statistics of each kind of task.
    pub fn with_figures(self) -> Folds {
        Folds { figures: Some(Box::default()), ..self }
    }

    /// The run is over. Only the figures are kept: a comparison may hold tens of thousands of runs.
    pub fn end(&mut self, now: Time) {
        self.busy.end(now);
        self.latency.end();
        self.migrations.end();
        self.wakes = Wakes::default();
        self.clock = None;
        self.placements.tasks.shrink_to_fit();
        if let Some(figures) = &mut self.figures {
            figures.kinds.end(now);
            figures.wakes = None;
        }
        for marks in &mut self.marks {
            marks.end(now);
        }
        if let (Some(halves), Some(from)) = (&mut self.halves, self.steady_at) {
            halves.end(from, now, &self.counts, &self.migrations, &self.marks);
        }
    }

    /// The warm-up is over: discards what was gathered so far.
    pub fn begin_again(&mut self, now: Time) {
        self.steady_at = Some(now);
        self.counts = Counts::default();
        let before = std::mem::take(&mut self.wakes);
        self.migrations = Migrations::default();
        self.latency = WakeupLatency::default();
        self.busy.begin_again(now);
        self.reasons = Reasons::default();
        if let Some(figures) = &mut self.figures {
            figures.kinds.begin_again(now);
            figures.traffic = Traffic::default();
            figures.wakes.get_or_insert(before);
        }
        for marks in &mut self.marks {
            marks.begin_again(now);
        }
    }
}

impl Sink for Folds {
    fn event(&mut self, event: &Event) {
        if event.kind.is_decision() {
            self.reasons.event(event);
            return;
        }
        let marks = |wanted| matches!(event.kind, Kind::Mark { label, .. } if label == wanted);
        let steady = marks(self.steady);
        if steady {
            self.begin_again(event.time);
        } else if marks(self.half)
            && let Some(from) = self.steady_at
        {
            match &mut self.halves {
                None => {
                    let halves = Halves::begin(event.time, &self.counts, &self.migrations, &self.marks);
                    self.halves = Some(Box::new(halves));
                }
                Some(halves) => {
                    halves.end(from, event.time, &self.counts, &self.migrations, &self.marks);
                }
            }
        }
        if let Some(clock) = &mut self.clock {
            clock.at(event.time);
        }
        self.counts.event(event);
        self.migrations.event_among(event, &self.wakes);
        let latency = self.wakes.event(event);
        if let Some(latency) = latency {
            self.latency.waited(latency);
        }
        self.busy.event(event);
        self.placements.event(event);
        for marks in &mut self.marks {
            marks.event(event);
        }
        if let Some(figures) = &mut self.figures {
            let latency = figures.wakes.as_mut().map_or(latency, |wakes| wakes.event(event));
            figures.kinds.event(event, latency);
            if !steady {
                figures.traffic.event(event);
            }
        }
    }

    fn decided(&mut self, decided: &Decided) {
        self.reasons.decided(decided);
    }

    fn wants_reasons(&self) -> bool {
        self.explained
    }

    fn wants_details(&self) -> bool {
        false
    }

    fn omitted(&mut self, number: u64, last: Time) {
        self.counts.events += number;
        self.busy.goes_on_to(last);
        for marks in &mut self.marks {
            marks.goes_on_to(last);
        }
    }
}
