//! Pairs each wake-up with its outcome by looking ahead in the trace.
//!
//! `sched_waking` shows that a wake-up begins; `sched_migrate_task` and `sched_wakeup` show what was chosen, the latter
//! on the target CPU when the wake-up was queued by interrupt. The shadow must know the choice when it is made, because
//! the target counts as busy from then on. So events wait here until the outcome of each earlier wake-up is known, or
//! until they have waited too long.
//!
//! `perf sched record` leaves `sched_wakeup` out. In such a trace a wake-up ends where the task is next seen to run: it
//! was queued on its previous CPU, or on the one to which the waker moved it right after `sched_waking`.

use std::collections::VecDeque;

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Flags, Kind};
use schedlab_units::{Duration, Pid, Time};

/// Longest wait for the end of a wake-up; a wake-up without an end was lost.
const PATIENCE: Duration = Duration::millis(200);

/// Longest wait for the end of a turn in which a task may have changed its priority.
const TURN: Duration = Duration::millis(20);

/// Longest wait for a new task to leave a CPU or to be moved.
const CHILDHOOD: Duration = Duration::millis(1_000);

/// Every event waits this long, so that its near future can be examined.
const HORIZON: Duration = Duration::millis(1);

/// Maximum number of waiting events, whatever time they span.
const EVENTS_MAX: usize = 1 << 17;

/// How a wake-up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fate {
    /// The CPU where the task was queued.
    pub cpu: CpuId,
    /// The CPU that completed it: the waker's, or `cpu` when it was queued by interrupt.
    pub by: CpuId,
    /// When it was queued.
    pub at: Time,
    /// The wake-up moved the task to another CPU.
    pub migrated: bool,
}

impl Fate {
    /// Whether the task was queued on `cpu`, without a move.
    pub fn stays_on(self, cpu: CpuId) -> bool {
        self.cpu == cpu && !self.migrated
    }
}

/// An event; if it begins a wake-up, the outcome is known.
#[derive(Debug)]
pub struct Known {
    /// The event.
    pub event: Event,
    /// For a `sched_waking`: how it ended; `None` if the trace does not show it.
    pub fate: Option<Fate>,
    /// For a `sched_wakeup_new`: the priority with which the task first left a CPU, or left it the next time if it was
    /// preempted with the priority of its birth. A task usually sets its own priority when it begins to run, and no
    /// event shows that. For a `sched_stat_runtime` that the task itself caused: the priority with which it leaves the
    /// CPU, if that differs from the one with which it began.
    pub later_prio: Option<LaterPrio>,
    /// For a `sched_migrate_task`: it is part of a wake-up.
    pub of_wakeup: bool,
    /// Its end has not been seen yet.
    open: bool,
    /// Where the wake-up that it begins has moved the task.
    moved_to: Option<CpuId>,
}

/// The priority that a task gives itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaterPrio {
    /// The priority as traces print it.
    pub prio: i32,
    /// The task was preempted before it set the priority.
    pub in_second_turn: bool,
}

/// What an event shows about a CPU.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// Time of the event.
    pub time: Time,
    /// The CPU.
    pub cpu: CpuId,
    /// Whether the CPU is idle then, if the event shows it.
    pub idle: Option<bool>,
}

impl Shown {
    fn by(event: &Event) -> Shown {
        let (cpu, idle) = match event.kind {
            Kind::SchedSwitch { next_pid, .. } => (event.cpu, Some(next_pid == Pid::IDLE)),
            Kind::SchedWakeup { target_cpu, .. } | Kind::SchedWakeupNew { target_cpu, .. } => {
                (target_cpu, Some(false))
            }
            _ => (event.cpu, None),
        };
        Shown { time: event.time, cpu, idle }
    }
}

/// Events that are waiting.
#[derive(Debug, Default)]
pub struct Pairing {
    /// An event is large, so it stays in its box until it has been followed.
    waiting: VecDeque<Box<Known>>,
    /// Boxes of events that were followed, for reuse.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Known>>,
    /// The same for each event in `waiting`: one look ahead reads many of them.
    shown: VecDeque<Shown>,
    /// Number of the first event in `waiting`.
    first: u64,
    /// That event waits at least until this time.
    due: Time,
    /// Time of the last event.
    newest: Time,
    /// Wake-ups without an end so far, with the number of their event.
    open: ByPid,
    /// Tasks that were born and have not left a CPU yet.
    newborn: ByPid,
    /// For each CPU, the task that runs there.
    turns: Vec<Turn>,
    /// Whether the trace shows how wake-ups end.
    told: bool,
    /// For each CPU, the number of its last event.
    last: Vec<u64>,
    /// Upcoming execs, with event number, time and task; also some past ones.
    execs: VecDeque<(u64, Time, Pid)>,
}

