//! A fact that would have had to be otherwise, in words and with its size.

use std::fmt;

use schedlab_topology::CpuId;
use schedlab_units::Pid;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// What would have had to be otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A CPU had been idle, or busy: longer than it was, or from earlier on.
    Cpu {
        /// Which.
        cpu: CpuId,
        /// Idle, or busy.
        idle: bool,
        /// Longer; else sooner.
        longer: bool,
    },
    /// One task more had been queued on a CPU, or one less.
    Queued {
        /// Where.
        cpu: CpuId,
        /// One more.
        more: bool,
    },
    /// The search might have looked at no CPU, or at all.
    ScanLimit {
        /// At all.
        all: bool,
    },
    /// An idle core of the cache had been known, or none.
    IdleCores,
    /// The waker had said that it will sleep.
    SyncFlag,
    /// The task had used another CPU recently.
    RecentCpu(CpuId),
    /// Load averages had been off by more than they are held to be.
    Loads,
    /// Waker and wakee had changed their wakees so often that the wake-up spreads, or so seldom that it does not.
    Flips {
        /// It spreads.
        spreads: bool,
    },
    /// The woken sleeper had still been queued, or had left its queue.
    DelayedDequeue {
        /// Still queued.
        queued: bool,
    },
    /// The woken sleeper had not got off its CPU.
    OnCpu,
    /// A CPU had gone idle later than it did.
    IdleStamp(CpuId),
    /// The virtual time of a task had been another.
    Vruntime(Shifted),
    /// The deadline of a task had been another.
    Deadline(Shifted),
    /// A task had been placed elsewhere: its virtual time and its deadline had been others.
    Placed(Shifted),
    /// The virtual times of those who wait beside the two had been others.
    Average {
        /// Earlier.
        earlier: bool,
    },
    /// The running task had not been protected any more.
    Unprotected,
    /// Another sleeper had still been queued, or had left its queue.
    Sleeper {
        /// Who.
        pid: Pid,
        /// Still queued.
        queued: bool,
    },
    /// The turn of the running task had ended sooner, or later.
    TurnEnd {
        /// Sooner.
        sooner: bool,
    },
    /// The moved task had waited on the CPU that it was taken from.
    Waited,
    /// The pass had been one on another occasion: of a CPU that is idle, or busy, or becomes idle.
    Occasion(&'static str),
}

/// Whose time is moved, and which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shifted {
    /// Whose; none of a group.
    pub pid: Option<Pid>,
    /// Earlier.
    pub earlier: bool,
}

impl Fact {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Fact::Cpu { idle: true, .. } => "CPU_IDLE",
            Fact::Cpu { idle: false, .. } => "CPU_BUSY",
            Fact::Queued { more: true, .. } => "ONE_MORE_QUEUED",
            Fact::Queued { more: false, .. } => "ONE_LESS_QUEUED",
            Fact::ScanLimit { .. } => "IDLE_SCAN_LIMIT",
            Fact::IdleCores => "IDLE_CORES",
            Fact::SyncFlag => "SYNC_FLAG",
            Fact::RecentCpu(_) => "RECENT_CPU",
            Fact::Loads => "LOADS",
            Fact::Flips { .. } => "WAKEE_FLIPS",
            Fact::DelayedDequeue { .. } => "DELAYED_DEQUEUE",
            Fact::OnCpu => "ON_CPU",
            Fact::IdleStamp(_) => "IDLE_STAMP",
            Fact::Vruntime(_) => "VRUNTIME",
            Fact::Deadline(_) => "DEADLINE",
            Fact::Placed(_) => "PLACED",
            Fact::Average { .. } => "AVERAGE",
            Fact::Unprotected => "PROTECTION",
            Fact::Sleeper { .. } => "SLEEPER",
            Fact::TurnEnd { .. } => "TURN_END",
            Fact::Waited => "WAITED",
            Fact::Occasion(_) => "OCCASION",
        }
    }
}

