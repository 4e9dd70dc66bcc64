//! What the shadow carries against what probes on a real kernel saw.
//!
//! A white-box recording prints the scheduler's own numbers beside its decisions: queue
//! lengths, loads, flips, idle stamps. No verdict uses them. They tell how well the shadow
//! carries each fact, and so how much a verdict may lean on it.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::Unknown;
use schedlab_units::Pid;
use serde::Serialize;

use crate::shadow::Shadow;

/// How well a fact is carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Carried {
    /// Equal to what the probe saw.
    pub equal: u64,
    /// Off by a twentieth at most.
    pub near: u64,
    /// Off by more.
    pub off: u64,
    /// Largest difference.
    pub worst: u64,
}

impl Carried {
    /// Adds what another recording gave.
    pub fn add(&mut self, other: Carried) {
        self.equal += other.equal;
        self.near += other.near;
        self.off += other.off;
        self.worst = self.worst.max(other.worst);
    }

    fn note(&mut self, ours: i64, seen: i64) {
        let difference = ours.abs_diff(seen);
        self.worst = self.worst.max(difference);
        if difference == 0 {
            self.equal += 1;
        } else if difference <= seen.unsigned_abs() / 20 {
            self.near += 1;
        } else {
            self.off += 1;
        }
    }
}

/// Facts by name.
pub type CarriedFacts = BTreeMap<&'static str, Carried>;

/// What the shadow carries and a probe may see.
#[derive(Clone, Copy)]
enum Fact {
    CurrentTask,
    NrRunning,
    TtwuPending,
    LoadAvg,
    HasIdleCores,
    NrIdleScan,
    NrBusyCpus,
    WakeeFlips,
    TaskLoadAvg,
    TaskUtilAvg,
    AllowedCpus,
    RecentUsedCpu,
    UtilAvgAtFork,
    RunnableAvgAtFork,
    AvgIdle,
    Overload,
}

impl Fact {
    /// The names, in the order of the facts.
    const NAMES: [&str; Fact::Overload as usize + 1] = [
        "current task",
        "nr_running",
        "ttwu_pending",
        "load_avg",
        "has_idle_cores",
        "nr_idle_scan",
        "nr_busy_cpus",
        "wakee_flips",
        "task load_avg",
        "task util_avg",
        "allowed CPUs",
        "recent_used_cpu",
        "util_avg at fork",
        "runnable_avg at fork",
        "avg_idle",
        "overload",
    ];
}

/// What was compared so far.
#[derive(Default)]
pub struct Comparison([Carried; Fact::NAMES.len()]);

impl Comparison {
    /// The facts that a probe saw.
    pub fn facts(&self) -> CarriedFacts {
        let facts = Fact::NAMES.into_iter().zip(self.0);
        facts.filter(|(_, carried)| carried.equal + carried.near + carried.off > 0).collect()
    }

    /// Compares the shadow with a probe's event; others are passed over.
    pub fn add(&mut self, shadow: &Shadow, event: &Unknown) {
        match event.name_bytes() {
            b"cpus" => self.cpus(shadow, event),
            b"sel" => self.sel(shadow, event),
            b"fdgcpus" => self.fork_cpus(shadow, event),
            b"ni" => self.newidle(shadow, event),
            _ => {}
        }
    }

    fn note(&mut self, fact: Fact, ours: i64, seen: i64) {
        self.0[fact as usize].note(ours, seen);
    }

