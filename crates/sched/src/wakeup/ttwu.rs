//! try_to_wake_up: the path of a wake-up, and how it is carried out.
//!
//! Most wake-ups choose a CPU and queue the task there, directly or through the wake list of a CPU that would be
//! expensive to touch. A task that is still on its queue, or just leaving its CPU, continues where it is.

use alloc::vec::Vec;
use core::cell::RefCell;

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::{
    Candidate, Effect, EnqueueFlags, Feature, MigrationCause, Placement, Policy, PreemptDecision, Reason,
    Sched, SeId, Shared, TaskState, View, WakeCap, WakeList, WakeListOrder, wf,
};

use super::{WakePath, Wakeup, WakeupDecision};

impl View<'_> {
    /// Decides a wake-up from the state that the window shows.
    pub fn decide_wakeup(&self, wakeup: &Wakeup) -> WakeupDecision {
        let path = self.sched.wake_path(wakeup);
        if path != WakePath::Select {
            let (cpu, remote) = (self.sched.task(wakeup.task).cpu, path == WakePath::OnCpuHandover);
            return WakeupDecision { path, placement: None, cpu, remote };
        }
        let placement = self.sched.select_task_rq(self, wakeup);
        let cpu = placement.cpu;
        let remote = self.sched.ttwu_queue_cond(wakeup, cpu, false);
        WakeupDecision { path: WakePath::Select, placement: Some(placement), cpu, remote }
    }
}

impl Sched {
    /// Decides a wake-up. The CPUs that were passed over are listed if requested.
    ///
    /// On machines whose CPUs differ in capacity [`Sched::sync_wakee`] must be called first.
    ///
    /// Kernel: try_to_wake_up(), kernel/sched/core.c, v6.12, v5.5.
    pub fn decide_wakeup(
        &self,
        wakeup: &Wakeup,
        now: Time,
        passed_over: Option<&RefCell<Vec<Candidate>>>,
    ) -> WakeupDecision {
        View::new(self, now, passed_over).decide_wakeup(wakeup)
    }

    /// The path of a wake-up: whether a CPU is chosen, and if not, why.
    ///
    /// Kernel: try_to_wake_up(), kernel/sched/core.c, v6.12, v5.5.
    pub fn wake_path(&self, wakeup: &Wakeup) -> WakePath {
        let p = self.task(wakeup.task);
        if wakeup.waker == Some(wakeup.task) {
            WakePath::SelfWake
        } else if p.on_rq {
            if p.se.sched_delayed { WakePath::StillDelayed } else { WakePath::StillQueued }
        } else if p.on_cpu && self.kernel.has(Feature::TtwuOnCpu) && self.ttwu_queue_cond(wakeup, p.cpu, true)
        {
            WakePath::OnCpuHandover
        } else {
            WakePath::Select
        }
    }

    /// Whether a wake-up goes through the wake list of `cpu`; `descheduling` says that the wakee is just leaving that
    /// CPU.
    ///
    /// Kernel: ttwu_queue_cond(), kernel/sched/core.c, v6.12, v5.18; ttwu_queue(), v5.5.
    pub fn ttwu_queue_cond(&self, wakeup: &Wakeup, cpu: CpuId, descheduling: bool) -> bool {
        let rule = self.kernel.rules.wake_list;
        let rq = &self.rqs[cpu];
        if !self.kernel.has(Feature::TtwuQueue) {
            return false;
        }
        let other_llc = !self.cpus_share_cache(wakeup.this_cpu, cpu);
        match rule {
            WakeList::OtherLlc => other_llc,
            WakeList::OtherLlcOrDescheduling => {
                rq.active && cpu != wakeup.this_cpu && (other_llc || descheduling && rq.nr_running <= 1)
            }
            WakeList::OtherLlcOrIdle => {
                let p = self.task(wakeup.task);
                let at_once = p.policy == Policy::Stop && self.kernel.has(Feature::StopperAtOnce);
                // A task that fell back to a CPU may run anywhere by now.
                !at_once
                    && rq.active
                    && (!descheduling || p.allowed.contains(cpu))
                    && (other_llc || cpu != wakeup.this_cpu && rq.nr_running == 0)
            }
        }
    }
}

