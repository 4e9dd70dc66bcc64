//! Builds all domains of a machine under a kernel.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask, PerCpu, Topology};

use super::groups::Groups;
use super::imb_numa_nr::set_imb_numa_nr;
use super::levels::levels;
use super::sd_init::{Asymmetry, sd_init};
use super::{Domains, SchedDomain, SdFlags, SdId, SharedDomain, SharedId, Shortcuts, degenerate};
use crate::{AsymDomains, AsymFits, Kernel, SmtCapacity};

/// Capacity of a core of several threads, shared by them.
const SMT_GAIN: u64 = 1178;

/// Capacity of each CPU before pressure.
///
/// Kernel: arch_scale_cpu_capacity(), include/linux/sched/topology.h, v4.13, v5.5.
pub(crate) fn capacity_orig(topology: &Topology, kernel: &Kernel, active: &CpuMask) -> PerCpu<u64> {
    PerCpu::new(topology.nr_cpus(), |cpu| {
        let threads = topology.core_mask(cpu).weight_and(active) as u64;
        match kernel.rules.smt_capacity {
            SmtCapacity::Gain if threads > 1 => SMT_GAIN / threads,
            SmtCapacity::Gain | SmtCapacity::Full => u64::from(topology.cpu(cpu).capacity),
        }
    })
}

impl Domains {
    /// Builds the domains of the CPUs `active`; the others get none.
    ///
    /// Kernel: build_sched_domains(), kernel/sched/topology.c, v6.12.
    pub fn build(topology: &Topology, kernel: &Kernel, active: &CpuMask) -> Domains {
        Domains::build_as(topology, kernel, active, active, false)
    }

    /// The domains that replace these, while CPUs that are not active any more may still be online: the intervals of domains
    /// count them.
    ///
    /// Kernel: sd_init(), kernel/sched/topology.c, v6.12.
    pub fn rebuild(
        &self,
        topology: &Topology,
        kernel: &Kernel,
        active: &CpuMask,
        online: &CpuMask,
    ) -> Domains {
        let again = nr_nodes(topology, &self.span) > 1;
        let mut domains = Domains::build_as(topology, kernel, active, online, again);
        domains.smt_threads = self.smt_threads;
        domains
    }

    fn build_as(
        topology: &Topology,
        kernel: &Kernel,
        active: &CpuMask,
        online: &CpuMask,
        again: bool,
    ) -> Domains {
        let nr_cpus = topology.nr_cpus();
        let capacity = capacity_orig(topology, kernel, active);
        let whole = levels(topology, kernel, online);
        let levels = levels(topology, kernel, active);
        // Isolated threads still count as threads of their core.
        let smt_mask = smt_masks(topology, &active.or(&topology.isolated().and(topology.online())));

        let scale = PerCpu::new(nr_cpus, |cpu| u64::from(topology.cpu(cpu).capacity));
        let asymmetry = Asymmetry::new(kernel, &scale, active, &levels, again);
        let mut trees = PerCpu::new(nr_cpus, |cpu| {
            let mut tree = Vec::new();
            if active.contains(cpu) {
                for (number, level) in levels.iter().enumerate() {
                    let mut sd = sd_init(kernel, level, number, cpu);
                    sd.set_intervals(whole[number].mask(cpu).weight() as u64);
                    let whole = *sd.span == *active;
                    tree.push(sd);
                    if whole {
                        break;
                    }
                }
                asymmetry.mark(kernel, &mut tree);
            }
            tree
        });
        let mut groups = Groups::new(kernel, &levels, &smt_mask, &capacity);
        groups.build(&mut trees);
        let Groups { sgs, sgcs, .. } = groups;

        let mut domains = Domains {
            sgs,
            sgcs,
            per_cpu: PerCpu::new(nr_cpus, no_domain),
            smt_active: active.iter().any(|cpu| smt_mask[cpu].weight() > 1),
            smt_threads: smt_mask.iter().map(|(_, mask)| mask.weight() as u32).max().unwrap_or(1),
            smt_mask,
            asym_active: asymmetry.any(),
            max_cpu_capacity: active.iter().map(|cpu| capacity[cpu]).max().unwrap_or(0),
            span: active.clone(),
            ..Domains::default()
        };
        let nr_nodes = nr_nodes(topology, active);
        let (mut llcs, mut own) = (BTreeMap::new(), BTreeMap::new());
        for cpu in active.iter() {
            let mut tree = core::mem::take(&mut trees[cpu]);
            set_imb_numa_nr(kernel, &mut tree);
            let kept = degenerate::attach(kernel, tree, &mut domains.sgs, &mut own, nr_nodes);
            domains.attach(cpu, kept, &mut llcs, kernel.rules.asym_domains);
        }
        domains.nr_llcs = domains.shared.len();
        domains.multi_llcs = active.iter().any(|cpu| {
            let above = domains.walk(cpu).last().map(|(_, sd)| sd.span_weight);
            domains.per_cpu[cpu].llc.is_some_and(|llc| above > Some(domains.sd(llc).span_weight))
        });
        if kernel.rules.asym_fits == AsymFits::UclampCores {
            domains.share_by_asymmetry(active);
        }
        domains
    }

