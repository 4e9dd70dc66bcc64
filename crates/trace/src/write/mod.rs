//! Writers: sinks that put a trace into bytes as it happens.

mod ftrace;
mod perfetto;

pub use ftrace::{Ftrace, Precision};
pub use perfetto::{Extras, Perfetto};
