//! Changing a task's parameters while it lives: nice level, policy, slice.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::class::Class;
use crate::fork::clamp_slice;
use crate::{
    Curr, DequeueFlags, EnqueueFlags, FairPolicy, Feature, LoadWeight, Policy, Sched, SeId, TaskState,
};

impl Sched {
    /// Sets the nice level of a task.
    ///
    /// Kernel: set_user_nice(), kernel/sched/syscalls.c, v6.12.
    pub fn set_nice(&mut self, task: TaskId, nice: i8, now: Time) {
        let old = self.task(task).nice;
        if old == nice {
            return;
        }
        // Of no use until the task is fair again. The clock of its CPU is read, unless sched_change_begin() does that.
        if !self.task(task).policy.is_fair() {
            self.task_mut(task).nice = nice;
            if !self.kernel.has(Feature::ClassLeavesFirst) {
                self.update_rq_clock(self.task(task).cpu, now);
            }
            return;
        }
        self.change_task(task, false, now, |sched| {
            sched.task_mut(task).nice = nice;
            let policy = sched.task(task).policy;
            sched.set_load_weight(task, policy);
        });
        self.prio_changed_fair(task, nice > old);
    }

    /// The slice a task requests; `None` for the kernel's own. Kernels before v6.12 have only that. As with any
    /// change of parameters a fair task is given its weight again, and its load average is recomputed from its sum.
    ///
    /// Kernel: __setparam_fair(), kernel/sched/fair.c, v7.2; __sched_setscheduler(), v6.12.
    pub fn set_slice(&mut self, task: TaskId, slice: Option<u64>, now: Time) {
        let base_slice = self.scaled.base_slice;
        let slice = slice.filter(|_| self.kernel.has(Feature::CustomSlice));
        let entry = self.task(task);
        let (cpu, policy) = (entry.cpu, entry.policy);
        if slice == Some(entry.se.slice) {
            return self.update_rq_clock(cpu, now);
        }
        self.change_task(task, false, now, |sched| {
            if policy.is_fair() && sched.kernel.has(Feature::CustomSlice) {
                sched.set_load_weight(task, policy);
            }
            let se = &mut sched.task_mut(task).se;
            se.custom_slice = slice.is_some();
            se.slice = slice.map_or(base_slice, clamp_slice);
        });
    }

    /// Sets the policy of a task, at the request of the task running on `by`. Among fair policies that changes no
    /// priority, so no reschedule is requested. As with sched_setscheduler(2) a slice that the task has requested stays.
    ///
    /// Kernel: _sched_setscheduler(), __sched_setscheduler(), kernel/sched/syscalls.c, v6.12.
    pub fn set_policy(&mut self, by: CpuId, task: TaskId, policy: Policy, now: Time) {
        let old = self.task(task).policy;
        let cpu = self.task(task).cpu;
        // A slice that is not requested counts as another than the task has: the task is dequeued and queued again.
        let asks_for_slice = matches!(policy, Policy::Normal | Policy::Batch)
            && self.kernel.has(Feature::CustomSlice)
            && !self.task(task).se.custom_slice;
        let same = old == policy && !asks_for_slice;
        if same {
            return self.update_rq_clock(cpu, now);
        }
        if old.is_fair() && !policy.is_fair() && self.task(task).se.sched_delayed {
            self.update_rq_clock(cpu, now);
            let flags = DequeueFlags { sleep: true, delayed: true, ..DequeueFlags::default() };
            self.dequeue_task_fair(cpu, task, flags);
        }
        let deadline = self.task(task).dl_deadline;
        let moves = policy.class() != old.class() || policy.rt_priority() != old.rt_priority();
        self.change_task(task, moves, now, |sched| {
            if asks_for_slice {
                // It is another than before if CPUs went offline or online since.
                sched.task_mut(task).se.slice = sched.scaled.base_slice;
            }
            // A sleeper that leaves is placed as of its new policy.
            sched.task_mut(task).se.idle = policy == Policy::Idle;
            let leaves_first = sched.kernel.has(Feature::ClassLeavesFirst);
            if leaves_first {
                sched.leave_class(task, policy);
            }
            sched.set_load_weight(task, policy);
            if !leaves_first {
                sched.leave_class(task, policy);
            }
            sched.task_mut(task).policy = policy;
        });
        self.join_class(task, old);
        if policy.class() != old.class() {
            self.switched_class(by, task, old, now);
        } else if policy.class() == Class::Rt {
            self.prio_changed_rt(task, old.rt_priority(), now);
        } else if policy.class() == Class::Dl {
            self.prio_changed_dl(task, deadline, now);
        }
    }

