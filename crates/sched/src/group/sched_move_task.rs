//! Moving a task between groups, and out of its session's group when it exits.
//!
//! A task seldom moves itself between groups, but each task does so once: when it exits, it leaves the group of its
//! session. Most kernels do not check whether that changes its group. So the running task is charged, dequeued,
//! attached again, and a reschedule is requested, just before its end: if the kernel is preemptible and a task waits,
//! it loses its CPU there, and comes back only to exit.
//!
//! Sessions have no groups here: an exiting task stays in its group.

use schedlab_units::{TaskId, Time};

use crate::{Curr, DequeueFlags, EnqueueFlags, Feature, Sched, SeId, TaskState, TgId};

impl Sched {
    /// An exiting task leaves the group of its session.
    ///
    /// Kernel: sched_autogroup_exit_task(), kernel/sched/autogroup.c, v6.1, v6.12.
    pub fn sched_autogroup_exit_task(&mut self, task: TaskId, now: Time) {
        self.move_task_to_group(task, self.task(task).tg, now);
    }

    /// Moves a task to a group. A waiting task may be the first to run there.
    ///
    /// Kernel: sched_move_task(), kernel/sched/core.c; task_change_group_fair(), kernel/sched/fair.c, v6.1, v6.12, v7.2.
    pub fn move_task_to_group(&mut self, task: TaskId, tg: TgId, now: Time) {
        if self.task(task).tg == tg && !self.kernel.has(Feature::RegroupSame) {
            return;
        }
        let cpu = self.task(task).cpu;
        self.update_rq_clock(cpu, now);
        let running = self.rqs[cpu].curr == Curr::Task(task);
        let queued = self.task(task).on_rq;
        if queued {
            let flags = DequeueFlags { save: true, moves: true, ..DequeueFlags::default() };
            self.dequeue_task(cpu, task, flags);
        }
        if running {
            self.put_prev(cpu);
        }
        self.change_group(task, tg);
        if queued {
            self.enqueue_task(cpu, task, EnqueueFlags { restore: true, ..EnqueueFlags::default() });
        }
        if running {
            self.set_next_again(cpu, task);
            if self.kernel.has(Feature::RegroupAsks) {
                self.resched_now(cpu);
            }
        } else if queued && self.kernel.has(Feature::RegroupWakes) {
            self.wakeup_preempt(cpu, task, 0);
        }
    }

