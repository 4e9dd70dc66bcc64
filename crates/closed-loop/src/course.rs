//! What a recording shows about where each task was, and when: its course.
//!
//! A task is created or has its first event on a CPU, is sometimes moved, and runs in bursts between its sleeps. That
//! is the result of balancing, placement and the programs. Which of the tasks on a CPU ran, and for how long, is left
//! out.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Flags, Kind, Sink};
use schedlab_units::{Duration, Pid, Time};

/// One task's course.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// Its latest name.
    pub comm: Comm,
    /// Its latest priority, as traces show it.
    pub prio: i32,
    /// Where it was at its first event.
    pub cpu: CpuId,
    /// The task that forked it, if recorded.
    pub parent: Option<Pid>,
    /// The tasks that woke it; interrupts are left out.
    pub wakers: BTreeSet<Pid>,
    /// Whether it was new then.
    pub is_new: bool,
    /// When it became runnable, and how long it then ran before it slept.
    pub bursts: Vec<(Time, Duration)>,
    /// When it was moved, and where to.
    pub moves: Vec<(Time, CpuId)>,
    /// Its stretches on a CPU.
    pub stretches: Vec<(Time, Time)>,
    /// How long it had run at the last event with another name, and at the first event with its current one.
    pub renamed: (Duration, Duration),
    awake: bool,
    on_cpu_since: Option<Time>,
    seen_after: Duration,
}

/// The courses of all tasks of a recording, and its ticks.
#[derive(Clone, Debug, Default)]
pub struct Courses {
    /// By task.
    pub tasks: BTreeMap<Pid, Course>,
    /// Ticks of each CPU: `sched_stat_runtime` in an interrupt.
    pub ticks: Vec<(Time, CpuId)>,
    /// When a CPU was taken from a task that was still runnable.
    pub preempted: Vec<(Time, CpuId)>,
    /// Times of the first and the last event.
    pub span: Option<(Time, Time)>,
}

impl Courses {
    /// All CPUs where a task was.
    pub fn cpus(&self) -> BTreeSet<CpuId> {
        let moved = self.tasks.values().flat_map(|course| course.moves.iter().map(|&(_, cpu)| cpu));
        moved.chain(self.tasks.values().map(|course| course.cpu)).collect()
    }

    fn seen(&mut self, pid: Pid, comm: Comm, prio: i32, cpu: CpuId) -> &mut Course {
        let course = self.tasks.entry(pid).or_insert_with(|| Course { cpu, ..Course::default() });
        course.prio = prio;
        course.named(comm, Duration::ZERO);
        course
    }
}

impl Course {
    /// An event shows its name, after it ran for `stretch` since its last switch-in.
    fn named(&mut self, comm: Comm, stretch: Duration) {
        let ran = self.ran() + stretch;
        if comm != self.comm {
            self.renamed = (self.seen_after, ran);
            self.comm = comm;
        }
        self.seen_after = ran;
    }

    fn wakes(&mut self, now: Time) {
        if !self.awake {
            self.awake = true;
            self.bursts.push((now, Duration::ZERO));
        }
    }

    fn stops(&mut self, began: Time, now: Time, sleeps: bool) {
        // A task that ran before the recording began was awake then.
        self.wakes(began);
        let since = self.on_cpu_since.take().unwrap_or(began);
        self.stretches.push((since, now));
        if let Some((_, ran)) = self.bursts.last_mut() {
            *ran += now.since(since);
        }
        self.awake = !sleeps;
    }

    /// The same from a time on.
    pub fn since(&self, begin: Time) -> Course {
        let bursts = self.bursts.iter().copied().filter(|&(at, _)| at >= begin).collect();
        Course { bursts, ..self.clone() }
    }

    /// How long it ran in all.
    pub fn ran(&self) -> Duration {
        self.ran_by(Time(u64::MAX))
    }

    /// How long it had run at a time.
    pub fn ran_by(&self, time: Time) -> Duration {
        let before = |&(from, to): &(Time, Time)| to.min(time).since(from.min(time));
        self.stretches.iter().map(before).fold(Duration::ZERO, |sum, ran| sum + ran)
    }
}

