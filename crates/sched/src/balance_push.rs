//! How a CPU that goes offline gives its tasks away: from v5.11 on each as the CPU switches to it, before that all at once.

use alloc::sync::Arc;
use alloc::vec::Vec;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

use crate::{Class, Curr, Feature, MigrationCause, Sched};

impl Sched {
    /// Whether a CPU pushes away whatever it runs, as it is leaving. Once it is offline nothing else is pushed either.
    ///
    /// Kernel: balance_push_set(), kernel/sched/core.c, v6.12.
    #[inline]
    pub(crate) fn pushes_all(&self, cpu: CpuId) -> bool {
        !self.rqs[cpu].active && self.kernel.has(Feature::BalancePush)
    }

    /// The task that a CPU that is leaving has just switched to, and that its stopper must move
    /// ([`Sched::balance_push_cpu_stop`]).
    ///
    /// Kernel: balance_push(), kernel/sched/core.c, v6.12.
    pub fn balance_push(&self, cpu: CpuId) -> Option<TaskId> {
        let task = self.rqs[cpu].curr.task().filter(|_| self.pushes_all(cpu))?;
        let stays = self.task(task).kthread_is_per_cpu() || self.rqs[cpu].stop == Some(task);
        (!stays).then_some(task)
    }

    /// The stopper moves a task off a CPU that is leaving, if the task still waits there.
    ///
    /// Kernel: __balance_push_cpu_stop(), kernel/sched/core.c, v6.12.
    pub fn balance_push_cpu_stop(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        let to = self.select_fallback_rq(task);
        self.widen_affinity(task, to, now);
        self.update_rq_clock(cpu, now);
        if self.task(task).cpu == cpu && self.task(task).on_rq && self.is_cpu_allowed(task, to) {
            self.move_queued_task(task, to, MigrationCause::Affinity, now);
        }
    }

    /// The task that a CPU that is leaving would run next, its stopper left out. From v5.11 on sleepers that are still queued
    /// leave with that pick.
    pub fn pick_to_push(&mut self, cpu: CpuId, now: Time) -> Option<TaskId> {
        loop {
            let stop = self.rqs[cpu].stop.take();
            let pick = self.pick_next_task(cpu);
            self.rqs[cpu].stop = stop;
            let Some(se) = pick.delayed.filter(|_| self.kernel.has(Feature::BalancePush)) else {
                return pick.next.task();
            };
            self.update_rq_clock(cpu, now);
            self.dequeue_delayed(se);
        }
    }

    /// Moves every task that is queued on a CPU that leaves, except its stopper; a task all of whose CPUs are
    /// gone may run anywhere from then on.
    pub(crate) fn move_tasks_away(&mut self, cpu: CpuId, now: Time) {
        let waits = |sched: &Sched, task: TaskId| {
            let entry = sched.task(task);
            // A deadline task without a budget is not queued; its timer moves it.
            entry.cpu == cpu
                && entry.on_rq
                && !(entry.dl_throttled && sched.class_of(task) == Class::Dl)
                && !entry.kthread_is_per_cpu()
                && sched.rqs[cpu].curr != Curr::Task(task)
                && sched.rqs[cpu].stop != Some(task)
        };
        let mut tasks: Vec<TaskId> =
            (0..self.tasks.len() as u32).map(TaskId).filter(|&task| waits(self, task)).collect();
        while !tasks.is_empty() {
            // In the order in which the CPU would run them.
            let first = self.pick_to_push(cpu, now);
            tasks.retain(|&task| self.task(task).on_rq);
            if tasks.is_empty() {
                break;
            }
            if let Some(task) = first.filter(|_| !self.kernel.has(Feature::BalancePush)) {
                self.update_rq_clock(cpu, now);
                self.set_and_put_back(cpu, task);
            }
            let at = tasks.iter().position(|&task| Some(task) == first).unwrap_or(0);
            let task = tasks.remove(at);
            let to = self.select_fallback_rq(task);
            self.widen_affinity(task, to, now);
            self.move_queued_task(task, to, MigrationCause::Affinity, now);
        }
    }

