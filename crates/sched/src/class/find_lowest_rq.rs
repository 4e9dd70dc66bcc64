//! Where an RT task is placed when it wakes: where it ran last, unless it would wait there.
//!
//! It would wait for a task of its own or a higher priority, or for one that cannot move. Then it is placed
//! on the nearest of the CPUs with the lowest priority, if that is lower than its own.

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::TaskId;

use super::nearest::{Nearest, Taken};
use crate::class::Class;
use crate::{CpupriDl, Placement, Reason, RtBesideDl, Sched};

impl Sched {
    /// A CPU for an RT task that wakes or is new.
    ///
    /// Kernel: select_task_rq_rt(), kernel/sched/rt.c, v4.13, v6.12.
    pub fn select_task_rq_rt(&self, task: TaskId, this: CpuId) -> Placement {
        let prev = self.task(task).wake_cpu;
        let taken = self.lowest_for_woken(task, this).and_then(|lowest| self.take_nearest(&lowest, this));
        Taken::placement(taken, prev, Reason::LowestRt)
    }

    /// The CPUs from which one is chosen for a woken RT task; `None` if it stays where it was.
    pub fn lowest_for_woken(&self, task: TaskId, this: CpuId) -> Option<Nearest> {
        let entry = self.task(task);
        let prev = entry.wake_cpu;
        let curr = self.rqs[prev].curr_seen().task()?;
        let bound = self.task(curr).nr_cpus_allowed < 2;
        let of_real_time = match self.class_of(curr) {
            Class::Dl => self.kernel.rules.rt_beside_dl == RtBesideDl::Elsewhere,
            class => class >= Class::Rt,
        };
        let waits = of_real_time && (bound || self.rt_level(prev) >= entry.policy.rt_priority());
        (waits && entry.nr_cpus_allowed > 1).then(|| self.find_lowest_rq(task, this))
    }

    /// The highest RT priority that waits or runs on a CPU; 0 is lower than all of them.
    ///
    /// Kernel: cpupri_set(), kernel/sched/cpupri.c, inc_dl_deadline(), kernel/sched/deadline.c, v6.12.
    fn cpupri(&self, cpu: CpuId) -> u8 {
        if self.rqs[cpu].cpupri_higher && self.kernel.rules.cpupri_dl == CpupriDl::Higher {
            return u8::MAX;
        }
        self.rqs[cpu].rt_queue.first().map_or(0, |&task| self.task(task).policy.rt_priority())
    }

    /// The CPUs from which one is chosen: those of the lowest priority, if it is lower than the task's.
    ///
    /// Kernel: find_lowest_rq(), cpupri_find(), kernel/sched/rt.c and cpupri.c, v6.12.
    pub(super) fn find_lowest_rq(&self, task: TaskId, this: CpuId) -> Nearest {
        let entry = self.task(task);
        let nr_cpus = self.rqs.len();
        let usable = |cpu: &CpuId| self.rqs[*cpu].active && self.shares_root_domain(*cpu, entry.cpu);
        let mut lowest = entry.policy.rt_priority();
        let mut mask = CpuMask::new(nr_cpus);
        for cpu in entry.allowed.iter().filter(usable) {
            let level = self.cpupri(cpu);
            if level < lowest {
                (lowest, mask) = (level, CpuMask::new(nr_cpus));
                mask.set(cpu);
            } else if level == lowest && !mask.is_empty() {
                mask.set(cpu);
            }
        }
        self.nearest(task, this, mask)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::{Expect, expect};
    use schedlab_topology::CpuId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NewTask, Policy};

    /// Where a sleeper of priority 10 is placed: it slept on CPU 0, CPU 3 wakes it, and CPUs run FIFO tasks of these
    /// priorities.
    fn check(running: &'static [(u16, u8)], expected: Expect) {
        let decided = |kernel: &str| -> String {
            let mut lab = Lab::new(kernel, "1x1x4");
            let rt = |lab: &Lab, priority| NewTask { policy: Policy::Fifo(priority), ..lab.spec() };
            let spec = rt(&lab, 10);
            let woken = lab.fork("woken", 0, spec);
            lab.sleep(woken);
            for &(cpu, priority) in running {
                let spec = rt(&lab, priority);
                lab.fork(&format!("rt{cpu}"), cpu, spec);
            }
            let placement = lab.sched.select_task_rq_rt(woken, CpuId(3));
            format!("cpu {}, {}", placement.cpu.0, placement.reason.name())
        };
        expected.assert_eq(&by_kernel("", decided));
    }

