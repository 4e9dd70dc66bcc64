//! Chooses between the waker's CPU and the previous one; an idle CPU is then searched for around the chosen one.
//!
//! Two ideas, each of which may have no opinion: *idle* (which CPU can run it at once) and *weight* (which CPU has less
//! to do). v4.13 compares the load of whole nodes instead.

use schedlab_topology::{CpuId, NodeId};

use crate::{Feature, Reason, SchedDomain, View, WakeAffine};

use super::Wakeup;

/// The result of the affine step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Affine {
    /// The reason.
    pub reason: Reason,
    /// The waker's CPU or the previous one.
    pub cpu: CpuId,
    /// The loads they would carry, if these were compared.
    pub loads: Option<EffectiveLoads>,
}

/// Whether an answer of the affine step could differ with the other sync flag. The flag is ignored if the waker's CPU
/// is idle, and if the compared nodes are the same.
pub fn heeds_sync(reason: Reason) -> bool {
    !matches!(reason, Reason::WaPrevIdle | Reason::WaThisIdle | Reason::WaShareCache | Reason::NoAffine)
}

/// Chooses between the two CPUs, which differ; `sd` is the lowest domain that contains both.
///
/// Kernel: wake_affine(), kernel/sched/fair.c, v6.12.
pub fn wake_affine(view: &View, wakeup: &Wakeup, sd: &SchedDomain, prev: CpuId, sync: bool) -> Affine {
    let this = wakeup.this_cpu;
    let kernel = view.kernel();
    let without_loads = |(reason, cpu)| Affine { reason, cpu, loads: None };
    if kernel.rules.wake_affine == WakeAffine::NodeLoads {
        return without_loads(wake_affine_nodes(view, wakeup, sd, prev, sync));
    }
    if kernel.has(Feature::WaIdle)
        && let Some(choice) = wake_affine_idle(view, this, prev, sync)
    {
        return without_loads(choice);
    }
    if !kernel.has(Feature::WaWeight) {
        return without_loads((Reason::WaWeightPrev, prev));
    }
    let loads = wake_affine_weight(view, wakeup, sd, prev, sync);
    if let EffectiveLoads::Compared { this, prev } = loads {
        // In units of load on a CPU of full capacity.
        view.decided_by("load_lead", (prev - this) / (100 * 1024));
    }
    let (reason, cpu) = if loads.pulls() { (Reason::WaWeight, this) } else { (Reason::WaWeightPrev, prev) };
    Affine { reason, cpu, loads: Some(loads) }
}

/// An idle `this` means that an interrupt issues the wake-up. It may pull within the cache only, or an interrupt-heavy
/// load would end up on one node.
///
/// Kernel: wake_affine_idle(), kernel/sched/fair.c, v6.12.
fn wake_affine_idle(view: &View, this: CpuId, prev: CpuId, sync: bool) -> Option<(Reason, CpuId)> {
    let sched = view.sched;
    let prev_idle = || sched.available_idle_cpu(prev);
    if sched.available_idle_cpu(this) && sched.cpus_share_cache(this, prev) {
        return Some(if prev_idle() { (Reason::WaPrevIdle, prev) } else { (Reason::WaThisIdle, this) });
    }
    if sync {
        let mut nr_running = view.rq(this).nr_running;
        if view.kernel().has(Feature::SyncMinusDelayed) {
            let root = sched.root_cfs(this);
            nr_running -= root.h_nr_queued - root.h_nr_runnable;
        }
        if nr_running == 1 {
            return Some((Reason::WaSync, this));
        }
    }
    (view.kernel().has(Feature::WaPrevIdle) && prev_idle()).then_some((Reason::WaPrevAvailable, prev))
}

/// The loads the CPUs would carry, each weighted by the other's capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectiveLoads {
    /// A synchronous waker is more than all load of its CPU: no need to compare.
    WakerIsAll,
    /// The two sides.
    Compared {
        /// Load of the waker's CPU.
        this: i64,
        /// Load of the previous one.
        prev: i64,
    },
}

impl EffectiveLoads {
    /// Whether the wakee is pulled to the waker's CPU.
    pub fn pulls(self) -> bool {
        match self {
            EffectiveLoads::WakerIsAll => true,
            EffectiveLoads::Compared { this, prev } => this < prev,
        }
    }
}

