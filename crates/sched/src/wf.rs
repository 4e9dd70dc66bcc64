//! Flags of a wake-up, with the kernel's values.
//!
//! Kernel: WF_*, kernel/sched/sched.h, v7.2.

/// A new task.
pub const FORK: u32 = 0x04;
/// An ordinary wake-up.
pub const TTWU: u32 = 0x08;
/// The waker is about to sleep.
pub const SYNC: u32 = 0x10;
/// The task changed its CPU.
pub const MIGRATED: u32 = 0x20;
/// The waker requests its own CPU.
pub const CURRENT_CPU: u32 = 0x40;
/// The CPU was chosen by the class, not by affinity.
pub const RQ_SELECTED: u32 = 0x80;