impl Fact {
    /// Whether tasks are put elsewhere for it, and not only a number is changed.
    pub(super) fn moves_tasks(self) -> bool {
        matches!(self, Fact::DelayedDequeue { .. } | Fact::Sleeper { .. } | Fact::Waited)
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = |idle| if idle { "idle" } else { "busy" };
        match *self {
            Fact::Cpu { cpu, idle, longer } => {
                write!(f, "CPU {cpu} had been {} {}", state(idle), if longer { "longer" } else { "sooner" })
            }
            Fact::Queued { cpu, more } => {
                write!(f, "one task {} had been queued on CPU {cpu}", if more { "more" } else { "less" })
            }
            Fact::ScanLimit { all: true } => f.write_str("the search had looked at every CPU"),
            Fact::ScanLimit { all: false } => f.write_str("the search had looked at nobody"),
            Fact::IdleCores => f.write_str("the mark of idle cores had been the other one"),
            Fact::SyncFlag => f.write_str("the waker had said that it will sleep"),
            Fact::RecentCpu(cpu) => write!(f, "the task had used CPU {cpu} recently"),
            Fact::Loads => f.write_str("load averages had been off"),
            Fact::Flips { spreads: true } => f.write_str("flips had been so many that the wake-up spreads"),
            Fact::Flips { spreads: false } => {
                f.write_str("flips had been so few that the wake-up does not spread")
            }
            Fact::DelayedDequeue { queued: true } => f.write_str("the sleeper had still been queued"),
            Fact::DelayedDequeue { queued: false } => f.write_str("the sleeper had left its queue"),
            Fact::OnCpu => f.write_str("the task had not got off its CPU"),
            Fact::IdleStamp(cpu) => write!(f, "CPU {cpu} had gone idle later"),
            Fact::Vruntime(shifted) => write!(f, "the virtual time of {shifted}"),
            Fact::Deadline(shifted) => write!(f, "the deadline of {shifted}"),
            Fact::Placed(shifted) => write!(f, "virtual time and deadline of {shifted}"),
            Fact::Average { earlier } => {
                write!(f, "those beside them had been {}", if earlier { "earlier" } else { "later" })
            }
            Fact::Unprotected => f.write_str("the running task had not been protected"),
            Fact::Sleeper { pid, queued: true } => write!(f, "sleeper {pid} had still been queued"),
            Fact::Sleeper { pid, queued: false } => write!(f, "sleeper {pid} had left the queue"),
            Fact::TurnEnd { sooner } => {
                write!(f, "the turn had ended {}", if sooner { "sooner" } else { "later" })
            }
            Fact::Waited => f.write_str("the task had waited there"),
            Fact::Occasion(occasion) => write!(f, "the CPU had been {occasion}"),
        }
    }
}

impl fmt::Display for Shifted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pid {
            Some(pid) => write!(f, "task {pid} had been ")?,
            None => f.write_str("its group had been ")?,
        }
        f.write_str(if self.earlier { "earlier" } else { "later" })
    }
}

/// A fact that would have had to be otherwise, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Otherwise {
    /// What.
    pub fact: Fact,
    /// By how much, ns of time or of virtual time, if it has a size.
    pub ns: Option<u64>,
    /// How many times the error that is held of it that is, rounded up: of a CPU's state the time within which
    /// events of different CPUs overlap, of averages and virtual times their errors.
    pub times: Option<u64>,
}

impl Otherwise {
    /// How far facts without a size are, in errors.
    const PLAIN: u64 = 4;

    /// A fact that is so or not.
    pub(super) fn plain(fact: Fact) -> Otherwise {
        Otherwise { fact, ns: None, times: None }
    }

    /// One that is off by so much, where so much of it is not known; 0 if all of it is.
    pub(super) fn by(fact: Fact, ns: u64, error: u64) -> Otherwise {
        Otherwise { fact, ns: Some(ns), times: (error > 0).then(|| ns.div_ceil(error).max(1)) }
    }

    /// The order in which facts are asked. One without a size stands behind those that are off by a few errors.
    pub(super) fn distance(&self) -> (u64, u64) {
        (self.times.unwrap_or(Self::PLAIN), self.ns.unwrap_or(0))
    }

    /// Whether it cannot be so together with another, or is the same one by more.
    pub(super) fn excludes(&self, other: &Otherwise) -> bool {
        self.fact == other.fact || self.fact.name() == other.fact.name() && self.times.is_none()
    }
}

impl fmt::Display for Otherwise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fact)?;
        if let Some(ns) = self.ns {
            write!(f, " by {}", Micros(ns))?;
        }
        match self.times {
            None => Ok(()),
            Some(1) => f.write_str(", within its error"),
            Some(times) => write!(f, ", {times} times its error"),
        }
    }
}

struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Micros(ns) = *self;
        if ns < 10_000 {
            write!(f, "{}.{} us", ns / 1000, ns % 1000 / 100)
        } else {
            write!(f, "{} us", ns / 1000)
        }
    }
}

/// The nearest fact by which our rules would lead to what the kernel did; two of them if none does alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The one.
    pub first: Otherwise,
    /// The other.
    pub second: Option<Otherwise>,
}

impl Nearest {
    /// The turn of a task had ended sooner or later by so much, ns, of which the error is held to be `error`.
    pub(crate) fn turn_end(sooner: bool, by: u64, error: u64) -> Nearest {
        Nearest::alone(Otherwise::by(Fact::TurnEnd { sooner }, by, error))
    }

    /// One fact.
    pub(super) fn alone(first: Otherwise) -> Nearest {
        Nearest { first, second: None }
    }

    /// Its name, or both names.
    pub fn name(&self) -> String {
        match self.second {
            None => self.first.fact.name().to_owned(),
            Some(second) => {
                let mut names = [self.first, second].map(|otherwise| otherwise.fact.name());
                names.sort_unstable();
                names.join("+")
            }
        }
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        self.second.map_or(Ok(()), |second| write!(f, " and {second}"))
    }
}

impl Serialize for Nearest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Nearest", 4)?;
        fields.serialize_field("fact", &self.name())?;
        fields.serialize_field("sentence", &self.to_string())?;
        fields.serialize_field("ns", &self.first.ns)?;
        fields.serialize_field("times_error", &self.first.times)?;
        fields.end()
    }
}
