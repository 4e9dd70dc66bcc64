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

    /// The running task of a CPU is about to return to user mode, and does the work that waits for this: true if it has
    /// just left its queue, so that the driver must call [`Sched::schedule`] with [`crate::Deactivate::Yielded`].
    ///
    /// Kernel: task_work_run(), kernel/task_work.c, v7.2.
    pub fn exit_to_user(&mut self, task: TaskId, now: Time) -> bool {
        let mut left = false;
        while let Some(work) = self.task(task).works.first() {
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
