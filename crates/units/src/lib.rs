//! Whole-number types for time, identity and weight that cannot be mixed up.
//!
//! Everything in the laboratory counts in integers: nanoseconds, dense ids, and
//! the scheduler's own fixed-point weights. Bare integers become these types at
//! the door of each crate; inside a formula that mirrors the kernel's the raw
//! `u64` is taken out again with `.0`.

#![no_std]

mod id;
mod time;

pub use id::{Pid, TaskId};
pub use time::{Duration, Time};
