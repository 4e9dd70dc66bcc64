//! A machine from the files under `/sys/devices/system/{cpu,node}`.
//!
//! The files are read through [`SysfsTree`], so that a running host, a saved folder, a tar and a recording's list of
//! lines are all handled alike. For a host or a folder a closure is enough that joins a root and reads:
//!
//! ```
//! # use schedlab_topology::Topology;
//! let root = std::path::PathBuf::from("/");
//! let read = |path: &str| std::fs::read_to_string(root.join(path.trim_start_matches('/'))).ok();
//! let host = Topology::from_sysfs("host", &read);
//! ```
//!
//! The LLC is the highest cache that contains data, as on x86; arm64, riscv and s390 have their own rules
//! (`places.rs`). A POWER9 kernel uses its L2 instead, which the files do not show. The architecture is known from the
//! modalias of the CPUs, or from files that only one architecture has.
//!
//! Kernel: cpu_llc_shared_map, cpu_l2c_shared_map, arch/x86/kernel/smpboot.c;
//! Documentation/admin-guide/cputopology.rst.

mod export;
mod saved;

use std::collections::BTreeMap;

use crate::places::{self, Place};
use crate::validate::{NR_CPUS_MAX, NR_NODES_MAX};
use crate::{Architecture, CpuId, CpuMask, NodeId, Topology, TopologyError, size};

pub use saved::SavedSysfs;

/// Files by their full path, such as `/sys/devices/system/cpu/online`.
///
/// The tree may also begin further down, at `/devices`, `/system` or `/cpu`.
pub trait SysfsTree {
    /// The text of a file, if it exists.
    fn read(&self, path: &str) -> Option<String>;
}

impl<F: Fn(&str) -> Option<String>> SysfsTree for F {
    fn read(&self, path: &str) -> Option<String> {
        self(path)
    }
}

impl Topology {
    /// Reads a machine from its sysfs files and names it.
    ///
    /// Old files contain masks where new ones contain lists, and some are missing; whatever exists is used. An offline
    /// CPU without files is a core and an LLC of its own beside its neighbour.
    ///
    /// # Errors
    /// There are no such files, one cannot be read, or they contradict each other.
    pub fn from_sysfs(name: &str, tree: &dyn SysfsTree) -> Result<Topology, TopologyError> {
        import(name, tree).map_err(|error| error.in_place(name))
    }

    /// Reads a machine from saved lines of a path, a space and the file's text, and names it.
    ///
    /// # Errors
    /// Those of [`SavedSysfs::from_lines`] and [`Topology::from_sysfs`].
    pub fn from_sysfs_lines(name: &str, text: &str) -> Result<Topology, TopologyError> {
        Topology::from_sysfs(name, &SavedSysfs::from_lines(name, text)?)
    }
}

/// Where the tree may begin.
const ROOTS: [&str; 4] = ["/sys/devices/system", "/devices/system", "/system", ""];

fn import(name: &str, tree: &dyn SysfsTree) -> Result<Topology, TopologyError> {
    let has = |path: &str| ROOTS.iter().find(|root| tree.read(&format!("{root}{path}")).is_some());
    // Kernels without hotplug have no list of online CPUs.
    let root = ["/cpu/online", "/cpu/possible", "/cpu/present", "/cpu/cpu0/topology/core_id"]
        .into_iter()
        .find_map(has);
    let root = root.ok_or_else(|| {
        TopologyError::new(
            "there is no /sys/devices/system/cpu/online",
            "save the folders /sys/devices/system/cpu and /sys/devices/system/node, with tar for instance",
        )
    })?;
    let mut reader = Reader {
        name,
        tree,
        root,
        nr_cpus: NR_CPUS_MAX,
        masks: Vec::new(),
        by_mask: BTreeMap::new(),
        by_text: BTreeMap::new(),
    };
    let listed = match reader.list("/cpu/present")? {
        Some(present) => Some(present),
        None => reader.list("/cpu/possible")?,
    };
    let online = match reader.list("/cpu/online")? {
        Some(online) => online,
        None => Some(reader.with_topology())
            .filter(|cpus| !cpus.is_empty())
            .or(listed.clone())
            .unwrap_or_default(),
    };
    let present = listed.unwrap_or(online.clone());
    let last = present.iter().chain(online.iter()).max();
    reader.nr_cpus = last.map_or(0, |cpu| cpu.index() + 1);

    let (node_of, distances) = reader.nodes()?;
    let mut places = Vec::with_capacity(reader.nr_cpus);
    for (cpu, node) in node_of.into_iter().enumerate() {
        let cpu = CpuId::from(cpu);
        places.push(Place { node, online: online.contains(cpu), ..reader.place(cpu)? });
    }
    for (what, group) in LEVELS {
        reader.check_agreement(&places, what, group)?;
    }
    let isolated = reader.list("/cpu/isolated")?.unwrap_or_default();
    let topology = places::build(name, &places, distances, reader.architecture())?;
    let exist = isolated.iter().filter(|cpu| cpu.index() < topology.nr_cpus());
    let isolated = CpuMask::of(topology.nr_cpus(), exist);
    topology.with_isolated(isolated)
}

