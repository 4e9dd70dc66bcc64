//! Which CPU of a group makes the pass.
//!
//! One CPU balances for its whole group: the first idle one, else the first. An idle thread of a busy core is
//! a poor choice, so from v6.6 on a wholly idle core is preferred.

use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::env::LbEnv;
use crate::{Feature, IdleType, Sched, SdFlags, SdId};

impl Sched {
    /// Whether a CPU makes a pass over a domain.
    ///
    /// Kernel: should_we_balance(), kernel/sched/fair.c, v4.13 to v7.2.
    pub fn should_we_balance(&self, cpu: CpuId, sd: SdId, idle: IdleType, now: Time) -> bool {
        // The environment of a whole pass is not needed for the most frequent passes.
        if idle == IdleType::NewlyIdle && self.leaving.is_empty() {
            return self.may_look_newly_idle(cpu);
        }
        LbEnv::new(self, cpu, sd, idle, now).should_we_balance()
    }

    /// Whether a newly idle CPU still has nothing to run: a task may have been queued while the lock was released.
    #[inline]
    fn may_look_newly_idle(&self, cpu: CpuId) -> bool {
        let rq = &self.rqs[cpu];
        !self.kernel.has(Feature::NewidleBailOut) || rq.nr_running == 0 && !rq.ttwu_pending
    }
}

impl LbEnv<'_> {
    /// Whether this CPU makes the pass.
    ///
    /// Kernel: should_we_balance(), kernel/sched/fair.c, v6.12, v6.1 and v5.5.
    pub fn should_we_balance(&self) -> bool {
        if !self.takes_part(self.dst_cpu) {
            return false;
        }
        let sched = self.sched;
        if self.idle == IdleType::NewlyIdle {
            return sched.may_look_newly_idle(self.dst_cpu);
        }
        let mask = self.dst_grpmask();
        if !sched.kernel.has(Feature::SmtAwareBalance) || self.sd.flags.has(SdFlags::SHARE_CPUCAPACITY) {
            let first_idle = self.cpus(mask).find(|&cpu| sched.idle_cpu(cpu));
            return first_idle.or(mask.first()) == Some(self.dst_cpu);
        }
        let mut idle_smt = None;
        let mut busy_cores: Vec<CpuId> = Vec::new();
        for cpu in self.cpus(mask) {
            if !sched.idle_cpu(cpu) || busy_cores.iter().any(|&c| sched.domains.smt_mask[c].contains(cpu)) {
                continue;
            }
            if sched.is_core_idle(cpu) {
                return cpu == self.dst_cpu;
            }
            idle_smt = idle_smt.or(Some(cpu));
            busy_cores.push(cpu);
        }
        idle_smt.or(mask.first()) == Some(self.dst_cpu)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::balance::drawings::{check_kernels, check_pass};

    #[test]
    fn the_first_idle_cpu_of_the_group_balances() {
        check_kernels(
            "",
            "2x1x2 | 0[a*] 1[] 2[b* c d] 3[e*]",
            "cpu=1 idle level=1",
            expect![[r#"
                v4.13: LB_LOAD load 1536 from 2, d to 1, c to 1
                v5.5..v7.3: LB_TASK task 1 from 2, c to 1"#]],
        );
    }

    #[test]
    fn a_busy_cpu_does_not_while_another_is_idle() {
        check_kernels(
            "",
            "2x1x2 | 0[a*] 1[] 2[b* c d] 3[e*]",
            "cpu=0 busy level=1",
            expect!["v4.13..v7.3: LB_NOT_US"],
        );
    }

    #[test]
    fn without_idle_ones_the_first_cpu_does() {
        check_kernels(
            "",
            "2x1x2 | 0[a*] 1[x*] 2[b* c d ;util=1024] 3[e* ;util=1024]",
            "cpu=0 busy level=1",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 2, d to 0, c TooLarge, b Running
                v5.5: LB_UTIL util 2046 from 2, c to 0, d to 0, b Running
                v5.18..v7.3: LB_UTIL util 2048 from 2, c to 0, d to 0, b Running"#]],
        );
    }

    #[test]
    fn and_no_other() {
        check_kernels(
            "",
            "2x1x2 | 0[a*] 1[x*] 2[b* c d] 3[e*]",
            "cpu=1 busy level=1",
            expect!["v4.13..v7.3: LB_NOT_US"],
        );
    }

    #[test]
    fn an_idle_thread_of_a_busy_core_leaves_it_to_an_idle_core() {
        check_kernels(
            "",
            "2x1x2x2 | 0[a*] 1[] 2[] 3[] 4[b* c] 5[d*] 6[e*] 7[f*]",
            "cpu=1 idle level=2",
            expect![[r#"
                v4.13: LB_LOAD load 2047 from 4, c to 1
                v5.5..v6.3: LB_TASK task 2 from 4, c to 1
                v6.10..v7.3: LB_NOT_US"#]],
        );
    }

    #[test]
    fn the_idle_core_does_it() {
        check_kernels(
            "",
            "2x1x2x2 | 0[a*] 1[] 2[] 3[] 4[b* c] 5[d*] 6[e*] 7[f*]",
            "cpu=2 idle level=2",
            expect![[r#"
                v4.13..v6.3: LB_NOT_US
                v6.10..v7.3: LB_TASK task 2 from 4, c to 2"#]],
        );
    }

    #[test]
    fn without_the_rule_the_thread_does_it() {
        check_pass(
            "v6.12+NO_SMT_AWARE_BALANCE",
            "2x1x2x2 | 0[a*] 1[] 2[] 3[] 4[b* c] 5[d*] 6[e*] 7[f*]",
            "cpu=1 idle level=2",
            expect!["LB_TASK task 2 from 4, c to 1"],
        );
    }

    #[test]
    fn if_no_core_is_idle_the_first_idle_thread_does() {
        check_kernels(
            "",
            "2x1x2x2 | 0[a*] 1[] 2[g*] 3[] 4[b* c] 5[d*] 6[e* h] 7[f* i]",
            "cpu=1 idle level=2",
            expect![[r#"
                v4.13: LB_LOAD load 2558 from 4, c to 1
                v5.5..v7.3: LB_TASK task 2 from 4, c to 1"#]],
        );
    }

    #[test]
    fn a_newly_idle_cpu_always_does_but_not_with_work_on_the_way() {
        check_kernels(
            "",
            "1x1x4 | 0[a* b] 1[; pending]",
            "cpu=1 newidle",
            expect![[r#"
                v4.13: LB_LOAD load 1024 from 0, b to 1
                v5.5..v5.18: LB_TASK task 1 from 0, b to 1
                v6.1..v7.3: LB_NOT_US"#]],
        );
    }
}
