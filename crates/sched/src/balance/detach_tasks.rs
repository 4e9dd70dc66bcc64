//! Which tasks of the source are moved.
//!
//! Candidates come from the far end of the CPU's list of fair tasks: those that ran longest ago (v5.5 on), or
//! those queued last (v4.13). A candidate that is passed over moves to the other end, so the next pass begins
//! with another one.

use schedlab_units::TaskId;

use super::env::{Detached, LbEnv, SCHED_NR_MIGRATE_BREAK};
use super::{MigrationType, NotMoved, Step};
use crate::{CandidateOrder, CfsRqId, Feature, IdleType, LoadFilter, PeltClock, SeId};

impl LbEnv<'_> {
    /// Begins with a source: the list from its far end.
    pub(super) fn begin_source(&mut self) {
        let rq = &self.sched.rqs[self.src_cpu];
        self.src_nr_running = rq.nr_running;
        self.loop_max = (self.sched.kernel.tunables.nr_migrate as u32).min(rq.nr_running);
        self.go_on();
        self.loops = 0;
        self.loop_break = SCHED_NR_MIGRATE_BREAK;
    }

    /// The candidate at the far end of the rest of the list.
    fn candidate(&mut self) -> Option<TaskId> {
        let Some(task) = self.cursor else {
            let (at, task) = self.next_skipped()?;
            self.skipped = at + 1;
            return Some(task);
        };
        self.cursor = self.following(task);
        Some(task)
    }

    /// The next candidate that was passed over, and the index of its step.
    fn next_skipped(&self) -> Option<(usize, TaskId)> {
        let steps = self.decision.steps.iter().enumerate().skip(self.skipped);
        let mut skipped = steps.filter_map(|(at, step)| match *step {
            Step::Skip { task, .. } => Some((at, task)),
            _ => None,
        });
        skipped.next()
    }

    /// The task behind another, seen from the far end.
    pub(super) fn following(&self, task: TaskId) -> Option<TaskId> {
        let entry = self.sched.task(task);
        match self.sched.kernel.rules.candidate_order {
            CandidateOrder::LeastRecentlyRun => entry.list_prev,
            CandidateOrder::NewestFirst => entry.list_next,
        }
    }

    /// Whether a candidate is left.
    fn has_candidate(&self) -> bool {
        self.cursor.is_some() || self.next_skipped().is_some()
    }

    /// The next candidate is at the far end of the list: tasks that were detached are off it, and those that were passed
    /// over are at its other end.
    pub(super) fn go_on(&mut self) {
        let (head, tail) = self.sched.rqs[self.src_cpu].cfs_tasks;
        self.cursor = match self.sched.kernel.rules.candidate_order {
            CandidateOrder::LeastRecentlyRun => tail,
            CandidateOrder::NewestFirst => head,
        };
        self.skipped = self.decision.steps.len();
        self.waits = false;
    }

    /// Detaches tasks until the imbalance is used up. Returns false if it stops before that, so that a task is taken off.
    ///
    /// Kernel: detach_tasks(), kernel/sched/fair.c, v7.2, v6.12, v5.18, v5.5 and v4.13.
    pub(super) fn detach_tasks(&mut self) -> bool {
        let kernel = &self.sched.kernel;
        let uneven = kernel.rules.active_balance == crate::ActiveBalance::UnevenTasks;
        if self.src_nr_running <= 1 && self.detached == 0 && uneven {
            self.flags.all_pinned = false;
            return true;
        }
        let one_is_enough = self.idle == IdleType::NewlyIdle && kernel.preempt.is_preemption();
        while self.imbalance > 0 && self.has_candidate() {
            // Not all: a CPU that is emptied would only pull again.
            if self.is_idle() && self.src_nr_running <= 1 {
                break;
            }
            if self.waits {
                return false;
            }
            self.loops += 1;
            let go_on = kernel.has(Feature::DetachAtLeastOne) && self.flags.all_pinned;
            if self.loops > self.loop_max && !go_on {
                break;
            }
            if self.loops > self.loop_break {
                self.loop_break += SCHED_NR_MIGRATE_BREAK;
                self.flags.need_break = true;
                break;
            }
            let task = self.candidate().expect("a candidate is left");
            match self.can_migrate_task(task).and_then(|()| self.fits_imbalance(task)) {
                Err(why) => {
                    self.decision.steps.push(Step::Skip { task, why });
                }
                Ok(amount) => {
                    self.imbalance -= amount;
                    self.detach(task);
                    if one_is_enough {
                        break;
                    }
                }
            }
        }
        true
    }

    /// How much a task reduces the imbalance, unless it is too large.
    fn fits_imbalance(&self, task: TaskId) -> Result<i64, NotMoved> {
        let sched = self.sched;
        let failed = self.failed_before;
        match self.migration_type {
            MigrationType::Load => {
                let mut load = self.task_h_load(task);
                let filter = sched.kernel.rules.load_filter;
                if filter == LoadFilter::ShiftByFailed {
                    load = load.max(1);
                }
                if sched.kernel.has(Feature::LbMin) && load < 16 && failed == 0 {
                    return Err(NotMoved::TooSmall);
                }
                let too_large = match filter {
                    LoadFilter::Half => load / 2,
                    LoadFilter::HalfUnlessFailed if failed > self.sd.cache_nice_tries => 0,
                    LoadFilter::HalfUnlessFailed => load / 2,
                    LoadFilter::ShiftByFailed => shr_bound(load, failed),
                };
                if too_large as i64 > self.imbalance { Err(NotMoved::TooLarge) } else { Ok(load as i64) }
            }
            MigrationType::Util => {
                let util = sched.task_util_est(task);
                let shift = if sched.kernel.has(Feature::LbUtilShift) { failed } else { 0 };
                if shr_bound(util, shift) as i64 > self.imbalance {
                    Err(NotMoved::TooLarge)
                } else {
                    Ok(util as i64)
                }
            }
            MigrationType::Task | MigrationType::LlcTask => Ok(1),
            MigrationType::Misfit => {
                if sched.task_fits_cpu(task, self.src_cpu, self.now) {
                    Err(NotMoved::Fits)
                } else {
                    Ok(self.imbalance)
                }
            }
        }
    }

    /// Load of a candidate at its root, given the tasks already detached from its queue.
    fn task_h_load(&self, task: TaskId) -> u64 {
        let se = &self.sched.task(task).se;
        let cfs = se.cfs_rq.expect("a candidate is queued");
        let gone = self.detached_load.iter().find(|gone| gone.cfs == cfs);
        let queue = gone.and_then(|gone| gone.aged).unwrap_or(self.sched.cfs(cfs).avg.load_avg);
        let left = queue.saturating_sub(gone.map_or(0, |gone| gone.off));
        se.avg.load_avg * self.view.cfs_rq_h_load(cfs) / (left + 1)
    }

    /// Records that a task is detached, which takes it off.
    ///
    /// Kernel: detach_task(), kernel/sched/fair.c, v6.12.
    fn detach(&mut self, task: TaskId) {
        self.waits = self.stops;
        if !self.stops {
            self.suppose_detached(task);
        }
        self.src_nr_running -= 1;
        self.detached += 1;
        let to = self.dst_cpu;
        self.decision.steps.push(Step::Detach { task, to });
    }

    /// If a pass is decided as a whole, notes replace the dequeue, which updates the load of a task and of its queue
    /// before one is subtracted from the other. They leave out the levels above.
    ///
    /// Kernel: dequeue_entity(), migrate_task_rq_fair(), kernel/sched/fair.c, v6.12 and v4.13.
    fn suppose_detached(&mut self, task: TaskId) {
        let sched = self.sched;
        let se = sched.se(SeId(task.0));
        let cfs = se.cfs_rq.expect("a candidate is queued");
        if sched.kernel.rules.pelt == PeltClock::InContribution {
            self.take_off_noted(cfs);
            self.gone_from(cfs).noted += se.avg.load_avg;
        } else if self.migration_type == MigrationType::Load {
            // Nothing else reads it.
            let (load, queue) = sched.aged_loads(SeId(task.0), self.now);
            let gone = self.gone_from(cfs);
            gone.off += load;
            gone.aged = Some(queue);
        }
    }

    /// A dequeue updates the averages of a queue and of those above it: earlier notes are dropped.
    ///
    /// Kernel: dequeue_entity(), update_cfs_rq_load_avg(), kernel/sched/fair.c, v4.13.
    fn take_off_noted(&mut self, cfs: CfsRqId) {
        let sched = self.sched;
        let mut next = Some(cfs);
        while let Some(id) = next {
            if let Some(gone) = self.detached_load.iter_mut().find(|gone| gone.cfs == id) {
                gone.off += core::mem::take(&mut gone.noted);
            }
            let queue = sched.cfs(id);
            next = sched.tg(queue.tg).se.get(queue.cpu.index()).and_then(|&se| sched.se(se).cfs_rq);
        }
    }

    fn gone_from(&mut self, cfs: CfsRqId) -> &mut Detached {
        let known = self.detached_load.iter().position(|gone| gone.cfs == cfs);
        let at = known.unwrap_or_else(|| {
            self.detached_load.push(Detached { cfs, off: 0, aged: None, noted: 0 });
            self.detached_load.len() - 1
        });
        &mut self.detached_load[at]
    }
}

