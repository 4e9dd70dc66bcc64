//! The objects through which tasks wait for and wake each other.
//!
//! Each is a description; its state belongs to the engine.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::{DistId, QueueId, RegionId, SemId};

/// Everything tasks share, in tables by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Mutexes.
    pub mutexes: Vec<MutexSpec>,
    /// Condition variables, by name.
    pub conds: Vec<String>,
    /// Counting semaphores.
    pub sems: Vec<SemSpec>,
    /// Barriers.
    pub barriers: Vec<BarrierSpec>,
    /// Pipes and sockets.
    pub channels: Vec<ChannelSpec>,
    /// Timers shared by tasks, by name.
    pub timers: Vec<String>,
    /// Words of memory.
    pub words: Vec<WordSpec>,
    /// Block devices.
    pub devices: Vec<DeviceSpec>,
    /// Workqueues.
    pub queues: Vec<QueueSpec>,
    /// Stretches of memory.
    pub regions: Vec<RegionSpec>,
    /// Passes over memory.
    pub accesses: Vec<AccessSpec>,
    /// Sources of interrupts.
    pub sources: Vec<SourceSpec>,
}

/// A mutex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MutexSpec {
    /// Its name.
    pub name: String,
    /// How tasks wait that find it locked.
    pub kind: MutexKind,
    /// Whether the holder inherits the priority of waiters.
    pub pi: bool,
}

/// How tasks wait for a mutex.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MutexKind {
    /// A futex of user space: sleeps at once, the next comer may take it first.
    #[default]
    Futex,
    /// A mutex of the kernel: spins while the holder runs, then sleeps.
    Kernel,
    /// A lock of user space; waiters spin in user mode.
    Spin {
        /// CPU time that a task spins for it before it sleeps.
        spin: Duration,
        /// How long it then sleeps before it tries again; zero: until the lock is released.
        sleep: Duration,
    },
}

/// A counting semaphore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SemSpec {
    /// Its name.
    pub name: String,
    /// Its count at the start.
    pub initial: u32,
    /// One task waits, others post: each wait sleeps and each post wakes. A post that finds no sleeper is owed, and is
    /// paid as soon as the task sleeps.
    pub owes: bool,
    /// The posting task hints that it will sleep soon, as writers and readers of pipes do.
    pub sync: bool,
}

/// A barrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierSpec {
    /// Its name.
    pub name: String,
    /// How many must arrive.
    pub parties: u32,
    /// How much CPU time a waiting task spends spinning before it sleeps.
    pub spin: Duration,
}

/// A pipe, or one direction of a pair of connected sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelSpec {
    /// Its name.
    pub name: String,
    /// Which of the two.
    pub kind: ChannelKind,
    /// Bytes that fit in before the writer sleeps; of a pipe, where pages are of 4 KB.
    pub capacity: u32,
}

/// What kind of channel, hence how it locks, copies and wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// One mutex for both ends; small messages share pages.
    Pipe,
    /// A unix stream socket: a queue of buffers, one per write.
    Socket,
}

/// A word of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordSpec {
    /// Its name.
    pub name: String,
    /// Its value at the start.
    pub initial: i32,
}

/// A block device: a number of requests are in service at once, the others wait in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Its name.
    pub name: String,
    /// How long one request takes once in service, by the wall.
    pub service: DistId,
    /// How many are in service at once.
    pub depth: u32,
    /// How the waiting task is notified.
    pub completion: Completion,
}

/// How the end of a request reaches the task that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// An interrupt at the CPU that submitted the request.
    IrqSubmitter,
    /// An interrupt at one CPU.
    IrqAt(CpuId),
    /// A worker serves the request, spending `work` of kernel time before and
    /// after the wait for the device, and wakes the task.
    Worker {
        /// Whose worker.
        queue: QueueId,
        /// Kernel-mode work per request.
        work: Duration,
        /// Whether the block softirq notifies the task: raised by an IPI at the submitter's CPU if that shares no cache
        /// with the worker's, otherwise at the worker's CPU, where ksoftirqd runs it. One worker then serves all
        /// requests, one after another. Without it each request has a worker, which wakes the task.
        softirq: bool,
    },
}

/// A workqueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueSpec {
    /// Its name.
    pub name: String,
    /// Which workers serve it.
    pub kind: QueueKind,
}

/// Which kworkers take the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueKind {
    /// Those bound to the CPU that queued it.
    PerCpu,
    /// The same, at high priority (nice -20).
    PerCpuHighPri,
    /// Those bound to no CPU, in the pool of the node.
    Unbound,
}

/// A stretch of memory. Its pages have no node before they are touched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSpec {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

/// A pass over a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessSpec {
    /// The region.
    pub region: RegionId,
    /// How the bytes are reached.
    pub pattern: Pattern,
    /// Bytes read; for [`Pattern::Chase`] the number of hops times the stride.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Distance from one access to the next.
    pub stride: u32,
    /// Whether stores go past the caches, so that lines are not fetched to be written.
    pub streaming: bool,
}

/// In which order memory is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One after the other: limited by bandwidth.
    Sequential,
    /// Scattered, each known beforehand: limited by misses in flight.
    Random,
    /// Each address is read from the one before, one after the other.
    ChaseSequential,
    /// Each address is read from the one before, scattered: limited by latency.
    Chase,
}

/// Something that interrupts a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSpec {
    /// Its name.
    pub name: String,
    /// The CPU it interrupts.
    pub cpu: CpuId,
    /// When.
    pub trigger: Trigger,
    /// Time spent in the interrupt handler.
    pub hard: Duration,
    /// Time spent in the softirq behind it.
    pub soft: Duration,
    /// A semaphore that the softirq posts.
    pub posts: Option<SemId>,
}

/// What triggers an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Repeatedly, at spans drawn from the distribution.
    Every(DistId),
    /// A span after each [`Op::Raise`](crate::Op::Raise).
    Raised(DistId),
}
