//! Initial values of a domain.
//!
//! Kernel: sd_init(), kernel/sched/topology.c, v4.13, v5.5, v5.18, v6.12, v7.2.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask, PerCpu};

use super::levels::Level;
use super::{DomainLevel, Ring, SchedDomain, SdFlags};
use crate::{AsymDomains, DomainFlags, Feature, Kernel, PreferSibling, WakeCap};

/// A domain of `cpu` on a level, not yet linked and without groups.
pub(super) fn sd_init(kernel: &Kernel, level: &Level, number: usize, cpu: CpuId) -> SchedDomain {
    let span = level.mask(cpu).clone();
    let weight = span.weight() as u64;
    let mut flags = level
        .flags
        .with(SdFlags::BALANCE_NEWIDLE)
        .with(SdFlags::BALANCE_EXEC)
        .with(SdFlags::BALANCE_FORK)
        .with(SdFlags::WAKE_AFFINE);
    let numa = flags.has(SdFlags::NUMA);
    match kernel.rules.domain_flags {
        DomainFlags::LoadBalance => flags = flags.with(SdFlags::LOAD_BALANCE),
        DomainFlags::Overlap | DomainFlags::Plain => {}
    }
    if numa && kernel.rules.domain_flags != DomainFlags::Plain {
        flags = flags.with(SdFlags::OVERLAP);
    }
    let prefer_sibling = match kernel.rules.prefer_sibling {
        PreferSibling::AllButNuma => !numa,
        PreferSibling::SmtDie => {
            flags.has(SdFlags::SHARE_CPUCAPACITY) || !numa && !flags.has(SdFlags::SHARE_LLC)
        }
    };
    if prefer_sibling {
        flags = flags.with(SdFlags::PREFER_SIBLING);
    }
    let default_pct = kernel.tunables.imbalance_pct as u32;
    let (imbalance_pct, cache_nice_tries, busy_idx, idle_idx) = if flags.has(SdFlags::SHARE_CPUCAPACITY) {
        (110, 0, 0, 0)
    } else if flags.has(SdFlags::SHARE_LLC) {
        (117, 1, 2, 0)
    } else if numa {
        flags = flags.with(SdFlags::SERIALIZE);
        if level.beyond_reclaim {
            flags = flags
                .without(SdFlags::BALANCE_EXEC)
                .without(SdFlags::BALANCE_FORK)
                .without(SdFlags::WAKE_AFFINE);
        }
        (default_pct, 2, 3, 2)
    } else {
        (default_pct, 1, 2, 1)
    };
    SchedDomain {
        cpu,
        level: level.level,
        name: level.name,
        number: number as u8,
        span,
        span_weight: weight as u32,
        flags,
        parent: None,
        child: None,
        groups: Ring::default(),
        min_interval: weight,
        max_interval: 2 * weight,
        busy_factor: kernel.tunables.busy_factor as u32,
        imbalance_pct,
        cache_nice_tries,
        busy_idx,
        idle_idx,
        imb_numa_nr: 0,
        shared: None,
        last_balance: 0,
        balance_interval: weight,
        nr_balance_failed: 0,
        max_newidle_lb_cost: 0,
        last_decay_max_lb_cost: 0,
        avg_scan_cost: 0,
        newidle_call: 512,
        newidle_success: 256,
        newidle_ratio: 512,
        newidle_stamp: 0,
    }
}

impl SchedDomain {
    /// Sets the intervals of balancing for a domain of this many CPUs.
    pub(super) fn set_intervals(&mut self, weight: u64) {
        (self.min_interval, self.max_interval, self.balance_interval) = (weight, 2 * weight, weight);
    }
}

/// What the domains of a machine with CPUs of different capacity carry besides.
pub(super) struct Asymmetry {
    /// Distinct capacities, each with its CPUs; empty when there is one.
    classes: Vec<CpuMask>,
    /// Form [`AsymDomains::Level`]: the level that gets the flag.
    level: Option<usize>,
}

