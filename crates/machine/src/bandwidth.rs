//! Memory bandwidth, shared max-min fairly over all resources on its way (equation E1).
//!
//! Input: capacities of cores, LLCs, nodes' memory and links between nodes; for each task that streams (a *flow*) where
//! it runs and how its traffic is divided over the nodes, depending on where its pages were first touched.
//!
//! Output: the rate of each flow. A flow with share f(m) of its traffic on node m takes, per byte, f(m) of node m and
//! of the link to m, one of its LLC, and `sum f(m) lat(m)/lat(local)` of its core: a core has a fixed number of misses
//! in flight, so its bandwidth falls with distance. All rates rise together; when a resource is full, the flows that
//! use it keep their rates and the others rise further.
//!
//! Left out: latency grows before a limit is reached, and a node's bandwidth depends on the mix of reads and
//! writes.

use schedlab_topology::{CpuId, NodeId, Topology};

use crate::cost::constants;
use crate::fixed::ONE;
use crate::{CachePrices, Cost};

constants! {
    /// Bandwidths.
    Bandwidth = "bandwidth" {
        /// Bandwidth of one core to local memory.
        core_mbps: MBps = 14_000, 8_000..=35_000, "published: 9.6 to 30 GB/s";
        /// Bandwidth of one last-level cache to memory; 0 for no limit of its own.
        llc_mbps: MBps = 0, 0..=100_000, "link between compute and I/O die on Zen: 40 to 50 GB/s";
        /// Bandwidth of the memory of one node.
        node_mbps: MBps = 120_000, 60_000..=300_000, "published: 95 to 250 GB/s";
        /// Bandwidth from one node to another, in each direction.
        link_mbps: MBps = 50_000, 25_000..=120_000, "published: 50 to 56 GB/s";
        /// How fast NUMA balancing scans a process's memory, from a second after its first page on;
        /// pages on another node than the task that uses them are migrated. 0 turns it off.
        page_scan_mbps: MBps = 256, 0..=2_560, "kernel defaults: 256 MB each second, the scan period of new threads; each 100 ms where task_scan_min() is reached";
        /// Whether a store fetches the line first, so that each byte written moves two bytes, 1 or 0.
        write_allocate: Count = 1, 0..=1, "seed rows fit 24 bytes for copies of 16";
    }
}

/// Bytes per ns in the fixed point of [`ONE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteRate(pub u64);

impl ByteRate {
    /// As 10^6 bytes per second.
    pub fn of_mbps(mbps: u64) -> ByteRate {
        ByteRate(mbps * ONE / 1000)
    }

    /// In 10^6 bytes per second, rounded down.
    pub fn as_mbps(self) -> u64 {
        self.0 * 1000 / ONE
    }
}

/// A task that streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Where it runs.
    pub cpu: CpuId,
    /// The share of its traffic with each node, of 65536; the shares add up to 65536.
    pub shares: Vec<(NodeId, u64)>,
}

impl Bandwidth {
    /// The rate of each flow, in their order.
    pub fn share_out(&self, topology: &Topology, caches: &CachePrices, flows: &[Flow]) -> Vec<ByteRate> {
        let nodes = topology.nr_nodes();
        let core_at = 0;
        let llc_at = core_at + topology.cores().len();
        let node_at = llc_at + topology.llcs().len();
        let link_at = node_at + nodes;
        let rate = |cost: &Cost| ByteRate::of_mbps(cost.get()).0;
        let mut capacity = vec![rate(&self.core_mbps); llc_at];
        let llc = if self.llc_mbps.get() == 0 { u64::MAX } else { rate(&self.llc_mbps) };
        capacity.resize(node_at, llc);
        capacity.resize(link_at, rate(&self.node_mbps));
        capacity.resize(link_at + nodes * nodes, rate(&self.link_mbps));
        let needs: Vec<Vec<Need>> = flows
            .iter()
            .map(|flow| {
                let cpu = topology.cpu(flow.cpu);
                let mut needs = vec![Need { of: llc_at + usize::from(cpu.llc), per_byte: ONE }];
                let mut core = 0;
                for &(node, share) in &flow.shares {
                    let to = usize::from(node.0);
                    core += share * latency(topology, caches, cpu.node, node) / caches.local_ns.get();
                    needs.push(Need { of: node_at + to, per_byte: share });
                    if node != cpu.node {
                        needs.push(Need {
                            of: link_at + usize::from(cpu.node.0) * nodes + to,
                            per_byte: share,
                        });
                    }
                }
                needs.push(Need { of: core_at + usize::from(cpu.core), per_byte: core });
                needs
            })
            .collect();
        max_min(&capacity, &needs).into_iter().map(ByteRate).collect()
    }
}

