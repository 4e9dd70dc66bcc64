//! Charging the running entity for the time since it was last charged.

use crate::calc_delta::calc_delta_fair;
use crate::cfs_rq::before;
use crate::level::entity_of;
use schedlab_units::TaskId;

use crate::{AvgReference, CfsRqId, FairPolicy, Feature, Protection, Sched, SeId};

impl Sched {
    /// The queue an entity is in.
    #[inline]
    pub fn cfs_rq_of(&self, se: SeId) -> CfsRqId {
        self.se(se).cfs_rq.expect("an entity in use stands in a queue")
    }

    /// Whether EEVDF picks.
    #[inline]
    pub(crate) fn is_eevdf(&self) -> bool {
        self.kernel.rules.policy == FairPolicy::Eevdf
    }

    /// Charges the running entity of a queue up to the CPU's clock.
    ///
    /// Kernel: update_curr(), update_se(), kernel/sched/fair.c, v6.1, v6.10, v6.12, v7.2.
    pub fn update_curr(&mut self, cfs: CfsRqId) {
        let queue = &self.cfs_rqs[cfs.0 as usize];
        let Some(curr) = queue.runs() else { return };
        let (kernel, cpu, now) = (&self.kernel, queue.cpu, self.rqs[queue.cpu].clock_task);
        let entity = entity_of(&mut self.tasks, &mut self.group_ses, curr);
        let delta = now.wrapping_sub(entity.exec_start) as i64;
        if delta <= 0 {
            return;
        }
        let delta = delta as u64;
        entity.exec_start = now;
        entity.sum_exec_runtime += delta;
        if kernel.is_flat() {
            if self.bandwidth_used {
                self.account_cfs_rq_runtime(cfs, delta);
            }
            if curr.is_task() {
                self.update_curr_flat(curr, delta);
            }
            return;
        }
        entity.vruntime = entity.vruntime.wrapping_add(calc_delta_fair(delta, &entity.load));
        let eevdf = kernel.rules.policy == FairPolicy::Eevdf;
        let used_up = eevdf && !before(entity.vruntime, entity.deadline);
        if curr.is_task() && kernel.has(Feature::SchedCache) {
            self.account_mm_sched(cpu, TaskId(curr.0), delta);
        }
        if curr.is_task() && self.rqs[cpu].fair_server.is_active() {
            self.fair_server_update(cpu, delta);
        }
        if used_up {
            self.renew_deadline(cfs, curr);
        }
        if !eevdf || self.kernel.rules.avg_reference == AvgReference::MinVruntime {
            self.update_min_vruntime(cfs);
        }
        if self.bandwidth_used {
            self.account_cfs_rq_runtime(cfs, delta);
        }
        if !eevdf || self.cfs(cfs).nr_queued == 1 {
            return;
        }
        if used_up || self.lost_protection(cfs, curr) {
            self.resched_fair(cpu);
            self.clear_buddies(cfs, curr);
        }
    }

    /// Charges a running task in the time line of the root.
    ///
    /// Kernel: update_curr(), kernel/sched/fair.c, v7.3.
    fn update_curr_flat(&mut self, curr: SeId, delta: u64) {
        let root = self.line_of(curr);
        let cpu = self.cfs(root).cpu;
        let entity = self.se_mut(curr);
        entity.vruntime = entity.vruntime.wrapping_add(calc_delta_fair(delta, entity.line_load()));
        let used_up = !before(entity.vruntime, entity.deadline);
        if used_up {
            self.renew_deadline(root, curr);
        }
        if self.kernel.has(Feature::SchedCache) {
            self.account_mm_sched(cpu, TaskId(curr.0), delta);
        }
        if self.rqs[cpu].fair_server.is_active() {
            self.fair_server_update(cpu, delta);
        }
        if self.cfs(root).h_nr_queued != 1 && (used_up || self.lost_protection(root, curr)) {
            self.resched_fair(cpu);
            self.clear_buddies(root, curr);
        }
    }

