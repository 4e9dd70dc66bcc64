//! Who hears the verdicts as they fall: a writer that marks them in a trace, say.

use schedlab_trace::{NullSink, Sink};

use crate::verdict::Verdict;

/// Takes the events of the trace, and the verdicts. Verdicts come a little after the events
/// they are about, because what became of a decision is seen later.
pub trait Listener: Sink {
    /// Takes one verdict.
    fn verdict(&mut self, verdict: &Verdict);
}

impl Listener for NullSink {
    fn verdict(&mut self, _: &Verdict) {}
}