/// The task that runs on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Turn {
    /// `None` if its start was not seen.
    pid: Option<Pid>,
    /// Its priority at the start.
    prio: i32,
    /// The number of the event that first charged it outside interrupts and switches: it may have changed its priority
    /// then.
    charged: Option<u64>,
}

/// Event numbers by task, sorted by task; there are few at a time.
#[derive(Debug, Default)]
struct ByPid(Vec<(Pid, u64)>);

impl ByPid {
    fn place(&self, pid: Pid) -> Result<usize, usize> {
        self.0.binary_search_by_key(&pid, |&(pid, _)| pid)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn get(&self, pid: Pid) -> Option<u64> {
        self.place(pid).ok().map(|place| self.0[place].1)
    }

    /// Returns the previous number.
    fn insert(&mut self, pid: Pid, number: u64) -> Option<u64> {
        match self.place(pid) {
            Ok(place) => Some(std::mem::replace(&mut self.0[place].1, number)),
            Err(place) => {
                self.0.insert(place, (pid, number));
                None
            }
        }
    }

    fn remove(&mut self, pid: Pid) -> Option<u64> {
        self.place(pid).ok().map(|place| self.0.remove(place).1)
    }
}

/// Whether a task caused the event itself, without a pending reschedule request.
pub fn by_itself(flags: Flags) -> bool {
    !flags.in_interrupt() && !flags.has(Flags::NEED_RESCHED | Flags::NEED_RESCHED_LAZY)
}

impl Pairing {
    /// Takes the next event of the trace.
    #[inline(never)]
    pub fn push(&mut self, event: Event) {
        let number = self.first + self.waiting.len() as u64;
        let (mut open, mut of_wakeup) = (false, false);
        match event.kind {
            Kind::SchedWaking { pid, .. } => {
                if let Some(earlier) = self.open.insert(pid, number) {
                    self.close(earlier, None);
                }
                open = true;
            }
            Kind::SchedWakeupNew { pid, .. } => {
                if let Some(earlier) = self.newborn.insert(pid, number) {
                    self.close(earlier, None);
                }
                open = true;
            }
            Kind::SchedSwitch { prev_pid, prev_comm, prev_prio, prev_state, next_pid, next_prio, .. } => {
                let next = Turn { pid: Some(next_pid), prio: next_prio, charged: None };
                self.turn(event.cpu, prev_pid, prev_prio, next);
                let preempted = prev_state.is_runnable().then_some(prev_comm);
                self.grown(prev_pid, prev_prio, preempted);
                if !self.told {
                    self.is_awake(next_pid);
                    if prev_state.is_runnable() {
                        self.is_awake(prev_pid);
                    }
                }
            }
            Kind::SchedMigrateTask { pid, prio, dest_cpu, .. } => {
                // A task that has the priority of its birth may not have run yet.
                let as_born = |born: &mut Known| matches!(born.event.kind, Kind::SchedWakeupNew { prio: own, .. } if own == prio);
                if !self.birth(pid).is_some_and(as_born) {
                    self.grown(pid, prio, None);
                }
                let follows = |waking| self.told || self.last.get(event.cpu.index()) == Some(&waking);
                if let Some(waking) = self.open.get(pid)
                    && follows(waking)
                    && let Some(waiting) = self.at(waking)
                    && waiting.event.cpu == event.cpu
                {
                    waiting.moved_to = Some(dest_cpu);
                    of_wakeup = true;
                }
            }
            Kind::SchedStatRuntime { pid, .. } if pid == event.pid && by_itself(event.flags) => {
                let turn = self.turn_on(event.cpu);
                if turn.pid == Some(pid) && turn.charged.is_none() {
                    turn.charged = Some(number);
                    open = true;
                }
            }
            Kind::SchedProcessExec { pid, .. } => {
                let first = self.first;
                self.execs.retain(|&(number, ..)| number >= first);
                self.execs.push_back((number, event.time, pid));
            }
            Kind::SchedWakeup { pid, target_cpu, .. } => {
                self.told = true;
                if let Some(waking) = self.open.remove(pid) {
                    let migrated = self.at(waking).is_some_and(|waiting| waiting.moved_to.is_some());
                    let fate = Fate { cpu: target_cpu, by: event.cpu, at: event.time, migrated };
                    self.close(waking, Some(fate));
                }
            }
            _ => {}
        }
        if self.last.len() <= event.cpu.index() {
            self.last.resize(event.cpu.index() + 1, u64::MAX);
        }
        self.last[event.cpu.index()] = number;
        self.newest = event.time;
        if self.shown.is_empty() {
            self.due = event.time + HORIZON;
        }
        self.shown.push_back(Shown::by(&event));
        let known = match self.spare.pop() {
            Some(mut known) => {
                known.event = event;
                (known.fate, known.later_prio, known.moved_to) = (None, None, None);
                (known.of_wakeup, known.open) = (of_wakeup, open);
                known
            }
            None => Box::new(Known { event, fate: None, later_prio: None, of_wakeup, open, moved_to: None }),
        };
        self.waiting.push_back(known);
    }

