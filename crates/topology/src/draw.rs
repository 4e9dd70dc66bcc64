//! A machine as text: a tree of packages, nodes, LLCs and cores.
//!
//! Groups with the same CPUs share a line, and so do identical neighbours below packages and nodes; their content is
//! drawn for the first of them. Only online CPUs are in the tree.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::nest::{Parent, nest};
use crate::{CpuId, CpuMask, Topology, size};

/// The width to which lists of CPUs are wrapped if no other is given.
const WIDTH: usize = 100;
/// Maximum number of lines of lists that are shown in full.
const NR_LINES: usize = 4;

impl Topology {
    /// Draws the machine, its distances, and what is unusual about it.
    pub fn draw(&self) -> String {
        self.draw_within(WIDTH)
    }

    /// The same, with lists of CPUs wrapped to this many columns.
    pub fn draw_within(&self, width: usize) -> String {
        let tree = Tree::new(self, width);
        let mut text = self.headline();
        for root in tree.roots() {
            tree.draw(&mut text, &[root], 0, "");
        }
        for (group, parent) in tree.groups.iter().zip(&tree.parents) {
            if matches!(parent, Parent::Overlaps(_)) {
                let _ = writeln!(text, "across others, {}: {}", group.label(), group.cpus);
            }
        }
        self.draw_exceptions(&mut text);
        self.draw_distances(&mut text);
        text
    }

    fn headline(&self) -> String {
        let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let count = |masks: &[CpuMask], what: &str| {
            plural(masks.iter().filter(|mask| mask.intersects(self.online())).count(), what)
        };
        let threads: Vec<usize> = self.cores().iter().map(|core| core.weight_and(self.online())).collect();
        let most = threads.iter().max().copied().unwrap_or(0);
        let fewest = threads.iter().copied().filter(|&n| n > 0).min().unwrap_or(0);
        let threads = match (fewest, most) {
            (1, 1) => String::new(),
            (a, b) if a == b => format!(" of {a} threads"),
            (a, b) => format!(" of {a} to {b} threads"),
        };
        format!(
            "{}: {}, {}, {}, {}, {}{threads}\n",
            self.name,
            plural(self.online().weight(), "CPU"),
            count(self.packages(), "package"),
            count(self.nodes(), "node"),
            count(self.llcs(), "LLC"),
            count(self.cores(), "core"),
        )
    }

    fn draw_exceptions(&self, text: &mut String) {
        let mut capacities: BTreeMap<u16, CpuMask> = BTreeMap::new();
        for (id, cpu) in self.cpus() {
            capacities.entry(cpu.capacity).or_insert_with(|| CpuMask::new(self.nr_cpus())).set(id);
        }
        for (capacity, cpus) in capacities.iter().filter(|_| capacities.len() > 1) {
            let _ = writeln!(text, "capacity {capacity}: {cpus}");
        }
        let mut offline = CpuMask::all(self.nr_cpus());
        offline.remove_all(self.online());
        if !offline.is_empty() {
            let _ = writeln!(text, "offline: {offline}");
        }
        if !self.isolated().is_empty() {
            let _ = writeln!(text, "isolated: {}", self.isolated());
        }
        for (node, _) in self.nodes().iter().enumerate().filter(|(_, cpus)| !cpus.intersects(self.online())) {
            let _ = writeln!(text, "node {node}: no CPU online");
        }
    }

    fn draw_distances(&self, text: &mut String) {
        if self.nr_nodes() == 1 {
            return;
        }
        let _ = writeln!(text, "distances, reclaim distance {}", self.reclaim_distance());
        let _ = write!(text, "node");
        for node in 0..self.nr_nodes() {
            let _ = write!(text, " {node:>3}");
        }
        text.push('\n');
        for (node, row) in self.distances().iter().enumerate() {
            let _ = write!(text, "{node:>4}");
            for distance in row {
                let _ = write!(text, " {distance:>3}");
            }
            text.push('\n');
        }
    }
}

/// A package, node, die, LLC, cluster or core that has a CPU online.
struct Group {
    kind: &'static str,
    id: usize,
    bytes: Option<u64>,
    cpus: CpuMask,
}

impl Group {
    fn label(&self) -> String {
        format!("{} {}{}", self.kind, self.id, self.size())
    }

    fn size(&self) -> String {
        self.bytes.map(|bytes| format!(" of {}", size::format(bytes))).unwrap_or_default()
    }
}

