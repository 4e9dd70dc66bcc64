//! The average virtual time V, and which entities are eligible.
//!
//! A queue keeps S, the sum of (vruntime - zero) * weight over its time line, and W,
//! the sum of the weights; the running entity is added when asked. V = zero + S / W
//! is where all lags cancel out, and an entity is eligible, owed service, when its
//! vruntime is not beyond V. Comparing products instead of the rounded V makes the
//! test exact.

use crate::weight::scale_load_down;
use crate::{AvgReference, AvgWeight, CfsRq, Entity, Rules};

/// The two sums with the running entity added if it is queued, and their zero point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AvgSums {
    /// vruntime from which keys are counted.
    pub zero: u64,
    /// Sum of key times weight.
    pub sum: i64,
    /// Sum of weights.
    pub weight: i64,
}

/// The weight with which an entity enters the sums.
///
/// Kernel: avg_vruntime_weight(), kernel/sched/fair.c, v7.2; scale_load_down() before.
#[inline]
pub(crate) fn avg_vruntime_weight(rules: &Rules, cfs_rq: &CfsRq, weight: u64) -> i64 {
    let weight = match rules.avg_weight {
        AvgWeight::Scaled => scale_load_down(weight),
        AvgWeight::Full if cfs_rq.sum_shift == 0 => weight,
        AvgWeight::Full => (weight >> cfs_rq.sum_shift).max(2),
    };
    weight as i64
}

impl CfsRq {
    /// The vruntime from which the keys of the sums are counted.
    #[inline]
    pub fn zero(&self, rules: &Rules) -> u64 {
        match rules.avg_reference {
            AvgReference::MinVruntime => self.min_vruntime,
            AvgReference::ZeroVruntime => self.zero_vruntime,
        }
    }

    /// Adds an entity that enters the time line, or takes one off that leaves it.
    ///
    /// Kernel: avg_vruntime_add(), avg_vruntime_sub(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub(crate) fn account_avg(&mut self, rules: &Rules, vruntime: u64, weight: u64, enters: bool) {
        let key = vruntime.wrapping_sub(self.zero(rules)) as i64;
        let weight = avg_vruntime_weight(rules, self, weight);
        let product = key.wrapping_mul(weight);
        if enters {
            self.avg_vruntime = self.avg_vruntime.wrapping_add(product);
            self.avg_load += weight;
        } else {
            self.avg_vruntime = self.avg_vruntime.wrapping_sub(product);
            self.avg_load -= weight;
        }
    }

    /// An entity of the time line moves in virtual time.
    #[inline]
    pub(crate) fn shift_avg(&mut self, rules: &Rules, by: i64, weight: u64) {
        let weight = avg_vruntime_weight(rules, self, weight);
        self.avg_vruntime = self.avg_vruntime.wrapping_add(by.wrapping_mul(weight));
    }

    /// Whether adding an entity would overflow a sum.
    pub(crate) fn avg_would_overflow(&self, rules: &Rules, vruntime: u64, weight: u64) -> bool {
        let key = vruntime.wrapping_sub(self.zero(rules)) as i64;
        let product = key.checked_mul(avg_vruntime_weight(rules, self, weight));
        product.and_then(|product| self.avg_vruntime.checked_add(product)).is_none()
    }

    /// The first vruntime at which the running entity is no longer owed service. It is not on the time line: it is
    /// just beyond the average of the others.
    ///
    /// Kernel: ineligible_vruntime(), kernel/sched/fair.c, v7.3.
    pub(crate) fn ineligible_vruntime(&self, rules: &Rules) -> u64 {
        AvgSums::of(rules, self, None).average().wrapping_add(1)
    }

    /// Moves the zero point, and the sum with it.
    ///
    /// Kernel: update_zero_vruntime(), kernel/sched/fair.c, v7.2; avg_vruntime_update(), v6.10.
    #[inline]
    pub(crate) fn move_zero(&mut self, rules: &Rules, delta: i64) {
        self.avg_vruntime = self.avg_vruntime.wrapping_sub(self.avg_load.wrapping_mul(delta));
        let zero = match rules.avg_reference {
            AvgReference::MinVruntime => &mut self.min_vruntime,
            AvgReference::ZeroVruntime => &mut self.zero_vruntime,
        };
        *zero = zero.wrapping_add(delta as u64);
    }
}

