//! Receivers of verdicts, such as a writer that marks them in a trace.

use schedlab_trace::{NullSink, Sink};

use crate::report::verdict::Verdict;

/// Receives the events of the trace and the verdicts. A verdict comes a little after the event it is about, because the
/// outcome of a decision is seen later.
pub trait Listener: Sink {
    /// Receives one verdict.
    fn verdict(&mut self, verdict: &Verdict);
}

impl Listener for NullSink {
    fn verdict(&mut self, _: &Verdict) {}
}
