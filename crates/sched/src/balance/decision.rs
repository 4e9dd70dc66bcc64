//! What a balance pass decided, and all that follows from it.

use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::SgLbStats;
use crate::{IdleType, Reason, SdId, SgId, SharedId};

/// In what an imbalance is counted.
///
/// Kernel: enum migration_type, kernel/sched/fair.c, v7.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MigrationType {
    /// Load.
    #[default]
    Load,
    /// Utilisation.
    Util,
    /// Tasks.
    Task,
    /// One task that does not fit.
    Misfit,
    /// v7.2: tasks that prefer the destination's last-level cache.
    LlcTask,
}

impl MigrationType {
    /// Its name in explanations.
    pub fn name(self) -> &'static str {
        match self {
            MigrationType::Load => "load",
            MigrationType::Util => "util",
            MigrationType::Task => "task",
            MigrationType::Misfit => "misfit",
            MigrationType::LlcTask => "llc_task",
        }
    }
}

/// Why a candidate was not moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotMoved {
    /// Its group is throttled at one end.
    Throttled,
    /// A kernel thread of that CPU.
    PerCpuKthread,
    /// It may not run there.
    NotAllowed,
    /// It is running.
    Running,
    /// It ran there not long ago.
    CacheHot,
    /// v7.2: asleep, only its lag is still queued.
    Delayed,
    /// v7.2: it is not eligible, so it would not run there at once either.
    Ineligible,
    /// v7.2: it would leave its last-level cache.
    LeavesLlc,
    /// v7.2: another last-level cache is wanted.
    OtherLlc,
    /// More than what is to be moved.
    TooLarge,
    /// LB_MIN: not worth it.
    TooSmall,
    /// It fits where it is.
    Fits,
}

/// One step of a pass, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A task is taken off its queue, bound for a CPU.
    Detach {
        /// The task.
        task: TaskId,
        /// To.
        to: CpuId,
    },
    /// A candidate is passed over and goes to the far end of the list.
    Skip {
        /// The task.
        task: TaskId,
        /// Why.
        why: NotMoved,
    },
    /// All that were taken off are queued on this CPU, the last one first.
    Attach {
        /// To.
        to: CpuId,
    },
}

/// A group as a pass saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupSeen {
    /// Which.
    pub group: SgId,
    /// Whether it is the one to be helped.
    pub local: bool,
    /// Its statistics.
    pub stats: SgLbStats,
}

/// What a balance pass decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalanceDecision {
    /// CPU for which the pass was made.
    pub cpu: CpuId,
    /// Level.
    pub sd: SdId,
    /// Occasion.
    pub idle: IdleType,
    /// Why it ended as it did.
    pub reason: Reason,
    /// The number that decided, with its name; for people.
    pub number: Option<(&'static str, i64)>,
    /// Busiest group.
    pub busiest: Option<SgId>,
    /// Busiest CPU of that group.
    pub src: Option<CpuId>,
    /// CPUs whose tasks were looked at, the last of them `src`.
    pub sources: Vec<CpuId>,
    /// In what the imbalance is counted.
    pub migration_type: MigrationType,
    /// How much was found, 0 if balanced.
    pub imbalance: i64,
    /// Groups in the order they were looked at; kept only when decisions are recorded.
    pub groups: Vec<GroupSeen>,
    /// CPUs looked at: the cost of the pass.
    pub examined: u32,
    /// The steps taken for tasks.
    pub steps: Vec<Step>,
    /// Tasks moved.
    pub moved: u32,
    /// The stopper of `src` is to push its running task to `cpu`.
    pub active: bool,
    /// v7.2: the stopper is to move only what prefers the destination's cache.
    pub active_llc: bool,
    /// False: levels above need no pass, another CPU of the group makes it.
    pub continue_balancing: bool,

    /// Failed passes of the domain afterwards.
    pub nr_balance_failed: u32,
    /// Balance interval of the domain afterwards, ms.
    pub balance_interval: u64,
    /// What the parent's local group is marked with: an imbalance that affinity caused.
    pub group_imbalance: Option<bool>,
    /// Whether some CPU has several tasks, when the pass saw all CPUs.
    pub overload: Option<bool>,
    /// SIS_UTIL: CPUs an idle search may look at.
    pub nr_idle_scan: Option<(SharedId, u32)>,
    /// v7.2: utilisation and capacity of last-level caches.
    pub llc_stats: Vec<(SharedId, u64, u64)>,
}

impl BalanceDecision {
    /// Tasks in the order they are taken, with where they go.
    pub fn moves(&self) -> impl Iterator<Item = (TaskId, CpuId)> + '_ {
        self.steps.iter().filter_map(|step| match *step {
            Step::Detach { task, to } => Some((task, to)),
            _ => None,
        })
    }
}
