//! Figures that a workload reports by marks.

use schedlab_stats::Moments;
use schedlab_trace::{Event, Kind, Label, Sink};
use schedlab_units::{Pid, Time};

use super::PidTable;

/// How a figure is read off marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkRule {
    /// Seconds from the first `from` to the last `to`, of any task.
    Elapsed {
        /// Begins.
        from: Label,
        /// Ends.
        to: Label,
    },
    /// Mean of the ns from each `from` to the next `to` of the same task.
    Spans {
        /// Begins a span.
        from: Label,
        /// Ends it.
        to: Label,
    },
    /// `amount` over the shortest span but the first `skip`, in 10^6 per second.
    BestRate {
        /// Begins a span.
        from: Label,
        /// Ends it.
        to: Label,
        /// What a span moves.
        amount: u64,
        /// Spans that do not count.
        skip: u32,
    },
    /// Sum of the values per second of the trace, from its first event on.
    Rate {
        /// The marks.
        label: Label,
    },
    /// Seconds until the values add up to `whole` at the rate that was seen.
    Whole {
        /// The marks.
        label: Label,
        /// Their sum in a whole run.
        whole: u64,
    },
}

/// Reads one figure. Needs `Mark` events.
#[derive(Clone, Debug)]
pub struct Marks {
    rule: MarkRule,
    started: PidTable<Option<Time>>,
    spans: Moments,
    first: Option<Time>,
    last: Option<Time>,
    begin: Option<Time>,
    end: Time,
    sum: i64,
    seen: u32,
    best: Option<u64>,
}

impl Marks {
    /// Reads by a rule.
    pub fn new(rule: MarkRule) -> Marks {
        Marks {
            rule,
            started: PidTable::default(),
            spans: Moments::default(),
            first: None,
            last: None,
            begin: None,
            end: Time::ZERO,
            sum: 0,
            seen: 0,
            best: None,
        }
    }

    /// The figure of the run; none when the marks were never met.
    pub fn value(&self) -> Option<f64> {
        match self.rule {
            MarkRule::Elapsed { .. } => {
                self.first.zip(self.last).map(|(first, last)| last.since(first).0 as f64 / 1e9)
            }
            MarkRule::Spans { .. } => (self.spans.n() > 0).then(|| self.spans.mean()),
            MarkRule::BestRate { amount, .. } => self.best.map(|ns| amount as f64 * 1e3 / ns as f64),
            MarkRule::Rate { .. } => {
                (self.span_ns() > 0).then(|| self.sum as f64 * 1e9 / self.span_ns() as f64)
            }
            MarkRule::Whole { whole, .. } => {
                (self.sum > 0).then(|| whole as f64 * self.span_ns() as f64 / 1e9 / self.sum as f64)
            }
        }
    }

    /// How many spans were measured.
    pub fn spans(&self) -> u64 {
        self.spans.n()
    }

    /// The trace has events until then that are not told.
    pub fn goes_on_to(&mut self, last: Time) {
        self.end = self.end.max(last);
    }

    /// Rates count from here on.
    pub fn begin_again(&mut self, now: Time) {
        self.begin = Some(now);
        self.sum = 0;
    }

    fn span_ns(&self) -> u64 {
        self.end.since(self.begin.unwrap_or_default()).0
    }

    fn span(&mut self, pid: Pid, time: Time, from: bool) -> Option<u64> {
        let started = self.started.entry(pid);
        if from {
            *started = Some(time);
            return None;
        }
        started.take().map(|at| time.since(at).0)
    }
}

impl Sink for Marks {
    fn event(&mut self, event: &Event) {
        self.begin.get_or_insert(event.time);
        self.end = self.end.max(event.time);
        let Kind::Mark { label, value } = event.kind else { return };
        match self.rule {
            MarkRule::Elapsed { from, to } => {
                if label == from {
                    self.first.get_or_insert(event.time);
                }
                if label == to {
                    self.last = Some(event.time);
                }
            }
            MarkRule::Spans { from, to } if label == from || label == to => {
                if let Some(ns) = self.span(event.pid, event.time, label == from) {
                    self.spans.push(ns as f64);
                }
            }
            MarkRule::BestRate { from, to, skip, .. } if label == from || label == to => {
                if let Some(ns) = self.span(event.pid, event.time, label == from) {
                    self.seen += 1;
                    if self.seen > skip && ns > 0 {
                        self.best = Some(self.best.map_or(ns, |best| best.min(ns)));
                    }
                }
            }
            MarkRule::Rate { label: wanted } | MarkRule::Whole { label: wanted, .. } if label == wanted => {
                self.sum += value
            }
            _ => {}
        }
    }
}
