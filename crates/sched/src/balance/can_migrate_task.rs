//! Whether a candidate may be moved.

use schedlab_units::TaskId;

use super::env::LbEnv;
use super::{MigrationType, NotMoved};
use crate::{Feature, IdleType, SeId, TgId};

impl LbEnv<'_> {
    /// The answer for one candidate; takes note of what affinity forbids.
    ///
    /// NUMA locality has no opinion: NUMA balancing is not modelled.
    ///
    /// Kernel: can_migrate_task(), kernel/sched/fair.c, v7.2, v6.12, v5.5 and v4.13.
    pub(super) fn can_migrate_task(&mut self, task: TaskId) -> Result<(), NotMoved> {
        let sched = self.sched;
        let kernel = &sched.kernel;
        let p = sched.task(task);
        if kernel.has(Feature::LbEligibleFirst) {
            if p.se.sched_delayed && self.migration_type != MigrationType::Load {
                return Err(NotMoved::Delayed);
            }
            if self.throttled(p.tg, false) {
                return Err(NotMoved::Throttled);
            }
            if self.sd.nr_balance_failed == 0 && self.is_ineligible_on_dst(task) {
                return Err(NotMoved::Ineligible);
            }
        } else if self.throttled(p.tg, true) {
            return Err(NotMoved::Throttled);
        }
        if p.is_per_cpu_kthread() && kernel.has(Feature::LbSkipPerCpuKthread) {
            return Err(NotMoved::PerCpuKthread);
        }
        if !p.allowed.contains(self.dst_cpu) {
            self.flags.some_pinned = true;
            if self.idle != IdleType::NewlyIdle && !self.flags.dst_pinned && !self.flags.active {
                let other = self.cpus(self.dst_grpmask()).find(|&cpu| p.allowed.contains(cpu));
                if let Some(cpu) = other {
                    self.flags.dst_pinned = true;
                    self.new_dst_cpu = cpu;
                }
            }
            return Err(NotMoved::NotAllowed);
        }
        self.flags.all_pinned = false;
        if p.on_cpu {
            return Err(NotMoved::Running);
        }
        if self.flags.active {
            return if self.wrong_llc(task) { Err(NotMoved::OtherLlc) } else { Ok(()) };
        }
        if let Some(why) = self.degrades_llc(task) {
            if self.migration_type != MigrationType::LlcTask {
                self.flags.llc_pinned = true;
            }
            return Err(why);
        }
        if self.task_hot(task) && self.sd.nr_balance_failed <= self.sd.cache_nice_tries {
            return Err(NotMoved::CacheHot);
        }
        Ok(())
    }

    /// Whether the group has no quota left at the destination, or at either end.
    ///
    /// Kernel: throttled_lb_pair(), kernel/sched/fair.c, v6.12; lb_throttled_hierarchy(), v7.2.
    fn throttled(&self, tg: TgId, either: bool) -> bool {
        if tg == TgId::ROOT {
            return false;
        }
        let group = self.sched.tg(tg);
        let throttled =
            |cpu: schedlab_topology::CpuId| self.sched.cfs(group.cfs_rq[cpu.index()]).throttle_count > 0;
        throttled(self.dst_cpu) || either && throttled(self.src_cpu)
    }

    /// With lag kept over migration, a task that is not eligible here would not be there
    /// either, if it found others there.
    ///
    /// Kernel: task_is_ineligible_on_dst_cpu(), kernel/sched/fair.c, v7.2.
    fn is_ineligible_on_dst(&self, task: TaskId) -> bool {
        let sched = self.sched;
        let p = sched.task(task);
        let dst = sched.tg(p.tg).cfs_rq[self.dst_cpu.index()];
        let src = p.se.cfs_rq.expect("a candidate is queued");
        sched.kernel.has(Feature::PlaceLag)
            && sched.cfs(dst).nr_queued != 0
            && !sched.entity_eligible(src, SeId(task.0))
    }
}
