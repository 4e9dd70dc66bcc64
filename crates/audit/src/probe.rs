//! What the shadow carries against what probes on a real kernel saw.
//!
//! A white-box recording prints the scheduler's own numbers beside its decisions: queue
//! lengths, loads, flips, idle stamps. No verdict uses them. They tell how well the shadow
//! carries each fact, and so how much a verdict may lean on it.

use std::collections::BTreeMap;

use schedlab_sched::Curr;
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
    match &*event.name {
        "cpus" => cpus(shadow, event, facts),
        "sel" => sel(shadow, event, facts),
        "fdgcpus" => fork_cpus(shadow, event, facts),
        "ni" => newidle(shadow, event, facts),
        _ => {}
    }
}

fn cpus(shadow: &Shadow, event: &Unknown, facts: &mut CarriedFacts) {
    for cpu in shadow.cpus() {
        let sched = &shadow.sched;
        let rq = &sched.rqs[cpu];
        let mut note = |name, key: &str, ours: i64| {
            if let Some(seen) = event.int(&format!("{key}{cpu}")) {
                facts.entry(name).or_default().note(ours, seen);
            }
        };
        let curr = match rq.curr {
            Curr::Idle => Pid::IDLE,
            Curr::Task(task) => shadow.known(task).pid,
        };
        note("current task", "c", curr.0.into());
        note("nr_running", "n", rq.nr_running.into());
        note("ttwu_pending", "t", rq.ttwu_pending.into());
        note("load_avg", "l", sched.cpu_load(cpu) as i64);
        if let Some(shared) = sched.domains.per_cpu[cpu].llc_shared {
            let shared = &sched.domains.shared[shared.0 as usize];
            note("has_idle_cores", "hic", shared.has_idle_cores.into());
            note("nr_idle_scan", "nis", shared.nr_idle_scan.into());
            note("nr_busy_cpus", "busy", shared.nr_busy_cpus.into());
        }
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
    for cpu in shadow.cpus() {
        let avg = &shadow.sched.root_cfs(cpu).avg;
        let mut note = |name, key: &str, ours: u64| {
            if let Some(seen) = event.int(&format!("{key}{cpu}")) {
                facts.entry(name).or_default().note(ours as i64, seen);
            }
        };
        note("util_avg at fork", "u", avg.util_avg);
        note("runnable_avg at fork", "r", avg.runnable_avg);
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
