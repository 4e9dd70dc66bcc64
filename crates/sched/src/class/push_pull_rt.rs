//! Which RT tasks are pushed and pulled, and their destinations.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{Curr, Policy, Push, RtPush, Sched};

/// The highest priority that an RT task can have.
///
/// Kernel: MAX_RT_PRIO, include/linux/sched/prio.h.
const MAX_RT_PRIORITY: u8 = 99;

impl Sched {
    /// RT priority of the current task of a CPU; 0 is lower than all RT tasks.
    pub(crate) fn rt_level(&self, cpu: CpuId) -> u8 {
        match self.rqs[cpu].curr_seen() {
            Curr::Idle => 0,
            Curr::Task(task) => self.task(task).policy.rt_level(),
        }
    }

    /// The highest RT task that waits on a CPU and may run on `on` (or on any other CPU). Of several, the one that has waited
    /// longest: not one that began to wait when a task of a higher class preempted it, though it runs first here.
    ///
    /// Kernel: pick_next_pushable_task(), pick_highest_pushable_task(), kernel/sched/rt.c, v6.12.
    fn pushable_rt(&self, cpu: CpuId, on: Option<CpuId>) -> Option<TaskId> {
        let priority = |task: TaskId| self.task(task).policy.rt_priority();
        let queue = &self.rqs[cpu].rt_queue;
        let highest = queue.iter().copied().position(|task| self.is_pushable(task, cpu, on))?;
        let equals =
            queue[highest..].iter().copied().take_while(|&task| priority(task) == priority(queue[highest]));
        equals
            .filter(|&task| self.is_pushable(task, cpu, on))
            .min_by_key(|&task| self.task(task).rt_waits_from)
    }

    /// Whether a CPU is marked as overloaded with RT tasks.
    ///
    /// Kernel: rt_set_overload(), update_rt_migration(), kernel/sched/rt.c, v6.1; enqueue_pushable_task(), v6.12.
    pub(super) fn is_rt_overloaded(&self, cpu: CpuId) -> bool {
        let queue = &self.rqs[cpu].rt_queue;
        match self.kernel.rules.rt_push {
            RtPush::Overloaded => {
                queue.len() > 1 && queue.iter().any(|&task| self.task(task).nr_cpus_allowed > 1)
            }
            RtPush::Waiting => self.pushable_rt(cpu, None).is_some(),
        }
    }

    /// How many RT tasks are queued on a CPU that may have pushable ones.
    ///
    /// Kernel: update_rt_migration(), kernel/sched/rt.c, v6.1; enqueue_pushable_task(), v6.12.
    pub(crate) fn rt_overload(&self) -> usize {
        match self.kernel.rules.rt_push {
            RtPush::Overloaded => 2,
            RtPush::Waiting => 1,
        }
    }

    /// Kernel: push_rt_task(), kernel/sched/rt.c, v6.1, v6.12.
    pub(super) fn decide_push_rt(&self, by: CpuId, cpu: CpuId) -> Push {
        if self.rqs[cpu].rt_queue.len() < self.rt_overload() {
            return Push::Nothing;
        }
        let Some(task) = self.pushable_rt(cpu, None) else { return Push::Nothing };
        if self.task(task).policy.rt_priority() > self.rt_level(cpu) {
            return Push::RunsHere;
        }
        self.push_of(by, task, cpu)
    }

    /// Whether a task of RT or a higher class that leaves a CPU outranks all RT tasks that are queued there. The
    /// stopper outranks those below the highest priority.
    ///
    /// Kernel: need_pull_rt_task(), kernel/sched/rt.c, v6.1, v6.12.
    pub(crate) fn need_pull_rt_task(&self, cpu: CpuId, prev: TaskId) -> bool {
        let level = match self.task(prev).policy {
            Policy::Stop => MAX_RT_PRIORITY,
            policy => policy.rt_level(),
        };
        level > self.highest_rt(cpu)
    }

    /// The highest priority of the RT tasks that are queued on a CPU; 0 if none is.
    fn highest_rt(&self, cpu: CpuId) -> u8 {
        self.rqs[cpu].rt_queue.first().map_or(0, |&task| self.task(task).policy.rt_priority())
    }

    /// Kernel: pull_rt_task(), kernel/sched/rt.c, v6.12.
    pub(super) fn decide_pull_rt(&self, to: CpuId, from: CpuId) -> Option<TaskId> {
        if self.rqs[from].rt_queue.len() < self.rt_overload() {
            return None;
        }
        let left = self.highest_rt(to);
        let task = self.pushable_rt(from, Some(to))?;
        let priority = self.task(task).policy.rt_priority();
        // One that outranks the running task is about to run there.
        (priority > left && priority <= self.rt_level(from)).then_some(task)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;
    use schedlab_topology::{CpuId, CpuMask};

    use crate::class::Class;
    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{EnqueueFlags, MigrationCause, NewTask, Policy, Push};

    #[test]
    fn of_equal_tasks_the_one_that_waited_first_is_pulled_not_the_one_that_runs_first() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let here = NewTask { allowed: CpuMask::one(2, CpuId(0)).into(), ..lab.spec() };
            let fifo = NewTask { policy: Policy::Fifo(10), ..here.clone() };
            let tasks = ["runs", "waits"].map(|name| lab.fork(name, 0, fifo.clone()));
            let policy = Policy::Deadline { runtime: MS, deadline: 10 * MS, period: 10 * MS };
            lab.fork("deadline", 0, NewTask { policy, ..here });
            for task in tasks {
                let entry = lab.sched.task_mut(task);
                (entry.allowed, entry.nr_cpus_allowed) = (CpuMask::all(2).into(), 2);
            }
            let first = lab.sched.rqs[CpuId(0)].rt_queue[0] == tasks[0];
            let pulled = lab.sched.decide_pull_rt(CpuId(1), CpuId(0)) == Some(tasks[1]);
            format!("{}, first of its queue {first}, the other is pulled {pulled}", lab.running(0))
        });
        expect!["v4.13..v7.3: deadline, first of its queue true, the other is pulled true"].assert_eq(&found);
    }

    #[test]
    fn a_cpu_that_domains_were_built_without_pushes_to_no_other() {
        let told = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let spec = |lab: &Lab, priority| NewTask { policy: Policy::Fifo(priority), ..lab.spec() };
            let above = spec(&lab, 20);
            lab.fork("above", 1, above);
            let now = lab.time();
            let waits = lab.sched.new_task(&spec(&lab, 10), None, now);
            lab.sched.set_task_cpu(waits, CpuId(1), MigrationCause::Fork, now);
            lab.sched.activate(waits, CpuId(1), EnqueueFlags::default(), now);
            let moves = |lab: &Lab| {
                let push = lab.sched.decide_push(CpuId(1), CpuId(1), Class::Rt);
                matches!(push, Push::Moves { .. })
            };
            let before = moves(&lab);
            lab.sched.rqs[CpuId(1)].active = false;
            lab.sched.rebuild_domains(now);
            format!("{before}, {}", moves(&lab))
        };
        expect!["v4.13..v7.3: true, false"].assert_eq(&by_kernel("", told));
    }
}
