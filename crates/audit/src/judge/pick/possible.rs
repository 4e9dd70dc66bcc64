//! Which task runs next, given everything that the trace leaves open.
//!
//! Virtual times are sums of many small time spans, each derived from event times, which are not exactly the times at
//! which the kernel charged a task. So each task's virtual time has an error here, and any task that could come first
//! within the errors is a possible pick. A pick also shows something: the chosen task came first, so its virtual time
//! is moved to where that holds.

use schedlab_sched::{Class, Curr, FairPolicy, Pick, Reason, SeId};
use schedlab_topology::CpuId;
use schedlab_units::{Pid, TaskId, Time};

use crate::judge::spare::Spare;
use crate::report::verdict::{Choice, Numbers, Possible};
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;
use crate::unknown::virtual_time;

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
    virtual_time::may_come_first(shadow, shadow.sched.root_cfs_id(cpu), &mut waiting, &mut |task| {
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
