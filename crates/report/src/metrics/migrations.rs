//! Migrations by cause, derived from the context of the event.
//!
//! `sched_migrate_task` does not say what moved the task, but its context does. For a task that was woken and
//! is not queued yet it is the wake-up ([`Wakes`]); in a stopper thread, active balancing or exec; a
//! real-time or deadline task is pushed or pulled by its class; in a soft interrupt it is the periodic
//! balancer, on behalf of its own CPU or an idle one. Otherwise a CPU that takes a task for itself is about
//! to go idle, and one that moves it to another CPU changes its affinity.

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind, Sink};
use schedlab_units::{Duration, Pid, Time};

use super::Wakes;

/// Priorities below this are real-time tasks, below 0 deadline tasks.
const MAX_RT_PRIO: i32 = 100;

/// What moved a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Wake-up placement.
    Wakeup,
    /// Newly idle balancing.
    NewlyIdle,
    /// Periodic balancing by the CPU that received the task.
    Periodic,
    /// Balancing on behalf of an idle CPU.
    Nohz,
    /// The stopper: active balancing, exec, a change of affinity of a running task.
    Stopper,
    /// Pushing and pulling of real-time and deadline tasks.
    PushPull,
    /// A change of affinity of a task that waits.
    Affinity,
}

impl Cause {
    /// Every cause, in the order of tables.
    pub const ALL: [Cause; 7] = [
        Cause::Wakeup,
        Cause::NewlyIdle,
        Cause::Periodic,
        Cause::Nohz,
        Cause::Stopper,
        Cause::PushPull,
        Cause::Affinity,
    ];

    /// As tables print it.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Wakeup => "wake-up",
            Cause::NewlyIdle => "newly idle",
            Cause::Periodic => "periodic",
            Cause::Nohz => "nohz",
            Cause::Stopper => "stopper",
            Cause::PushPull => "push/pull",
            Cause::Affinity => "affinity",
        }
    }
}

/// Finds the cause of each migration. Needs `sched_migrate_task` and, to follow wake-ups, `sched_switch`,
/// `sched_waking` and `sched_wakeup`, one of which may be missing.
#[derive(Clone, Debug, Default)]
pub struct Causes {
    wakes: Wakes,
}

impl Causes {
    /// Follows an event; for a migration, the task moved and the cause.
    pub fn event(&mut self, event: &Event) -> Option<(Pid, Cause)> {
        let moved = Causes::of(event, &self.wakes);
        self.wakes.event(event);
        moved
    }

    /// The same for callers that follow the wake-ups themselves, before they process this event.
    fn of(event: &Event, wakes: &Wakes) -> Option<(Pid, Cause)> {
        let Kind::SchedMigrateTask { pid, prio, dest_cpu, .. } = event.kind else { return None };
        Some((pid, Causes::cause(event, wakes.is_placing(event, pid), prio, dest_cpu)))
    }

    fn cause(event: &Event, waking: bool, prio: i32, dest: CpuId) -> Cause {
        if waking {
            Cause::Wakeup
        } else if event.comm.as_bytes().starts_with(b"migration/") {
            Cause::Stopper
        } else if prio < MAX_RT_PRIO {
            Cause::PushPull
        } else if event.flags.has(Flags::SOFTIRQ) || event.comm.as_bytes().starts_with(b"ksoftirqd/") {
            if dest == event.cpu { Cause::Periodic } else { Cause::Nohz }
        } else if dest == event.cpu {
            Cause::NewlyIdle
        } else {
            Cause::Affinity
        }
    }
}

/// Migrations by cause. Needs what [`Causes`] needs.
#[derive(Clone, Debug, Default)]
pub struct Migrations {
    counts: [u64; Cause::ALL.len()],
    causes: Causes,
    first_event: Option<Time>,
    last: Option<Time>,
    firsts: Vec<Duration>,
}

/// Number of migrations whose times are kept.
const FIRSTS: usize = 10;

impl Migrations {
    /// Times of the first ten migrations, from the first event of the trace.
    pub fn firsts(&self) -> &[Duration] {
        &self.firsts
    }

    /// From the first event of the trace to the last migration; zero without one.
    pub fn last_after(&self) -> Duration {
        self.first_event.zip(self.last).map_or(Duration::ZERO, |(first, last)| last.since(first))
    }

