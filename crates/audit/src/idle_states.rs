//! How deep idle CPUs sleep, where a trace tells (`power:cpu_idle`).
//!
//! A new task goes to the CPU that wakes soonest. How long that takes from a state is in no event; but states are numbered from
//! the shallowest, so their numbers order CPUs as their exit latencies do. A kernel without a driver for idle states tells one
//! number of all, and knows of none: so they count from when a second one is seen. A CPU of which none was told by then
//! has been idle for long, and counts as deepest.
//!
//! Kernel: idle_set_state(), kernel/sched/sched.h, cpuidle_enter_state(), drivers/cpuidle/cpuidle.c, v6.12.

use schedlab_topology::{CpuId, PerCpu};
use schedlab_trace::IDLE_EXIT;

use crate::shadow::Shadow;

/// The idle states of CPUs.
#[derive(Clone, Debug)]
pub struct IdleStates {
    /// What was told of each last.
    last: PerCpu<Option<u32>>,
    /// The first state that was told.
    first: Option<u32>,
    /// Another one was told as well.
    driven: bool,
}

impl IdleStates {
    pub fn new(nr_cpus: usize) -> IdleStates {
        IdleStates { last: PerCpu::new(nr_cpus, |_| None), first: None, driven: false }
    }
}

impl Shadow {
    /// A CPU goes into an idle state, or leaves it.
    pub fn idle_state(&mut self, cpu: CpuId, state: u32) {
        let states = &mut self.idle_states;
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

/// A number that orders states as their exit latencies do; none of a CPU that is not idle.
fn latency(state: Option<u32>) -> Option<u64> {
    match state {
        Some(IDLE_EXIT) => None,
        Some(state) => Some(state.into()),
        None => Some(u64::MAX),
    }
}
