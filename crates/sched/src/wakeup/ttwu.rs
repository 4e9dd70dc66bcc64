//! try_to_wake_up: which way a wake-up takes, and carrying it out.
//!
//! Most wake-ups choose a CPU and queue the task there, directly or over the wake list
//! of a CPU that would be expensive to touch. A task that is still on its queue, or
//! just leaving its CPU, goes on where it is.

use alloc::vec::Vec;
use core::cell::RefCell;

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::{Candidate, Feature, Policy, Sched, View, WakeList};

use super::{WakePath, Wakeup, WakeupDecision};

impl Sched {
    /// Decides a wake-up. The CPUs that were passed over are listed if asked for.
    ///
    /// On machines whose CPUs differ in capacity the wakee's averages must be brought up
    /// to date first ([`Sched::sync_entity_load_avg`]), as the search asks what fits.
    ///
    /// Kernel: try_to_wake_up(), kernel/sched/core.c, v6.12, v5.5.
    pub fn decide_wakeup(
        &self,
        wakeup: &Wakeup,
        now: Time,
        passed_over: Option<&RefCell<Vec<Candidate>>>,
    ) -> WakeupDecision {
        let p = self.task(wakeup.task);
        let stays = |path, remote| WakeupDecision { path, placement: None, cpu: p.cpu, remote };
        if wakeup.waker == Some(wakeup.task) {
            return stays(WakePath::SelfWake, false);
        }
        if p.on_rq {
            let path = if p.se.sched_delayed { WakePath::StillDelayed } else { WakePath::StillQueued };
            return stays(path, false);
        }
        if p.on_cpu && self.kernel.has(Feature::TtwuOnCpu) && self.ttwu_queue_cond(wakeup, p.cpu, true) {
            return stays(WakePath::OnCpuHandover, true);
        }
        let view = View::new(self, now, passed_over);
        let placement = self.select_task_rq(&view, wakeup);
        let cpu = placement.cpu;
        let remote = self.ttwu_queue_cond(wakeup, cpu, false);
        WakeupDecision { path: WakePath::Select, placement: Some(placement), cpu, remote }
    }

    /// Whether a wake-up goes over the wake list of `cpu`; `descheduling` says that the
    /// wakee is just leaving that CPU.
    ///
    /// Kernel: ttwu_queue_cond(), kernel/sched/core.c, v6.12, v5.18; ttwu_queue(), v5.5.
    pub fn ttwu_queue_cond(&self, wakeup: &Wakeup, cpu: CpuId, descheduling: bool) -> bool {
        let rule = self.kernel.rules.wake_list;
        let rq = &self.rqs[cpu];
        if !self.kernel.has(Feature::TtwuQueue) {
            return false;
        }
        let other_llc = !self.cpus_share_cache(wakeup.this_cpu, cpu);
        match rule {
            WakeList::OtherLlc => other_llc,
            WakeList::OtherLlcOrDescheduling => {
                rq.active && cpu != wakeup.this_cpu && (other_llc || descheduling && rq.nr_running <= 1)
            }
            WakeList::OtherLlcOrIdle => {
                let p = self.task(wakeup.task);
                p.policy != Policy::Stop
                    && rq.active
                    && p.allowed.contains(cpu)
                    && (other_llc || cpu != wakeup.this_cpu && rq.nr_running == 0)
            }
        }
    }
}
