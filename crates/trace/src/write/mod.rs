//! Writers: sinks that encode a trace as it happens.

mod ftrace;
mod jsonl;
mod perf_data;
mod perfetto;
mod recorded;
mod trace_dat;
mod tracing_data;

pub use ftrace::{Ftrace, Precision};
pub use jsonl::Jsonl;
pub use perf_data::PerfData;
pub use perfetto::{Extras, Perfetto, Remark};
pub use recorded::Recorded;
pub use trace_dat::TraceDat;
