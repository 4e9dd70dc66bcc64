//! A regular machine in a few characters: `2x8x8x2:smt=interleaved,distance=10/32`.
//!
//! The numbers are sockets x LLCs per socket x cores per LLC x threads per core. Fewer numbers leave out levels that
//! are one: `8` is cores, `2x8` sockets x cores, `2x2x4` sockets x LLCs x cores. CPUs are numbered in that order unless
//! an option changes it. Options follow a colon, separated by commas:
//!
//! | option | meaning |
//! | --- | --- |
//! | `smt=adjacent` | CPUs 0 and 1 are one core (the default) |
//! | `smt=interleaved` | the second threads follow all the first ones, as most x86 firmware numbers them |
//! | `smt=paired` | the threads of two neighbouring cores alternate: 0,2,4,6 and 1,3,5,7, as in a big core of POWER9 and 10 |
//! | `sockets=interleaved` | neighbouring cores are on different sockets |
//! | `nodes=4` | number of nodes in the machine; `nodes=2/socket`, `nodes=1/llc`; default one per socket |
//! | `distance=10/32` | local and remote; `10/12/32` has a distance inside the socket; a table is its rows with colons between, `10/21:21/10` |
//! | `reclaim=32` | reclaim distance; default 30 |
//! | `cluster=4` | number of cores that share a mid-level cache |
//! | `dies=2` | number of dies in a socket |
//! | `packages=llc` | each LLC is a separate package (as some virtual machines report); default `packages=socket` |
//! | `cpus=380` | only the first 380 CPUs exist |
//! | `l2=1M`, `llc=32M` | cache sizes |
//! | `capacity=0-3/446` | these CPUs are smaller than 1024; may be repeated |
//! | `offline=4-7` | these CPUs are offline; may be repeated |
//! | `isolcpus=2-3` | these CPUs are in no scheduling domain; may be repeated |
//! | `arch=arm64` | the architecture whose rules the kernel uses to build domains: x86_64, arm64, riscv64, ppc64le, s390x; default x86_64, or ppc64le for cores of more than two threads |

use crate::size;
use crate::validate::{NR_CPUS_MAX, NR_THREADS_MAX};
use crate::{Architecture, CacheSizes, Cpu, CpuMask, NodeId, Topology, TopologyError};

impl Topology {
    /// Builds the regular machine that `text` describes, and uses the text as its name.
    ///
    /// # Errors
    /// A part cannot be read, or does not fit the others.
    pub fn regular(text: &str) -> Result<Topology, TopologyError> {
        parse(text).and_then(|regular| regular.build(text)).map_err(|error| error.in_place(text))
    }
}

/// The machine as described, each count at least 1.
struct Regular {
    sockets: usize,
    llcs: usize,
    cores: usize,
    threads: usize,
    smt: Smt,
    sockets_interleaved: bool,
    package_per_llc: bool,
    nodes: usize,
    dies: usize,
    cluster: usize,
    nr_cpus: usize,
    distance: Option<Vec<Vec<u32>>>,
    reclaim: Option<u32>,
    sizes: CacheSizes,
    capacity: Vec<(CpuMask, u16)>,
    offline: Vec<CpuMask>,
    isolated: CpuMask,
    architecture: Option<Architecture>,
}

/// How the threads of a core are numbered.
enum Smt {
    Adjacent,
    Interleaved,
    Paired,
}

const SHAPE: &str = "write sockets x LLCs x cores x threads, like 2x8x8x2";
const OPTIONS: &str = "the options are smt, sockets, nodes, distance, reclaim, cluster, dies, packages, cpus, l2, llc, capacity, offline, isolcpus, arch";

fn parse(text: &str) -> Result<Regular, TopologyError> {
    let (shape, options) = text.split_once(':').unwrap_or((text, ""));
    let mut regular = parse_shape(shape)?;
    for option in options.split(',').map(str::trim).filter(|o| !o.is_empty()) {
        let Some((key, value)) = option.split_once('=') else {
            return Err(TopologyError::new(format!("option \"{option}\" has no value"), OPTIONS));
        };
        regular.set(key.trim(), value.trim())?;
    }
    Ok(regular)
}

