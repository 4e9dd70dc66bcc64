//! The public interface: machines, kernels, scenarios, simulations, comparisons.
//!
//! A scenario names a machine, kernels, a workload and a seed; running it gives a table of metrics, one
//! column per kernel. Everything here is plain data in and out: files, clocks and terminals belong to the
//! callers.
//!
//! ```
//! use schedlab::report::{Comparison, Options, Stat, render};
//! use schedlab::{Experiment, NoFiles, Scenario};
//!
//! let text = r#"
//!     machine = "1x4"
//!     kernels = ["v6.12", "v6.12+NO_SIS_UTIL"]
//!     runs = 2
//!
//!     [workload]
//!     model = "token"
//!     wall = "5ms"
//! "#;
//! let scenario = Scenario::parse("pipe.toml", text, &NoFiles)?;
//! let results = scenario.run(1, |_done, _total| ())?;
//! let table = results.table(&Experiment::of(&scenario));
//! let comparison = Comparison::new(&table, Options::default());
//! assert_eq!(comparison.kernels.len(), 2);
//! print!("{}", render::text(&comparison, &Stat::MAIL));
//! # Ok::<(), schedlab::Error>(())
//! ```
//!
//! `examples/compare.rs` compares kernels on a scenario file, `examples/audit.rs` audits a recording.

pub use schedlab_audit as audit;
pub use schedlab_diff as diff;
pub use schedlab_html as html;
pub use schedlab_kernel_tree as kernel_tree;
pub use schedlab_lockstep as lockstep;
pub use schedlab_machine as machine;
pub use schedlab_recording as recording;
pub use schedlab_replay as learned;
pub use schedlab_report as report;
pub use schedlab_sched as sched;
pub use schedlab_timeline as timeline;
pub use schedlab_topology as topology;
pub use schedlab_trace as trace;
pub use schedlab_units as units;
pub use schedlab_workload as workload;

mod accounts;
pub mod attribute;
pub mod audited;
mod because;
pub mod bench;
pub mod checks;
mod columns;
pub mod commits;
mod deadlines;
pub mod domain_tree;
mod embedded;
pub mod ends;
mod error;
mod experiment;
pub mod facts;
pub mod figures;
mod find_machine;
mod folds;
mod halves;
mod judge;
pub mod kernels;
mod measured;
mod overrides;
pub mod pages;
pub mod parting;
mod profile;
mod reference;
pub mod replay;
pub mod reproduce;
mod rows;
mod rulebook;
mod run_clock;
mod scenario;
mod setting;
pub mod slow_clocks;
mod tables;
mod unpriced;
pub mod why;
pub mod why_diff;

pub use accounts::Accounts;
pub use because::because;
pub use columns::{Column, Experiment};
pub use deadlines::deadline_note;
pub use embedded::{embedded_scenario, scenario_names};
pub use error::Error;
pub use experiment::{Limits, Results, Run, run_folding, run_one};
pub use find_machine::find_machine;
pub use folds::{Figures, Folds};
pub use judge::Judgement;
pub use overrides::Variant;
pub use reference::{Reference, beside};
pub use rulebook::{Entry, Rulebook, reason};
pub use run_clock::RunClock;
pub use scenario::{
    Expect, Files, NoFiles, Overrides, Row, Scenario, What, check_runs, parse_duration, parse_limit,
};
pub use setting::Setting;
pub use unpriced::{hides_a_difference, unpriced};
