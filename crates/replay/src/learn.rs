//! Listens to a recording and writes down what each task did.
//!
//! Work is time on a CPU: from switch to switch, with stretches between which the task was
//! only preempted joined. A sleep is ended by the last `sched_waking` before the task runs
//! again. One in an interrupt, or on an idle CPU, has no waker: the end of such a sleep is a
//! time. One in a task's own context is a step of that task.
//!
//! A waking may come before its sleep: the waker sees the task on its way out and waits.
//! And it may hit a task that never went to sleep. So who woke is settled only when the
//! task is switched in after a sleep; until then a waking is a step that may yet be nothing.
//! So is a call of sched_yield(), until it is known whether the task does that ([`Yields`]). A deadline
//! task that could go on and makes way is out of its budget, and sleeps until it has a new one.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Flags, Kind, Sink, TaskState};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::Placed;

use crate::error::Missing;
use crate::lags::Lags;
use crate::learned::{Begin, Learned, Sleep, Step, Task, TaskIndex};
use crate::passes::Pass;
use crate::yields::Yields;

/// A sink that learns.
#[derive(Debug, Default)]
pub struct Learner {
    learned: Learned,
    /// What is known of each task beside its program.
    lives: Vec<Life>,
    by_pid: BTreeMap<Pid, TaskIndex>,
    cpus: Vec<Curr>,
    /// Since when each CPU is idle, if it is.
    idle_since: Vec<Time>,
    yields: Yields,
    lags: Lags,
    first: Option<Time>,
    has_switches: bool,
    has_wakeups: bool,
}

/// Who is known to run on a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Curr {
    #[default]
    Unknown,
    Idle,
    Task(TaskIndex),
}

/// A task as it is followed.
#[derive(Clone, Debug)]
struct Life {
    state: State,
    comm: Comm,
    prio: i32,
    /// When it was switched in last.
    began: Time,
    /// Work since the last step.
    run: Duration,
    /// Where it was in its program when it was switched in: steps, and work since the last.
    stretch: (usize, Duration),
    waking: Option<Waking>,
    /// When its last sleep without a waker ended.
    last_timer: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    On { since: Time },
    Runnable,
    Asleep { since: Time, served: bool },
    Dead,
}

/// Who leaves a CPU, and how.
struct Left {
    pid: Pid,
    comm: Comm,
    prio: i32,
    state: TaskState,
    /// It could go on, and nobody was queued beside it since it began.
    unasked: bool,
    /// A stopper comes next, before which even a deadline task with a budget makes way.
    for_stopper: bool,
}

/// A waking that may have ended a sleep.
#[derive(Clone, Copy, Debug)]
struct Waking {
    at: Time,
    by: CpuId,
    /// The waker and its step; none for an interrupt.
    waker: Option<(TaskIndex, usize)>,
}

impl Learner {
    /// Nothing learned yet.
    pub fn new() -> Learner {
        Learner::default()
    }

    /// All that was learned.
    ///
    /// # Errors
    /// What the recording lacks.
    pub fn finish(mut self) -> Result<Learned, Missing> {
        if !self.has_switches {
            return Err(Missing::Switches);
        }
        if !self.has_wakeups {
            return Err(Missing::Wakeups);
        }
        let last = self.learned.last;
        for index in 0..self.lives.len() {
            let task = TaskIndex(index as u32);
            if let State::On { .. } = self.lives[index].state {
                self.advance(task, last);
            }
            self.flush(task);
            self.drop_waking(task);
        }
        for (index, task) in self.learned.tasks.iter_mut().enumerate() {
            task.lag = self.lags.owed(index);
            let yields = self.yields.yields(index);
            task.steps.retain(|step| *step != Step::Nothing && (yields || *step != Step::Yield));
            // What turned out to be nothing no longer parts the work before it from that after it.
            task.steps.dedup_by(|step, before| match (step, before) {
                (Step::Run(more), Step::Run(run)) => {
                    *run += *more;
                    true
                }
                _ => false,
            });
        }
        Ok(self.learned)
    }

    fn begun(&self) -> Time {
        self.first.unwrap_or_default()
    }

