//! Writers: sinks that put a trace into bytes as it happens.

mod ftrace;
mod jsonl;
mod perfetto;
mod trace_dat;

pub use ftrace::{Ftrace, Precision};
pub use jsonl::Jsonl;
pub use perfetto::{Extras, Perfetto};
pub use trace_dat::TraceDat;
