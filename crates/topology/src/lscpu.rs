//! A machine from `lscpu -p`, and the other way round.
//!
//! The last line that begins with `#` names the columns; any set that includes `CPU` is accepted. The table does not
//! contain dies, distances, cache sizes or capacities: a package counts as a die, and nodes have distance 20, which a
//! kernel assumes if the firmware provides none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::places::{self, Ids, Place, default_distances};
use crate::validate::NR_CPUS_MAX;
use crate::{Architecture, NodeId, Topology, TopologyError};

impl Topology {
    /// Reads what `lscpu -p` printed; `name` names the machine, and its file in errors.
    ///
    /// CPUs that are not listed are assumed to be offline.
    ///
    /// # Errors
    /// What cannot be read, with its line.
    pub fn from_lscpu(name: &str, text: &str) -> Result<Topology, TopologyError> {
        let listed = parse(text).map_err(|error| error.in_place(name))?;
        let (places, nr_nodes) = places(&listed);
        let architecture = cores_repeat(&listed).then_some(Architecture::Arm64);
        places::build(name, &places, default_distances(nr_nodes, 20), architecture)
    }

    /// Writes the table that `lscpu -p` would print, with a column `Online` and all CPUs, as by `lscpu -a`,
    /// if some are offline.
    pub fn to_lscpu(&self) -> String {
        let all_online = self.online().weight() == self.nr_cpus();
        let has_l2 = self.cpus().any(|(id, _)| self.cache_sizes(id).l2.is_some());
        let has_clusters = !has_l2 && self.cores() != self.clusters();
        let column = |shown: bool, name: &'static str| if shown { name } else { "" };
        let mut text = format!(
            "# CPU,Core,{}Socket,Node{},{},L3\n",
            column(has_clusters, "Cluster,"),
            column(!all_online, ",Online"),
            column(has_l2, ",L2"),
        );
        for (id, cpu) in self.cpus() {
            let _ = write!(text, "{id},{}", cpu.core);
            if has_clusters {
                let _ = write!(text, ",{}", cpu.cluster);
            }
            let _ = write!(text, ",{},{}", cpu.package, cpu.node);
            if !all_online {
                text += if cpu.online { ",Y" } else { ",N" };
            }
            text += ",";
            if has_l2 {
                let _ = write!(text, ",{}", cpu.cluster);
            }
            let _ = writeln!(text, ",{}", cpu.llc);
        }
        text
    }
}

const WAY_OUT: &str = "save the whole output of lscpu -p";

/// The meaning of a column; others are ignored.
#[derive(Clone, Copy, PartialEq)]
enum Column {
    Cpu,
    Core,
    Cluster,
    Socket,
    Node,
    Online,
    /// First-level data cache.
    L1d,
    /// Unified cache of this level.
    Cache(u32),
    Other,
}

impl Column {
    fn named(name: &str) -> Column {
        match name.trim().to_ascii_lowercase().as_str() {
            "cpu" => Column::Cpu,
            "core" => Column::Core,
            "cluster" => Column::Cluster,
            "socket" => Column::Socket,
            "node" => Column::Node,
            "online" => Column::Online,
            "l1d" => Column::L1d,
            name => match name.strip_prefix('l').and_then(|level| level.parse().ok()) {
                Some(level) => Column::Cache(level),
                None => Column::Other,
            },
        }
    }
}

/// One line of the table.
#[derive(Default)]
struct Row {
    cpu: u16,
    core: Option<u16>,
    cluster: Option<u16>,
    socket: Option<u16>,
    node: Option<u16>,
    is_offline: bool,
    l1d: Option<u16>,
    caches: BTreeMap<u32, u16>,
}

/// The rows by CPU number, none for a CPU that is not listed.
fn parse(text: &str) -> Result<Vec<Option<Row>>, TopologyError> {
    let mut columns = Vec::new();
    let mut rows: BTreeMap<u16, Row> = BTreeMap::new();
    for (i, line) in text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('#') {
            let names: Vec<Column> = header.split([',', ':']).map(Column::named).collect();
            if names.contains(&Column::Cpu) {
                columns = names;
            }
        } else if !line.is_empty() {
            let row = parse_row(line, &columns).map_err(|error| error.at_line(i + 1))?;
            let cpu = row.cpu;
            if rows.insert(cpu, row).is_some() {
                let what = format!("CPU {cpu} is listed twice");
                return Err(TopologyError::new(what, "list each CPU once").at_line(i + 1));
            }
        }
    }
    let Some(last) = rows.keys().next_back() else {
        return Err(TopologyError::new("no CPU is listed", WAY_OUT));
    };
    let mut listed: Vec<Option<Row>> = (0..=*last).map(|_| None).collect();
    for (cpu, row) in rows {
        listed[cpu as usize] = Some(row);
    }
    Ok(listed)
}

