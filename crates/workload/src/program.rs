//! What a task does, one step after another.
//!
//! A program is a flat run of [`Op`]s that ends in [`Op::Exit`]. All programs of a
//! workload lie one behind the other in [`Workload::code`](crate::Workload::code);
//! a task is a place in it (a [`Cursor`](crate::Cursor)) and nothing else, so a
//! million tasks may share one program. Ids are dense and there are no strings:
//! an op is 24 bytes and is copied out of the table.
//!
//! Ops say *what* is done, never what it costs: system calls, copies and wake-ups
//! are priced by the machine. Only work that is the task's own has a length here.

use schedlab_topology::CpuId;
use schedlab_units::Duration;

use crate::{
    AccessId, AttrId, BarrierId, ChannelId, CommId, CondId, CpuListId, DeviceId, DistId, GroupId, LabelId,
    MutexId, PartId, Pc, ProgramId, QueueId, RegionId, SemId, SourceId, SpecId, TimerId, WordId,
};

/// How deep loops may be nested; a task keeps this many counters.
pub const LOOP_DEPTH_MAX: usize = 8;

/// How many timers a task may have for itself alone.
pub const OWN_TIMERS_MAX: usize = 8;

/// One step of a program.
///
/// *Work* is CPU time on a CPU of capacity 1024 at its full clock, alone on its
/// core and with warm caches: the same work takes longer elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes in user mode.
    Run {
        /// How much.
        work: Duration,
    },
    /// Computes in kernel mode.
    RunKernel {
        /// How much.
        work: Duration,
        /// How it can be interrupted.
        section: Section,
    },
    /// Computes in user mode in blocks until `wall` time has passed since the op
    /// began; time spent preempted counts, and a block once begun is finished.
    RunWall {
        /// How long by the clock on the wall.
        wall: Duration,
        /// Work of one block; the clock is read after each.
        block: Duration,
    },
    /// Computes in user mode for a random time.
    RunDraw {
        /// Where the length is drawn from.
        dist: DistId,
    },
    /// Writes the pages of a region for the first time: each is cleared by the
    /// kernel and lies from then on at the node of the CPU that touched it.
    Touch {
        /// The region.
        region: RegionId,
        /// How many of its bytes, behind those already touched.
        bytes: u64,
    },
    /// Reads or writes memory. Untouched pages are touched.
    Access {
        /// Which region, how much of it and in which order.
        access: AccessId,
    },
    /// Reads or writes memory that tasks share, as far as lines have to come from other CPUs: what is read comes from the CPU that
    /// wrote it last, and a write calls copies back. What lies at hand takes no time; work on it is a `Run`.
    Share {
        /// The region.
        region: RegionId,
        /// How many of its bytes.
        bytes: u32,
        /// Whether they are written.
        write: bool,
    },

    /// Sleeps for a span that begins now.
    Sleep {
        /// How long.
        span: Duration,
    },
    /// Sleeps for a random time.
    SleepDraw {
        /// Where the length is drawn from.
        dist: DistId,
    },
    /// Makes this moment the zero of the workload's time, which is otherwise the start of the run.
    Zero,
    /// Makes the moment `delay` after the workload's zero the task's origin, and
    /// sleeps until then if it is still to come. The origin of a task is otherwise
    /// its [`Start`](crate::Start), or the moment it was forked.
    Origin {
        /// How long after the zero.
        delay: Duration,
    },
    /// A task that wakes this one next wakes it on its own CPU, to which it is bound from then on: a thread of the kernel of which
    /// each CPU has one.
    ComeToWaker,
    /// An idle CPU hears of the task's next wake-up so long after, instead of when the machine
    /// says: what was measured of this very wake-up.
    Heard {
        /// From the wake-up on.
        after: Duration,
    },
    /// The interrupt that ends the task's next sleep comes to this CPU, instead of to the one where it falls asleep: where a timer was
    /// moved, or a device's interrupts go.
    InterruptOn {
        /// The CPU.
        cpu: CpuId,
    },
    /// Takes a CPU out of use or into it, as a write to its file `online` does, or a part of the way. The last CPU stays in use.
    Hotplug {
        /// The CPU.
        cpu: CpuId,
        /// How far.
        to: Plug,
    },
    /// Moves the timer on by one period and sleeps until then.
    ///
    /// A timer never used before stands at the origin of the task that uses it
    /// first. When the new time is already past, the task does not sleep (a miss),
    /// and [`Miss`] says where the timer then stands.
    TimerWait {
        /// Which timer.
        timer: Timer,
        /// Distance from one expiry to the next.
        period: Duration,
        /// What a miss does to the timer.
        miss: Miss,
    },

    /// Takes a mutex, or sleeps until it is handed over.
    Lock {
        /// The mutex.
        mutex: MutexId,
    },
    /// Gives a mutex back.
    Unlock {
        /// The mutex.
        mutex: MutexId,
    },
    /// Gives the mutex back, sleeps until the condition is signalled and takes the mutex again.
    CondWait {
        /// The condition.
        cond: CondId,
        /// A mutex that this task holds.
        mutex: MutexId,
    },
    /// Wakes the task that has waited longest; without memory.
    Signal {
        /// The condition.
        cond: CondId,
    },
    /// Wakes every task that waits; without memory.
    Broadcast {
        /// The condition.
        cond: CondId,
    },
    /// Adds one to a semaphore and wakes a task that waits for it.
    SemPost {
        /// The semaphore.
        sem: SemId,
    },
    /// Takes one from a semaphore, or sleeps until there is one.
    SemWait {
        /// The semaphore.
        sem: SemId,
    },
    /// Meets the other parties: the last to arrive wakes all, the others spin
    /// for as long as the barrier says and then sleep.
    Barrier {
        /// The barrier.
        barrier: BarrierId,
    },
    /// Writes to a pipe or socket; sleeps while it is full, until all is written.
    Write {
        /// The channel.
        channel: ChannelId,
        /// How much.
        bytes: u32,
    },
    /// Reads from a pipe or socket; sleeps while it is empty, until all is read.
    Read {
        /// The channel.
        channel: ChannelId,
        /// How much.
        bytes: u32,
    },
    /// Sleeps on a word if it still has the expected value; returns at once if not.
    FutexWait {
        /// The word.
        word: WordId,
        /// The value with which it pays to sleep.
        expected: Expected,
        /// After how long to give up; zero means never.
        timeout: Duration,
    },
    /// Wakes tasks that sleep on a word, the longest waiting first.
    FutexWake {
        /// The word.
        word: WordId,
        /// At most how many.
        count: u32,
    },
    /// Reads from or writes to a device and sleeps until that is done.
    BlockIo {
        /// The device.
        device: DeviceId,
        /// How much.
        bytes: u32,
        /// To the device rather than from it.
        write: bool,
    },
    /// Hands a program to a worker of a queue and goes on; it ends at its [`Op::Exit`].
    QueueWork {
        /// The queue.
        queue: QueueId,
        /// What the worker does.
        work: ProgramId,
    },
    /// Provokes an interrupt, such as the reply to a packet sent.
    Raise {
        /// The source of the interrupt.
        source: SourceId,
    },

    /// Makes a new task. It inherits this task's comm, CPU, policy, nice value,
    /// allowed CPUs and group where its spec says nothing else.
    Fork {
        /// What the new task is.
        task: SpecId,
    },
    /// Replaces the program image: a moment at which the scheduler may move the
    /// task cheaply. The ops that follow go on.
    Exec {
        /// The comm from now on.
        comm: CommId,
    },
    /// Ends the task, or the work item of a worker.
    Exit,
    /// Ends the task and all other threads of its process.
    ExitGroup,
    /// Sleeps until no forked process is left; woken at each one's exit.
    WaitChildren,
    /// Sleeps until the thread that this task forked last from `task` has ended.
    Join {
        /// The spec the thread was forked from.
        task: SpecId,
    },
    /// Lets others run.
    Yield,

    /// Takes the comm that its spec names, as a forked task does first of all.
    OwnComm,
    /// Takes another comm.
    SetComm {
        /// The new comm.
        comm: CommId,
    },
    /// Changes the allowed CPUs.
    SetCpus {
        /// The new set; none stands for every CPU.
        cpus: Option<CpuListId>,
    },
    /// Changes policy, priority, slice and clamps.
    SetSched {
        /// The new attributes.
        attr: AttrId,
    },
    /// Moves to another group.
    SetGroup {
        /// The group; none stands for the root.
        group: Option<GroupId>,
    },
    /// Does something to another task, as root may from outside: to the one that was made last of its kind, if it has not
    /// ended.
    OfTask {
        /// The task.
        task: SpecId,
        /// What.
        act: TaskAct,
    },
    /// Changes what a group is given while it runs.
    OfGroup {
        /// Which group.
        group: GroupId,
        /// What changes.
        act: GroupAct,
    },
    /// Changes a feature, rule or number of the running kernel, as a write to debugfs or a sysctl does.
    Switch {
        /// A part of a kernel string.
        part: PartId,
    },

    /// Writes a mark into the trace.
    Mark {
        /// What it says.
        label: LabelId,
        /// A number beside it.
        value: i64,
    },

    /// Begins a loop. Carried out by the [`Cursor`](crate::Cursor), as are all that follow.
    Loop {
        /// How often the body is done; [`FOREVER`] for ever, 0 skips it.
        times: u32,
        /// The counter it uses: its depth of nesting.
        slot: u8,
        /// The [`Op::EndLoop`] that closes it.
        end: Pc,
    },
    /// Ends the body of a loop.
    EndLoop {
        /// As in the [`Op::Loop`].
        times: u32,
        /// The counter.
        slot: u8,
        /// The [`Op::Loop`] that opens it.
        begin: Pc,
    },
    /// Goes on elsewhere.
    Jump {
        /// The next op.
        to: Pc,
    },
    /// Goes on elsewhere if a word passes a test.
    JumpIf {
        /// The word.
        word: WordId,
        /// How it is compared.
        test: Test,
        /// With what.
        value: i32,
        /// The next op, if so.
        to: Pc,
    },
    /// Goes on elsewhere as often as a throw of dice says.
    JumpOdds {
        /// How often out of 1000.
        permille: u16,
        /// The next op, if so.
        to: Pc,
    },
    /// Sets a word.
    WordSet {
        /// The word.
        word: WordId,
        /// Its new value.
        value: i32,
    },
    /// Adds to a word, atomically.
    WordAdd {
        /// The word.
        word: WordId,
        /// The value added, wrapping around.
        value: i32,
    },
    /// Remembers a word's value for [`Expected::Remembered`].
    WordLoad {
        /// The word.
        word: WordId,
    },
}

