//! Following a trace: what each event says, who must be asked, what is applied.

use schedlab_sched::{Curr, Kernel, PreemptDecision, TaskState, WakePath, Wakeup, WakeupDecision};
use schedlab_topology::{CpuId, PerCpu, Topology};
use schedlab_trace::{Comm, Event, Flags, Kind, NullSink, Sink};
use schedlab_units::{Duration, Pid, TaskId, Time};

use crate::balance::{self, Moved};
use crate::exec::Execs;
use crate::fork;
use crate::grouping::{Grouping, is_session};
use crate::listener::Listener;
use crate::motion;
use crate::opens::Opens;
use crate::options::Options;
use crate::pairing::{Fate, Known, Pairing};
use crate::pick;
use crate::placement::{self, Possibilities};
use crate::preempt::{self, Asked};
use crate::probe;
use crate::report::{AuditReport, Tally};
use crate::runtime;
use crate::shadow::Shadow;
use crate::verdict::{Answer, Choice, Decision, Hidden, Verdict};

/// A wake-up that was begun on a CPU and is not committed yet.
pub(crate) struct Open {
    wakeup: Wakeup,
    fate: Fate,
    verdict: Verdict,
    possible: Possibilities,
    /// Generation of the state in which it was judged.
    judged: u64,
    applied: bool,
}

/// A new task is woken within this time.
const FORK_PATIENCE: Duration = Duration::millis(10);

/// A task that was taken from a queue is put on the other within this time.
const ATTACH_PATIENCE: Duration = Duration::millis(1);

/// A task that wakes those who wait for its end is gone so soon after.
const EXIT_PATIENCE: Duration = Duration::micros(3);

/// A fork that was traced and whose child is not queued yet.
struct Forking {
    task: TaskId,
    this: CpuId,
    /// When.
    at: Time,
    /// Where it will go, seen ahead.
    chosen: Option<CpuId>,
    /// What was possible in the last state that allowed for it.
    possible: Option<Possibilities>,
}

/// Judges a trace; the events go on to `sink`.
pub struct Audit<S = NullSink> {
    options: Options,
    pub(crate) shadow: Shadow,
    pub(crate) pairing: Pairing,
    open: Opens,
    forking: Vec<Forking>,
    pub(crate) execs: Execs,
    /// By CPU, whether its task has to make way, which is yet to be seen.
    pub(crate) asked: PerCpu<Asked>,
    /// By CPU, tasks whose move was judged with that of the first of its pass.
    pub(crate) passed: PerCpu<Vec<TaskId>>,
    /// Generation in which the forks were judged last.
    judged: u64,
    begun: bool,
    /// By kind of decision, in its order.
    tallies: [Tally; Decision::ALL.len()],
    report: AuditReport,
    sink: S,
}

impl Audit {
    /// An audit of a recording of a machine against the rules of a kernel.
    pub fn new(topology: &Topology, kernel: &Kernel, options: Options) -> Audit {
        Audit::with_sink(topology, kernel, options, NullSink)
    }
}

impl<S: Listener> Sink for Audit<S> {
    fn event(&mut self, event: &Event) {
        self.pairing.push(event);
        while let Some(known) = self.pairing.pop(false) {
            self.follow(&known);
        }
    }
}

impl<S: Listener> Audit<S> {
    /// An audit that hands the events on.
    pub fn with_sink(topology: &Topology, kernel: &Kernel, options: Options, sink: S) -> Audit<S> {
        let mut shadow = Shadow::new(topology, kernel, options.affinity.clone());
        shadow.groups_hidden = options.groups_hidden;
        shadow.grouping = Grouping::new(options.groups.clone());
        Audit {
            shadow,
            options,
            pairing: Pairing::default(),
            open: Opens::new(topology.nr_cpus()),
            forking: Vec::new(),
            execs: Execs::default(),
            asked: PerCpu::new(topology.nr_cpus(), |_| Asked::default()),
            passed: PerCpu::new(topology.nr_cpus(), |_| Vec::new()),
            judged: 0,
            begun: false,
            tallies: Default::default(),
            report: AuditReport::default(),
            sink,
        }
    }

