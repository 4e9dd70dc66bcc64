//! Where new threads went: compares the recorded sequence with simulated ones.
//!
//! A recording does not contain what decides between equal CPUs and equal groups: since when each CPU is idle, and the
//! remains of earlier load. A seed stands for that past. So a recorded choice is *exact* if all seeds that followed the
//! recording so far take that CPU. It is *in the set* if some take it, or a CPU that differs from it only in hidden
//! facts: one in the same LLC, on a core that is equally free or in use.

use std::collections::BTreeMap;

use schedlab_topology::{CpuId, Topology};

/// One new thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The recorded CPU, represented by the lowest CPU that is equivalent.
    pub recorded: CpuId,
    /// How many of the seeds below chose exactly the recorded CPU.
    pub same: u32,
    /// The choices of the seeds that followed the recording so far, with their counts; empty if there was no such seed.
    pub simulated: BTreeMap<CpuId, u32>,
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placed {
    /// Every seed takes the recorded CPU.
    Exact,
    /// Some seed takes it or an equivalent one.
    InSet,
    /// No seed does.
    Differs,
    /// No seed followed the recording this far.
    NotReached,
}

impl Step {
    /// The verdict.
    pub fn placed(&self) -> Placed {
        match (self.simulated.is_empty(), self.simulated.contains_key(&self.recorded)) {
            (true, _) => Placed::NotReached,
            (false, true) if self.simulated.values().sum::<u32>() == self.same => Placed::Exact,
            (false, true) => Placed::InSet,
            (false, false) => Placed::Differs,
        }
    }
}

/// Compares a recorded sequence with those of many seeds. CPUs of one LLC that are equivalent before a step count as
/// one: the LLC decides whether a seed still follows the recording.
pub fn compare(topology: &Topology, forker: CpuId, recorded: &[CpuId], seeds: &[Vec<CpuId>]) -> Vec<Step> {
    let way = |cpus: &[CpuId]| Way::of(topology, forker, cpus);
    let recorded_way = way(recorded);
    let ways: Vec<Vec<CpuId>> = seeds.iter().map(|seed| way(seed)).collect();
    (0..recorded.len())
        .map(|at| {
            let mut simulated = BTreeMap::new();
            let mut same = 0;
            for (way, seed) in ways.iter().zip(seeds) {
                if way.len() > at && way[..at] == recorded_way[..at] {
                    *simulated.entry(way[at]).or_insert(0) += 1;
                    same += u32::from(seed[at] == recorded[at]);
                }
            }
            Step { recorded: recorded_way[at], same, simulated }
        })
        .collect()
}

/// A sequence with renamed CPUs, so that sequences are equal if they differ only in which of several equivalent CPUs
/// came first.
struct Way;

impl Way {
    /// Each CPU is represented by the lowest unused CPU of the same LLC, unless it is the forker's; LLCs of a remote
    /// node are numbered by the order of their first use.
    fn of(topology: &Topology, forker: CpuId, cpus: &[CpuId]) -> Vec<CpuId> {
        let mut renamed: Vec<(CpuId, CpuId)> = vec![(forker, forker)];
        let mut llcs: Vec<(u16, u16)> = vec![(topology.cpu(forker).llc, topology.cpu(forker).llc)];
        cpus.iter()
            .map(|&cpu| {
                if let Some((_, to)) = renamed.iter().find(|(from, _)| *from == cpu) {
                    return *to;
                }
                let place = topology.cpu(cpu);
                let llc = match llcs.iter().find(|(from, _)| *from == place.llc) {
                    Some((_, to)) => *to,
                    None => {
                        let free = topology
                            .cpus()
                            .filter(|(_, c)| c.node == place.node)
                            .map(|(_, c)| c.llc)
                            .find(|llc| llcs.iter().all(|(_, to)| to != llc))
                            .expect("an LLC that is not named is free");
                        llcs.push((place.llc, free));
                        free
                    }
                };
                let core = |cpu: CpuId| topology.cpu(cpu).core;
                let used = renamed.iter().any(|(from, _)| core(*from) == place.core);
                let free: Vec<CpuId> = topology
                    .cpus()
                    .filter(|(_, c)| c.llc == llc)
                    .map(|(id, _)| id)
                    .filter(|id| renamed.iter().all(|(_, to)| to != id))
                    .collect();
                let alike = |id: &&CpuId| renamed.iter().any(|(_, to)| core(*to) == core(**id)) == used;
                let to = *free.iter().find(alike).or(free.first()).expect("a CPU that is not named is free");
                renamed.push((cpu, to));
                to
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(numbers: &[u16]) -> Vec<CpuId> {
        numbers.iter().map(|&n| CpuId(n)).collect()
    }

    #[test]
    fn a_step_is_judged_among_the_seeds_that_went_the_same_way() {
        let topology = Topology::regular("2x2x4:distance=10/21").unwrap();
        // Remote LLCs are alike at first; the second seed keeps to its own LLC at the second step.
        let seeds = [cpus(&[9, 5]), cpus(&[13, 1]), cpus(&[14, 6])];
        let steps = compare(&topology, CpuId(4), &cpus(&[12, 7]), &seeds);
        assert_eq!(steps.iter().map(Step::placed).collect::<Vec<_>>(), [Placed::InSet, Placed::InSet]);
        let steps = compare(&topology, CpuId(4), &cpus(&[9, 5]), &seeds[..1]);
        assert!(steps.iter().all(|step| step.placed() == Placed::Exact));
        let steps = compare(&topology, CpuId(4), &cpus(&[5, 9]), &seeds);
        assert_eq!(steps.iter().map(Step::placed).collect::<Vec<_>>(), [Placed::Differs, Placed::NotReached]);
    }
}
