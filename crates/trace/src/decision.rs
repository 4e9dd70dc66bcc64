//! Annotations: what a decider chose, and why. Not kernel events.
//!
//! A simulator knows what no tracepoint shows: which CPUs a wake-up examined, the rule that ended the search, the
//! number that decided. Each annotation is an event of its own, emitted just before the kernel event it explains, under
//! a name that begins with `schedlab_`. Reasons are stored as names, so that a file written by one version can be read
//! by the next.

use std::borrow::Cow;
use std::fmt;

use schedlab_sched::Reason;
use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{Pid, Time};

/// A word from a closed set when it is created, or any word read from a file.
pub type Name = Cow<'static, str>;

/// A number that decided, under its name: `nr_idle_scan` 4.
pub type Number = (Name, i64);

/// Where a task was placed when it was woken, forked or executed a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The task placed.
    pub pid: Pid,
    /// On which occasion.
    pub how: How,
    /// The CPU it ran on before.
    pub prev_cpu: CpuId,
    /// Where the search began, after wake_affine().
    pub target: CpuId,
    /// The CPU chosen.
    pub cpu: CpuId,
    /// The rule that ended the search: `PREV_IDLE`.
    pub reason: Name,
    /// The numbers that decided.
    pub numbers: Vec<Number>,
    /// The CPUs examined, in the order of the search.
    pub examined: Vec<Candidate>,
    /// Whether the task is queued on the chosen CPU by an interrupt there.
    pub remote: bool,
}

/// The occasion on which a task is placed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// It was woken.
    #[default]
    Wakeup,
    /// It was created.
    Fork,
    /// It executed another program.
    Exec,
    /// It waited, and its CPU pushed it elsewhere.
    Push,
    /// It waited, and another CPU pulled it.
    Pull,
    /// A stopper, or a CPU that balances by unknown rules, moved it.
    Move,
}

/// A decision reduced to its rule, for sinks that only count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Time of the decision.
    pub time: Time,
    /// The kind of decision.
    pub what: What,
    /// The rule that decided.
    pub reason: Reason,
}

/// A kind of decision that is counted by its rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// Where a task goes.
    Placement(How),
    /// What a balance pass moves.
    Balance,
    /// Whether the running task is preempted.
    Preemption,
    /// What a CPU does before it goes idle.
    Newidle,
}

impl What {
    /// Every kind, each at its index.
    pub const ALL: [What; What::COUNT] = [
        What::Placement(How::Wakeup),
        What::Placement(How::Fork),
        What::Placement(How::Exec),
        What::Placement(How::Push),
        What::Placement(How::Pull),
        What::Placement(How::Move),
        What::Balance,
        What::Preemption,
        What::Newidle,
    ];

    /// How many kinds there are.
    pub const COUNT: usize = 9;

    /// A number below [`What::COUNT`].
    pub const fn index(self) -> usize {
        match self {
            What::Placement(how) => how as usize,
            What::Balance => 6,
            What::Preemption => 7,
            What::Newidle => 8,
        }
    }

    /// Its name in tables: `wakeup`, `balance`.
    pub const fn as_str(self) -> &'static str {
        match self {
            What::Placement(how) => how.as_str(),
            What::Balance => "balance",
            What::Preemption => "preemption",
            What::Newidle => "newidle",
        }
    }
}

/// A CPU that a search examined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The CPU.
    pub cpu: CpuId,
    /// Why it was rejected; empty if it was not.
    pub refused: Name,
}

/// One round of load balancing at one domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// The CPU that pulls.
    pub dst_cpu: CpuId,
    /// The CPU pulled from, if one was found.
    pub src_cpu: Option<CpuId>,
    /// The domain's name: `MC`.
    pub domain: Name,
    /// How idle the pulling CPU is.
    pub idle: IdleType,
    /// The pulling CPU's group.
    pub local: CpuMask,
    /// The group pulled from; empty when none was found.
    pub busiest: CpuMask,
    /// The rule that ended the round.
    pub reason: Name,
    /// What `imbalance` counts: `load`, `util`, `task`, `misfit`.
    pub migration: Name,
    /// How much was to be moved.
    pub imbalance: i64,
    /// Other numbers that decided.
    pub numbers: Vec<Number>,
    /// The tasks moved, in this order.
    pub moved: Vec<Pid>,
}

/// The idle type of the CPU that balances. Kernel: enum cpu_idle_type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IdleType {
    /// It runs a task.
    #[default]
    Busy,
    /// It has been idle.
    Idle,
    /// It is about to go idle.
    NewlyIdle,
}

/// What a CPU without tasks did before it went idle, or instead of going idle.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Newidle {
    /// The CPU.
    pub dst_cpu: CpuId,
    /// The rule that ended its search for work: `NI_SHORT_IDLE`.
    pub reason: Name,
    /// Number of tasks that it has then.
    pub pulled: u32,
    /// The numbers that decided, times in ns.
    pub numbers: Vec<Number>,
}

/// Whether the running task is preempted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preemption {
    /// The task that would run: the wakee, or the next in line at a tick.
    pub pid: Pid,
    /// The task that runs.
    pub curr: Pid,
    /// What raised the question: `wakeup`, `tick`, `fork`, `migrate`.
    pub at: Name,
    /// The rule that answered it.
    pub reason: Name,
    /// Which need-resched bit the answer set.
    pub resched: Resched,
    /// The numbers that decided.
    pub numbers: Vec<Number>,
}

/// The need-resched bit that was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resched {
    /// None: the running task continues.
    #[default]
    None,
    /// The lazy one, honoured at the return to user space and upgraded by the tick.
    Lazy,
    /// The full one, honoured at the next preemption point.
    Full,
}

/// Which task a CPU picked to run next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pick {
    /// The task picked; 0 is idle.
    pub pid: Pid,
    /// The rule that chose it: `SMALLEST_VRUNTIME`.
    pub reason: Name,
    /// The numbers that decided.
    pub numbers: Vec<Number>,
}

/// The CPUs a task may use from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Affinity {
    /// The task.
    pub pid: Pid,
    /// Its allowed CPUs.
    pub allowed: CpuMask,
}

/// The new settings of a control group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its number; `cgroup_mkdir` gives the path for it.
    pub id: u64,
    /// Its weight as in `cpu.shares`, 1024 for a task of nice 0.
    pub shares: u64,
    /// It counts as SCHED_IDLE.
    pub idle: bool,
    /// CPU time that it may use in each period, ns; `None` if there is no limit.
    pub quota_ns: Option<u64>,
    /// The period, ns.
    pub period_ns: Option<u64>,
    /// Unused time that may be saved up, ns.
    pub burst_ns: Option<u64>,
}

/// A closed set of words, each with its spelling in a trace.
macro_rules! spelling {
    ($type:ty: $($word:literal = $value:path),+ $(,)?) => {
        impl $type {
            /// The word a trace uses.
            pub const fn as_str(self) -> &'static str {
                match self { $($value => $word),+ }
            }

            /// The value of a trace's word.
            pub fn parse(word: &[u8]) -> Option<$type> {
                $(if word == $word.as_bytes() { return Some($value); })+
                None
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

spelling!(
    How: "wakeup" = How::Wakeup, "fork" = How::Fork, "exec" = How::Exec, "push" = How::Push, "pull" = How::Pull,
    "move" = How::Move
);
spelling!(IdleType: "busy" = IdleType::Busy, "idle" = IdleType::Idle, "newly_idle" = IdleType::NewlyIdle);
spelling!(Resched: "none" = Resched::None, "lazy" = Resched::Lazy, "full" = Resched::Full);
