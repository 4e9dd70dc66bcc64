//! `/proc/schedstat` of a trace: what each CPU did, and what balancing did in each of its domains.
//!
//! Lines of CPUs need `sched_switch`, `sched_waking` and `sched_wakeup`; lines of domains need the decisions of
//! balancing, which a simulated trace has. The text is that of the kernel in versions 15 to 17, and it is read in all
//! of them, so that a machine's own file can be compared with a simulated one.
//!
//! Left at zero: yields, passes of exec and fork (no kernel counts them any more), and tasks pulled although their caches
//! were warm.
//!
//! Kernel: show_schedstat(), kernel/sched/stats.c; Documentation/scheduler/sched-stats.rst, v5.18, v6.10, v6.14.

use std::fmt::Write;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Event, How, IdleType, Kind, Sink};
use schedlab_units::{Pid, Time};
use serde::Serialize;

use crate::metrics::PidTable;

/// A form of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Version {
    /// Until v6.9: idle first.
    V15,
    /// From v6.10 on: busy first.
    V16,
    /// From v6.14 on: domains by name, and imbalances by unit.
    V17,
}

/// The content of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SchedStat {
    /// When it was read, in jiffies.
    pub timestamp: u64,
    /// By CPU.
    pub cpus: Vec<CpuStat>,
}

/// The line of a CPU and those of its domains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuStat {
    /// Its number.
    pub cpu: u16,
    /// Calls of schedule(), and those that left the CPU idle.
    pub sched: [u64; 2],
    /// Wake-ups by this CPU, and those of tasks on it.
    pub ttwu: [u64; 2],
    /// Time tasks ran, and time they waited to, ns.
    pub times_ns: [u64; 2],
    /// How often a task began to run.
    pub timeslices: u64,
    /// Lowest first.
    pub domains: Vec<DomainStat>,
}

/// The line of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DomainStat {
    /// Its name; empty where the file has none.
    pub name: String,
    /// Its CPUs as the kernel prints a mask.
    pub mask: String,
    /// Passes by how idle the CPU was: busy, idle, newly idle.
    pub passes: [Passes; 3],
    /// Active balancing: begun, failed, moved a task.
    pub active: [u64; 3],
    /// Wake-ups of a task elsewhere in the domain; moved to the waker's side; moved by balancing.
    pub ttwu: [u64; 3],
}

/// Passes of the balancer in a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Passes {
    /// How many.
    pub count: u64,
    /// Those that found nothing to do.
    pub balanced: u64,
    /// Those that found something and moved nothing.
    pub failed: u64,
    /// The imbalance, by its unit: load, utilisation, tasks, misfits.
    pub imbalance: [u64; 4],
    /// Tasks moved.
    pub gained: u64,
    /// Those whose caches were warm.
    pub hot_gained: u64,
    /// Passes without a busiest queue.
    pub nobusyq: u64,
    /// Passes without a busiest group.
    pub nobusyg: u64,
}

/// The order of [`DomainStat::passes`].
pub const IDLE_TYPES: [&str; 3] = ["busy", "idle", "newly idle"];

impl Version {
    /// The form of a release.
    pub fn of_release(release: (u32, u32)) -> Version {
        match release {
            r if r >= (6, 14) => Version::V17,
            r if r >= (6, 10) => Version::V16,
            _ => Version::V15,
        }
    }

    /// Its number.
    pub fn number(self) -> u32 {
        match self {
            Version::V15 => 15,
            Version::V16 => 16,
            Version::V17 => 17,
        }
    }

    /// The version of a number.
    pub fn of_number(number: u32) -> Option<Version> {
        [Version::V15, Version::V16, Version::V17].into_iter().find(|version| version.number() == number)
    }

    /// The order of the idle types in a line.
    fn order(self) -> [usize; 3] {
        if self == Version::V15 { [1, 0, 2] } else { [0, 1, 2] }
    }

    /// Numbers of an idle type.
    fn fields(self) -> usize {
        if self == Version::V17 { 11 } else { 8 }
    }
}

