//! The XML of a machine that hwloc 2.x reads: `lstopo -i FILE`.
//!
//! hwloc's objects form a tree by their CPUs, so ours are inserted from the widest to the narrowest. hwloc has no
//! objects without an online CPU, so such objects are left out.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::nest::{Parent, nest};
use crate::{CpuId, CpuMask, NodeId, Topology, TopologyError};

impl Topology {
    /// Writes the XML that [`Topology::from_hwloc`] and hwloc 2.x read. Cores without an online CPU and the reclaim
    /// distance are lost.
    ///
    /// # Errors
    /// Two groups of CPUs overlap without one containing the other, such as a package and an LLC.
    pub fn to_hwloc(&self) -> Result<String, TopologyError> {
        let mut tree = Tree::new(self);
        for (i, mask) in self.drawers().iter().enumerate() {
            tree.add(Rank::Drawer, mask, i, " subtype=\"Drawer\"");
        }
        for (i, mask) in self.books().iter().enumerate() {
            tree.add(Rank::Book, mask, i, " subtype=\"Book\"");
        }
        for (i, mask) in self.packages().iter().enumerate() {
            tree.add(Rank::Package, mask, i, "");
        }
        for (i, mask) in self.dies().iter().enumerate().filter(|_| self.dies() != self.packages()) {
            tree.add(Rank::Die, mask, i, "");
        }
        for (node, mask) in self.nodes().iter().enumerate() {
            tree.add_node(node, mask);
        }
        let cache = |depth: u32, bytes: Option<u64>| {
            let bytes = bytes.unwrap_or(0);
            format!(
                " cache_size=\"{bytes}\" depth=\"{depth}\" cache_linesize=\"64\" cache_associativity=\"0\" cache_type=\"0\""
            )
        };
        let sizes = |mask: &CpuMask| mask.first().map(|cpu| self.cache_sizes(cpu)).unwrap_or_default();
        for (i, mask) in self.llcs().iter().enumerate() {
            tree.add(Rank::L3Cache, mask, i, &cache(3, sizes(mask).llc));
        }
        for (i, mask) in self.clusters().iter().enumerate() {
            let bytes = sizes(mask).l2;
            if bytes.is_some() || self.clusters() != self.cores() {
                tree.add(Rank::L2Cache, mask, i, &cache(2, bytes));
            }
        }
        for (i, mask) in self.cores().iter().enumerate() {
            tree.add(Rank::Core, mask, i, "");
        }
        for cpu in self.online().iter() {
            tree.add(Rank::Pu, &CpuMask::one(self.nr_cpus(), cpu), cpu.index(), "");
        }
        tree.link().map_err(|error| error.in_place(&self.name))?;
        Ok(self.write(&tree))
    }

    fn write(&self, tree: &Tree) -> String {
        let mut xml =
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n\
                       <topology version=\"2.0\">\n"
                .to_string();
        tree.write(&mut xml, 0, 1);
        if self.nr_nodes() > 1 {
            let numbers = |tag: &str, numbers: &mut dyn Iterator<Item = u32>| {
                let numbers: Vec<String> = numbers.map(|number| format!("{number} ")).collect();
                let lines = numbers.chunks(10).map(<[String]>::concat);
                lines
                    .map(|line| format!("    <{tag} length=\"{}\">{line}</{tag}>\n", line.len()))
                    .collect::<String>()
            };
            let _ = writeln!(
                xml,
                "  <distances2 type=\"NUMANode\" nbobjs=\"{}\" kind=\"5\" name=\"NUMALatency\" indexing=\"os\">",
                self.nr_nodes()
            );
            xml += &numbers("indexes", &mut (0..self.nr_nodes() as u32));
            xml += &numbers("u64values", &mut self.distances().iter().flatten().copied());
            xml += "  </distances2>\n";
        }
        let mut kinds: BTreeMap<u16, CpuMask> = BTreeMap::new();
        for (id, cpu) in self.cpus().filter(|(_, cpu)| cpu.online) {
            kinds.entry(cpu.capacity).or_insert_with(|| CpuMask::new(self.nr_cpus())).set(id);
        }
        for (rank, (capacity, mask)) in kinds.iter().enumerate().filter(|_| kinds.len() > 1) {
            let _ = writeln!(
                xml,
                "  <cpukind cpuset=\"{}\" forced_efficiency=\"{rank}\">\n    \
                 <info name=\"LinuxCapacity\" value=\"{capacity}\"/>\n  </cpukind>",
                mask.to_hex("0x")
            );
        }
        xml += "</topology>\n";
        xml
    }
}

