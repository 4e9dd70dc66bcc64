//! Folds over a trace: each is a sink that keeps a few numbers.
//!
//! They do not depend on the simulator, so a recorded trace has the same figures as a simulated one. Each
//! documents which events it needs.

mod busy;
mod counts;
mod kinds;
mod latency;
mod marks;
mod migrations;
mod placements;
mod reasons;
mod traffic;
mod wakes;

pub use busy::Busy;
pub use counts::Counts;
pub use kinds::{Kinds, OneKind, jain, kind_name};
pub use latency::WakeupLatency;
pub use marks::{MarkRule, Marks};
pub use migrations::{Cause, Causes, Migrations};
pub use placements::{NewTask, Placements};
pub use reasons::Reasons;
pub use traffic::Traffic;
pub use wakes::Wakes;

use std::collections::BTreeMap;

use schedlab_units::Pid;

/// PID_MAX_LIMIT: pids are smaller.
const PID_MAX: usize = 1 << 22;

/// A value per task, grown as tasks appear.
///
/// Pids in a trace are mostly dense, so a vector beats a map. Pids that no kernel assigns, from a damaged
/// recording, are kept separately.
#[derive(Clone, Debug, Default)]
pub struct PidTable<T> {
    table: Vec<T>,
    beyond: BTreeMap<Pid, T>,
}

impl<T: Clone + Default> PidTable<T> {
    /// The value of a task.
    #[inline]
    pub fn get(&self, pid: Pid) -> Option<&T> {
        let index = usize::try_from(pid.0).ok()?;
        self.table.get(index).or_else(|| self.beyond.get(&pid))
    }

    /// The value of a task to change, created if needed. Pids are never negative in a trace; a negative one
    /// counts as the idle task.
    #[inline]
    pub fn entry(&mut self, pid: Pid) -> &mut T {
        let index = usize::try_from(pid.0).unwrap_or(0);
        if index < self.table.len() { &mut self.table[index] } else { self.first(pid, index) }
    }

    /// The value of a task that is new, or has a pid that no kernel assigns, or is in a packed table.
    #[cold]
    fn first(&mut self, pid: Pid, index: usize) -> &mut T {
        if index >= PID_MAX || self.table.is_empty() && !self.beyond.is_empty() {
            return self.beyond.entry(pid.max(Pid(0))).or_default();
        }
        self.table.resize(index + 1, T::default());
        &mut self.table[index]
    }

    /// Keeps only tasks with known values, for a table that is complete, as thousands of tables may be kept.
    pub fn pack(&mut self, is_known: impl Fn(&T) -> bool) {
        self.beyond.retain(|_, value| is_known(value));
        let tasks = std::mem::take(&mut self.table).into_iter().enumerate();
        let known = tasks.filter(|(_, value)| is_known(value));
        self.beyond.extend(known.map(|(index, value)| (Pid(index as i32), value)));
    }

    /// Every value, to change, in order of task.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.table.iter_mut().chain(self.beyond.values_mut())
    }

    /// Every task up to the highest pid, in order; for pids that no kernel assigns, and in a packed table, only those
    /// with values.
    pub fn iter(&self) -> impl Iterator<Item = (Pid, &T)> {
        let table = self.table.iter().enumerate().map(|(i, v)| (Pid(i as i32), v));
        table.chain(self.beyond.iter().map(|(&pid, value)| (pid, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_found_again_and_none_takes_room_for_those_before_it() {
        let mut table = PidTable::default();
        for pid in [7, 4_194_304, i32::MAX] {
            *table.entry(Pid(pid)) = pid;
            assert_eq!(table.get(Pid(pid)), Some(&pid));
        }
        *table.entry(Pid(-1)) = 5;
        assert_eq!((table.get(Pid(0)), table.get(Pid(-1)), table.get(Pid(8))), (Some(&5), None, None));
        assert_eq!(table.table.len(), 8);
        let seen: Vec<i32> = table.iter().filter(|(_, value)| **value > 0).map(|(pid, _)| pid.0).collect();
        assert_eq!(seen, [0, 7, 4_194_304, i32::MAX]);
        table.pack(|&value| value > 5);
        assert_eq!(
            table.iter().map(|(pid, &value)| (pid.0, value)).collect::<Vec<_>>(),
            [(7, 7), (4_194_304, 4_194_304), (i32::MAX, i32::MAX)]
        );
        *table.entry(Pid(9)) = 9;
        assert_eq!((table.get(Pid(0)), table.get(Pid(7)), table.get(Pid(9))), (None, Some(&7), Some(&9)));
        assert!(table.table.is_empty());
    }
}