    /// The end of the trace.
    pub fn finish(mut self) -> (AuditReport, S) {
        while let Some(known) = self.pairing.pop(true) {
            self.follow(&known);
        }
        for cpu in self.shadow.cpus() {
            self.commit(cpu, Time::MAX);
        }
        for (decision, tally) in Decision::ALL.into_iter().zip(&self.tallies) {
            *self.report.of_mut(decision) = tally.report();
        }
        let shadow = &self.shadow;
        let first_born = shadow.first_born.as_ref();
        self.report.inherited = first_born.map(|(flips, born)| shadow.guesses.inherited(flips, *born));
        (self.report, self.sink)
    }

    fn follow(&mut self, known: &Known) {
        let event = &known.event;
        self.report.events += 1;
        if self.shadow.has_cpu(event.cpu) {
            if !std::mem::replace(&mut self.begun, true) {
                self.shadow.begin(event.time);
            }
            self.shadow.advance(event.time);
            self.shadow.sync_curr(event.cpu, event.pid, &event.comm, event.time);
            self.rejudge_on(event);
            self.shown(event);
            self.apply(known);
            self.shadow.turns.act(event.cpu, event.time);
            self.rejudge_all(event.time);
            self.ask_execs(event.time);
        }
        self.sink.event(event);
    }

