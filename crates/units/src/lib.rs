//! Whole-number types for time, identity and weight that cannot be mixed up.
//!
//! Everything in schedlab is computed in integers: nanoseconds, dense ids, and the scheduler's own fixed-point
//! weights. Plain integers become these types at the boundary of each crate; a formula that mirrors the kernel's
//! extracts the raw `u64` with `.0`.

#![no_std]

mod id;
mod time;

pub use id::{Pid, TaskId};
pub use time::{Duration, Time};
