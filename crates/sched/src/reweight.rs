//! Giving a queued or sleeping entity another weight.

use crate::{CfsRqId, LoadWeight, Sched, SeId};

impl Sched {
    /// Sets the weight of an entity and all sums it is part of.
    ///
    /// Kernel: reweight_entity(), kernel/sched/fair.c, v6.1.
    pub fn reweight_entity(&mut self, cfs: CfsRqId, se: SeId, weight: u64) {
        let old = self.se(se).load.weight;
        if self.se(se).on_rq {
            let load = &mut self.cfs_mut(cfs).load;
            *load = LoadWeight { weight: load.weight - old + weight, inv_weight: 0 };
        }
        self.reweight_load_avg(cfs, se, |entity| entity.load = LoadWeight { weight, inv_weight: 0 });
    }
}
