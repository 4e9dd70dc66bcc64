//! What an audit is told besides the trace.

use crate::affinity::AffinityHint;

/// Options of an audit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Masks of tasks, by name.
    pub affinity: Vec<AffinityHint>,
    /// Keep every verdict in the report.
    pub keep_verdicts: bool,
    /// Disagreements that are told of each kind and rule.
    pub stories: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options { affinity: Vec::new(), keep_verdicts: false, stories: 2 }
    }
}
