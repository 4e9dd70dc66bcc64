//! Where a task goes when it is woken, forked or executes another program.
//!
//! ```text
//! wake-up   ttwu ─► select_task_rq ─┬─ wake_wide, wake_affine: the waker's CPU or the previous one?
//!                                   └─ select_idle_sibling: an idle CPU near that one
//! fork,exec         select_task_rq ─── find_idlest_cpu ─► find_idlest_group, level by level
//! ```
//!
//! Everything that decides takes a [`View`] and changes nothing; `apply_wakeup` and `apply_fork` carry out a decision,
//! whatever made it.

#[cfg(test)]
mod drawn;
mod find_idlest_cpu;
mod find_idlest_group;
mod find_idlest_group_load;
mod fork_facts;
mod fork_reach;
mod kthread_stack;
mod numa_imbalance;
mod record_wakee;
mod reduced_capacity;
mod select_idle_capacity;
mod select_idle_core;
mod select_idle_cpu;
mod select_idle_sibling;
mod select_idle_smt;
mod select_task_rq;
mod ttwu;
mod util_fits_cpu;
mod wake_affine;
mod wake_cap;
mod wake_up_new_task;
mod wake_wide;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{Placement, Reason, Task, View};

pub use find_idlest_cpu::{find_idlest_cpu, find_idlest_group_cpu};
pub use find_idlest_group::find_idlest_group;
pub use fork_facts::ForkFacts;
pub use fork_reach::ForkReach;
pub(crate) use numa_imbalance::NUMA_IMBALANCE_MIN;
pub use numa_imbalance::adjust_numa_imbalance;
pub use record_wakee::Wakees;
pub use select_idle_sibling::select_idle_sibling;
pub use select_task_rq::select_task_rq_fair;
pub(crate) use util_fits_cpu::{fits_capacity, util_fits_cpu};
pub use wake_affine::{Affine, EffectiveLoads, heeds_sync, wake_affine, wake_affine_weight};
pub use wake_wide::{flips_spread, wake_wide};

/// A request to wake a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    /// The task to wake.
    pub task: TaskId,
    /// The task that `this_cpu` was running: the waker, or the interrupted task; `None` means its idle task.
    pub waker: Option<TaskId>,
    /// CPU that executes the wake-up.
    pub this_cpu: CpuId,
    /// The waker says that it will sleep soon (WF_SYNC).
    pub sync: bool,
    /// The waker itself issues the wake-up, not an interrupt on its CPU.
    pub in_task: bool,
    /// The waker requests its own CPU (WF_CURRENT_CPU).
    pub current_cpu: bool,
}

impl Wakeup {
    /// An ordinary wake-up by a task.
    pub fn by(waker: TaskId, this_cpu: CpuId, task: TaskId) -> Wakeup {
        Wakeup { task, waker: Some(waker), this_cpu, sync: false, in_task: true, current_cpu: false }
    }

    pub(crate) fn waker<'a>(&self, view: &View<'a>) -> Option<&'a Task> {
        self.waker.map(|waker| view.sched.task(waker))
    }
}

/// The path of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WakePath {
    /// The task wakes itself: it is running and only its state changes.
    SelfWake,
    /// It had not left its run queue yet.
    StillQueued,
    /// It slept, but its dequeue was delayed: it continues where it is.
    StillDelayed,
    /// It is switching out this moment: its own CPU finishes the wake-up.
    OnCpuHandover,
    /// A CPU is chosen for it.
    Select,
}

impl WakePath {
    /// The corresponding reason; `None` if a CPU is chosen.
    pub fn reason(self) -> Option<Reason> {
        match self {
            WakePath::SelfWake => Some(Reason::WakeSelf),
            WakePath::StillQueued => Some(Reason::StillQueued),
            WakePath::StillDelayed => Some(Reason::StillDelayed),
            WakePath::OnCpuHandover => Some(Reason::OnCpuHandover),
            WakePath::Select => None,
        }
    }
}

/// How a wake-up is carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WakeupDecision {
    /// Path.
    pub path: WakePath,
    /// The choice, if there was one.
    pub placement: Option<Placement>,
    /// Where the task will be queued.
    pub cpu: CpuId,
    /// Through the wake list of `cpu`, not directly.
    pub remote: bool,
}

impl WakeupDecision {
    /// Why it goes there.
    pub fn reason(&self) -> Reason {
        let chosen = self.placement.as_ref().map(|placement| placement.reason);
        self.path.reason().or(chosen).unwrap_or(Reason::OnlyAllowed)
    }
}
