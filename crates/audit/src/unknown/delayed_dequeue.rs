//! Whether a sleeper is still queued.
//!
//! Under EEVDF the dequeue of a task that falls asleep without being owed service is delayed until it is picked. No event
//! shows when that is. Nor does one show when a running task leaves its queue: its switch comes later.

use schedlab_sched::{Feature, SeId, TaskState, WakePath, Wakeup};
use schedlab_topology::CpuId;
use schedlab_trace::Kind;
use schedlab_units::{Duration, TaskId, Time};

use super::Shadow;
use super::about::{About, Reading};
use super::beyond::{Candidate, Case, Look, Of, with_copy};
use super::otherwise::Otherwise;
use crate::follow::leaving::left_by;
use crate::follow::pairing::{Fate, Pairing};

const NAME: &str = "DELAYED_DEQUEUE";
const SLEEPER: &str = "SLEEPER";

/// Tried where nothing else explains that a woken task stays.
pub const STILL_QUEUED: Reading =
    Reading::new("STILL_QUEUED", "the dequeue of the woken task was still delayed");

/// Tried where nothing else explains a move.
pub const MOVE_OF_SLEEPER: Reading = Reading::new("MOVE_OF_SLEEPER", "a delayed sleeper was moved");

/// Learned from sleepers that have left.
pub const LEFT_ALREADY: Reading = Reading::new("LEFT_ALREADY", "a task has left its queue before its switch");

pub(super) const ABOUT: About = About {
    readings: &[STILL_QUEUED, MOVE_OF_SLEEPER, LEFT_ALREADY],
    further: &[(
        SLEEPER,
        "another sleeper had still been queued, its dequeue delayed, or had left its queue",
    )],
    beyond,
    ..About::new(NAME, "whether the sleeper was still queued")
};

/// A task that has left its queue is switched out within this time.
const PATIENCE: Duration = Duration::millis(10);

impl Shadow {
    /// A sleeper whose dequeue was delayed has left its queue, so its CPU has picked a task. `tries`: if the sleeper could not
    /// come before the running task, and that task only leaves next, then the running task had already left, with the
    /// lag that it had with the sleeper queued.
    pub fn let_go(&mut self, sleeper: TaskId, pairing: &Pairing, tries: bool, now: Time) {
        let cpu = self.sched.task(sleeper).cpu;
        if tries && self.is_surely_ahead(SeId(sleeper.0)) {
            self.leave_if_leaving(cpu, pairing, now);
        }
        if self.sched.task(sleeper).se.sched_delayed {
            self.sched.complete_delayed_dequeue(sleeper, now);
        }
    }

    /// The running task of a CPU has left its queue, if leaving is its next action.
    pub fn leave_if_leaving(&mut self, cpu: CpuId, pairing: &Pairing, now: Time) {
        if let Some((task, state)) = self.is_leaving(cpu, pairing, now) {
            self.leave_early(task, cpu, state, now);
        }
    }

    /// A task leaves its queue before its switch event. Its CPU picks another task and so dequeues delayed sleepers
    /// that come first.
    pub fn leave_early(&mut self, task: TaskId, cpu: CpuId, state: TaskState, now: Time) {
        self.leave(task, state, now);
        self.sched.choose_next(cpu);
    }

    /// The task that runs on a CPU and how it leaves, if leaving is its next action. Where the recording contains
    /// charges, one comes just before a task leaves its queue.
    fn is_leaving(&self, cpu: CpuId, pairing: &Pairing, now: Time) -> Option<(TaskId, TaskState)> {
        let curr = self.sched.rqs[cpu].curr.task()?;
        let pid = self.known(curr).pid;
        let mut balances = false;
        for next in pairing.ahead(now + PATIENCE) {
            match next.kind {
                Kind::SchedStatRuntime { pid: charged, .. } if charged == pid && !balances => return None,
                Kind::SchedStatRuntime { .. } | Kind::Unknown(_) => {}
                _ if next.cpu != cpu || next.flags.in_interrupt() => {}
                Kind::SchedMigrateTask { dest_cpu, .. } if dest_cpu == cpu => balances = true,
                Kind::SchedSwitch { .. } => return left_by(next, pid).map(|state| (curr, state)),
                _ => return None,
            }
        }
        None
    }

    /// Whether a sleeping task may still be queued: it may not have been owed service when it fell asleep, and its CPU
    /// has not been idle since, which would have dequeued it.
    pub fn may_be_queued(&self, task: TaskId) -> bool {
        self.known(task)
            .may_stay
            .is_some_and(|since| since > self.clocks.went_idle(self.sched.task(task).cpu))
    }

