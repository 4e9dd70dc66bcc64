//! How many running tasks a NUMA imbalance may have.
//!
//! Let P be the lowest domain above the last-level cache, L the cache's domain below it. With several LLCs in
//! P one task per LLC is harmless, so the allowance is their number; with one it is a share of P. Above P it
//! grows with the span, counted in units of the lowest NUMA domain. The walk comes before degeneration: P is
//! the node even if its domain is removed later.

use crate::domain::{SchedDomain, SdFlags};
use crate::{ImbNumaNr, Kernel};

/// Sets `imb_numa_nr` of the domains of one CPU, lowest first.
///
/// Kernel: build_sched_domains(), kernel/sched/topology.c, v5.18, v6.12; adjust_numa_imbalance(), v7.2.
pub(super) fn set_imb_numa_nr(kernel: &Kernel, tree: &mut [SchedDomain]) {
    let rule = kernel.rules.imb_numa_nr;
    if rule == ImbNumaNr::Off {
        return;
    }
    let shares_llc = |sd: &SchedDomain| sd.flags.has(SdFlags::SHARE_LLC);
    let parent = match rule {
        ImbNumaNr::PerLlcEighth => tree.iter().rposition(shares_llc).map(|llc| llc + 1),
        _ => (1..tree.len()).find(|&i| !shares_llc(&tree[i]) && shares_llc(&tree[i - 1])),
    };
    let Some(parent) = parent.filter(|&p| p < tree.len()) else { return };
    let weight = tree[parent].span_weight;
    let nr_llcs = weight / tree[parent - 1].span_weight;
    let imb = match rule {
        _ if nr_llcs > 1 => nr_llcs,
        ImbNumaNr::NodeQuarter => weight >> 2,
        _ => (weight >> 3).max(1),
    };
    let above = &tree[parent + 1..];
    let span = above.iter().find(|sd| sd.flags.has(SdFlags::NUMA)).map_or(weight, |sd| sd.span_weight);
    let per_llc = rule == ImbNumaNr::PerLlcEighth;
    for (i, sd) in tree.iter_mut().enumerate().skip(parent) {
        let factor = if i == parent && !per_llc { 1 } else { (sd.span_weight / span).max(1) };
        sd.imb_numa_nr = imb * factor;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use crate::domain::{levels, sd_init};
    use crate::{Kernel, PRESETS};
    use schedlab_topology::CpuId;

    use super::set_imb_numa_nr;

    /// Name and allowance of each domain of CPU 0 before degeneration, per kernel.
    fn check(machine: &str, expected: [&str; 9]) {
        let topology = crate::drawing::machine(machine);
        for (preset, expected) in PRESETS.iter().zip(expected) {
            let kernel = Kernel::parse(preset).unwrap();
            let levels = levels::levels(&topology, &kernel, topology.online());
            let mut tree: Vec<_> = levels
                .iter()
                .enumerate()
                .map(|(i, level)| sd_init::sd_init(&kernel, level, i, CpuId(0)))
                .collect();
            set_imb_numa_nr(&kernel, &mut tree);
            let shown: Vec<_> = tree
                .iter()
                .filter(|sd| sd.imb_numa_nr > 0)
                .map(|sd| format!("{} {}", sd.name, sd.imb_numa_nr))
                .collect();
            assert_eq!(shown.join(", "), expected, "{preset} on {machine}");
        }
    }

    #[test]
    fn several_llcs_count_one_each() {
        let eight = "DIE 8, NODE 8, NUMA 8";
        let pkg = "PKG 8, NODE 8, NUMA 8";
        check("2x8x8x2", ["", "", eight, eight, eight, pkg, pkg, pkg, pkg]);
    }

    #[test]
    fn one_llc_counts_a_share_of_the_node() {
        let eighth = "DIE 8, NODE 8, NUMA 8";
        let pkg = "PKG 8, NODE 8, NUMA 8";
        check("2x1x32x2", ["", "", "DIE 16, NODE 16, NUMA 16", eighth, eighth, pkg, pkg, pkg, pkg]);
    }

    #[test]
    fn a_small_node_allows_one_but_not_in_v5_18() {
        let one = "DIE 1, NODE 1, NUMA 1";
        let pkg = "PKG 1, NODE 1, NUMA 1";
        check("2x1x2", ["", "", "", one, one, pkg, pkg, pkg, pkg]);
    }
}
