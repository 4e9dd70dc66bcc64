//! A running task that is too large for its CPU, on machines whose CPUs differ.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::wakeup::util_fits_cpu;
use crate::{Sched, View};

impl Sched {
    /// Whether a task fits a CPU, its clamps considered.
    ///
    /// Kernel: task_fits_cpu(), kernel/sched/fair.c, v6.12.
    pub(crate) fn task_fits_cpu(&self, task: TaskId, cpu: CpuId, now: Time) -> bool {
        util_fits_cpu(&View::new(self, now, None), task, cpu) > 0
    }

    /// Notes the load of the running task if it would do better on another CPU.
    ///
    /// Kernel: update_misfit_status(), kernel/sched/fair.c, v6.1.
    #[inline]
    pub(crate) fn update_misfit_status(&mut self, cpu: CpuId, task: Option<TaskId>) {
        if !self.domains.asym_active {
            return;
        }
        let now = Time(self.rqs[cpu].clock);
        let misfit =
            task.filter(|&task| self.task(task).nr_cpus_allowed > 1 && !self.task_fits_cpu(task, cpu, now));
        self.rqs[cpu].misfit_task_load = misfit.map_or(0, |task| self.task_h_load(task, now).max(1));
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::balance::drawings::{Pass, check_kernels};
    use crate::drawing::{by_kernel, draw};

    #[test]
    fn a_large_task_on_a_small_cpu_is_noted() {
        let noted = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x4:capacity=0-1/446 | 0[a*] 2[b*]");
            let [a, b] = ["a", "b"].map(|name| drawn.task(name));
            for task in [a, b] {
                drawn.sched.task_mut(task).se.avg.util_avg = 400;
            }
            drawn.sched.update_misfit_status(CpuId(0), Some(a));
            drawn.sched.update_misfit_status(CpuId(2), Some(b));
            let noted = [0, 2].map(|cpu| drawn.sched.rqs[CpuId(cpu)].misfit_task_load);
            drawn.sched.update_misfit_status(CpuId(0), None);
            alloc::format!("{noted:?}, then {}", drawn.sched.rqs[CpuId(0)].misfit_task_load)
        };
        expect!["v4.13..v7.2: [1023, 0], then 0"].assert_eq(&by_kernel("", noted));
    }

    #[test]
    fn a_larger_cpu_pulls_it() {
        let pull = |kernel: &str| {
            let mut pass = Pass::new(
                kernel,
                "1x1x4:capacity=0-1/446 | 0[a* b] 1[] 2[] 3[]",
                "cpu=2 idle util:a=400 util:b=400",
            );
            let sched = &mut pass.drawn.sched;
            sched.rqs[CpuId(0)].misfit_task_load = 1024;
            sched.rqs[CpuId(0)].nr_running = 2;
            pass.decide()
        };
        expect![[r#"
            v4.13: LB_IDLE_EVEN local_idle_cpus=1
            v5.5..v7.2: LB_MISFIT misfit 1 from 0, b to 2"#]]
        .assert_eq(&by_kernel("", pull));
    }

    #[test]
    fn a_smaller_one_leaves_it() {
        check_kernels(
            "",
            "1x1x4:capacity=0-1/446 | 0[] 1[] 2[a* ] 3[]",
            "cpu=0 idle util:a=400",
            expect!["v4.13..v7.2: LB_NO_BUSIEST"],
        );
    }
}
