//! The order of idle CPUs by exit latency, from the states that they enter.

use schedlab_topology::CpuId;
use schedlab_trace::IDLE_EXIT;

use crate::follow::shadow::Shadow;

impl Shadow {
    /// A CPU enters or leaves an idle state.
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

/// A number that orders states as their exit latencies do; `None` for a CPU that is not idle.
fn latency(state: Option<u32>) -> Option<u64> {
    match state {
        Some(IDLE_EXIT) => None,
        Some(state) => Some(state.into()),
        None => Some(u64::MAX),
    }
}
