//! Waking tasks: the scheduler decides, the decision is applied, traced and charged.

use std::cell::RefCell;

use schedlab_sched::{Access, NeedResched, Scheduler, Shared, WakePath, Wakeup};
use schedlab_topology::CpuId;
use schedlab_trace::{How, Kind, What};
use schedlab_units::{Duration, TaskId};

use crate::account::Part;
use crate::emit::Context;
use crate::engine::Engine;
use crate::explain::wakeup_reason;
use crate::late::Chosen;
use crate::task::Wait;

impl<S: Scheduler> Engine<'_, S> {
    /// At its first wake-up a task gets its known state from before the run.
    fn bring_past(&mut self, task: TaskId) {
        let entry = &mut self.tasks[task.index()];
        if std::mem::take(&mut entry.has_past)
            && let Some(spec) = entry.spec
        {
            let spec = self.workload.task(spec);
            if let Some(cpu) = spec.recent_used_cpu {
                self.sched.set_recent_used_cpu(task, cpu);
            }
            if spec.lag > Duration::ZERO {
                self.sched.set_lag(task, spec.lag);
            }
        }
        self.bring_averages(task);
    }

    /// Sets a task's averages from its activity before the run.
    pub fn bring_averages(&mut self, task: TaskId) {
        let entry = &mut self.tasks[task.index()];
        if std::mem::take(&mut entry.has_done)
            && let Some(did) = entry.spec.and_then(|spec| self.workload.task(spec).did)
        {
            self.sched.set_averages(task, did.running, did.runnable, self.now);
        }
    }

    /// Whether a task moves to the CPU of its waker; then it is bound to that CPU.
    fn come_to_waker(&mut self, cpu: CpuId, context: Context, task: TaskId) -> bool {
        let entry = self.sched.task(task);
        let asleep = !entry.on_rq && !entry.se.on_rq;
        let can = asleep && context == Context::Task && entry.cpu != cpu && self.sched.is_active(cpu);
        let comes = &mut self.tasks[task.index()].comes_to_waker;
        *comes &= can;
        let comes = *comes;
        if comes {
            let allowed = self.one_cpu(cpu);
            self.emit_affinity(cpu, task, &allowed);
            self.sched.do_set_cpus_allowed(task, allowed, self.now);
        }
        comes
    }

    /// A CPU wakes a task. `sync` says that the waker will sleep soon.
    pub fn wake_up(&mut self, cpu: CpuId, context: Context, task: TaskId, sync: bool) {
        let entry = &mut self.tasks[task.index()];
        if entry.wait == Wait::Nothing {
            return;
        }
        let worked = entry.wait != Wait::Work;
        entry.wait = Wait::Nothing;
        self.cancel_timer(task);
        if worked && self.is_worker(task) {
            self.worker_wakes(task);
        }
        self.counts.wakeups += 1;
        self.settle(task);
        self.bring_past(task);
        let comes = self.come_to_waker(cpu, context, task);
        let wakeup = Wakeup {
            task,
            waker: self.curr(cpu),
            this_cpu: cpu,
            sync,
            in_task: context == Context::Task,
            current_cpu: false,
        };
        // That CPU's thread has always been there.
        let prev = if comes { cpu } else { self.sched.task(task).cpu };
        if self.tracing {
            let ((comm, pid), prio) = (self.who(task), self.prio(task));
            self.emit(cpu, context, Kind::SchedWaking { comm, pid, prio, target_cpu: prev });
        }
        if self.asymmetric {
            self.sched.sync_load_avg(task);
        }
        let old = self.sched.task(task).cpu;
        let leaving = self.is_leaving(old, task);
        // The waker does not leave it to that CPU: it waits until that has switched, and only then looks for a place.
        if leaving && !self.sched.hands_over(&wakeup) {
            self.arrives_at_idle(old);
        }
        let pending = self.pending(cpu);
        let began = self.comes_to_it(cpu);
        self.hide_late(began);
        let decision = if self.explaining {
            let passed_over = RefCell::new(Vec::new());
            let decision = self.sched.decide_wakeup(&wakeup, self.now, Some(&passed_over));
            self.explain_wakeup(cpu, context, task, prev, &decision, passed_over.into_inner());
            decision
        } else {
            self.sched.decide_wakeup(&wakeup, self.now, None)
        };
        self.show_late();
        if leaving && decision.path == WakePath::Select {
            self.arrives_at_idle(old);
        }
        self.decided(What::Placement(How::Wakeup), wakeup_reason(&decision));
        let examined = decision.placement.as_ref().map_or(0, |placement| placement.examined);
        // Queueing is paid for by the CPU that does it: the waker's, or the one that works off its wake list.
        let queues = if decision.remote { 0 } else { self.paths.activate };
        let wakes = self.paths.wakeup.saturating_sub(self.paths.activate);
        let paid = std::mem::take(&mut self.decides_paid);
        self.charge_to(cpu, Part::Wakeup, wakes.saturating_sub(paid) + queues);
        let waited = self.awaits_leaving(cpu, task, decision.path);
        self.searched(cpu, examined);
        let chosen = Chosen { began: began + waited, chose: self.comes_to_it(cpu) - queues };
        let preempt = self.sched.apply_wakeup(&wakeup, &decision, self.now);
        if let Some(preempt) = preempt {
            self.decided(What::Preemption, preempt.reason);
            if self.explaining {
                self.explain_preemption(cpu, context, task, "wakeup", &preempt);
            }
        }
        let heard = self.tasks[task.index()].heard.take();
        self.cpus[decision.cpu].heard = heard.filter(|_| self.is_idle(decision.cpu));
        self.chose = Some(chosen);
        self.effects(cpu, context);
        self.chose = None;
        self.cpus[decision.cpu].heard = None;
        let entry = &mut self.tasks[task.index()];
        (entry.comes_to_waker, entry.interrupt_on) = (false, None);
        if self.tracing && !decision.remote {
            self.emit_wakeup(cpu, context, pending, task);
        }
        if decision.path == WakePath::Select && !decision.remote {
            self.sched.task_woken(cpu, task, self.now);
            self.effects(cpu, context);
        }
        if decision.cpu != cpu && !decision.remote {
            self.rearm_hrtick(decision.cpu, 0);
        }
    }

    /// A waker of a task that is still on its CPU spins until that CPU has switched away: for how long, ns.
    ///
    /// Kernel: smp_cond_load_acquire(&p->on_cpu, !VAL) of try_to_wake_up(), kernel/sched/core.c.
    fn awaits_leaving(&mut self, cpu: CpuId, task: TaskId, path: WakePath) -> u64 {
        if path != WakePath::Select || !self.sched.task(task).on_cpu {
            return 0;
        }
        let mut waited = 0;
        if self.sched.task(task).cpu != cpu {
            let leaves = self.tasks[task.index()].off_cpu_at;
            let comes = self.now + Duration(self.cpus[cpu].overhead_ns());
            waited = leaves.since(comes).0;
            self.charge_time(cpu, Part::Waiting, waited);
        }
        // Otherwise balance passes would take it for a running task, wherever it waits.
        self.sched.finish_task_switch(task);
        waited
    }

    /// `sched_wakeup` on the CPU that queued the task.
    fn emit_wakeup(&mut self, cpu: CpuId, context: Context, pending: NeedResched, task: TaskId) {
        let ((comm, pid), prio) = (self.who(task), self.prio(task));
        let target_cpu = self.sched.task(task).cpu;
        self.emit_charged(cpu, context, pending, target_cpu);
        self.emit(cpu, context, Kind::SchedWakeup { comm, pid, prio, target_cpu });
    }

    /// A CPU queues the tasks on its wake list.
    pub fn drain_wake_list(&mut self, cpu: CpuId) {
        if !self.sched.has_wake_list(cpu) {
            return;
        }
        // A kernel tree queues them all at once.
        let mut pending = self.pending(cpu);
        let woken = self.sched.wake_list_in_turn(cpu, self.now);
        self.touch(cpu, Shared::WakeList(cpu), Access::Write, 0);
        for &task in &woken {
            if self.sched.task(task).on_cpu {
                // This CPU has switched away from it, or it would not be here.
                self.sched.finish_task_switch(task);
            }
            self.sched.drain_one(task, self.now);
            if self.tracing {
                self.emit_wakeup(cpu, Context::Hardirq, pending, task);
            }
            self.sched.task_woken(cpu, task, self.now);
            self.take_time(cpu, self.paths.wake_list);
            self.touch(cpu, Shared::Rq(cpu), Access::Lock, self.paths.activate);
            self.effects(cpu, Context::Hardirq);
            pending = self.pending(cpu);
        }
    }
}