/// Kinds of objects from the outermost, if several have the same CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Machine,
    Drawer,
    Book,
    Group,
    Package,
    Die,
    L3Cache,
    L2Cache,
    Core,
    Pu,
}

struct Object {
    rank: Rank,
    os_index: usize,
    mask: CpuMask,
    attributes: String,
    children: Vec<usize>,
    nodes: Vec<usize>,
}

struct Tree<'a> {
    topology: &'a Topology,
    objects: Vec<Object>,
}

impl Tree<'_> {
    fn new(topology: &Topology) -> Tree<'_> {
        let mut tree = Tree { topology, objects: Vec::new() };
        tree.add(Rank::Machine, &CpuMask::all(topology.nr_cpus()), 0, "");
        tree
    }

    fn add(&mut self, rank: Rank, mask: &CpuMask, os_index: usize, attributes: &str) {
        if mask.intersects(self.topology.online()) {
            let (mask, attributes) = (mask.clone(), attributes.to_string());
            self.objects.push(Object {
                rank,
                os_index,
                mask,
                attributes,
                children: Vec::new(),
                nodes: Vec::new(),
            });
        }
    }

    /// Attaches a node to the package, die or machine of the same CPUs, or to a group made for it.
    fn add_node(&mut self, node: usize, mask: &CpuMask) {
        let same =
            |object: &Object| object.mask == *mask || (mask.is_empty() && object.rank == Rank::Machine);
        let holder = match self.objects.iter().rposition(same) {
            Some(holder) => holder,
            None => {
                self.add(Rank::Group, mask, node, " kind=\"1001\" subkind=\"0\"");
                self.objects.iter().rposition(same).unwrap_or(0)
            }
        };
        self.objects[holder].nodes.push(node);
    }

    /// Sets each object's parent: the narrowest that contains it.
    fn link(&mut self) -> Result<(), TopologyError> {
        self.objects.sort_by_key(|object| object.rank);
        for (i, parent) in nest(self.objects.iter().map(|object| &object.mask)).into_iter().enumerate() {
            match parent {
                Parent::None => {}
                Parent::Set(parent) => self.objects[parent].children.push(i),
                Parent::Overlaps(other) => {
                    let (object, other) = (&self.objects[i], &self.objects[other]);
                    return Err(TopologyError::new(
                        format!(
                            "hwloc has no machine where a {:?} of CPUs {} and a {:?} of {} overlap",
                            object.rank, object.mask, other.rank, other.mask
                        ),
                        "export it as sysfs",
                    ));
                }
            }
        }
        for i in 0..self.objects.len() {
            let mut children = std::mem::take(&mut self.objects[i].children);
            children.sort_by_key(|&child| self.objects[child].mask.first());
            self.objects[i].children = children;
        }
        Ok(())
    }

    fn write(&self, xml: &mut String, at: usize, depth: usize) {
        let object = &self.objects[at];
        let kind = match object.rank {
            Rank::Pu => "PU".to_string(),
            Rank::Book | Rank::Drawer => "Group".to_string(),
            rank => format!("{rank:?}"),
        };
        let indent = "  ".repeat(depth);
        let online = object.mask.and(self.topology.online());
        let _ = write!(xml, "{indent}<object type=\"{kind}\"");
        if object.rank != Rank::Group {
            let _ = write!(xml, " os_index=\"{}\"", object.os_index);
        }
        self.write_sets(xml, &object.mask, &online, &self.nodeset(object));
        if object.rank == Rank::Machine {
            let nodes = self.nodeset(object);
            let _ = write!(xml, " allowed_cpuset=\"{}\" allowed_nodeset=\"{nodes}\"", online.to_hex("0x"));
        }
        let _ = write!(xml, " gp_index=\"{}\"{}", at + 1, object.attributes);
        if object.children.is_empty() && object.nodes.is_empty() {
            *xml += "/>\n";
            return;
        }
        *xml += ">\n";
        if object.rank == Rank::Machine {
            let name = self.topology.architecture().name();
            let _ = writeln!(xml, "{indent}  <info name=\"Architecture\" value=\"{name}\"/>");
        }
        for &node in &object.nodes {
            let mask = &self.topology.nodes()[node];
            let set = one_node(node, self.topology.nr_nodes());
            let _ = write!(xml, "{indent}  <object type=\"NUMANode\" os_index=\"{node}\"");
            self.write_sets(xml, mask, &mask.and(self.topology.online()), &set);
            let _ = writeln!(xml, " gp_index=\"{}\" local_memory=\"0\"/>", self.objects.len() + 1 + node);
        }
        for &child in &object.children {
            self.write(xml, child, depth + 1);
        }
        let _ = writeln!(xml, "{indent}</object>");
    }

    fn write_sets(&self, xml: &mut String, complete: &CpuMask, online: &CpuMask, nodes: &str) {
        let _ = write!(
            xml,
            " cpuset=\"{}\" complete_cpuset=\"{}\" nodeset=\"{nodes}\" complete_nodeset=\"{nodes}\"",
            online.to_hex("0x"),
            complete.to_hex("0x")
        );
    }

    /// The nodes of an object's CPUs; the machine also has those without a CPU.
    fn nodeset(&self, object: &Object) -> String {
        let nr_nodes = self.topology.nr_nodes();
        let mut set = CpuMask::new(nr_nodes);
        if object.rank == Rank::Machine {
            set = CpuMask::all(nr_nodes);
        }
        for cpu in object.mask.iter() {
            let NodeId(node) = self.topology.cpu(cpu).node;
            set.set(CpuId(node));
        }
        set.to_hex("0x")
    }
}

