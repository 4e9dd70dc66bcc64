//! How much of a group's weight its entity on one CPU is given.
//!
//! The exact share needs the queued weight of the group on all CPUs. The slow sum
//! `tg->load_avg` stands for it, with this CPU's part replaced by the larger of its
//! average and what is queued now, so that a group that just woke up on an otherwise
//! idle machine gets all of its weight at once.

use crate::{CfsRqId, Feature, Sched, SeId};

/// Least weight of a group's entity, unscaled.
const MIN_SHARES: u64 = 2;

impl Sched {
    /// Weight of the group's entity on the queue's CPU.
    ///
    /// Kernel: calc_group_shares(), kernel/sched/fair.c, v6.12; calc_cfs_shares() in v4.13.
    pub fn calc_group_shares(&mut self, cfs: CfsRqId) -> u64 {
        let tg_load = self.read_tg_load_avg(cfs);
        let queue = self.cfs(cfs);
        let tg_shares = self.tg(queue.tg).shares;
        let queued = self.scale_load_down(queue.load.weight);
        let load =
            if self.kernel.has(Feature::GroupLoadMax) { queued.max(queue.avg.load_avg) } else { queued };
        let tg_weight = tg_load - queue.tg_load_avg_contrib as i64 + load as i64;
        let mut shares = (tg_shares * load) as i64;
        if tg_weight != 0 {
            shares /= tg_weight;
        }
        shares.clamp(MIN_SHARES as i64, tg_shares.max(MIN_SHARES) as i64) as u64
    }

    /// Gives a group entity the weight its share is now. Nothing for tasks.
    ///
    /// Kernel: update_cfs_group(), kernel/sched/fair.c, v6.12, v6.1 and v7.2; update_cfs_shares() in v4.13.
    #[inline]
    pub fn update_cfs_group(&mut self, se: SeId) {
        let Some(my_q) = self.se(se).my_q else { return };
        let queue = self.cfs(my_q);
        if queue.load.weight == 0 && self.kernel.has(Feature::KeepEmptyWeight) {
            return;
        }
        if queue.throttle_count > 0 && !self.kernel.has(Feature::BandwidthPerTask) {
            return;
        }
        let shares = self.calc_group_shares(my_q);
        let entity = self.se(se);
        if entity.load.weight == shares && self.kernel.has(Feature::ReweightIfChanged) {
            return;
        }
        let cfs = entity.cfs_rq.expect("entity has a queue");
        self.reweight_entity(cfs, se, shares);
    }
}