    /// An event was followed; its box can be reused.
    #[inline]
    pub fn give_back(&mut self, known: Box<Known>) {
        self.spare.push(known);
    }

    /// A task is awake, so its open wake-up has ended as its waker intended.
    fn is_awake(&mut self, pid: Pid) {
        if let Some(waking) = self.open.remove(pid)
            && let Some(Known { event, moved_to, .. }) = self.at(waking)
            && let Kind::SchedWaking { target_cpu, .. } = event.kind
        {
            let cpu = moved_to.unwrap_or(target_cpu);
            let fate = Fate { cpu, by: event.cpu, at: event.time, migrated: moved_to.is_some() };
            self.close(waking, Some(fate));
        }
    }

    /// An event shows the priority of a task some time after its birth. A task that was preempted once, with the name
    /// and priority of its birth, may not have set its own yet.
    fn grown(&mut self, pid: Pid, prio: i32, preempted: Option<Comm>) {
        if let Some(waiting) = self.birth(pid) {
            let as_born = |name| matches!(waiting.event.kind, Kind::SchedWakeupNew { comm, prio: own, .. } if (comm, own) == (name, prio));
            let first = waiting.later_prio.is_none();
            waiting.later_prio = Some(LaterPrio { prio, in_second_turn: !first });
            if !first || !preempted.is_some_and(as_born) {
                waiting.open = false;
                self.newborn.remove(pid);
            }
        }
    }

    fn turn_on(&mut self, cpu: CpuId) -> &mut Turn {
        let cpu = cpu.index();
        if self.turns.len() <= cpu {
            self.turns.resize(cpu + 1, Turn::default());
        }
        &mut self.turns[cpu]
    }

    /// A turn ends, perhaps with another priority than it began with, and the next turn begins.
    fn turn(&mut self, cpu: CpuId, pid: Pid, prio: i32, next: Turn) {
        let ends = std::mem::replace(self.turn_on(cpu), next);
        let Some(charged) = ends.charged else { return };
        self.close(charged, None);
        if ends.pid == Some(pid)
            && ends.prio != prio
            && let Some(waiting) = self.at(charged)
        {
            waiting.later_prio = Some(LaterPrio { prio, in_second_turn: false });
        }
    }

    /// The birth event of a task whose later priority has not been seen yet.
    fn birth(&mut self, pid: Pid) -> Option<&mut Known> {
        let born = if self.newborn.is_empty() { None } else { self.newborn.get(pid) };
        self.at(born?)
    }

    fn at(&mut self, number: u64) -> Option<&mut Known> {
        let index = number.checked_sub(self.first)?;
        self.waiting.get_mut(index as usize).map(|known| &mut **known)
    }

    fn close(&mut self, number: u64, fate: Option<Fate>) {
        if let Some(waiting) = self.at(number) {
            waiting.open = false;
            waiting.fate = fate;
        }
    }

