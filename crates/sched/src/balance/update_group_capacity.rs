//! Capacity of groups, brought up to date from below whenever a pass looks at its own group.

use schedlab_units::Time;

use crate::{Sched, SdFlags, SdId};

impl Sched {
    /// Computes the capacity of a domain's local group anew.
    ///
    /// Kernel: update_group_capacity(), kernel/sched/fair.c, v6.12.
    pub fn update_group_capacity(&mut self, id: SdId, now: Time) {
        let sd = self.domains.sd(id);
        let (cpu, child) = (sd.cpu, sd.child);
        let sgc = self.domains.sg(sd.groups.local()).sgc as usize;
        let interval = self.msecs_to_jiffies(sd.balance_interval).clamp(1, self.max_load_balance_interval);
        self.domains.sgcs[sgc].next_update = self.jiffies(now) + interval;
        let capacities = match child {
            None => {
                self.update_cpu_capacity(cpu);
                let capacity = self.capacity_of(cpu);
                [capacity; 3]
            }
            Some(child) => self.sum_capacity(id, child),
        };
        let sgc = &mut self.domains.sgcs[sgc];
        [sgc.capacity, sgc.min_capacity, sgc.max_capacity] = capacities;
    }

    /// Sum, smallest and largest capacity of what the local group consists of. Groups of
    /// overlapping domains do not make up the group, so its CPUs are counted.
    fn sum_capacity(&self, id: SdId, child: SdId) -> [u64; 3] {
        let child = self.domains.sd(child);
        let add = |[sum, min, max]: [u64; 3], [c, lo, hi]: [u64; 3]| [sum + c, min.min(lo), max.max(hi)];
        let none = [0, u64::MAX, 0];
        if child.flags.has(SdFlags::NUMA) {
            let group = self.domains.sg(self.domains.sd(id).groups.local());
            group.span.iter().map(|cpu| [self.capacity_of(cpu); 3]).fold(none, add)
        } else {
            let sgcs =
                child.groups.iter().map(|group| &self.domains.sgcs[self.domains.sg(group).sgc as usize]);
            sgcs.map(|c| [c.capacity, c.min_capacity, c.max_capacity]).fold(none, add)
        }
    }

    /// Milliseconds in ticks, rounded up.
    ///
    /// Kernel: msecs_to_jiffies(), include/linux/jiffies.h.
    pub(crate) fn msecs_to_jiffies(&self, ms: u64) -> u64 {
        (ms * self.kernel.tunables.hz).div_ceil(1000)
    }
}