#[cfg(test)]
mod tests {
    use schedlab_machine::Machine;
    use schedlab_sched::Kernel;
    use schedlab_topology::CpuId;
    use schedlab_trace::{Event, Kind, Sink};
    use schedlab_units::Duration;
    use schedlab_workload::{CpuList, Op, ProgramId, Start, TaskSpec, WorkloadBuilder};

    use crate::Simulation;

    const fn run(us: u64) -> Op {
        Op::Run { work: Duration::micros(us) }
    }

    /// The programs of a waker and its wakee.
    fn wakes_and_waits(w: &mut WorkloadBuilder, comes_to_waker: bool) -> (ProgramId, ProgramId) {
        let sem = w.sem("sem", 0);
        let wakes = w.program("wakes", |p| {
            p.op(run(100)).op(Op::SemPost { sem }).op(run(100));
        });
        let waits = w.program("waits", |p| {
            if comes_to_waker {
                p.op(Op::ComeToWaker);
            }
            p.op(Op::SemWait { sem }).op(run(20));
        });
        (wakes, waits)
    }

    /// How often the waker lost its CPU although it was runnable.
    #[derive(Default)]
    struct Preempted(u32);

    impl Sink for Preempted {
        fn event(&mut self, event: &Event) {
            if let Kind::SchedSwitch { prev_comm, prev_state, .. } = event.kind
                && prev_comm.as_bytes() == b"wakes"
                && prev_state.is_runnable()
            {
                self.0 += 1;
            }
        }
    }

