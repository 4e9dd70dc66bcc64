//! `perf sched map`: at each switch, the task that runs on every CPU.
//!
//! ```text
//!   *A0  .       11.541891 secs A0 => make:71
//!    A0 *B0      11.544346 secs B0 => cc1:72
//! ```
//!
//! A task has a letter and a digit, assigned when it is first switched to; `.` is idle, a blank a CPU that
//! has not switched yet, and the star marks the CPU that switches. If only some CPUs are shown, a switch of
//! another CPU has a line with only the columns.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind, Sink};
use schedlab_units::{Pid, Time};
use serde::Serialize;

use super::seconds;

/// One switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MapRow {
    /// When, ns.
    pub time_ns: u64,
    /// The CPU that switches.
    pub cpu: u16,
    /// Name of the task it switches to.
    pub comm: String,
    /// Its number.
    pub pid: i32,
    /// The columns, each with its CPU and the letters of the task that runs there, if that is known.
    pub cells: Vec<(u16, Option<Letters>)>,
    /// Whether the task is introduced: it is new, or has a new name.
    pub introduced: bool,
    /// Whether the CPU's column is new, which only a compact map shows.
    pub new_column: bool,
    /// The CPU that switches is one of those that are shown; for others nothing changes.
    #[serde(skip)]
    pub is_shown: bool,
}

/// The label of a task: `A0`, or `.` for the idle tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Letters([u8; 2]);

impl Letters {
    const IDLE: Letters = Letters(*b". ");

    /// The two characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters are ASCII")
    }

    /// The next ones. After `Z9` they start over, like perf's.
    fn next(self) -> Letters {
        match self.0 {
            [b'Z', b'9'] => Letters(*b"A0"),
            [b'Z', digit] => Letters([b'A', digit + 1]),
            [letter, digit] => Letters([letter + 1, digit]),
        }
    }
}

impl Serialize for Letters {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str().trim_end())
    }
}

/// Follows which tasks run where and passes each row to a function. Needs `sched_switch`.
#[derive(Debug)]
pub struct Map<F> {
    columns: Columns,
    shown: Option<Vec<CpuId>>,
    running: BTreeMap<CpuId, Pid>,
    tasks: BTreeMap<Pid, Task>,
    next: Letters,
    out: F,
}

/// What is known about a task.
#[derive(Debug)]
struct Task {
    letters: Letters,
    comm: Comm,
    /// Its name was not shown yet.
    is_new: bool,
}

/// Which CPUs have a column.
#[derive(Debug)]
enum Columns {
    /// All up to the highest, which may still grow.
    All(u16),
    /// Those that switched, in the order of their first switches.
    Compact(Vec<CpuId>),
}

impl<F: FnMut(&MapRow)> Map<F> {
    /// A map with a column for each of `nr_cpus` CPUs, and for higher ones from their first switch on.
    pub fn new(nr_cpus: u16, out: F) -> Map<F> {
        Map::with(Columns::All(nr_cpus), out)
    }

    /// A map with columns only for CPUs that switch.
    pub fn compact(out: F) -> Map<F> {
        Map::with(Columns::Compact(Vec::new()), out)
    }

    fn with(columns: Columns, out: F) -> Map<F> {
        let (running, tasks) = (BTreeMap::new(), BTreeMap::new());
        Map { columns, shown: None, running, tasks, next: Letters(*b"A0"), out }
    }

    /// Columns only for these CPUs.
    pub fn only(mut self, cpus: impl IntoIterator<Item = CpuId>) -> Map<F> {
        self.shown = Some(cpus.into_iter().collect());
        self
    }

    /// Assigns letters to a task; true if it must be introduced, because its name is shown for the first time.
    fn introduce(&mut self, pid: Pid, comm: Comm, is_shown: bool) -> bool {
        // The names of idle tasks differ from CPU to CPU; the map treats them as one.
        let comm = if pid == Pid::IDLE { Comm::from("swapper") } else { comm };
        if let Some(task) = self.tasks.get_mut(&pid) {
            let is_new = task.is_new || task.comm != comm;
            (task.comm, task.is_new) = (comm, is_new && !is_shown);
            return is_new;
        }
        let letters = if pid == Pid::IDLE { Letters::IDLE } else { self.next };
        if pid != Pid::IDLE {
            self.next = self.next.next();
        }
        // perf remembers the tasks that records named; no record names the idle tasks.
        self.tasks.insert(pid, Task { letters, comm, is_new: !is_shown && pid != Pid::IDLE });
        true
    }

    fn is_shown(&self, cpu: CpuId) -> bool {
        self.shown.as_ref().is_none_or(|shown| shown.contains(&cpu))
    }
}