/// Compares the load of `this` with the wakee (and without a synchronous waker) with the load of `prev` without it;
/// `prev` must be ahead by half the imbalance percentage to lose less.
///
/// Kernel: wake_affine_weight(), kernel/sched/fair.c, v6.12.
pub fn wake_affine_weight(
    view: &View,
    wakeup: &Wakeup,
    sd: &SchedDomain,
    prev: CpuId,
    sync: bool,
) -> EffectiveLoads {
    let sched = view.sched;
    let this = wakeup.this_cpu;
    let bias = view.kernel().has(Feature::WaBias);
    let mut this_load = sched.cpu_load(this) as i64;
    if sync {
        let current = current_load(view, wakeup) as i64;
        if current > this_load {
            return EffectiveLoads::WakerIsAll;
        }
        this_load -= current;
    }
    let task_load = view.task_h_load(wakeup.task) as i64;
    this_load += task_load;
    let mut prev_load = sched.cpu_load(prev) as i64 - task_load;
    if bias {
        this_load *= 100;
        prev_load *= 100 + (i64::from(sd.imbalance_pct) - 100) / 2;
    }
    this_load *= sched.capacity_of(prev) as i64;
    prev_load *= sched.capacity_of(this) as i64;
    // On a tie a waker about to sleep may have the wakee behind it.
    prev_load += i64::from(sync);
    EffectiveLoads::Compared { this: this_load, prev: prev_load }
}

/// Load of what `this` runs. The idle task remains new for ever: it keeps the full load of a nice-0 task with which it
/// was created, except on the boot CPU, whose idle task was never forked.
fn current_load(view: &View, wakeup: &Wakeup) -> u64 {
    match wakeup.waker {
        Some(waker) => view.task_h_load(waker),
        None => {
            let root = view.sched.root_cfs_id(wakeup.this_cpu);
            // Computed in any case: it is kept for the jiffy.
            let queue = view.cfs_rq_h_load(root);
            let own = if wakeup.this_cpu == CpuId(0) { 0 } else { 1024 };
            own * queue / (view.sched.cfs(root).avg.load_avg + 1)
        }
    }
}

