//! The state of the machine at each moment of a trace: which tasks run where, wait and sleep.
//!
//! A trace that begins in the middle shows nothing about a task or a CPU before its first event, so each begins as
//! unknown. The first event on a CPU shows the task that runs there. If the machine is known, a CPU without any event
//! so far is presumed idle, and findings based on that say so.
//!
//! Tasks that ended are dropped, and only a few past stretches per CPU are kept, so the size of the scene
//! depends on the machine and the live tasks, not on the length of the trace.

use std::collections::{BTreeMap, VecDeque};

use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Comm, Event, Hotplug, Hotplugs, How, Kind, UnseenSwitches};
use schedlab_units::{Duration, Pid, Time};

use super::Who;
use super::finding::{Task, were};
use super::heard::Heard;
use super::looked::Looked;

/// The machine at a moment.
#[derive(Clone, Debug)]
pub struct Scene {
    cpus: Vec<Cpu>,
    tasks: BTreeMap<Pid, TaskScene>,
    /// CPUs known or presumed to run their idle task, with no task waiting.
    idle: CpuMask,
    /// CPUs with events so far.
    seen: CpuMask,
    /// CPUs of the machine without any event so far.
    silent: CpuMask,
    /// The allowed CPUs of tasks, if known from outside the trace.
    affinity: BTreeMap<Who, CpuMask>,
    /// Switches that are missing.
    unseen: UnseenSwitches,
    /// CPU hotplug.
    hotplugs: Hotplugs,
    /// CPUs that take no tasks because of it.
    away: CpuMask,
    /// Which kinds of events there were.
    heard: Heard,
}

/// One CPU.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// The task that runs, the idle task included, and since when; unknown before the first event.
    pub curr: Option<(Pid, Time)>,
    /// The tasks waiting on its run queue, in the order of arrival.
    pub waiting: Vec<Pid>,
    /// The last stretches before the current one, oldest first.
    pub past: VecDeque<Stretch>,
    /// The last answer of load balancing for this CPU, if the trace contains decisions.
    pub balance: Option<Looked>,
    /// The last answer about preemption here, if the trace contains decisions: the requesting task, and the rule.
    pub preemption: Option<(Time, Pid, Box<str>)>,
}

/// Time a task ran without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The task; 0 is idle.
    pub pid: Pid,
    /// Its name then.
    pub comm: Comm,
    /// From when.
    pub from: Time,
    /// Until when.
    pub to: Time,
}

/// One task.
#[derive(Clone, Debug, Default)]
pub struct TaskScene {
    /// Its latest name.
    pub comm: Comm,
    /// Its priority as the kernel counts: below 0 deadline, below 100 real-time; `None` until an event shows it.
    pub prio: Option<i32>,
    /// What it does.
    pub state: State,
    /// Its allowed CPUs; unknown for most tasks of a recording.
    pub allowed: Option<CpuMask>,
    /// The CPU it last ran on, or was placed on.
    pub cpu: Option<CpuId>,
    /// CPUs on which events showed it running.
    pub ran_on: Option<CpuMask>,
    /// Its last wake-up.
    pub wake: Option<Wake>,
    /// A wake-up that came while it was still on its CPU.
    early: Option<Wake>,
    /// The last decision about its place, if the trace contains decisions.
    pub placed: Option<Placed>,
}

/// What a task does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Nothing is known yet.
    #[default]
    Unknown,
    /// It runs.
    Running,
    /// It is runnable.
    Waiting(Wait),
    /// It waits for something else.
    Sleeping,
}

/// A task's wait for a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Since when.
    pub since: Time,
    /// Its origin.
    pub after: After,
    /// The run queues it was on, and since when; the first few.
    pub places: Vec<(Time, CpuId)>,
    /// Whether its CPU has been chosen; until then it is the CPU it slept on.
    chosen: bool,
}

/// How a wait begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// It was woken.
    Wakeup,
    /// It was created.
    Fork,
    /// It ran and was preempted, or yielded.
    Running,
}