/// Latency of a node's memory from another, by distance between the two known values, ns.
pub fn latency(topology: &Topology, caches: &CachePrices, from: NodeId, to: NodeId) -> u64 {
    let (local, remote) = (caches.local_ns.get(), caches.remote_ns.get());
    let farthest = topology.distances().iter().flatten().copied().max().unwrap_or(10);
    if from == to || farthest <= 10 {
        return local;
    }
    let beyond = u64::from(topology.distance(from, to).saturating_sub(10));
    local + remote.saturating_sub(local) * beyond / u64::from(farthest - 10)
}

/// How much of a resource a flow uses for each unit of its own rate, of 65536.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    of: usize,
    per_byte: u64,
}

/// Max-min fair rates: all flows rise alike until their resources are full.
fn max_min(capacity: &[u64], needs: &[Vec<Need>]) -> Vec<u64> {
    let mut left = capacity.to_vec();
    let mut rates: Vec<Option<u64>> = vec![None; needs.len()];
    let mut load = vec![0u64; capacity.len()];
    while rates.contains(&None) {
        load.fill(0);
        for need in rising(&rates, needs).flat_map(|(_, needs)| needs) {
            load[need.of] += need.per_byte;
        }
        let level_of = |resource: usize| {
            (load[resource] > 0).then(|| {
                ((u128::from(left[resource]) << 16) / u128::from(load[resource])).min(u64::MAX.into()) as u64
            })
        };
        let Some(level) = (0..capacity.len()).filter_map(level_of).min() else {
            // Flows that need nothing.
            return rates.into_iter().map(|rate| rate.unwrap_or(u64::MAX)).collect();
        };
        let full: Vec<bool> = (0..capacity.len()).map(|r| level_of(r) == Some(level)).collect();
        let stopped: Vec<usize> = rising(&rates, needs)
            .filter(|(_, needs)| needs.iter().any(|need| need.per_byte > 0 && full[need.of]))
            .map(|(flow, _)| flow)
            .collect();
        for flow in stopped {
            rates[flow] = Some(level);
            for need in &needs[flow] {
                let used = ((u128::from(level) * u128::from(need.per_byte)) >> 16) as u64;
                left[need.of] = left[need.of].saturating_sub(used);
            }
        }
    }
    rates.into_iter().map(|rate| rate.expect("every flow has stopped")).collect()
}