    /// Follows an event for callers that follow the wake-ups themselves, before they process this event.
    #[inline]
    pub fn event_among(&mut self, event: &Event, wakes: &Wakes) {
        self.first_event.get_or_insert(event.time);
        if let Kind::SchedMigrateTask { .. } = event.kind {
            self.count(event.time, Causes::of(event, wakes));
        }
    }

    /// The trace is over.
    pub fn end(&mut self) {
        self.causes = Causes::default();
    }

    fn count(&mut self, time: Time, moved: Option<(Pid, Cause)>) {
        if let Some((_, cause)) = moved {
            self.last = Some(time);
            if self.firsts.len() < FIRSTS {
                self.firsts.push(time.since(self.first_event.unwrap_or(time)));
            }
            self.counts[cause as usize] += 1;
        }
    }

    /// Number of migrations by a cause.
    pub fn of(&self, cause: Cause) -> u64 {
        self.counts[cause as usize]
    }

    /// Total number.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Sink for Migrations {
    fn event(&mut self, event: &Event) {
        self.first_event.get_or_insert(event.time);
        let moved = self.causes.event(event);
        self.count(event.time, moved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::{Comm, TaskState};

    #[test]
    fn a_wakeup_without_an_end_moves_its_task_no_more_when_that_ran() {
        let (comm, pid, prio) = (Comm::new(b"t"), Pid(7), 120);
        let waking = Kind::SchedWaking { comm, pid, prio, target_cpu: CpuId(0) };
        let migrate = Kind::SchedMigrateTask { comm, pid, prio, orig_cpu: CpuId(0), dest_cpu: CpuId(1) };
        let switch = |prev_pid, next_pid| Kind::SchedSwitch {
            prev_comm: comm,
            prev_pid,
            prev_prio: prio,
            prev_state: TaskState::RUNNING,
            next_comm: comm,
            next_pid,
            next_prio: prio,
        };
        let (runs, waits) = (switch(Pid(1), pid), switch(pid, Pid(1)));
        for (kinds, by_wakeup, newly_idle) in [
            (vec![waking.clone(), migrate.clone(), runs.clone(), waits.clone(), migrate.clone()], 1, 1),
            (vec![waking.clone(), runs.clone(), waits.clone(), migrate.clone()], 0, 1),
            (vec![runs, waits, waking, migrate], 0, 1),
        ] {
            let mut fold = Migrations::default();
            for kind in kinds {
                let (time, cpu, pid) = (Time::ZERO, CpuId(1), Pid(1));
                fold.event(&Event { time, cpu, pid, tgid: None, comm, flags: Flags::new(0, 0, 0), kind });
            }
            assert_eq!((fold.of(Cause::Wakeup), fold.of(Cause::NewlyIdle)), (by_wakeup, newly_idle));
        }
    }

    #[test]
    fn the_surroundings_tell_the_cause() {
        let pid = Pid(7);
        let comm = Comm::new(b"t");
        let of = |prio| Kind::SchedMigrateTask { comm, pid, prio, orig_cpu: CpuId(0), dest_cpu: CpuId(1) };
        let migrate = of(120);
        let waking = Kind::SchedWaking { comm, pid, prio: 120, target_cpu: CpuId(0) };
        let woken = Kind::SchedWakeup { comm, pid, prio: 120, target_cpu: CpuId(1) };
        let mut fold = Migrations::default();
        for (curr, cpu, flags, kind) in [
            ("a", 3, 0, waking),
            ("a", 3, 0, migrate.clone()),
            ("a", 3, 0, woken),
            ("a", 1, 0, migrate.clone()),
            ("a", 1, Flags::SOFTIRQ, migrate.clone()),
            ("a", 2, Flags::SOFTIRQ, migrate.clone()),
            ("migration/0", 0, 0, migrate.clone()),
            ("migration/0", 0, 0, of(-1)),
            ("a", 1, 0, of(98)),
            ("a", 0, Flags::HARDIRQ, of(-1)),
            ("a", 0, Flags::SOFTIRQ, of(99)),
            ("a", 2, 0, migrate),
        ] {
            fold.event(&Event {
                time: Time::ZERO,
                cpu: CpuId(cpu),
                pid: Pid(1),
                tgid: None,
                comm: Comm::new(curr.as_bytes()),
                flags: Flags::new(flags, 0, 0),
                kind,
            });
        }
        assert_eq!(Cause::ALL.map(|c| fold.of(c)), [1, 1, 1, 1, 2, 3, 1]);
    }
}
