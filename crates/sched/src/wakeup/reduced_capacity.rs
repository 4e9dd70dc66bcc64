//! Pass over idle CPUs that lose much of their time to interrupts and RT.
//!
//! Such a CPU looks idle between two bursts, but what is put there advances slowly.
//! The search takes an idle CPU that keeps at least 80 % of its capacity; if there is
//! none, the idle one with most capacity left.
//!
//! Source: mail of 25 Sep 2017, "Make scheduler scaled capacity aware" (v4 0/3). The mail
//! has no code; how it is read here: every candidate of the idle search (target, previous
//! CPU, recently used CPU, core, CPU, sibling) and of `find_idlest_group_cpu` must be idle
//! *and* of full capacity, and what failed on capacity alone is remembered; the remembered
//! one with most capacity is taken in the place of the target when the search finds nothing.

use core::cell::Cell;

use schedlab_topology::CpuId;

use crate::{Refused, View};

/// Whether a CPU keeps at least 80 % of its capacity (819 of 1024).
pub(super) fn full_capacity(view: &View, cpu: CpuId) -> bool {
    let rq = view.rq(cpu);
    rq.cpu_capacity >= rq.cpu_capacity_orig * 819 >> 10
}

/// The best idle CPU that was passed over.
#[derive(Default)]
pub(super) struct Backup(Cell<Option<(u64, CpuId)>>);

impl Backup {
    /// Whether an idle CPU is of full capacity; if not, it is remembered.
    pub(super) fn accepts(&self, view: &View, cpu: CpuId) -> bool {
        if full_capacity(view, cpu) {
            return true;
        }
        view.refuse(cpu, Refused::ReducedCapacity);
        let capacity = view.rq(cpu).cpu_capacity;
        if self.0.get().is_none_or(|(best, _)| capacity > best) {
            self.0.set(Some((capacity, cpu)));
        }
        false
    }

    /// The remembered CPU, the first of equals.
    pub(super) fn best(&self) -> Option<CpuId> {
        self.0.get().map(|(_, cpu)| cpu)
    }
}
