//! A machine from the XML of hwloc, as `lstopo --of xml` writes it (2.x and 1.x).
//!
//! The nesting of objects does not matter here, only the CPUs of each: in 2.x a NUMA node is beside the tree, in 1.x it
//! is part of it. A CPU of the machine without a PU is offline, or lstopo was not allowed to use it, which has the same
//! effect.

mod export;

use std::collections::BTreeMap;

use roxmltree::{Document, Node, ParsingOptions};

use crate::places::{self, Place, default_distances};
use crate::validate::{NR_CPUS_MAX, NR_NODES_MAX};
use crate::{Architecture, CpuId, CpuMask, NodeId, Topology, TopologyError};

/// More elements than a machine of 4096 CPUs has with all its devices.
const NR_ELEMENTS_MAX: u32 = 1_000_000;
/// Real files are some twenty deep.
const DEPTH_MAX: i32 = 256;
const WAY_OUT: &str = "save the machine with lstopo --of xml";

impl Topology {
    /// Reads an XML file of hwloc; `name` names the machine, and its file in errors.
    ///
    /// # Errors
    /// The file cannot be read or describes an impossible machine; with the line if there is one.
    pub fn from_hwloc(name: &str, xml: &str) -> Result<Topology, TopologyError> {
        let (places, distances, architecture) = parse(xml).map_err(|error| error.in_place(name))?;
        places::build(name, &places, distances, architecture)
    }
}

/// The role of an object for the scheduler.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Package,
    Die,
    Node,
    /// s390: sockets, and books.
    Book,
    Drawer,
    Cluster,
    Core,
    /// First-level data cache.
    L1,
    /// Unified cache of this level.
    Cache(u32),
    Pu,
}

struct Object {
    kind: Kind,
    os_index: Option<u64>,
    gp_index: Option<u64>,
    cpus: CpuMask,
    bytes: Option<u64>,
    /// PU: the node its memory is on, by the set of nodes of the whole machine.
    os_node: Option<u64>,
}

type Distances = Vec<Vec<u32>>;

/// Refuses XML that no machine's file contains and that would exhaust the parser's stack or memory.
fn check_form(xml: &str) -> Result<(), TopologyError> {
    let wrong = |what: String, offset: usize| {
        let line = xml[..offset].matches('\n').count() + 1;
        Err(TopologyError::new(what, WAY_OUT).at_line(line))
    };
    if let Some(offset) = xml.find("<!ENTITY") {
        return wrong("entities are not read".to_owned(), offset);
    }
    let mut depth = 0;
    for (offset, _) in xml.match_indices('<') {
        let rest = &xml[offset + 1..];
        if rest.starts_with('/') {
            depth -= 1;
        } else if !rest.starts_with(['!', '?']) && !rest[..rest.find('>').unwrap_or(0)].ends_with('/') {
            depth += 1;
            if depth > DEPTH_MAX {
                return wrong(format!("elements are nested more than {DEPTH_MAX} deep"), offset);
            }
        }
    }
    Ok(())
}

