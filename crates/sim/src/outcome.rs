//! How a run ended, and its counters.

use schedlab_units::{Duration, Pid, Time};

use crate::account::Account;
use crate::profile::Profile;
use crate::settle::Settled;
use crate::slow_clocks::SlowClock;

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Its last foreground task ended.
    Done,
    /// Its time was over.
    Duration,
    /// Each remaining task waits for another.
    Deadlock(Vec<Stuck>),
    /// This many events were handled: the run was aborted.
    Events(u64),
    /// More tasks than the limit were made: the run was aborted.
    Tasks {
        /// The limit.
        limit: usize,
        /// Name and number of the parent of the last, if it was forked.
        by: Option<(String, Pid)>,
    },
    /// A task executes steps endlessly without time passing.
    NoTime(Stuck),
}

/// A task and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// Its number.
    pub pid: Pid,
    /// Its name.
    pub comm: String,
    /// What it waits for, in words.
    pub waits_for: String,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}) {}", self.comm, self.pid, self.waits_for)
    }
}

impl std::fmt::Display for End {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Done => write!(f, "all tasks ended"),
            End::Duration => write!(f, "the time was over"),
            End::Deadlock(stuck) => {
                write!(f, "nothing can happen any more: ")?;
                for (i, task) in stuck.iter().take(8).enumerate() {
                    write!(f, "{}{task}", if i > 0 { "; " } else { "" })?;
                }
                match stuck.len() {
                    0..=8 => Ok(()),
                    all => write!(f, "; and {} more", all - 8),
                }
            }
            End::Events(limit) => write!(
                f,
                "given up after {limit} events; give the workload a duration, or raise the limit of events"
            ),
            End::Tasks { limit, by } => {
                write!(f, "given up after {limit} tasks (ended ones are kept too); ")?;
                if let Some((comm, pid)) = by {
                    write!(f, "{comm} ({pid}) forked the last: does it fork without end? ")?;
                }
                write!(f, "make fewer, or give the workload a duration that ends before")
            }
            End::NoTime(task) => {
                write!(
                    f,
                    "{} ({}) loops forever without any time passing; {}",
                    task.comm, task.pid, task.waits_for
                )
            }
        }
    }
}

/// Counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events of the engine.
    pub events: u64,
    /// Context switches.
    pub switches: u64,
    /// Of these, those to a task; the others are to idle.
    pub dispatches: u64,
    /// Of all, those in which the task gave up its CPU voluntarily.
    pub voluntary: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// Tasks made.
    pub forks: u64,
    /// Tasks ended.
    pub exits: u64,
    /// Tasks moved to another CPU, for whatever cause.
    pub migrations: u64,
    /// The same by cause, in the order of [`schedlab_sched::MigrationCause`].
    pub by_cause: [u64; 10],
    /// Interrupts between CPUs.
    pub ipis: u64,
    /// Ticks.
    pub ticks: u64,
    /// Time that balance passes took, ns.
    pub balance_ns: u64,
    /// The longest of them, ns.
    pub balance_max_ns: u64,
    /// Periods of groups with a quota that are over, of all groups together.
    pub periods: u64,
    /// Those in which a CPU was throttled.
    pub throttled_periods: u64,
    /// Time that group queues were throttled, summed over all CPUs, ns.
    pub throttled_ns: u64,
}

/// The result of a run, besides its trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Why it ended.
    pub end: End,
    /// When it began: the machine had been up for a while.
    pub began: Time,
    /// When it ended.
    pub time: Time,
    /// The counts.
    pub counts: Counts,
    /// Time by kernel function.
    pub profile: Profile,
    /// Where the time of each CPU went, counted from the same mark.
    pub account: Account,
    /// Slow mechanisms that had not completed a period by its end.
    pub slower: Vec<SlowClock>,
    /// How its figures settled, if it was to wait for that.
    pub settled: Option<Settled>,
}

impl Outcome {
    /// How long it took.
    pub fn elapsed(&self) -> Duration {
        self.time.since(self.began)
    }

    /// Whether the run ended as it should: on its own or after its duration.
    pub fn is_ok(&self) -> bool {
        matches!(self.end, End::Done | End::Duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadlock_names_tasks_and_what_they_wait_for() {
        let stuck = |n: i32| Stuck { pid: Pid(n), comm: format!("t{n}"), waits_for: "waits for m".into() };
        let end = End::Deadlock((0..10).map(stuck).collect());
        let text = end.to_string();
        assert!(text.starts_with("nothing can happen any more: t0 (0) waits for m; t1 (1)"), "{text}");
        assert!(text.ends_with("t7 (7) waits for m; and 2 more"), "{text}");
    }
}
