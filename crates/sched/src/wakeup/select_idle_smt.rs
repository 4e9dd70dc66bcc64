//! An idle thread of a core that is known to be warm.

use schedlab_topology::CpuId;

use crate::{Feature, IdleSmt, SchedDomain};

use super::select_idle_sibling::Search;

impl Search<'_> {
    /// The first idle thread of the core of `of`: the target (up to v5.11), after the scan,
    /// or the previous CPU, before it. In v5.5 one that runs SCHED_IDLE tasks only if none is idle.
    ///
    /// Kernel: select_idle_smt(), kernel/sched/fair.c, v5.5, v5.10, v5.18, v6.12.
    pub(super) fn select_idle_smt(&self, llc: &SchedDomain, of: CpuId) -> Option<CpuId> {
        let (sched, kernel) = (self.view.sched, self.view.kernel());
        let target_last = kernel.rules.idle_smt == IdleSmt::TargetLast;
        let skip_self = !target_last && kernel.has(Feature::SmtSkipPrev);
        let in_llc = kernel.has(Feature::SmtLlcSpan);
        let idle_first = kernel.has(Feature::ScanKeepSchedIdle);
        let mut sched_idle = None;
        for cpu in sched.domains.smt_mask[of].iter() {
            if skip_self && cpu == of || !self.allowed.contains(cpu) || in_llc && !llc.span.contains(cpu) {
                continue;
            }
            if self.scans(cpu) {
                if !idle_first || sched.available_idle_cpu(cpu) {
                    return Some(cpu);
                }
                sched_idle = sched_idle.or(Some(cpu));
            }
        }
        sched_idle
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::wakeup::drawn::{check_all, check_wakeup};

    #[test]
    fn a_thread_of_the_previous_core_before_the_scan_or_of_the_targets_after_it() {
        check_all(
            "1x1x3x2 | 0[waker*] 2[a*] 4[b*]",
            "wake x prev=4 waker=waker",
            expect![[r#"
            v4.13: cpu 1, IDLE_CPU, examined 2, WA_SHARE_CACHE 0
            v5.5: cpu 1, IDLE_CPU, examined 2, WA_WEIGHT 0
            v5.18: cpu 5, IDLE_SMT, examined 2, WA_WEIGHT 0
            v6.1..v7.3: cpu 5, IDLE_SMT, examined 1, WA_WEIGHT 0, remote"#]],
        );
        check_all(
            "1x1x2x2 | 0[waker*] 2[a*] 3[b*]",
            "wake x prev=2 waker=waker sync",
            expect![[r#"
            v4.13: cpu 1, IDLE_CPU, examined 2, WA_SHARE_CACHE 0
            v5.5: cpu 1, IDLE_CPU, examined 2, WA_SYNC 0
            v5.18: cpu 1, IDLE_CPU, examined 3, WA_SYNC 0
            v6.1..v7.3: cpu 1, IDLE_CPU, examined 2, WA_SYNC 0, remote"#]],
        );
        check_all(
            "2x1x1x2 | 0[waker*] 2[a*] 3[b*]",
            "wake x prev=2 waker=waker sync",
            expect![[r#"
            v4.13: cpu 1, IDLE_CPU, examined 2, WA_NODE_LOAD 0
            v5.5: cpu 1, IDLE_CPU, examined 2, WA_SYNC 0
            v5.18: cpu 1, IDLE_CPU, examined 1, WA_SYNC 0
            v6.1..v7.3: cpu 1, IDLE_CPU, examined 1, WA_SYNC 0, remote"#]],
        );
    }

    #[test]
    fn v5_12_looks_at_no_siblings_and_finds_the_idle_thread_only_as_far_as_the_scan_goes() {
        let drawing = "1x1x8x2:smt=interleaved | 0[waker* ; avg_idle=1] 1[a*] 2[b*] 3[x*] llc0{cost=1000}";
        let v5_12 = "v5.10+IDLE_CORE=merged+IDLE_SMT=none+NO_SIS_AVG_CPU";
        for (kernel, found) in [
            (v5_12, expect!["cpu 0, SCAN_LIMIT, examined 3"]),
            ("v5.10+IDLE_CORE=merged+IDLE_SMT=prev_first", expect!["cpu 8, IDLE_SMT, examined 2"]),
        ] {
            check_wakeup(kernel, drawing, "wake y prev=0 waker=waker", found);
        }
        // A core that is known to be idle is found by the merged scan, the target's own first.
        check_wakeup(
            v5_12,
            "1x1x3x2 | 0[waker*] 2[] 4[] llc0{cores}",
            "wake x prev=0 waker=waker",
            expect!["cpu 2, IDLE_CORE, examined 4"],
        );
    }

    #[test]
    fn an_isolated_thread_is_of_the_core_but_not_of_the_cache_s_domain() {
        check_all(
            "1x1x3x2:isolcpus=5 | 0[waker*] 2[a*] 4[b*]",
            "wake x prev=4 waker=waker",
            expect![[r#"
            v4.13: cpu 1, IDLE_CPU, examined 2, WA_SHARE_CACHE 0
            v5.5..v5.18: cpu 1, IDLE_CPU, examined 2, WA_WEIGHT 0
            v6.1: cpu 1, IDLE_CPU, examined 1, WA_WEIGHT 0, remote
            v6.3: cpu 5, IDLE_SMT, examined 1, WA_WEIGHT 0, remote
            v6.10..v7.3: cpu 1, IDLE_CPU, examined 1, WA_WEIGHT 0, remote"#]],
        );
    }

    #[test]
    fn the_target_s_sibling_is_found_though_the_scan_was_cut_short() {
        check_wakeup(
            "v5.5",
            "1x1x8x2:smt=interleaved | 0[waker* ; avg_idle=1] 1[a*] 2[b*] llc0{cost=1000}",
            "wake x prev=0 waker=waker",
            expect!["cpu 8, IDLE_SMT, examined 5"],
        );
        check_wakeup(
            "v4.13",
            "1x1x8x2:smt=interleaved | 0[waker* ; avg_idle=1] 1[a*] 2[b*] llc0{cost=1000}",
            "wake x prev=0 waker=waker",
            expect!["cpu 8, IDLE_SMT, examined 5"],
        );
        check_wakeup(
            "v5.5",
            "1x1x8x2:smt=interleaved | 0[waker* ; avg_idle=1] 1[a*] 2[b*] 8[idle:c*] llc0{cost=1000}",
            "wake x prev=0 waker=waker",
            expect!["cpu 8, IDLE_SMT, examined 5"],
        );
        for (kernel, found) in [
            ("v5.5", expect!["cpu 10, IDLE_SMT, examined 6"]),
            ("v5.10", expect!["cpu 5, IDLE_SMT, examined 5"]),
        ] {
            check_wakeup(
                kernel,
                "1x1x5x3:smt=interleaved | 0[waker* ; avg_idle=1] 1[a*] 2[b*] 3[c*] 4[d*] 5[idle:e*] 10[] llc0{cost=1000}",
                "wake x prev=0 waker=waker",
                found,
            );
        }
        check_wakeup(
            "v6.12+IDLE_SMT=target_last",
            "1x1x8x2:smt=interleaved | 0[waker*] 1[a*] 2[b*] llc0{scan=2}",
            "wake x prev=0 waker=waker",
            expect!["cpu 8, IDLE_SMT, examined 4, remote"],
        );
    }
}