    /// Threads count for their core as long as they are online, also while a CPU leaves and domains leave it out.
    ///
    /// Kernel: cpu_smt_mask(), include/linux/topology.h, v6.12.
    pub fn set_online(&mut self, topology: &Topology, online: &CpuMask) {
        if topology.is_smt() {
            self.smt_mask = smt_masks(topology, online);
        }
    }

    /// A domain with all capacities that is not an LLC has its own shared state, unless it consists of nodes. Both kinds take
    /// what was allocated for their first CPU that the other kind has not taken, but a lone CPU's LLC takes what that CPU's
    /// domain with all capacities has taken, so other CPUs find another.
    ///
    /// Kernel: claim_asym_sched_domain_shared(), init_sched_domain_shared(), kernel/sched/topology.c, v7.2.
    fn share_by_asymmetry(&mut self, active: &CpuMask) {
        let mut spans = BTreeMap::new();
        let mut taken_by_llc = BTreeMap::new();
        for cpu in active.iter() {
            let Some(id) = self.per_cpu[cpu].asym_cpucapacity else { continue };
            let llc = self.per_cpu[cpu].llc;
            let sd = &mut self.sds[id.0 as usize];
            if llc == Some(id) || sd.flags.has(SdFlags::NUMA) {
                continue;
            }
            let Some(first) = sd.span.iter().find(|at| taken_by_llc.get(at) != Some(&true)) else { continue };
            taken_by_llc.insert(first, false);
            let shared = *spans.entry(first).or_insert_with(|| {
                self.shared.push(SharedDomain::default());
                SharedId(self.shared.len() as u32 - 1)
            });
            sd.shared = Some(shared);
            self.per_cpu[cpu].balance_shared = Some(shared);
            let free = |at: &CpuId| taken_by_llc.get(at) != Some(&false);
            let llc = llc.and_then(|llc| self.sds[llc.0 as usize].span.iter().find(free));
            taken_by_llc.insert(llc.unwrap_or(cpu), true);
        }
    }

