//! Which tasks may come first in a queue, given how far virtual times may be off.

use schedlab_sched::{CfsRqId, FairPolicy, SeId, calc_delta_fair};
use schedlab_units::TaskId;

use crate::unknown::Shadow;

/// An entity that waits in a queue, or the queue's current entity if it may continue.
#[derive(Clone, Copy)]
pub struct Waiting {
    pub se: SeId,
    pub vruntime: u64,
    pub deadline: u64,
    /// How far its virtual time and deadline may be off.
    pub error: i64,
}

/// Everything that can be picked in a queue, with errors.
pub(super) fn waiting(
    shadow: &Shadow,
    cfs: CfsRqId,
    error: impl Fn(SeId) -> u64,
) -> impl Iterator<Item = Waiting> {
    let queue = shadow.sched.cfs(cfs);
    let curr = queue.curr.filter(|&curr| shadow.sched.se(curr).on_rq);
    let tree = queue.timeline.entries().iter().map(|entry| entry.se);
    curr.into_iter().chain(tree).filter(|&se| !shadow.sched.se(se).sched_delayed).map(move |se| {
        let entity = shadow.sched.se(se);
        let error = error(se) as i64;
        Waiting { se, vruntime: entity.vruntime, deadline: entity.deadline, error }
    })
}

/// Calls `give` with the tasks in a queue and below that may come first within the errors. `list` contains the entities
/// of the queues above.
pub fn may_come_first(shadow: &Shadow, cfs: CfsRqId, list: &mut Vec<Waiting>, give: &mut dyn FnMut(TaskId)) {
    let above = list.len();
    list.extend(waiting(shadow, cfs, |se| shadow.trusted_error(se)));
    let first = First::of(shadow, cfs, &list[above..]);
    for at in above..list.len() {
        let waiting = list[at];
        if !first.may_be(&waiting) {
            continue;
        }
        match shadow.sched.se(waiting.se).my_q {
            Some(below) => may_come_first(shadow, below, list, give),
            None => give(TaskId(waiting.se.0)),
        }
    }
    list.truncate(above);
}

/// Which entities may come first in a queue.
enum First {
    /// Any of them.
    Any,
    /// Those whose virtual time may be as early as `latest`, relative to the queue's zero point, and buddies whose
    /// virtual time may be as early as `near`.
    Earliest { zero: u64, latest: i64, near: i64, buddies: [Option<SeId>; 2] },
    /// Those that may be eligible (not later than `average`) and whose deadline may be as early as `latest`.
    Eligible { zero: u64, average: i64, latest: i64 },
}

impl First {
    fn of(shadow: &Shadow, cfs: CfsRqId, waiting: &[Waiting]) -> First {
        if shadow.groups_hidden {
            return First::Any;
        }
        let rules = &shadow.sched.kernel.rules;
        let zero = shadow.sched.cfs(cfs).zero(rules);
        if rules.policy == FairPolicy::Cfs {
            let queue = shadow.sched.cfs(cfs);
            let ends = waiting.iter().map(|w| (after(zero, w.vruntime) + w.error, w.se));
            let (latest, left) = ends.min_by_key(|&(end, _)| end).unwrap_or((0, SeId(0)));
            let buddies = [queue.next, queue.last];
            let near = if buddies == [None; 2] { latest } else { latest + allowance(shadow, left) };
            return First::Earliest { zero, latest, near, buddies };
        }
        // The average moves by the mean of the errors, including those of delayed sleepers.
        let average = shadow.sched.avg_sums(cfs).offset();
        let spread = shadow.average_of(cfs, |se| shadow.trusted_error(se)) as i64;
        let must = |w: &&Waiting| after(zero, w.vruntime) + w.error <= average - spread;
        let ends = waiting.iter().filter(must).map(|w| after(zero, w.deadline) + w.error);
        First::Eligible { zero, average: average + spread, latest: ends.min().unwrap_or(i64::MAX) }
    }

    fn may_be(&self, w: &Waiting) -> bool {
        match *self {
            First::Any => true,
            First::Earliest { zero, latest, near, buddies } => {
                let earliest = after(zero, w.vruntime) - w.error;
                earliest <= latest || earliest <= near && buddies.contains(&Some(w.se))
            }
            First::Eligible { zero, average, latest } => {
                after(zero, w.vruntime) - w.error <= average && after(zero, w.deadline) - w.error <= latest
            }
        }
    }
}

/// How far a buddy may be behind an entity and still be picked.
pub(super) fn allowance(shadow: &Shadow, left: SeId) -> i64 {
    calc_delta_fair(shadow.sched.scaled.wakeup_granularity, &shadow.sched.se(left).load) as i64
}

/// How far a virtual time is after a queue's zero point.
fn after(zero: u64, time: u64) -> i64 {
    time.wrapping_sub(zero) as i64
}
