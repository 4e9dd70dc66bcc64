//! A whole workload: its tasks, the objects they share, and its measures.
//!
//! Plain data, checked by [`WorkloadBuilder::finish`](crate::WorkloadBuilder::finish):
//! every id is in range and every program ends in `Exit`.

use std::borrow::Cow;

use schedlab_topology::CpuId;
use schedlab_units::{Duration, Time};

use crate::{
    AttrId, CpuList, CpuListId, Cursor, Dist, GroupId, LOOP_DEPTH_MAX, LabelId, Objects, Op, ProcessId,
    Program, ProgramId, SpecId, TaskEntry,
};

/// What runs on the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// The ops of all programs.
    pub code: Vec<Op>,
    /// The place of each program in the code.
    pub programs: Vec<Program>,
    /// The tasks, forked ones included.
    pub tasks: Vec<TaskEntry>,
    /// Groups below the root; a parent comes before its children.
    pub groups: Vec<GroupSpec>,
    /// What tasks share.
    pub objects: Objects,
    /// Distributions that ops and devices draw from.
    pub dists: Vec<Dist>,
    /// Sets of allowed CPUs.
    pub cpu_lists: Vec<CpuList>,
    /// Scheduling attributes.
    pub attrs: Vec<SchedAttr>,
    /// Names that tasks take.
    pub comms: Vec<String>,
    /// The texts of marks; see [`Workload::mark_text`].
    pub labels: Vec<String>,
    /// Parts of kernel strings with which tasks switch the running kernel.
    pub parts: Vec<String>,
    /// The scheduling domains are built when the run begins, without earlier balance passes; else the machine has been
    /// up for a while.
    pub fresh_domains: bool,
    /// When everything is killed; otherwise the run ends with its last foreground task.
    pub duration: Option<Duration>,
    /// The measures computed from marks.
    pub measures: Vec<Measure>,
    /// How many operations a whole run makes, if no marks count them: messages, for example.
    pub operations: Option<u64>,
    /// The CPU on which the lengths of work were measured, if that was not one of
    /// capacity 1024; see [`Workload::scale_work`].
    pub calibrated_on: Option<CpuId>,
}

/// Shares of a weight of cgroup v2.
pub fn shares_of_weight(weight: u32) -> u64 {
    (u64::from(weight) * 1024).div_ceil(100).max(2)
}

/// What a task did before a run, in parts of 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Did {
    /// It ran.
    pub running: u16,
    /// It ran or waited to run.
    pub runnable: u16,
    /// It starts in the middle of that, not asleep.
    pub awake: bool,
}

/// A kind of task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Its name, and its comm if it is not forked. A forked task starts with its parent's comm until it takes
    /// another. One of several also has a number: [`TaskEntry::name`] has both.
    pub name: String,
    /// How the name becomes a comm at [`Op::OwnComm`](crate::Op::OwnComm).
    pub naming: Naming,
    /// What it does.
    pub program: ProgramId,
    /// How it is created.
    pub start: Start,
    /// The CPU on which it begins, if it is not forked; `None` leaves it to the engine.
    pub start_cpu: Option<CpuId>,
    /// Where it is placed when it is forked, if that is known; otherwise the kernel chooses.
    pub placed: Option<Placed>,
    /// Without `start_cpu`: starts from a CPU drawn by the seed, as the shell that starts it may sit anywhere.
    pub start_anywhere: bool,
    /// Its address space.
    pub process: Process,
    /// A thread of the kernel.
    pub kthread: bool,
    /// Its sleeps end by the timer wheel, in the softirq of a tick, as for all kernel threads.
    pub wheel: bool,
    /// Policy, priority, slice and clamps; `None` inherits, or is `SchedAttr::default()`.
    pub attr: Option<AttrId>,
    /// Allowed CPUs; `None` inherits, or allows all.
    pub cpus: Option<CpuListId>,
    /// Group; `None` inherits, or is the root.
    pub group: Option<GroupId>,
    /// For a task that is not forked: the wakee flips from its past; `None` for zero.
    pub flips: Option<Flips>,
    /// CPU time that it is owed at its first wake-up, from before the run (`vlag` at nice 0).
    pub lag: Duration,
    /// Its recently used CPU at its first wake-up, from before the run (`recent_used_cpu`).
    pub recent_used_cpu: Option<CpuId>,
    /// What it did before, which its averages contain at its first wake-up, or at its start if it was awake
    /// then.
    pub did: Option<Did>,
    /// Bytes it works on that caches should keep, for the cost of moving it.
    pub footprint: u64,
    /// Whether its work waits for memory more than it computes (an SMT sibling hurts it more).
    pub memory_bound: bool,
    /// Whether the run may end while it still lives.
    pub background: bool,
    /// It outlives its program: it sleeps for good, without an exit.
    pub lives_on: bool,
}

