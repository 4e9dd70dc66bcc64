//! What lies beside a recording: files of facts, a parser for each.
//!
//! `schedlab record` writes them; those of the recordings in `traces/` have the same form. What an audit and a replay
//! take from them is the same knowledge, so it is read here alone.

pub mod cgroups;
pub mod command;
pub mod forms;
pub mod groups;
pub mod in_force;
pub mod policies;
pub mod sched_ext;
pub mod tasks;
pub mod texts;