impl SchedStat {
    /// The file.
    pub fn text(&self, version: Version) -> String {
        let mut out = format!("version {}\ntimestamp {}\n", version.number(), self.timestamp);
        for cpu in &self.cpus {
            let ([calls, idle], [all, local], [ran, waited]) = (cpu.sched, cpu.ttwu, cpu.times_ns);
            let _ = writeln!(
                out,
                "cpu{} 0 0 {calls} {idle} {all} {local} {ran} {waited} {}",
                cpu.cpu, cpu.timeslices
            );
            for (number, domain) in cpu.domains.iter().enumerate() {
                let _ = write!(out, "domain{number}");
                if version == Version::V17 {
                    let _ = write!(out, " {}", domain.name);
                }
                let _ = write!(out, " {}", domain.mask);
                for idle in version.order() {
                    let p = &domain.passes[idle];
                    let _ = write!(out, " {} {} {}", p.count, p.balanced, p.failed);
                    match version {
                        Version::V17 => p.imbalance.iter().for_each(|n| _ = write!(out, " {n}")),
                        _ => _ = write!(out, " {}", p.imbalance.iter().sum::<u64>()),
                    }
                    let _ = write!(out, " {} {} {} {}", p.gained, p.hot_gained, p.nobusyq, p.nobusyg);
                }
                let rest = domain.active.iter().chain(&[0; 6]).chain(&domain.ttwu);
                rest.for_each(|n| _ = write!(out, " {n}"));
                out.push('\n');
            }
        }
        out
    }

    /// Reads the file.
    ///
    /// # Errors
    /// The line that cannot be parsed.
    pub fn parse(text: &str) -> Result<(Version, SchedStat), String> {
        let mut lines = text.lines().enumerate();
        let number = lines.next().and_then(|(_, line)| line.strip_prefix("version ")?.trim().parse().ok());
        let number: u32 = number.ok_or("line 1: the first line of /proc/schedstat is \"version N\"")?;
        let version = Version::of_number(number).ok_or_else(|| {
            format!("line 1: version {number} of schedstat is not known; 15, 16 and 17 are")
        })?;
        let mut stat = SchedStat::default();
        for (at, line) in lines {
            let wrong = |why: &str| format!("line {}: {why}", at + 1);
            let mut words = line.split_whitespace();
            let Some(head) = words.next() else { continue };
            if head == "timestamp" {
                stat.timestamp =
                    words.next().and_then(|word| word.parse().ok()).ok_or_else(|| wrong("no time"))?;
            } else if let Some(cpu) = head.strip_prefix("cpu") {
                let n = numbers(words).ok_or_else(|| wrong("a number is expected"))?;
                let [_, _, calls, idle, all, local, ran, waited, timeslices] = n[..] else {
                    return Err(wrong("a line of a CPU has nine numbers"));
                };
                stat.cpus.push(CpuStat {
                    cpu: cpu.parse().map_err(|_| wrong("no number of a CPU"))?,
                    sched: [calls, idle],
                    ttwu: [all, local],
                    times_ns: [ran, waited],
                    timeslices,
                    domains: Vec::new(),
                });
            } else if head.starts_with("domain") {
                let name = if version == Version::V17 { words.next().unwrap_or_default() } else { "" };
                let mask = words.next().unwrap_or_default().to_owned();
                let n = numbers(words).ok_or_else(|| wrong("a number is expected"))?;
                let domain = domain(version, name, mask, &n).ok_or_else(|| {
                    wrong(&format!(
                        "a line of a domain has {} numbers in version {number}",
                        3 * version.fields() + 12
                    ))
                })?;
                let cpu = stat.cpus.last_mut().ok_or_else(|| wrong("a domain before its CPU"))?;
                cpu.domains.push(domain);
            }
        }
        if stat.cpus.is_empty() { Err("it has no line for a CPU".to_owned()) } else { Ok((version, stat)) }
    }

    /// Each level of domains with the totals of its CPUs, lowest first: by name, or by number if there is none.
    pub fn levels(&self) -> Vec<(String, DomainStat)> {
        let mut levels: Vec<(String, DomainStat)> = Vec::new();
        for cpu in &self.cpus {
            for (number, domain) in cpu.domains.iter().enumerate() {
                let name =
                    if domain.name.is_empty() { format!("domain{number}") } else { domain.name.clone() };
                let at = levels.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                    levels.push((name, DomainStat::default()));
                    levels.len() - 1
                });
                levels[at].1.add(domain);
            }
        }
        levels
    }
}

