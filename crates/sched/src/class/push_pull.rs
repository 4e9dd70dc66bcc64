//! Real-time and deadline tasks are moved to CPUs where they can run.
//!
//! The n highest of them should run on n CPUs. So a task that waits behind another is pushed to a CPU that runs a
//! lower one, and a CPU that is about to run a lower task pulls one that waits elsewhere.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::nearest::{Nearest, Taken};
use crate::class::Class;
use crate::{Curr, DequeueFlags, EnqueueFlags, Feature, MigrationCause, Reason, Sched};

/// What happens to the tasks of a class that wait on a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Push {
    /// No waiting task may go elsewhere, or no CPU is better.
    Nothing,
    /// The first of them runs here at the next switch.
    RunsHere,
    /// One task moves.
    Moves {
        /// The task.
        task: TaskId,
        /// CPU it moves to.
        to: CpuId,
        /// CPUs that are equally suitable.
        nearest: Nearest,
    },
}

impl Push {
    /// The reason.
    pub fn reason(&self) -> Reason {
        match self {
            Push::Nothing => Reason::PushNothing,
            Push::RunsHere => Reason::PushRunsHere,
            Push::Moves { .. } => Reason::PushLower,
        }
    }
}

impl Sched {
    /// What happens to the tasks of a class that wait on a CPU, if the CPU `by` pushes them.
    ///
    /// Kernel: push_rt_task(), kernel/sched/rt.c, push_dl_task(), kernel/sched/deadline.c, v6.1, v6.12.
    pub fn decide_push(&self, by: CpuId, cpu: CpuId, class: Class) -> Push {
        match class {
            Class::Rt => self.decide_push_rt(by, cpu),
            Class::Dl => self.decide_push_dl(by, cpu),
            _ => Push::Nothing,
        }
    }

    /// The task of a class that is pulled from one CPU to another.
    ///
    /// Kernel: pull_rt_task(), kernel/sched/rt.c, pull_dl_task(), kernel/sched/deadline.c, v6.12.
    pub fn decide_pull(&self, to: CpuId, from: CpuId, class: Class) -> Option<TaskId> {
        match class {
            Class::Rt => self.decide_pull_rt(to, from),
            Class::Dl => self.decide_pull_dl(to, from),
            _ => None,
        }
    }

    /// Whether a task of a CPU's queue waits there and may run on `on` (or on any other CPU).
    ///
    /// Kernel: pick_rt_task(), kernel/sched/rt.c, pick_dl_task(), kernel/sched/deadline.c, v6.1.
    pub(super) fn is_pushable(&self, task: TaskId, cpu: CpuId, on: Option<CpuId>) -> bool {
        let entry = self.task(task);
        self.rqs[cpu].curr != Curr::Task(task)
            && entry.nr_cpus_allowed > 1
            && on.is_none_or(|on| entry.allowed.contains(on))
    }

    /// Where a task that waits on a CPU is moved if `by` pushes it: each CPU takes the suitable ones in a turn of its
    /// own.
    pub fn push_of(&self, by: CpuId, task: TaskId, cpu: CpuId) -> Push {
        let nearest = self.cpus_that_would_do(task, by);
        match self.take_nearest(&nearest, by) {
            Some(Taken { cpu: to, .. }) if to != cpu => Push::Moves { task, to, nearest },
            _ => Push::Nothing,
        }
    }

    /// A task was woken by a CPU or is new, and this has already been reported. If it may move and waits behind
    /// another task of its class, tasks are pushed.
    ///
    /// Kernel: task_woken_rt(), kernel/sched/rt.c, task_woken_dl(), kernel/sched/deadline.c, v6.1, v6.12.
    pub fn task_woken(&mut self, by: CpuId, task: TaskId, now: Time) {
        let cpu = self.task(task).cpu;
        if self.waits_behind_class(cpu, task) {
            self.push_tasks(by, cpu, self.class_of(task), now);
        }
    }