/// How often a task has changed its wakee: `wakee_flips`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flips {
    /// Changes, halved each second.
    pub count: u32,
    /// How long before the start of the task they were last halved.
    pub halved: Duration,
}

impl TaskSpec {
    /// A process that starts when the run begins.
    pub fn root(name: impl Into<String>, program: ProgramId) -> TaskSpec {
        TaskSpec {
            name: name.into(),
            naming: Naming::Exact,
            program,
            start: Start::At(Duration::ZERO),
            start_cpu: None,
            placed: None,
            start_anywhere: false,
            process: Process::Own,
            kthread: false,
            wheel: false,
            attr: None,
            cpus: None,
            group: None,
            flips: None,
            lag: Duration::ZERO,
            recent_used_cpu: None,
            did: None,
            footprint: 0,
            memory_bound: false,
            background: false,
            lives_on: false,
        }
    }

    /// A process that another task forks.
    pub fn forked(name: impl Into<String>, program: ProgramId) -> TaskSpec {
        TaskSpec { start: Start::ByFork, ..TaskSpec::root(name, program) }
    }

    /// The same as a thread of a process.
    pub fn thread_of(self, process: ProcessId) -> TaskSpec {
        TaskSpec { process: Process::Thread(process), ..self }
    }
}

/// Where a kernel placed a new task, and the conditions for repeating that choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The CPU on which its parent forked it.
    pub from: CpuId,
    /// The CPU it was put on.
    pub to: CpuId,
    /// Whether that one had nothing to run.
    pub was_idle: bool,
    /// How long it then took to notice the task; `None` leaves it to the machine.
    pub heard: Option<Duration>,
}

/// How a spec's name becomes a comm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// As it is.
    Exact,
    /// `name-I-N`: I counts from `first` the tasks of the workload that are named
    /// this way, N those of this spec from 0.
    Counted {
        /// The first I.
        first: u32,
    },
}

/// How a task is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Without a parent, this long after the run begins.
    At(Duration),
    /// At each [`Op::Fork`] that names it.
    ByFork,
}

/// Whose address space a task uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// Its own: a process, new at each fork.
    Own,
    /// That of a process, whose leader is the first spec that names it.
    Thread(ProcessId),
}

/// What `sched_setattr()` sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedAttr {
    /// Policy with its priority.
    pub policy: Policy,
    /// A slice of its own, for kernels that let a fair task request one.
    pub slice: Option<Duration>,
    /// Lower clamp of the utilisation, 0 to 1024.
    pub util_min: Option<u16>,
    /// Upper clamp of the utilisation, 0 to 1024.
    pub util_max: Option<u16>,
}

/// A scheduling policy with its priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER.
    Normal {
        /// -20 to 19.
        nice: i8,
    },
    /// SCHED_BATCH.
    Batch {
        /// -20 to 19.
        nice: i8,
    },
    /// SCHED_IDLE. The nice value is kept for a later return to another fair policy.
    Idle {
        /// -20 to 19.
        nice: i8,
    },
    /// SCHED_FIFO.
    Fifo {
        /// 1 to 99.
        priority: u8,
    },
    /// SCHED_RR.
    Rr {
        /// 1 to 99.
        priority: u8,
    },
    /// SCHED_DEADLINE; see [`Deadline`] for the microsecond fields.
    Deadline(Deadline),
}

