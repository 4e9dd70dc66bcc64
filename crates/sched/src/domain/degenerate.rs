//! Domains that contribute nothing are removed.
//!
//! A level that spans no more than the one below, or a single CPU, would only cost time: MC and PKG of a node
//! with one cache, SMT of a machine without threads.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::{SchedDomain, SchedGroup, SdFlags, SgId};
use crate::{DomainFlags, Feature, Kernel};

/// Flags that mean nothing without a second group.
fn needs_groups(kernel: &Kernel) -> SdFlags {
    let old = SdFlags::LOAD_BALANCE
        .with(SdFlags::BALANCE_NEWIDLE)
        .with(SdFlags::BALANCE_FORK)
        .with(SdFlags::BALANCE_EXEC)
        .with(SdFlags::SHARE_CPUCAPACITY)
        .with(SdFlags::ASYM_CPUCAPACITY)
        .with(SdFlags::SHARE_LLC)
        .with(SdFlags::SHARE_POWERDOMAIN);
    match kernel.rules.domain_flags {
        DomainFlags::LoadBalance => old,
        DomainFlags::Overlap | DomainFlags::Plain => old
            .with(SdFlags::BALANCE_WAKE)
            .with(SdFlags::ASYM_CPUCAPACITY_FULL)
            .with(SdFlags::CLUSTER)
            .with(SdFlags::SERIALIZE)
            .with(SdFlags::ASYM_PACKING)
            .with(SdFlags::PREFER_SIBLING)
            .with(SdFlags::OVERLAP)
            .with(SdFlags::NUMA),
    }
}

/// Whether the domain does nothing on its own.
///
/// Kernel: sd_degenerate(), kernel/sched/topology.c, v6.12.
fn sd_degenerate(kernel: &Kernel, sd: &SchedDomain) -> bool {
    sd.span_weight == 1
        || !(sd.groups.len() > 1 && sd.flags.any(needs_groups(kernel)) || sd.flags.has(SdFlags::WAKE_AFFINE))
}

/// Whether `parent` adds nothing to the domain below it.
///
/// Kernel: sd_parent_degenerate(), kernel/sched/topology.c, v6.12, v5.5.
fn sd_parent_degenerate(kernel: &Kernel, sd: &SchedDomain, parent: &SchedDomain, nr_nodes: usize) -> bool {
    if sd_degenerate(kernel, parent) {
        return true;
    }
    if sd.span != parent.span {
        return false;
    }
    let mut more = parent.flags;
    if parent.groups.len() == 1 {
        more = more.without(needs_groups(kernel)).without(SdFlags::PREFER_SIBLING);
        if kernel.rules.domain_flags == DomainFlags::LoadBalance && nr_nodes == 1 {
            more = more.without(SdFlags::SERIALIZE);
        }
    }
    sd.flags.has(more)
}

/// Removes the useless domains from one CPU's tree, lowest first.
///
/// Kernel: cpu_attach_domain(), kernel/sched/topology.c, v6.12.
pub(super) fn attach(
    kernel: &Kernel,
    tree: Vec<SchedDomain>,
    sgs: &mut Vec<SchedGroup>,
    own: &mut Own,
    nr_nodes: usize,
) -> Vec<SchedDomain> {
    let mut kept: Vec<SchedDomain> = Vec::with_capacity(tree.len());
    let mut rest = tree.into_iter().peekable();
    while let Some(sd) = rest.next() {
        let Some(below) = kept.last_mut() else {
            kept.push(sd);
            continue;
        };
        if !sd_parent_degenerate(kernel, below, &sd, nr_nodes) {
            kept.push(sd);
            continue;
        }
        if let Some(above) = rest.peek_mut()
            && kernel.has(Feature::GroupFlagsFollow)
        {
            set_local_flags(above, below.flags, sgs, own);
        }
        // The spans match, so the properties of the removed domain hold for the other.
        if sd.flags.has(SdFlags::PREFER_SIBLING) {
            below.flags = below.flags.with(SdFlags::PREFER_SIBLING);
        }
    }
    if kept.first().is_some_and(|sd| sd_degenerate(kernel, sd)) {
        kept.remove(0);
        if let Some(lowest) = kept.first_mut() {
            set_local_flags(lowest, SdFlags::default(), sgs, own);
        }
    }
    kept
}

/// The groups that CPUs of several nodes see with other flags than all other CPUs, by the original group and the flags.
pub(super) type Own = BTreeMap<(SgId, SdFlags), SgId>;

/// Changes the flags of a CPU's local group. Groups of nodes belong to the CPU: no other sees the change.
fn set_local_flags(sd: &mut SchedDomain, flags: SdFlags, sgs: &mut Vec<SchedGroup>, own: &mut Own) {
    let local = sd.groups.local();
    if !sd.flags.has(SdFlags::NUMA) {
        sgs[local.0 as usize].flags = flags;
        return;
    }
    let id = *own.entry((local, flags)).or_insert_with(|| {
        sgs.push(SchedGroup { flags, ..sgs[local.0 as usize].clone() });
        SgId(sgs.len() as u32 - 1)
    });
    sd.groups.set_local(id);
}
