//! Verdicts as points in a Perfetto trace, on the track of the task they are about.

use std::io::{self, Write};

use schedlab::audit::{Listener, Verdict};
use schedlab::trace::Value;
use schedlab::trace::{Event, Sink, write};

/// Writes the events, and a point for each verdict.
pub struct Marks<W: Write>(write::Perfetto<W>);

impl<W: Write> Marks<W> {
    /// Marks what goes to a writer.
    pub fn new(writer: write::Perfetto<W>) -> Marks<W> {
        Marks(writer)
    }

    /// Writes what is held back.
    pub fn finish(self) -> io::Result<()> {
        self.0.finish().map(drop)
    }
}

impl<W: Write> Sink for Marks<W> {
    fn event(&mut self, event: &Event) {
        self.0.event(event);
    }
}

impl<W: Write> Listener for Marks<W> {
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
        self.0.remark(&write::Remark {
            time: verdict.time,
            pid: verdict.pid,
            cpu: verdict.cpu,
            category,
            name: &name,
            notes: &notes,
        });
    }
}
