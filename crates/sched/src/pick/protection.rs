//! RUN_TO_PARITY: once picked, an entity runs until its request is served.
//!
//! Without it EEVDF would switch whenever another deadline comes first. v6.6 marks a protected entity by its lag field,
//! which is unused while it runs: protected as long as the mark equals the deadline. From v6.17 on there is a virtual
//! time up to which it is protected, which shrinks when an entity with a shorter slice is queued.

use crate::calc_delta::calc_delta_fair;
use crate::cfs_rq::before;
use crate::level::Level;
use crate::{CfsRqId, Entity, Feature, Protection, Rules, Sched, SeId};

impl Entity {
    /// Whether the entity, which runs, is protected from the others of its queue.
    ///
    /// Kernel: protect_slice(), kernel/sched/fair.c, v6.12, v7.2.
    #[inline]
    pub fn is_protected(&self, rules: &Rules) -> bool {
        match rules.protection {
            Protection::UntilDeadline | Protection::UntilCancelled => self.vlag as u64 == self.deadline,
            Protection::MinSlice => before(self.vruntime, self.vprot),
        }
    }

    /// Ends the protection.
    ///
    /// Kernel: cancel_protect_slice(), kernel/sched/fair.c, v6.12, v7.2.
    pub fn cancel_protection(&mut self, rules: &Rules) {
        if self.is_protected(rules) {
            match rules.protection {
                Protection::UntilDeadline | Protection::UntilCancelled => {
                    self.vlag = self.deadline.wrapping_add(1) as i64;
                }
                Protection::MinSlice => self.vprot = self.vruntime,
            }
        }
    }
}

impl Level<'_> {
    /// Protects an entity that is about to run: it has left the time line, and no entity runs.
    ///
    /// Kernel: set_protect_slice(), kernel/sched/fair.c, v6.12, v7.2, v7.3.
    #[inline]
    pub(crate) fn set_protect_slice(&mut self) {
        let Level { kernel, queue, entity, .. } = self;
        if kernel.rules.protection != Protection::MinSlice {
            entity.vlag = entity.deadline as i64;
            return;
        }
        let shortest = match kernel.has(Feature::RunToParity) {
            true => queue.timeline.min_slice().unwrap_or(u64::MAX),
            false => kernel.tunables.base_slice_ns,
        };
        entity.vprot = entity.deadline;
        if shortest >= entity.slice {
            return;
        }
        if kernel.has(Feature::ProtectIneligible) && kernel.has(Feature::PreemptShort) {
            end_protection(entity, queue.ineligible_vruntime(&kernel.rules));
        } else {
            lower(entity, entity.vruntime, shortest);
        }
    }
}

impl Sched {
    /// The shortest slice in a queue, the running entity's included.
    ///
    /// Kernel: cfs_rq_min_slice(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn cfs_rq_min_slice(&self, cfs: CfsRqId) -> u64 {
        let curr = self.queued_curr(cfs).map_or(u64::MAX, |curr| self.se(curr).slice);
        self.cfs(cfs).timeline.min_slice().map_or(curr, |tree| tree.min(curr))
    }

    /// The longest slice in a queue, the running entity's included.
    ///
    /// Kernel: cfs_rq_max_slice(), kernel/sched/fair.c, v7.2.
    #[inline]
    pub fn cfs_rq_max_slice(&self, cfs: CfsRqId) -> u64 {
        let curr = self.queued_curr(cfs).map_or(0, |curr| self.se(curr).slice);
        self.cfs(cfs).timeline.max_slice().map_or(curr, |tree| tree.max(curr))
    }

    /// Shortens the protection of the running entity to the shortest slice queued.
    ///
    /// Kernel: update_protect_slice(), kernel/sched/fair.c, v7.2, v7.3.
    pub(crate) fn update_protect_slice(&mut self, cfs: CfsRqId, se: SeId) {
        let shortest = self.cfs_rq_min_slice(cfs);
        let mut from = self.se(se).vruntime;
        if self.kernel.has(Feature::ProtectFromAverage) {
            let average = self.avg_vruntime(cfs);
            from = if before(average, from) { average } else { from };
        }
        lower(self.se_mut(se), from, shortest);
    }
}

/// Protects an entity for at most a slice from a virtual time on.
fn lower(entity: &mut Entity, from: u64, slice: u64) {
    let until = from.wrapping_add(calc_delta_fair(slice, entity.line_load()));
    end_protection(entity, until);
}

/// Protects an entity at most up to a virtual time.
fn end_protection(entity: &mut Entity, until: u64) {
    if before(until, entity.vprot) {
        entity.vprot = until;
    }
}
