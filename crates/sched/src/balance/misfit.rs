//! A running task that is too large for its CPU, on machines with CPUs of different capacity.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::wakeup::util_fits_cpu;
use crate::{MisfitMark, Sched, SchedDomain, View};

impl Sched {
    /// Whether a task fits a CPU, considering its clamps.
    ///
    /// Kernel: task_fits_cpu(), kernel/sched/fair.c, v6.12; task_fits_capacity(), v5.18.
    pub(crate) fn task_fits_cpu(&self, task: TaskId, cpu: CpuId, now: Time) -> bool {
        util_fits_cpu(&View::new(self, now, None), task, self.task_util_est(task), cpu) > 0
    }

    /// Records the load of the running task if another CPU would suit it better.
    ///
    /// Kernel: update_misfit_status(), kernel/sched/fair.c, v6.1 and v6.12.
    #[inline]
    pub(crate) fn update_misfit_status(&mut self, cpu: CpuId, task: Option<TaskId>) {
        if !self.domains.asym_active {
            return;
        }
        let now = Time(self.rqs[cpu].ktime());
        let misfit = task.filter(|&task| {
            self.task(task).nr_cpus_allowed > 1
                && self.may_go_higher(task, cpu)
                && !self.task_fits_cpu(task, cpu, now)
        });
        self.rqs[cpu].misfit_task_load = misfit.map_or(0, |task| self.task_h_load(task, now).max(1));
    }

    /// Whether a task may use a larger CPU than the one on which it runs, in kernels that check this.
    fn may_go_higher(&self, task: TaskId, cpu: CpuId) -> bool {
        self.kernel.rules.misfit_mark == MisfitMark::DoesNotFit
            || self.topology.cpu(cpu).capacity != self.task(task).max_allowed_capacity
    }

    /// Notes the largest capacity of a fair task's CPUs, offline ones among them. While no domain has CPUs of different
    /// capacity, the kernel leaves what was noted before.
    ///
    /// Kernel: set_task_max_allowed_capacity(), kernel/sched/fair.c, v6.12.
    pub fn set_task_max_allowed_capacity(&mut self, task: TaskId) {
        if !self.domains.asym_active || !self.task(task).policy.is_fair() {
            return;
        }
        let housekeeping = self.topology.housekeeping();
        let allowed = self.task(task).allowed.iter().filter(|&cpu| housekeeping.contains(cpu));
        if let Some(capacity) = allowed.map(|cpu| self.topology.cpu(cpu).capacity).max() {
            self.task_mut(task).max_allowed_capacity = capacity;
        }
    }

    /// Whether a misfit task was recorded that another CPU may take.
    ///
    /// Kernel: check_misfit_status(), kernel/sched/fair.c, v6.1 and v6.12.
    pub(super) fn check_misfit_status(&self, cpu: CpuId, sd: &SchedDomain) -> bool {
        let rq = &self.rqs[cpu];
        let can_be_helped = match self.kernel.rules.misfit_mark {
            MisfitMark::DoesNotFit => {
                rq.cpu_capacity_orig < self.domains.max_cpu_capacity || self.check_cpu_capacity(cpu, sd)
            }
            MisfitMark::LargerAllowed => true,
        };
        rq.misfit_task_load != 0 && can_be_helped
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use expect_test::expect;
    use schedlab_topology::{CpuId, CpuMask};

    use crate::Deactivate;
    use crate::balance::drawings::{Pass, check_kernels};
    use crate::drawing::{NOW, by_kernel, draw};

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
            format!("{noted:?}, then {}", drawn.sched.rqs[CpuId(0)].misfit_task_load)
        };
        expect!["v4.13..v7.3: [1023, 0], then 0"].assert_eq(&by_kernel("", noted));
    }

    #[test]
    fn its_load_is_that_of_the_jiffy_even_if_the_clock_is_left_alone() {
        let mut drawn = draw("v6.12", "1x1x4:capacity=0-1/446 | 0[a*]");
        let a = drawn.task("a");
        drawn.sched.task_mut(a).se.avg.util_avg = 400;
        let mut loads = Vec::new();
        for (load_avg, called) in [(1000, 0), (500, 0), (500, drawn.sched.tick_ns())] {
            drawn.sched.task_mut(a).se.avg.load_avg = load_avg;
            drawn.sched.cfs_rqs[0].avg.load_avg = load_avg;
            drawn.sched.rqs[CpuId(0)].called = NOW.0 + called;
            drawn.sched.update_misfit_status(CpuId(0), Some(a));
            loads.push(drawn.sched.cfs_rqs[0].h_load.get());
        }
        assert_eq!(loads, [1000, 1000, 500]);
    }

    #[test]
    fn a_task_that_is_picked_again_is_noted_again_up_to_v6_11() {
        let noted = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x4:capacity=0-1/446 | 0[a*]");
            let a = drawn.task("a");
            drawn.sched.task_mut(a).se.avg.util_avg = 400;
            drawn.sched.schedule(CpuId(0), Deactivate::Preempted, NOW);
            format!("{}", drawn.sched.rqs[CpuId(0)].misfit_task_load > 0)
        };
        expect![[r#"
            v4.13: false
            v5.5..v6.10: true
            v6.12..v7.3: false"#]]
        .assert_eq(&by_kernel("", noted));
    }

    #[test]
    fn on_the_largest_cpu_nobody_can_help() {
        // Recorded on a small CPU, on a large one, and on a small one without access to large ones; then the CPU that
        // requests help.
        let noted = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x4:capacity=0-1/446 | 0[a*] 1[c*] 2[b*]");
            for (name, cpu, allowed) in [("a", 0, "0-3"), ("b", 2, "0-3"), ("c", 1, "0-1")] {
                let (task, cpu) = (drawn.task(name), CpuId(cpu));
                let p = drawn.sched.task_mut(task);
                p.se.avg.util_avg = 1000;
                p.allowed = Arc::new(CpuMask::parse_list(allowed, 4).unwrap());
                p.nr_cpus_allowed = p.allowed.weight() as u32;
                drawn.sched.set_task_max_allowed_capacity(task);
                drawn.sched.update_misfit_status(cpu, Some(task));
            }
            let sched = &drawn.sched;
            let asks = |cpu| sched.check_misfit_status(cpu, sched.domains.walk(cpu).next().unwrap().1);
            [0, 2, 1]
                .map(CpuId)
                .map(|cpu| format!("{} {}", sched.rqs[cpu].misfit_task_load, asks(cpu)))
                .join(", ")
        };
        expect![[r#"
            v4.13..v6.3: 1023 true, 1023 false, 1023 true
            v6.10..v7.3: 1023 true, 0 false, 0 false"#]]
        .assert_eq(&by_kernel("", noted));
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
            v5.5..v7.3: LB_MISFIT misfit 1 from 0, b to 2"#]]
        .assert_eq(&by_kernel("", pull));
    }

    #[test]
    fn a_smaller_one_leaves_it() {
        check_kernels(
            "",
            "1x1x4:capacity=0-1/446 | 0[] 1[] 2[a* ] 3[]",
            "cpu=0 idle util:a=400",
            expect!["v4.13..v7.3: LB_NO_BUSIEST"],
        );
    }
}