fn numbers<'a>(words: impl Iterator<Item = &'a str>) -> Option<Vec<u64>> {
    words.map(|word| word.parse().ok()).collect()
}

fn domain(version: Version, name: &str, mask: String, n: &[u64]) -> Option<DomainStat> {
    let fields = version.fields();
    if n.len() < 3 * fields + 12 {
        return None;
    }
    let mut domain = DomainStat { name: name.to_owned(), mask, ..DomainStat::default() };
    for (place, idle) in version.order().into_iter().enumerate() {
        let of = &n[place * fields..][..fields];
        let (imbalance, rest) = match version {
            Version::V17 => ([of[3], of[4], of[5], of[6]], &of[7..]),
            _ => ([of[3], 0, 0, 0], &of[4..]),
        };
        domain.passes[idle] = Passes {
            count: of[0],
            balanced: of[1],
            failed: of[2],
            imbalance,
            gained: rest[0],
            hot_gained: rest[1],
            nobusyq: rest[2],
            nobusyg: rest[3],
        };
    }
    let rest = &n[3 * fields..];
    domain.active.copy_from_slice(&rest[..3]);
    domain.ttwu.copy_from_slice(&rest[9..12]);
    Some(domain)
}

impl DomainStat {
    fn add(&mut self, other: &DomainStat) {
        for (mine, theirs) in self.passes.iter_mut().zip(&other.passes) {
            mine.count += theirs.count;
            mine.balanced += theirs.balanced;
            mine.failed += theirs.failed;
            mine.gained += theirs.gained;
            mine.hot_gained += theirs.hot_gained;
            mine.nobusyq += theirs.nobusyq;
            mine.nobusyg += theirs.nobusyg;
            mine.imbalance.iter_mut().zip(theirs.imbalance).for_each(|(a, b)| *a += b);
        }
        self.active.iter_mut().zip(other.active).for_each(|(a, b)| *a += b);
        self.ttwu.iter_mut().zip(other.ttwu).for_each(|(a, b)| *a += b);
    }
}

/// A domain of a CPU for which the fold counts.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// Its CPUs.
    pub span: CpuMask,
}

/// Counts over a trace.
#[derive(Clone, Debug)]
pub struct SchedStatFold {
    stat: SchedStat,
    spans: Vec<Vec<Span>>,
    /// The CPU that began to wake each task.
    wakers: PidTable<Option<CpuId>>,
    tasks: PidTable<OneTask>,
    last: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct OneTask {
    waits: Option<Time>,
    runs: Option<Time>,
}

impl SchedStatFold {
    /// A fold for a machine with these domains of each CPU, lowest first.
    pub fn new(spans: Vec<Vec<Span>>, nr_cpus: usize) -> SchedStatFold {
        let domain = |span: &Span| DomainStat {
            name: span.name.clone(),
            mask: mask(&span.span, nr_cpus),
            ..DomainStat::default()
        };
        let cpu = |(cpu, spans): (usize, &Vec<Span>)| CpuStat {
            cpu: cpu as u16,
            domains: spans.iter().map(domain).collect(),
            ..CpuStat::default()
        };
        let cpus = spans.iter().enumerate().map(cpu).collect();
        let stat = SchedStat { timestamp: 0, cpus };
        SchedStatFold {
            stat,
            spans,
            wakers: PidTable::default(),
            tasks: PidTable::default(),
            last: Time::ZERO,
        }
    }