/// An operation on another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskAct {
    /// Its allowed CPUs are set, as by `taskset -p`; none stands for every CPU.
    Cpus(Option<CpuListId>),
    /// Its policy and what belongs to it, as by `chrt -p` or `renice`.
    Sched(AttrId),
    /// Its group, as by a write to `cgroup.procs`; none stands for the root.
    Group(Option<GroupId>),
    /// It is frozen: it stops where it is, and sleeps.
    Freeze,
    /// It goes on.
    Thaw,
}

/// What a group is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupAct {
    /// A weight as of cgroup v2; see [`shares_of_weight`](crate::shares_of_weight).
    Weight(u32),
    /// Shares as of cgroup v1, 1024 for a weight of 100.
    Shares(u32),
    /// Whether it is a group of SCHED_IDLE.
    Idle(bool),
    /// A quota, in us for each period in us, with what may be saved; a quota of 0 is none.
    Quota {
        /// CPU time of a period.
        quota_us: u32,
        /// Length of a period.
        period_us: u32,
        /// Unused time that may be carried over.
        burst_us: u32,
    },
}

/// `times` of a loop that never ends.
pub const FOREVER: u32 = u32::MAX;

/// How a stretch of kernel-mode work can be interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// A spinlock is held or preemption is off: no switch before its end, whatever the model.
    pub preempt_off: bool,
    /// Work between two calls of `cond_resched()`, ns; 0 where there is none.
    pub cond_resched_ns: u32,
}

