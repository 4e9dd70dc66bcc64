//! Switches that a finding may name as a remedy.
//!
//! They are text in the form of kernel strings: a report does not know the rules, and a recorded kernel may
//! lack a rule, or already have it on. A test in a crate that knows the rules checks that each is a switch of
//! some kernel.

use super::finding::Avoid;

macro_rules! switches {
    ($($name:ident $switch:literal $does:literal;)+) => {
        $(pub(super) const $name: Avoid = Avoid { switch: $switch, does: $does };)+

        /// Every switch that a finding may name.
        pub const ALL: &[Avoid] = &[$($name),+];
    };
}

switches! {
    KTHREAD_STACK "SIS_KTHREAD_STACK" "a bound kthread that wakes a task on its own CPU lets it queue there";
    CURRENT_CPU "WF_CURRENT_CPU" "a waker that is about to sleep can keep the woken task on its own CPU";
    SIS_CAPACITY "SIS_CAPACITY" "a wake-up passes over CPUs that lose more than 20 % to interrupts";
    FIC_CAPACITY "FIC_CAPACITY" "a new task passes over CPUs that lose more than 20 % to interrupts";
    IMB_AFFINITY "NUMA_IMB_AFFINITY" "the imbalance allowed between nodes at fork counts only the CPUs the task may use";
    FORK_STATS "FORK_STATS_ALLOWED" "a group is judged at fork by the CPUs the task may use";
    NO_NUMA_IMBALANCE "NUMA_IMBALANCE=off" "a new task goes to the idler node at once";
    NO_LB_IMBALANCE "LB_NUMA_IMBALANCE=off" "the balancer leaves no imbalance between nodes alone";
    NO_SIS_UTIL "NO_SIS_UTIL" "the search for an idle CPU is not cut short where the cache's CPUs are busy";
    NO_SIS_PROP "NO_SIS_PROP" "the search for an idle CPU is not cut short where idle times are brief (before 6.0)";
    NO_NI_RANDOM "NO_NI_RANDOM" "a CPU that goes idle looks for work in every domain, not at random";
    NO_WA_WEIGHT "NO_WA_WEIGHT" "loads do not pull a woken task to its waker";
    NO_WA_IDLE "NO_WA_IDLE" "an idle waker's CPU does not pull a woken task";
    NO_WA_BIAS "NO_WA_BIAS" "the comparison of loads does not favour the waker";
    NO_WAKEUP_PREEMPTION "NO_WAKEUP_PREEMPTION" "a woken task waits for the end of the current slice";
    RUN_TO_PARITY "RUN_TO_PARITY" "the current task is protected until its slice is used up (EEVDF)";
    NO_PREEMPT_SHORT "NO_PREEMPT_SHORT" "a task with a shorter slice does not end that protection";
    LAZY "preempt=lazy" "the fair class asks for a reschedule at the next tick or return to user mode only (6.13 and later)";
    FULL "preempt=full" "a running task is preempted wherever that is allowed, not only at its next preemption point";
    HRTICK "HRTICK" "slices end by a timer instead of at the tick after";
    NO_RUN_TO_PARITY "NO_RUN_TO_PARITY" "an eligible task with an earlier deadline runs at once (EEVDF)";
}

/// The remedies for a placement, by its rule.
pub(super) fn of_placement(reason: &str) -> &'static [Avoid] {
    match reason {
        "SCAN_LIMIT" | "NO_SCAN" => &[NO_SIS_UTIL, NO_SIS_PROP],
        "WA_WEIGHT" => &[NO_WA_WEIGHT, NO_WA_BIAS],
        "WA_THIS_IDLE" | "WA_SYNC" => &[NO_WA_IDLE],
        "STAY_LOCAL" => &[IMB_AFFINITY, NO_NUMA_IMBALANCE],
        _ => &[],
    }
}

/// The remedies for balancing that moved nothing, by its rule.
pub(super) fn of_balance(reason: &str) -> &'static [Avoid] {
    match reason {
        "LB_NUMA_ALLOWED" => &[NO_LB_IMBALANCE],
        "NI_RANDOM" => &[NO_NI_RANDOM],
        _ => &[],
    }
}

/// The remedies for a preemption, or a missing one, by its rule.
pub(super) fn of_preemption(reason: &str) -> &'static [Avoid] {
    match reason {
        "PREEMPT_VRUNTIME" => &[NO_WAKEUP_PREEMPTION],
        "PREEMPT_DEADLINE" => &[RUN_TO_PARITY, NO_WAKEUP_PREEMPTION],
        "PREEMPT_SHORT" => &[NO_PREEMPT_SHORT],
        "KEEP_PROTECTED" => &[NO_RUN_TO_PARITY],
        _ => &[],
    }
}