    /// The content of the file at the end of the trace, on a kernel with `hz` ticks per second.
    pub fn finish(mut self, hz: u64) -> SchedStat {
        self.stat.timestamp = self.last.0 / (1_000_000_000 / hz.max(1));
        self.stat
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut CpuStat {
        while self.stat.cpus.len() <= cpu.index() {
            self.stat.cpus.push(CpuStat { cpu: self.stat.cpus.len() as u16, ..CpuStat::default() });
            self.spans.push(Vec::new());
        }
        &mut self.stat.cpus[cpu.index()]
    }

    /// The lowest domain of a CPU with another in it.
    fn lowest(&self, of: CpuId, with: CpuId) -> Option<usize> {
        self.spans.get(of.index())?.iter().position(|domain| domain.span.contains(with))
    }

    fn woken(&mut self, waker: CpuId, target: CpuId) {
        let lowest = self.lowest(waker, target);
        let cpu = self.cpu(waker);
        cpu.ttwu[0] += 1;
        if waker == target {
            cpu.ttwu[1] += 1;
        } else if let Some(domain) = lowest.and_then(|at| cpu.domains.get_mut(at)) {
            domain.ttwu[0] += 1;
        }
    }

    fn balance(&mut self, b: &schedlab_trace::Balance) {
        let idle = match b.idle {
            IdleType::Busy => 0,
            IdleType::Idle => 1,
            IdleType::NewlyIdle => 2,
        };
        let active = b.numbers.iter().any(|(name, n)| name == "active" && *n != 0);
        let cpu = self.cpu(b.dst_cpu);
        let Some(domain) = cpu.domains.iter_mut().find(|domain| domain.name == b.domain) else { return };
        let passes = &mut domain.passes[idle];
        passes.count += 1;
        let imbalance = b.imbalance.max(0) as u64;
        let of = ["load", "util", "task", "misfit"].iter().position(|name| *name == b.migration);
        let to_be_moved = |passes: &mut Passes| {
            if let Some(of) = of {
                passes.imbalance[of] += imbalance;
            }
        };
        match &*b.reason {
            "LB_NO_QUEUE" => {
                passes.nobusyq += 1;
                passes.balanced += 1;
            }
            "LB_NOT_US" => passes.balanced += 1,
            "LB_ALL_PINNED" => {
                to_be_moved(passes);
                passes.balanced += 1;
            }
            _ if !b.moved.is_empty() && !active => {
                to_be_moved(passes);
                passes.gained += b.moved.len() as u64;
            }
            "LB_NOTHING_MOVABLE" | "LB_RUNNING_PINNED" | "LB_ACTIVE" => {
                to_be_moved(passes);
                passes.failed += 1;
            }
            _ => {
                passes.nobusyg += 1;
                passes.balanced += 1;
            }
        }
        if active {
            domain.active[0] += 1;
            let moved = usize::from(b.moved.is_empty()) ^ 1;
            domain.active[1 + moved] += 1;
        }
    }
}

impl Sink for SchedStatFold {
    fn event(&mut self, event: &Event) {
        let now = event.time;
        self.last = self.last.max(now);
        match &event.kind {
            Kind::SchedSwitch { prev_pid, prev_state, next_pid, .. } => {
                let mut ran = 0;
                if *prev_pid != Pid::IDLE {
                    let task = self.tasks.entry(*prev_pid);
                    ran = task.runs.take().map_or(0, |since| now.since(since).0);
                    task.waits = prev_state.is_runnable().then_some(now);
                }
                let mut waited = 0;
                if *next_pid != Pid::IDLE {
                    let task = self.tasks.entry(*next_pid);
                    waited = task.waits.take().map_or(0, |since| now.since(since).0);
                    task.runs = Some(now);
                }
                let cpu = self.cpu(event.cpu);
                cpu.sched[0] += 1;
                cpu.sched[1] += u64::from(*next_pid == Pid::IDLE);
                cpu.timeslices += u64::from(*next_pid != Pid::IDLE);
                cpu.times_ns[0] += ran;
                cpu.times_ns[1] += waited;
            }
            Kind::SchedWaking { pid, .. } => *self.wakers.entry(*pid) = Some(event.cpu),
            Kind::SchedWakeup { pid, target_cpu, .. } => {
                let waker = self.wakers.entry(*pid).take().unwrap_or(event.cpu);
                self.woken(waker, *target_cpu);
                let task = self.tasks.entry(*pid);
                if task.runs.is_none() {
                    task.waits.get_or_insert(now);
                }
            }
            Kind::SchedWakeupNew { pid, .. } => {
                self.tasks.entry(*pid).waits.get_or_insert(now);
            }
            Kind::Placement(p) if p.how == How::Wakeup && p.target != p.prev_cpu => {
                let lowest = self.lowest(p.target, p.prev_cpu);
                let cpu = self.cpu(p.target);
                if let Some(domain) = lowest.and_then(|at| cpu.domains.get_mut(at)) {
                    domain.ttwu[1] += 1;
                }
            }
            Kind::Balance(b) => self.balance(b),
            _ => {}
        }
    }