impl Asymmetry {
    /// Sorts the CPUs that take part by capacity.
    ///
    /// After domains of several nodes, levels of nodes look like the whole machine (`again`).
    ///
    /// Kernel: asym_cpu_capacity_scan(), v6.12; asym_cpu_capacity_level(), v5.5, v5.10; sched_domains_curr_level, v5.10.
    pub(super) fn new(
        kernel: &Kernel,
        capacity: &PerCpu<u64>,
        active: &CpuMask,
        levels: &[Level],
        again: bool,
    ) -> Asymmetry {
        let mut by_capacity = BTreeMap::<u64, CpuMask>::new();
        for cpu in active.iter() {
            by_capacity.entry(capacity[cpu]).or_insert_with(|| CpuMask::new(capacity.len())).set(cpu);
        }
        if by_capacity.len() < 2 {
            return Asymmetry { classes: Vec::new(), level: None };
        }
        // The last level on which some CPU first sees a larger one. Levels of nodes all look like the node itself
        // here: the kernel has not yet set which of them is meant.
        let mut level = None;
        let nodes =
            levels.iter().position(|rung| matches!(rung.level, DomainLevel::Node | DomainLevel::Numa));
        let nodes = nodes.filter(|_| again && kernel.has(Feature::AsymAbove));
        for cpu in active.iter() {
            let mut largest = capacity[cpu];
            let below = levels.iter().enumerate().take_while(|(_, rung)| !rung.flags.has(SdFlags::NUMA));
            for (i, rung) in below {
                let seen = by_capacity.iter().rev().find(|(_, cpus)| cpus.intersects(rung.mask(cpu)));
                if let Some((&max, _)) = seen.filter(|&(&max, _)| max > largest) {
                    largest = max;
                    level = level.max(Some(i));
                }
            }
            if by_capacity.last_key_value().is_some_and(|(&max, _)| max > largest) {
                level = level.max(nodes);
            }
        }
        let unseen = kernel.rules.asym_domains == AsymDomains::Level && level.is_none();
        let classes = if unseen { Vec::new() } else { by_capacity.into_values().collect() };
        Asymmetry { classes, level }
    }

    /// Whether CPUs differ at all.
    pub(super) fn any(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Adds the flags of asymmetry to the domains of one CPU, lowest first.
    ///
    /// Kernel: asym_cpu_capacity_classify(), kernel/sched/topology.c, v6.12; sd_init(), v5.5.
    pub(super) fn mark(&self, kernel: &Kernel, tree: &mut [SchedDomain]) {
        if !self.any() {
            return;
        }
        for i in 0..tree.len() {
            let flags = match kernel.rules.asym_domains {
                AsymDomains::Level if self.is_marked(kernel, i) => SdFlags::ASYM_CPUCAPACITY,
                AsymDomains::Level => continue,
                AsymDomains::Span => self.classify(&tree[i].span),
            };
            if !flags.has(SdFlags::ASYM_CPUCAPACITY) {
                continue;
            }
            tree[i].flags = tree[i].flags.with(flags);
            if i > 0 && !kernel.has(Feature::AsymPrefersSibling) {
                tree[i - 1].flags = tree[i - 1].flags.without(SdFlags::PREFER_SIBLING);
            }
            if kernel.rules.asym_domains == AsymDomains::Level && kernel.rules.wake_cap != WakeCap::Off {
                for lower in &mut tree[..=i] {
                    lower.flags = lower.flags.with(SdFlags::BALANCE_WAKE);
                }
            }
        }
    }

    /// Form [`AsymDomains::Level`]: whether a level gets the flag.
    fn is_marked(&self, kernel: &Kernel, i: usize) -> bool {
        self.level.is_some_and(|level| i == level || i > level && kernel.has(Feature::AsymAbove))
    }

    fn classify(&self, span: &CpuMask) -> SdFlags {
        let seen = self.classes.iter().filter(|class| class.intersects(span)).count();
        match seen {
            0 | 1 => SdFlags::default(),
            _ if seen < self.classes.len() => SdFlags::ASYM_CPUCAPACITY,
            _ => SdFlags::ASYM_CPUCAPACITY.with(SdFlags::ASYM_CPUCAPACITY_FULL),
        }
    }
}
