//! Looking for work before the choice of the next task, instead of after it.
//!
//! A CPU looks for work when the fair class has no task to run, which is found out after the higher classes. If classes
//! balance before any of them picks, as sched_ext needed it, a fair task that was the last of its class looks for work
//! even though a task of a higher class waits. That moves nothing, because the CPU is not idle, but averages, failures
//! and the idle stamp change as if it were.
//!
//! A CPU on which a task of a higher class leaves looks for work only once where classes balance before they pick. If the
//! task that it pulls is queued in a group without quota, which is throttled at once, the CPU goes idle and counts as
//! one that has found work.
//!
//! Kernel: balance_fair(), kernel/sched/fair.c, v5.4 to v6.12; not v7.2.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::class::Class;
use crate::{BalanceFair, Curr, Sched};

impl Sched {
    /// Looks for work before the CPU chooses, if its kernel does that. Whether it may do so as it chooses.
    ///
    /// Kernel: balance_fair(), kernel/sched/fair.c, __pick_next_task(), kernel/sched/core.c, v6.12.
    pub fn balance_fair(&mut self, cpu: CpuId, prev: Curr, now: Time) -> bool {
        if self.kernel.rules.balance_fair == BalanceFair::NoTask {
            return true;
        }
        let (class, root) = (self.class_of_curr(prev), self.root_cfs(cpu));
        let nr_running = self.rqs[cpu].nr_running;
        let higher_wait = nr_running != root.h_nr_queued;
        // All are fair, so the fair class is asked at once. Of an idle CPU with a fair server no class is asked before.
        if class == Class::Idle || class == Class::Fair && !higher_wait {
            return !higher_wait;
        }
        let looks = match self.kernel.rules.balance_fair {
            BalanceFair::NoTask => true,
            BalanceFair::Once => nr_running == 0,
            // A higher class that leaves asks those between first.
            BalanceFair::NoFair => root.nr_queued == 0 && (class == Class::Fair || !higher_wait),
        };
        if looks {
            self.newidle_balance(cpu, now);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;
    use schedlab_units::Time;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{Curr, Deactivate, MigrationCause, NICE_0_LOAD, NewTask, Policy, TaskState, TgId};

    const CPU: CpuId = CpuId(0);

    /// The failures and the idle stamp of a CPU after its fair task has gone to sleep while a real-time task waits.
    fn after(kernel: &str, overload: bool) -> String {
        let mut drawn = draw(kernel, "1x1x2 | 0[fair* rt] 1[a* b]");
        let rt = drawn.task("rt");
        let sched = &mut drawn.sched;
        sched.set_policy(CpuId(0), rt, Policy::Fifo(5), NOW);
        let sd = sched.domains.per_cpu[CPU].base.unwrap();
        sched.domains.sd_mut(sd).nr_balance_failed = 7;
        sched.domains.sd_mut(sd).max_newidle_lb_cost = 0;
        sched.domains.overload = overload;
        sched.schedule(CPU, Deactivate::Sleep(TaskState::Interruptible), NOW);
        assert_eq!(sched.rqs[CPU].curr.task(), Some(rt), "{kernel}");
        assert_eq!(drawn.cpu_of("b"), CpuId(1), "{kernel}: its CPU is not idle");
        let failed = drawn.sched.domains.sd(sd).nr_balance_failed;
        format!("{failed} failures, idle stamp {}", drawn.sched.rqs[CPU].idle_stamp / NOW.0)
    }

    #[test]
    fn a_cpu_that_runs_real_time_looks_for_work_in_vain() {
        expect![[r#"
            v4.13..v6.10: 7 failures, idle stamp 0
            v6.12: 0 failures, idle stamp 0
            v7.2..v7.3: 7 failures, idle stamp 0"#]]
        .assert_eq(&by_kernel("+NO_DELAY_DEQUEUE+NO_NI_RANDOM", |kernel| after(kernel, true)));
        expect![[r#"
            v4.13..v6.10: 7 failures, idle stamp 0
            v6.12: 7 failures, idle stamp 1
            v7.2..v7.3: 7 failures, idle stamp 0"#]]
        .assert_eq(&by_kernel("+NO_DELAY_DEQUEUE", |kernel| after(kernel, false)));
    }

    #[test]
    fn a_cpu_that_pulls_a_task_without_quota_looks_again_or_counts_as_busy() {
        let after = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[rt*] 1[a* b]");
            let [rt, b] = ["rt", "b"].map(|name| drawn.task(name));
            let sched = &mut drawn.sched;
            sched.set_policy(CPU, rt, Policy::Fifo(5), NOW);
            let group = sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, NOW);
            sched.set_bandwidth(group, Some(20_000_000), 100_000_000, 0, NOW);
            sched.move_task_to_group(b, group, NOW);
            // What CPU 1 has left is too little to be returned.
            let (queue, _) = sched.made_on_cpu(group, CpuId(1));
            sched.cfs_mut(queue).runtime_remaining = 1_000;
            sched.tgs[group.0 as usize].bandwidth.runtime = 0;
            let sd = sched.domains.per_cpu[CPU].base.unwrap();
            sched.domains.sd_mut(sd).max_newidle_lb_cost = 0;
            sched.domains.overload = true;
            sched.schedule(CPU, Deactivate::Sleep(TaskState::Interruptible), NOW);
            assert_eq!(drawn.cpu_of("b"), CPU, "{kernel}");
            let rq = &drawn.sched.rqs[CPU];
            format!("idle {}, idle stamp {}", rq.curr == Curr::Idle, rq.idle_stamp / NOW.0)
        };
        expect![[r#"
            v4.13: idle true, idle stamp 1
            v5.5..v6.12: idle true, idle stamp 0
            v7.2..v7.3: idle false, idle stamp 0"#]]
        .assert_eq(&by_kernel("+NO_NI_RANDOM", after));
    }

    #[test]
    fn a_task_of_real_time_that_leaves_a_sleeper_behind_does_not_look() {
        for (kernel, finds) in [
            ("v6.12+NO_NI_RANDOM", false),
            ("v6.12+NO_NI_RANDOM+BALANCE_FAIR=no_task", true),
            ("v7.2+NO_NI_RANDOM", true),
        ] {
            let mut lab = Lab::new(kernel, "1x1x2");
            lab.hog("other", 1);
            let [waits, sleeper] = ["waits", "sleeper"].map(|name| lab.hog(name, 0));
            for _ in 0..100 {
                if lab.running(0) != "sleeper" {
                    lab.run(MS / 10);
                }
            }
            // It has run more than it was owed.
            let se = &mut lab.sched.task_mut(sleeper).se;
            se.vruntime = se.vruntime.wrapping_add(10 * MS);
            lab.sleep(sleeper);
            let spec = NewTask { policy: Policy::Fifo(5), ..lab.spec() };
            let rt = lab.fork("rt", 0, spec);
            let now = lab.time();
            lab.sched.move_queued_task(waits, CpuId(1), MigrationCause::Affinity, now);
            assert!(lab.sched.task(sleeper).se.sched_delayed, "{kernel}");
            lab.sleep(rt);
            assert_eq!(lab.running(0) != "idle", finds, "{kernel}");
        }
    }

    #[test]
    fn what_a_task_ran_below_a_group_without_quota_is_lost_when_a_task_is_pulled_in_v6_12() {
        let after = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2 | 0[a*] 1[c* b]");
            let [a, b] = ["a", "b"].map(|name| drawn.task(name));
            let sched = &mut drawn.sched;
            let above = sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, NOW);
            let group = sched.new_group(above, NICE_0_LOAD, CPU, NOW);
            sched.set_bandwidth(above, Some(20_000_000), 100_000_000, 0, NOW);
            sched.move_task_to_group(a, group, NOW);
            let (queue, _) = sched.made_on_cpu(above, CPU);
            sched.cfs_mut(queue).runtime_remaining = 1_000;
            sched.tgs[above.0 as usize].bandwidth.runtime = 0;
            let sd = sched.domains.per_cpu[CPU].base.unwrap();
            sched.domains.sd_mut(sd).max_newidle_lb_cost = 0;
            sched.domains.overload = true;
            let ran = sched.task(a).se.sum_exec_runtime;
            sched.schedule(CPU, Deactivate::Preempted, Time(NOW.0 + 3 * MS));
            let ran = (sched.task(a).se.sum_exec_runtime - ran) / MS;
            format!("{ran} ms, then {}", if sched.rqs[CPU].curr == Curr::Task(b) { "b" } else { "a" })
        };
        expect![[r#"
            v4.13..v6.10: 3 ms, then b
            v6.12: 0 ms, then b
            v7.2..v7.3: 3 ms, then a"#]]
        .assert_eq(&by_kernel("+NO_NI_RANDOM", after));
    }
}
