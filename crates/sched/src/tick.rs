//! The periodic tick.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::class::Class;
use crate::{CfsRqId, Curr, Feature, Reason, Sched, SeId, TickUpgrade, UpdateFlags};

/// What a tick asks the driver to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticked {
    /// The balance softirq is due on this CPU.
    pub raise_balance: bool,
    /// This idle CPU must balance for the idle.
    pub nohz_kick: Option<CpuId>,
}

impl Sched {
    /// A tick on a CPU.
    ///
    /// Kernel: sched_tick(), kernel/sched/core.c, v6.12, v7.2.
    pub fn tick(&mut self, cpu: CpuId, now: Time) -> Ticked {
        self.update_rq_clock(cpu, now);
        let upgrades = self.kernel.preempt.tick_upgrades();
        let rq = &self.rqs[cpu];
        let (pending, curr) = (rq.need_resched.lazy, rq.curr);
        if pending && upgrades == TickUpgrade::Always {
            self.resched_curr(cpu, false);
        } else if pending && upgrades == TickUpgrade::IfAsked {
            // Out of the way, so that it shows whether the tick asks.
            self.rqs[cpu].need_resched.lazy = false;
        }
        if curr == Curr::Idle {
            self.update_curr_idle(cpu);
        }
        if let Curr::Task(task) = curr {
            match self.class_of(task) {
                Class::Fair => {
                    self.entity_ticks(SeId(task.0), false);
                    self.update_misfit_status(cpu, Some(task));
                    self.task_tick_cache(cpu, task);
                }
                Class::Rt => self.task_tick_rt(cpu, task),
                Class::Dl => self.task_tick_dl(cpu),
                Class::Stop | Class::Idle => {}
            }
        }
        if pending && upgrades == TickUpgrade::IfAsked {
            let asked = self.rqs[cpu].need_resched.lazy;
            self.rqs[cpu].need_resched.lazy = true;
            if asked {
                self.resched_curr(cpu, false);
            }
        }
        self.trigger_load_balance(cpu, now)
    }

    /// Charges the running task and its groups. Under CFS a tick looks for the end of slices; the slice timer (`queued`)
    /// is set for that end and requests a switch instead, before the levels above are charged.
    ///
    /// Kernel: task_tick_fair(), entity_tick(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    pub(crate) fn entity_ticks(&mut self, task: SeId, queued: bool) {
        let mut level = Some(task);
        while let Some(se) = level {
            let cfs = self.cfs_rq_of(se);
            self.update_curr(cfs);
            self.update_load_avg(cfs, se, UpdateFlags::UPDATE_TG);
            self.update_cfs_group(se);
            if queued {
                self.resched_now(self.cfs(cfs).cpu);
            } else if !self.is_eevdf() && self.cfs(cfs).nr_queued > 1 {
                self.preempt_at_tick(cfs, se);
            }
            level = self.se(se).parent;
        }
        if self.is_flat() {
            self.reweight_running(task);
        }
    }

    /// CFS: a task that is not alone is preempted if its slice is over, unless a timer handles that.
    fn preempt_at_tick(&mut self, cfs: CfsRqId, se: SeId) {
        let cpu = self.cfs(cfs).cpu;
        if self.rqs[cpu].hrtick.is_some() && !self.kernel.has(Feature::DoubleTick) {
            return;
        }
        let reason = self.check_preempt_tick(cfs, se);
        if reason.is_some() {
            self.resched_fair(cpu);
        }
        if reason == Some(Reason::SliceEnd) {
            // Not the one that had its turn is to be preferred.
            self.clear_buddies(cfs, se);
        }
    }

    /// CFS: whether the running entity has had its slice, or is a slice ahead of another.
    ///
    /// Kernel: check_preempt_tick(), kernel/sched/fair.c, v6.1, v6.3.
    pub fn check_preempt_tick(&self, cfs: CfsRqId, curr: SeId) -> Option<Reason> {
        let ideal = self.ideal_runtime(cfs, curr);
        let entity = self.se(curr);
        let ran = entity.sum_exec_runtime - entity.prev_sum_exec_runtime;
        if ran > ideal {
            return Some(Reason::SliceEnd);
        }
        if ran < self.scaled.min_granularity {
            return None;
        }
        let left = self.cfs(cfs).timeline.leftmost()?;
        let lead = entity.vruntime.wrapping_sub(left.vruntime) as i64;
        (lead > ideal as i64).then_some(Reason::BehindSlice)
    }

    /// CFS: how long the running entity may run, ns, and be ahead of another.
    ///
    /// Kernel: check_preempt_tick(), kernel/sched/fair.c, v6.1, v6.3.
    pub fn ideal_runtime(&self, cfs: CfsRqId, curr: SeId) -> u64 {
        let slice = self.sched_slice(cfs, curr);
        if self.kernel.has(Feature::SliceCapLatency) { slice.min(self.scaled.latency) } else { slice }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::{NOW, draw};

    #[test]
    fn a_tick_leaves_the_end_of_a_slice_to_the_timer_or_looks_too() {
        // a has run 20 ms of a slice of 12, and the slice timer is late.
        let asked = |kernel: &str| {
            let mut sched = draw(kernel, "1x1x8 | 0[a* b]").sched;
            let now = Time(NOW.0 + 20_000_000);
            sched.rqs[CpuId(0)].hrtick = Some(now.0 + 1_000_000);
            sched.tick(CpuId(0), now);
            sched.rqs[CpuId(0)].need_resched.any()
        };
        assert!(!asked("v6.1+HRTICK"));
        assert!(asked("v6.1+HRTICK+DOUBLE_TICK"));
    }
}