    #[test]
    fn a_cpu_with_a_deadline_task_is_low_again_once_an_rt_task_leaves_it() {
        let levels = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let level = |lab: &Lab| match lab.sched.cpupri(CpuId(0)) {
                u8::MAX => String::from("higher"),
                level => format!("{level}"),
            };
            let policy = Policy::Deadline { runtime: 90 * MS, deadline: 100 * MS, period: 100 * MS };
            let spec = NewTask { policy, ..lab.spec() };
            let dl = lab.fork("dl", 0, spec);
            let alone = level(&lab);
            let rt = NewTask { policy: Policy::Fifo(10), ..lab.spec() };
            let rt = lab.fork("rt", 1, rt);
            lab.sched.insert_rt(CpuId(0), rt, false);
            let beside = level(&lab);
            lab.sched.remove_rt(CpuId(0), rt);
            let left = level(&lab);
            lab.sleep(dl);
            format!("{alone}, {beside}, {left}, {}", level(&lab))
        };
        assert_eq!(levels("v5.5"), "0, 10, 0, 0");
        assert_eq!(levels("v6.12"), "higher, 10, 0, 0");
        assert_eq!(levels("v7.2"), "higher, 10, 0, 0");
    }

    #[test]
    fn beside_a_deadline_task_one_of_real_time_is_placed_elsewhere_or_pushed() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let spec = NewTask { policy: Policy::Fifo(10), ..lab.spec() };
            let woken = lab.fork("woken", 0, spec);
            lab.sleep(woken);
            let policy = Policy::Deadline { runtime: 90 * MS, deadline: 100 * MS, period: 100 * MS };
            let spec = NewTask { policy, ..lab.spec() };
            lab.fork("dl", 0, spec);
            let placement = lab.sched.select_task_rq_rt(woken, CpuId(0));
            lab.wake(woken);
            format!("{}, from CPU 0 to {}", placement.reason.name(), lab.sched.task(woken).cpu.0)
        });
        expect![[r#"
            v4.13..v5.5: KEEP_CPU, from CPU 0 to 0
            v5.18..v6.3: LOWEST_RT, from CPU 0 to 0
            v6.10: LOWEST_RT, from CPU 0 to 1
            v6.12..v7.3: KEEP_CPU, from CPU 0 to 1"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_cpu_of_a_deadline_task_counts_as_one_of_its_tasks_of_real_time_or_as_the_highest() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x3");
            let rt = |lab: &Lab, priority| NewTask { policy: Policy::Fifo(priority), ..lab.spec() };
            let spec = rt(&lab, 10);
            let woken = lab.fork("woken", 0, spec);
            lab.sleep(woken);
            let policy = Policy::Deadline { runtime: 90 * MS, deadline: 100 * MS, period: 100 * MS };
            for (cpu, policy) in [(0, Policy::Fifo(20)), (1, policy), (2, Policy::Fifo(5))] {
                let spec = NewTask { policy, ..lab.spec() };
                lab.fork("runs", cpu, spec);
            }
            // RT throttling does not matter.
            lab.sched.rqs[CpuId(2)].rt_throttled = true;
            let placement = lab.sched.select_task_rq_rt(woken, CpuId(0));
            format!("cpu {}, {}", placement.cpu.0, placement.reason.name())
        });
        expect![[r#"
            v4.13..v5.5: cpu 1, LOWEST_RT
            v5.18..v7.3: cpu 2, LOWEST_RT"#]]
        .assert_eq(&found);
    }

    #[test]
    fn nobody_is_sent_to_an_isolated_cpu_or_from_it_to_others() {
        let placed = |from: u16| {
            move |kernel: &str| -> String {
                let mut lab = Lab::new(kernel, "1x1x4:isolcpus=2-3");
                let rt = |lab: &Lab, priority| NewTask { policy: Policy::Fifo(priority), ..lab.spec() };
                let spec = rt(&lab, 10);
                let woken = lab.fork("woken", from, spec);
                lab.sleep(woken);
                for cpu in [0, 2] {
                    let spec = rt(&lab, 20);
                    lab.fork("runs", cpu, spec);
                }
                format!("cpu {}", lab.sched.select_task_rq_rt(woken, CpuId(from)).cpu.0)
            }
        };
        expect!["v4.13..v7.3: cpu 1"].assert_eq(&by_kernel("", placed(0)));
        expect!["v4.13..v7.3: cpu 3"].assert_eq(&by_kernel("", placed(2)));
    }

    #[test]
    fn a_task_of_real_time_does_not_wait_behind_another_if_some_cpu_runs_less() {
        check(&[], expect!["v4.13..v7.3: cpu 0, KEEP_CPU"]);
        check(&[(0, 9)], expect!["v4.13..v7.3: cpu 0, KEEP_CPU"]);
        check(&[(0, 10)], expect!["v4.13..v7.3: cpu 3, LOWEST_RT"]);
        check(&[(0, 10), (3, 1)], expect!["v4.13..v7.3: cpu 1, LOWEST_RT"]);
        check(&[(0, 20), (1, 5), (2, 4), (3, 5)], expect!["v4.13..v7.3: cpu 2, LOWEST_RT"]);
        check(&[(0, 20), (1, 10), (2, 11), (3, 12)], expect!["v4.13..v7.3: cpu 0, KEEP_CPU"]);
    }

    #[test]
    fn rt_tasks_see_a_cpu_without_its_deadline_task_once_domains_are_rebuilt() {
        let told = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x4");
            let of = |lab: &Lab, policy| NewTask { policy, ..lab.spec() };
            let spec = of(&lab, Policy::Fifo(10));
            let woken = lab.fork("woken", 0, spec);
            lab.sleep(woken);
            for cpu in [0, 2] {
                let spec = of(&lab, Policy::Fifo(20));
                lab.fork("rt", cpu, spec);
            }
            let policy = Policy::Deadline { runtime: 10 * MS, deadline: 200 * MS, period: 200 * MS };
            let spec = of(&lab, policy);
            lab.fork("dl", 1, spec);
            let chosen = |lab: &Lab| lab.sched.select_task_rq_rt(woken, CpuId(0)).cpu.0;
            let before = chosen(&lab);
            lab.sched.rqs[CpuId(3)].active = false;
            lab.sched.cpu_activate(CpuId(3), lab.time());
            lab.sched.rqs[CpuId(3)].active = false;
            format!("cpu {before}, then {}", chosen(&lab))
        };
        expect![[r#"
            v4.13..v5.5: cpu 1, then 1
            v5.18..v7.3: cpu 3, then 1"#]]
        .assert_eq(&by_kernel("", told));
    }
}
