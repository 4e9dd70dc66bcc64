//! Follows a trace: what each event means, which decisions it shows, and what is applied to the shadow.

use std::collections::VecDeque;

use schedlab_sched::{Curr, Kernel};
use schedlab_topology::{CpuId, PerCpu, Topology};
use schedlab_trace::read::Lost;
use schedlab_trace::{Event, Flags, Hotplugs, Kind, NullSink, Sink};
use schedlab_units::{Duration, Pid, TaskId, Time};

use crate::balance::Moved;
use crate::exec::Execs;
use crate::forking::Forking;
use crate::grouping::{Grouping, is_session};
use crate::leaving;
use crate::listener::Listener;
use crate::opens::Opens;
use crate::options::Options;
use crate::pairing::{Known, Pairing, by_itself};
use crate::pick;
use crate::preempt::Asked;
use crate::probe::Comparison;
use crate::report::{AuditReport, Tally};
use crate::runtime;
use crate::shadow::Shadow;
use crate::steady::Steady;
use crate::verdict::{Answer, Choice, Decision, Hidden, Verdict};

/// A task that was detached from one queue is attached to another within this time.
pub(crate) const ATTACH_PATIENCE: Duration = Duration::millis(1);

/// Judges a trace and passes the events on to `sink`.
pub struct Audit<S = NullSink> {
    pub(crate) options: Options,
    pub(crate) shadow: Shadow,
    pub(crate) pairing: Pairing,
    pub(crate) open: Opens,
    pub(crate) forking: Vec<Forking>,
    pub(crate) execs: Execs,
    /// For each CPU, whether its task has been asked to make way and the trace has not yet shown whether it did.
    pub(crate) asked: PerCpu<Asked>,
    /// For each CPU, tasks whose move was judged together with the first move of the same pass.
    pub(crate) passed: PerCpu<Vec<TaskId>>,
    /// The recording contains moves (`sched_migrate_task`), and starts of wake-ups (`sched_waking`).
    pub(crate) moves_recorded: bool,
    pub(crate) wakings_recorded: bool,
    /// Generation of the state in which open decisions were last judged.
    judged: u64,
    steady: Steady,
    hotplugs: Hotplugs,
    /// Number of events processed.
    taken: u64,
    /// Where the recorder lost events: the number of events processed before the loss, and the CPU if known.
    losses: VecDeque<(u64, Option<CpuId>)>,
    begun: bool,
    /// Indexed by kind of decision.
    tallies: [Tally; Decision::ALL.len()],
    /// Comparison with the values that probes recorded.
    compared: Comparison,
    pub(crate) report: AuditReport,
    sink: S,
}

impl Audit {
    /// Creates an audit of a recording of a machine against the rules of a kernel.
    pub fn new(topology: &Topology, kernel: &Kernel, options: Options) -> Audit {
        Audit::with_sink(topology, kernel, options, NullSink)
    }
}

impl<S: Listener> Sink for Audit<S> {
    fn event(&mut self, event: &Event) {
        self.take(event.clone());
    }

    fn take(&mut self, mut event: Event) {
        event.time = self.steady.at(event.time);
        self.moves_recorded |= matches!(event.kind, Kind::SchedMigrateTask { .. });
        self.wakings_recorded |= matches!(event.kind, Kind::SchedWaking { .. });
        self.pairing.push(event);
        self.taken += 1;
        self.follow_all(false);
    }

    fn lost(&mut self, lost: &Lost) {
        self.losses.push_back((self.taken, lost.cpu));
    }
}