    /// Whether the running entity must be preempted before its deadline.
    ///
    /// Kernel: did_preempt_short(), kernel/sched/fair.c, v6.12; update_curr(), v7.2.
    #[inline]
    fn lost_protection(&self, cfs: CfsRqId, curr: SeId) -> bool {
        let rules = &self.kernel.rules;
        match rules.protection {
            Protection::UntilDeadline => false,
            Protection::UntilCancelled => {
                self.kernel.has(Feature::PreemptShort)
                    && !self.se(curr).is_protected(rules)
                    && !self.entity_eligible(cfs, curr)
            }
            Protection::MinSlice => !self.se(curr).is_protected(rules),
        }
    }

    /// Sets a new request for an entity that has used up its last one.
    ///
    /// Kernel: update_deadline(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub(crate) fn renew_deadline(&mut self, cfs: CfsRqId, se: SeId) {
        let base_slice = self.scaled.base_slice;
        let entity = self.se_mut(se);
        if !entity.custom_slice {
            entity.slice = base_slice;
        }
        entity.deadline = entity.vruntime.wrapping_add(calc_delta_fair(entity.slice, entity.line_load()));
        if self.kernel.rules.avg_reference == AvgReference::ZeroVruntime {
            // Called only for its effect: the zero point moves along.
            self.avg_vruntime(cfs);
        }
    }

    /// V of a queue. A free zero point is moved to V.
    ///
    /// Kernel: avg_vruntime(), kernel/sched/fair.c, v6.10, v6.12, v7.2.
    #[inline]
    pub fn avg_vruntime(&mut self, cfs: CfsRqId) -> u64 {
        let sums = self.avg_sums(cfs);
        let offset = sums.offset();
        self.move_to_average(cfs, offset);
        sums.zero.wrapping_add(offset as u64)
    }

    /// V of a queue as it is, for callers that only read it: nothing is moved.
    pub fn seen_avg_vruntime(&self, cfs: CfsRqId) -> u64 {
        let sums = self.avg_sums(cfs);
        sums.zero.wrapping_add(sums.offset() as u64)
    }

    /// Moves a free zero point to V, which is `offset` away from it.
    #[inline]
    pub(crate) fn move_to_average(&mut self, cfs: CfsRqId, offset: i64) {
        if self.kernel.rules.avg_reference == AvgReference::ZeroVruntime && offset != 0 {
            self.cfs_rqs[cfs.0 as usize].move_zero(&self.kernel.rules, offset);
        }
    }

    /// Raises the floor of a queue to its smallest vruntime; it never decreases.
    ///
    /// Kernel: update_min_vruntime(), kernel/sched/fair.c, v6.1, v6.10.
    #[inline]
    pub(crate) fn update_min_vruntime(&mut self, cfs: CfsRqId) {
        let curr = self.queued_curr(cfs).map(|curr| self.se(curr).vruntime);
        let queue = self.cfs(cfs);
        let floor = queue.min_vruntime;
        let entries = queue.timeline.entries();
        // In order of deadline the smallest vruntime may be anywhere.
        let tree = match self.kernel.rules.policy {
            FairPolicy::Cfs => entries.first().map(|q| q.vruntime),
            FairPolicy::Eevdf => {
                entries.iter().map(|q| q.vruntime).reduce(|a, b| if before(b, a) { b } else { a })
            }
        };
        let smallest = match (curr, tree) {
            (Some(curr), Some(tree)) if before(tree, curr) => tree,
            (Some(curr), _) => curr,
            (None, Some(tree)) => tree,
            (None, None) => return,
        };
        let delta = smallest.wrapping_sub(floor) as i64;
        if delta > 0 {
            let queue = &mut self.cfs_rqs[cfs.0 as usize];
            match self.kernel.rules.policy {
                FairPolicy::Cfs => queue.min_vruntime = smallest,
                FairPolicy::Eevdf => queue.move_zero(&self.kernel.rules, delta),
            }
        }
    }
}
