//! Ends of idle periods that are missing from a trace.
//!
//! A machine may record nothing that its idle tasks do outside interrupts (seen in a guest of v6.18, on all CPUs but
//! the first). A task on such a CPU goes to sleep, is woken and acts again, but no switch to it is recorded. If the
//! idle task itself completes wake-ups, the end of the wake-up is missing too. Both must have happened between the last
//! event of the CPU or the task and the first that shows the task running, and soon after the former, because the CPU
//! had nothing else to do. From the first missing one on, events wait for a moment, so that later events show where it
//! belongs.
//!
//! A task that is not known to be awake is not switched in: in a recording of a single task, each of its sleeps looks
//! like this.

use std::collections::{BTreeMap, VecDeque};

use schedlab_topology::CpuId;
use schedlab_units::{Duration, Pid, Time};

use crate::comm::Comm;
use crate::event::{Event, Kind};
use crate::flags::Flags;
use crate::state::TaskState;
use crate::unseen::UnseenSwitches;

/// How long an event waits: a tick at 100 Hz, within which a running task shows.
const WAITS: Duration = Duration::millis(10);

/// Restores ends of idle periods that are missing from a trace.
#[derive(Debug, Default)]
pub struct IdleExits {
    unseen: UnseenSwitches,
    /// What is known about tasks since the first missing switch.
    tasks: Option<BTreeMap<Pid, Known>>,
    waiting: VecDeque<Event>,
    newest: Time,
    switches: u64,
    wakeups: u64,
}

/// A task according to its events.
#[derive(Clone, Copy, Debug)]
struct Known {
    comm: Comm,
    prio: i32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Asleep,
    /// Its wake-up began and has not ended.
    Waking,
    On(CpuId),
}

impl IdleExits {
    /// Takes the next event of the trace and passes on the events before which nothing will be inserted; the event
    /// itself if nothing was missing yet.
    pub fn pass(&mut self, event: Event, mut on: impl FnMut(Event)) {
        match self.push(event) {
            Some(event) => on(event),
            None => std::iter::from_fn(|| self.pop(false)).for_each(on),
        }
    }

    /// Passes on all waiting events, at the end of the trace.
    pub fn end(&mut self, on: impl FnMut(Event)) {
        std::iter::from_fn(|| self.pop(true)).for_each(on);
    }

    /// Takes the next event, and returns it if nothing was missing yet.
    fn push(&mut self, event: Event) -> Option<Event> {
        let idled = self.unseen.runs(event.cpu) == Some(Pid::IDLE);
        let missing = self.unseen.event(&event).is_some() && idled;
        match &self.tasks {
            None if !missing => return Some(event),
            None => self.tasks = Some(BTreeMap::new()),
            Some(_) if missing => self.restore(event.cpu, event.shown(), event.time),
            Some(_) => {}
        }
        self.follow(&event);
        self.newest = event.time;
        self.waiting.push_back(event);
        None
    }

    /// The next event before which nothing will be inserted; at the `end` of the trace, any event. If the clock goes
    /// back, as at the start of another recording, no event waits until the old time is reached again.
    fn pop(&mut self, end: bool) -> Option<Event> {
        let ready = end || self.newest.0.abs_diff(self.waiting.front()?.time.0) > WAITS.0;
        if ready { self.waiting.pop_front() } else { None }
    }

    /// Events were lost: no task is known to sleep or to be awake.
    pub fn lost(&mut self) {
        if let Some(tasks) = &mut self.tasks {
            tasks.clear();
        }
    }

    /// Minimum number of switches that are missing and were not restored.
    pub fn unseen_switches(&self) -> u64 {
        self.unseen.count() - self.switches
    }

    /// Number of switches that were restored.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// Number of ends of wake-ups that were restored.
    pub fn wakeups(&self) -> u64 {
        self.wakeups
    }

