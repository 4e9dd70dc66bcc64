//! What a task does, one step after another.
//!
//! A program is a flat sequence of [`Op`]s that ends in [`Op::Exit`]. All programs of a workload are stored
//! one after the other in [`Workload::code`](crate::Workload::code); a task is only a place in it (a
//! [`Cursor`](crate::Cursor)), so a million tasks may share one program. Ids are dense and there are no
//! strings: an op is 24 bytes and is copied out of the table.
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
        /// How long, in wall time.
        wall: Duration,
        /// Work of one block; the clock is read after each.
        block: Duration,
    },
    /// Computes in user mode for a random time.
    RunDraw {
        /// Where the length is drawn from.
        dist: DistId,
    },
    /// Writes the pages of a region for the first time: each is cleared by the kernel and is from then on at
    /// the node of the CPU that touched it.
    Touch {
        /// The region.
        region: RegionId,
        /// How many of its bytes, after those already touched.
        bytes: u64,
    },
    /// Reads or writes memory. Untouched pages are touched.
    Access {
        /// Which region, how much of it and in which order.
        access: AccessId,
    },
    /// Reads or writes memory that tasks share, as far as lines have to come from other CPUs: read lines come from the
    /// CPU that wrote them last, and a write invalidates copies. Lines in the CPU's own cache take no time; work on
    /// them is a `Run`.
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
    /// The next waker of this task wakes it on the waker's own CPU, to which it is bound from then on: a per-CPU thread
    /// of the kernel.
    ComeToWaker,
    /// An idle CPU notices the task's next wake-up after this delay instead of the machine's: the delay
    /// measured for this very wake-up.
    Heard {
        /// From the wake-up on.
        after: Duration,
    },
    /// The interrupt that ends the task's next sleep arrives on this CPU, not on the one where it falls asleep: the
    /// timer was moved, or the device interrupts this CPU.
    InterruptOn {
        /// The CPU.
        cpu: CpuId,
    },
    /// Takes a CPU offline or online, as a write to its file `online` does, or a part of the way. The last CPU stays
    /// online.
    Hotplug {
        /// The CPU.
        cpu: CpuId,
        /// How far.
        to: Plug,
    },
    /// Advances the timer by one period and sleeps until then.
    ///
    /// A timer never used before starts at the origin of the task that uses it first. When the new time has
    /// already passed, the task does not sleep (a miss), and [`Miss`] defines the timer's new position.
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
    /// Releases a mutex.
    Unlock {
        /// The mutex.
        mutex: MutexId,
    },
    /// Releases the mutex, sleeps until the condition is signalled and takes the mutex again.
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
        /// The value with which the task sleeps.
        expected: Expected,
        /// After how long to give up; zero means never.
        timeout: Duration,
    },
    /// Wakes tasks that sleep on a word, the longest waiting first.
    FutexWake {
        /// The word.
        word: WordId,
        /// The largest number to wake.
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
    /// Hands a program to a worker of a queue and continues; the program ends at its [`Op::Exit`].
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

    /// Makes a new task. It inherits this task's comm, CPU, policy, nice value, allowed CPUs and group unless
    /// its spec sets them.
    Fork {
        /// What the new task is.
        task: SpecId,
    },
    /// Replaces the program image: a moment at which the scheduler may move the task cheaply. The task
    /// continues with the next op.
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
    /// Yields the CPU.
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
        /// The new set; `None` means every CPU.
        cpus: Option<CpuListId>,
    },
    /// Changes policy, priority, slice and clamps.
    SetSched {
        /// The new attributes.
        attr: AttrId,
    },
    /// Moves to another group.
    SetGroup {
        /// The group; `None` means the root.
        group: Option<GroupId>,
    },
    /// Acts on another task, as root may from outside: on the one that was made last of its kind, if it has not ended.
    OfTask {
        /// The task.
        task: SpecId,
        /// What.
        act: TaskAct,
    },
    /// Changes the settings of a group at run time.
    OfGroup {
        /// Which group.
        group: GroupId,
        /// What changes.
        act: GroupAct,
    },
    /// Changes a feature, rule or tunable of the running kernel, as a write to debugfs or a sysctl does.
    Switch {
        /// A part of a kernel string.
        part: PartId,
    },

    /// Writes a mark into the trace.
    Mark {
        /// What it says.
        label: LabelId,
        /// A number that goes with it.
        value: i64,
    },
    /// Writes a mark whose value is the time since the last expiry of an own timer, ns: how late the task runs.
    MarkLate {
        /// What it says.
        label: LabelId,
        /// Number of the task's own timer; one that was never used stands at the task's origin.
        timer: u8,
    },

    /// Begins a loop. Executed by the [`Cursor`](crate::Cursor), as are all the following ops.
    Loop {
        /// How often the body is executed; [`FOREVER`] for ever, 0 skips it.
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
    /// Continues elsewhere.
    Jump {
        /// The next op.
        to: Pc,
    },
    /// Continues elsewhere if a word passes a test.
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
    /// Continues elsewhere with a given probability.
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
    /// Its allowed CPUs are set, as by `taskset -p`; `None` is every CPU.
    Cpus(Option<CpuListId>),
    /// Its policy and the policy's parameters, as by `chrt -p` or `renice`.
    Sched(AttrId),
    /// Its group, as by a write to `cgroup.procs`; `None` is the root.
    Group(Option<GroupId>),
    /// It is frozen: it stops where it is, and sleeps.
    Freeze,
    /// It continues.
    Thaw,
}

/// A change of a group's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupAct {
    /// A weight as of cgroup v2; see [`shares_of_weight`](crate::shares_of_weight).
    Weight(u32),
    /// Shares as of cgroup v1, 1024 for a weight of 100.
    Shares(u32),
    /// Whether it is a group of SCHED_IDLE.
    Idle(bool),
    /// A quota, in us per period in us, with a burst; a quota of 0 is none.
    Quota {
        /// CPU time of a period.
        quota_us: u32,
        /// Length of a period.
        period_us: u32,
        /// Unused time that may be carried over.
        burst_us: u32,
    },
    /// Bounds of its tasks' utilisation, of 1024; `None` leaves one unchanged.
    Clamps {
        /// `cpu.uclamp.min`.
        util_min: Option<u16>,
        /// `cpu.uclamp.max`.
        util_max: Option<u16>,
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
    /// All tasks that name it advance the same timer.
    Shared(TimerId),
    /// Each task has its own under this number.
    Own(u8),
}

/// What happens to a timer whose time has passed when its task gets there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Miss {
    /// It restarts from now: one delay shifts all later expiries.
    #[default]
    Rebase,
    /// It keeps to the grid: later expiries catch up.
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
    /// Whether the [`Cursor`](crate::Cursor) executes it, taking no time.
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
    /// It is usable only by kernel threads that are bound to it; other tasks leave it, and no more are placed
    /// there.
    Inactive,
    /// It is offline. Kernel threads that are bound to it may run anywhere until it is back.
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
    /// Every other op takes time itself or is a call into the kernel, for which an engine must charge at
    /// least a nanosecond.
    pub fn is_instant(self) -> bool {
        self.is_control()
            || matches!(
                self,
                Op::Mark { .. }
                    | Op::MarkLate { .. }
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
    /// Its name.
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
