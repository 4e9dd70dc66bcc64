//! Thousands of runs of one scenario: for which machines, loads and parameters does a change help or hurt?
//!
//! A [`Plan`] defines points; each point is one run with an id that is the hash of everything that determines it. The
//! results are columns in Parquet files, a file for each chunk of neighbouring points, in a [`Store`]: a plain folder
//! that any number of machines may share. There is no database, lock or shared append: a file is written under a
//! temporary name and renamed, and every machine writes the same bytes.
//!
//! ```text
//!  plan.toml -> point -> scenario, kernel, seed -> run -> row -+- chunk of rows -> chunks/000007.parquet
//!                  |                                           |
//!                  +-- id ------ cache of finished points -----+
//! ```
//!
//! This crate opens files of its own store and cache, and nothing else.

mod axis;
pub mod bisect;
mod cache;
mod chunk;
mod draw;
mod error;
mod estimate;
mod figures;
mod id;
mod page;
mod plan;
mod plan_file;
mod point;
mod point_text;
mod report;
mod resolve;
mod run;
mod shard;
mod store;
mod submit;
mod value;

pub use axis::{Axis, Spread};
pub use cache::Cache;
pub use chunk::run_chunk;
pub use error::Error;
pub use estimate::{Estimate, estimate, spread_points};
pub use plan::{Draft, Plan, Sample};
pub use point::{Point, Settings};
pub use report::{Report, ReportOptions, report};
pub use resolve::{Resolved, Resolver};
pub use run::{Failure, Progress, RunOptions, Summary, run};
pub use schedlab_columns::{Cell, Column, Kind, Table, Values};
pub use schedlab_stats::mean_t;
pub use shard::Shard;
pub use store::{Status, Store};
pub use submit::{Cluster, submit};
pub use value::Value;

/// Version of everything that a figure depends on: the package, and a hash of the sources.
pub const ENGINE: &str = env!("SCHEDLAB_ENGINE");
