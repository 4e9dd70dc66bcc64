//! Which task is preempted when a task changes its priority or its class.
//!
//! A waiting task is checked as if it had been woken. A running task already has its CPU: it is preempted if it
//! fell behind another, and the check for that differs between classes and kernels.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::cfs_rq::before as is_before;
use crate::class::Class;
use crate::{Curr, Feature, NiceAsks, Policy, Sched};

impl Sched {
    /// A fair task has another nice level. One that sleeps but is still queued is treated as one that waits.
    ///
    /// Kernel: prio_changed_fair(), kernel/sched/fair.c, v6.1, v6.12, v7.2, v7.3; set_user_nice(), kernel/sched/core.c, v5.5.
    pub(crate) fn prio_changed_fair(&mut self, task: TaskId, lower: bool) {
        let cpu = self.task(task).cpu;
        if !self.task(task).on_rq {
            return;
        }
        let runs = self.rqs[cpu].curr == Curr::Task(task);
        match self.kernel.rules.nice_asks {
            NiceAsks::AnyRise if !lower || runs => self.resched_now(cpu),
            NiceAsks::AnyRise => {}
            NiceAsks::AsWoken if self.root_cfs(cpu).nr_competing(&self.kernel) == 1 => {}
            NiceAsks::AsWoken if !runs => {
                self.wakeup_preempt(cpu, task, 0);
            }
            NiceAsks::AsWoken if lower => self.resched_now(cpu),
            NiceAsks::AsWoken => {}
        }
    }

    /// An RT task has another priority. It is preempted, or preempts, only if the order has changed.
    ///
    /// Kernel: prio_changed_rt(), kernel/sched/rt.c, v6.1, v6.12, v7.2.
    pub(crate) fn prio_changed_rt(&mut self, task: TaskId, before: u8, now: Time) {
        let (cpu, priority) = (self.task(task).cpu, self.task(task).policy.rt_priority());
        if !self.task(task).on_rq || priority == before {
            return;
        }
        if self.rqs[cpu].curr != Curr::Task(task) {
            if priority > self.rt_level(cpu) {
                self.resched_now(cpu);
            }
            return;
        }
        let first = self.rqs[cpu].rt_queue.first().expect("the task is queued");
        if self.task(*first).policy.rt_priority() > priority {
            self.resched_now(cpu);
        }
        if priority < before {
            self.pull_tasks(cpu, Class::Rt, now);
        }
    }

    /// A deadline task has other parameters.
    ///
    /// Kernel: prio_changed_dl(), kernel/sched/deadline.c, v6.1, v6.12, v7.2.
    pub(crate) fn prio_changed_dl(&mut self, task: TaskId, before: u64, now: Time) {
        let cpu = self.task(task).cpu;
        let (deadline, on_rq) = (self.task(task).dl_deadline, self.task(task).on_rq);
        let by_deadline = self.kernel.has(Feature::DlAsksByDeadline);
        if !on_rq || deadline == before && by_deadline {
            return;
        }
        let pulls = if by_deadline { is_before(before, deadline) } else { !self.is_dl_overloaded(cpu) };
        let of_curr = match self.rqs[cpu].curr {
            Curr::Task(curr) if self.class_of(curr) == Class::Dl => Some(self.task(curr).dl_deadline),
            _ => None,
        };
        let runs = self.rqs[cpu].curr == Curr::Task(task);
        let asks = if runs || !self.kernel.has(Feature::DlWaitingAsks) {
            is_before(self.earliest_dl(cpu).unwrap_or(0), deadline)
        } else {
            of_curr.is_none_or(|of_curr| is_before(deadline, of_curr))
        };
        if asks {
            self.resched_now(cpu);
        }
        if pulls {
            self.pull_tasks(cpu, Class::Dl, now);
        }
    }

    /// Whether a CPU runs nothing, or a task of a lower class or priority than this RT task.
    fn is_above_curr(&self, cpu: CpuId, task: TaskId) -> bool {
        let Curr::Task(curr) = self.rqs[cpu].curr else { return true };
        match self.class_of(curr) {
            Class::Rt => self.task(task).policy.rt_priority() > self.task(curr).policy.rt_priority(),
            class => class < Class::Rt,
        }
    }