    /// Links the domains of a CPU and points the short cuts at them.
    ///
    /// Kernel: update_top_cache_domain(), kernel/sched/topology.c, v6.12 and v5.5.
    fn attach(
        &mut self,
        cpu: CpuId,
        tree: Vec<SchedDomain>,
        llcs: &mut BTreeMap<CpuId, SharedId>,
        asym_domains: AsymDomains,
    ) {
        let first = self.sds.len() as u32;
        let nr = tree.len() as u32;
        let id = |i: usize| SdId(first + i as u32);
        let lowest = |flag| tree.iter().position(|sd: &SchedDomain| sd.flags.has(flag)).map(id);
        let highest = |flag| {
            // If a domain does not have a flag, domains above it are not searched for it.
            tree.iter().take_while(|sd: &&SchedDomain| sd.flags.has(flag)).count().checked_sub(1)
        };
        let mut cut = no_domain(cpu);
        cut.base = (nr > 0).then_some(SdId(first));
        let llc = highest(SdFlags::SHARE_LLC);
        if let Some(llc) = llc {
            let sd = &tree[llc];
            let start = sd.span.first().expect("a span is not empty");
            cut.llc = Some(id(llc));
            cut.llc_size = sd.span_weight;
            cut.llc_id = u32::from(start.0);
            let shared = &mut self.shared;
            let nr_cpus = sd.min_interval as i32;
            cut.llc_shared = Some(*llcs.entry(start).or_insert_with(|| {
                shared.push(SharedDomain { nr_busy_cpus: nr_cpus, nr_cpus, ..SharedDomain::default() });
                SharedId(shared.len() as u32 - 1)
            }));
            self.multi_llc |= sd.span_weight > 1 && llc + 1 < tree.len();
        }
        cut.balance_shared = cut.llc_shared;
        cut.share_id = cut.llc_id;
        if let Some(cluster) = lowest(SdFlags::CLUSTER) {
            let start = tree[(cluster.0 - first) as usize].span.first();
            cut.share_id = u32::from(start.expect("a span is not empty").0);
            self.cluster_active = true;
        }
        cut.numa = lowest(SdFlags::NUMA);
        cut.asym_packing = tree.iter().rposition(|sd| sd.flags.has(SdFlags::ASYM_PACKING)).map(id);
        cut.asym_cpucapacity = match asym_domains {
            AsymDomains::Level => lowest(SdFlags::ASYM_CPUCAPACITY),
            AsymDomains::Span => lowest(SdFlags::ASYM_CPUCAPACITY_FULL),
        };
        for (i, mut sd) in tree.into_iter().enumerate() {
            let i = i as u32;
            sd.child = i.checked_sub(1).map(|below| SdId(first + below));
            sd.parent = (i + 1 < nr).then_some(SdId(first + i + 1));
            sd.shared = cut.llc_shared.filter(|_| llc.is_some_and(|llc| i as usize <= llc));
            self.sds.push(sd);
        }
        self.per_cpu[cpu] = cut;
    }
}

/// How many nodes have some of these CPUs.
fn nr_nodes(topology: &Topology, cpus: &CpuMask) -> usize {
    topology.nodes().iter().filter(|node| node.intersects(cpus)).count()
}

fn no_domain(cpu: CpuId) -> Shortcuts {
    Shortcuts { llc_size: 1, llc_id: u32::from(cpu.0), share_id: u32::from(cpu.0), ..Shortcuts::default() }
}

