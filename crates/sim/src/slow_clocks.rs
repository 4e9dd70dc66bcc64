//! Periodic mechanisms whose period may be longer than a run.
//!
//! State that changes once per second stays as it began in a run of 60 ms, so its effects are not seen. Averages
//! need eleven half-lives of 32 ms; each domain is balanced in its own interval, which busy CPUs stretch by
//! BUSY_FACTOR; passes of the LLC's domain set the limit of searches; pages follow their tasks once per second.

use std::collections::BTreeMap;

use schedlab_machine::Mechanism;
use schedlab_sched::{Feature, Scheduler};
use schedlab_units::Duration;

use crate::account::Account;
use crate::engine::Engine;
use crate::memory::PAGES_FOLLOW;

/// Until load averages have forgotten their initial value: LOAD_AVG_MAX_N, 345, periods of 1024 us.
pub(crate) const AVERAGES: Duration = Duration::millis(353);

/// Such a mechanism in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowClock {
    /// What it does.
    pub does: Slow,
    /// Its period.
    pub period: Duration,
    /// How long the run had lasted when the first period began.
    pub from: Duration,
}

/// What a slow mechanism does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slow {
    /// Averages of load forget how they began, and with them the shares of groups.
    Averages {
        /// Whether there are groups.
        groups: bool,
    },
    /// Busy CPUs balance a level of domains.
    Balancing {
        /// The level, as the kernel names it.
        level: &'static str,
        /// Whether its passes set the limit of searches.
        limit: bool,
    },
    /// Pages move to the node of the task that uses them.
    Pages,
}

impl std::fmt::Display for Slow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Slow::Averages { groups: false } => write!(f, "averages of load"),
            Slow::Averages { groups: true } => write!(f, "averages of load, shares of groups"),
            Slow::Balancing { level, limit } => {
                let limit = if *limit { ", with the limit of searches" } else { "" };
                write!(f, "balancing of busy CPUs in {level}{limit}")
            }
            Slow::Pages => write!(f, "pages that follow their tasks"),
        }
    }
}

impl SlowClock {
    /// When in the run it has completed a period.
    pub fn round_at(&self) -> Duration {
        self.from + self.period
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// The slow mechanisms of this run, slowest last. The period of a domain is the longest between two passes of a CPU
    /// that was busy for at least half of the time in `lately`, with the interval that passes have left.
    pub fn slow_clocks(&self, lately: &Account) -> Vec<SlowClock> {
        let (topology, kernel) = (&self.machine.topology, self.sched.kernel());
        let clock = |does, period| SlowClock { does, period, from: Duration::ZERO };
        let groups = !self.workload.groups.is_empty();
        let mut clocks = vec![clock(Slow::Averages { groups }, AVERAGES)];
        if let Some((from, round)) = self.memory.goes_round(self.page_scan_mbps(), self.began) {
            clocks.push(SlowClock { does: Slow::Pages, period: PAGES_FOLLOW + round, from });
        }
        let domains = self.sched.domains();
        let mut levels: BTreeMap<&'static str, (Duration, bool)> = BTreeMap::new();
        for cpu in topology.online().iter() {
            let of = lately.cpus.get(cpu.index()).copied().unwrap_or_default();
            if of.busy() < of.idle() || of.busy() == 0 {
                continue;
            }
            for (id, sd) in domains.walk(cpu) {
                let limit = domains.per_cpu[cpu].llc == Some(id) && kernel.has(Feature::SisUtil);
                let level = levels.entry(sd.name).or_default();
                *level = (level.0.max(self.sched.balance_period(id, true)), level.1 || limit);
            }
        }
        clocks.extend(
            levels
                .into_iter()
                .map(|(level, (period, limit))| clock(Slow::Balancing { level, limit }, period)),
        );
        clocks.sort_by_key(SlowClock::round_at);
        clocks
    }

    /// The speed at which NUMA balancing passes over memory; 0 if pages stay where they are.
    pub fn page_scan_mbps(&self) -> u64 {
        let numa = self.machine.topology.nodes().len() > 1 && self.machine.has(Mechanism::Bandwidth);
        if numa { self.machine.bandwidth.page_scan_mbps.get() } else { 0 }
    }
}
