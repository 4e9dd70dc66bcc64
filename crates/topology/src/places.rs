//! What importers of several formats need to build a machine from groups.

use std::collections::{BTreeMap, BTreeSet};

use crate::architecture::normalize_capacities;
use crate::validate::CAPACITY_SCALE;
use crate::{Architecture, CacheSizes, Cpu, CpuId, CpuMask, NodeId, Topology, TopologyError};

/// Assigns an id to each key, the same id for the same key.
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

/// Default distances of a machine: 10 locally, and `remote` between any two nodes.
pub(crate) fn default_distances(nr_nodes: usize, remote: u32) -> Vec<Vec<u32>> {
    let distance = |a, b| if a == b { 10 } else { remote };
    (0..nr_nodes).map(|a| (0..nr_nodes).map(|b| distance(a, b)).collect()).collect()
}

/// The groups of one CPU, as ids; the values do not matter as long as the CPUs of a group have the same one.
#[derive(Clone, Default)]
pub(crate) struct Place {
    pub(crate) package: Option<u32>,
    /// s390: a set of packages.
    pub(crate) book: Option<u32>,
    /// s390: a set of books.
    pub(crate) drawer: Option<u32>,
    pub(crate) die: Option<u32>,
    pub(crate) cluster: Option<u32>,
    pub(crate) core: Option<u32>,
    /// First-level data cache.
    pub(crate) l1: Option<u32>,
    /// Second-level cache, which is the cluster if no cluster is given.
    pub(crate) l2: Option<u32>,
    /// Highest unified cache.
    pub(crate) llc: Option<u32>,
    pub(crate) node: Option<NodeId>,
    pub(crate) sizes: CacheSizes,
    pub(crate) capacity: Option<u16>,
    pub(crate) online: bool,
}

/// The source of an id: a group of its own kind, or the substitute for a missing one.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Group(u32),
    Core(u32),
    Cache(u32),
    Package(u16),
    Cpu(usize),
    Machine,
}

/// Builds a machine from the groups of its CPUs.
///
/// A missing die is the package, a missing cluster the L2 or else the core, a missing LLC the package. An offline CPU
/// without any groups is a core and an LLC of its own, in the package and on the node of the nearest lower CPU, or of
/// the nearest higher one if there is none. Without an architecture the machine counts as x86, or as POWER because of
/// its cores.
pub(crate) fn build(
    name: &str,
    places: &[Place],
    distances: Vec<Vec<u32>>,
    architecture: Option<Architecture>,
) -> Result<Topology, TopologyError> {
    let is_known = |place: &Place| place.online || (place.core.is_some() && place.node.is_some());
    let mut neighbour = places.iter().find(|place| is_known(place)).cloned().unwrap_or_default();
    let (mut packages, mut dies, mut cores) = (Ids::new(), Ids::new(), Ids::new());
    let (mut clusters, mut llcs) = (Ids::new(), Ids::new());
    let mut cpus = Vec::with_capacity(places.len());
    for (i, place) in places.iter().enumerate() {
        if place.online && place.node.is_none() {
            let what = format!("CPU {i} is online and on no node");
            return Err(TopologyError::new(what, "say the node of every CPU, or of none").in_place(name));
        }
        let known = is_known(place);
        if known {
            neighbour.clone_from(place);
        }
        let package = packages.id(neighbour.package.map_or(Key::Machine, Key::Group));
        let core = || place.core.filter(|_| known).map_or(Key::Cpu(i), Key::Core);
        // On arm64 and riscv the firmware defines clusters, whatever the caches are.
        let l2 = place.l2.filter(|_| !architecture.is_some_and(Architecture::has_arch_topology));
        let cluster = place.cluster.map(Key::Group).or(l2.map(Key::Cache)).filter(|_| known);
        cpus.push(Cpu {
            package,
            die: dies.id(neighbour.die.map_or(Key::Package(package), Key::Group)),
            cluster: clusters.id(cluster.unwrap_or_else(core)),
            llc: llcs.id(match place.llc {
                _ if !known => Key::Cpu(i),
                Some(llc) => Key::Cache(llc),
                None => Key::Package(package),
            }),
            core: cores.id(core()),
            thread: 0,
            node: neighbour.node.unwrap_or_default(),
            capacity: place.capacity.unwrap_or(CAPACITY_SCALE),
            online: place.online,
        });
    }
    if architecture.is_none_or(|known| known == Architecture::Power) {
        let l1: Vec<Option<u32>> = places.iter().map(|place| place.l1).collect();
        split_big_cores(&mut cpus, &l1);
    }
    match architecture {
        Some(known) if known.has_arch_topology() => group_as_arch_topology(&mut cpus),
        Some(Architecture::S390) => cpus.iter_mut().for_each(|cpu| {
            // Kernel: s390_topology[], arch/s390/kernel/topology.c, v6.12: MC is the socket, and there are no clusters.
            (cpu.llc, cpu.cluster) = (cpu.package, cpu.core);
        }),
        _ => {}
    }
    reconcile(&mut cpus);
    let scaled = normalize_capacities(&mut cpus);
    let sizes = sizes_by_llc(&cpus, places);
    let mut topology = Topology::new(name, cpus, distances)?.with_cache_sizes(|cpu| sizes[cpu.index()])?;
    if let Some(architecture) = architecture {
        topology = topology.of_architecture(architecture);
    }
    if let Some(largest) = scaled {
        topology.notes.push(format!(
            "{name}: the largest capacity is {largest}; all are scaled so that it is {CAPACITY_SCALE}"
        ));
    }
    topology.with_books(masks_of(places, |place| place.book), masks_of(places, |place| place.drawer))
}

