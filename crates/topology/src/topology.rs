//! The machine as the scheduler's domain builder needs it.

use crate::validate;
use crate::{Architecture, CpuId, CpuMask, NodeId, PerCpu, TopologyError};

/// The kernel's reclaim distance unless the architecture sets another.
///
/// Kernel: RECLAIM_DISTANCE, include/linux/topology.h.
const RECLAIM_DISTANCE: u32 = 30;

/// The position of one CPU.
///
/// Ids show which CPUs belong together, over the whole machine and not only within the parent. [`Topology::new`]
/// accepts any ids and renumbers them in the order of their first CPUs, so that two descriptions of one machine are
/// equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Socket.
    pub package: u16,
    /// Die inside the machine.
    pub die: u16,
    /// Group of cores that share a mid-level cache; equals `core` if there is none.
    pub cluster: u16,
    /// CPUs sharing the last-level cache.
    pub llc: u16,
    /// Physical core; if the scheduler treats a core as two, as on POWER9, its half.
    pub core: u16,
    /// Position among the threads of the core, from 0, in the order of CPU numbers.
    pub thread: u8,
    /// NUMA node.
    pub node: NodeId,
    /// Original capacity, 1..=1024; the largest CPU has 1024.
    pub capacity: u16,
    /// Whether the CPU takes part in scheduling at the start.
    pub online: bool,
}

/// Sizes in bytes of the caches a CPU uses, if known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheSizes {
    /// The second-level cache, shared by the core or its cluster.
    pub l2: Option<u64>,
    /// The last-level cache.
    pub llc: Option<u64>,
}

/// CPUs, their places and the distances between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Name of the machine.
    pub name: String,
    /// What a reader changed in the description, in sentences for the user.
    pub notes: Vec<String>,
    /// The architecture whose kernel rules build the domains.
    architecture: Architecture,
    /// Invariant: 1 to 4096 CPUs; ids dense, in the order of their first CPUs; see `validate.rs`.
    cpus: PerCpu<Cpu>,
    /// Invariant: square, one row per node, 10 on the diagonal.
    distances: Vec<Vec<u32>>,
    /// Beyond this distance the kernel does not spread new tasks or pull woken ones.
    reclaim_distance: u32,
    /// Invariant: one size per LLC.
    cache_sizes: PerCpu<CacheSizes>,
    /// Computed from `cpus`, each indexed by the id it is named after.
    cores: Vec<CpuMask>,
    clusters: Vec<CpuMask>,
    llcs: Vec<CpuMask>,
    dies: Vec<CpuMask>,
    packages: Vec<CpuMask>,
    nodes: Vec<CpuMask>,
    /// Sets of packages that s390 calls books and drawers, from the inner to the outer; empty elsewhere.
    books: Vec<CpuMask>,
    drawers: Vec<CpuMask>,
    online: CpuMask,
    isolated: CpuMask,
}

impl Topology {
    /// Puts a machine together; ids and thread numbers are made canonical.
    ///
    /// # Errors
    /// The machine is impossible; the error names the CPUs.
    pub fn new(name: &str, cpus: Vec<Cpu>, distances: Vec<Vec<u32>>) -> Result<Topology, TopologyError> {
        Topology::assemble(name, cpus, distances).map_err(|error| error.in_place(name))
    }

    fn assemble(name: &str, mut cpus: Vec<Cpu>, distances: Vec<Vec<u32>>) -> Result<Topology, TopologyError> {
        let nr_cpus = cpus.len();
        validate::check_size(nr_cpus)?;
        validate::check_distances(&distances)?;
        let cores = renumber(&mut cpus, |c| &mut c.core);
        let clusters = renumber(&mut cpus, |c| &mut c.cluster);
        let llcs = renumber(&mut cpus, |c| &mut c.llc);
        let dies = renumber(&mut cpus, |c| &mut c.die);
        let packages = renumber(&mut cpus, |c| &mut c.package);
        for core in &cores {
            for (thread, cpu) in core.iter().enumerate() {
                cpus[cpu.index()].thread = thread.min(u8::MAX as usize) as u8;
            }
        }
        let cpus = PerCpu::from(cpus);
        validate::check_cpus(&cpus, distances.len())?;
        let mut nodes = vec![CpuMask::new(nr_cpus); distances.len()];
        let mut online = CpuMask::new(nr_cpus);
        for (id, cpu) in cpus.iter() {
            nodes[cpu.node.0 as usize].set(id);
            if cpu.online {
                online.set(id);
            }
        }
        Ok(Topology {
            name: name.to_string(),
            notes: Vec::new(),
            architecture: Architecture::guessed(&cores),
            cache_sizes: PerCpu::new(nr_cpus, |_| CacheSizes::default()),
            cpus,
            distances,
            reclaim_distance: RECLAIM_DISTANCE,
            cores,
            clusters,
            llcs,
            dies,
            packages,
            nodes,
            books: Vec::new(),
            drawers: Vec::new(),
            online,
            isolated: CpuMask::new(nr_cpus),
        })
    }