    /// Switches a task in on an idle CPU, if it can have been woken there.
    fn restore(&mut self, cpu: CpuId, pid: Pid, now: Time) {
        let Some(known) = self.tasks.as_mut().and_then(|tasks| tasks.get_mut(&pid)) else { return };
        let Known { comm, prio, state } = *known;
        if state != State::Waking && state != State::On(cpu) {
            return;
        }
        known.state = State::On(cpu);
        let last = self.waiting.iter().rposition(|event| event.cpu == cpu || told(event) == Some(pid));
        let place = last.map_or(0, |last| last + 1);
        let time = self.waiting.get(last.unwrap_or(0)).map_or(now, |event| event.time);
        let idle = Comm::from(format!("swapper/{cpu}").as_str());
        let switch = Kind::SchedSwitch {
            prev_comm: idle,
            prev_pid: Pid::IDLE,
            prev_prio: 120,
            prev_state: TaskState::RUNNING,
            next_comm: comm,
            next_pid: pid,
            next_prio: prio,
        };
        let wakeup = Kind::SchedWakeup { comm, pid, prio, target_cpu: cpu };
        let flags = Flags::new(Flags::IRQS_OFF, 2, 0);
        let event = |kind| Event { time, cpu, pid: Pid::IDLE, tgid: None, comm: idle, flags, kind };
        self.waiting.insert(place, event(switch));
        self.switches += 1;
        if state == State::Waking {
            self.waiting.insert(place, event(wakeup));
            self.wakeups += 1;
        }
    }