    /// Lets a task run anywhere if it may not use the CPU it falls back to. A queued task is dequeued and queued again
    /// for that.
    ///
    /// Kernel: select_fallback_rq(), kernel/sched/core.c, v6.12.
    pub(crate) fn widen_affinity(&mut self, task: TaskId, to: CpuId, now: Time) {
        if self.task(task).allowed.contains(to) {
            return;
        }
        self.set_cpus_allowed_force(task, Arc::new(CpuMask::all(self.rqs.len())), now);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::{NOW, by_kernel, draw};
    use crate::lab::{Lab, MS};
    use crate::{Curr, Deactivate, MigrationCause, NewTask, Policy, TaskState};

    /// A damaged recording may show a stopper that is not bound to its CPU; the other CPU has one of its own.
    #[test]
    fn the_stopper_of_a_cpu_that_dies_stays() {
        let mut lab = Lab::new("v6.12", "1x1x2");
        let spec = NewTask { policy: Policy::Stop, ..lab.spec() };
        let stoppers = [0, 1].map(|cpu| {
            let stopper = lab.sched.new_task(&spec, None, lab.time());
            lab.sched.set_task_cpu(stopper, CpuId(cpu), MigrationCause::Affinity, lab.time());
            lab.sched.activate(stopper, CpuId(cpu), crate::EnqueueFlags::default(), lab.time());
            stopper
        });
        lab.sched.cpu_dying(CpuId(0), lab.time());
        assert_eq!(stoppers.map(|stopper| lab.sched.task(stopper).cpu), [CpuId(0), CpuId(1)]);
    }

    /// Three tasks run and wait on a CPU that leaves.
    #[test]
    fn a_cpu_that_leaves_pushes_what_it_runs_one_by_one_or_all_once_it_is_offline() {
        let told = |kernel: &str| -> String {
            let mut lab = Lab::new(kernel, "1x1x3");
            let spec = lab.spec();
            let tasks = [0, 1, 2].map(|n| lab.fork(&format!("t{n}"), 2, spec.clone()));
            let now = lab.time();
            lab.sched.cpu_deactivate(CpuId(2), now);
            lab.sched.rebuild_domains(now);
            let mut pushed = String::new();
            while let Some(task) = lab.sched.balance_push(CpuId(2)) {
                lab.sched.switch_to(CpuId(2), Curr::Idle, now);
                lab.sched.balance_push_cpu_stop(CpuId(2), task, now);
                let to = lab.sched.task(task).cpu.0;
                pushed += &format!("t{} to {to}, ", tasks.iter().position(|&t| t == task).unwrap());
                let next = lab.sched.pick_next_task(CpuId(2)).next;
                lab.sched.switch_to(CpuId(2), next, now);
            }
            format!("{pushed}{} left", lab.sched.rqs[CpuId(2)].nr_running)
        };
        expect![[r#"
            v4.13..v5.5: 3 left
            v5.18..v7.3: t0 to 0, t1 to 0, t2 to 0, 0 left"#]]
        .assert_eq(&by_kernel("", told));
    }

    #[test]
    fn a_sleeper_that_is_still_queued_leaves_a_cpu_that_leaves_and_does_not_move() {
        let told = |kernel: &str| -> String {
            let mut drawn = draw(kernel, "1x1x4 | 2[a* b]");
            let ([a, b], now) = (["a", "b"].map(|name| drawn.task(name)), NOW);
            // It ran too much for its share.
            drawn.sched.task_mut(a).se.vruntime += 4 * MS;
            drawn.sched.schedule(CpuId(2), Deactivate::Sleep(TaskState::Interruptible), now);
            drawn.sched.switch_to(CpuId(2), Curr::Idle, now);
            drawn.sched.finish_task_switch(b);
            let delayed = drawn.sched.task(a).se.sched_delayed;
            drawn.sched.set_active(CpuId(2), false, now);
            let entry = drawn.sched.task(a);
            format!("delayed {delayed}, then queued {} on {}", entry.on_rq, entry.cpu.0)
        };
        expect![[r#"
            v4.13..v6.10: delayed false, then queued false on 2
            v6.12..v7.3: delayed true, then queued false on 2"#]]
        .assert_eq(&by_kernel("", told));
    }

    #[test]
    fn up_to_v5_10_a_task_is_set_and_put_back_before_it_leaves_an_offline_cpu() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            let task = lab.hog("runs", 1);
            lab.run(MS);
            lab.sched.cpu_deactivate(CpuId(1), lab.time());
            lab.sched.switch_to(CpuId(1), Curr::Idle, lab.time());
            lab.sched.cpu_dying(CpuId(1), lab.time());
            let se = &lab.sched.task(task).se;
            format!("ran {} us since it was set", (se.sum_exec_runtime - se.prev_sum_exec_runtime) / 1000)
        });
        expect![[r#"
            v4.13..v5.5: ran 0 us since it was set
            v5.18..v7.3: ran 1000 us since it was set"#]]
        .assert_eq(&found);
    }

    /// A task uses up its deadline budget on CPU 1 and leaves the class, so it is queued again, and CPU 1 goes offline.
    #[test]
    fn a_task_that_is_no_deadline_task_any_more_is_moved_though_it_has_no_budget() {
        let found = by_kernel("+NO_HRTICK_DL", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2");
            let policy = Policy::Deadline { runtime: MS, deadline: 10 * MS, period: 10 * MS };
            let spec = lab.spec();
            lab.fork("hog", 1, spec);
            let spec = NewTask { policy, ..lab.spec() };
            let task = lab.fork("dl", 1, spec);
            lab.run(5 * MS);
            let before = lab.sched.task(task).dl_throttled;
            lab.sched.set_policy(CpuId(0), task, Policy::Normal, lab.time());
            lab.sched.set_online(CpuId(1), false, lab.time());
            format!("{before}, CPU {}", lab.sched.task(task).cpu.0)
        });
        expect!["v4.13..v7.3: true, CPU 0"].assert_eq(&found);
    }
}