/// Sizes of caches of each CPU. If the CPUs of one LLC have caches of several sizes, the LLC has no size.
fn sizes_by_llc(cpus: &[Cpu], places: &[Place]) -> Vec<CacheSizes> {
    let mut of: BTreeMap<u16, Option<u64>> = BTreeMap::new();
    for (cpu, place) in cpus.iter().zip(places) {
        let size = of.entry(cpu.llc).or_insert(place.sizes.llc);
        if *size != place.sizes.llc {
            *size = None;
        }
    }
    cpus.iter().zip(places).map(|(cpu, place)| CacheSizes { llc: of[&cpu.llc], ..place.sizes }).collect()
}

/// The CPUs of each group, in the order of their first CPUs; empty if some online CPU is in no group.
fn masks_of(places: &[Place], group: impl Fn(&Place) -> Option<u32>) -> Vec<CpuMask> {
    let mut masks: Vec<(u32, CpuMask)> = Vec::new();
    for (cpu, place) in places.iter().enumerate() {
        let Some(id) = group(place) else {
            if place.online {
                return Vec::new();
            }
            continue;
        };
        let at = masks.iter().position(|(other, _)| *other == id).unwrap_or_else(|| {
            masks.push((id, CpuMask::new(places.len())));
            masks.len() - 1
        });
        masks[at].1.set(CpuId::from(cpu));
    }
    masks.into_iter().map(|(_, mask)| mask).collect()
}

/// Groups CPUs as arm64 and riscv do. The group that shares the last cache, for the scheduler, is the smallest of node,
/// package and cache that nests: a cache that spans packages is ignored, and the package is used. If a cluster is
/// larger than that group, the cluster takes its place; if it is equal, there are no clusters.
///
/// Up to v5.18 a cluster equal to the last cache was kept, and the domain of the cache was dropped instead.
///
/// Kernel: cpu_coregroup_mask() and cpu_clustergroup_mask(), drivers/base/arch_topology.c, v6.12.
fn group_as_arch_topology(cpus: &mut [Cpu]) {
    let spans = |id: fn(&Cpu) -> u16| -> BTreeMap<u16, Vec<usize>> {
        let mut spans: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (cpu, place) in cpus.iter().enumerate() {
            spans.entry(id(place)).or_default().push(cpu);
        }
        spans
    };
    let (nodes, packages) = (spans(|cpu| cpu.node.0), spans(|cpu| cpu.package));
    let (caches, clusters) = (spans(|cpu| cpu.llc), spans(|cpu| cpu.cluster));
    // Both are in ascending order.
    let within = |inner: &[usize], outer: &[usize]| inner.iter().all(|cpu| outer.binary_search(cpu).is_ok());
    let (mut groups, mut clusters_left) = (Ids::new(), Ids::new());
    for cpu in cpus.iter_mut() {
        let mut group = &nodes[&cpu.node.0];
        for smaller in [&packages[&cpu.package], &caches[&cpu.llc]] {
            if within(smaller, group) {
                group = smaller;
            }
        }
        let cluster = &clusters[&cpu.cluster];
        let spans_all = within(group, cluster);
        if spans_all {
            group = cluster;
        }
        cpu.cluster = clusters_left.id((spans_all, if spans_all { cpu.core } else { cpu.cluster }));
        cpu.llc = groups.id(group.clone());
    }
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
fn split_big_cores(cpus: &mut [Cpu], l1: &[Option<u32>]) {
    let mut weights: BTreeMap<u32, usize> = BTreeMap::new();
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
        let split = |core: &[u16], l1: &[Option<u32>]| {
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
