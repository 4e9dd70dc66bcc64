//! The only place that decides which machines are possible.
//!
//! Groups of CPUs nest in two chains, as the scheduler assumes when it stacks its domains: core, cluster, LLC, node;
//! and core, die, package. The order of packages and nodes is free: a node may contain several packages, and a package
//! several nodes.

use crate::{CacheSizes, Cpu, CpuId, CpuMask, PerCpu, TopologyError};

/// The most CPUs a machine may have.
pub const NR_CPUS_MAX: usize = 4096;
/// The most nodes a machine may have, as in the kernel's largest configuration.
pub(crate) const NR_NODES_MAX: usize = 1024;
/// The most threads of a core.
pub(crate) const NR_THREADS_MAX: usize = 8;
/// The capacity of the largest CPU.
///
/// Kernel: SCHED_CAPACITY_SCALE, include/linux/sched.h.
pub(crate) const CAPACITY_SCALE: u16 = 1024;

/// Checks the invariants needed before anything is computed from the CPUs.
pub(crate) fn check_size(nr_cpus: usize) -> Result<(), TopologyError> {
    if (1..=NR_CPUS_MAX).contains(&nr_cpus) {
        return Ok(());
    }
    let what = format!("a machine of {nr_cpus} CPUs");
    Err(TopologyError::new(what, format!("it may have 1 to {NR_CPUS_MAX}")))
}

/// Checks CPUs whose ids have been made dense.
pub(crate) fn check_cpus(cpus: &PerCpu<Cpu>, nr_nodes: usize) -> Result<(), TopologyError> {
    for (id, cpu) in cpus.iter() {
        if cpu.node.0 as usize >= nr_nodes {
            return Err(TopologyError::new(
                format!(
                    "CPU {id} is on node {}, and the distance table ends at node {}",
                    cpu.node,
                    nr_nodes - 1
                ),
                "give the distances one row for each node",
            ));
        }
        if !(1..=CAPACITY_SCALE).contains(&cpu.capacity) {
            return Err(TopologyError::new(
                format!("CPU {id} has capacity {}", cpu.capacity),
                format!("a capacity is 1 to {CAPACITY_SCALE}"),
            ));
        }
        if cpu.thread as usize >= NR_THREADS_MAX {
            return Err(TopologyError::new(
                format!("the core of CPU {id} has more than {NR_THREADS_MAX} threads"),
                "see that CPUs of different cores have different core ids",
            ));
        }
    }
    check_nesting(cpus)?;
    if !cpus.values().iter().any(|cpu| cpu.capacity == CAPACITY_SCALE) {
        return Err(TopologyError::new(
            format!("no CPU has capacity {CAPACITY_SCALE}"),
            "the largest CPU has it, the others their share of it",
        ));
    }
    if !cpus.values().iter().any(|cpu| cpu.online) {
        return Err(TopologyError::new("no CPU is online", "leave at least one online"));
    }
    Ok(())
}

/// Each group is within one group of the next level of its chain.
fn check_nesting(cpus: &PerCpu<Cpu>) -> Result<(), TopologyError> {
    type Get = fn(&Cpu) -> u16;
    let chains: [(&str, Get, &str, Get); 5] = [
        ("core", |c| c.core, "cluster", |c| c.cluster),
        ("cluster", |c| c.cluster, "LLC", |c| c.llc),
        ("LLC", |c| c.llc, "node", |c| c.node.0),
        ("core", |c| c.core, "die", |c| c.die),
        ("die", |c| c.die, "package", |c| c.package),
    ];
    for (inner, inner_of, outer, outer_of) in chains {
        let mut first: Vec<Option<CpuId>> = vec![None; cpus.len()];
        for (id, cpu) in cpus.iter() {
            let seen = *first[inner_of(cpu) as usize].get_or_insert(id);
            if outer_of(&cpus[seen]) != outer_of(cpu) {
                return Err(TopologyError::new(
                    format!("CPUs {seen} and {id} share one {inner} but not one {outer}"),
                    format!("each {inner} lies within one {outer}"),
                ));
            }
        }
    }
    Ok(())
}

/// Each outer group contains whole inner ones, and each CPU is in one of them. Having no outer groups is allowed.
pub(crate) fn check_outer(
    inner: &str,
    inners: &[CpuMask],
    outer: &str,
    outers: &[CpuMask],
) -> Result<(), TopologyError> {
    if outers.is_empty() {
        return Ok(());
    }
    for group in inners {
        let mut holders = outers.iter().filter(|holder| holder.intersects(group));
        match (holders.next(), holders.next()) {
            (Some(holder), None) if group.is_subset(holder) => {}
            _ => {
                return Err(TopologyError::new(
                    format!("CPUs {group} are one {inner} but not in one {outer}"),
                    format!("each {inner} lies within one {outer}"),
                ));
            }
        }
    }
    Ok(())
}

/// The table is square, 10 for a node itself, 10 to 254 between two.
///
/// Kernel: slit_valid(), drivers/acpi/numa/srat.c, is stricter by one: `numa=fake` splits one node into nodes at
/// distance 10.
pub(crate) fn check_distances(distances: &[Vec<u32>]) -> Result<(), TopologyError> {
    let nr_nodes = distances.len();
    if !(1..=NR_NODES_MAX).contains(&nr_nodes) {
        return Err(TopologyError::new(
            format!("the distance table has {nr_nodes} rows"),
            format!("a machine has 1 to {NR_NODES_MAX} nodes"),
        ));
    }
    for (from, row) in distances.iter().enumerate() {
        if row.len() != nr_nodes {
            return Err(TopologyError::new(
                format!("the distance table has {nr_nodes} rows, and row {from} has {} numbers", row.len()),
                "give a number for each pair of nodes",
            ));
        }
        for (to, &distance) in row.iter().enumerate() {
            if from == to && distance != 10 {
                return Err(TopologyError::new(
                    format!("node {from} is at distance {distance} from itself"),
                    "write 10, which is local",
                ));
            }
            if !(10..=254).contains(&distance) {
                return Err(TopologyError::new(
                    format!("nodes {from} and {to} are at distance {distance}"),
                    "a distance is 10 (local) to 254",
                ));
            }
        }
    }
    Ok(())
}

/// CPUs of one LLC agree on its size.
pub(crate) fn check_cache_sizes(cpus: &PerCpu<Cpu>, sizes: &PerCpu<CacheSizes>) -> Result<(), TopologyError> {
    let mut first: Vec<Option<CpuId>> = vec![None; cpus.len()];
    for (id, cpu) in cpus.iter() {
        let seen = *first[cpu.llc as usize].get_or_insert(id);
        if sizes[seen].llc != sizes[id].llc {
            return Err(TopologyError::new(
                format!("CPUs {seen} and {id} share an LLC but not its size"),
                "give the LLC one size",
            ));
        }
    }
    Ok(())
}
