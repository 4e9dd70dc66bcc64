//! Where new threads went: the recorded sequence among the simulated ones.
//!
//! What decides between equal CPUs and equal groups is not in a recording: since when each
//! CPU is idle, and what is left of earlier load. A seed stands for that past. So a recorded
//! choice is *exact* if most seeds that agree so far make it, and *in the set* if some do.

use std::collections::BTreeMap;

use schedlab_topology::{CpuId, Topology};

/// One new thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The recorded CPU.
    pub recorded: CpuId,
    /// What the seeds whose steps so far are the recorded ones chose, and how many did; none if
    /// there was no such seed.
    pub simulated: BTreeMap<CpuId, u32>,
}

/// How a step fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placed {
    /// Every seed makes the recorded choice.
    Exact,
    /// Some seed makes it.
    InSet,
    /// No seed makes it.
    Differs,
    /// No seed came this far on the recorded way.
    NotReached,
}

impl Step {
    /// The verdict.
    pub fn placed(&self) -> Placed {
        match (self.simulated.is_empty(), self.simulated.contains_key(&self.recorded)) {
            (true, _) => Placed::NotReached,
            (false, true) if self.simulated.len() == 1 => Placed::Exact,
            (false, true) => Placed::InSet,
            (false, false) => Placed::Differs,
        }
    }
}

/// Compares a recorded sequence with those of many seeds. CPUs of one LLC that are alike
/// before a step count as one: it is the LLC that says whether a seed is still on the recorded way.
pub fn compare(topology: &Topology, forker: CpuId, recorded: &[CpuId], seeds: &[Vec<CpuId>]) -> Vec<Step> {
    let way = |cpus: &[CpuId]| Way::of(topology, forker, cpus);
    let recorded_way = way(recorded);
    let ways: Vec<Vec<CpuId>> = seeds.iter().map(|seed| way(seed)).collect();
    (0..recorded.len())
        .map(|at| {
            let mut simulated = BTreeMap::new();
            for seed in ways.iter().filter(|w| w.len() > at && w[..at] == recorded_way[..at]) {
                *simulated.entry(seed[at]).or_insert(0) += 1;
            }
            Step { recorded: recorded_way[at], simulated }
        })
        .collect()
}

/// A sequence with CPUs renamed so that sequences that differ only by which of several equal
/// CPUs came first are the same.
struct Way;

impl Way {
    /// Each CPU is named by the lowest unused CPU of the same LLC, unless it is the forker's;
    /// LLCs of a remote node by the order of their first use.
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
                let to = topology
                    .cpus()
                    .filter(|(_, c)| c.llc == llc)
                    .map(|(id, _)| id)
                    .find(|id| renamed.iter().all(|(_, to)| to != id))
                    .expect("a CPU that is not named is free");
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
        assert_eq!(steps.iter().map(Step::placed).collect::<Vec<_>>(), [Placed::Exact, Placed::InSet]);
        let steps = compare(&topology, CpuId(4), &cpus(&[5, 9]), &seeds);
        assert_eq!(steps.iter().map(Step::placed).collect::<Vec<_>>(), [Placed::Differs, Placed::NotReached]);
    }
}