    #[test]
    fn a_task_with_lag_from_its_past_takes_the_cpu_of_its_waker() {
        let preempted = |kernel: &str, lag: Duration| {
            let mut w = WorkloadBuilder::new("test");
            let (wakes, waits) = wakes_and_waits(&mut w, false);
            let start = Start::At(Duration::millis(100));
            w.task(TaskSpec { start, ..TaskSpec::root("wakes", wakes) });
            w.task(TaskSpec { lag, ..TaskSpec::root("waits", waits) });
            let workload = w.finish().unwrap();
            let (machine, kernel) = (Machine::preset("1").unwrap(), Kernel::parse(kernel).unwrap());
            let mut seen = Preempted::default();
            assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut seen).is_ok());
            seen.0
        };
        assert_eq!(preempted("v6.12", Duration::ZERO), 0);
        assert_eq!(preempted("v6.12", Duration::millis(1)), 1);
    }

    /// Where the waiter is queued, and whether it was moved there.
    #[derive(Default)]
    struct Queued(Option<CpuId>, bool);

    impl Sink for Queued {
        fn event(&mut self, event: &Event) {
            if let Kind::SchedWakeup { comm, target_cpu, .. } = event.kind
                && comm.as_bytes() == b"waits"
            {
                self.0 = Some(target_cpu);
            }
            self.1 |= matches!(event.kind, Kind::SchedMigrateTask { .. });
        }
    }

    /// Where a task is queued that slept on CPU 1, where a hog runs now, when it is woken on CPU 0.
    fn queued(recent_used_cpu: Option<CpuId>, comes_to_waker: bool) -> Queued {
        let mut w = WorkloadBuilder::new("test");
        let (wakes, waits) = wakes_and_waits(&mut w, comes_to_waker);
        let hog = w.program("hog", |p| {
            p.op(run(10_000));
        });
        let one = |w: &mut WorkloadBuilder, cpu| Some(w.cpus(CpuList::new(vec![CpuId(cpu)]).unwrap()));
        let (first, second) = (one(&mut w, 0), one(&mut w, 1));
        let start = Start::At(Duration::millis(100));
        w.task(TaskSpec { start, start_cpu: Some(CpuId(0)), cpus: first, ..TaskSpec::root("wakes", wakes) });
        w.task(TaskSpec { start, start_cpu: Some(CpuId(1)), cpus: second, ..TaskSpec::root("hog", hog) });
        let cpus = second.filter(|_| comes_to_waker);
        let waits = TaskSpec::root("waits", waits);
        w.task(TaskSpec { start_cpu: Some(CpuId(1)), cpus, recent_used_cpu, ..waits });
        let workload = w.finish().unwrap();
        let (machine, kernel) = (Machine::preset("4").unwrap(), Kernel::parse("v6.12").unwrap());
        let mut seen = Queued::default();
        assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut seen).is_ok());
        seen
    }

    #[test]
    fn the_cpu_that_a_task_used_before_its_own_comes_from_its_past() {
        for (recent_used_cpu, expected) in [(None, 2), (Some(CpuId(3)), 3)] {
            let Queued(cpu, is_moved) = queued(recent_used_cpu, false);
            assert_eq!((cpu, is_moved), (Some(CpuId(expected)), true));
        }
    }

    #[test]
    fn the_interrupt_that_ends_a_sleep_comes_where_it_is_set_to() {
        /// On which CPU each wake-up of the sleeper began.
        #[derive(Default)]
        struct Woken(Vec<CpuId>);
        impl Sink for Woken {
            fn event(&mut self, event: &Event) {
                if let Kind::SchedWaking { comm, .. } = event.kind
                    && comm.as_bytes() == b"sleeps"
                {
                    self.0.push(event.cpu);
                }
            }
        }
        let mut w = WorkloadBuilder::new("test");
        let sleep = Op::Sleep { span: Duration::millis(1) };
        let on = Op::InterruptOn { cpu: CpuId(3) };
        let sem = w.sem("sem", 0);
        let sleeps = w.program("sleeps", |p| {
            // A call between it and a sleep takes it back, and so does a sleep that no interrupt ends.
            p.op(sleep).op(on).op(sleep).op(sleep).op(on).op(Op::Yield).op(sleep);
            p.op(on).op(Op::SemWait { sem }).op(sleep);
        });
        let posts = w.program("posts", |p| {
            p.op(Op::Sleep { span: Duration::millis(20) }).op(Op::SemPost { sem });
        });
        let second = Some(w.cpus(CpuList::new(vec![CpuId(2)]).unwrap()));
        w.task(TaskSpec { start_cpu: Some(CpuId(2)), cpus: second, ..TaskSpec::root("posts", posts) });
        let cpus = Some(w.cpus(CpuList::new(vec![CpuId(1)]).unwrap()));
        w.task(TaskSpec { start_cpu: Some(CpuId(1)), cpus, ..TaskSpec::root("sleeps", sleeps) });
        let workload = w.finish().unwrap();
        let (machine, kernel) = (Machine::preset("4").unwrap(), Kernel::parse("v6.12").unwrap());
        let mut woken = Woken::default();
        assert!(Simulation::new(&machine, &kernel, &workload).unwrap().run(&mut woken).is_ok());
        assert_eq!(woken.0, [1, 3, 1, 1, 2, 1].map(CpuId));
    }

    #[test]
    fn a_task_that_comes_to_its_waker_is_bound_to_its_cpu_and_that_is_no_move() {
        let Queued(cpu, is_moved) = queued(None, true);
        assert_eq!((cpu, is_moved), (Some(CpuId(0)), false));
    }
}
