//! Turns thread objects into programs.
//!
//! Each program follows rt-app's own thread function: take the name, meet the others at the start, wait for
//! the delay, set scheduling and group, then go through the phases; at each phase affinity, scheduling and
//! group again, markers, events.

use std::collections::BTreeMap;

use schedlab_units::Duration;

use super::event::{Event, What};
use super::global::{Calibration, Global};
use super::resource::Resources;
use super::sched::SchedKeys;
use super::task::{Settings, Task, TaskGroup};
use crate::tree::{File, Position};
use crate::{
    BarrierId, GroupId, Miss, Op, Policy, ProgramBuilder, ProgramId, SchedAttr, SpecId, Test, Timer, WordId,
    WorkloadBuilder, WorkloadError,
};

/// How often rt-app lets one task be forked before it aborts.
const FORKS_MAX: i32 = 1024;
/// Block of work between two reads of the clock in `runtime`.
const RUNTIME_BLOCK: Duration = Duration::micros(32);
/// One `write()` to /dev/null, which copies nothing.
const NULL_WRITE: Duration = Duration::nanos(200);

/// What all threads of a file share while programs are written.
pub(super) struct Threads<'a> {
    pub file: File<'a>,
    pub global: &'a Global,
    pub resources: Resources,
    /// The spec that a fork of each task makes, of those that are forked.
    pub forked: BTreeMap<String, SpecId>,
    pub start: BarrierId,
}

/// Which thread of a task a program is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The thread with index 0.
    First,
    /// Another one that exists from the start.
    Initial,
    /// One created by a fork event.
    Forked,
}

/// A step of a program before it is written.
enum Step {
    Op(Op),
    /// Fork, unless the limit was reached.
    Fork(SpecId, WordId),
}

struct LoweredPhase {
    loops: u32,
    enter: Vec<Op>,
    body: Vec<(Position, Step)>,
}