    fn cpus(&mut self, shadow: &Shadow, event: &Unknown) {
        let fact = |letters: &[u8]| match letters {
            b"c" => Some(Fact::CurrentTask),
            b"n" => Some(Fact::NrRunning),
            b"t" => Some(Fact::TtwuPending),
            b"l" => Some(Fact::LoadAvg),
            b"hic" => Some(Fact::HasIdleCores),
            b"nis" => Some(Fact::NrIdleScan),
            b"busy" => Some(Fact::NrBusyCpus),
            _ => None,
        };
        let sched = &shadow.sched;
        for (fact, cpu, seen) in by_cpu(shadow, event, fact) {
            let rq = &sched.rqs[cpu];
            let ours = match fact {
                Fact::CurrentTask => {
                    let curr = rq.curr.task().map_or(Pid::IDLE, |task| shadow.known(task).pid);
                    i64::from(curr.0)
                }
                Fact::NrRunning => rq.nr_running.into(),
                Fact::TtwuPending => rq.ttwu_pending.into(),
                Fact::LoadAvg => sched.cpu_load(cpu) as i64,
                _ => {
                    let Some(llc) = sched.domains.per_cpu[cpu].llc_shared else { continue };
                    let llc = &sched.domains.shared[llc.0 as usize];
                    match fact {
                        Fact::HasIdleCores => llc.has_idle_cores.into(),
                        Fact::NrIdleScan => llc.nr_idle_scan.into(),
                        _ => llc.nr_busy_cpus.into(),
                    }
                }
            };
            self.note(fact, ours, seen);
        }
    }

    fn sel(&mut self, shadow: &Shadow, event: &Unknown) {
        let Some(task) = event.int("pid").and_then(|pid| shadow.find(Pid(pid as i32))) else { return };
        let entry = shadow.sched.task(task);
        let carried = |key: &[u8]| {
            Some(match key {
                b"flips" => (Fact::WakeeFlips, entry.wakee_flips.into()),
                b"load" => (Fact::TaskLoadAvg, entry.se.avg.load_avg as i64),
                b"util" => (Fact::TaskUtilAvg, entry.se.avg.util_avg as i64),
                b"nca" => (Fact::AllowedCpus, entry.nr_cpus_allowed.into()),
                b"ruc" => (Fact::RecentUsedCpu, entry.recent_used_cpu?.0.into()),
                _ => return None,
            })
        };
        for ((fact, ours), seen) in event.ints(carried) {
            self.note(fact, ours, seen);
        }
    }

    fn fork_cpus(&mut self, shadow: &Shadow, event: &Unknown) {
        let fact = |letters: &[u8]| match letters {
            b"u" => Some(Fact::UtilAvgAtFork),
            b"r" => Some(Fact::RunnableAvgAtFork),
            _ => None,
        };
        for (fact, cpu, seen) in by_cpu(shadow, event, fact) {
            let avg = &shadow.sched.root_cfs(cpu).avg;
            let ours = if matches!(fact, Fact::UtilAvgAtFork) { avg.util_avg } else { avg.runnable_avg };
            self.note(fact, ours as i64, seen);
        }
    }

    fn newidle(&mut self, shadow: &Shadow, event: &Unknown) {
        let cpu = event.int("cpu").map(|cpu| CpuId(cpu as u16)).filter(|&cpu| shadow.has_cpu(cpu));
        let Some(cpu) = cpu else { return };
        let carried = |key: &[u8]| match key {
            b"ai" => Some((Fact::AvgIdle, shadow.sched.rqs[cpu].avg_idle as i64)),
            b"over" => Some((Fact::Overload, shadow.sched.domains.overload.into())),
            _ => None,
        };
        for ((fact, ours), seen) in event.ints(carried) {
            self.note(fact, ours, seen);
        }
    }
}

/// The numbers that an event has of each CPU, and the facts that they are.
#[inline(always)]
fn by_cpu<'a>(
    shadow: &Shadow,
    event: &'a Unknown,
    fact: impl Fn(&[u8]) -> Option<Fact> + 'a,
) -> impl Iterator<Item = (Fact, CpuId, i64)> + 'a {
    let nr_cpus = shadow.sched.rqs.len() as u64;
    event
        .indexed(fact)
        .filter(move |&(_, cpu, _)| cpu < nr_cpus)
        .map(|(fact, cpu, seen)| (fact, CpuId(cpu as u16), seen))
}
