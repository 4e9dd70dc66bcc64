//! Writers: sinks that put a trace into bytes as it happens.

mod ftrace;

pub use ftrace::{Ftrace, Precision};