struct Tree {
    /// Columns of a line.
    width: usize,
    groups: Vec<Group>,
    parents: Vec<Parent>,
    /// The groups directly under each, in order of first CPUs.
    children: Vec<Vec<usize>>,
}

impl Tree {
    fn new(topology: &Topology, width: usize) -> Tree {
        let mut groups = Vec::new();
        let none = |_: CpuId| None;
        let l2 = |cpu: CpuId| topology.cache_sizes(cpu).l2;
        let llc = |cpu: CpuId| topology.cache_sizes(cpu).llc;
        let mut add = |kind: &'static str, masks: &[CpuMask], bytes: &dyn Fn(CpuId) -> Option<u64>| {
            for (id, mask) in masks.iter().enumerate() {
                let cpus = mask.and(topology.online());
                if let Some(first) = cpus.first() {
                    groups.push(Group { kind, id, bytes: bytes(first), cpus });
                }
            }
        };
        add("package", topology.packages(), &none);
        add("node", topology.nodes(), &none);
        if topology.dies() != topology.packages() {
            add("die", topology.dies(), &none);
        }
        add("LLC", topology.llcs(), &llc);
        if topology.clusters() != topology.cores() {
            add("cluster", topology.clusters(), &l2);
        }
        if topology.is_smt() {
            add("core", topology.cores(), &none);
        }
        let parents = nest(groups.iter().map(|group| &group.cpus));
        let mut order: Vec<usize> = (0..groups.len()).collect();
        order.sort_by_key(|&group| groups[group].cpus.first());
        let mut children = vec![Vec::new(); groups.len()];
        for group in order {
            if let Parent::Set(parent) = parents[group] {
                children[parent].push(group);
            }
        }
        Tree { width, groups, parents, children }
    }

    fn roots(&self) -> impl Iterator<Item = usize> {
        (0..self.groups.len()).filter(|&group| self.parents[group] == Parent::None)
    }

    /// A group and those under it that have the same CPUs.
    fn same(&self, group: usize) -> Vec<usize> {
        let mut same = vec![group];
        let mut last = group;
        while let [only] = self.children[last][..] {
            if self.groups[only].cpus != self.groups[group].cpus {
                break;
            }
            same.push(only);
            last = only;
        }
        same
    }

    /// Draws a group and its content, or several identical groups with the content of the first.
    fn draw(&self, text: &mut String, alike: &[usize], depth: usize, each: &str) {
        let same = self.same(alike[0]);
        let labels = if alike.len() > 1 {
            let group = &self.groups[alike[0]];
            let others: Vec<&str> = same[1..].iter().map(|&group| self.groups[group].kind).collect();
            let one =
                if others.is_empty() { String::new() } else { format!(", each one {}", others.join(", ")) };
            format!("{} {}s{}{one}", alike.len(), group.kind, group.size())
        } else {
            same.iter().map(|&group| self.groups[group].label()).collect::<Vec<_>>().join(", ")
        };
        self.write_lists(text, &format!("{each}{labels}"), alike, 2 * depth);
        let each = if alike.len() > 1 { "each " } else { "" };
        let children = &self.children[same[same.len() - 1]];
        for run in children.chunk_by(|&a, &b| self.is_alike(a, b)) {
            self.draw(text, run, depth + 1, each);
        }
    }

    /// Whether two groups differ only in their CPUs. Packages and nodes are always drawn separately.
    fn is_alike(&self, a: usize, b: usize) -> bool {
        let (left, right) = (&self.groups[a], &self.groups[b]);
        if ["package", "node", "die"].contains(&left.kind)
            || (left.kind, left.bytes, left.cpus.weight()) != (right.kind, right.bytes, right.cpus.weight())
        {
            return false;
        }
        let (left, right) = (&self.children[a], &self.children[b]);
        left.len() == right.len() && left.iter().zip(right).all(|(&a, &b)| self.is_alike(a, b))
    }

    /// Writes lists of CPUs side by side; if they fill many lines, only the first and the last.
    fn write_lists(&self, text: &mut String, labels: &str, groups: &[usize], indent: usize) {
        let lists: Vec<String> = groups.iter().map(|&group| short_list(&self.groups[group].cpus)).collect();
        let mut line = format!("{:indent$}{labels}:", "");
        let shown: Vec<&str> = match &lists[..] {
            [first, second, .., last]
                if lists.iter().map(|l| l.len() + 2).sum::<usize>() > NR_LINES * self.width =>
            {
                vec![first, second, "..", last]
            }
            _ => lists.iter().map(String::as_str).collect(),
        };
        for (i, list) in shown.iter().enumerate() {
            if i > 0 && line.len() + list.len() + 2 > self.width {
                let _ = writeln!(text, "{}", line.trim_end());
                line = format!("{:1$}", "", indent + 4);
            }
            let _ = write!(line, "{}{list}", if i == 0 { " " } else { "  " });
        }
        let _ = writeln!(text, "{line}");
    }
}

