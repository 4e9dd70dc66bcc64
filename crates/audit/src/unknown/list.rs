//! The list of facts that no event shows: the one place that names them.
//!
//! A fact has a name, a sentence, readings and further names. A *reading* supposes a value of it where the likeliest state
//! does not lead to what happened, or keeps what earlier verdicts show of it. It costs code and may explain what our rules get
//! wrong, so it must earn its place: [`Options::without`](crate::Options::without) switches one off, and the difference in
//! verdicts is what it buys. *Beyond its bounds* the same fact may still be what would have had to be different where a decision
//! differs; what then is its name. Documents, `schedlab explain` and the table of what readings buy come from this list.

use serde::{Serialize, Serializer};

macro_rules! unknowns {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $sentence:literal {
        $(read $reading:ident = $read:literal, $supposes:literal;)*
        $(beyond $further:literal, $had:literal;)*
    })*) => {
        /// A fact that no event shows. In a set it leaves the choice open; in an undecided verdict it is missing.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Unknown { $($(#[doc = $doc])* $variant,)* }

        impl Unknown {
            /// All of them.
            pub const ALL: &'static [Unknown] = &[$(Unknown::$variant,)*];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Unknown::$variant => $name,)* }
            }

            /// What it is, after "a recording does not show".
            pub fn sentence(self) -> &'static str {
                match self { $(Unknown::$variant => $sentence,)* }
            }

            /// Further names of what would have had to be different beyond its bounds, and what that was.
            pub fn beyond(self) -> &'static [(&'static str, &'static str)] {
                match self { $(Unknown::$variant => &[$(($further, $had),)*],)* }
            }
        }

        /// A reading of one of them, which an audit can do without.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Reading { $($(#[doc = $supposes] $reading,)*)* }

        impl Reading {
            /// All of them, by their facts.
            pub const ALL: &'static [Reading] = &[$($(Reading::$reading,)*)*];

            /// Its name in tables.
            pub fn name(self) -> &'static str {
                match self { $($(Reading::$reading => $read,)*)* }
            }

            /// What it supposes or keeps.
            pub fn sentence(self) -> &'static str {
                match self { $($(Reading::$reading => $supposes,)*)* }
            }

            /// The fact that it reads.
            pub fn of(self) -> Unknown {
                match self { $($(Reading::$reading => Unknown::$variant,)*)* }
            }
        }
    };
}

