//! Wake-ups: waker, wakee, where they were, and when the woken task ran.
//!
//! A wake-up is written when the woken task first runs, into the chunk of that instant: only then is its latency known.

use std::collections::BTreeMap;

use schedlab_trace::{Event, Kind};
use schedlab_units::Pid;

use crate::columns::Columns;
use crate::tasks::{IDLE, Tasks};

/// A wake-up whose task has not run yet.
#[derive(Clone, Copy, Debug)]
struct Wake {
    since: u64,
    waker: u32,
    waker_cpu: u16,
    in_interrupt: bool,
    is_new: bool,
}

/// Open wake-ups, and the columns of completed ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wakes {
    pending: BTreeMap<u32, Wake>,
    runs: Vec<u64>,
    latency: Vec<u64>,
    waker: Vec<u32>,
    waker_cpu: Vec<u16>,
    wakee: Vec<u32>,
    cpu: Vec<u16>,
    flags: Vec<u8>,
}

impl Wakes {
    /// Follows an event other than a switch.
    pub fn event(&mut self, event: &Event, now: u64, tasks: &mut Tasks) {
        let (pid, is_new) = match event.kind {
            Kind::SchedWaking { pid, .. } | Kind::SchedWakeup { pid, .. } => (pid, false),
            Kind::SchedWakeupNew { pid, .. } => (pid, true),
            _ => return,
        };
        let wakee = tasks.number(pid, now);
        // sched_wakeup only ends what sched_waking began, if both are recorded.
        if pid == Pid::IDLE
            || matches!(event.kind, Kind::SchedWakeup { .. }) && self.pending.contains_key(&wakee)
        {
            return;
        }
        // A waking may also concern a task that is awake; it does not wait.
        if tasks.get(wakee).awake {
            return;
        }
        let in_interrupt = event.flags.in_interrupt();
        let waker = if in_interrupt { IDLE } else { tasks.number(event.pid, now) };
        self.pending.insert(wakee, Wake { since: now, waker, waker_cpu: event.cpu.0, in_interrupt, is_new });
        tasks.get(wakee).wakeups += 1;
    }

    /// A task runs.
    pub fn runs(&mut self, task: u32, cpu: u16, now: u64, tasks: &mut Tasks) {
        let Some(wake) = self.pending.remove(&task) else { return };
        let latency = now.saturating_sub(wake.since);
        let known = tasks.get(task);
        known.wait_ns += latency;
        known.wait_ns_max = known.wait_ns_max.max(latency);
        self.runs.push(now);
        self.latency.push(latency);
        self.waker.push(wake.waker);
        self.waker_cpu.push(wake.waker_cpu);
        self.wakee.push(task);
        self.cpu.push(cpu);
        self.flags.push(u8::from(wake.in_interrupt) | u8::from(wake.is_new) << 1);
    }

    /// A task that has left its CPU for good is no longer woken.
    pub fn dead(&mut self, task: u32) {
        self.pending.remove(&task);
    }

    /// Appends the columns and empties them.
    pub fn encode(&mut self, from: u64) -> Vec<u8> {
        let mut columns = Columns::default();
        columns.put(self.runs.len() as u64);
        columns.put_times(&self.runs, from);
        columns.put_all(&self.latency);
        columns.put_all(&self.waker);
        columns.put_all(&self.waker_cpu);
        columns.put_all(&self.wakee);
        columns.put_all(&self.cpu);
        columns.put_all(&self.flags);
        *self = Wakes { pending: std::mem::take(&mut self.pending), ..Wakes::default() };
        columns.into_bytes()
    }
}