    /// A task that is seen for the first time.
    fn add(&mut self, pid: Pid, comm: Comm, prio: i32, begin: Begin, state: State, now: Time) -> TaskIndex {
        let task = TaskIndex(self.lives.len() as u32);
        let is_left_out = comm.as_bytes().starts_with(b"migration/");
        self.learned.tasks.push(Task {
            pid,
            comm,
            prio,
            begin,
            placed: None,
            lag: Duration::ZERO,
            is_thread: false,
            is_left_out,
            ended: false,
            steps: Vec::new(),
        });
        let last_timer = if let Begin::Forked(_) = begin { now } else { self.begun() };
        let life = Life {
            state,
            comm,
            prio,
            began: now,
            run: Duration::ZERO,
            stretch: (0, Duration::ZERO),
            waking: None,
            last_timer,
        };
        self.lives.push(life);
        self.lags.add(matches!(begin, Begin::Asleep(_)));
        self.by_pid.insert(pid, task);
        task
    }

    fn life(&mut self, task: TaskIndex) -> &mut Life {
        &mut self.lives[task.index()]
    }

    fn step(&mut self, task: TaskIndex, step: Step) {
        self.learned.tasks[task.index()].steps.push(step);
    }

    /// Counts work up to now.
    fn advance(&mut self, task: TaskIndex, now: Time) {
        let life = self.life(task);
        if let State::On { since } = &mut life.state {
            life.run += now.since(*since);
            *since = now;
        }
    }

    /// Writes down the work done so far.
    fn flush(&mut self, task: TaskIndex) {
        let run = std::mem::take(&mut self.life(task).run);
        if run > Duration::ZERO {
            self.step(task, Step::Run(run));
        }
    }

    /// A task acts now: its work so far comes before that, and who woke it before found it awake.
    fn acts(&mut self, task: TaskIndex, now: Time) {
        if self.life(task).waking.is_some() {
            self.learned.wakeups_of_awake += 1;
            self.drop_waking(task);
        }
        self.advance(task, now);
        self.flush(task);
    }

    /// The task in whose time an event happened; none for the idle task.
    fn current(&mut self, event: &Event) -> Option<TaskIndex> {
        if event.pid == Pid::IDLE {
            return None;
        }
        let known = self.by_pid.get(&event.pid).copied();
        if let Curr::Task(task) = self.cpus[event.cpu.index()]
            && known == Some(task)
        {
            return Some(task);
        }
        let unknown = self.cpus[event.cpu.index()] == Curr::Unknown;
        let since = if unknown && known.is_none() { self.begun() } else { event.time };
        let task = known.unwrap_or_else(|| {
            let begin = Begin::Running(event.cpu);
            self.add(event.pid, event.comm, 120, begin, State::On { since }, event.time)
        });
        self.life(task).state = State::On { since };
        self.cpus[event.cpu.index()] = Curr::Task(task);
        Some(task)
    }

    /// What an event says of a task's name and priority. A change is taken to have come when
    /// the task began to run, the last time that it was seen to be as before.
    fn seen(&mut self, task: TaskIndex, comm: Comm, prio: i32) {
        if self.life(task).prio != prio {
            self.life(task).prio = prio;
            let entry = &mut self.learned.tasks[task.index()];
            if entry.steps.is_empty() && !matches!(entry.begin, Begin::Forked(_)) {
                entry.prio = prio;
            } else {
                self.changed(task, Step::Prio(prio));
            }
        }
        if self.life(task).comm != comm && !comm.is_empty() {
            self.life(task).comm = comm;
            self.changed(task, Step::Rename(comm));
        }
    }

    /// Puts a step where the task was switched in. Wakings that are noted by their place move with it.
    fn changed(&mut self, task: TaskIndex, step: Step) {
        let (at, before) = self.life(task).stretch;
        let steps = &mut self.learned.tasks[task.index()].steps;
        let mut new = vec![step];
        if before > Duration::ZERO {
            new.insert(0, Step::Run(before));
            match steps.get_mut(at) {
                Some(Step::Run(run)) => *run = run.saturating_sub(before),
                _ => self.lives[task.index()].run = self.lives[task.index()].run.saturating_sub(before),
            }
        }
        let moved = new.len();
        let steps = &mut self.learned.tasks[task.index()].steps;
        steps.splice(at..at, new);
        for (place, step) in steps.iter().enumerate().skip(at + moved) {
            if let Step::Wake(wakee) = *step
                && let Some(Waking { waker: Some(waker), .. }) = &mut self.lives[wakee.index()].waking
                && *waker == (task, place - moved)
            {
                waker.1 = place;
            }
        }
        self.life(task).stretch = (at + moved, Duration::ZERO);
    }

    /// A waking that came to nothing.
    fn drop_waking(&mut self, task: TaskIndex) {
        if let Some(Waking { waker: Some((waker, place)), .. }) = self.life(task).waking.take() {
            self.learned.tasks[waker.index()].steps[place] = Step::Nothing;
        }
    }