    /// While it is still of its old class a task gets the weight of its new policy; one of nice 0 has the weight of
    /// nice 0 above the fair class too.
    ///
    /// Kernel: __setscheduler_params(), set_load_weight(), kernel/sched/core.c, v6.1, v6.12.
    fn set_load_weight(&mut self, task: TaskId, policy: Policy) {
        let entry = self.task(task);
        let load = self.kernel.divisor(LoadWeight::of_task(policy, entry.nice));
        let se = SeId(task.0);
        if entry.state == TaskState::New {
            self.se_mut(se).load = load;
        } else if !entry.policy.is_fair() {
            // Its virtual times are scaled from the weight that it had in the time line.
            let flat = self.is_flat();
            let entity = self.se_mut(se);
            if flat {
                entity.h_load = Some(*entity.line_load());
            }
            entity.load = load;
        } else {
            let cfs = self.cfs_rq_of(se);
            self.reweight_to(cfs, se, load);
        }
    }

    /// Whether the virtual time of a task is relative to that of its queue, so that it can be taken to another: under
    /// EEVDF always, under CFS while it is queued. The kernel takes a task that has never run for one that was not
    /// woken yet.
    ///
    /// Kernel: vruntime_normalized(), kernel/sched/fair.c, v5.10, v6.1.
    pub(crate) fn vruntime_normalized(&self, task: TaskId) -> bool {
        let entry = self.task(task);
        self.kernel.rules.policy != FairPolicy::Cfs || entry.on_rq || entry.se.sum_exec_runtime == 0
    }

    /// A task leaves the fair class: its load goes with it.
    ///
    /// Kernel: switched_from_fair(), kernel/sched/fair.c, v6.1, v6.12.
    fn leave_class(&mut self, task: TaskId, to: Policy) {
        let entry = self.task(task);
        if !entry.policy.is_fair() || to.is_fair() || entry.state == TaskState::New {
            return;
        }
        let se = SeId(task.0);
        if !self.vruntime_normalized(task) {
            let cfs = self.cfs_rq_of(se);
            self.place_entity_cfs(cfs, se, false);
            let floor = self.cfs(cfs).min_vruntime;
            let entity = self.se_mut(se);
            entity.vruntime = entity.vruntime.wrapping_sub(floor);
        }
        self.detach_entity_cfs_rq(se);
    }

    /// A task joins the fair class, its load with it: after it was queued, so the shares of its groups do not see it yet.
    /// A task whose averages stopped at time 0 was attached when it was queued, and is so twice.
    ///
    /// Kernel: switched_to_fair(), kernel/sched/fair.c, v6.1, v6.12.
    fn join_class(&mut self, task: TaskId, from: Policy) {
        let entry = self.task_mut(task);
        if entry.policy.class() == from.class() || entry.state == TaskState::New {
            return;
        }
        if !entry.policy.is_fair() {
            return;
        }
        let se = SeId(task.0);
        self.attach_entity_cfs_rq(se);
        if !self.vruntime_normalized(task) {
            let floor = self.cfs(self.cfs_rq_of(se)).min_vruntime;
            let entity = self.se_mut(se);
            entity.vruntime = entity.vruntime.wrapping_add(floor);
        }
    }

    /// Takes a task off its queue, changes it, and puts it back: to another place if it moves, which of those of its
    /// new priority is the first if it fell.
    ///
    /// Kernel: sched_change_begin(), sched_change_end(), kernel/sched/core.c, v7.2.
    pub(crate) fn change_task(
        &mut self,
        task: TaskId,
        moves: bool,
        now: Time,
        change: impl FnOnce(&mut Sched),
    ) {
        let cpu = self.task(task).cpu;
        self.update_rq_clock(cpu, now);
        let queued = self.task(task).on_rq;
        let running = self.rqs[cpu].curr == Curr::Task(task);
        let before = self.task(task).policy.rt_level();
        let place = self.place_rt(cpu, task).filter(|_| !moves);
        if queued {
            self.dequeue_task(cpu, task, DequeueFlags { save: true, moves, ..DequeueFlags::default() });
        }
        if running {
            self.put_prev(cpu);
        }
        change(self);
        if queued {
            let head = self.task(task).policy.rt_level() < before;
            self.enqueue_task(cpu, task, EnqueueFlags { restore: true, head, ..EnqueueFlags::default() });
        }
        if let Some(place) = place {
            self.keep_place_rt(cpu, task, place);
        }
        if running {
            self.set_next_again(cpu, task);
        }
    }