    /// The next event, if it need not wait; at the `end` of the trace none has to.
    #[inline]
    pub fn pop(&mut self, end: bool) -> Option<Box<Known>> {
        let must_go = end || self.waiting.len() >= EVENTS_MAX;
        if self.newest < self.due && !must_go {
            return None;
        }
        let front = self.waiting.front()?;
        if front.open {
            let (others, patience) = match front.event.kind {
                Kind::SchedWakeupNew { pid, .. } => (Some((&mut self.newborn, pid)), CHILDHOOD),
                Kind::SchedWaking { pid, .. } => (Some((&mut self.open, pid)), PATIENCE),
                _ => (None, TURN),
            };
            if self.newest.since(front.event.time) < patience && !must_go {
                return None;
            }
            if let Some((others, pid)) = others {
                others.remove(pid);
            }
        }
        self.first += 1;
        self.shown.pop_front();
        self.due = self.shown.front().map_or(Time::MAX, |shown| shown.time + HORIZON);
        self.waiting.pop_front()
    }

    /// Tasks that will have executed a program by `until`.
    pub fn execs(&self, until: Time) -> impl Iterator<Item = Pid> {
        let ahead = self.execs.iter().skip_while(|&&(number, ..)| number < self.first);
        ahead.take_while(move |&&(_, time, _)| time <= until).map(|&(.., pid)| pid)
    }

    /// What the waiting events up to `until` show about CPUs.
    pub fn shown(&self, until: Time) -> impl Iterator<Item = &Shown> {
        let (first, second) = self.shown.as_slices();
        let [first, second] =
            [first, second].map(|shown| &shown[..shown.partition_point(|shown| shown.time <= until)]);
        first.iter().chain(second)
    }

    /// The priority of a task according to the next waiting event that shows it.
    pub fn prio_ahead(&self, task: Pid) -> Option<i32> {
        self.waiting.iter().find_map(|waiting| match waiting.event.kind {
            Kind::SchedSwitch { prev_pid, prev_prio, .. } if prev_pid == task => Some(prev_prio),
            Kind::SchedSwitch { next_pid, next_prio, .. } if next_pid == task => Some(next_prio),
            Kind::SchedWaking { pid, prio, .. }
            | Kind::SchedWakeup { pid, prio, .. }
            | Kind::SchedWakeupNew { pid, prio, .. }
            | Kind::SchedMigrateTask { pid, prio, .. }
                if pid == task =>
            {
                Some(prio)
            }
            _ => None,
        })
    }

