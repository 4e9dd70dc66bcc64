//! Whether a task's data is likely still in its CPU's caches.

use schedlab_units::TaskId;

use super::env::LbEnv;
use crate::{Feature, SdFlags, SeId, TaskHot};

impl LbEnv<'_> {
    /// It ran within the migration cost, or will run next.
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

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use expect_test::expect;

    use crate::SeId;
    use crate::balance::drawings::Pass;

    /// A pass of CPU 1, with b the next buddy on CPU 0.
    fn pass(kernel: &str, drawing: &str, words: &str) -> String {
        let mut pass = Pass::new(kernel, drawing, words);
        let buddy = pass.drawn.task("b");
        pass.drawn.sched.set_next_buddy(SeId(buddy.0));
        pass.decide()
    }

    #[test]
    fn the_task_to_run_next_counts_as_hot() {
        let drawing = "1x1x2 | 0[a* b ;util=1000 load=3000] 1[c* ;util=1000 load=500]";
        let words = "cpu=1 busy load:b=200";
        expect!["LB_NOTHING_MOVABLE load 838 from 0, b CacheHot, a Running"]
            .assert_eq(&pass("v6.12", drawing, words));
        expect!["LB_LOAD load 838 from 0, b to 1, a Running"].assert_eq(&pass(
            "v6.12+NO_CACHE_HOT_BUDDY",
            drawing,
            words,
        ));
    }

    #[test]
    fn a_cpu_that_runs_nothing_takes_it_all_the_same() {
        expect!["LB_TASK task 1 from 0, b to 1"].assert_eq(&pass(
            "v6.12",
            "1x1x4 | 0[a* b] 1[]",
            "cpu=1 newidle",
        ));
    }
}
