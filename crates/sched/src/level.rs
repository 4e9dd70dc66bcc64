//! One level of the hierarchy on one CPU, looked up once.
//!
//! When a task joins, runs or leaves, its entity, the entity's queue and the clocks of the CPU are accessed again and
//! again. Each lookup in their tables costs time; here all of them are borrowed once.

use crate::{CfsRq, CfsRqId, Entity, Kernel, Rq, Sched, SeId, Task};

/// An entity, its queue, and the rules.
pub(crate) struct Level<'a> {
    pub kernel: &'a Kernel,
    pub rq: &'a Rq,
    pub queue: &'a mut CfsRq,
    pub entity: &'a mut Entity,
}

impl Sched {
    /// An entity and its queue, mutable, with their clocks and rules.
    #[inline]
    pub(crate) fn level(&mut self, cfs: CfsRqId, se: SeId) -> Level<'_> {
        let queue = &mut self.cfs_rqs[cfs.0 as usize];
        let entity = entity_of(&mut self.tasks, &mut self.group_ses, se);
        Level { kernel: &self.kernel, rq: &self.rqs[queue.cpu], queue, entity }
    }
}

/// An entity, mutable, where other state is needed too.
#[inline]
pub(crate) fn entity_of<'a>(tasks: &'a mut [Task], groups: &'a mut [Entity], se: SeId) -> &'a mut Entity {
    if se.is_task() { &mut tasks[se.0 as usize].se } else { &mut groups[(se.0 & !SeId::GROUP) as usize] }
}
