//! A hidden fact that would explain the kernel's choice if it were different, in words and with its size.

use std::fmt;

use schedlab_topology::CpuId;
use schedlab_units::Pid;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::list::Unknown;

/// What would have had to be different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A CPU had been idle, or busy: for longer than it was, or from earlier on.
    Cpu {
        /// The CPU.
        cpu: CpuId,
        /// Idle, or busy.
        idle: bool,
        /// For longer; otherwise from earlier on.
        longer: bool,
    },
    /// One more or one fewer task had been queued on a CPU.
    Queued {
        /// The CPU.
        cpu: CpuId,
        /// One more; otherwise one fewer.
        more: bool,
    },
    /// The search had been allowed to examine no CPU, or every CPU.
    ScanLimit {
        /// Every CPU.
        all: bool,
    },
    /// The mark that the cache has an idle core had been the opposite.
    IdleCores,
    /// The waker had set the sync flag.
    SyncFlag,
    /// The task had used another CPU recently.
    RecentCpu(CpuId),
    /// Load averages had been off by more than their assumed errors.
    Loads,
    /// Waker and wakee had enough wakee flips for the wake-up to spread, or too few.
    Flips {
        /// It spreads.
        spreads: bool,
    },
    /// The woken sleeper had still been queued, or had left its queue.
    DelayedDequeue {
        /// Still queued.
        queued: bool,
    },
    /// The woken sleeper had still been on its CPU.
    OnCpu,
    /// A CPU had gone idle later than it did.
    IdleStamp(CpuId),
    /// The virtual time of a task had been different.
    Vruntime(Shifted),
    /// The deadline of a task had been different.
    Deadline(Shifted),
    /// A task had been placed elsewhere: its virtual time and its deadline had been different.
    Placed(Shifted),
    /// The virtual times of the other waiting tasks had been different.
    Average {
        /// Earlier.
        earlier: bool,
    },
    /// The running task had no longer been protected.
    Unprotected,
    /// Another sleeper had still been queued, or had left its queue.
    Sleeper {
        /// The sleeper.
        pid: Pid,
        /// Still queued.
        queued: bool,
    },
    /// The turn of the running task had ended sooner, or later.
    TurnEnd {
        /// Sooner.
        sooner: bool,
    },
    /// The moved task had waited on the CPU from which it was taken.
    Waited,
    /// The pass had been made with another idle type: for a CPU that is idle, busy, or about to become idle.
    Occasion(&'static str),
}

/// The task whose time is moved, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shifted {
    /// The task; `None` for a group.
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
    /// The fact of the list that it is: beyond its bounds, or in another value.
    pub fn of(self) -> Unknown {
        let of = |unknown: &&Unknown| {
            unknown.name() == self.name() || unknown.beyond().iter().any(|(name, _)| *name == self.name())
        };
        *Unknown::ALL.iter().find(of).expect("a fact is in the list under each of its names")
    }

    /// Whether the fact moves tasks and does not only change a number.
    pub(crate) fn moves_tasks(self) -> bool {
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
                write!(
                    f,
                    "{} had been queued on CPU {cpu}",
                    if more { "one more task" } else { "one task fewer" }
                )
            }
            Fact::ScanLimit { all: true } => f.write_str("the search had looked at every CPU"),
            Fact::ScanLimit { all: false } => f.write_str("the search had looked at no CPU"),
            Fact::IdleCores => f.write_str("the mark of idle cores had been the opposite"),
            Fact::SyncFlag => f.write_str("the waker had said that it will sleep"),
            Fact::RecentCpu(cpu) => write!(f, "the task had used CPU {cpu} recently"),
            Fact::Loads => f.write_str("load averages had been off"),
            Fact::Flips { spreads: true } => {
                f.write_str("there had been enough flips for the wake-up to spread")
            }
            Fact::Flips { spreads: false } => {
                f.write_str("there had been too few flips for the wake-up to spread")
            }
            Fact::DelayedDequeue { queued: true } => f.write_str("the sleeper had still been queued"),
            Fact::DelayedDequeue { queued: false } => f.write_str("the sleeper had left its queue"),
            Fact::OnCpu => f.write_str("the task had still been on its CPU"),
            Fact::IdleStamp(cpu) => write!(f, "CPU {cpu} had gone idle later"),
            Fact::Vruntime(shifted) => write!(f, "the virtual time of {shifted}"),
            Fact::Deadline(shifted) => write!(f, "the deadline of {shifted}"),
            Fact::Placed(shifted) => write!(f, "virtual time and deadline of {shifted}"),
            Fact::Average { earlier } => {
                write!(f, "the other waiting tasks had been {}", if earlier { "earlier" } else { "later" })
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

/// A fact that would have had to be different, and by how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Otherwise {
    /// The fact.
    pub fact: Fact,
    /// By how much, in ns of time or of virtual time, if it has a size.
    pub ns: Option<u64>,
    /// The size in multiples of its error, rounded up. For the state of a CPU the error is the time within which events
    /// of different CPUs overlap; averages and virtual times have errors of their own.
    pub times: Option<u64>,
}

