//! When a new task changed its own priority.
//!
//! No event shows that; only the task's next switch does. So the change is assumed to have happened when the task began
//! to run. But if the task is preempted in its first run although no task arrived and no tick was due, the change was
//! the cause: it charges the task, which may end its turn, and requests preemption if its priority gets lower
//! (`set_user_nice()`). So it happened at the end of that run.

use schedlab_topology::CpuId;
use schedlab_units::{Duration, Time};

use super::Learner;
use super::programs::work;
use super::switches::Left;
use crate::learned::{Begin, Step, TaskIndex};

/// A task was preempted in its first run, with another priority than at its creation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    task: TaskIndex,
    /// When and where it was preempted.
    at: Time,
    cpu: CpuId,
    /// The work that it had done.
    ran: Duration,
    /// Whether that was too short for a whole turn.
    early: bool,
}

impl Learner {
    /// A task leaves its CPU. Records a possible change of its priority.
    pub(super) fn changes_priority(&mut self, task: TaskIndex, left: &Left, now: Time, cpu: CpuId) {
        let (life, entry) = (&self.programs.lives[task.index()], &self.programs.learned.tasks[task.index()]);
        let turn = now.since(life.began);
        let is_first = entry.steps.iter().all(|step| matches!(step, Step::Rename(_)));
        if left.prio != life.prio
            && left.unasked
            && left.state.is_runnable()
            && is_first
            && life.run == work(turn, life.capacity)
            && matches!(entry.begin, Begin::Forked(_))
        {
            let ran = life.run;
            let early = self.yields.is_early(turn);
            self.changes.push(Change { task, at: now, cpu, ran, early });
        }
    }

    /// Puts those changes where they were, now that the times of ticks are known.
    pub(super) fn place_changes(&mut self) {
        let learned = &mut self.programs.learned;
        for change in self.changes.drain(..) {
            if learned.ticks.may_end_a_turn(change.at, change.cpu, change.early) == Some(false) {
                put_off(&mut learned.tasks[change.task.index()].steps, change.ran);
            }
        }
    }
}

/// Moves the first change of priority after the first piece of work, which lasted `ran`.
fn put_off(steps: &mut Vec<Step>, ran: Duration) {
    let Some(change) = steps.iter().position(|step| matches!(step, Step::Prio(_))) else { return };
    let Some(work) = steps.iter().position(|step| matches!(step, Step::Run(_))) else { return };
    if let Step::Run(all) = steps[work]
        && change < work
        && ran <= all
    {
        steps[work] = Step::Run(ran);
        steps.insert(work + 1, Step::Run(Duration(all.0 - ran.0)));
        let change = steps.remove(change);
        steps.insert(work, change);
    }
}
