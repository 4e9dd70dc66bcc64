//! The state of who leaves a CPU, where it was read too late.
//!
//! Up to v5.17 the kernel reads the state for `sched_switch` when it writes the event, after the task has left its queue. A
//! waker that is as quick has made it TASK_WAKING by then, which prints as runnable: a sleeper seems to wait for its CPU.
//! Events wait here for a moment until what follows tells, and go on as they should have been.
//!
//! Who leaves as runnable for an idle CPU need not be such a sleeper: the quota of its group may be used up, its own budget of
//! real time may be, or core scheduling may keep it off. The sleeper is woken before it runs again, and the other is
//! not; so there events wait for the longer time after which quotas come back.
//!
//! Not decided, and left as the event says, is whose wake-up is not in the trace, as it was lost or none are recorded. Where
//! only beginnings of wake-ups are recorded, as by `perf sched record`, one that began just before the CPU idles is taken to be
//! that of a sleeper, though it may have come while the task still ran.
//!
//! Kernel: __trace_sched_switch_state(), include/trace/events/sched.h, v5.10; v5.18 passes the state along.

use std::collections::VecDeque;

use schedlab_units::{Duration, Pid, Time};

use crate::event::{Event, Kind};
use crate::state::TaskState;

/// How long an event waits. The clocks of CPUs and their events are not so far apart.
const WAITS: Duration = Duration::millis(1);

/// How long one waits that leaves a CPU idle: the usual period of quotas.
const WAITS_IDLE: Duration = Duration::millis(100);

/// No more events than this wait for one that leaves a CPU idle.
const WAITING_MAX: usize = 1 << 16;

/// Events of a kernel that reads states late.
#[derive(Debug, Default)]
pub struct LateStates {
    waiting: VecDeque<Event>,
    newest: Time,
    /// Whose wake-up has begun and not ended, and when it did.
    woken: Vec<(Pid, Time)>,
    /// Who left a CPU idle as runnable, and neither was woken nor ran since.
    held: Vec<Pid>,
    /// The trace has the ends of wake-ups.
    told: bool,
}