impl AvgSums {
    /// The sums of a queue; `curr` is its running entity, if that is queued.
    #[inline]
    pub fn of(rules: &Rules, cfs_rq: &CfsRq, curr: Option<&Entity>) -> AvgSums {
        let zero = cfs_rq.zero(rules);
        let mut sums = AvgSums { zero, sum: cfs_rq.avg_vruntime, weight: cfs_rq.avg_load };
        if let Some(curr) = curr {
            let weight = avg_vruntime_weight(rules, cfs_rq, curr.line_load().weight);
            let key = curr.vruntime.wrapping_sub(zero) as i64;
            sums.sum = sums.sum.wrapping_add(key.wrapping_mul(weight));
            sums.weight += weight;
        }
        sums
    }

    /// How far V is from the zero point, rounded down.
    #[inline]
    pub fn offset(&self) -> i64 {
        if self.weight == 0 { 0 } else { self.sum.div_euclid(self.weight) }
    }

    /// V, rounded down.
    ///
    /// Kernel: avg_vruntime(), kernel/sched/fair.c, v6.10.
    #[inline]
    pub fn average(&self) -> u64 {
        self.zero.wrapping_add(self.offset() as u64)
    }

    /// Whether an entity of this vruntime is owed service.
    ///
    /// Kernel: vruntime_eligible(), kernel/sched/fair.c, v7.2. Earlier kernels multiply in
    /// 64 bits; they differ only where that overflows.
    #[inline]
    pub fn eligible(&self, vruntime: u64) -> bool {
        let key = vruntime.wrapping_sub(self.zero) as i64;
        self.sum as i128 >= key as i128 * self.weight as i128
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CfsRqId;
    use crate::lab::Lab;

    #[test]
    fn the_average_is_rounded_down_on_both_sides_of_zero() {
        for (sum, weight, average) in [(7, 2, 103), (-7, 2, 96), (-8, 2, 96), (0, 0, 100), (6, 3, 102)] {
            assert_eq!(AvgSums { zero: 100, sum, weight }.average(), average, "{sum}/{weight}");
        }
    }

    #[test]
    fn eligibility_is_exact_where_the_average_is_rounded() {
        // V = 103.5: 103 is owed service, 104 is not.
        let sums = AvgSums { zero: 100, sum: 7, weight: 2 };
        assert!(sums.eligible(103));
        assert!(!sums.eligible(104));
        // V = -3.5 from zero, rounded to -4: -4 is eligible, -3 is not.
        let sums = AvgSums { zero: 0, sum: -7, weight: 2 };
        assert!(sums.eligible(-4i64 as u64));
        assert!(!sums.eligible(-3i64 as u64));
    }

    #[test]
    fn keys_are_counted_from_the_smallest_vruntime_or_from_the_average() {
        // a ran for 2 ms, b not yet: the average is 1 ms beyond b in any case.
        let zero = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x8").without_ticks();
            let [a, b] = ["a", "b"].map(|name| lab.hog(name, 0));
            lab.run(2_000_000);
            lab.ran(a);
            let average = lab.sched.avg_vruntime(CfsRqId(0));
            let waits = lab.sched.task(b).se.vruntime;
            let zero = lab.sched.cfs(CfsRqId(0)).zero(&lab.sched.kernel.rules);
            let beyond_b = |vruntime: u64| vruntime.wrapping_sub(waits) as i64 / 1000;
            alloc::format!("average {} us, zero {} us", beyond_b(average), beyond_b(zero))
        };
        assert_eq!(zero("v6.10+NO_HRTICK"), "average 1000 us, zero 0 us");
        assert_eq!(zero("v6.12+NO_HRTICK"), "average 1000 us, zero 1000 us");
        assert_eq!(zero("v7.2+NO_HRTICK"), "average 1000 us, zero 1000 us");
    }
}