fn parse_row(line: &str, columns: &[Column]) -> Result<Row, TopologyError> {
    if columns.is_empty() {
        let what = "no line like \"# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\" comes before the first CPU";
        return Err(TopologyError::new(what, WAY_OUT));
    }
    let values: Vec<&str> = line.split([',', ':']).map(str::trim).collect();
    if values.len() != columns.len() {
        let what = format!("\"{line}\" has {} columns, the header {}", values.len(), columns.len());
        return Err(TopologyError::new(what, WAY_OUT));
    }
    let mut row = Row::default();
    let mut cpu = None;
    for (column, value) in columns.iter().zip(values) {
        if *column == Column::Online {
            row.is_offline = value.eq_ignore_ascii_case("n") || value.eq_ignore_ascii_case("no");
        }
        if matches!(column, Column::Other | Column::Online) || value.is_empty() || value == "-" {
            continue;
        }
        let number: u16 = value.parse().map_err(|_| {
            TopologyError::new(
                format!("\"{value}\" in \"{line}\" is not an id"),
                "an id is a number from 0 up",
            )
        })?;
        match column {
            Column::Cpu => cpu = Some(number),
            Column::Core => row.core = Some(number),
            Column::Cluster => row.cluster = Some(number),
            Column::Socket => row.socket = Some(number),
            Column::Node => row.node = Some(number),
            Column::L1d => row.l1d = Some(number),
            Column::Cache(level) => {
                row.caches.insert(*level, number);
            }
            Column::Online | Column::Other => {}
        }
    }
    row.cpu = cpu.filter(|&cpu| (cpu as usize) < NR_CPUS_MAX).ok_or_else(|| {
        let what = format!("\"{line}\" has no CPU number from 0 to {}", NR_CPUS_MAX - 1);
        TopologyError::new(what, WAY_OUT)
    })?;
    Ok(row)
}

/// Whether core ids repeat between clusters, as on phones: CPUs with the same id share neither a first- nor a
/// second-level cache.
///
/// If adjacent threads come in pairs and share no cache, a virtual machine describes its caches wrongly, and the kernel
/// uses the ids.
fn cores_repeat(listed: &[Option<Row>]) -> bool {
    let mut cores: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in listed.iter().flatten() {
        let Some(core) = row.core else { return false };
        cores.entry((row.socket, core)).or_default().push(row);
    }
    let apart = |get: fn(&Row) -> Option<u16>| {
        cores.values().all(|rows| {
            let ids: Option<BTreeSet<u16>> = rows.iter().map(|row| get(row)).collect();
            ids.is_some_and(|ids| ids.len() == rows.len())
        })
    };
    let in_pairs = cores.values().all(|rows| rows.len() == 2 && rows[0].cpu + 1 == rows[1].cpu);
    cores.values().any(|rows| rows.len() > 1)
        && !in_pairs
        && apart(|row| row.l1d)
        && (apart(|row| row.caches.get(&2).copied())
            || listed.iter().flatten().all(|row| row.caches.is_empty()))
}

