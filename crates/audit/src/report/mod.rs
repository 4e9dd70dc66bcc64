//! Verdicts, and what they add up to.

pub mod contested;
pub mod counts;
pub mod listener;
pub mod probe;
pub mod verdict;
