//! What a balance pass decided, and its consequences.

use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::SgLbStats;
use crate::{IdleType, Reason, SdId, SgId, SharedId};

/// The unit of an imbalance.
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
    /// It ran there recently.
    CacheHot,
    /// v7.2: asleep, only its lag is still queued.
    Delayed,
    /// v7.2: it is not eligible, so it would not run at once on the destination either.
    Ineligible,
    /// v7.2: it would leave its last-level cache.
    LeavesLlc,
    /// v7.2: the pass looks for tasks of another last-level cache.
    OtherLlc,
    /// Larger than the imbalance.
    TooLarge,
    /// LB_MIN: not worth it.
    TooSmall,
    /// It fits where it is.
    Fits,
}

/// One step of a pass, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A task is detached from its queue, to be moved to a CPU.
    Detach {
        /// The task.
        task: TaskId,
        /// To.
        to: CpuId,
    },
    /// A candidate is passed over and moves to the far end of the list.
    Skip {
        /// The task.
        task: TaskId,
        /// Why.
        why: NotMoved,
    },
    /// All detached tasks are queued on this CPU, the last one first.
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
    /// Whether it is the local group.
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
    /// The reason for the result.
    pub reason: Reason,
    /// The number that decided, with its name, for explanations.
    pub number: Option<(&'static str, i64)>,
    /// Busiest group.
    pub busiest: Option<SgId>,
    /// Busiest CPU of that group.
    pub src: Option<CpuId>,
    /// CPUs whose tasks were examined, the last of them `src`.
    pub sources: Vec<CpuId>,
    /// Unit in which the imbalance is counted.
    pub migration_type: MigrationType,
    /// How much was found, 0 if balanced.
    pub imbalance: i64,
    /// Groups in the order they were examined; kept only when decisions are recorded.
    pub groups: Vec<GroupSeen>,
    /// CPUs examined: the cost of the pass.
    pub examined: u32,
    /// The steps taken for tasks.
    pub steps: Vec<Step>,
    /// Tasks moved.
    pub moved: u32,
    /// The stopper of `src` must push its running task to `cpu`.
    pub active: bool,
    /// v7.2: the stopper moves only a task that prefers the destination's cache.
    pub active_llc: bool,
    /// False: the levels above need no pass, as another CPU of the group makes it.
    pub continue_balancing: bool,

    /// Failed passes of the domain afterwards.
    pub nr_balance_failed: u32,
    /// Balance interval of the domain afterwards, ms.
    pub balance_interval: u64,
    /// The mark of the parent's local group: whether affinity caused an imbalance.
    pub group_imbalance: Option<bool>,
    /// Whether any CPU has several tasks, if the pass examined all CPUs.
    pub overload: Option<bool>,
    /// SIS_UTIL: how many CPUs an idle search may examine.
    pub nr_idle_scan: Option<(SharedId, u32)>,
    /// v7.2: utilisation and capacity of last-level caches.
    pub llc_stats: Vec<(SharedId, u64, u64)>,
    /// v7.2: processes that do not fit the destination's cache, and prefer none from now on.
    pub llc_unfit: Vec<u32>,
}

impl BalanceDecision {
    /// Nothing is decided yet. `failed` and `interval` are those of the domain before the pass.
    pub(super) fn undecided(
        cpu: CpuId,
        sd: SdId,
        idle: IdleType,
        failed: u32,
        interval: u64,
    ) -> BalanceDecision {
        BalanceDecision {
            cpu,
            sd,
            idle,
            reason: Reason::LbBalanced,
            number: None,
            busiest: None,
            src: None,
            sources: Vec::new(),
            migration_type: MigrationType::Load,
            imbalance: 0,
            groups: Vec::new(),
            examined: 0,
            steps: Vec::new(),
            moved: 0,
            active: false,
            active_llc: false,
            continue_balancing: true,
            nr_balance_failed: failed,
            balance_interval: interval,
            group_imbalance: None,
            overload: None,
            nr_idle_scan: None,
            llc_stats: Vec::new(),
            llc_unfit: Vec::new(),
        }
    }

    /// Tasks in the order they are detached, with their destinations.
    pub fn moves(&self) -> impl Iterator<Item = (TaskId, CpuId)> + '_ {
        self.steps.iter().filter_map(|step| match *step {
            Step::Detach { task, to } => Some((task, to)),
            _ => None,
        })
    }
}