    /// A task has another class.
    ///
    /// Kernel: switched_to_fair(), switched_to_rt(), switched_to_dl(), switched_from_rt(), switched_from_dl(), v6.1, v6.12;
    /// sched_change_end(), kernel/sched/core.c, v7.2.
    pub(crate) fn switched_class(&mut self, by: CpuId, task: TaskId, from: Policy, now: Time) {
        let cpu = self.task(task).cpu;
        if from.class() == Class::Dl {
            self.leave_dl(cpu, task, from);
        }
        if self.class_of(task) == Class::Dl {
            self.task_mut(task).dl_inactive_at = None;
        }
        self.set_task_max_allowed_capacity(task);
        if !self.task(task).on_rq {
            return;
        }
        // Callbacks push and pull once the change is done; what was asked for last comes first.
        let pulls = match from.class() {
            Class::Rt => self.rqs[cpu].rt_queue.is_empty(),
            Class::Dl => !self.rqs[cpu].dl_runnable(),
            _ => false,
        };
        self.switched_to(by, task, from, now);
        if pulls {
            self.pull_tasks(cpu, from.class(), now);
        }
    }

    fn switched_to(&mut self, by: CpuId, task: TaskId, from: Policy, now: Time) {
        let cpu = self.task(task).cpu;
        if self.rqs[cpu].curr != Curr::Task(task) {
            if self.class_of(task) != Class::Rt || self.kernel.has(Feature::ClassChangeAsks) {
                self.wakeup_preempt(cpu, task, 0);
            } else if self.rqs[cpu].online && self.is_above_curr(cpu, task) {
                self.resched_now(cpu);
            }
            if self.task(task).nr_cpus_allowed > 1 {
                self.push_tasks(by, cpu, self.class_of(task), now);
            }
            return;
        }
        let class = self.class_of(task);
        match class {
            Class::Rt => _ = self.update_rt_rq_load_avg(cpu, false),
            Class::Dl => _ = self.update_dl_rq_load_avg(cpu, false),
            _ => {}
        }
        if class > from.class() {
            self.rqs[cpu].next_class = class;
        }
        let falls = class < from.class() && self.kernel.has(Feature::LowerClassAsks);
        if class == Class::Fair || falls || self.kernel.has(Feature::ClassChangeAsks) {
            self.resched_now(cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;

    use super::*;
    use crate::drawing::{Drawn, NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};

    const CPU: CpuId = CpuId(0);

    /// Whether the action requests preemption of the running task.
    fn asked(drawing: &'static str, act: impl Fn(&mut Drawn)) -> String {
        by_kernel("", |kernel| {
            let mut drawn = draw(kernel, drawing);
            drawn.sched.rqs[CPU].need_resched = crate::NeedResched::default();
            act(&mut drawn);
            format!("{}", drawn.sched.rqs[CPU].need_resched.any())
        })
    }

    fn set_policy(drawn: &mut Drawn, name: &str, policy: Policy) {
        let task = drawn.task(name);
        drawn.sched.set_policy(CpuId(0), task, policy, NOW);
        let rq = &mut drawn.sched.rqs[CPU];
        rq.need_resched = crate::NeedResched::default();
    }

    #[test]
    fn a_fair_policy_is_no_priority_but_a_nice_level_is() {
        let policy = asked("1x1x1 | 0[idle:a* b]", |drawn| {
            let b = drawn.task("b");
            drawn.sched.set_policy(CpuId(0), b, Policy::Batch, NOW);
        });
        expect!["v4.13..v7.3: false"].assert_eq(&policy);
        let nice = asked("1x1x1 | 0[idle:a* b]", |drawn| {
            let b = drawn.task("b");
            drawn.sched.set_nice(b, -1, NOW);
        });
        expect!["v4.13..v7.3: true"].assert_eq(&nice);
    }

    #[test]
    fn a_raised_task_asked_the_running_one_up_to_v5_5_and_a_lowered_one_that_waits_asks_none() {
        let nice = |drawing: &'static str, name: &'static str, nice: i8| {
            asked(drawing, move |drawn| {
                let task = drawn.task(name);
                drawn.sched.set_nice(task, nice, NOW);
            })
        };
        // No other task is there.
        expect![[r#"
            v4.13..v5.5: true
            v5.18..v7.3: false"#]]
        .assert_eq(&nice("1x1x1 | 0[a*]", "a", -1));
        expect![[r#"
            v4.13..v5.5: true
            v5.18..v7.3: false"#]]
        .assert_eq(&nice("1x1x1 | 0[a* b]", "a", -1));
        expect![[r#"
            v4.13..v5.5: true
            v5.18..v7.3: false"#]]
        .assert_eq(&nice("1x1x1 | 0[a* idle:b]", "b", -1));
        expect!["v4.13..v7.3: true"].assert_eq(&nice("1x1x1 | 0[a* b]", "a", 1));
        expect![[r#"
            v4.13..v5.5: false
            v5.18..v7.3: true"#]]
        .assert_eq(&nice("1x1x1 | 0[idle:a* b]", "b", 1));
    }

    #[test]
    fn a_task_that_becomes_real_time_makes_room_for_itself_among_equals_only_from_v7_2_on() {
        let becomes = |priority: u8| {
            asked("1x1x2 | 0[rt* b] 1[]", move |drawn| {
                set_policy(drawn, "rt", Policy::Fifo(10));
                let (rt, b) = (drawn.task("rt"), drawn.task("b"));
                // Bound, so it would be queued before an equal one that can move when it wakes.
                let entry = drawn.sched.task_mut(b);
                (entry.allowed, entry.nr_cpus_allowed) = (schedlab_topology::CpuMask::one(2, CPU).into(), 1);
                assert_eq!(drawn.sched.rqs[CPU].curr, Curr::Task(rt));
                drawn.sched.set_policy(CPU, b, Policy::Fifo(priority), NOW);
            })
        };
        expect![[r#"
            v4.13..v6.12: false
            v7.2..v7.3: true"#]]
        .assert_eq(&becomes(10));
        expect!["v4.13..v7.3: true"].assert_eq(&becomes(11));
    }

    /// Up to 7.2 the entities of the root are counted, which is the group alone, in 7.3 the tasks.
    #[test]
    fn a_task_that_is_lowered_beside_one_of_its_own_group_is_asked_in_v7_3() {
        let found = asked("1x1x1 | 0[a* b]", |drawn| {
            let group = drawn.sched.new_group(crate::TgId::ROOT, 1024 << 10, CPU, NOW);
            for name in ["a", "b"] {
                let task = drawn.task(name);
                drawn.sched.move_task_to_group(task, group, NOW);
            }
            drawn.sched.rqs[CPU].need_resched = crate::NeedResched::default();
            let a = drawn.task("a");
            drawn.sched.set_nice(a, 1, NOW);
        });
        expect![[r#"
            v4.13..v5.5: true
            v5.18..v7.2: false
            v7.3: true"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_nice_level_is_nothing_to_a_task_of_real_time() {
        let found = asked("1x1x1 | 0[a* b]", |drawn| {
            set_policy(drawn, "a", Policy::Fifo(5));
            let a = drawn.task("a");
            drawn.sched.set_nice(a, 5, NOW);
        });
        expect!["v4.13..v7.3: false"].assert_eq(&found);
    }

    #[test]
    fn a_running_task_that_becomes_real_time_is_asked_or_not() {
        let found = asked("1x1x1 | 0[a* b]", |drawn| {
            let a = drawn.task("a");
            drawn.sched.set_policy(CpuId(0), a, Policy::Fifo(5), NOW);
        });
        expect![[r#"
            v4.13..v6.12: false
            v7.2..v7.3: true"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_running_task_that_becomes_fair_is_asked() {
        let found = asked("1x1x1 | 0[a* b]", |drawn| {
            set_policy(drawn, "a", Policy::Fifo(5));
            let a = drawn.task("a");
            drawn.sched.set_policy(CpuId(0), a, Policy::Normal, NOW);
        });
        expect!["v4.13..v7.3: true"].assert_eq(&found);
    }

    #[test]
    fn a_running_task_of_real_time_makes_way_only_to_a_higher_one() {
        for (waits, asks) in [(3, "v4.13..v7.3: false"), (4, "v4.13..v7.3: false"), (5, "v4.13..v7.3: true")]
        {
            let found = asked("1x1x1 | 0[a* b]", |drawn| {
                set_policy(drawn, "a", Policy::Fifo(9));
                set_policy(drawn, "b", Policy::Fifo(waits));
                let a = drawn.task("a");
                drawn.sched.set_policy(CpuId(0), a, Policy::Fifo(4), NOW);
            });
            assert_eq!(found, asks, "one of priority {waits} waits");
        }
    }

    #[test]
    fn a_task_of_real_time_that_falls_lets_another_come_from_elsewhere() {
        let mut drawn = draw("v6.12+NO_RT_PUSH_IPI", "1x1x2 | 0[a*] 1[b* c]");
        for (name, priority) in [("a", 9), ("b", 8), ("c", 7)] {
            set_policy(&mut drawn, name, Policy::Fifo(priority));
        }
        assert_eq!(drawn.cpu_of("c"), CpuId(1));
        let a = drawn.task("a");
        drawn.sched.set_policy(CpuId(0), a, Policy::Fifo(6), NOW);
        assert_eq!(drawn.cpu_of("c"), CPU);
        assert!(drawn.sched.rqs[CPU].need_resched.full);
    }

    /// A task that sleeps with its dequeue delayed gets another nice level.
    fn sleeper(kernel: &str) -> String {
        let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
        let [a, b] = ["a", "b"].map(|name| lab.hog(name, 0));
        for _ in 0..100 {
            if lab.running(0) != "b" {
                lab.run(MS / 10);
            }
        }
        // It has run more than it was owed.
        lab.sched.task_mut(b).se.vruntime += MS;
        lab.sleep(b);
        assert!(lab.sched.task(b).se.sched_delayed, "{kernel}");
        assert_eq!(lab.running(0), "a", "{kernel}");
        lab.now += MS / 2;
        let ran = lab.sched.task(a).se.sum_exec_runtime;
        let now = lab.time();
        lab.sched.set_nice(b, -10, now);
        let charged = (lab.sched.task(a).se.sum_exec_runtime - ran) / 1000;
        format!("charged {charged} us, asked {}", lab.sched.rqs[CPU].need_resched.any())
    }

    #[test]
    fn a_sleeper_that_is_queued_is_asked_about_as_if_it_waited() {
        for (kernel, expected) in [
            ("v6.12+NO_RUN_TO_PARITY", "charged 500 us, asked true"),
            ("v7.2+NO_RUN_TO_PARITY", "charged 500 us, asked false"),
        ] {
            assert_eq!(sleeper(kernel), expected, "{kernel}");
        }
    }

    /// Deadline tasks with these deadlines in ms run and wait on CPU 0; the one that waits gets other parameters. Whether
    /// the running one is asked.
    fn other_parameters(runs: u64, waits: u64) -> String {
        asked("1x1x1 | 0[a* b]", move |drawn| {
            let of = |ms: u64| Policy::Deadline { runtime: 1_000_000, deadline: ms * MS, period: ms * MS };
            set_policy(drawn, "a", of(50));
            set_policy(drawn, "b", of(60));
            for (name, ms) in [("a", runs), ("b", waits)] {
                let task = drawn.task(name);
                drawn.sched.task_mut(task).dl_deadline = NOW.0 + ms * MS;
            }
            let b = drawn.task("b");
            drawn.sched.prio_changed_dl(b, 0, NOW);
        })
    }

    #[test]
    fn a_deadline_task_that_waits_asks_if_it_comes_before_the_running_one_or_after_the_first() {
        expect![[r#"
            v4.13..v6.1: false
            v6.3..v7.3: true"#]]
        .assert_eq(&other_parameters(50, 40));
        expect![[r#"
            v4.13..v6.1: true
            v6.3..v7.3: false"#]]
        .assert_eq(&other_parameters(50, 60));
    }

    #[test]
    fn in_early_releases_of_v7_2_only_a_running_task_that_falls_in_class_is_asked() {
        let of = |from: Policy, to: Policy| {
            let mut drawn = draw("v7.2+NO_CLASS_CHANGE_ASKS", "1x1x1 | 0[a* b]");
            set_policy(&mut drawn, "a", from);
            let a = drawn.task("a");
            drawn.sched.set_policy(CpuId(0), a, to, NOW);
            drawn.sched.rqs[CPU].need_resched.any()
        };
        let deadline = Policy::Deadline { runtime: MS, deadline: 10 * MS, period: 10 * MS };
        assert_eq!((of(deadline, Policy::Fifo(5)), of(Policy::Normal, Policy::Fifo(5))), (true, false));
    }
}