    fn waits_behind_class(&self, cpu: CpuId, task: TaskId) -> bool {
        let rq = &self.rqs[cpu];
        let Curr::Task(curr) = rq.curr else { return false };
        if curr == task || rq.switches_at_once() || self.task(task).nr_cpus_allowed < 2 {
            return false;
        }
        let (bound, curr_class) = (self.task(curr).nr_cpus_allowed < 2, self.class_of(curr));
        match self.class_of(task) {
            Class::Rt => curr_class >= Class::Rt && (bound || !self.rt_preempts(cpu, task)),
            Class::Dl => curr_class == Class::Dl && (bound || !self.dl_preempts(cpu, task)),
            _ => false,
        }
    }

    /// Whether the running task makes room for one with its own priority or deadline: it can move elsewhere, and the
    /// other cannot. The switch to that task pushes it. For a deadline task the request has no effect, as the task
    /// that was queued first stays first.
    ///
    /// Kernel: check_preempt_equal_prio(), kernel/sched/rt.c, check_preempt_equal_dl(), kernel/sched/deadline.c, v6.1, v6.12.
    pub(crate) fn makes_room_for(&self, cpu: CpuId, task: TaskId, curr: TaskId) -> bool {
        let (woken, running) = (self.task(task), self.task(curr));
        let equal = woken.policy.rt_priority() == running.policy.rt_priority()
            && (woken.policy.class() != Class::Dl || woken.dl_deadline == running.dl_deadline);
        let finds = |task: TaskId| {
            self.task(task).nr_cpus_allowed > 1 && !self.cpus_that_would_do(task, cpu).cpus.is_empty()
        };
        equal && finds(curr) && !finds(task)
    }

    /// The CPUs that run a lower-priority task, or have no deadline or a later one; one of them is chosen.
    fn cpus_that_would_do(&self, task: TaskId, this: CpuId) -> Nearest {
        match self.class_of(task) {
            Class::Rt => self.find_lowest_rq(task, this),
            _ => self.find_later_rq(task, this),
        }
    }

