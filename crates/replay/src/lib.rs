//! From a recording, the program of each task: what a replay needs.
//!
//! A [`Learner`] listens to a recording and writes down, task by task, what it did: how long it
//! worked, when it slept and who ended that, whom it woke, forked, or became ([`Learned`]).
//! [`Learned::workload`] makes programs of that for the simulator. Placement, preemption and
//! balancing are left out: those are for the kernel and machine of the replay to decide.
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
