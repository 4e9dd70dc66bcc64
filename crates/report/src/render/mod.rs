//! The same numbers in different forms: each function lays out the content of a
//! [`Comparison`](crate::Comparison) or a [`PerfStat`](crate::PerfStat).
//!
//! All output is ASCII, with lines that end with `\n` and without trailing blanks, so it survives mail.

mod amd;
mod changes;
mod columns;
mod csv;
mod header;
mod json;
mod markdown;
mod mmtests;
mod paired;
mod perfstat;
mod schedtests;
#[cfg(test)]
mod testdata;
mod text;

pub use amd::amd;
pub use changes::{changes, quantity};
pub use columns::{Lean, columns};
pub use csv::csv;
pub use json::json;
pub use markdown::markdown;
pub use mmtests::{mmtests, mmtests_within, ratios};
pub use paired::paired;
pub use perfstat::perf_stat;
pub use schedtests::{Case, schedtests};
pub use text::{text, text_within};
