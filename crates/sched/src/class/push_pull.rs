//! RT tasks go where they can run.
//!
//! The n highest RT tasks should run on n CPUs. So one that waits behind another is
//! pushed to a CPU that runs something lower, and a CPU that is about to run something
//! lower pulls one that waits elsewhere.
//!
//! Deadline tasks are not pushed or pulled.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::class::Class;
use crate::{Curr, DequeueFlags, EnqueueFlags, MigrationCause, Sched};

impl Sched {
    /// Priority of what a CPU runs, as RT tasks see it: 0 is lower than all of them.
    pub(crate) fn rt_level(&self, cpu: CpuId) -> u8 {
        match self.rqs[cpu].curr {
            Curr::Idle => 0,
            Curr::Task(task) if self.class_of(task) > Class::Rt => u8::MAX,
            Curr::Task(task) => self.task(task).policy.rt_priority(),
        }
    }

    /// The highest RT task that waits on a CPU and may run on `on` (or on any other CPU).
    ///
    /// Kernel: pick_next_pushable_task(), pick_highest_pushable_task(), kernel/sched/rt.c, v6.12.
    fn pushable_rt(&self, cpu: CpuId, on: Option<CpuId>) -> Option<TaskId> {
        let rq = &self.rqs[cpu];
        rq.rt_queue.iter().copied().find(|&task| {
            let entry = self.task(task);
            rq.curr != Curr::Task(task)
                && entry.nr_cpus_allowed > 1
                && on.is_none_or(|on| entry.allowed.contains(on))
        })
    }

    /// Pushes waiting RT tasks of a CPU to others while that helps.
    ///
    /// Kernel: push_rt_tasks(), kernel/sched/rt.c, v6.12.
    pub(crate) fn push_rt_tasks(&mut self, cpu: CpuId, now: Time) {
        while self.rqs[cpu].rt_queue.len() > 1 {
            let Some(task) = self.pushable_rt(cpu, None) else { return };
            if self.task(task).policy.rt_priority() > self.rt_level(cpu) {
                // It will run here at the next switch.
                return self.resched_now(cpu);
            }
            let Some(to) = self.find_lowest_rq(task, cpu).first().filter(|&to| to != cpu) else { return };
            self.migrate_rt(task, to, now);
        }
    }

    /// Pulls an RT task that waits on another CPU and outranks what is left here; not where a recording tells
    /// what moves.
    ///
    /// Kernel: balance_rt(), pull_rt_task(), kernel/sched/rt.c, v6.12.
    pub(crate) fn pull_rt_task(&mut self, cpu: CpuId, now: Time) {
        let nobody = self.nr_rt_overloaded == 0 || self.balance_watches;
        if nobody || self.rqs[cpu].rt_throttled || !self.rqs[cpu].active {
            return;
        }
        let mut left = self.rqs[cpu].rt_queue.first().map_or(0, |&task| self.task(task).policy.rt_priority());
        for from in (0..self.rqs.len()).map(CpuId::from).filter(|&from| from != cpu) {
            if self.rqs[from].rt_queue.len() < 2 {
                continue;
            }
            let Some(task) = self.pushable_rt(from, Some(cpu)) else { continue };
            let priority = self.task(task).policy.rt_priority();
            // One that outranks the running task is about to run there.
            if priority > left && priority <= self.rt_level(from) {
                left = priority;
                self.migrate_rt(task, cpu, now);
            }
        }
    }

    fn migrate_rt(&mut self, task: TaskId, to: CpuId, now: Time) {
        self.deactivate(task, DequeueFlags { migrate: true, ..DequeueFlags::default() }, now);
        self.set_task_cpu(task, to, MigrationCause::PushPull, now);
        self.activate(task, to, EnqueueFlags { migrated: true, ..EnqueueFlags::default() }, now);
        if self.rt_level(to) < self.task(task).policy.rt_priority() {
            self.resched_now(to);
        }
    }
}
