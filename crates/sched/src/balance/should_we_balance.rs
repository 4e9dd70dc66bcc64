//! Who of a group makes the pass.
//!
//! One CPU balances for all of its group: the first idle one, else the first. Where cores
//! have several threads an idle thread of a busy core is a poor helper, so from v6.6 on a
//! wholly idle core is preferred.

use alloc::vec::Vec;

use schedlab_topology::CpuId;

use super::env::LbEnv;
use crate::{Feature, IdleType, SdFlags};

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
            // Work may have come while the lock was given up.
            let rq = &sched.rqs[self.dst_cpu];
            return !sched.kernel.has(Feature::NewidleBailOut) || rq.nr_running == 0 && !rq.ttwu_pending;
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
