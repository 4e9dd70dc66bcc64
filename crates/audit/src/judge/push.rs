//! Pushes and pulls of real-time and deadline tasks, compared with our rules.
//!
//! Of several suitable CPUs, each CPU picks the one after its previous pick; the previous pick is known once one has
//! been seen. Deadlines are in no event: of several deadline tasks that wait, any may have the earliest.

use schedlab_sched::{Class, Curr, Push, Reason};
use schedlab_trace::Event;
use schedlab_units::TaskId;

use crate::judge::Audit;
use crate::judge::balance::pass::{Moved, choice};
use crate::report::listener::Listener;
use crate::report::verdict::{Choice, Decision, Numbers, Possible, Verdict};
use crate::unknown::Shadow;
use crate::unknown::deadlines;
use crate::unknown::list::Unknown;

impl<S: Listener> Audit<S> {
    /// A waiting real-time or deadline task is moved, by the CPU on which it waits or by the one that pulls it.
    pub(crate) fn judge_push(&mut self, event: &Event, moved: Moved) {
        if self.shadow.sched.class_of(moved.task) == Class::Dl {
            // Only a task with budget is pushed. The timer that replenishes it requests preemption of the running task
            // and then pushes.
            self.shadow.replenish(moved.task, event.time);
            if self.shadow.sched.curr_class(moved.from) < Class::Dl {
                self.asked_in_vain(moved.from);
            }
        }
        let shadow = &mut self.shadow;
        let (who, choice) = (shadow.known(moved.task).who(), choice(shadow, moved));
        let mut verdict = Verdict::begun(event.time, event.cpu, Decision::Push, who, choice);
        verdict.ours = if moved.to == event.cpu { pulled(shadow, moved) } else { pushed(shadow, moved) };
        if verdict.ours.is_empty() {
            verdict.without(Unknown::Deadlines);
        } else {
            verdict.judge();
        }
        self.give(verdict);
    }
}

/// What the source CPU may push. After this, its previous pick is known.
fn pushed(shadow: &mut Shadow, moved: Moved) -> Vec<Possible> {
    let (from, to) = (moved.from, moved.to);
    let pushes = match shadow.sched.class_of(moved.task) {
        Class::Dl => deadlines::pushes(shadow, moved.task, from, to),
        class => vec![shadow.sched.decide_push(from, from, class)],
    };
    let hidden = (pushes.len() > 1).then_some(Unknown::Deadlines);
    let found = pushes.iter().flat_map(|push| of_push(shadow, moved, push, hidden)).collect();
    let takes_turn = |push: &Push| matches!(push, Push::Moves { task, nearest, .. } if *task == moved.task && nearest.in_turn);
    if pushes.iter().any(takes_turn) {
        shadow.sched.rqs[from].any_cpu = to;
        shadow.rotation_is_shown(from);
    }
    found
}

/// What a push may do.
fn of_push(shadow: &Shadow, moved: Moved, push: &Push, hidden: Option<Unknown>) -> Vec<Possible> {
    let reason = push.reason();
    let Push::Moves { task, to, nearest } = push else {
        return vec![possible(Choice::Nothing, reason, None)];
    };
    let at = |to| choice(shadow, Moved { task: *task, to, ..moved });
    let mut found = vec![possible(at(*to), reason, hidden)];
    if nearest.in_turn && shadow.rotation_is_open(moved.from) {
        let others = nearest.cpus.iter().filter(|cpu| cpu != to);
        found.extend(others.map(|cpu| possible(at(cpu), reason, Some(Unknown::CpuRotation))));
    }
    found
}

/// The task that the destination may pull from the source. The task that leaves the destination is still current in the
/// shadow.
fn pulled(shadow: &mut Shadow, Moved { from, to, task }: Moved) -> Vec<Possible> {
    let at = |shadow: &Shadow, task| choice(shadow, Moved { task, from, to });
    if shadow.sched.class_of(task) == Class::Dl {
        let waiting: Vec<TaskId> = shadow.sched.pushable_dls(from, Some(to)).collect();
        let hidden = (waiting.len() > 1).then_some(Unknown::Deadlines);
        return waiting.iter().map(|&task| possible(at(shadow, task), Reason::PullHigher, hidden)).collect();
    }
    let Curr::Task(leaves) = shadow.sched.rqs[to].curr else { return vec![nobody()] };
    let queue = shadow.sched.rqs[to].rt_queue.clone();
    shadow.sched.rqs[to].rt_queue.retain(|&task| task != leaves);
    let pulled = shadow.sched.decide_pull(to, from, Class::Rt);
    shadow.sched.rqs[to].rt_queue = queue;
    vec![pulled.map_or_else(nobody, |task| possible(at(shadow, task), Reason::PullHigher, None))]
}

fn nobody() -> Possible {
    possible(Choice::Nothing, Reason::PullNothing, None)
}

fn possible(choice: Choice, reason: Reason, hidden: Option<Unknown>) -> Possible {
    Possible { choice, reason: reason.name(), hidden, numbers: Numbers::default() }
}
