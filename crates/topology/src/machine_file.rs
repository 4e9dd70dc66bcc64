//! The `[topology]` table of a machine file.
//!
//! Either `regular = "2x8x8x2:..."`, or the number of CPUs and, for each level,
//! the CPUs of each group as the kernel writes lists:
//!
//! ```toml
//! [topology]
//! cpus = 8
//! packages = ["0-7"]                      # default: one
//! dies = ["0-7"]                          # default: the packages
//! nodes = ["0-3", "4-7"]                  # default: one
//! llcs = ["0-3", "4-7"]                   # default: the packages, cut by node
//! clusters = ["0-1", "2-3", "4-7"]        # default: the cores
//! cores = ["0,1", "2,3", "4", "5", "6", "7"] # default: each CPU one
//! distances = [[10, 21], [21, 10]]        # default: 10 and 21
//! reclaim_distance = 32                   # default: 30
//! capacities = [{ cpus = "0-3", capacity = 446 }]
//! architecture = "arm64"                  # default: x86_64, or POWER where a core has more than two threads
//! books = ["0-7"]                         # s390: sets of packages
//! drawers = ["0-7"]                       # s390: sets of books
//! offline = "7"
//! isolcpus = "6"
//! l2_size = "1M"
//! llc_size = "32M"
//! ```
//!
//! All other tables of the file belong to other readers.

use serde::Deserialize;
use toml::Spanned;

use crate::places::{default_distances, reconcile};
use crate::validate::{NR_CPUS_MAX, check_size};
use crate::{Architecture, CacheSizes, Cpu, CpuMask, NodeId, Topology, TopologyError, size};

#[derive(Deserialize)]
struct MachineFile {
    topology: Spanned<Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    regular: Option<Spanned<String>>,
    cpus: Option<Spanned<usize>>,
    packages: Option<Vec<Spanned<String>>>,
    dies: Option<Vec<Spanned<String>>>,
    nodes: Option<Vec<Spanned<String>>>,
    llcs: Option<Vec<Spanned<String>>>,
    clusters: Option<Vec<Spanned<String>>>,
    cores: Option<Vec<Spanned<String>>>,
    distances: Option<Vec<Vec<u32>>>,
    reclaim_distance: Option<u32>,
    #[serde(default)]
    capacities: Vec<Capacity>,
    architecture: Option<Spanned<String>>,
    books: Option<Vec<Spanned<String>>>,
    drawers: Option<Vec<Spanned<String>>>,
    offline: Option<Spanned<String>>,
    isolcpus: Option<Spanned<String>>,
    l2_size: Option<Spanned<String>>,
    llc_size: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Capacity {
    cpus: Spanned<String>,
    capacity: u16,
}

impl Topology {
    /// Reads the `[topology]` table of a machine file; `file` is its name in errors.
    ///
    /// # Errors
    /// The file cannot be read or describes an impossible machine; with the line.
    pub fn from_toml(file: &str, text: &str) -> Result<Topology, TopologyError> {
        parse(file, text).map_err(|error| error.in_place(file))
    }
}

fn parse(file: &str, text: &str) -> Result<Topology, TopologyError> {
    let line_at = |offset: usize| text[..offset.min(text.len())].matches('\n').count() + 1;
    let machine: MachineFile = toml::from_str(text).map_err(|error| {
        let what = error.message().trim().replace('\n', ", ");
        let way_out = "machines/README.md says what a [topology] has";
        let error_at = TopologyError::new(what, way_out);
        match error.span() {
            Some(span) => error_at.at_line(line_at(span.start)),
            None => error_at,
        }
    })?;
    let table_line = line_at(machine.topology.span().start);
    let table = machine.topology.into_inner();
    if let Some(regular) = &table.regular {
        let line = line_at(regular.span().start);
        if !table.is_regular_alone() {
            return Err(TopologyError::new(
                "\"regular\" cannot be combined with other keys",
                "make them options of it, like regular = \"2x8:offline=3\"",
            )
            .at_line(line));
        }
        let topology = Topology::regular(regular.get_ref());
        return topology.map(|t| t.named(file)).map_err(|error| error.quoted_at_line(line));
    }
    Lists { line_at: &line_at, table_line }.build(file, &table)
}

impl Table {
    fn is_regular_alone(&self) -> bool {
        let lists = [
            &self.packages,
            &self.dies,
            &self.nodes,
            &self.llcs,
            &self.clusters,
            &self.cores,
            &self.books,
            &self.drawers,
        ];
        let texts = [&self.architecture, &self.offline, &self.isolcpus, &self.l2_size, &self.llc_size];
        self.cpus.is_none()
            && lists.iter().all(|list| list.is_none())
            && texts.iter().all(|text| text.is_none())
            && self.distances.is_none()
            && self.reclaim_distance.is_none()
            && self.capacities.is_empty()
    }
}

/// Builds a machine from lists, with the line of each list for errors.
struct Lists<'a> {
    line_at: &'a dyn Fn(usize) -> usize,
    table_line: usize,
}

