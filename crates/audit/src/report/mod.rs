//! Verdicts, and their totals.

pub mod contested;
pub mod counts;
pub mod listener;
pub mod probe;
pub mod verdict;