/// The flows that have not stopped, with their needs.
fn rising<'a>(
    rates: &'a [Option<u64>],
    needs: &'a [Vec<Need>],
) -> impl Iterator<Item = (usize, &'a Vec<Need>)> {
    needs.iter().enumerate().filter(|(flow, _)| rates[*flow].is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs written as (resource, thousandths of a unit).
    fn check(capacity: &[u64], flows: &[&[(usize, u64)]], rates: &[u64]) {
        let needs: Vec<Vec<Need>> = flows
            .iter()
            .map(|f| f.iter().map(|&(of, t)| Need { of, per_byte: (t * ONE).div_ceil(1000) }).collect())
            .collect();
        assert_eq!(max_min(capacity, &needs), rates);
    }

    /// Three flows on one link of 90: a third each.
    #[test]
    fn equals_share_equally() {
        check(&[90], &[&[(0, 1000)], &[(0, 1000)], &[(0, 1000)]], &[30, 30, 30]);
    }

    /// Two links of 100 and 60. A uses the first, B both, C the second. The second is full at 30 each; A then
    /// rises to the rest of the first: 70.
    #[test]
    fn what_one_cannot_use_the_others_get() {
        check(&[100, 60], &[&[(0, 1000)], &[(0, 1000), (1, 1000)], &[(1, 1000)]], &[70, 30, 30]);
    }

    /// A flow that takes two units of a link of 90 per unit of rate, beside one that
    /// takes one: both at 30, using 60 and 30.
    #[test]
    fn rates_are_equal_not_what_they_use() {
        check(&[90], &[&[(0, 2000)], &[(0, 1000)]], &[30, 30]);
    }

    #[test]
    fn a_flow_that_needs_nothing_has_no_limit() {
        check(&[90], &[&[], &[(0, 1000)]], &[u64::MAX, 90]);
    }

    fn two_nodes() -> (Topology, Bandwidth, CachePrices) {
        let cpus = (0..8u16).map(|i| schedlab_topology::Cpu {
            package: i / 4,
            die: i / 4,
            cluster: i,
            llc: i / 2,
            core: i,
            thread: 0,
            node: NodeId(i / 4),
            capacity: 1024,
            online: true,
        });
        let topology = Topology::new("2x2x2", cpus.collect(), vec![vec![10, 20], vec![20, 10]]).unwrap();
        let mut bandwidth = Bandwidth::default();
        bandwidth.core_mbps.set(30_000);
        bandwidth.node_mbps.set(100_000);
        bandwidth.link_mbps.set(40_000);
        let mut caches = CachePrices::default();
        caches.local_ns.set(100);
        caches.remote_ns.set(200);
        (topology, bandwidth, caches)
    }

    fn check_machine(flows: &[(u16, &[(u16, u64)])], mbps: &[u64]) {
        let (topology, bandwidth, caches) = two_nodes();
        let flows: Vec<Flow> = flows
            .iter()
            .map(|&(cpu, shares)| Flow {
                cpu: CpuId(cpu),
                shares: shares.iter().map(|&(n, percent)| (NodeId(n), percent * ONE / 100)).collect(),
            })
            .collect();
        let rates: Vec<u64> = bandwidth
            .share_out(&topology, &caches, &flows)
            .iter()
            .map(|r| (r.as_mbps() + 5) / 10 * 10)
            .collect();
        assert_eq!(rates, mbps);
    }

    /// Cores of 30 GB/s, a node of 100: three cores run at their own limit, four share the node.
    #[test]
    fn a_node_is_shared_once_its_cores_want_more() {
        check_machine(&[(0, &[(0, 100)]), (1, &[(0, 100)]), (2, &[(0, 100)])], &[30_000; 3]);
        check_machine(
            &[(0, &[(0, 100)]), (1, &[(0, 100)]), (2, &[(0, 100)]), (3, &[(0, 100)])],
            &[25_000; 4],
        );
    }

    /// Twice the latency halves what a core can draw: 15 GB/s; four such flows want 60
    /// and the link gives 40.
    #[test]
    fn distance_halves_a_core_and_a_link_limits_many() {
        check_machine(&[(0, &[(1, 100)])], &[15_000]);
        check_machine(
            &[(0, &[(1, 100)]), (1, &[(1, 100)]), (2, &[(1, 100)]), (3, &[(1, 100)])],
            &[10_000; 4],
        );
    }

    /// Half local, half remote: 1.5 times the latency, 20 GB/s.
    #[test]
    fn spread_pages_cost_their_mean_latency() {
        check_machine(&[(0, &[(0, 50), (1, 50)])], &[20_000]);
    }

    /// Two tasks on one core (one CPU here) halve its bandwidth.
    #[test]
    fn a_core_is_shared_by_its_threads() {
        check_machine(&[(0, &[(0, 100)]), (0, &[(0, 100)])], &[15_000, 15_000]);
    }
}
