//! Which CPUs a task may use, and where it moves when it may no longer run on its CPU.

use alloc::sync::Arc;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

use crate::{AnyCpu, Curr, DequeueFlags, EnqueueFlags, Feature, MigrationCause, Sched};

impl Sched {
    /// Sets the CPUs that a task may use, at the request of the task running on `by`. A task that is queued on another
    /// CPU is moved to one of them that is active or, for a kernel thread, online. For a task that runs elsewhere a
    /// reschedule is requested, and the driver's stopper calls [`Sched::move_queued_task`]. Returns the new CPU, if it
    /// must move.
    ///
    /// Kernel: set_cpus_allowed_ptr(), affine_move_task(), kernel/sched/core.c, v6.12.
    pub fn set_cpus_allowed(
        &mut self,
        by: CpuId,
        task: TaskId,
        allowed: Arc<CpuMask>,
        now: Time,
    ) -> Option<CpuId> {
        if self.task(task).allowed == allowed {
            return None;
        }
        let to = self.cpu_of_affinity(by, self.task(task).kthread, &allowed);
        if self.kernel.rules.any_cpu != AnyCpu::First {
            self.rqs[by].any_cpu = to;
        }
        self.do_set_cpus_allowed(task, allowed, now);
        let entry = self.task(task);
        if entry.allowed.contains(entry.cpu) || !entry.on_rq {
            return None;
        }
        if self.rqs[entry.cpu].curr != Curr::Task(task) {
            self.move_queued_task(task, to, MigrationCause::Affinity, now);
        }
        Some(to)
    }

    /// The CPU to which a task moves, if it must, of those that it may use from now on.
    fn cpu_of_affinity(&self, by: CpuId, kthread: bool, allowed: &CpuMask) -> CpuId {
        let valid = |cpu: &CpuId| if kthread { self.rqs[*cpu].online } else { self.rqs[*cpu].active };
        let in_turn = self.kernel.rules.any_cpu != AnyCpu::First;
        self.any_and_distribute(by, allowed, in_turn).find(valid).expect("an allowed CPU is in use")
    }

    /// Sets the CPUs that a task may use, wherever it is. As for any change of a task, it is dequeued and enqueued
    /// again: if it is running, its slice begins again.
    ///
    /// Kernel: do_set_cpus_allowed(), kernel/sched/core.c, v6.12.
    pub fn do_set_cpus_allowed(&mut self, task: TaskId, allowed: Arc<CpuMask>, now: Time) {
        self.change_task(task, false, now, |sched| sched.set_cpus_allowed_common(task, allowed));
    }

    /// Sets the CPUs that a task may use without asking whether it may run on one of them.
    ///
    /// Kernel: set_cpus_allowed_force(), kernel/sched/core.c, v7.2; do_set_cpus_allowed(), v6.12.
    pub(crate) fn set_cpus_allowed_force(&mut self, task: TaskId, allowed: Arc<CpuMask>, now: Time) {
        if self.task(task).on_rq {
            return self.do_set_cpus_allowed(task, allowed, now);
        }
        if self.kernel.has(Feature::FallbackReadsClock) {
            self.update_rq_clock(self.task(task).cpu, now);
        }
        self.set_cpus_allowed_common(task, allowed);
    }

    /// The kernel binds a sleeping thread of its own to a CPU, which no user changes from then on.
    ///
    /// Kernel: kthread_bind(), kernel/kthread.c, v6.12.
    pub fn kthread_bind(&mut self, task: TaskId, cpu: CpuId, now: Time) {
        self.set_cpus_allowed_force(task, Arc::new(CpuMask::one(self.rqs.len(), cpu)), now);
        self.task_mut(task).bound_by_user = false;
    }

    /// Kernel: set_cpus_allowed_common(), kernel/sched/core.c, v6.12.
    pub(crate) fn set_cpus_allowed_common(&mut self, task: TaskId, allowed: Arc<CpuMask>) {
        let entry = self.task_mut(task);
        entry.nr_cpus_allowed = allowed.weight() as u32;
        entry.allowed = allowed;
        entry.never_restricted = false;
        self.set_task_max_allowed_capacity(task);
    }

    /// Moves a task that is queued but does not run to another CPU.
    ///
    /// Kernel: move_queued_task(), kernel/sched/core.c, v6.12.
    pub fn move_queued_task(&mut self, task: TaskId, to: CpuId, cause: MigrationCause, now: Time) {
        assert!(self.rqs[self.task(task).cpu].curr != Curr::Task(task), "a running task cannot move");
        self.deactivate(task, DequeueFlags { migrate: true, ..DequeueFlags::default() }, now);
        self.set_task_cpu(task, to, cause, now);
        self.activate(task, to, EnqueueFlags { migrated: true, ..EnqueueFlags::default() }, now);
        self.wakeup_preempt(to, task, 0);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::{String, ToString};
    use alloc::sync::Arc;

    use expect_test::{Expect, expect};
    use schedlab_topology::{CpuId, CpuMask};
    use schedlab_units::Time;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};

    /// Where three tasks that wait on CPU 0 move, one after the other, if they may use these CPUs from now on. CPU
    /// 1 makes the change; it last took `last_taken`.
    fn check(allowed: &'static [u16], last_taken: u16, expected: Expect) {
        let decided = |kernel: &str| -> String {
            let mut lab = Lab::new(kernel, "1x1x4");
            let spec = lab.spec();
            lab.fork("running", 0, spec.clone());
            let waiting = ["a", "b", "c"].map(|name| lab.fork(name, 0, spec.clone()));
            lab.sched.rqs[CpuId(1)].any_cpu = CpuId(last_taken);
            let mask = Arc::new(CpuMask::of(4, allowed.iter().copied().map(CpuId)));
            waiting
                .map(|task| match lab.sched.set_cpus_allowed(CpuId(1), task, mask.clone(), Time(0)) {
                    Some(to) => format!("to CPU {}", to.0),
                    None => "stays".to_string(),
                })
                .join(", ")
        };
        expected.assert_eq(&by_kernel("", decided));
    }

    #[test]
    fn the_slice_of_a_running_task_begins_anew() {
        let ran = |kernel: &str| {
            let mut drawn = draw(kernel, "1x1x4 | 0[a* b]");
            let (a, now) = (drawn.task("a"), Time(NOW.0 + 2 * MS));
            let mask = Arc::new(CpuMask::of(4, [0, 1].map(CpuId)));
            assert_eq!(drawn.sched.set_cpus_allowed(CpuId(1), a, mask, now), None);
            let se = &drawn.sched.task(a).se;
            format!("{} us of its slice", (se.sum_exec_runtime - se.prev_sum_exec_runtime) / 1000)
        };
        expect!["v4.13..v7.3: 0 us of its slice"].assert_eq(&by_kernel("", ran));
    }

    #[test]
    fn tasks_of_a_new_affinity_go_to_its_first_cpu_or_to_each_in_turn() {
        check(
            &[1, 2, 3],
            1,
            expect![[r#"
                v4.13..v5.5: to CPU 1, to CPU 1, to CPU 1
                v5.18..v7.3: to CPU 2, to CPU 3, to CPU 1"#]],
        );
        check(
            &[1, 3],
            0,
            expect![[r#"
                v4.13..v5.5: to CPU 1, to CPU 1, to CPU 1
                v5.18..v7.3: to CPU 1, to CPU 3, to CPU 1"#]],
        );
        check(&[2], 2, expect!["v4.13..v7.3: to CPU 2, to CPU 2, to CPU 2"]);
        check(&[0, 2], 0, expect!["v4.13..v7.3: stays, stays, stays"]);
    }
}
