//! Stands for balancing until it is here.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::{Sched, Ticked};

/// What newly idle balancing did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewidleOutcome {
    /// Tasks pulled.
    pub pulled: u32,
}

impl Sched {
    /// Looks for work before a CPU goes idle.
    pub fn newidle_balance(&mut self, cpu: CpuId, _now: Time) -> NewidleOutcome {
        let rq = &mut self.rqs[cpu];
        rq.idle_stamp = rq.clock;
        NewidleOutcome::default()
    }

    /// Asks for balancing when it is due.
    pub fn trigger_load_balance(&mut self, _cpu: CpuId, _now: Time) -> Ticked {
        Ticked::default()
    }
}
