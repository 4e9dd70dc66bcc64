//! Compares the shadow's state with what probes on a real kernel saw.
//!
//! A white-box recording prints the scheduler's own numbers beside its decisions: queue lengths, loads, flips, idle
//! stamps. No verdict uses them. They show how accurately the shadow tracks each fact, and so how far a verdict may
//! rely on it.

use std::collections::BTreeMap;

use schedlab_topology::CpuId;
use schedlab_trace::{Keys, Unknown};
use schedlab_units::Pid;
use serde::Serialize;

use crate::unknown::Shadow;

/// How accurately a fact is tracked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Carried {
    /// Equal to the probe's value.
    pub equal: u64,
    /// Off by at most a twentieth.
    pub near: u64,
    /// Off by more.
    pub off: u64,
    /// Largest difference.
    pub worst: u64,
}

impl Carried {
    /// Adds the counts of another recording.
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

/// Accuracy by name of the fact.
pub type CarriedFacts = BTreeMap<&'static str, Carried>;

/// A fact that the shadow tracks and a probe may show.
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
    /// Names, in the order of the facts.
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

/// What has been compared so far.
#[derive(Default)]
pub struct Comparison {
    carried: Carrieds,
    /// The meaning of the keys of each probe.
    cpus: Keys<(Fact, CpuId)>,
    fork_cpus: Keys<(Fact, CpuId)>,
    sel: Keys<OfTask>,
    newidle: Keys<OfCpu>,
}

/// Accuracy of each fact, in the order of the facts.
#[derive(Default)]
struct Carrieds([Carried; Fact::NAMES.len()]);

/// A value that a probe prints about the task that it names first.
#[derive(Clone, Copy)]
enum OfTask {
    Pid,
    Is(Fact),
}

/// A value that a probe prints about the CPU that it names first.
#[derive(Clone, Copy)]
enum OfCpu {
    Cpu,
    Is(Fact),
}

impl Carrieds {
    #[inline(always)]
    fn note(&mut self, fact: Fact, ours: i64, seen: i64) {
        self.0[fact as usize].note(ours, seen);
    }
}

impl Comparison {
    /// The facts that a probe saw.
    pub fn facts(&self) -> CarriedFacts {
        let facts = Fact::NAMES.into_iter().zip(self.carried.0);
        facts.filter(|(_, carried)| carried.equal + carried.near + carried.off > 0).collect()
    }

    /// Compares the shadow with a probe's event; ignores other events.
    pub fn add(&mut self, shadow: &Shadow, event: &Unknown) {
        match event.name_bytes() {
            b"cpus" => self.cpus(shadow, event),
            b"sel" => self.sel(shadow, event),
            b"fdgcpus" => self.fork_cpus(shadow, event),
            b"ni" => self.newidle(shadow, event),
            _ => {}
        }
    }

    fn cpus(&mut self, shadow: &Shadow, event: &Unknown) {
        let sched = &shadow.sched;
        let of_cpu = |key: &[u8]| {
            let (letters, cpu) = of_cpu(shadow, key)?;
            let fact = match letters {
                b"c" => Fact::CurrentTask,
                b"n" => Fact::NrRunning,
                b"t" => Fact::TtwuPending,
                b"l" => Fact::LoadAvg,
                b"hic" => Fact::HasIdleCores,
                b"nis" => Fact::NrIdleScan,
                b"busy" => Fact::NrBusyCpus,
                _ => return None,
            };
            Some((fact, cpu))
        };
        let llc = |cpu: CpuId| {
            let llc = sched.domains.per_cpu[cpu].llc_shared?;
            Some(&sched.domains.shared[llc.0 as usize])
        };
        let carried = &mut self.carried;
        self.cpus.each(event, of_cpu, |(fact, cpu), seen| {
            let rq = &sched.rqs[cpu];
            let ours = match fact {
                Fact::CurrentTask => {
                    let curr = rq.curr.task().map_or(Pid::IDLE, |task| shadow.known(task).pid);
                    Some(curr.0.into())
                }
                Fact::NrRunning => Some(rq.nr_running.into()),
                Fact::TtwuPending => Some(rq.ttwu_pending.into()),
                Fact::LoadAvg => Some(sched.cpu_load(cpu) as i64),
                Fact::HasIdleCores => llc(cpu).map(|llc| llc.has_idle_cores.into()),
                Fact::NrIdleScan => llc(cpu).map(|llc| llc.nr_idle_scan.into()),
                _ => llc(cpu).map(|llc| llc.nr_busy_cpus.into()),
            };
            ours.into_iter().for_each(|ours| carried.note(fact, ours, seen));
        });
    }