fn one_node(node: usize, nr_nodes: usize) -> String {
    CpuMask::one(nr_nodes, CpuId::from(node)).to_hex("0x")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpu;

    #[test]
    fn a_small_machine_is_written_whole() {
        let xml = Topology::regular("1x2x1x2:l2=1M,capacity=0-1/512,offline=3").unwrap().to_hwloc().unwrap();
        expect_test::expect![[r#"
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE topology SYSTEM "hwloc2.dtd">
            <topology version="2.0">
              <object type="Machine" os_index="0" cpuset="0x00000007" complete_cpuset="0x0000000f" nodeset="0x00000001" complete_nodeset="0x00000001" allowed_cpuset="0x00000007" allowed_nodeset="0x00000001" gp_index="1">
                <info name="Architecture" value="x86_64"/>
                <object type="Package" os_index="0" cpuset="0x00000007" complete_cpuset="0x0000000f" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="2">
                  <object type="NUMANode" os_index="0" cpuset="0x00000007" complete_cpuset="0x0000000f" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="12" local_memory="0"/>
                  <object type="L3Cache" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="3" cache_size="0" depth="3" cache_linesize="64" cache_associativity="0" cache_type="0">
                    <object type="L2Cache" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="5" cache_size="1048576" depth="2" cache_linesize="64" cache_associativity="0" cache_type="0">
                      <object type="Core" os_index="0" cpuset="0x00000003" complete_cpuset="0x00000003" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="7">
                        <object type="PU" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="9"/>
                        <object type="PU" os_index="1" cpuset="0x00000002" complete_cpuset="0x00000002" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="10"/>
                      </object>
                    </object>
                  </object>
                  <object type="L3Cache" os_index="1" cpuset="0x00000004" complete_cpuset="0x0000000c" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="4" cache_size="0" depth="3" cache_linesize="64" cache_associativity="0" cache_type="0">
                    <object type="L2Cache" os_index="1" cpuset="0x00000004" complete_cpuset="0x0000000c" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="6" cache_size="1048576" depth="2" cache_linesize="64" cache_associativity="0" cache_type="0">
                      <object type="Core" os_index="1" cpuset="0x00000004" complete_cpuset="0x0000000c" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="8">
                        <object type="PU" os_index="2" cpuset="0x00000004" complete_cpuset="0x00000004" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="11"/>
                      </object>
                    </object>
                  </object>
                </object>
              </object>
              <cpukind cpuset="0x00000003" forced_efficiency="0">
                <info name="LinuxCapacity" value="512"/>
              </cpukind>
              <cpukind cpuset="0x00000004" forced_efficiency="1">
                <info name="LinuxCapacity" value="1024"/>
              </cpukind>
            </topology>
        "#]].assert_eq(&xml);
    }

    #[test]
    fn groups_that_only_overlap_are_refused() {
        let t = Topology::regular("1x2x2").unwrap();
        let odd =
            |(id, cpu): (CpuId, &Cpu)| Cpu { package: (id.0 == 1) as u16, die: (id.0 == 1) as u16, ..*cpu };
        let t = Topology::new("m", t.cpus().map(odd).collect(), vec![vec![10]]).unwrap();
        assert_eq!(
            t.to_hwloc().unwrap_err().to_string(),
            "m: hwloc has no machine where a L3Cache of CPUs 0-1 and a Package of 0,2-3 overlap; export it as sysfs"
        );
    }
}
