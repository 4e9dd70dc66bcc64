//! Builds a workload from what was learned.
//!
//! Each task becomes a separate program. Where one task woke another, both meet, each at the same point of its own work
//! as in the recording: the one that comes first sleeps, the one that comes second wakes it. In the recording the wakee
//! came first. When it is late in a replay, the waker sleeps instead of running ahead, so that every recorded sleep has
//! its counterpart. With a semaphore, many wakees would find their wake-ups already there, and a third to three
//! quarters of all sleeps would be lost. Alternatively wakers do not wait: the wake-up is owed to the wakee, which
//! sleeps until it gets it. No task can wait for ever: everything before a meeting in either program also comes before
//! it in the recording, and so do as many wake-ups of a task as it waits for.
//!
//! Whatever existed before the recording began exists before the replay begins: a prologue, in which tasks that sleep
//! fall asleep, and their load has time to decay.

use std::collections::BTreeMap;

use schedlab_recording::AffinityHint;
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::Comm;
use schedlab_units::{Duration, Time};
use schedlab_workload::{
    AttrId, BarrierId, CpuList, CpuListId, Deadline, GroupId, LabelId, Miss, Op, Placed, Policy, ProcessId,
    SchedAttr, Section, SemId, SpecId, Start, TaskSpec, Timer, Workload, WorkloadBuilder, WorkloadError,
};

use crate::known::{Known, KnownTask, give, usual_policy};
use crate::learned::{Begin, Budget, Learned, Step, Task, TaskIndex};
use crate::rhythm;
use crate::wakers::{Share, Wakers};
use crate::yields::pieces;

/// Time before the start of what was recorded.
pub const PROLOGUE: Duration = Duration::secs(1);

/// The mark with which a replayed task names its recorded task: its index in [`Learned::tasks`].
pub const MARK: &str = "recorded task";

/// Kernel threads never return to user mode, where lazy requests take effect. How often they call `cond_resched()` is
/// in no event: it is assumed between any two separate pieces of work.
const OFFERS: Section = Section { preempt_off: false, cond_resched_ns: 1000 };

/// What a replay needs to know and the recording does not contain.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name of the workload.
    pub name: String,
    /// Number of CPUs of the recorded machine.
    pub recorded_cpus: usize,
    /// Number of CPUs of the replay machine. A CPU that does not exist there is replaced by its number modulo this.
    pub nr_cpus: usize,
    /// Idle CPUs notice each wake-up with the recorded delay: the machine is the recorded one.
    pub heard: bool,
    /// Interrupts that end sleeps arrive at the recorded CPUs: the machine is the recorded one. Otherwise they arrive
    /// where tasks fall asleep.
    pub interrupts: bool,
    /// What a waker does if its wakee is not asleep yet.
    pub wakers: Wakers,
    /// A task that calls sched_yield() does so once in this many of its usual times between two calls; 0: only where a
    /// call showed.
    pub yields: u8,
    /// Tasks that are new within this time from the start are placed as in the recording, if the state is the same;
    /// later ones are placed by the kernel.
    pub placed: Duration,
    /// Whether existing tasks start with their lag and the CPU that they used before their last one.
    pub past: bool,
    /// CPUs that tasks with a given name may use.
    pub affinity: Vec<AffinityHint>,
    /// What was known about tasks and groups at the time of recording.
    pub known: Known,
}

impl Options {
    /// The CPU that replaces a recorded one.
    fn there(&self, cpu: CpuId) -> CpuId {
        CpuId::from(cpu.index() % self.nr_cpus)
    }
}

impl Learned {
    /// The programs as a workload.
    ///
    /// # Errors
    /// The workload contradicts itself, which would be a bug of the learner.
    pub fn workload(&self, options: &Options) -> Result<Workload, WorkloadError> {
        let mut writer = Writer::new(self, options);
        writer.beginner();
        for (index, task) in self.tasks.iter().enumerate().filter(|(_, task)| !task.is_left_out) {
            writer.task(TaskIndex(index as u32), task);
        }
        for group in &mut writer.w.workload_mut().groups {
            options.known.limit(group);
            if let Some(given) = self.given.get(&group.path) {
                give(group, given);
            }
        }
        writer.w.finish()
    }
}

