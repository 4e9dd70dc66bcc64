//! Groups with a CPU quota, and when they run out of it.
//!
//! No event shows that a group is throttled on a CPU, or unthrottled. Both show in which task runs: a task of a
//! throttled group is preempted without a request, is passed over, or waits on an idle CPU; later it runs without a
//! wake-up.

use std::ops::ControlFlow;

use schedlab_sched::{Curr, TgId};
use schedlab_topology::CpuId;
use schedlab_units::{Pid, TaskId, Time};

use super::Shadow;
use super::about::{About, Reading};

/// Tried where virtual times do not explain a pick.
pub const THROTTLED: Reading = Reading::new("THROTTLED", "the tasks that come first were out of quota");

pub(super) const ABOUT: About =
    About { readings: &[THROTTLED], ..About::new("QUOTA", "whether a group was out of its quota") };

/// Maximum number of queues on a CPU that may be found throttled at one switch.
const PASSED_OVER_MAX: usize = 8;

/// Takes the tasks that come first to be out of quota, one after the other, and keeps that if `ask` breaks. `ask` continues
/// with the task that comes first then.
pub fn find(
    shadow: &mut Shadow,
    first: Option<Pid>,
    now: Time,
    mut ask: impl FnMut(&mut Shadow) -> ControlFlow<(), Option<Pid>>,
) {
    let limited =
        |shadow: &Shadow, pid: Option<Pid>| shadow.find(pid?).filter(|&task| shadow.limit_of(task).is_some());
    let Some(mut task) = limited(shadow, first) else { return };
    let before = shadow.sched.clone();
    for _ in 0..PASSED_OVER_MAX {
        shadow.throttle(task, now);
        let ControlFlow::Continue(next) = ask(shadow) else { return };
        let Some(next) = limited(shadow, next) else { break };
        task = next;
    }
    shadow.sched = before;
}

impl Shadow {
    /// The group whose quota limits a task.
    pub fn limit_of(&self, task: TaskId) -> Option<TgId> {
        self.grouping.limit(self.sched.task(task).tg).filter(|_| self.sched.task(task).policy.is_fair())
    }

    /// A task is runnable and does not continue to run; if its group has a quota, the group is out of it.
    pub fn throttle(&mut self, task: TaskId, now: Time) {
        if let Some(tg) = self.limit_of(task) {
            self.sched.apply_throttle(task, tg, now);
            self.generation += 1;
        }
    }

    /// A CPU switches to a task; if its group was out of quota, it has some again. Returns whether that is so.
    pub fn unthrottle(&mut self, next: Curr, cpu: CpuId, now: Time) -> bool {
        let Curr::Task(task) = next else { return false };
        let was = self.limit_of(task).is_some()
            && self.sched.task(task).cpu == cpu
            && self.sched.throttled_hierarchy_of(task);
        if was {
            self.sched.apply_unthrottle(task, now);
        }
        was
    }

    /// A CPU is idle although tasks seem to wait there: those whose group has a quota are out of it.
    pub(super) fn out_of_quota(&mut self, cpu: CpuId, now: Time) {
        let waiting = self.waiting(cpu).into_iter();
        let limited: Vec<TaskId> = waiting.filter(|&task| self.limit_of(task).is_some()).collect();
        for task in limited {
            self.throttle(task, now);
        }
    }
}
