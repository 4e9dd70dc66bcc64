//! Where time went: per CPU and per task.

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind, Sink};
use schedlab_units::{Duration, Pid, Time};

use super::PidTable;

/// Run time of CPUs and tasks. Needs `sched_switch`.
#[derive(Clone, Debug, Default)]
pub struct Busy {
    cpus: Vec<OneCpu>,
    tasks: PidTable<OneTask>,
    first: Option<Time>,
    last: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct OneCpu {
    since: Option<(Time, Pid)>,
    busy: Duration,
}

#[derive(Clone, Copy, Debug, Default)]
struct OneTask {
    comm: Comm,
    ran: Duration,
}

impl Busy {
    /// The time covered.
    pub fn span(&self) -> Duration {
        self.last.since(self.first.unwrap_or_default())
    }

    /// Time each CPU ran tasks, in CPU order; CPUs never seen to switch are left out at the end.
    pub fn cpus(&self) -> impl Iterator<Item = (CpuId, Duration)> + '_ {
        self.cpus.iter().enumerate().map(|(i, c)| (CpuId::from(i), c.busy))
    }

    /// Time each task ran, in order of pid; those that never ran are left out.
    pub fn tasks(&self) -> impl Iterator<Item = (Pid, Comm, Duration)> + '_ {
        self.tasks.iter().filter(|(_, t)| t.ran > Duration::ZERO).map(|(pid, t)| (pid, t.comm, t.ran))
    }

    /// The trace has events up to this time that are not passed on.
    pub fn goes_on_to(&mut self, last: Time) {
        self.last = self.last.max(last);
    }

    /// Earlier events do not count.
    pub fn begin_again(&mut self, now: Time) {
        self.first = Some(now);
        for cpu in &mut self.cpus {
            cpu.busy = Duration::ZERO;
            cpu.since = cpu.since.map(|(_, pid)| (now, pid));
        }
        self.tasks.iter_mut().for_each(|task| task.ran = Duration::ZERO);
    }

    /// The trace is over: a task that still runs has run until now.
    pub fn end(&mut self, now: Time) {
        let now = now.max(self.last);
        self.last = now;
        for cpu in &mut self.cpus {
            if let Some((since, pid)) = cpu.since.filter(|(_, pid)| *pid != Pid::IDLE) {
                cpu.busy += now.since(since);
                self.tasks.entry(pid).ran += now.since(since);
                cpu.since = Some((now, pid));
            }
        }
        self.tasks.pack(|task| task.ran > Duration::ZERO);
    }

    /// Time all CPUs together ran tasks.
    pub fn total(&self) -> Duration {
        self.cpus.iter().fold(Duration::ZERO, |sum, c| sum + c.busy)
    }
}

impl Sink for Busy {
    fn event(&mut self, event: &Event) {
        self.first.get_or_insert(event.time);
        self.last = self.last.max(event.time);
        let Kind::SchedSwitch { prev_comm, prev_pid, next_comm, next_pid, .. } = event.kind else { return };
        let index = event.cpu.index();
        if index >= self.cpus.len() {
            self.cpus.resize(index + 1, OneCpu::default());
        }
        let cpu = &mut self.cpus[index];
        if prev_pid != Pid::IDLE {
            let since = cpu.since.map_or(self.first, |(at, _)| Some(at)).unwrap_or(event.time);
            let ran = event.time.since(since);
            cpu.busy += ran;
            let task = self.tasks.entry(prev_pid);
            task.comm = prev_comm;
            task.ran += ran;
        }
        if next_pid != Pid::IDLE {
            self.tasks.entry(next_pid).comm = next_comm;
        }
        cpu.since = Some((event.time, next_pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::{Flags, TaskState};

    #[test]
    fn a_task_is_charged_from_switch_to_switch() {
        let mut fold = Busy::default();
        for (time, prev, next) in [(10, 0, 5), (30, 5, 6), (60, 6, 0)] {
            fold.event(&Event {
                time: Time(time),
                cpu: CpuId(2),
                pid: Pid(prev),
                tgid: None,
                comm: Comm::default(),
                flags: Flags::NONE,
                kind: Kind::SchedSwitch {
                    prev_comm: Comm::new(b"t"),
                    prev_pid: Pid(prev),
                    prev_prio: 120,
                    prev_state: TaskState::INTERRUPTIBLE,
                    next_comm: Comm::new(b"t"),
                    next_pid: Pid(next),
                    next_prio: 120,
                },
            });
        }
        let ran: Vec<(i32, u64)> = fold.tasks().map(|(pid, _, ran)| (pid.0, ran.0)).collect();
        assert_eq!(ran, [(5, 20), (6, 30)]);
        assert_eq!((fold.total().0, fold.span().0), (50, 50));
        fold.begin_again(Time(60));
        fold.end(Time(70));
        assert_eq!((fold.total().0, fold.span().0), (0, 10), "what was before does not count");
    }

    #[test]
    fn a_task_that_never_leaves_its_cpu_has_run_when_the_trace_is_over() {
        let mut fold = Busy::default();
        fold.event(&Event {
            time: Time(10),
            cpu: CpuId(1),
            pid: Pid(0),
            tgid: None,
            comm: Comm::default(),
            flags: Flags::NONE,
            kind: Kind::SchedSwitch {
                prev_comm: Comm::default(),
                prev_pid: Pid(0),
                prev_prio: 120,
                prev_state: TaskState::RUNNING,
                next_comm: Comm::new(b"hog"),
                next_pid: Pid(5),
                next_prio: 120,
            },
        });
        for _ in 0..2 {
            fold.end(Time(110));
            let tasks: Vec<_> = fold.tasks().map(|(_, comm, ran)| (comm.to_string(), ran.0)).collect();
            assert_eq!((tasks, fold.total().0), (vec![("hog".to_string(), 100)], 100));
        }
    }
}
