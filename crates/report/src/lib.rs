//! Metrics from a trace, comparison, rendering.
//!
//! Results are kept as a [`Table`]: kernels are its columns, metrics with their rows its lines, and each cell
//! contains one run per seed. A [`Comparison`] computes everything that is printed from it, once; the
//! functions in [`render`] only lay it out, so text, JSON, CSV and Markdown cannot disagree. A [`PerfStat`]
//! is the other form used in mail, for one kernel at a time. The folds that turn a trace into such numbers
//! are in [`metrics`]; [`perf_sched`] has those of `perf sched`, including its tables.

mod comparison;
pub mod detect;
mod metric;
pub mod metrics;
pub mod perf_sched;
mod perfstat;
pub mod render;
pub mod schedstat;

pub use comparison::{CellComparison, Comparison, MetricComparison, Options, Ratios, RowComparison};
pub use metric::{Cell, Metric, Row, Run, Table, TableError, fitting_time};
pub use perfstat::{Elapsed, PerfRow, PerfStat};
pub use schedlab_stats::{Direction, Interval, Judge, Rule, Stat, Verdict};
