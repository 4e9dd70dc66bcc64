//! The task that runs where another is queued, and how much is left of its turn.

use schedlab_sched::{Curr, FairPolicy, PreemptDecision, Protection, Reason, SeId, calc_delta_fair};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::shadow::Shadow;
use super::watch::Watch;

/// The task that ran on a CPU before another was queued there, if it may be preempted.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    pub curr: TaskId,
    pub at: CpuId,
    /// How long it had run.
    ran: u64,
    /// Lower bound on the time left in its turn.
    left: i64,
}

/// A task that was moved to a busy CPU.
pub struct Arrived {
    /// The task that ran there.
    pub before: Before,
    /// The task that arrived.
    pub task: TaskId,
    /// Our decision.
    pub decided: PreemptDecision,
}

/// The running task of a CPU where another is about to be queued. `None` if there is nothing to decide: the CPU is
/// idle, its task is already being preempted, or one of the tasks is not fair.
pub fn before<W: Watch>(shadow: &Shadow<W>, at: CpuId, task: TaskId) -> Option<Before> {
    let Curr::Task(curr) = shadow.sched.rqs[at].curr else { return None };
    let fair = |task| shadow.sched.task(task).policy.is_fair();
    let decides = curr != task && fair(curr) && fair(task) && shadow.sched.task(curr).on_rq;
    if !decides || !shadow.cpu_known[at] || shadow.is_asked(at) {
        return None;
    }
    let left = slice_left(shadow, at, curr).err()?;
    Some(Before { curr, at, ran: shadow.sched.task(curr).se.sum_exec_runtime, left })
}

impl Before {
    /// Upper bound on the time that was left in a turn before the charge, made for another task's arrival, that ended
    /// it.
    pub fn left_at_most<W: Watch>(&self, shadow: &Shadow<W>) -> i64 {
        let entry = shadow.sched.task(self.curr);
        let ran = entry.se.sum_exec_runtime - self.ran;
        let levels = std::iter::successors(Some(SeId(self.curr.0)), |&se| shadow.sched.se(se).parent);
        let farthest = |se| {
            let charged = calc_delta_fair(ran, &shadow.sched.se(se).load) as i64;
            self.left.saturating_add(2 * shadow.error_of(se) as i64) - charged
        };
        levels.map(farthest).max().unwrap_or(0)
    }
}

/// Whether the turn of a CPU's task is over; otherwise the virtual time left in it. Its queues must be charged up to
/// now.
pub fn slice_left<W: Watch>(shadow: &Shadow<W>, at: CpuId, task: TaskId) -> Result<Reason, i64> {
    if shadow.is_asked(at) {
        return Ok(Reason::SliceEnd);
    }
    let levels = std::iter::successors(Some(SeId(task.0)), |&se| shadow.sched.se(se).parent);
    let mut left = i64::MAX;
    for se in levels {
        let (cfs, entity) = (shadow.sched.cfs_rq_of(se), shadow.sched.se(se));
        if shadow.sched.cfs(cfs).nr_queued < 2 {
            continue;
        }
        let rules = &shadow.sched.kernel.rules;
        if rules.policy == FairPolicy::Eevdf {
            let mut end = entity.deadline.wrapping_sub(entity.vruntime) as i64;
            if rules.protection == Protection::MinSlice {
                end = end.min(entity.vprot.wrapping_sub(entity.vruntime) as i64);
            }
            left = left.min(end - shadow.error_of(se) as i64);
        } else if let Some(reason) = shadow.sched.check_preempt_tick(cfs, se) {
            return Ok(reason);
        } else {
            let error = shadow.error_of(se) as i64;
            let ran = (entity.sum_exec_runtime - entity.prev_sum_exec_runtime) as i64 + error;
            let ideal = shadow.sched.ideal_runtime(cfs, se) as i64;
            left = left.min(ideal - ran);
            if ran >= shadow.sched.scaled.min_granularity as i64
                && let Some(first) = shadow.sched.cfs(cfs).timeline.leftmost()
            {
                let lead = entity.vruntime.wrapping_sub(first.vruntime) as i64;
                left = left.min(ideal - lead - error - shadow.error_of(first.se) as i64);
            }
        }
    }
    Err(left)
}