    fn apply(&mut self, known: &Known) {
        let Known { ref event, fate, later_prio, of_wakeup } = *known;
        let (cpu, now) = (event.cpu, event.time);
        match event.kind {
            Kind::SchedWaking { comm, pid, prio, target_cpu } if self.shadow.has_cpu(target_cpu) => {
                let task = self.shadow.task(pid, &comm, Some(prio), target_cpu, now);
                self.shadow.grown(task);
                self.stopper_asked(event, comm, target_cpu);
                self.waking(event, task, target_cpu, fate);
            }
            Kind::SchedWakeup { comm, pid, prio, target_cpu } if self.shadow.has_cpu(target_cpu) => {
                let task = self.shadow.task(pid, &comm, Some(prio), target_cpu, now);
                self.woken(event, task, target_cpu);
            }
            Kind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
                let parent = self.shadow.task(pid, &comm, None, cpu, now);
                let child = self.shadow.fork(parent, child_pid, &child_comm, now);
                let chosen = self.pairing.ahead(now + FORK_PATIENCE).find_map(|next| match next.kind {
                    Kind::SchedWakeupNew { pid, target_cpu, .. } if pid == child_pid => Some(target_cpu),
                    _ => None,
                });
                let chosen = chosen.filter(|&cpu| self.shadow.has_cpu(cpu));
                self.forking.push(Forking { task: child, this: cpu, at: now, chosen, possible: None });
            }
            Kind::SchedWakeupNew { comm, pid, prio, target_cpu } if self.shadow.has_cpu(target_cpu) => {
                let task = self.shadow.task(pid, &comm, Some(prio), cpu, now);
                let known = self.shadow.known_mut(task);
                (known.later_prio, known.nice_told) = (later_prio, later_prio.is_some());
                self.woken_new(event, task, target_cpu);
            }
            Kind::SchedMigrateTask { comm, pid, prio, orig_cpu, dest_cpu }
                if self.shadow.has_cpu(orig_cpu) && self.shadow.has_cpu(dest_cpu) =>
            {
                let task = self.shadow.task(pid, &comm, Some(prio), orig_cpu, now);
                if !of_wakeup {
                    self.moving(event, Moved { task, from: orig_cpu, to: dest_cpu });
                    let ahead = self.pairing.ahead(now + ATTACH_PATIENCE);
                    runtime::charge_ahead(&mut self.shadow, dest_cpu, cpu, ahead);
                    let moved: Vec<TaskId> =
                        std::iter::once(task).chain(self.passed[cpu].iter().copied()).collect();
                    self.shadow.migrate(&moved, dest_cpu, now);
                }
            }
            Kind::SchedSwitch {
                prev_pid,
                prev_comm,
                prev_prio,
                prev_state,
                next_pid,
                next_comm,
                next_prio,
                ..
            } => {
                let mut handed_over = None;
                if prev_pid != Pid::IDLE {
                    let prev = self.shadow.task(prev_pid, &prev_comm, Some(prev_prio), cpu, now);
                    if !prev_state.is_runnable() {
                        self.shadow.leave(prev, balance::left_as(prev_state), now);
                        self.shadow.known_mut(prev).plainly_woken = prev_state.is_uninterruptible();
                        handed_over = Some(prev);
                    }
                }
                let next = if next_pid == Pid::IDLE {
                    Curr::Idle
                } else {
                    let next = self.shadow.task(next_pid, &next_comm, Some(next_prio), cpu, now);
                    Curr::Task(next)
                };
                self.switching(event, next, prev_pid, prev_comm);
                self.shadow.run(cpu, next, now);
                if let Some(prev) = self.shadow.find(prev_pid) {
                    self.shadow.settled(prev, now);
                }
                if let Some(prev) = handed_over {
                    self.shadow.hand_over(prev);
                }
            }
            Kind::SchedStatRuntime { pid, runtime, .. } => {
                if let Some(task) = self.shadow.find(pid) {
                    runtime::charge(&mut self.shadow, task, runtime, now);
                    let resched = Flags::NEED_RESCHED | Flags::NEED_RESCHED_LAZY;
                    let itself = pid == event.pid && !event.flags.in_interrupt() && !event.flags.has(resched);
                    if itself && self.shadow.known(task).first_run {
                        // No tick and no switch: it asked for something, such as another priority.
                        self.shadow.reprioritise(task, now);
                    }
                }
            }
            Kind::SchedProcessExit { pid, comm, .. } => {
                let task = self.shadow.task(pid, &comm, None, cpu, now);
                self.shadow.sched.task_mut(task).exiting = true;
                self.shadow.left_session(task, now);
            }
            Kind::SchedProcessExec { pid, .. } => {
                if let Some(task) = self.shadow.find(pid) {
                    self.executed(event, task);
                    self.shadow.settled(task, now);
                }
            }
            Kind::TaskNewtask { pid, clone_flags, .. } => self.shadow.grouping.cloned(pid, clone_flags),
            Kind::CgroupAttachTask { dst_root, ref dst_path, pid, .. } => {
                self.shadow.attached(dst_root, pid, dst_path, now);
            }
            Kind::Unknown(ref unknown) if *unknown.name == *"sys_exit_setsid" => {
                if let Some(task) = self.shadow.find(event.pid).filter(|_| is_session(&unknown.text)) {
                    self.shadow.began_session(task, now);
                }
            }
            Kind::Unknown(ref unknown) => probe::compare(&self.shadow, unknown, &mut self.report.carried),
            _ => {}
        }
    }

    fn waking(&mut self, event: &Event, task: TaskId, prev: CpuId, fate: Option<Fate>) {
        let (this, now) = (event.cpu, event.time);
        let who = self.shadow.known(task).who();
        let mut verdict = Verdict::begun(now, this, Decision::Wakeup, who, Choice::Nothing);
        verdict.hidden = Some(Hidden::Fate);
        let Some(fate) = fate else { return self.give(verdict) };
        verdict.kernel = Choice::Cpu(fate.cpu);
        if fate.by != this && self.shadow.sched.idle_cpu(fate.cpu) {
            self.shadow.slack.learn(fate.at.since(now));
        }
        if self.shadow.sched.task(task).cpu != prev && !self.shadow.sched.task(task).on_rq {
            // It moved without being seen.
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
        self.recognise(task, this, fate, now);
        let mut open =
            Open { wakeup, fate, verdict, possible: Possibilities::default(), judged: 0, applied: false };
        self.judge(&mut open, now);
        self.open.put(this, open);
        if fate.by != this && self.agreed(this) {
            self.commit(this, now);
        }
    }

    /// What the end of a wake-up tells of its beginning: a task that was still queued is not
    /// sent over a wake list, and one that was not can change its CPU.
    fn recognise(&mut self, task: TaskId, this: CpuId, fate: Fate, now: Time) {
        let entry = self.shadow.sched.task(task);
        if entry.se.sched_delayed && (fate.migrated || fate.by != this) {
            self.shadow.sched.complete_delayed_dequeue(task, now);
        }
    }

    fn judge(&mut self, open: &mut Open, now: Time) {
        let mut possible = placement::of_wakeup(&mut self.shadow, &open.wakeup, now);
        let first = open.judged == 0;
        let before = std::mem::replace(&mut open.verdict.ours, std::mem::take(&mut possible.list));
        open.verdict.judge();
        let spare = &mut self.shadow.spare;
        if first {
            open.possible = possible;
        } else if open.verdict.answer == Answer::Differs {
            spare.give_back(std::mem::replace(&mut open.verdict.ours, before));
            spare.give_back_all(possible);
        } else {
            open.verdict.answer = Answer::AgreesInSet;
            open.verdict.hidden = Some(Hidden::InMotion);
            spare.give_back(before);
            spare.give_back_all(std::mem::replace(&mut open.possible, possible));
        }
        open.judged = self.shadow.generation.max(1);
        if open.verdict.answer == Answer::Differs {
            self.judge_in_motion(open, now);
        }
    }

    /// Whether what happened follows if a CPU that is just changing its state was seen in
    /// the new one.
    fn judge_in_motion(&mut self, open: &mut Open, now: Time) {
        let ahead = self.pairing.ahead(motion::until(now, self.shadow.slack));
        for changing in motion::changing(&self.shadow, open.wakeup.this_cpu, ahead) {
            let possible = motion::as_if(&mut self.shadow, changing, |shadow| {
                placement::of_wakeup(shadow, &open.wakeup, now)
            });
            let mut verdict = open.verdict.clone();
            verdict.ours.extend(possible.list.iter().cloned());
            verdict.judge();
            if verdict.answer != Answer::Differs {
                verdict.answer = Answer::AgreesInSet;
                verdict.hidden = Some(Hidden::InMotion);
                open.verdict = verdict;
                open.possible = possible;
                return;
            }
        }
    }

    fn agreed(&self, cpu: CpuId) -> bool {
        self.open
            .get(cpu)
            .is_some_and(|open| matches!(open.verdict.answer, Answer::Agrees | Answer::AgreesInSet))
    }

    /// A CPU goes on: what it began before is decided by now.
    fn rejudge_on(&mut self, event: &Event) {
        let ends = match (self.open.get(event.cpu), &event.kind) {
            (None, _) => return,
            (Some(open), Kind::SchedMigrateTask { pid, .. } | Kind::SchedWakeup { pid, .. }) => {
                self.shadow.find(*pid) != Some(open.wakeup.task)
            }
            // A probe within the wake-up.
            (Some(_), Kind::Unknown(_)) => false,
            _ => true,
        };
        if ends {
            self.commit(event.cpu, event.time);
        }
    }

    /// The state has changed: what is open may have been decided in the new one.
    fn rejudge_all(&mut self, now: Time) {
        if std::mem::replace(&mut self.judged, self.shadow.generation) != self.shadow.generation {
            // A trace without sched_wakeup_new never says that they woke.
            self.forking.retain(|forking| now.since(forking.at) <= FORK_PATIENCE * 2);
            for at in 0..self.forking.len() {
                let Forking { task, this, chosen, ref possible, .. } = self.forking[at];
                let Some(chosen) = chosen else { continue };
                let found = fork::if_possible(&mut self.shadow, task, this, chosen, now);
                let found = match possible {
                    None => found.or_else(|| self.fork_in_motion(task, this, chosen, now)),
                    Some(_) => found,
                };
                if found.is_some() {
                    self.forking[at].possible = found;
                }
            }
        }
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

    /// Where a fork may lead if a CPU that is just changing its state was seen in the new
    /// one, if the choice of the kernel is among it.
    fn fork_in_motion(
        &mut self,
        task: TaskId,
        this: CpuId,
        chosen: CpuId,
        now: Time,
    ) -> Option<Possibilities> {
        let ahead = self.pairing.ahead(motion::until(now, self.shadow.slack));
        motion::changing(&self.shadow, this, ahead).into_iter().find_map(|changing| {
            motion::as_if(&mut self.shadow, changing, |shadow| {
                fork::if_possible(shadow, task, this, chosen, now)
            })
        })
    }

    /// The wake-up that a CPU began is decided: it is told, and applied if it goes over a
    /// wake list.
    fn commit(&mut self, cpu: CpuId, now: Time) -> Option<PreemptDecision> {
        let open = self.open.take(cpu)?;
        let preempt = self.settle(&open, now);
        self.shadow.spare.give_back_all(open.possible);
        self.give(open.verdict);
        preempt
    }

    /// Applies a wake-up; what it does to the task that runs where it ends.
    fn settle(&mut self, open: &Open, now: Time) -> Option<PreemptDecision> {
        if let Some((spread, [narrow, wide])) = &open.possible.spread {
            let cpu = &open.fate.cpu;
            match (narrow.contains(cpu), wide.contains(cpu)) {
                (true, false) => self.shadow.guesses.learn(spread, false),
                (false, true) => self.shadow.guesses.learn(spread, true),
                _ => {}
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
            // It has left its queue and is about to leave its CPU, which is waited for.
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
                // It was on its way out when it was woken.
                if self.shadow.sched.rqs[on_cpu].curr != Curr::Task(task) {
                    self.shadow.leave(task, TaskState::Interruptible, now);
                    if self.shadow.sched.task(task).on_rq {
                        self.shadow.sched.complete_delayed_dequeue(task, now);
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
        let decision = WakeupDecision { path, placement, cpu, remote: open.fate.by != open.wakeup.this_cpu };
        if path == WakePath::Select {
            self.shadow.known_mut(task).recent_known = true;
            if let Some(waker) = open.wakeup.waker {
                self.shadow.record_wakee(waker, task, now);
            }
        }
        if on_cpu != cpu {
            self.shadow.moved(task, 0);
        }
        let preempt = self.shadow.sched.apply_wakeup(&open.wakeup, &decision, now);
        if self.shadow.sched.task(task).on_rq {
            self.shadow.queued(task);
        }
        self.shadow.generation += 1;
        preempt
    }

    /// A task is queued: at once by its waker, or from a wake list.
    fn woken(&mut self, event: &Event, task: TaskId, target: CpuId) {
        let now = event.time;
        let before = preempt::before(&self.shadow, target, task);
        let mut preempt = None;
        if let Some(by) = self.open.find(0, |open| open.wakeup.task == task) {
            preempt = self.commit(by, now);
        }
        if self.shadow.sched.rqs[target].wake_list.contains(&task) {
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
    }

    fn woken_new(&mut self, event: &Event, task: TaskId, target: CpuId) {
        let (this, now) = (event.cpu, event.time);
        let forking = self.forking.iter().position(|forking| forking.task == task);
        let forking = forking.map(|at| self.forking.remove(at));
        let forked = forking.as_ref().map_or(now, |forking| forking.at);
        let earlier = forking.and_then(|forking| forking.possible);
        let last = fork::of_fork(&mut self.shadow, task, this, target, now);
        let who = self.shadow.known(task).who();
        let mut verdict = Verdict::begun(now, this, Decision::Fork, who, Choice::Cpu(target));
        verdict.ours = last.list;
        verdict.judge();
        self.learn_of_fork(&verdict);
        // The last state is the likeliest, as the choice comes just before the event.
        if verdict.answer == Answer::Differs {
            let with_loads = |shadow| fork::if_possible(shadow, task, this, target, now);
            let with_held = |shadow| fork::with_held(shadow, task, this, target, now);
            let with_mark = |shadow| fork::with_mark(shadow, task, this, target, now);
            let explained = with_loads(&mut self.shadow).map(|found| (found, Hidden::Loads));
            let explained = explained.or(earlier.map(|found| (found, Hidden::InMotion)));
            let explained =
                explained.or_else(|| with_held(&mut self.shadow).map(|found| (found, Hidden::IdleStamp)));
            let explained =
                explained.or_else(|| with_mark(&mut self.shadow).map(|found| (found, Hidden::ImbalanceMark)));
            if let Some((found, hidden)) = explained {
                verdict.ours = found.list;
                verdict.answer = Answer::AgreesInSet;
                verdict.hidden = Some(hidden);
            }
        }
        self.give(verdict);
        let before = preempt::before(&self.shadow, target, task);
        let preempt = self.shadow.sched.apply_fork(task, target, now);
        self.shadow.placed(task, forked, now);
        self.shadow.generation += 1;
        self.judge_preempt(event, before, task, Some(preempt));
    }

    /// A choice among several that averages leave open tells of those from before the recording:
    /// that they are nothing, if it is the likeliest, and that they are not, if it is none.
    fn learn_of_fork(&mut self, verdict: &Verdict) {
        let open = verdict.ours.iter().filter(|ours| ours.hidden == Some(Hidden::Loads)).count();
        let before = &mut self.shadow.nothing_before;
        match verdict.answer {
            Answer::Differs => *before = 0,
            _ if open >= 2 && verdict.ours[0].choice == verdict.kernel => *before = (*before + 1).min(10),
            _ => {}
        }
    }

    fn switching(&mut self, event: &Event, next: Curr, prev_pid: Pid, prev_comm: Comm) {
        let (cpu, now) = (event.cpu, event.time);
        let idle = Choice::Task(Pid::IDLE);
        let mut verdict = Verdict::begun(now, cpu, Decision::Pick, (prev_pid, prev_comm), idle);
        verdict.hidden = Some(Hidden::Unmet);
        let mut here = true;
        if let Curr::Task(task) = next {
            verdict.kernel = Choice::Task(self.shadow.known(task).pid);
            let entry = self.shadow.sched.task(task);
            here = entry.on_rq && entry.cpu == cpu && !entry.se.sched_delayed;
        }
        verdict.ours = pick::of_switch(&mut self.shadow, cpu, next, now);
        if here {
            verdict.judge();
        }
        if self.shadow.groups_hidden {
            // Whoever waits may come first.
            verdict.doubt(verdict.ours.len());
        }
        let surprise = verdict.ours.first().is_some_and(|ours| ours.choice != verdict.kernel);
        let explained = verdict.answer == Answer::AgreesInSet;
        self.give(verdict);
        self.judge_slice(event, next);
        if let Curr::Task(task) = next {
            self.shadow.join(task, cpu, now);
            if surprise && here {
                pick::learn(&mut self.shadow, task, explained);
            }
        }
    }

    pub(crate) fn give(&mut self, mut verdict: Verdict) {
        if matches!(verdict.decision, Decision::Wakeup | Decision::Fork | Decision::Exec)
            && let Some(task) = self.shadow.find(verdict.pid)
        {
            verdict.doubt(self.shadow.sched.task(task).nr_cpus_allowed as usize);
        }
        if verdict.answer == Answer::Differs
            && let (Decision::Wakeup | Decision::Fork | Decision::Exec, Some(ours)) =
                (verdict.decision, verdict.ours.first())
            && let Choice::Cpu(cpu) = ours.choice
            && !self.shadow.cpu_known[cpu]
        {
            // It may have been busy all the time.
            verdict.without(Hidden::Unmet);
        }
        if verdict.answer == Answer::Differs {
            verdict.gravity = self.gravity(&verdict);
        }
        self.tallies[verdict.decision as usize].count(&verdict);
        if verdict.answer == Answer::Differs {
            self.report.tell(&verdict, self.options.stories);
        }
        self.sink.verdict(&verdict);
        if self.options.keep_verdicts {
            self.report.verdicts.push(verdict);
        } else {
            self.shadow.spare.give_back(verdict.ours);
        }
    }

    /// How far the kernel's choice is from ours.
    fn gravity(&self, verdict: &Verdict) -> u64 {
        let Some(ours) = verdict.ours.first() else { return 0 };
        let between = |a: CpuId, b: CpuId| {
            let domains = self.shadow.sched.domains.walk(a);
            domains.filter(|(_, sd)| !sd.span.contains(b)).count() as u64
        };
        match (ours.choice, verdict.kernel) {
            (Choice::Cpu(ours), Choice::Cpu(theirs)) => between(ours, theirs),
            (Choice::Move { from: a, .. }, Choice::Move { from: b, .. }) => between(a, b),
            _ => ours.numbers.iter().map(|(_, number)| number.unsigned_abs()).max().unwrap_or(0),
        }
    }
}