/// Whose timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// All tasks that name it move the same timer on.
    Shared(TimerId),
    /// Each task has its own under this number.
    Own(u8),
}

/// What becomes of a timer whose time is past when its task gets there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Miss {
    /// It stands at this moment: one delay shifts all that follows.
    #[default]
    Rebase,
    /// It keeps to the grid: what follows catches up.
    KeepGrid,
}

/// The value a futex wait compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This number.
    Value(i32),
    /// What the task's last [`Op::WordLoad`] saw.
    Remembered,
}

/// A comparison of a word with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// They are equal.
    Equal,
    /// They differ.
    Differs,
    /// The word is smaller.
    Less,
    /// The word is greater.
    Greater,
}

impl Test {
    /// Whether `word` passes.
    pub fn passes(self, word: i32, value: i32) -> bool {
        match self {
            Test::Equal => word == value,
            Test::Differs => word != value,
            Test::Less => word < value,
            Test::Greater => word > value,
        }
    }
}

impl Op {
    /// Whether the [`Cursor`](crate::Cursor) carries it out by itself, taking no time.
    #[inline]
    pub fn is_control(self) -> bool {
        matches!(
            self,
            Op::Loop { .. }
                | Op::EndLoop { .. }
                | Op::Jump { .. }
                | Op::JumpIf { .. }
                | Op::JumpOdds { .. }
                | Op::WordSet { .. }
                | Op::WordAdd { .. }
                | Op::WordLoad { .. }
        )
    }
}

/// How far a CPU is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plug {
    /// It is there for threads of the kernel that are bound to it; others leave it, and none come.
    Inactive,
    /// It is gone. Threads of the kernel that are bound to it may run anywhere until it is back.
    Offline,
    /// It is back, for threads of the kernel that are bound to it.
    Online,
    /// It is in use.
    Active,
}

impl Plug {
    /// All of them, with their names.
    pub const TABLE: [(Plug, &str); 4] = [
        (Plug::Inactive, "inactive"),
        (Plug::Offline, "offline"),
        (Plug::Online, "online"),
        (Plug::Active, "active"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Plug::TABLE[self as usize].1
    }
}

impl Op {
    /// Whether a task can do this again and again without time passing.
    ///
    /// Every other op takes time by itself or is a call into the kernel, for which
    /// an engine must charge at least a nanosecond.
    pub fn is_instant(self) -> bool {
        self.is_control()
            || matches!(
                self,
                Op::Mark { .. }
                    | Op::Zero
                    | Op::ComeToWaker
                    | Op::Heard { .. }
                    | Op::InterruptOn { .. }
                    | Op::Run { work: Duration::ZERO }
            )
    }
}

/// A named stretch of [`Workload::code`](crate::Workload::code).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What people call it.
    pub name: String,
    /// Its first op.
    pub entry: Pc,
    /// How many ops it has, the final [`Op::Exit`] included.
    pub len: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_op_is_three_words() {
        assert_eq!(size_of::<Op>(), 24);
    }
}