/// Parameters of SCHED_DEADLINE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// CPU time per period.
    pub runtime: Duration,
    /// When it must have been provided, from the start of the period.
    pub deadline: Duration,
    /// The period.
    pub period: Duration,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy::Normal { nice: 0 }
    }
}

/// A group of tasks: a cgroup with its cpu controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSpec {
    /// Its path below the root, `/a/b`.
    pub path: String,
    /// Its parent group; `None` is the root.
    pub parent: Option<GroupId>,
    /// Its shares, 1024 being what a task of nice 0 has (cgroup v2 weight 100).
    pub shares: u64,
    /// The limit on its CPU time.
    pub quota: Option<Quota>,
    /// `cpu.idle`: its tasks together count as one of SCHED_IDLE.
    pub idle: bool,
    /// `cpu.uclamp.min`: what it protects of its tasks' utilisation, of 1024.
    pub util_min: Option<u16>,
    /// `cpu.uclamp.max`: what it limits it to, of 1024.
    pub util_max: Option<u16>,
    /// Its cpuset.
    pub cpus: Option<CpuListId>,
}

impl GroupSpec {
    /// A group with the kernel's defaults.
    pub fn new(path: String, parent: Option<GroupId>) -> GroupSpec {
        let (util_min, util_max) = (None, None);
        GroupSpec { path, parent, shares: 1024, quota: None, idle: false, util_min, util_max, cpus: None }
    }
}

/// CPU bandwidth of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// CPU time per period.
    pub quota: Duration,
    /// The period.
    pub period: Duration,
    /// Unused time that may be saved up.
    pub burst: Duration,
}

/// A figure computed from the marks of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: &'static str,
    /// Whether less is better.
    pub lower_is_better: bool,
    /// How it is computed.
    pub rule: MeasureRule,
}

/// Linux numbers no more tasks than this, `PID_MAX_LIMIT`.
pub const TASKS_MAX: u32 = 4 << 20;

/// The mark from which on everything counts: what came before was warming up.
pub const STEADY: &str = "steady";

/// The mark where the second half of what is measured begins (value 0) and ends (1), if the run waited until it had settled.
pub const HALF: &str = "second half";

/// How a measure is computed from the marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasureRule {
    /// Seconds from the first mark `from` to the last mark `to`, of any task.
    Elapsed {
        /// The first of these.
        from: LabelId,
        /// To the last of these.
        to: LabelId,
    },
    /// One sample for each `from` with the next `to` of the same task, in nanoseconds.
    Spans {
        /// Begins a span.
        from: LabelId,
        /// Ends it.
        to: LabelId,
    },
    /// A percentile of the same.
    SpanAt {
        /// Begins a span.
        from: LabelId,
        /// Ends it.
        to: LabelId,
        /// How many of 1000 spans are no longer.
        permille: u16,
    },
    /// `amount` divided by the shortest span, in units of 10^6 per second, without the first `skip` spans.
    BestRate {
        /// Begins a span.
        from: LabelId,
        /// Ends it.
        to: LabelId,
        /// What one span moves.
        amount: u64,
        /// Spans at the beginning that do not count.
        skip: u32,
    },
    /// The sum of the values of these marks per second of the run, counted from the first one.
    Rate {
        /// The marks.
        label: LabelId,
    },
    /// The values of these marks, ns: their mean, or a percentile.
    Values {
        /// The marks.
        label: LabelId,
        /// How many of 1000 values are no larger; `None` for the mean.
        permille: Option<u16>,
    },
    /// Seconds of a whole run, whose marks add up to `whole`, at the rate of the sampled marks.
    Whole {
        /// The marks.
        label: LabelId,
        /// The sum of their values in a whole run.
        whole: u64,
    },
}

impl MeasureRule {
    /// The marks that it reads.
    pub fn labels(self) -> impl Iterator<Item = LabelId> {
        let (one, other) = match self {
            MeasureRule::Elapsed { from, to }
            | MeasureRule::Spans { from, to }
            | MeasureRule::SpanAt { from, to, .. }
            | MeasureRule::BestRate { from, to, .. } => (from, Some(to)),
            MeasureRule::Rate { label }
            | MeasureRule::Values { label, .. }
            | MeasureRule::Whole { label, .. } => (label, None),
        };
        [Some(one), other].into_iter().flatten()
    }
}

