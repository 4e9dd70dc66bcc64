//! Real time to virtual time and back, in the kernel's integers.
//!
//! `delta * weight / load` is a multiplication by a cached inverse and a shift, so the last digits differ
//! from a plain division; virtual times are compared bit for bit with recorded ones, so the shifts here are
//! the kernel's. v7.2 divides on 64-bit machines: its weights have no inverse.

use crate::weight::{LOAD_SHIFT, scale_load_down};
use crate::weight::{NICE_0_LOAD, WEIGHT_IDLEPRIO, WMULT_IDLEPRIO, prio_to_weight, prio_to_wmult};
use crate::{Feature, Kernel, LoadWeight, Policy};

const WMULT_SHIFT: u32 = 32;

impl LoadWeight {
    /// A weight in 64-bit scale with the inverse computed from it.
    ///
    /// Kernel: update_load_set(), __update_inv_weight(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn new(weight: u64) -> LoadWeight {
        LoadWeight { weight, inv_weight: inverse(weight) }
    }

    /// The weight of a task, with the inverse from the kernel's table.
    ///
    /// Kernel: set_load_weight(), kernel/sched/core.c, v6.12.
    pub fn of_task(policy: Policy, nice: i8) -> LoadWeight {
        if policy == Policy::Idle {
            return LoadWeight { weight: WEIGHT_IDLEPRIO << LOAD_SHIFT, inv_weight: WMULT_IDLEPRIO };
        }
        LoadWeight { weight: prio_to_weight(nice) << LOAD_SHIFT, inv_weight: prio_to_wmult(nice) }
    }
}

impl Kernel {
    /// A weight of an entity as this kernel uses it: without an inverse if the kernel divides.
    ///
    /// Kernel: __calc_delta(), kernel/sched/fair.c, v7.2.
    #[inline]
    pub(crate) fn divisor(&self, load: LoadWeight) -> LoadWeight {
        if self.has(Feature::CalcDeltaDivides) { LoadWeight { inv_weight: 0, ..load } } else { load }
    }
}

#[inline]
fn inverse(weight: u64) -> u32 {
    match scale_load_down(weight) {
        0 => u32::MAX,
        w if w >= u32::MAX as u64 => 1,
        w => u32::MAX / w as u32,
    }
}

/// `delta * weight / load`, both weights in 64-bit scale.
///
/// Kernel: __calc_delta(), kernel/sched/fair.c, v6.12, v7.2.
#[inline]
pub fn calc_delta(delta: u64, weight: u64, load: &LoadWeight) -> u64 {
    if load.inv_weight == 0 {
        return delta.wrapping_mul(weight) / load.weight.max(1);
    }
    let mut fact = scale_load_down(weight);
    let mut shift = WMULT_SHIFT;
    reduce(&mut fact, &mut shift);
    fact *= load.inv_weight as u64;
    reduce(&mut fact, &mut shift);
    ((delta as u128 * fact as u128) >> shift) as u64
}

/// Drops low bits of `fact` until it fits 32 bits.
#[inline]
fn reduce(fact: &mut u64, shift: &mut u32) {
    let excess = 32 - ((*fact >> 32) as u32).leading_zeros();
    *fact >>= excess;
    *shift -= excess;
}

/// Virtual time that passes for an entity of this weight while it runs for `delta`.
///
/// Kernel: calc_delta_fair(), kernel/sched/fair.c, v6.12.
#[inline]
pub fn calc_delta_fair(delta: u64, load: &LoadWeight) -> u64 {
    if load.weight == NICE_0_LOAD { delta } else { calc_delta(delta, NICE_0_LOAD, load) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values worked out from the definition with arbitrary-precision integers:
    /// fact = 1024 * inverse, reduced to 32 bits, and one shift.
    #[test]
    fn virtual_time_of_every_kind_of_weight_to_the_last_bit() {
        for (delta, load, expected) in [
            (1_000_000, LoadWeight::of_task(Policy::Normal, 0), 1_000_000),
            (1_000_000, LoadWeight::of_task(Policy::Normal, 1), 1_248_780),
            (1_000_000, LoadWeight::of_task(Policy::Normal, -1), 801_879),
            (1_000_000, LoadWeight::of_task(Policy::Normal, 5), 3_056_716),
            (1_000_000, LoadWeight::of_task(Policy::Normal, 19), 68_266_666),
            (1_000_000, LoadWeight::of_task(Policy::Normal, -20), 11_536),
            (4_000_001, LoadWeight::of_task(Policy::Normal, 3), 7_787_074),
            (1_000_000, LoadWeight::of_task(Policy::Idle, 0), 341_333_333),
            (1_000_000, LoadWeight::new(2), 511_999_999),
            (1_000_000, LoadWeight::new(333_333), 3_150_768),
            (0, LoadWeight::new(333_333), 0),
        ] {
            assert_eq!(calc_delta_fair(delta, &load), expected, "{delta} ns at weight {}", load.weight);
        }
    }

    #[test]
    fn v7_2_divides() {
        let vslice =
            |kernel: &str, load| calc_delta_fair(2_100_000, &Kernel::parse(kernel).unwrap().divisor(load));
        for (load, inverse, divided) in [
            (LoadWeight::of_task(Policy::Normal, 19), 143_359_999, 143_360_000),
            (LoadWeight::of_task(Policy::Normal, 0), 2_100_000, 2_100_000),
            (LoadWeight::new(333_333), 6_616_614, 6_606_035),
        ] {
            assert_eq!(vslice("v6.12", load), inverse);
            assert_eq!(vslice("v7.2", load), divided);
            assert_eq!(vslice("v7.2+NO_CALC_DELTA_DIVIDES", load), inverse);
        }
    }

    #[test]
    fn a_share_of_a_sum_is_rounded_like_the_kernels() {
        // Three nice-0 tasks in 18 ms: slightly less than 6 ms each.
        let three = LoadWeight::new(3 * NICE_0_LOAD);
        assert_eq!(calc_delta(18_000_000, NICE_0_LOAD, &three), 5_999_998);
        // Nice 0 beside nice 5: 1024 of 1359 parts.
        let sum = LoadWeight::new((1024 + 335) << 10);
        assert_eq!(calc_delta(24_000_000, NICE_0_LOAD, &sum), 18_083_885);
        assert_eq!(calc_delta(24_000_000, 335 << 10, &sum), 5_916_114);
    }
}