/// `lscpu -y` numbers cores and clusters within the socket, so the socket becomes part of their ids.
fn places(listed: &[Option<Row>]) -> (Vec<Place>, usize) {
    let mut nodes: Vec<u16> = listed.iter().flatten().filter_map(|row| row.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let (mut cores, mut clusters, mut llcs) = (Ids::new(), Ids::new(), Ids::new());
    let repeat = cores_repeat(listed);
    let mut place = |row: &Row| Place {
        package: row.socket.map(u32::from),
        cluster: row.cluster.map(|cluster| clusters.id((row.socket, cluster)).into()),
        core: row.core.map(|core| cores.id((row.socket, core, repeat.then_some(row.cpu))).into()),
        l1: row.l1d.map(u32::from),
        l2: row.caches.get(&2).map(|&cache| cache.into()),
        llc: row.caches.last_key_value().map(|(&level, &cache)| llcs.id((level, cache)).into()),
        node: match row.node {
            Some(node) => nodes.binary_search(&node).ok().map(|node| NodeId(node as u16)),
            None => nodes.is_empty().then_some(NodeId(0)),
        },
        online: !row.is_offline,
        ..Place::default()
    };
    let places = listed.iter().map(|row| row.as_ref().map_or_else(Place::default, &mut place)).collect();
    (places, nodes.len().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuMask;

    fn lists(masks: &[CpuMask]) -> String {
        masks.iter().map(CpuMask::to_string).collect::<Vec<_>>().join(" ")
    }

    /// lscpu of util-linux 2.38, of the files written for `2x2x2x2:smt=interleaved,l2=1M`.
    const DUAL: &str = "\
# The following is the parsable format, which can be fed to other
# programs. Each different item in every column has an unique ID
# starting usually from zero.
# CPU,Core,Socket,Node,,L2,L3
0,0,0,0,,0,0
1,1,0,0,,1,0
2,2,0,0,,2,1
3,3,0,0,,3,1
4,4,1,1,,4,2
5,5,1,1,,5,2
6,6,1,1,,6,3
7,7,1,1,,7,3
8,0,0,0,,0,0
9,1,0,0,,1,0
10,2,0,0,,2,1
11,3,0,0,,3,1
12,4,1,1,,4,2
13,5,1,1,,5,2
14,6,1,1,,6,3
15,7,1,1,,7,3
";

    #[test]
    fn what_lscpu_prints_is_read_and_written() {
        let read = Topology::from_lscpu("m", DUAL).unwrap();
        let made = Topology::regular("2x2x2x2:smt=interleaved,distance=10/20,l2=1M").unwrap();
        assert_eq!(read, made.clone().with_cache_sizes(|_| Default::default()).unwrap().named("m"));
        let comments_left_out: String = DUAL.split_inclusive('\n').skip(3).collect();
        assert_eq!(made.to_lscpu(), comments_left_out);
    }

    #[test]
    fn any_columns_do_and_missing_ones_are_single() {
        let t = Topology::from_lscpu("m", "# CPU\n0\n1\n").unwrap();
        assert_eq!((lists(t.cores()), lists(t.llcs()), t.nr_nodes()), ("0 1".into(), "0-1".into(), 1));
        // Physical ids: cores are numbered within each socket, nodes have gaps.
        let text = "# CPU,CORE,MHZ,SOCKET,NODE,L1d:L1i:L2\n0,8,2000,1,0,0:0:0\n1,8,,2,8,1:1:1\n";
        let t = Topology::from_lscpu("m", text).unwrap();
        assert_eq!(
            (lists(t.cores()), lists(t.packages()), lists(t.nodes())),
            ("0 1".into(), "0 1".into(), "0 1".into())
        );
        assert_eq!(t.distances(), [[10, 20], [20, 10]]);
        let text = "# CPU,Core,Cluster,Socket,,L1d,L1i,L2,L3\n0,0,0,0,,0,0,0,0\n1,1,0,0,,1,1,1,0\n2,2,1,0,,2,2,2,0\n";
        assert_eq!(lists(Topology::from_lscpu("m", text).unwrap().clusters()), "0-1 2");
    }

    #[test]
    fn offline_cpus_and_clusters_have_columns() {
        let text = Topology::regular("1x1x4:cluster=2,offline=3").unwrap().to_lscpu();
        assert_eq!(
            text,
            "# CPU,Core,Cluster,Socket,Node,Online,,L3\n\
             0,0,0,0,0,Y,,0\n1,1,0,0,0,Y,,0\n2,2,1,0,0,Y,,0\n3,3,1,0,0,N,,0\n"
        );
    }

    #[test]
    fn cpus_without_a_place_are_offline() {
        let t = Topology::from_lscpu("m", "# CPU,Core,Socket,Online\n0,0,0,Y\n1,,,N\n3,1,0,Y\n").unwrap();
        assert_eq!((t.nr_cpus(), t.online().to_string()), (4, "0,3".to_string()));
        assert_eq!((lists(t.cores()), lists(t.packages())), ("0 1 2 3".into(), "0-3".into()));
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let table = [
            ("", "m: no CPU is listed; save the whole output of lscpu -p"),
            (
                "0,0,0,0\n",
                "m:1: no line like \"# CPU,Core,Socket,Node,,L1d,L1i,L2,L3\" comes before the first CPU; \
                 save the whole output of lscpu -p",
            ),
            ("# CPU,Core\n0\n", "m:2: \"0\" has 1 columns, the header 2; save the whole output of lscpu -p"),
            ("# CPU,Core\n0,zero\n", "m:2: \"zero\" in \"0,zero\" is not an id; an id is a number from 0 up"),
            (
                "# CPU\n4096\n",
                "m:2: \"4096\" has no CPU number from 0 to 4095; save the whole output of lscpu -p",
            ),
            ("# CPU\n0\n0\n", "m:3: CPU 0 is listed twice; list each CPU once"),
            (
                "# CPU,Node\n0,0\n1,\n",
                "m: CPU 1 is online and on no node; say the node of every CPU, or of none",
            ),
            ("# CPU,Core,Socket\n0,0,0\n1,0,1\n2,1,0\n", ""),
            (
                "# CPU,Core,Node\n0,0,0\n1,0,1\n",
                "m: CPUs 0 and 1 share one cluster but not one LLC; each cluster lies within one LLC",
            ),
        ];
        for (text, said) in table {
            match Topology::from_lscpu("m", text) {
                Ok(_) => assert_eq!(said, ""),
                Err(error) => assert_eq!(error.to_string(), said),
            }
        }
    }
}
