//! A machine from the header of a perf.data: sibling lists, nodes and caches.
//!
//! perf writes three sections of 32-bit numbers and of texts after their length. They do not contain distances,
//! clusters or capacities: nodes are assumed to have distance 20, and second-level caches to be clusters.
//!
//! Source: tools/perf/Documentation/perf.data-file-format.txt, HEADER_CPU_TOPOLOGY,
//! HEADER_NUMA_TOPOLOGY and HEADER_CACHE.

use crate::places::{self, Place, default_distances};
use crate::validate::NR_CPUS_MAX;
use crate::{Architecture, CpuMask, NodeId, Topology, TopologyError, size};

/// The sections of a perf.data that describe the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct PerfSections<'a> {
    /// Section 13: which CPUs share a package, a core and a die.
    pub cpu_topology: &'a [u8],
    /// Section 14: the CPUs of each node.
    pub numa_topology: &'a [u8],
    /// Section 20: the caches, with the CPUs that share them.
    pub cache: &'a [u8],
    /// Section 6: the architecture, if it is known here.
    pub architecture: Option<Architecture>,
    /// Whether numbers have their highest byte first.
    pub big_endian: bool,
}

const WAY_OUT: &str = "name the machine, or record again with a newer perf";

impl Topology {
    /// Reads the sections; `name` names the machine. CPUs that are in no list of siblings are offline.
    ///
    /// # Errors
    /// The sections are incomplete or contradict each other.
    pub fn from_perf_data(name: &str, sections: &PerfSections<'_>) -> Result<Topology, TopologyError> {
        let (places, nr_nodes) = read(sections).map_err(|what| {
            TopologyError::new(format!("the topology in the header: {what}"), WAY_OUT).in_place(name)
        })?;
        places::build(name, &places, default_distances(nr_nodes, 20), sections.architecture)
    }
}

fn read(sections: &PerfSections<'_>) -> Result<(Vec<Place>, usize), String> {
    let parser = |bytes| Parser { bytes, big_endian: sections.big_endian };
    let mut parser_of_cpus = parser(sections.cpu_topology);
    let packages = parser_of_cpus.masks()?;
    let cores = parser_of_cpus.masks()?;
    let nr_cpus = cores.iter().flat_map(CpuMask::iter).map(|cpu| cpu.index() + 1).max().unwrap_or(0);
    if nr_cpus == 0 {
        return Err("it lists no CPU".to_owned());
    }
    let mut places = vec![Place::default(); nr_cpus];
    let mut set = |masks: &[CpuMask], set: fn(&mut Place, u32)| {
        for (id, mask) in masks.iter().enumerate() {
            mask.iter()
                .filter_map(|cpu| places.get_mut(cpu.index()).map(|place| set(place, id as u32)))
                .count();
        }
    };
    set(&packages, |place, id| place.package = Some(id));
    set(&cores, |place, id| {
        place.core = Some(id);
        place.online = true;
    });
    // Core and package of each CPU, which the lists already gave, then lists of dies and the die of each CPU; old perfs
    // end before any of these.
    let rest = parser_of_cpus.bytes.len();
    if rest > 8 * nr_cpus {
        parser_of_cpus.skip(8 * nr_cpus)?;
        set(&parser_of_cpus.masks()?, |place, id| place.die = Some(id));
    }

    let mut nodes = parser(sections.numa_topology);
    let nr_nodes = if nodes.bytes.is_empty() { 0 } else { nodes.number()? };
    let mut with_cpus = 0;
    for _ in 0..nr_nodes {
        // Number, memory in all, memory free.
        nodes.skip(4 + 8 + 8)?;
        let mask = nodes.mask()?;
        for cpu in mask.iter().filter(|cpu| cpu.index() < nr_cpus) {
            places[cpu.index()].node = Some(NodeId(with_cpus));
        }
        with_cpus += u16::from(!mask.is_empty());
    }
    if with_cpus == 0 {
        places.iter_mut().for_each(|place| place.node = Some(NodeId(0)));
    }
    caches(parser(sections.cache), &mut places)?;
    Ok((places, usize::from(with_cpus).max(1)))
}

