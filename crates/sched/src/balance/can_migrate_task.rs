//! Whether a candidate may be moved.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::env::LbEnv;
use super::{MigrationType, NotMoved};
use crate::{Feature, IdleType, Sched, SdId, SeId, TgId};

/// One candidate, and the CPU it would move to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanMigrate {
    /// The task.
    pub task: TaskId,
    /// CPU it would leave.
    pub src: CpuId,
    /// CPU it would move to.
    pub dst: CpuId,
    /// Domain of the pass.
    pub sd: SdId,
    /// Occasion of the pass.
    pub idle: IdleType,
    /// Unit in which the imbalance is counted.
    pub migration_type: MigrationType,
    /// Active balancing.
    pub active: bool,
}

impl Sched {
    /// Whether a candidate may be moved, or why not.
    ///
    /// Kernel: can_migrate_task(), kernel/sched/fair.c, v4.13 to v7.2.
    pub fn can_migrate_task(&self, question: &CanMigrate, now: Time) -> Result<(), NotMoved> {
        let mut env = LbEnv::new(self, question.dst, question.sd, question.idle, now);
        env.src_cpu = question.src;
        env.migration_type = question.migration_type;
        env.flags.active = question.active;
        env.can_migrate_task(question.task)
    }
}

impl LbEnv<'_> {
    /// Answers for one candidate; records what affinity forbids.
    ///
    /// NUMA locality has no opinion: NUMA balancing is not modelled.
    ///
    /// Kernel: can_migrate_task(), kernel/sched/fair.c, v7.2, v6.12, v5.5 and v4.13.
    pub(super) fn can_migrate_task(&mut self, task: TaskId) -> Result<(), NotMoved> {
        let sched = self.sched;
        let kernel = &sched.kernel;
        let p = sched.task(task);
        if kernel.has(Feature::LbEligibleFirst) {
            if p.se.sched_delayed && self.migration_type != MigrationType::Load {
                return Err(NotMoved::Delayed);
            }
            if self.throttled(p.tg, false) {
                return Err(NotMoved::Throttled);
            }
            if self.failed_before == 0 && self.is_ineligible_on_dst(task) {
                return Err(NotMoved::Ineligible);
            }
        } else if self.throttled(p.tg, true) {
            return Err(NotMoved::Throttled);
        }
        if p.kthread_is_per_cpu() && kernel.has(Feature::LbSkipPerCpuKthread) {
            return Err(NotMoved::PerCpuKthread);
        }
        if !p.allowed.contains(self.dst_cpu) {
            self.flags.some_pinned = true;
            if self.idle != IdleType::NewlyIdle && !self.flags.dst_pinned && !self.flags.active {
                let other = self.cpus(self.dst_grpmask()).find(|&cpu| p.allowed.contains(cpu));
                if let Some(cpu) = other {
                    self.flags.dst_pinned = true;
                    self.new_dst_cpu = cpu;
                }
            }
            return Err(NotMoved::NotAllowed);
        }
        self.flags.all_pinned = false;
        if p.on_cpu {
            return Err(NotMoved::Running);
        }
        if self.flags.active {
            return if self.wrong_llc(task) { Err(NotMoved::OtherLlc) } else { Ok(()) };
        }
        if let Some(why) = self.degrades_llc(task) {
            if self.migration_type != MigrationType::LlcTask {
                self.flags.llc_pinned = true;
            }
            return Err(why);
        }
        if self.task_hot(task) && self.failed_before <= self.sd.cache_nice_tries {
            return Err(NotMoved::CacheHot);
        }
        Ok(())
    }

    /// Whether the group has no quota left at the destination, or at either end.
    ///
    /// Kernel: throttled_lb_pair(), kernel/sched/fair.c, v6.12; lb_throttled_hierarchy(), v7.2.
    fn throttled(&self, tg: TgId, either: bool) -> bool {
        if tg == TgId::ROOT {
            return false;
        }
        let throttled = |cpu: CpuId| self.sched.throttle_count(tg, cpu) > 0;
        throttled(self.dst_cpu) || either && throttled(self.src_cpu)
    }

    /// As lag is kept over a migration, a task that is not eligible here would not be eligible there either, if other
    /// tasks are queued there.
    ///
    /// Kernel: task_is_ineligible_on_dst_cpu(), kernel/sched/fair.c, v7.2.
    fn is_ineligible_on_dst(&self, task: TaskId) -> bool {
        let sched = self.sched;
        let p = sched.task(task);
        let group = if sched.is_flat() { crate::TgId::ROOT } else { p.tg };
        let dst = sched.on_cpu(group, self.dst_cpu).map_or(0, |(dst, _)| sched.cfs(dst).nr_queued);
        let src = sched.line_of(SeId(task.0));
        sched.kernel.has(Feature::PlaceLag) && dst != 0 && !sched.entity_eligible(src, SeId(task.0))
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use schedlab_topology::CpuId;

    use crate::balance::drawings::{Pass, check_kernels};
    use crate::drawing::{NOW, by_kernel};
    use crate::{NICE_0_LOAD, TgId};

    #[test]
    fn a_bound_task_stays_and_another_goes() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b c] 1[]",
            "cpu=1 newidle bind:b=0",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 0, c to 1, b NotAllowed, a Running
                v5.5..v7.3: LB_TASK task 1 from 0, b NotAllowed, c to 1"#]],
        );
    }

    #[test]
    fn the_running_task_stays() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b] 1[]",
            "cpu=1 newidle bind:b=0",
            expect![[r#"
                v4.13: LB_NOTHING_MOVABLE load 1024 from 0, b NotAllowed, a Running
                v5.5..v7.3: LB_NOTHING_MOVABLE task 1 from 0, b NotAllowed, a Running"#]],
        );
    }

    #[test]
    fn all_tasks_may_be_bound() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b] 1[]",
            "cpu=1 newidle bind:a=0 bind:b=0",
            expect![[r#"
                v4.13: LB_ALL_PINNED load 1024 from 0, b NotAllowed, a NotAllowed
                v5.5..v7.3: LB_ALL_PINNED task 1 from 0, b NotAllowed, a NotAllowed"#]],
        );
    }

    #[test]
    fn and_there_is_nobody_else_to_ask() {
        check_kernels(
            "",
            "1x1x2 | 0[a* b] 1[]",
            "cpu=1 newidle bind:a=0 bind:b=0",
            expect![[r#"
                v4.13: LB_ALL_PINNED load 1024 from 0, b NotAllowed, a NotAllowed
                v5.5..v7.3: LB_ALL_PINNED task 1 from 0, b NotAllowed, a NotAllowed"#]],
        );
    }

    #[test]
    fn then_the_next_busiest_is_tried() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b c] 1[] 2[d* e]",
            "cpu=1 newidle bind:a=0 bind:b=0 bind:c=0",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 2, c NotAllowed, b NotAllowed, a NotAllowed, e to 1
                v5.5..v7.3: LB_TASK task 1 from 2, b NotAllowed, c NotAllowed, a NotAllowed, e to 1"#]],
        );
    }

    #[test]
    fn a_task_bound_to_a_neighbour_goes_there() {
        check_kernels(
            "",
            "1x2x2 | 0[a* b c] 1[] 2[] 3[]",
            "cpu=2 idle level=1 bind:b=0,3 bind:c=0,3",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=2
                v5.5..v7.3: LB_TASK task 1 from 0, b NotAllowed, c NotAllowed, a Running, b to 3"#]],
        );
    }

    #[test]
    fn not_when_newly_idle() {
        check_kernels(
            "",
            "1x2x2 | 0[a* b c] 1[] 2[] 3[]",
            "cpu=2 newidle level=1 bind:b=0,3 bind:c=0,3",
            expect![[r#"
                v4.13: LB_NOTHING_MOVABLE load 1536 from 0, c NotAllowed, b NotAllowed, a Running
                v5.5..v7.3: LB_NOTHING_MOVABLE task 1 from 0, b NotAllowed, c NotAllowed, a Running"#]],
        );
    }

    #[test]
    fn a_thread_of_the_cpu_is_no_candidate() {
        check_kernels(
            "",
            "1x1x4 | 0[a* kworker/0:1] 1[]",
            "cpu=1 newidle bind:a=0",
            expect![[r#"
                v4.13: LB_ALL_PINNED load 1024 from 0, kworker/0:1 NotAllowed, a NotAllowed
                v5.5: LB_ALL_PINNED task 1 from 0, kworker/0:1 NotAllowed, a NotAllowed
                v5.18..v7.3: LB_ALL_PINNED task 1 from 0, kworker/0:1 PerCpuKthread, a NotAllowed"#]],
        );
    }

    #[test]
    fn a_thread_that_the_user_has_bound_counts_as_bound() {
        let pass = |kernel: &str| {
            let mut pass = Pass::new(kernel, "1x1x4 | 0[a* kworker/0:1] 1[]", "cpu=1 newidle bind:a=0");
            let task = pass.drawn.task("kworker/0:1");
            pass.drawn.sched.task_mut(task).bound_by_user = true;
            pass.decide()
        };
        expect![[r#"
            v4.13: LB_ALL_PINNED load 1024 from 0, kworker/0:1 NotAllowed, a NotAllowed
            v5.5..v7.3: LB_ALL_PINNED task 1 from 0, kworker/0:1 NotAllowed, a NotAllowed"#]]
        .assert_eq(&by_kernel("", pass));
    }

    #[test]
    fn a_task_without_right_to_run_waits_for_a_failed_pass() {
        // b owes service, so it would not run at once on CPU 1 either, where c runs.
        let pass = |kernel: &str, words: &str| {
            let mut pass =
                Pass::new(kernel, "1x1x2 | 0[a* b ;util=1000 load=3000] 1[c* ;util=1000 load=500]", words);
            let task = pass.drawn.task("b");
            let vruntime = &mut pass.drawn.sched.task_mut(task).se.vruntime;
            *vruntime = vruntime.wrapping_add(50_000_000);
            pass.decide()
        };
        expect![[r#"
            v4.13: LB_LOAD load 1088 from 0, b to 1, a Running
            v5.5..v6.12: LB_LOAD load 838 from 0, b to 1, a Running
            v7.2..v7.3: LB_NOTHING_MOVABLE load 838 from 0, b Ineligible, a Running"#]]
        .assert_eq(&by_kernel("", |kernel| pass(kernel, "cpu=1 busy load:b=200")));
        expect![[r#"
            v4.13: LB_LOAD load 1088 from 0, b to 1, a Running
            v5.5..v7.3: LB_LOAD load 838 from 0, b to 1, a Running"#]]
        .assert_eq(&by_kernel("", |kernel| pass(kernel, "cpu=1 busy load:b=200 failed=1")));
    }

    #[test]
    fn a_task_that_sleeps_delayed_moves_only_by_load() {
        let pass = |kernel: &str| {
            let mut pass = Pass::new(kernel, "1x1x4 | 0[a* b c] 1[]", "cpu=1 newidle");
            let task = pass.drawn.task("b");
            pass.drawn.sched.task_mut(task).se.sched_delayed = true;
            pass.decide()
        };
        expect![[r#"
            v4.13: LB_LOAD load 1024 from 0, c to 1, b TooLarge, a Running
            v5.5..v6.12: LB_TASK task 1 from 0, b to 1
            v7.2..v7.3: LB_TASK task 1 from 0, b Delayed, c to 1"#]]
        .assert_eq(&by_kernel("", pass));
    }

    #[test]
    fn a_throttled_group_moves_nothing() {
        let pass = |kernel: &str| {
            let mut pass = Pass::new(kernel, "1x1x4 | 0[a* b] 1[]", "cpu=1 newidle");
            let sched = &mut pass.drawn.sched;
            let tg = sched.new_group(TgId::ROOT, NICE_0_LOAD, CpuId(0), NOW);
            let task = pass.drawn.tasks["b"];
            sched.move_task_to_group(task, tg, NOW);
            let (queue, _) = sched.made_on_cpu(tg, CpuId(1));
            sched.cfs_mut(queue).throttle_count = 1;
            pass.decide()
        };
        expect![[r#"
            v4.13: LB_NOTHING_MOVABLE load 1023 from 0, b Throttled, a Running
            v5.5..v7.3: LB_NOTHING_MOVABLE task 1 from 0, a Running, b Throttled"#]]
        .assert_eq(&by_kernel("", pass));
    }

    #[test]
    fn a_task_that_just_ran_stays() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b] 1[]",
            "cpu=1 newidle hot:b",
            expect![[r#"
                v4.13: LB_NOTHING_MOVABLE load 1024 from 0, b CacheHot, a Running
                v5.5..v7.3: LB_NOTHING_MOVABLE task 1 from 0, b CacheHot, a Running"#]],
        );
    }

    #[test]
    fn until_passes_failed() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b] 1[]",
            "cpu=1 newidle hot:b failed=2",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 0, b to 1
                v5.5..v7.3: LB_TASK task 1 from 0, b to 1"#]],
        );
    }

    #[test]
    fn inside_a_core_nothing_is_hot() {
        check_kernels(
            "",
            "1x1x2x2 | 0[a* b] 1[]",
            "cpu=1 newidle hot:b",
            expect![[r#"
                v4.13: LB_NOTHING_MOVABLE load 1024 from 0, b CacheHot, a Running
                v5.5: LB_NOTHING_MOVABLE task 1 from 0, b CacheHot, a Running
                v5.18..v7.3: LB_TASK task 1 from 0, b to 1"#]],
        );
    }
}