impl Sched {
    /// Updates the averages of a sleeper if `wake_cap()` needs them: on machines whose CPUs differ, for fair tasks
    /// that have a choice. Later kernels do it after the affine step ([`Placement::syncs`]).
    ///
    /// Kernel: wake_cap(), kernel/sched/fair.c, v5.5.
    pub fn sync_wakee(&mut self, task: TaskId) {
        let p = self.task(task);
        let asks = self.domains.asym_active && self.kernel.rules.wake_cap != WakeCap::Off;
        if asks && !p.on_rq && p.policy.is_fair() && p.nr_cpus_allowed > 1 {
            self.sync_entity_load_avg(SeId(task.0));
        }
    }

    /// Makes the updates that must come first, decides a wake-up and carries it out.
    ///
    /// Kernel: try_to_wake_up(), kernel/sched/core.c, v6.12.
    pub fn try_to_wake_up(&mut self, wakeup: &Wakeup, now: Time) -> WakeupDecision {
        self.sync_wakee(wakeup.task);
        let decision = self.decide_wakeup(wakeup, now, None);
        self.apply_wakeup(wakeup, &decision, now);
        decision
    }

    /// Carries out a decision, whatever made it. Returns whether the wakee preempts, if it was queued at once;
    /// [`Sched::task_woken`] must follow.
    ///
    /// Kernel: try_to_wake_up(), kernel/sched/core.c, v6.12, v5.5.
    pub fn apply_wakeup(
        &mut self,
        wakeup: &Wakeup,
        decision: &WakeupDecision,
        now: Time,
    ) -> Option<PreemptDecision> {
        let task = wakeup.task;
        if decision.path != WakePath::SelfWake {
            self.effects.push(Effect::write(wakeup.this_cpu, Shared::Task(task)));
        }
        let mut flags = wf::TTWU;
        if wakeup.sync {
            flags |= wf::SYNC;
        }
        if wakeup.current_cpu {
            flags |= wf::CURRENT_CPU;
        }
        match decision.path {
            WakePath::SelfWake => {
                self.task_mut(task).state = TaskState::Running;
                None
            }
            WakePath::StillQueued | WakePath::StillDelayed => self.ttwu_runnable(wakeup, flags, now),
            WakePath::OnCpuHandover => {
                self.task_mut(task).state = TaskState::Waking;
                self.ttwu_queue_wakelist(wakeup.this_cpu, task, decision.cpu, flags);
                None
            }
            WakePath::Select => {
                self.task_mut(task).state = TaskState::Waking;
                let p = self.task(task);
                if p.policy.is_fair() && p.nr_cpus_allowed > 1 {
                    flags |= wf::RQ_SELECTED;
                    self.record_wakee(wakeup, self.jiffies(now));
                }
                if let Some(placement) = &decision.placement {
                    self.apply_search(wakeup, placement, now);
                    if placement.reason == Reason::Fallback {
                        self.mover.widen_affinity(self, task, decision.cpu, now);
                    }
                }
                if self.task(task).cpu != decision.cpu {
                    flags |= wf::MIGRATED;
                    self.set_task_cpu(task, decision.cpu, MigrationCause::Wakeup, now);
                } else if self.kernel.has(Feature::WakeCpuFixup) {
                    self.task_mut(task).wake_cpu = decision.cpu;
                }
                if decision.remote {
                    self.ttwu_queue_wakelist(wakeup.this_cpu, task, decision.cpu, flags);
                    return None;
                }
                self.effects.push(Effect::lock(wakeup.this_cpu, Shared::Rq(decision.cpu)));
                Some(self.ttwu_do_activate(task, decision.cpu, flags, now))
            }
        }
    }

