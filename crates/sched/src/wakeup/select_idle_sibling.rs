//! An idle CPU near the target.
//!
//! In order: the target itself, the previous CPU, the CPU of a kthread about to sleep, a recently used CPU, then a
//! search of the target's last-level cache. The first suitable CPU is taken; if there is none, the task queues at the
//! target.

use schedlab_topology::{CpuId, CpuMask};

use crate::{
    AsymFits, Feature, IdleCoreSearch, IdleSmt, Placement, Reason, RecentUsedCpu, Refused, SchedDomain, SeId,
    View,
};

use super::reduced_capacity::Backup;
use super::util_fits_cpu::asym_fits_cpu;
use super::{Wakeup, kthread_stack};

/// Chooses a CPU for the wakee, around `target`, which is `prev` or the waker's CPU.
///
/// Kernel: select_idle_sibling(), kernel/sched/fair.c, v7.2, v6.12, v5.18, v5.5, v4.13.
pub fn select_idle_sibling(view: &View, wakeup: &Wakeup, prev: CpuId, target: CpuId) -> Placement {
    let (sched, task) = (view.sched, wakeup.task);
    let syncs = sched.domains.asym_active && view.kernel().rules.asym_fits != AsymFits::Off;
    let search = Search {
        view,
        wakeup,
        util: if syncs { sched.or_estimate(task, sched.synced_util_avg(SeId(task.0))) } else { 0 },
        allowed: &view.sched.task(wakeup.task).allowed,
        has_idle_policy: view.sched.task(wakeup.task).has_idle_policy(),
        capacity: view.kernel().has(Feature::SisCapacity).then(Backup::default),
    };
    let mut effects = Effects::default();
    let (cpu, reason) = search.run(prev, target, &mut effects);
    let mut placement = Placement::new(cpu, reason);
    placement.examined = view.examined();
    placement.number = view.number();
    placement.syncs = syncs;
    placement.recent_used_cpu = effects.recent_used_cpu;
    placement.clear_idle_cores = effects.clear_idle_cores;
    placement.scan_to_account = effects.scan_to_account;
    placement
}

/// Side effects of a search.
#[derive(Default)]
pub(super) struct Effects {
    pub(super) recent_used_cpu: Option<CpuId>,
    pub(super) clear_idle_cores: Option<CpuId>,
    pub(super) scan_to_account: Option<u32>,
}

/// One search, with the data that all its steps need.
pub(super) struct Search<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) wakeup: &'a Wakeup,
    /// The wakee's utilisation, if CPUs differ.
    pub(super) util: u64,
    pub(super) allowed: &'a CpuMask,
    pub(super) has_idle_policy: bool,
    /// SIS_CAPACITY: idle CPUs that were passed over for lack of capacity.
    pub(super) capacity: Option<Backup>,
}