impl Otherwise {
    /// Size, in errors, assumed for facts without one.
    const PLAIN: u64 = 4;

    /// A fact without a size.
    pub(crate) fn plain(fact: Fact) -> Otherwise {
        Otherwise { fact, ns: None, times: None }
    }

    /// A fact that is off by `ns`, of which `error` is the uncertainty; 0 if all of it is known.
    pub(crate) fn by(fact: Fact, ns: u64, error: u64) -> Otherwise {
        Otherwise { fact, ns: Some(ns), times: (error > 0).then(|| ns.div_ceil(error).max(1)) }
    }

    /// Sort key for the order in which facts are tried. A fact without a size comes after those that are off by a few
    /// errors.
    pub(crate) fn distance(&self) -> (u64, u64) {
        (self.times.unwrap_or(Self::PLAIN), self.ns.unwrap_or(0))
    }

    /// Whether it cannot hold together with another fact, or is the same fact with another size.
    pub(crate) fn excludes(&self, other: &Otherwise) -> bool {
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

/// The nearest fact that would make our rules lead to what the kernel did; two facts if no single one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The fact.
    pub first: Otherwise,
    /// The second fact.
    pub second: Option<Otherwise>,
}

impl Nearest {
    /// The turn of a task had ended sooner or later by `by` ns; `error` is the assumed error of that time.
    pub(crate) fn turn_end(sooner: bool, by: u64, error: u64) -> Nearest {
        Nearest::alone(Otherwise::by(Fact::TurnEnd { sooner }, by, error))
    }

    /// A single fact.
    pub(crate) fn alone(first: Otherwise) -> Nearest {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_is_in_the_list_once() {
        let (cpu, shifted) = (CpuId(0), Shifted { pid: None, earlier: true });
        let both = [true, false];
        let mut facts = vec![
            (Fact::IdleCores, "IDLE_CORES"),
            (Fact::SyncFlag, "SYNC_FLAG"),
            (Fact::RecentCpu(cpu), "RECENT_CPU"),
            (Fact::Loads, "LOADS"),
            (Fact::OnCpu, "IN_MOTION"),
            (Fact::IdleStamp(cpu), "IDLE_STAMP"),
            (Fact::Vruntime(shifted), "VIRTUAL_TIME"),
            (Fact::Deadline(shifted), "VIRTUAL_TIME"),
            (Fact::Placed(shifted), "VIRTUAL_TIME"),
            (Fact::Average { earlier: true }, "VIRTUAL_TIME"),
            (Fact::Unprotected, "VIRTUAL_TIME"),
            (Fact::Waited, "IN_MOTION"),
            (Fact::Occasion("idle"), "BALANCE_TIME"),
        ];
        facts.extend(both.map(|idle| (Fact::Cpu { cpu, idle, longer: true }, "IN_MOTION")));
        facts.extend(both.map(|more| (Fact::Queued { cpu, more }, "IN_MOTION")));
        facts.extend(both.map(|all| (Fact::ScanLimit { all }, "IDLE_SCAN_LIMIT")));
        facts.extend(both.map(|spreads| (Fact::Flips { spreads }, "WAKEE_FLIPS")));
        facts.extend(both.map(|queued| (Fact::DelayedDequeue { queued }, "DELAYED_DEQUEUE")));
        facts.extend(both.map(|queued| (Fact::Sleeper { pid: Pid(1), queued }, "DELAYED_DEQUEUE")));
        facts.extend(both.map(|sooner| (Fact::TurnEnd { sooner }, "SLICE_END")));
        for (fact, of) in facts {
            assert_eq!(fact.of().name(), of, "{}", fact.name());
        }
        let further = Unknown::ALL.iter().flat_map(|unknown| unknown.beyond()).map(|(name, _)| *name);
        let mut names: Vec<&str> = Unknown::ALL.iter().map(|unknown| unknown.name()).chain(further).collect();
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "a name means one thing");
    }
}