    /// The wakee never left its queue.
    ///
    /// Kernel: ttwu_runnable(), kernel/sched/core.c, v6.12, v6.1.
    fn ttwu_runnable(&mut self, wakeup: &Wakeup, flags: u32, now: Time) -> Option<PreemptDecision> {
        let task = wakeup.task;
        let cpu = self.task(task).cpu;
        self.effects.push(Effect::lock(wakeup.this_cpu, Shared::Rq(cpu)));
        self.update_rq_clock(cpu, now);
        if self.task(task).se.sched_delayed {
            let flags = EnqueueFlags { delayed: true, ..EnqueueFlags::default() };
            self.activate(task, cpu, flags, now);
        }
        let preempt = (!self.task(task).on_cpu).then(|| self.wakeup_preempt(cpu, task, flags));
        self.task_mut(task).state = TaskState::Running;
        preempt
    }

    /// Applies the side effects of a search: recently used CPUs, a hint that failed, the time it took.
    fn apply_search(&mut self, wakeup: &Wakeup, placement: &Placement, now: Time) {
        if placement.syncs {
            self.sync_entity_load_avg(SeId(wakeup.task.0));
        }
        if let Some(cpu) = placement.recent_used_cpu {
            self.task_mut(wakeup.task).recent_used_cpu = Some(cpu);
        }
        if let (Some(cpu), Some(waker)) = (placement.waker_recent_used_cpu, wakeup.waker) {
            self.task_mut(waker).recent_used_cpu = Some(cpu);
        }
        if let Some(cpu) = placement.clear_idle_cores {
            self.set_idle_cores(cpu, false);
        }
        if let Some(scanned) = placement.scan_to_account {
            self.account_scan(wakeup.this_cpu, scanned, now);
        }
        if placement.in_turn {
            self.rqs[wakeup.this_cpu].any_cpu = placement.cpu;
        }
    }

    /// Subtracts the cost of a scan from the idle budget and includes it in the average that bounds the next scan.
    ///
    /// Kernel: select_idle_cpu(), kernel/sched/fair.c, v4.13, v5.18.
    fn account_scan(&mut self, this: CpuId, scanned: u32, now: Time) {
        let cost = u64::from(scanned) * self.took.scan_cpu;
        let jiffies = self.jiffies(now);
        if self.kernel.has(Feature::WakeAvgIdle) {
            let rq = &mut self.rqs[this];
            let (stamp, budget) = rq.aged_wake_avg_idle(jiffies);
            (rq.wake_stamp, rq.wake_avg_idle) = (stamp, budget.saturating_sub(cost));
        }
        if let Some(llc) = self.domains.per_cpu[this].llc {
            let average = &mut self.domains.sd_mut(llc).avg_scan_cost;
            *average = average.saturating_add_signed((cost as i64 - *average as i64) / 8);
        }
    }

    /// Appends a wake-up to the wake list of a CPU, and interrupts the CPU if the list was empty.
    ///
    /// Kernel: __ttwu_queue_wakelist(), kernel/sched/core.c, v6.12; ttwu_queue_remote(), v5.5.
    fn ttwu_queue_wakelist(&mut self, by: CpuId, task: TaskId, cpu: CpuId, flags: u32) {
        self.effects.push(Effect::write(by, Shared::WakeList(cpu)));
        self.task_mut(task).wake_flags = flags & wf::MIGRATED;
        let rq = &mut self.rqs[cpu];
        rq.ttwu_pending = true;
        rq.wake_list.push(task);
        if rq.wake_list.len() == 1 {
            self.effects.push(Effect::WakeList { cpu });
        }
    }

    /// The tasks on a CPU's wake list, in the order in which it queues them.
    ///
    /// Kernel: llist_reverse_order() of sched_ttwu_pending(), kernel/sched/core.c.
    pub fn wake_list_in_turn(&self, cpu: CpuId) -> Vec<TaskId> {
        let mut list = self.rqs[cpu].wake_list.clone();
        if self.kernel.rules.wake_list_order == WakeListOrder::Lifo {
            list.reverse();
        }
        list
    }

