//! Statistics of each kind of task: delays of wake-ups, lengths of runs and of waits, CPU time.
//!
//! Tasks are of one kind if their names differ only in a number: `w-0` and `w-12` are `w`, `kworker/3:1` is `kworker`.
//! An interval that has not ended when the trace ends counts up to that point: a task that never leaves its CPU has
//! run, and a task that never gets a CPU has waited. A wait that has not ended only counts if it is longer than all that
//! have: it would make the mean of the others too short.

use schedlab_stats::Histogram;
use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind};
use schedlab_units::{Duration, Pid, Time};

use super::PidTable;

/// Figures by kind of task. Needs `sched_switch`, and at least one of `sched_waking` and `sched_wakeup`.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    kinds: Vec<OneKind>,
    tasks: PidTable<Task>,
    cpus: Vec<Option<Time>>,
    first: Option<Time>,
    last: Time,
}

/// Statistics of one kind of task.
#[derive(Clone, Debug)]
pub struct OneKind {
    /// Their name without its number.
    pub name: String,
    /// From being woken to running, ns.
    pub latency: Histogram,
    /// From a switch to a task to the switch away from it, ns.
    pub runs: Histogram,
    /// From being woken or preempted to running, ns.
    pub waits: Histogram,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    comm: Comm,
    doing: Doing,
    ran: Duration,
    /// When and where it last got a CPU, if it did.
    came_at: Time,
    came_to: CpuId,
    came: bool,
    seen: bool,
    kind: u32,
}

/// What a task does. A run may have a hundred thousand tasks, so this is small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Doing {
    /// It sleeps, or nothing is known.
    #[default]
    Nothing,
    Runs(Time),
    /// Since when it waits, and whether it was woken.
    Waits(Time, bool),
}

/// The name of a kind: without its trailing number; for a kernel thread, without the part after the slash.
pub fn kind_name(comm: &str) -> &str {
    let name = comm.split('/').next().unwrap_or(comm);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let name = name.trim_end_matches(['-', '_', '.', ':', '#']);
    if name.is_empty() { comm } else { name }
}

impl Kinds {
    /// Each kind, in the order of first occurrence.
    pub fn iter(&self) -> impl Iterator<Item = &OneKind> {
        self.kinds.iter().filter(|kind| kind.runs.n() + kind.waits.n() > 0)
    }

    /// The CPU time of each task of a kind, in order of pid.
    pub fn times(&self, name: &str) -> Vec<Duration> {
        let Some(kind) = self.kinds.iter().position(|kind| kind.name == name) else { return Vec::new() };
        let of_kind = |task: &&Task| task.seen && task.kind == kind as u32;
        self.tasks.iter().map(|(_, task)| task).filter(of_kind).map(|task| task.ran).collect()
    }

    /// The CPU that a task of a kind got last.
    pub fn last_cpu(&self, name: &str) -> Option<CpuId> {
        let kind = self.kinds.iter().position(|kind| kind.name == name)?;
        let of_kind = |task: &&Task| task.seen && task.kind == kind as u32;
        let came = self.tasks.iter().map(|(_, task)| task).filter(of_kind).filter(|task| task.came);
        came.max_by_key(|task| task.came_at).map(|task| task.came_to)
    }

    /// The CPU time of all tasks.
    pub fn total(&self) -> Duration {
        self.tasks.iter().fold(Duration::ZERO, |sum, (_, task)| sum + task.ran)
    }

    /// The trace is over: intervals in progress count up to now.
    pub fn end(&mut self, now: Time) {
        let now = now.max(self.last);
        let kinds = &mut self.kinds;
        for task in self.tasks.iter_mut() {
            let kind = kinds.get_mut(task.kind as usize);
            let Some(kind) = kind.filter(|_| task.seen) else { continue };
            match std::mem::take(&mut task.doing) {
                Doing::Nothing => {}
                Doing::Runs(since) => {
                    task.ran += now.since(since);
                    kind.runs.record(now.since(since).0);
                }
                Doing::Waits(since, woken) => {
                    if kind.waits.max().is_none_or(|longest| now.since(since).0 > longest) {
                        kind.waits.record(now.since(since).0);
                    }
                    if woken {
                        kind.latency.record(now.since(since).0);
                    }
                }
            }
        }
        self.tasks.pack(|task| task.seen);
        for kind in &mut self.kinds {
            for histogram in [&mut kind.latency, &mut kind.runs, &mut kind.waits] {
                histogram.pack();
            }
        }
    }

    /// Discards what was collected so far.
    pub fn begin_again(&mut self, now: Time) {
        for kind in &mut self.kinds {
            (kind.latency, kind.runs, kind.waits) = (Histogram::new(), Histogram::new(), Histogram::new());
        }
        for task in self.tasks.iter_mut() {
            task.ran = Duration::ZERO;
            task.seen = task.doing != Doing::Nothing;
            if let Doing::Runs(since) | Doing::Waits(since, _) = &mut task.doing {
                *since = now;
            }
        }
        self.first = Some(now);
    }

    /// A task and its kind.
    #[inline]
    fn kind(&mut self, pid: Pid, comm: Comm) -> (&mut Task, &mut OneKind) {
        let task = self.tasks.entry(pid);
        if !task.seen || task.comm != comm && !comm.is_empty() {
            task.kind = find(&mut self.kinds, comm);
            (task.comm, task.seen) = (comm, true);
        }
        let kind = &mut self.kinds[task.kind as usize];
        (task, kind)
    }

    fn leaves(&mut self, now: Time, pid: Pid, comm: Comm, since: Time, waits: bool) {
        let (task, kind) = self.kind(pid, comm);
        let since = if let Doing::Runs(since) = task.doing { since } else { since };
        task.ran += now.since(since);
        task.doing = if waits { Doing::Waits(now, false) } else { Doing::Nothing };
        kind.runs.record(now.since(since).0);
    }

