//! Which task runs next, given everything that the trace leaves open.
//!
//! Virtual times are sums of many small time spans, each derived from event times, which are not exactly the times at
//! which the kernel charged a task. So each task's virtual time has an error here, and any task that could come first
//! within the errors is a possible pick. A pick also shows something: the chosen task came first, so its virtual time
//! is moved to where that holds.

use schedlab_sched::{CfsRqId, Class, Curr, FairPolicy, Kernel, Pick, Reason, SeId, calc_delta_fair};
use schedlab_topology::CpuId;
use schedlab_units::{Pid, TaskId, Time};

use crate::judge::spare::{Spare, Waiting};
use crate::report::verdict::{Answer, Choice, Numbers, Possible};
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;

/// What a CPU may switch to. Delayed sleepers that come first leave the queue.
pub fn of_switch(
    shadow: &mut Shadow,
    spare: &mut Spare,
    cpu: CpuId,
    chosen: Curr,
    now: Time,
) -> Vec<Possible> {
    shadow.sched.update_rq_clock(cpu, now);
    let pick = shadow.sched.choose_next(cpu);
    let mut found = spare.list();
    found.push(possible(shadow, &pick));
    let Curr::Task(ours) = pick.next else { return found };
    if !shadow.sched.task(ours).policy.is_fair() {
        if shadow.sched.class_of(ours) == Class::Dl {
            let others = shadow.sched.rqs[cpu].dl_queue.iter().filter(|&&task| task != ours);
            found.extend(others.map(|&task| may_be_first(shadow, task)));
        }
        return found;
    }
    if shadow.sched.rqs[cpu].nr_running == 1 && chosen == pick.next {
        return found;
    }
    let (choice, reason) = (found[0].choice, found[0].reason);
    let hidden = Some(shadow.groups_or(Unknown::VirtualTime));
    let mut waiting = std::mem::take(&mut spare.waiting);
    may_come_first(shadow, shadow.sched.root_cfs_id(cpu), &mut waiting, &mut |task| {
        let other = Choice::Task(shadow.known(task).pid);
        if other != choice {
            found.push(Possible { choice: other, hidden, reason, numbers: Numbers::default() });
        }
    });
    spare.waiting = waiting;
    if let Curr::Task(theirs) = chosen
        && theirs != ours
        && shadow.sched.task(theirs).cpu == cpu
    {
        let (ours, theirs) = shadow.sched.find_matching_se(SeId(ours.0), SeId(theirs.0));
        let (ours, theirs) = (shadow.sched.se(ours), shadow.sched.se(theirs));
        found[0].numbers.push(("vruntime", theirs.vruntime.wrapping_sub(ours.vruntime) as i64));
        if shadow.sched.kernel.rules.policy == FairPolicy::Eevdf {
            found[0].numbers.push(("deadline", theirs.deadline.wrapping_sub(ours.deadline) as i64));
        }
    }
    found
}

fn possible(shadow: &Shadow, pick: &Pick) -> Possible {
    let pid = match pick.next {
        Curr::Idle => Pid::IDLE,
        Curr::Task(task) => shadow.known(task).pid,
    };
    Possible {
        choice: Choice::Task(pid),
        reason: pick.reason.name(),
        hidden: None,
        numbers: Numbers::default(),
    }
}

/// A deadline task may be picked, since its budget and deadline are unknown.
pub fn may_be_first(shadow: &Shadow, task: TaskId) -> Possible {
    Possible {
        choice: Choice::Task(shadow.known(task).pid),
        reason: Reason::PickClass.name(),
        hidden: Some(Unknown::Deadlines),
        numbers: Numbers::default(),
    }
}

/// Everything that can be picked in a queue, with errors.
fn waiting(shadow: &Shadow, cfs: CfsRqId, error: impl Fn(SeId) -> u64) -> impl Iterator<Item = Waiting> {
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
fn may_come_first(shadow: &Shadow, cfs: CfsRqId, list: &mut Vec<Waiting>, give: &mut dyn FnMut(TaskId)) {
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
fn allowance(shadow: &Shadow, left: SeId) -> i64 {
    calc_delta_fair(shadow.sched.scaled.wakeup_granularity, &shadow.sched.se(left).load) as i64
}

/// How far a virtual time is after a queue's zero point.
fn after(zero: u64, time: u64) -> i64 {
    time.wrapping_sub(zero) as i64
}

/// The chosen task came first, in its queue and with its groups in the queues above.
pub fn learn(shadow: &mut Shadow, chosen: TaskId, answer: Answer) {
    if !shadow.sched.task(chosen).policy.is_fair() {
        return;
    }
    let mut level = Some(SeId(chosen.0));
    while let Some(se) = level {
        learn_in_queue(shadow, se, answer);
        level = shadow.sched.se(se).parent;
    }
}

/// The chosen entity is moved back, and those that seemed to come first are moved forward, until the chosen one comes
/// first. Each moves in proportion to its error. Where neither has an error, the average was off, or nothing known
/// explains the pick. If the difference was beyond all errors, each is allowed to be that far off from then on.
fn learn_in_queue(shadow: &mut Shadow, chosen: SeId, answer: Answer) {
    let (explained, contradicted) = (answer == Answer::AgreesInSet, answer == Answer::Differs);
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