    /// Sleepers on some CPUs of which it is uncertain whether they are still queued, and whether they are queued here.
    pub fn doubtful_sleepers(&self, on: impl Fn(CpuId) -> bool) -> Vec<(TaskId, bool)> {
        let tasks = (0..self.known.len() as u32).map(TaskId);
        tasks
            .filter_map(|task| match self.sched.task(task) {
                entry if !on(entry.cpu) => None,
                entry if entry.se.sched_delayed => Some((task, true)),
                entry if !entry.on_rq && self.may_be_queued(task) => Some((task, false)),
                _ => None,
            })
            .collect()
    }

    /// Dequeues a delayed sleeper, or queues it again if it is not queued.
    pub fn turn_sleeper(&mut self, task: TaskId, now: Time) {
        if self.sched.task(task).se.sched_delayed {
            self.sched.complete_delayed_dequeue(task, now);
        } else if !self.sched.task(task).on_rq {
            self.sched.undo_dequeue(task, now);
        }
    }

    /// Whether a sleeper that is not queued here may still be queued on a CPU.
    pub fn may_keep_sleepers(&self, cpu: CpuId) -> bool {
        let mut tasks = (0..self.known.len() as u32).map(TaskId);
        tasks.any(|task| {
            let entry = self.sched.task(task);
            entry.cpu == cpu && !entry.on_rq && self.may_be_queued(task)
        })
    }

    /// Whether an entity has had more than its share of service whatever the errors are, so that it is not picked.
    pub fn is_surely_ahead(&self, se: SeId) -> bool {
        let (lag, error) = self.lag_of(se);
        lag < -error
    }
}

/// Whether something follows if a task is a delayed sleeper, which balancing may take like any other task. If so, it is kept.
pub fn find_sleeper(shadow: &mut Shadow, task: TaskId, now: Time, is_so: impl FnOnce(&mut Shadow) -> bool) {
    if shadow.sched.task(task).on_rq || !shadow.may_be_queued(task) {
        return;
    }
    let before = shadow.sched.clone();
    shadow.sched.undo_dequeue(task, now);
    if !is_so(shadow) {
        shadow.sched = before;
    }
}

/// Other sleepers on some CPUs had still been queued, or had left.
fn sleepers(case: &Case<'_>, on: impl Fn(CpuId) -> bool) -> impl Iterator<Item = (TaskId, Candidate)> {
    let (shadow, now) = (case.shadow, case.now);
    shadow.doubtful_sleepers(on).into_iter().map(move |(task, queued)| {
        let pid = shadow.known(task).pid;
        let had = if queued { "left the queue" } else { "still been queued" };
        let had = Otherwise::plain(SLEEPER, format!("sleeper {pid} had {had}"));
        let as_if = move |shadow: &mut Shadow, look: Look<'_>| {
            with_copy(shadow, |shadow| shadow.turn_sleeper(task, now), look)
        };
        (task, Candidate::moving(had, as_if))
    })
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    match &case.of {
        Of::Wakeup { wakeup, fate } => of_wakeup(case, wakeup, *fate, candidates),
        Of::Placement { .. } => {}
        Of::Move { .. } => {
            candidates.extend(sleepers(case, |cpu| case.states.contains(&cpu)).map(|(_, value)| value));
        }
        Of::Order { two, .. } => {
            let others = sleepers(case, |cpu| cpu == case.this);
            candidates
                .extend(others.filter(|(task, _)| !two.contains(&SeId(task.0))).map(|(_, value)| value));
        }
    }
}

/// The woken sleeper had still been queued, or had left its queue.
fn of_wakeup(case: &Case<'_>, wakeup: &Wakeup, fate: Fate, candidates: &mut Vec<Candidate>) {
    let (sched, task, now) = (&case.shadow.sched, case.task, case.now);
    let entry = sched.task(task);
    let delays = sched.kernel.has(Feature::DelayDequeue);
    if delays && !entry.on_rq && fate.stays_on(entry.cpu) && fate.by == case.this {
        let had = Otherwise::plain(NAME, "the sleeper had still been queued");
        // In that case no CPU is chosen, and the task stays.
        candidates.push(Candidate::moving(had, |_, _| true));
    }
    if entry.se.sched_delayed || sched.wake_path(wakeup) == WakePath::StillQueued {
        let had = Otherwise::plain(NAME, "the sleeper had left its queue");
        candidates.push(Candidate::moving(had, move |shadow, look| {
            let leaves = |shadow: &mut Shadow| {
                if shadow.sched.task(task).se.sched_delayed {
                    shadow.sched.complete_delayed_dequeue(task, now);
                } else {
                    shadow.sched.task_mut(task).on_rq = false;
                }
            };
            with_copy(shadow, leaves, look)
        }));
    }
}