/// A wake-up or fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// When.
    pub time: Time,
    /// The task that ran on that CPU.
    pub by: Pid,
    /// Its name.
    pub by_comm: Comm,
    /// Where it happened.
    pub cpu: CpuId,
    /// Whether an interrupt did it, so that the task was merely interrupted.
    pub in_interrupt: bool,
    /// When the woken task ran, if it did.
    pub ran: Option<Time>,
}

/// A decision about a task's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// When.
    pub time: Time,
    /// The kind of placement.
    pub how: How,
    /// The rule.
    pub reason: Box<str>,
}

/// Stretches kept for each CPU: enough to show what ran during a wait of several slices.
const PAST: usize = 16;

/// Number of places kept per wait.
const PLACES: usize = 5;

impl Wait {
    /// The run queue it is on.
    pub fn cpu(&self) -> CpuId {
        self.places.last().expect("a wait begins on a CPU").1
    }

    /// The run queue on which it spent most of the wait, if that ends now.
    pub fn longest(&self, now: Time) -> CpuId {
        let ends = self.places.iter().skip(1).map(|(from, _)| *from).chain([now]);
        let spans = self.places.iter().zip(ends).map(|((from, cpu), to)| (to.since(*from), *cpu));
        // The first of equal ones.
        spans
            .reduce(|best, next| if next.0 > best.0 { next } else { best })
            .expect("a wait begins on a CPU")
            .1
    }
}

impl Cpu {
    /// Whether it runs a task that is not the idle one.
    pub fn is_busy(&self) -> bool {
        self.curr.is_some_and(|(pid, _)| pid != Pid::IDLE)
    }

    /// Tasks that run or wait.
    pub fn nr_running(&self) -> usize {
        usize::from(self.is_busy()) + self.waiting.len()
    }
}

impl Scene {
    /// A scene in which only some masks are known, and possibly the CPUs of the machine.
    pub fn new(affinity: BTreeMap<Who, CpuMask>, online: Option<&CpuMask>) -> Scene {
        let silent = online.cloned().unwrap_or_default();
        Scene {
            cpus: Vec::new(),
            tasks: BTreeMap::new(),
            idle: silent.clone(),
            seen: CpuMask::default(),
            silent,
            affinity,
            unseen: UnseenSwitches::default(),
            hotplugs: Hotplugs::default(),
            away: CpuMask::default(),
            heard: Heard::default(),
        }
    }

    /// Which kinds of events there were.
    pub fn heard(&self) -> Heard {
        self.heard
    }

    /// Minimum number of missing switches.
    pub fn unseen_switches(&self) -> u64 {
        self.unseen.count()
    }

    /// The time of a CPU's last event, if this event shows that the assumption since then is wrong: another task runs
    /// there than was switched to, or the CPU was presumed idle and is not.
    pub fn is_refuted_by(&self, event: &Event) -> Option<Time> {
        let presumed = self.silent.contains(event.cpu) && event.pid != Pid::IDLE;
        self.unseen.before(event).or(presumed.then_some(Time::ZERO))
    }

    /// Sets the task that runs on the CPU of an event, before detectors see the event. If the switch to it is missing,
    /// tasks that waited there may have run since, so none is known to be waiting now.
    pub fn sync(&mut self, event: &Event) {
        let Some(last) = self.unseen.event(event) else { return };
        let pid = event.shown();
        self.see(event.cpu);
        self.push_past(event.cpu, None, last);
        for pid in std::mem::take(&mut self.cpus[event.cpu.index()].waiting) {
            self.tasks.entry(pid).or_default().state = State::Unknown;
        }
        if pid != Pid::IDLE {
            self.unqueue(pid);
            let task = self.tasks.entry(pid).or_default();
            (task.state, task.cpu) = (State::Running, Some(event.cpu));
        }
        self.cpus[event.cpu.index()].curr = Some((pid, event.time));
        self.update_idle(event.cpu);
    }

    /// A CPU; unknown if it had no event yet.
    pub fn cpu(&self, cpu: CpuId) -> &Cpu {
        static UNKNOWN: Cpu =
            Cpu { curr: None, waiting: Vec::new(), past: VecDeque::new(), balance: None, preemption: None };
        self.cpus.get(cpu.index()).unwrap_or(&UNKNOWN)
    }

