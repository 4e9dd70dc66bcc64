//! What was learned: tasks and what each did, in order.

use std::collections::BTreeMap;

use schedlab_audit::Given;
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Comm, bound_kthread, is_kworker};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::{Did, Placed, Plug};

use crate::known::KnownTask;
use crate::passes::Passes;
use crate::ticks::Ticks;

/// A task of the recording, by its place in [`Learned::tasks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskIndex(pub u32);

impl TaskIndex {
    /// The place.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// All that was learned from a recording.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// Tasks in the order in which they were first seen; who forks stands before its children.
    pub tasks: Vec<Task>,
    /// When the recording begins.
    pub first: Time,
    /// When it ends.
    pub last: Time,
    /// CPUs on which something happened lie below this number.
    pub nr_cpus: usize,
    /// How long idle CPUs took to run tasks that another CPU woke, in us, with how often each was seen.
    pub idle_wakeups: BTreeMap<u64, u64>,
    /// It has `sched_waking`. A `sched_wakeup` alone does not tell who woke a task that another CPU queued.
    pub has_waking: bool,
    /// Wake-ups of tasks that were not asleep: nothing came of them.
    pub wakeups_of_awake: u64,
    /// What happened in ticks.
    pub ticks: Ticks,
    /// When busy CPUs balanced.
    pub passes: Passes,
    /// Groups that tasks were moved to.
    pub groups: Vec<String>,
    /// Sets of CPUs that tasks may use, where the trace tells.
    pub masks: Vec<CpuMask>,
    /// What groups are given, by path, where the trace tells.
    pub given: BTreeMap<String, Given>,
}

impl Learned {
    /// So many of a hundred times an idle CPU ran a task that another CPU woke within this; none if it was never seen.
    pub fn idle_wakeup(&self, percent: u64) -> Option<Duration> {
        let part = self.idle_wakeups.values().sum::<u64>() * percent / 100;
        let mut below = 0;
        let found = self.idle_wakeups.iter().find(|&(_, &count)| {
            below += count;
            below > part
        });
        found.map(|(&us, _)| Duration::micros(us))
    }
}

/// A task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its number in the recording.
    pub pid: Pid,
    /// Its name when it was first seen.
    pub comm: Comm,
    /// Its priority when it was first seen, as the kernel prints it.
    pub prio: i32,
    /// How it came into the recording.
    pub begin: Begin,
    /// Where it went when it was new, and when; none if it was there before, or if that was not recorded.
    pub placed: Option<(Time, Placed)>,
    /// CPU time that it was owed when the recording began, as far as its first wake-ups tell.
    pub lag: Duration,
    /// The CPU that it used before its own when the recording began (`recent_used_cpu`), as far as its wake-ups tell.
    pub recent_used_cpu: Option<CpuId>,
    /// What it did before the recording, as far as what follows tells; none if it was not there, or slept.
    pub did: Option<Did>,
    /// A kernel thread of one CPU that tasks wake on that CPU alone: each CPU has its own, and they wake that of theirs.
    pub of_wakers_cpu: bool,
    /// Its sleeps that no task ended, if there were any, ended in softirqs, as those of threads of the kernel do.
    pub wheel: bool,
    /// A thread of the process of the task that forked it.
    pub is_thread: bool,
    /// It ran on another CPU than its name says: it has that of a kernel thread, and is none.
    pub ran_elsewhere: bool,
    /// It takes no part in a replay: the simulated kernel has its own.
    pub is_left_out: bool,
    /// How long it usually works between two calls of sched_yield() that were seen; none if it makes no such calls.
    pub yields: Option<Duration>,
    /// The group in which it was born, if not in that of its parent, by its place in [`Learned::groups`].
    pub group: Option<u32>,
    /// The CPUs that it may use, if the trace told before it was met, by their place in [`Learned::masks`].
    pub allowed: Option<u32>,
    /// What it may run as a deadline task; none if it was not seen to be out of it.
    pub budget: Option<Budget>,
    /// Its end was recorded.
    pub ended: bool,
    /// What it did.
    pub steps: Vec<Step>,
}

/// What a deadline task may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// So long.
    pub runtime: Duration,
    /// In each period.
    pub period: Duration,
}

/// How a task came into the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// It ran on this CPU when the recording began.
    Running(CpuId),
    /// It waited to run on this CPU.
    Runnable(CpuId),
    /// It was asleep, and had run on this CPU.
    Asleep(CpuId),
    /// Another task forked it.
    Forked(TaskIndex),
}

/// One thing that a task did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It worked for so long, however often it was interrupted.
    Run(Duration),
    /// It slept until nobody in particular woke it.
    Sleep(Sleep),
    /// An idle CPU heard of the wake-up that ends the next sleep so long after.
    Heard(Duration),
    /// The interrupt that ends the next sleep came to a CPU, while the task had been on another or, where interrupts come without
    /// regard to that, perhaps on the same.
    InterruptOn {
        /// Where it came.
        cpu: CpuId,
        /// Where the task had been.
        task_on: CpuId,
    },
    /// It slept until this task woke it.
    Wait(TaskIndex),
    /// It woke a task.
    Wake(TaskIndex),
    /// It let others run.
    Yield,
    /// It was out of its budget, as a deadline task, until its next period.
    OutOfBudget,
    /// It forked a task.
    Fork(TaskIndex),
    /// It replaced its program.
    Exec(Comm),
    /// It took another name.
    Rename(Comm),
    /// Its priority changed.
    Prio(i32),
    /// It was moved to a group, by its place in [`Learned::groups`].
    Group(u32),
    /// It may use other CPUs, by their place in [`Learned::masks`].
    Allowed(u32),
    /// It took a CPU out of use, or brought it back, or went a part of the way.
    Hotplug {
        /// The CPU.
        cpu: CpuId,
        /// How far.
        to: Plug,
    },
    /// Something that turned out to be nothing.
    Nothing,
}

/// A sleep that no task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// How long it lasted.
    pub span: Duration,
    /// Time since the last such sleep ended, or since the task began.
    pub since_last: Duration,
    /// It waits for something that takes a time of its own from when it was asked for: a
    /// device, or a task that is not part of the replay.
    pub served: bool,
}

impl Task {
    /// The CPU that it is bound to, under the name that it has or takes, as a thread of the kernel: that which the name says,
    /// if it ran nowhere else and was not known to be free to.
    pub fn bound_by(&self, comm: &Comm, known: Option<&KnownTask>) -> Option<CpuId> {
        let is_free = self.ran_elsewhere;
        bound_kthread(comm).filter(|&cpu| !is_free && known.is_none_or(|known| known.is_bound_to(cpu)))
    }

    /// Whether it is a thread of the kernel, as far as is known.
    pub fn is_kthread(&self, known: Option<&KnownTask>) -> bool {
        is_kworker(&self.comm) || self.bound_by(&self.comm, known).is_some()
    }

    /// Whether it had this name: its number may have been used again by another.
    pub fn had_name(&self, name: &str) -> bool {
        let took = |step: &Step| match step {
            Step::Exec(comm) | Step::Rename(comm) => *comm == name,
            _ => false,
        };
        self.comm == name || self.steps.iter().any(took)
    }

    /// How long it worked in all.
    pub fn work(&self) -> Duration {
        self.steps.iter().fold(Duration::ZERO, |sum, step| match step {
            Step::Run(work) => sum + *work,
            _ => sum,
        })
    }
}