impl Lists<'_> {
    fn build(&self, name: &str, table: &Table) -> Result<Topology, TopologyError> {
        let nr_cpus = table.cpus.as_ref().ok_or_else(|| {
            let way_out = "write cpus = 8 and the lists of its groups, or regular = \"2x8x8x2\"";
            TopologyError::new("[topology] does not say how many CPUs there are", way_out)
                .at_line(self.table_line)
        })?;
        let line = (self.line_at)(nr_cpus.span().start);
        let nr_cpus = *nr_cpus.get_ref();
        check_size(nr_cpus).map_err(|error| error.at_line(line))?;

        let one = vec![0; nr_cpus];
        let packages = self.ids("packages", &table.packages, nr_cpus)?.unwrap_or(one.clone());
        let dies = self.ids("dies", &table.dies, nr_cpus)?.unwrap_or(packages.clone());
        let nodes = self.ids("nodes", &table.nodes, nr_cpus)?.unwrap_or(one);
        let llcs_given = self.ids("llcs", &table.llcs, nr_cpus)?;
        let cores = self.ids("cores", &table.cores, nr_cpus)?;
        let cores = cores.unwrap_or_else(|| (0..nr_cpus as u16).collect());
        let clusters = self.ids("clusters", &table.clusters, nr_cpus)?.unwrap_or(cores.clone());
        let llcs = llcs_given.as_ref().unwrap_or(&packages);
        let mut cpus: Vec<Cpu> = (0..nr_cpus)
            .map(|i| Cpu {
                package: packages[i],
                die: dies[i],
                cluster: clusters[i],
                llc: llcs[i],
                core: cores[i],
                thread: 0,
                node: NodeId(nodes[i]),
                capacity: 1024,
                online: true,
            })
            .collect();
        if llcs_given.is_none() {
            reconcile(&mut cpus);
        }
        for capacity in &table.capacities {
            for cpu in self.mask(&capacity.cpus, nr_cpus)?.iter() {
                cpus[cpu.index()].capacity = capacity.capacity;
            }
        }
        if let Some(offline) = &table.offline {
            for cpu in self.mask(offline, nr_cpus)?.iter() {
                cpus[cpu.index()].online = false;
            }
        }
        let isolated = match &table.isolcpus {
            Some(isolated) => self.mask(isolated, nr_cpus)?,
            None => CpuMask::new(nr_cpus),
        };
        let nr_nodes = table.nodes.as_ref().map_or(1, Vec::len);
        let distances = table.distances.clone().unwrap_or_else(|| default_distances(nr_nodes, 21));
        let sizes = CacheSizes { l2: self.size(&table.l2_size)?, llc: self.size(&table.llc_size)? };
        let topology = Topology::new(name, cpus, distances).and_then(|t| t.with_cache_sizes(|_| sizes));
        let topology = topology.and_then(|t| t.with_isolated(isolated));
        let books = self.masks(&table.books, nr_cpus)?;
        let drawers = self.masks(&table.drawers, nr_cpus)?;
        let topology = topology.and_then(|t| t.with_books(books, drawers));
        let topology = match &table.architecture {
            Some(name) => {
                let architecture = self.architecture(name)?;
                topology.map(|t| t.of_architecture(architecture))
            }
            None => topology,
        };
        let topology = match table.reclaim_distance {
            Some(distance) => topology.map(|t| t.with_reclaim_distance(distance)),
            None => topology,
        };
        topology.map_err(|error| error.at_line(self.table_line))
    }

    fn architecture(&self, name: &Spanned<String>) -> Result<Architecture, TopologyError> {
        Architecture::named(name.get_ref()).ok_or_else(|| {
            let what = format!("\"{}\" is not a known architecture", name.get_ref());
            TopologyError::new(what, "write x86_64, arm64, riscv64, ppc64le or s390x")
                .at_line(self.line(name))
        })
    }

    /// The CPUs of each group.
    fn masks(
        &self,
        lists: &Option<Vec<Spanned<String>>>,
        nr_cpus: usize,
    ) -> Result<Vec<CpuMask>, TopologyError> {
        lists.iter().flatten().map(|list| self.mask(list, nr_cpus)).collect()
    }

    /// The group of each CPU, from the groups' CPUs: each CPU is in one of them.
    fn ids(
        &self,
        key: &str,
        lists: &Option<Vec<Spanned<String>>>,
        nr_cpus: usize,
    ) -> Result<Option<Vec<u16>>, TopologyError> {
        let Some(lists) = lists else { return Ok(None) };
        let mut ids: Vec<Option<u16>> = vec![None; nr_cpus];
        if lists.len() > NR_CPUS_MAX {
            let what = format!("there are {} {key}", lists.len());
            let line = self.line(&lists[NR_CPUS_MAX]);
            return Err(TopologyError::new(what, format!("give at most {NR_CPUS_MAX}")).at_line(line));
        }
        for (id, list) in lists.iter().enumerate() {
            for cpu in self.mask(list, nr_cpus)?.iter() {
                if ids[cpu.index()].replace(id as u16).is_some() {
                    let what = format!("CPU {cpu} is in two of the {key}");
                    return Err(TopologyError::new(what, "name each CPU once").at_line(self.line(list)));
                }
            }
        }
        if let Some(cpu) = ids.iter().position(Option::is_none) {
            let line = lists.first().map_or(self.table_line, |list| self.line(list));
            let what = format!("CPU {cpu} is in none of the {key}");
            return Err(TopologyError::new(what, "name each CPU once, offline ones too").at_line(line));
        }
        Ok(Some(ids.into_iter().flatten().collect()))
    }

    fn mask(&self, list: &Spanned<String>, nr_cpus: usize) -> Result<CpuMask, TopologyError> {
        CpuMask::parse_list(list.get_ref(), nr_cpus).map_err(|what| {
            TopologyError::new(what, format!("the machine has cpus = {nr_cpus}")).at_line(self.line(list))
        })
    }

    fn size(&self, text: &Option<Spanned<String>>) -> Result<Option<u64>, TopologyError> {
        let Some(text) = text else { return Ok(None) };
        let wrong = || {
            TopologyError::new(format!("\"{}\" is not a size", text.get_ref()), "write one like 512K or 32M")
                .at_line(self.line(text))
        };
        size::parse(text.get_ref()).map(Some).ok_or_else(wrong)
    }

    fn line(&self, value: &Spanned<String>) -> usize {
        (self.line_at)(value.span().start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuId;

    #[test]
    fn lists_make_an_irregular_machine() {
        let text = r#"
            name = "other people's"
            [topology]
            cpus = 8
            nodes = ["0-5", "6-7"]
            cores = ["0,1", "2,3", "4", "5", "6", "7"]
            clusters = ["0-3", "4", "5", "6-7"]
            distances = [[10, 15], [15, 10]]
            capacities = [{ cpus = "4-7", capacity = 446 }]
            offline = "7"
            isolcpus = "3,6"
            l2_size = "1M"
            llc_size = "8M"
            [cost]
            whatever = 1
        "#;
        let t = Topology::from_toml("little.toml", text).unwrap();
        assert_eq!(t.core_mask(CpuId(1)).to_string(), "0-1");
        assert_eq!(t.cluster_mask(CpuId(0)).to_string(), "0-3");
        assert_eq!(t.llcs().iter().map(CpuMask::to_string).collect::<Vec<_>>(), ["0-5", "6-7"]);
        assert_eq!(t.packages().len(), 1);
        assert_eq!(t.distances(), [[10, 15], [15, 10]]);
        assert_eq!((t.cpu(CpuId(3)).capacity, t.cpu(CpuId(4)).capacity), (1024, 446));
        assert_eq!((t.online().to_string(), t.isolated().to_string()), ("0-6".into(), "3,6".into()));
        assert_eq!(t.cache_sizes(CpuId(0)).llc, Some(8 << 20));
        assert_eq!(t.reclaim_distance(), 30);
    }

    #[test]
    fn lists_and_a_regular_machine_agree() {
        let lists = r#"
            [topology]
            cpus = 8
            packages = ["0,2,4,6", "1,3,5,7"]
            nodes = ["0-7:2", "1-7:2"]
            cores = ["0,4", "1,5", "2,6", "3,7"]
            distances = [[10, 20], [20, 10]]
            reclaim_distance = 32
        "#;
        let regular = "[topology]\n\
            regular = \"2x1x2x2:smt=interleaved,sockets=interleaved,distance=10/20,reclaim=32\"";
        assert_eq!(Topology::from_toml("m", lists).unwrap(), Topology::from_toml("m", regular).unwrap());
    }

    #[test]
    fn a_fault_is_named_with_its_line() {
        let table = [
            ("", "m.toml:1: missing field `topology`; SEE"),
            ("[topology]\nregular = 3", "m.toml:2: invalid type: integer `3`, expected a string; SEE"),
            ("[topology]\ncors = []", "m.toml:2: unknown field `cors`, expected one of KEYS; SEE"),
            ("[topology", "m.toml:1: unclosed table, expected `]`; SEE"),
            (
                "[topology]\n\nregular = \"2x0\"",
                "m.toml:3: 2x0: \"0\" in \"2x0\" is not a number from 1 up; write sockets x LLCs x cores x threads, like 2x8x8x2",
            ),
            (
                "[topology]\nregular = \"2\"\ncpus = 2",
                "m.toml:2: \"regular\" cannot be combined with other keys; make them options of it, like regular = \"2x8:offline=3\"",
            ),
            (
                "# nothing\n[topology]",
                "m.toml:2: [topology] does not say how many CPUs there are; write cpus = 8 and the lists of its groups, or regular = \"2x8x8x2\"",
            ),
            ("[topology]\ncpus = 0", "m.toml:2: a machine of 0 CPUs; it may have 1 to 4096"),
            (
                "[topology]\ncpus = 4\nllcs = [\n\"0-2\",\n\"2-3\"]",
                "m.toml:5: CPU 2 is in two of the llcs; name each CPU once",
            ),
            (
                "[topology]\ncpus = 4\nllcs = [\"0-2\"]",
                "m.toml:3: CPU 3 is in none of the llcs; name each CPU once, offline ones too",
            ),
            (
                "[topology]\ncpus = 4\noffline = \"4\"",
                "m.toml:3: CPU 4 is outside 0-3; the machine has cpus = 4",
            ),
            (
                "[topology]\ncpus = 4\nl2_size = \"much\"",
                "m.toml:3: \"much\" is not a size; write one like 512K or 32M",
            ),
            (
                "[topology]\ncpus = 4\ncores = [\"0-1\", \"2-3\"]\nllcs = [\"0\", \"1-3\"]",
                "m.toml:1: CPUs 0 and 1 share one cluster but not one LLC; each cluster lies within one LLC",
            ),
        ];
        for (text, said) in table {
            let error = Topology::from_toml("m.toml", text).unwrap_err().to_string();
            let keys = "`regular`, `cpus`, `packages`, `dies`, `nodes`, `llcs`, `clusters`, `cores`, `distances`, \
                        `reclaim_distance`, `capacities`, `architecture`, `books`, `drawers`, `offline`, `isolcpus`, `l2_size`, `llc_size`";
            let see = "machines/README.md says what a [topology] has";
            assert_eq!(error, said.replace("SEE", see).replace("KEYS", keys));
        }
    }
}
