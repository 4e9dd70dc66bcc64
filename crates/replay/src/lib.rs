//! Learns from a recording the program of each task, for a replay.
//!
//! A [`Learner`] reads a recording and records what each task did: how long it worked, when it slept and what ended the
//! sleep, which tasks it woke or forked, and which programs it executed ([`Learned`]). [`Learned::workload`] turns that
//! into programs for the simulator. Placement, preemption and balancing are left out: the kernel and machine of the
//! replay decide those.
//!
//! ```text
//!   recording        a ran 300 us, woke b, ran 200 us, slept; b, woken, ran 40 us ...
//!   programs         a: run 300, wake b, run 200, wait     b: wait, run 40 ...
//! ```

mod build;
mod describe;
mod error;
mod known;
mod lags;
mod learn;
mod learned;
mod passes;
mod rhythm;
mod ticks;
mod wakers;
mod yields;

pub use build::{MARK, Options, PROLOGUE};
pub use error::Missing;
pub use known::{Known, KnownTask, usual_policy};
pub use learn::Learner;
pub use learned::{Begin, Learned, Sleep, Step, Task, TaskIndex};
pub use passes::{Pass, Passes};
pub use ticks::{LateTick, Ticks};
pub use wakers::Wakers;
