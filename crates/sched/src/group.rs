//! Task groups.

mod bandwidth;
mod bandwidth_slices;
mod bandwidth_timer;
mod blank;
mod hierarchy;
mod load_avg;
mod propagate;
mod sched_move_task;
mod shares;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::{CfsRqId, SeId, Uclamp};

pub(crate) use blank::{Blank, Stamp};
pub(crate) use shares::MIN_SHARES;

/// A task group. 0 is the root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TgId(pub u32);

impl TgId {
    /// The group of every task that is in no other group.
    pub const ROOT: TgId = TgId(0);
}

/// CPU time a group may use per period, as `struct cfs_bandwidth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bandwidth {
    /// ns per period; `None` means no limit.
    pub quota: Option<u64>,
    /// Length of a period, ns.
    pub period: u64,
    /// Run time left in the pool, ns.
    pub runtime: u64,
    /// Unused time that may be carried over, ns.
    pub burst: u64,
    /// Whether the period timer runs.
    pub period_active: bool,
    /// When the period timer expires next, ns.
    pub period_expires: u64,
    /// End of the period for which the pool was last filled, ns.
    pub runtime_expires: u64,
    /// How often the pool was filled.
    pub expires_seq: u64,
    /// When the timer that hands out returned time expires, ns; `None` if it is not set.
    pub slack_expires: Option<u64>,
    /// Periods that are over, as `cpu.stat` counts them.
    pub nr_periods: u64,
    /// Periods in which some CPU was throttled, as `cpu.stat` counts them.
    pub nr_throttled: u64,
    /// Whether nothing happened in the last period.
    pub idle: bool,
    /// Throttled queues, longest first.
    pub throttled_cfs_rq: Vec<CfsRqId>,
}

impl Default for Bandwidth {
    /// No limit.
    fn default() -> Bandwidth {
        Bandwidth {
            quota: None,
            period: 100_000_000,
            runtime: 0,
            burst: 0,
            period_active: false,
            period_expires: 0,
            runtime_expires: 0,
            expires_seq: 0,
            slack_expires: None,
            nr_periods: 0,
            nr_throttled: 0,
            idle: false,
            throttled_cfs_rq: Vec::new(),
        }
    }
}

/// A task group, as `struct task_group`.
#[derive(Clone, Debug)]
pub struct TaskGroup {
    /// One level up; `None` for the root.
    pub parent: Option<TgId>,
    /// Shares, scaled up by 2^10.
    pub shares: u64,
    /// `cpu.idle`: the whole group counts as SCHED_IDLE among its siblings.
    pub idle: bool,
    /// Sum of the contributions of all CPUs; one counter, or one per node
    /// (`TG_LOAD_AVG_PER_NODE`).
    pub load_avg: Vec<i64>,
    /// CONCUR_SHARES: sum of the contributions of all CPUs to the average number of runnable tasks, times 1024.
    pub runnable_avg: i64,
    /// Node whose memory holds the group: that of the CPU that created it.
    pub home_node: u16,
    /// The group's queue on each CPU where it exists ([`crate::Sched::on_cpu`]).
    pub cfs_rq: Vec<CfsRqId>,
    /// The group's entity on each CPU where it exists; empty for the root.
    pub se: Vec<SeId>,
    /// The state of both on CPUs where they do not exist.
    pub(crate) blank: Option<Box<Blank>>,
    /// Their own values on each CPU where they do not exist.
    pub(crate) stamps: Vec<Stamp>,
    /// Quota.
    pub bandwidth: Bandwidth,
    /// Bounds of utilisation that it requests for its tasks.
    pub uclamp_req: Uclamp,
    /// Those that the groups above leave of them.
    pub uclamp: Uclamp,
}
