//! Groups of a domain: the spans of the domains one level below, in ring order.
//!
//! On levels that do not overlap the CPUs of a span share the groups and the ring; each starts it at its own group. On
//! NUMA levels a node may be in the domains of several others, so each CPU has a ring of its own:
//!
//! ```text
//!   0 -- 1      NUMA-1 of node 0 is 0,1,3, of node 1 is 0-2, ..
//!   |    |      NUMA-2 of node 0 is 0-3, in groups 0,1,3 and 1-3:
//!   3 -- 2      nodes 1 and 3 stand in both
//! ```
//!
//! Only the CPUs that reach a group through their own domains may balance for it;
//! they are its balance mask.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask, PerCpu};

use super::levels::Level;
use super::{SchedDomain, SchedGroup, SdFlags, SgCapacity, SgId};
use crate::{Feature, Kernel};

/// Groups of a domain in ring order, beginning with the local one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// One ring for all CPUs that walk the same groups.
    ids: Arc<[SgId]>,
    /// Invariant: below the length of `ids`, or 0.
    start: u32,
}

impl Ring {
    /// The groups, the local one first.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = SgId> + '_ {
        let (before, from) = self.ids.split_at(self.start as usize);
        from.iter().chain(before).copied()
    }

    /// The group that holds the domain's own CPU. Every domain has one.
    #[inline]
    pub fn local(&self) -> SgId {
        self.ids[self.start as usize]
    }

    /// Puts a group of the CPU's own in place of the local one.
    pub(super) fn set_local(&mut self, id: SgId) {
        let mut ids = self.ids.to_vec();
        ids[self.start as usize] = id;
        self.ids = ids.into();
    }

    /// How many groups there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there is none, as before they are built.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }
}

/// Groups and capacities of all domains while they are built.
pub(super) struct Groups<'a> {
    kernel: &'a Kernel,
    levels: &'a [Level],
    smt_mask: &'a PerCpu<Arc<CpuMask>>,
    capacity: &'a PerCpu<u64>,
    /// CPUs of single-CPU groups.
    singles: BTreeMap<CpuId, Arc<CpuMask>>,
    pub(super) sgs: Vec<SchedGroup>,
    pub(super) sgcs: Vec<SgCapacity>,
}

