//! One balance pass over a domain, on behalf of one CPU.
//!
//! The pass decides everything without touching the state: which group, which CPU, which tasks in which order, whether
//! the stopper must help, and how the domain's failure count and interval change. If the kernel repeats its search
//! because all tasks it found were bound elsewhere, the pass does so on its own notes. A task that it detaches changes
//! the loads of those that it examines next, so [`Sched::decide_and_balance`] takes each off before the pass goes on.
//!
//! Passes of several CPUs never overlap here, so the lock of NUMA balancing (SD_SERIALIZE) is always free;
//! the attempt to take it is an effect.

use core::ops::ControlFlow;

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::env::{LbEnv, Notes, SCHED_NR_MIGRATE_BREAK};
use super::find_busiest_group::Balanced;
use super::{BalanceDecision, MigrationType, Step};
use crate::{
    ActiveBalance, BalanceModel, Curr, Effect, Feature, IdleType, PinnedMark, Reason, Sched, SdFlags, SdId,
    SgId, Shared, View,
};

/// Longest interval between passes when all tasks are bound, ms.
const MAX_PINNED_INTERVAL: u64 = 512;

/// How a pass ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// out_balanced.
    Balanced,
    /// out_all_pinned.
    AllPinned,
    /// out_one_pinned.
    OnePinned,
    /// out.
    Done,
}

impl Sched {
    /// Makes one pass: updates the local group's capacity, and in some kernels the load of idle CPUs, decides
    /// and applies.
    ///
    /// Kernel: load_balance(), kernel/sched/fair.c, v6.1; sched_balance_rq() from v6.10 on.
    pub fn load_balance(&mut self, cpu: CpuId, sd: SdId, idle: IdleType, now: Time) -> BalanceDecision {
        if self.should_we_balance(cpu, sd, idle, now) {
            let serializes = self.domains.sd(sd).flags.has(SdFlags::SERIALIZE) && idle != IdleType::NewlyIdle;
            let serializes = serializes && self.kernel.has(Feature::SerializeInside);
            if self.refreshes_capacity(sd, idle, now) {
                self.update_group_capacity(sd, now);
            }
            if idle == IdleType::NewlyIdle {
                self.age_idle_before_pass(cpu, sd, now);
            }
            self.update_group_sums();
            if serializes {
                self.effects.push(Effect::write(cpu, Shared::Serialize));
            }
        }
        self.mover.balance(self, cpu, sd, idle, now)
    }

    /// Decides one pass.
    ///
    /// Kernel: load_balance(), kernel/sched/fair.c, v4.13 to v7.2.
    pub fn decide_balance(&self, cpu: CpuId, sd: SdId, idle: IdleType, now: Time) -> BalanceDecision {
        View::new(self, now, None).decide_balance(cpu, sd, idle)
    }
}

impl View<'_> {
    /// Decides one pass from the state that the window shows.
    pub fn decide_balance(self, cpu: CpuId, sd: SdId, idle: IdleType) -> BalanceDecision {
        let decided = LbEnv::of(self, cpu, sd, idle).decide();
        decided.break_value().expect("it stops only if it was asked to")
    }
}

