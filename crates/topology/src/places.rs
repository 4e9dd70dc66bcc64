//! What importers of several formats need to turn their groups into a machine.

use std::collections::{BTreeMap, BTreeSet};

use crate::Cpu;

/// Gives each key an id, the same key the same one.
pub(crate) struct Ids<K>(BTreeMap<K, u16>);

impl<K: Ord> Ids<K> {
    pub(crate) fn new() -> Ids<K> {
        Ids(BTreeMap::new())
    }

    pub(crate) fn id(&mut self, key: K) -> u16 {
        let next = self.0.len() as u16;
        *self.0.entry(key).or_insert(next)
    }
}

/// Distances of a machine that says none: 10, and `remote` between any two nodes.
pub(crate) fn default_distances(nr_nodes: usize, remote: u32) -> Vec<Vec<u32>> {
    let distance = |a, b| if a == b { 10 } else { remote };
    (0..nr_nodes).map(|a| (0..nr_nodes).map(|b| distance(a, b)).collect()).collect()
}

/// Gives CPUs of unknown place one: a core and an LLC of its own, offline, in the
/// package and on the node of the nearest CPU below, or above if there is none.
pub(crate) fn settle(places: &[Option<Cpu>]) -> Vec<Cpu> {
    let fresh = 1 + places.iter().flatten().map(|c| c.core.max(c.cluster).max(c.llc)).max().unwrap_or(0);
    let Some(mut neighbour) = places.iter().flatten().next().copied() else { return Vec::new() };
    let settle = |(i, place): (usize, &Option<Cpu>)| match place {
        Some(cpu) => {
            neighbour = *cpu;
            *cpu
        }
        None => {
            let alone = fresh + i as u16;
            Cpu { cluster: alone, llc: alone, core: alone, capacity: 1024, online: false, ..neighbour }
        }
    };
    places.iter().enumerate().map(settle).collect()
}

/// Makes groups nest, in the way kernels treat firmware whose groups do not.
///
/// A cache that spans nodes is cut by node; where the threads of a core have
/// different LLCs these become one; a cluster that is not between core and LLC
/// is dropped.
///
/// Kernel: match_llc(), arch/x86/kernel/smpboot.c; build_sched_domain(),
/// kernel/sched/topology.c; cpu_clustergroup_mask(), drivers/base/arch_topology.c, v6.12.
pub(crate) fn reconcile(cpus: &mut [Cpu]) {
    let mut ids = Ids::new();
    for cpu in cpus.iter_mut() {
        cpu.llc = ids.id((cpu.llc, cpu.node));
    }
    merge_llcs_of_cores(cpus);

    let mut spans = BTreeMap::new();
    let mut clusters = BTreeMap::new();
    let mut odd = BTreeSet::new();
    for cpu in cpus.iter() {
        let llc = *spans.entry(cpu.cluster).or_insert(cpu.llc);
        let cluster = *clusters.entry(cpu.core).or_insert(cpu.cluster);
        if llc != cpu.llc || cluster != cpu.cluster {
            odd.extend([cluster, cpu.cluster]);
        }
    }
    let mut ids = Ids::new();
    for cpu in cpus.iter_mut() {
        let alone = odd.contains(&cpu.cluster);
        cpu.cluster = ids.id((alone, if alone { cpu.core } else { cpu.cluster }));
    }
}

/// Makes one LLC of those that hold threads of one core, where these are on one node.
fn merge_llcs_of_cores(cpus: &mut [Cpu]) {
    let mut joined: BTreeMap<u16, u16> = BTreeMap::new();
    let root = |joined: &BTreeMap<u16, u16>, mut llc: u16| {
        while let Some(&next) = joined.get(&llc) {
            llc = next;
        }
        llc
    };
    let mut first = BTreeMap::new();
    for cpu in cpus.iter() {
        let &mut llc = first.entry((cpu.core, cpu.node)).or_insert(cpu.llc);
        let (from, to) = (root(&joined, cpu.llc), root(&joined, llc));
        if from != to {
            joined.insert(from, to);
        }
    }
    for cpu in cpus.iter_mut() {
        cpu.llc = root(&joined, cpu.llc);
    }
}