/// A value halved `shift` times, at most to zero.
///
/// Kernel: shr_bound(), kernel/sched/sched.h, v5.18.
fn shr_bound(value: u64, shift: u32) -> u64 {
    value >> shift.min(63)
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::{Expect, expect};
    use schedlab_topology::CpuId;

    use crate::balance::drawings::{Pass, check_kernels, check_pass};
    use crate::balance::env::LbEnv;
    use crate::drawing::{NOW, by_kernel};

    #[test]
    fn the_task_that_ran_longest_ago_goes() {
        check_kernels(
            "",
            "1x2x2 | 0[a* b c d e f] 1[] 2[] 3[]",
            "cpu=2 idle level=1",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=2
                v5.5..v7.3: LB_TASK task 3 from 0, b to 2, c to 2, d to 2"#]],
        );
    }

    #[test]
    fn too_much_load_stays() {
        check_kernels(
            "",
            "1x1x2 | 0[x* ;util=1000 load=500] 1[a* b c;util=1000]",
            "cpu=0 busy load:b=5000 load:c=300 load:a=300",
            expect![[r#"
                v4.13: LB_LOAD load 2550 from 1, c to 0, b TooLarge, a Running
                v5.5: LB_LOAD load 2550 from 1, b to 0
                v5.18..v7.3: LB_LOAD load 2550 from 1, b TooLarge, c to 0, a Running"#]],
        );
    }

    #[test]
    fn failures_let_more_load_go() {
        check_kernels(
            "",
            "1x1x2 | 0[x* ;util=1000 load=500] 1[a* b c;util=1000]",
            "cpu=0 busy load:b=5000 load:c=5000 load:a=300 failed=2",
            expect![[r#"
                v4.13: LB_LOAD load 4900 from 1, c to 0
                v5.5..v7.3: LB_LOAD load 4900 from 1, b to 0"#]],
        );
    }

    #[test]
    fn a_newly_idle_preemptible_kernel_takes_one() {
        check_kernels(
            "",
            "1x2x4 | 0[] 4[a* b c d] 5[e* f] 6[g* h] 7[i* j]",
            "cpu=0 newidle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 5120 from 4, d to 0, c to 0, b to 0
                v5.5: LB_TASK task 5 from 4, b to 0, c to 0, d to 0
                v5.18..v7.3: LB_TASK task 5 from 4, b to 0"#]],
        );
    }

    #[test]
    fn an_idle_cpu_takes_half_of_the_difference() {
        check_kernels(
            "",
            "1x2x4 | 0[] 4[a* b c d] 5[e* f] 6[g* h] 7[i* j]",
            "cpu=0 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 5120 from 4, d to 0, c to 0, b to 0
                v5.5..v7.3: LB_TASK task 5 from 4, b to 0, c to 0, d to 0"#]],
        );
    }

    #[test]
    fn more_utilisation_than_there_is_room_for_stays() {
        check_kernels(
            "",
            "1x2x2 | 0[;util=500] 1[;util=500] 2[a* b c ;util=1000] 3[d* e f;util=1000]",
            "cpu=0 idle level=1 util:b=1100 util:c=200 util:e=1100 util:f=200",
            expect![[r#"
                v4.13: LB_LOAD load 3072 from 2, c to 0, b to 0
                v5.5..v7.3: LB_UTIL util 1048 from 2, b TooLarge, c to 0, a Running"#]],
        );
    }

    #[test]
    fn failures_let_more_utilisation_go() {
        check_kernels(
            "",
            "1x2x2 | 0[;util=500] 1[;util=500] 2[a* b c ;util=1000] 3[d* e f;util=1000]",
            "cpu=0 idle level=1 util:b=1100 util:c=1100 util:e=1100 util:f=1100 failed=1",
            expect![[r#"
                v4.13: LB_LOAD load 3072 from 2, c to 0, b to 0
                v5.5..v5.18: LB_NOTHING_MOVABLE util 1048 from 2, b TooLarge, c TooLarge, a Running
                v6.1: LB_UTIL util 1048 from 2, b to 0
                v6.3: LB_NOTHING_MOVABLE util 1048 from 2, b TooLarge, c TooLarge, a Running
                v6.10..v7.3: LB_UTIL util 1048 from 2, b to 0"#]],
        );
    }

    #[test]
    fn load_that_leaves_is_noticed_at_once_or_one_task_later() {
        // Six tasks of 1024 each: the fewer are left, the more each counts.
        let taken = |kernel: &str| {
            let pass = Pass::new(kernel, "1x1x2 | 0[] 1[a* b c d e f]", "cpu=0 idle");
            let mut env = LbEnv::new(&pass.drawn.sched, pass.cpu, pass.sd, pass.idle, NOW);
            (env.src_cpu, env.imbalance) = (CpuId(1), 2700);
            env.begin_source();
            assert!(env.detach_tasks(), "it stops for nothing");
            format!("{} go, {} left", env.detached, env.imbalance)
        };
        expect![[r#"
            v4.13: 3 go, -574 left
            v5.5..v7.3: 2 go, 449 left"#]]
        .assert_eq(&by_kernel("", taken));
    }

    #[test]
    fn a_very_small_load_can_be_left_alone_until_a_pass_failed() {
        // b has a load of 9, less than 16.
        let check = |kernel: &str, words: &str, expected: Expect| {
            check_pass(
                kernel,
                "1x1x2 | 0[a* b ;util=1000 load=3000] 1[c* ;util=1000 load=500]",
                &format!("cpu=1 busy load:b=10{words}"),
                expected,
            );
        };
        check("v6.12", "", expect!["LB_LOAD load 743 from 0, b to 1, a Running"]);
        check("v6.12+LB_MIN", "", expect!["LB_NOTHING_MOVABLE load 743 from 0, b TooSmall, a Running"]);
        check("v6.12+LB_MIN", " failed=1", expect!["LB_LOAD load 743 from 0, b to 1, a Running"]);
    }

    #[test]
    fn a_pass_of_bound_tasks_looks_on_until_one_may_go() {
        // Two of four may be examined, and both are bound.
        check_kernels(
            "+nr_migrate=2",
            "1x1x4 | 0[a* b c d] 1[]",
            "cpu=1 newidle bind:b=0 bind:c=0 bind:d=0-1",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 0, d to 1, c NotAllowed
                v5.5..v6.1: LB_ALL_PINNED task 2 from 0, b NotAllowed, c NotAllowed
                v6.3..v6.10: LB_TASK task 2 from 0, b NotAllowed, c NotAllowed, d to 1
                v6.12..v7.3: LB_ALL_PINNED task 2 from 0, b NotAllowed, c NotAllowed"#]],
        );
    }
}