impl<'a> Groups<'a> {
    pub(super) fn new(
        kernel: &'a Kernel,
        levels: &'a [Level],
        smt_mask: &'a PerCpu<Arc<CpuMask>>,
        capacity: &'a PerCpu<u64>,
    ) -> Groups<'a> {
        Groups {
            kernel,
            levels,
            smt_mask,
            capacity,
            singles: BTreeMap::new(),
            sgs: Vec::new(),
            sgcs: Vec::new(),
        }
    }

    /// Builds the groups of all domains of all CPUs. `trees` holds each CPU's domains, lowest first.
    pub(super) fn build(&mut self, trees: &mut PerCpu<Vec<SchedDomain>>) {
        for level in 0..self.levels.len() {
            if self.levels[level].flags.has(SdFlags::NUMA) {
                self.build_overlap(trees, level);
            } else {
                self.build_disjoint(trees, level);
            }
        }
    }

    /// Kernel: build_sched_groups(), get_group(), kernel/sched/topology.c, v6.12.
    fn build_disjoint(&mut self, trees: &mut PerCpu<Vec<SchedDomain>>, level: usize) {
        for span in &self.levels[level].masks {
            let owners: Vec<CpuId> = span.iter().filter(|&c| trees[c].len() > level).collect();
            // Each CPU links the shared groups again; the links of the last one stay.
            let Some(&last) = owners.last() else { continue };
            let mut ids: Vec<SgId> = Vec::new();
            let mut group_of = BTreeMap::new();
            let mut uncovered = (**span).clone();
            while let Some(first) = next_wrapped(&uncovered, last.index()) {
                let child = level.checked_sub(1).map(|below| &trees[first][below]);
                let (mask, flags) = match child {
                    Some(child) => (child.span.clone(), child.flags),
                    None => (self.single(first), SdFlags::default()),
                };
                uncovered.remove_all(&mask);
                let id = self.push(mask.clone(), mask.clone(), flags, None);
                group_of.extend(mask.iter().map(|cpu| (cpu, ids.len() as u32)));
                ids.push(id);
            }
            let ids: Arc<[SgId]> = ids.into();
            for cpu in owners {
                trees[cpu][level].groups = Ring { ids: ids.clone(), start: group_of[&cpu] };
            }
        }
    }

    /// Kernel: build_overlap_sched_groups(), kernel/sched/topology.c, v6.12, v5.5.
    fn build_overlap(&mut self, trees: &mut PerCpu<Vec<SchedDomain>>, level: usize) {
        // A group is the same for all CPUs that have it: it is identified by the level and span of the domain below
        // which it was taken, and its capacity by the level and the first balancer.
        let mut known: BTreeMap<(usize, Arc<CpuMask>), SgId> = BTreeMap::new();
        let mut capacities: BTreeMap<(usize, CpuId), u32> = BTreeMap::new();
        let mut rings: BTreeMap<Vec<SgId>, Arc<[SgId]>> = BTreeMap::new();
        let mut chosen: Vec<(CpuId, Ring)> = Vec::new();
        for (cpu, tree) in trees.iter() {
            let Some(sd) = tree.get(level) else { continue };
            let mut ids: Vec<SgId> = Vec::new();
            let mut uncovered = (*sd.span).clone();
            while let Some(first) = next_wrapped(&uncovered, cpu.index()) {
                let tree = &trees[first];
                if tree.len() <= level {
                    // Its domains end lower because they span everything already.
                    uncovered.clear(first);
                    continue;
                }
                let sibling = self.sibling(sd, tree, level);
                let mask = &tree[sibling.saturating_sub(1)].span;
                let flags = if sibling > 0 { tree[sibling - 1].flags } else { SdFlags::default() };
                let id = match known.get(&(sibling, mask.clone())) {
                    Some(&id) => id,
                    None => {
                        let balance = balance_mask(trees, sibling, mask);
                        // With odd distances no CPU may reach it; the kernel warns of that.
                        let balancer = balance.first().or(mask.first()).unwrap_or(first);
                        let sgc = capacities.get(&(sibling, balancer)).copied();
                        let id = self.push(mask.clone(), balance, flags, sgc);
                        capacities.insert((sibling, balancer), self.sgs[id.0 as usize].sgc);
                        known.insert((sibling, mask.clone()), id);
                        id
                    }
                };
                uncovered.remove_all(mask);
                // A span that reaches out of the domain may not cover the CPU it came from.
                uncovered.clear(first);
                ids.push(id);
            }
            let ids = rings.entry(ids).or_insert_with_key(|ids| ids.as_slice().into()).clone();
            chosen.push((cpu, Ring { ids, start: 0 }));
        }
        for (cpu, ring) in chosen {
            trees[cpu][level].groups = ring;
        }
    }

    /// The level of another CPU's domain whose child becomes a group of `sd`.
    ///
    /// Kernel: find_descended_sibling(), kernel/sched/topology.c, v5.18.
    fn sibling(&self, sd: &SchedDomain, tree: &[SchedDomain], level: usize) -> usize {
        let mut sibling = level;
        if !self.kernel.has(Feature::NumaDescend) || tree[level - 1].span.is_subset(&sd.span) {
            return sibling;
        }
        while sibling > 0 && !tree[sibling - 1].span.is_subset(&sd.span) {
            sibling -= 1;
        }
        while sibling > 0 && tree[sibling - 1].span == tree[sibling].span {
            sibling -= 1;
        }
        sibling
    }

    fn single(&mut self, cpu: CpuId) -> Arc<CpuMask> {
        let nr_cpus = self.capacity.len();
        self.singles.entry(cpu).or_insert_with(|| Arc::new(CpuMask::one(nr_cpus, cpu))).clone()
    }

    /// Adds a group, with a new capacity unless it shares one.
    ///
    /// Kernel: init_sched_groups_capacity(), kernel/sched/topology.c, v6.12.
    fn push(
        &mut self,
        span: Arc<CpuMask>,
        balance_mask: Arc<CpuMask>,
        flags: SdFlags,
        sgc: Option<u32>,
    ) -> SgId {
        let sgc = sgc.unwrap_or_else(|| {
            let of = |cpu| self.capacity[cpu];
            self.sgcs.push(SgCapacity {
                capacity: span.iter().map(of).sum(),
                min_capacity: span.iter().map(of).min().unwrap_or(0),
                max_capacity: span.iter().map(of).max().unwrap_or(0),
                next_update: 0,
                imbalance: false,
                id: balance_mask.first().unwrap_or_default(),
            });
            self.sgcs.len() as u32 - 1
        });
        let cores = span.iter().filter(|&cpu| self.smt_mask[cpu].first_and(&span) == Some(cpu)).count();
        self.sgs.push(SchedGroup {
            group_weight: span.weight() as u32,
            cores: cores as u32,
            asym_prefer_cpu: span.first().unwrap_or_default(),
            cpus: span.iter().collect(),
            span,
            flags,
            balance_mask,
            sgc,
        });
        SgId(self.sgs.len() as u32 - 1)
    }
}

/// The CPUs of a group that reach it through their own domains.
///
/// Kernel: build_balance_mask(), kernel/sched/topology.c, v6.12.
fn balance_mask(trees: &PerCpu<Vec<SchedDomain>>, sibling: usize, span: &Arc<CpuMask>) -> Arc<CpuMask> {
    let reaches = |cpu: CpuId| {
        let tree = &trees[cpu];
        tree.len() > sibling
            && sibling > 0
            && (Arc::ptr_eq(&tree[sibling - 1].span, span) || tree[sibling - 1].span == *span)
    };
    if span.iter().all(reaches) {
        return span.clone();
    }
    Arc::new(CpuMask::of(trees.len(), span.iter().filter(|&cpu| reaches(cpu))))
}

/// The first CPU at or above `start`, else the first of all.
fn next_wrapped(mask: &CpuMask, start: usize) -> Option<CpuId> {
    mask.next_from(start).or_else(|| mask.first())
}
