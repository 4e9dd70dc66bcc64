//! Which deadline tasks are pushed and pulled, and their destinations.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::cfs_rq::before;
use crate::class::Class;
use crate::{DlPush, Push, Sched};

impl Sched {
    /// The earliest deadline task that waits on a CPU and may run on `on` (or on any other CPU).
    ///
    /// Kernel: pick_next_pushable_dl_task(), pick_earliest_pushable_dl_task(), kernel/sched/deadline.c, v6.12.
    fn pushable_dl(&self, cpu: CpuId, on: Option<CpuId>) -> Option<TaskId> {
        self.pushable_dls(cpu, on).next()
    }

    /// The deadline tasks that wait on a CPU and may run on `on` (or on any other CPU), the earliest first.
    pub fn pushable_dls(&self, cpu: CpuId, on: Option<CpuId>) -> impl Iterator<Item = TaskId> {
        self.rqs[cpu].dl_queue.iter().copied().filter(move |&task| self.is_pushable(task, cpu, on))
    }

    /// Whether a CPU has pushable deadline tasks.
    ///
    /// Kernel: update_dl_migration(), kernel/sched/deadline.c, v6.1; enqueue_pushable_dl_task(), v6.12.
    pub fn is_dl_overloaded(&self, cpu: CpuId) -> bool {
        match self.kernel.rules.dl_push {
            DlPush::Overloaded => {
                let queue = &self.rqs[cpu].dl_queue;
                queue.len() > 1 && queue.iter().any(|&task| self.task(task).nr_cpus_allowed > 1)
            }
            DlPush::Waiting => self.pushable_dl(cpu, None).is_some(),
        }
    }

    /// The deadline task that a CPU runs.
    fn curr_dl(&self, cpu: CpuId) -> Option<TaskId> {
        self.rqs[cpu].curr.task().filter(|&curr| self.class_of(curr) == Class::Dl)
    }

    /// Whether one deadline task is earlier than another.
    fn is_earlier_dl(&self, task: TaskId, than: TaskId) -> bool {
        before(self.task(task).dl_deadline, self.task(than).dl_deadline)
    }

    /// Kernel: push_dl_task(), kernel/sched/deadline.c, v6.1, v6.12.
    pub(super) fn decide_push_dl(&self, by: CpuId, cpu: CpuId) -> Push {
        let overloaded = self.is_dl_overloaded(cpu);
        let Some(task) = self.pushable_dl(cpu, None).filter(|_| overloaded) else { return Push::Nothing };
        let gives_way = |curr| self.is_earlier_dl(task, curr) && self.task(curr).nr_cpus_allowed > 1;
        if self.curr_dl(cpu).is_some_and(gives_way) {
            return Push::RunsHere;
        }
        self.push_of(by, task, cpu)
    }

    /// A task that waits alone may be pushed from v6.7 on, but is not pulled.
    ///
    /// Kernel: pull_dl_task(), kernel/sched/deadline.c, v6.1, v6.12.
    pub(super) fn decide_pull_dl(&self, to: CpuId, from: CpuId) -> Option<TaskId> {
        let rq = &self.rqs[from];
        let queued = rq.dl_queue.len() + usize::from(rq.fair_server.runs());
        if queued < 2 {
            return None;
        }
        let task = self.pushable_dl(from, Some(to))?;
        // One that is earlier than the running task is about to run there. The kernel does not ask for the class of that
        // one, so the deadline counts that a fair task had when it was a deadline task.
        let next_there = rq.curr.task().is_some_and(|curr| self.is_earlier_dl(task, curr));
        (self.is_earliest_dl(task, to) && !next_there).then_some(task)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NewTask, Policy};

    fn within(lab: &Lab, runtime: u64, deadline: u64) -> NewTask {
        let policy =
            Policy::Deadline { runtime: runtime * MS, deadline: deadline * MS, period: deadline * MS };
        NewTask { policy, ..lab.spec() }
    }

    #[test]
    fn the_earliest_deadlines_run_and_the_next_one_is_pulled_when_a_cpu_is_free() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let [early, later, last] = [100, 200, 300].map(|deadline| within(&lab, 90, deadline));
            lab.fork("a", 0, early);
            // It would wait behind the first.
            let b = lab.fork("b", 0, later);
            let before = format!("{}, {}", lab.running(0), lab.running(1));
            let c = lab.fork("c", 0, last);
            let waits = lab.sched.task(c).cpu.0;
            lab.sleep(b);
            format!("{before}; c waits on {waits}, then {} runs on 1", lab.running(1))
        });
        expect!["v4.13..v7.3: a, b; c waits on 0, then c runs on 1"].assert_eq(&found);
    }

    #[test]
    fn one_that_waits_alone_is_not_pulled_and_one_of_two_is() {
        let found = |others: usize| {
            by_kernel("", |kernel| {
                let mut lab = Lab::new(kernel, "1x1x2");
                let stop = NewTask { policy: Policy::Stop, ..lab.spec() };
                lab.fork("stopper", 1, stop);
                for deadline in (100..).step_by(100).take(1 + others) {
                    let spec = within(&lab, 10, deadline);
                    lab.fork("waits", 1, spec);
                }
                let spec = within(&lab, 10, 50);
                let leaves = lab.fork("leaves", 0, spec);
                lab.sleep(leaves);
                String::from(lab.running(0))
            })
        };
        expect!["v4.13..v7.3: idle"].assert_eq(&found(0));
        expect!["v4.13..v7.3: waits"].assert_eq(&found(1));
    }

    /// A fair task that was a deadline task runs with its server on CPU 1 while a deadline task waits.
    #[test]
    fn a_task_that_is_earlier_than_the_running_one_once_was_is_not_pulled() {
        let pulled = [50, 300].map(|deadline| {
            let mut lab = Lab::new("v7.2", "1x1x2").without_ticks();
            let fair = lab.hog("fair", 1);
            let waits = within(&lab, 10, 100);
            let waits = lab.fork("waits", 1, waits);
            lab.sched.rqs[CpuId(1)].curr = crate::Curr::Task(fair);
            lab.sched.rqs[CpuId(1)].fair_server.state = crate::class::ServerState::Runs;
            lab.sched.task_mut(fair).dl_deadline = lab.time().0 + deadline * MS;
            lab.sched.decide_pull_dl(CpuId(0), CpuId(1)) == Some(waits)
        });
        assert_eq!(pulled, [true, false]);
    }

    #[test]
    fn one_with_a_new_budget_leaves_its_cpu_or_waits_there_for_the_switch() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            lab.hog("f", 0);
            let spec = within(&lab, 20, 100);
            let task = lab.fork("d", 0, spec);
            lab.run(50 * MS);
            assert_eq!(lab.running(0), "f", "{kernel}: the budget is used up");
            assert_eq!(lab.sched.task(task).cpu, CpuId(0), "{kernel}");
            lab.run(55 * MS);
            format!("{}, {}", lab.running(0), lab.running(1))
        });
        expect![[r#"
            v4.13..v6.3: d, idle
            v6.10..v7.3: f, d"#]]
        .assert_eq(&found);
    }
}