    fn waking(&mut self, event: &Event, pid: Pid, comm: Comm, prio: i32, prev: CpuId) {
        let task = match self.by_pid.get(&pid) {
            Some(&task) => task,
            None => {
                let asleep = State::Asleep { since: self.begun(), served: false };
                self.add(pid, comm, prio, Begin::Asleep(prev), asleep, event.time)
            }
        };
        let waker = if is_interrupt(event) { None } else { self.current(event) };
        if waker == Some(task) {
            return;
        }
        if self.life(task).waking.is_some() {
            self.learned.wakeups_of_awake += 1;
            self.drop_waking(task);
        }
        let waker = waker.map(|waker| {
            self.acts(waker, event.time);
            self.step(waker, Step::Wake(task));
            (waker, self.learned.tasks[waker.index()].steps.len() - 1)
        });
        self.life(task).waking = Some(Waking { at: event.time, by: event.cpu, waker });
    }

    /// How long an idle CPU took to hear of a wake-up by another one; none if it had been busy since.
    fn heard(&self, waking: Option<Waking>, cpu: CpuId, now: Time) -> Option<Duration> {
        let waking = waking.filter(|waking| waking.by != cpu)?;
        let idle = self.cpus[cpu.index()] == Curr::Idle && self.idle_since[cpu.index()] <= waking.at;
        idle.then(|| now.since(waking.at))
    }

    /// A task goes on after a sleep.
    fn woken(&mut self, task: TaskIndex, slept: Time, served: bool, now: Time, heard: Option<Duration>) {
        let waking = self.life(task).waking.take();
        let at = waking.map_or(now, |waking| waking.at);
        match waking.and_then(|waking| waking.waker) {
            Some((waker, _)) if !self.learned.tasks[waker.index()].is_left_out => {
                // A timer's CPU hears of it at once, and the time it came holds what it was late.
                if let Some(after) = heard {
                    self.step(task, Step::Heard(after));
                }
                self.step(task, Step::Wait(waker));
            }
            waker => {
                let served = served || waker.is_some();
                let since_last = at.since(self.life(task).last_timer);
                if !served {
                    self.life(task).last_timer = at;
                }
                let sleep = Sleep { span: Duration(at.0.saturating_sub(slept.0)), since_last, served };
                self.step(task, Step::Sleep(sleep));
            }
        }
    }

    fn switch_out(&mut self, event: &Event, left: Left) {
        let Left { pid, comm, prio, state, unasked, for_stopper } = left;
        let was = Event { pid, comm, ..event.clone() };
        let Some(task) = self.current(&was) else { return };
        self.advance(task, event.time);
        self.seen(task, comm, prio);
        let out_of_budget = prio < 0 && !for_stopper;
        if state.is_runnable() && !out_of_budget {
            let ran = event.time.since(self.life(task).began);
            if unasked && !state.is_preempted() && self.yields.makes_way(task.index(), ran) {
                self.flush(task);
                self.step(task, Step::Yield);
            }
            self.life(task).state = State::Runnable;
            return;
        }
        self.flush(task);
        self.learned.out_of_budget += u64::from(state.is_runnable());
        if state.is_dead() {
            self.life(task).state = State::Dead;
            self.learned.tasks[task.index()].ended = true;
            self.learned.tasks[task.index()].is_thread = is_thread(&self.learned.tasks, task, state);
            self.by_pid.remove(&pid);
            return;
        }
        self.yields.sleeps(task.index());
        let served = state.bits() & TaskState::UNINTERRUPTIBLE.bits() != 0;
        self.life(task).state = State::Asleep { since: event.time, served };
    }

    fn switch_in(&mut self, event: &Event, pid: Pid, comm: Comm, prio: i32, was_idle: bool) {
        let cpu = event.cpu;
        if pid == Pid::IDLE {
            self.cpus[cpu.index()] = Curr::Idle;
            self.idle_since[cpu.index()] = event.time;
            return;
        }
        let task = match self.by_pid.get(&pid) {
            Some(&task) => task,
            None => self.add(pid, comm, prio, Begin::Runnable(cpu), State::Runnable, event.time),
        };
        if let Some(waking) = self.life(task).waking
            && was_idle
            && waking.by != cpu
        {
            *self.learned.idle_wakeups.entry(event.time.since(waking.at).0 / 1000).or_default() += 1;
        }
        let has_run = self.life(task).run > Duration::ZERO;
        let entry = &mut self.learned.tasks[task.index()];
        if let Some((_, placed)) = &mut entry.placed
            && placed.to == cpu
            && !has_run
            && entry.steps.is_empty()
        {
            placed.was_idle |= was_idle;
        }
        let state = self.life(task).state;
        match state {
            State::Asleep { since, served } => {
                let waking = self.life(task).waking;
                let heard = self.heard(waking, cpu, event.time);
                self.woken(task, since, served, event.time, heard);
            }
            _ if self.life(task).waking.is_some() => {
                self.learned.wakeups_of_awake += 1;
                self.drop_waking(task);
            }
            _ => {}
        }
        let steps = self.learned.tasks[task.index()].steps.len();
        self.life(task).stretch = (steps, self.life(task).run);
        self.seen(task, comm, prio);
        let life = self.life(task);
        (life.state, life.began) = (State::On { since: event.time }, event.time);
        self.cpus[cpu.index()] = Curr::Task(task);
    }

