//! A task as the engine sees it: what it is doing, and what it waits for.

use schedlab_machine::{Warmth, Work};
use schedlab_topology::CpuId;
use schedlab_trace::Comm;
use schedlab_units::{Duration, Pid, TaskId, Time};
use schedlab_workload::{
    AccessId, BarrierId, ChannelId, CondId, Cursor, DeviceId, MutexId, OWN_TIMERS_MAX, Op, RegionId, Section,
    SemId, SpecId, WordId,
};

use crate::account::Part;
use crate::few::Few;
use crate::locks::KernelLock;
use crate::rng::Stream;
use crate::wait::{Pipe, Waiters};

/// What the task does after its current work, or after a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The next op of its program.
    Fetch,
    /// This op, from user mode.
    Act(Op),
    /// One block of an op with a fixed end time is done.
    Wall { until: Time, block: u64 },
    /// This much of the task's region is touched.
    Touched { bytes: u64, left: u64 },
    /// Tries to take the lock.
    Lock(MutexId),
    /// Has spun for the lock in user mode without getting it.
    SpunForMutex(MutexId),
    /// In the kernel, tries to take a mutex.
    KernelLock(KernelLock),
    /// Has spun for a mutex without getting it.
    SpunForLock(KernelLock),
    /// Has spun enough: tries once more, then sleeps.
    LockSlowly(KernelLock),
    /// Was woken while it waited for a mutex.
    LockWoken(KernelLock),
    /// Has the mutex.
    Locked(KernelLock),
    /// Has held a pipe's mutex for as long as it takes.
    PipeHeld(ChannelId),
    /// It is about to wake those that wait for it; `decides` ns of the wake-up are paid.
    PipeWakes { channel: ChannelId, decides: u64 },
    /// Tries to take from the semaphore.
    SemWait(SemId),
    /// Has spun at a barrier that did not open.
    SpunAtBarrier(BarrierId),
    /// Wakes this many more.
    Wake { from: WakeFrom, left: u32 },
    /// Writes the rest.
    Write { channel: ChannelId, left: u32, resumed: bool },
    /// Reads the rest.
    Read { channel: ChannelId, left: u32, resumed: bool },
    /// The wait on a word is over.
    FutexWoken,
    /// The new task is made.
    Cloned(SpecId),
    /// The new program is in place.
    Execed(schedlab_workload::CommId),
    /// Has freed its resources, and leaves the group of its session.
    Exiting,
    /// Has paid for its exit.
    Ended,
    /// Waits for its children.
    WaitChildren,
    /// A worker that looks for work.
    NextItem,
    /// A worker that serves a request of a device: before it, or after it.
    Submit { device: DeviceId },
    /// Has sent a request to a device and is about to sleep, unless the request is done.
    Asked { device: DeviceId, done: bool },
    /// The request is done; `woken` until the worker has paid for what follows.
    Complete { device: DeviceId, woken: bool },
    /// A stopper that looks for work.
    Stopper,
    /// `ksoftirqd`, with softirqs left to it.
    Softirqs,
    /// A source of noise, before or after its work.
    Noise,
}

impl Stage {
    /// The part of the account that the work before this stage belongs to; `None` if it is the task's own, or was
    /// charged when it began.
    #[inline]
    pub fn part(self) -> Option<Part> {
        match self {
            Stage::SpunForLock(_) | Stage::SpunForMutex(_) => Some(Part::Waiting),
            Stage::Touched { .. }
            | Stage::Cloned(_)
            | Stage::Execed(_)
            | Stage::Exiting
            | Stage::Ended
            | Stage::WaitChildren
            | Stage::Submit { .. }
            | Stage::Asked { .. }
            | Stage::Complete { .. } => Some(Part::Call),
            Stage::Softirqs => Some(Part::Irq),
            _ => None,
        }
    }
}

/// A call on a pipe that takes its mutex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipeCall {
    /// It reads; otherwise it writes.
    pub reads: bool,
    /// Bytes left to move.
    pub left: u32,
    /// It has slept already.
    pub resumed: bool,
    /// What it has done.
    pub done: PipeDone,
}

/// What a call on a pipe has done with the mutex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipeDone {
    /// Bytes that it moved.
    pub taken: u32,
    /// The tasks that it wakes.
    pub wakes: PipeWakes,
    /// Its work that is left to pay for, ns.
    pub rest: u64,
}

/// How many tasks of a wait queue a call wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Woken {
    #[default]
    None,
    First,
    All,
}

impl Woken {
    /// The first task or all, if any.
    pub fn some(any: bool, first: bool) -> Woken {
        match (any, first) {
            (false, _) => Woken::None,
            (true, true) => Woken::First,
            (true, false) => Woken::All,
        }
    }

    fn take(self, queue: &mut Waiters, woken: &mut Vec<TaskId>) {
        match self {
            Woken::None => {}
            Woken::First => queue.take_one(woken),
            Woken::All => queue.take_all(woken),
        }
    }
}

/// The tasks that a call on a pipe wakes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PipeWakes {
    /// Of those that wait for something to read.
    pub readers: Woken,
    /// Of those that wait for room.
    pub writers: Woken,
}