fn parse_shape(shape: &str) -> Result<Regular, TopologyError> {
    let mut numbers = Vec::new();
    for part in shape.trim().split('x') {
        let number = part.parse::<usize>().ok().filter(|&n| n >= 1);
        numbers.push(number.ok_or_else(|| {
            TopologyError::new(format!("\"{part}\" in \"{shape}\" is not a number from 1 up"), SHAPE)
        })?);
    }
    let (sockets, llcs, cores, threads) = match numbers[..] {
        [cores] => (1, 1, cores, 1),
        [sockets, cores] => (sockets, 1, cores, 1),
        [sockets, llcs, cores] => (sockets, llcs, cores, 1),
        [sockets, llcs, cores, threads] => (sockets, llcs, cores, threads),
        _ => {
            let what = format!("\"{shape}\" has {} numbers", numbers.len());
            return Err(TopologyError::new(what, SHAPE));
        }
    };
    if threads > NR_THREADS_MAX {
        let what = format!("a core of {threads} threads");
        return Err(TopologyError::new(what, format!("a core has 1 to {NR_THREADS_MAX}")));
    }
    let nr_cpus = numbers.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
    let Some(nr_cpus) = nr_cpus.filter(|&n| n <= NR_CPUS_MAX) else {
        return Err(TopologyError::new(
            format!("\"{shape}\" has more than {NR_CPUS_MAX} CPUs"),
            "make one of the numbers smaller",
        ));
    };
    Ok(Regular {
        sockets,
        llcs,
        cores,
        threads,
        smt: Smt::Adjacent,
        sockets_interleaved: false,
        package_per_llc: false,
        nodes: sockets,
        dies: 1,
        cluster: 1,
        nr_cpus,
        distance: None,
        reclaim: None,
        sizes: CacheSizes::default(),
        capacity: Vec::new(),
        offline: Vec::new(),
        isolated: CpuMask::new(nr_cpus),
        architecture: None,
    })
}