    /// Makes a task current again that was put back only to be changed.
    pub(crate) fn set_next_again(&mut self, cpu: CpuId, task: TaskId) {
        let now = self.rqs[cpu].clock_task;
        match self.class_of(task) {
            Class::Fair if self.is_flat() => {
                self.set_next_flat(cpu, SeId(task.0), false);
                self.touch_cfs_task(cpu, task);
            }
            Class::Fair => {
                let mut level = Some(SeId(task.0));
                while let Some(se) = level {
                    let cfs = self.cfs_rq_of(se);
                    self.set_next_entity(cfs, se, false);
                    level = self.se(se).parent;
                }
                self.account_levels(task, self.root_cfs_id(cpu));
                self.touch_cfs_task(cpu, task);
            }
            _ => self.task_mut(task).se.exec_start = now,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use super::*;
    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{NICE_0_LOAD, TgId};

    #[test]
    fn load_goes_with_a_task_that_leaves_the_fair_class_or_is_put_back_with_its_new_weight() {
        let left = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[b*]");
            let (b, sched) = (drawn.task("b"), &mut drawn.sched);
            let root = sched.root_cfs_id(CpuId(0));
            let before = sched.cfs(root).avg.load_avg;
            sched.set_policy(CpuId(0), b, Policy::Fifo(1), NOW);
            format!("{before}, then {}", sched.cfs(root).avg.load_avg)
        };
        expect![[r#"
            v4.13..v6.12: 1024, then 0
            v7.2: 1024, then 1024
            v7.3: 1024, then 0"#]]
        .assert_eq(&by_kernel("", left));
    }

    #[test]
    fn another_slice_gives_the_weight_again_and_the_same_slice_does_nothing() {
        let averages = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let (b, sched) = (drawn.task("b"), &mut drawn.sched);
            let mut after = |slice: Option<u64>| {
                let avg = &mut sched.se_mut(SeId(b.0)).avg;
                (avg.load_sum, avg.load_avg) = (46_000, 1_010);
                sched.set_slice(b, slice, NOW);
                sched.se(SeId(b.0)).avg.load_avg
            };
            format!("{} {}", after(Some(1_000_000)), after(Some(1_000_000)))
        };
        expect![[r#"
            v4.13..v6.10: 1010 1010
            v6.12..v7.2: 992 1010
            v7.3: 1010 1010"#]]
        .assert_eq(&by_kernel("", averages));
    }

    #[test]
    fn a_nice_value_of_an_rt_task_reads_the_clock_of_its_cpu_or_does_not() {
        let read = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let (b, sched) = (drawn.task("b"), &mut drawn.sched);
            sched.set_policy(CpuId(0), b, Policy::Fifo(1), NOW);
            let before = sched.rqs[CpuId(0)].clock;
            sched.set_nice(b, 5, Time(NOW.0 + 500));
            format!("{}", sched.rqs[CpuId(0)].clock - before)
        };
        expect![[r#"
            v4.13..v6.12: 500
            v7.2..v7.3: 0"#]]
        .assert_eq(&by_kernel("", read));
    }

    #[test]
    fn a_requested_slice_stays_when_the_policy_changes_and_setting_the_same_policy_then_does_nothing() {
        let slices = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let (b, sched) = (drawn.task("b"), &mut drawn.sched);
            sched.set_slice(b, Some(20_000_000), NOW);
            let mut after = |policy: Policy| {
                let avg = &mut sched.se_mut(SeId(b.0)).avg;
                (avg.load_sum, avg.load_avg) = (46_000, 1_010);
                sched.set_policy(CpuId(0), b, policy, NOW);
                let se = sched.se(SeId(b.0));
                format!("{} {}", se.slice / 1_000_000, se.avg.load_avg)
            };
            format!("{}, {}", after(Policy::Batch), after(Policy::Batch))
        };
        assert_eq!(slices("v6.12"), "20 992, 20 1010");
        assert_eq!(slices("v7.2"), "20 992, 20 1010");
    }

    #[test]
    fn the_same_weight_again_rounds_the_average_or_leaves_it() {
        let average = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let (b, sched) = (drawn.task("b"), &mut drawn.sched);
            let avg = &mut sched.se_mut(SeId(b.0)).avg;
            (avg.load_sum, avg.load_avg) = (46_000, 1_010);
            sched.set_policy(CpuId(0), b, Policy::Batch, NOW);
            format!("{}", sched.se(SeId(b.0)).avg.load_avg)
        };
        expect![[r#"
            v4.13: 1010
            v5.5..v7.2: 992
            v7.3: 1010"#]]
        .assert_eq(&by_kernel("", average));
    }

    #[test]
    fn a_task_that_joined_an_unused_group_as_rt_is_attached_twice_when_it_becomes_fair() {
        let attached = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let (b, sched) = (drawn.task("b"), &mut drawn.sched);
            let cpu = CpuId(0);
            let group = sched.new_group(TgId::ROOT, NICE_0_LOAD, cpu, NOW);
            sched.set_policy(cpu, b, Policy::Fifo(1), NOW);
            sched.move_task_to_group(b, group, NOW);
            sched.set_policy(cpu, b, Policy::Normal, NOW);
            let queue = sched.cfs(sched.tg(group).cfs_rq[0]).avg;
            format!("{} of {}", queue.load_avg, sched.se(SeId(b.0)).avg.load_avg)
        };
        expect!["v4.13..v7.3: 2048 of 1024"].assert_eq(&by_kernel("", attached));
    }

    #[test]
    fn shares_of_a_group_do_not_see_a_task_that_becomes_fair_until_it_is_queued() {
        let load = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let (b, sched) = (drawn.task("b"), &mut drawn.sched);
            let cpu = CpuId(0);
            let group = sched.new_group(TgId::ROOT, NICE_0_LOAD, cpu, NOW);
            sched.move_task_to_group(b, group, NOW);
            sched.set_policy(cpu, b, Policy::Fifo(1), NOW);
            sched.set_policy(cpu, b, Policy::Normal, Time(NOW.0 + 2_630_000));
            let sum: i64 = sched.tg(group).load_avg.iter().sum();
            format!("{} of {}", sum, sched.cfs(sched.tg(group).cfs_rq[0]).avg.load_avg)
        };
        expect![[r#"
            v4.13..v6.3: 969 of 969
            v6.10..v6.12: 0 of 969
            v7.2: 969 of 1938
            v7.3: 0 of 969"#]]
        .assert_eq(&by_kernel("", load));
    }

    #[test]
    fn a_sleeper_that_leaves_the_class_is_placed_as_of_its_new_policy() {
        // Under CFS: how much of the latency it is given, in us below the floor of its queue.
        let placed = |kernel: &str, from: Policy| {
            let mut lab = Lab::new(kernel, "1x1x4");
            let task = lab.hog("a", 0);
            let now = lab.time();
            lab.sched.set_policy(CpuId(0), task, from, now);
            lab.run(50 * MS);
            lab.sleep(task);
            lab.hog("b", 0);
            lab.run(500 * MS);
            let now = lab.time();
            lab.sched.set_policy(CpuId(0), task, Policy::Rr(10), now);
            (lab.sched.se(SeId(task.0)).vruntime as i64 / 1000).to_string()
        };
        for kernel in ["v5.10", "v6.1"] {
            for from in [Policy::Normal, Policy::Idle] {
                assert_eq!(placed(kernel, from), "-9000", "{kernel} {from:?}");
            }
        }
    }

    #[test]
    fn a_sleeper_that_has_never_run_keeps_its_virtual_time_under_cfs() {
        let kept = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a* b]");
            let (b, sched) = (drawn.task("b"), &mut drawn.sched);
            sched.deactivate(b, DequeueFlags { sleep: true, ..DequeueFlags::default() }, NOW);
            sched.task_mut(b).state = TaskState::Interruptible;
            let mut after = |ran: u64| {
                let se = &mut sched.task_mut(b).se;
                (se.vruntime, se.sum_exec_runtime) = (7_000_000, ran);
                sched.set_policy(CpuId(0), b, Policy::Fifo(1), NOW);
                let kept = sched.se(SeId(b.0)).vruntime == 7_000_000;
                sched.set_policy(CpuId(0), b, Policy::Normal, NOW);
                kept
            };
            format!("never {}, once {}", after(0), after(1))
        };
        expect![[r#"
            v4.13..v6.3: never true, once false
            v6.10..v7.3: never true, once true"#]]
        .assert_eq(&by_kernel("", kept));
    }

    #[test]
    fn a_deadline_in_the_time_line_is_scaled_from_the_weight_that_the_task_had_there() {
        // Slice of a new task at nice 0, then at the weight 3 of SCHED_IDLE; us of virtual time.
        let slice = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[a*]");
            let (a, sched) = (drawn.task("a"), &mut drawn.sched);
            let mut set = |policy: Policy| {
                sched.set_policy(CpuId(0), a, policy, NOW);
                let se = sched.se(SeId(a.0));
                se.deadline.wrapping_sub(se.vruntime) / 1000
            };
            set(Policy::Fifo(50));
            set(Policy::Idle)
        };
        assert_eq!(["v6.12", "v7.2", "v7.3"].map(slice), [350, 350, 350 * 1024 / 3]);
    }
}