    /// The same machine, booted with `isolcpus=`: these CPUs are in no scheduling domain.
    ///
    /// # Errors
    /// No online CPU is left in the domains.
    pub fn with_isolated(mut self, isolated: CpuMask) -> Result<Topology, TopologyError> {
        self.isolated = isolated;
        if self.in_domains().is_empty() {
            let what = format!("CPUs {} are isolated, and no other is online", self.isolated);
            return Err(TopologyError::new(what, "leave one CPU to the scheduler").in_place(&self.name));
        }
        Ok(self)
    }

    /// The same machine with this architecture. Without it, cores of more than two threads make a POWER machine, and
    /// all others are x86.
    pub fn of_architecture(mut self, architecture: Architecture) -> Topology {
        self.architecture = architecture;
        self
    }

    /// The same machine with the books and drawers of s390; each contains whole packages, and each drawer whole books.
    ///
    /// # Errors
    /// A CPU is in none of them or in two, or a package or book is split.
    pub fn with_books(
        mut self,
        books: Vec<CpuMask>,
        drawers: Vec<CpuMask>,
    ) -> Result<Topology, TopologyError> {
        validate::check_outer("package", &self.packages, "book", &books)
            .and_then(|()| {
                let inner = if books.is_empty() { &self.packages } else { &books };
                validate::check_outer("book", inner, "drawer", &drawers)
            })
            .map_err(|error| error.in_place(&self.name))?;
        (self.books, self.drawers) = (books, drawers);
        Ok(self)
    }

    /// The same machine with the sizes of its caches.
    ///
    /// # Errors
    /// Two CPUs of one LLC have different sizes of it.
    pub fn with_cache_sizes(
        mut self,
        size: impl FnMut(CpuId) -> CacheSizes,
    ) -> Result<Topology, TopologyError> {
        self.cache_sizes = PerCpu::new(self.nr_cpus(), size);
        validate::check_cache_sizes(&self.cpus, &self.cache_sizes)
            .map_err(|error| error.in_place(&self.name))?;
        Ok(self)
    }

    /// The same machine with another reclaim distance than 30; AMD's since Zen have 32.
    pub fn with_reclaim_distance(mut self, distance: u32) -> Topology {
        self.reclaim_distance = distance;
        self
    }

    /// The same machine under another name.
    pub fn named(mut self, name: &str) -> Topology {
        self.name = name.to_string();
        self
    }

    /// How many CPUs there are, online or not.
    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// How many nodes there are, including those without a CPU.
    pub fn nr_nodes(&self) -> usize {
        self.distances.len()
    }

    /// The position of a CPU.
    pub fn cpu(&self, cpu: CpuId) -> &Cpu {
        &self.cpus[cpu]
    }

    /// Every CPU in order.
    pub fn cpus(&self) -> impl DoubleEndedIterator<Item = (CpuId, &Cpu)> + ExactSizeIterator {
        self.cpus.iter()
    }

    /// Distance between two nodes, 10 being local.
    pub fn distance(&self, a: NodeId, b: NodeId) -> u32 {
        self.distances[a.0 as usize][b.0 as usize]
    }

    /// The distance table, a row per node.
    pub fn distances(&self) -> &[Vec<u32>] {
        &self.distances
    }

    /// The distance beyond which a NUMA level does not spread new tasks or pull woken ones.
    ///
    /// Kernel: node_reclaim_distance, include/linux/topology.h; init_amd_zn(),
    /// arch/x86/kernel/cpu/amd.c.
    pub fn reclaim_distance(&self) -> u32 {
        self.reclaim_distance
    }

    /// Sizes of the caches a CPU uses.
    pub fn cache_sizes(&self, cpu: CpuId) -> CacheSizes {
        self.cache_sizes[cpu]
    }

    /// Whether some core has more than one thread.
    pub fn is_smt(&self) -> bool {
        self.cores.len() < self.nr_cpus()
    }

    /// The CPUs for which `same` holds, online or not.
    pub fn mask_where(&self, same: impl Fn(&Cpu) -> bool) -> CpuMask {
        CpuMask::of(self.nr_cpus(), self.cpus().filter(|(_, c)| same(c)).map(|(id, _)| id))
    }

