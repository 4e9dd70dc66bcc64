//! A recorded fork, from the birth of a task to its first queueing.
//!
//! The kernel chooses just before the task is queued, so the state at that time is tried first. If it does not explain
//! the choice, the earlier states since the birth are considered.

pub mod possible;

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Kind};
use schedlab_units::{Duration, Pid, TaskId, Time};

use self::possible::{Forked, Forking};
use crate::follow::running;
use crate::judge::Audit;
use crate::judge::possibilities::Possibilities;
use crate::judge::spare::Spare;
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Choice, Decision, Verdict};
use crate::unknown::Shadow;
use crate::unknown::about::Reading;
use crate::unknown::delayed_dequeue;
use crate::unknown::idle_stamp;
use crate::unknown::imbalance_mark;
use crate::unknown::in_motion;
use crate::unknown::list::Unknown;
use crate::unknown::loads;

/// A new task is woken within this time.
const FORK_PATIENCE: Duration = Duration::millis(10);

impl<S: Listener> Audit<S> {
    /// A task is born; a look ahead shows where it will go and its priority.
    pub(crate) fn forked(&mut self, event: &Event, parent: TaskId, pid: Pid, comm: Comm) {
        let (this, now) = (event.cpu, event.time);
        let woken = self.pairing.ahead(now + FORK_PATIENCE).find_map(|next| match next.kind {
            Kind::SchedWakeupNew { pid: woken, target_cpu, prio, .. } if woken == pid => {
                Some((target_cpu, prio))
            }
            _ => None,
        });
        let task = self.shadow.fork(parent, pid, &comm, woken.map(|(_, prio)| prio), now);
        let chosen = woken.map(|(target, _)| target).filter(|&cpu| self.shadow.has_cpu(cpu));
        self.forking.push(Forking { task, this, at: now, chosen, possible: None });
    }

    /// Forks that are not queued yet may have been placed in the current state.
    pub(crate) fn rejudge_forks(&mut self, now: Time) {
        // A trace without sched_wakeup_new never shows these wake-ups.
        self.forking.retain(|forking| now.since(forking.at) <= FORK_PATIENCE * 2);
        for at in 0..self.forking.len() {
            let Forking { task, this, chosen, ref possible, .. } = self.forking[at];
            let Some(chosen) = chosen else { continue };
            let fork = Forked { task, this, chosen, now };
            let found = possible::if_possible(&mut self.shadow, &mut self.spare, fork);
            let found = match possible {
                None => found.or_else(|| self.fork_in_motion(fork)),
                Some(_) => found,
            };
            if found.is_some()
                && let Some(before) = std::mem::replace(&mut self.forking[at].possible, found)
            {
                self.spare.give_back_all(before);
            }
        }
    }

    /// Where a fork may lead if a CPU that is just changing its state was seen in the new one; `None` if that does not
    /// include the kernel's choice.
    fn fork_in_motion(&mut self, fork: Forked) -> Option<Possibilities> {
        let Audit { shadow, spare, pairing, .. } = self;
        in_motion::find(shadow, fork.this, pairing, fork.now, |shadow| {
            possible::if_possible(shadow, spare, fork)
        })
    }

    pub(crate) fn woken_new(&mut self, event: &Event, task: TaskId, target: CpuId) {
        let (this, now) = (event.cpu, event.time);
        let forking = self.forking.iter().position(|forking| forking.task == task);
        let forking = forking.map(|at| self.forking.remove(at));
        let forked = forking.as_ref().map_or(now, |forking| forking.at);
        let earlier = forking.and_then(|forking| forking.possible);
        let fork = Forked { task, this, chosen: target, now };
        let mut last = possible::of_fork(&mut self.shadow, &mut self.spare, fork);
        let who = self.shadow.known(task).who();
        let mut verdict = Verdict::begun(now, this, Decision::Fork, who, Choice::Cpu(target));
        verdict.ours = std::mem::take(&mut last.list);
        self.spare.give_back_all(last);
        verdict.judge();
        if self.tries(loads::LEARNED_REST) {
            let open = verdict.ours.iter().filter(|ours| ours.hidden == Some(Unknown::Loads)).count();
            let likeliest = verdict.ours.first().is_some_and(|ours| ours.choice == verdict.kernel);
            self.shadow.learn_rest(open, verdict.answer != Answer::Differs, likeliest);
        }
        // The last state is the likeliest, since the choice comes just before the event.
        if verdict.answer == Answer::Differs {
            let (shadow, spare) = (&mut self.shadow, &mut self.spare);
            let tries = |reading| self.options.without != Some(reading);
            type Judge = fn(&mut Shadow, &mut Spare, Forked) -> Option<Possibilities>;
            let later: [(Reading, Unknown, Judge); 2] = [
                (idle_stamp::FORK_HELD, Unknown::IdleStamp, possible::with_held),
                (imbalance_mark::FORK_MARK, Unknown::ImbalanceMark, possible::with_mark),
            ];
            let averages =
                tries(loads::FORK_AVERAGES).then(|| possible::if_possible(shadow, spare, fork)).flatten();
            let explained = averages.map(|found| (found, Unknown::Loads));
            let earlier = earlier.filter(|_| tries(in_motion::OF_FORK));
            let mut explained = explained.or(earlier.map(|found| (found, Unknown::InMotion)));
            for (reading, hidden, judge) in later {
                if explained.is_none() && tries(reading) {
                    explained = judge(shadow, spare, fork).map(|found| (found, hidden));
                }
            }
            if let Some((found, hidden)) = explained {
                verdict.ours = found.list;
                verdict.answer = Answer::AgreesInSet;
                verdict.hidden = Some(hidden);
            }
        } else if let Some(earlier) = earlier {
            self.spare.give_back_all(earlier);
        }
        verdict.nearest = self.why(&verdict, |audit| audit.nearest_of_fork(fork, &verdict.ours));
        self.give(verdict);
        // A CPU that looks for work has dequeued its last task; this one may be queued before that one is switched out.
        // Only a recording with charges shows that.
        if self.shadow.runtime_told && self.tries(delayed_dequeue::LEFT_ALREADY) {
            self.shadow.leave_if_leaving(target, &self.pairing, now);
        }
        let before = running::before(&self.shadow, target, task);
        self.shadow.no_other_stopper(task, target, now);
        let preempt = self.shadow.sched.apply_fork(task, target, now);
        self.shadow.placed(task, forked, now);
        self.shadow.generation += 1;
        self.judge_preempt(event, before, task, Some(preempt));
        self.shadow.queued_on(target, this, None, now);
    }
}
