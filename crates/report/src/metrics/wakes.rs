//! Which wakings wake a task, and until when.
//!
//! `sched_waking` also occurs for tasks that are awake: a task that runs, or that was preempted on its way to sleep, is
//! only kept from sleeping, and is not placed. A task that still runs may be about to leave its CPU; if so, the wake-up
//! completes when it has left. If no starts of wake-ups are recorded, as by an older `perf sched record`, a move of a
//! sleeping task is due to a wake-up.
//!
//! A wake-up ends with `sched_wakeup`. If that was not recorded, as by a newer `perf sched record`, it ends when its
//! waker has moved the task, which happens at most once, or when the task runs.
//!
//! Kernel: try_to_wake_up(), kernel/sched/core.c, v5.10, v6.1, v6.12, v7.2.

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Kind, TaskState};
use schedlab_units::{Duration, Pid, Time};

use super::PidTable;

/// The states of tasks that wakings depend on. Needs `sched_switch`, and at least one of `sched_waking` and
/// `sched_wakeup`.
#[derive(Clone, Debug, Default)]
pub struct Wakes {
    tasks: PidTable<State>,
    /// There are ends of wake-ups without beginnings, and no beginnings.
    lacks_beginnings: bool,
    /// There are any `sched_waking`.
    tells_beginnings: bool,
    /// There are any `sched_wakeup`.
    tells_ends: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// It runs; a waking came since.
    Running(Option<Waking>),
    /// It sleeps; a waking came while it still ran.
    Asleep(Option<Waking>),
    /// It was woken, and waits to run; the waking is in progress until it is placed.
    Woken { since: Time, goes_on: Option<Waking> },
    /// It ran, and waits to continue.
    Waits,
}

/// The beginning of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waking {
    at: Time,
    /// Where the waker is, which moves the task.
    cpu: CpuId,
}