fn parse(xml: &str) -> Result<(Vec<Place>, Distances, Option<Architecture>), TopologyError> {
    check_form(xml)?;
    let options =
        ParsingOptions { allow_dtd: true, nodes_limit: NR_ELEMENTS_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(xml, options)
        .map_err(|error| TopologyError::new(error.to_string(), WAY_OUT).at_line(error.pos().row as usize))?;
    let root = document.root_element();
    if !root.has_tag_name("topology") {
        let what = format!("the outermost element is <{}>, not <topology>", root.tag_name().name());
        return Err(TopologyError::new(what, WAY_OUT));
    }
    let objects = root.descendants().filter(|node| node.has_tag_name("object"));
    let objects: Vec<Object> =
        objects.filter_map(|node| object(node).transpose()).collect::<Result<_, _>>()?;

    let machine = root.children().find(|node| node.has_tag_name("object"));
    let machine_mask = |attribute: &str| {
        let text = machine.and_then(|node| node.attribute(attribute))?;
        CpuMask::parse_hex(text, NR_CPUS_MAX).ok()
    };
    let mut online = CpuMask::new(NR_CPUS_MAX);
    for pu in objects.iter().filter(|object| object.kind == Kind::Pu) {
        online.or_with(&pu.cpus);
    }
    let complete = machine_mask("complete_cpuset").unwrap_or_default();
    let Some(last) = online.iter().chain(complete.iter()).max() else {
        return Err(TopologyError::new("there is no PU", WAY_OUT));
    };
    if let Some(allowed) = machine_mask("online_cpuset") {
        online.and_with(&allowed);
    }
    let nr_cpus = last.index() + 1;
    let (node_of, distances) = nodes(root, &objects, nr_cpus)?;
    let mut places = places(&objects, &node_of, &online);
    set_capacities(root, &mut places)?;
    let architecture = root
        .descendants()
        .filter(|node| node.has_tag_name("info") && node.attribute("name") == Some("Architecture"))
        .find_map(|node| Architecture::named(node.attribute("value")?));
    let has_books = objects.iter().any(|object| object.kind == Kind::Book);
    Ok((places, distances, architecture.or(has_books.then_some(Architecture::S390))))
}

fn line_of(node: Node) -> usize {
    node.document().text_pos_at(node.range().start).row as usize
}

/// An object that has CPUs and is of interest.
fn object(node: Node) -> Result<Option<Object>, TopologyError> {
    let number = |attribute: &str| node.attribute(attribute).and_then(|text| text.parse::<u64>().ok());
    // 0 is unified, 1 of data, 2 of instructions. Second-level caches of data alone exist (Xeon Phi).
    let has_data = number("cache_type").unwrap_or(0) != 2;
    let info = |name: &str| {
        let infos = node.children().filter(|child| child.has_tag_name("info"));
        infos.filter(|child| child.attribute("name") == Some(name)).find_map(|child| child.attribute("value"))
    };
    // The kernel does not count a cache in front of memory as a CPU cache.
    if [node.attribute("subtype"), info("Type")].contains(&Some("MemorySideCache")) {
        return Ok(None);
    }
    let named = |names: &[&str]| {
        [node.attribute("subtype"), info("Type")].iter().flatten().any(|name| names.contains(name))
    };
    let kind = match node.attribute("type").unwrap_or_default() {
        "Package" | "Socket" => Kind::Package,
        "Die" => Kind::Die,
        "NUMANode" | "Node" => Kind::Node,
        "Group" if named(&["Cluster"]) => Kind::Cluster,
        "Group" if named(&["Book"]) => Kind::Book,
        "Group" if named(&["Drawer"]) => Kind::Drawer,
        "Core" => Kind::Core,
        "PU" => Kind::Pu,
        "L1Cache" => Kind::L1,
        "L2Cache" if has_data => Kind::Cache(2),
        "L3Cache" if has_data => Kind::Cache(3),
        "L4Cache" if has_data => Kind::Cache(4),
        "L5Cache" if has_data => Kind::Cache(5),
        "Cache" => match (number("depth"), number("cache_type").unwrap_or(0)) {
            (Some(1), 0 | 1) => Kind::L1,
            (Some(level), 0 | 1) => Kind::Cache(level as u32),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let wrong = |what: String| TopologyError::new(what, WAY_OUT).at_line(line_of(node));
    let os_index = number("os_index");
    let cpus = if kind == Kind::Pu {
        let Some(cpu) = os_index.filter(|&cpu| cpu < NR_CPUS_MAX as u64) else {
            return Err(wrong(format!("a PU has no os_index from 0 to {}", NR_CPUS_MAX - 1)));
        };
        CpuMask::one(NR_CPUS_MAX, CpuId(cpu as u16))
    } else {
        let text = node.attribute("complete_cpuset").or(node.attribute("cpuset")).unwrap_or_default();
        CpuMask::parse_hex(text, NR_CPUS_MAX).map_err(wrong)?
    };
    let bytes = number("cache_size").filter(|&bytes| bytes > 0);
    let nodeset =
        |attribute: &str| CpuMask::parse_hex(node.attribute(attribute)?, NR_NODES_MAX).ok()?.first();
    let os_node = nodeset("complete_nodeset").or_else(|| nodeset("nodeset"));
    let os_node = os_node.filter(|_| kind == Kind::Pu).map(|node| node.index() as u64);
    Ok(Some(Object { kind, os_index, gp_index: number("gp_index"), cpus, bytes, os_node }))
}

/// Each CPU's node, where known, and the distances. Nodes are numbered by os_index without gaps.
fn nodes(
    root: Node,
    objects: &[Object],
    nr_cpus: usize,
) -> Result<(Vec<Option<NodeId>>, Distances), TopologyError> {
    let mut nodes: Vec<&Object> = objects.iter().filter(|object| object.kind == Kind::Node).collect();
    nodes.sort_by_key(|node| node.os_index);
    if nodes.is_empty() {
        return Ok((vec![Some(NodeId(0)); nr_cpus], vec![vec![10]]));
    }
    if nodes.len() > NR_NODES_MAX {
        return Err(TopologyError::new(format!("there are {} NUMA nodes", nodes.len()), WAY_OUT));
    }
    // Inside a cpuset lstopo leaves out the nodes that are not allowed, but not the CPUs on them.
    let mut cpus_of: BTreeMap<u64, CpuMask> = BTreeMap::new();
    let mut listed = CpuMask::new(NR_CPUS_MAX);
    nodes.iter().for_each(|node| listed.or_with(&node.cpus));
    for pu in objects.iter().filter(|object| object.kind == Kind::Pu && !object.cpus.is_subset(&listed)) {
        let Some(os_node) = pu.os_node else { continue };
        cpus_of.entry(os_node).or_insert_with(|| CpuMask::new(NR_CPUS_MAX)).or_with(&pu.cpus);
    }
    let denied = |(os_node, cpus)| Object {
        kind: Kind::Node,
        os_index: Some(os_node),
        gp_index: None,
        cpus,
        bytes: None,
        os_node: None,
    };
    let denied: Vec<Object> = cpus_of
        .into_iter()
        .filter(|(os_node, _)| nodes.iter().all(|node| node.os_index != Some(*os_node)))
        .map(denied)
        .collect();
    nodes.extend(&denied);
    nodes.sort_by_key(|node| node.os_index);
    let mut node_of = vec![None; nr_cpus];
    for (id, node) in nodes.iter().enumerate() {
        for cpu in node.cpus.iter().filter(|cpu| cpu.index() < nr_cpus) {
            // The kernel treats memory of another kind near the same CPUs as a node without CPUs.
            node_of[cpu.index()].get_or_insert(NodeId(id as u16));
        }
    }
    let distances = match distances_v2(root, &nodes)? {
        Some(distances) => Some(distances),
        None => distances_v1(root, nodes.len()),
    };
    Ok((node_of, distances.unwrap_or_else(|| default_distances(nodes.len(), 20))))
}

/// The kernel's distances in the form of 2.x: indexes of nodes, then the values row by row.
fn distances_v2(root: Node, nodes: &[&Object]) -> Result<Option<Distances>, TopologyError> {
    const MEANS_LATENCY: u64 = 4;
    let is_latency = |node: &Node| {
        let kind = node.attribute("kind").and_then(|kind| kind.parse::<u64>().ok()).unwrap_or(0);
        node.attribute("type") == Some("NUMANode")
            && (node.attribute("name") == Some("NUMALatency") || kind & MEANS_LATENCY != 0)
    };
    let table = root.children().filter(|node| node.has_tag_name("distances2")).find(is_latency);
    let Some(table) = table else { return Ok(None) };
    let numbers = |tag: &str| -> Vec<u64> {
        let parts = table.children().filter(|node| node.has_tag_name(tag)).filter_map(|node| node.text());
        parts.flat_map(str::split_whitespace).filter_map(|number| number.parse().ok()).collect()
    };
    let indexes = numbers("indexes");
    let values = numbers("u64values");
    let wrong = |what: String| TopologyError::new(what, WAY_OUT).at_line(line_of(table));
    if values.len() != indexes.len() * indexes.len() {
        return Err(wrong(format!("{} distances for {} nodes", values.len(), indexes.len())));
    }
    let by_gp = table.attribute("indexing") == Some("gp");
    let mut rows = default_distances(nodes.len(), 20);
    let place = |index: u64| {
        let found = nodes.iter().position(|n| (if by_gp { n.gp_index } else { n.os_index }) == Some(index));
        found.ok_or_else(|| wrong(format!("distances of a node {index} that is not there")))
    };
    let places: Vec<usize> = indexes.iter().map(|&index| place(index)).collect::<Result<_, _>>()?;
    for (i, &from) in places.iter().enumerate() {
        for (j, &to) in places.iter().enumerate() {
            rows[from][to] = u32::try_from(values[i * places.len() + j]).unwrap_or(u32::MAX);
        }
    }
    Ok(Some(rows))
}

/// Distances in the form of 1.x, if their number of objects is the number of nodes.
fn distances_v1(root: Node, nr_nodes: usize) -> Option<Distances> {
    let number = |node: Node, name: &str| node.attribute(name).and_then(|text| text.parse::<f64>().ok());
    let table = root
        .descendants()
        .filter(|node| node.has_tag_name("distances"))
        .find(|node| number(*node, "nbobjs") == Some(nr_nodes as f64))?;
    let base = number(table, "latency_base").unwrap_or(1.0);
    let latencies = table.children().filter(|node| node.has_tag_name("latency"));
    let values: Vec<u32> = latencies
        .filter_map(|node| number(node, "value"))
        .map(|value| (value * base).round() as u32)
        .collect();
    (values.len() == nr_nodes * nr_nodes).then(|| values.chunks(nr_nodes).map(<[u32]>::to_vec).collect())
}

/// The objects that contain each CPU, as indices; later ones are narrower.
fn places(objects: &[Object], node_of: &[Option<NodeId>], online: &CpuMask) -> Vec<Place> {
    let place = |(cpu, &node): (usize, &Option<NodeId>)| {
        let online = online.contains(CpuId::from(cpu));
        Place { node, online, ..Place::default() }
    };
    let mut places: Vec<Place> = node_of.iter().enumerate().map(place).collect();
    let nr_cpus = places.len();
    let mut levels = vec![0; nr_cpus];
    for (id, object) in objects.iter().enumerate() {
        let id = Some(id as u32);
        for cpu in object.cpus.iter().filter(|cpu| cpu.index() < nr_cpus) {
            let place = &mut places[cpu.index()];
            match object.kind {
                Kind::Package => place.package = id,
                Kind::Book => place.book = id,
                Kind::Drawer => place.drawer = id,
                Kind::Die => place.die = id,
                Kind::Cluster => place.cluster = id,
                Kind::Core => place.core = id,
                Kind::L1 => place.l1 = id,
                Kind::Cache(level) => {
                    if level == 2 {
                        place.l2 = id;
                        place.sizes.l2 = object.bytes;
                    }
                    if level > levels[cpu.index()] {
                        levels[cpu.index()] = level;
                        place.llc = id;
                        place.sizes.llc = object.bytes;
                    }
                }
                Kind::Node | Kind::Pu => {}
            }
        }
    }
    places
}

/// Capacities are a property of kinds of CPUs, since hwloc 2.9.
fn set_capacities(root: Node, places: &mut [Place]) -> Result<(), TopologyError> {
    for kind in root.children().filter(|node| node.has_tag_name("cpukind")) {
        let info = kind.children().find(|node| node.attribute("name") == Some("LinuxCapacity"));
        let Some(text) = info.and_then(|info| info.attribute("value")) else { continue };
        let wrong = |what: String| TopologyError::new(what, WAY_OUT).at_line(line_of(kind));
        let capacity = text.parse().map_err(|_| wrong(format!("\"{text}\" is not a capacity")))?;
        let mask = kind.attribute("cpuset").unwrap_or_default();
        for cpu in CpuMask::parse_hex(mask, places.len()).map_err(wrong)?.iter() {
            places[cpu.index()].capacity = Some(capacity);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `<object>` elements inside a topology, and the expected error.
    #[track_caller]
    fn check_refused(inside: &str, said: &str) {
        let xml = format!("<topology version=\"2.0\">\n{inside}\n</topology>");
        assert_eq!(Topology::from_hwloc("m.xml", &xml).unwrap_err().to_string(), said);
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let refused = |xml: &str| Topology::from_hwloc("m.xml", xml).unwrap_err().to_string();
        assert_eq!(
            refused("<topology>\n<object type=PU/>"),
            "m.xml:2: expected a quote not 'P' at 2:14; save the machine with lstopo --of xml"
        );
        assert_eq!(
            refused("<html/>"),
            "m.xml: the outermost element is <html>, not <topology>; save the machine with lstopo --of xml"
        );
        check_refused("", "m.xml: there is no PU; save the machine with lstopo --of xml");
        check_refused(
            "<object type=\"PU\"/>",
            "m.xml:2: a PU has no os_index from 0 to 4095; save the machine with lstopo --of xml",
        );
        check_refused(
            "\n<object type=\"Core\" cpuset=\"0xf...f\"/>",
            "m.xml:3: cannot read mask part \"0xf...f\"; write it like 0x000000ff; save the machine with lstopo --of xml",
        );
        check_refused(
            "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\"/><object type=\"PU\" os_index=\"1\"/>",
            "m.xml: CPU 1 is online and on no node; say the node of every CPU, or of none",
        );
        let two = "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x1\"/>\
                   <object type=\"NUMANode\" os_index=\"1\" cpuset=\"0x2\"/>\
                   <object type=\"PU\" os_index=\"0\"/><object type=\"PU\" os_index=\"1\"/>";
        let table = |indexes: &str, values: &str| {
            format!(
                "{two}\n<distances2 type=\"NUMANode\" name=\"NUMALatency\"><indexes>{indexes}</indexes>\
                 <u64values>{values}</u64values></distances2>"
            )
        };
        check_refused(
            &table("0 1", "10 20 20"),
            "m.xml:3: 3 distances for 2 nodes; save the machine with lstopo --of xml",
        );
        check_refused(
            &table("0 2", "10 20 20 10"),
            "m.xml:3: distances of a node 2 that is not there; save the machine with lstopo --of xml",
        );
        check_refused(
            &table("0 1", "10 300 20 10"),
            "m.xml: nodes 0 and 1 are at distance 300; a distance is 10 (local) to 254",
        );
        check_refused(
            "<object type=\"PU\" os_index=\"0\"/><cpukind cpuset=\"0x1\"><info name=\"LinuxCapacity\" value=\"big\"/></cpukind>",
            "m.xml:2: \"big\" is not a capacity; save the machine with lstopo --of xml",
        );
    }

    #[test]
    fn files_of_lstopo_are_read() {
        // Written by lstopo 2.9 for the sysfs of this machine; 1.x has no capacities.
        let made = "2x1x2x2:smt=interleaved,sockets=interleaved,distance=10/32,l2=1M,llc=8M";
        let v2 = Topology::from_hwloc("m", include_str!("../tests/data/lstopo-2.9.xml")).unwrap();
        let with_capacities = Topology::regular(&format!("{made},capacity=0/446,capacity=4/446")).unwrap();
        assert_eq!(v2, with_capacities.named("m"));
        let v1 = Topology::from_hwloc("m", include_str!("../tests/data/lstopo-2.9-v1.xml")).unwrap();
        assert_eq!(v1, Topology::regular(made).unwrap().named("m"));
    }

    #[test]
    fn memory_without_cpus_of_its_own_is_a_node() {
        let xml = "<topology><object type=\"Machine\" cpuset=\"0x3\">\
                   <object type=\"NUMANode\" os_index=\"4\" cpuset=\"0x3\"/>\
                   <object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x3\"/>\
                   <object type=\"NUMANode\" os_index=\"8\" cpuset=\"0x0\"/>\
                   <object type=\"PU\" os_index=\"0\"/><object type=\"PU\" os_index=\"1\"/></object></topology>";
        let t = Topology::from_hwloc("m", xml).unwrap();
        let nodes: Vec<_> = t.nodes().iter().map(CpuMask::to_string).collect();
        assert_eq!(nodes, ["0-1", "", ""]);
    }
}
