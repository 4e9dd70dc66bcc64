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

/// Compares the shadow with a probe's event; others are passed over.
pub fn compare(shadow: &Shadow, event: &Unknown, facts: &mut CarriedFacts) {
    match event.name() {
        "cpus" => cpus(shadow, event, facts),
        "sel" => sel(shadow, event, facts),
        "fdgcpus" => fork_cpus(shadow, event, facts),
        "ni" => newidle(shadow, event, facts),
        _ => {}
    }
}

/// The numbers that an event has of each CPU, `nis12=4`: the letters, the CPU and the number.
fn by_cpu<'a>(shadow: &Shadow, event: &'a Unknown) -> impl Iterator<Item = (&'a str, CpuId, i64)> {
    event.ints().filter_map(|(key, number)| {
        let letters = key.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let cpu = CpuId(key[letters.len()..].parse().ok()?);
        shadow.has_cpu(cpu).then_some((letters, cpu, number))
    })
}

fn cpus(shadow: &Shadow, event: &Unknown, facts: &mut CarriedFacts) {
    let sched = &shadow.sched;
    for (letters, cpu, seen) in by_cpu(shadow, event) {
        let rq = &sched.rqs[cpu];
        let (name, ours) = match letters {
            "c" => {
                let curr = rq.curr.task().map_or(Pid::IDLE, |task| shadow.known(task).pid);
                ("current task", i64::from(curr.0))
            }
            "n" => ("nr_running", rq.nr_running.into()),
            "t" => ("ttwu_pending", rq.ttwu_pending.into()),
            "l" => ("load_avg", sched.cpu_load(cpu) as i64),
            _ => {
                let Some(llc) = sched.domains.per_cpu[cpu].llc_shared else { continue };
                let llc = &sched.domains.shared[llc.0 as usize];
                match letters {
                    "hic" => ("has_idle_cores", llc.has_idle_cores.into()),
                    "nis" => ("nr_idle_scan", llc.nr_idle_scan.into()),
                    "busy" => ("nr_busy_cpus", llc.nr_busy_cpus.into()),
                    _ => continue,
                }
            }
        };
        facts.entry(name).or_default().note(ours, seen);
    }
}

fn sel(shadow: &Shadow, event: &Unknown, facts: &mut CarriedFacts) {
    let Some(task) = event.int("pid").and_then(|pid| shadow.find(Pid(pid as i32))) else { return };
    let entry = shadow.sched.task(task);
    let mut note = |name, key, ours: i64| {
        if let Some(seen) = event.int(key) {
            facts.entry(name).or_default().note(ours, seen);
        }
    };
    note("wakee_flips", "flips", entry.wakee_flips.into());
    note("task load_avg", "load", entry.se.avg.load_avg as i64);
    note("task util_avg", "util", entry.se.avg.util_avg as i64);
    note("allowed CPUs", "nca", entry.nr_cpus_allowed.into());
    if let Some(recent) = entry.recent_used_cpu {
        note("recent_used_cpu", "ruc", recent.0.into());
    }
}

fn fork_cpus(shadow: &Shadow, event: &Unknown, facts: &mut CarriedFacts) {
    for (letters, cpu, seen) in by_cpu(shadow, event) {
        let avg = &shadow.sched.root_cfs(cpu).avg;
        let (name, ours) = match letters {
            "u" => ("util_avg at fork", avg.util_avg),
            "r" => ("runnable_avg at fork", avg.runnable_avg),
            _ => continue,
        };
        facts.entry(name).or_default().note(ours as i64, seen);
    }
}

fn newidle(shadow: &Shadow, event: &Unknown, facts: &mut CarriedFacts) {
    let Some(cpu) = event.int("cpu").map(|cpu| CpuId(cpu as u16)).filter(|&cpu| shadow.has_cpu(cpu)) else {
        return;
    };
    let rq = &shadow.sched.rqs[cpu];
    let mut note = |name, key, ours: i64| {
        if let Some(seen) = event.int(key) {
            facts.entry(name).or_default().note(ours, seen);
        }
    };
    note("avg_idle", "ai", rq.avg_idle as i64);
    note("overload", "over", shadow.sched.domains.overload.into());
}
