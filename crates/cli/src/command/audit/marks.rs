//! Verdicts as points in a picture of the trace, on the track of their task.

use std::io::Write;

use schedlab::audit::{Listener, Verdict};
use schedlab::timeline::{Builder, Chunk};
use schedlab::trace::Value;
use schedlab::trace::{Event, Sink, write};

/// A sink that can show points in addition to events.
pub trait Points: Sink {
    /// Shows a point.
    fn point(&mut self, remark: &write::Remark<'_>);
}

impl<W: Write> Points for write::Perfetto<W> {
    fn point(&mut self, remark: &write::Remark<'_>) {
        self.remark(remark);
    }
}

impl<F: FnMut(Chunk)> Points for Builder<F> {
    fn point(&mut self, remark: &write::Remark<'_>) {
        self.remark(remark);
    }
}

/// Passes on the events, and a point for each verdict.
pub struct Marks<P>(pub P);

impl<P: Points> Sink for Marks<P> {
    fn event(&mut self, event: &Event) {
        self.0.event(event);
    }
}

impl<P: Points> Listener for Marks<P> {
    fn verdict(&mut self, verdict: &Verdict) {
        let ours: Vec<String> = verdict.ours.iter().map(|possible| possible.to_string()).collect();
        let kernel = verdict.kernel.to_string();
        let mut notes = vec![("kernel", Value::text(&kernel))];
        notes.extend(ours.iter().map(|ours| ("ours", Value::text(ours))));
        if let Some(hidden) = verdict.hidden {
            notes.push(("hidden", Value::text(hidden.sentence())));
        }
        let nearest = verdict.nearest.as_ref().map(|nearest| nearest.to_string());
        notes.extend(nearest.iter().map(|nearest| ("would agree if", Value::text(nearest))));
        let name = format!("{} {} {}", verdict.decision.name(), verdict.answer.name(), verdict.reason());
        let category = match verdict.answer {
            schedlab::audit::Answer::Differs => "audit.differs",
            schedlab::audit::Answer::Undecided => "audit.undecided",
            _ => "audit.agrees",
        };
        self.0.point(&write::Remark {
            time: verdict.time,
            pid: verdict.pid,
            cpu: verdict.cpu,
            category,
            name: &name,
            notes: &notes,
        });
    }
}
