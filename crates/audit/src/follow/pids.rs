//! Tasks by pid.
//!
//! Every event looks up two or three tasks, so a flat table is worth its memory: Linux pids are below four million.
//! Larger numbers, in a damaged recording, are kept separately.

use std::collections::BTreeMap;

use schedlab_units::{Pid, TaskId};

/// PID_MAX_LIMIT: pids are smaller.
const PID_MAX: usize = 1 << 22;

/// A map from pids to tasks.
#[derive(Debug, Default)]
pub struct Pids {
    /// By pid: the task's index plus one, 0 for none.
    table: Vec<u32>,
    beyond: BTreeMap<Pid, TaskId>,
}

impl Pids {
    fn place(pid: Pid) -> Option<usize> {
        usize::try_from(pid.0).ok().filter(|&place| place < PID_MAX)
    }

    /// The task with a pid.
    pub fn get(&self, pid: Pid) -> Option<TaskId> {
        let Some(place) = Pids::place(pid) else { return self.beyond.get(&pid).copied() };
        self.table.get(place).and_then(|&task| task.checked_sub(1)).map(TaskId)
    }

    /// Assigns a pid to this task from now on.
    pub fn insert(&mut self, pid: Pid, task: TaskId) {
        let Some(place) = Pids::place(pid) else {
            self.beyond.insert(pid, task);
            return;
        };
        if self.table.len() <= place {
            self.table.resize((place + 1).next_power_of_two(), 0);
        }
        self.table[place] = task.0 + 1;
    }

    /// A task no longer exists; its pid may belong to another task by now.
    pub fn forget(&mut self, pid: Pid, task: TaskId) {
        if self.get(pid) != Some(task) {
            return;
        }
        match Pids::place(pid) {
            Some(place) => self.table[place] = 0,
            None => _ = self.beyond.remove(&pid),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_found_again() {
        let mut pids = Pids::default();
        for (at, pid) in [0, 1, 4096, 4_194_303, 4_194_304, i32::MAX, -1].into_iter().enumerate() {
            assert_eq!(pids.get(Pid(pid)), None);
            pids.insert(Pid(pid), TaskId(at as u32));
            assert_eq!(pids.get(Pid(pid)), Some(TaskId(at as u32)), "{pid}");
        }
        pids.insert(Pid(1), TaskId(9));
        assert_eq!(pids.get(Pid(1)), Some(TaskId(9)), "numbers are used again");
        for pid in [Pid(1), Pid(4_194_304)] {
            let task = pids.get(pid).unwrap();
            pids.forget(pid, TaskId(77));
            assert_eq!(pids.get(pid), Some(task), "it is another's");
            pids.forget(pid, task);
            assert_eq!(pids.get(pid), None);
        }
    }
}
