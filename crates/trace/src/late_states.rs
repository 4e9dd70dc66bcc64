//! The state of who leaves a CPU, where it was read too late.
//!
//! Up to v5.17 the kernel reads the state for `sched_switch` when it writes the event, after the task has left its queue. A
//! waker that is as quick has made it TASK_WAKING by then, which prints as runnable: a sleeper seems to wait for its CPU.
//! Events wait here for a moment until what follows tells, and go on as they should have been.
//!
//! Kernel: __trace_sched_switch_state(), include/trace/events/sched.h, v5.10; v5.18 passes the state along.

use std::collections::VecDeque;

use schedlab_units::{Duration, Pid, Time};

use crate::event::{Event, Kind};
use crate::state::TaskState;

/// How long an event waits. The clocks of CPUs and their events are not so far apart.
const WAITS: Duration = Duration::millis(1);

/// Events of a kernel that reads states late.
#[derive(Debug, Default)]
pub struct LateStates {
    waiting: VecDeque<Event>,
    newest: Time,
    /// Whose wake-up has begun and not ended.
    woken: Vec<Pid>,
    /// The trace has the ends of wake-ups.
    told: bool,
}

impl LateStates {
    /// Takes the next event of the trace.
    pub fn push(&mut self, mut event: Event) {
        match &mut event.kind {
            Kind::SchedWaking { pid, .. } => {
                self.meant_to_sleep(*pid);
                if !self.woken.contains(pid) {
                    self.woken.push(*pid);
                }
            }
            Kind::SchedWakeup { pid, .. } => {
                self.told = true;
                self.woken.retain(|woken| woken != pid);
            }
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                self.woken.retain(|woken| woken != next_pid);
                // Nobody begins to wake who does not mean to sleep, and who wants to run does not give way to idling.
                let woken = self.told && self.woken.contains(prev_pid);
                if *prev_state == TaskState::RUNNING && (woken || *next_pid == Pid::IDLE) {
                    *prev_state = TaskState::INTERRUPTIBLE;
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
        let ready = end || self.newest.0.abs_diff(self.waiting.front()?.time.0) > WAITS.0;
        if ready { self.waiting.pop_front() } else { None }
    }

    /// A task that is woken has been asleep since it left its CPU, if that still waits here.
    fn meant_to_sleep(&mut self, task: Pid) {
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

    /// Task b leaves three times, and c twice.
    #[test]
    fn who_is_woken_or_leaves_to_idling_was_asleep() {
        let switch = |time, prev: &str, next: &str| {
            let (prev_pid, next_pid) = (prev.len(), if next == "idle" { 0 } else { next.len() });
            format!(
                "{prev}-{prev_pid} [001] d..2. 1.{time:06}: sched_switch: prev_comm={prev} prev_pid={prev_pid} prev_prio=120 \
                 prev_state=R ==> next_comm={next} next_pid={next_pid} next_prio=120\n"
            )
        };
        let wake = |time, event| {
            format!("a-1 [000] d..3. 1.{time:06}: sched_{event}: comm=bb pid=2 prio=120 target_cpu=001\n")
        };
        let text = [
            wake(1, "waking"),
            wake(2, "wakeup"),
            wake(10, "waking"),
            switch(11, "bb", "ccc"),
            wake(12, "wakeup"),
            switch(13, "ccc", "bb"),
            switch(14, "bb", "ccc"),
            switch(5000, "ccc", "bb"),
            switch(5001, "bb", "ccc"),
            wake(5002, "waking"),
            switch(5003, "ccc", "idle"),
        ];
        let mut late = LateStates::default();
        let mut states = Vec::new();
        let mut left = |event: Event| {
            if let Kind::SchedSwitch { prev_state, .. } = event.kind {
                states.push(prev_state.is_runnable());
            }
        };
        for record in ftrace::Reader::new(text.concat().as_bytes()) {
            let Record::Event(event) = record.unwrap() else { continue };
            late.push(event);
            std::iter::from_fn(|| late.pop(false)).for_each(&mut left);
        }
        std::iter::from_fn(|| late.pop(true)).for_each(&mut left);
        let slept = "bb, that was being woken; bb, that was woken then; ccc, after which nobody ran";
        assert_eq!(states, [false, true, true, true, false, false], "{slept}");
    }
}