impl<F: FnMut(&MapRow)> Sink for Map<F> {
    fn event(&mut self, event: &Event) {
        let Kind::SchedSwitch { next_pid, next_comm, .. } = event.kind else { return };
        let new_column = match &mut self.columns {
            Columns::All(nr_cpus) => {
                *nr_cpus = (*nr_cpus).max(event.cpu.0 + 1);
                false
            }
            Columns::Compact(cpus) => {
                let new = !cpus.contains(&event.cpu);
                if new {
                    cpus.push(event.cpu);
                }
                new
            }
        };
        self.running.insert(event.cpu, next_pid);
        let is_shown = self.is_shown(event.cpu);
        let introduced = self.introduce(next_pid, next_comm, is_shown);
        let cpus: Vec<CpuId> = match &self.columns {
            Columns::All(nr_cpus) => (0..*nr_cpus).map(CpuId).collect(),
            Columns::Compact(cpus) => cpus.clone(),
        };
        let letters = |cpu: &CpuId| self.running.get(cpu).map(|pid| self.tasks[pid].letters);
        let row = MapRow {
            time_ns: event.time.0,
            cpu: event.cpu.0,
            comm: self.tasks[&next_pid].comm.to_string(),
            pid: next_pid.0,
            cells: cpus.iter().filter(|cpu| self.is_shown(**cpu)).map(|cpu| (cpu.0, letters(cpu))).collect(),
            introduced,
            new_column,
            is_shown,
        };
        (self.out)(&row);
    }
}

impl MapRow {
    /// The line that perf prints, without its end.
    pub fn line(&self) -> String {
        let mut line = String::from("  ");
        for (cpu, letters) in &self.cells {
            line.push(if *cpu == self.cpu { '*' } else { ' ' });
            line += letters.as_ref().map_or("  ", Letters::as_str);
            line.push(' ');
        }
        if !self.is_shown {
            return line;
        }
        line += &format!("  {:>12} secs ", seconds(Time(self.time_ns)));
        if self.introduced {
            let own = self.cells.iter().find(|(cpu, _)| *cpu == self.cpu);
            let letters = own.and_then(|(_, letters)| *letters).unwrap_or(Letters::IDLE);
            line += &format!("{} => {}:{}", letters.as_str(), self.comm, self.pid);
        }
        if self.new_column {
            line += &format!(" (CPU {})", self.cpu);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::super::testdata::{TRACE, barred, feed};
    use super::*;
    use expect_test::{Expect, expect};

    fn check<F: FnMut(&MapRow)>(map: impl FnOnce(Box<dyn FnMut(&MapRow)>) -> Map<F>, expected: Expect) {
        let lines = std::rc::Rc::new(std::cell::RefCell::new(String::new()));
        let out = lines.clone();
        let mut map = map(Box::new(move |row: &MapRow| *out.borrow_mut() += &(row.line() + "\n")));
        feed(TRACE, &mut map);
        expected.assert_eq(&barred(&lines.borrow()));
    }

    #[test]
    fn every_switch_shows_all_cpus() {
        check(
            |out| Map::new(3, out),
            expect![[r#"
                |      *A0           1.000000 secs A0 => ld:73|
                |  *B0  A0           1.000250 secs B0 => make:71|
                |  *C0  A0           1.001250 secs C0 => make:72|
                |  *.   A0           1.001750 secs .  => swapper:0|
                |   .  *C0           1.003100 secs C0 => cc1:72|
                |   .  *A0           1.004100 secs |
                |   .  *.            1.009100 secs |
            "#]],
        );
    }

    #[test]
    fn a_compact_map_has_columns_in_order_of_first_switches() {
        check(
            Map::compact,
            expect![[r#"
                |  *A0       1.000000 secs A0 => ld:73 (CPU 1)|
                |   A0 *B0       1.000250 secs B0 => make:71 (CPU 0)|
                |   A0 *C0       1.001250 secs C0 => make:72|
                |   A0 *.        1.001750 secs .  => swapper:0|
                |  *C0  .        1.003100 secs C0 => cc1:72|
                |  *A0  .        1.004100 secs |
                |  *.   .        1.009100 secs |
            "#]],
        );
    }

    #[test]
    fn cpus_can_be_left_out() {
        check(
            |out| Map::new(0, out).only([CpuId(1)]),
            expect![[r#"
                |  *A0       1.000000 secs A0 => ld:73|
                |   A0 |
                |   A0 |
                |   A0 |
                |  *C0       1.003100 secs C0 => cc1:72|
                |  *A0       1.004100 secs |
                |  *.        1.009100 secs |
            "#]],
        );
    }

    #[test]
    fn letters_come_round() {
        let mut letters = Letters(*b"A0");
        for _ in 0..25 {
            letters = letters.next();
        }
        assert_eq!(letters.as_str(), "Z0");
        assert_eq!(letters.next().as_str(), "A1");
        for _ in 0..26 * 9 + 1 {
            letters = letters.next();
        }
        assert_eq!(letters.as_str(), "A0");
    }
}
