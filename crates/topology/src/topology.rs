//! The machine as the scheduler's domain builder needs it.

use crate::{CpuId, CpuMask, NodeId, PerCpu};

/// Where one CPU sits. Ids are dense over the machine, not only inside the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Socket.
    pub package: u16,
    /// Die inside the machine.
    pub die: u16,
    /// Group of cores that share a mid-level cache; equals `core` where there is none.
    pub cluster: u16,
    /// CPUs sharing the last-level cache.
    pub llc: u16,
    /// Physical core.
    pub core: u16,
    /// Place among the threads of the core, from 0.
    pub thread: u8,
    /// NUMA node.
    pub node: NodeId,
    /// Original capacity, 1..=1024; the largest CPU has 1024.
    pub capacity: u16,
    /// Whether the CPU takes part in scheduling at the start.
    pub online: bool,
}

/// CPUs, their places and the distances between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// What people call the machine.
    pub name: String,
    /// Invariant: 1 to 4096 CPUs; ids dense.
    cpus: PerCpu<Cpu>,
    /// Invariant: square, one row per node, 10 on the diagonal.
    distances: Vec<Vec<u32>>,
}

impl Topology {
    /// Puts a machine together.
    ///
    /// # Errors
    /// A sentence saying which invariant does not hold.
    pub fn new(name: &str, cpus: Vec<Cpu>, distances: Vec<Vec<u32>>) -> Result<Topology, String> {
        if cpus.is_empty() || cpus.len() > 4096 {
            return Err(format!("a machine has 1 to 4096 CPUs, not {}", cpus.len()));
        }
        let nr_nodes = distances.len();
        if let Some(row) = distances.iter().find(|row| row.len() != nr_nodes) {
            return Err(format!("the distance table has {nr_nodes} rows but one of {} columns", row.len()));
        }
        if let Some((i, cpu)) = cpus.iter().enumerate().find(|(_, c)| c.node.0 as usize >= nr_nodes) {
            return Err(format!("CPU {i} is on node {} but there are {nr_nodes} nodes", cpu.node));
        }
        if !cpus.iter().any(|c| c.online) {
            return Err("no CPU is online".to_string());
        }
        Ok(Topology { name: name.to_string(), cpus: PerCpu::from(cpus), distances })
    }

    /// How many CPUs there are, online or not.
    pub fn nr_cpus(&self) -> usize {
        self.cpus.len()
    }

    /// How many nodes there are.
    pub fn nr_nodes(&self) -> usize {
        self.distances.len()
    }

    /// Where a CPU sits.
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

    /// The CPUs for which `same` holds, online or not.
    pub fn mask_where(&self, same: impl Fn(&Cpu) -> bool) -> CpuMask {
        CpuMask::of(self.nr_cpus(), self.cpus().filter(|(_, c)| same(c)).map(|(id, _)| id))
    }

    /// The CPUs that are online at the start.
    pub fn online(&self) -> CpuMask {
        self.mask_where(|c| c.online)
    }

    /// The threads of the core of `cpu`.
    pub fn core_mask(&self, cpu: CpuId) -> CpuMask {
        let core = self.cpus[cpu].core;
        self.mask_where(|c| c.core == core)
    }

    /// The CPUs of the cluster of `cpu`.
    pub fn cluster_mask(&self, cpu: CpuId) -> CpuMask {
        let cluster = self.cpus[cpu].cluster;
        self.mask_where(|c| c.cluster == cluster)
    }

    /// The CPUs that share the last-level cache of `cpu`.
    pub fn llc_mask(&self, cpu: CpuId) -> CpuMask {
        let llc = self.cpus[cpu].llc;
        self.mask_where(|c| c.llc == llc)
    }

    /// The CPUs of a node.
    pub fn node_mask(&self, node: NodeId) -> CpuMask {
        self.mask_where(|c| c.node == node)
    }
}
