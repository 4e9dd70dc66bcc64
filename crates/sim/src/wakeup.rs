//! Waking tasks: the scheduler decides, the decision is applied, told and paid for.

use std::cell::RefCell;

use schedlab_sched::{WakeListOrder, WakePath, Wakeup, WakeupDecision};
use schedlab_topology::CpuId;
use schedlab_trace::{Candidate, How, Kind, Placement};
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
        self.sched.apply_wakeup(&wakeup, &decision, self.now);
        self.effects(cpu, context);
        if self.tracing && !decision.remote {
            self.emit_wakeup(cpu, context, task);
        }
        if decision.cpu != cpu && !decision.remote {
            self.rearm_hrtick(decision.cpu);
        }
    }

    /// `sched_wakeup` on the CPU that queued the task.
    fn emit_wakeup(&mut self, cpu: CpuId, context: Context, task: TaskId) {
        let ((comm, pid), prio) = (self.who(task), self.prio(task));
        let target_cpu = self.sched.task(task).cpu;
        self.emit(cpu, context, Kind::SchedWakeup { comm, pid, prio, target_cpu });
    }

    /// A CPU queues what others woke for it.
    pub fn drain_wake_list(&mut self, cpu: CpuId) {
        if self.sched.rqs[cpu].wake_list.is_empty() {
            return;
        }
        let mut woken = self.sched.rqs[cpu].wake_list.clone();
        if self.sched.kernel.rules.wake_list_order == WakeListOrder::Lifo {
            woken.reverse();
        }
        self.sched.drain_wake_list(cpu, self.now);
        self.take_time(cpu, self.paths.wake_list * woken.len() as u64);
        self.effects(cpu, Context::Hardirq);
        if self.tracing {
            for task in woken {
                self.emit_wakeup(cpu, Context::Hardirq, task);
            }
        }
    }

    fn explain_wakeup(
        &mut self,
        cpu: CpuId,
        context: Context,
        task: TaskId,
        prev: CpuId,
        decision: &WakeupDecision,
        passed_over: Vec<schedlab_sched::Candidate>,
    ) {
        let reason = match (decision.path, &decision.placement) {
            (_, Some(placement)) => placement.reason,
            (WakePath::SelfWake, None) => schedlab_sched::Reason::WakeSelf,
            (WakePath::StillQueued, None) => schedlab_sched::Reason::StillQueued,
            (WakePath::StillDelayed, None) => schedlab_sched::Reason::StillDelayed,
            (_, None) => schedlab_sched::Reason::OnCpuHandover,
        };
        let affine = decision.placement.as_ref().and_then(|placement| placement.affine);
        let mut numbers: Vec<schedlab_trace::Number> = Vec::new();
        if let Some(placement) = &decision.placement {
            numbers.extend(placement.number.map(|(name, number)| (name.into(), number)));
            numbers.push(("examined".into(), i64::from(placement.examined)));
        }
        if let Some((why, _)) = affine {
            numbers.push((why.name().into(), 1));
        }
        let placement = Placement {
            pid: self.tasks[task.index()].pid,
            how: How::Wakeup,
            prev_cpu: prev,
            target: affine.map_or(prev, |(_, target)| target),
            cpu: decision.cpu,
            reason: reason.name().into(),
            numbers,
            examined: candidates(passed_over),
            remote: decision.remote,
        };
        self.emit(cpu, context, Kind::Placement(Box::new(placement)));
    }

    /// Tells why a new task, or one with a new program, was put where it was.
    pub fn explain_placement(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        how: How,
        chosen: &schedlab_sched::Placement,
        passed_over: Vec<schedlab_sched::Candidate>,
    ) {
        let mut numbers: Vec<schedlab_trace::Number> =
            chosen.number.map(|(name, number)| (name.into(), number)).into_iter().collect();
        numbers.push(("examined".into(), i64::from(chosen.examined)));
        let prev_cpu = self.sched.task(task).cpu;
        let placement = Placement {
            pid: self.tasks[task.index()].pid,
            how,
            prev_cpu,
            target: prev_cpu,
            cpu: chosen.cpu,
            reason: chosen.reason.name().into(),
            numbers,
            examined: candidates(passed_over),
            remote: false,
        };
        self.emit(cpu, Context::Task, Kind::Placement(Box::new(placement)));
    }
}

/// CPUs passed over, as the trace tells them.
fn candidates(passed_over: Vec<schedlab_sched::Candidate>) -> Vec<Candidate> {
    passed_over
        .into_iter()
        .map(|candidate| Candidate { cpu: candidate.cpu, refused: candidate.refused.name().into() })
        .collect()
}
