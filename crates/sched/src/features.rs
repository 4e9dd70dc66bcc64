//! Every switch that is on or off, in one table.
//!
//! A switch is a `sched_feature` of the kernel, one of the five published changes,
//! or a rule (or bug) that some versions have and others do not. Kernel strings
//! switch one on with its name and off with `NO_` before it.

/// A row of the table.
pub struct FeatureRow {
    /// The switch.
    pub feature: Feature,
    /// Name in kernel strings.
    pub name: &'static str,
    /// One sentence.
    pub sentence: &'static str,
    /// Kernel function, version or document it comes from.
    pub source: &'static str,
    /// Default in each preset, in the order of [`crate::PRESETS`]. Presets beyond the last have what it has.
    pub defaults: &'static [bool],
}

macro_rules! features {
    ($($variant:ident $name:literal $sentence:literal $source:literal [$($d:literal)*];)*) => {
        /// A switch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum Feature { $(#[doc = $sentence] $variant,)* }

        impl Feature {
            /// The table, in order of the variants.
            pub const TABLE: &'static [FeatureRow] = &[$(FeatureRow {
                feature: Feature::$variant,
                name: $name,
                sentence: $sentence,
                source: $source,
                defaults: &[$($d == 1),*],
            },)*];
        }
    };
}

features! {
    // Wake-up placement.                                                        4.13 5.5 5.18 6.1 6.3 6.10 6.12 7.2, then 7.3 if it is another
    SisKthreadStack "SIS_KTHREAD_STACK" "A bound kthread that wakes a task on its own CPU lets it queue there." "select_idle_sibling(), v5.6; mail of 28 Jan 2020" [0 0 1 1 1 1 1 1];
    KthreadStackInTask "KTHREAD_STACK_IN_TASK" "Kthread stacking needs the wake-up to come from task context, not from an interrupt that hit the kthread." "select_idle_sibling(), v5.17" [0 0 1 1 1 1 1 1];
    SisCapacity "SIS_CAPACITY" "The idle search passes over CPUs that lose more than 20 % of their capacity to interrupts and RT." "mail of 25 Sep 2017, patch for select_idle_sibling()" [0 0 0 0 0 0 0 0];
    FicCapacity "FIC_CAPACITY" "The slow path passes over CPUs that lose more than 20 % of their capacity to interrupts and RT." "mail of 25 Sep 2017, patch for find_idlest_cpu()" [0 0 0 0 0 0 0 0];
    SyncWakerExiting "SYNC_WAKER_EXITING" "A wake-up by an exiting task does not count as synchronous." "select_task_rq_fair(), v5.5" [0 1 1 1 1 1 1 1];
    WaIdle "WA_IDLE" "The affine step tries idle CPUs first." "wake_affine_idle(), features.h, v4.14" [0 1 1 1 1 1 1 1];
    WaWeight "WA_WEIGHT" "The affine step compares loads." "wake_affine_weight(), features.h, v4.14" [0 1 1 1 1 1 1 1];
    WaBias "WA_BIAS" "The affine comparison favours the waker's CPU by half the imbalance percentage." "wake_affine_weight(), features.h, v4.15" [0 1 1 1 1 1 1 1];
    WaPrevIdle "WA_PREV_IDLE" "The affine step takes an idle previous CPU." "wake_affine_idle(), v5.12" [0 0 1 1 1 1 1 1];
    SyncMinusDelayed "SYNC_MINUS_DELAYED" "Delayed tasks do not count when a synchronous waker is to be alone." "wake_affine_idle(), v6.12" [0 0 0 0 0 0 1 1];
    CurrentCpuFlag "WF_CURRENT_CPU" "A waker may request its own CPU." "select_task_rq_fair(), v6.6" [0 0 0 0 0 1 1 1];
    RecentCpuMaskBug "RECENT_CPU_MASK_BUG" "The affinity test of the recently used CPU tests the previous CPU instead." "select_idle_sibling(), v5.18, v6.3" [0 0 1 0 1 0 0 0];
    SmtSkipPrev "SMT_SKIP_PREV" "The sibling scan leaves out the previous CPU itself." "select_idle_smt(), v6.1" [0 0 0 1 1 1 1 1];
    SmtLlcSpan "SMT_LLC_SPAN" "The sibling scan stays inside the span of the LLC domain." "select_idle_smt(), v5.18; not v6.3" [0 0 1 1 0 1 1 1];
    IdleCoreMaskAllowed "IDLE_CORE_MASK_ALLOWED" "The fall-back of the core search tests the allowed mask, not the remaining scan mask." "select_idle_core(), v5.18" [0 0 1 0 0 0 0 0];
    EmptyScanKeepsCores "EMPTY_SCAN_KEEPS_CORES" "A search in a cache in which the task may use no CPU does not clear its flag of idle cores." "select_idle_cpu(), v7.2" [0 0 0 0 0 0 0 1];
    SisAvgCpu "SIS_AVG_CPU" "The idle search is skipped when idle times are shorter than a search." "select_idle_cpu(), features.h, v4.13" [0 0 0 0 0 0 0 0];
    SisProp "SIS_PROP" "The idle search is bounded in proportion to the average idle time." "select_idle_cpu(), features.h, v4.13" [1 1 1 0 0 0 0 0];
    SisUtil "SIS_UTIL" "The idle search is bounded by the utilisation of the cache's span." "select_idle_cpu(), features.h, v6.0" [0 0 0 1 1 1 1 1];
    SisCluster "SIS_CLUSTER" "The idle search scans the target's cluster first." "select_idle_cpu(), v6.7" [0 0 0 0 0 1 1 1];
    AsymScanFromNext "ASYM_SCAN_FROM_NEXT" "The idle scan of asymmetric machines starts after the target, not at it." "select_idle_capacity(), v6.3" [0 0 0 0 1 0 0 0];
    ScanFromNext "SCAN_FROM_NEXT" "The idle scan starts after the target, not at it." "select_idle_cpu(), v5.18" [0 0 1 1 1 1 1 1];
    ScanKeepSchedIdle "SCAN_KEEP_SCHED_IDLE" "The scan remembers a CPU of SCHED_IDLE tasks but returns it only when the limit ends the scan; an idle thread of the core is preferred to it." "select_idle_cpu(), select_idle_smt(), v5.5" [0 1 0 0 0 0 0 0];
    TtwuQueue "TTWU_QUEUE" "Remote wake-ups go through the target's wake list." "ttwu_queue(), features.h" [1 1 1 1 1 1 1 1];
    StopperAtOnce "STOPPER_AT_ONCE" "A stopper is queued by its waker, never through the wake list." "ttwu_queue_cond(), v6.7" [0 0 0 0 0 1 1 1];
    TtwuOnCpu "TTWU_ON_CPU" "A task that is just switching out is handed to its own CPU's wake list without placement." "try_to_wake_up(), v5.8" [0 0 1 1 1 1 1 1];
    WakeAvgIdle "WAKE_AVG_IDLE" "Searches use an idle budget that decays with each jiffy and each search." "select_idle_cpu(), v5.14..v6.3" [0 0 1 1 1 0 0 0];
    AvgIdleAtSwitch "AVG_IDLE_AT_SWITCH" "The average idle time is updated when the idle task is switched out, not at the wake-up." "put_prev_task_idle(), v7.2" [0 0 0 0 0 0 0 1];
    WakeCpuFixup "WAKE_CPU_FIXUP" "A wake-up that does not move a task makes its CPU the one from which the next wake-up starts." "try_to_wake_up(), v7.2" [0 0 0 0 0 0 0 1];

    // Fork and exec.
    ForkTieUtil "FORK_TIE_UTIL" "Among groups with equally many idle CPUs the one with lower utilisation is idlest." "update_pick_idlest(), v5.17" [0 0 1 1 1 1 1 1];
    ForkStatsAllowed "FORK_STATS_ALLOWED" "Fork statistics of a group count only CPUs the task may use." "update_sg_wakeup_stats(), v6.19 and stable 5.10, 6.1, 6.12" [0 0 0 1 0 0 1 1];
    GroupRunnable "GROUP_RUNNABLE" "Runnable time counts when a group is classified." "group_classify(), v5.7" [0 0 1 1 1 1 1 1];
    GroupWeightZero "GROUP_WEIGHT_ZERO" "The weight of a group is 0 in fork statistics." "update_sg_wakeup_stats(), v5.5 (bug)" [0 1 0 0 0 0 0 0];
    ForkAvgLoadInverted "FORK_AVG_LOAD_INVERTED" "Fork statistics compute the average load only for groups with spare capacity." "update_sg_wakeup_stats(), v5.5 (bug)" [0 1 0 0 0 0 0 0];
    NumaImbAffinity "NUMA_IMB_AFFINITY" "The NUMA imbalance allowed at fork is limited to the CPUs of the local group the task may use." "find_idlest_group(), v6.0; mail of 7 Apr 2022" [0 0 0 1 1 1 1 1];
    SyncBeforeSlow "SYNC_BEFORE_SLOW" "A task that calls exec() is aged as if it slept since its queue was last updated, before a CPU is selected." "find_idlest_cpu(), v4.15" [0 1 1 1 1 1 1 1];
    InitialUtilUnscaled "INITIAL_UTIL_UNSCALED" "The initial utilisation of a child uses the unscaled weight." "post_init_entity_util_avg(), v6.10" [0 0 0 0 0 1 1 1];

    // Topology.
    NodeLevel "NODE_LEVEL" "There is a domain level of one node." "sched_init_numa(), v4.19" [0 1 1 1 1 1 1 1];
    ClsLevel "CLS_LEVEL" "There is a domain level of clusters." "default_topology, v5.16" [0 0 1 1 1 1 1 1];
    ClusterFlag "CLUSTER_FLAG" "The cluster level carries SD_CLUSTER." "cpu_cluster_flags(), v6.7" [0 0 0 0 0 1 1 1];
    SmtLevelAlways "SMT_LEVEL_ALWAYS" "There is a level of threads even where cores have one." "build_sched_topology(), up to v6.16" [1 1 1 1 1 1 1 0];
    NumaDistancesAll "NUMA_DISTANCES_ALL" "NUMA levels come from the whole distance table, not from the distances of node 0." "sched_init_numa(), v5.12" [0 0 1 1 1 1 1 1];
    NumaDescend "NUMA_DESCEND" "A NUMA group that would extend beyond its domain is built from a lower level." "find_descended_sibling(), v5.13" [0 0 1 1 1 1 1 1];
    GroupFlagsFollow "GROUP_FLAGS_FOLLOW" "When a domain is removed, the local group above takes the flags of the remaining domain." "cpu_attach_domain(), v6.6" [0 0 0 0 0 1 1 1];

    // Queueing.
    GentleFairSleepers "GENTLE_FAIR_SLEEPERS" "A sleeper's credit is half the latency." "place_entity(), features.h, CFS" [1 1 1 1 1 0 0 0];
    StartDebit "START_DEBIT" "A new task starts one slice behind." "place_entity(), features.h, CFS" [1 1 1 1 1 0 0 0];
    NextBuddy "NEXT_BUDDY" "The task woken last is preferred at the next pick." "features.h" [0 0 0 0 0 0 0 0];
    LastBuddy "LAST_BUDDY" "The task preempted last is preferred at the next pick." "features.h, CFS" [1 1 1 1 1 0 0 0];
    CacheHotBuddy "CACHE_HOT_BUDDY" "Buddies count as cache hot for the balancer." "task_hot(), features.h" [1 1 1 1 1 1 1 1];
    WakeupPreemption "WAKEUP_PREEMPTION" "A woken task may preempt the current one." "check_preempt_wakeup(), features.h" [1 1 1 1 1 1 1 1];
    AltPeriod "ALT_PERIOD" "The scheduling period counts the tasks of the whole CPU." "sched_slice(), features.h, v5.13" [0 0 1 1 1 0 0 0];
    BaseSlice "BASE_SLICE" "A slice is at least the minimum granularity." "sched_slice(), features.h, v5.13" [0 0 1 1 1 0 0 0];
    SliceCapLatency "SLICE_CAP_LATENCY" "The tick's slice is at most the latency." "check_preempt_tick(), v6.3" [0 0 0 0 1 0 0 0];
    IdleMinGranularity "IDLE_MIN_GRANULARITY" "Idle entities have their own minimum granularity." "sched_slice(), v5.16" [0 0 1 1 1 0 0 0];
    IdleGroups "IDLE_GROUPS" "Groups can be marked idle." "sched_group_set_idle(), v5.15" [0 0 1 1 1 1 1 1];
    LongSleeper "LONG_SLEEPER" "A task that slept so long that the comparison could overflow is placed unconditionally." "place_entity(), v6.3 and stable 6.1" [0 0 0 1 1 0 0 0];
    PlaceLag "PLACE_LAG" "A task keeps its lag over sleep and migration." "place_entity(), features.h, v6.6" [0 0 0 0 0 1 1 1];
    PlaceDeadlineInitial "PLACE_DEADLINE_INITIAL" "A new task gets half a slice first." "place_entity(), features.h, v6.6" [0 0 0 0 0 1 1 1];
    PlaceRelDeadline "PLACE_REL_DEADLINE" "A migrating task keeps its distance to the deadline." "place_entity(), features.h, v6.12" [0 0 0 0 0 0 1 1];
    RunToParity "RUN_TO_PARITY" "The current task is protected until its slice is used up." "pick_eevdf(), features.h, v6.6" [0 0 0 0 0 1 1 1];
    PreemptShort "PREEMPT_SHORT" "A task with a shorter slice may end the protection." "features.h, v6.12" [0 0 0 0 0 0 1 1];
    ProtectIneligible "PROTECT_INELIGIBLE" "With PREEMPT_SHORT, the running entity is protected from a shorter slice only while it is eligible." "set_protect_slice(), v7.3" [0 0 0 0 0 0 0 0 1];
    ProtectFromAverage "PROTECT_FROM_AVERAGE" "A protection that a wake-up shortens ends one slice after the average virtual time, if that is behind the running entity." "update_protect_slice(), v7.3" [0 0 0 0 0 0 0 0 1];
    PlaceLagApart "PLACE_LAG_APART" "The lag of an entity that joins is added to its own inflation, so that a small weight among large ones does not overflow the product." "place_entity(), v7.3" [0 0 0 0 0 0 0 0 1];
    PickBuddy "PICK_BUDDY" "The next buddy is picked when eligible." "pick_next_entity(), features.h, v6.12" [0 0 0 0 0 0 1 1];
    DelayDequeue "DELAY_DEQUEUE" "A task that sleeps with negative lag stays queued until it is paid." "dequeue_entity(), features.h, v6.12" [0 0 0 0 0 0 1 1];
    DelayZero "DELAY_ZERO" "A delayed task does not gain lag while it waits to leave." "finish_delayed_dequeue_entity(), features.h, v6.12" [0 0 0 0 0 0 1 1];
    CustomSlice "CUSTOM_SLICE" "A task may request a slice of its own." "__setparam_fair(), v6.12" [0 0 0 0 0 0 1 1];
    GroupMinSlice "GROUP_MIN_SLICE" "A group's entity has the shortest slice queued below it." "enqueue_task_fair(), v6.12" [0 0 0 0 0 0 1 1];
    SliceNotRotated "SLICE_NOT_ROTATED" "Where the top of a subtree of a queue changes, the new one is not told the shortest slice below, so a group's entity can have a longer one." "RB_DECLARE_CALLBACKS() of min_vruntime_cb, v6.12; not v7.2" [0 0 0 0 0 0 1 0];
    FlatGroups "FLAT_GROUPS" "All tasks of a CPU are in one timeline, those of groups with their share as weight; group entities only carry load." "enqueue_task_fair(), __calc_prop_weight(), v7.3" [0 0 0 0 0 0 0 0 1];
    ConcurShares "CONCUR_SHARES" "A group has its shares for each of its tasks that can run at once, up to one for each CPU." "calc_concur_shares(), v7.3" [0 0 0 0 0 0 0 0 1];
    ParanoidAvg "PARANOID_AVG" "The sums of the average virtual time are guarded against overflow." "sum_w_vruntime_add(), features.h, v7.2" [0 0 0 0 0 0 0 0];
    ArrivalEndsRun "ARRIVAL_ENDS_RUN" "What the current task has run is lost if a fair task arrives while no task is queued." "dl_server_update_idle_time(), v6.12" [0 0 0 0 0 0 1 0];
    ServerIdle "SERVER_IDLE" "The fair server is charged with idle time as with fair time, and if its timer expires in that time it stops without being picked." "dl_server_update_idle(), dl_defer_idle, v7.2" [0 0 0 0 0 0 0 1];
    ServerCounts "SERVER_COUNTS" "A fair server that is queued counts as a task of its CPU." "inc_dl_tasks(), v6.12; not v7.2" [0 0 0 0 0 0 1 0];
    ServerStartCharges "SERVER_START_CHARGES" "A fair server that starts charges the running task first." "dl_server_start(), v7.2" [0 0 0 0 0 0 0 1];
    IdleShortcut "IDLE_SHORTCUT" "The idle loop does not look for work when its queue is empty, and an idle CPU that stays idle is not set idle again." "__schedule(), v6.12" [0 0 0 0 0 0 1 1];
    ClockSkipKept "CLOCK_SKIP_KEPT" "A clock skip may be requested while the scheduler picks; it applies to its next call." "__schedule(), v6.7" [0 0 0 0 0 1 1 1];
    MruOnRepick "MRU_ON_REPICK" "A task that is chosen again moves to the head of the balancer's list." "pick_next_task_fair(), v4.14..v6.10" [0 1 1 1 1 1 0 0];
    ExecStartAtEnqueue "EXEC_START_AT_ENQUEUE" "A migrated task's start time is cleared when it is enqueued, not when it leaves." "enqueue_entity(), v6.3 and stable 6.1" [0 0 0 1 1 1 1 1];
    Hrtick "HRTICK" "Slices end by a timer, not at the tick." "features.h; v7.2 on x86 by default" [0 0 0 0 0 0 0 1];
    HrtickDl "HRTICK_DL" "The budgets of deadline tasks end by the slice timer, not at the tick." "set_next_task_dl(), features.h; v7.2 on x86 by default" [0 0 0 0 0 0 0 1];
    DoubleTick "DOUBLE_TICK" "The tick checks preemption even with hrtick on." "features.h, up to v6.12" [0 0 0 0 0 0 0 0];

    // Balancing.
    LbBias "LB_BIAS" "Balancing is conservative by comparing with past loads." "source_load(), features.h, v4.13" [1 0 0 0 0 0 0 0];
    LbMin "LB_MIN" "Balancing leaves very small loads alone." "features.h" [0 0 0 0 0 0 0 0];
    LbNumaBeforeHalving "LB_NUMA_BEFORE_HALVING" "The NUMA rule of the balancer sees the difference before it is halved." "calculate_imbalance(), v6.0" [0 0 0 1 1 1 1 1];
    LlcEvensTasks "LLC_EVENS_TASKS" "Inside an LLC the imbalance of an overloaded group is counted in tasks, not in utilisation." "calculate_imbalance(), v5.13" [0 0 1 1 1 1 1 1];
    LbLocalAboveAverage "LB_LOCAL_ABOVE_AVERAGE" "A local group above the domain's average load pulls nothing, even if it is not overloaded yet." "calculate_imbalance(), v6.3 and stable 6.1" [0 0 0 1 1 1 1 1];
    PreferSiblingOfBusiest "PREFER_SIBLING_OF_BUSIEST" "The busiest group, not the domain's child, says whether siblings are preferred." "update_sd_lb_stats(), v6.4" [0 0 0 0 0 1 1 1];
    SmtBalance "SMT_BALANCE" "A core with several busy threads gives a task to an idle core." "smt_balance(), v6.6" [0 0 0 0 0 1 1 1];
    ReducedCapacityMisfit "REDUCED_CAPACITY_MISFIT" "The only task of a CPU that lost much capacity counts as misfit." "sched_reduced_capacity(), v6.0" [0 0 0 1 1 1 1 1];
    MisfitNoBackoff "MISFIT_NO_BACKOFF" "Passes for a misfit task count neither as failures nor lengthen the interval." "load_balance(), v6.10" [0 0 0 0 0 1 1 1];
    LbCountRunnable "LB_COUNT_RUNNABLE" "Balancing does not count tasks whose dequeue is delayed." "update_sg_lb_stats(), v6.13" [0 0 0 0 0 0 0 1];
    LbUtilBoost "LB_UTIL_BOOST" "The CPU with most utilisation is found with waiting time counted." "find_busiest_queue(), v6.5" [0 0 0 0 0 1 1 1];
    LbUtilShift "LB_UTIL_SHIFT" "A task's utilisation is halved for each failed pass when it is compared with the imbalance." "detach_tasks(), v6.8 and stable 5.10, 6.1" [0 0 0 1 0 1 1 1];
    LbSkipPerCpuKthread "LB_SKIP_PER_CPU_KTHREAD" "Per-CPU kthreads are not candidates and do not count as pinned." "can_migrate_task(), v5.12" [0 0 1 1 1 1 1 1];
    LbEligibleFirst "LB_ELIGIBLE_FIRST" "The first pass skips ineligible tasks; all passes but those by load skip delayed tasks." "can_migrate_task(), v6.14" [0 0 0 0 0 0 0 1];
    DetachAtLeastOne "DETACH_AT_LEAST_ONE" "A pass keeps looking for a movable task while all it has found are pinned." "detach_tasks(), v6.2 to v6.10" [0 0 0 0 1 1 0 0];
    NewidleKeepsInterval "NEWIDLE_KEEPS_INTERVAL" "Newly idle passes do not lengthen the interval." "load_balance(), v5.1" [0 1 1 1 1 1 1 1];
    NewidleBailOut "NEWIDLE_BAIL_OUT" "A newly idle CPU that got work in the meantime makes no pass." "should_we_balance(), v6.0" [0 0 0 1 1 1 1 1];
    NewidleReadsClock "NEWIDLE_READS_CLOCK" "A newly idle CPU reads its clock again before it looks for work, even if the scheduler was asked not to." "update_blocked_averages() in newidle_balance(), v6.12; not v7.2" [1 1 1 1 1 1 1 0];
    NewidlePendingWake "NEWIDLE_PENDING_WAKE" "A newly idle CPU with a pending wake-up does not look for work." "newidle_balance(), v5.10" [0 0 1 1 1 1 1 1];
    BusyIntervalLessOne "BUSY_INTERVAL_LESS_ONE" "Balance intervals of busy CPUs are a tick shorter, so that levels do not come due together." "get_sd_balance_interval(), v5.10" [0 0 1 1 1 1 1 1];
    SchedIdleBalancesOften "SCHED_IDLE_BALANCES_OFTEN" "A CPU that runs only SCHED_IDLE tasks balances as often as an idle one." "rebalance_domains(), v5.6" [0 0 1 1 1 1 1 1];
    NohzBlockedLoad "NOHZ_BLOCKED_LOAD" "Load of idle CPUs is kept up to date by one of them, every 32 ms." "nohz_balancer_kick(), v4.17" [0 1 1 1 1 1 1 1];
    NohzIncludesSelf "NOHZ_INCLUDES_SELF" "The CPU that balances for idle CPUs serves itself last and needs no pass of its own." "_nohz_idle_balance(), v4.17" [0 1 1 1 1 1 1 1];
    NohzFindsNext "NOHZ_FINDS_NEXT" "If the first CPU without tick is busy again, the next idle one is kicked." "find_new_ilb(), v5.3" [0 1 1 1 1 1 1 1];
    TickStopPredicted "TICK_STOP_PREDICTED" "A CPU that expects to be idle for less than a tick keeps its tick." "tick_nohz_idle_stop_tick(), v4.17" [0 1 1 1 1 1 1 1];
    TickKeptUngoverned "TICK_KEPT_UNGOVERNED" "Without an idle-state governor, a CPU keeps its tick until one has fired while it is idle." "idle_call_stop_or_retain_tick(), v7.2 and stable 6.1, 6.12" [0 0 0 1 0 0 1 1];
    NohzWrap "NOHZ_WRAP" "Idle CPUs are served in a circle from the next one, not from the lowest." "_nohz_idle_balance(), v5.12" [0 0 1 1 1 1 1 1];
    NohzNextKick "NOHZ_NEXT_KICK" "A CPU that goes idle has the next time of nohz balancing recomputed." "nohz_balancer_kick(), v5.15" [0 0 1 1 1 1 1 1];
    NohzKickAsked "NOHZ_KICK_ASKED" "A CPU kicked for nohz balancing does not balance if a reschedule was requested in the meantime." "nohz_csd_func(), v5.18; not v6.13 and stable 6.1, 6.12" [1 1 1 0 1 1 0 0];
    NohzKickTaken "NOHZ_KICK_TAKEN" "A kick for nohz balancing is taken over when its interrupt arrives, so that an earlier softirq of that CPU balances only for itself." "nohz_csd_func(), v5.8" [0 0 1 1 1 1 1 1];
    NohzWholeCore "NOHZ_WHOLE_CORE" "The CPU kicked for nohz balancing is on a wholly idle core, if there is one." "find_new_ilb(), v7.3" [0 0 0 0 0 0 0 0 1];
    MisfitIfLarger "MISFIT_IF_LARGER" "A misfit task counts in its group only if the destination is larger than all CPUs of the group." "update_sg_lb_stats(), v7.3" [0 0 0 0 0 0 0 0 1];
    AsymCoreGives "ASYM_CORE_GIVES" "Where CPUs differ in capacity, one whose core is shared or, with clusters, one of the same capacity may give its only task." "sched_balance_find_src_rq(), v7.3" [0 0 0 0 0 0 0 0 1];
    AsymAbove "ASYM_ABOVE" "If one level knows that CPUs differ in capacity, those above it know it too." "build_sched_domains(), v5.10" [0 0 1 1 1 1 1 1];
    AsymPrefersSibling "ASYM_PREFERS_SIBLING" "Tasks are spread over sibling groups of different capacity too." "sd_init(), v7.3" [0 0 0 0 0 0 0 0 1];
    AsymBeforeCache "ASYM_BEFORE_CACHE" "The order of CPUs counts more than the cache that a process prefers." "can_migrate_llc_task(), llc_balance(), need_active_balance(), v7.3" [0 0 0 0 0 0 0 0 1];
    NiRandom "NI_RANDOM" "Newly idle balancing visits a domain at random, by its recent success." "sched_balance_newidle(), v7.0 and stable 6.1, 6.12" [0 0 0 1 0 0 1 1];
    NiRate "NI_RATE" "The success ratio of newly idle balancing is limited in rate." "features.h, v7.2" [0 0 0 0 0 0 0 1];
    SmtAwareBalance "SMT_AWARE_BALANCE" "The balancing CPU of a group should be on an idle core." "should_we_balance(), v6.6" [0 0 0 0 0 1 1 1];
    SerializeInside "SERIALIZE_INSIDE" "The lock of NUMA balancing is taken after it is decided which CPU balances." "sched_balance_rq(), v7.0; obeyed by nothing: passes of CPUs never overlap here" [0 0 0 0 0 0 0 1];
    CalcDeltaDivides "CALC_DELTA_DIVIDES" "Virtual time is computed by a division, not by the inverse of the weight in 32 bits." "__calc_delta() on 64-bit machines, v7.2" [0 0 0 0 0 0 0 1];
    SchedCache "SCHED_CACHE" "The balancer gathers the threads of a process in one last-level cache." "CONFIG_SCHED_CACHE, v7.2" [0 0 0 0 0 0 0 1];
    NonTaskCapacity "NONTASK_CAPACITY" "Interrupt time lowers a CPU's capacity." "update_rq_clock_task(), features.h" [1 1 1 1 1 1 1 1];
    IrqTimeAccounting "IRQ_TIME_ACCOUNTING" "Interrupt time is not charged to the interrupted task." "CONFIG_IRQ_TIME_ACCOUNTING" [1 1 1 1 1 1 1 1];

    // Averages and groups.
    RunnableAvg "RUNNABLE_AVG" "Runnable time is averaged." "___update_load_sum(), v5.7" [0 0 1 1 1 1 1 1];
    FreqInvariance "FREQ_INVARIANCE" "Averages count time at a low clock as less." "arch_scale_freq_capacity(), x86, v5.7" [0 0 1 1 1 1 1 1];
    UtilEst "UTIL_EST" "The utilisation of a task is estimated when it sleeps." "util_est_update(), features.h, v4.17" [0 1 1 1 1 1 1 1];
    UtilEstTwice "UTIL_EST_TWICE" "A sleeper that is still queued leaves the sum of estimates again when it changes its class." "dequeue_task_fair(), v6.12" [0 0 0 0 0 0 1 0];
    UtilEstFastup "UTIL_EST_FASTUP" "The estimate follows a rise at once." "util_est_update(), features.h, v5.5" [0 1 1 1 1 0 0 0];
    AttachAgeLoad "ATTACH_AGE_LOAD" "A migrated entity's load is aged before it is attached." "features.h" [1 1 1 1 1 1 1 1];
    MigratePeltLag "MIGRATE_PELT_LAG" "A task that leaves an idle CPU is aged by the time that CPU's clock lags." "migrate_se_pelt_lag(), v6.0" [0 0 0 1 1 1 1 1];
    DetachAtDequeue "DETACH_AT_DEQUEUE" "The load of a task the balancer moves is removed at its dequeue, not in the migration hook." "dequeue_entity(), v6.0" [0 0 0 1 1 1 1 1];
    AttachAtFork "ATTACH_AT_FORK" "A new task's load is attached before it is first queued." "post_init_entity_util_avg(), up to v5.19" [1 1 1 0 0 0 0 0];
    ScaleDownFloor "SCALE_DOWN_FLOOR" "A scaled-down weight is at least 2." "scale_load_down(), v5.7" [0 0 1 1 1 1 1 1];
    BlockedUpdateTg "BLOCKED_UPDATE_TG" "Ageing blocked load writes the parent group's load average." "__update_blocked_fair(), v5.14" [0 0 1 1 1 1 1 1];
    AttachLists "ATTACH_LISTS" "A queue to which an entity is attached is one of those whose averages are updated, even if nothing is queued there." "propagate_entity_cfs_rq(), v5.13 and stable 5.10; commit 0258bdfaff5b" [0 0 1 1 1 1 1 1];
    LoadPastThrottled "LOAD_PAST_THROTTLED" "Load propagates up from a throttled queue, to the first level above that is throttled too." "propagate_entity_cfs_rq(), up to v5.19" [1 1 1 0 0 0 0 0];
    UnthrottleAsksEmpty "UNTHROTTLE_ASKS_EMPTY" "An unthrottled queue without tasks still makes its idle CPU look for tasks of other queues." "unthrottle_cfs_rq(), v5.16" [0 0 1 1 1 1 1 1];
    IdlePeriodRefills "IDLE_PERIOD_REFILLS" "A period in which a group took no time fills its pool again before its timer stops." "do_sched_cfs_period_timer(), v5.14" [0 0 1 1 1 1 1 1];
    SetNextFromTop "SET_NEXT_FROM_TOP" "A fair task that follows one of another class is set as the next from the root down, so averages of a level are updated before those below." "pick_next_task_fair(), v5.10, v6.1; not v6.12" [1 1 1 1 1 1 0 0];
    ThrottledLists "THROTTLED_LISTS" "Throttled queues are among those whose averages are updated." "enqueue_task_fair(), unthrottle_cfs_rq(), v5.13 to v5.19 and stable 5.10" [0 0 1 0 0 0 0 0];
    ListedByDecay "LISTED_BY_DECAY" "An unthrottled queue with load left is among those whose averages are updated, and a queue stays among them while a child is, not only while something is queued." "cfs_rq_is_decayed(), tg_unthrottle_up(), v5.13; not v5.10" [0 0 1 1 1 1 1 1];
    GroupLoadMax "GROUP_LOAD_MAX" "A group's share counts the larger of queued weight and average load." "calc_group_shares(), v4.15" [0 1 1 1 1 1 1 1];
    ReweightIfChanged "REWEIGHT_IF_CHANGED" "A group entity is re-weighted only when its shares changed." "update_cfs_group(), v6.6" [0 0 0 0 0 1 1 1];
    KeepEmptyWeight "KEEP_EMPTY_WEIGHT" "A group that becomes empty on a CPU keeps its entity's weight." "update_cfs_group(), v6.12" [0 0 0 0 0 0 1 1];
    TgLoadAvgPerNode "TG_LOAD_AVG_PER_NODE" "A group's load average has one counter per node." "mail of 27 Mar 2023" [0 0 0 0 0 0 0 0];
    TgLoadAvgRateLimit "TG_LOAD_AVG_RATE_LIMIT" "A group's load average is written at most once per ms and CPU." "update_tg_load_avg(), v6.7" [0 0 0 0 0 1 1 1];
    RegroupSame "REGROUP_SAME" "A task moved to the group that it is already in, as every exiting task is, is dequeued and queued again." "sched_move_task(), v4.9; not v6.4 to v6.13 but stable 6.6, 6.12" [1 1 1 1 1 0 1 1];
    RegroupAsks "REGROUP_ASKS" "A running task that is moved to a group is rescheduled." "sched_move_task(), v5.6" [0 0 1 1 1 1 1 1];
    RegroupWakes "REGROUP_WAKES" "A task that is put into a group while it waits may preempt the running one." "sched_move_task(), v7.2; not v6.12" [0 0 0 0 0 0 0 1];
    ClassChangeAsks "CLASS_CHANGE_ASKS" "A task that changes to any other class while it runs is asked to reschedule, not only one that becomes fair; one that waits preempts as a woken one does." "sched_change_end(), v7.2; not v6.12" [0 0 0 0 0 0 0 1];
    StealCatchesUp "STEAL_CATCHES_UP" "Stolen time beyond what passed since the last reading of a clock is taken at the next ones." "update_rq_clock_task(), up to v6.13; not stable 5.10, 6.1 and 6.12" [1 1 1 0 1 1 0 0];
    NextClass "NEXT_CLASS" "A task of a lower class than one that waits to preempt is not compared with the running one." "wakeup_preempt(), v7.2; not v6.12" [0 0 0 0 0 0 0 1];
    MovedMayPreempt "MOVED_MAY_PREEMPT" "An RT or deadline task that is pushed or pulled preempts as a woken one does: the CPU that makes way need not read its clock again." "move_queued_task_locked(), kernel/sched/sched.h, v7.2; not v6.12" [0 0 0 0 0 0 0 1];
    OfflineReadsClock "OFFLINE_READS_CLOCK" "A CPU that goes offline reads its clock, and so do all CPUs whose domains are rebuilt." "set_rq_offline(), v6.6; not v6.1" [0 0 0 0 0 1 1 1];
    RebuildUnthrottles "REBUILD_UNTHROTTLES" "Throttled queues of all CPUs run again when domains are rebuilt, not only those of a CPU that leaves, and every queue has a quota of 1 ns then." "unthrottle_offline_cfs_rqs(), v6.12; not v7.2" [1 1 1 1 1 1 1 0];
    FallbackReadsClock "FALLBACK_READS_CLOCK" "A sleeper that may run anywhere from now on, as all its CPUs are offline, reads the clock of the CPU where it slept." "set_cpus_allowed_force(), sched_change_begin(), v7.2; not v6.12" [0 0 0 0 0 0 0 1];
    OldestGroupFirst "OLDEST_GROUP_FIRST" "Queues of a CPU that goes offline run again from the oldest group on; before, from the newest on." "sched_online_group(), v6.18; not v6.12" [0 0 0 0 0 0 0 1];
    BalancePush "BALANCE_PUSH" "A CPU that is leaving hands each task that it switches to to its stopper, which moves it; before, all are moved once the CPU is offline." "balance_push(), v5.11" [0 0 1 1 1 1 1 1];
    LeavingCounts "LEAVING_COUNTS" "A CPU that is leaving still counts when domains are rebuilt without it: for the intervals of balancing, and as a busy one of its cache." "sd_init(), v6.12; not v7.2" [1 1 1 1 1 1 1 0];
    NumaUpdate "NUMA_UPDATE" "NUMA levels leave out a node once its last CPU is leaving: that CPU no longer counts for their intervals." "sched_update_numa(), v5.18" [0 0 1 1 1 1 1 1];
    LowerClassAsks "LOWER_CLASS_ASKS" "A task that changes to a lower class while it runs is asked to reschedule; 7.2.12 has this without CLASS_CHANGE_ASKS." "sched_change_end(), v7.2; not v6.12" [0 0 0 0 0 0 0 1];
    DlAsksByDeadline "DL_ASKS_BY_DEADLINE" "Other parameters of a deadline task ask for nothing as long as its deadline stays." "prio_changed_dl(), v7.2; not v6.12" [0 0 0 0 0 0 0 1];
    DlWaitingAsks "DL_WAITING_ASKS" "A deadline task that waits and gets other parameters asks for a reschedule if it is before the running one, not if another of its queue is before it." "prio_changed_dl(), v6.12; not v6.1; from v6.3" [0 0 0 0 1 1 1 1];
    ClassLeavesFirst "CLASS_LEAVES_FIRST" "A task leaves the fair class before it gets its new weight, which puts its load back on the queue." "sched_change_begin(), v7.2; not v6.12" [0 0 0 0 0 0 0 1];
    SameWeightStays "SAME_WEIGHT_STAYS" "An entity that is given the weight that it has keeps its averages to the digit." "reweight_entity(), v7.3" [0 0 0 0 0 0 0 0 1];
    BandwidthPerTask "BANDWIDTH_PER_TASK" "Throttling stops tasks at their exit to user mode, not the group's queue." "throttle_cfs_rq(), v6.18" [0 0 0 0 0 0 0 1];
    UnthrottleAsync "UNTHROTTLE_ASYNC" "The timer that hands out quota interrupts other CPUs, which let their queues run again." "unthrottle_cfs_rq_async(), v6.4" [0 0 0 0 0 1 1 1];
    HzBw "HZ_BW" "Bandwidth control keeps the tick on full-dynticks CPUs." "features.h, v6.7; obeyed by nothing: no CPU is in full-dynticks mode" [0 0 0 0 0 1 0 0];
    RtPushIpi "RT_PUSH_IPI" "A CPU that has room for RT tasks interrupts those that have some to give, which push, in place of taking them." "pull_rt_task(), features.h; v7.2 and late stable releases only with PREEMPT_RT" [1 1 1 1 1 1 1 0];
    RtRuntimeShare "RT_RUNTIME_SHARE" "RT run time is lent between CPUs." "features.h, up to v5.9; obeyed by nothing: lending is left out" [1 1 0 0 0 0 0 0];
    WarnLatency "LATENCY_WARN" "Warn when a reschedule is long overdue." "features.h, v5.12; obeyed by nothing: a warning decides nothing" [0 0 0 0 0 0 0 0];
    PoolSendsBack "POOL_SENDS_BACK" "A worker that is woken away from the CPUs of its pool is sent back there." "kick_pool(), kernel/workqueue.c, v6.6; obeyed by the audit" [0 0 0 0 0 1 1 1];
    SwitchStatePassed "SWITCH_STATE_PASSED" "sched_switch contains the state with which a task called the scheduler, not the one when the event is written." "__trace_sched_switch_state(), v5.18; obeyed where recordings are read" [0 0 1 1 1 1 1 1];
    TwoSparePages "TWO_SPARE_PAGES" "A pipe keeps two pages that were read for its next writes, not one." "anon_pipe_put_page(), fs/pipe.c, v7.2; not v6.12; from v6.15; obeyed by the engine" [0 0 0 0 0 0 0 1];
}

/// A set of switches, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Features([u64; 3]);

impl Features {
    /// The defaults of a preset, by its place in [`crate::PRESETS`].
    pub fn of_preset(preset: usize) -> Features {
        let mut set = Features::default();
        for row in Feature::TABLE {
            set.set(row.feature, row.defaults[preset.min(row.defaults.len() - 1)]);
        }
        set
    }

    /// Whether a switch is on.
    #[inline]
    pub fn has(self, feature: Feature) -> bool {
        self.0[feature as usize / 64] >> (feature as u32 % 64) & 1 == 1
    }

    /// Turns a switch on or off.
    pub fn set(&mut self, feature: Feature, on: bool) {
        let word = &mut self.0[feature as usize / 64];
        let bit = 1 << (feature as u32 % 64);
        if on { *word |= bit } else { *word &= !bit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_fits_the_set() {
        assert!(Feature::TABLE.len() <= 64 * Features::default().0.len());
        for (i, row) in Feature::TABLE.iter().enumerate() {
            assert_eq!(row.feature as usize, i);
            assert!(row.sentence.ends_with('.'), "{}", row.name);
        }
    }
}
