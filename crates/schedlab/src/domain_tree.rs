//! The scheduling domains of a machine under a kernel, in a form for people and for scripts.
//!
//! Every CPU has its own tree; most of them are alike. The summary shows each distinct domain once, level by
//! level. The tree of one CPU shows every detail, in the order in which a wake-up or a balance pass walks it.

use std::sync::Arc;

use schedlab_sched::{Domains, Kernel, SchedDomain};
use schedlab_topology::{CpuId, CpuMask, Topology};
use serde::Serialize;

/// One domain of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Level {
    /// As the kernel names it.
    pub name: String,
    /// CPUs covered.
    pub span: String,
    /// CPUs covered, counted.
    pub weight: u32,
    /// Flags, as the kernel names them.
    pub flags: Vec<String>,
    /// Groups in ring order, the local one first.
    pub groups: Vec<String>,
    /// Imbalance worth acting on, percent.
    pub imbalance_pct: u32,
    /// Shortest and longest balance interval, ms.
    pub interval_ms: [u64; 2],
    /// Running tasks up to which a NUMA imbalance is allowed.
    pub imb_numa_nr: u32,
}

/// The domains of one CPU, lowest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Tree {
    /// CPU.
    pub cpu: u16,
    /// Domains.
    pub domains: Vec<Level>,
}

/// The trees of every online CPU, or of a single CPU. Each tree names every group of its domains, so the trees are
/// long if an LLC has thousands of cores.
pub fn trees(topology: &Topology, kernel: &Kernel, only: Option<CpuId>) -> Vec<Tree> {
    let domains = Domains::build(topology, kernel, &topology.in_domains());
    let tree = |cpu: CpuId| Tree {
        cpu: cpu.0,
        domains: domains.walk(cpu).map(|(_, sd)| level(&domains, kernel, sd)).collect(),
    };
    topology.online().iter().filter(|&cpu| only.is_none_or(|only| only == cpu)).map(tree).collect()
}

fn level(domains: &Domains, kernel: &Kernel, sd: &SchedDomain) -> Level {
    Level {
        name: sd.name.to_string(),
        span: sd.span.to_string(),
        weight: sd.span_weight,
        flags: sd.flags.names(kernel.rules.level_names).map(str::to_string).collect(),
        groups: sd.groups.iter().map(|sg| domains.sg(sg).span.to_string()).collect(),
        imbalance_pct: sd.imbalance_pct,
        interval_ms: [sd.min_interval, sd.max_interval],
        imb_numa_nr: sd.imb_numa_nr,
    }
}

/// Each distinct domain once, level by level from the lowest.
pub fn draw_summary(topology: &Topology, kernel: &Kernel) -> String {
    let domains = Domains::build(topology, kernel, &topology.in_domains());
    let mut seen: Vec<(&SchedDomain, Vec<&Arc<CpuMask>>)> = Vec::new();
    for (_, level) in topology.online().iter().flat_map(|cpu| domains.walk(cpu)) {
        let alike = |other: &SchedDomain| {
            (other.name, other.span_weight, other.flags, other.groups.len(), other.imb_numa_nr)
                == (level.name, level.span_weight, level.flags, level.groups.len(), level.imb_numa_nr)
        };
        match seen.iter_mut().find(|(other, _)| alike(other)) {
            // The CPUs of a span share its mask, and are mostly consecutive.
            Some((_, spans)) if spans.last().is_some_and(|last| Arc::ptr_eq(last, &level.span)) => {}
            Some((_, spans)) if spans.contains(&&level.span) => {}
            Some((_, spans)) => spans.push(&level.span),
            None => seen.push((level, vec![&level.span])),
        }
    }
    seen.sort_by_key(|(level, _)| level.span_weight);
    let mut text = format!("scheduling domains under {}\n", kernel.name);
    for (level, spans) in &seen {
        let numa = match level.imb_numa_nr {
            0 => String::new(),
            n => format!(", imb_numa_nr {n}"),
        };
        text.push_str(&format!(
            "{:5} {} of {} CPUs, {} groups each, imbalance_pct {}{numa}\n",
            level.name,
            spans.len(),
            level.span_weight,
            level.groups.len(),
            level.imbalance_pct,
        ));
        text.push_str(&format!("      spans  {}\n", shorten(spans)));
        let flags: Vec<&str> = level.flags.names(kernel.rules.level_names).collect();
        text.push_str(&format!("      flags  {}\n", flags.join(" ")));
    }
    if seen.is_empty() {
        text.push_str("none: one CPU needs no domain\n");
    }
    text
}

/// The tree of one CPU.
pub fn draw_cpu(topology: &Topology, kernel: &Kernel, cpu: CpuId) -> Option<String> {
    let tree = trees(topology, kernel, Some(cpu)).pop()?;
    let mut text = format!("CPU {cpu} under {}\n", kernel.name);
    for (depth, level) in tree.domains.iter().enumerate() {
        text.push_str(&format!("{:1$}domain {depth} {2}: span {3}\n", "", depth, level.name, level.span));
        text.push_str(&format!("{:1$}  groups {2}\n", "", depth, level.groups.join(" | ")));
        text.push_str(&format!("{:1$}  flags  {2}\n", "", depth, level.flags.join(" ")));
        text.push_str(&format!(
            "{:1$}  imbalance_pct {2}, interval {3}-{4} ms, imb_numa_nr {5}\n",
            "", depth, level.imbalance_pct, level.interval_ms[0], level.interval_ms[1], level.imb_numa_nr
        ));
    }
    if tree.domains.is_empty() {
        text.push_str("it has no domains: there is no other CPU to balance with\n");
    }
    Some(text)
}

/// The first spans and how many more there are.
fn shorten(spans: &[&Arc<CpuMask>]) -> String {
    const SHOWN: usize = 6;
    let mut text = spans.iter().take(SHOWN).map(|span| span.to_string()).collect::<Vec<_>>().join(" | ");
    if spans.len() > SHOWN {
        text.push_str(&format!(" | and {} more", spans.len() - SHOWN));
    }
    text
}
