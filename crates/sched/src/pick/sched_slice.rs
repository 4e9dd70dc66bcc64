//! How long an entity may run under CFS before the tick requests a reschedule.
//!
//! The period in which every entity runs once is divided by weight, level by level.
//!
//! Kernel: __sched_period(), sched_slice(), sched_vslice(), kernel/sched/fair.c, v6.1.

use crate::calc_delta::{calc_delta, calc_delta_fair};
use crate::{CfsRqId, Feature, LoadWeight, Scaled, Sched, SeId};

/// The period in which `nr` entities run once.
pub(crate) fn sched_period(scaled: &Scaled, nr: u64) -> u64 {
    if nr > scaled.nr_latency { nr * scaled.min_granularity } else { scaled.latency }
}

impl Sched {
    /// Slice of an entity that is, or is about to be, in `cfs`, ns.
    pub fn sched_slice(&self, cfs: CfsRqId, se: SeId) -> u64 {
        let queue = self.cfs(cfs);
        let nr = match self.kernel.has(Feature::AltPeriod) {
            true => self.cfs(self.root_cfs_id(queue.cpu)).h_nr_queued,
            false => queue.nr_queued,
        };
        let mut slice = sched_period(&self.scaled, nr as u64 + !self.se(se).on_rq as u64);
        let (mut level, mut at) = (Some(se), cfs);
        while let Some(se) = level {
            let entity = self.se(se);
            let mut load = self.cfs(at).load.weight;
            if !entity.on_rq {
                load += entity.load.weight;
            }
            slice = calc_delta(slice, entity.load.weight, &LoadWeight::new(load));
            level = entity.parent;
            if let Some(parent) = level {
                at = self.cfs_rq_of(parent);
            }
        }
        if self.kernel.has(Feature::BaseSlice) {
            let only_idle = queue.nr_queued > 0 && queue.nr_queued == queue.idle_nr_queued;
            let idle = self.kernel.has(Feature::IdleMinGranularity) && self.se(se).idle && !only_idle;
            slice = slice.max(match idle {
                true => self.kernel.tunables.idle_min_granularity_ns,
                false => self.scaled.min_granularity,
            });
        }
        slice
    }

    /// The slice in virtual time.
    pub(crate) fn sched_vslice(&self, cfs: CfsRqId, se: SeId) -> u64 {
        calc_delta_fair(self.sched_slice(cfs, se), &self.se(se).load)
    }
}
