//! Recorded moves between queues: which of them are balancing, and whether our balancer makes them.

pub mod pass;

use schedlab_sched::{Curr, IdleType};
use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind};
use schedlab_units::{Duration, Time};

use self::pass::{Asked, Moved, Occasion};
use crate::follow::leaving;
use crate::judge::Audit;
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Decision, Possible, Verdict};
use crate::unknown::Shadow;
use crate::unknown::cache_home;
use crate::unknown::delayed_dequeue;
use crate::unknown::in_motion;
use crate::unknown::list::Unknown;

/// A stopper that was asked starts within this time.
const STOPPER_PATIENCE: Duration = Duration::millis(10);

/// The most moves in one pass (sched_nr_migrate), which ends the look ahead for them.
const MOVES_MAX: usize = 32;

impl<S: Listener> Audit<S> {
    /// A queued task is about to be moved.
    pub(crate) fn moving(&mut self, event: &Event, moved: Moved) {
        self.judge_moving(event, moved);
        let ahead = self.pairing.ahead(event.time + STOPPER_PATIENCE);
        let leaves = leaving::leaves(event, ahead);
        if let Some(state) = leaves.filter(|_| moved.to == event.cpu)
            && let Some(prev) = self.shadow.find(event.pid)
        {
            // Only a CPU whose last task has left its queue pulls a task on its way to idle.
            self.shadow.leave_early(prev, event.cpu, state, event.time);
        }
    }

    fn judge_moving(&mut self, event: &Event, moved: Moved) {
        let passed = &mut self.passed[event.cpu];
        if let Some(at) = passed.iter().position(|&task| task == moved.task) {
            passed.remove(at);
            return;
        }
        passed.clear();
        if !self.wakings_recorded && self.shadow.was_asleep(moved.task) {
            return;
        }
        let ahead = self.pairing.ahead(event.time + STOPPER_PATIENCE);
        match pass::occasion(&self.shadow, self.stopper_asked[moved.from].is_some(), event, moved, ahead) {
            Occasion::PushPull => self.judge_push(event, moved),
            Occasion::Other => {}
            Occasion::Active => {
                if let Some(verdict) = self.stopper_asked[moved.from].take()
                    && verdict.kernel == pass::choice(&self.shadow, moved)
                {
                    self.give(verdict);
                }
            }
            Occasion::Pass(by, idle) => {
                if idle == IdleType::NewlyIdle && self.shadow.sched.rqs[by].curr == Curr::Idle {
                    // It has picked its next task, so delayed sleepers have left its queue.
                    self.shadow.sched.choose_next(by);
                }
                let asked = Asked { by, idle, active: false };
                let rest = self.rest_of_pass(event, moved);
                for moved in std::iter::once(moved).chain(rest) {
                    let mut verdict = self.judge_move(event, moved, asked);
                    if verdict.answer == Answer::Differs && idle != IdleType::NewlyIdle {
                        let others = pass::idle_beside(&self.shadow, moved);
                        let mut others =
                            others.into_iter().map(|by| self.judge_move(event, moved, Asked { by, ..asked }));
                        verdict = others.find(|other| other.answer != Answer::Differs).unwrap_or(verdict);
                    }
                    if verdict.answer == Answer::Differs && self.shadow.was_never_queued(moved.task) {
                        // The task has waited there since before the recording, and so may others.
                        verdict.without(Unknown::Unmet);
                    }
                    verdict.nearest =
                        self.why(&verdict, |audit| audit.nearest_of_move(moved, asked, event.time));
                    self.give(verdict);
                    self.passed[event.cpu].push(moved.task);
                }
                self.passed[event.cpu].remove(0);
            }
        }
    }

