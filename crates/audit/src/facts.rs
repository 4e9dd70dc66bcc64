//! Files of facts that accompany a recording, with one parser for each.
//!
//! `schedlab record` writes them; the recordings in `traces/` have them in the same form. The audit and the replay need
//! the same facts, so only this module parses them.

pub mod cgroups;
pub mod command;
pub mod forms;
pub mod groups;
pub mod in_force;
pub mod policies;
pub mod sched_ext;
pub mod tasks;
pub mod texts;
