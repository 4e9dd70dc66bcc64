//! A recorded wake-up, from its start to the queueing of its task.
//!
//! Our rules are evaluated when the wake-up begins. Its end may come later and on another CPU, and until then other
//! CPUs may change the state that the waker examined. So if the kernel's choice does not follow, the rules are
//! evaluated again after each change, until the CPU that began the wake-up continues.

pub mod open;
pub mod possible;
pub mod search;

use std::mem::take;

use schedlab_sched::{
    Curr, DelayedRequeue, EnqueueFlags, PreemptDecision, Reason, TaskState, WakePath, Wakeup, WakeupDecision,
};
use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind};
use schedlab_units::{Duration, TaskId, Time};

use self::open::Open;
use crate::follow::pairing::Fate;
use crate::follow::running;
use crate::judge::Audit;
use crate::judge::possibilities::Possibilities;
use crate::judge::preempt;
use crate::judge::spare::Spare;
use crate::report::listener::Listener;
use crate::report::verdict::{Answer, Choice, Decision, Verdict};
use crate::unknown::Shadow;
use crate::unknown::about::Reading;
use crate::unknown::delayed_dequeue;
use crate::unknown::idle_scan_limit;
use crate::unknown::in_motion;
use crate::unknown::list::Unknown;
use crate::unknown::sync_flag;
use crate::unknown::wakee_flips;
use crate::unknown::worker_pool;

/// The sync flag and the scan limit are learned only from wake-ups with no other hidden facts than these.
const LEARNED_BESIDE: [Unknown; 4] =
    [Unknown::SyncFlag, Unknown::IdleScanLimit, Unknown::Loads, Unknown::IdleCores];

/// An exiting task that wakes the tasks waiting for its end has left within this time.
const EXIT_PATIENCE: Duration = Duration::micros(3);

/// A switch is usually complete within this time after its event.
const SWITCH_TIME: Duration = Duration::micros(5);

impl<S: Listener> Audit<S> {
    pub(crate) fn waking(&mut self, event: &Event, task: TaskId, prev: CpuId, fate: Option<Fate>) {
        let (this, now) = (event.cpu, event.time);
        let who = self.shadow.known(task).who();
        let mut verdict = Verdict::begun(now, this, Decision::Wakeup, who, Choice::Nothing);
        verdict.hidden = Some(Unknown::Fate);
        let Some(fate) = fate else { return self.give(verdict) };
        verdict.kernel = Choice::Cpu(fate.cpu);
        if fate.by != this && self.shadow.sched.idle_cpu(fate.cpu) {
            self.shadow.slack.learn(fate.at.since(now));
        }
        if self.shadow.sched.task(task).cpu != prev && !self.shadow.sched.task(task).on_rq {
            // It moved without an event.
            self.shadow.gets_off(task, now);
            self.shadow.sched.set_cpu(task, prev);
        }
        let waker = self.shadow.sched.rqs[this].curr.task();
        if let Some(waker) = waker {
            let ahead = self.pairing.ahead(now + EXIT_PATIENCE).find(|next| next.cpu == this);
            let exits = ahead.is_some_and(|next| matches!(next.kind, Kind::SchedProcessExit { .. }));
            self.shadow.sched.task_mut(waker).exiting |= exits;
        }
        let wakeup = Wakeup {
            task,
            waker,
            this_cpu: this,
            sync: false,
            in_task: !event.flags.in_interrupt(),
            current_cpu: false,
        };
        self.shadow.known_mut(task).plainly_woken |= event.flags.has(Flags::HARDIRQ);
        let may_be_on_cpu = fate.stays_on(prev) && fate.by == prev && self.shadow.may_be_on_cpu(task, now);
        let mut open = self.open.begin(Open {
            wakeup,
            fate,
            verdict,
            possible: Possibilities::default(),
            judged: 0,
            applied: false,
            may_be_on_cpu,
            likely_on_cpu: may_be_on_cpu && now.since(self.shadow.known(task).left) <= SWITCH_TIME,
            nobody_chose: false,
        });
        self.judge(&mut open, now);
        self.open.put(this, open);
        if fate.by != this && self.agreed(this) {
            self.commit(this, now);
        }
    }

    /// What the end of a wake-up shows about its beginning: a task that was still queued is not sent through a wake
    /// list, and one that was not can change its CPU. It may have gone to sleep since the wake-up began.
    fn recognise(&mut self, open: &Open, now: Time) {
        let (task, fate) = (open.wakeup.task, open.fate);
        let leaves = fate.migrated || fate.by != open.wakeup.this_cpu;
        if self.shadow.sched.task(task).se.sched_delayed && leaves {
            self.let_go(task, now);
        }
    }