impl Workload {
    /// The ops of a program.
    pub fn ops(&self, program: ProgramId) -> &[Op] {
        let Program { entry, len, .. } = &self.programs[program.index()];
        &self.code[entry.index()..][..*len as usize]
    }

    /// The number of processes that tasks share; [`ProcessId`]s are below it.
    pub fn nr_processes(&self) -> u32 {
        let number = |process| if let Process::Thread(process) = process { process.0 + 1 } else { 0 };
        self.tasks.iter().map(|task| number(task.process)).max().unwrap_or(0)
    }

    /// Whether it has memory that tasks share.
    pub fn shares_memory(&self) -> bool {
        self.code.iter().any(|op| matches!(op, Op::Share { .. }))
    }

    /// The spec of a task.
    pub fn task(&self, spec: SpecId) -> &TaskSpec {
        &self.tasks[spec.index()]
    }

    /// The attributes that a spec names, if it does.
    pub fn attr(&self, spec: SpecId) -> Option<SchedAttr> {
        self.task(spec).attr.map(|attr| self.attrs[attr.index()])
    }

    /// The tasks that are not forked, in order.
    pub fn roots(&self) -> impl Iterator<Item = SpecId> + '_ {
        (0..self.tasks.len() as u32).map(SpecId).filter(|&s| self.task(s).start != Start::ByFork)
    }

    /// The text of a mark when a task at `cursor` sets it at `now`: in its label `{0}` to `{7}` stand for the
    /// round of the loop at that depth, `{us}` for the time in microseconds.
    pub fn mark_text(&self, label: LabelId, cursor: &Cursor, now: Time) -> Cow<'_, str> {
        let label = self.labels[label.index()].as_str();
        if !label.contains('{') {
            return Cow::Borrowed(label);
        }
        let mut text = label.replace("{us}", &(now.0 / 1_000).to_string());
        for slot in 0..LOOP_DEPTH_MAX {
            text = text.replace(&format!("{{{slot}}}"), &cursor.round(slot).to_string());
        }
        Cow::Owned(text)
    }

    /// Turns lengths of work measured on a CPU of this capacity into those of one of 1024.
    pub fn scale_work(&mut self, capacity: u16) {
        for op in &mut self.code {
            if let Op::Run { work } | Op::RunKernel { work, .. } | Op::RunWall { block: work, .. } = op {
                *work = Duration((u128::from(work.0) * u128::from(capacity) / 1024) as u64);
            }
        }
        self.calibrated_on = None;
    }

    /// The words' values at the start.
    pub fn words(&self) -> Vec<i32> {
        self.objects.words.iter().map(|w| w.initial).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkloadBuilder;

    #[test]
    fn marks_name_the_round_and_the_time() {
        let mut w = WorkloadBuilder::new("test");
        let label = w.label("loop {0} phase {1} at {us}");
        let program = w.program("p", |p| {
            p.repeat(3, |p| _ = p.repeat(2, |p| _ = p.mark(label, 0).run(Duration(1))));
        });
        w.task(TaskSpec::root("t", program));
        let w = w.finish().unwrap();
        let mut cursor = Cursor::new(w.programs[program.index()].entry);
        let mut texts = Vec::new();
        loop {
            match cursor.next(&w.code, &mut [], || 0) {
                Op::Mark { label, .. } => texts.push(w.mark_text(label, &cursor, Time(7_500)).into_owned()),
                Op::Exit => break,
                _ => {}
            }
        }
        assert_eq!(texts.len(), 6);
        assert_eq!(texts[3], "loop 1 phase 1 at 7");
    }

    #[test]
    fn work_measured_on_a_small_cpu_is_less_of_a_big_one() {
        let mut w = WorkloadBuilder::new("test");
        let program = w.program("p", |p| _ = p.run(Duration(1_000)).sleep(Duration(1_000)));
        w.task(TaskSpec::root("t", program));
        let mut w = w.finish().unwrap();
        w.scale_work(512);
        assert_eq!(w.code[..2], [Op::Run { work: Duration(500) }, Op::Sleep { span: Duration(1_000) }]);
    }
}