/// Kernel: wake_affine(), numa_wake_affine(), kernel/sched/fair.c, v4.13.
fn wake_affine_nodes(
    view: &View,
    wakeup: &Wakeup,
    sd: &SchedDomain,
    prev: CpuId,
    sync: bool,
) -> (Reason, CpuId) {
    let sched = view.sched;
    let this = wakeup.this_cpu;
    if sched.cpus_share_cache(this, prev) {
        return (Reason::WaShareCache, this);
    }
    let node =
        |cpu: CpuId| {
            let node: NodeId = sched.topology.cpu(cpu).node;
            sched.topology.node_mask(node).iter().filter(|&c| view.rq(c).online).fold(
                (0, 0),
                |(load, capacity), c| {
                    (load + sched.cpu_load(c) as i64, capacity + sched.capacity_of(c) as i64)
                },
            )
        };
    let (mut this_load, this_capacity) = node(this);
    let (prev_load, prev_capacity) = node(prev);
    if sync {
        this_load = (this_load - current_load(view, wakeup) as i64).max(0);
    }
    if this_load > 0 {
        let task_load = view.task_h_load(wakeup.task) as i64;
        let this_effective = 100 * prev_capacity * (this_load + task_load);
        let bias = 100 + (i64::from(sd.imbalance_pct) - 100) / 2;
        let prev_effective = bias * this_capacity * (prev_load - task_load);
        if this_effective > prev_effective {
            return (Reason::WaWeightPrev, prev);
        }
    }
    (Reason::WaNodeLoad, this)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::{check_all, check_wakeup};

    #[test]
    fn an_idle_previous_cpu_is_kept_since_v5_12() {
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker",
            expect![[r#"
            v4.13: cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0
            v5.5: cpu 2, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 2, remote
            v5.18..v7.3: cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2, remote"#]],
        );
        check_wakeup(
            "v5.5+WA_PREV_IDLE",
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker",
            expect!["cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2, remote"],
        );
        check_wakeup(
            "v6.12+NO_WA_PREV_IDLE",
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker",
            expect!["cpu 2, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 2, remote"],
        );
    }

    #[test]
    fn a_synchronous_waker_alone_pulls() {
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[a*] 3[]",
            "wake x prev=2 waker=waker sync",
            expect![[r#"
            v4.13: cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0
            v5.5: cpu 1, IDLE_CPU, examined 2, WA_SYNC 0
            v5.18: cpu 1, IDLE_CPU, examined 1, WA_SYNC 0
            v6.1..v7.3: cpu 1, IDLE_CPU, examined 1, WA_SYNC 0, remote"#]],
        );
        check_wakeup(
            "v6.12+NO_WA_IDLE",
            "llc0: 0[waker*] 1[] llc1: 2[a*] 3[]",
            "wake x prev=2 waker=waker sync",
            expect!["cpu 1, IDLE_CPU, examined 1, WA_WEIGHT 0, remote"],
        );
    }

    #[test]
    fn but_not_on_its_way_out() {
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[a*] 3[]",
            "wake x prev=2 waker=waker sync exiting",
            expect![[r#"
                v4.13: cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0
                v5.5: cpu 1, IDLE_CPU, examined 2, WA_WEIGHT 0
                v5.18: cpu 1, IDLE_CPU, examined 1, WA_WEIGHT 0
                v6.1..v7.3: cpu 1, IDLE_CPU, examined 1, WA_WEIGHT 0, remote"#]],
        );
        check_wakeup(
            "v6.12+NO_SYNC_WAKER_EXITING",
            "llc0: 0[waker*] 1[] llc1: 2[a*] 3[]",
            "wake x prev=2 waker=waker sync exiting",
            expect!["cpu 1, IDLE_CPU, examined 1, WA_SYNC 0, remote"],
        );
    }

    #[test]
    fn delayed_tasks_do_not_keep_it_company_since_v6_12() {
        check_wakeup(
            "v6.12",
            "llc0: 0[waker* asleep ; delayed=1] 1[] llc1: 2[a*] 3[]",
            "wake x prev=2 waker=waker sync",
            expect!["cpu 1, IDLE_CPU, examined 1, WA_SYNC 0, remote"],
        );
        check_wakeup(
            "v6.12+NO_SYNC_MINUS_DELAYED",
            "llc0: 0[waker* asleep ; delayed=1] 1[] llc1: 2[a*] 3[]",
            "wake x prev=2 waker=waker sync",
            expect!["cpu 1, IDLE_CPU, examined 1, WA_WEIGHT 0, remote"],
        );
    }

    #[test]
    fn an_interrupt_on_an_idle_cpu_pulls_within_the_cache() {
        check_all(
            "llc0: 0[] 1[a*] 2[b*]",
            "wake x prev=1 this=0",
            expect![[r#"
            v4.13: cpu 0, TARGET_IDLE, examined 0, WA_SHARE_CACHE 0
            v5.5..v7.3: cpu 0, TARGET_IDLE, examined 0, WA_THIS_IDLE 0"#]],
        );
        check_all(
            "llc0: 0[] 1[] 2[b*]",
            "wake x prev=1 this=0",
            expect![[r#"
            v4.13: cpu 0, TARGET_IDLE, examined 0, WA_SHARE_CACHE 0
            v5.5..v5.18: cpu 1, TARGET_IDLE, examined 0, WA_PREV_IDLE 1
            v6.1..v7.3: cpu 1, TARGET_IDLE, examined 0, WA_PREV_IDLE 1, remote"#]],
        );
        check_all(
            "llc0: 0[] 1[] llc1: 2[a*] 3[b*]",
            "wake x prev=2 this=0",
            expect![[r#"
            v4.13: cpu 0, TARGET_IDLE, examined 0, WA_NODE_LOAD 0
            v5.5..v7.3: cpu 0, TARGET_IDLE, examined 0, WA_WEIGHT 0"#]],
        );
    }

    #[test]
    fn the_lighter_cpu_wins() {
        check_all(
            "llc0: 0[waker* ; load=100] 1[a*] llc1: 2[b* ; load=3000] 3[c*]",
            "wake x prev=2 waker=waker load=500",
            expect![[r#"
                v4.13: cpu 2, NO_IDLE_CPU, examined 2, WA_WEIGHT_PREV 2, remote
                v5.5..v7.3: cpu 0, NO_IDLE_CPU, examined 2, WA_WEIGHT 0"#]],
        );
        check_all(
            "llc0: 0[waker* ; load=3000] 1[a*] llc1: 2[b* ; load=600] 3[c*]",
            "wake x prev=2 waker=waker load=500",
            expect!["v4.13..v7.3: cpu 2, NO_IDLE_CPU, examined 2, WA_WEIGHT_PREV 2, remote"],
        );
    }

    #[test]
    fn half_the_imbalance_percentage_is_allowed_for() {
        check_wakeup(
            "v6.12",
            "llc0: 0[waker* ; load=1000] 1[a*] llc1: 2[b* ; load=1380] 3[c*]",
            "wake x prev=2 waker=waker load=200",
            expect!["cpu 0, NO_IDLE_CPU, examined 2, WA_WEIGHT 0"],
        );
        check_wakeup(
            "v6.12+NO_WA_BIAS",
            "llc0: 0[waker* ; load=1000] 1[a*] llc1: 2[b* ; load=1380] 3[c*]",
            "wake x prev=2 waker=waker load=200",
            expect!["cpu 2, NO_IDLE_CPU, examined 2, WA_WEIGHT_PREV 2, remote"],
        );
        check_wakeup(
            "v6.12+NO_WA_WEIGHT",
            "llc0: 0[waker* ; load=1000] 1[a*] llc1: 2[b* ; load=1380] 3[c*]",
            "wake x prev=2 waker=waker load=200",
            expect!["cpu 2, NO_IDLE_CPU, examined 2, WA_WEIGHT_PREV 2, remote"],
        );
    }

    #[test]
    fn a_cpu_that_lost_capacity_weighs_more() {
        check_wakeup(
            "v6.12",
            "llc0: 0[waker* ; load=1000 capacity=1024] 1[a*] llc1: 2[b* ; load=1000 capacity=700] 3[c*]",
            "wake x prev=2 waker=waker load=10",
            expect!["cpu 0, NO_IDLE_CPU, examined 2, WA_WEIGHT 0"],
        );
        check_wakeup(
            "v6.12",
            "llc0: 0[waker* ; load=1000 capacity=700] 1[a*] llc1: 2[b* ; load=1000 capacity=1024] 3[c*]",
            "wake x prev=2 waker=waker load=10",
            expect!["cpu 2, NO_IDLE_CPU, examined 2, WA_WEIGHT_PREV 2, remote"],
        );
    }

    #[test]
    fn the_nodes_of_v4_13_are_compared_whole() {
        check_wakeup(
            "v4.13",
            "node0 llc0: 0[waker* ; load=1000] 1[a* ; load=900] node1 llc1: 2[b* ; load=1500] 3[c* ; load=2000]",
            "wake x prev=2 waker=waker load=500",
            expect!["cpu 0, NO_IDLE_CPU, examined 2, WA_NODE_LOAD 0"],
        );
        check_wakeup(
            "v4.13",
            "node0 llc0: 0[waker* ; load=1000] 1[a* ; load=1900] node1 llc1: 2[b* ; load=1500] 3[c* ; load=1000]",
            "wake x prev=2 waker=waker load=500",
            expect!["cpu 2, NO_IDLE_CPU, examined 2, WA_WEIGHT_PREV 2, remote"],
        );
        check_wakeup(
            "v4.13",
            "node0 llc0: 0[waker* ; load=1000] 1[] node1 llc1: 2[b* ; load=1500] 3[c* ; load=1000]",
            "wake x prev=2 waker=waker load=500 sync",
            expect!["cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0"],
        );
    }

    #[test]
    fn nobody_pulls_where_it_may_not_run() {
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[a*] 3[]",
            "wake x prev=2 waker=waker sync allowed=1-3",
            expect![[r#"
                v4.13..v5.5: cpu 3, IDLE_CPU, examined 2, remote
                v5.18..v7.3: cpu 3, IDLE_CPU, examined 1, remote"#]],
        );
    }

    #[test]
    fn nor_over_a_distance_beyond_reclaim() {
        check_wakeup(
            "v6.12",
            "2x1x2:distance=10/32 | 0[waker*] 2[a*]",
            "wake x prev=2 waker=waker sync",
            expect!["cpu 3, IDLE_CPU, examined 1, remote"],
        );
    }
}
