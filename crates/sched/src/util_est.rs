//! What a task's utilisation will be once it wakes: its average decays while it sleeps,
//! so the value at its last dequeue is kept.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{Feature, Sched, Task, UtilEstCapacity, UtilEstForm};

/// Differences below this are not worth a change: 1024 / 100.
const UTIL_EST_MARGIN: u32 = 10;
/// A new value counts a quarter.
const UTIL_EST_WEIGHT_SHIFT: u32 = 2;

impl Task {
    /// The estimate. In v5.5 the lowest bit is a flag and always reads as set.
    ///
    /// Kernel: _task_util_est(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub(crate) fn estimate(&self, form: UtilEstForm) -> u32 {
        match form {
            UtilEstForm::FlagInLowestBit => self.util_est_ewma.max(self.util_est_enqueued) | 1,
            UtilEstForm::EwmaAndLast => self.util_est_ewma.max(self.util_est_enqueued),
            UtilEstForm::Single => self.util_est_ewma,
        }
    }
}

impl Sched {
    /// The larger of a task's present and its estimated utilisation.
    ///
    /// Kernel: task_util_est(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn task_util_est(&self, task: TaskId) -> u64 {
        self.or_estimate(task, self.task(task).se.avg.util_avg)
    }

    /// The larger of this and a task's estimated utilisation.
    #[inline]
    pub(crate) fn or_estimate(&self, task: TaskId, util_avg: u64) -> u64 {
        if !self.kernel.has(Feature::UtilEst) {
            return util_avg;
        }
        util_avg.max(self.task(task).estimate(self.kernel.rules.util_est_form).into())
    }

    /// What a sleep updates of a task's estimate, as the tracepoint `sched_util_est_se` shows it: the utilisation of its last
    /// activation, or the only average that there is since v6.8.
    pub fn util_est_last(&self, task: TaskId) -> u32 {
        match self.kernel.rules.util_est_form {
            UtilEstForm::Single => self.task(task).util_est_ewma,
            _ => self.task(task).util_est_enqueued,
        }
    }

    /// A task was queued: its estimate counts for the CPU.
    ///
    /// Kernel: util_est_enqueue(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn util_est_enqueue(&mut self, task: TaskId, cpu: CpuId) {
        if self.kernel.has(Feature::UtilEst) {
            let estimate = self.tasks[task.index()].estimate(self.kernel.rules.util_est_form);
            self.rqs[cpu].util_est_enqueued += estimate;
        }
    }

    /// A task left the queue: its estimate no longer counts.
    ///
    /// Kernel: util_est_dequeue(), kernel/sched/fair.c, v6.12.
    #[inline]
    pub fn util_est_dequeue(&mut self, task: TaskId, cpu: CpuId) {
        if self.kernel.has(Feature::UtilEst) {
            let estimate = self.tasks[task.index()].estimate(self.kernel.rules.util_est_form);
            let sum = &mut self.rqs[cpu].util_est_enqueued;
            *sum = sum.saturating_sub(estimate);
        }
    }

    /// A task goes to sleep: updates its estimate by its utilisation.
    ///
    /// Kernel: util_est_update(), kernel/sched/fair.c, v6.1, v6.12, v7.2; util_est_dequeue() in v5.5.
    pub fn util_est_update(&mut self, task: TaskId, cpu: CpuId, sleep: bool) {
        if !sleep || !self.kernel.has(Feature::UtilEst) {
            return;
        }
        let capacity = match self.kernel.rules.util_est_capacity {
            UtilEstCapacity::Skip => self.rqs[cpu].cpu_capacity_orig,
            UtilEstCapacity::Falls => u64::MAX,
        };
        let form = self.kernel.rules.util_est_form;
        let fastup = self.kernel.has(Feature::UtilEstFastup);
        let task = &mut self.tasks[task.index()];
        if !task.se.util_avg_changed {
            return;
        }
        if form == UtilEstForm::Single {
            task.update_single(capacity);
        } else {
            task.update_ewma_and_last(form, fastup, capacity);
        }
    }
}

impl Task {
    fn update_single(&mut self, capacity: u64) {
        let util = self.se.avg.util_avg as u32;
        if self.util_est_ewma > util {
            let diff = self.util_est_ewma - util;
            if diff >= UTIL_EST_MARGIN {
                if u64::from(util) > capacity {
                    return;
                }
                // A task that waited would have used more had it been let.
                if u64::from(util + UTIL_EST_MARGIN) >= self.se.avg.runnable_avg {
                    self.util_est_ewma =
                        ((self.util_est_ewma << UTIL_EST_WEIGHT_SHIFT) - diff) >> UTIL_EST_WEIGHT_SHIFT;
                }
            }
        } else {
            self.util_est_ewma = util;
        }
        self.se.util_avg_changed = false;
    }