    /// The CPUs that are online at the start.
    pub fn online(&self) -> &CpuMask {
        &self.online
    }

    /// The CPUs that are in no scheduling domain: a task runs there only if its mask requires it.
    ///
    /// Kernel: /sys/devices/system/cpu/isolated; housekeeping_isolcpus_setup(), kernel/sched/isolation.c, v6.12.
    pub fn isolated(&self) -> &CpuMask {
        &self.isolated
    }

    /// The CPUs that are in scheduling domains while online; tasks without another mask may use these.
    ///
    /// Kernel: housekeeping_cpumask(HK_TYPE_DOMAIN), kernel/sched/isolation.c, v6.12.
    pub fn housekeeping(&self) -> CpuMask {
        let mut cpus = CpuMask::all(self.nr_cpus());
        cpus.remove_all(&self.isolated);
        cpus
    }

    /// The CPUs that are online at the start and in scheduling domains.
    pub fn in_domains(&self) -> CpuMask {
        self.online.and(&self.housekeeping())
    }

    /// The threads of the core of `cpu`, online or not.
    pub fn core_mask(&self, cpu: CpuId) -> &CpuMask {
        &self.cores[self.cpus[cpu].core as usize]
    }

    /// The CPUs of the cluster of `cpu`, online or not.
    pub fn cluster_mask(&self, cpu: CpuId) -> &CpuMask {
        &self.clusters[self.cpus[cpu].cluster as usize]
    }

    /// The CPUs that share the last-level cache of `cpu`, online or not.
    pub fn llc_mask(&self, cpu: CpuId) -> &CpuMask {
        &self.llcs[self.cpus[cpu].llc as usize]
    }

    /// The CPUs of the die of `cpu`, online or not.
    pub fn die_mask(&self, cpu: CpuId) -> &CpuMask {
        &self.dies[self.cpus[cpu].die as usize]
    }

    /// The CPUs of the package of `cpu`, online or not.
    pub fn package_mask(&self, cpu: CpuId) -> &CpuMask {
        &self.packages[self.cpus[cpu].package as usize]
    }

    /// The CPUs of a node, online or not; empty for a node with memory only.
    pub fn node_mask(&self, node: NodeId) -> &CpuMask {
        &self.nodes[node.0 as usize]
    }

    /// Every core's CPUs, indexed by [`Cpu::core`].
    pub fn cores(&self) -> &[CpuMask] {
        &self.cores
    }

    /// Every cluster's CPUs, indexed by [`Cpu::cluster`]; cores if there are no clusters.
    pub fn clusters(&self) -> &[CpuMask] {
        &self.clusters
    }

    /// Every LLC's CPUs, indexed by [`Cpu::llc`].
    pub fn llcs(&self) -> &[CpuMask] {
        &self.llcs
    }

    /// Every die's CPUs, indexed by [`Cpu::die`].
    pub fn dies(&self) -> &[CpuMask] {
        &self.dies
    }

    /// Every package's CPUs, indexed by [`Cpu::package`].
    pub fn packages(&self) -> &[CpuMask] {
        &self.packages
    }

    /// The architecture whose kernel rules build the domains.
    pub fn architecture(&self) -> Architecture {
        self.architecture
    }

    /// Every book's CPUs (s390); empty if there are none.
    pub fn books(&self) -> &[CpuMask] {
        &self.books
    }

    /// Every drawer's CPUs (s390); empty if there are none.
    pub fn drawers(&self) -> &[CpuMask] {
        &self.drawers
    }

    /// Every node's CPUs, indexed by [`NodeId`].
    pub fn nodes(&self) -> &[CpuMask] {
        &self.nodes
    }
}