impl Regular {
    fn set(&mut self, key: &str, value: &str) -> Result<(), TopologyError> {
        let wrong = |way_out: &str| TopologyError::new(format!("{key}={value} cannot be read"), way_out);
        let misfit =
            |why: String, way_out: &str| TopologyError::new(format!("{key}={value}: {why}"), way_out);
        let count = || value.parse::<usize>().ok().filter(|&n| n >= 1);
        match key {
            "smt" => {
                self.smt = match value {
                    "adjacent" => Smt::Adjacent,
                    "interleaved" => Smt::Interleaved,
                    "paired" => Smt::Paired,
                    _ => return Err(wrong("it is adjacent, interleaved or paired")),
                };
                let nr_cores = self.sockets * self.llcs * self.cores;
                if matches!(self.smt, Smt::Paired) && !nr_cores.is_multiple_of(2) {
                    return Err(misfit(
                        format!("{nr_cores} cores do not form pairs"),
                        "take an even number of cores",
                    ));
                }
            }
            "sockets" => {
                self.sockets_interleaved = match value {
                    "adjacent" => false,
                    "interleaved" => true,
                    _ => return Err(wrong("it is adjacent or interleaved")),
                }
            }
            "packages" => {
                self.package_per_llc = match value {
                    "socket" => false,
                    "llc" => true,
                    _ => return Err(wrong("it is socket or llc")),
                }
            }
            "nodes" => {
                let nr_llcs = self.sockets * self.llcs;
                let (number, per) = match value.split_once('/') {
                    None => (value, 1),
                    Some((number, "socket")) => (number, self.sockets),
                    Some((number, "llc")) => (number, nr_llcs),
                    Some(_) => return Err(wrong("write nodes=4, nodes=2/socket or nodes=1/llc")),
                };
                let nodes = number.parse::<usize>().ok().filter(|&n| n >= 1).and_then(|n| n.checked_mul(per));
                let nodes = nodes.ok_or_else(|| wrong("write nodes=4, nodes=2/socket or nodes=1/llc"))?;
                let fits = nodes % self.sockets == 0 || self.sockets.is_multiple_of(nodes);
                if !fits || !nr_llcs.is_multiple_of(nodes) {
                    return Err(misfit(
                        format!(
                            "{} sockets of {} LLCs do not divide into {nodes} nodes",
                            self.sockets, self.llcs
                        ),
                        "a node holds whole LLCs, and whole sockets or an equal part of one",
                    ));
                }
                self.nodes = nodes;
            }
            "distance" => {
                let rows =
                    value.split(':').map(|row| row.split('/').map(|d| d.trim().parse().ok()).collect());
                let rows: Option<Vec<Vec<u32>>> = rows.collect();
                self.distance = Some(rows.ok_or_else(|| wrong("write 10/32, 10/12/32 or 10/21:21/10"))?);
            }
            "reclaim" => {
                self.reclaim = Some(value.parse().map_err(|_| wrong("write a distance like 32"))?);
            }
            "cluster" => {
                self.cluster = count().ok_or_else(|| wrong("write a number of cores from 1 up"))?;
                if !self.cores.is_multiple_of(self.cluster) {
                    return Err(misfit(
                        format!("the {} cores of an LLC do not divide into clusters of that", self.cores),
                        "take a divisor",
                    ));
                }
            }
            "dies" => {
                self.dies = count().ok_or_else(|| wrong("write a number of dies from 1 up"))?;
                if !self.llcs.is_multiple_of(self.dies) {
                    return Err(misfit(
                        format!("the {} LLCs of a socket do not divide into so many dies", self.llcs),
                        "take a divisor",
                    ));
                }
            }
            "cpus" => {
                self.nr_cpus = count()
                    .filter(|&n| n <= self.nr_cpus)
                    .ok_or_else(|| wrong(&format!("write a number from 1 to {}", self.nr_cpus)))?;
            }
            "l2" => self.sizes.l2 = Some(size::parse(value).ok_or_else(|| wrong("write a size like 512K"))?),
            "llc" => self.sizes.llc = Some(size::parse(value).ok_or_else(|| wrong("write a size like 32M"))?),
            "capacity" => {
                let way_out = "write CPUs and their capacity, like capacity=0-3/446";
                let (list, capacity) = value.split_once('/').ok_or_else(|| wrong(way_out))?;
                let capacity = capacity.parse().map_err(|_| wrong(way_out))?;
                let mask = CpuMask::parse_list(list, self.nr_cpus).map_err(|why| misfit(why, way_out))?;
                self.capacity.push((mask, capacity));
            }
            "offline" => {
                let mask = CpuMask::parse_list(value, self.nr_cpus);
                self.offline.push(mask.map_err(|why| misfit(why, "write CPUs like offline=4-7"))?);
            }
            "isolcpus" => {
                let mask = CpuMask::parse_list(value, self.nr_cpus);
                let mask = mask.map_err(|why| misfit(why, "write CPUs like isolcpus=2-3"))?;
                self.isolated = self.isolated.or(&mask);
            }
            "arch" => {
                let named = Architecture::named(value);
                self.architecture =
                    Some(named.ok_or_else(|| wrong("it is x86_64, arm64, riscv64, ppc64le or s390x"))?);
            }
            _ => return Err(TopologyError::new(format!("there is no option \"{key}\""), OPTIONS)),
        }
        Ok(())
    }

    fn build(self, name: &str) -> Result<Topology, TopologyError> {
        let mut cpus = vec![None; self.sockets * self.llcs * self.cores * self.threads];
        for socket in 0..self.sockets {
            for llc_of_socket in 0..self.llcs {
                let llc = socket * self.llcs + llc_of_socket;
                for core_of_llc in 0..self.cores {
                    let core = llc * self.cores + core_of_llc;
                    let rank = if self.sockets_interleaved {
                        (llc_of_socket * self.cores + core_of_llc) * self.sockets + socket
                    } else {
                        core
                    };
                    for thread in 0..self.threads {
                        cpus[self.cpu_number(rank, thread)] = Some(Cpu {
                            package: if self.package_per_llc { llc } else { socket } as u16,
                            die: if self.package_per_llc { llc } else { llc / (self.llcs / self.dies) }
                                as u16,
                            cluster: (core / self.cluster) as u16,
                            llc: llc as u16,
                            core: core as u16,
                            thread: thread as u8,
                            node: NodeId((llc * self.nodes / (self.sockets * self.llcs)) as u16),
                            capacity: 1024,
                            online: true,
                        });
                    }
                }
            }
        }
        let mut cpus: Vec<Cpu> = cpus.into_iter().flatten().take(self.nr_cpus).collect();
        for (mask, capacity) in &self.capacity {
            mask.iter().for_each(|cpu| cpus[cpu.index()].capacity = *capacity);
        }
        for mask in &self.offline {
            mask.iter().for_each(|cpu| cpus[cpu.index()].online = false);
        }
        let topology = Topology::new(name, cpus, self.distances()?)?.with_cache_sizes(|_| self.sizes)?;
        let mut topology = topology.with_isolated(self.isolated)?;
        if let Some(architecture) = self.architecture {
            topology = topology.of_architecture(architecture);
        }
        Ok(match self.reclaim {
            Some(distance) => topology.with_reclaim_distance(distance),
            None => topology,
        })
    }

