//! Where an exec may lead, and execs that are not complete.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::possibilities::Possibilities;
use crate::report::verdict::{Numbers, Verdict};
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;
use crate::unknown::loads;

/// Execs in progress, and their possible outcomes so far.
#[derive(Default)]
pub struct Execs {
    /// Tasks that were moved by a stopper at their own request.
    pub(super) moved: Vec<(TaskId, Verdict)>,
    /// Tasks that a later event shows to have executed a program, with the possible outcomes so far.
    pub(super) ahead: Vec<(TaskId, Vec<CpuId>)>,
}

/// All possible outcomes of an exec, evaluated only as far as needed: `chosen` is what the kernel did.
pub fn of_exec(shadow: &mut Shadow, task: TaskId, chosen: CpuId, now: Time) -> Possibilities {
    let mut found = Possibilities::default();
    let plain = shadow.view(now).decide_exec(task);
    found.add(plain, None, Numbers::default());
    if found.has(chosen) {
        return found;
    }
    let local = shadow.sched.task(task).cpu;
    if shadow.may_keep_sleepers(local) {
        // A task that sleeps there and is still queued counts as running.
        shadow.sched.rqs[local].nr_running += 1;
        let placement = shadow.view(now).decide_exec(task);
        shadow.sched.rqs[local].nr_running -= 1;
        if placement.cpu == chosen {
            found.add(placement, Some(Unknown::DelayedDequeue), Numbers::default());
            return found;
        }
    }
    for averages in loads::for_cpu(shadow, chosen, now) {
        let placement = loads::as_if(shadow, &averages, |shadow| shadow.view(now).decide_exec(task));
        if placement.cpu == chosen {
            found.add(placement, Some(Unknown::Loads), Numbers::default());
            break;
        }
    }
    found
}