    /// A sleeper has left its queue.
    fn let_go(&mut self, sleeper: TaskId, now: Time) {
        let tries = self.tries(delayed_dequeue::LEFT_ALREADY);
        self.shadow.let_go(sleeper, &self.pairing, tries, now);
    }

    fn judge(&mut self, open: &mut Open, now: Time) {
        self.recognise(open, now);
        self.judge_plainly(open, now);
        if open.verdict.answer == Answer::Differs {
            self.shadow.learned.trusts = false;
            self.judge_plainly(open, now);
            if open.verdict.answer == Answer::Differs {
                self.judge_otherwise(open, now);
            }
            self.shadow.learned.trusts = true;
        }
        open.judged = self.shadow.generation.max(1);
    }

    /// Whether the choice follows in the current state. A state reached after the wake-up began only adds
    /// possibilities.
    fn judge_plainly(&mut self, open: &mut Open, now: Time) {
        let mut possible = possible::of_wakeup(&mut self.shadow, &mut self.spare, &open.wakeup, now);
        let before = std::mem::replace(&mut open.verdict.ours, std::mem::take(&mut possible.list));
        open.verdict.judge();
        let first = open.judged == 0;
        let spare = &mut self.spare;
        if !first && open.verdict.answer == Answer::Differs {
            spare.give_back(std::mem::replace(&mut open.verdict.ours, before));
            spare.give_back_all(possible);
            return;
        }
        if !first {
            open.verdict.answer = Answer::AgreesInSet;
            open.verdict.hidden = Some(Unknown::InMotion);
        }
        spare.give_back(before);
        spare.empty(&mut open.possible);
        open.possible = possible;
        if first {
            self.weigh(open, now);
        }
    }

    /// Loads that the wake-up probably weighed keep their factor for a jiffy.
    fn weigh(&self, open: &Open, now: Time) {
        let (possible, cpu) = (&open.possible, open.fate.cpu);
        if let Some(over) = possible.affine
            && !possible.tells_spread(cpu).unwrap_or(possible.spreads)
        {
            let likely = match possible.tells_flag(cpu) {
                Some(sync) => [!sync, sync],
                None => self.shadow.likely_sync_flags(&open.wakeup),
            };
            for sync in [false, true].into_iter().filter(|&sync| likely[usize::from(sync)]) {
                possible::weigh(&self.shadow, &Wakeup { sync, ..open.wakeup }, over, now);
            }
        }
    }

    /// Whether the choice follows under other assumptions, the likelier ones first.
    fn judge_otherwise(&mut self, open: &mut Open, now: Time) {
        type Judge<S> = fn(&mut Audit<S>, &mut Open, Time);
        let readings: [(Reading, Judge<S>); 4] = [
            (in_motion::ON_CPU, |audit, open, _| audit.judge_on_cpu(open)),
            (in_motion::OF_WAKEUP, Self::judge_in_motion),
            (delayed_dequeue::STILL_QUEUED, |audit, open, _| audit.judge_still_queued(open)),
            (worker_pool::SENT_BACK, Self::judge_sent_back),
        ];
        for (reading, judge) in readings {
            if self.tries(reading) {
                judge(self, open, now);
            }
            if open.verdict.answer != Answer::Differs {
                return;
            }
        }
    }

    /// Whether the choice follows if the dequeue of the task was delayed, or was delayed for longer than here.
    fn judge_still_queued(&mut self, open: &mut Open) {
        let (task, fate) = (open.wakeup.task, open.fate);
        if fate.stays_on(self.shadow.sched.task(task).cpu)
            && fate.by == open.wakeup.this_cpu
            && self.shadow.may_be_queued(task)
        {
            open.stays(Reason::StillDelayed, Unknown::DelayedDequeue);
        }
    }

    /// Whether the choice follows if the task was still on its CPU.
    fn judge_on_cpu(&mut self, open: &mut Open) {
        let task = open.wakeup.task;
        if open.may_be_on_cpu {
            let asks = |shadow: &mut Shadow| shadow.sched.wake_path(&open.wakeup);
            let path = in_motion::as_if_on_cpu(&mut self.shadow, task, asks);
            if path == WakePath::OnCpuHandover {
                open.stays(Reason::OnCpuHandover, Unknown::InMotion);
            }
        }
    }

    /// Whether the choice follows if a CPU that is just changing its state was seen in the new one.
    fn judge_in_motion(&mut self, open: &mut Open, now: Time) {
        let Audit { shadow, spare, pairing, .. } = self;
        let wakeup = open.wakeup;
        in_motion::find(shadow, wakeup.this_cpu, pairing, now, |shadow| {
            let possible = possible::of_wakeup(shadow, spare, &wakeup, now);
            takes(spare, open, possible, Unknown::InMotion).then_some(())
        });
    }

