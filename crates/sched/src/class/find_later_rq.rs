//! Where a deadline task is placed when it wakes: where it ran last, unless it would wait there.
//!
//! It would wait for a task with an earlier deadline, or for one that cannot move. Then it is placed on the
//! nearest CPU without deadline tasks, else on the one whose earliest deadline is the latest.

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::TaskId;

use super::nearest::{Nearest, Taken};
use crate::cfs_rq::before;
use crate::class::Class;
use crate::{Placement, Reason, Sched, TaskState};

impl Sched {
    /// A CPU for a deadline task that wakes.
    ///
    /// Kernel: select_task_rq_dl(), kernel/sched/deadline.c, v6.12. That capacities differ is left out.
    pub fn select_task_rq_dl(&self, task: TaskId, this: CpuId) -> Placement {
        let prev = self.task(task).wake_cpu;
        let taken = self.later_for_woken(task, this).and_then(|later| self.take_nearest(&later, this));
        Taken::placement(taken.filter(|taken| self.is_earliest_dl(task, taken.cpu)), prev, Reason::LaterDl)
    }

    /// The CPUs from which one is chosen for a woken deadline task; `None` if it stays where it was.
    fn later_for_woken(&self, task: TaskId, this: CpuId) -> Option<Nearest> {
        let entry = self.task(task);
        let curr = self.rqs[entry.wake_cpu].curr_seen().task()?;
        let (class, running) = (self.class_of(curr), self.task(curr));
        let waits = class == Class::Dl
            && (running.nr_cpus_allowed < 2 || !before(entry.dl_deadline, running.dl_deadline));
        (waits && entry.nr_cpus_allowed > 1 && entry.state != TaskState::New)
            .then(|| self.find_later_rq(task, this))
    }

    /// The earliest deadline that is queued on a CPU, of a task or of the fair server.
    ///
    /// Kernel: inc_dl_deadline(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn earliest_dl(&self, cpu: CpuId) -> Option<u64> {
        if self.fair_server_first(cpu) {
            return Some(self.rqs[cpu].fair_server.deadline);
        }
        self.rqs[cpu].dl_queue.first().map(|&task| self.task(task).dl_deadline)
    }

    /// Whether a task's deadline is earlier than all that are queued on a CPU.
    ///
    /// Kernel: dl_task_is_earliest_deadline(), kernel/sched/deadline.c, v6.12.
    pub(super) fn is_earliest_dl(&self, task: TaskId, cpu: CpuId) -> bool {
        self.earliest_dl(cpu).is_none_or(|earliest| before(self.task(task).dl_deadline, earliest))
    }

    /// The CPUs from which one is chosen: those without deadline tasks, else the one with the latest
    /// deadline.
    ///
    /// Kernel: find_later_rq(), cpudl_find(), kernel/sched/deadline.c and cpudeadline.c, v6.12.
    pub fn find_later_rq(&self, task: TaskId, this: CpuId) -> Nearest {
        let entry = self.task(task);
        let active = || {
            let cpus = self.rqs.iter().filter(|(_, rq)| rq.active).map(|(cpu, _)| cpu);
            cpus.filter(|&cpu| self.shares_root_domain(cpu, entry.cpu))
        };
        let free = active().filter(|&cpu| !self.rqs[cpu].dl_runnable() && entry.allowed.contains(cpu));
        let mut mask = CpuMask::of(self.rqs.len(), free);
        if mask.is_empty() {
            let deadlines = active().filter_map(|cpu| Some((self.earliest_dl(cpu)?, cpu)));
            // The first of equals.
            let latest = deadlines.reduce(|a, b| if before(a.0, b.0) { b } else { a });
            if let Some((deadline, cpu)) = latest
                && entry.allowed.contains(cpu)
                && before(entry.dl_deadline, deadline)
            {
                mask.set(cpu);
            }
        }
        self.nearest(task, this, mask)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::sync::Arc;

    use expect_test::{Expect, expect};
    use schedlab_topology::{CpuId, CpuMask};

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NewTask, Policy};

    /// Where a sleeper with a deadline in 20 ms is placed: it slept on CPU 0, CPU 3 wakes it, and CPUs run tasks with
    /// these deadlines.
    fn check(running: &'static [(u16, u64)], last_taken: u16, expected: Expect) {
        let decided = |kernel: &str| -> String {
            let mut lab = Lab::new(kernel, "1x1x4");
            let within = |lab: &Lab, ms| {
                let policy = Policy::Deadline { runtime: MS, deadline: ms * MS, period: 100 * MS };
                NewTask { policy, ..lab.spec() }
            };
            let spec = within(&lab, 20);
            let woken = lab.fork("woken", 0, spec);
            lab.sleep(woken);
            for &(cpu, deadline) in running {
                let spec = within(&lab, deadline);
                lab.fork(&format!("dl{cpu}"), cpu, spec);
            }
            lab.sched.rqs[CpuId(3)].any_cpu = CpuId(last_taken);
            let placement = lab.sched.select_task_rq_dl(woken, CpuId(3));
            format!("cpu {}, {}", placement.cpu.0, placement.reason.name())
        };
        expected.assert_eq(&by_kernel("", decided));
    }

    #[test]
    fn a_deadline_task_does_not_wait_behind_an_earlier_one_if_some_cpu_has_none_or_a_later_one() {
        check(&[], 0, expect!["v4.13..v7.3: cpu 0, KEEP_CPU"]);
        check(&[(0, 30)], 0, expect!["v4.13..v7.3: cpu 0, KEEP_CPU"]);
        check(&[(0, 10)], 0, expect!["v4.13..v7.3: cpu 3, LATER_DL"]);
        check(&[(0, 10), (1, 30), (2, 40), (3, 30)], 0, expect!["v4.13..v7.3: cpu 2, LATER_DL"]);
        check(&[(0, 10), (1, 11), (2, 12), (3, 13)], 0, expect!["v4.13..v7.3: cpu 0, KEEP_CPU"]);
    }

    #[test]
    fn a_cpu_whose_fair_server_runs_has_a_deadline() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let cpus = |cpu: u16| CpuMask::of(2, [CpuId(cpu)]);
            let of =
                |lab: &Lab, cpu: u16, policy| NewTask { policy, allowed: Arc::new(cpus(cpu)), ..lab.spec() };
            for (name, policy) in [("rt", Policy::Fifo(10)), ("fair", Policy::Normal)] {
                let spec = of(&lab, 1, policy);
                lab.fork(name, 1, spec);
            }
            lab.run(960 * MS);
            let spec = NewTask {
                policy: Policy::Deadline { runtime: MS, deadline: 3000 * MS, period: 3000 * MS },
                ..lab.spec()
            };
            let task = lab.fork("dl", 0, spec);
            let free = lab.sched.find_later_rq(task, CpuId(0)).cpus;
            format!("CPU 1 runs {}, free of deadlines: {}", lab.running(1), free.contains(CpuId(1)))
        });
        expect![[r#"
            v4.13..v6.10: CPU 1 runs fair, free of deadlines: true
            v6.12..v7.3: CPU 1 runs fair, free of deadlines: false"#]]
        .assert_eq(&found);
    }

    #[test]
    fn of_several_cpus_the_first_is_taken_or_each_in_turn() {
        check(
            &[(0, 10), (3, 15)],
            1,
            expect![[r#"
                v4.13..v5.5: cpu 1, LATER_DL
                v5.18..v7.3: cpu 2, LATER_DL"#]],
        );
        check(&[(0, 10), (3, 15)], 3, expect!["v4.13..v7.3: cpu 1, LATER_DL"]);
    }
}
