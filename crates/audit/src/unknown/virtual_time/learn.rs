//! What a pick or the answer to an arriving task shows about virtual times.

use schedlab_sched::{Curr, FairPolicy, Kernel, SeId, calc_delta_fair};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::first::{Waiting, allowance, waiting};
use crate::unknown::Shadow;

/// How a pick was judged.
#[derive(Clone, Copy)]
pub struct Pick {
    /// It follows if a hidden fact has another value.
    pub explained: bool,
    /// It does not follow.
    pub contradicted: bool,
}

/// The chosen task came first, in its queue and with its groups in the queues above.
pub fn learn_from_pick(shadow: &mut Shadow, chosen: TaskId, of: Pick) {
    if !shadow.sched.task(chosen).policy.is_fair() {
        return;
    }
    let mut level = Some(SeId(chosen.0));
    while let Some(se) = level {
        learn_in_queue(shadow, se, of);
        level = shadow.sched.se(se).parent;
    }
}

/// The chosen entity is moved back, and those that seemed to come first are moved forward, until the chosen one comes
/// first. Each moves in proportion to its error. Where neither has an error, the average was off, or nothing known
/// explains the pick. If the difference was beyond all errors, each is allowed to be that far off from then on.
fn learn_in_queue(shadow: &mut Shadow, chosen: SeId, of: Pick) {
    let Pick { explained, contradicted } = of;
    let entity = shadow.sched.se(chosen).clone();
    if !entity.on_rq {
        return;
    }
    let cfs = shadow.sched.cfs_rq_of(chosen);
    let eevdf = is_eevdf(&shadow.sched.kernel);
    let sums = shadow.sched.avg_sums(cfs);
    let mine = shadow.error_of(chosen);
    let first = |w: &Waiting| !eevdf || sums.eligible(w.vruntime);
    let queue = shadow.sched.cfs(cfs);
    let is_buddy = !eevdf && [queue.next, queue.last].contains(&Some(chosen));
    let ahead = |w: &Waiting| {
        let by = if eevdf {
            entity.deadline.wrapping_sub(w.deadline)
        } else {
            entity.vruntime.wrapping_sub(w.vruntime)
        };
        let near = if is_buddy { allowance(shadow, w.se) } else { 0 };
        (by as i64 - near).max(0)
    };
    let others = waiting(shadow, cfs, |se| shadow.error_of(se)).filter(|w| w.se != chosen && first(w));
    let others: Vec<(i64, Waiting)> = others.map(|w| (ahead(&w), w)).collect();
    let part = |distance: i64, theirs: u64| match (mine, theirs) {
        (0, 0) if explained => 0,
        (_, 0) => distance,
        _ => (distance as i128 * mine as i128 / (mine + theirs) as i128) as i64,
    };
    let late = if eevdf { (entity.vruntime.wrapping_sub(sums.average()) as i64).max(0) } else { 0 };
    let late = if mine == 0 && explained { 0 } else { late };
    let back = others.iter().map(|(ahead, w)| part(*ahead, w.error as u64)).max().unwrap_or(0).max(late);
    for (ahead, w) in &others {
        let on = (ahead - back).max(0) as u64;
        if on > 0 && w.error > 0 {
            shadow.sched.set_virtual_time(w.se, w.vruntime.wrapping_add(on), w.deadline.wrapping_add(on));
            if contradicted {
                shadow.contradicted(w.se, on);
            }
        }
    }
    if back > 0 {
        let back = back as u64;
        let (vruntime, deadline) = (entity.vruntime.wrapping_sub(back), entity.deadline.wrapping_sub(back));
        shadow.sched.set_virtual_time(chosen, vruntime, deadline);
        if contradicted {
            shadow.contradicted(chosen, back);
        }
    }
}

fn is_eevdf(kernel: &Kernel) -> bool {
    kernel.rules.policy == FairPolicy::Eevdf
}

/// Under CFS the kernel's answer shows on which side of the granularity the difference of two virtual times lies. If
/// ours lies on the other side, both times are moved there, each in proportion to its error.
pub fn learn_from_answer(shadow: &mut Shadow, at: CpuId, task: TaskId, asked: bool) {
    let Curr::Task(curr) = shadow.sched.rqs[at].curr else { return };
    let (running, woken) = shadow.sched.find_matching_se(SeId(curr.0), SeId(task.0));
    let errors = [running, woken].map(|se| shadow.error_of(se) as i64);
    let [one, two] = [running, woken].map(|se| shadow.sched.se(se));
    let granularity = calc_delta_fair(shadow.sched.scaled.wakeup_granularity, &two.load) as i64;
    let beyond = one.vruntime.wrapping_sub(two.vruntime) as i64 - granularity;
    let by = if asked { (1 - beyond).max(0) } else { beyond.max(0) };
    if by > errors[0] + errors[1] {
        return;
    }
    let first = (by as i128 * errors[0] as i128 / (errors[0] + errors[1]).max(1) as i128) as i64;
    let sign = if asked { 1 } else { -1 };
    let to = [(running, one, sign * first), (woken, two, -sign * (by - first))];
    let to = to.map(|(se, entity, by)| (se, entity.vruntime.wrapping_add(by as u64), entity.deadline));
    for (se, vruntime, deadline) in to {
        shadow.sched.set_virtual_time(se, vruntime, deadline);
    }
}
