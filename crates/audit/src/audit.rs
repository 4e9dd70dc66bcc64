//! Follows a trace: what each event means, which decisions it shows, and what is applied to the shadow.

use std::collections::VecDeque;

use schedlab_sched::{Curr, Kernel};
use schedlab_topology::{CpuId, PerCpu, Topology};
use schedlab_trace::read::Lost;
use schedlab_trace::{Event, Flags, Hotplug, Hotplugs, Kind, NullSink, Sink};
use schedlab_units::{Pid, TaskId, Time};

use crate::follow::clocks::ATTACH_PATIENCE;
use crate::follow::grouping::{Grouping, is_session};
use crate::follow::leaving;
use crate::follow::pairing::{Known, Pairing, by_itself};
use crate::follow::runtime;
use crate::judge::Audit;
use crate::judge::balance::pass::Moved;
use crate::judge::exec::Execs;
use crate::judge::preempt::possible::Asked;
use crate::judge::spare::Spare;
use crate::judge::wakeup::open::Opens;
use crate::options::Options;
use crate::report::counts::AuditReport;
use crate::report::listener::Listener;
use crate::report::probe::Comparison;
use crate::report::verdict::Decision;
use crate::unknown::Shadow;
use crate::unknown::idle_stamp;
use crate::unknown::virtual_time;
use schedlab_recording::Steady;

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
        shadow.heeds_holds = options.without != Some(virtual_time::HELD_UP);
        shadow.grouping = Grouping::new(options.groups.clone());
        Audit {
            shadow,
            options,
            spare: Spare::default(),
            pairing: Pairing::default(),
            open: Opens::new(topology.nr_cpus()),
            forking: Vec::new(),
            execs: Execs::default(),
            asked: PerCpu::new(topology.nr_cpus(), |_| Asked::default()),
            stopper_asked: PerCpu::new(topology.nr_cpus(), |_| None),
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
        self.report.inherited = shadow.learned.family.inherited();
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
                if matches!(step, Hotplug::Deactivating | Hotplug::Dead) {
                    // Its stopper was woken for that, not by a balance pass.
                    self.stopper_asked[cpu] = None;
                }
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
                        // A runnable task that is switched out for the idle task is out of quota.
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
                if self.tries(idle_stamp::IDLE_STATES) {
                    self.shadow.idle_state(cpu, state);
                }
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
}

/// CPUs of a machine that are offline.
fn offline(topology: &Topology) -> impl Iterator<Item = CpuId> {
    (0..topology.nr_cpus()).map(CpuId::from).filter(|&cpu| !topology.cpu(cpu).online)
}
