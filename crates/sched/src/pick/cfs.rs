//! CFS: the entity with the least virtual run time runs next, unless a buddy is close behind.
//!
//! Kernel: pick_next_entity(), wakeup_preempt_entity(), kernel/sched/fair.c, v6.1.

use crate::calc_delta::calc_delta_fair;
use crate::cfs_rq::before;
use crate::{CfsRqId, Entity, Reason, Sched, SeId};

/// How far a waiting entity is behind the running one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lead {
    /// It is not behind.
    None,
    /// Behind by no more than the wake-up granularity.
    Within,
    /// Behind by more.
    Beyond,
}

/// Compares a running entity with a waiting one.
///
/// The granularity is in the virtual time of `se`: heavy entities preempt sooner.
#[inline]
pub fn wakeup_preempt_entity(wakeup_granularity: u64, curr: &Entity, se: &Entity) -> Lead {
    let diff = curr.vruntime.wrapping_sub(se.vruntime) as i64;
    if diff <= 0 {
        return Lead::None;
    }
    let granularity = calc_delta_fair(wakeup_granularity, &se.load) as i64;
    if diff > granularity { Lead::Beyond } else { Lead::Within }
}

impl Sched {
    /// The entity of a queue that runs next. `curr` is the running one, if it is queued.
    /// The queue is not empty.
    pub fn pick_cfs(&self, cfs: CfsRqId, curr: Option<SeId>) -> (SeId, Reason) {
        let queue = self.cfs(cfs);
        let in_line = |n: usize| queue.timeline.entries().get(n).map(|q| q.se);
        let first_of = |tree: Option<SeId>| match (tree, curr) {
            (Some(tree), Some(curr)) if before(self.se(curr).vruntime, self.se(tree).vruntime) => Some(curr),
            (Some(tree), _) => Some(tree),
            (None, curr) => curr,
        };
        let left = first_of(in_line(0)).expect("the queue is not empty");
        let lead =
            |se: SeId| wakeup_preempt_entity(self.scaled.wakeup_granularity, self.se(se), self.se(left));
        let close = |se: &SeId| lead(*se) != Lead::Beyond;

        let mut choice = match curr == Some(left) {
            true => (left, Reason::PickCurrent),
            false => (left, Reason::PickLeftmost),
        };
        if queue.skip == Some(left) {
            let second = if curr == Some(left) { in_line(0) } else { first_of(in_line(1)) };
            if let Some(second) = second.filter(close) {
                choice = (second, Reason::PickSecond);
            }
        }
        if let Some(next) = queue.next.filter(close) {
            choice = (next, Reason::PickNextBuddy);
        } else if let Some(last) = queue.last.filter(close) {
            choice = (last, Reason::PickLastBuddy);
        }
        choice
    }
}