    fn comes(&mut self, (now, cpu): (Time, CpuId), pid: Pid, comm: Comm, latency: Option<Duration>) {
        let (task, kind) = self.kind(pid, comm);
        let waits = if let Doing::Waits(since, _) = task.doing { Some(now.since(since)) } else { None };
        let waited = latency.or(waits);
        task.doing = Doing::Runs(now);
        (task.came_at, task.came_to, task.came) = (now, cpu, true);
        if let Some(latency) = latency {
            kind.latency.record(latency.0);
        }
        if let Some(waited) = waited {
            kind.waits.record(waited.0);
        }
    }

    /// Follows an event; `latency` is how long ago the task that it switches to was woken, from `Wakes`.
    pub fn event(&mut self, event: &Event, latency: Option<Duration>) {
        let now = event.time;
        let first = *self.first.get_or_insert(now);
        self.last = self.last.max(now);
        match event.kind {
            Kind::SchedSwitch { prev_comm, prev_pid, prev_state, next_comm, next_pid, .. } => {
                let index = event.cpu.index();
                if index >= self.cpus.len() {
                    self.cpus.resize(index + 1, None);
                }
                let since = self.cpus[index].replace(now).unwrap_or(first);
                if prev_pid != Pid::IDLE {
                    self.leaves(now, prev_pid, prev_comm, since, prev_state.is_runnable());
                }
                if next_pid != Pid::IDLE {
                    self.comes((now, event.cpu), next_pid, next_comm, latency);
                }
            }
            Kind::SchedWaking { comm, pid, .. }
            | Kind::SchedWakeup { comm, pid, .. }
            | Kind::SchedWakeupNew { comm, pid, .. } => {
                let (task, _) = self.kind(pid, comm);
                if task.doing == Doing::Nothing {
                    task.doing = Doing::Waits(now, true);
                }
            }
            _ => {}
        }
    }
}

/// The index of the kind of a name, created if it is new.
#[cold]
fn find(kinds: &mut Vec<OneKind>, comm: Comm) -> u32 {
    let text = comm.to_string();
    let name = kind_name(&text);
    let at = kinds.iter().position(|kind| kind.name == name).unwrap_or_else(|| {
        let (latency, runs, waits) = (Histogram::new(), Histogram::new(), Histogram::new());
        kinds.push(OneKind { name: name.to_string(), latency, runs, waits });
        kinds.len() - 1
    });
    at as u32
}

/// Jain's index of fairness: 1 if all have the same, 1/n if one has all. `None` if there is nothing.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::{Flags, TaskState};

    #[test]
    fn kinds_are_names_without_their_numbers() {
        for (comm, kind) in [
            ("w-12", "w"),
            ("sl-w3", "sl-w"),
            ("kworker/3:1H", "kworker"),
            ("7", "7"),
            ("migration/0", "migration"),
        ] {
            assert_eq!(kind_name(comm), kind);
        }
    }

    #[test]
    fn all_have_the_same_or_one_has_all() {
        assert_eq!(jain(&[2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[3.0, 0.0, 0.0]), Some(1.0 / 3.0));
        assert_eq!(jain(&[]), None);
    }

    fn fold(switches: &[(u64, i32, bool, i32)], end: u64) -> Kinds {
        let mut fold = Kinds::default();
        let comm = |pid: i32| Comm::new(format!("t-{pid}").as_bytes());
        for &(time, prev, runnable, next) in switches {
            let state = if runnable { TaskState::RUNNING } else { TaskState::INTERRUPTIBLE };
            let kind = Kind::SchedSwitch {
                prev_comm: comm(prev),
                prev_pid: Pid(prev),
                prev_prio: 120,
                prev_state: state,
                next_comm: comm(next),
                next_pid: Pid(next),
                next_prio: 120,
            };
            let (time, cpu, pid) = (Time(time), CpuId(0), Pid(prev));
            fold.event(
                &Event { time, cpu, pid, tgid: None, comm: comm(prev), flags: Flags::NONE, kind },
                None,
            );
        }
        fold.end(Time(end));
        fold
    }

    #[test]
    fn a_task_that_never_leaves_has_run_and_one_that_never_comes_has_waited() {
        let kinds = fold(&[(0, 0, true, 5), (10, 5, true, 6)], 100);
        let kind = kinds.iter().next().unwrap();
        assert_eq!((kind.name.as_str(), kind.runs.n(), kind.runs.max()), ("t", 2, Some(90)));
        assert_eq!((kind.waits.n(), kind.waits.max()), (1, Some(90)));
        assert_eq!(kinds.times("t"), [Duration(10), Duration(90)]);
        assert_eq!(kinds.total(), Duration(100));
        assert_eq!((kinds.last_cpu("t"), kinds.last_cpu("u")), (Some(CpuId(0)), None));
    }

    #[test]
    fn a_wait_that_has_not_ended_does_not_shorten_the_mean_of_the_others() {
        let waits = |end| {
            let kinds = fold(&[(0, 5, true, 0), (40, 0, true, 5), (50, 5, true, 0)], end);
            let waits = kinds.iter().next().unwrap().waits.clone();
            (waits.n(), waits.mean())
        };
        assert_eq!(waits(60), (1, 40.0), "it has waited for 10 ns so far");
        assert_eq!(waits(110), (2, 50.0), "for 60 ns, longer than ever");
    }

    #[test]
    fn what_was_before_does_not_count() {
        let mut kinds = fold(&[(0, 0, true, 5), (10, 5, false, 0)], 10);
        kinds.begin_again(Time(10));
        assert_eq!((kinds.total(), kinds.iter().count()), (Duration::ZERO, 0));
    }
}