    /// A task was queued, and whoever runs there may lose the CPU to it.
    fn queued(&mut self, event: &Event, pid: Pid, prio: i32, target: CpuId) {
        let Some(&task) = self.by_pid.get(&pid) else { return };
        let by = match self.cpus[event.cpu.index()] {
            Curr::Task(by) if target == event.cpu && self.lives[by.index()].prio == prio => Some(by),
            _ => None,
        };
        self.lags.woken(task, event.cpu.index(), by);
    }

    fn fork(&mut self, event: &Event, child_comm: Comm, child_pid: Pid) {
        let Some(parent) = self.current(event) else { return };
        self.acts(parent, event.time);
        let prio = self.life(parent).prio;
        let begin = Begin::Forked(parent);
        let child = self.add(child_pid, child_comm, prio, begin, State::Runnable, event.time);
        self.step(parent, Step::Fork(child));
    }

    /// A task is moved; by a busy CPU's balancing if that CPU gets it and it waited.
    fn migrate(&mut self, event: &Event, pid: Pid, from: CpuId, cpu: CpuId) {
        let waited = |task: &TaskIndex| self.lives[task.index()].state == State::Runnable;
        if cpu == event.cpu
            && event.pid != Pid::IDLE
            && is_softirq(event)
            && self.by_pid.get(&pid).is_some_and(waited)
        {
            self.learned.passes.moved(Pass { cpu, from, at: event.time });
        }
    }

    /// Whether a task makes way though nobody was queued beside it meanwhile.
    fn makes_way_unasked(&mut self, event: &Event) -> bool {
        match event.kind {
            Kind::SchedWakeup { target_cpu: cpu, .. }
            | Kind::SchedWakeupNew { target_cpu: cpu, .. }
            | Kind::SchedMigrateTask { dest_cpu: cpu, .. } => {
                self.yields.arrives(cpu);
                false
            }
            Kind::SchedSwitch { prev_pid, prev_state, .. } => {
                !self.yields.switches(event.cpu) && prev_pid != Pid::IDLE && prev_state.is_runnable()
            }
            _ => false,
        }
    }

    /// The new task is queued: from now on it can run.
    fn wakeup_new(&mut self, event: &Event, pid: Pid, comm: Comm, prio: i32, to: CpuId) {
        match self.by_pid.get(&pid).copied() {
            None => self.fork(event, comm, pid),
            Some(child) => {
                let Begin::Forked(parent) = self.learned.tasks[child.index()].begin else { return };
                let steps = &mut self.learned.tasks[parent.index()].steps;
                if let Some(fork) = steps.iter_mut().rev().find(|step| **step == Step::Fork(child)) {
                    *fork = Step::Nothing;
                }
                self.acts(parent, event.time);
                self.step(parent, Step::Fork(child));
                self.life(child).last_timer = event.time;
            }
        }
        if let Some(&child) = self.by_pid.get(&pid) {
            self.seen(child, comm, prio);
            let placed = Placed { from: event.cpu, to, was_idle: false };
            self.learned.tasks[child.index()].placed = Some((event.time, placed));
        }
    }
}

/// Whether a wake-up has no task as its cause: its line's task is only what an interrupt hit. The
/// soft interrupts that ksoftirqd runs are its work.
fn is_interrupt(event: &Event) -> bool {
    let hard = event.flags.has(Flags::HARDIRQ) || event.flags.has(Flags::NMI);
    let in_ksoftirqd = event.comm.as_bytes().starts_with(b"ksoftirqd/");
    event.flags.in_interrupt() && (hard || !in_ksoftirqd)
}

/// Whether a soft interrupt is at work that no task runs.
fn is_softirq(event: &Event) -> bool {
    is_interrupt(event) && event.flags.has(Flags::SOFTIRQ) && !event.flags.has(Flags::HARDIRQ)
}

