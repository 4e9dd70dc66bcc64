//! Which of the CPUs that were idle before the recording went idle last.
//!
//! Where the trace contains the states that idle CPUs enter (`power:cpu_idle`), their depth is known.
//!
//! A new task goes to the CPU with the lowest exit latency. No event contains that latency, but states are numbered
//! from the shallowest, so their numbers order CPUs in the same way. A kernel without a cpuidle driver reports the same
//! number for all CPUs and knows no latencies, so the numbers count only from when a second one is seen. A CPU without
//! any such event by then has been idle for long and counts as deepest.
//!
//! Kernel: idle_set_state(), kernel/sched/sched.h, cpuidle_enter_state(), drivers/cpuidle/cpuidle.c, v6.12.

use schedlab_sched::Curr;
use schedlab_topology::{CpuId, PerCpu};
use schedlab_trace::IDLE_EXIT;

use super::Shadow;
use super::about::{About, Reading};
use super::beyond::{Candidate, Case, Of};
use super::otherwise::Otherwise;
use crate::follow::shadow::IDLE_BEFORE;

/// Tried where nothing else leads a fork to its CPU.
pub const FORK_HELD: Reading = Reading::new("FORK_HELD", "a CPU went idle before its clock shows it");

/// Learned from idle states.
pub const IDLE_STATES: Reading =
    Reading::new("IDLE_STATES", "recorded idle states order CPUs by exit latency");

pub(super) const ABOUT: About = About {
    readings: &[FORK_HELD, IDLE_STATES],
    beyond,
    ..About::new("IDLE_STAMP", "which of the CPUs idle since before the recording went idle last")
};

/// The idle states of CPUs.
#[derive(Clone, Debug)]
pub struct IdleStates {
    /// The last state recorded for each.
    last: PerCpu<Option<u32>>,
    /// The first state recorded.
    first: Option<u32>,
    /// Whether another state was recorded too.
    driven: bool,
}

impl IdleStates {
    pub fn new(nr_cpus: usize) -> IdleStates {
        IdleStates { last: PerCpu::new(nr_cpus, |_| None), first: None, driven: false }
    }
}

impl Shadow {
    /// Idle stamp of a CPU that went idle just before the recording.
    pub fn newest_before(&self) -> u64 {
        self.start.0.max(IDLE_BEFORE + 1)
    }

    /// Whether a CPU was idle before the recording and has been since.
    pub fn idle_before(&self, cpu: CpuId) -> bool {
        self.sched.rqs[cpu].idle_stamp == IDLE_BEFORE
    }

    /// A CPU enters or leaves an idle state.
    pub fn idle_state(&mut self, cpu: CpuId, state: u32) {
        let states = &mut self.learned.idle_states;
        states.last[cpu] = Some(state);
        let second = state != IDLE_EXIT && *states.first.get_or_insert(state) != state;
        if second && !states.driven {
            states.driven = true;
            for (cpu, rq) in self.sched.rqs.iter_mut() {
                rq.idle_exit_latency = latency(states.last[cpu]);
            }
        } else if states.driven {
            self.sched.rqs[cpu].idle_exit_latency = latency(Some(state));
        }
    }
}

/// A number that orders states as their exit latencies do; `None` for a CPU that is not idle.
fn latency(state: Option<u32>) -> Option<u64> {
    match state {
        Some(IDLE_EXIT) => None,
        Some(state) => Some(state.into()),
        None => Some(u64::MAX),
    }
}

/// Asks with every CPU that was held up on its way to idle, except the chosen one, gone idle as early as it may have.
pub fn as_if_held<T>(shadow: &mut Shadow, chosen: CpuId, look: impl FnOnce(&mut Shadow) -> T) -> T {
    let stamps: Vec<u64> = shadow.cpus().map(|cpu| shadow.sched.rqs[cpu].idle_stamp).collect();
    for (cpu, &stamp) in shadow.cpus().zip(&stamps).filter(|&(cpu, _)| cpu != chosen) {
        let held = shadow.clocks.idle_held(cpu).0.min(stamp.saturating_sub(1));
        shadow.sched.rqs[cpu].idle_stamp = stamp - held;
    }
    let result = look(shadow);
    for (cpu, stamp) in shadow.cpus().zip(stamps) {
        shadow.sched.rqs[cpu].idle_stamp = stamp;
    }
    result
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    let Of::Placement { chosen, ours } = &case.of else { return };
    let (rqs, chosen, now) = (&case.shadow.sched.rqs, *chosen, case.now);
    if rqs[chosen].curr != Curr::Idle {
        return;
    }
    let latest = ours.iter().map(|&cpu| rqs[cpu].idle_stamp).max().unwrap_or(0);
    let by = latest.saturating_sub(rqs[chosen].idle_stamp);
    let had = Otherwise::plain("IDLE_STAMP", format!("CPU {chosen} had gone idle later"));
    candidates.push(Candidate::new(had.by(by, case.shadow.slack.time().0), move |shadow, look| {
        let before = std::mem::replace(&mut shadow.sched.rqs[chosen].idle_stamp, now.0);
        let leads = look(shadow);
        shadow.sched.rqs[chosen].idle_stamp = before;
        leads
    }));
}