/// Renumbers one kind of id densely in the order of first CPUs; returns the CPUs of each id.
fn renumber(cpus: &mut [Cpu], id: impl Fn(&mut Cpu) -> &mut u16) -> Vec<CpuMask> {
    let nr_cpus = cpus.len();
    let mut new_of: Vec<Option<u16>> = vec![None; u16::MAX as usize + 1];
    let mut masks = Vec::new();
    for (cpu, place) in cpus.iter_mut().enumerate() {
        let id = id(place);
        let new = *new_of[*id as usize].get_or_insert_with(|| {
            masks.push(CpuMask::new(nr_cpus));
            (masks.len() - 1) as u16
        });
        *id = new;
        masks[new as usize].set(CpuId::from(cpu));
    }
    masks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lone(cpu: u16) -> Cpu {
        Cpu {
            package: 0,
            die: 0,
            cluster: cpu,
            llc: 0,
            core: cpu,
            thread: 0,
            node: NodeId(0),
            capacity: 1024,
            online: true,
        }
    }

    /// Four CPUs of one LLC, changed by `change`, and the expected error.
    #[track_caller]
    fn check_refused(change: impl Fn(&mut Vec<Cpu>, &mut Vec<Vec<u32>>), said: &str) {
        let mut cpus = (0..4).map(lone).collect();
        let mut distances = vec![vec![10]];
        change(&mut cpus, &mut distances);
        assert_eq!(Topology::new("m", cpus, distances).unwrap_err().to_string(), said);
    }

    #[test]
    fn ids_are_numbered_by_first_cpu_and_threads_by_cpu_number() {
        let mut cpus: Vec<Cpu> = (0..4).map(lone).collect();
        for (cpu, core) in [(0, 77), (1, 9), (2, 77), (3, 9)] {
            cpus[cpu].core = core;
            cpus[cpu].cluster = core;
            cpus[cpu].thread = 5;
        }
        let topology = Topology::new("m", cpus, vec![vec![10]]).unwrap();
        let places: Vec<_> = topology.cpus().map(|(_, c)| (c.core, c.cluster, c.thread)).collect();
        assert_eq!(places, [(0, 0, 0), (1, 1, 0), (0, 0, 1), (1, 1, 1)]);
        assert_eq!(topology.core_mask(CpuId(3)).to_string(), "1,3");
        assert_eq!(topology.cores().len(), 2);
        assert!(topology.is_smt());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check_refused(|cpus, _| cpus.clear(), "m: a machine of 0 CPUs; it may have 1 to 4096");
        check_refused(
            |cpus, _| *cpus = vec![lone(0); 4097],
            "m: a machine of 4097 CPUs; it may have 1 to 4096",
        );
        check_refused(
            |cpus, _| cpus[2].node = NodeId(1),
            "m: CPU 2 is on node 1, and the distance table ends at node 0; give the distances one row for each node",
        );
        check_refused(
            |cpus, _| cpus.iter_mut().for_each(|c| c.online = false),
            "m: no CPU is online; leave at least one online",
        );
        check_refused(|cpus, _| cpus[1].capacity = 0, "m: CPU 1 has capacity 0; a capacity is 1 to 1024");
        check_refused(
            |cpus, _| cpus.iter_mut().for_each(|c| c.capacity = 512),
            "m: no CPU has capacity 1024; the largest CPU has it, the others their share of it",
        );
        check_refused(
            |cpus, _| cpus[3].core = 2,
            "m: CPUs 2 and 3 share one core but not one cluster; each core lies within one cluster",
        );
        check_refused(
            |cpus, _| {
                cpus[3].core = 2;
                cpus[3].cluster = 2;
                cpus[3].llc = 1;
            },
            "m: CPUs 2 and 3 share one cluster but not one LLC; each cluster lies within one LLC",
        );
        check_refused(
            |cpus, distances| {
                cpus[3].node = NodeId(1);
                *distances = vec![vec![10, 20], vec![20, 10]];
            },
            "m: CPUs 0 and 3 share one LLC but not one node; each LLC lies within one node",
        );
        check_refused(
            |cpus, _| cpus[3].package = 1,
            "m: CPUs 0 and 3 share one die but not one package; each die lies within one package",
        );
        check_refused(
            |cpus, _| *cpus = (0..9).map(|i| Cpu { core: 0, cluster: 0, ..lone(i) }).collect(),
            "m: the core of CPU 8 has more than 8 threads; see that CPUs of different cores have different core ids",
        );
        check_refused(
            |_, distances| distances.clear(),
            "m: the distance table has 0 rows; a machine has 1 to 1024 nodes",
        );
        check_refused(
            |_, distances| distances.push(vec![20, 10]),
            "m: the distance table has 2 rows, and row 0 has 1 numbers; give a number for each pair of nodes",
        );
        check_refused(
            |_, distances| distances[0][0] = 0,
            "m: node 0 is at distance 0 from itself; write 10, which is local",
        );
        check_refused(
            |_, distances| *distances = vec![vec![10, 255], vec![20, 10]],
            "m: nodes 0 and 1 are at distance 255; a distance is 10 (local) to 254",
        );
    }

    #[test]
    fn one_llc_has_one_size() {
        let topology = Topology::new("m", (0..4).map(lone).collect(), vec![vec![10]]).unwrap();
        let size = |cpu: CpuId| CacheSizes { l2: None, llc: Some(1 << cpu.0.min(1)) };
        let error = topology.with_cache_sizes(size).unwrap_err();
        assert_eq!(error.to_string(), "m: CPUs 0 and 1 share an LLC but not its size; give the LLC one size");
    }
}
