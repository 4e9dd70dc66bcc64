//! What is known about the time before a run.

use schedlab_sched::{Experience, Lately};
use schedlab_topology::CpuId;
use schedlab_units::Duration;

/// The known state of the machine at some time of a run; the rest is drawn from the seed.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// How long after the start of the workload that time is.
    pub at: Duration,
    /// How long before it the last tick came.
    pub since_tick: Option<Duration>,
    /// Ticks that came late, in their order: CPU, how many after the last one before it, how late.
    pub late_ticks: Vec<LateTick>,
    /// The first passes of balancing that came after it, in their order.
    pub passes: Vec<Pass>,
    /// What went on before the start.
    pub lately: Lately,
    /// What balancing had learned before the start, if that is known.
    pub experience: Option<Experience>,
}

/// A tick that came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateTick {
    /// Where.
    pub cpu: CpuId,
    /// Ticks since the last one before the time that is known of.
    pub number: u64,
    /// By how much.
    pub late: Duration,
}

/// A pass of a busy CPU over the lowest of its domains that another CPU belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The one that balances.
    pub cpu: CpuId,
    /// The other.
    pub from: CpuId,
    /// When it came.
    pub after: Duration,
}
