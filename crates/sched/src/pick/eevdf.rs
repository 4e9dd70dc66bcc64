//! EEVDF: among the entities that are owed service, the one with the earliest
//! virtual deadline runs next.
//!
//! Kernel: pick_eevdf(), pick_next_entity(), kernel/sched/fair.c, v6.10, v6.12, v7.2.

use crate::cfs_rq::before;
use crate::pick::avg_vruntime::AvgSums;
use crate::{BuddyPick, CfsRq, CfsRqId, Entity, Feature, Protection, Reason, Sched, SeId};

impl Sched {
    /// The running entity of a queue, if it is queued.
    #[inline]
    pub(crate) fn queued_curr(&self, cfs: CfsRqId) -> Option<SeId> {
        self.cfs(cfs).curr.filter(|&curr| self.se(curr).on_rq)
    }

    /// The sums of a queue, its running entity included.
    #[inline]
    pub fn avg_sums(&self, cfs: CfsRqId) -> AvgSums {
        let queue = self.cfs(cfs);
        let curr = self.curr_entity(queue).map(|(_, entity)| entity);
        AvgSums::of(&self.kernel.rules, queue, curr)
    }

    /// The running entity of a queue, if it is queued, and its data.
    #[inline]
    fn curr_entity(&self, queue: &CfsRq) -> Option<(SeId, &Entity)> {
        let curr = queue.curr?;
        let entity = self.se(curr);
        entity.on_rq.then_some((curr, entity))
    }

    /// Whether an entity of a queue is owed service.
    ///
    /// Kernel: entity_eligible(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn entity_eligible(&self, cfs: CfsRqId, se: SeId) -> bool {
        self.avg_sums(cfs).eligible(self.se(se).vruntime)
    }

    /// The entity that runs next at a switch. The queue is not empty.
    pub fn pick_eevdf_next(&self, cfs: CfsRqId) -> (SeId, Reason) {
        let prefers_buddy = match self.kernel.rules.buddy_pick {
            BuddyPick::NextBuddy => self.kernel.has(Feature::NextBuddy),
            BuddyPick::PickBuddy => self.kernel.has(Feature::PickBuddy),
            BuddyPick::InPick => false,
        };
        if prefers_buddy && let Some(buddy) = self.eligible_buddy(cfs) {
            return (buddy, Reason::PickNextBuddy);
        }
        self.pick_eevdf(cfs, true)
    }

    /// The entity with the earliest deadline among the eligible, current first while it
    /// is protected. The queue is not empty.
    pub fn pick_eevdf(&self, cfs: CfsRqId, protect: bool) -> (SeId, Reason) {
        let queue = self.cfs(cfs);
        let rules = &self.kernel.rules;
        let mut curr = self.curr_entity(queue);
        if self.nr_competing(cfs) == 1 {
            let only = curr.map(|(curr, _)| curr).or(queue.timeline.leftmost().map(|q| q.se));
            return (only.expect("the queue is not empty"), Reason::PickOnly);
        }
        if protect
            && rules.buddy_pick == BuddyPick::InPick
            && self.kernel.has(Feature::PickBuddy)
            && let Some(buddy) = self.eligible_buddy(cfs)
        {
            return (buddy, Reason::PickNextBuddy);
        }
        let sums = AvgSums::of(rules, queue, curr.map(|(_, entity)| entity));
        curr = curr.filter(|(_, entity)| sums.eligible(entity.vruntime));
        if let Some((curr, entity)) = curr
            && protect
            && (self.kernel.has(Feature::RunToParity) || rules.protection == Protection::MinSlice)
            && entity.is_protected(rules)
        {
            return (curr, Reason::PickProtected);
        }
        // In order of deadline, so the first that is eligible is the best.
        let best = queue.timeline.entries().iter().find(|q| sums.eligible(q.vruntime));
        match (best, curr) {
            (Some(best), Some((_, entity))) if !before(entity.deadline, best.key) => {
                (best.se, Reason::PickDeadline)
            }
            (_, Some((curr, _))) => (curr, Reason::PickCurrent),
            (Some(best), None) => (best.se, Reason::PickDeadline),
            // Some entity is at or before the average, unless its sum overflowed: after hours of lag, which only a
            // damaged recording contains. A kernel's pick would find none.
            (None, None) => (queue.timeline.leftmost().expect("two are queued").se, Reason::PickDeadline),
        }
    }

    fn eligible_buddy(&self, cfs: CfsRqId) -> Option<SeId> {
        self.cfs(cfs).next.filter(|&next| self.entity_eligible(cfs, next))
    }
}
