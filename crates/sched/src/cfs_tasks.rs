//! The list of a CPU's fair tasks, most recently used first.
//!
//! The balancer takes candidates from it. It is linked through the tasks, so that adding a task needs no
//! allocation.
//!
//! Kernel: rq->cfs_tasks, account_entity_enqueue(), kernel/sched/fair.c, v6.12.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::Sched;

impl Sched {
    /// Puts a task at the head of a CPU's list.
    #[inline]
    pub(crate) fn cfs_tasks_add(&mut self, cpu: CpuId, task: TaskId) {
        let (head, tail) = self.rqs[cpu].cfs_tasks;
        let entry = self.task_mut(task);
        debug_assert!(!entry.on_list, "a task is on one list");
        entry.on_list = true;
        entry.list_prev = None;
        entry.list_next = head;
        if let Some(head) = head {
            self.task_mut(head).list_prev = Some(task);
        }
        self.rqs[cpu].cfs_tasks = (Some(task), tail.or(Some(task)));
    }

    /// Takes a task off a CPU's list.
    #[inline]
    pub(crate) fn cfs_tasks_remove(&mut self, cpu: CpuId, task: TaskId) {
        let entry = self.task_mut(task);
        debug_assert!(entry.on_list, "the task is on the list");
        entry.on_list = false;
        let (prev, next) = (entry.list_prev.take(), entry.list_next.take());
        match prev {
            Some(prev) => self.task_mut(prev).list_next = next,
            None => self.rqs[cpu].cfs_tasks.0 = next,
        }
        match next {
            Some(next) => self.task_mut(next).list_prev = prev,
            None => self.rqs[cpu].cfs_tasks.1 = prev,
        }
    }

    /// Moves a task to the head of its CPU's list.
    #[inline]
    pub(crate) fn cfs_tasks_move_to_head(&mut self, cpu: CpuId, task: TaskId) {
        let (Some(head), tail) = self.rqs[cpu].cfs_tasks else { return };
        if head == task {
            return;
        }
        let entry = self.task_mut(task);
        let (prev, next) = (entry.list_prev.take(), entry.list_next.replace(head));
        let prev = prev.expect("only the head has none before it");
        self.task_mut(prev).list_next = next;
        if let Some(next) = next {
            self.task_mut(next).list_prev = Some(prev);
        }
        self.task_mut(head).list_prev = Some(task);
        let tail = if tail == Some(task) { Some(prev) } else { tail };
        self.rqs[cpu].cfs_tasks = (Some(task), tail);
    }

    /// Moves a task to the tail of its CPU's list.
    #[allow(dead_code, reason = "the balancer of v4.13 puts refused candidates there")]
    pub(crate) fn cfs_tasks_move_to_tail(&mut self, cpu: CpuId, task: TaskId) {
        if self.rqs[cpu].cfs_tasks.1 == Some(task) {
            return;
        }
        self.cfs_tasks_remove(cpu, task);
        let tail = self.rqs[cpu].cfs_tasks.1;
        let entry = self.task_mut(task);
        entry.on_list = true;
        entry.list_prev = tail;
        if let Some(tail) = tail {
            self.task_mut(tail).list_next = Some(task);
        }
        self.rqs[cpu].cfs_tasks.1 = Some(task);
    }

    /// The tasks on a CPU's list from head to tail.
    pub fn cfs_tasks(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        core::iter::successors(self.rqs[cpu].cfs_tasks.0, |&task| self.task(task).list_next)
    }
}
