//! By how much virtual times would have had to be different for another order of two tasks.
//!
//! Each time of the two is moved alone, by the smallest amount that changes the answer.

use schedlab_sched::{CfsRqId, FairPolicy, SeId};
use schedlab_units::TaskId;

use super::{AVERAGE, DEADLINE, PLACED, VRUNTIME};
use crate::unknown::Shadow;
use crate::unknown::beyond::{Candidate, Look};
use crate::unknown::otherwise::{Nearest, Otherwise};

/// The nearest value by which our rules agree about the order of two siblings in a queue: one of the candidates, or a virtual
/// time.
pub fn nearest(
    shadow: &mut Shadow,
    candidates: &[Candidate],
    (cfs, two): (CfsRqId, [SeId; 2]),
    look: Look<'_>,
) -> Option<Nearest> {
    // An entity that is moved and moved back lands behind others with its deadline, so the order is restored
    // afterwards.
    let order = shadow.sched.cfs(cfs).timeline.clone();
    let moved = least_move(shadow, cfs, two, look);
    shadow.sched.cfs_mut(cfs).timeline = order;
    let plain = candidates.iter().find(|candidate| candidate.leads(shadow, look));
    let plain = plain.map(|candidate| candidate.otherwise.clone());
    plain.into_iter().chain(moved).min_by_key(Otherwise::distance).map(Nearest::alone)
}

/// The time that has to be moved least.
fn least_move(shadow: &mut Shadow, cfs: CfsRqId, two: [SeId; 2], look: Look<'_>) -> Option<Otherwise> {
    let eevdf = shadow.sched.kernel.rules.policy == FairPolicy::Eevdf;
    let error = two.map(|se| shadow.error_of(se)).iter().sum::<u64>();
    let curr = shadow.sched.cfs(cfs).curr;
    // What is moved, by name and in words, and whether the virtual time and the deadline move.
    let kinds: &[(&str, &str, [bool; 2])] = &[
        (VRUNTIME, "the virtual time of", [true, false]),
        (PLACED, "virtual time and deadline of", [true, true]),
        (DEADLINE, "the deadline of", [false, true]),
    ];
    let kinds = if eevdf { kinds } else { &kinds[..1] };
    let mut best: Option<(u64, Otherwise)> = None;
    let mut keep = |by: Option<u64>, name: &'static str, had: String| {
        if let Some(by) = by
            && best.as_ref().is_none_or(|(least, _)| by < *least)
        {
            best = Some((by, Otherwise::plain(name, had).by(by, error)));
        }
    };
    for earlier in [true, false] {
        let when = if earlier { "earlier" } else { "later" };
        for se in two {
            let who = if se.is_task() {
                format!("task {} had", shadow.known(TaskId(se.0)).pid)
            } else {
                "its group had".to_owned()
            };
            // The running task was placed long ago, and its protection depends on its deadline.
            let kinds = if curr == Some(se) { &kinds[..1] } else { kinds };
            for &(name, what, moves) in kinds {
                let by = least(|by| {
                    agrees_if(shadow, se, moves.map(|moves| i64::from(moves) * signed(by, earlier)), look)
                });
                keep(by, name, format!("{what} {who} been {when}"));
            }
        }
        let queue = shadow.sched.cfs(cfs).timeline.entries().iter().map(|entry| entry.se);
        let others: Vec<(SeId, i64)> =
            queue.filter(|se| !two.contains(se)).map(|se| (se, signed(1, earlier))).collect();
        if eevdf && !others.is_empty() {
            let by = least(|by| agrees_beside(shadow, cfs, &others, by as i64, look));
            keep(by, AVERAGE, format!("the other waiting tasks had been {when}"));
        }
    }
    best.map(|(_, otherwise)| otherwise)
}

/// Whether our rules agree with an entity's virtual time and deadline moved.
fn agrees_if(shadow: &mut Shadow, se: SeId, [vruntime, deadline]: [i64; 2], look: Look<'_>) -> bool {
    shift(shadow, se, vruntime, deadline);
    let agrees = look(shadow);
    shift(shadow, se, -vruntime, -deadline);
    agrees
}

/// Whether our rules agree when others are later or earlier by `by`.
fn agrees_beside(shadow: &mut Shadow, cfs: CfsRqId, others: &[(SeId, i64)], by: i64, look: Look<'_>) -> bool {
    shadow.sched.shift_vruntimes(cfs, others, by);
    let agrees = look(shadow);
    shadow.sched.shift_vruntimes(cfs, others, -by);
    agrees
}

fn signed(by: u64, earlier: bool) -> i64 {
    if earlier { -(by as i64) } else { by as i64 }
}

/// Moves an entity's virtual time and its deadline.
fn shift(shadow: &mut Shadow, se: SeId, vruntime: i64, deadline: i64) {
    let entity = shadow.sched.se(se);
    let vruntime = entity.vruntime.wrapping_add(vruntime as u64);
    let deadline = entity.deadline.wrapping_add(deadline as u64);
    shadow.sched.set_virtual_time(se, vruntime, deadline);
}

/// The first amount that is tried, ns.
const FIRST: u64 = 16;

/// The amount at which the search ends, ns; virtual times that are off by more are not the cause.
const LAST: u64 = 1 << 30;

/// The smallest amount for which a condition holds, to within a thirty-second of it. The amount is doubled until the
/// condition holds, then bisected.
fn least(mut is_so: impl FnMut(u64) -> bool) -> Option<u64> {
    let mut most = FIRST;
    while !is_so(most) {
        most *= 2;
        if most > LAST {
            return None;
        }
    }
    let mut less = if most == FIRST { 0 } else { most / 2 };
    while most - less > 1 + most / 32 {
        let middle = less + (most - less) / 2;
        if is_so(middle) {
            most = middle;
        } else {
            less = middle;
        }
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_is_found_to_a_small_part_of_it() {
        for limit in [1, 17, 40, 1000, 123_456, 40_000_000] {
            let found = least(|by| by >= limit).unwrap();
            assert!(found >= limit && found <= limit + 1 + limit / 16, "{limit}: {found}");
        }
        assert_eq!(least(|_| false), None);
    }
}