    fn follow(&mut self, event: &Event) {
        let Some(tasks) = &mut self.tasks else { return };
        let mut is = |pid, comm, prio, state| {
            tasks.insert(pid, Known { comm, prio, state });
        };
        match event.kind {
            Kind::SchedWaking { comm, pid, prio, .. } => is(pid, comm, prio, State::Waking),
            Kind::SchedWakeup { comm, pid, prio, target_cpu }
            | Kind::SchedWakeupNew { comm, pid, prio, target_cpu } => {
                is(pid, comm, prio, State::On(target_cpu))
            }
            Kind::SchedMigrateTask { pid, dest_cpu, .. } => {
                if let Some(Known { state: State::On(cpu), .. }) = tasks.get_mut(&pid) {
                    *cpu = dest_cpu;
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
                let woken = matches!(tasks.get(&prev_pid), Some(Known { state: State::Waking, .. }));
                let state = match prev_state.is_runnable() {
                    true => State::On(event.cpu),
                    false if woken => State::Waking,
                    false => State::Asleep,
                };
                tasks.insert(prev_pid, Known { comm: prev_comm, prio: prev_prio, state });
                let state = State::On(event.cpu);
                tasks.insert(next_pid, Known { comm: next_comm, prio: next_prio, state });
            }
            _ => {}
        }
    }
}

/// The task that an event shows runnable, or leaving its CPU.
fn told(event: &Event) -> Option<Pid> {
    match event.kind {
        Kind::SchedWaking { pid, .. }
        | Kind::SchedWakeup { pid, .. }
        | Kind::SchedWakeupNew { pid, .. }
        | Kind::SchedMigrateTask { pid, .. } => Some(pid),
        Kind::SchedSwitch { prev_pid, .. } => Some(prev_pid),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{Record, ftrace};
    use crate::sink::Sink;
    use crate::write::{Ftrace, Precision};

    /// The events of CPU 1 and of the task that wakes its tasks, when its idle task records nothing.
    fn put_back(lines: &[&str]) -> (String, [u64; 3]) {
        let text = lines.join("\n") + "\n";
        let mut exits = IdleExits::default();
        let mut out = Ftrace::new(Vec::new(), Precision::Micro);
        for record in ftrace::Reader::new(text.as_bytes()) {
            match record.unwrap() {
                Record::Event(event) => exits.pass(event, |event| out.take(event)),
                _ => exits.lost(),
            }
        }
        exits.end(|event| out.take(event));
        let text = String::from_utf8(out.finish().unwrap()).unwrap();
        let text =
            text.lines().filter(|line| !line.starts_with('#')).map(|line| line.to_owned() + "\n").collect();
        (text, [exits.unseen_switches(), exits.switches(), exits.wakeups()])
    }

    const IDLES: &str = "i-0 [001] d..2. 1.000: sched_switch: prev_comm=x prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";
    /// The first missing switch reveals that others may be missing.
    const FIRST: &str = "b-2 [001] d..3. 1.001: sched_waking: comm=a pid=1 prio=120 target_cpu=000";
    const SLEEPS: &str = "b-2 [001] d..2. 1.002: sched_switch: prev_comm=b prev_pid=2 prev_prio=110 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120";
    const WAKING: &str = "a-1 [000] d..3. 1.003: sched_waking: comm=b pid=2 prio=110 target_cpu=001";
    const WAKEUP: &str = "i-0 [001] dNh2. 1.004: sched_wakeup: comm=b pid=2 prio=110 target_cpu=001";
    const OTHERS: &str = "a-1 [000] d..3. 1.005: sched_waking: comm=c pid=3 prio=120 target_cpu=000";
    const ACTS: &str = "b-2 [001] d..3. 1.006: sched_waking: comm=a pid=1 prio=120 target_cpu=000";
    const SWITCH: &str = "sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=b next_pid=2 next_prio=110";
    const WOKEN: &str = "sched_wakeup: comm=b pid=2 prio=110 target_cpu=001";

    /// What is restored, and after which line.
    fn check(lines: &[&str], expected: &[(&str, &str)], missing: [u64; 3]) {
        let (text, counts) = put_back(lines);
        let (mut last, mut before) = (String::new(), String::new());
        let mut put = Vec::new();
        for line in text.lines() {
            let (head, what) = line.split_once(": ").unwrap();
            let time = head.rsplit(' ').next().unwrap().to_owned();
            assert!(time >= std::mem::replace(&mut before, time.clone()), "{text}");
            match lines.iter().find(|line| line.ends_with(what.trim_start())) {
                Some(line) => last = (*line).to_owned(),
                None => put.push((last.clone(), what.trim_start().to_owned())),
            }
        }
        let shown: Vec<_> = put.iter().map(|(after, what)| (after.as_str(), what.as_str())).collect();
        assert_eq!(shown, expected);
        assert_eq!(counts, missing);
        assert_eq!(text.lines().count(), lines.iter().filter(|line| line.contains(": ")).count() + put.len());
    }

    #[test]
    fn a_task_that_acts_after_a_wakeup_ran_then() {
        let lines = [IDLES, FIRST, SLEEPS, WAKING, WAKEUP, OTHERS, ACTS];
        check(&lines, &[(WAKEUP, SWITCH)], [1, 1, 0]);
    }

    #[test]
    fn where_the_idle_task_ended_the_wakeup_that_is_put_back_too() {
        let lines = [IDLES, FIRST, SLEEPS, WAKING, OTHERS, ACTS];
        check(&lines, &[(WAKING, WOKEN), (WAKING, SWITCH)], [1, 1, 1]);
    }

    #[test]
    fn a_task_not_known_to_be_awake_is_not_run() {
        check(&[IDLES, FIRST, SLEEPS, OTHERS, ACTS], &[], [2, 0, 0]);
        check(&[IDLES, FIRST, SLEEPS, WAKING, WAKEUP, "CPU:1 [LOST 2 EVENTS]", ACTS], &[], [2, 0, 0]);
    }

    #[test]
    fn nothing_waits_for_a_clock_that_went_back() {
        let event = |line: &str| match ftrace::Reader::new(line.as_bytes()).next() {
            Some(Ok(Record::Event(event))) => event,
            other => panic!("{other:?}"),
        };
        let (mut exits, mut passed) = (IdleExits::default(), 0);
        for line in [IDLES, FIRST, SLEEPS, &OTHERS.replace("1.005", "0.005")] {
            exits.pass(event(line), |_| passed += 1);
        }
        assert_eq!(passed, 3);
    }

    #[test]
    fn what_was_reported_long_ago_is_not_changed() {
        let late = ACTS.replace("1.006", "1.106");
        let between = OTHERS.replace("1.005", "1.105");
        let lines = [IDLES, FIRST, SLEEPS, WAKING, WAKEUP, &between, &late];
        check(&lines, &[(WAKEUP, SWITCH)], [1, 1, 0]);
    }
}
