//! What was learned: tasks, and what each did, in order.

use std::collections::BTreeMap;

use schedlab_recording::Given;
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Comm, bound_kthread, is_kworker};
use schedlab_units::{Duration, Pid, Time};
use schedlab_workload::{Did, Placed, Plug};

use crate::known::KnownTask;
use crate::passes::Passes;
use crate::ticks::Ticks;

/// A task of the recording, as its index in [`Learned::tasks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaskIndex(pub u32);

impl TaskIndex {
    /// The index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Everything that was learned from a recording.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// Tasks in the order of their first events; a parent precedes its children.
    pub tasks: Vec<Task>,
    /// Start of the recording.
    pub first: Time,
    /// End of the recording.
    pub last: Time,
    /// One more than the highest CPU with an event.
    pub nr_cpus: usize,
    /// How long idle CPUs took to run tasks that another CPU woke: us, and how often each time was seen.
    pub idle_wakeups: BTreeMap<u64, u64>,
    /// It contains `sched_waking`. A `sched_wakeup` alone does not show the waker of a task that another CPU queued.
    pub has_waking: bool,
    /// Wake-ups of tasks that were not asleep; they had no effect.
    pub wakeups_of_awake: u64,
    /// Events caused by ticks.
    pub ticks: Ticks,
    /// When busy CPUs balanced.
    pub passes: Passes,
    /// Groups that tasks were moved to.
    pub groups: Vec<String>,
    /// Sets of CPUs that tasks may use, if the trace contains them.
    pub masks: Vec<CpuMask>,
    /// Settings of groups, by path, if the trace contains them.
    pub given: BTreeMap<String, Given>,
}

impl Learned {
    /// The time within which an idle CPU ran a task that another CPU woke in `percent` of the cases; `None` if that
    /// never happened.
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
    /// Its pid in the recording.
    pub pid: Pid,
    /// Its name at its first event.
    pub comm: Comm,
    /// Its priority at its first event, as the kernel prints it.
    pub prio: i32,
    /// How it came into the recording.
    pub begin: Begin,
    /// Where and when it was placed as a new task; `None` if it existed before, or if that was not recorded.
    pub placed: Option<(Time, Placed)>,
    /// CPU time that it was owed when the recording began, derived from its first wake-ups.
    pub lag: Duration,
    /// The CPU that it used before its own when the recording began (`recent_used_cpu`), derived from its wake-ups.
    pub recent_used_cpu: Option<CpuId>,
    /// What it presumably did before the recording, derived from later events; `None` if it did not exist, or
    /// slept.
    pub did: Option<Did>,
    /// A per-CPU kernel thread that tasks wake only on its own CPU: each CPU has one, and tasks wake that of their CPU.
    pub of_wakers_cpu: bool,
    /// Its sleeps without a waker, if any, ended in softirqs, as those of kernel threads do.
    pub wheel: bool,
    /// A thread of the process of the task that forked it.
    pub is_thread: bool,
    /// It has the name of a per-CPU kernel thread, but ran on another CPU, so it is not one.
    pub ran_elsewhere: bool,
    /// It takes no part in a replay: the simulated kernel has its own.
    pub is_left_out: bool,
    /// How long it usually works between two calls of sched_yield() that show; `None` if it makes no such calls.
    pub yields: Option<Duration>,
    /// The group in which it was created, if that is not its parent's, as an index in [`Learned::groups`].
    pub group: Option<u32>,
    /// The CPUs that it may use, if the trace shows them before its first event, as an index in
    /// [`Learned::masks`].
    pub allowed: Option<u32>,
    /// Its budget as a deadline task; `None` if no event showed it out of budget.
    pub budget: Option<Budget>,
    /// Its end was recorded.
    pub ended: bool,
    /// Its steps.
    pub steps: Vec<Step>,
}

/// The budget of a deadline task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Run time in each period.
    pub runtime: Duration,
    /// Length of a period.
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

/// One step of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// It worked for this long, however often it was interrupted.
    Run(Duration),
    /// It slept until something other than a task woke it.
    Sleep(Sleep),
    /// An idle CPU noticed the wake-up that ends the next sleep after this delay.
    Heard(Duration),
    /// The interrupt that ends the next sleep arrived at a CPU, while the task had been on another one; on the same one
    /// is possible where interrupts arrive regardless of the task.
    InterruptOn {
        /// Where it arrived.
        cpu: CpuId,
        /// The task's previous CPU.
        task_on: CpuId,
    },
    /// It slept until this task woke it.
    Wait(TaskIndex),
    /// It woke a task.
    Wake(TaskIndex),
    /// It let others run.
    Yield,
    /// It was out of its deadline budget until its next period.
    OutOfBudget,
    /// It forked a task.
    Fork(TaskIndex),
    /// It executed another program.
    Exec(Comm),
    /// It changed its name.
    Rename(Comm),
    /// Its priority changed.
    Prio(i32),
    /// It was moved to a group, an index in [`Learned::groups`].
    Group(u32),
    /// Its allowed CPUs changed, an index in [`Learned::masks`].
    Allowed(u32),
    /// It took a CPU offline or online, or part of the way.
    Hotplug {
        /// The CPU.
        cpu: CpuId,
        /// How far.
        to: Plug,
    },
    /// A discarded step.
    Nothing,
}

/// A sleep that no task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sleep {
    /// How long it lasted.
    pub span: Duration,
    /// Time since the last such sleep ended, or since the task began.
    pub since_last: Duration,
    /// It waits for something that takes its own time from the moment of the request: a device, or a task that is not
    /// part of the replay.
    pub served: bool,
}

impl Task {
    /// The CPU to which it is bound as a kernel thread under this name: the one in the name, if it ran nowhere else and
    /// was not known to be unbound.
    pub fn bound_by(&self, comm: &Comm, known: Option<&KnownTask>) -> Option<CpuId> {
        let is_free = self.ran_elsewhere;
        bound_kthread(comm).filter(|&cpu| !is_free && known.is_none_or(|known| known.is_bound_to(cpu)))
    }

    /// Whether it is known to be a kernel thread.
    pub fn is_kthread(&self, known: Option<&KnownTask>) -> bool {
        is_kworker(&self.comm) || self.bound_by(&self.comm, known).is_some()
    }

    /// Whether it had this name: its pid may have been reused.
    pub fn had_name(&self, name: &str) -> bool {
        let took = |step: &Step| match step {
            Step::Exec(comm) | Step::Rename(comm) => *comm == name,
            _ => false,
        };
        self.comm == name || self.steps.iter().any(took)
    }

    /// Total time that it worked.
    pub fn work(&self) -> Duration {
        self.steps.iter().fold(Duration::ZERO, |sum, step| match step {
            Step::Run(work) => sum + *work,
            _ => sum,
        })
    }
}