impl LbEnv<'_> {
    /// Decides the pass, or up to the next candidate if a task must be taken off before.
    pub(super) fn decide(mut self) -> ControlFlow<BalanceDecision, Notes> {
        let selective = self.sched.kernel.rules.active_balance == ActiveBalance::UnevenTasks;
        let (mut end, reason, number) = loop {
            // A pass that goes on has its source.
            if !self.waits {
                if !self.should_we_balance() {
                    self.decision.continue_balancing = false;
                    break (End::Balanced, Reason::LbNotUs, None);
                }
                let group = match self.find_busiest_group() {
                    Ok(group) => group,
                    // None of the remaining CPUs is busy: tasks found before were bound.
                    Err(_) if self.flags.all_pinned => break (End::Balanced, Reason::LbAllPinned, None),
                    Err((reason, number)) => break (End::Balanced, reason, number),
                };
                self.decision.busiest = Some(group);
                let Some(src) = self.find_busiest_queue(group) else {
                    break (End::Balanced, Reason::LbNoQueue, Some(("imbalance", self.imbalance)));
                };
                self.decision.src = Some(src);
                self.decision.imbalance = self.imbalance;
                self.src_cpu = src;
                self.flags.all_pinned |= selective;
            }
            let (src, number) = (self.src_cpu, Some(("imbalance", self.decision.imbalance)));
            if self.waits || self.sched.rqs[src].nr_running > 1 {
                if self.waits {
                    self.go_on();
                } else {
                    self.flags.all_pinned = true;
                    self.begin_source();
                    self.decision.sources.push(src);
                }
                if !self.move_tasks() {
                    return ControlFlow::Continue(self.notes);
                }
                if self.sd.parent.is_some() && self.flags.some_pinned && self.imbalance > 0 {
                    self.decision.group_imbalance = Some(true);
                }
                if self.flags.all_pinned {
                    self.without.push(src);
                    if self
                        .sd
                        .span
                        .iter()
                        .any(|cpu| self.takes_part(cpu) && !self.dst_grpmask().contains(cpu))
                    {
                        continue;
                    }
                    break (End::AllPinned, Reason::LbAllPinned, number);
                }
            }
            let reason = if self.decision.moved > 0 { self.moved_reason() } else { Reason::LbNothingMovable };
            break (End::Done, reason, number);
        };
        (self.decision.reason, self.decision.number) = (reason, number);
        if end == End::Done {
            end = self.after_moving();
        }
        self.set_interval(end);
        let mut decision = self.notes.decision;
        decision.migration_type = self.notes.migration_type;
        decision.examined = self.notes.examined.get();
        ControlFlow::Break(decision)
    }

    fn find_busiest_group(&mut self) -> Result<SgId, Balanced> {
        match self.sched.kernel.rules.balance_model {
            BalanceModel::Load => self.find_busiest_group_by_load(),
            BalanceModel::Types => self.find_busiest_group_by_type(),
        }
    }

    /// Detaches tasks from the source, for the destination and then for its neighbours to which tasks are bound.
    /// Returns false if it stops before that is done.
    fn move_tasks(&mut self) -> bool {
        loop {
            if !self.detach_tasks() {
                return false;
            }
            let detached = core::mem::take(&mut self.detached);
            if detached > 0 {
                let to = self.dst_cpu;
                self.decision.steps.push(Step::Attach { to });
                self.dst_nr_running += detached;
                self.decision.moved += detached;
            }
            if self.flags.need_break {
                self.flags.need_break = false;
                // If passes continue until they find a movable task, they end once all tasks were examined.
                let ends = self.sched.kernel.has(Feature::DetachAtLeastOne);
                if !ends || self.loops < self.src_nr_running {
                    continue;
                }
            }
            if !self.flags.dst_pinned || self.imbalance <= 0 {
                return true;
            }
            let dst = self.dst_cpu;
            self.without.push(dst);
            self.dst_cpu = self.new_dst_cpu;
            self.dst_nr_running = self.sched.rqs[self.dst_cpu].nr_running;
            self.flags.dst_pinned = false;
            self.loops = 0;
            self.loop_break = SCHED_NR_MIGRATE_BREAK;
        }
    }

    fn moved_reason(&self) -> Reason {
        match self.migration_type {
            MigrationType::Load => Reason::LbLoad,
            MigrationType::Util => Reason::LbUtil,
            MigrationType::Task => Reason::LbTask,
            MigrationType::Misfit => Reason::LbMisfit,
            MigrationType::LlcTask => Reason::LbLlc,
        }
    }

    /// Counts a failure, requests the stopper, resets the interval.
    fn after_moving(&mut self) -> End {
        let sched = self.sched;
        let any_failure = sched.kernel.rules.active_balance == ActiveBalance::AnyFailure;
        if self.decision.moved > 0 {
            self.nr_balance_failed = 0;
        } else {
            let misfit =
                self.migration_type == MigrationType::Misfit && sched.kernel.has(Feature::MisfitNoBackoff);
            if self.idle != IdleType::NewlyIdle && !misfit && !self.flags.llc_pinned {
                self.nr_balance_failed += 1;
            }
            if self.need_active_balance() {
                let may_move = match sched.rqs[self.src_cpu].curr {
                    Curr::Idle => false,
                    Curr::Task(curr) => sched.task(curr).allowed.contains(self.this_cpu),
                };
                if !may_move {
                    self.flags.all_pinned |= any_failure;
                    self.decision.reason = Reason::LbRunningPinned;
                    self.decision.nr_balance_failed = self.nr_balance_failed;
                    return End::OnePinned;
                }
                self.flags.all_pinned = false;
                self.decision.active = !sched.rqs[self.src_cpu].active_balance;
                if self.decision.active {
                    self.decision.active_llc = self.migration_type == MigrationType::LlcTask;
                    self.decision.reason = Reason::LbActive;
                }
                if any_failure {
                    self.nr_balance_failed = self.sd.cache_nice_tries + 1;
                }
            }
        }
        self.decision.nr_balance_failed = self.nr_balance_failed;
        let by_load = sched.kernel.rules.balance_model == BalanceModel::Load;
        let go_on = if any_failure { !by_load && self.voluntary() } else { self.need_active_balance() };
        if !self.decision.active || go_on {
            self.decision.balance_interval = self.sd.min_interval;
        } else if any_failure && self.sd.balance_interval < self.sd.max_interval {
            self.decision.balance_interval *= 2;
        }
        End::Done
    }

    /// Sets marks, failures and the interval after a pass that found the domain balanced, or all tasks bound.
    fn set_interval(&mut self, end: End) {
        if end == End::Done {
            return;
        }
        let sched = self.sched;
        let kernel = &sched.kernel;
        let stays = self.flags.all_pinned && kernel.rules.pinned_mark == PinnedMark::Stays;
        if end == End::Balanced && self.sd.parent.is_some() && !stays {
            self.decision.group_imbalance = Some(false);
        }
        if end != End::OnePinned {
            self.decision.nr_balance_failed = 0;
        }
        // A pass found nothing: the next may come later. Newly idle passes are frequent and would soon make the
        // interval very long.
        let newidle = self.idle == IdleType::NewlyIdle && kernel.has(Feature::NewidleKeepsInterval);
        let misfit = self.migration_type == MigrationType::Misfit && kernel.has(Feature::MisfitNoBackoff);
        if newidle || misfit {
            return;
        }
        let interval = self.sd.balance_interval;
        if self.flags.all_pinned && interval < MAX_PINNED_INTERVAL || interval < self.sd.max_interval {
            self.decision.balance_interval = 2 * interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::{Expect, expect};

    use crate::balance::drawings::Pass;
    use crate::drawing::{NOW, by_kernel};
    use crate::{Access, Effect, SdId, Shared};

    /// Failures and interval before and after one pass, and the mark of the parent's group.
    #[track_caller]
    fn check_after(drawing: &str, words: &str, expected: Expect) {
        expected.assert_eq(&by_kernel("", |kernel| {
            let pass = Pass::new(kernel, drawing, words);
            let sched = &pass.drawn.sched;
            let sd = sched.domains.sd(pass.sd);
            let d = sched.decide_balance(pass.cpu, pass.sd, pass.idle, NOW);
            format!(
                "{} failed {}->{} interval {}->{} of {}-{}, mark {:?}, go on {}",
                d.reason.name(),
                sd.nr_balance_failed,
                d.nr_balance_failed,
                sd.balance_interval,
                d.balance_interval,
                sd.min_interval,
                sd.max_interval,
                d.group_imbalance,
                d.continue_balancing,
            )
        }));
    }

    #[test]
    fn a_pass_that_moves_ends_failures() {
        check_after(
            "1x1x4 | 0[a* b c] 1[]",
            "cpu=1 idle failed=1",
            expect![[r#"
                v4.13: LB_IDLE_EVEN failed 1->0 interval 4->8 of 4-8, mark None, go on true
                v5.5..v7.3: LB_TASK failed 1->0 interval 4->4 of 4-8, mark None, go on true"#]],
        );
    }

    #[test]
    fn a_pass_that_finds_nothing_comes_less_often() {
        check_after(
            "1x1x4 | 0[] 1[]",
            "cpu=1 idle failed=1",
            expect!["v4.13..v7.3: LB_NO_BUSIEST failed 1->0 interval 4->8 of 4-8, mark None, go on true"],
        );
    }

    #[test]
    fn a_newly_idle_one_does_not() {
        check_after(
            "1x1x4 | 0[] 1[]",
            "cpu=1 newidle failed=1",
            expect![[r#"
                v4.13: LB_NO_BUSIEST failed 1->0 interval 4->8 of 4-8, mark None, go on true
                v5.5..v7.3: LB_NO_BUSIEST failed 1->0 interval 4->4 of 4-8, mark None, go on true"#]],
        );
    }

    #[test]
    fn a_pass_that_should_but_cannot_move_has_failed() {
        check_after(
            "1x1x4 | 0[a* b] 1[]",
            "cpu=1 idle hot:b",
            expect![[r#"
                v4.13: LB_IDLE_EVEN failed 0->0 interval 4->8 of 4-8, mark None, go on true
                v5.5..v7.3: LB_NOTHING_MOVABLE failed 0->1 interval 4->4 of 4-8, mark None, go on true"#]],
        );
    }

    #[test]
    fn a_newly_idle_one_has_not() {
        check_after(
            "1x1x4 | 0[a* b] 1[]",
            "cpu=1 newidle hot:b",
            expect![
                "v4.13..v7.3: LB_NOTHING_MOVABLE failed 0->0 interval 4->4 of 4-8, mark None, go on true"
            ],
        );
    }

    #[test]
    fn bound_tasks_mark_the_group_above() {
        check_after(
            "2x1x2 | 0[a* b] 1[]",
            "cpu=1 idle bind:b=0",
            expect![[r#"
                v4.13: LB_IDLE_EVEN failed 0->0 interval 2->4 of 2-4, mark Some(false), go on true
                v5.5..v7.3: LB_NOTHING_MOVABLE failed 0->1 interval 2->2 of 2-4, mark Some(true), go on true"#]],
        );
    }

    #[test]
    fn a_balanced_pass_takes_the_mark_off() {
        check_after(
            "2x1x2 | 0[a*] 1[]",
            "cpu=1 idle",
            expect![[r#"
                v4.13: LB_IDLE_EVEN failed 0->0 interval 2->4 of 2-4, mark Some(false), go on true
                v5.5..v7.3: LB_ONE_TASK failed 0->0 interval 2->4 of 2-4, mark Some(false), go on true"#]],
        );
    }

    #[test]
    fn not_if_all_it_met_was_bound() {
        check_after(
            "2x1x2 | 0[a* b] 1[]",
            "cpu=1 idle bind:a=0 bind:b=0",
            expect![[r#"
                v4.13: LB_IDLE_EVEN failed 0->0 interval 2->4 of 2-4, mark Some(false), go on true
                v5.5..v7.3: LB_ALL_PINNED failed 0->0 interval 2->4 of 2-4, mark Some(true), go on true"#]],
        );
    }

    #[test]
    fn but_when_nobody_is_left_to_ask_v4_13_takes_it_off() {
        check_after(
            "2x1x4 | 0[a* b c ;util=1000] 1[] 2[] 3[]",
            "cpu=1 newidle bind:a=0 bind:b=0 bind:c=0",
            expect![[r#"
                v4.13: LB_ALL_PINNED failed 0->0 interval 4->8 of 4-8, mark Some(false), go on true
                v5.5..v7.3: LB_ALL_PINNED failed 0->0 interval 4->4 of 4-8, mark Some(true), go on true"#]],
        );
    }

    #[test]
    fn the_stopper_makes_old_kernels_back_off() {
        check_after(
            "1x2x2 | 0[] 1[] 2[a*] 3[b*]",
            "cpu=0 idle level=1 failed=4",
            expect![[r#"
                v4.13..v5.5: LB_ACTIVE failed 4->2 interval 4->8 of 4-8, mark None, go on true
                v5.18..v7.3: LB_ACTIVE failed 4->5 interval 4->4 of 4-8, mark None, go on true"#]],
        );
    }

    #[test]
    fn another_cpu_of_the_group_ends_the_round() {
        check_after(
            "2x1x2 | 0[] 1[a*] 2[b* c]",
            "cpu=1 busy level=1 failed=1",
            expect!["v4.13..v7.3: LB_NOT_US failed 1->0 interval 4->8 of 4-8, mark None, go on false"],
        );
    }

    #[test]
    fn a_pass_is_applied() {
        let mut pass = Pass::new(
            "v6.12",
            "1x2x2 | 0[a* b c d e f] 1[] 2[] 3[]",
            "cpu=2 idle level=1 bind:c=0,3 bind:b=0,3",
        );
        pass.drawn.sched.balance_log = Some(alloc::vec::Vec::new());
        let decision = pass.drawn.sched.load_balance(pass.cpu, pass.sd, pass.idle, NOW);
        expect!["LB_TASK task 3 from 0, b NotAllowed, c NotAllowed, d to 2, e to 2, f to 2"]
            .assert_eq(&pass.words(&decision));
        expect!["0[a* b c] 1[] 2[d e f] 3[]"].assert_eq(&super::super::drawings::queues(&pass.drawn));
        let sched = &pass.drawn.sched;
        let of_tasks = |how| {
            let touched =
                |e: &&Effect| matches!(e, Effect::Touch { what: Shared::Task(_), how: h, .. } if *h == how);
            sched.effects.iter().filter(touched).count()
        };
        assert_eq!(
            [of_tasks(Access::Read), of_tasks(Access::Write)],
            [2, 3],
            "candidates are looked at, moved ones written"
        );
        let others =
            |e: &&Effect| !matches!(e, Effect::Migrated { .. } | Effect::Touch { what: Shared::Task(_), .. });
        let effects = sched.effects.iter().filter(others);
        let effects: alloc::vec::Vec<_> = effects.copied().collect();
        let [cpu0, cpu2] = [0, 2].map(schedlab_topology::CpuId);
        assert_eq!(
            effects,
            [
                Effect::lock(cpu2, Shared::Rq(cpu0)),
                Effect::lock(cpu2, Shared::Rq(cpu2)),
                Effect::Resched { cpu: cpu2, lazy: false },
                Effect::Balanced { cpu: cpu2, examined: 6, moved: 3 },
            ]
        );
        let log = sched.balance_log.as_ref().unwrap();
        let groups: alloc::vec::Vec<_> = log[0]
            .groups
            .iter()
            .map(|g| format!("{} {}", sched.domains.sg(g.group).span, g.stats.group_type.name()))
            .collect();
        expect!["2-3 has_spare, 0-1 has_spare"].assert_eq(&groups.join(", "));
        let list: alloc::vec::Vec<_> = sched.cfs_tasks(schedlab_topology::CpuId(0)).collect();
        let order: alloc::vec::Vec<_> = list
            .iter()
            .map(|t| pass.drawn.tasks.iter().find(|(_, id)| *id == t).unwrap().0.as_str())
            .collect();
        expect!["c b a"].assert_eq(&order.join(" "));
        assert_eq!(sched.domains.sd(SdId(pass.sd.0)).nr_balance_failed, 0);
    }

    #[test]
    fn a_misfit_task_that_cannot_be_moved_is_no_failure() {
        // v4.13 has no misfit tasks.
        let failed = |kernel: &str| {
            let mut pass = Pass::new(
                kernel,
                "1x1x4:capacity=0-1/446 | 0[a*] 1[] 2[] 3[]",
                "cpu=2 idle util:a=400 bind:a=0-1",
            );
            pass.drawn.sched.rqs[schedlab_topology::CpuId(0)].misfit_task_load = 1024;
            let d = pass.drawn.sched.decide_balance(pass.cpu, pass.sd, pass.idle, NOW);
            let before = pass.drawn.sched.domains.sd(pass.sd).balance_interval;
            let failed = d.nr_balance_failed;
            format!("{}, failed 0->{failed}, interval {before}->{}", d.reason.name(), d.balance_interval)
        };
        expect![[r#"
            v4.13: LB_IDLE_EVEN, failed 0->0, interval 4->8
            v5.5..v6.3: LB_RUNNING_PINNED, failed 0->1, interval 4->8
            v6.10..v7.3: LB_RUNNING_PINNED, failed 0->0, interval 4->4"#]]
        .assert_eq(&by_kernel("", failed));
    }

    #[test]
    fn the_clock_of_the_source_is_read_though_nothing_can_be_moved() {
        let mut pass = Pass::new("v6.12", "1x1x4 | 0[a* b] 1[] 2[c*] 3[]", "cpu=1 idle bind:b=0 bind:a=0");
        let later = schedlab_units::Time(NOW.0 + 1_000);
        pass.drawn.sched.load_balance(pass.cpu, pass.sd, pass.idle, later);
        let clocks = [0, 2].map(|cpu| pass.drawn.sched.rqs[schedlab_topology::CpuId(cpu)].clock - NOW.0);
        assert_eq!(clocks, [1_000, 0]);
    }
}
