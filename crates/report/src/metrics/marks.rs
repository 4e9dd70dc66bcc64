//! Figures that a workload reports by marks.

use schedlab_stats::{Histogram, Moments};
use schedlab_trace::{Event, Kind, Label, Sink};
use schedlab_units::{Pid, Time};

use super::PidTable;

/// How a figure is computed from marks.
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
    /// A percentile of the same, ns.
    SpanAt {
        /// Begins a span.
        from: Label,
        /// Ends it.
        to: Label,
        /// The percentile, in thousandths of the spans.
        permille: u16,
    },
    /// `amount` over the shortest span except the first `skip`, in 10^6 per second.
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
    /// Sum of the values per second of the trace, from its first event on; the number of marks if they have no
    /// values.
    Rate {
        /// The marks.
        label: Label,
    },
    /// The values of the marks, ns: their mean, or a percentile. Values below 0 count as 0.
    Values {
        /// The marks.
        label: Label,
        /// The percentile, in thousandths of the marks; `None` for the mean.
        permille: Option<u16>,
    },
    /// Seconds until the values add up to `whole` at the measured rate.
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
    lengths: Option<Box<Histogram>>,
    first: Option<Time>,
    last: Option<Time>,
    begin: Option<Time>,
    end: Time,
    sum: i64,
    seen: u32,
    met: u64,
    best: Option<u64>,
}

impl Marks {
    /// Reads by a rule.
    pub fn new(rule: MarkRule) -> Marks {
        Marks {
            rule,
            started: PidTable::default(),
            spans: Moments::default(),
            lengths: matches!(rule, MarkRule::SpanAt { .. } | MarkRule::Values { permille: Some(_), .. })
                .then(|| Box::new(Histogram::new())),
            first: None,
            last: None,
            begin: None,
            end: Time::ZERO,
            sum: 0,
            seen: 0,
            met: 0,
            best: None,
        }
    }

    /// The figure of the run; `None` if the marks never occurred.
    pub fn value(&self) -> Option<f64> {
        match self.rule {
            MarkRule::Elapsed { .. } => {
                self.first.zip(self.last).map(|(first, last)| last.since(first).0 as f64 / 1e9)
            }
            MarkRule::Spans { .. } | MarkRule::Values { permille: None, .. } => {
                (self.spans.n() > 0).then(|| self.spans.mean())
            }
            MarkRule::SpanAt { permille, .. } | MarkRule::Values { permille: Some(permille), .. } => {
                let lengths = self.lengths.as_ref()?;
                lengths.percentile(f64::from(permille) / 10.0).map(|ns| ns as f64)
            }
            MarkRule::BestRate { amount, .. } => self.best.map(|ns| amount as f64 * 1e3 / ns as f64),
            MarkRule::Rate { .. } => {
                let sum = if self.sum == 0 { self.met as f64 } else { self.sum as f64 };
                (self.span_ns() > 0).then(|| sum * 1e9 / self.span_ns() as f64)
            }
            MarkRule::Whole { whole, .. } => {
                (self.sum > 0).then(|| whole as f64 * self.span_ns() as f64 / 1e9 / self.sum as f64)
            }
        }
    }

    /// The run is over: a rate is over all of it.
    pub fn end(&mut self, now: Time) {
        if matches!(self.rule, MarkRule::Rate { .. }) {
            self.end = self.end.max(now);
        }
        self.started = PidTable::default();
        if let Some(lengths) = &mut self.lengths {
            lengths.pack();
        }
    }

    /// Whether there is a figure: a rate of marks that never occurred does not count, unless another run has
    /// one.
    pub fn is_met(&self) -> bool {
        match self.rule {
            MarkRule::Rate { .. } => self.met > 0,
            _ => self.value().is_some(),
        }
    }

    /// What a rate has counted so far; `None` for other rules.
    pub fn tally(&self) -> Option<i64> {
        let rate = matches!(self.rule, MarkRule::Rate { .. } | MarkRule::Whole { .. });
        rate.then_some(if self.sum == 0 { self.met as i64 } else { self.sum })
    }

    /// How many spans were measured.
    pub fn spans(&self) -> u64 {
        self.spans.n()
    }

    /// The trace has events up to this time that are not passed on.
    pub fn goes_on_to(&mut self, last: Time) {
        self.end = self.end.max(last);
    }

    /// Rates count from here on.
    pub fn begin_again(&mut self, now: Time) {
        self.begin = Some(now);
        (self.sum, self.met) = (0, 0);
        if let Some(lengths) = &mut self.lengths {
            **lengths = Histogram::new();
        }
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
            MarkRule::SpanAt { from, to, .. } if label == from || label == to => {
                let span = self.span(event.pid, event.time, label == from);
                if let (Some(ns), Some(lengths)) = (span, &mut self.lengths) {
                    lengths.record(ns);
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
            MarkRule::Values { label: wanted, .. } if label == wanted => match &mut self.lengths {
                Some(lengths) => lengths.record(value.max(0) as u64),
                None => self.spans.push(value.max(0) as f64),
            },
            MarkRule::Rate { label: wanted } | MarkRule::Whole { label: wanted, .. } if label == wanted => {
                self.sum += value;
                self.met += 1;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_topology::CpuId;
    use schedlab_trace::{Comm, Flags};

    fn read(rule: MarkRule, marks: &[(u64, &str, i64)], end: u64) -> Option<f64> {
        let mut fold = Marks::new(rule);
        let event = |time: u64, kind| Event {
            time: Time(time),
            cpu: CpuId(0),
            pid: Pid(5),
            tgid: None,
            comm: Comm::default(),
            flags: Flags::NONE,
            kind,
        };
        fold.event(&event(0, Kind::Print("".into())));
        for &(time, label, value) in marks {
            fold.event(&event(time, Kind::Mark { label: Label::new(label), value }));
        }
        fold.end(Time(end));
        fold.is_met().then(|| fold.value()).flatten()
    }

    #[test]
    fn bare_marks_are_counted_and_values_are_added() {
        let rule = MarkRule::Rate { label: Label::new("x") };
        assert_eq!(read(rule, &[(100, "x", 0), (200, "x", 0)], 1_000_000_000), Some(2.0));
        assert_eq!(read(rule, &[(100, "x", 5), (200, "x", 0)], 1_000_000_000), Some(5.0));
        assert_eq!(read(rule, &[(100, "y", 5)], 1_000_000_000), None);
    }

    #[test]
    fn values_give_a_mean_or_a_percentile() {
        let marks: Vec<(u64, &str, i64)> = (1..=5).map(|i| (i as u64, "late", 1_000 * i)).collect();
        let at = |permille| read(MarkRule::Values { label: Label::new("late"), permille }, &marks, 9);
        assert_eq!(at(None), Some(3_000.0));
        assert!((4_900.0..=5_100.0).contains(&at(Some(1000)).unwrap()));
        assert_eq!(read(MarkRule::Values { label: Label::new("other"), permille: None }, &marks, 9), None);
    }

    #[test]
    fn a_percentile_of_spans_is_that_of_their_lengths() {
        let (from, to) = (Label::new("a"), Label::new("b"));
        let marks: Vec<(u64, &str, i64)> =
            (0..100u64).flat_map(|i| [(i * 1000, "a", 0), (i * 1000 + 1 + i / 98 * 500, "b", 0)]).collect();
        let at = |permille| read(MarkRule::SpanAt { from, to, permille }, &marks, 100_000).unwrap();
        assert_eq!(at(500), 1.0);
        assert!(at(990) > 400.0);
    }
}
