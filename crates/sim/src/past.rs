//! What is known about the time before a run.

use schedlab_sched::{Experience, Lately};
use schedlab_topology::CpuId;
use schedlab_units::Duration;

/// The known state of the machine at some time of a run; the rest is random, from the seed.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// How long after the start of the workload that time is.
    pub at: Duration,
    /// How long before it the last tick came.
    pub since_tick: Option<Duration>,
    /// Late ticks, in order: CPU, number counted from the last tick before `at`, and how late.
    pub late_ticks: Vec<LateTick>,
    /// The first balance passes after it, in order.
    pub passes: Vec<Pass>,
    /// What happened before the start.
    pub lately: Lately,
    /// What balancing had learned before the start, if that is known.
    pub experience: Option<Experience>,
}

/// A tick that came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateTick {
    /// Where.
    pub cpu: CpuId,
    /// Ticks since the last one before the known time.
    pub number: u64,
    /// By how much.
    pub late: Duration,
}

/// A pass of a busy CPU over its lowest domain that also contains another CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The one that balances.
    pub cpu: CpuId,
    /// The other.
    pub from: CpuId,
    /// When it came.
    pub after: Duration,
}