    fn wants_decisions(&self) -> bool {
        true
    }
}

/// A mask as `%*pb` prints it: groups of 32 CPUs, the highest first.
fn mask(cpus: &CpuMask, nr_cpus: usize) -> String {
    let mut words = vec![0u32; nr_cpus.max(1).div_ceil(32)];
    for cpu in cpus.iter() {
        words[cpu.index() / 32] |= 1 << (cpu.index() % 32);
    }
    let digits = (nr_cpus.max(1) - 1) % 32 / 4 + 1;
    let mut out = String::new();
    for (at, word) in words.iter().rev().enumerate() {
        let _ = if at == 0 { write!(out, "{word:0digits$x}") } else { write!(out, ",{word:08x}") };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat() -> SchedStat {
        let mut passes = [Passes::default(); 3];
        for (at, pass) in passes.iter_mut().enumerate() {
            let n = 100 * (at as u64 + 1);
            *pass = Passes {
                count: n,
                balanced: n + 1,
                failed: n + 2,
                imbalance: [n + 3, 0, 0, 0],
                gained: n + 4,
                hot_gained: n + 5,
                nobusyq: n + 6,
                nobusyg: n + 7,
            };
        }
        let domain = DomainStat {
            name: "MC".to_owned(),
            mask: "f".to_owned(),
            passes,
            active: [1, 2, 3],
            ttwu: [4, 5, 6],
        };
        let cpu = CpuStat {
            cpu: 0,
            sched: [10, 4],
            ttwu: [7, 3],
            times_ns: [1000, 50],
            timeslices: 6,
            domains: vec![domain],
        };
        SchedStat { timestamp: 4_294_900_000, cpus: vec![cpu] }
    }

    #[test]
    fn what_is_written_is_read_again_in_every_version() {
        for version in [Version::V15, Version::V16, Version::V17] {
            let text = stat().text(version);
            let (read, mut back) = SchedStat::parse(&text).unwrap();
            assert_eq!(read, version);
            if version < Version::V17 {
                back.cpus[0].domains[0].name = "MC".to_owned();
            }
            assert_eq!(back, stat(), "{text}");
        }
    }

    #[test]
    fn the_columns_are_those_of_each_version() {
        let line = |version| stat().text(version).lines().last().unwrap().to_owned();
        assert!(line(Version::V15).starts_with("domain0 f 200 201 202 203 204 205 206 207 100 101"));
        assert!(line(Version::V16).starts_with("domain0 f 100 101 102 103 104 105 106 107 200 201"));
        assert!(line(Version::V17).starts_with("domain0 MC f 100 101 102 103 0 0 0 104 105 106 107 200"));
        assert!(line(Version::V17).ends_with(" 1 2 3 0 0 0 0 0 0 4 5 6"));
    }

    #[test]
    fn what_is_damaged_is_refused_with_its_line() {
        let text = stat().text(Version::V15);
        for (text, part) in [
            (text.replace("version 15", "version 9"), "version 9"),
            (text.replace("cpu0 0 0 10", "cpu0 0 0 x"), "line 3"),
            (text.replace("domain0 f 200", "domain0 f"), "line 4: a line of a domain has 36 numbers"),
            ("hello\n".to_owned(), "line 1"),
        ] {
            let error = SchedStat::parse(&text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn masks_are_as_the_kernel_prints_them() {
        let cpus = |list: &str| CpuMask::parse_list(list, 256).unwrap();
        assert_eq!(mask(&cpus("0-3"), 4), "f");
        assert_eq!(mask(&cpus("0,33"), 40), "02,00000001");
        assert_eq!(Version::of_release((6, 12)), Version::V16);
    }
}