    /// Whether the choice follows if a worker was sent back to another cache.
    fn judge_sent_back(&mut self, open: &mut Open, now: Time) {
        let Audit { shadow, spare, .. } = self;
        let (task, wakeup) = (open.wakeup.task, open.wakeup);
        worker_pool::find(shadow, task, open.fate.cpu, |shadow| {
            let possible = possible::of_wakeup(shadow, spare, &wakeup, now);
            takes(spare, open, possible, Unknown::WorkerPool)
        });
    }

    fn agreed(&self, cpu: CpuId) -> bool {
        self.open
            .get(cpu)
            .is_some_and(|open| matches!(open.verdict.answer, Answer::Agrees | Answer::AgreesInSet))
    }

    /// A CPU continues, so any wake-up that it began before is decided by now.
    pub(crate) fn rejudge_on(&mut self, event: &Event) {
        let ends = match (self.open.get(event.cpu), &event.kind) {
            (None, _) => return,
            (Some(open), Kind::SchedMigrateTask { pid, .. } | Kind::SchedWakeup { pid, .. }) => {
                self.shadow.find(*pid) != Some(open.wakeup.task)
            }
            // A probe within the wake-up.
            (Some(_), Kind::Unknown(_)) => false,
            (Some(_), Kind::SchedSwitch { .. } | Kind::SchedWaking { .. }) => true,
            // Interrupts are off until the task is queued. So the events for its sleep time, for the charge of the task
            // running at the destination and for the interrupt sent there belong to the wake-up.
            (Some(open), _) => open.fate.by != event.cpu,
        };
        if ends {
            self.commit(event.cpu, event.time);
        }
    }

    /// Open wake-ups may have been decided in the current state.
    pub(crate) fn rejudge_wakeups(&mut self, now: Time) {
        let generation = self.shadow.generation;
        let differs = |open: &Open| open.judged != generation && open.verdict.answer == Answer::Differs;
        let mut from = 0;
        while let Some(cpu) = self.open.find(from, differs) {
            from = cpu.index() + 1;
            if let Some(mut open) = self.open.take(cpu) {
                self.judge(&mut open, now);
                self.open.put(cpu, open);
            }
        }
    }

    /// The wake-up that a CPU began is decided: reports it, and applies it if it goes through a wake list.
    pub(crate) fn commit(&mut self, cpu: CpuId, now: Time) -> Option<PreemptDecision> {
        let mut open = self.open.take(cpu)?;
        if now != Time::MAX {
            open.verdict.nearest = self.why(&open.verdict, |audit| audit.nearest_of_wakeup(&open, now));
        }
        let preempt = self.settle(&open, now);
        self.spare.empty(&mut open.possible);
        let (ours, nearest) = (take(&mut open.verdict.ours), open.verdict.nearest.take());
        self.give(Verdict { ours, nearest, ..open.verdict });
        self.open.give_back(open);
        preempt
    }

    /// Applies a wake-up. Returns what it does to the task running at its destination.
    fn settle(&mut self, open: &Open, now: Time) -> Option<PreemptDecision> {
        let told = !open.nobody_chose && !open.likely_on_cpu;
        if let Some(telling) = &open.possible.telling
            && told
            && let Some(wide) = open.possible.tells_spread(open.fate.cpu)
            && self.tries(wakee_flips::LEARNED)
        {
            self.shadow.learn_flips(&telling.spread, wide);
        }
        if told && open.verdict.hidden.is_none_or(|hidden| LEARNED_BESIDE.contains(&hidden)) {
            if let Some(sync) = open.possible.tells_flag(open.fate.cpu)
                && self.tries(sync_flag::LEARNED)
            {
                self.shadow.learn_sync_flag(&open.wakeup, sync);
            }
            if let Some(by) = open.possible.by_limit.filter(|_| open.verdict.ours.len() == 2)
                && self.tries(idle_scan_limit::LEARNED)
            {
                self.shadow.learned.scan_limits.learn(by, open.fate.cpu);
            }
        }
        if open.applied || now == Time::MAX {
            return None;
        }
        let task = open.wakeup.task;
        let entry = self.shadow.sched.task(task);
        let (on_rq, on_cpu) = (entry.on_rq, entry.cpu);
        let cpu = open.fate.cpu;
        if !on_rq && self.shadow.runs(task) {
            // The task has left its queue and is about to leave its CPU; the wake-up waits for that.
            self.shadow.known_mut(task).handed_over |= cpu == on_cpu && open.fate.by == on_cpu;
            return None;
        }
        let placements = &open.possible.placements;
        let chosen = placements.iter().find(|placement| placement.cpu == cpu).or(placements.first());
        let mut placement = chosen.cloned();
        let path = match (open.wakeup.waker == Some(task), on_rq) {
            (true, _) => WakePath::SelfWake,
            (false, true) if on_cpu == cpu => {
                if entry.se.sched_delayed {
                    WakePath::StillDelayed
                } else {
                    WakePath::StillQueued
                }
            }
            (false, true) => {
                // It was about to leave its CPU when it was woken.
                if self.shadow.sched.rqs[on_cpu].curr != Curr::Task(task) {
                    self.shadow.leave(task, TaskState::Interruptible, now);
                    if self.shadow.sched.task(task).on_rq {
                        self.let_go(task, now);
                    }
                } else {
                    return None;
                }
                WakePath::Select
            }
            (false, false) => WakePath::Select,
        };
        if path != WakePath::Select {
            placement = None;
        }
        if path == WakePath::StillQueued && open.fate.by != open.wakeup.this_cpu {
            self.shadow.known_mut(task).handed_over = true;
            return None;
        }
        let mut decision =
            WakeupDecision { path, placement, cpu, remote: open.fate.by != open.wakeup.this_cpu };
        let mut wakeup = open.wakeup;
        if open.nobody_chose {
            // No CPU was chosen, and the wake-up counts no flip.
            (wakeup.waker, decision.placement) = (None, None);
        } else if path == WakePath::Select {
            let stored = decision.placement.as_ref().and_then(|placement| placement.recent_used_cpu);
            self.shadow.known_mut(task).recent_known |= stored.is_some();
            if let Some(waker) = wakeup.waker {
                self.shadow.record_wakee(waker, task, now);
            }
        }
        if on_cpu != cpu {
            self.shadow.gets_off(task, now);
            self.shadow.moved(task, 0);
        }
        if decision.placement.as_ref().is_some_and(|placement| placement.in_turn) {
            self.shadow.rotation_is_shown(wakeup.this_cpu);
        }
        self.shadow.no_other_stopper(task, decision.cpu, now);
        let preempt = self.shadow.sched.apply_wakeup(&wakeup, &decision, now);
        if self.shadow.sched.task(task).on_rq {
            self.shadow.queued(task);
        }
        self.shadow.generation += 1;
        preempt
    }