    fn update_ewma_and_last(&mut self, form: UtilEstForm, fastup: bool, capacity: u64) {
        let flag = form == UtilEstForm::FlagInLowestBit;
        let util = self.se.avg.util_avg as u32 | u32::from(flag);
        let mut ewma = self.util_est_ewma;
        if !(fastup && ewma < util) {
            let diff = util as i32 - ewma as i32;
            if diff.unsigned_abs() < UTIL_EST_MARGIN {
                // v5.5 keeps the last value as well; later kernels store one that differs.
                if flag || self.util_est_enqueued.abs_diff(util) < UTIL_EST_MARGIN {
                    return;
                }
            } else {
                if self.se.avg.util_avg > capacity {
                    return;
                }
                ewma = ((ewma << UTIL_EST_WEIGHT_SHIFT) as i32 + diff) as u32 >> UTIL_EST_WEIGHT_SHIFT;
            }
        } else {
            ewma = util;
        }
        self.util_est_ewma = ewma;
        self.util_est_enqueued = util;
        self.se.util_avg_changed = false;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::{by_kernel, draw};
    use crate::lab::Lab;

    /// Utilisation and runnable time at successive dequeues.
    const SLEEPS: [(u64, u64); 10] = [
        (300, 300),
        (500, 500),
        (400, 400),
        (397, 397),
        (200, 700),
        (100, 100),
        (470, 470),
        (455, 455),
        (460, 460),
        (0, 0),
    ];

    /// Last value and slow average after each, from a separate calculation.
    #[track_caller]
    fn check(kernel: &str, expected: [(u32, u32); 10]) {
        let mut drawn = draw(kernel, "1x1x2 | 0[a*] 1[]");
        let a = drawn.task("a");
        let found: Vec<_> = SLEEPS
            .iter()
            .map(|&(util, runnable)| {
                let task = drawn.sched.task_mut(a);
                (task.se.avg.util_avg, task.se.avg.runnable_avg) = (util, runnable);
                task.se.util_avg_changed = true;
                drawn.sched.util_est_update(a, CpuId(0), true);
                let task = drawn.sched.task(a);
                (task.util_est_enqueued, task.util_est_ewma)
            })
            .collect();
        assert_eq!(found, expected, "{kernel}");
    }

    #[test]
    fn the_estimate_rises_at_once_and_falls_slowly() {
        let v5_18 = [
            (300, 300),
            (500, 500),
            (400, 475),
            (397, 455),
            (200, 391),
            (100, 318),
            (470, 470),
            (455, 466),
            (455, 466),
            (0, 349),
        ];
        check("v5.18", v5_18);
        check("v6.3", v5_18);
    }

    #[test]
    fn in_v5_5_the_lowest_bit_is_a_flag() {
        check(
            "v5.5",
            [
                (301, 301),
                (501, 501),
                (401, 476),
                (397, 456),
                (201, 392),
                (101, 319),
                (471, 471),
                (455, 467),
                (455, 467),
                (1, 350),
            ],
        );
    }

    #[test]
    fn without_fastup_it_rises_slowly_too() {
        check(
            "v5.5+NO_UTIL_EST_FASTUP",
            [
                (301, 75),
                (501, 181),
                (401, 236),
                (397, 276),
                (201, 257),
                (101, 218),
                (471, 281),
                (455, 324),
                (461, 358),
                (1, 268),
            ],
        );
    }

    #[test]
    fn one_value_is_kept_while_the_task_had_to_wait() {
        let values = [300, 500, 475, 455, 455, 366, 470, 466, 466, 349];
        check("v6.10", values.map(|value| (0, value)));
        check("v7.2", values.map(|value| (0, value)));
    }

    #[test]
    fn a_new_task_has_an_estimate_after_its_first_sleep_however_short_it_ran() {
        let estimate = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let new = lab.hog("new", 0);
            lab.sched.task_mut(new).se.avg.util_avg = 400;
            lab.sleep(new);
            let form = lab.sched.kernel.rules.util_est_form;
            format!("{}", lab.sched.task(new).estimate(form))
        };
        expect![[r#"
            v4.13: 1
            v5.5: 401
            v5.18..v7.3: 400"#]]
        .assert_eq(&by_kernel("", estimate));
    }

    #[test]
    fn there_was_none_before_v4_17() {
        check("v4.13", [(0, 0); 10]);
        check("v6.12+NO_UTIL_EST", [(0, 0); 10]);
    }

    #[test]
    fn the_cpu_counts_the_estimates_of_its_tasks() {
        let mut drawn = draw("v6.12", "1x1x2 | 0[a* b] 1[]");
        let [a, b] = ["a", "b"].map(|name| drawn.task(name));
        let sched = &mut drawn.sched;
        for (task, estimate) in [(a, 300), (b, 200)] {
            sched.task_mut(task).util_est_ewma = estimate;
            sched.util_est_enqueue(task, CpuId(0));
        }
        assert_eq!(sched.cpu_util(CpuId(0)), 500);
        assert_eq!(sched.cpu_util_without(b, CpuId(0)), 300);
        assert_eq!(sched.task_util_est(b), 200);
        sched.util_est_dequeue(a, CpuId(0));
        assert_eq!(sched.cpu_util(CpuId(0)), 200);
    }

    #[test]
    fn a_task_that_used_more_than_its_cpu_has_keeps_its_estimate_until_v7_2() {
        let after = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x2:capacity=0/446 | 0[a*] 1[]");
            let a = drawn.task("a");
            let task = drawn.sched.task_mut(a);
            (task.se.avg.util_avg, task.se.avg.runnable_avg, task.util_est_ewma) = (500, 500, 900);
            task.se.util_avg_changed = true;
            drawn.sched.util_est_update(a, CpuId(0), true);
            drawn.sched.task(a).util_est_ewma
        };
        assert_eq!(["v6.1", "v6.12", "v7.2"].map(after), [900, 900, 800]);
    }
}
