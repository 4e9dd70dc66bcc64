//! Depth of the idle states of CPUs, where the trace contains them (`power:cpu_idle`).
//!
//! A new task goes to the CPU with the lowest exit latency. No event contains that latency, but states are numbered
//! from the shallowest, so their numbers order CPUs in the same way. A kernel without a cpuidle driver reports the same
//! number for all CPUs and knows no latencies, so the numbers count only from when a second one is seen. A CPU without
//! any such event by then has been idle for long and counts as deepest.
//!
//! Kernel: idle_set_state(), kernel/sched/sched.h, cpuidle_enter_state(), drivers/cpuidle/cpuidle.c, v6.12.

use schedlab_topology::PerCpu;

/// The idle states of CPUs.
#[derive(Clone, Debug)]
pub struct IdleStates {
    /// The last state recorded for each.
    pub(super) last: PerCpu<Option<u32>>,
    /// The first state recorded.
    pub(super) first: Option<u32>,
    /// Whether another state was recorded too.
    pub(super) driven: bool,
}

impl IdleStates {
    pub fn new(nr_cpus: usize) -> IdleStates {
        IdleStates { last: PerCpu::new(nr_cpus, |_| None), first: None, driven: false }
    }
}
