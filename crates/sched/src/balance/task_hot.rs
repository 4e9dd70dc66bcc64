//! Whether a task's data is likely still in its CPU's caches.

use schedlab_units::TaskId;

use super::env::LbEnv;
use crate::{Feature, SdFlags, SeId, TaskHot};

impl LbEnv<'_> {
    /// It ran within the migration cost, or is to run next.
    ///
    /// Kernel: task_hot(), kernel/sched/fair.c, v6.12 and v5.5.
    pub(super) fn task_hot(&self, task: TaskId) -> bool {
        let sched = self.sched;
        let p = sched.task(task);
        if !p.policy.is_fair() || p.has_idle_policy() {
            return false;
        }
        let inside_core = self.sd.flags.has(SdFlags::SHARE_CPUCAPACITY);
        if inside_core && sched.kernel.rules.task_hot == TaskHot::RecentNotSmt {
            return false;
        }
        if sched.kernel.has(Feature::CacheHotBuddy) && self.dst_nr_running != 0 {
            let cfs = sched.cfs(p.se.cfs_rq.expect("a candidate is queued"));
            let se = Some(SeId(task.0));
            if cfs.next == se || cfs.last == se {
                return true;
            }
        }
        let delta = sched.clock_task_at(self.src_cpu, self.now).wrapping_sub(p.se.exec_start);
        (delta as i64) < sched.kernel.tunables.migration_cost_ns as i64
    }
}