/// Puts each cache at the CPUs that share it.
fn caches(mut parser: Parser<'_>, places: &mut [Place]) -> Result<(), String> {
    if parser.bytes.is_empty() {
        return Ok(());
    }
    parser.skip(4)?;
    // The levels of the largest caches seen so far.
    let mut levels = vec![0; places.len()];
    for id in 0..parser.number()? {
        let level = parser.number()?;
        // Line size, sets, ways.
        parser.skip(12)?;
        let (kind, bytes, mask) = (parser.text()?, size::parse(&parser.text()?), parser.mask()?);
        for cpu in mask.iter() {
            let Some(place) = places.get_mut(cpu.index()) else { continue };
            match (kind.as_str(), level) {
                ("Data", 1) => place.l1 = Some(id),
                ("Unified" | "Data", level) if level >= 2 => {
                    if level == 2 {
                        (place.l2, place.sizes.l2) = (Some(id), bytes);
                    }
                    if level > levels[cpu.index()] {
                        levels[cpu.index()] = level;
                        (place.llc, place.sizes.llc) = (Some(id), bytes);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Takes numbers and texts off the front.
struct Parser<'a> {
    bytes: &'a [u8],
    big_endian: bool,
}

impl<'a> Parser<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.bytes.split_at_checked(len).ok_or("it is cut short")?;
        self.bytes = rest;
        Ok(taken)
    }

    fn skip(&mut self, len: usize) -> Result<(), String> {
        self.take(len).map(drop)
    }

    fn number(&mut self) -> Result<u32, String> {
        let bytes = self.take(4)?.try_into().expect("these are four");
        Ok(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Text after its length, padded with NULs.
    fn text(&mut self) -> Result<String, String> {
        let len = self.number()? as usize;
        let bytes = self.take(len)?;
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or(bytes);
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn mask(&mut self) -> Result<CpuMask, String> {
        CpuMask::parse_list(&self.text()?, NR_CPUS_MAX)
    }

    fn masks(&mut self) -> Result<Vec<CpuMask>, String> {
        (0..self.number()?).map(|_| self.mask()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuId;

    fn number(out: &mut Vec<u8>, number: u32) {
        out.extend_from_slice(&number.to_le_bytes());
    }

    /// Text as perf writes it, padded to a multiple of 64.
    fn text(out: &mut Vec<u8>, text: &str) {
        let len = (text.len() + 1).next_multiple_of(64);
        number(out, len as u32);
        out.extend_from_slice(text.as_bytes());
        out.resize(out.len() + len - text.len(), 0);
    }

    fn texts(out: &mut Vec<u8>, list: &[&str]) {
        number(out, list.len() as u32);
        list.iter().for_each(|item| text(out, item));
    }

    /// Two packages of a node each, of two cores of two threads, a cache of the third level in each.
    fn sections() -> [Vec<u8>; 3] {
        let [mut cpus, mut numa, mut cache] = [(); 3].map(|()| Vec::new());
        texts(&mut cpus, &["0-1,4-5", "2-3,6-7"]);
        texts(&mut cpus, &["0,4", "1,5", "2,6", "3,7"]);
        for cpu in 0..8 {
            number(&mut cpus, cpu % 2);
            number(&mut cpus, cpu / 2 % 2);
        }
        texts(&mut cpus, &["0-1,4-5", "2-3,6-7"]);
        (0..8).for_each(|cpu| number(&mut cpus, cpu / 2 % 2));
        number(&mut numa, 3);
        // A node with memory only is in between.
        for (node, list) in [(0, "0-1,4-5"), (1, ""), (2, "2-3,6-7")] {
            number(&mut numa, node);
            numa.extend_from_slice(&[0; 16]);
            text(&mut numa, list);
        }
        let caches = [
            (1, "Data", "32K", "0,4"),
            (1, "Instruction", "32K", "0,4"),
            (2, "Unified", "1024K", "0,4"),
            (2, "Unified", "1024K", "1,5"),
            (2, "Unified", "1024K", "2,6"),
            (2, "Unified", "1024K", "3,7"),
            (3, "Unified", "32M", "0-1,4-5"),
            (3, "Unified", "32M", "2-3,6-7"),
        ];
        number(&mut cache, 1);
        number(&mut cache, caches.len() as u32);
        for (level, kind, size, map) in caches {
            [level, 64, 64, 8].into_iter().for_each(|n| number(&mut cache, n));
            [kind, size, map].into_iter().for_each(|item| text(&mut cache, item));
        }
        [cpus, numa, cache]
    }

    fn topology(sections: &[Vec<u8>; 3]) -> Result<Topology, TopologyError> {
        let [cpu_topology, numa_topology, cache] = sections;
        let sections =
            PerfSections { cpu_topology, numa_topology, cache, architecture: None, big_endian: false };
        Topology::from_perf_data("perf.data", &sections)
    }

    fn masks(masks: &[CpuMask]) -> Vec<String> {
        masks.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_three_sections_make_a_machine() {
        let topology = topology(&sections()).unwrap();
        assert_eq!(masks(topology.cores()), ["0,4", "1,5", "2,6", "3,7"]);
        for halves in [topology.packages(), topology.nodes(), topology.llcs(), topology.dies()] {
            assert_eq!(masks(halves), ["0-1,4-5", "2-3,6-7"]);
        }
        let sizes = topology.cache_sizes(CpuId(3));
        assert_eq!((sizes.l2, sizes.llc), (Some(1 << 20), Some(32 << 20)));
        assert_eq!(topology.distance(NodeId(0), NodeId(1)), 20);
    }

    #[test]
    fn an_old_perf_shows_siblings_alone() {
        let mut cpus = Vec::new();
        texts(&mut cpus, &["0-3"]);
        texts(&mut cpus, &["0-1", "2-3"]);
        let topology = topology(&[cpus, Vec::new(), Vec::new()]).unwrap();
        assert_eq!(masks(topology.cores()), ["0-1", "2-3"]);
        assert_eq!(masks(topology.llcs()), ["0-3"], "nothing is known of caches, so the package has one");
    }

    #[test]
    fn sections_cut_anywhere_are_refused_or_read() {
        let whole = sections();
        for part in 0..3 {
            for len in 0..whole[part].len() {
                let mut cut = whole.clone();
                cut[part].truncate(len);
                if let Err(error) = topology(&cut) {
                    assert!(error.to_string().ends_with(WAY_OUT) || part > 0, "{error}");
                }
            }
        }
        let error = topology(&[Vec::new(), Vec::new(), Vec::new()]).unwrap_err().to_string();
        assert_eq!(error, format!("perf.data: the topology in the header: it is cut short; {WAY_OUT}"));
    }
}