    /// Pushes waiting tasks of a class to other CPUs while that helps.
    ///
    /// Kernel: push_rt_tasks(), kernel/sched/rt.c, push_dl_tasks(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn push_tasks(&mut self, by: CpuId, cpu: CpuId, class: Class, now: Time) {
        // The callback that pushes everything replaces those that push waiting tasks.
        while !self.pushes_all(cpu) && self.push_task(by, cpu, class, now) {}
    }

    /// Pushes one task, and returns whether one moved.
    pub(crate) fn push_task(&mut self, by: CpuId, cpu: CpuId, class: Class, now: Time) -> bool {
        self.mover.push(self, by, cpu, class, now)
    }

    /// Decides about one task and moves it.
    ///
    /// Kernel: push_rt_task(), kernel/sched/rt.c, push_dl_task(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn decide_and_push(&mut self, by: CpuId, cpu: CpuId, class: Class, now: Time) -> bool {
        match self.decide_push(by, cpu, class) {
            Push::Nothing => false,
            Push::RunsHere => {
                self.resched_now(cpu);
                false
            }
            Push::Moves { task, to, nearest } => {
                if nearest.in_turn {
                    self.rqs[by].any_cpu = to;
                }
                self.move_waiting(task, to, MigrationCause::Push, now);
                true
            }
        }
    }

    /// Pulls tasks of a class that wait on other CPUs, or requests that they be pushed.
    ///
    /// Kernel: balance_rt(), kernel/sched/rt.c, balance_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn pull_tasks(&mut self, to: CpuId, class: Class, now: Time) {
        if self.rqs[to].active && (class != Class::Rt || self.nr_rt_overloaded > 0) {
            self.mover.pull(self, to, class, now);
        }
    }

    /// Decides about the tasks of each CPU and moves them.
    ///
    /// Kernel: pull_rt_task(), kernel/sched/rt.c, pull_dl_task(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn decide_and_pull(&mut self, to: CpuId, class: Class, now: Time) {
        if class == Class::Rt && self.kernel.has(Feature::RtPushIpi) {
            self.tell_cpu_to_push(to);
            return;
        }
        for from in (0..self.rqs.len()).map(CpuId::from).filter(|&from| from != to) {
            if !self.shares_root_domain(from, to) {
                continue;
            }
            if let Some(task) = self.decide_pull(to, from, class) {
                self.move_waiting(task, to, MigrationCause::Pull, now);
            }
        }
    }

    /// Whether RT and deadline tasks may be moved from one CPU to the other. Isolated CPUs, and those that domains were built
    /// without, have a root domain of their own, in which nothing is balanced.
    ///
    /// Kernel: rq_attach_root(), def_root_domain, kernel/sched/topology.c, v6.12.
    pub(super) fn shares_root_domain(&self, a: CpuId, b: CpuId) -> bool {
        let apart = |cpu| self.topology.isolated().contains(cpu) || !self.has_domains(cpu);
        apart(a) == apart(b)
    }

    fn move_waiting(&mut self, task: TaskId, to: CpuId, cause: MigrationCause, now: Time) {
        self.deactivate(task, DequeueFlags { migrate: true, ..DequeueFlags::default() }, now);
        self.set_task_cpu(task, to, cause, now);
        self.activate(task, to, EnqueueFlags { migrated: true, ..EnqueueFlags::default() }, now);
        if self.kernel.has(Feature::MovedMayPreempt) {
            self.wakeup_preempt(to, task, 0);
        }
        self.resched_now(to);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::sync::Arc;

    use expect_test::expect;
    use schedlab_topology::{CpuId, CpuMask};

    use schedlab_units::TaskId;

    use super::Push;
    use crate::class::Class;
    use crate::drawing::by_kernel;
    use crate::lab::Lab;
    use crate::{MigrationCause, NewTask, Policy};

    #[test]
    fn a_cpu_that_picks_its_task_again_pushes_those_that_wait_up_to_v6_11() {
        let found = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let low = lab.fork("low", 0, NewTask { policy: Policy::Fifo(10), ..lab.spec() });
            let of = |period| Policy::Deadline { runtime: period / 10, deadline: period, period };
            let only_here = Arc::new(CpuMask::one(2, CpuId(0)));
            let spec = NewTask { policy: of(100_000_000), allowed: only_here, ..lab.spec() };
            let task = lab.fork("task", 0, spec);
            assert_eq!(
                lab.running(0),
                "task",
                "{kernel}: the other one is of a lower class, so it is not pushed"
            );
            assert_eq!(lab.sched.task(low).cpu, CpuId(0), "{kernel}");
            lab.sched.set_policy(CpuId(0), task, Policy::Fifo(50), lab.time());
            lab.sched.resched_now(CpuId(0));
            lab.settle();
            assert_eq!(lab.running(0), "task", "{kernel}");
            format!("on CPU {}", lab.sched.task(low).cpu.0)
        };
        expect![[r#"
            v4.13..v6.10: on CPU 1
            v6.12..v7.3: on CPU 0"#]]
        .assert_eq(&by_kernel("", found));
    }

    #[test]
    fn a_task_woken_behind_another_is_pushed_but_a_moved_one_is_not() {
        let found = |asleep: bool| {
            move |kernel: &str| -> String {
                let mut lab = Lab::new(kernel, "1x1x3");
                let fifo = |lab: &Lab, priority| NewTask { policy: Policy::Fifo(priority), ..lab.spec() };
                let only_here = Arc::new(CpuMask::one(3, CpuId(0)));
                let spec = NewTask { allowed: only_here, ..fifo(&lab, 10) };
                let task = lab.fork("low", 0, spec);
                if asleep {
                    lab.sleep(task);
                }
                for cpu in [0, 1] {
                    let spec = fifo(&lab, 50);
                    lab.fork("high", cpu, spec);
                }
                let now = lab.time();
                lab.sched.do_set_cpus_allowed(task, Arc::new(CpuMask::all(3)), now);
                if asleep {
                    lab.wake_on(task, CpuId(1));
                } else {
                    let now = lab.time();
                    lab.sched.move_queued_task(task, CpuId(1), MigrationCause::Affinity, now);
                    lab.settle();
                }
                format!("cpu {}, and {} on cpu 2", lab.sched.task(task).cpu.0, lab.running(2))
            }
        };
        expect!["v4.13..v7.3: cpu 2, and low on cpu 2"].assert_eq(&by_kernel("", found(true)));
        expect!["v4.13..v7.3: cpu 1, and idle on cpu 2"].assert_eq(&by_kernel("", found(false)));
    }

    #[test]
    fn a_cpu_that_makes_way_for_a_pulled_task_need_not_read_its_clock_again() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let fifo = |lab: &Lab, priority| NewTask { policy: Policy::Fifo(priority), ..lab.spec() };
            lab.hog("runs", 0);
            for (name, priority) in [("high", 50), ("low", 10)] {
                let spec = NewTask { allowed: Arc::new(CpuMask::one(2, CpuId(1))), ..fifo(&lab, priority) };
                lab.fork(name, 1, spec);
            }
            let (low, now) = (TaskId(2), lab.time());
            lab.sched.do_set_cpus_allowed(low, Arc::new(CpuMask::all(2)), now);
            lab.sched.move_waiting(low, CpuId(0), MigrationCause::Pull, now);
            format!("{}", lab.sched.rqs[CpuId(0)].skip_clock_update)
        });
        expect![[r#"
            v4.13..v6.12: false
            v7.2..v7.3: true"#]]
        .assert_eq(&found);
    }

    #[test]
    fn each_cpu_that_pushes_takes_cpus_in_a_turn_of_its_own() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x4");
            let fifo = |lab: &Lab, priority, cpu| NewTask {
                policy: Policy::Fifo(priority),
                allowed: Arc::new(CpuMask::one(4, CpuId(cpu))),
                ..lab.spec()
            };
            for (name, priority, cpu) in [("high", 50, 0), ("waits", 10, 0), ("other", 20, 1)] {
                let spec = fifo(&lab, priority, cpu);
                lab.fork(name, cpu, spec);
            }
            let (waits, now) = (TaskId(1), lab.time());
            lab.sched.do_set_cpus_allowed(waits, Arc::new(CpuMask::all(4)), now);
            lab.sched.rqs[CpuId(1)].any_cpu = CpuId(2);
            let to = |by| match lab.sched.decide_push(CpuId(by), CpuId(0), Class::Rt) {
                Push::Moves { to, .. } => to.0,
                other => panic!("{other:?}"),
            };
            format!("CPU 0 to CPU {}, CPU 1 to CPU {}", to(0), to(1))
        });
        expect![[r#"
            v4.13..v5.5: CPU 0 to CPU 2, CPU 1 to CPU 2
            v5.18..v7.3: CPU 0 to CPU 2, CPU 1 to CPU 3"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_stopper_that_leaves_lets_a_task_of_real_time_come_from_elsewhere() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let spec = |lab: &Lab, policy| NewTask { policy, ..lab.spec() };
            let [stop, high, low] = [Policy::Stop, Policy::Fifo(50), Policy::Fifo(10)].map(|p| spec(&lab, p));
            let stop = lab.fork("stop", 0, stop);
            lab.fork("high", 1, high);
            lab.fork("low", 1, low);
            let before = String::from(lab.running(1));
            lab.sleep(stop);
            format!("{before}; {}, {}", lab.running(0), lab.running(1))
        });
        expect!["v4.13..v7.3: high; low, high"].assert_eq(&found);
    }

    #[test]
    fn a_movable_task_makes_room_for_a_bound_one_of_its_priority() {
        let found = |bound: bool| {
            move |kernel: &str| -> String {
                let mut lab = Lab::new(kernel, "1x1x2");
                let fifo = |lab: &Lab| NewTask { policy: Policy::Fifo(10), ..lab.spec() };
                let mut spec = fifo(&lab);
                if bound {
                    spec.allowed = Arc::new(CpuMask::one(2, CpuId(0)));
                }
                let woken = lab.fork("woken", 0, spec);
                lab.sleep(woken);
                let spec = fifo(&lab);
                lab.fork("runs", 0, spec);
                let preempt = lab.sched.check_preempt(CpuId(0), woken, 0);
                lab.wake(woken);
                format!("{}: {}, {}", preempt.reason.name(), lab.running(0), lab.running(1))
            }
        };
        expect!["v4.13..v7.3: PREEMPT_EQUAL: woken, runs"].assert_eq(&by_kernel("", found(true)));
        expect!["v4.13..v7.3: KEEP_CLASS: runs, woken"].assert_eq(&by_kernel("", found(false)));
    }
}