impl PipeWakes {
    /// Whether any of them waits.
    pub fn finds(self, pipe: &mut Pipe) -> bool {
        self.readers != Woken::None && pipe.readers().len() > 0
            || self.writers != Woken::None && pipe.writers().len() > 0
    }

    /// Removes them from their queues, those of the other side first.
    pub fn take(self, pipe: &mut Pipe, reads: bool, woken: &mut Vec<TaskId>) {
        if reads {
            self.writers.take(pipe.writers(), woken);
        }
        self.readers.take(pipe.readers(), woken);
        if !reads {
            self.writers.take(pipe.writers(), woken);
        }
    }
}

/// The tasks to wake, for a task that wakes several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeFrom {
    /// The tasks that slept at the barrier when it opened.
    Barrier(BarrierId),
    /// The tasks that waited for the condition.
    Cond(CondId),
    /// The tasks that sleep on the word.
    Word(WordId),
}

/// What a sleeping task waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It does not wait.
    #[default]
    Nothing,
    /// Time to pass.
    Timer,
    /// A lock.
    Mutex(MutexId),
    /// A mutex of the kernel.
    KernelMutex(KernelLock),
    /// A signal.
    Cond(CondId),
    /// A post.
    Sem(SemId),
    /// The others.
    Barrier(BarrierId),
    /// Something to read.
    Readable(ChannelId),
    /// Room to write.
    Writable(ChannelId),
    /// A wake-up on a word.
    Word(WordId),
    /// A device.
    Device(DeviceId),
    /// The end of its children.
    Children,
    /// The end of a thread.
    Join(TaskId),
    /// Being moved by the stopper.
    Stopper,
    /// Work.
    Work,
    /// To be thawed.
    Thaw,
}

/// Where its current work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// In user mode.
    User,
    /// In the kernel.
    Kernel(Section),
}

/// What kind of task it is for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It executes its program.
    Program,
    /// A worker of a pool.
    Worker { pool: u32 },
    /// The stopper of a CPU.
    Stopper,
    /// `ksoftirqd` of a CPU.
    Softirqd,
    /// A source of noise.
    Noise,
}

/// A task.
#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub pid: Pid,
    /// Number of its process.
    pub tgid: Pid,
    /// It shares its process with its leader.
    pub is_thread: bool,
    pub comm: Comm,
    pub role: Role,
    /// The spec it was made from; `None` for threads of the kernel that the engine makes.
    pub spec: Option<SpecId>,
    pub cursor: Cursor,
    pub stage: Stage,
    /// Work before `stage`, ns or bytes.
    pub work: Work,
    /// Work is counted in bytes: it passes at the rate of a memory flow.
    pub streams: bool,
    /// The region it streams through, or touches.
    pub region: Option<RegionId>,
    /// The pass that made it touch memory, to be carried out after that.
    pub then: Option<AccessId>,
    pub mode: Mode,
    pub wait: Wait,
    /// The lock it spins for.
    pub spins_for: Option<KernelLock>,
    /// Mutexes of the kernel that it holds.
    pub holds: Few<KernelLock>,
    /// Semaphores at which it owes posts.
    pub owes: Few<SemId>,
    /// The pipe call in progress.
    pub call: PipeCall,
    /// A source of noise: whether it is at work.
    pub noisy: bool,
    /// For a worker: the task whose request it serves.
    pub serves: Option<TaskId>,
    /// Number of its timer; an event with another is stale.
    pub timer: u32,
    pub timer_set: bool,
    pub timer_cpu: CpuId,
    /// Its timer is one of the wheel: it expires in the softirq of a tick.
    pub wheel: bool,
    /// Whether it must end when it would next enter user mode.
    pub killed: bool,
    /// Whether it must sleep when it would next enter user mode, until it is thawed.
    pub frozen: bool,
    pub ended: bool,
    pub background: bool,
    pub memory_bound: bool,
    pub footprint: u64,
    /// Where its footprint is warm, once it has run with one.
    pub warmth: Option<Box<Warmth>>,
    pub dice: Stream,
    /// How long each of its calls takes.
    pub spread: Stream,
    pub origin: Time,
    pub own_timers: Option<Box<[Option<Time>; OWN_TIMERS_MAX]>>,
    pub parent: Option<TaskId>,
    /// Living forked processes.
    pub children: u32,
    /// Forked processes that have ended and were not waited for.
    pub zombies: u32,
    /// The last task forked from each spec, for joining.
    pub forked: Few<(SpecId, TaskId)>,
    /// The task that waits in a join for this task.
    pub joiner: Option<TaskId>,
    /// When it was switched in.
    pub since: Time,
    /// When its CPU has finished switching away from it.
    pub off_cpu_at: Time,
    /// How long after its next wake-up an idle CPU notices it, if not as the machine defines.
    pub heard: Option<Duration>,
    /// The CPU of the interrupt that ends its next sleep, if not the one where it falls asleep.
    pub interrupt_on: Option<CpuId>,
    /// Its next waker wakes it on the waker's CPU.
    pub comes_to_waker: bool,
    /// It has not been woken yet, and its spec names lag or a recently used CPU from before the run.
    pub has_past: bool,
    /// The same for what it did before the run.
    pub has_done: bool,
    /// Run time reported so far, ns.
    pub runtime_told: u64,
}