    /// A CPU queues one of the tasks on its wake list. [`Sched::task_woken`] comes next.
    ///
    /// Kernel: sched_ttwu_pending(), kernel/sched/core.c, v6.12.
    pub fn drain_one(&mut self, task: TaskId, now: Time) -> PreemptDecision {
        let cpu = self.task(task).cpu;
        let rq = &mut self.rqs[cpu];
        rq.wake_list.retain(|&waiting| waiting != task);
        rq.ttwu_pending = !rq.wake_list.is_empty();
        let flags = self.task(task).wake_flags;
        self.ttwu_do_activate(task, cpu, flags, now)
    }

    /// Queues a woken task and checks whether it preempts.
    ///
    /// Kernel: ttwu_do_activate(), kernel/sched/core.c, v6.12; ttwu_do_wakeup(), v6.1.
    fn ttwu_do_activate(&mut self, task: TaskId, cpu: CpuId, flags: u32, now: Time) -> PreemptDecision {
        let migrated = flags & wf::MIGRATED != 0;
        self.task_mut(task).wake_flags = 0;
        self.activate(task, cpu, EnqueueFlags { wakeup: true, migrated, ..EnqueueFlags::default() }, now);
        let preempt = self.wakeup_preempt(cpu, task, flags);
        self.task_mut(task).state = TaskState::Running;
        if !self.kernel.has(Feature::AvgIdleAtSwitch) && self.rqs[cpu].idle_stamp != 0 {
            self.update_rq_avg_idle(cpu);
            if self.kernel.has(Feature::WakeAvgIdle) {
                let jiffies = self.jiffies(now);
                let rq = &mut self.rqs[cpu];
                (rq.wake_stamp, rq.wake_avg_idle) = (jiffies, rq.avg_idle / 2);
            }
        }
        preempt
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::TaskId;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::wakeup::drawn::{check_all, check_wakeup};
    use crate::{Effect, SeId, WakePath, Wakeup, WakeupDecision};

    #[test]
    fn another_cache_is_reached_over_its_wake_list() {
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker",
            expect![[r#"
            v4.13: cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0
            v5.5: cpu 2, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 2, remote
            v5.18..v7.3: cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2, remote"#]],
        );
        check_wakeup(
            "v6.12+NO_TTWU_QUEUE",
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker",
            expect!["cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2"],
        );
    }

    #[test]
    fn so_is_an_idle_cpu_of_the_same_cache_since_v5_19() {
        check_all(
            "llc0: 0[waker*] 1[] 2[]",
            "wake x prev=1 waker=waker",
            expect![[r#"
            v4.13: cpu 1, PREV_IDLE, examined 0, WA_SHARE_CACHE 0
            v5.5: cpu 1, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 1
            v5.18: cpu 1, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 1
            v6.1..v7.3: cpu 1, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 1, remote"#]],
        );
        check_all(
            "llc0: 0[waker*] 1[a*] 2[b*]",
            "wake x prev=1 waker=waker",
            expect![[r#"
            v4.13: cpu 0, NO_IDLE_CPU, examined 3, WA_SHARE_CACHE 0
            v5.5..v7.3: cpu 0, NO_IDLE_CPU, examined 3, WA_WEIGHT 0"#]],
        );
    }

    #[test]
    fn a_task_that_is_just_leaving_is_handed_to_its_own_cpu() {
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=1 waker=waker leaving",
            expect![[r#"
                v4.13: cpu 1, PREV_IDLE, examined 0, WA_SHARE_CACHE 0
                v5.5: cpu 1, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 1
                v5.18..v7.3: cpu 1, ON_CPU_HANDOVER, remote"#]],
        );
        check_all(
            "llc0: 0[waker*] 1[a] llc1: 2[] 3[]",
            "wake x prev=1 waker=waker leaving",
            expect![[r#"
                v4.13: cpu 0, NO_IDLE_CPU, examined 2, WA_SHARE_CACHE 0
                v5.5: cpu 0, NO_IDLE_CPU, examined 2, WA_WEIGHT 0
                v5.18: cpu 1, ON_CPU_HANDOVER, remote
                v6.1..v7.3: cpu 0, NO_IDLE_CPU, examined 2, WA_WEIGHT 0"#]],
        );
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker leaving",
            expect![[r#"
                v4.13: cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0
                v5.5: cpu 2, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 2, remote
                v5.18..v7.3: cpu 2, ON_CPU_HANDOVER, remote"#]],
        );
        check_wakeup(
            "v6.12+NO_TTWU_ON_CPU",
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker leaving",
            expect!["cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2, remote"],
        );
    }

    #[test]
    fn a_task_that_never_left_its_queue_stays() {
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker queued",
            expect!["v4.13..v7.3: cpu 2, STILL_QUEUED"],
        );
        check_wakeup(
            "v6.12",
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker delayed",
            expect!["cpu 2, STILL_DELAYED"],
        );
    }

    #[test]
    fn a_waker_may_ask_for_its_own_cpu_since_v6_6() {
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker here",
            expect![[r#"
            v4.13: cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0
            v5.5: cpu 2, TARGET_IDLE, examined 0, WA_WEIGHT_PREV 2, remote
            v5.18..v6.3: cpu 2, TARGET_IDLE, examined 0, WA_PREV_AVAILABLE 2, remote
            v6.10..v7.3: cpu 0, CURRENT_CPU, examined 0"#]],
        );
        check_wakeup(
            "v6.12",
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=2 waker=waker here allowed=1-3",
            expect!["cpu 2, TARGET_IDLE, examined 0, remote"],
        );
    }

    #[test]
    fn a_running_task_wakes_itself() {
        check_all(
            "llc0: 0[waker*] 1[] llc1: 2[] 3[]",
            "wake x prev=0 this=0 waker=x queued",
            expect!["v4.13..v7.3: cpu 0, WAKE_SELF"],
        );
    }

    #[test]
    fn other_classes_are_woken_where_they_were() {
        check_all(
            "llc0: 0[waker*] 1[a*]",
            "wake x prev=1 waker=waker rt",
            expect!["v4.13..v7.3: cpu 1, KEEP_CPU, examined 0"],
        );
    }

    /// Wakes `x` and `y`, which slept on CPU 2, from another cache, and lets CPU 2 process its list.
    fn drained(kernel: &str) -> String {
        let mut drawn = draw(kernel, "llc0: 0[waker*] 1[] llc1: 2[a*] 3[b*]");
        let waker = drawn.task("waker");
        for name in ["x", "y"] {
            let task = drawn.make(name, CpuId(2));
            let wakeup = Wakeup::by(waker, CpuId(0), task);
            let decision =
                WakeupDecision { path: WakePath::Select, placement: None, cpu: CpuId(2), remote: true };
            drawn.sched.apply_wakeup(&wakeup, &decision, NOW);
            assert!(!drawn.sched.idle_cpu(CpuId(2)));
        }
        let told = drawn.sched.effects.iter().filter(|effect| **effect == Effect::WakeList { cpu: CpuId(2) });
        assert_eq!(told.count(), 1, "only the first finds the list empty");
        for task in drawn.sched.wake_list_in_turn(CpuId(2)) {
            drawn.sched.drain_one(task, NOW);
        }
        assert!(!drawn.sched.rqs[CpuId(2)].ttwu_pending);
        let (x, y) = (drawn.task("x"), drawn.task("y"));
        let queued = drawn.sched.root_cfs(CpuId(2)).timeline.entries();
        let place = |task: TaskId| queued.iter().position(|entry| entry.se == SeId(task.0)).unwrap();
        if place(x) < place(y) { "x y".into() } else { "y x".into() }
    }

    #[test]
    fn a_wake_list_is_worked_off_newest_first_and_since_v5_8_oldest_first() {
        expect![[r#"
            v4.13..v5.5: y x
            v5.18..v7.3: x y"#]]
        .assert_eq(&by_kernel("", drained));
    }

    #[test]
    fn a_search_leaves_its_marks() {
        let marks = |kernel: &str| {
            let mut drawn = draw(
                kernel,
                "1x1x2x2 | 0[waker* ; wake_avg_idle=100000] 1[a*] 2[b*] 3[c*] llc0{cores cost=800}",
            );
            let x = drawn.make("x", CpuId(1));
            drawn.sched.task_mut(x).recent_used_cpu = Some(CpuId(3));
            let waker = drawn.task("waker");
            drawn.sched.try_to_wake_up(&Wakeup::by(waker, CpuId(0), x), NOW);
            let sched = &drawn.sched;
            let recent = |task| sched.task(task).recent_used_cpu.map_or(-1, |cpu| i32::from(cpu.0));
            let llc = sched.domains.sd(sched.domains.per_cpu[CpuId(0)].llc.unwrap());
            format!(
                "flips {}, recent {} {}, idle cores {}, cost {}, budget {}",
                sched.task(waker).wakee_flips,
                recent(waker),
                recent(x),
                sched.test_idle_cores(CpuId(0)),
                llc.avg_scan_cost,
                sched.rqs[CpuId(0)].wake_avg_idle,
            )
        };
        expect![[r#"
            v4.13: flips 1, recent -1 3, idle cores false, cost 709, budget 100000
            v5.5: flips 1, recent 0 3, idle cores false, cost 709, budget 100000
            v5.18..v7.3: flips 1, recent -1 1, idle cores false, cost 800, budget 100000"#]]
        .assert_eq(&by_kernel("", marks));
        expect!["flips 1, recent -1 1, idle cores false, cost 709, budget 99928"]
            .assert_eq(&marks("v5.18+IDLE_CORE=separate"));
    }

    #[test]
    fn the_average_idle_time_learns_at_the_wake_up_until_v6_12() {
        let average = |kernel: &str| {
            let mut drawn = draw(kernel, "llc0: 0[waker*] 1[ ; stamp=9999900000] 2[]");
            let x = drawn.make("x", CpuId(1));
            let waker = drawn.task("waker");
            let decision =
                WakeupDecision { path: WakePath::Select, placement: None, cpu: CpuId(1), remote: false };
            drawn.sched.apply_wakeup(&Wakeup::by(waker, CpuId(0), x), &decision, NOW);
            let rq = &drawn.sched.rqs[CpuId(1)];
            format!(
                "{} us, stamp {}, budget {} us",
                rq.avg_idle / 1000,
                rq.idle_stamp,
                rq.wake_avg_idle / 1000
            )
        };
        expect![[r#"
            v4.13..v5.5: 887 us, stamp 0, budget 1000 us
            v5.18..v6.3: 887 us, stamp 0, budget 443 us
            v6.10..v6.12: 887 us, stamp 0, budget 1000 us
            v7.2..v7.3: 1000 us, stamp 9999900000, budget 1000 us"#]]
        .assert_eq(&by_kernel("", average));
    }

    #[test]
    fn where_a_task_was_woken_the_next_wake_up_starts_since_v7_2() {
        // Something (NUMA balancing, say) has set CPU 2 as the sleeper's `wake_cpu`; it is woken where it was.
        let next_start = |kernel: &str| {
            let mut drawn = draw(kernel, "llc0: 0[waker*] 1[] 2[]");
            let x = drawn.make("x", CpuId(1));
            drawn.sched.task_mut(x).wake_cpu = CpuId(2);
            let waker = drawn.task("waker");
            let decision =
                WakeupDecision { path: WakePath::Select, placement: None, cpu: CpuId(1), remote: false };
            drawn.sched.apply_wakeup(&Wakeup::by(waker, CpuId(0), x), &decision, NOW);
            format!("cpu {}", drawn.sched.task(x).wake_cpu)
        };
        expect![[r#"
            v4.13..v6.12: cpu 2
            v7.2..v7.3: cpu 1"#]]
        .assert_eq(&by_kernel("", next_start));
    }
}
