//! The table of tasks: neighbours of one kind share what they have in common.
//!
//! A workload may have a hundred thousand tasks, which differ in their names only by a number.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use crate::{SpecId, TaskSpec, Workload};

/// A task of a workload: what describes it, and its number if it is one of several of that name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskEntry {
    kind: Arc<TaskSpec>,
    number: Option<u32>,
}

impl TaskEntry {
    /// Its own name: that of its kind, followed by its number.
    pub fn name(&self) -> Cow<'_, str> {
        match self.number {
            None => Cow::Borrowed(&self.kind.name),
            Some(number) => Cow::Owned(format!("{}-{number}", self.kind.name)),
        }
    }

    /// Whether it differs from another one in its name only.
    pub(crate) fn is_like(&self, other: &TaskEntry) -> bool {
        let unnamed = |kind: &TaskSpec| TaskSpec { name: String::new(), ..kind.clone() };
        Arc::ptr_eq(&self.kind, &other.kind) || unnamed(&self.kind) == unnamed(&other.kind)
    }
}

impl Deref for TaskEntry {
    type Target = TaskSpec;

    fn deref(&self) -> &TaskSpec {
        &self.kind
    }
}

impl Workload {
    /// The own name of a task.
    pub fn task_name(&self, spec: SpecId) -> Cow<'_, str> {
        self.tasks[spec.index()].name()
    }

    /// Adds a task; with a number, it is one of several of that name.
    pub(crate) fn add_task(&mut self, kind: TaskSpec, number: Option<u32>) -> SpecId {
        let kind = match self.tasks.last() {
            Some(last) if *last.kind == kind => last.kind.clone(),
            _ => Arc::new(kind),
        };
        self.tasks.push(TaskEntry { kind, number });
        SpecId(self.tasks.len() as u32 - 1)
    }

    /// Changes the tasks from `first` on; neighbours of one kind are changed together.
    pub fn change_tasks(&mut self, first: SpecId, mut change: impl FnMut(&mut TaskSpec)) {
        for alike in self.tasks[first.index()..].chunk_by_mut(|a, b| Arc::ptr_eq(&a.kind, &b.kind)) {
            let mut changed = TaskSpec::clone(&alike[0]);
            change(&mut changed);
            let changed = Arc::new(changed);
            for task in alike {
                task.kind = changed.clone();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn neighbours_of_a_kind_share_it_through_a_change() {
        let mut w = WorkloadBuilder::new("test");
        let program = w.program("p", |_| {});
        w.task(TaskSpec::root("first", program));
        for number in 0..3 {
            w.numbered_task(TaskSpec::root("many", program), number);
        }
        w.workload_mut().change_tasks(SpecId(1), |task| task.footprint = 7);
        let w = w.finish().unwrap();
        let told = w.tasks.iter().map(|task| {
            let shares = w.tasks.iter().filter(|other| std::ptr::eq::<TaskSpec>(&***other, &**task)).count();
            format!("{} {} {shares}", task.name(), task.footprint)
        });
        assert_eq!(told.collect::<Vec<_>>(), ["first 0 1", "many-0 7 3", "many-1 7 3", "many-2 7 3"]);
    }
}