/// A list as the kernel writes it, or `0-126:2` for CPUs at equal steps.
fn short_list(cpus: &CpuMask) -> String {
    let numbers: Vec<usize> = cpus.iter().map(CpuId::index).collect();
    let [first, second, .., last] = numbers[..] else { return cpus.to_string() };
    let step = second - first;
    if step > 1 && numbers.len() >= 8 && numbers.windows(2).all(|pair| pair[1] - pair[0] == step) {
        return format!("{first}-{last}:{step}");
    }
    cpus.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cpu;
    use expect_test::{Expect, expect};

    #[track_caller]
    fn check(machine: &str, drawing: Expect) {
        drawing.assert_eq(&Topology::preset_or_regular(machine).unwrap().draw());
    }

    #[test]
    fn machines_are_drawn() {
        check(
            "1",
            expect![[r#"
            1: 1 CPU, 1 package, 1 node, 1 LLC, 1 core
            package 0, node 0, LLC 0: 0
        "#]],
        );
        check(
            "uma-8c",
            expect![[r#"
            uma-8c: 8 CPUs, 1 package, 1 node, 1 LLC, 8 cores
            package 0, node 0, LLC 0 of 8M: 0-7
        "#]],
        );
        check(
            "zen3-2s",
            expect![[r#"
                zen3-2s: 256 CPUs, 2 packages, 2 nodes, 16 LLCs, 128 cores of 2 threads
                package 0, node 0: 0-63,128-191
                  8 LLCs of 32M: 0-7,128-135  8-15,136-143  16-23,144-151  24-31,152-159  32-39,160-167
                        40-47,168-175  48-55,176-183  56-63,184-191
                    each 8 cores: 0,128  1,129  2,130  3,131  4,132  5,133  6,134  7,135
                package 1, node 1: 64-127,192-255
                  8 LLCs of 32M: 64-71,192-199  72-79,200-207  80-87,208-215  88-95,216-223  96-103,224-231
                        104-111,232-239  112-119,240-247  120-127,248-255
                    each 8 cores: 64,192  65,193  66,194  67,195  68,196  69,197  70,198  71,199
                distances, reclaim distance 32
                node   0   1
                   0  10  32
                   1  32  10
            "#]],
        );
        check(
            "icelake-2s",
            expect![[r#"
            icelake-2s: 128 CPUs, 2 packages, 2 nodes, 2 LLCs, 64 cores of 2 threads
            package 0, node 0, LLC 0 of 48M: 0-126:2
              32 cores: 0,64  2,66  4,68  6,70  8,72  10,74  12,76  14,78  16,80  18,82  20,84  22,86  24,88
                    26,90  28,92  30,94  32,96  34,98  36,100  38,102  40,104  42,106  44,108  46,110  48,112
                    50,114  52,116  54,118  56,120  58,122  60,124  62,126
            package 1, node 1, LLC 1 of 48M: 1-127:2
              32 cores: 1,65  3,67  5,69  7,71  9,73  11,75  13,77  15,79  17,81  19,83  21,85  23,87  25,89
                    27,91  29,93  31,95  33,97  35,99  37,101  39,103  41,105  43,107  45,109  47,111  49,113
                    51,115  53,117  55,119  57,121  59,123  61,125  63,127
            distances, reclaim distance 30
            node   0   1
               0  10  20
               1  20  10
        "#]],
        );
        check(
            "power10-40c",
            expect![[r#"
                power10-40c: 320 CPUs, 4 packages, 4 nodes, 80 LLCs, 80 cores of 4 threads
                package 0, node 0: 0-31
                  8 LLCs of 4M, each one core: 0,2,4,6  1,3,5,7  8,10,12,14  9,11,13,15  16,18,20,22  17,19,21,23
                        24,26,28,30  25,27,29,31
                package 1, node 1: 32-127
                  24 LLCs of 4M, each one core: 32,34,36,38  33,35,37,39  40,42,44,46  41,43,45,47  48,50,52,54
                        49,51,53,55  56,58,60,62  57,59,61,63  64,66,68,70  65,67,69,71  72,74,76,78  73,75,77,79
                        80,82,84,86  81,83,85,87  88,90,92,94  89,91,93,95  96,98,100,102  97,99,101,103
                        104,106,108,110  105,107,109,111  112,114,116,118  113,115,117,119  120,122,124,126
                        121,123,125,127
                package 2, node 2: 128-223
                  24 LLCs of 4M, each one core: 128,130,132,134  129,131,133,135  ..  217,219,221,223
                package 3, node 3: 224-319
                  24 LLCs of 4M, each one core: 224,226,228,230  225,227,229,231  ..  313,315,317,319
                distances, reclaim distance 10
                node   0   1   2   3
                   0  10  20  40  40
                   1  20  10  40  40
                   2  40  40  10  20
                   3  40  40  20  10
            "#]],
        );
        check(
            "epyc-guest-380",
            expect![[r#"
                epyc-guest-380: 380 CPUs, 2 packages, 2 nodes, 24 LLCs, 190 cores of 2 threads
                package 0, node 0: 0-191
                  12 LLCs of 32M: 0-15  16-31  32-47  48-63  64-79  80-95  96-111  112-127  128-143  144-159
                        160-175  176-191
                    each 8 cores: 0-1  2-3  4-5  6-7  8-9  10-11  12-13  14-15
                package 1, node 1: 192-379
                  11 LLCs of 32M: 192-207  208-223  224-239  240-255  256-271  272-287  288-303  304-319  320-335
                        336-351  352-367
                    each 8 cores: 192-193  194-195  196-197  198-199  200-201  202-203  204-205  206-207
                  LLC 23 of 32M: 368-379
                    6 cores: 368-369  370-371  372-373  374-375  376-377  378-379
                distances, reclaim distance 32
                node   0   1
                   0  10  32
                   1  32  10
            "#]],
        );
        check(
            "2x2x4:packages=llc,cluster=2,l2=1M",
            expect![[r#"
            2x2x4:packages=llc,cluster=2,l2=1M: 16 CPUs, 4 packages, 2 nodes, 4 LLCs, 16 cores
            node 0: 0-7
              package 0, LLC 0: 0-3
                2 clusters of 1M: 0-1  2-3
              package 1, LLC 1: 4-7
                2 clusters of 1M: 4-5  6-7
            node 1: 8-15
              package 2, LLC 2: 8-11
                2 clusters of 1M: 8-9  10-11
              package 3, LLC 3: 12-15
                2 clusters of 1M: 12-13  14-15
            distances, reclaim distance 30
            node   0   1
               0  10  21
               1  21  10
        "#]],
        );
        check(
            "1x2x4:dies=2,nodes=1/llc,capacity=0-3/446,offline=5-6",
            expect![[r#"
            1x2x4:dies=2,nodes=1/llc,capacity=0-3/446,offline=5-6: 6 CPUs, 1 package, 2 nodes, 2 LLCs, 6 cores
            package 0: 0-4,7
              node 0, die 0, LLC 0: 0-3
              node 1, die 1, LLC 1: 4,7
            capacity 446: 0-3
            capacity 1024: 4-7
            offline: 5-6
            distances, reclaim distance 30
            node   0   1
               0  10  12
               1  12  10
        "#]],
        );
    }

    #[test]
    fn what_does_not_nest_is_drawn_aside() {
        let t = Topology::regular("1x2x2").unwrap();
        let odd =
            |(id, cpu): (CpuId, &Cpu)| Cpu { package: (id.0 == 1) as u16, die: (id.0 == 1) as u16, ..*cpu };
        let t = Topology::new("m", t.cpus().map(odd).collect(), vec![vec![10]]).unwrap();
        expect![[r#"
            m: 4 CPUs, 2 packages, 1 node, 2 LLCs, 4 cores
            node 0: 0-3
              package 0: 0,2-3
                LLC 1: 2-3
              package 1: 1
            across others, LLC 0: 0-1
        "#]]
        .assert_eq(&t.draw());
    }

    #[test]
    fn a_narrow_drawing_has_shorter_lines() {
        let machine = Topology::preset_or_regular("zen3-2s").unwrap();
        assert!(machine.draw_within(80).lines().all(|line| line.len() <= 80));
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&machine.draw_within(80)), words(&machine.draw()));
    }
}