    /// A task, if it had an event and is alive.
    pub fn task(&self, pid: Pid) -> Option<&TaskScene> {
        self.tasks.get(&pid)
    }

    /// Every live task, in order.
    pub fn tasks(&self) -> impl Iterator<Item = (Pid, &TaskScene)> {
        self.tasks.iter().map(|(pid, task)| (*pid, task))
    }

    /// CPUs known or presumed to be idle, with no task waiting.
    pub fn idle(&self) -> &CpuMask {
        &self.idle
    }

    /// CPUs with events so far.
    pub fn seen(&self) -> &CpuMask {
        &self.seen
    }

    /// Whether a CPU is idle and no task waits for it.
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.idle.contains(cpu)
    }

    /// The CPUs of an idle set that are only presumed idle.
    pub fn only_presumed(&self, idle: &CpuMask) -> CpuMask {
        idle.and(&self.silent)
    }

    /// The condition for a set of CPUs to be idle, if some are only presumed idle.
    pub fn presumed(&self, idle: &CpuMask) -> Option<String> {
        let silent = self.only_presumed(idle);
        (!silent.is_empty()).then(|| format!("{} idle, without an event until then", were(&silent)))
    }

    /// The task's wait, if it waits.
    pub fn wait(&self, pid: Pid) -> Option<&Wait> {
        match &self.tasks.get(&pid)?.state {
            State::Waiting(wait) => Some(wait),
            _ => None,
        }
    }

    /// The task whose wait ended without an event, as this event shows: it is woken, which never happens to a
    /// waiting task, or it runs without a recorded switch to it. Live hosts omit switches.
    pub fn unseen(&self, event: &Event) -> Option<Pid> {
        if let Kind::SchedWaking { pid, .. } = event.kind
            && self.wait(pid).is_some_and(|wait| wait.chosen && wait.after != After::Running)
        {
            return Some(pid);
        }
        let runs = event.flags.is_known() && event.pid != Pid::IDLE && self.wait(event.pid).is_some();
        runs.then_some(event.pid)
    }

    /// The allowed CPUs of a task, if known.
    pub fn allowed(&self, pid: Pid) -> Option<&CpuMask> {
        let task = self.tasks.get(&pid);
        let told = task.and_then(|task| task.allowed.as_ref()).or_else(|| self.affinity.get(&Who::Pid(pid)));
        told.or_else(|| self.affinity.get(&Who::Comm(task?.comm)))
    }

    /// Whether a task is known to run on a CPU, or to wait for it.
    pub fn is_runnable_on(&self, pid: Pid, cpu: CpuId) -> bool {
        self.tasks.get(&pid).is_some_and(|task| match &task.state {
            State::Running => task.cpu == Some(cpu),
            State::Waiting(wait) => wait.cpu() == cpu,
            State::Unknown | State::Sleeping => false,
        })
    }

    /// Whether a task is known to run.
    pub fn is_running(&self, pid: Pid) -> bool {
        self.tasks.get(&pid).is_some_and(|task| task.state == State::Running)
    }

    /// The idle CPUs that a task may use.
    pub fn idle_for(&self, pid: Pid) -> CpuMask {
        match self.allowed(pid) {
            Some(allowed) => self.idle.and(allowed),
            None => self.idle.clone(),
        }
    }

    /// A task with its name, for display.
    pub fn name(&self, pid: Pid) -> Task {
        Task { pid: pid.0, comm: self.comm(pid).to_string() }
    }

    /// The latest name of a task.
    pub fn comm(&self, pid: Pid) -> Comm {
        match pid {
            Pid::IDLE => Comm::from("<idle>"),
            pid => self.tasks.get(&pid).map(|task| task.comm).unwrap_or_default(),
        }
    }

    /// What ran on a CPU from one time to another, oldest first. Stretches too far in the past are missing.
    pub fn ran(&self, cpu: CpuId, from: Time, to: Time) -> Vec<Stretch> {
        let scene = self.cpu(cpu);
        let current =
            scene.curr.map(|(pid, since)| Stretch { pid, comm: self.comm(pid), from: since, to: Time::MAX });
        let clip =
            |stretch: &Stretch| Stretch { from: stretch.from.max(from), to: stretch.to.min(to), ..*stretch };
        scene
            .past
            .iter()
            .chain(current.iter())
            .map(clip)
            .filter(|stretch| stretch.from < stretch.to)
            .collect()
    }

    /// The task that ran longest on a CPU between two times, apart from the idle task, and whether it ran nearly all of
    /// the time.
    pub fn ran_most(&self, cpu: CpuId, from: Time, to: Time) -> Option<(Task, bool)> {
        let mut spans: BTreeMap<Pid, (Duration, Comm)> = BTreeMap::new();
        for stretch in self.ran(cpu, from, to).iter().filter(|stretch| stretch.pid != Pid::IDLE) {
            let (span, comm) = spans.entry(stretch.pid).or_default();
            *span += stretch.to.since(stretch.from);
            *comm = stretch.comm;
        }
        let (pid, (span, comm)) = spans.into_iter().max_by_key(|(_, (span, _))| *span)?;
        let task = Task { pid: pid.0, comm: comm.to_string() };
        Some((task, span.0 >= to.since(from).0 / 10 * 9))
    }

    /// Follows one event, after [`Scene::sync`].
    pub fn event(&mut self, event: &Event) {
        self.see(event.cpu);
        if let Some(pid) = self.unseen(event) {
            self.unqueue(pid);
            self.tasks.entry(pid).or_default().state = State::Unknown;
        }
        self.hear(event);
        self.plug(event);
        match &event.kind {
            Kind::SchedSwitch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                next_comm,
                next_pid,
                next_prio,
                ..
            } => {
                self.heard.switches = true;
                self.call(*prev_pid, *prev_comm);
                self.call(*next_pid, *next_comm);
                self.ranked(*prev_pid, *prev_prio);
                self.ranked(*next_pid, *next_prio);
                self.leave(event, *prev_pid, *prev_comm, prev_state.is_runnable());
                self.run(event, *next_pid);
                if prev_state.is_dead() {
                    self.tasks.remove(prev_pid);
                }
            }
            Kind::SchedWaking { comm, pid, target_cpu, .. } => {
                self.heard.wakings = true;
                self.call(*pid, *comm);
                self.wake(event, *pid, *target_cpu, After::Wakeup);
            }
            Kind::SchedWakeup { comm, pid, target_cpu, .. } => {
                self.heard.wakeups = true;
                self.call(*pid, *comm);
                // In a recording without sched_waking only this event shows the wake-up.
                self.wake(event, *pid, *target_cpu, After::Wakeup);
                self.move_to(event.time, *pid, *target_cpu);
                self.choose(*pid);
            }
            Kind::SchedWakeupNew { comm, pid, target_cpu, .. } => {
                self.heard.births = true;
                self.call(*pid, *comm);
                self.wake(event, *pid, *target_cpu, After::Fork);
                self.choose(*pid);
            }
            Kind::SchedMigrateTask { comm, pid, dest_cpu, .. } => {
                self.call(*pid, *comm);
                self.move_to(event.time, *pid, *dest_cpu);
            }
            Kind::SchedProcessFork { comm, pid, child_comm, child_pid } => {
                self.call(*pid, *comm);
                let allowed = self.allowed(*pid).cloned();
                let child = TaskScene { comm: *child_comm, allowed, ..TaskScene::default() };
                self.forget(*child_pid);
                self.tasks.insert(*child_pid, child);
            }
            Kind::SchedProcessFree { pid, .. } => self.forget(*pid),
            Kind::TaskRename { pid, newcomm, .. } => self.call(*pid, *newcomm),
            Kind::Affinity(affinity) => {
                self.tasks.entry(affinity.pid).or_default().allowed = Some(affinity.allowed.clone());
            }
            Kind::Placement(placement) => {
                let (time, how, reason) = (event.time, placement.how, placement.reason.as_ref().into());
                self.tasks.entry(placement.pid).or_default().placed = Some(Placed { time, how, reason });
            }
            Kind::Balance(balance) => {
                self.see(balance.dst_cpu);
                self.cpus[balance.dst_cpu.index()].balance = Some(Looked::balance(event.time, balance));
            }
            // The passes before it have already reported the result.
            Kind::Newidle(newidle) if !matches!(newidle.reason.as_ref(), "NI_NOTHING" | "NI_PULLED") => {
                self.see(newidle.dst_cpu);
                self.cpus[newidle.dst_cpu.index()].balance = Some(Looked::newidle(event.time, newidle));
            }
            Kind::Preemption(preemption) => {
                let answer = (event.time, preemption.pid, preemption.reason.as_ref().into());
                self.cpus[event.cpu.index()].preemption = Some(answer);
            }
            _ => {}
        }
    }

    /// A task leaves its CPU.
    fn leave(&mut self, event: &Event, prev: Pid, comm: Comm, runnable: bool) {
        self.push_past(event.cpu, Some((prev, comm)), event.time);
        if prev == Pid::IDLE {
            return;
        }
        self.unqueue(prev);
        let task = self.tasks.entry(prev).or_default();
        task.cpu = Some(event.cpu);
        task.state = State::Sleeping;
        if runnable {
            self.queue(event.time, prev, event.cpu, After::Running);
        }
    }

    /// The running stretch of a CPU ends; `prev` is the task that ran there, or was assumed to run without events.
    fn push_past(&mut self, cpu: CpuId, prev: Option<(Pid, Comm)>, to: Time) {
        let Some((pid, from)) = self.cpus[cpu.index()].curr.take() else { return };
        let (prev, comm) = prev.unwrap_or_else(|| (pid, self.comm(pid)));
        let past = &mut self.cpus[cpu.index()].past;
        if past.len() == PAST {
            past.pop_front();
        }
        past.push_back(Stretch { pid: prev, comm, from, to });
        if let Some(task) = self.tasks.get_mut(&pid).filter(|task| task.state == State::Running) {
            task.state = State::Unknown;
        }
    }

    /// A task gets its CPU.
    fn run(&mut self, event: &Event, next: Pid) {
        if next != Pid::IDLE {
            self.unqueue(next);
            let width = self.cpus.len();
            let task = self.tasks.entry(next).or_default();
            task.state = State::Running;
            task.early = None;
            task.cpu = Some(event.cpu);
            widen(task.ran_on.get_or_insert_default(), width).set(event.cpu);
            if let Some(wake) = &mut task.wake {
                wake.ran.get_or_insert(event.time);
            }
        }
        self.cpus[event.cpu.index()].curr = Some((next, event.time));
        self.update_idle(event.cpu);
    }

    /// A task is woken or created; a running or waiting task is unchanged.
    fn wake(&mut self, event: &Event, pid: Pid, cpu: CpuId, after: After) {
        // The name in the prefix of an event may be a later one.
        let known = self.comm(event.pid);
        let wake = Wake {
            time: event.time,
            by: event.pid,
            by_comm: if known.is_empty() { event.comm } else { known },
            cpu: event.cpu,
            in_interrupt: event.flags.in_interrupt(),
            ran: None,
        };
        // A wake-up that begins now is not the early one, and one that has ended is no longer early.
        let begins = matches!(event.kind, Kind::SchedWaking { .. });
        let task = self.tasks.entry(pid).or_default();
        match task.state {
            State::Waiting(_) => {}
            // It may be about to leave the CPU; if so, sched_wakeup follows after the switch.
            State::Running => task.early = begins.then_some(wake),
            State::Unknown | State::Sleeping => {
                let wake = task.early.take().filter(|_| !begins).unwrap_or(wake);
                task.wake = Some(wake);
                self.queue(wake.time, pid, cpu, after);
            }
        }
    }

    /// A task is on another CPU's run queue from now on, or will be when it wakes.
    fn move_to(&mut self, time: Time, pid: Pid, cpu: CpuId) {
        self.see(cpu);
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        task.cpu = Some(cpu);
        if let State::Waiting(wait) = &mut task.state
            && wait.cpu() != cpu
        {
            let from = wait.cpu();
            if !wait.chosen {
                wait.places[0].1 = cpu;
            } else if wait.places.len() == PLACES {
                wait.places[PLACES - 1] = (time, cpu);
            } else {
                wait.places.push((time, cpu));
            }
            self.cpus[from.index()].waiting.retain(|waiting| *waiting != pid);
            self.cpus[cpu.index()].waiting.push(pid);
            self.update_idle(from);
            self.update_idle(cpu);
        }
    }

    /// The CPU of a woken task is chosen.
    fn choose(&mut self, pid: Pid) {
        if let Some(TaskScene { state: State::Waiting(wait), .. }) = self.tasks.get_mut(&pid) {
            wait.chosen = true;
        }
    }

    fn queue(&mut self, time: Time, pid: Pid, cpu: CpuId, after: After) {
        self.see(cpu);
        let task = self.tasks.entry(pid).or_default();
        task.cpu = Some(cpu);
        // A task that ran waits where it ran.
        let chosen = after == After::Running;
        task.state = State::Waiting(Wait { since: time, after, places: vec![(time, cpu)], chosen });
        self.cpus[cpu.index()].waiting.push(pid);
        self.update_idle(cpu);
    }

    fn unqueue(&mut self, pid: Pid) {
        if let Some(cpu) = self.wait(pid).map(Wait::cpu) {
            self.cpus[cpu.index()].waiting.retain(|waiting| *waiting != pid);
            self.update_idle(cpu);
        }
    }

    fn forget(&mut self, pid: Pid) {
        self.unqueue(pid);
        self.tasks.remove(&pid);
    }

    fn call(&mut self, pid: Pid, comm: Comm) {
        if pid != Pid::IDLE && !comm.is_empty() {
            self.tasks.entry(pid).or_default().comm = comm;
        }
    }

    fn ranked(&mut self, pid: Pid, prio: i32) {
        if pid != Pid::IDLE {
            self.tasks.entry(pid).or_default().prio = Some(prio);
        }
    }

    /// No task may go to a CPU that goes offline, until it is back.
    fn plug(&mut self, event: &Event) {
        match self.hotplugs.event(event) {
            Some((cpu, Hotplug::Deactivating)) => {
                self.see(cpu);
                widen(&mut self.away, self.cpus.len()).set(cpu);
                self.update_idle(cpu);
            }
            Some((cpu, Hotplug::Active)) if self.away.contains(cpu) => {
                self.away.clear(cpu);
                self.update_idle(cpu);
            }
            _ => {}
        }
    }

    /// Makes room for a CPU.
    fn see(&mut self, cpu: CpuId) {
        if cpu.index() >= self.cpus.len() {
            self.cpus.resize_with(cpu.index() + 1, Cpu::default);
        }
        widen(&mut self.seen, self.cpus.len()).set(cpu);
    }

    /// The first event on a CPU shows the task that runs there.
    fn hear(&mut self, event: &Event) {
        if self.cpus[event.cpu.index()].curr.is_some() {
            return;
        }
        self.cpus[event.cpu.index()].curr = Some((event.pid, event.time));
        if self.silent.contains(event.cpu) {
            self.silent.clear(event.cpu);
        }
        if event.pid != Pid::IDLE {
            self.call(event.pid, event.comm);
            let task = self.tasks.entry(event.pid).or_default();
            if task.state == State::Unknown {
                (task.state, task.cpu) = (State::Running, Some(event.cpu));
            }
        }
        self.update_idle(event.cpu);
    }

    fn update_idle(&mut self, id: CpuId) {
        let cpu = &self.cpus[id.index()];
        let is_idle = match cpu.curr {
            Some((pid, _)) => pid == Pid::IDLE,
            None => self.silent.contains(id),
        };
        let is_idle = is_idle && cpu.waiting.is_empty() && !self.away.contains(id);
        let idle = widen(&mut self.idle, self.cpus.len());
        if is_idle { idle.set(id) } else { idle.clear(id) }
    }
}

/// The mask with room for that many CPUs.
pub(super) fn widen(mask: &mut CpuMask, nr_cpus: usize) -> &mut CpuMask {
    if nr_cpus.div_ceil(64) > mask.words().len() {
        let mut wider = CpuMask::new(nr_cpus);
        wider.or_with(mask);
        *mask = wider;
    }
    mask
}

/// Total of some stretches.
pub(super) fn sum(stretches: &[Stretch]) -> Duration {
    stretches.iter().fold(Duration::ZERO, |sum, stretch| sum + stretch.to.since(stretch.from))
}
