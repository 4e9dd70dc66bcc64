//! Waking tasks: the scheduler decides, the decision is applied, told and paid for.

use std::cell::RefCell;

use schedlab_sched::{NeedResched, Wakeup};
use schedlab_topology::CpuId;
use schedlab_trace::Kind;
use schedlab_units::TaskId;

use crate::emit::Context;
use crate::engine::Engine;
use crate::task::Wait;

impl Engine<'_> {
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
        let wakeup = Wakeup {
            task,
            waker: self.curr(cpu),
            this_cpu: cpu,
            sync,
            in_task: context == Context::Task,
            current_cpu: false,
        };
        let prev = self.sched.task(task).cpu;
        if self.tracing {
            let ((comm, pid), prio) = (self.who(task), self.prio(task));
            self.emit(cpu, context, Kind::SchedWaking { comm, pid, prio, target_cpu: prev });
        }
        if self.asymmetric {
            self.sched.sync_entity_load_avg(schedlab_sched::SeId(task.0));
        }
        let decision = if self.explaining {
            let passed_over = RefCell::new(Vec::new());
            let decision = self.sched.decide_wakeup(&wakeup, self.now, Some(&passed_over));
            self.explain_wakeup(cpu, context, task, prev, &decision, passed_over.into_inner());
            decision
        } else {
            self.sched.decide_wakeup(&wakeup, self.now, None)
        };
        let examined = decision.placement.as_ref().map_or(0, |placement| placement.examined);
        self.charge(cpu, self.paths.wakeup + u64::from(examined) * self.paths.idle_scan_cpu);
        let pending = self.pending(cpu);
        let preempt = self.sched.apply_wakeup(&wakeup, &decision, self.now);
        if let Some(preempt) = preempt.filter(|_| self.explaining) {
            self.explain_preemption(cpu, context, task, "wakeup", &preempt);
        }
        self.cpus[decision.cpu].heard = self.tasks[task.index()].heard.take();
        self.effects(cpu, context);
        self.cpus[decision.cpu].heard = None;
        if self.tracing && !decision.remote {
            self.emit_wakeup(cpu, context, pending, task);
        }
        if decision.cpu != cpu && !decision.remote {
            self.rearm_hrtick(decision.cpu);
        }
    }

    /// `sched_wakeup` on the CPU that queued the task.
    fn emit_wakeup(&mut self, cpu: CpuId, context: Context, pending: NeedResched, task: TaskId) {
        let ((comm, pid), prio) = (self.who(task), self.prio(task));
        let target_cpu = self.sched.task(task).cpu;
        self.emit_charged(cpu, context, pending, target_cpu);
        self.emit(cpu, context, Kind::SchedWakeup { comm, pid, prio, target_cpu });
    }

    /// A CPU queues what others woke for it.
    pub fn drain_wake_list(&mut self, cpu: CpuId) {
        if self.sched.rqs[cpu].wake_list.is_empty() {
            return;
        }
        let woken = self.sched.wake_list_in_turn(cpu);
        for &task in &woken {
            let pending = self.pending(cpu);
            self.sched.drain_one(task, self.now);
            if self.tracing {
                self.emit_wakeup(cpu, Context::Hardirq, pending, task);
            }
        }
        self.take_time(cpu, self.paths.wake_list * woken.len() as u64);
        self.effects(cpu, Context::Hardirq);
    }
}