    /// Detaches a task from one group's queue and attaches it to another's.
    fn change_group(&mut self, task: TaskId, tg: TgId) {
        let se = SeId(task.0);
        let fair = self.task(task).policy.is_fair();
        let new = self.task(task).state == TaskState::New;
        // A sleeper's vruntime is absolute under CFS: make it relative to the old floor.
        let absolute = fair && !new && !self.vruntime_normalized(task);
        if fair && !new {
            let cfs = self.cfs_rq_of(se);
            if absolute {
                self.place_entity_cfs(cfs, se, false);
                let floor = self.cfs(cfs).min_vruntime;
                let entity = self.se_mut(se);
                entity.vruntime = entity.vruntime.wrapping_sub(floor);
            }
            self.detach_entity_cfs_rq(se);
            self.se_mut(se).avg.last_update_time = 0;
        }
        self.task_mut(task).tg = tg;
        let cpu = self.task(task).cpu;
        self.set_cpu(task, cpu);
        if fair && !new {
            self.attach_entity_cfs_rq(se);
            if absolute {
                let floor = self.cfs(self.cfs_rq_of(se)).min_vruntime;
                let entity = self.se_mut(se);
                entity.vruntime = entity.vruntime.wrapping_add(floor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use super::*;
    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{NICE_0_LOAD, NeedResched};

    const CPU: CpuId = CpuId(0);

    /// The effect of moving a running task, with this many others, 100 us after it was last charged: the time
    /// charged, and the kind of reschedule request.
    fn moved(kernel: &str, others: usize, to: impl Fn(&mut Lab, TaskId)) -> String {
        let mut lab = Lab::new(kernel, "1x1x1").without_ticks();
        let task = lab.hog("ends", 0);
        for _ in 0..others {
            lab.hog("other", 0);
        }
        for _ in 0..100 {
            if lab.running(0) != "ends" {
                lab.run(MS);
            }
        }
        assert_eq!(lab.running(0), "ends", "{kernel}");
        lab.now += MS / 10;
        let before = lab.sched.task(task).se.clone();
        let root = lab.sched.root_cfs_id(CPU);
        let (load, nr) = (lab.sched.cfs(root).avg.load_avg, lab.sched.rqs[CPU].nr_running);
        to(&mut lab, task);
        let (after, cfs) = (&lab.sched.task(task).se, lab.sched.cfs(root));
        assert_eq!((lab.sched.rqs[CPU].nr_running, after.on_rq), (nr, true), "{kernel}");
        assert!(cfs.avg.load_avg.abs_diff(load) <= load / 50, "{kernel}: what is taken off is put back");
        let charged = after.sum_exec_runtime - before.sum_exec_runtime;
        let NeedResched { full, lazy } = lab.sched.rqs[CPU].need_resched;
        format!("charged {} us, full {full} lazy {lazy}", charged / 1000)
    }

    #[test]
    fn averages_of_the_queue_that_a_sleeper_comes_to_are_aged_since_v5_13() {
        let listed = |kernel: &str| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let now = lab.time();
            let group = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, now);
            let task = lab.hog("sleeps", 0);
            lab.run(50 * MS);
            lab.sleep(task);
            let now = lab.time();
            lab.sched.move_task_to_group(task, group, now);
            let cfs = lab.sched.tg(group).cfs_rq[0];
            format!("load {}, aged {}", lab.sched.cfs(cfs).avg.load_avg > 0, lab.sched.cfs(cfs).on_list)
        };
        expect![[r#"
            v4.13..v5.5: load true, aged false
            v5.18..v7.3: load true, aged true"#]]
        .assert_eq(&by_kernel("", listed));
    }

    #[test]
    fn a_task_that_ends_is_queued_anew_and_asked_to_make_way() {
        for others in [0, 1] {
            let found = by_kernel("", |kernel| {
                moved(kernel, others, |lab, task| {
                    let now = lab.time();
                    lab.sched.sched_autogroup_exit_task(task, now);
                })
            });
            expect![[r#"
                v4.13..v5.5: charged 100 us, full false lazy false
                v5.18..v6.3: charged 100 us, full true lazy false
                v6.10: charged 0 us, full false lazy false
                v6.12..v7.3: charged 100 us, full true lazy false"#]]
            .assert_eq(&found);
        }
    }

    #[test]
    fn a_task_that_runs_makes_way_when_it_comes_into_a_group() {
        let found = by_kernel("", |kernel| {
            moved(kernel, 1, |lab, task| {
                let now = lab.time();
                let tg = lab.sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, now);
                lab.sched.move_task_to_group(task, tg, now);
            })
        });
        expect![[r#"
            v4.13..v5.5: charged 100 us, full false lazy false
            v5.18..v7.3: charged 100 us, full true lazy false"#]]
        .assert_eq(&found);
    }

    #[test]
    fn a_task_that_waits_may_come_first_in_its_new_group() {
        // Any task may run before a SCHED_IDLE task.
        let asked = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x1 | 0[idle:a* b]");
            drawn.sched.rqs[CPU].need_resched = NeedResched::default();
            let (b, tg) = (drawn.task("b"), drawn.sched.new_group(TgId::ROOT, NICE_0_LOAD, CPU, NOW));
            drawn.sched.move_task_to_group(b, tg, NOW);
            format!("{}", drawn.sched.rqs[CPU].need_resched.any())
        };
        expect![[r#"
            v4.13..v6.12: false
            v7.2..v7.3: true"#]]
        .assert_eq(&by_kernel("", asked));
    }
}