/// Whether something happens that mostly ticks do, of all but switches.
fn is_of_tick(event: &Event) -> bool {
    match event.kind {
        Kind::SchedStatRuntime { .. } => event.flags.has(Flags::HARDIRQ),
        Kind::SchedMigrateTask { .. } | Kind::SchedWaking { .. } => is_softirq(event),
        _ => false,
    }
}

/// A thread is forgotten at once when it ends; a process waits for its parent to ask.
fn is_thread(tasks: &[Task], task: TaskIndex, state: TaskState) -> bool {
    let forked = matches!(tasks[task.index()].begin, Begin::Forked(_));
    forked && state.bits() & TaskState::ZOMBIE.bits() == 0
}

impl Sink for Learner {
    fn event(&mut self, event: &Event) {
        self.first.get_or_insert(event.time);
        self.learned.first = self.begun();
        self.learned.last = event.time;
        if self.cpus.len() <= event.cpu.index() {
            self.cpus.resize(event.cpu.index() + 1, Curr::Unknown);
            self.idle_since.resize(event.cpu.index() + 1, Time::ZERO);
            self.yields.cpus(event.cpu.index() + 1);
            self.learned.nr_cpus = self.cpus.len();
            self.lags.cpus(self.cpus.len());
        }
        let unasked = self.makes_way_unasked(event);
        if unasked || is_of_tick(event) {
            self.learned.ticks.mark(event.time);
        }
        match event.kind {
            Kind::SchedSwitch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                next_comm,
                next_pid,
                next_prio,
            } => {
                self.has_switches = true;
                let task = |pid| self.by_pid.get(&pid).copied();
                let (prev, next) = (task(prev_pid), task(next_pid));
                let is_runnable = prev_state.is_runnable();
                self.lags.switched(event.cpu.index(), prev, is_runnable, next, event.time);
                let left = Left {
                    pid: prev_pid,
                    comm: prev_comm,
                    prio: prev_prio,
                    state: prev_state,
                    unasked,
                    for_stopper: next_prio == 0,
                };
                self.switch_out(event, left);
                self.switch_in(event, next_pid, next_comm, next_prio, prev_pid == Pid::IDLE);
            }
            Kind::SchedWaking { comm, pid, prio, target_cpu } => {
                self.has_wakeups = true;
                self.learned.has_waking = true;
                self.waking(event, pid, comm, prio, target_cpu);
            }
            Kind::SchedWakeup { comm, pid, prio, target_cpu } => {
                self.has_wakeups = true;
                let known = self.by_pid.get(&pid).copied();
                let asleep = |task: TaskIndex| {
                    let life = &self.lives[task.index()];
                    matches!(life.state, State::Asleep { .. }) && life.waking.is_none()
                };
                // A recording without sched_waking.
                if known.is_none_or(asleep) {
                    self.waking(event, pid, comm, prio, target_cpu);
                }
                self.queued(event, pid, prio, target_cpu);
            }
            Kind::SchedWakeupNew { comm, pid, prio, target_cpu } => {
                self.wakeup_new(event, pid, comm, prio, target_cpu);
            }
            Kind::SchedMigrateTask { pid, orig_cpu: from, dest_cpu: cpu, .. } => {
                self.migrate(event, pid, from, cpu);
            }
            Kind::SchedProcessFork { child_comm, child_pid, .. } => self.fork(event, child_comm, child_pid),
            Kind::SchedProcessExec { ref filename, .. } => {
                if let Some(task) = self.current(event) {
                    // The name on the line is the last one the task ever took, in text of tracefs.
                    let comm = Comm::from(filename.rsplit('/').next().unwrap_or_default());
                    self.acts(task, event.time);
                    self.step(task, Step::Exec(comm));
                    self.life(task).comm = comm;
                }
            }
            Kind::TaskRename { newcomm, pid, .. } if pid == event.pid => {
                if let Some(task) = self.current(event) {
                    self.acts(task, event.time);
                    self.step(task, Step::Rename(newcomm));
                    self.life(task).comm = newcomm;
                }
            }
            Kind::CgroupAttachTask { ref dst_path, pid, .. } => {
                if let Some(&task) = self.by_pid.get(&pid) {
                    let known = self.learned.groups.iter().position(|group| **group == **dst_path);
                    let group = known.unwrap_or_else(|| {
                        self.learned.groups.push(dst_path.to_string());
                        self.learned.groups.len() - 1
                    });
                    // Somebody else may move it while it sleeps, or is just being woken.
                    self.advance(task, event.time);
                    self.flush(task);
                    self.step(task, Step::Group(group as u32));
                }
            }
            _ => {}
        }
    }
}
