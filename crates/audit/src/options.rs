//! What an audit is told besides the trace.

use crate::affinity::AffinityHint;
use crate::facts::groups::Groups;
use crate::facts::policies::Policies;

/// Options of an audit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Masks of tasks, by name.
    pub affinity: Vec<AffinityHint>,
    /// Policies of tasks.
    pub policies: Policies,
    /// In which groups tasks were.
    pub groups: Groups,
    /// Tasks were in groups, by cgroup or session, and which is not known. Then loads and
    /// virtual times, which are shared out between groups first, say nothing.
    pub groups_hidden: bool,
    /// Keep every verdict in the report.
    pub keep_verdicts: bool,
    /// Ask of every disagreement what would have led to the kernel's choice; else only of those that are told.
    pub nearest: bool,
    /// Disagreements that are told of each kind and rule.
    pub stories: usize,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            affinity: Vec::new(),
            policies: Policies::default(),
            groups: Groups::default(),
            groups_hidden: false,
            keep_verdicts: false,
            nearest: false,
            stories: 2,
        }
    }
}
