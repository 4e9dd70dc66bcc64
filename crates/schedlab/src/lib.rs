//! The public face: machines, kernels, scenarios, simulations, comparisons.
//!
//! A scenario names a machine, kernels, a workload and a seed; running it gives a
//! table of metrics, one column per kernel. Everything here is plain data in and
//! out: files, clocks and terminals belong to the shells.

pub use schedlab_machine as machine;
pub use schedlab_report as report;
pub use schedlab_sched as sched;
pub use schedlab_topology as topology;
pub use schedlab_trace as trace;
pub use schedlab_units as units;
pub use schedlab_workload as workload;

pub mod domain_tree;
mod error;
pub mod facts;
mod rulebook;
pub mod why;

pub use error::Error;
pub use rulebook::{Entry, Rulebook, reason};
