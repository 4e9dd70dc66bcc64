//! The engine: a scheduler, a machine and a workload in virtual time.
//!
//! Discrete events in whole nanoseconds, ordered by time and then by insertion. The scheduler decides, the
//! machine says what it costs, the workload says what tasks do; the engine knows none of their rules. Events
//! go to a sink and are not kept, so memory does not grow with the length of a run.
//!
//! | file | what happens there |
//! | --- | --- |
//! | `engine.rs` | state and main loop |
//! | `exec.rs` | ops of programs |
//! | `switch.rs`, `preempt_point.rs` | calling the scheduler, and where |
//! | `wakeup.rs`, `create.rs`, `exit.rs` | tasks wake, begin and end |
//! | `interrupt.rs`, `tick.rs`, `idle.rs` | what comes from outside, and time |
//! | `charge.rs` | effects become time and notices |
//! | `wait/` | objects that tasks wait for |

mod account;
mod attributes;
mod change;
mod channels;
mod charge;
pub mod checker;
mod clock;
mod cpu;
mod cpuhp;
mod create;
mod emit;
mod engine;
mod event;
mod exec;
mod exit;
mod explain;
mod few;
mod groups;
mod handlers;
mod idle;
mod interrupt;
mod late;
mod lines;
mod locks;
mod memory;
mod noise;
mod objects;
mod others;
mod outcome;
mod owed;
mod past;
mod preempt_point;
mod profile;
mod queue;
mod rng;
mod settle;
mod shared;
mod simulation;
mod slow_clocks;
mod softirq;
mod sources;
mod stopper;
mod switch;
mod task;
mod tell_state;
mod tick;
mod to_idle;
mod turns;
mod user_lock;
mod wait;
mod wakeup;
mod warm;
mod workers;

pub use account::{Account, OfCpu, Part, Parts};
pub use change::{Change, Timed};
pub use engine::took;
pub use noise::Noise;
pub use outcome::{Counts, End, Outcome, Stuck};
pub use past::{LateTick, Pass, Past};
pub use profile::{NodeProfile, Profile};
pub use settle::Settled;
pub use simulation::{SimError, Simulation};
pub use slow_clocks::{Slow, SlowClock};
pub use warm::Warm;
