//! Decisions that depend on a switch that is not in the trace.

use crate::report::verdict::{Choice, Verdict};
use crate::unknown::Shadow;

/// Whether a verdict depends on a CPU that switched unseen.
pub fn is_unseen(shadow: &Shadow, verdict: &Verdict) -> bool {
    let of = |choice: Option<Choice>| match choice {
        Some(Choice::Cpu(cpu)) => shadow.unseen[cpu],
        Some(Choice::Task(_) | Choice::Preempt(_)) => shadow.unseen[verdict.cpu],
        _ => false,
    };
    of(Some(verdict.kernel)) || of(verdict.ours.first().map(|ours| ours.choice))
}