    /// The waiting events up to `until`.
    pub fn ahead(&self, until: Time) -> impl Iterator<Item = &Event> {
        self.waiting.iter().map(|waiting| &waiting.event).take_while(move |event| event.time <= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::read::{Record, ftrace};

    /// The events of a text, each when its outcome is known.
    fn followed(text: &str) -> Vec<Known> {
        let mut pairing = Pairing::default();
        let mut followed = Vec::new();
        for record in ftrace::Reader::new(text.as_bytes()) {
            let Record::Event(event) = record.unwrap() else { continue };
            pairing.push(event);
            followed.extend(std::iter::from_fn(|| pairing.pop(false)).map(|known| *known));
        }
        followed.extend(std::iter::from_fn(|| pairing.pop(true)).map(|known| *known));
        followed
    }

    fn fates(text: &str) -> Vec<String> {
        let of = |known: Known| {
            let Kind::SchedWaking { pid, .. } = known.event.kind else { return None };
            Some(match known.fate {
                Some(fate) => format!("{pid} to {} by {} moved {}", fate.cpu, fate.by, fate.migrated),
                None => format!("{pid} unknown"),
            })
        };
        followed(text).into_iter().filter_map(of).collect()
    }

    #[test]
    fn a_wake_up_is_known_by_its_end() {
        let text = "\
            a-7 [000] d..3. 1.000001: sched_waking: comm=b pid=8 prio=120 target_cpu=003\n\
            a-7 [000] d..3. 1.000002: sched_migrate_task: comm=b pid=8 prio=120 orig_cpu=3 dest_cpu=1\n\
            a-7 [000] d..3. 1.000003: sched_waking: comm=c pid=9 prio=120 target_cpu=000\n\
            a-7 [000] d..4. 1.000004: sched_wakeup: comm=c pid=9 prio=120 target_cpu=000\n\
            x-0 [001] dNh2. 1.000050: sched_wakeup: comm=b pid=8 prio=120 target_cpu=001\n\
            a-7 [000] d..3. 1.000060: sched_waking: comm=d pid=10 prio=120 target_cpu=000\n";
        assert_eq!(fates(text), ["8 to 1 by 1 moved true", "9 to 0 by 0 moved false", "10 unknown"]);
    }

    #[test]
    fn without_its_end_a_wake_up_is_known_by_the_next_run() {
        let text = "\
            a-7 [000] d..3. 1.000001: sched_waking: comm=b pid=8 prio=120 target_cpu=003\n\
            a-7 [000] d..3. 1.000002: sched_migrate_task: comm=b pid=8 prio=120 orig_cpu=3 dest_cpu=1\n\
            a-7 [000] d..3. 1.000003: sched_waking: comm=c pid=9 prio=120 target_cpu=002\n\
            a-7 [000] d..2. 1.000004: sched_stat_runtime: comm=a pid=7 runtime=5 [ns]\n\
            a-7 [000] d..2. 1.000005: sched_migrate_task: comm=c pid=9 prio=120 orig_cpu=2 dest_cpu=0\n\
            x-0 [001] d..2. 1.000050: sched_switch: prev_comm=x prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=8 next_prio=120\n\
            a-7 [000] d..2. 1.000060: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=c next_pid=9 next_prio=120\n";
        let second = "9 to 2 by 0 moved false";
        assert_eq!(fates(text), ["8 to 1 by 0 moved true", second], "what came later was balancing");
    }

    #[test]
    fn a_priority_is_that_of_the_turn_in_which_it_is_set() {
        let born = "a-7 [000] d..2. 1.000001: sched_wakeup_new: comm=a pid=8 prio=120 target_cpu=001\n";
        let switch = |comm, prio, state| {
            format!(
                "{comm}-8 [001] d..2. 1.000002: sched_switch: prev_comm={comm} prev_pid=8 prev_prio={prio} \
                 prev_state={state} ==> next_comm=x next_pid=0 next_prio=120\n"
            )
        };
        let later = |turns: &[String]| {
            followed(&(born.to_owned() + &turns.concat()))[0]
                .later_prio
                .map(|later| (later.prio, later.in_second_turn))
        };
        let moved = |prio| {
            let event = "x-0 [000] d..2. 1.000002: sched_migrate_task: comm=a pid=8 prio=";
            format!("{event}{prio} orig_cpu=1 dest_cpu=0\n")
        };
        assert_eq!(later(&[]), None);
        assert_eq!(later(&[moved(120)]), None, "it may not have run yet");
        assert_eq!(later(&[moved(120), switch("h1", 115, "R")]), Some((115, false)));
        assert_eq!(later(&[moved(115), switch("h1", 110, "R")]), Some((115, false)));
        assert_eq!(later(&[switch("h1", 115, "R")]), Some((115, false)));
        assert_eq!(
            later(&[switch("a", 120, "S"), switch("h1", 115, "R")]),
            Some((120, false)),
            "it slept as it was"
        );
        assert_eq!(later(&[switch("a", 120, "R"), switch("h1", 115, "R")]), Some((115, true)));
        assert_eq!(
            later(&[switch("a", 120, "R"), switch("a", 120, "R"), switch("h1", 115, "R")]),
            Some((120, true))
        );
    }

    #[test]
    fn a_turn_that_ends_with_another_priority_shows_it_where_it_may_have_been_set() {
        let begins = "x-0 [001] d..2. 1.000001: sched_switch: prev_comm=x prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=a next_pid=8 next_prio=120\n";
        let charged = |flags: &str| {
            format!("a-8 [001] {flags} 1.000002: sched_stat_runtime: comm=a pid=8 runtime=5 [ns]\n")
        };
        let ends = |us: u32, prio: i32| {
            format!(
                "a-8 [001] d..2. 1.{us:06}: sched_switch: prev_comm=a prev_pid=8 prev_prio={prio} prev_state=S ==> next_comm=x next_pid=0 next_prio=120\n"
            )
        };
        let told = |lines: &[String]| -> Vec<Option<i32>> {
            followed(&(begins.to_owned() + &lines.concat()))
                .iter()
                .map(|known| known.later_prio.map(|later| later.prio))
                .collect()
        };
        assert_eq!(told(&[ends(9, 120)]), [None, None]);
        assert_eq!(told(&[ends(9, 98)]), [None, None], "nor when nor by whom");
        assert_eq!(told(&[charged("d..2."), ends(9, 98)]), [None, Some(98), None]);
        assert_eq!(told(&[charged("d..2."), ends(9_000, 98)]), [None, Some(98), None], "it is waited for");
        for other in ["d.h2.", "dN.2."] {
            assert_eq!(told(&[charged(other), ends(9, 98)]), [None, None, None], "{other}");
        }
    }
}
