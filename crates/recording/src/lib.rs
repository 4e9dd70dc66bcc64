//! A recording: the facts beside a trace, and what its events show about tasks before anything is judged.
//!
//! `schedlab record` writes a file for each kind of fact; the recordings in `traces/` have them in the same form. The audit,
//! the replay and the command need the same facts, so only this crate parses them.

mod affinity;
mod cgroups;
mod clones;
mod command;
mod forms;
mod groups;
mod in_force;
mod policies;
mod policy_kind;
mod sched_ext;
mod steady;
mod tasks;
mod texts;

pub use affinity::AffinityHint;
pub use cgroups::{Given, GivenQuota, MadeGroups, cgroups};
pub use clones::Clones;
pub use forms::{formed, strange_lines};
pub use groups::{GroupFiles, Groups, Member, moves_with};
pub use in_force::{apply_features, apply_tunables};
pub use policies::Policies;
pub use policy_kind::PolicyKind;
pub use sched_ext::sched_ext;
pub use steady::Steady;
pub use tasks::{BadLine, SeenTask, hints_of_tasks, seen_tasks};
pub use texts::{COMMAND, FactTexts, Facts, FactsError, GroupsHidden, SCHED_EXT_STATE};