impl Threads<'_> {
    /// Writes the program of a task's threads in a role.
    pub fn program(
        &mut self,
        w: &mut WorkloadBuilder,
        task: &Task,
        role: Role,
    ) -> Result<ProgramId, WorkloadError> {
        let mut enter = Vec::new();
        if self.global.ftrace.main && role == Role::First {
            enter.push(mark(w, "rtapp_main: event=clock_ref data={us}"));
        }
        if role != Role::Forked {
            enter.push(Op::Barrier { barrier: self.start });
        }
        if self.global.ftrace.task {
            enter.push(mark(w, "rtapp_task: event=start"));
        }
        if task.delay > Duration::ZERO || task.events().any(|e| matches!(e.what, What::Timer { .. })) {
            enter.push(Op::Origin { delay: task.delay });
        }
        let mut state = State { attr: SchedAttr::default(), group: None };
        // A forked thread has its parent's attributes until it sets its own.
        state.attr = task.settings.sched.apply(self.file, state.attr)?;
        if role == Role::Forked || state.attr != SchedAttr::default() {
            enter.push(Op::SetSched { attr: w.attr(state.attr) });
        }
        enter.extend(self.enter_group(w, &task.settings, &mut state));
        let phases = self.phases(w, task, &mut state, &mut enter)?;
        let mut leave = Vec::new();
        if self.global.ftrace.task {
            leave.push(mark(w, "rtapp_task: event=end"));
        }
        let zero = role == Role::First;
        let name = if zero { format!("{}, first thread", task.name) } else { task.name.clone() };
        Ok(w.program(name, |p| {
            p.at(task.at.0, task.at.1).own_comm();
            if zero {
                p.zero();
            }
            push(p, &enter);
            let rounds = |p: &mut ProgramBuilder| {
                for phase in &phases {
                    p.at(task.at.0, task.at.1);
                    push(p, &phase.enter);
                    match phase.loops {
                        1 => write(p, &phase.body),
                        loops => _ = p.repeat(loops, |p| write(p, &phase.body)),
                    }
                }
            };
            match task.loops {
                1 => rounds(p),
                loops => _ = p.repeat(loops, rounds),
            }
            push(p, &leave);
        }))
    }

    /// Lowers the phases. Settings of the first phase that no other phase changes are made once, before the
    /// rounds, and are added to `once`.
    fn phases(
        &mut self,
        w: &mut WorkloadBuilder,
        task: &Task,
        state: &mut State,
        once: &mut Vec<Op>,
    ) -> Result<Vec<LoweredPhase>, WorkloadError> {
        let cpus_of =
            |index: usize| task.phases[index].settings.cpus.as_ref().or(task.settings.cpus.as_ref());
        let last = task.phases.len() - 1;
        let later = |sets: fn(&Settings) -> bool| task.phases[1..].iter().any(|phase| sets(&phase.settings));
        let mut lowered = Vec::new();
        for (index, phase) in task.phases.iter().enumerate() {
            let mut enter = Vec::new();
            // Adds an op to the rounds if a later phase undoes it, else to `once`.
            let mut add = |op: Op, undone: bool| {
                if index == 0 && !undone { once.push(op) } else { enter.push(op) }
            };
            let cpus = cpus_of(index);
            let before = if index == 0 { None } else { cpus_of(index - 1) };
            let comes_back = index == 0 && task.loops != 1 && cpus_of(last) != cpus;
            if cpus != before || comes_back {
                add(Op::SetCpus { cpus: cpus.map(|cpus| w.cpus(cpus.clone())) }, comes_back);
            }
            let sched: &SchedKeys = &phase.settings.sched;
            if !sched.is_empty() {
                state.attr = sched.apply(self.file, state.attr)?;
                add(Op::SetSched { attr: w.attr(state.attr) }, later(|s| !s.sched.is_empty()));
            }
            if let Some(op) = self.enter_group(w, &phase.settings, state) {
                add(op, later(|s| s.group.is_some()));
            }
            self.fair_if_grouped(&phase.settings, task, state)?;
            let body = self.body(w, task, index)?;
            lowered.push(LoweredPhase { loops: phase.loops, enter, body });
        }
        Ok(lowered)
    }

    /// A thread in a task group must be of a fair policy.
    fn fair_if_grouped(&self, settings: &Settings, task: &Task, state: &State) -> Result<(), WorkloadError> {
        let fair =
            matches!(state.attr.policy, Policy::Normal { .. } | Policy::Batch { .. } | Policy::Idle { .. });
        if fair || state.group.is_none() {
            return Ok(());
        }
        let at = settings.group.as_ref().or(task.settings.group.as_ref()).map_or(task.at, |group| group.at);
        let why = "only threads of SCHED_OTHER, SCHED_BATCH and SCHED_IDLE can be in a task group";
        Err(self.file.bad(at, "taskgroup", why))
    }

    /// Makes the group that the settings name and moves into it, unless already there.
    fn enter_group(&self, w: &mut WorkloadBuilder, settings: &Settings, state: &mut State) -> Option<Op> {
        let TaskGroup { path, weight, quota, .. } = settings.group.as_ref()?;
        let group = w.group(path);
        if let Some(group) = group {
            let spec = w.group_mut(group);
            if let Some(weight) = *weight {
                // cgroup v2's default of 100 is 1024 shares.
                spec.shares = (u64::from(weight) * 1024).div_ceil(100).max(2);
            }
            spec.quota = quota.or(spec.quota);
        }
        let moves = state.group != group;
        state.group = group;
        moves.then_some(Op::SetGroup { group })
    }

    fn body(
        &mut self,
        w: &mut WorkloadBuilder,
        task: &Task,
        index: usize,
    ) -> Result<Vec<(Position, Step)>, WorkloadError> {
        let phase = &task.phases[index];
        let mut body = Vec::new();
        let marker = |w: &mut WorkloadBuilder, event: &str| {
            // The loop counters are those of the loops written around this body.
            let thread_loop = if task.loops == 1 { "0" } else { "{0}" };
            let phase_loop = match (phase.loops, task.loops) {
                (1, _) => "0",
                (_, 1) => "{0}",
                _ => "{1}",
            };
            let text = format!(
                "rtapp_loop: event={event} thread_loop={thread_loop} phase={index} phase_loop={phase_loop}"
            );
            (task.at, Step::Op(mark(w, &text)))
        };
        if self.global.ftrace.run_loop {
            body.push(marker(w, "start"));
        }
        for (id, event) in phase.events.iter().enumerate() {
            if self.global.ftrace.event {
                let text =
                    format!("rtapp_event: id={id} type={} desc={}", event.type_number(), event.description());
                body.push((event.at, Step::Op(mark(w, &text))));
            }
            let steps = self.steps(w, task, event)?;
            body.extend(steps.into_iter().map(|step| (event.at, step)));
        }
        if self.global.ftrace.run_loop {
            body.push(marker(w, "end"));
        }
        Ok(body)
    }

    fn steps(
        &mut self,
        w: &mut WorkloadBuilder,
        task: &Task,
        event: &Event,
    ) -> Result<Vec<Step>, WorkloadError> {
        let r = &mut self.resources;
        let bad = |why: String| self.file.bad(event.at, &event.key, why);
        let ops = match &event.what {
            What::Run(span) => vec![Op::Run { work: work(self.global.calibration, *span) }],
            What::Runtime(wall) => {
                // The first block is always executed, whatever the value.
                let wall = Duration(wall.0.max(1));
                vec![Op::RunWall { wall, block: work(self.global.calibration, RUNTIME_BLOCK) }]
            }
            What::Sleep(span) => vec![Op::Sleep { span: *span }],
            What::Timer { timer: name, period, .. } => {
                let found: Option<(Timer, Miss)> = r.timer(w, task, name);
                let (timer, miss) = found
                    .ok_or_else(|| bad(format!("task \"{}\" has too many timers of its own", task.name)))?;
                vec![Op::TimerWait { timer, period: *period, miss }]
            }
            What::Lock(name) => vec![Op::Lock { mutex: r.mutex(w, name) }],
            What::Unlock(name) => vec![Op::Unlock { mutex: r.mutex(w, name) }],
            What::Wait { cond, mutex } => {
                vec![Op::CondWait { cond: r.cond(w, cond), mutex: r.mutex(w, mutex) }]
            }
            What::Sync { cond, mutex } => {
                let (cond, mutex) = (r.cond(w, cond), r.mutex(w, mutex));
                vec![Op::Signal { cond }, Op::CondWait { cond, mutex }]
            }
            What::Signal(name) => vec![Op::Signal { cond: r.cond(w, name) }],
            What::Broadcast(name) => vec![Op::Broadcast { cond: r.cond(w, name) }],
            What::Barrier(name) => {
                if self.forked.contains_key(&task.name) {
                    return Err(bad(format!(
                        "task \"{}\" is forked, and a forked thread has no place in a barrier",
                        task.name
                    )));
                }
                vec![Op::Barrier { barrier: r.barrier(w, name) }]
            }
            What::Suspend(name) => {
                let (cond, mutex) = (r.cond(w, name), r.mutex(w, name));
                vec![Op::Lock { mutex }, Op::CondWait { cond, mutex }, Op::Unlock { mutex }]
            }
            What::Resume(name) => {
                let (cond, mutex) = (r.cond(w, name), r.mutex(w, name));
                vec![Op::Lock { mutex }, Op::Broadcast { cond }, Op::Unlock { mutex }]
            }
            What::SemPost(name) => vec![Op::SemPost { sem: r.sem(w, name) }],
            What::SemWait(name) => vec![Op::SemWait { sem: r.sem(w, name) }],
            What::Mem(bytes) => vec![Op::Access { access: r.mem(w, task, *bytes) }],
            What::MemRun(run) => {
                let access = r.memrun(w, task, run);
                vec![Op::Access {
                    access: access.map_err(|size| bad(format!("this buffer has {size} bytes elsewhere")))?,
                }]
            }
            What::IoRun(bytes) => {
                if let Some((path, at)) = &self.global.io_device {
                    let why = format!(
                        "\"iorun\" to \"{path}\" would depend on its file system; only /dev/null is simulated"
                    );
                    return Err(self.file.refused(*at, "io_device", why));
                }
                let writes = bytes.div_ceil(self.global.mem_buffer_size.max(1));
                vec![Op::RunKernel { work: NULL_WRITE * writes, section: crate::Section::default() }]
            }
            What::Yield => vec![Op::Yield],
            What::Fork(name) => {
                let spec = self.forked.get(name).copied();
                let spec = spec.ok_or_else(|| bad(format!("there is no task \"{name}\"")))?;
                return Ok(vec![Step::Fork(spec, r.fork_count(w, name))]);
            }
        };
        Ok(ops.into_iter().map(Step::Op).collect())
    }
}

