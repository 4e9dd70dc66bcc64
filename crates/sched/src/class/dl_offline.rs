//! Deadline tasks that are out of budget when their CPU goes offline. Such a task is not queued, so nothing moves it until its
//! timer expires.

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

use crate::{MigrationCause, Push, Sched};

impl Sched {
    /// A task whose CPU went offline while it was out of budget moves to a CPU where it can run at once, else to the first of
    /// its own. If those are all offline, it goes to the first that is there, and its affinity stays as it is: the kernel warns,
    /// and up to v5.10 stops.
    ///
    /// Kernel: dl_task_offline_migration(), kernel/sched/deadline.c, v6.1, v7.2.
    pub(super) fn dl_task_offline_migration(&mut self, by: CpuId, task: TaskId, now: Time) -> CpuId {
        let movable = self.task(task).nr_cpus_allowed > 1;
        let later = if movable { self.push_of(by, task, self.task(task).cpu) } else { Push::Nothing };
        let to = if let Push::Moves { to, nearest, .. } = later {
            if nearest.in_turn {
                self.rqs[by].any_cpu = to;
            }
            to
        } else {
            let rqs = &self.rqs;
            let first = |cpus: &CpuMask| cpus.iter().find(|&cpu| rqs[cpu].active);
            first(&self.task(task).allowed).unwrap_or_else(|| {
                self.out_of_place.push(task);
                first(&CpuMask::all(self.rqs.len())).expect("some CPU is active")
            })
        };
        self.set_task_cpu(task, to, MigrationCause::Affinity, now);
        self.update_rq_clock(to, now);
        to
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::sync::Arc;

    use expect_test::{Expect, expect};
    use schedlab_topology::{CpuId, CpuMask};
    use schedlab_units::TaskId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NewTask, Policy};

    /// A CPU of which a task is out of budget has gone offline.
    fn offline(kernel: &str) -> (Lab, TaskId) {
        let mut lab = Lab::new(kernel, "1x1x4");
        let policy = Policy::Deadline { runtime: MS, deadline: 10 * MS, period: 10 * MS };
        let spec = NewTask { policy, ..lab.spec() };
        let task = lab.fork("dl", 3, spec);
        lab.run(5 * MS);
        lab.sched.set_online(CpuId(3), false, lab.time());
        lab.sched.rqs[CpuId(3)].need_resched.full = false;
        (lab, task)
    }

    #[test]
    fn one_that_leaves_the_class_there_waits_there_without_a_fair_server() {
        let waits = |policy: Policy| {
            move |kernel: &str| {
                let (mut lab, task) = offline(kernel);
                lab.sched.set_policy(CpuId(0), task, policy, lab.time());
                let rq = &lab.sched.rqs[CpuId(3)];
                let server = if rq.fair_server.is_active() { "a" } else { "no" };
                format!("CPU {}, {server} server, asked {}", lab.sched.task(task).cpu.0, rq.need_resched.full)
            }
        };
        expect!["v4.13..v7.3: CPU 3, no server, asked true"]
            .assert_eq(&by_kernel("+NO_HRTICK_DL", waits(Policy::Normal)));
        expect![[r#"
            v4.13..v6.12: CPU 3, no server, asked false
            v7.2..v7.3: CPU 3, no server, asked true"#]]
        .assert_eq(&by_kernel("+NO_HRTICK_DL", waits(Policy::Fifo(10))));
    }

    /// A task with 1 ms in 10 ms uses up its budget on CPU 3, which then goes offline. CPU 0 runs a hog, and CPU 1 another
    /// deadline task.
    fn check(allowed: &'static [u16], expected: Expect) {
        let found = by_kernel("+NO_HRTICK_DL", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x4");
            let of = |lab: &Lab, ms| {
                let policy =
                    Policy::Deadline { runtime: ms * MS, deadline: 10 * ms * MS, period: 10 * ms * MS };
                NewTask { policy, ..lab.spec() }
            };
            lab.hog("hog", 0);
            let spec = of(&lab, 40);
            lab.fork("other", 1, spec);
            let allowed = Arc::new(CpuMask::of(4, allowed.iter().map(|&cpu| CpuId(cpu))));
            let spec = NewTask { allowed, ..of(&lab, 1) };
            let task = lab.fork("dl", 3, spec);
            lab.run(5 * MS);
            let out_of_budget = lab.sched.task(task).dl_throttled;
            lab.sched.set_online(CpuId(3), false, lab.time());
            lab.run(4 * MS);
            let before = lab.sched.task(task).cpu.0;
            lab.run(2 * MS);
            let after = lab.sched.task(task);
            format!("{out_of_budget}, CPU {before}, then {}, of {} CPUs", after.cpu.0, after.nr_cpus_allowed)
        });
        expected.assert_eq(&found);
    }

    #[test]
    fn such_a_task_continues_elsewhere_with_its_next_budget() {
        check(
            &[0, 1, 2, 3],
            expect![[r#"
            v4.13..v6.3: true, CPU 3, then 0, of 4 CPUs
            v6.10..v7.3: true, CPU 3, then 2, of 4 CPUs"#]],
        );
        check(&[1, 3], expect!["v4.13..v7.3: true, CPU 3, then 1, of 2 CPUs"]);
        check(&[3], expect!["v4.13..v7.3: true, CPU 3, then 0, of 1 CPUs"]);
    }
}
