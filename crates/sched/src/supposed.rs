//! Values that a decision assumes instead of the state's.
//!
//! An audit knows some facts only within bounds, and evaluates decisions for several of their values. The state does
//! not change: assumed values are passed through the window ([`View::supposing`](crate::View::supposing)).

use crate::wakeup::ForkFacts;
use schedlab_topology::CpuId;

/// Values that replace those of the state; fields that are `None` or empty are read from the state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Supposed<'a> {
    /// Averages and idle stamps of all CPUs, for the placement of a new task.
    pub fork: Option<&'a ForkFacts>,
    /// How many CPUs a search may examine (SIS_UTIL).
    pub nr_idle_scan: Option<u32>,
    /// How long searches took on average (SIS_PROP), ns.
    pub avg_scan_cost: Option<u64>,
    /// Whether the cache that is searched is marked as having an idle core.
    pub has_idle_cores: Option<bool>,
    /// The CPU that the woken task used recently.
    pub recent_used_cpu: Option<CpuId>,
    /// How many passes over the domain have failed.
    pub nr_balance_failed: Option<u32>,
    /// Marks of groups from which affinity kept a pass from taking tasks, by the index of the group's capacity.
    pub imbalance: &'a [(u32, bool)],
}

impl Supposed<'_> {
    /// All values are those of the state; the question is hypothetical nevertheless.
    pub const NOTHING: Supposed<'static> = Supposed {
        fork: None,
        nr_idle_scan: None,
        avg_scan_cost: None,
        has_idle_cores: None,
        recent_used_cpu: None,
        nr_balance_failed: None,
        imbalance: &[],
    };

    /// The mark of a group, if one is assumed.
    pub(crate) fn imbalance(&self, sgc: u32) -> Option<bool> {
        self.imbalance.iter().find(|(at, _)| *at == sgc).map(|(_, mark)| *mark)
    }
}
