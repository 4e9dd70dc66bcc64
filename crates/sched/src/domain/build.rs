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
use crate::{Kernel, SmtCapacity};

/// Capacity of a core of several threads, shared by them.
const SMT_GAIN: u64 = 1178;

/// Capacity of each CPU before pressure.
///
/// Kernel: `arch_scale_cpu_capacity()`, include/linux/sched/topology.h, v4.13, v5.5.
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
    /// Kernel: `build_sched_domains()`, kernel/sched/topology.c, v6.12.
    pub fn build(topology: &Topology, kernel: &Kernel, active: &CpuMask) -> Domains {
        let nr_cpus = topology.nr_cpus();
        let capacity = capacity_orig(topology, kernel, active);
        let levels = levels(topology, kernel, active);
        let mut smt = BTreeMap::new();
        let smt_mask = PerCpu::new(nr_cpus, |cpu| {
            let threads = smt
                .entry(topology.cpu(cpu).core)
                .or_insert_with(|| Arc::new(topology.core_mask(cpu).and(active)));
            if active.contains(cpu) { threads.clone() } else { Arc::new(CpuMask::one(nr_cpus, cpu)) }
        });

        let scale = PerCpu::new(nr_cpus, |cpu| u64::from(topology.cpu(cpu).capacity));
        let asymmetry = Asymmetry::new(&scale, active, &levels);
        let mut trees = PerCpu::new(nr_cpus, |cpu| {
            let mut tree = Vec::new();
            if active.contains(cpu) {
                for (number, level) in levels.iter().enumerate() {
                    let sd = sd_init(kernel, level, number, cpu);
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
            smt_mask,
            asym_active: asymmetry.any(),
            max_cpu_capacity: active.iter().map(|cpu| capacity[cpu]).max().unwrap_or(0),
            span: active.clone(),
            ..Domains::default()
        };
        let nr_nodes = topology.nodes().iter().filter(|node| node.intersects(active)).count();
        let mut llcs = BTreeMap::new();
        for cpu in active.iter() {
            let mut tree = core::mem::take(&mut trees[cpu]);
            set_imb_numa_nr(kernel, &mut tree);
            let kept = degenerate::attach(kernel, tree, &mut domains.sgs, nr_nodes);
            domains.attach(cpu, kept, &mut llcs);
        }
        domains
    }

    /// Links the domains of a CPU and points the short cuts at them.
    ///
    /// Kernel: `update_top_cache_domain()`, kernel/sched/topology.c, v6.12.
    fn attach(&mut self, cpu: CpuId, tree: Vec<SchedDomain>, llcs: &mut BTreeMap<CpuId, SharedId>) {
        let first = self.sds.len() as u32;
        let nr = tree.len() as u32;
        let id = |i: usize| SdId(first + i as u32);
        let lowest = |flag| tree.iter().position(|sd: &SchedDomain| sd.flags.has(flag)).map(id);
        let highest = |flag| {
            // A flag that a domain lacks is not looked for above it.
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
            cut.llc_shared = Some(*llcs.entry(start).or_insert_with(|| {
                shared.push(SharedDomain { nr_busy_cpus: sd.span_weight as i32, ..SharedDomain::default() });
                SharedId(shared.len() as u32 - 1)
            }));
            self.multi_llc |= sd.span_weight > 1 && llc + 1 < tree.len();
        }
        cut.share_id = cut.llc_id;
        if let Some(cluster) = lowest(SdFlags::CLUSTER) {
            let start = tree[(cluster.0 - first) as usize].span.first();
            cut.share_id = u32::from(start.expect("a span is not empty").0);
            self.cluster_active = true;
        }
        cut.numa = lowest(SdFlags::NUMA);
        cut.asym_packing = tree.iter().rposition(|sd| sd.flags.has(SdFlags::ASYM_PACKING)).map(id);
        cut.asym_cpucapacity = lowest(SdFlags::ASYM_CPUCAPACITY_FULL);
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

fn no_domain(cpu: CpuId) -> Shortcuts {
    Shortcuts { llc_size: 1, llc_id: u32::from(cpu.0), share_id: u32::from(cpu.0), ..Shortcuts::default() }
}
