//! A cache line that many CPUs write: a queue (equation E8).
//!
//! A line is transferred to one CPU at a time, and a transfer takes as long as the distance from where the line is.
//! Writes are exclusive. The first reader of a node after a write fetches the line. The readers of its node that are
//! next in the queue get it with it, and later ones hit. But no reader overtakes an earlier write request of its node:
//! a caching agent serves the requests for one line in order. If the oldest request is not from the line's home node,
//! one from the home node overtakes it with probability beta: this makes one node suffer more than the other once the
//! line is never free.
//!
//! ```text
//!   node 0 (home)   r w w          server          node 1   w r w
//!                        \   one transfer at a time   /
//! ```
//!
//! Left out: the protocol's states beyond owner and sharers, and bandwidth.

use std::collections::VecDeque;

use schedlab_topology::{CpuId, NodeId, Topology};

use crate::cost::constants;

constants! {
    /// Time to move a cache line, and the order of requests.
    LinePrices = "cacheline" {
        /// The CPU has the line already.
        hit_ns: Ns = 20, 5..=30, "estimate";
        /// The node's cache has a copy, but the core's own cache does not.
        shared_ns: Ns = 20, 10..=90, "estimate";
        /// From the sibling thread.
        sibling_ns: Ns = 8, 6..=10, "core-to-core measurements: 7.5 to 9.8";
        /// From another core of the cluster, if several cores share a cache below the LLC.
        cluster_ns: Ns = 30, 15..=50, "estimate: between a sibling and another core; an L2 of four cores answers in 20 to 30 ns";
        /// From another core of the LLC.
        llc_ns: Ns = 50, 23..=80, "core-to-core measurements: 23 (Zen3) to 51 (Ice Lake)";
        /// From another LLC of the node.
        node_ns: Ns = 100, 80..=130, "core-to-core measurements: 107 (Zen3)";
        /// From another node, if the requester is on the line's home node.
        home_ns: Ns = 110, 90..=200, "core-to-core measurements: 108 to 197";
        /// From another node, if the requester is not on the line's home node.
        remote_ns: Ns = 130, 100..=250, "core-to-core measurements: 118 to 250";
        /// Lines of a run queue that an idle search reads: its current task, the number of queued tasks and their classes.
        look_lines: Count = 2, 1..=3, "struct rq of v5.5 to v6.12: curr and idle; nr_running and ttwu_pending beside the lock; cfs.h_nr_idle";
        /// Lines of a run queue that a balance pass reads.
        pass_lines: Count = 5, 4..=8, "struct rq of v6.1: the two of a search, counts and averages of its fair queue, its capacity, its domain";
        /// Lines of a run queue that enqueueing a task writes, including the lock.
        queue_lines: Count = 6, 5..=8, "struct rq of v6.1: the lock and counts, clocks, three of the fair queue, the list of its tasks";
        /// Lines of a task that a wake-up writes and that move to the CPU on which it runs.
        task_lines: Count = 3, 2..=6, "struct task_struct of v6.1: state and on_cpu, the entity, pi_lock and the allowed CPUs";
        /// How much longer a transfer takes if others wait for the line: conflicts are resolved at its home node.
        contended_permille: Permille = 1_000, 1_000..=4_000, "no source; the distance alone unless a machine file sets it";
        /// How often the home node is served before an older request.
        home_first_permille: Permille = 550, 0..=700, "no source; calibrated on the profile shares of the mail of 27 Mar 2023";
    }
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
struct Request {
    cpu: CpuId,
    write: bool,
    /// Order of arrival.
    number: u64,
}

/// A line of memory shared by CPUs.
#[derive(Clone, Debug)]
pub struct Line {
    home: NodeId,
    /// The CPU that last wrote it.
    owner: Option<CpuId>,
    /// Nodes that have read it since.
    sharers: Vec<bool>,
    /// One per node, oldest first.
    waiting: Vec<VecDeque<Request>>,
    /// Writes among them.
    writes_waiting: Vec<usize>,
    /// CPUs of the current transfer: the requester, and the node's readers that share it.
    served: Vec<CpuId>,
    arrivals: u64,
}

impl Line {
    /// A line in the memory of a node, in no cache.
    pub fn new(topology: &Topology, home: NodeId) -> Line {
        let nodes = topology.nr_nodes();
        Line {
            home,
            owner: None,
            sharers: vec![false; nodes],
            waiting: vec![VecDeque::new(); nodes],
            writes_waiting: vec![0; nodes],
            served: Vec::new(),
            arrivals: 0,
        }
    }

    /// A CPU wants the line. `Some` time if it has the line, `None` if it must wait until [`Line::finish`] returns it.
    pub fn request(
        &mut self,
        topology: &Topology,
        prices: &LinePrices,
        cpu: CpuId,
        write: bool,
    ) -> Option<u64> {
        let node = usize::from(topology.cpu(cpu).node.0);
        let queued = self.writes_waiting.iter().any(|&n| n > 0);
        let at_hand = if write {
            self.owner == Some(cpu) && self.sharers.iter().all(|s| !s) && !queued && self.served.is_empty()
        } else {
            (self.sharers[node] && self.writes_waiting[node] == 0) || (self.owner == Some(cpu) && !queued)
        };
        if at_hand {
            let own = self.owner == Some(cpu) && !self.sharers[node];
            return Some(if own { prices.hit_ns.get() } else { prices.shared_ns.get() });
        }
        self.arrivals += 1;
        self.writes_waiting[node] += usize::from(write);
        self.waiting[node].push_back(Request { cpu, write, number: self.arrivals });
        None
    }

    /// Starts the next transfer if none is going on: how long it takes. `coin` is a
    /// number below 1000.
    pub fn start(&mut self, topology: &Topology, prices: &LinePrices, coin: u64) -> Option<u64> {
        if !self.served.is_empty() {
            return None;
        }
        let oldest = (0..self.waiting.len())
            .filter_map(|node| self.waiting[node].front().map(|r| (r.number, node)))
            .min()?
            .1;
        let home = usize::from(self.home.0);
        let home_goes = !self.waiting[home].is_empty() && coin < prices.home_first_permille.get();
        let node = if home_goes { home } else { oldest };
        let request = self.waiting[node].pop_front().expect("this node waits");
        self.writes_waiting[node] -= usize::from(request.write);
        let time = self.distance(topology, prices, request.cpu);
        self.served.push(request.cpu);
        if request.write {
            self.owner = Some(request.cpu);
            self.sharers.fill(false);
        } else {
            self.sharers[node] = true;
            let queue = &mut self.waiting[node];
            let readers = queue.iter().take_while(|next| !next.write).count();
            self.served.extend(queue.drain(..readers).map(|next| next.cpu));
        }
        let conflicts = self.waiting.iter().any(|queue| !queue.is_empty());
        Some(if conflicts { time * prices.contended_permille.get() / 1000 } else { time })
    }

    /// The transfer is done; returns the CPUs that continue.
    pub fn finish(&mut self) -> impl Iterator<Item = CpuId> + '_ {
        self.served.drain(..)
    }

    fn distance(&self, topology: &Topology, prices: &LinePrices, to: CpuId) -> u64 {
        let place = topology.cpu(to);
        let across = if place.node == self.home { &prices.home_ns } else { &prices.remote_ns };
        let cost = match self.owner {
            None if place.node == self.home => &prices.node_ns,
            None => across,
            Some(owner) => {
                let from = topology.cpu(owner);
                if owner == to {
                    &prices.hit_ns
                } else if from.core == place.core {
                    &prices.sibling_ns
                } else if from.llc == place.llc {
                    &prices.llc_ns
                } else if from.node == place.node {
                    &prices.node_ns
                } else {
                    across
                }
            }
        };
        cost.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_topology::Cpu;

    /// Two nodes of one LLC with this many cores each.
    fn machine(cores: u16) -> Topology {
        let cpus = (0..2 * cores).map(|i| Cpu {
            package: i / cores,
            die: i / cores,
            cluster: i,
            llc: i / cores,
            core: i,
            thread: 0,
            node: NodeId(i / cores),
            capacity: 1024,
            online: true,
        });
        Topology::new("two", cpus.collect(), vec![vec![10, 21], vec![21, 10]]).unwrap()
    }

    #[test]
    fn a_transfer_takes_as_long_as_the_way() {
        let (topology, prices) = (machine(2), LinePrices::default());
        let mut line = Line::new(&topology, NodeId(0));
        for (cpu, write, time) in [
            (0, true, Some(100)), // from memory at home
            (1, true, Some(50)),  // same LLC
            (2, true, Some(130)), // away from home
            (2, true, None),      // has it
            (0, false, Some(110)),
            (1, false, None), // node 0 has a copy
            (3, false, Some(50)),
            (2, true, Some(20)), // copies elsewhere: must be taken back
        ] {
            let hit = line.request(&topology, &prices, CpuId(cpu), write);
            let took = line.start(&topology, &prices, 999);
            assert_eq!((hit.is_some(), took), (time.is_none(), time), "CPU {cpu} write {write}");
            line.finish().for_each(drop);
        }
    }

    #[test]
    fn readers_of_a_node_are_served_together_up_to_its_next_write() {
        let (topology, prices) = (machine(5), LinePrices::default());
        let mut line = Line::new(&topology, NodeId(0));
        let ask = |line: &mut Line, cpu, write| {
            assert_eq!(line.request(&topology, &prices, CpuId(cpu), write), None);
        };
        for (cpu, write) in [(5, false), (0, true), (6, false), (7, true), (8, false)] {
            ask(&mut line, cpu, write);
        }
        line.start(&topology, &prices, 999);
        let mut order = vec![line.finish().map(|c| c.0).collect::<Vec<_>>()];
        // The node has the line now, but CPU 7 requested to write it first.
        ask(&mut line, 9, false);
        while line.start(&topology, &prices, 999).is_some() {
            order.push(line.finish().map(|c| c.0).collect::<Vec<_>>());
        }
        assert_eq!(order, [vec![5, 6], vec![0], vec![7], vec![8, 9]]);
    }

    #[test]
    fn the_home_node_goes_first_as_often_as_the_coin_says() {
        let (topology, prices) = (machine(2), LinePrices::default());
        let mut line = Line::new(&topology, NodeId(0));
        for cpu in [2, 0, 3, 1] {
            line.request(&topology, &prices, CpuId(cpu), true);
        }
        let mut order = Vec::new();
        for coin in [0, 999, 0, 0] {
            line.start(&topology, &prices, coin);
            order.extend(line.finish().map(|c| c.0));
        }
        assert_eq!(order, [0, 2, 1, 3]);
    }

    /// All CPUs think and write in turn: the share of time each node's CPUs wait.
    fn closed(think_ns: u64, home_first: u64) -> (u64, u64) {
        let topology = machine(112);
        let mut prices = LinePrices::default();
        prices.home_first_permille.set(home_first);
        let mut line = Line::new(&topology, NodeId(0));
        let mut seed = 1u64;
        let mut draw = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        // (time, order, CPU or the line itself)
        let mut events = std::collections::BTreeSet::new();
        for cpu in 0..224u16 {
            events.insert((draw() % (2 * think_ns), u64::from(cpu), Some(CpuId(cpu))));
        }
        let mut number = 1_000u64;
        let mut since = [0u64; 224];
        let mut waited = [0u64; 2];
        let mut thought = [0u64; 2];
        while let Some((now, _, who)) = events.pop_first() {
            if now > 20_000_000 {
                break;
            }
            let done: Vec<CpuId> = match who {
                Some(cpu) => {
                    since[cpu.index()] = now;
                    let hit = line.request(&topology, &prices, cpu, true);
                    if hit.is_some() { vec![cpu] } else { vec![] }
                }
                None => line.finish().collect(),
            };
            for cpu in done {
                let think = draw() % (2 * think_ns);
                waited[cpu.index() / 112] += now - since[cpu.index()];
                thought[cpu.index() / 112] += think;
                number += 1;
                events.insert((now + think, number, Some(cpu)));
            }
            if let Some(time) = line.start(&topology, &prices, draw() % 1000) {
                number += 1;
                events.insert((now + time, number, None));
            }
        }
        let share = |node: usize| waited[node] * 1000 / (waited[node] + thought[node]);
        (share(0), share(1))
    }

    /// 224 CPUs that each write every 18 us need about the capacity of one line (some 80 ns a transfer): by
    /// distance alone the nodes suffer alike; preference for the home node makes the other suffer more than
    /// twice as much.
    #[test]
    fn a_saturated_line_is_unfair_only_by_preference() {
        let (home, remote) = closed(18_000, 0);
        assert!(
            home > 50 && remote.abs_diff(home) < home / 10,
            "first come first served: {home} and {remote}"
        );
        let (home, remote) = closed(18_000, 550);
        assert!(remote > 2 * home, "home first: {home} and {remote}");
        let (home, remote) = closed(100_000, 550);
        assert!(home < 5 && remote < 5, "an idle line: {home} and {remote}");
    }
}
