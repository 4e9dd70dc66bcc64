//! The stopper: the highest class, bound to its CPU, in no queue.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::class::Class;
use crate::{Feature, Sched};

impl Sched {
    /// Kernel: enqueue_task_stop(), kernel/sched/stop_task.c, v6.12.
    pub(crate) fn enqueue_task_stop(&mut self, cpu: CpuId, task: TaskId) {
        assert!(self.rqs[cpu].stop.is_none(), "a CPU has one stopper");
        self.rqs[cpu].stop = Some(task);
        if !core::mem::take(&mut self.rqs[cpu].stop_asked) {
            self.add_nr_running(cpu, 1);
        }
    }

    /// A balance pass of the CPU `by` wakes a stopper: the rest of the pass counts it among the tasks of its CPU,
    /// unless it goes through the wake list.
    ///
    /// Kernel: stop_one_cpu_nowait(), kernel/stop_machine.c, ttwu_queue_cond(), kernel/sched/core.c, v6.1, v6.12.
    pub(crate) fn stopper_asked(&mut self, by: CpuId, cpu: CpuId) {
        let listed = self.kernel.has(Feature::TtwuQueue)
            && !self.kernel.has(Feature::StopperAtOnce)
            && !self.cpus_share_cache(by, cpu);
        let rq = &mut self.rqs[cpu];
        if !listed && rq.stop.is_none() && !rq.stop_asked {
            (rq.stop_asked, rq.next_class) = (true, Class::Stop);
            self.add_nr_running(cpu, 1);
        }
    }

    /// Kernel: dequeue_task_stop(), kernel/sched/stop_task.c, v6.12.
    pub(crate) fn dequeue_task_stop(&mut self, cpu: CpuId, task: TaskId) {
        assert_eq!(self.rqs[cpu].stop.take(), Some(task), "the stopper wanted to run");
        self.rqs[cpu].nr_running -= 1;
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;
    use schedlab_topology::CpuId;

    use crate::drawing::by_kernel;
    use crate::lab::{Lab, MS};
    use crate::{NewTask, Policy};

    /// What a pass of CPU 0 that wakes the stopper of another CPU counts there, and the count once the stopper is
    /// queued.
    #[test]
    fn a_pass_counts_the_stopper_that_it_wakes_unless_that_waits_on_a_wake_list() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x2x2");
            let counted = [1, 2].map(|cpu| {
                lab.hog("f", cpu);
                lab.sched.stopper_asked(CpuId(0), CpuId(cpu));
                let asked = lab.sched.rqs[CpuId(cpu)].nr_running;
                let spec = NewTask { policy: Policy::Stop, ..lab.spec() };
                let stopper = lab.sched.new_task(&spec, None, lab.time());
                lab.sched.enqueue_task_stop(CpuId(cpu), stopper);
                format!("{asked} then {}", lab.sched.rqs[CpuId(cpu)].nr_running)
            });
            format!("near {}, far {}", counted[0], counted[1])
        });
        expect![[r#"
            v4.13..v6.3: near 2 then 2, far 1 then 2
            v6.10..v7.3: near 2 then 2, far 2 then 2"#]]
        .assert_eq(&found);
    }

    /// The pass goes on to a task whose dequeue uses up the slice of the running one.
    #[test]
    fn a_cpu_whose_stopper_was_woken_is_not_asked_lazily() {
        let mut lab = Lab::new("v7.2+preempt=lazy", "1x1x2").without_ticks();
        lab.hog("runs", 1);
        lab.sched.stopper_asked(CpuId(0), CpuId(1));
        lab.sched.resched_fair(CpuId(1));
        assert!(!lab.sched.rqs[CpuId(1)].need_resched.lazy);
        lab.sched.rqs[CpuId(1)].stop_asked = false;
        lab.sched.resched_fair(CpuId(1));
        assert!(lab.sched.rqs[CpuId(1)].need_resched.lazy);
    }

    /// A fair task arrives after a pass has woken the stopper, which preempts the running task anyway. So the task does
    /// not become the next buddy.
    #[test]
    fn a_task_that_arrives_behind_a_stopper_is_not_compared_with_the_running_one() {
        let found = by_kernel("", |kernel| {
            let mut lab = Lab::new(kernel, "1x1x2").without_ticks();
            lab.hog("runs", 1);
            lab.sched.stopper_asked(CpuId(0), CpuId(1));
            lab.now += MS;
            let (now, spec) = (lab.time(), lab.spec());
            let task = lab.sched.new_task(&spec, None, now);
            lab.sched.set_cpu(task, CpuId(1));
            lab.sched.activate(task, CpuId(1), crate::EnqueueFlags::default(), now);
            let reason = lab.sched.wakeup_preempt(CpuId(1), task, crate::wf::TTWU).reason;
            format!("{reason:?}, {:?}", lab.sched.cfs_rqs[1].next)
        });
        expect![[r#"
            v4.13..v6.12: KeepPending, None
            v7.2..v7.3: KeepClass, None"#]]
        .assert_eq(&found);
    }
}