/// Each CPU's node, where known, and the distances.
type Nodes = (Vec<Option<NodeId>>, Vec<Vec<u32>>);

type Group = fn(&Place) -> Option<u32>;

const LEVELS: [(&str, Group); 6] = [
    ("package", |p| p.package),
    ("die", |p| p.die),
    ("cluster", |p| p.cluster),
    ("core", |p| p.core),
    ("first-level cache", |p| p.l1),
    ("last-level cache", |p| p.llc),
];

/// How a file writes a set of CPUs.
#[derive(Clone, Copy)]
enum Form {
    List,
    Mask,
}

struct Reader<'a> {
    name: &'a str,
    tree: &'a dyn SysfsTree,
    root: &'a str,
    nr_cpus: usize,
    /// Every distinct set of CPUs.
    masks: Vec<CpuMask>,
    by_mask: BTreeMap<CpuMask, u32>,
    /// Machines have few sets and many files, so each text is read once.
    by_text: BTreeMap<String, u32>,
}

impl Reader<'_> {
    /// The text of a file, trimmed; saved files may be padded with zeros.
    fn text(&self, path: &str) -> Option<String> {
        let text = self.tree.read(&format!("{}{path}", self.root))?;
        Some(text.trim_matches(|c: char| c.is_whitespace() || c == '\0').to_string())
    }

    fn wrong(&self, path: &str, what: impl Into<String>, way_out: &str) -> TopologyError {
        TopologyError::new(what, way_out).in_place(format!("{}: {}{path}", self.name, self.root))
    }

    fn list(&self, path: &str) -> Result<Option<CpuMask>, TopologyError> {
        let Some(text) = self.text(path) else { return Ok(None) };
        let mask = CpuMask::parse_list(&text, self.nr_cpus);
        mask.map(Some).map_err(|what| self.wrong(path, what, "save the file again"))
    }

    /// The first file that exists, as an index into `masks`.
    fn group(&mut self, dir: &str, files: &[(&str, Form)]) -> Result<Option<u32>, TopologyError> {
        for &(file, form) in files {
            let path = format!("{dir}/{file}");
            let Some(text) = self.text(&path).filter(|text| !text.is_empty()) else { continue };
            if let Some(&group) = self.by_text.get(&text) {
                return Ok(Some(group));
            }
            let mask = match form {
                Form::List => CpuMask::parse_list(&text, self.nr_cpus),
                Form::Mask => CpuMask::parse_hex(&text, self.nr_cpus),
            };
            let mask = mask.map_err(|what| self.wrong(&path, what, "save the file again"))?;
            let group = *self.by_mask.entry(mask).or_insert_with_key(|mask| {
                self.masks.push(mask.clone());
                (self.masks.len() - 1) as u32
            });
            self.by_text.insert(text, group);
            return Ok(Some(group));
        }
        Ok(None)
    }

    /// The CPUs that have a folder of their topology.
    fn with_topology(&self) -> CpuMask {
        let has = |cpu: &CpuId| {
            ["core_id", "physical_package_id", "thread_siblings", "thread_siblings_list", "core_siblings"]
                .iter()
                .any(|file| self.text(&format!("/cpu/cpu{cpu}/topology/{file}")).is_some())
        };
        CpuMask::of(NR_CPUS_MAX, (0..NR_CPUS_MAX).map(CpuId::from).filter(has))
    }

    /// The architecture, if a file names it or exists only there.
    ///
    /// Kernel: print_cpu_modalias(), drivers/base/cpu.c; cpu_capacity, drivers/base/arch_topology.c;
    /// book_siblings, drivers/base/topology.c, v6.12.
    fn architecture(&self) -> Option<Architecture> {
        let modalias = self.text("/cpu/modalias").or_else(|| self.text("/cpu/cpu0/uevent"));
        let said =
            modalias.as_deref().and_then(|text| text.split("cpu:type:").nth(1)).and_then(Architecture::named);
        if said.is_some() {
            return said;
        }
        let first =
            (0..self.nr_cpus).find(|cpu| self.text(&format!("/cpu/cpu{cpu}/topology/core_id")).is_some());
        let file = |file: &str| self.text(&format!("/cpu/cpu{}/{file}", first.unwrap_or(0)));
        // x86 numbers its dies, and has a file of capacities in new kernels.
        let has_dies = file("topology/die_id").is_some_and(|die| die != "-1");
        if ["book_id", "book_siblings_list", "book_siblings"]
            .iter()
            .any(|name| file(&format!("topology/{name}")).is_some())
        {
            Some(Architecture::S390)
        } else if file("regs/identification/midr_el1").is_some()
            || (file("cpu_capacity").is_some() && !has_dies)
        {
            Some(Architecture::Arm64)
        } else {
            None
        }
    }

    fn place(&mut self, cpu: CpuId) -> Result<Place, TopologyError> {
        use Form::{List, Mask};
        let dir = format!("/cpu/cpu{cpu}/topology");
        let mut place = Place {
            package: self.group(
                &dir,
                &[
                    ("package_cpus_list", List),
                    ("core_siblings_list", List),
                    ("package_cpus", Mask),
                    ("core_siblings", Mask),
                ],
            )?,
            // Kernels use -1 for the die if the architecture has none.
            die: match self.text(&format!("{dir}/die_id")).as_deref() {
                Some("-1") => None,
                _ => self.group(&dir, &[("die_cpus_list", List), ("die_cpus", Mask)])?,
            },
            book: self.group(&dir, &[("book_siblings_list", List), ("book_siblings", Mask)])?,
            drawer: self.group(&dir, &[("drawer_siblings_list", List), ("drawer_siblings", Mask)])?,
            cluster: self.group(&dir, &[("cluster_cpus_list", List), ("cluster_cpus", Mask)])?,
            core: self.group(
                &dir,
                &[
                    ("core_cpus_list", List),
                    ("thread_siblings_list", List),
                    ("core_cpus", Mask),
                    ("thread_siblings", Mask),
                ],
            )?,
            ..Place::default()
        };
        self.caches(cpu, &mut place)?;
        let path = format!("/cpu/cpu{cpu}/cpu_capacity");
        if let Some(text) = self.text(&path) {
            let capacity = text.parse().map_err(|_| {
                self.wrong(
                    &path,
                    format!("\"{text}\" is not a capacity"),
                    "a capacity is a number from 1 to 1024",
                )
            })?;
            place.capacity = Some(capacity);
        }
        Ok(place)
    }

    fn caches(&mut self, cpu: CpuId, place: &mut Place) -> Result<(), TopologyError> {
        let mut highest = 0;
        for index in 0.. {
            let dir = format!("/cpu/cpu{cpu}/cache/index{index}");
            let Some(level) = self.text(&format!("{dir}/level")) else { break };
            let Ok(level) = level.parse::<u32>() else {
                let what = format!("\"{level}\" is not a cache level");
                return Err(self.wrong(&format!("{dir}/level"), what, "save the file again"));
            };
            // Second-level caches with data only exist (Xeon Phi); those with instructions only are irrelevant here.
            let has_data = self.text(&format!("{dir}/type")).is_none_or(|kind| kind != "Instruction");
            let shared = [("shared_cpu_list", Form::List), ("shared_cpu_map", Form::Mask)];
            let Some(group) = self.group(&dir, &shared)? else { continue };
            let bytes = self.text(&format!("{dir}/size")).and_then(|text| size::parse(&text));
            if level == 1 {
                place.l1.get_or_insert(group);
            }
            if level == 2 && has_data {
                place.l2 = Some(group);
                place.sizes.l2 = bytes;
            }
            if level > highest && level > 1 && has_data {
                highest = level;
                place.llc = Some(group);
                place.sizes.llc = bytes;
            }
        }
        Ok(())
    }

    /// The nodes that exist: those that are online, or that have folders.
    fn node_ids(&self) -> Result<Vec<usize>, TopologyError> {
        if let Some(text) = self.text("/node/online") {
            let mask = CpuMask::parse_list(&text, NR_NODES_MAX);
            let mask = mask.map_err(|what| {
                self.wrong("/node/online", what.replace("CPU", "node"), "save the file again")
            })?;
            return Ok(mask.iter().map(CpuId::index).collect());
        }
        let has = |id: &usize| {
            ["cpulist", "cpumap"].iter().any(|file| self.text(&format!("/node/node{id}/{file}")).is_some())
        };
        Ok((0..NR_NODES_MAX).filter(has).collect())
    }

    /// Reads the nodes; they are numbered without gaps.
    fn nodes(&self) -> Result<Nodes, TopologyError> {
        let mut node_of = vec![None; self.nr_cpus];
        let ids = self.node_ids()?;
        let nr_nodes = ids.len();
        if nr_nodes == 0 {
            return Ok((vec![Some(NodeId(0)); self.nr_cpus], vec![vec![10]]));
        }
        let mut distances = Vec::new();
        let mut says_distances = true;
        for (node, id) in ids.iter().enumerate() {
            let (list, map) = (format!("/node/node{id}/cpulist"), format!("/node/node{id}/cpumap"));
            let (path, mask) = match self.text(&list) {
                Some(text) => (list, CpuMask::parse_list(&text, NR_CPUS_MAX)),
                None => {
                    let text = self.text(&map).unwrap_or_default();
                    (map, CpuMask::parse_hex(&text, NR_CPUS_MAX))
                }
            };
            let mask = mask.map_err(|what| self.wrong(&path, what, "save the file again"))?;
            // A node may list CPUs that are possible but not present.
            for cpu in mask.iter().filter(|cpu| cpu.index() < self.nr_cpus) {
                if node_of[cpu.index()].replace(NodeId(node as u16)).is_some() {
                    let what = format!("CPU {cpu} is on another node too");
                    return Err(self.wrong(&path, what, "a CPU is on one node"));
                }
            }
            let path = format!("/node/node{id}/distance");
            let Some(text) = self.text(&path) else {
                says_distances = false;
                continue;
            };
            let row: Vec<u32> = text.split_whitespace().filter_map(|d| d.parse().ok()).collect();
            if row.len() != nr_nodes {
                let what = format!("\"{text}\" is not {nr_nodes} distances");
                return Err(self.wrong(&path, what, "it has one for each node that is online"));
            }
            distances.push(row);
        }
        if !says_distances {
            // What a kernel assumes without a firmware table.
            distances = places::default_distances(nr_nodes, 20);
        }
        Ok((node_of, distances))
    }

    /// Checks that the CPUs of a group have that same group, and that each is in its own.
    fn check_agreement(&self, places: &[Place], what: &str, group: Group) -> Result<(), TopologyError> {
        let disagree = |cpu: usize, other: usize| {
            let said = |cpu: usize| match group(&places[cpu]) {
                Some(group) => self.masks[group as usize].to_string(),
                None => "unknown".to_string(),
            };
            TopologyError::new(
                format!(
                    "the {what} of CPU {cpu} is {}, but that of CPU {other} is {}",
                    said(cpu),
                    said(other)
                ),
                "save the tree again while no CPU comes or goes",
            )
        };
        let mut checked = vec![false; self.masks.len()];
        for (cpu, place) in places.iter().enumerate() {
            let Some(mine) = group(place) else { continue };
            let mask = &self.masks[mine as usize];
            if !mask.contains(CpuId::from(cpu)) {
                return Err(TopologyError::new(
                    format!("the {what} of CPU {cpu} is {mask}, without the CPU itself"),
                    "save the tree again",
                ));
            }
            if std::mem::replace(&mut checked[mine as usize], true) {
                continue;
            }
            let differs = |other: &CpuId| group(&places[other.index()]).is_some_and(|theirs| theirs != mine);
            if let Some(other) = mask.iter().find(differs) {
                return Err(disagree(cpu, other.index()));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CacheSizes;

    /// A tree made of lines with a path below /sys/devices/system and a text.
    fn tree(lines: &str) -> SavedSysfs {
        let mut saved = SavedSysfs::new();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (path, text) = line.split_once(' ').unwrap();
            saved.insert(path, text);
        }
        saved
    }

    fn lists(masks: &[CpuMask]) -> String {
        masks.iter().map(CpuMask::to_string).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_bare_tree_is_a_package_of_single_cores() {
        let t = Topology::from_sysfs("m", &tree("cpu/online 0-2")).unwrap();
        assert_eq!((t.nr_cpus(), t.nr_nodes()), (3, 1));
        assert_eq!(lists(t.cores()), "0 1 2");
        assert_eq!(lists(t.llcs()), "0-2");
        assert_eq!(t.cpu(CpuId(2)).capacity, 1024);
    }

    #[test]
    fn an_old_kernel_has_masks_and_no_dies() {
        let t = tree(
            "cpu/online 0-3
             cpu/possible 0-63
             cpu/present 0-3
             cpu/cpu0/topology/core_siblings 00000000,00000005
             cpu/cpu0/topology/thread_siblings 00000000,00000005
             cpu/cpu0/cache/index0/level 2
             cpu/cpu0/cache/index0/type Unified
             cpu/cpu0/cache/index0/size 4096K
             cpu/cpu0/cache/index0/shared_cpu_map 00000000,00000005
             cpu/cpu2/topology/core_siblings 00000000,00000005
             cpu/cpu2/topology/thread_siblings 00000000,00000005
             cpu/cpu2/cache/index0/level 2
             cpu/cpu2/cache/index0/type Unified
             cpu/cpu2/cache/index0/size 4096K
             cpu/cpu2/cache/index0/shared_cpu_map 00000000,00000005
             cpu/cpu1/topology/core_siblings a
             cpu/cpu1/topology/thread_siblings 2
             cpu/cpu3/topology/core_siblings a
             cpu/cpu3/topology/thread_siblings 8
             node/online 0,8
             node/node0/cpumap 00000005
             node/node0/distance 10 40
             node/node8/cpumap 0000000a
             node/node8/distance 40 10",
        );
        let t = Topology::from_sysfs("m", &t).unwrap();
        assert_eq!(lists(t.packages()), "0,2 1,3");
        assert_eq!(lists(t.dies()), "0,2 1,3");
        assert_eq!(lists(t.cores()), "0,2 1 3");
        assert_eq!(lists(t.llcs()), "0,2 1,3");
        assert_eq!(lists(t.nodes()), "0,2 1,3");
        assert_eq!(t.distances(), [[10, 40], [40, 10]]);
        let size = Some(4 << 20);
        assert_eq!(t.cache_sizes(CpuId(2)), CacheSizes { l2: size, llc: size });
    }

    #[test]
    fn the_last_level_cache_is_the_highest_that_is_unified() {
        let mut lines = "cpu/online 0-3\n".to_string();
        for cpu in 0..4 {
            let pair = ["0-1", "2-3"][cpu / 2];
            let mut cache = |index: usize, level: u32, kind: &str, shared: &str| {
                let dir = format!("cpu/cpu{cpu}/cache/index{index}");
                lines += &format!("{dir}/level {level}\n{dir}/type {kind}\n{dir}/shared_cpu_list {shared}\n");
            };
            cache(0, 1, "Data", &cpu.to_string());
            cache(1, 1, "Instruction", &cpu.to_string());
            cache(2, 2, "Unified", pair);
            if cpu < 2 {
                cache(3, 3, "Unified", "0-1");
            }
            cache(if cpu < 2 { 4 } else { 3 }, 3, "Instruction", "0-3");
        }
        let t = Topology::from_sysfs("m", &tree(&lines)).unwrap();
        assert_eq!(lists(t.llcs()), "0-1 2-3");
        assert_eq!(lists(t.clusters()), "0-1 2-3");
    }

    #[test]
    fn a_cache_that_spans_nodes_is_cut() {
        let lines = (0..4).fold(
            "cpu/online 0-3
             node/online 0-1
             node/node0/cpulist 0-1
             node/node0/distance 10 11
             node/node1/cpulist 2-3
             node/node1/distance 11 10\n"
                .to_string(),
            |lines, cpu| {
                let dir = format!("cpu/cpu{cpu}/cache/index0");
                lines + &format!("{dir}/level 3\n{dir}/type Unified\n{dir}/shared_cpu_list 0-3\n")
            },
        );
        let t = Topology::from_sysfs("m", &tree(&lines)).unwrap();
        assert_eq!((lists(t.llcs()), lists(t.packages())), ("0-1 2-3".to_string(), "0-3".to_string()));
    }

    #[test]
    fn threads_of_a_power_core_are_halved_by_their_first_cache() {
        let lines = (0..8).fold("cpu/online 0-7\n".to_string(), |lines, cpu| {
            let half = ["0,2,4,6", "1,3,5,7"][cpu % 2];
            let dir = format!("cpu/cpu{cpu}");
            let caches: String =
                [(0, 1, "Instruction"), (1, 1, "Data"), (2, 2, "Unified"), (3, 3, "Unified")]
                    .map(|(index, level, kind)| {
                        let dir = format!("{dir}/cache/index{index}");
                        format!("{dir}/level {level}\n{dir}/type {kind}\n{dir}/shared_cpu_list {half}\n")
                    })
                    .concat();
            lines + &format!("{dir}/topology/thread_siblings_list 0-7\n") + &caches
        });
        let t = Topology::from_sysfs("m", &tree(&lines)).unwrap();
        let halves = "0,2,4,6 1,3,5,7";
        assert_eq!((lists(t.cores()), lists(t.llcs())), (halves.to_string(), halves.to_string()));
    }

    #[test]
    fn an_offline_cpu_without_files_stays_beside_its_neighbour() {
        let mut lines = "cpu/online 0,2\ncpu/present 0-3\ncpu/cpu1/cpu_capacity 512
             node/online 0-1
             node/node0/cpulist 0
             node/node0/distance 10 20
             node/node1/cpulist 2
             node/node1/distance 20 10\n"
            .to_string();
        for cpu in [0, 2] {
            for file in ["core_cpus_list", "package_cpus_list", "die_cpus_list"] {
                lines += &format!("cpu/cpu{cpu}/topology/{file} {cpu}\n");
            }
        }
        let t = Topology::from_sysfs("m", &tree(&lines)).unwrap();
        assert_eq!(t.online().to_string(), "0,2");
        assert_eq!(lists(t.packages()), "0-1 2-3");
        assert_eq!(lists(t.nodes()), "0-1 2-3");
        assert_eq!((lists(t.cores()), lists(t.llcs())), ("0 1 2 3".to_string(), "0 1 2 3".to_string()));
        assert_eq!(t.cpu(CpuId(1)).capacity, 512);
    }

    #[test]
    fn capacities_without_a_largest_cpu_are_scaled_with_a_note() {
        let t = tree("cpu/online 0-1\ncpu/cpu0/cpu_capacity 300\ncpu/cpu1/cpu_capacity 600");
        let t = Topology::from_sysfs("m", &t).unwrap();
        assert_eq!([CpuId(0), CpuId(1)].map(|cpu| t.cpu(cpu).capacity), [512, 1024]);
        assert_eq!(t.notes, ["m: the largest capacity is 600; all are scaled so that it is 1024"]);
    }

    #[test]
    fn the_architecture_is_known_by_the_modalias_or_by_files_of_its_own() {
        let table = [
            ("cpu/modalias cpu:type:x86,ven0000fam0006mod0097:feature:", Architecture::X86),
            ("cpu/modalias cpu:type:aarch64:feature:,0000", Architecture::Arm64),
            ("cpu/modalias cpu:type:x86,ven:\ncpu/cpu0/cpu_capacity 1024", Architecture::X86),
            ("cpu/cpu0/cpu_capacity 1024", Architecture::Arm64),
            ("cpu/cpu0/cpu_capacity 1024\ncpu/cpu0/topology/die_id -1", Architecture::Arm64),
            ("cpu/cpu0/cpu_capacity 1024\ncpu/cpu0/topology/die_id 0", Architecture::X86),
            ("cpu/cpu0/topology/book_siblings_list 0", Architecture::S390),
            ("cpu/cpu0/topology/core_id 0", Architecture::X86),
        ];
        for (lines, architecture) in table {
            let t = Topology::from_sysfs("m", &tree(&format!("cpu/online 0\n{lines}"))).unwrap();
            assert_eq!(t.architecture(), architecture, "{lines}");
        }
    }

    #[test]
    fn nodes_may_list_cpus_that_are_not_present() {
        let t = tree(
            "cpu/online 0-1\ncpu/possible 0-7\ncpu/present 0-1\nnode/node0/cpulist 0,2-7\nnode/node1/cpulist 1",
        );
        let t = Topology::from_sysfs("m", &t).unwrap();
        assert_eq!((lists(t.nodes()), t.distances()), ("0 1".to_string(), &[vec![10, 20], vec![20, 10]][..]));
    }

    #[test]
    fn a_kernel_without_hotplug_has_no_list_of_cpus_online() {
        let t = tree("cpu/cpu0/topology/core_id 0\ncpu/cpu1/topology/core_id 1");
        assert_eq!(Topology::from_sysfs("m", &t).unwrap().online().to_string(), "0-1");
    }

    #[test]
    fn a_tree_may_begin_further_down() {
        let saved = Topology::regular("2x1x2x2").unwrap().to_sysfs();
        let whole = Topology::from_sysfs("m", &saved).unwrap();
        for root in ["/sys", "/sys/devices", "/sys/devices/system"] {
            let read = |path: &str| saved.read(&format!("{root}{path}"));
            assert_eq!(Topology::from_sysfs("m", &read).unwrap(), whole);
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file() {
        let sys = "m: /sys/devices/system";
        let table = [
            (
                "node/online 0",
                "m: there is no /sys/devices/system/cpu/online; save the folders /sys/devices/system/cpu and \
                 /sys/devices/system/node, with tar for instance"
                    .to_string(),
            ),
            (
                "cpu/online 0-x",
                format!("{sys}/cpu/online: cannot read CPU list part \"0-x\"; write it like 0-3,8; save the file again"),
            ),
            ("cpu/online 0-9999", format!("{sys}/cpu/online: CPU 9999 is outside 0-4095; save the file again")),
            (
                "cpu/online 0-1\ncpu/cpu0/topology/core_cpus_list 0-2",
                format!("{sys}/cpu/cpu0/topology/core_cpus_list: CPU 2 is outside 0-1; save the file again"),
            ),
            (
                "cpu/online 0-1\ncpu/cpu0/topology/core_cpus_list 0-1\ncpu/cpu1/topology/core_cpus_list 1",
                "m: the core of CPU 0 is 0-1, but that of CPU 1 is 1; save the tree again while no CPU comes or goes"
                    .to_string(),
            ),
            (
                "cpu/online 0-1\ncpu/cpu0/topology/package_cpus_list 1",
                "m: the package of CPU 0 is 1, without the CPU itself; save the tree again".to_string(),
            ),
            (
                "cpu/online 0\ncpu/cpu0/cpu_capacity fast",
                format!("{sys}/cpu/cpu0/cpu_capacity: \"fast\" is not a capacity; a capacity is a number from 1 to 1024"),
            ),
            (
                "cpu/online 0\ncpu/cpu0/cache/index0/level x",
                format!("{sys}/cpu/cpu0/cache/index0/level: \"x\" is not a cache level; save the file again"),
            ),
            (
                "cpu/online 0-1\nnode/online 0\nnode/node0/cpulist 0\nnode/node0/distance 10",
                "m: CPU 1 is online and on no node; say the node of every CPU, or of none"
                    .to_string(),
            ),
            (
                "cpu/online 0\nnode/online 0-1\nnode/node0/cpulist 0\nnode/node0/distance 10",
                format!("{sys}/node/node0/distance: \"10\" is not 2 distances; it has one for each node that is online"),
            ),
            (
                "cpu/online 0\nnode/online 0-1\nnode/node0/cpulist 0\nnode/node0/distance 10 20\nnode/node1/cpulist 0",
                format!("{sys}/node/node1/cpulist: CPU 0 is on another node too; a CPU is on one node"),
            ),
        ];
        for (lines, said) in table {
            assert_eq!(Topology::from_sysfs("m", &tree(lines)).unwrap_err().to_string(), said);
        }
    }
}