    fn sel(&mut self, shadow: &Shadow, event: &Unknown) {
        let of_task = |key: &[u8]| {
            Some(match key {
                b"pid" => OfTask::Pid,
                b"flips" => OfTask::Is(Fact::WakeeFlips),
                b"load" => OfTask::Is(Fact::TaskLoadAvg),
                b"util" => OfTask::Is(Fact::TaskUtilAvg),
                b"nca" => OfTask::Is(Fact::AllowedCpus),
                b"ruc" => OfTask::Is(Fact::RecentUsedCpu),
                _ => return None,
            })
        };
        let (carried, mut task) = (&mut self.carried, None);
        self.sel.each(event, of_task, |told, seen| {
            let fact = match told {
                OfTask::Pid => return task = shadow.find(Pid(seen as i32)),
                OfTask::Is(fact) => fact,
            };
            let Some(entry) = task.map(|task| shadow.sched.task(task)) else { return };
            let ours = match fact {
                Fact::WakeeFlips => entry.wakee_flips.into(),
                Fact::TaskLoadAvg => entry.se.avg.load_avg as i64,
                Fact::TaskUtilAvg => entry.se.avg.util_avg as i64,
                Fact::AllowedCpus => entry.nr_cpus_allowed.into(),
                _ => match entry.recent_used_cpu {
                    Some(recent) => recent.0.into(),
                    None => return,
                },
            };
            carried.note(fact, ours, seen);
        });
    }

    fn fork_cpus(&mut self, shadow: &Shadow, event: &Unknown) {
        let of_cpu = |key: &[u8]| match of_cpu(shadow, key)? {
            (b"u", cpu) => Some((Fact::UtilAvgAtFork, cpu)),
            (b"r", cpu) => Some((Fact::RunnableAvgAtFork, cpu)),
            _ => None,
        };
        let carried = &mut self.carried;
        self.fork_cpus.each(event, of_cpu, |(fact, cpu), seen| {
            let avg = &shadow.sched.root_cfs(cpu).avg;
            let ours = if matches!(fact, Fact::UtilAvgAtFork) { avg.util_avg } else { avg.runnable_avg };
            carried.note(fact, ours as i64, seen);
        });
    }

    fn newidle(&mut self, shadow: &Shadow, event: &Unknown) {
        let told = |key: &[u8]| {
            Some(match key {
                b"cpu" => OfCpu::Cpu,
                b"ai" => OfCpu::Is(Fact::AvgIdle),
                b"over" => OfCpu::Is(Fact::Overload),
                _ => return None,
            })
        };
        let (carried, mut cpu) = (&mut self.carried, None);
        self.newidle.each(event, told, |told, seen| {
            let fact = match told {
                OfCpu::Cpu => return cpu = Some(CpuId(seen as u16)).filter(|&cpu| shadow.has_cpu(cpu)),
                OfCpu::Is(fact) => fact,
            };
            let Some(cpu) = cpu else { return };
            let ours = match fact {
                Fact::AvgIdle => shadow.sched.rqs[cpu].avg_idle as i64,
                _ => shadow.sched.domains.overload.into(),
            };
            carried.note(fact, ours, seen);
        });
    }
}

/// The letters of a key about a CPU, and that CPU: `nis12`.
fn of_cpu<'a>(shadow: &Shadow, key: &'a [u8]) -> Option<(&'a [u8], CpuId)> {
    let (letters, cpu) = key.split_at(key.iter().position(u8::is_ascii_digit)?);
    let cpu = CpuId(str::from_utf8(cpu).ok()?.parse().ok()?);
    shadow.has_cpu(cpu).then_some((letters, cpu))
}
