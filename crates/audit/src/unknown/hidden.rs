//! The facts that no event shows.

use serde::{Serialize, Serializer};

/// A fact that no event shows. In a set it leaves the choice open; in an undecided verdict it is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hidden {
    /// Whether the waker set the sync flag.
    SyncFlag,
    /// How many CPUs a search may examine.
    IdleScanLimit,
    /// Averages: loads that are close, or that still contain remains from before the recording.
    Loads,
    /// Whether a sleeper was still queued.
    DelayedDequeue,
    /// Which of the CPUs that were idle before the recording went idle last.
    IdleStamp,
    /// Which CPU the task used recently: before the recording, or where a wake-up leaves it open.
    RecentCpu,
    /// Which of several suitable CPUs for a real-time or deadline task is next in turn.
    CpuRotation,
    /// The deadlines and budgets of deadline tasks.
    Deadlines,
    /// Which CPUs the pool of a workqueue's worker has.
    WorkerPool,
    /// How often a task that existed before the recording changed its wakee.
    WakeeFlips,
    /// Whether some core of a cache is known to be idle.
    IdleCores,
    /// The state changed while the decision was made.
    InMotion,
    /// Virtual times that are closer than event times can distinguish.
    VirtualTime,
    /// How long before a switch its clock was read: the CPU may have lost its turn in between.
    LostTurn,
    /// Whether a slice ended: the trace does not contain the tick or timer that checked.
    SliceEnd,
    /// Whether the task yielded.
    Yield,
    /// Whether a group was out of its quota.
    Quota,
    /// When each CPU balances: its intervals and failures so far.
    BalanceTime,
    /// The order of tasks in the list from which balancing takes them.
    TaskOrder,
    /// Whether affinity set the imbalance mark of a group.
    ImbalanceMark,
    /// In which cache a process ran most at the kernel's last evaluation.
    CacheHome,
    /// Which groups tasks were in, and with which shares.
    Groups,
    /// The outcome of the wake-up; its end is not in the trace.
    Fate,
    /// Whether the running task was asked to make way; it went to sleep before that showed.
    Request,
    /// A task that was not seen before.
    Unmet,
    /// Which tasks run or wait on a CPU since a switch that is not in the trace.
    UnseenSwitch,
    /// Where tasks were moved: the recording has no `sched_migrate_task`.
    UnseenMove,
}

impl Hidden {
    /// All of them.
    pub const ALL: [Hidden; 27] = [
        Hidden::SyncFlag,
        Hidden::IdleScanLimit,
        Hidden::Loads,
        Hidden::DelayedDequeue,
        Hidden::IdleStamp,
        Hidden::RecentCpu,
        Hidden::CpuRotation,
        Hidden::Deadlines,
        Hidden::WorkerPool,
        Hidden::WakeeFlips,
        Hidden::IdleCores,
        Hidden::InMotion,
        Hidden::VirtualTime,
        Hidden::LostTurn,
        Hidden::SliceEnd,
        Hidden::Yield,
        Hidden::Quota,
        Hidden::BalanceTime,
        Hidden::TaskOrder,
        Hidden::ImbalanceMark,
        Hidden::CacheHome,
        Hidden::Groups,
        Hidden::Fate,
        Hidden::Request,
        Hidden::Unmet,
        Hidden::UnseenSwitch,
        Hidden::UnseenMove,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Hidden::SyncFlag => "SYNC_FLAG",
            Hidden::IdleScanLimit => "IDLE_SCAN_LIMIT",
            Hidden::Loads => "LOADS",
            Hidden::DelayedDequeue => "DELAYED_DEQUEUE",
            Hidden::IdleStamp => "IDLE_STAMP",
            Hidden::RecentCpu => "RECENT_CPU",
            Hidden::CpuRotation => "CPU_ROTATION",
            Hidden::Deadlines => "DEADLINES",
            Hidden::WorkerPool => "WORKER_POOL",
            Hidden::WakeeFlips => "WAKEE_FLIPS",
            Hidden::IdleCores => "IDLE_CORES",
            Hidden::InMotion => "IN_MOTION",
            Hidden::VirtualTime => "VIRTUAL_TIME",
            Hidden::LostTurn => "LOST_TURN",
            Hidden::SliceEnd => "SLICE_END",
            Hidden::Yield => "YIELD",
            Hidden::Quota => "QUOTA",
            Hidden::BalanceTime => "BALANCE_TIME",
            Hidden::TaskOrder => "TASK_ORDER",
            Hidden::ImbalanceMark => "IMBALANCE_MARK",
            Hidden::CacheHome => "CACHE_HOME",
            Hidden::Groups => "GROUPS",
            Hidden::Fate => "FATE",
            Hidden::Request => "REQUEST",
            Hidden::Unmet => "UNMET",
            Hidden::UnseenSwitch => "UNSEEN_SWITCH",
            Hidden::UnseenMove => "UNSEEN_MOVE",
        }
    }

    /// Description for people.
    pub fn sentence(self) -> &'static str {
        match self {
            Hidden::SyncFlag => "whether the wake-up carried the sync flag",
            Hidden::IdleScanLimit => "how many CPUs the search was allowed to examine",
            Hidden::Loads => "the exact load averages",
            Hidden::DelayedDequeue => "whether the sleeper was still queued",
            Hidden::IdleStamp => "which of the CPUs idle since before the recording went idle last",
            Hidden::RecentCpu => "which CPU the task used recently",
            Hidden::CpuRotation => "which of several suitable CPUs was next in turn",
            Hidden::Deadlines => "the deadlines and budgets of deadline tasks",
            Hidden::WorkerPool => "on which CPU of its pool a worker was woken",
            Hidden::WakeeFlips => "how often tasks changed their wakee before the recording",
            Hidden::IdleCores => "whether an idle core is known",
            Hidden::InMotion => "a state that was changing at that moment",
            Hidden::VirtualTime => "virtual times that are closer than event times can distinguish",
            Hidden::LostTurn => {
                "when a switch read its clock, on a CPU that may have lost its turn just then"
            }
            Hidden::SliceEnd => "when a tick or timer checked the slice",
            Hidden::Yield => "whether the task called sched_yield(), as it seems to do",
            Hidden::Quota => "whether a group was out of its quota",
            Hidden::BalanceTime => "when each CPU balances, and how often it failed",
            Hidden::TaskOrder => "the order of tasks in the list from which balancing takes them",
            Hidden::ImbalanceMark => "whether affinity set the imbalance mark of a group",
            Hidden::CacheHome => {
                "in which cache the threads of a process ran most at the kernel's last evaluation"
            }
            Hidden::Groups => "which groups tasks were in: cgroups, or autogroups of sessions",
            Hidden::Request => "whether the running task was asked to make way, which no event showed",
            Hidden::Fate => "the end of the wake-up, which is not in the trace",
            Hidden::Unmet => "what happened before it was first seen",
            Hidden::UnseenMove => "where a task was moved, as the recording has no sched_migrate_task",
            Hidden::UnseenSwitch => {
                "which tasks ran and waited on the CPU after a switch that is not in the trace"
            }
        }
    }
}

impl Serialize for Hidden {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