impl Sink for Courses {
    fn event(&mut self, event: &Event) {
        let now = event.time;
        let (began, _) = *self.span.get_or_insert((now, now));
        self.span = Some((began, now));
        match event.kind {
            Kind::SchedProcessFork { pid, child_comm, child_pid, .. } => {
                self.seen(child_pid, child_comm, 120, event.cpu).parent = Some(pid);
            }
            Kind::SchedWaking { comm, pid, prio, target_cpu } if !event.flags.in_interrupt() => {
                self.seen(pid, comm, prio, target_cpu).wakers.insert(event.pid);
            }
            Kind::SchedWakeup { comm, pid, prio, target_cpu } => {
                self.seen(pid, comm, prio, target_cpu).wakes(now);
            }
            Kind::SchedWakeupNew { comm, pid, prio, target_cpu } => {
                let course = self.seen(pid, comm, prio, target_cpu);
                course.cpu = target_cpu;
                course.is_new = true;
                course.wakes(now);
            }
            Kind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu } => {
                self.seen(pid, comm, prio, orig_cpu).moves.push((now, dest_cpu));
            }
            Kind::SchedStatRuntime { comm, pid, .. } => {
                if event.flags.has(Flags::HARDIRQ) {
                    self.ticks.push((now, event.cpu));
                }
                if let Some(course) = self.tasks.get_mut(&pid)
                    && let Some(since) = course.on_cpu_since
                {
                    course.named(comm, now.since(since));
                }
            }
            Kind::SchedSwitch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                next_comm,
                next_pid,
                next_prio,
            } => {
                if prev_pid != Pid::IDLE {
                    let first = Course { comm: prev_comm, cpu: event.cpu, ..Course::default() };
                    let course = self.tasks.entry(prev_pid).or_insert(first);
                    course.stops(began, now, !prev_state.is_runnable());
                    course.named(prev_comm, Duration::ZERO);
                    course.prio = prev_prio;
                    if prev_state.is_runnable() {
                        self.preempted.push((now, event.cpu));
                    }
                }
                if next_pid != Pid::IDLE {
                    let course = self.seen(next_pid, next_comm, next_prio, event.cpu);
                    course.wakes(now);
                    course.on_cpu_since = Some(now);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::read::{Record, open};
    use std::io::Cursor;

    #[test]
    fn a_course_is_bursts_and_moves() {
        let text = "\
# tracer: nop
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
   a-10 [000] d..2. 1.000100: sched_wakeup_new: comm=a pid=11 prio=120 target_cpu=001
 <idle>-0 [001] d..2. 1.000200: sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=11 next_prio=120
   b-11 [001] d..2. 1.000300: sched_switch: prev_comm=b prev_pid=11 prev_prio=125 prev_state=R ==> next_comm=c next_pid=12 next_prio=120
   c-12 [001] d..2. 1.000350: sched_migrate_task: comm=b pid=11 prio=125 orig_cpu=1 dest_cpu=0
   a-10 [000] d..2. 1.000400: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=b next_pid=11 next_prio=125
   b-11 [000] d.h1. 1.000450: sched_stat_runtime: comm=b pid=11 runtime=50000 [ns]
   b-11 [000] d..2. 1.000500: sched_switch: prev_comm=b prev_pid=11 prev_prio=125 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
   c-12 [001] d..2. 1.000600: sched_wakeup: comm=b pid=11 prio=125 target_cpu=000
";
        let spool = || -> std::io::Result<Cursor<Vec<u8>>> { Ok(Cursor::default()) };
        let mut courses = Courses::default();
        for record in open(Cursor::new(text.as_bytes()), spool).unwrap() {
            if let Record::Event(event) = record.unwrap() {
                courses.event(&event);
            }
        }
        let us = |n: u64| Time(1_000_000_000 + n * 1_000);
        let b = &courses.tasks[&Pid(11)];
        assert_eq!((b.comm.to_string(), b.prio, b.cpu, b.is_new), ("b".to_string(), 125, CpuId(1), true));
        assert_eq!(b.bursts, [(us(100), Duration::micros(200)), (us(600), Duration::ZERO)]);
        assert_eq!(b.moves, [(us(350), CpuId(0))]);
        assert_eq!(b.renamed, (Duration::ZERO, Duration::micros(100)));
        assert_eq!((b.ran_by(us(450)), b.ran()), (Duration::micros(150), Duration::micros(200)));
        // It ran before the recording began.
        let a = &courses.tasks[&Pid(10)];
        assert_eq!((a.is_new, &a.bursts[..]), (false, &[(us(100), Duration::micros(300))][..]));
        assert_eq!(courses.ticks, [(us(450), CpuId(0))]);
        assert_eq!(courses.cpus(), [CpuId(0), CpuId(1)].into());
    }
}
