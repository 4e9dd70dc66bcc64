//! A value per task, found by its pid in one step: recordings have millions of events about few tasks.

use schedlab_units::Pid;

use crate::metrics::PidTable;

/// Values of the tasks seen so far.
#[derive(Clone, Debug, Default)]
pub(super) struct ByPid<T> {
    /// Index in `values`, counted from 1.
    places: PidTable<u32>,
    values: Vec<(Pid, T)>,
}

impl<T: Default> ByPid<T> {
    /// The value of a task, if it has one.
    pub fn get(&self, pid: Pid) -> Option<&T> {
        let place = *self.places.get(pid)?;
        let (_, value) = self.values.get((place as usize).checked_sub(1)?)?;
        Some(value)
    }

    /// The value of a task to change, created if needed.
    pub fn of(&mut self, pid: Pid) -> &mut T {
        let place = self.places.entry(pid);
        if *place == 0 {
            self.values.push((pid, T::default()));
            *place = self.values.len() as u32;
        }
        &mut self.values[*place as usize - 1].1
    }

    /// All tasks with values, in order of their pids.
    pub fn in_order(&self) -> Vec<(Pid, &T)> {
        let mut all: Vec<_> = self.values.iter().map(|(pid, value)| (*pid, value)).collect();
        all.sort_by_key(|&(pid, _)| pid);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_kept_by_number_and_reported_in_order() {
        let mut by_pid = ByPid::default();
        for (pid, value) in [(7, 'b'), (4_194_305, 'd'), (3, 'a'), (7, 'c')] {
            *by_pid.of(Pid(pid)) = value;
        }
        assert_eq!(by_pid.in_order(), [(Pid(3), &'a'), (Pid(7), &'c'), (Pid(4_194_305), &'d')]);
        assert_eq!((by_pid.get(Pid(7)), by_pid.get(Pid(8)), by_pid.get(Pid(0))), (Some(&'c'), None, None));
    }
}
