//! The state in which a task leaves a CPU, if the kernel read it too late.
//!
//! Up to v5.17 the kernel reads the state for `sched_switch` when it writes the event, after the task has left its
//! queue. A fast waker may have already set it to TASK_WAKING, which prints as runnable, so a sleeper seems to wait
//! for its CPU. Events wait here until later ones show the true state, and are passed on corrected.
//!
//! A task that leaves its CPU runnable for the idle task need not be such a sleeper: the quota of its group or its own
//! real-time budget may be used up, or core scheduling may keep it off the CPU. A sleeper is woken before it runs
//! again; such a task is not. So in this case events wait for the longer time after which quotas are refilled.
//!
//! A task whose wake-up is not in the trace, because it was lost or wake-ups are not recorded, keeps the recorded
//! state. If only the starts of wake-ups are recorded, as by `perf sched record`, a wake-up that began just before
//! the CPU went idle is assumed to be that of a sleeper, although the task may still have been running.
//!
//! Kernel: __trace_sched_switch_state(), include/trace/events/sched.h, v5.10; v5.18 passes the state along.

use std::collections::VecDeque;

use schedlab_units::{Duration, Pid, Time};

use crate::event::{Event, Kind};
use crate::state::TaskState;

/// How long an event waits. The clocks of CPUs and their events differ by less.
const WAITS: Duration = Duration::millis(1);

/// How long an event waits if the task leaves its CPU idle: the usual period of quotas.
const WAITS_IDLE: Duration = Duration::millis(100);

/// At most this many events wait for a task that leaves a CPU idle.
const WAITING_MAX: usize = 1 << 16;

/// The events of a kernel that reads states late.
#[derive(Debug, Default)]
pub struct LateStates {
    waiting: VecDeque<Event>,
    newest: Time,
    /// Tasks whose wake-up has begun and not ended, and when it began.
    woken: Vec<(Pid, Time)>,
    /// Tasks that left a CPU idle while runnable, and were neither woken nor ran since.
    held: Vec<Pid>,
    /// The trace contains the ends of wake-ups.
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
                    // A wake-up begins only for a task that is about to sleep.
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

    /// The next event that later ones cannot correct any more; at the `end` of the trace, any event. If the clock goes
    /// back, as at the start of another recording, no event waits until the old time is reached again.
    pub fn pop(&mut self, end: bool) -> Option<Event> {
        let front = self.waiting.front()?;
        let waits = if self.is_held(front) { WAITS_IDLE } else { WAITS };
        let waited = self.newest.0.abs_diff(front.time.0) > waits.0;
        let ready = end || waited || self.waiting.len() > WAITING_MAX;
        if ready { self.waiting.pop_front() } else { None }
    }

    /// Whether it is still undecided if the task that leaves in this event sleeps.
    fn is_held(&self, event: &Event) -> bool {
        match &event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                *prev_state == TaskState::RUNNING && *next_pid == Pid::IDLE && self.held.contains(prev_pid)
            }
            _ => false,
        }
    }

    /// A task that is woken has been asleep since it left its CPU, if that event still waits here.
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

    /// An event: `TIME waking
    /// wakeup TASK`, or `TIME PREV > NEXT` for a switch from a task that seems runnable; times in us.
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

    /// Passes events on and prints, as `R` and `S`, how each task, except idle tasks, left.
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
    fn a_task_woken_before_it_runs_again_was_asleep() {
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