impl<S: Listener> Audit<S> {
    /// Creates an audit that passes the events on.
    pub fn with_sink(topology: &Topology, kernel: &Kernel, options: Options, sink: S) -> Audit<S> {
        let mut shadow = Shadow::new(topology, kernel, options.affinity.clone());
        shadow.groups_hidden = options.groups_hidden;
        shadow.policies = options.policies.clone();
        shadow.without = options.without;
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
            moves_recorded: false,
            wakings_recorded: false,
            judged: 0,
            steady: Steady::default(),
            hotplugs: Hotplugs::new(offline(topology)),
            taken: 0,
            losses: VecDeque::new(),
            begun: false,
            tallies: Default::default(),
            compared: Comparison::default(),
            report: AuditReport::default(),
            sink,
        }
    }

    /// Finishes at the end of the trace.
    pub fn finish(mut self) -> (AuditReport, S) {
        self.follow_all(true);
        for cpu in self.shadow.cpus() {
            self.commit(cpu, Time::MAX);
        }
        for (decision, tally) in Decision::ALL.into_iter().zip(&self.tallies) {
            *self.report.of_mut(decision) = tally.report();
        }
        self.report.carried = self.compared.facts();
        let shadow = &self.shadow;
        self.report.unseen_switches = shadow.unseen_switches;
        let first_born = shadow.first_born.as_ref();
        self.report.inherited = first_born.map(|(flips, born)| shadow.guesses.inherited(flips, *born));
        (self.report, self.sink)
    }

    /// Processes the events that need not wait.
    fn follow_all(&mut self, end: bool) {
        while let Some(known) = self.pairing.pop(end) {
            self.follow(&known);
            self.pairing.give_back(known);
        }
    }

    fn follow(&mut self, known: &Known) {
        let event = &known.event;
        while self.losses.front().is_some_and(|(after, _)| *after <= self.report.events) {
            let cpu = self.losses.pop_front().and_then(|(_, cpu)| cpu);
            self.shadow.events_lost(cpu);
        }
        self.report.events += 1;
        // Decision events of a simulated trace are no evidence: their flags describe the state before the decision.
        if self.shadow.has_cpu(event.cpu) && !event.kind.is_decision() {
            if !std::mem::replace(&mut self.begun, true) {
                self.shadow.begin(event.time);
            }
            self.shadow.let_sleepers_go(event.time);
            self.shadow.advance(event.time);
            self.shadow.ticks_before(event);
            self.shadow.slice_timer(event.cpu, event.time);
            if let Some((cpu, step)) = self.hotplugs.event(event) {
                self.shadow.hotplug(cpu, step, event);
            }
            self.meet_running(event);
            self.shadow.sync_curr(event.cpu, event.pid, &event.comm, event.time);
            self.shadow.idles(event);
            self.rejudge_on(event);
            self.shown(event);
            self.apply(known);
            self.shadow.clocks.act(event.cpu, event.time);
            if self.judged != self.shadow.generation {
                self.judged = self.shadow.generation;
                self.rejudge(event.time);
            }
        }
        self.sink.event(event);
    }

    /// Registers a running task that was not seen before, with the priority that a later event shows.
    fn meet_running(&mut self, event: &Event) {
        if event.pid != Pid::IDLE && self.shadow.find(event.pid).is_none() {
            let prio = self.pairing.prio_ahead(event.pid);
            self.shadow.task(event.pid, &event.comm, prio, event.cpu, event.time);
        }
    }

    /// The state has changed, so open decisions may have been made in the new state.
    fn rejudge(&mut self, now: Time) {
        self.rejudge_forks(now);
        self.rejudge_wakeups(now);
        self.ask_execs(now);
    }

    fn apply(&mut self, known: &Known) {
        let Known { ref event, fate, later_prio, of_wakeup, .. } = *known;
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
                self.forked(event, parent, child_pid, child_comm);
            }
            Kind::SchedWakeupNew { comm, pid, prio, target_cpu } if self.shadow.has_cpu(target_cpu) => {
                let task = self.shadow.new_task(event, pid, &comm, prio);
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
                    runtime::charge_ahead(&mut self.shadow, dest_cpu, event, ahead);
                    let moved: Vec<TaskId> =
                        std::iter::once(task).chain(self.passed[cpu].iter().copied()).collect();
                    let arrived = self.shadow.migrate(&moved, dest_cpu, now);
                    self.moved_there(arrived);
                    self.shadow.queued_on(dest_cpu, cpu, None, now);
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
                let clock = self.shadow.schedule_clock(cpu, now);
                let mut handed_over = None;
                if prev_pid != Pid::IDLE {
                    let prev = self.shadow.task(prev_pid, &prev_comm, Some(prev_prio), cpu, now);
                    if prev_state.is_runnable() {
                        // A task that is runnable and still gives way to the idle task is out of quota.
                        self.shadow.quota_shown |= next_pid == Pid::IDLE;
                    } else {
                        self.shadow.leave(prev, leaving::left_as(prev_state), clock.read);
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
                self.switching(event, next, clock.read);
                if let Some(prev) = handed_over {
                    self.shadow.hand_over(prev);
                }
                self.shadow.run(cpu, next, clock, now);
                if next == Curr::Idle {
                    self.shadow.emptied(cpu, now);
                }
                if let Some(prev) = self.shadow.find(prev_pid) {
                    self.shadow.settled(prev, now);
                }
                if let Some(prev) = handed_over.filter(|_| prev_state.is_dead()) {
                    self.shadow.dead.died(prev, now);
                }
            }
            Kind::SchedStatRuntime { pid, runtime, vruntime, .. } => {
                if let Some(task) = self.shadow.find(pid) {
                    self.requeue(event, task);
                    let asked = self.shadow.is_asked(cpu);
                    runtime::charge(&mut self.shadow, task, runtime, vruntime, now);
                    self.shadow.ticks_with(cpu, asked);
                    if pid == event.pid && event.flags.has(Flags::HARDIRQ) {
                        self.shadow.expire_slice_timer(cpu, now);
                    }
                    if pid == event.pid && by_itself(event.flags) {
                        // Neither a tick nor a switch caused this charge, so the task made a system call, such as one
                        // that changes its priority.
                        let known = self.shadow.known_mut(task);
                        known.later_prio = later_prio.or(known.later_prio);
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
                    self.shadow.new_program(task, now);
                }
            }
            Kind::Affinity(ref told) => self.shadow.told_mask(told.pid, &told.allowed, cpu),
            Kind::CpuIdle { state, cpu } if self.shadow.has_cpu(cpu) => {
                self.shadow.idle_state(cpu, state);
                self.stays_idle(event, state);
            }
            Kind::TaskNewtask { pid, clone_flags, .. } => self.shadow.grouping.cloned(pid, clone_flags),
            Kind::CgroupMkdir { root, id, ref path, .. } => self.shadow.grouping.made(root, id, path),
            Kind::Group(ref told) => self.shadow.given(told, now),
            Kind::CgroupAttachTask { dst_root, ref dst_path, pid, .. } => {
                self.shadow.attached(dst_root, pid, dst_path, now);
            }
            Kind::Unknown(ref unknown) if unknown.name_bytes() == b"sys_exit_setsid" => {
                if let Some(task) = self.shadow.find(event.pid).filter(|_| is_session(unknown.text())) {
                    self.shadow.began_session(task, now);
                }
            }
            Kind::Unknown(ref unknown) => self.compared.add(&self.shadow, unknown),
            _ => {}
        }
    }

    /// Whether a pick that differs is explained by the largest errors of virtual times, or by a fact that no event
    /// shows.
    fn judge_pick_otherwise(
        &mut self,
        verdict: &mut Verdict,
        next: Curr,
        clock: Time,
        has_quota_again: bool,
    ) {
        let cpu = verdict.cpu;
        let found = pick::of_switch(&mut self.shadow, cpu, next, clock);
        self.shadow.spare.give_back(std::mem::replace(&mut verdict.ours, found));
        verdict.judge();
        if verdict.answer == Answer::Differs {
            self.judge_throttled(verdict, next, clock);
        }
        if verdict.answer == Answer::Differs && has_quota_again {
            verdict.without(Hidden::Quota);
        }
        if verdict.answer == Answer::Differs && !self.shadow.groups_hidden {
            let kernel = verdict.kernel;
            let is_so = |shadow: &mut Shadow| {
                let found = pick::of_switch(shadow, cpu, next, clock);
                let is_so = found.iter().any(|possible| possible.choice == kernel);
                shadow.spare.give_back(found);
                is_so
            };
            if self.shadow.find_lost_turn(cpu, is_so) {
                verdict.answer = Answer::AgreesInSet;
                verdict.hidden = Some(Hidden::LostTurn);
            }
        }
    }

    /// A CPU switches; its scheduler used the time `clock`.
    fn switching(&mut self, event: &Event, next: Curr, clock: Time) {
        let Kind::SchedSwitch { prev_pid, prev_comm, .. } = event.kind else { return };
        let (cpu, now) = (event.cpu, event.time);
        let has_quota_again = self.shadow.unthrottle(next, cpu, clock);
        let has_budget_again = next.task().is_some_and(|next| self.shadow.replenish(next, clock));
        let passed_over = self.shadow.passes_over(cpu, next, clock);
        let slice = self.judge_slice(event, next, clock).filter(|_| !has_quota_again);
        match slice.as_ref().and_then(|slice| slice.hidden) {
            Some(Hidden::Yield) => self.shadow.sched.yield_task(cpu, clock),
            Some(Hidden::Quota) => {
                if let Some(prev) = self.shadow.find(prev_pid) {
                    self.shadow.throttle(prev, clock);
                }
            }
            _ => {}
        }
        let idle = Choice::Task(Pid::IDLE);
        let mut verdict = Verdict::begun(now, cpu, Decision::Pick, (prev_pid, prev_comm), idle);
        verdict.hidden = Some(Hidden::Unmet);
        let mut here = true;
        if let Curr::Task(task) = next {
            verdict.kernel = Choice::Task(self.shadow.known(task).pid);
            let entry = self.shadow.sched.task(task);
            here = entry.on_rq && entry.cpu == cpu && !entry.se.sched_delayed;
        }
        verdict.ours = pick::of_switch(&mut self.shadow, cpu, next, clock);
        if here {
            verdict.judge();
        }
        if verdict.answer == Answer::Differs {
            self.shadow.trusts = false;
            self.judge_pick_otherwise(&mut verdict, next, clock, has_quota_again);
            self.shadow.trusts = true;
        }
        if verdict.answer == Answer::Differs
            && let Some((task, to)) = self.moved_unseen(&verdict)
        {
            verdict.without(Hidden::UnseenMove);
            self.shadow.migrate(&[task], to, now);
        }
        if self.shadow.groups_hidden {
            // Any waiting task may come first.
            verdict.doubt(verdict.ours.len());
        }
        if has_budget_again {
            verdict.without(Hidden::Deadlines);
        }
        self.may_have_budget(&mut verdict, &passed_over);
        verdict.nearest = self.why(&verdict, |audit| {
            let ours = audit.shadow.sched.choose_next(cpu).next;
            audit.nearest_of_pick(cpu, ours, next, clock)
        });
        let surprise = verdict.ours.first().is_some_and(|ours| ours.choice != verdict.kernel);
        let answer = verdict.answer;
        self.give(verdict);
        if let Some(slice) = slice {
            self.give(slice);
        }
        if let Curr::Task(task) = next {
            self.shadow.join(task, cpu, now);
            if surprise && here {
                pick::learn(&mut self.shadow, task, answer);
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
            && let Some(hidden) = self.hangs_on(&verdict)
        {
            verdict.without(hidden);
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

    /// The fact, shown by no event, that may have led the kernel to another choice whatever the rules say.
    pub(crate) fn hangs_on(&self, verdict: &Verdict) -> Option<Hidden> {
        if let (Decision::Wakeup | Decision::Fork | Decision::Exec, Some(ours)) =
            (verdict.decision, verdict.ours.first())
            && let Choice::Cpu(cpu) = ours.choice
            && !self.shadow.cpu_known[cpu]
        {
            // It may have been busy all along.
            return Some(Hidden::Unmet);
        }
        if self.shadow.is_unseen(verdict) {
            return Some(Hidden::UnseenSwitch);
        }
        self.shadow.hangs_on_quota(verdict).then_some(Hidden::Quota)
    }

    /// How far the kernel's choice is from ours.
    pub(crate) fn gravity(&self, verdict: &Verdict) -> u64 {
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

/// CPUs of a machine that are offline.
fn offline(topology: &Topology) -> impl Iterator<Item = CpuId> {
    (0..topology.nr_cpus()).map(CpuId::from).filter(|&cpu| !topology.cpu(cpu).online)
}
