//! The timers that end the budgets of deadline tasks, where they outlive the turn for which they were set.

use schedlab_sched::{Feature, HrtickEnd, Kernel};
use schedlab_topology::{CpuId, PerCpu};

/// For each CPU, whether the slice timer may be set to the time, unknown to us, at which a deadline task's budget ends.
pub struct BudgetTimers {
    pub(super) set: PerCpu<bool>,
    /// Whether this kernel has timers that outlive the turn for which they were set.
    pub(super) outlive: bool,
}

impl BudgetTimers {
    /// Creates them with no timer set.
    pub fn new(nr_cpus: usize, kernel: &Kernel) -> BudgetTimers {
        let outlive = kernel.has(Feature::HrtickDl) && kernel.rules.hrtick_end == HrtickEnd::Deadline;
        BudgetTimers { set: PerCpu::new(nr_cpus, |_| false), outlive }
    }

    /// Whether a CPU's timer may be set.
    pub fn may_be_set(&self, cpu: CpuId) -> bool {
        self.set[cpu]
    }

    /// A CPU's timer fired or was cancelled.
    pub fn ended(&mut self, cpu: CpuId) {
        self.set[cpu] = false;
    }
}