impl LateStates {
    /// Takes the next event of the trace.
    pub fn push(&mut self, mut event: Event) {
        match &mut event.kind {
            Kind::SchedWaking { pid, .. } => {
                self.meant_to_sleep(*pid);
                self.woken.retain(|(woken, _)| woken != pid);
                self.woken.push((*pid, event.time));
            }
            Kind::SchedWakeup { pid, .. } => {
                self.told = true;
                self.meant_to_sleep(*pid);
                self.woken.retain(|(woken, _)| woken != pid);
            }
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                self.woken.retain(|(woken, _)| woken != next_pid);
                self.held.retain(|held| held != next_pid);
                let idles = *next_pid == Pid::IDLE;
                if *prev_state == TaskState::RUNNING && *prev_pid != Pid::IDLE {
                    // Nobody begins to wake who does not mean to sleep.
                    let began = self.woken.iter().find(|(woken, _)| woken == prev_pid);
                    if began.is_some_and(|(_, at)| self.told || idles && event.time.since(*at) <= WAITS) {
                        *prev_state = TaskState::INTERRUPTIBLE;
                    } else if idles && !self.held.contains(prev_pid) {
                        self.held.push(*prev_pid);
                    }
                }
            }
            _ => {}
        }
        self.newest = event.time;
        self.waiting.push_back(event);
    }

    /// The next event that nothing more is told of; at the `end` of the trace all are. Where the clock goes back, as where
    /// another recording follows, none waits until it is as late again.
    pub fn pop(&mut self, end: bool) -> Option<Event> {
        let front = self.waiting.front()?;
        let waits = if self.is_held(front) { WAITS_IDLE } else { WAITS };
        let waited = self.newest.0.abs_diff(front.time.0) > waits.0;
        let ready = end || waited || self.waiting.len() > WAITING_MAX;
        if ready { self.waiting.pop_front() } else { None }
    }

    /// Whether it is still open if who leaves by this event sleeps.
    fn is_held(&self, event: &Event) -> bool {
        match &event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                *prev_state == TaskState::RUNNING && *next_pid == Pid::IDLE && self.held.contains(prev_pid)
            }
            _ => false,
        }
    }

    /// A task that is woken has been asleep since it left its CPU, if that still waits here.
    fn meant_to_sleep(&mut self, task: Pid) {
        self.held.retain(|held| *held != task);
        let mut switches = self.waiting.iter_mut().rev().filter_map(|event| match &mut event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                Some((*prev_pid, prev_state, *next_pid))
            }
            _ => None,
        });
        let last = switches.find(|&(prev, _, next)| task == prev || task == next);
        if let Some((prev, state, _)) = last
            && prev == task
            && *state == TaskState::RUNNING
        {
            *state = TaskState::INTERRUPTIBLE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Record, ftrace};

    /// An event: `TIME waking|wakeup TASK`, or `TIME PREV > NEXT` for a switch from one that seems runnable; times in us.
    fn event(text: &str) -> Event {
        let pid = |comm: &str| if comm == "idle" { 0 } else { comm.len() };
        let words: Vec<&str> = text.split_whitespace().collect();
        let time: u64 = words[0].parse().unwrap();
        let fields = match words[1..] {
            [prev, ">", next] => format!(
                "sched_switch: prev_comm={prev} prev_pid={} prev_prio=120 prev_state=R ==> next_comm={next} \
                 next_pid={} next_prio=120",
                pid(prev),
                pid(next)
            ),
            [event, comm] => {
                format!("sched_{event}: comm={comm} pid={} prio=120 target_cpu=001", pid(comm))
            }
            _ => panic!("{text}"),
        };
        let line = format!("a-1 [000] d..2. 1.{time:06}: {fields}\n");
        match ftrace::Reader::new(line.as_bytes()).next() {
            Some(Ok(Record::Event(event))) => event,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Passes events on and tells, as `R` and `S`, how those who are no idle task left.
    fn left(events: impl Iterator<Item = Event>) -> String {
        let mut late = LateStates::default();
        let mut states = String::new();
        let mut left = |event: Event| match event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, .. } if prev_pid != Pid::IDLE => {
                states.push(if prev_state.is_runnable() { 'R' } else { 'S' });
            }
            _ => {}
        };
        for event in events {
            late.push(event);
            std::iter::from_fn(|| late.pop(false)).for_each(&mut left);
            assert!(late.waiting.len() <= WAITING_MAX);
        }
        std::iter::from_fn(|| late.pop(true)).for_each(&mut left);
        states
    }

    #[test]
    fn who_is_woken_before_it_runs_again_was_asleep() {
        for (case, text, expected) in [
            ("it was being woken", "1 wakeup x, 10 waking bb, 11 bb > ccc, 12 wakeup bb, 13 ccc > bb", "SR"),
            ("and left a CPU idle", "1 wakeup x, 10 waking bb, 11 bb > idle, 12 wakeup bb", "S"),
            ("it is woken then", "1 bb > ccc, 2 waking bb, 3 wakeup bb", "S"),
            ("by a waker of which the end is told alone", "1 bb > ccc, 2 wakeup bb", "S"),
            ("it ran and waited since", "1 bb > ccc, 5000 ccc > bb, 5001 waking ccc", "RS"),
            ("long after it left a CPU idle", "1 bb > idle, 2 a > x, 90000 waking bb, 90001 wakeup bb", "SR"),
            ("it is out of quota", "1 wakeup x, 10 bb > idle, 50000 idle > bb", "R"),
            (
                "that of others is not",
                "1 bb > idle, 2 waking ccc, 3 idle > ccc, 4 wakeup ccc, 90000 ccc > bb",
                "RR",
            ),
            ("it is out of quota for ever", "1 bb > idle, 200000 a > x, 200001 waking bb", "RR"),
            ("twice, and sleeps then", "1 bb > idle, 9 idle > bb, 10 bb > idle, 90000 waking bb", "RS"),
            ("no ends of wake-ups are told", "1 waking bb, 2 bb > idle, 9 idle > bb, 10 bb > ccc", "SR"),
            ("and this one began long before", "1 waking bb, 2002 bb > idle, 3000 idle > bb", "R"),
            ("and another runs", "1 waking bb, 2 bb > ccc", "R"),
        ] {
            assert_eq!(left(text.split(", ").map(event)), expected, "{case}: {text}");
        }
    }

    #[test]
    fn memory_is_bounded_while_a_task_may_not_run() {
        let events = std::iter::once(event("1 bb > idle"));
        let busy = std::iter::repeat_n(event("2 waking ccc"), WAITING_MAX + 9);
        assert_eq!(left(events.chain(busy).chain([event("3 waking bb")])), "R");
    }
}
