//! Drawn machines and run queues, the language of this crate's tests.

use alloc::vec::Vec;

use schedlab_topology::{Cpu, NodeId, Topology};

/// A regular machine: sockets x LLCs x cores x threads, threads of a core side by
/// side, one node per socket at distance 21.
pub(crate) fn machine(shape: &str) -> Topology {
    let n: Vec<u16> = shape.split('x').map(|n| n.parse().unwrap()).collect();
    let (sockets, llcs, cores, threads) = (n[0], n[1], n[2], n.get(3).copied().unwrap_or(1));
    let mut cpus = Vec::new();
    for package in 0..sockets {
        for llc in 0..llcs {
            for core in 0..cores {
                for thread in 0..threads {
                    let llc = package * llcs + llc;
                    let core = llc * cores + core;
                    cpus.push(Cpu {
                        package,
                        die: package,
                        cluster: core,
                        llc,
                        core,
                        thread: thread as u8,
                        node: NodeId(package),
                        capacity: 1024,
                        online: true,
                    });
                }
            }
        }
    }
    let distance = |a: u16| (0..sockets).map(|b| if a == b { 10 } else { 21 }).collect();
    Topology::new(shape, cpus, (0..sockets).map(distance).collect::<Vec<_>>()).unwrap()
}
