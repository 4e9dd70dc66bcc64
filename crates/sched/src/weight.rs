//! Weights of nice levels.
//!
//! Kernel: sched_prio_to_weight, sched_prio_to_wmult, kernel/sched/core.c; the same in all versions.

/// Weight of a nice-0 entity in 64-bit scale.
pub const NICE_0_LOAD: u64 = 1 << 20;
/// Unscaled weight of a SCHED_IDLE task.
pub const WEIGHT_IDLEPRIO: u64 = 3;
/// 2^32 / [`WEIGHT_IDLEPRIO`].
pub const WMULT_IDLEPRIO: u32 = 1_431_655_765;
/// Bits by which 64-bit kernels scale weights up.
pub const LOAD_SHIFT: u32 = 10;

const PRIO_TO_WEIGHT: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121,
    2501, 1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29,
    23, 18, 15,
];

const PRIO_TO_WMULT: [u32; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437, 449829, 563644, 704093,
    875809, 1099582, 1376151, 1717300, 2157191, 2708050, 3363326, 4194304, 5237765, 6557202, 8165337,
    10153587, 12820798, 15790321, 19976592, 24970740, 31350126, 39045157, 49367440, 61356676, 76695844,
    95443717, 119304647, 148102320, 186737708, 238609294, 286331153,
];

/// Unscaled weight of a nice level, -20..=19.
pub fn prio_to_weight(nice: i8) -> u64 {
    PRIO_TO_WEIGHT[(nice + 20) as usize] as u64
}

/// 2^32 over the unscaled weight of a nice level.
pub fn prio_to_wmult(nice: i8) -> u32 {
    PRIO_TO_WMULT[(nice + 20) as usize]
}

/// Weight without the 64-bit scale; at least 2 unless zero.
///
/// Kernel: scale_load_down(), kernel/sched/sched.h, v5.18.
#[inline]
pub fn scale_load_down(weight: u64) -> u64 {
    if weight == 0 { 0 } else { (weight >> LOAD_SHIFT).max(2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inverse_table_is_two_to_the_32_over_the_weight() {
        for nice in -20..=19 {
            let exact = (1u64 << 32) / prio_to_weight(nice);
            assert!(exact.abs_diff(prio_to_wmult(nice) as u64) <= 1, "nice {nice}");
        }
    }
}