/// The threads of each CPU's core, of those CPUs that count.
fn smt_masks(topology: &Topology, counted: &CpuMask) -> PerCpu<Arc<CpuMask>> {
    let mut of_core = BTreeMap::new();
    let nr_cpus = topology.nr_cpus();
    PerCpu::new(nr_cpus, |cpu| {
        let threads = of_core
            .entry(topology.cpu(cpu).core)
            .or_insert_with(|| Arc::new(topology.core_mask(cpu).and(counted)));
        if counted.contains(cpu) { threads.clone() } else { Arc::new(CpuMask::one(nr_cpus, cpu)) }
    })
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;
    use alloc::vec::Vec;

    use expect_test::{Expect, expect};
    use schedlab_topology::{CpuId, CpuMask};

    use crate::drawing::{by_kernel, machine};
    use crate::{Domains, Kernel, SdFlags, SgId};

    /// The domains of one CPU: name, span, flags, groups with balance masks.
    #[track_caller]
    fn check(name: &str, cpu: u16, expected: Expect) {
        let topology = machine(name);
        let tree = |kernel: &str| {
            let kernel = Kernel::parse(kernel).unwrap();
            let domains = Domains::build(&topology, &kernel, &topology.in_domains());
            let group = |id: SgId| {
                let sg = domains.sg(id);
                let mask =
                    if sg.balance_mask == sg.span { String::new() } else { format!("/{}", sg.balance_mask) };
                format!("{}{mask}", sg.span)
            };
            let mut lines = String::new();
            for (_, sd) in domains.walk(CpuId(cpu)) {
                let groups: Vec<String> = sd.groups.iter().map(group).collect();
                let special = [
                    (SdFlags::CLUSTER, "cluster"),
                    (SdFlags::SHARE_LLC, "llc"),
                    (SdFlags::ASYM_CPUCAPACITY, "asym"),
                    (SdFlags::ASYM_CPUCAPACITY_FULL, "asym_full"),
                    (SdFlags::BALANCE_WAKE, "wake"),
                    (SdFlags::PREFER_SIBLING, "prefer"),
                ];
                let special: Vec<&str> =
                    special.iter().filter(|(flag, _)| sd.flags.has(*flag)).map(|&(_, name)| name).collect();
                let far = if sd.flags.has(SdFlags::WAKE_AFFINE) { "" } else { " far" };
                let imb = if sd.imb_numa_nr > 0 { format!(" imb {}", sd.imb_numa_nr) } else { String::new() };
                lines += &format!(
                    "\n  {} {} {}{far}{imb}: {}",
                    sd.name,
                    sd.span,
                    special.join(" "),
                    groups.join(" ")
                );
            }
            lines
        };
        expected.assert_eq(&by_kernel("", tree));
    }

    #[test]
    fn the_short_cut_for_different_capacities_leads_to_the_first_domain_that_knows_them() {
        let topology = machine("1x2x4:capacity=0-3/446");
        let cut = |kernel: &str| {
            let kernel = Kernel::parse(kernel).unwrap();
            let domains = Domains::build(&topology, &kernel, &topology.in_domains());
            let name = |cpu| domains.per_cpu[cpu].asym_cpucapacity.map_or("none", |sd| domains.sd(sd).name);
            format!("{} {}", name(CpuId(0)), name(CpuId(4)))
        };
        expect![[r#"
            v4.13..v6.3: DIE DIE
            v6.10..v7.3: PKG PKG"#]]
        .assert_eq(&by_kernel("", cut));
        assert_eq!(cut("v5.10"), cut("v5.5"));
    }

    #[test]
    fn v7_2_searches_all_capacities_by_what_their_domain_shares() {
        let shares = |machine_name: &str| {
            by_kernel("", |kernel| {
                let topology = machine(machine_name);
                let domains =
                    Domains::build(&topology, &Kernel::parse(kernel).unwrap(), &topology.in_domains());
                let [little, big] = [CpuId(0), CpuId(7)].map(|cpu| &domains.per_cpu[cpu]);
                let own = little.balance_shared != little.llc_shared;
                format!(
                    "own {own}, one {}, caches {}",
                    little.balance_shared == big.balance_shared,
                    domains.nr_llcs
                )
            })
        };
        expect![[r#"
            v4.13..v6.12: own false, one false, caches 2
            v7.2..v7.3: own true, one true, caches 2"#]]
        .assert_eq(&shares("1x2x4:capacity=0-3/400"));
        // A single cache, and domains that consist of nodes.
        assert_eq!(shares("1x1x8:capacity=0-3/400"), "v4.13..v7.3: own false, one true, caches 1");
        assert_eq!(shares("2x1x4:capacity=0-3/400"), "v4.13..v7.3: own false, one false, caches 2");
    }

    #[test]
    fn a_cpu_that_is_alone_in_its_cache_has_its_own_state_for_all_capacities() {
        let topology = machine("1x2x4:capacity=0-3/400");
        let kernel = Kernel::parse("v7.2").unwrap();
        let shared = |cpus: &[u16]| {
            let active = CpuMask::of(8, cpus.iter().map(|&cpu| CpuId(cpu)));
            let domains = Domains::build(&topology, &kernel, &active);
            let of = |cpu: u16| domains.per_cpu[CpuId(cpu)].balance_shared;
            cpus.iter().map(|&cpu| of(cpu) == of(4)).collect::<Vec<_>>()
        };
        assert_eq!(shared(&[0, 1, 4, 5]), [true, true, true, true]);
        assert_eq!(shared(&[0, 4, 5]), [false, true, true]);
    }

    #[test]
    fn nodes_hide_in_v5_10_that_cpus_differ_until_domains_are_built_again() {
        let topology = machine("2x1x4:capacity=0-3/600");
        let found = ["v5.5", "v5.10", "v5.18"].map(|kernel| {
            let (kernel, all) = (Kernel::parse(kernel).unwrap(), topology.in_domains());
            let first = Domains::build(&topology, &kernel, &all);
            let second = first.rebuild(&topology, &kernel, &all, &all);
            let one = Domains::build(&topology, &kernel, &CpuMask::of(8, (0..4).map(CpuId)));
            let third = one.rebuild(&topology, &kernel, &all, &all);
            [&first, &second, &third].map(|domains| domains.per_cpu[CpuId(0)].asym_cpucapacity.is_some())
        });
        assert_eq!(found, [[false, false, false], [false, true, false], [true, true, true]]);
    }

    #[test]
    fn in_v5_10_the_level_of_one_node_is_the_first_that_sees_the_larger_cpus_of_another() {
        // Node 0 has two small CPUs left. The domain below a level with CPUs of different capacity does not spread.
        let topology = machine("2x3x2:capacity=0-2/300");
        let spreads = ["v5.10", "v5.18"].map(|kernel| {
            let (kernel, all) = (Kernel::parse(kernel).unwrap(), topology.in_domains());
            let left = CpuMask::of(12, [0, 2, 6, 7, 8, 9, 10, 11].map(CpuId));
            let domains = Domains::build(&topology, &kernel, &all).rebuild(&topology, &kernel, &left, &left);
            let spreads =
                |(_, sd): (_, &crate::SchedDomain)| (sd.name, sd.flags.has(SdFlags::PREFER_SIBLING));
            domains.walk(CpuId(0)).map(spreads).collect::<Vec<_>>()
        });
        let expected = [[("DIE", false), ("NUMA", false)], [("DIE", true), ("NUMA", false)]];
        assert_eq!(spreads, expected.map(Vec::from));
    }

    #[test]
    fn only_the_local_group_of_nodes_takes_the_flags_of_what_replaced_its_domain() {
        let prefers = by_kernel("", |kernel| {
            let topology = machine("2x1x4:capacity=0-3/600");
            let domains = Domains::build(&topology, &Kernel::parse(kernel).unwrap(), &topology.in_domains());
            let of = |cpu| {
                let top = domains.walk(cpu).last().unwrap().1;
                let flags = top.groups.iter().map(|id| domains.sg(id).flags.has(SdFlags::PREFER_SIBLING));
                format!("{:?}", flags.collect::<Vec<_>>())
            };
            format!("{} {}", of(CpuId(0)), of(CpuId(7)))
        });
        expect![[r#"
            v4.13..v5.5: [true, true] [true, true]
            v5.18..v6.3: [false, false] [false, false]
            v6.10..v7.2: [true, false] [true, false]
            v7.3: [true, true] [true, true]"#]]
        .assert_eq(&prefers);
    }

    #[test]
    fn between_v5_7_and_v5_13_wake_ups_are_not_balanced_and_nodes_hide_capacities() {
        let flags = |kernel: &str, name: &str| {
            let topology = machine(name);
            let domains = Domains::build(&topology, &Kernel::parse(kernel).unwrap(), &topology.in_domains());
            let top = domains.walk(CpuId(0)).last().unwrap().1;
            [SdFlags::ASYM_CPUCAPACITY, SdFlags::BALANCE_WAKE].map(|flag| top.flags.has(flag))
        };
        let [package, nodes] = ["1x2x4:capacity=0-3/400", "2x1x4:capacity=0-3/400"];
        assert_eq!(flags("v5.5", package), [true, true]);
        assert_eq!(flags("v5.10", package), [true, false]);
        assert_eq!(flags("v5.10", nodes), [false, false]);
        assert_eq!(flags("v5.18", nodes), [true, false]);
    }

    #[test]
    fn isolated_cpus_are_in_no_domain() {
        check("1x2x2:isolcpus=1", 1, expect!["v4.13..v7.3:"]);
        check(
            "1x2x2:isolcpus=1",
            2,
            expect![[r#"
                v4.13:
                  MC 2-3 llc: 2 3
                  DIE 0,2-3 prefer: 2-3 0
                v5.5..v5.18:
                  MC 2-3 llc prefer: 2 3
                  DIE 0,2-3 prefer: 2-3 0
                v6.1..v6.3:
                  MC 2-3 llc prefer: 2 3
                  DIE 0,2-3 prefer imb 1: 2-3 0
                v6.10..v7.3:
                  MC 2-3 llc prefer: 2 3
                  PKG 0,2-3 prefer imb 1: 2-3 0"#]],
        );
    }

    #[test]
    fn threads_caches_and_nodes() {
        check(
            "2x2x2x2",
            5,
            expect![[r#"
                v4.13:
                  SMT 4-5 llc prefer: 5 4
                  MC 4-7 llc: 4-5 6-7
                  DIE 0-7 prefer: 4-7 0-3
                  NUMA 0-15 : 0-7 8-15
                v5.5:
                  SMT 4-5 llc prefer: 5 4
                  MC 4-7 llc prefer: 4-5 6-7
                  DIE 0-7 prefer: 4-7 0-3
                  NUMA 0-15 : 0-7 8-15
                v5.18..v6.3:
                  SMT 4-5 llc prefer: 5 4
                  MC 4-7 llc prefer: 4-5 6-7
                  DIE 0-7 prefer imb 2: 4-7 0-3
                  NUMA 0-15  imb 2: 0-7 8-15
                v6.10..v7.3:
                  SMT 4-5 llc prefer: 5 4
                  MC 4-7 llc prefer: 4-5 6-7
                  PKG 0-7 prefer imb 2: 4-7 0-3
                  NUMA 0-15  imb 2: 0-7 8-15"#]],
        );
    }

    #[test]
    fn a_node_of_one_cache_has_no_domain_of_its_own() {
        check(
            "2x1x2",
            2,
            expect![[r#"
                v4.13..v5.18:
                  MC 2-3 llc prefer: 2 3
                  NUMA 0-3 : 2-3 0-1
                v6.1..v7.3:
                  MC 2-3 llc prefer: 2 3
                  NUMA 0-3  imb 1: 2-3 0-1"#]],
        );
    }

    #[test]
    fn threads_numbered_far_apart() {
        check(
            "1x2x2x2:smt=interleaved",
            6,
            expect![[r#"
                v4.13:
                  SMT 2,6 llc prefer: 6 2
                  MC 2-3,6-7 llc: 2,6 3,7
                  DIE 0-7 prefer: 2-3,6-7 0-1,4-5
                v5.5:
                  SMT 2,6 llc prefer: 6 2
                  MC 2-3,6-7 llc prefer: 2,6 3,7
                  DIE 0-7 prefer: 2-3,6-7 0-1,4-5
                v5.18..v6.3:
                  SMT 2,6 llc prefer: 6 2
                  MC 2-3,6-7 llc prefer: 2,6 3,7
                  DIE 0-7 prefer imb 2: 2-3,6-7 0-1,4-5
                v6.10..v7.3:
                  SMT 2,6 llc prefer: 6 2
                  MC 2-3,6-7 llc prefer: 2,6 3,7
                  PKG 0-7 prefer imb 2: 2-3,6-7 0-1,4-5"#]],
        );
    }

    #[test]
    fn clusters() {
        check(
            "1x1x4:cluster=2",
            1,
            expect![[r#"
                v4.13:
                  MC 0-3 llc: 1 2 3 0
                v5.5:
                  MC 0-3 llc prefer: 1 2 3 0
                v5.18..v6.3:
                  CLS 0-1 llc prefer: 1 0
                  MC 0-3 llc prefer: 0-1 2-3
                v6.10..v7.3:
                  CLS 0-1 cluster llc prefer: 1 0
                  MC 0-3 llc prefer: 0-1 2-3"#]],
        );
    }

    #[test]
    fn a_package_split_into_nodes_has_no_domain() {
        check(
            "2x2x2:nodes=2/socket,distance=10/12/32",
            0,
            expect![[r#"
                v4.13:
                  MC 0-1 llc: 0 1
                  NUMA 0-3 : 0-1 2-3
                  NUMA 0-7  far: 0-3 4-7
                v5.5..v5.18:
                  MC 0-1 llc prefer: 0 1
                  NUMA 0-3 : 0-1 2-3
                  NUMA 0-7  far: 0-3 4-7
                v6.1..v7.3:
                  MC 0-1 llc prefer: 0 1
                  NUMA 0-3  imb 1: 0-1 2-3
                  NUMA 0-7  far imb 2: 0-3 4-7"#]],
        );
    }

    #[test]
    fn a_ring_of_nodes_has_overlapping_groups() {
        check(
            "4x1x1:distance=10/20/30/20:20/10/20/30:30/20/10/20:20/30/20/10",
            0,
            expect![[r#"
                v4.13..v5.18:
                  NUMA 0-1,3 : 0 1 3
                  NUMA 0-3 : 0-1,3/0 1-3/2
                v6.1..v7.3:
                  NUMA 0-1,3  imb 1: 0 1 3
                  NUMA 0-3  imb 1: 0-1,3/0 1-3/2"#]],
        );
    }

    #[test]
    fn a_chain_of_nodes_reaches_down_for_groups_that_fit() {
        let chain = "4x1x1:distance=10/15/20/25:15/10/15/20:20/15/10/15:25/20/15/10";
        check(
            chain,
            0,
            expect![[r#"
                v4.13..v5.5:
                  NUMA 0-1 : 0 1
                  NUMA 0-2 : 0-1/0 1-3/2
                  NUMA 0-3 : 0-2/0 1-3/3
                v5.18:
                  NUMA 0-1 : 0 1
                  NUMA 0-2 : 0-1/0 2
                  NUMA 0-3 : 0-2/0 1-3/3
                v6.1..v7.3:
                  NUMA 0-1  imb 1: 0 1
                  NUMA 0-2  imb 1: 0-1/0 2
                  NUMA 0-3  imb 2: 0-2/0 1-3/3"#]],
        );
        check(
            chain,
            1,
            expect![[r#"
                v4.13..v5.18:
                  NUMA 0-2 : 1 2 0
                  NUMA 0-3 : 0-2/1 2-3/3
                v6.1..v7.3:
                  NUMA 0-2  imb 1: 1 2 0
                  NUMA 0-3  imb 1: 0-2/1 2-3/3"#]],
        );
    }

    #[test]
    fn power_has_small_caches() {
        check(
            "1x4x2x4:smt=paired,dies=2",
            0,
            expect![[r#"
                v4.13:
                  SMT 0,2,4,6 llc prefer: 0 2 4 6
                  CACHE 0-7 llc: 0,2,4,6 1,3,5,7
                  MC 0-15 prefer: 0-7 8-15
                  DIE 0-31 prefer: 0-15 16-31
                v5.5:
                  SMT 0,2,4,6 llc prefer: 0 2 4 6
                  CACHE 0-7 llc prefer: 0,2,4,6 1,3,5,7
                  MC 0-15 prefer: 0-7 8-15
                  DIE 0-31 prefer: 0-15 16-31
                v5.18..v6.3:
                  SMT 0,2,4,6 llc prefer: 0 2 4 6
                  CACHE 0-7 llc prefer: 0,2,4,6 1,3,5,7
                  MC 0-15 prefer imb 2: 0-7 8-15
                  DIE 0-31 prefer imb 4: 0-15 16-31
                v6.10..v7.3:
                  SMT 0,2,4,6 llc prefer: 0 2 4 6
                  CACHE 0-7 llc prefer: 0,2,4,6 1,3,5,7
                  MC 0-15 prefer imb 2: 0-7 8-15
                  PKG 0-31 prefer imb 4: 0-15 16-31"#]],
        );
    }

    #[test]
    fn cpus_of_different_size() {
        check(
            "1x2x2:capacity=0-1/400",
            0,
            expect![[r#"
                v4.13..v5.5:
                  MC 0-1 llc wake: 0 1
                  DIE 0-3 asym wake prefer: 0-1 2-3
                v5.18..v6.3:
                  MC 0-1 llc: 0 1
                  DIE 0-3 asym asym_full prefer imb 2: 0-1 2-3
                v6.10..v7.2:
                  MC 0-1 llc: 0 1
                  PKG 0-3 asym asym_full prefer imb 2: 0-1 2-3
                v7.3:
                  MC 0-1 llc prefer: 0 1
                  PKG 0-3 asym asym_full prefer imb 2: 0-1 2-3"#]],
        );
        check(
            "1x1x4:capacity=0-1/400",
            0,
            expect![[r#"
                v4.13:
                  MC 0-3 llc asym wake: 0 1 2 3
                v5.5:
                  MC 0-3 llc asym wake prefer: 0 1 2 3
                v5.18..v7.3:
                  MC 0-3 llc asym asym_full prefer: 0 1 2 3"#]],
        );
    }

    #[test]
    fn one_cpu_has_none() {
        check("1", 0, expect!["v4.13..v7.3:"]);
    }

    #[test]
    fn thousands_of_cpus_are_built_in_a_moment() {
        let topology = machine("8x8x32x2");
        let kernel = Kernel::parse("v7.2").unwrap();
        let domains = Domains::build(&topology, &kernel, &topology.in_domains());
        assert_eq!(domains.per_cpu.len(), 4096);
        let top = domains.walk(CpuId(4095)).last().unwrap().1;
        assert_eq!((top.span_weight, top.groups.len()), (4096, 8));
        // A group is one object for all CPUs that see it. Clusters and nodes, which are
        // taken out, had some as well. The CPUs of a node see their own with other flags.
        assert_eq!(domains.sgs.len(), 4096 + 2 * 2048 + 64 + 3 * 8);
    }

    #[test]
    fn a_distance_that_the_first_node_does_not_see_has_no_level_up_to_v5_11() {
        // Node 0 is in the middle: it is 20 from both others, which are 30 from each other.
        check(
            "3x1x1:distance=10/20/20:20/10/30:20/30/10",
            1,
            expect![[r#"
                v4.13..v5.5:
                  NUMA 0-1 : 1 0
                v5.18:
                  NUMA 0-1 : 1 0
                  NUMA 0-2 : 0-1/1 0,2/2
                v6.1..v7.3:
                  NUMA 0-1  imb 1: 1 0
                  NUMA 0-2  imb 1: 0-1/1 0,2/2"#]],
        );
    }
}
