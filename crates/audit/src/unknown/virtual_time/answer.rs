//! Whether the answer to an arriving task may be the opposite, given how far virtual times may be off.

use schedlab_sched::{CfsRqId, FairPolicy, Feature, SeId, wf};
use schedlab_units::TaskId;

use crate::follow::running::Before;
use crate::unknown::Shadow;

/// Fractions of the error by which a single virtual time is moved.
const PARTS: [i64; 2] = [1, 8];

/// Whether small errors in virtual times could turn over our decision whether an arriving task preempts the running one.
/// `others` is a list for reuse.
pub fn answer_is_open(
    shadow: &mut Shadow,
    others: &mut Vec<(SeId, i64)>,
    before: Before,
    task: TaskId,
    preempt: bool,
) -> bool {
    let Before { curr, at, .. } = before;
    let (running, woken) = shadow.sched.find_matching_se(SeId(curr.0), SeId(task.0));
    let off = |shadow: &Shadow, se| shadow.likely_error(se) as i64;
    let errors = [off(shadow, running), off(shadow, woken)];
    let pending = std::mem::take(&mut shadow.sched.rqs[at].need_resched);
    let ask = |shadow: &Shadow| {
        let flags = [wf::TTWU, wf::TTWU | wf::SYNC];
        let flags = if shadow.sched.kernel.has(Feature::NextBuddy) { &flags[..] } else { &flags[..1] };
        flags.iter().any(|&flags| shadow.sched.check_preempt(at, task, flags).preempt != preempt)
    };
    let times = [running, woken].map(|se| (shadow.sched.se(se).vruntime, shadow.sched.se(se).deadline));
    let set = |shadow: &mut Shadow, by: [i64; 2]| {
        // The deadline of the task that was just placed moves with its virtual time.
        let (curr, placed) = (times[0].0.wrapping_add(by[0] as u64), by[1] as u64);
        shadow.sched.set_virtual_time(running, curr, times[0].1);
        shadow.sched.set_virtual_time(
            woken,
            times[1].0.wrapping_add(placed),
            times[1].1.wrapping_add(placed),
        );
    };
    // The later the running task and the earlier the new one, the stronger the case for preemption.
    let directions = [(1, -1), (-1, 1)];
    let directions = match (shadow.sched.preempt_is_monotone(running), preempt) {
        (false, _) => &directions[..],
        (true, false) => &directions[..1],
        (true, true) => &directions[1..],
    };
    let cfs = shadow.sched.cfs_rq_of(running);
    fill_others(shadow, others, cfs, running, woken);
    let by_others = |shadow: &mut Shadow| {
        let mut moved = |sign| {
            shadow.sched.shift_vruntimes(cfs, others, sign);
            let open = ask(shadow);
            shadow.sched.shift_vruntimes(cfs, others, -sign);
            open
        };
        !others.is_empty() && (moved(1) || moved(-1))
    };
    let open = directions.iter().any(|(one, two)| {
        set(shadow, [one * errors[0], two * errors[1]]);
        ask(shadow) || by_others(shadow)
    });
    // With other tasks in between, a small shift may change the answer although a large shift changes it back: by then
    // the other tasks are owed service.
    let less = |shadow: &mut Shadow| {
        let moves = [(1, 0), (-1, 0), (0, 1), (0, -1)].into_iter();
        let mut moves = moves.flat_map(|signs| PARTS.map(|part| (signs, part)));
        let some = moves.any(|((one, two), part)| {
            set(shadow, [one * errors[0] / part, two * errors[1] / part]);
            ask(shadow)
        });
        set(shadow, [0, 0]);
        some || by_others(shadow)
    };
    let open = open || directions.len() > 1 && less(shadow);
    set(shadow, [0, 0]);
    shadow.sched.rqs[at].need_resched = pending;
    open
}

/// The other tasks that wait in the same queue as these two, with their errors. Under EEVDF they move the average that
/// decides eligibility.
fn fill_others(shadow: &Shadow, others: &mut Vec<(SeId, i64)>, cfs: CfsRqId, running: SeId, woken: SeId) {
    others.clear();
    if shadow.sched.kernel.rules.policy == FairPolicy::Eevdf {
        let waiting = shadow.sched.cfs(cfs).timeline.entries().iter().map(|entry| entry.se);
        let beside = waiting.filter(|&se| se != running && se != woken);
        others.extend(beside.map(|se| (se, shadow.likely_error(se) as i64)));
    }
}