/// A workload under construction.
struct Writer<'a> {
    options: &'a Options,
    /// Sets of CPUs from the trace.
    masks: &'a [CpuMask],
    /// Start of the recording.
    first: Time,
    w: WorkloadBuilder,
    mark: LabelId,
    /// The spec of each task that takes part.
    specs: Vec<Option<SpecId>>,
    /// Where two tasks meet.
    meetings: BTreeMap<(TaskIndex, TaskIndex), BarrierId>,
    /// Where a task is owed its wake-ups.
    debts: BTreeMap<TaskIndex, SemId>,
    /// Which wake-ups are made with `WF_SYNC`.
    sync: Share,
    /// The process of each task that shares one.
    processes: Vec<Option<ProcessId>>,
    /// When each task that is asleep at the start of the recording falls asleep.
    falls_asleep: Vec<Duration>,
    groups: Vec<Option<GroupId>>,
    /// What was known about each task.
    known: Vec<Option<&'a KnownTask>>,
}

impl<'a> Writer<'a> {
    fn new(learned: &'a Learned, options: &'a Options) -> Writer<'a> {
        let mut w = WorkloadBuilder::new(options.name.clone());
        let mark = w.label(MARK);
        // Index 0 is the task that begins.
        let mut next = 1;
        let mut spec = |task: &Task| {
            (!task.is_left_out).then(|| {
                next += 1;
                SpecId(next - 1)
            })
        };
        let specs = learned.tasks.iter().map(&mut spec).collect();
        let groups = learned.groups.iter().map(|path| w.group(&options.known.shared_by(path))).collect();
        let known: Vec<_> = learned.tasks.iter().map(|task| options.known.of_task(task)).collect();
        let processes = processes(&learned.tasks, &known, &mut w);
        let falls_asleep = falls_asleep(&learned.tasks, options);
        Writer {
            options,
            masks: &learned.masks,
            first: learned.first,
            w,
            mark,
            specs,
            meetings: BTreeMap::new(),
            debts: BTreeMap::new(),
            sync: Share::new(match options.wakers {
                Wakers::Wait => 0,
                Wakers::Owe { sync } => sync,
            }),
            processes,
            falls_asleep,
            groups,
            known,
        }
    }

    /// A task that begins at once, so that the first event of a run shows when the prologue began.
    fn beginner(&mut self) {
        let program = self.w.program("begins", |_| {});
        self.w.task(TaskSpec::root("replay", program));
    }

    fn task(&mut self, index: TaskIndex, task: &Task) {
        let known = self.known[index.index()];
        let told = task.allowed.map(|mask| self.told(mask));
        let cpus = self
            .mask(index, task, &task.comm)
            .or_else(|| told.unwrap_or_else(|| known.and_then(|known| self.known_mask(known))));
        let group = match task.group {
            Some(group) => self.groups[group as usize],
            None => self
                .options
                .known
                .group_of(task.pid, |name| task.had_name(name))
                .and_then(|path| self.w.group(&path)),
        };
        let ops = self.ops(index, task);
        let mark = self.mark;
        let program = self.w.program(task.comm.to_string(), |p| {
            p.mark(mark, i64::from(index.0));
            for op in ops {
                p.op(op);
            }
        });
        let (start, cpu) = match task.begin {
            Begin::Running(cpu) | Begin::Runnable(cpu) => (Start::At(PROLOGUE), Some(cpu)),
            Begin::Asleep(cpu) => (Start::At(self.falls_asleep[index.index()]), Some(cpu)),
            Begin::Forked(_) => (Start::ByFork, None),
        };
        let placed = task.placed.filter(|(at, _)| at.since(self.first) <= self.options.placed);
        let placed = placed.map(|(_, placed)| Placed {
            from: self.options.there(placed.from),
            to: self.options.there(placed.to),
            heard: placed.heard.filter(|_| self.options.heard),
            ..placed
        });
        let attr =
            (start != Start::ByFork || known.is_some()).then(|| self.attr(task.prio, known, task.budget));
        let spec = TaskSpec {
            start,
            start_cpu: cpu.map(|cpu| self.options.there(cpu)),
            placed,
            lag: if self.options.past { task.lag } else { Duration::ZERO },
            recent_used_cpu: task
                .recent_used_cpu
                .filter(|_| self.options.past)
                .map(|cpu| self.options.there(cpu)),
            did: task.did.filter(|_| self.options.past),
            kthread: task.is_kthread(known),
            wheel: task.wheel,
            attr,
            cpus,
            group,
            lives_on: !task.ended,
            ..TaskSpec::root(task.comm.to_string(), program)
        };
        self.w.task(match self.processes[index.index()] {
            Some(process) => spec.thread_of(process),
            None => spec,
        });
    }

    fn ops(&mut self, index: TaskIndex, task: &Task) -> Vec<Op> {
        let spans = rhythm::sleeps_for_spans(&task.steps);
        // A task that is asleep when the recording begins fell asleep in the prologue: its first timed sleep, and the
        // first of its periods, are longer by the rest of the prologue.
        let asleep = match task.begin {
            Begin::Asleep(_) => Duration(PROLOGUE.0 - self.falls_asleep[index.index()].0),
            _ => Duration::ZERO,
        };
        let mut unseen = asleep;
        let in_kernel = task.is_kthread(self.known[index.index()]);
        let mut ops = Vec::new();
        let takes_no_time = |step: &Step| {
            matches!(
                step,
                Step::Heard(_) | Step::InterruptOn { .. } | Step::Group(_) | Step::Allowed(_) | Step::Nothing
            )
        };
        let first = task.steps.iter().position(|step| !takes_no_time(step));
        for (at, step) in task.steps.iter().enumerate() {
            match *step {
                Step::Run(work) if in_kernel => ops.push(Op::RunKernel { work, section: OFFERS }),
                Step::Run(work) => match task.yields {
                    Some(usual) if self.options.yields > 0 => {
                        let pieces = pieces(work, Duration(usual.0 * u64::from(self.options.yields)));
                        ops.extend(pieces.flat_map(|work| [Op::Yield, Op::Run { work }]).skip(1));
                    }
                    _ => ops.push(Op::Run { work }),
                },
                Step::Sleep(sleep) if sleep.served || spans => {
                    let more = if first == Some(at) { asleep } else { Duration::ZERO };
                    ops.push(Op::Sleep { span: (sleep.span + more).max(Duration(1)) });
                }
                Step::Sleep(sleep) => {
                    let period = (sleep.since_last + std::mem::take(&mut unseen)).max(Duration(1));
                    ops.push(Op::TimerWait { timer: Timer::Own(0), period, miss: Miss::KeepGrid });
                }
                Step::Heard(after) if self.options.heard => ops.push(Op::Heard { after }),
                Step::InterruptOn { cpu, .. } if self.options.interrupts => ops.push(Op::InterruptOn { cpu }),
                Step::Heard(_) | Step::InterruptOn { .. } => {}
                Step::Wait(other) | Step::Wake(other) if self.specs[other.index()].is_none() => {}
                Step::Wait(other) | Step::Wake(other) => {
                    if task.of_wakers_cpu && matches!(step, Step::Wait(_)) {
                        ops.push(Op::ComeToWaker);
                    }
                    ops.push(match (self.options.wakers, *step) {
                        (Wakers::Wait, _) => Op::Barrier { barrier: self.meeting(index, other) },
                        (Wakers::Owe { .. }, Step::Wait(_)) => Op::SemWait { sem: self.debt(index) },
                        (Wakers::Owe { .. }, _) => Op::SemPost { sem: self.debt(other) },
                    });
                }
                // This is how a deadline task gives up the rest of its budget.
                Step::Yield | Step::OutOfBudget => ops.push(Op::Yield),
                Step::Fork(child) => ops.extend(self.specs[child.index()].map(|task| Op::Fork { task })),
                Step::Exec(comm) => {
                    ops.push(Op::Exec { comm: self.w.comm(&comm.to_str_lossy()) });
                    ops.extend(self.mask(index, task, &comm).map(|cpus| Op::SetCpus { cpus: Some(cpus) }));
                }
                Step::Rename(comm) => {
                    ops.push(Op::SetComm { comm: self.w.comm(&comm.to_str_lossy()) });
                    ops.extend(self.mask(index, task, &comm).map(|cpus| Op::SetCpus { cpus: Some(cpus) }));
                }
                Step::Prio(prio) => {
                    let attr = self.attr(prio, self.known[index.index()], task.budget);
                    ops.push(Op::SetSched { attr });
                }
                Step::Hotplug { cpu, to } => {
                    ops.push(Op::Hotplug { cpu: self.options.there(cpu), to });
                }
                Step::Allowed(mask) => ops.push(Op::SetCpus { cpus: self.told(mask) }),
                Step::Group(group) => ops.push(Op::SetGroup { group: self.groups[group as usize] }),
                Step::Nothing => {}
            }
        }
        ops
    }

    /// Where a task is owed its wake-ups.
    fn debt(&mut self, wakee: TaskIndex) -> SemId {
        let Writer { w, sync, .. } = self;
        *self.debts.entry(wakee).or_insert_with(|| {
            let sem = w.sem(format!("wakes {}", wakee.index()), 0);
            let spec = &mut w.workload_mut().objects.sems[sem.index()];
            (spec.owes, spec.sync) = (true, sync.next());
            sem
        })
    }

    /// Where two tasks meet.
    fn meeting(&mut self, one: TaskIndex, other: TaskIndex) -> BarrierId {
        let pair = (one.min(other), one.max(other));
        let w = &mut self.w;
        let name = || format!("{} and {}", pair.0.index(), pair.1.index());
        *self.meetings.entry(pair).or_insert_with(|| w.barrier(name(), 2, Duration::ZERO))
    }

    /// The mask given for a task's name or implied by it.
    fn mask(&mut self, index: TaskIndex, task: &Task, comm: &Comm) -> Option<CpuListId> {
        let hint = self.options.affinity.iter().find(|hint| hint.matches(comm));
        let cpus: Vec<CpuId> = match hint {
            Some(hint) => hint.allowed.iter().map(|cpu| self.options.there(cpu)).collect(),
            None => vec![self.options.there(task.bound_by(comm, self.known[index.index()])?)],
        };
        CpuList::new(cpus).map(|list| self.w.cpus(list))
    }

    /// The known mask of a task, if it excludes any CPU.
    fn known_mask(&mut self, known: &KnownTask) -> Option<CpuListId> {
        self.list(&known.allowed)
    }

    /// A mask from the trace, if it excludes any CPU.
    fn told(&mut self, mask: u32) -> Option<CpuListId> {
        let masks = self.masks;
        self.list(&masks[mask as usize])
    }

    /// The CPUs that replace a set of recorded ones; `None` for all.
    fn list(&mut self, allowed: &CpuMask) -> Option<CpuListId> {
        if allowed.weight() >= self.options.recorded_cpus {
            return None;
        }
        let cpus: Vec<CpuId> = allowed.iter().map(|cpu| self.options.there(cpu)).collect();
        CpuList::new(cpus).map(|list| self.w.cpus(list))
    }

    /// Attributes for a priority as the kernel prints it. The trace does not show which of the policies with that
    /// priority it is: the usual one, if nothing more is known.
    fn attr(&mut self, prio: i32, known: Option<&KnownTask>, budget: Option<Budget>) -> AttrId {
        let policy = match (known.map_or_else(|| usual_policy(prio), |known| known.policy(prio)), budget) {
            (Policy::Deadline(_), Some(Budget { runtime, period })) => {
                Policy::Deadline(Deadline { runtime, deadline: period, period })
            }
            (policy, _) => policy,
        };
        self.w.attr(SchedAttr { policy, ..SchedAttr::default() })
    }
}

