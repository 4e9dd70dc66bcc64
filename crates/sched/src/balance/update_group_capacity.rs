//! Capacity of groups, updated from below whenever a pass examines its own group.

use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::{Sched, SdFlags, SdId};

impl Sched {
    /// Recomputes the capacity of a domain's local group.
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

    /// Computes the capacities of all groups of new domains. The first CPU that may balance for a group does so, from the
    /// last CPU to the first, so that sums contain those of the groups below.
    ///
    /// Kernel: init_sched_groups_capacity(), kernel/sched/topology.c, v6.12.
    pub(super) fn init_sched_groups_capacity(&mut self, now: Time) {
        for cpu in (0..self.rqs.len()).rev().map(CpuId::from) {
            let levels: Vec<SdId> = self.domains.walk(cpu).map(|(id, _)| id).collect();
            for id in levels {
                let group = self.domains.sg(self.domains.sd(id).groups.local());
                if group.balance_mask.first() == Some(cpu) {
                    self.update_group_capacity(id, now);
                }
            }
        }
    }

    /// Sum, minimum and maximum of the capacities of the local group's child groups. Child groups of
    /// overlapping domains do not add up to the group, so its CPUs are used.
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

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::{NOW, by_kernel, draw};

    #[test]
    fn capacity_is_summed_from_below_as_last_computed() {
        let capacities = |kernel: &str| {
            let mut drawn = draw(kernel, "2x1x2x2 | 0[]");
            let sched = &mut drawn.sched;
            // Half of CPU 0 is taken by RT; the others have not updated recently.
            sched.rqs[CpuId(0)].avg_rt.util_avg = 512;
            sched.rqs[CpuId(0)].rt_avg = 500_000_000 * 512;
            sched.rqs[CpuId(0)].age_stamp = NOW.0;
            sched.rqs[CpuId(1)].avg_rt.util_avg = 512;
            let levels: Vec<_> = sched.domains.walk(CpuId(0)).map(|(id, _)| id).collect();
            let mut text = Vec::new();
            for id in levels {
                sched.update_group_capacity(id, NOW);
                let sgc =
                    &sched.domains.sgcs[sched.domains.sg(sched.domains.sd(id).groups.local()).sgc as usize];
                let due = sgc.next_update - sched.jiffies(NOW);
                text.push(format!(
                    "{} of {}..{} until {due}",
                    sgc.capacity, sgc.min_capacity, sgc.max_capacity
                ));
            }
            text.join(", ")
        };
        expect![[r#"
            v4.13: 294 of 294..294 until 1, 883 of 294..589 until 1, 2061 of 294..589 until 2
            v5.5..v7.3: 512 of 512..512 until 1, 1536 of 512..1024 until 1, 3584 of 512..1024 until 2"#]]
        .assert_eq(&by_kernel("", capacities));
    }
}