impl Wakes {
    /// Follows an event; if it switches to a woken task, returns how long ago that was woken.
    pub fn event(&mut self, event: &Event) -> Option<Duration> {
        let now = event.time;
        match event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                self.leaves(prev_pid, prev_state);
                let next = self.tasks.entry(next_pid);
                return match std::mem::replace(next, State::Running(None)) {
                    State::Woken { since, .. } => Some(now.since(since)),
                    _ => None,
                };
            }
            Kind::SchedWaking { pid, .. } => {
                (self.tells_beginnings, self.lacks_beginnings) = (true, false);
                self.hear(event.pid);
                let waking = Some(Waking { at: now, cpu: event.cpu });
                let task = self.tasks.entry(pid);
                match task {
                    State::Running(known) => *known = waking,
                    State::Waits => {}
                    // A task is not woken again before it has run, so it must have run without an event.
                    State::Unknown | State::Asleep(_) | State::Woken { .. } => {
                        *task = State::Woken { since: now, goes_on: waking };
                    }
                }
            }
            Kind::SchedWakeup { pid, .. } | Kind::SchedWakeupNew { pid, .. } => {
                self.tells_ends |= matches!(event.kind, Kind::SchedWakeup { .. });
                self.hear(event.pid);
                let task = self.tasks.entry(pid);
                match task {
                    State::Running(waking) => *waking = None,
                    State::Waits => {}
                    State::Woken { goes_on, .. } => *goes_on = None,
                    State::Unknown => *task = State::Woken { since: now, goes_on: None },
                    State::Asleep(waking) => {
                        self.lacks_beginnings |= !self.tells_beginnings;
                        let since = waking.map_or(now, |waking| waking.at);
                        *task = State::Woken { since, goes_on: None };
                    }
                }
            }
            Kind::SchedMigrateTask { pid, .. } if self.is_placing(event, pid) => {
                let task = self.tasks.entry(pid);
                let since = match *task {
                    State::Woken { since, .. } => since,
                    State::Asleep(Some(waking)) => waking.at,
                    _ => now,
                };
                *task = State::Woken { since, goes_on: None };
            }
            _ => {}
        }
        None
    }

    /// Whether a move of a task by an event that was not followed yet is due to a wake-up.
    pub fn is_placing(&self, event: &Event, pid: Pid) -> bool {
        let goes_on = match self.tasks.get(pid) {
            Some(State::Woken { goes_on, .. }) => *goes_on,
            // If starts of wake-ups are recorded, there is none here, so balancing moves a sleeping task that is
            // still on a queue.
            Some(State::Asleep(None)) => return self.lacks_beginnings,
            Some(State::Asleep(waking)) => *waking,
            _ => None,
        };
        goes_on.is_some_and(|waking| waking.cpu == event.cpu)
    }

    /// A task leaves its CPU.
    fn leaves(&mut self, pid: Pid, state: TaskState) {
        let task = self.tasks.entry(pid);
        let waking = if let State::Running(waking) = *task { waking } else { None };
        // Until 5.17 the waker of a task that falls asleep has often already set its state when that is read.
        let seems_awake = state == TaskState::RUNNING && waking.is_some() && self.tells_ends;
        *task = match state {
            _ if state.is_dead() => State::Unknown,
            _ if state.is_runnable() && !seems_awake => State::Waits,
            _ => State::Asleep(waking),
        };
    }

    /// The task that an event shows running is awake.
    fn hear(&mut self, pid: Pid) {
        let task = self.tasks.entry(pid);
        if *task == State::Unknown {
            *task = State::Running(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::read::{Record, ftrace};

    /// For lines of `US TASK-PID VERB ..`, how long each woken task waited, and which tasks a wake-up moved. Everything
    /// is on CPU 0 except what `c-9` does, on CPU 1, and `d-6`, on CPU 2.
    fn told(short: &str) -> String {
        let mut wakes = Wakes::default();
        let mut told = Vec::new();
        for line in short.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [us, task, verb, rest @ ..] = &words[..] else { panic!("{line}") };
            let of = |task: &str| {
                let (comm, pid) = task.rsplit_once('-').unwrap();
                format!("comm={comm} pid={pid} prio=120")
            };
            let other = of(rest[rest.len() - 1]);
            let part = |lead: &str, task: &str| {
                of(task).split(' ').map(|word| format!("{lead}{word} ")).collect::<String>()
            };
            let kind = match *verb {
                "out" => format!(
                    "sched_switch: {}prev_state={} ==> {}",
                    part("prev_", task),
                    rest[0],
                    part("next_", rest[1])
                ),
                "moves" => format!("sched_migrate_task: {other} orig_cpu=0 dest_cpu=1"),
                event => format!("sched_{event}: {other} target_cpu=000"),
            };
            let us: u64 = us.parse().unwrap();
            let cpu = match *task {
                "c-9" => 1,
                "d-6" => 2,
                _ => 0,
            };
            let text = format!("  {task} [00{cpu}] d..2. 1.{us:06}: {kind}\n");
            for record in ftrace::Reader::new(text.as_bytes()) {
                let Record::Event(event) = record.unwrap() else { panic!("{text}") };
                if let Kind::SchedMigrateTask { pid, .. } = event.kind
                    && wakes.is_placing(&event, pid)
                {
                    told.push(format!("{} moved", pid.0));
                }
                let waited = wakes.event(&event);
                told.extend(waited.map(|waited| format!("{} us", waited.0 / 1000)));
            }
        }
        told.join(", ")
    }

    #[test]
    fn a_task_that_is_awake_is_not_woken() {
        for (short, expected) in [
            ("0 b-8 out S a-7\n 10 a-7 waking b-8\n 12 a-7 wakeup b-8\n 30 a-7 out S b-8", "20 us"),
            // Another CPU wakes it while it runs, and it continues.
            (
                "0 b-8 out S a-7\n 10 c-9 waking a-7\n 11 c-9 wakeup a-7\n 20 a-7 out R b-8\n 50 b-8 out S a-7",
                "",
            ),
            (
                "0 b-8 out S a-7\n 10 c-9 waking a-7\n 20 a-7 out R b-8\n 30 c-9 moves a-7\n 50 b-8 out S a-7",
                "",
            ),
            (
                "0 b-8 out S a-7\n 20 a-7 out R+ b-8\n 30 b-8 waking a-7\n 40 c-9 moves a-7\n 50 b-8 out S a-7",
                "",
            ),
            // It was about to leave the CPU, and is woken when it has left.
            (
                "0 b-8 out S a-7\n 10 c-9 waking a-7\n 11 a-7 out S b-8\n 12 c-9 wakeup a-7\n 20 b-8 out S a-7",
                "10 us",
            ),
            (
                "0 b-8 out S a-7\n 10 c-9 waking a-7\n 11 a-7 out S b-8\n 12 c-9 moves a-7\n 20 b-8 out S a-7",
                "7 moved, 10 us",
            ),
            (
                "0 b-8 out S a-7\n 1 a-7 wakeup c-9\n 10 c-9 waking a-7\n 11 a-7 out R b-8\n 12 c-9 moves a-7\n 20 b-8 out S a-7",
                "7 moved, 10 us",
            ),
            // Before its waker continues, another CPU takes it off the queue on which it still is.
            (
                "0 b-8 out S a-7\n 10 c-9 waking a-7\n 11 a-7 out S b-8\n 12 d-6 moves a-7\n 13 c-9 moves a-7\n 20 b-8 out S a-7",
                "7 moved, 10 us",
            ),
            // It was awake, slept later, and was then woken.
            (
                "0 b-8 out S a-7\n 10 c-9 waking a-7\n 20 a-7 out S b-8\n 50 b-8 waking a-7\n 60 b-8 out S a-7",
                "10 us",
            ),
            // It runs when the trace begins.
            ("0 a-7 waking b-8\n 1 b-8 waking a-7\n 5 a-7 out R b-8\n 9 b-8 out S a-7", "5 us"),
        ] {
            assert_eq!(told(short), expected, "{short}");
        }
    }

    #[test]
    fn a_wakeup_is_over_when_its_task_is_queued_moved_or_runs() {
        let woken = "0 b-8 out S a-7\n 10 a-7 waking b-8\n";
        for (then, expected) in [
            ("11 a-7 moves b-8\n 20 a-7 out S b-8", "8 moved, 10 us"),
            ("11 a-7 moves b-8\n 12 c-9 moves b-8\n 20 a-7 out S b-8", "8 moved, 10 us"),
            ("11 a-7 wakeup b-8\n 12 c-9 moves b-8\n 20 a-7 out S b-8", "10 us"),
            ("20 a-7 out R b-8\n 30 b-8 out R a-7\n 40 c-9 moves b-8", "10 us"),
            ("15 a-7 waking b-8\n 20 a-7 out S b-8", "5 us"),
        ] {
            assert_eq!(told(&format!("{woken}{then}")), expected, "{then}");
        }
    }

    #[test]
    fn a_sleeper_is_moved_by_a_wakeup_if_no_beginnings_are_recorded() {
        let sleeps =
            "0 b-8 out S a-7\n 1 a-7 out S c-9\n 2 c-9 wakeup a-7\n 3 c-9 out S a-7\n 10 a-7 moves b-8\n";
        for (then, expected) in [
            ("11 a-7 wakeup b-8\n 20 a-7 out S b-8", "1 us, 8 moved, 10 us"),
            ("11 a-7 moves b-8\n 20 a-7 out S b-8", "1 us, 8 moved, 10 us"),
            ("20 a-7 out S b-8", "1 us, 8 moved, 10 us"),
        ] {
            assert_eq!(told(&format!("{sleeps}{then}")), expected, "{then}");
        }
        // Balancing moves one that sleeps but is still on its queue.
        assert_eq!(
            told(&format!("{sleeps} 20 a-7 out S b-8").replace("10", "4 a-7 waking d-6\n 10")),
            "1 us"
        );
    }

    #[test]
    fn a_dead_task_leaves_nothing_to_the_next_of_its_pid() {
        let ends = "0 a-7 waking b-8\n 1 a-7 out S b-8\n 2 c-9 waking b-8\n 3 b-8 out X a-7\n";
        assert_eq!(told(&format!("{ends} 5 a-7 wakeup_new b-8\n 9 a-7 out R b-8")), "1 us, 4 us");
    }
}