/// What a thread has at some point of its program.
struct State {
    attr: SchedAttr,
    group: Option<GroupId>,
}

/// The work of `run`: whole loops of the calibrated length.
fn work(calibration: Calibration, span: Duration) -> Duration {
    match calibration {
        Calibration::Cpu(_) => span,
        Calibration::NsPerLoop(ns) => Duration(span.0 / ns * ns),
    }
}

fn mark(w: &mut WorkloadBuilder, text: &str) -> Op {
    Op::Mark { label: w.label(text), value: 0 }
}

fn push(p: &mut ProgramBuilder, ops: &[Op]) {
    for &op in ops {
        p.op(op);
    }
}

fn write(p: &mut ProgramBuilder, body: &[(Position, Step)]) {
    for &((line, column), ref step) in body {
        p.at(line, column);
        match *step {
            Step::Op(op) => _ = p.op(op),
            Step::Fork(task, count) => {
                let allowed = p.label();
                p.jump_if(count, Test::Less, FORKS_MAX, allowed).exit_group();
                p.place(allowed).word_add(count, 1).fork(task);
            }
        }
    }
}

impl Event {
    /// Its description in rt-app's markers: its key, with the resources it names.
    fn description(&self) -> String {
        match &self.what {
            What::Run(_) | What::Runtime(_) | What::Sleep(_) | What::Yield => self.key.clone(),
            What::Mem(_) | What::IoRun(_) | What::MemRun(_) => self.key.clone(),
            What::Wait { cond, mutex } | What::Sync { cond, mutex } => format!("{}:{cond}:{mutex}", self.key),
            What::Suspend(name) | What::Resume(name) => format!("{}:{name}:{name}", self.key),
            What::Timer { timer: name, .. }
            | What::Lock(name)
            | What::Unlock(name)
            | What::Signal(name)
            | What::Broadcast(name)
            | What::Barrier(name)
            | What::SemPost(name)
            | What::SemWait(name)
            | What::Fork(name) => format!("{}:{name}", self.key),
        }
    }
}
