//! How much imbalance between NUMA nodes is tolerated.
//!
//! Two tasks that talk to each other are better off on one node even if another is
//! idle. So a small difference is tolerated while the node is far from full; what
//! "far from full" means changed three times.

use crate::wakeup::{NUMA_IMBALANCE_MIN, adjust_numa_imbalance};
use crate::{LbNumaImbalance, SchedDomain, SdFlags, SgLbStats};

/// An imbalance between nodes after tolerance. `local` does not include the task to be moved.
///
/// Kernel: calculate_imbalance(), kernel/sched/fair.c, v5.6, v5.17 and v5.18.
pub(super) fn after_numa_tolerance(
    rule: LbNumaImbalance,
    sd: &SchedDomain,
    imbalance: i64,
    local: &SgLbStats,
    busiest: &SgLbStats,
) -> i64 {
    if !sd.flags.has(SdFlags::NUMA) {
        return imbalance;
    }
    let small = imbalance <= NUMA_IMBALANCE_MIN as i64;
    let tolerated = match rule {
        LbNumaImbalance::Off => false,
        LbNumaImbalance::Pair => u64::from(busiest.sum_nr_running) <= NUMA_IMBALANCE_MIN,
        LbNumaImbalance::Quarter => small && busiest.sum_nr_running < busiest.group_weight / 4,
        LbNumaImbalance::PerLlc => {
            return adjust_numa_imbalance(imbalance as u64, local.sum_nr_running + 1, sd.imb_numa_nr) as i64;
        }
    };
    if tolerated { 0 } else { imbalance }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::balance::drawings::{check_kernels, check_pass};

    #[test]
    fn two_tasks_may_share_a_node() {
        check_kernels(
            "",
            "2x1x8 | 0[a*] 1[b*]",
            "cpu=8 idle level=1",
            expect![[r#"
                v4.13: LB_NOTHING_MOVABLE load 1024 from 0
                v5.5: LB_NOTHING_MOVABLE task 1 from 0
                v5.18..v7.3: LB_NUMA_ALLOWED imbalance=0"#]],
        );
    }

    #[test]
    fn four_are_too_many_for_some() {
        check_kernels(
            "",
            "2x1x8 | 0[a* b] 1[c* d]",
            "cpu=8 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 2048 from 0, b to 8
                v5.5: LB_TASK task 2 from 0, b to 8
                v5.18: LB_NUMA_ALLOWED imbalance=0
                v6.1..v7.3: LB_TASK task 2 from 0, b to 8"#]],
        );
    }

    #[test]
    fn a_node_of_many_caches_may_hold_more() {
        check_kernels(
            "",
            "2x8x2 | 0[a* b] 2[c*] 4[d*] 6[e*] 16[x*] 18[y*] 20[z*]",
            "cpu=17 idle level=2",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 0, b to 17
                v5.5: LB_TASK task 1 from 0, b to 17
                v5.18..v7.3: LB_NUMA_ALLOWED imbalance=0"#]],
        );
    }

    #[test]
    fn a_node_of_one_cache_holds_fewer() {
        check_kernels(
            "",
            "2x1x16 | 0[a* b] 2[c*] 4[d*] 6[e*] 16[x*] 18[y*] 20[z*]",
            "cpu=17 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 0, b to 17
                v5.5: LB_TASK task 1 from 0, b to 17
                v5.18: LB_NUMA_ALLOWED imbalance=0
                v6.1..v7.3: LB_TASK task 1 from 0, b to 17"#]],
        );
    }

    #[test]
    fn a_pair_was_enough_for_v5_6() {
        check_pass(
            "v5.5+LB_NUMA_IMBALANCE=pair",
            "2x1x8 | 0[a* b]",
            "cpu=8 idle level=1",
            expect!["LB_NUMA_ALLOWED imbalance=0"],
        );
    }

    #[test]
    fn no_more_than_a_pair() {
        check_pass(
            "v5.5+LB_NUMA_IMBALANCE=pair",
            "2x1x8 | 0[a* b c]",
            "cpu=8 idle level=1",
            expect!["LB_TASK task 1 from 0, b to 8"],
        );
    }

    #[test]
    fn v5_17_allowed_a_quarter_of_the_node() {
        check_pass(
            "v5.18+LB_NUMA_IMBALANCE=quarter",
            "2x1x16 | 0[a* b c]",
            "cpu=16 idle level=1",
            expect!["LB_NUMA_ALLOWED imbalance=0"],
        );
    }

    #[test]
    fn and_not_more() {
        check_pass(
            "v5.18+LB_NUMA_IMBALANCE=quarter",
            "2x1x16 | 0[a* b c d]",
            "cpu=16 idle level=1",
            expect!["LB_TASK task 2 from 0, b to 16, c to 16"],
        );
    }

    #[test]
    fn without_the_rule_they_are_spread() {
        check_kernels(
            "+LB_NUMA_IMBALANCE=off",
            "2x1x8 | 0[a* b]",
            "cpu=8 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 0, b to 8
                v5.5..v7.3: LB_TASK task 1 from 0, b to 8"#]],
        );
    }

    #[test]
    fn inside_a_node_nothing_is_tolerated() {
        check_kernels(
            "",
            "1x2x8 | 0[a* b]",
            "cpu=8 idle level=1",
            expect![[r#"
                v4.13: LB_IDLE_EVEN local_idle_cpus=8
                v5.5..v7.3: LB_TASK task 1 from 0, b to 8"#]],
        );
    }
}