    /// A waker charges a task. If it wakes a delayed sleeper queued with that task, or whose group is, it has
    /// evaluated the sleeper's lag before and requeued it accordingly.
    ///
    /// Kernel: ttwu_runnable(), kernel/sched/core.c; requeue_delayed_entity(), kernel/sched/fair.c, v6.12.
    pub(crate) fn requeue(&mut self, event: &Event, charged: TaskId) {
        if self.shadow.sched.kernel.rules.delayed_requeue != DelayedRequeue::ZeroIfEligible {
            return;
        }
        let Some(open) = self.open.get(event.cpu) else { return };
        let (task, fate) = (open.wakeup.task, open.fate);
        let entry = self.shadow.sched.task(task);
        if fate.by != event.cpu || self.shadow.sched.task(charged).cpu != fate.cpu {
            return;
        }
        if !entry.on_rq && entry.policy.is_fair() {
            self.shadow.sched.update_rq_clock(fate.cpu, event.time);
            self.shadow.sched.requeue_delayed_group(task, fate.cpu);
        } else if fate.stays_on(entry.cpu) && entry.se.sched_delayed {
            self.shadow.sched.update_rq_clock(fate.cpu, event.time);
            let flags = EnqueueFlags { delayed: true, ..EnqueueFlags::default() };
            self.shadow.sched.activate(task, fate.cpu, flags, event.time);
        }
    }

    /// A task is queued: directly by its waker, or from a wake list.
    pub(crate) fn woken(&mut self, event: &Event, task: TaskId, target: CpuId) {
        let now = event.time;
        self.woken_running(task, target);
        let before = running::before(&self.shadow, target, task);
        let mut preempt = None;
        if let Some(by) = self.open.find(0, |open| open.wakeup.task == task) {
            preempt = self.commit(by, now);
        }
        if self.shadow.sched.rqs[target].wake_list.contains(&task) {
            self.shadow.no_other_stopper(task, target, now);
            preempt = Some(self.shadow.sched.drain_one(task, now));
            self.shadow.queued(task);
            self.shadow.generation += 1;
        }
        let entry = self.shadow.sched.task(task);
        if !entry.on_rq || entry.cpu != target {
            self.shadow.join(task, target, now);
            preempt = None;
        }
        self.judge_preempt(event, before, task, preempt);
        let asked = preempt::bit_full(event.flags).filter(|_| event.cpu == target);
        self.shadow.queued_on(target, event.cpu, asked, now);
    }
}

/// Accepts the outcome of another assumption, if what happened is among it.
fn takes(spare: &mut Spare, open: &mut Open, possible: Possibilities, hidden: Unknown) -> bool {
    let explains = open.verdict.takes(&possible.list, hidden);
    if explains {
        open.possible = possible;
    } else {
        spare.give_back_all(possible);
    }
    explains
}
