//! Rules of several forms, of which each kernel has one: an enum each, gathered in [`Rules`].
//!
//! Kernel strings choose a form by `NAME=form`, as in `v6.3+RECENT_USED_CPU=off`.

/// A rule with its forms, for tables and help.
pub struct RuleRow {
    /// Name in kernel strings.
    pub name: &'static str,
    /// One sentence.
    pub sentence: &'static str,
    /// Kernel function or file it comes from.
    pub source: &'static str,
    /// Names of the forms.
    pub forms: &'static [&'static str],
    /// Form of a set of rules.
    pub get: fn(&Rules) -> &'static str,
    /// Chooses a form by name; false if there is no such form.
    pub set: fn(&mut Rules, &str) -> bool,
}

macro_rules! rules {
    ($($field:ident: $type:ident $name:literal $sentence:literal $source:literal
       { $($(#[doc = $doc:literal])* $form:ident $text:literal),* $(,)? }
       [$($d:ident)*];)*) => {
        $(
            #[doc = $sentence]
            #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
            pub enum $type { $($(#[doc = $doc])* $form,)* }

            impl $type {
                /// Its name in kernel strings.
                pub fn name(self) -> &'static str {
                    match self { $($type::$form => $text,)* }
                }
            }
        )*

        /// The rules with several forms.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Rules { $(#[doc = $sentence] pub $field: $type,)* }

        impl Rules {
            /// Every rule.
            pub const TABLE: &'static [RuleRow] = &[$(RuleRow {
                name: $name,
                sentence: $sentence,
                source: $source,
                forms: &[$($text),*],
                get: |r| r.$field.name(),
                set: |r, form| match form {
                    $($text => { r.$field = $type::$form; true })*
                    _ => false,
                },
            },)*];

            /// The defaults of a preset, by its place in [`crate::PRESETS`]. Presets beyond the last of a row have what
            /// that has.
            pub fn of_preset(preset: usize) -> Rules {
                Rules { $($field: {
                    let forms = [$($type::$d),*];
                    forms[preset.min(forms.len() - 1)]
                },)* }
            }
        }
    };
}

rules! {
    idle_test: IdleTest "IDLE_TEST" "Which CPUs a wake-up considers idle." "idle_cpu(), available_idle_cpu(), choose_idle_cpu()" {
        /// Nothing runs or is queued.
        IdleCpu "idle_cpu",
        /// Nothing runs on a virtual CPU that is not preempted, or only SCHED_IDLE tasks run.
        Available "available",
        /// As available, but SCHED_IDLE tasks do not displace each other.
        ChooseIdle "choose_idle",
    } [IdleCpu Available Available Available Available Available Available ChooseIdle];

    pending_wake: PendingWake "PENDING_WAKE" "What makes a CPU with a pending wake-up count as busy." "idle_cpu()" {
        /// A non-empty wake list.
        List "list",
        /// A flag set from the first entry until the list is worked off.
        Flag "flag",
    } [List List Flag Flag Flag Flag Flag Flag];

    wake_cap: WakeCap "WAKE_CAP" "When a task too large for the smaller of two CPUs is not pulled." "wake_cap(), up to v5.7" {
        /// On every machine.
        All "all",
        /// On asymmetric machines.
        Asym "asym",
        /// Never.
        Off "off",
    } [All Asym Off Off Off Off Off Off];

    wake_affine: WakeAffine "WAKE_AFFINE" "How the waker's and the previous CPU are compared." "wake_affine()" {
        /// Shared cache, else loads of whole nodes.
        NodeLoads "node_loads",
        /// WA_IDLE and WA_WEIGHT, each with an opinion or none.
        IdleWeight "idle_weight",
    } [NodeLoads IdleWeight IdleWeight IdleWeight IdleWeight IdleWeight IdleWeight IdleWeight];

    recent_used_cpu: RecentUsedCpu "RECENT_USED_CPU" "Which task remembers a recently used CPU." "select_idle_sibling()" {
        /// No task.
        Off "off",
        /// Set on the waker after an affine wake-up; swapped on a hit.
        Waker "waker",
        /// Set on the wakee at each search.
        Wakee "wakee",
    } [Off Waker Wakee Wakee Wakee Wakee Wakee Wakee];

    idle_core: IdleCoreSearch "IDLE_CORE" "How a wholly idle core is searched." "select_idle_core(), select_idle_cpu()" {
        /// First of all, from the target on.
        Separate "separate",
        /// Inside the scan for an idle CPU.
        Merged "merged",
    } [Separate Separate Merged Merged Merged Merged Merged Merged];

    scan_counts: ScanCounts "SCAN_COUNTS" "Which CPUs the separate searches for an idle core and an idle CPU scan." "select_idle_core(), select_idle_cpu(), v5.6" {
        /// Every thread of a core; CPUs that the task may not use count too where the scan is limited.
        All "all",
        /// A core up to its first busy thread; CPUs that the task may use.
        Needed "needed",
    } [All All Needed Needed Needed Needed Needed Needed];

    idle_smt: IdleSmt "IDLE_SMT" "Whose siblings are searched for an idle thread." "select_idle_smt()" {
        /// The target's, after the scan.
        TargetLast "target_last",
        /// The previous CPU's, before the scan, if no core is idle.
        PrevFirst "prev_first",
        /// None (v5.12).
        None "none",
    } [TargetLast TargetLast PrevFirst PrevFirst PrevFirst PrevFirst PrevFirst PrevFirst];

    asym_fits: AsymFits "ASYM_FITS" "How a task is fitted to a CPU on asymmetric machines." "asym_fits_cpu(), select_idle_capacity()" {
        /// Not in this search.
        Off "off",
        /// By capacity with a 20 % margin.
        Capacity "capacity",
        /// By capacity and uclamp.
        Uclamp "uclamp",
        /// As uclamp, preferring idle cores.
        UclampCores "uclamp_cores",
    } [Off Off Capacity Uclamp Uclamp Uclamp Uclamp UclampCores];

    wake_list: WakeList "WAKE_LIST" "Which wake-ups go through the target's wake list." "ttwu_queue_cond()" {
        /// Those to another LLC.
        OtherLlc "other_llc",
        /// Also to a CPU that is just switching the wakee out and has nothing else.
        OtherLlcOrDescheduling "other_llc_or_descheduling",
        /// Also to any idle CPU but this one.
        OtherLlcOrIdle "other_llc_or_idle",
    } [OtherLlc OtherLlc OtherLlcOrDescheduling OtherLlcOrIdle OtherLlcOrIdle OtherLlcOrIdle OtherLlcOrIdle OtherLlcOrIdle];

    wake_list_order: WakeListOrder "WAKE_LIST_ORDER" "In which order a wake list is processed." "sched_ttwu_pending()" {
        /// Newest first.
        Lifo "lifo",
        /// Oldest first.
        Fifo "fifo",
    } [Lifo Lifo Fifo Fifo Fifo Fifo Fifo Fifo];

    fork_group: ForkGroup "FORK_GROUP" "How the idlest group is found." "find_idlest_group()" {
        /// By runnable load and spare capacity.
        Load "load",
        /// By group type.
        Types "types",
    } [Load Types Types Types Types Types Types Types];

    numa_imbalance: NumaImbalance "NUMA_IMBALANCE" "When a fork stays on its node though others are idle." "find_idlest_group(), allow_numa_imbalance()" {
        /// There is no such rule.
        Off "off",
        /// While the node has an idle CPU.
        AnyIdle "any_idle",
        /// While fewer tasks run than a quarter of the domain's CPUs.
        Quarter "quarter",
        /// While at most imb_numa_nr tasks would run.
        PerLlc "per_llc",
        /// As per_llc, and the nodes differ by at most two idle CPUs.
        PerLlcIdleDifference "per_llc_idle_difference",
    } [Off AnyIdle PerLlc PerLlcIdleDifference PerLlcIdleDifference PerLlcIdleDifference PerLlcIdleDifference PerLlcIdleDifference];

    lb_numa_imbalance: LbNumaImbalance "LB_NUMA_IMBALANCE" "Which NUMA imbalance the balancer leaves alone." "calculate_imbalance()" {
        /// None.
        Off "off",
        /// A busiest node of at most two tasks (v5.6).
        Pair "pair",
        /// Two tasks while the busiest node is under a quarter full (v5.17).
        Quarter "quarter",
        /// Two tasks while at most imb_numa_nr would run (v5.18).
        PerLlc "per_llc",
    } [Off Off PerLlc PerLlc PerLlc PerLlc PerLlc PerLlc];

    imb_numa_nr: ImbNumaNr "IMB_NUMA_NR" "How imb_numa_nr is computed for a node of one LLC." "build_sched_domains()" {
        /// It is not.
        Off "off",
        /// A quarter of the node.
        NodeQuarter "node_quarter",
        /// An eighth of the node, at least 1.
        NodeEighth "node_eighth",
        /// As node_eighth, computed once per LLC domain with a parent.
        PerLlcEighth "per_llc_eighth",
    } [Off Off NodeQuarter NodeEighth NodeEighth NodeEighth NodeEighth PerLlcEighth];

    fork_sched_idle: ForkSchedIdle "FORK_SCHED_IDLE" "How the slow path treats a CPU of SCHED_IDLE tasks." "find_idlest_group_cpu()" {
        /// Nothing.
        Off "off",
        /// Taken when no CPU is idle.
        Remembered "remembered",
        /// Taken at once.
        AtOnce "at_once",
        /// Taken at once unless the task is SCHED_IDLE itself.
        AtOnceUnlessIdle "at_once_unless_idle",
    } [Off Remembered AtOnce AtOnce AtOnce AtOnce AtOnce AtOnceUnlessIdle];

    prefer_sibling: PreferSibling "PREFER_SIBLING" "Which domains spread tasks over sibling groups." "sd_init()" {
        /// SMT and DIE.
        SmtDie "smt_die",
        /// All but NUMA.
        AllButNuma "all_but_numa",
    } [SmtDie AllButNuma AllButNuma AllButNuma AllButNuma AllButNuma AllButNuma AllButNuma];

    domain_flags: DomainFlags "DOMAIN_FLAGS" "Which book-keeping flags domains carry, and which of them keep a domain." "sd_init(), sd_degenerate()" {
        /// SD_LOAD_BALANCE everywhere, SD_OVERLAP on NUMA; NUMA domains are kept.
        LoadBalance "load_balance",
        /// SD_OVERLAP on NUMA.
        Overlap "overlap",
        /// Neither.
        Plain "plain",
    } [LoadBalance LoadBalance Overlap Overlap Overlap Overlap Overlap Plain];

    asym_domains: AsymDomains "ASYM_DOMAINS" "Which domains know that CPUs differ in capacity." "asym_cpu_capacity_level(), asym_cpu_capacity_classify()" {
        /// One level, the lowest from which each CPU sees a largest one; wake-ups balance up to it.
        Level "level",
        /// Each domain that spans CPUs of different capacity.
        Span "span",
    } [Level Level Span Span Span Span Span Span];

    asym_groups: AsymGroups "ASYM_GROUPS" "How groups and queues of CPUs of different capacity are distinguished." "update_sd_pick_busiest(), find_busiest_queue(), v5.13" {
        /// Groups by their extremes and 20 %, queues plainly; larger CPUs are refused where their group's type is that of the busiest.
        Extremes "extremes",
        /// As extremes, but by what the destination has and 5 %.
        Destination "destination",
        /// As destination, but larger CPUs are refused at once, and misfit tasks go to idle cores only.
        IdleCore "idle_core",
    } [Extremes Extremes Destination IdleCore Destination Destination IdleCore IdleCore];

    smt_capacity: SmtCapacity "SMT_CAPACITY" "Capacity of a thread of a core with several." "arch_scale_cpu_capacity()" {
        /// 1178 shared by the threads.
        Gain "gain",
        /// 1024 each.
        Full "full",
    } [Gain Full Full Full Full Full Full Full];

    level_names: LevelNames "LEVEL_NAMES" "What the kernel calls levels and flags." "sched_domain_topology, sd_flags.h" {
        /// DIE, SD_SHARE_PKG_RESOURCES.
        Die "die",
        /// PKG, SD_SHARE_LLC.
        Pkg "pkg",
    } [Die Die Die Die Die Pkg Pkg Pkg];

    policy: FairPolicy "POLICY" "How the next task is chosen." "fair.c" {
        /// By least virtual run time.
        Cfs "cfs",
        /// By earliest eligible virtual deadline.
        Eevdf "eevdf",
    } [Cfs Cfs Cfs Cfs Cfs Eevdf Eevdf Eevdf];

    protection: Protection "PROTECTION" "How long the current task is protected under RUN_TO_PARITY." "pick_eevdf(), protect_slice()" {
        /// Until its deadline is renewed.
        UntilDeadline "until_deadline",
        /// As until_deadline, unless cancelled by a shorter or non-idle wake-up.
        UntilCancelled "until_cancelled",
        /// Until a vruntime that shrinks with the shortest slice queued.
        MinSlice "min_slice",
    } [UntilDeadline UntilDeadline UntilDeadline UntilDeadline UntilDeadline UntilDeadline UntilCancelled MinSlice];

    lag_limit: LagLimit "LAG_LIMIT" "Bound on a task's lag." "entity_lag(), update_entity_lag()" {
        /// Two slices or a tick.
        SliceOrTick "slice_or_tick",
        /// The longest slice queued plus a tick.
        MaxSliceTick "max_slice_tick",
    } [SliceOrTick SliceOrTick SliceOrTick SliceOrTick SliceOrTick SliceOrTick SliceOrTick MaxSliceTick];

    avg_reference: AvgReference "AVG_REFERENCE" "Zero point of the average virtual time." "avg_vruntime()" {
        /// min_vruntime.
        MinVruntime "min_vruntime",
        /// A point moved to the average whenever that is computed.
        ZeroVruntime "zero_vruntime",
    } [MinVruntime MinVruntime MinVruntime MinVruntime MinVruntime MinVruntime ZeroVruntime ZeroVruntime];

    avg_weight: AvgWeight "AVG_WEIGHT" "Which weights enter the average virtual time." "avg_vruntime_add(), sum_w_vruntime_add()" {
        /// Without the 64-bit scale, at least 2.
        Scaled "scaled",
        /// In full.
        Full "full",
    } [Scaled Scaled Scaled Scaled Scaled Scaled Scaled Full];

    wakeup_preempt: WakeupPreempt "WAKEUP_PREEMPT" "When a woken fair task preempts another." "check_preempt_wakeup()" {
        /// It is behind in virtual time by more than a granularity.
        Vruntime "vruntime",
        /// It would be picked.
        Pick "pick",
        /// As pick; a shorter slice ends the protection of the current task first.
        PickShort "pick_short",
        /// As pick; a shorter slice ignores the protection, and shortens it if it is not picked.
        PickUnprotected "pick_unprotected",
        /// As pick; forks and delayed tasks do not try, a shorter slice ignores protection.
        PickOrLower "pick_or_lower",
        /// As pick_or_lower, but also when a switch is due. A wakee that does not preempt always shortens the protection.
        /// A wakee with a shorter slice and positive lag preempts even if another task would be picked.
        PickOrCancel "pick_or_cancel",
    } [Vruntime Vruntime Vruntime Vruntime Vruntime Pick PickShort PickOrLower PickOrCancel];

    buddies_clear: BuddiesClear "BUDDIES_CLEAR" "When the marks of a picked buddy are cleared." "pick_next_entity(), set_next_entity(), v5.14" {
        /// At each pick, on every level.
        Picked "picked",
        /// On the levels where another runs from then on.
        Set "set",
    } [Picked Picked Set Set Set Set Set Set];

    buddy_pick: BuddyPick "BUDDY_PICK" "Where EEVDF prefers the next buddy, if eligible." "pick_next_entity(), pick_eevdf()" {
        /// At a switch, with NEXT_BUDDY.
        NextBuddy "next_buddy",
        /// At a switch, with PICK_BUDDY.
        PickBuddy "pick_buddy",
        /// Also when a wake-up asks for preemption, unless there is but one entity.
        InPick "in_pick",
    } [NextBuddy NextBuddy NextBuddy NextBuddy NextBuddy NextBuddy PickBuddy InPick];

    hrtick_end: HrtickEnd "HRTICK_END" "Where the slice timer is set." "hrtick_start_fair()" {
        /// The slice less the time run.
        Slice "slice",
        /// The virtual deadline, stretched by interrupt time.
        Deadline "deadline",
    } [Slice Slice Slice Slice Slice Slice Slice Deadline];

    bandwidth_slices: BandwidthSlices "BANDWIDTH_SLICES" "How long runtime that a CPU took from a group's quota stays valid." "expire_cfs_rq_runtime(), __return_cfs_rq_runtime(), start_cfs_slack_bandwidth(), v4.13, v4.18, v5.4" {
        /// It is given back only in the period in which it was taken, and each time puts off that it is handed out.
        Period "period",
        /// It is lost, too, once the pool was filled again (v4.18 to v5.3).
        Lost "lost",
        /// Until it is used; it is handed out a while after the first was given back.
        Used "used",
    } [Period Used Used Used Used Used Used Used];

    bandwidth_at_pick: BandwidthAtPick "BANDWIDTH_AT_PICK" "Whose quota is checked when a fair task is picked and set running." "pick_task_fair(), set_next_task_fair()" {
        /// That of its groups that ran before.
        Never "never",
        /// That of all its groups as it is chosen, and as it takes over if no fair task ran before.
        AfterOtherClass "after_other_class",
        /// That of the groups which did not run before.
        LevelsSet "levels_set",
    } [Never Never Never Never Never Never AfterOtherClass LevelsSet];

    delayed_requeue: DelayedRequeue "DELAYED_REQUEUE" "What a task woken while delayed is given." "requeue_delayed_entity()" {
        /// Placed again without lag if it became eligible.
        ZeroIfEligible "zero_if_eligible",
        /// The better of its lag then and now, at most zero.
        BetterLag "better_lag",
    } [ZeroIfEligible ZeroIfEligible ZeroIfEligible ZeroIfEligible ZeroIfEligible ZeroIfEligible ZeroIfEligible BetterLag];

    reweight: Reweight "REWEIGHT" "What EEVDF does with a queued entity that gets another weight." "reweight_entity()" {
        /// Its lag and its distance to the deadline are scaled around the average.
        Scaled "scaled",
        /// It is placed again with its scaled lag, which is inflated as if it joined.
        Placed "placed",
    } [Scaled Scaled Scaled Scaled Scaled Scaled Scaled Scaled];

    fork_place: ForkPlace "FORK_PLACE" "Where a new task's virtual time is set." "task_fork_fair(), enqueue_task_fair()" {
        /// On the parent's queue, then moved over relative to min_vruntime.
        Parent "parent",
        /// On the parent's queue and again, as a wake-up, on the chosen one.
        ParentThenChosen "parent_then_chosen",
        /// On the chosen queue.
        Chosen "chosen",
    } [Parent Parent Parent Parent Parent ParentThenChosen Chosen Chosen];

    nice_asks: NiceAsks "NICE_ASKS" "Which task is rescheduled when a queued task gets another nice level." "set_user_nice(), v5.6" {
        /// The running task, whichever it is, if the task rises; itself if it falls and runs.
        AnyRise "any_rise",
        /// The running task, as at a wake-up; itself if it falls and others are queued.
        AsWoken "as_woken",
    } [AnyRise AnyRise AsWoken AsWoken AsWoken AsWoken AsWoken AsWoken];

    yield_rule: YieldRule "YIELD" "What sched_yield() does." "yield_task_fair()" {
        /// Marks the task to be skipped once.
        Skip "skip",
        /// Pushes the deadline one slice out.
        Deadline "deadline",
        /// Gives up the rest of the request, if eligible.
        Request "request",
    } [Skip Skip Skip Skip Skip Deadline Request Request];

    balance_model: BalanceModel "BALANCE_MODEL" "How the busiest group is found." "find_busiest_group()" {
        /// By load averages alone.
        Load "load",
        /// By group types.
        Types "types",
    } [Load Types Types Types Types Types Types Types];

    misfit_mark: MisfitMark "MISFIT_MARK" "Which running task is noted as too large for its CPU." "update_misfit_status(), check_misfit_status(), v6.10" {
        /// One that does not fit; help is asked for if there are larger CPUs, or this one lost capacity.
        DoesNotFit "does_not_fit",
        /// As does_not_fit, unless no CPU that it may use is larger.
        LargerAllowed "larger_allowed",
    } [DoesNotFit DoesNotFit DoesNotFit DoesNotFit DoesNotFit LargerAllowed LargerAllowed LargerAllowed];

    even_load: EvenLoad "EVEN_LOAD" "How much a group that is not overloaded pulls though it has more load than the busiest." "calculate_imbalance(), v5.7" {
        /// What differences without sign give: if both are below zero, nearly everything.
        Unsigned "unsigned",
        /// Nothing.
        Nothing "nothing",
    } [Unsigned Unsigned Nothing Nothing Nothing Nothing Nothing Nothing];

    queue_gives: QueueGives "QUEUE_GIVES" "Which CPUs of the busiest group can be the source." "find_busiest_queue(), v5.7, v5.12" {
        /// Any, even with load but no task, or utilisation but one.
        Any "any",
        /// As any, but utilisation only with several tasks.
        SeveralForUtil "several_for_util",
        /// As several_for_util, but only with fair tasks.
        WithFair "with_fair",
    } [Any Any WithFair WithFair WithFair WithFair WithFair WithFair];

    pinned_mark: PinnedMark "PINNED_MARK" "What happens to the mark of the group above when every task that a pass found was pinned and no CPU is left to try." "load_balance(), v5.3" {
        /// It is taken off, as after a pass that found nothing.
        TakenOff "taken_off",
        /// It stays.
        Stays "stays",
    } [TakenOff Stays Stays Stays Stays Stays Stays Stays];

    dst_group: DstGroup "DST_GROUP" "Which CPUs may replace the destination, and are then no source." "load_balance(), v6.5 and stable 5.10, 6.1" {
        /// Those of the local group.
        Span "span",
        /// Those that may balance for it; where groups overlap, its middle.
        BalanceMask "balance_mask",
    } [Span Span Span BalanceMask Span BalanceMask BalanceMask BalanceMask];

    nohz_kick_next: NohzKickNext "NOHZ_KICK_NEXT" "What a kick does to the time of the next one." "kick_ilb(), v5.8" {
        /// Puts it off by a tick, whatever the kick is for.
        OneMore "one_more",
        /// Sets it to the next tick, if it is for balancing.
        NextTick "next_tick",
    } [OneMore OneMore NextTick NextTick NextTick NextTick NextTick NextTick];

    nohz_self: NohzSelf "NOHZ_SELF" "How the CPU that balances for idle CPUs serves itself." "_nohz_idle_balance(), rebalance_domains(), v5.12" {
        /// Apart, due or not; the next kick follows from the others, and from each round of an idle CPU of its own.
        Apart "apart",
        /// As one of the idle.
        Alike "alike",
    } [Apart Apart Alike Alike Alike Alike Alike Alike];

    newidle_ages: NewidleAges "NEWIDLE_AGES" "When a newly idle CPU updates the load of idle CPUs." "update_sd_lb_stats(), newidle_balance(), v5.12" {
        /// In its passes that of each domain, and all if it does not begin.
        InPasses "in_passes",
        /// All, if it found nothing.
        IfIdle "if_idle",
    } [InPasses InPasses IfIdle IfIdle IfIdle IfIdle IfIdle IfIdle];

    fully_busy_tie: FullyBusyTie "FULLY_BUSY_TIE" "Which of two fully busy groups is busiest." "update_sd_pick_busiest()" {
        /// The larger average load, the first of equals.
        First "first",
        /// As first, but equals replace unless the busiest is an SMT group.
        LastUnlessSmt "last_unless_smt",
    } [First First First First First LastUnlessSmt LastUnlessSmt LastUnlessSmt];

    sibling_imbalance: SiblingImbalance "SIBLING_IMBALANCE" "How task counts of sibling groups are compared." "calculate_imbalance(), sibling_imbalance()" {
        /// Difference of task counts.
        Plain "plain",
        /// Weighted by cores, only towards an idle CPU.
        ByCores "by_cores",
    } [Plain Plain Plain Plain Plain ByCores ByCores ByCores];

    active_balance: ActiveBalance "ACTIVE_BALANCE" "When failures make the stopper push a running task." "need_active_balance()" {
        /// After any kind of failures; the interval then backs off.
        AnyFailure "any_failure",
        /// Only to even out the number of tasks.
        UnevenTasks "uneven_tasks",
    } [AnyFailure AnyFailure UnevenTasks UnevenTasks UnevenTasks UnevenTasks UnevenTasks UnevenTasks];

    asym_packing: AsymPacking "ASYM_PACKING" "When the order of CPUs says where tasks go (SD_ASYM_PACKING)." "sched_asym(), asym_smt_can_pull_tasks()" {
        /// Whenever the destination comes first.
        Prefer "prefer",
        /// Also by the number of busy threads at both ends.
        SmtPull "smt_pull",
        /// Between cores only towards a wholly idle one.
        IdleCore "idle_core",
    } [Prefer Prefer SmtPull SmtPull SmtPull IdleCore IdleCore IdleCore];

    candidate_order: CandidateOrder "CANDIDATE_ORDER" "Which tasks of a queue are offered for migration first." "detach_tasks()" {
        /// The one enqueued last.
        NewestFirst "newest_first",
        /// The one that ran longest ago.
        LeastRecentlyRun "least_recently_run",
    } [NewestFirst LeastRecentlyRun LeastRecentlyRun LeastRecentlyRun LeastRecentlyRun LeastRecentlyRun LeastRecentlyRun LeastRecentlyRun];

    load_filter: LoadFilter "LOAD_FILTER" "Which tasks are too large to move for an imbalance of load." "detach_tasks()" {
        /// Half its load is more than the imbalance.
        Half "half",
        /// As half, unless earlier passes failed.
        HalfUnlessFailed "half_unless_failed",
        /// Its load, halved for each failed pass, is more than the imbalance.
        ShiftByFailed "shift_by_failed",
    } [Half HalfUnlessFailed ShiftByFailed ShiftByFailed ShiftByFailed ShiftByFailed ShiftByFailed ShiftByFailed];

    balance_fair: BalanceFair "BALANCE_FAIR" "When a CPU looks for work before it picks." "balance_fair(), v6.1, v6.12; pick_task_fair(), v7.2" {
        /// When nothing is queued, and again when only sleepers were.
        NoTask "no_task",
        /// When nothing is queued; if a task of a higher class leaves, only once.
        Once "once",
        /// When no fair task is queued, though tasks of a higher class wait; if one of these leaves, only once.
        NoFair "no_fair",
    } [NoTask Once Once Once Once Once NoFair NoTask];

    newidle_gate: NewidleGate "NEWIDLE_GATE" "When a newly idle CPU does not balance at all." "newidle_balance()" {
        /// Its idle times are shorter than migration_cost.
        MigrationCost "migration_cost",
        /// Its idle times are shorter than balancing its lowest domain takes.
        DomainCost "domain_cost",
    } [MigrationCost MigrationCost DomainCost DomainCost DomainCost DomainCost DomainCost DomainCost];

    task_hot: TaskHot "TASK_HOT" "Which tasks count as cache hot." "task_hot()" {
        /// Those that ran within migration_cost.
        Recent "recent",
        /// As recent, but none inside a core.
        RecentNotSmt "recent_not_smt",
    } [Recent Recent RecentNotSmt RecentNotSmt RecentNotSmt RecentNotSmt RecentNotSmt RecentNotSmt];

    pelt: PeltClock "PELT" "How frequency and capacity enter the averages." "__update_load_avg(), update_rq_clock_pelt()" {
        /// In each contribution; entity sums carry the weight.
        InContribution "in_contribution",
        /// In a scaled clock.
        ScaledClock "scaled_clock",
    } [InContribution ScaledClock ScaledClock ScaledClock ScaledClock ScaledClock ScaledClock ScaledClock];

    cpu_load: CpuLoad "CPU_LOAD" "What counts as the load of a CPU." "weighted_cpuload(), cpu_load()" {
        /// Of queued entities.
        RunnableLoadAvg "runnable_load_avg",
        /// Blocked load included.
        LoadAvg "load_avg",
    } [RunnableLoadAvg LoadAvg LoadAvg LoadAvg LoadAvg LoadAvg LoadAvg LoadAvg];

    pressure: Pressure "PRESSURE" "How RT and interrupt time is averaged." "sched_rt_avg_update(), update_irq_load_avg()" {
        /// A sum halved every half averaging time.
        RtAvg "rt_avg",
        /// Decaying averages.
        Pelt "pelt",
    } [RtAvg Pelt Pelt Pelt Pelt Pelt Pelt Pelt];

    util_est_form: UtilEstForm "UTIL_EST_FORM" "What a task's estimate consists of." "util_est_update()" {
        /// Last value and slow average; the lowest bit of the value is a flag.
        FlagInLowestBit "flag_in_lowest_bit",
        /// Last value and slow average.
        EwmaAndLast "ewma_and_last",
        /// One value.
        Single "single",
    } [FlagInLowestBit FlagInLowestBit EwmaAndLast EwmaAndLast EwmaAndLast Single Single Single];

    util_est_update: UtilEstUpdate "UTIL_EST_UPDATE" "When a dequeue updates the estimate of utilisation." "dequeue_task_fair()" {
        /// After the dequeue.
        After "after",
        /// Before it.
        Before "before",
        /// With the averages, before the entity leaves.
        Within "within",
    } [After After After After After After Before Within];

    util_est_capacity: UtilEstCapacity "UTIL_EST_CAPACITY" "What becomes of the estimate of a task that used more than its CPU has." "util_est_update()" {
        /// It stays.
        Skip "skip",
        /// It falls like others.
        Falls "falls",
    } [Skip Skip Skip Skip Skip Skip Skip Falls];

    rt_throttle: RtThrottle "RT_THROTTLE" "What keeps RT tasks from starving others." "sched_rt_runtime_exceeded(), fair_server" {
        /// RT tasks run at most 0.95 of each second.
        Bandwidth "bandwidth",
        /// A deadline server gives starving fair tasks the rest.
        FairServer "fair_server",
    } [Bandwidth Bandwidth Bandwidth Bandwidth Bandwidth Bandwidth FairServer FairServer];

    any_cpu: AnyCpu "ANY_CPU" "Which of several suitable CPUs an RT or deadline task, or one with a new affinity, is sent to." "cpumask_any_and_distribute(), v5.7, v5.11" {
        /// The first.
        First "first",
        /// Of its new affinity the next after the last taken by the CPU that asks, else the first.
        Affinity "affinity",
        /// The next after the last taken by the CPU that asks.
        InTurn "in_turn",
    } [First First InTurn InTurn InTurn InTurn InTurn InTurn];

    dl_push: DlPush "DL_PUSH" "When a deadline task that waits is sent to another CPU." "push_dl_task(), v6.7" {
        /// Only where another deadline task is queued too.
        Overloaded "overloaded",
        /// Also where it waits for the switch from a task of a lower class.
        Waiting "waiting",
    } [Overloaded Overloaded Overloaded Overloaded Overloaded Waiting Waiting Waiting];

    rt_push: RtPush "RT_PUSH" "When an RT task that waits is sent to another CPU, or fetched." "enqueue_pushable_task(), v6.7" {
        /// Only where another RT task is queued too.
        Overloaded "overloaded",
        /// Also where it waits behind a deadline task or for the switch.
        Waiting "waiting",
    } [Overloaded Overloaded Overloaded Overloaded Overloaded Waiting Waiting Waiting];

    rt_beside_dl: RtBesideDl "RT_BESIDE_DL" "Where an RT task that wakes goes if a deadline task runs on its CPU." "rt_task(), select_task_rq_rt(), v6.12" {
        /// To another CPU at once.
        Elsewhere "elsewhere",
        /// There, to be pushed.
        Prev "prev",
    } [Elsewhere Elsewhere Elsewhere Elsewhere Elsewhere Elsewhere Prev Prev];

    cpupri_dl: CpupriDl "CPUPRI_DL" "Which priority a CPU with a deadline task has for RT tasks." "inc_dl_deadline(), CPUPRI_HIGHER, v5.11" {
        /// As high as its RT tasks.
        Ignored "ignored",
        /// Higher than all of them.
        Higher "higher",
    } [Ignored Ignored Higher Higher Higher Higher Higher Higher];

    dl_budget: DlBudget "DL_BUDGET" "How much of its budget a deadline task uses on a slow CPU, or at a low clock." "update_curr_dl(), v4.16" {
        /// The time that it runs.
        Time "time",
        /// As much as the work would take at full speed.
        Work "work",
    } [Time Work Work Work Work Work Work Work];

    cpuset_hotplug: CpusetHotplug "CPUSET_HOTPLUG" "When domains are rebuilt for a CPU that goes offline or online." "cpuset_update_active_cpus(), v6.10" {
        /// By a work item, once it is gone or there.
        Later "later",
        /// While it leaves or comes.
        AtOnce "at_once",
    } [Later Later Later Later Later AtOnce AtOnce AtOnce];

    pelt_sums: PeltSums "PELT_SUMS" "How the sums of a queue follow when load is removed from its averages." "update_cfs_rq_load_avg(), detach_entity_load_avg(), __update_sa()" {
        /// By as much, not below zero; group changes use the full series as divider.
        Plain "plain",
        /// They are what the averages come to; only the utilisation of tasks that left asleep is taken off by as much.
        Synced "synced",
        /// Not below what the average needs, compared in 32 bits.
        Floor32 "floor32",
        /// Not below what the average needs.
        Floor "floor",
    } [Plain Plain Floor32 Floor32 Floor32 Floor32 Floor32 Floor];

    pipe_wake: PipeWake "PIPE_WAKE" "Which waiting writers a read of a pipe wakes, and which waiting readers a write wakes." "pipe_read(), pipe_write(), fs/pipe.c; obeyed by the engine" {
        /// All, when a page was freed or anything written.
        All "all",
        /// All, when the pipe was full or empty before.
        AllIfFull "all_if_full",
        /// One, when the pipe was full or empty before.
        OneIfFull "one_if_full",
        /// One, when the pipe was full and a page was freed, or was empty before.
        OneIfFreed "one_if_freed",
    } [All AllIfFull OneIfFull OneIfFull OneIfFull OneIfFull OneIfFull OneIfFreed];

    tg_load_clock: TgLoadClock "TG_LOAD_CLOCK" "Which clock limits writes to a group's load average." "update_tg_load_avg()" {
        /// A fresh CPU clock.
        CpuClock "cpu_clock",
        /// The run queue's clock.
        RqClock "rq_clock",
    } [CpuClock CpuClock CpuClock CpuClock CpuClock CpuClock CpuClock RqClock];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_finds_its_forms_by_name() {
        let mut rules = Rules::of_preset(0);
        for row in Rules::TABLE {
            for form in row.forms {
                assert!((row.set)(&mut rules, form));
                assert_eq!(&(row.get)(&rules), form);
            }
            assert!(!(row.set)(&mut rules, "no such form"));
        }
    }
}
