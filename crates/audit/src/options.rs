//! What an audit needs to know besides the trace.

use schedlab_recording::{AffinityHint, Facts, Groups, Policies};

use crate::unknown::about::Reading;

/// Options of an audit.
#[derive(Clone, Debug)]
pub struct Options {
    /// Masks of tasks, by name.
    pub affinity: Vec<AffinityHint>,
    /// Policies of tasks.
    pub policies: Policies,
    /// Which groups tasks were in.
    pub groups: Groups,
    /// Tasks were in cgroups or session groups, and it is not known in which. Loads and virtual times, which are
    /// divided among groups first, then prove nothing.
    pub groups_hidden: bool,
    /// Keep every verdict in the report.
    pub keep_verdicts: bool,
    /// Look for the nearest fact of every disagreement; otherwise only of those whose story is printed.
    pub nearest: bool,
    /// How many disagreements of each kind and rule are printed as stories.
    pub stories: usize,
    /// A reading that is switched off, to measure its effect.
    pub without: Option<Reading>,
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
            without: None,
        }
    }
}

impl Options {
    /// The options from a recording's fact files.
    pub fn of(facts: &Facts) -> Options {
        Options {
            affinity: facts.affinity.clone(),
            policies: facts.policies.clone(),
            groups: facts.groups.clone(),
            groups_hidden: facts.groups_hidden.is_some(),
            ..Options::default()
        }
    }
}
