//! Everything that is read off one run, gathered while it streams by.

use schedlab_report::metrics::{
    Busy, Counts, MarkRule, Marks, Migrations, Placements, Reasons, WakeupLatency,
};
use schedlab_trace::{Event, Label, Sink};
use schedlab_workload::{LabelId, MeasureRule, Workload};

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
    /// Reasons of decisions.
    pub reasons: Reasons,
    /// One per measure of the workload.
    pub marks: Vec<Marks>,
}

impl Folds {
    /// Empty folds for a workload's measures.
    pub fn new(workload: &Workload) -> Folds {
        let label = |id: LabelId| Label::new(&workload.labels[id.index()]);
        let rule = |rule: MeasureRule| match rule {
            MeasureRule::Elapsed { from, to } => MarkRule::Elapsed { from: label(from), to: label(to) },
            MeasureRule::Spans { from, to } => MarkRule::Spans { from: label(from), to: label(to) },
            MeasureRule::BestRate { from, to, amount, skip } => {
                MarkRule::BestRate { from: label(from), to: label(to), amount, skip }
            }
            MeasureRule::Rate { label: of } => MarkRule::Rate { label: label(of) },
        };
        Folds {
            counts: Counts::default(),
            migrations: Migrations::default(),
            latency: WakeupLatency::default(),
            busy: Busy::default(),
            placements: Placements::default(),
            reasons: Reasons::default(),
            marks: workload.measures.iter().map(|m| Marks::new(rule(m.rule))).collect(),
        }
    }
}

impl Sink for Folds {
    fn event(&mut self, event: &Event) {
        if event.kind.is_decision() {
            self.reasons.event(event);
            return;
        }
        self.counts.event(event);
        self.migrations.event(event);
        self.latency.event(event);
        self.busy.event(event);
        self.placements.event(event);
        for marks in &mut self.marks {
            marks.event(event);
        }
    }

    fn wants_decisions(&self) -> bool {
        true
    }
}
