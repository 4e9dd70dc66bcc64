//! Work that a task does before it returns to user mode.

use schedlab_units::{TaskId, Time};

use crate::Sched;

/// What a task can have to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskWork {
    /// v7.2: examine where the threads of its process ran.
    Cache,
    /// v6.18: leave its queue, as its group is out of quota.
    Throttle,
}

/// The work that waits for a task. What was added last is done first, as task_work_add() puts it in front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskWorks {
    cache: bool,
    throttle: bool,
    throttle_first: bool,
}

impl TaskWorks {
    /// Adds work, unless it waits already.
    pub(crate) fn add(&mut self, work: TaskWork) {
        match work {
            TaskWork::Cache if !self.cache => (self.cache, self.throttle_first) = (true, false),
            TaskWork::Throttle if !self.throttle => (self.throttle, self.throttle_first) = (true, true),
            _ => {}
        }
    }

    /// Whether such work waits.
    pub(crate) fn has(&self, work: TaskWork) -> bool {
        match work {
            TaskWork::Cache => self.cache,
            TaskWork::Throttle => self.throttle,
        }
    }

    /// Takes such work out.
    pub(crate) fn take(&mut self, work: TaskWork) -> bool {
        match work {
            TaskWork::Cache => core::mem::take(&mut self.cache),
            TaskWork::Throttle => core::mem::take(&mut self.throttle),
        }
    }

    /// The work that is next.
    fn first(&self) -> Option<TaskWork> {
        match (self.cache, self.throttle) {
            (true, throttle) if !throttle || !self.throttle_first => Some(TaskWork::Cache),
            (_, true) => Some(TaskWork::Throttle),
            _ => None,
        }
    }
}

impl Sched {
    /// Whether a task can have work to do before it returns to user mode, see [`Sched::exit_to_user`].
    #[inline]
    pub fn has_task_work(&self) -> bool {
        self.bandwidth_used || self.sched_cache_active()
    }

    /// The running task of a CPU is about to return to user mode, and does the work that waits for this. What is added
    /// meanwhile waits for the next time: a task that leaves its queue is switched from at once. True if it has
    /// just left its queue, so that the driver must call [`Sched::schedule`] with [`crate::Deactivate::Yielded`].
    ///
    /// Kernel: task_work_run(), kernel/task_work.c, v7.2.
    pub fn exit_to_user(&mut self, task: TaskId, now: Time) -> bool {
        let mut left = false;
        let mut works = self.task(task).works;
        while let Some(work) = works.first() {
            works.take(work);
            match work {
                TaskWork::Cache => self.task_cache_work(task, now),
                TaskWork::Throttle => left |= self.throttle_cfs_rq_work(task, now),
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::{Lab, MS};
    use crate::{NewTask, SeId, TgId};
    use schedlab_topology::CpuId;

    /// The group of a task is out of quota. As the task leaves its queue for that, it is charged, so the group above runs out
    /// too, and adds the same work again.
    #[test]
    fn work_that_is_added_while_it_is_done_waits_for_the_next_time() {
        let mut lab = Lab::new("v7.2", "1x1x1").without_ticks();
        let outer = lab.sched.new_group(TgId::ROOT, 1024 << 10, CpuId(0), lab.time());
        let inner = lab.sched.new_group(outer, 1024 << 10, CpuId(0), lab.time());
        let task = lab.fork("limited", 0, NewTask { tg: inner, ..lab.spec() });
        for (tg, quota) in [(outer, 4 * MS), (inner, MS)] {
            lab.sched.set_bandwidth(tg, Some(quota), 1000 * MS, 0, lab.time());
        }
        lab.now += 2 * MS;
        let now = lab.time();
        lab.sched.update_rq_clock(CpuId(0), now);
        lab.sched.update_curr(lab.sched.cfs_rq_of(SeId(task.0)));
        lab.now += 4 * MS;
        let now = lab.time();
        assert!(lab.sched.exit_to_user(task, now), "the inner group is out of quota");
        assert!(lab.sched.task(task).throttled);
        assert!(lab.sched.task(task).works.has(TaskWork::Throttle), "and now the outer one is too");
    }

    #[test]
    fn the_last_is_first() {
        let order = |all: &[TaskWork]| {
            let mut works = TaskWorks::default();
            all.iter().for_each(|&work| works.add(work));
            core::iter::from_fn(|| works.first().inspect(|&work| assert!(works.take(work))))
                .collect::<alloc::vec::Vec<_>>()
        };
        use TaskWork::{Cache, Throttle};
        assert_eq!(order(&[Cache]), [Cache]);
        assert_eq!(order(&[Cache, Throttle]), [Throttle, Cache]);
        assert_eq!(order(&[Throttle, Cache, Throttle]), [Cache, Throttle]);
        assert_eq!(order(&[]), []);
    }
}
