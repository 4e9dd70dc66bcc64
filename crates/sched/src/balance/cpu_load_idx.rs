//! v4.13: past loads of a CPU, each smoother than the one before.
//!
//! At each tick `cpu_load[i]` moves by 1/2^i towards the current load. A CPU that slept through ticks catches
//! up at its next one.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::{CpuLoad, Feature, Sched};

/// Past loads kept.
pub(crate) const CPU_LOAD_IDX_MAX: usize = 5;
const DEGRADE_SHIFT: u32 = 7;
/// Missed ticks after which nothing is left.
const DEGRADE_ZERO_TICKS: [u64; CPU_LOAD_IDX_MAX] = [0, 8, 32, 64, 128];
/// ((2^i - 1) / 2^i) to the power of 1, 2, 4, .. in 128ths.
const DEGRADE_FACTOR: [[u64; 8]; CPU_LOAD_IDX_MAX] = [
    [0, 0, 0, 0, 0, 0, 0, 0],
    [64, 32, 8, 0, 0, 0, 0, 0],
    [96, 72, 40, 12, 1, 0, 0, 0],
    [112, 98, 75, 43, 15, 1, 0, 0],
    [120, 112, 98, 76, 45, 16, 2, 0],
];

/// A past load after ticks in which nothing ran.
///
/// Kernel: decay_load_missed(), kernel/sched/fair.c, v4.13.
fn decay_load_missed(mut load: u64, mut missed: u64, index: usize) -> u64 {
    if missed == 0 {
        return load;
    }
    if missed >= DEGRADE_ZERO_TICKS[index] {
        return 0;
    }
    if index == 1 {
        return load >> missed;
    }
    for factor in DEGRADE_FACTOR[index] {
        if missed % 2 == 1 {
            load = (load * factor) >> DEGRADE_SHIFT;
        }
        missed >>= 1;
    }
    load
}

/// Moves past loads towards the current one; `pending` ticks passed since the last time, all but the last of
/// them idle.
///
/// Kernel: cpu_load_update(), kernel/sched/fair.c, v4.13.
fn update(cpu_load: &mut [u64; CPU_LOAD_IDX_MAX], load: u64, pending: u64) {
    cpu_load[0] = load;
    for (i, past) in cpu_load.iter_mut().enumerate().skip(1) {
        let scale = 1 << i;
        let old = decay_load_missed(*past, pending - 1, i);
        // Rounded up when rising, or a small rise would never arrive.
        let new = if load > old { load + scale - 1 } else { load };
        *past = (old * (scale - 1) + new) >> i;
    }
}

impl Sched {
    /// The tick of a CPU, or nohz balancing on its behalf.
    ///
    /// Kernel: cpu_load_update_active(), cpu_load_update_idle(), kernel/sched/fair.c, v4.13.
    pub(super) fn cpu_load_update(&mut self, cpu: CpuId, now: Time) {
        if self.kernel.rules.cpu_load != CpuLoad::RunnableLoadAvg {
            return;
        }
        let (jiffy, load) = (self.jiffies(now), self.cpu_load(cpu));
        let rq = &mut self.rqs[cpu];
        let pending = jiffy - rq.last_load_update_tick;
        if pending > 0 {
            rq.last_load_update_tick = jiffy;
            update(&mut rq.cpu_load, load, pending);
        }
    }

    /// The load of a CPU as a source: the lower of past and current.
    ///
    /// Kernel: source_load(), kernel/sched/fair.c, v4.13.
    pub fn source_load(&self, cpu: CpuId, index: u8) -> u64 {
        let present = self.cpu_load(cpu);
        if index == 0 || !self.kernel.has(Feature::LbBias) {
            return present;
        }
        present.min(self.rqs[cpu].cpu_load[usize::from(index) - 1])
    }

    /// The load of a CPU as a destination: the higher of past and current.
    ///
    /// Kernel: target_load(), kernel/sched/fair.c, v4.13.
    pub fn target_load(&self, cpu: CpuId, index: u8) -> u64 {
        let present = self.cpu_load(cpu);
        if index == 0 || !self.kernel.has(Feature::LbBias) {
            return present;
        }
        present.max(self.rqs[cpu].cpu_load[usize::from(index) - 1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn past_loads_follow_ever_more_slowly() {
        let mut past = [0; CPU_LOAD_IDX_MAX];
        let rising = [1, 1, 2, 8].map(|ticks| {
            for _ in 0..ticks {
                update(&mut past, 1024, 1);
            }
            past
        });
        assert_eq!(
            rising,
            [
                [1024, 512, 256, 128, 64],
                [1024, 768, 448, 240, 124],
                [1024, 960, 700, 424, 234],
                [1024, 1024, 993, 821, 556],
            ]
        );
    }

    #[test]
    fn missed_ticks_decay_as_if_they_had_been_idle() {
        for missed in [1, 2, 5, 9, 33, 65, 130] {
            for index in 1..CPU_LOAD_IDX_MAX {
                let mut exact = 100_000;
                for _ in 0..missed {
                    exact -= exact >> index;
                }
                let found = decay_load_missed(100_000, missed, index);
                assert!(found.abs_diff(exact) <= 4_000, "{missed} ticks, {index}: {found}, exactly {exact}");
            }
        }
    }

    #[test]
    fn a_bias_makes_givers_light_and_receivers_heavy() {
        use crate::drawing::draw;
        // Currently 2048; over the last ticks 512, over more of them 4096.
        let loads = |kernel: &str| {
            let mut sched = draw(kernel, "1x1x2 | 0[a* b]").sched;
            sched.rqs[CpuId(0)].cpu_load = [2048, 512, 4096, 0, 0];
            [0, 2, 3].map(|index| (sched.source_load(CpuId(0), index), sched.target_load(CpuId(0), index)))
        };
        assert_eq!(loads("v4.13"), [(2048, 2048), (512, 2048), (2048, 4096)]);
        assert_eq!(loads("v4.13+NO_LB_BIAS"), [(2048, 2048); 3]);
    }
}