/// When in the prologue each task falls asleep that is asleep at the beginning of the recording. Those of one CPU
/// do so one after the other in its first half, and after the task that begins it, so that none waits there and is
/// moved to another CPU before it sleeps.
fn falls_asleep(tasks: &[Task], options: &Options) -> Vec<Duration> {
    let cpu = |task: &Task| match task.begin {
        Begin::Asleep(cpu) if !task.is_left_out => Some(options.there(cpu).index()),
        _ => None,
    };
    let mut sleepers = vec![0; options.nr_cpus];
    tasks.iter().filter_map(cpu).for_each(|cpu| sleepers[cpu] += 1);
    let mut before = vec![0; options.nr_cpus];
    let begins = |task: &Task| {
        let Some(cpu) = cpu(task) else { return Duration::ZERO };
        before[cpu] += 1;
        Duration(PROLOGUE.0 / 2 * before[cpu] / (sleepers[cpu] + 1))
    };
    tasks.iter().map(begins).collect()
}

/// The process of each task that has threads or is one; a kernel thread has none.
fn processes(
    tasks: &[Task],
    known: &[Option<&KnownTask>],
    w: &mut WorkloadBuilder,
) -> Vec<Option<ProcessId>> {
    let mut processes = vec![None; tasks.len()];
    let mut by_leader = BTreeMap::new();
    for (index, task) in tasks.iter().enumerate() {
        if task.bound_by(&task.comm, known[index]).is_some() {
            continue;
        }
        if let Some(known) = known[index] {
            processes[index] = Some(*by_leader.entry(known.process).or_insert_with(|| w.process()));
        } else if let Begin::Forked(parent) = task.begin
            && task.is_thread
        {
            let process = *processes[parent.index()].get_or_insert_with(|| w.process());
            processes[index] = Some(process);
        }
    }
    processes
}

#[cfg(test)]
mod tests;