    /// The number of a thread of the core that is `rank` in the order of cores.
    fn cpu_number(&self, rank: usize, thread: usize) -> usize {
        match self.smt {
            Smt::Adjacent => rank * self.threads + thread,
            Smt::Interleaved => thread * self.sockets * self.llcs * self.cores + rank,
            Smt::Paired => (rank / 2 * self.threads + thread) * 2 + rank % 2,
        }
    }

    fn distances(&self) -> Result<Vec<Vec<u32>>, TopologyError> {
        let nodes_of_socket = self.nodes.div_ceil(self.sockets);
        let (local, inside, remote) = match self.distance.as_deref() {
            None if nodes_of_socket > 1 => (10, 12, 21),
            None => (10, 21, 21),
            Some([row]) => match row[..] {
                [local] if self.nodes == 1 => (local, local, local),
                [local, remote] if self.nodes > 1 => (local, remote, remote),
                [local, inside, remote] if nodes_of_socket > 1 && self.sockets > 1 => (local, inside, remote),
                _ => {
                    return Err(TopologyError::new(
                        format!("{} distances do not fit {} nodes", row.len(), self.nodes),
                        "write local/remote, or local/socket/remote where a socket has several nodes",
                    ));
                }
            },
            Some(rows) if rows.len() == self.nodes => return Ok(rows.to_vec()),
            Some(rows) => {
                return Err(TopologyError::new(
                    format!("a table of {} rows for {} nodes", rows.len(), self.nodes),
                    "give one row for each node",
                ));
            }
        };
        let between = |a: usize, b: usize| match (a == b, a / nodes_of_socket == b / nodes_of_socket) {
            (true, _) => local,
            (false, true) => inside,
            (false, false) => remote,
        };
        Ok((0..self.nodes).map(|a| (0..self.nodes).map(|b| between(a, b)).collect()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuId;

    fn lists(masks: &[CpuMask]) -> String {
        masks.iter().map(CpuMask::to_string).collect::<Vec<_>>().join(" ")
    }

    /// Cores, LLCs and nodes of a machine.
    #[track_caller]
    fn check(text: &str, cores: &str, llcs: &str, nodes: &str) {
        let topology = Topology::regular(text).unwrap();
        assert_eq!(lists(topology.cores()), cores, "cores");
        assert_eq!(lists(topology.llcs()), llcs, "LLCs");
        assert_eq!(lists(topology.nodes()), nodes, "nodes");
        assert_eq!(topology.name, text);
    }

    #[test]
    fn numbers_are_sockets_llcs_cores_threads() {
        check("3", "0 1 2", "0-2", "0-2");
        check("2x2", "0 1 2 3", "0-1 2-3", "0-1 2-3");
        check("2x2x2", "0 1 2 3 4 5 6 7", "0-1 2-3 4-5 6-7", "0-3 4-7");
        check("1x2x2x2", "0-1 2-3 4-5 6-7", "0-3 4-7", "0-7");
    }

    #[test]
    fn threads_and_sockets_are_numbered_as_asked() {
        check("2x1x2x2:smt=interleaved", "0,4 1,5 2,6 3,7", "0-1,4-5 2-3,6-7", "0-1,4-5 2-3,6-7");
        check("1x2x1x4:smt=paired", "0,2,4,6 1,3,5,7", "0,2,4,6 1,3,5,7", "0-7");
        check(
            "2x1x2x2:smt=interleaved,sockets=interleaved",
            "0,4 1,5 2,6 3,7",
            "0,2,4,6 1,3,5,7",
            "0,2,4,6 1,3,5,7",
        );
        check("2x1x2x2:sockets=interleaved", "0-1 2-3 4-5 6-7", "0-1,4-5 2-3,6-7", "0-1,4-5 2-3,6-7");
    }

    #[test]
    fn nodes_packages_dies_and_clusters_divide_the_machine() {
        let nodes = |text| lists(Topology::regular(text).unwrap().nodes());
        assert_eq!(nodes("2x2x2:nodes=1"), "0-7");
        assert_eq!(nodes("2x2x2:nodes=2"), "0-3 4-7");
        assert_eq!(nodes("2x2x2:nodes=2/socket"), "0-1 2-3 4-5 6-7");
        assert_eq!(nodes("2x2x2:nodes=1/llc"), "0-1 2-3 4-5 6-7");
        assert_eq!(nodes("4x1x2:nodes=2"), "0-3 4-7");
        let topology = Topology::regular("2x2x4:packages=llc,cluster=2").unwrap();
        assert_eq!(lists(topology.packages()), "0-3 4-7 8-11 12-15");
        assert_eq!(lists(topology.clusters()), "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15");
        let topology = Topology::regular("1x4x2:dies=2").unwrap();
        assert_eq!(lists(topology.dies()), "0-3 4-7");
    }

    #[test]
    fn distances_have_levels_or_a_table() {
        let distances = |text| format!("{:?}", Topology::regular(text).unwrap().distances());
        assert_eq!(distances("4"), "[[10]]");
        assert_eq!(distances("2x4"), "[[10, 21], [21, 10]]");
        assert_eq!(distances("2x4:distance=10/32"), "[[10, 32], [32, 10]]");
        assert_eq!(distances("2x4:distance=10/20:30/10"), "[[10, 20], [30, 10]]");
        let four = "[[10, 12, 32, 32], [12, 10, 32, 32], [32, 32, 10, 12], [32, 32, 12, 10]]";
        assert_eq!(distances("2x2x4:nodes=4,distance=10/12/32"), four);
        assert_eq!(distances("1x2x4:nodes=2"), "[[10, 12], [12, 10]]");
    }

    #[test]
    fn the_rest_of_the_options_say_what_they_say() {
        let text = "1x2x4x2:cpus=14,l2=1M,llc=32M,capacity=0-3/446,capacity=4/512,offline=6,offline=12-13,isolcpus=2-3,\
                    isolcpus=13,reclaim=40";
        let topology = Topology::regular(text).unwrap();
        assert_eq!(topology.nr_cpus(), 14);
        assert_eq!(lists(topology.llcs()), "0-7 8-13");
        assert_eq!(topology.online().to_string(), "0-5,7-11");
        assert_eq!(topology.isolated().to_string(), "2-3,13");
        assert_eq!(topology.in_domains().to_string(), "0-1,4-5,7-11");
        assert_eq!(Topology::from_sysfs("m", &topology.to_sysfs()).unwrap().isolated(), topology.isolated());
        assert_eq!(topology.reclaim_distance(), 40);
        assert_eq!(topology.cache_sizes(CpuId(9)), CacheSizes { l2: Some(1 << 20), llc: Some(32 << 20) });
        let capacities: Vec<_> = topology.cpus().take(6).map(|(_, c)| c.capacity).collect();
        assert_eq!(capacities, [446, 446, 446, 446, 512, 1024]);
    }

    #[test]
    fn what_does_not_fit_is_said() {
        let table = [
            (
                "",
                "\"\" in \"\" is not a number from 1 up; write sockets x LLCs x cores x threads, like 2x8x8x2",
            ),
            (
                "2x0x4",
                "\"0\" in \"2x0x4\" is not a number from 1 up; write sockets x LLCs x cores x threads, like 2x8x8x2",
            ),
            (
                "1x1x1x1x1",
                "\"1x1x1x1x1\" has 5 numbers; write sockets x LLCs x cores x threads, like 2x8x8x2",
            ),
            ("1x1x1x9", "a core of 9 threads; a core has 1 to 8"),
            ("4097", "\"4097\" has more than 4096 CPUs; make one of the numbers smaller"),
            (
                "99999999999x99999999999",
                "\"99999999999x99999999999\" has more than 4096 CPUs; make one of the numbers smaller",
            ),
            (
                "4:smt",
                "option \"smt\" has no value; the options are smt, sockets, nodes, distance, reclaim, cluster, dies, packages, cpus, l2, llc, capacity, offline, isolcpus, arch",
            ),
            (
                "4:threads=2",
                "there is no option \"threads\"; the options are smt, sockets, nodes, distance, reclaim, cluster, dies, packages, cpus, l2, llc, capacity, offline, isolcpus, arch",
            ),
            ("4:smt=on", "smt=on cannot be read; it is adjacent, interleaved or paired"),
            ("1x1x3x4:smt=paired", "smt=paired: 3 cores do not form pairs; take an even number of cores"),
            ("4:sockets=2", "sockets=2 cannot be read; it is adjacent or interleaved"),
            ("4:packages=2", "packages=2 cannot be read; it is socket or llc"),
            ("4:nodes=0", "nodes=0 cannot be read; write nodes=4, nodes=2/socket or nodes=1/llc"),
            ("4:nodes=1/core", "nodes=1/core cannot be read; write nodes=4, nodes=2/socket or nodes=1/llc"),
            (
                "2x4:nodes=4",
                "nodes=4: 2 sockets of 1 LLCs do not divide into 4 nodes; a node holds whole LLCs, and whole sockets or an equal part of one",
            ),
            (
                "3x2x4:nodes=2",
                "nodes=2: 3 sockets of 2 LLCs do not divide into 2 nodes; a node holds whole LLCs, and whole sockets or an equal part of one",
            ),
            ("2x4:distance=10-21", "distance=10-21 cannot be read; write 10/32, 10/12/32 or 10/21:21/10"),
            (
                "4:distance=10/21",
                "2 distances do not fit 1 nodes; write local/remote, or local/socket/remote where a socket has several nodes",
            ),
            (
                "2x4:distance=10/12/21",
                "3 distances do not fit 2 nodes; write local/remote, or local/socket/remote where a socket has several nodes",
            ),
            ("3x4:distance=10/12:12/10", "a table of 2 rows for 3 nodes; give one row for each node"),
            (
                "2x4:distance=10/12:12",
                "the distance table has 2 rows, and row 1 has 1 numbers; give a number for each pair of nodes",
            ),
            ("2x4:distance=11/21", "node 0 is at distance 11 from itself; write 10, which is local"),
            (
                "4:cluster=3",
                "cluster=3: the 4 cores of an LLC do not divide into clusters of that; take a divisor",
            ),
            (
                "1x4x1:dies=3",
                "dies=3: the 4 LLCs of a socket do not divide into so many dies; take a divisor",
            ),
            ("4:cpus=5", "cpus=5 cannot be read; write a number from 1 to 4"),
            ("4:l2=big", "l2=big cannot be read; write a size like 512K"),
            ("4:llc=0", "llc=0 cannot be read; write a size like 32M"),
            (
                "4:capacity=446",
                "capacity=446 cannot be read; write CPUs and their capacity, like capacity=0-3/446",
            ),
            (
                "4:capacity=3-4/446",
                "capacity=3-4/446: CPU 4 is outside 0-3; write CPUs and their capacity, like capacity=0-3/446",
            ),
            (
                "2x2:offline=0,isolcpus=1-3",
                "CPUs 1-3 are isolated, and no other is online; leave one CPU to the scheduler",
            ),
            (
                "4:offline=x",
                "offline=x: cannot read CPU list part \"x\"; write it like 0-3,8; write CPUs like offline=4-7",
            ),
            ("4:offline=0-3", "no CPU is online; leave at least one online"),
        ];
        for (text, said) in table {
            let error = Topology::regular(text).unwrap_err().to_string();
            assert_eq!(error, format!("{text}: {said}"));
        }
    }

    #[test]
    fn the_largest_machine_is_built_in_a_blink() {
        let topology = Topology::regular("16x16x8x2:smt=interleaved,cluster=2,nodes=2/socket").unwrap();
        assert_eq!((topology.nr_cpus(), topology.cores().len()), (4096, 2048));
        assert_eq!((topology.llcs().len(), topology.nr_nodes()), (256, 32));
    }
}
