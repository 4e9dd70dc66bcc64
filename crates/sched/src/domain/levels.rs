//! Which topology levels of a machine become scheduling domains, and the CPUs of each.
//!
//! The list is bottom up: threads, clusters, the last-level cache, the node, then one level per NUMA
//! distance. Three architectures differ from the plain list:
//!
//! - x86: a package split into several nodes has no PKG level; the NUMA levels span it.
//! - POWER calls the cache's level CACHE and, if packages have several dies, has a level MC for them, which
//!   shares nothing. So the last-level cache of POWER spans 4 or 8 CPUs.
//! - s390 has levels for books and drawers below PKG, and no clusters.
//!
//! Kernel: sched_init_numa(), kernel/sched/topology.c; build_sched_topology() of
//! arch/x86/kernel/smpboot.c and arch/powerpc/kernel/smp.c; s390_topology[],
//! arch/s390/kernel/topology.c, v6.12.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use schedlab_topology::{Architecture, CpuId, CpuMask, NodeId, PerCpu, Topology};

use super::{DomainLevel, SdFlags};
use crate::{Feature, Kernel, LevelNames};

/// One level for all CPUs.
pub(super) struct Level {
    pub(super) level: DomainLevel,
    /// Name as the kernel prints it.
    pub(super) name: &'static str,
    /// What the hardware shares at this level.
    pub(super) flags: SdFlags,
    /// NUMA: the nodes spanned are farther apart than the machine's reclaim distance.
    pub(super) beyond_reclaim: bool,
    /// Distinct masks of the level.
    pub(super) masks: Vec<Arc<CpuMask>>,
    /// Mask of each CPU.
    pub(super) mask_of: PerCpu<u32>,
}

impl Level {
    /// The CPUs that share this level with `cpu`.
    pub(super) fn mask(&self, cpu: CpuId) -> &Arc<CpuMask> {
        &self.masks[self.mask_of[cpu] as usize]
    }
}

/// The levels of a machine whose CPUs `active` take part, lowest first.
pub(super) fn levels(topology: &Topology, kernel: &Kernel, active: &CpuMask) -> Vec<Level> {
    let mut rungs = Rungs { topology, kernel, active, list: Vec::new() };
    let architecture = topology.architecture();
    let power = architecture == Architecture::Power;
    if kernel.has(Feature::SmtLevelAlways) || topology.is_smt() {
        rungs.push(DomainLevel::Smt, SdFlags::SHARE_CPUCAPACITY.with(SdFlags::SHARE_LLC), |c| {
            topology.core_mask(c)
        });
    }
    if kernel.has(Feature::ClsLevel) && !power && architecture != Architecture::S390 {
        let cluster = if kernel.has(Feature::ClusterFlag) { SdFlags::CLUSTER } else { SdFlags::default() };
        rungs.push(DomainLevel::Cls, SdFlags::SHARE_LLC.with(cluster), |c| topology.cluster_mask(c));
    }
    if power {
        rungs.push(DomainLevel::Cache, SdFlags::SHARE_LLC, |c| topology.llc_mask(c));
        if topology.dies().len() > topology.packages().len() {
            rungs.push(DomainLevel::Mc, SdFlags::default(), |c| topology.die_mask(c));
        }
    } else {
        rungs.push(DomainLevel::Mc, SdFlags::SHARE_LLC, |c| topology.llc_mask(c));
    }
    for (level, groups) in [(DomainLevel::Book, topology.books()), (DomainLevel::Drawer, topology.drawers())]
    {
        if !groups.is_empty() {
            rungs.push(level, SdFlags::default(), |c| {
                groups.iter().find(|group| group.contains(c)).expect("each CPU is in a book and in a drawer")
            });
        }
    }
    if architecture != Architecture::X86 || !package_is_split(topology) {
        let node = |c: CpuId| topology.node_mask(topology.cpu(c).node);
        rungs.push(DomainLevel::Pkg, SdFlags::default(), node);
    }
    rungs.push_numa();
    rungs.list
}

/// Whether some package has CPUs of several nodes.
fn package_is_split(topology: &Topology) -> bool {
    let mut node_of: Vec<Option<NodeId>> = vec![None; topology.packages().len()];
    topology.cpus().any(|(_, c)| *node_of[c.package as usize].get_or_insert(c.node) != c.node)
}

struct Rungs<'a> {
    topology: &'a Topology,
    kernel: &'a Kernel,
    active: &'a CpuMask,
    list: Vec<Level>,
}

