//! Which of the suitable CPUs a real-time or deadline task gets: its own, else the one that searches, else
//! one nearby. Of several nearby ones each is taken in turn.

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::TaskId;

use crate::{AnyCpu, Placement, Reason, Sched, SdFlags};

/// Equally suitable CPUs, one of which is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Which.
    pub cpus: CpuMask,
    /// The searching CPU takes each in turn.
    pub in_turn: bool,
}

/// A CPU that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub cpu: CpuId,
    pub in_turn: bool,
}

impl Taken {
    /// The placement of a woken task that was last on `prev`, if this CPU was taken for it.
    pub fn placement(taken: Option<Taken>, prev: CpuId, reason: Reason) -> Placement {
        match taken {
            Some(Taken { cpu, in_turn }) if cpu != prev => {
                Placement { in_turn, ..Placement::new(cpu, reason) }
            }
            _ => Placement::new(prev, Reason::KeepCpu),
        }
    }
}

impl Sched {
    /// The CPU of a mask nearest to the task's; `this` is the searching CPU.
    ///
    /// Kernel: find_lowest_rq(), kernel/sched/rt.c, find_later_rq(), kernel/sched/deadline.c, v6.12.
    pub(super) fn nearest(&self, task: TaskId, this: CpuId, mask: CpuMask) -> Nearest {
        let (own, nr_cpus) = (self.task(task).cpu, self.rqs.len());
        let in_turn = self.kernel.rules.any_cpu == AnyCpu::InTurn;
        let only = |cpu| Nearest { cpus: CpuMask::one(nr_cpus, cpu), in_turn: false };
        if mask.contains(own) {
            return only(own);
        }
        let affine = self.domains.walk(own).filter(|(_, sd)| sd.flags.has(SdFlags::WAKE_AFFINE));
        for (_, sd) in affine {
            if mask.contains(this) && sd.span.contains(this) {
                return only(this);
            }
            if mask.intersects(&sd.span) {
                return Nearest { cpus: mask.and(&sd.span), in_turn };
            }
        }
        if mask.contains(this) { only(this) } else { Nearest { cpus: mask, in_turn } }
    }

    /// The one of them that is taken, if there are any.
    pub(super) fn take_nearest(&self, nearest: &Nearest, this: CpuId) -> Option<Taken> {
        let in_turn = nearest.in_turn;
        self.any_and_distribute(this, &nearest.cpus, in_turn).next().map(|cpu| Taken { cpu, in_turn })
    }

    /// CPUs of a mask in the order in which they are taken: from the first on, or from the one after the CPU that the
    /// searching CPU took last.
    ///
    /// Kernel: cpumask_any_and_distribute(), lib/cpumask.c, v6.12.
    pub(crate) fn any_and_distribute<'a>(
        &self,
        this: CpuId,
        mask: &'a CpuMask,
        in_turn: bool,
    ) -> impl Iterator<Item = CpuId> + use<'a> {
        mask.iter_wrap(if in_turn { self.rqs[this].any_cpu.index() + 1 } else { 0 })
    }
}