    /// Moves between the same CPUs that follow immediately: one pass decided them all.
    fn rest_of_pass(&self, event: &Event, moved: Moved) -> Vec<Moved> {
        let own = self.pairing.ahead(event.time + STOPPER_PATIENCE).filter(|next| next.cpu == event.cpu);
        own.map_while(|next| match next.kind {
            Kind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. }
                if (orig_cpu, dest_cpu) == (moved.from, moved.to) =>
            {
                self.shadow.find(pid).map(|task| Moved { task, ..moved })
            }
            _ => None,
        })
        .take(MOVES_MAX)
        .collect()
    }

    /// A stopper is woken. If it moves a task, the decision to request it is judged now: once the stopper runs, the
    /// interrupted task no longer does.
    pub(crate) fn stopper_asked(&mut self, event: &Event, comm: Comm, of: CpuId) {
        if !comm.as_bytes().starts_with(b"migration/") {
            return;
        }
        self.stopper_asked[of] = None;
        if event.cpu == of {
            return self.exec_asked(event, of);
        }
        let moves = self.pairing.ahead(event.time + STOPPER_PATIENCE).find_map(|next| match next.kind {
            Kind::SchedMigrateTask { pid, orig_cpu, dest_cpu, .. }
                if next.cpu == of && orig_cpu == of && next.comm == comm =>
            {
                Some((pid, dest_cpu))
            }
            _ => None,
        });
        let Some((pid, to)) = moves else { return };
        let Some(task) = self.shadow.find(pid).filter(|_| self.shadow.has_cpu(to)) else { return };
        let idle = match (event.flags.in_interrupt(), self.shadow.sched.rqs[to].curr) {
            (false, _) if to == event.cpu => IdleType::NewlyIdle,
            // A stopper asked in task context for another CPU: an affinity was changed.
            (false, _) => return,
            (true, Curr::Idle) => IdleType::Idle,
            (true, _) => IdleType::NotIdle,
        };
        let asked = Asked { by: to, idle, active: true };
        let moved = Moved { task, from: of, to };
        let mut verdict = self.judge_move(event, moved, asked);
        verdict.nearest = self.why(&verdict, |audit| audit.nearest_of_move(moved, asked, event.time));
        self.stopper_asked[of] = Some(verdict);
    }

    fn judge_move(&mut self, event: &Event, moved: Moved, asked: Asked) -> Verdict {
        let (who, choice) = (self.shadow.known(moved.task).who(), pass::choice(&self.shadow, moved));
        let mut verdict = Verdict::begun(event.time, event.cpu, Decision::Balance, who, choice);
        let now = event.time;
        verdict.ours = ask_pass(&mut self.shadow, moved, asked, now);
        verdict.judge();
        if verdict.answer == Answer::Differs && self.tries(in_motion::OF_MOVE) {
            let (at, pairing) = ((event.cpu, now), &self.pairing);
            in_motion::find_of_move(&mut self.shadow, at, pairing, moved.to, |shadow| {
                verdict.takes(&ask_pass(shadow, moved, asked, now), Unknown::InMotion)
            });
        }
        if verdict.answer == Answer::Differs && self.tries(delayed_dequeue::MOVE_OF_SLEEPER) {
            let takes = |shadow: &mut Shadow| {
                verdict.takes(&ask_pass(shadow, moved, asked, now), Unknown::DelayedDequeue)
            };
            delayed_dequeue::find_sleeper(&mut self.shadow, moved.task, now, takes);
        }
        let by_cache = self.shadow.sched.sched_cache_active() && self.tries(cache_home::MOVE_TO_HOME);
        if verdict.answer == Answer::Differs && by_cache {
            cache_home::find(&mut self.shadow, moved.task, moved.to, |shadow| {
                verdict.takes(&ask_pass(shadow, moved, asked, now), Unknown::CacheHome)
            });
        }
        verdict
    }
}

/// What a pass may move.
pub(crate) fn ask_pass(shadow: &mut Shadow, moved: Moved, asked: Asked, now: Time) -> Vec<Possible> {
    match asked.idle {
        IdleType::NewlyIdle => {
            as_if_left(shadow, moved.to, |shadow| pass::of_pass(shadow, asked, moved, now))
        }
        _ => pass::of_pass(shadow, asked, moved, now),
    }
}

/// Runs `look` on the shadow with the last task of a CPU already off its queue: a CPU that balances because it becomes
/// idle has dequeued the task, and the trace shows that only at the switch.
fn as_if_left<T>(shadow: &mut Shadow, cpu: CpuId, look: impl FnOnce(&mut Shadow) -> T) -> T {
    let before = in_motion::counts(shadow, cpu);
    in_motion::set_counts(shadow, cpu, [0; 4]);
    let result = look(shadow);
    in_motion::set_counts(shadow, cpu, before);
    result
}
