//! The fair class of the Linux scheduler: pure policy that decides and says why.
//!
//! A decider takes `&self` and returns what it chose with its [`Reason`]; an applier takes `&mut self` and carries out
//! a choice, whatever made it. Simulator, audit and live use differ only in what they apply. There is no clock here, no
//! randomness, no float and no error: time is an argument, a wrong call panics.
//!
//! Files are named after the kernel function they model, folders after the moment
//! in a task's life: `wakeup`, `pick`, `balance`, `group`. What differs between
//! kernels is a [`Feature`] or a rule in [`Rules`]; only [`Kernel`] knows versions.

#![no_std]
#![cfg_attr(not(test), deny(clippy::float_arithmetic))]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod affinity;
mod balance;
mod balance_push;
#[cfg(test)]
mod behaviour;
mod between;
mod blocked;
mod buddies;
mod calc_delta;
mod capacity;
mod cfs_rq;
mod cfs_tasks;
pub mod check;
mod class;
mod clock;
mod cpu_load;
mod dequeue;
#[cfg(test)]
mod disorder;
mod domain;
#[cfg(test)]
mod drawing;
mod effect;
mod enqueue;
mod entity;
mod experience;
mod features;
mod flat;
mod fork;
mod group;
mod group_sums;
mod h_load;
mod hotplug;
mod hrtick;
mod idle_cpu;
mod kernel;
#[cfg(test)]
mod lab;
mod level;
mod load_avg;
mod migrate;
mod mover;
mod params;
mod pelt;
pub mod pick;
mod preempt;
mod prio_changed;
mod put_prev_set_next;
mod reason;
mod resched;
mod reweight;
mod rq;
mod rules;
mod sched;
mod schedule;
mod scheduler;
#[cfg(test)]
mod sequences;
mod slice_tree;
mod supposed;
mod task;
mod task_work;
mod tick;
mod timeline;
mod touch;
mod tunables;
mod uclamp;
mod update_curr;
mod uptime;
mod util_est;
mod view;
pub mod wakeup;
mod watched;
mod weight;
pub mod wf;
mod yield_task;

pub use balance::{
    BalanceDecision, CacheGroup, CacheGroups, CanMigrate, EpochTime, GroupSeen, GroupType, MigrationType,
    Newidle, NewidleOutcome, NohzKick, NotMoved, SchedCache, SgLbStats, Step, nr_idle_scan,
};
pub use calc_delta::{calc_delta, calc_delta_fair};
pub use cfs_rq::{CfsRq, MIN_VRUNTIME_START, Queued, Removed, Timeline};
pub use class::{Class, FairServer, Nearest, Push, RtPushLoop, ServerState};
pub use dequeue::DequeueFlags;
pub use domain::{
    DomainLevel, Domains, IdleType, Ring, SchedDomain, SchedGroup, SdFlags, SdId, SgCapacity, SgId,
    SharedDomain, SharedId, Shortcuts,
};
pub use effect::{Effect, MigrationCause};
pub use enqueue::EnqueueFlags;
pub use entity::{Entity, LoadWeight, SchedAvg, SeId};
pub use experience::{Experience, OfCpu, OfDomain};
pub use features::{Feature, FeatureRow, Features};
pub use group::{Bandwidth, TaskGroup, TgId};
pub use kernel::{Kernel, KernelError, PREEMPT_FORMS, PRESETS};
pub use load_avg::UpdateFlags;
pub use mover::{KernelMover, Mover};
pub use pelt::{LOAD_AVG_MAX, decay_load};
pub use pick::check_preempt::{PreemptDecision, Then};
pub use preempt::{NeedResched, Point, Preempt, PreemptBuild, PreemptModel, TickUpgrade};
pub use reason::Reason;
pub use rq::{Curr, Rq};
pub use rules::*;
pub use sched::Sched;
pub use schedule::{Deactivate, Pick, Switched};
pub use scheduler::{PassedOver, Scheduler};
pub use supposed::Supposed;
pub use task::{NewTask, Policy, Task, TaskState};
pub use task_work::TaskWorks;
pub use tick::Ticked;
pub use touch::{Access, Looked, Shared, Took};
pub use tunables::{Scaled, Tunable, Tunables};
pub use uclamp::Uclamp;
pub use uptime::Lately;
pub use view::{Candidate, Leans, Placement, Refused, View};
pub use wakeup::{WakePath, Wakees, Wakeup, WakeupDecision};
pub use watched::Watched;
pub use weight::{LOAD_SHIFT, NICE_0_LOAD, WEIGHT_IDLEPRIO, prio_to_weight, prio_to_wmult};

/// A CFS run queue, root or of a group: index into [`Sched::cfs_rqs`]. The root
/// run queue of CPU n has number n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CfsRqId(pub u32);