unknowns! {
    /// Whether the waker set the sync flag.
    SyncFlag = "SYNC_FLAG", "whether the wake-up carried the sync flag" {
        read LearnedFlag = "LEARNED_FLAG", "most wake-ups of a task have the same sync flag";
    }
    /// How many CPUs a search may examine.
    IdleScanLimit = "IDLE_SCAN_LIMIT", "how many CPUs the search was allowed to examine" {
        read LearnedLimit = "LEARNED_LIMIT", "searches since the last tick narrow the scan limit";
    }
    /// Averages: loads that are close, or that still contain remains from before the recording.
    Loads = "LOADS", "the exact load averages" {
        read ForkAverages = "FORK_AVERAGES", "averages are off by their widest error";
        read LearnedRest = "LEARNED_REST", "decisions show whether averages from before the recording still matter";
    }
    /// Whether a sleeper was still queued.
    DelayedDequeue = "DELAYED_DEQUEUE", "whether the sleeper was still queued" {
        read StillQueued = "STILL_QUEUED", "the dequeue of the woken task was still delayed";
        read MoveOfSleeper = "MOVE_OF_SLEEPER", "a delayed sleeper was moved";
        read LeftAlready = "LEFT_ALREADY", "a task has left its queue before its switch";
        beyond "SLEEPER", "another sleeper had still been queued, its dequeue delayed, or had left its queue";
    }
    /// Which of the CPUs that were idle before the recording went idle last.
    IdleStamp = "IDLE_STAMP", "which of the CPUs idle since before the recording went idle last" {
        read ForkHeld = "FORK_HELD", "a CPU went idle before its clock shows it";
        read IdleStates = "IDLE_STATES", "recorded idle states order CPUs by exit latency";
    }
    /// Which CPU the task used recently: before the recording, or where a wake-up leaves it open.
    RecentCpu = "RECENT_CPU", "which CPU the task used recently" {}
    /// Which of several suitable CPUs for a real-time or deadline task is next in turn.
    CpuRotation = "CPU_ROTATION", "which of several suitable CPUs was next in rotation" {}
    /// The deadlines and budgets of deadline tasks.
    Deadlines = "DEADLINES", "the deadlines and budgets of deadline tasks" {
        read Budgets = "BUDGETS", "deadline tasks that are passed over are out of budget";
    }
    /// Which CPUs the pool of a workqueue's worker has.
    WorkerPool = "WORKER_POOL", "on which CPU of its pool a worker was woken" {
        read SentBack = "SENT_BACK", "a worker was sent back to the CPUs of its pool";
    }
    /// How often a task that existed before the recording changed its wakee.
    WakeeFlips = "WAKEE_FLIPS", "how often tasks changed their wakee before the recording" {
        read LearnedFlips = "LEARNED_FLIPS", "wake-ups show how often a task changed its wakee";
    }
    /// Whether some core of a cache is known to be idle.
    IdleCores = "IDLE_CORES", "whether an idle core is known" {}
    /// The state changed while the decision was made.
    InMotion = "IN_MOTION", "a state that was changing at that moment" {
        read OnCpu = "ON_CPU", "the woken task was still on its CPU";
        read WakeInMotion = "WAKE_IN_MOTION", "a CPU that was changing its state was seen in the new one";
        read MoveInMotion = "MOVE_IN_MOTION", "a pass saw a CPU before or after its latest change";
        read ForkEarlier = "FORK_EARLIER", "the CPU was chosen in an earlier state, or one was changing";
        beyond "CPU_IDLE", "a CPU had been idle: for longer, or since an earlier time";
        beyond "CPU_BUSY", "a CPU had been busy: for longer, or since an earlier time";
        beyond "ONE_MORE_QUEUED", "one more task had been queued on a CPU";
        beyond "ONE_LESS_QUEUED", "one task fewer had been queued on a CPU";
        beyond "ON_CPU", "the woken sleeper had still been on its CPU";
        beyond "WAITED", "the moved task had waited on the CPU that it was taken from";
    }
    /// Virtual times that are closer than event times can distinguish.
    VirtualTime = "VIRTUAL_TIME", "virtual times that are closer than event times can distinguish" {
        read HeldUp = "HELD_UP", "a CPU read its clock and was held up before its event";
        beyond "VRUNTIME", "the virtual time of a task";
        beyond "DEADLINE", "the deadline of a task's request (EEVDF)";
        beyond "PLACED", "where a task was placed: its virtual time and its deadline together";
        beyond "AVERAGE", "the virtual times of the waiting tasks apart from the two that are compared";
        beyond "PROTECTION", "the running task had no longer been protected";
    }
    /// How long before a switch its clock was read: the CPU may have lost its turn in between.
    LostTurn = "LOST_TURN", "when a switch read its clock, on a CPU that may have lost its turn just then" {
        read LostTurn = "LOST_TURN", "a CPU lost its turn between its clock and its event";
    }
    /// Whether a slice ended: the trace does not contain the tick or timer that checked.
    SliceEnd = "SLICE_END", "when a tick or timer checked the slice" {
        beyond "TURN_END", "the slice of the running task had ended sooner, or later";
    }
    /// Whether the task yielded.
    Yield = "YIELD", "whether the task called sched_yield(), as it seems to do" {
        read Yields = "YIELDS", "a task that repeatedly leaves its CPU early calls sched_yield()";
    }
    /// Whether a group was out of its quota.
    Quota = "QUOTA", "whether a group was out of its quota" {
        read Throttled = "THROTTLED", "the tasks that come first were out of quota";
    }
    /// When each CPU balances: its intervals and failures so far.
    BalanceTime = "BALANCE_TIME", "when each CPU balances, and how often it failed" {
        beyond "OCCASION", "the pass had been of another kind (idle, busy or newly idle) than ours";
    }
    /// The order of tasks in the list from which balancing takes them.
    TaskOrder = "TASK_ORDER", "the order of tasks in the list from which balancing takes them" {}
    /// Whether affinity set the imbalance mark of a group.
    ImbalanceMark = "IMBALANCE_MARK", "whether affinity set the imbalance flag of a group" {
        read ForkMark = "FORK_MARK", "affinity set or cleared the imbalance flag of a group";
    }
    /// In which cache a process ran most at the kernel's last evaluation.
    CacheHome = "CACHE_HOME", "in which cache the threads of a process ran most at the kernel's last evaluation" {
        read MoveToHome = "MOVE_TO_HOME", "a process ran most in the destination's cache";
    }
    /// Which groups tasks were in, and with which shares.
    Groups = "GROUPS", "which groups tasks were in: cgroups, or autogroups of sessions" {}
    /// The outcome of the wake-up; its end is not in the trace.
    Fate = "FATE", "the end of the wake-up, which is not in the trace" {}
    /// Whether the running task was asked to reschedule; it went to sleep before that showed.
    Request = "REQUEST", "whether the running task was asked to reschedule, which no event showed" {}
    /// A task that was not seen before.
    Unmet = "UNMET", "what happened before the recording first showed the task or CPU" {}
    /// Which tasks run or wait on a CPU since a switch that is not in the trace.
    UnseenSwitch = "UNSEEN_SWITCH", "which tasks ran and waited on the CPU after a switch that is not in the trace" {}
    /// Where tasks were moved: the recording has no `sched_migrate_task`.
    UnseenMove = "UNSEEN_MOVE", "where a task was moved, as the recording has no sched_migrate_task" {}
}

impl Serialize for Unknown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}