impl Search<'_> {
    fn run(&self, prev: CpuId, target: CpuId, effects: &mut Effects) -> (CpuId, Reason) {
        let (view, sched, kernel) = (self.view, self.view.sched, self.view.kernel());
        if self.takes(target) && self.fits(target) {
            return (target, Reason::TargetIdle);
        }
        let share = |cpu| sched.cpus_share_cache(cpu, target);
        let cluster = kernel.has(Feature::SisCluster) && sched.domains.cluster_active;
        let other_cluster = |cpu| cluster && !sched.cpus_share_resources(cpu, target);
        let mut kept_prev = None;
        if prev != target {
            if !share(prev) {
                view.refuse(prev, Refused::OtherLlc);
            } else if self.takes(prev) && self.fits(prev) {
                if !other_cluster(prev) {
                    return (prev, Reason::PrevIdle);
                }
                view.refuse(prev, Refused::OtherCluster);
                kept_prev = Some(prev);
            }
        }
        if kernel.has(Feature::SisKthreadStack)
            && kthread_stack::may_stack(view, self.wakeup, prev)
            && self.fits(prev)
        {
            return (prev, Reason::KthreadStack);
        }
        let mut kept_recent = None;
        if let Some(recent) = self.recent_used_cpu(prev, target, effects) {
            if !other_cluster(recent) {
                if kernel.rules.recent_used_cpu == RecentUsedCpu::Waker {
                    effects.recent_used_cpu = Some(prev);
                }
                return (recent, Reason::RecentUsedCpu);
            }
            view.refuse(recent, Refused::OtherCluster);
            kept_recent = Some(recent);
        }
        if kernel.rules.asym_fits != AsymFits::Off
            && sched.domains.asym_active
            && let Some(sd) = sched.domains.per_cpu[target].asym_cpucapacity
        {
            let found = self.select_idle_capacity(sched.domains.sd(sd), target, effects);
            return found.map_or((target, Reason::AsymNone), |cpu| (cpu, Reason::AsymCapacity));
        }
        let Some(llc) = sched.domains.per_cpu[target].llc else {
            return self.best_reduced().unwrap_or((target, Reason::NoLlc));
        };
        match self.search_llc(sched.domains.sd(llc), prev, target, effects) {
            Ok(found) => found,
            Err(why) => kept_prev
                .map(|cpu| (cpu, Reason::PrevOtherCluster))
                .or(kept_recent.map(|cpu| (cpu, Reason::RecentOtherCluster)))
                .or(self.best_reduced())
                .unwrap_or((target, why)),
        }
    }

    /// The steps within the cache, in the kernel's order; otherwise the reason why no CPU was found.
    fn search_llc(
        &self,
        llc: &SchedDomain,
        prev: CpuId,
        target: CpuId,
        effects: &mut Effects,
    ) -> Result<(CpuId, Reason), Reason> {
        let (sched, rules) = (self.view.sched, &self.view.kernel().rules);
        let smt = sched.domains.smt_active;
        let has_idle_core = smt && self.view.test_idle_cores(target);
        let merged = rules.idle_core == IdleCoreSearch::Merged;
        if smt
            && rules.idle_smt == IdleSmt::PrevFirst
            && !(has_idle_core && merged)
            && sched.cpus_share_cache(prev, target)
            && let Some(cpu) = self.select_idle_smt(llc, prev)
        {
            return Ok((cpu, Reason::IdleSmt));
        }
        if has_idle_core && !merged {
            match self.select_idle_core_alone(llc, target) {
                Some(cpu) => return Ok((cpu, Reason::IdleCore)),
                None => effects.clear_idle_cores = Some(target),
            }
        }
        let why = match self.select_idle_cpu(llc, has_idle_core && merged, target, effects) {
            Ok(found) => return Ok(found),
            Err(why) => why,
        };
        if smt
            && rules.idle_smt == IdleSmt::TargetLast
            && let Some(cpu) = self.select_idle_smt(llc, target)
        {
            return Ok((cpu, Reason::IdleSmt));
        }
        Err(why)
    }

    /// The recently used CPU, if it is idle and may be taken.
    fn recent_used_cpu(&self, prev: CpuId, target: CpuId, effects: &mut Effects) -> Option<CpuId> {
        let (sched, kernel) = (self.view.sched, self.view.kernel());
        let rule = kernel.rules.recent_used_cpu;
        if rule == RecentUsedCpu::Off {
            return None;
        }
        if rule == RecentUsedCpu::Wakee {
            effects.recent_used_cpu = Some(prev);
        }
        let recent = self.view.recent_used_cpu(self.wakeup.task)?;
        if recent == prev || recent == target {
            return None;
        }
        if !sched.cpus_share_cache(recent, target) {
            self.view.refuse(recent, Refused::OtherLlc);
            return None;
        }
        // The bug tests the field after it was overwritten.
        let tested = if kernel.has(Feature::RecentCpuMaskBug) { prev } else { recent };
        if !self.takes(recent) {
            return None;
        }
        if !self.allowed.contains(tested) {
            self.view.refuse(recent, Refused::NotAllowed);
            return None;
        }
        self.fits(recent).then_some(recent)
    }

    /// Whether a CPU is idle by the kernel's idle test and has enough capacity. Records why not.
    pub(super) fn takes(&self, cpu: CpuId) -> bool {
        if !self.view.sched.choose_idle_cpu(cpu, self.has_idle_policy) {
            self.view.refuse_busy(cpu);
            return false;
        }
        self.has_capacity(cpu)
    }

    /// As [`Search::takes`], for a CPU examined in a scan, which costs time.
    pub(super) fn scans(&self, cpu: CpuId) -> bool {
        self.view.examine(cpu);
        self.takes(cpu)
    }

    /// SIS_CAPACITY: whether an idle CPU has kept its capacity; always true without the change.
    pub(super) fn has_capacity(&self, cpu: CpuId) -> bool {
        self.capacity.as_ref().is_none_or(|backup| backup.accepts(self.view, cpu))
    }

    fn best_reduced(&self) -> Option<(CpuId, Reason)> {
        Some((self.capacity.as_ref()?.best()?, Reason::BestReduced))
    }

    fn fits(&self, cpu: CpuId) -> bool {
        let fits = asym_fits_cpu(self.view, self.wakeup.task, self.util, cpu);
        if !fits {
            self.view.refuse(cpu, Refused::TooSmall);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::SeId;
    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::wakeup::Wakeup;
    use crate::wakeup::drawn::{check_all, check_passed_over, check_wakeup};

    #[test]
    fn the_target_then_the_previous_cpu() {
        check_all(
            "llc0: 0[waker*] 1[] 2[] 3[]",
            "wake x prev=2 waker=waker",
            expect![[r#"
            v4.13: cpu 2, PREV_IDLE, examined 0, WA_SHARE_CACHE 0
            v5.5: cpu 2, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 2
            v5.18: cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2
            v6.1..v7.3: cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2, remote"#]],
        );
        check_all(
            "llc0: 0[waker* a] 1[] 2[] 3[]",
            "wake x prev=2 waker=waker sync",
            expect![[r#"
            v4.13: cpu 2, PREV_IDLE, examined 0, WA_SHARE_CACHE 0
            v5.5: cpu 2, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 2
            v5.18: cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2
            v6.1..v7.3: cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2, remote"#]],
        );
    }

    #[test]
    fn where_cpus_differ_the_wakee_is_aged_after_the_affine_step() {
        let aged = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2:capacity=0/512");
            let sleeper = lab.fork("sleeper", 0, lab.spec());
            lab.run(20 * MS);
            lab.sleep(sleeper);
            lab.fork("runner", 0, lab.spec());
            lab.run(50 * MS);
            let wakeup = Wakeup {
                task: sleeper,
                waker: None,
                this_cpu: CpuId(1),
                sync: false,
                in_task: true,
                current_cpu: false,
            };
            let before = lab.sched.task(sleeper).se.avg.util_avg;
            lab.sched.sync_wakee(sleeper);
            let first = lab.sched.task(sleeper).se.avg.util_avg;
            let decision = lab.sched.decide_wakeup(&wakeup, lab.time(), None);
            let syncs = decision.placement.is_some_and(|placement| placement.syncs);
            let synced = lab.sched.synced_util_avg(SeId(sleeper.0));
            format!("aged before {}, after {syncs}, less {}", first < before, synced < before)
        });
        expect![[r#"
            v4.13..v5.5: aged before true, after false, less true
            v5.18..v7.3: aged before false, after true, less true"#]]
        .assert_eq(&aged);
    }

    #[test]
    fn a_pending_wake_up_makes_a_cpu_busy() {
        check_all(
            "llc0: 0[waker*] 1[] 2[ ; pending] 3[]",
            "wake x prev=2 waker=waker",
            expect![[r#"
            v4.13: cpu 1, IDLE_CPU, examined 2, WA_SHARE_CACHE 0
            v5.5: cpu 3, IDLE_CPU, examined 2, WA_WEIGHT_PREV 2
            v5.18: cpu 3, IDLE_CPU, examined 1, WA_WEIGHT_PREV 2
            v6.1..v7.3: cpu 3, IDLE_CPU, examined 1, WA_WEIGHT_PREV 2, remote"#]],
        );
    }

    #[test]
    fn a_recently_used_cpu_is_tried_before_the_scan() {
        check_all(
            "llc0: 0[waker*] 1[a*] 2[] 3[]",
            "wake x prev=1 waker=waker recent=3",
            expect![[r#"
            v4.13: cpu 2, IDLE_CPU, examined 3, WA_SHARE_CACHE 0
            v5.5..v5.18: cpu 3, RECENT_USED_CPU, examined 0, WA_WEIGHT 0
            v6.1..v7.3: cpu 3, RECENT_USED_CPU, examined 0, WA_WEIGHT 0, remote"#]],
        );
        check_wakeup(
            "v6.12+RECENT_USED_CPU=off",
            "llc0: 0[waker*] 1[a*] 2[] 3[]",
            "wake x prev=1 waker=waker recent=3",
            expect!["cpu 2, IDLE_CPU, examined 2, WA_WEIGHT 0, remote"],
        );
    }

    #[test]
    fn not_in_another_cache_nor_busy_nor_forbidden() {
        check_wakeup(
            "v6.12",
            "llc0: 0[waker*] 1[a*] 2[] llc1: 3[] 4[]",
            "wake x prev=1 waker=waker recent=3",
            expect!["cpu 2, IDLE_CPU, examined 2, WA_WEIGHT 0, remote"],
        );
        check_wakeup(
            "v6.12",
            "llc0: 0[waker*] 1[a*] 2[] 3[b*]",
            "wake x prev=1 waker=waker recent=3",
            expect!["cpu 2, IDLE_CPU, examined 2, WA_WEIGHT 0, remote"],
        );
        check_wakeup(
            "v6.12",
            "llc0: 0[waker*] 1[a*] 2[] 3[]",
            "wake x prev=1 waker=waker recent=3 allowed=0-2",
            expect!["cpu 2, IDLE_CPU, examined 2, WA_WEIGHT 0, remote"],
        );
    }

    #[test]
    fn the_affinity_bug_lets_it_through_to_the_fall_back() {
        check_wakeup(
            "v6.3",
            "llc0: 0[waker*] 1[a*] 2[] 3[]",
            "wake x prev=1 waker=waker recent=3 allowed=0-2",
            expect!["cpu 0, FALLBACK, examined 0, WA_WEIGHT 0"],
        );
        check_wakeup(
            "v6.3+NO_RECENT_CPU_MASK_BUG",
            "llc0: 0[waker*] 1[a*] 2[] 3[]",
            "wake x prev=1 waker=waker recent=3 allowed=0-2",
            expect!["cpu 2, IDLE_CPU, examined 2, WA_WEIGHT 0, remote"],
        );
    }

    #[test]
    fn nothing_idle_leaves_it_at_the_target() {
        check_all(
            "llc0: 0[waker*] 1[a*] 2[b*]",
            "wake x prev=1 waker=waker",
            expect![[r#"
            v4.13: cpu 0, NO_IDLE_CPU, examined 3, WA_SHARE_CACHE 0
            v5.5..v7.3: cpu 0, NO_IDLE_CPU, examined 3, WA_WEIGHT 0"#]],
        );
    }

    #[test]
    fn a_cpu_without_a_cache_domain_is_not_searched() {
        check_all(
            "llc0: 0[waker*] llc1: 1[a*] llc2: 2[]",
            "wake x prev=1 waker=waker",
            expect![[r#"
            v4.13: cpu 0, NO_LLC, examined 0, WA_NODE_LOAD 0
            v5.5..v7.3: cpu 0, NO_LLC, examined 0, WA_WEIGHT 0"#]],
        );
    }

    #[test]
    fn a_cpu_of_sched_idle_tasks_counts_as_idle_since_v5_5() {
        check_all(
            "llc0: 0[waker*] 1[idle:a*] 2[b*]",
            "wake x prev=1 waker=waker",
            expect![[r#"
            v4.13: cpu 0, NO_IDLE_CPU, examined 3, WA_SHARE_CACHE 0
            v5.5..v7.3: cpu 1, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 1"#]],
        );
        check_all(
            "llc0: 0[waker*] 1[idle:a*] 2[b*]",
            "wake idle:x prev=1 waker=waker",
            expect![[r#"
            v4.13: cpu 0, NO_IDLE_CPU, examined 3, WA_SHARE_CACHE 0
            v5.5..v6.12: cpu 1, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 1
            v7.2..v7.3: cpu 1, NO_IDLE_CPU, examined 3, WA_WEIGHT_PREV 1"#]],
        );
    }

    #[test]
    fn a_bug_of_the_caller_is_mended_by_the_fall_back() {
        check_all(
            "node0 llc0: 0[waker*] 1[] node1 llc1: 2[] 3[]",
            "wake x prev=2 waker=waker allowed=1,3",
            expect!["v4.13..v7.3: cpu 3, FALLBACK, examined 0, remote"],
        );
    }

    #[test]
    fn a_task_bound_to_one_cpu_has_no_choice() {
        check_all(
            "llc0: 0[waker*] 1[a*] 2[]",
            "wake x prev=1 waker=waker allowed=1",
            expect!["v4.13..v7.3: cpu 1, ONLY_ALLOWED, examined 0"],
        );
    }

    #[test]
    fn those_passed_over_are_listed_with_the_reason() {
        check_passed_over(
            "v6.12",
            "1x1x8:cluster=4 | 0[waker*] 1[a*] 2[ ; pending] 3[c*]",
            "wake x prev=5 waker=waker sync",
            expect![
                "cpu 4, IDLE_CPU, examined 5, WA_SYNC 0, remote; 0 Busy, 5 OtherCluster, 1 Busy, 2 WakePending, 3 Busy, 0 Busy"
            ],
        );
        check_passed_over(
            "v6.12",
            "llc0: 0[waker*] 1[a*] 2[] llc1: 3[] 4[]",
            "wake x prev=1 waker=waker recent=3",
            expect!["cpu 2, IDLE_CPU, examined 2, WA_WEIGHT 0, remote; 0 Busy, 1 Busy, 3 OtherLlc, 1 Busy"],
        );
        check_passed_over(
            "v4.13",
            "llc0: 0[waker*] 1[] 2[]",
            "wake x prev=0 waker=waker allowed=0,2",
            expect!["cpu 2, IDLE_CPU, examined 2; 0 Busy, 0 Busy, 1 NotAllowed"],
        );
    }
}
