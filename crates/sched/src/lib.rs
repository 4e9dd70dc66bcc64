//! The fair class of the Linux scheduler: pure policy that decides and says why.
//!
//! A decider takes `&self` and returns what it chose with its [`Reason`]; an
//! applier takes `&mut self` and carries out a choice, whoever made it. Simulator,
//! audit and live use differ only in what they apply. There is no clock here, no
//! randomness, no float and no error: time is an argument, a wrong call panics.
//!
//! Files are named after the kernel function they model, folders after the moment
//! in a task's life: `wakeup`, `pick`, `balance`, `group`. What differs between
//! kernels is a [`Feature`] or a rule in [`Rules`]; only [`Kernel`] knows versions.

#![no_std]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod balance;
mod blocked;
mod capacity;
mod cfs_rq;
mod clock;
mod cpu_load;
mod domain;
#[cfg(test)]
mod drawing;
mod effect;
mod entity;
mod features;
mod group;
mod h_load;
mod idle_cpu;
mod kernel;
mod load_avg;
mod pelt;
mod preempt;
mod reason;
mod reweight;
mod rq;
mod rules;
mod sched;
mod task;
mod tunables;
mod util_est;
mod view;
pub mod wakeup;
mod weight;

pub use balance::{GroupType, SgLbStats};
pub use cfs_rq::{CfsRq, Queued, Removed, Timeline};
pub use domain::{
    DomainLevel, Domains, IdleType, Ring, SchedDomain, SchedGroup, SdFlags, SdId, SgCapacity, SgId,
    SharedDomain, SharedId, Shortcuts,
};
pub use effect::{Effect, MigrationCause};
pub use entity::{Entity, LoadWeight, SchedAvg, SeId};
pub use features::{Feature, FeatureRow, Features};
pub use group::{Bandwidth, TaskGroup, TgId};
pub use kernel::{Kernel, KernelError, PRESETS};
pub use load_avg::UpdateFlags;
pub use pelt::LOAD_AVG_MAX;
pub use preempt::{NeedResched, Point, Preempt, PreemptBuild, PreemptModel};
pub use reason::Reason;
pub use rq::{Curr, Rq};
pub use rules::*;
pub use sched::{Prices, Sched};
pub use task::{NewTask, Policy, Task, TaskState};
pub use tunables::{Scaled, Tunable, Tunables};
pub use view::{Candidate, Placement, Refused, View};
pub use wakeup::{WakePath, Wakees, Wakeup, WakeupDecision};
pub use weight::{NICE_0_LOAD, WEIGHT_IDLEPRIO, prio_to_weight, prio_to_wmult};

/// A CFS run queue, root or of a group: index into [`Sched::cfs_rqs`]. The root
/// run queue of CPU n has number n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CfsRqId(pub u32);
