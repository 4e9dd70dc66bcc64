//! Why a decision fell as it did: one closed set.
//!
//! Reasons appear in traces, tables, tests and audits; every one of them occurs in
//! some expectation of a test.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal;)*) => {
        /// Why a decision fell as it did.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Reason { $($(#[doc = $doc])* $variant,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// Its name in traces and tables.
            pub fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name,)* }
            }

            /// One sentence for people.
            pub fn sentence(self) -> &'static str {
                match self { $(Reason::$variant => concat!($($doc),*).trim_ascii_start(),)* }
            }
        }
    };
}

reasons! {
    /// The code of a kernel tree decided so, and our rules were not asked or decide otherwise.
    TreeDecides = "TREE_DECIDES";
    /// The task wakes itself.
    WakeSelf = "WAKE_SELF";
    /// The task had not yet left its run queue.
    StillQueued = "STILL_QUEUED";
    /// The task slept but was still queued by delayed dequeue, so it stays.
    StillDelayed = "STILL_DELAYED";
    /// The task was still switching out, so its own CPU finishes the wake-up.
    OnCpuHandover = "ON_CPU_HANDOVER";
    /// The task may run on one CPU only.
    OnlyAllowed = "ONLY_ALLOWED";
    /// The chosen CPU was not allowed, so the fall-back took the first allowed one.
    Fallback = "FALLBACK";
    /// A real-time or deadline task is woken where it ran last; pushing and pulling spread those.
    KeepCpu = "KEEP_CPU";
    /// A real-time task that would wait for another goes to a CPU that has only lower priorities.
    LowestRt = "LOWEST_RT";
    /// A deadline task that would wait for an earlier one goes to a CPU that has only later ones or none.
    LaterDl = "LATER_DL";
    /// The waker asked for its own CPU.
    CurrentCpu = "CURRENT_CPU";

    /// The affine step was not tried: the waker wakes many different tasks.
    WakeWide = "WAKE_WIDE";
    /// The affine step was not tried: no domain with wake-affine spans both CPUs, or they are the same.
    NoAffine = "NO_AFFINE";
    /// Affine: the waker's CPU is idle and shares the cache.
    WaThisIdle = "WA_THIS_IDLE";
    /// Affine: both CPUs are idle and share a cache, so the previous one is kept.
    WaPrevIdle = "WA_PREV_IDLE";
    /// Affine: the waker is alone on its CPU and about to sleep.
    WaSync = "WA_SYNC";
    /// Affine: the previous CPU is idle.
    WaPrevAvailable = "WA_PREV_AVAILABLE";
    /// Affine: the waker's CPU has less load.
    WaWeight = "WA_WEIGHT";
    /// Affine: the previous CPU has less load.
    WaWeightPrev = "WA_WEIGHT_PREV";
    /// Affine: the CPUs share a cache (v4.13).
    WaShareCache = "WA_SHARE_CACHE";
    /// Affine: the load of the nodes allows it (v4.13).
    WaNodeLoad = "WA_NODE_LOAD";

    /// The target CPU is idle.
    TargetIdle = "TARGET_IDLE";
    /// The previous CPU is idle and shares the cache with the target.
    PrevIdle = "PREV_IDLE";
    /// A bound kernel thread wakes the task on its CPU and is about to sleep.
    KthreadStack = "KTHREAD_STACK";
    /// The recently used CPU is idle.
    RecentUsedCpu = "RECENT_USED_CPU";
    /// An idle CPU of sufficient capacity was found on an asymmetric machine.
    AsymCapacity = "ASYM_CAPACITY";
    /// No CPU of sufficient capacity is idle on an asymmetric machine.
    AsymNone = "ASYM_NONE";
    /// The target has no last-level cache domain to search.
    NoLlc = "NO_LLC";
    /// A core whose threads are all idle was found.
    IdleCore = "IDLE_CORE";
    /// An idle CPU was the first in scan order.
    IdleCpu = "IDLE_CPU";
    /// A CPU that runs only SCHED_IDLE tasks was the first in scan order.
    SchedIdleCpu = "SCHED_IDLE_CPU";
    /// A thread of the previous CPU's (or target's) core is idle.
    IdleSmt = "IDLE_SMT";
    /// An idle CPU of the target's cluster was found.
    IdleClusterCpu = "IDLE_CLUSTER_CPU";
    /// The search for an idle core found no idle core, but an idle CPU.
    IdleCoreFallback = "IDLE_CORE_FALLBACK";
    /// No CPU of the cluster is idle; the idle previous CPU was remembered for this case.
    PrevOtherCluster = "PREV_OTHER_CLUSTER";
    /// No CPU of the cluster is idle; the idle recently used CPU was remembered for this case.
    RecentOtherCluster = "RECENT_OTHER_CLUSTER";
    /// No idle CPU was found in the LLC.
    NoIdleCpu = "NO_IDLE_CPU";
    /// The search was cut short by its limit.
    ScanLimit = "SCAN_LIMIT";
    /// The cache is so busy that no search was made.
    NoScan = "NO_SCAN";
    /// All idle CPUs lose much capacity to interrupts; the best of them was taken.
    BestReduced = "BEST_REDUCED";

    /// Fork or exec: an idle CPU in the shallowest idle state.
    IdlestShallow = "IDLEST_SHALLOW";
    /// Fork or exec: the CPU that went idle most recently.
    IdlestRecent = "IDLEST_RECENT";
    /// Fork or exec: a CPU running only SCHED_IDLE tasks.
    IdlestSchedIdle = "IDLEST_SCHED_IDLE";
    /// Fork or exec: no CPU is idle; the one with least load.
    IdlestLoad = "IDLEST_LOAD";
    /// Fork or exec: the group has one CPU.
    IdlestOnly = "IDLEST_ONLY";
    /// Fork or exec: no group is better at any level; the task stays.
    StayLocal = "STAY_LOCAL";
    /// Fork or exec: no domain balances them.
    NoForkDomain = "NO_FORK_DOMAIN";

    /// Preemption: no fair task runs there.
    PreemptIdle = "PREEMPT_IDLE";
    /// Preemption: the woken task is of a higher class.
    PreemptClass = "PREEMPT_CLASS";
    /// Preemption: the woken task cannot go elsewhere, and the current one of the same priority or deadline can.
    PreemptEqual = "PREEMPT_EQUAL";
    /// Preemption: the current task is SCHED_IDLE and the woken one is not.
    PreemptSchedIdle = "PREEMPT_SCHED_IDLE";
    /// Preemption: the woken task is far enough behind in vruntime.
    PreemptVruntime = "PREEMPT_VRUNTIME";
    /// Preemption: the woken task has the earliest eligible deadline.
    PreemptDeadline = "PREEMPT_DEADLINE";
    /// Preemption: the woken task asks for a shorter slice.
    PreemptShort = "PREEMPT_SHORT";
    /// Preemption: a synchronous waker has run long enough.
    PreemptSync = "PREEMPT_SYNC";
    /// No preemption: a synchronous waker has not run long enough.
    KeepSync = "KEEP_SYNC";
    /// No preemption: the woken task is of a lower class.
    KeepClass = "KEEP_CLASS";
    /// No preemption: a reschedule is already pending.
    KeepPending = "KEEP_PENDING";
    /// No preemption: the woken task is BATCH or IDLE, or preemption is off.
    KeepPolicy = "KEEP_POLICY";
    /// No preemption: an idle group does not preempt.
    KeepIdleGroup = "KEEP_IDLE_GROUP";
    /// No preemption: the vruntime lead is within the wake-up granularity.
    KeepGranularity = "KEEP_GRANULARITY";
    /// No preemption: the current task is protected until its slice ends.
    KeepProtected = "KEEP_PROTECTED";
    /// No preemption: another task has the earlier eligible deadline.
    KeepDeadline = "KEEP_DEADLINE";
    /// No preemption: forked or delayed tasks do not preempt (v7.2).
    KeepForkOrDelayed = "KEEP_FORK_OR_DELAYED";
    /// No preemption: the woken task's group is throttled.
    KeepThrottled = "KEEP_THROTTLED";
    /// The slice is used up.
    SliceEnd = "SLICE_END";
    /// The running task changed its group, as a task does that exits or joins a control group, and asks for a reschedule of itself.
    GroupChange = "GROUP_CHANGE";
    /// Another entity is a whole slice behind in vruntime.
    BehindSlice = "BEHIND_SLICE";

    /// Pick: the leftmost entity of the timeline.
    PickLeftmost = "PICK_LEFTMOST";
    /// Pick: the current task continues.
    PickCurrent = "PICK_CURRENT";
    /// Pick: the current task is protected until its slice ends.
    PickProtected = "PICK_PROTECTED";
    /// Pick: the next buddy.
    PickNextBuddy = "PICK_NEXT_BUDDY";
    /// Pick: the last buddy.
    PickLastBuddy = "PICK_LAST_BUDDY";
    /// Pick: the leftmost entity yielded, and the second was close enough.
    PickSecond = "PICK_SECOND";
    /// Pick: the earliest deadline among the eligible entities.
    PickDeadline = "PICK_DEADLINE";
    /// Pick: the only entity.
    PickOnly = "PICK_ONLY";
    /// Pick: no task is runnable.
    PickIdle = "PICK_IDLE";
    /// Pick: a task of a higher class.
    PickClass = "PICK_CLASS";

    /// Balance: another CPU of the group does it.
    LbNotUs = "LB_NOT_US";
    /// Balance: no group is busier.
    LbNoBusiest = "LB_NO_BUSIEST";
    /// Balance: the local group is of a busier type.
    LbLocalBusier = "LB_LOCAL_BUSIER";
    /// Balance: the averages are close enough.
    LbBalanced = "LB_BALANCED";
    /// Balance: this CPU is not idle and the busiest group is not overloaded.
    LbNotIdle = "LB_NOT_IDLE";
    /// Balance: the idle CPUs are spread evenly.
    LbIdleEven = "LB_IDLE_EVEN";
    /// Balance: the busiest group has one task.
    LbOneTask = "LB_ONE_TASK";
    /// Balance: a NUMA imbalance of this size is allowed.
    LbNumaAllowed = "LB_NUMA_ALLOWED";
    /// Balance: no queue of the busiest group has a task to give.
    LbNoQueue = "LB_NO_QUEUE";
    /// Balance: no candidate may run here.
    LbAllPinned = "LB_ALL_PINNED";
    /// Balance: every candidate is cache hot, running or too large.
    LbNothingMovable = "LB_NOTHING_MOVABLE";
    /// Balance: the running task would have to be pushed, but may not run here.
    LbRunningPinned = "LB_RUNNING_PINNED";
    /// Balance moved load.
    LbLoad = "LB_LOAD";
    /// Balance moved utilisation.
    LbUtil = "LB_UTIL";
    /// Balance evened out the number of tasks.
    LbTask = "LB_TASK";
    /// Balance moved a task that does not fit.
    LbMisfit = "LB_MISFIT";
    /// Balance asked the stopper to move a running task.
    LbActive = "LB_ACTIVE";
    /// Balance moved a task towards its preferred last-level cache.
    LbLlc = "LB_LLC";

    /// Newly idle: a wake-up is pending.
    NiPending = "NI_PENDING";
    /// Newly idle: the CPU has no domain.
    NiNoDomain = "NI_NO_DOMAIN";
    /// Newly idle: no CPU had more than one task at the last look.
    NiNoOverload = "NI_NO_OVERLOAD";
    /// Newly idle: idle times are too short for a search.
    NiShortIdle = "NI_SHORT_IDLE";
    /// Newly idle: the next level takes longer than the CPU will be idle.
    NiCost = "NI_COST";
    /// Newly idle: the last level was skipped at random.
    NiRandom = "NI_RANDOM";
    /// Newly idle: no level had a task to pull.
    NiNothing = "NI_NOTHING";
    /// Newly idle: a task is runnable now.
    NiPulled = "NI_PULLED";

    /// Move: active balancing took the task from the CPU on which it ran.
    MoveActive = "MOVE_ACTIVE";
    /// Move: the task may no longer use its CPU, or the CPU goes offline.
    MoveAffinity = "MOVE_AFFINITY";

    /// Push: a waiting real-time or deadline task goes to a CPU that runs a task of lower priority.
    PushLower = "PUSH_LOWER";
    /// Push: no waiting real-time or deadline task may move, or no CPU runs a task of lower priority.
    PushNothing = "PUSH_NOTHING";
    /// Push: the first waiting task runs here at the next switch.
    PushRunsHere = "PUSH_RUNS_HERE";
    /// Pull: a real-time or deadline task that waits elsewhere has a higher priority than the tasks here.
    PullHigher = "PULL_HIGHER";
    /// Pull: no task that waits elsewhere has a higher priority than the tasks here.
    PullNothing = "PULL_NOTHING";
}

impl Reason {
    /// Whether it says what newly idle balancing came to.
    pub fn is_newidle(self) -> bool {
        (Reason::NiPending..=Reason::NiPulled).contains(&self)
    }
}