impl<'a> Rungs<'a> {
    fn push(&mut self, level: DomainLevel, flags: SdFlags, mask: impl Fn(CpuId) -> &'a CpuMask) {
        let mut interned = Interned::default();
        let mut seen: BTreeMap<*const CpuMask, u32> = BTreeMap::new();
        let mask_of = PerCpu::new(self.topology.nr_cpus(), |cpu| {
            let whole = mask(cpu);
            *seen.entry(whole).or_insert_with(|| interned.id(whole.and(self.active)))
        });
        self.add(level, flags, false, interned, mask_of);
    }

    fn add(
        &mut self,
        level: DomainLevel,
        flags: SdFlags,
        beyond_reclaim: bool,
        masks: Interned,
        mask_of: PerCpu<u32>,
    ) {
        let name = name(level, self.kernel.rules.level_names);
        self.list.push(Level { level, name, flags, beyond_reclaim, masks: masks.masks, mask_of });
    }

    /// NODE, and one level per distance between nodes.
    ///
    /// Kernel: sched_init_numa(), kernel/sched/topology.c, v6.12.
    fn push_numa(&mut self) {
        let topology = self.topology;
        let nodes: Vec<NodeId> = (0..topology.nr_nodes() as u16)
            .map(NodeId)
            .filter(|&n| topology.node_mask(n).intersects(self.active))
            .collect();
        let from = if self.kernel.has(Feature::NumaDistancesAll) { &nodes[..] } else { &nodes[..1] };
        let distances: BTreeSet<u32> =
            from.iter().flat_map(|&a| nodes.iter().map(move |&b| topology.distance(a, b))).collect();
        for (i, &distance) in distances.iter().enumerate() {
            let (level, flags) = if i == 0 {
                (DomainLevel::Node, SdFlags::default())
            } else {
                (DomainLevel::Numa, SdFlags::NUMA)
            };
            if level == DomainLevel::Node && !self.kernel.has(Feature::NodeLevel) {
                continue;
            }
            let mut interned = Interned::default();
            let mut mask_of_node = vec![0; topology.nr_nodes()];
            for &node in &nodes {
                let mut mask = CpuMask::new(topology.nr_cpus());
                for &near in nodes.iter().filter(|&&n| topology.distance(node, n) <= distance) {
                    mask.or_with(topology.node_mask(near));
                }
                mask.and_with(self.active);
                mask_of_node[node.0 as usize] = interned.id(mask);
            }
            let mask_of = PerCpu::new(topology.nr_cpus(), |c| mask_of_node[topology.cpu(c).node.0 as usize]);
            self.add(level, flags, distance > topology.reclaim_distance(), interned, mask_of);
        }
    }
}

/// Masks without duplicates.
#[derive(Default)]
struct Interned {
    masks: Vec<Arc<CpuMask>>,
    ids: BTreeMap<Arc<CpuMask>, u32>,
}

impl Interned {
    fn id(&mut self, mask: CpuMask) -> u32 {
        let mask = Arc::new(mask);
        let masks = &mut self.masks;
        *self.ids.entry(mask.clone()).or_insert_with(|| {
            masks.push(mask);
            masks.len() as u32 - 1
        })
    }
}

fn name(level: DomainLevel, names: LevelNames) -> &'static str {
    match (level, names) {
        (DomainLevel::Smt, _) => "SMT",
        (DomainLevel::Cls, _) => "CLS",
        (DomainLevel::Cache, _) => "CACHE",
        (DomainLevel::Mc, _) => "MC",
        (DomainLevel::Book, _) => "BOOK",
        (DomainLevel::Drawer, _) => "DRAWER",
        (DomainLevel::Pkg, LevelNames::Die) => "DIE",
        (DomainLevel::Pkg, LevelNames::Pkg) => "PKG",
        (DomainLevel::Node, _) => "NODE",
        (DomainLevel::Numa, _) => "NUMA",
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use expect_test::expect;

    use super::levels;
    use crate::Kernel;
    use crate::drawing::{by_kernel, machine};

    #[test]
    fn cores_of_one_thread_have_no_level_of_threads_since_v6_17() {
        let topology = machine("1x2x2");
        let names = |kernel: &str| {
            let kernel = Kernel::parse(kernel).unwrap();
            let levels = levels(&topology, &kernel, topology.online());
            levels.iter().map(|level| level.name).collect::<Vec<_>>().join(" ")
        };
        expect![[r#"
            v4.13: SMT MC DIE
            v5.5: SMT MC DIE NODE
            v5.18..v6.3: SMT CLS MC DIE NODE
            v6.10..v6.12: SMT CLS MC PKG NODE
            v7.2..v7.3: CLS MC PKG NODE"#]]
        .assert_eq(&by_kernel("", names));
    }
}