/// Splits cores whose threads have several first-level caches of two or more threads each.
///
/// On POWER9 and 10 sysfs calls eight threads siblings, but the kernel schedules
/// halves of four, which the caches show. A first-level cache of one thread
/// beside siblings is an old AMD core pair or a virtual machine's mistake, and
/// the kernel goes by the siblings.
///
/// Kernel: init_big_cores(), arch/powerpc/kernel/smp.c, v6.12.
pub(crate) fn split_big_cores(cpus: &mut [Cpu], l1: &[Option<u16>]) {
    let mut weights: BTreeMap<u16, usize> = BTreeMap::new();
    for cache in l1.iter().flatten() {
        *weights.entry(*cache).or_default() += 1;
    }
    let mut ids = Ids::new();
    for (cpu, cache) in cpus.iter_mut().zip(l1) {
        let half = cache.filter(|cache| weights[cache] > 1);
        cpu.core = ids.id((cpu.core, half));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NodeId, Topology};

    /// CPUs of (core, cluster, LLC, node), before; then the groups of each level after.
    #[track_caller]
    fn check(before: &[(u16, u16, u16, u16)], after: &[(u16, u16, u16)]) {
        let cpu = |&(core, cluster, llc, node): &(u16, u16, u16, u16)| Cpu {
            package: 0,
            die: 0,
            cluster,
            llc,
            core,
            thread: 0,
            node: NodeId(node),
            capacity: 1024,
            online: true,
        };
        let mut cpus: Vec<Cpu> = before.iter().map(cpu).collect();
        reconcile(&mut cpus);
        let (mut cores, mut clusters, mut llcs) = (Ids::new(), Ids::new(), Ids::new());
        let found: Vec<_> =
            cpus.iter().map(|c| (cores.id(c.core), clusters.id(c.cluster), llcs.id(c.llc))).collect();
        assert_eq!(found, after);
    }

    #[test]
    fn an_llc_is_cut_by_node() {
        check(&[(0, 0, 7, 0), (1, 1, 7, 0), (2, 2, 7, 1)], &[(0, 0, 0), (1, 1, 0), (2, 2, 1)]);
    }

    #[test]
    fn llcs_that_share_a_core_become_one() {
        check(&[(0, 0, 1, 0), (0, 0, 2, 0), (3, 3, 2, 0)], &[(0, 0, 0), (0, 0, 0), (1, 1, 0)]);
    }

    #[test]
    fn a_cluster_that_does_not_nest_is_dropped() {
        // beyond the LLC
        check(
            &[(0, 9, 0, 0), (1, 9, 1, 0), (2, 8, 1, 0), (3, 8, 1, 0)],
            &[(0, 0, 0), (1, 1, 1), (2, 2, 1), (3, 2, 1)],
        );
        // less than the core
        check(&[(0, 0, 0, 0), (0, 1, 0, 0)], &[(0, 0, 0), (0, 0, 0)]);
    }

    #[test]
    fn a_core_is_split_by_first_level_caches_of_several_threads() {
        let split = |core: &[u16], l1: &[Option<u16>]| {
            let mut cpus: Vec<Cpu> = Topology::regular(&core.len().to_string())
                .unwrap()
                .cpus()
                .zip(core)
                .map(|((_, cpu), &core)| Cpu { core, ..*cpu })
                .collect();
            split_big_cores(&mut cpus, l1);
            cpus.iter().map(|c| c.core).collect::<Vec<_>>()
        };
        assert_eq!(split(&[0, 0, 0, 0], &[Some(1), Some(2), Some(1), Some(2)]), [0, 1, 0, 1]);
        assert_eq!(split(&[0, 0, 1, 1], &[Some(0), Some(1), Some(2), Some(3)]), [0, 0, 1, 1]);
        assert_eq!(split(&[0, 0], &[None, None]), [0, 0]);
    }
}
