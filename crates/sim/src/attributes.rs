//! Attributes that a task or another task changes: affinity, policy, group.

use std::sync::Arc;

use schedlab_sched::{MigrationCause, Policy, Scheduler, TaskState};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Affinity, Kind};
use schedlab_units::TaskId;
use schedlab_workload::{self as workload, AttrId, CpuListId, GroupId};

use crate::emit::Context;
use crate::engine::Engine;
use crate::task::{Stage, Wait};

/// The scheduler's form of a policy, with the nice value that goes with it.
pub(crate) fn policy(policy: workload::Policy, nice: i8) -> (Policy, i8) {
    match policy {
        workload::Policy::Normal { nice } => (Policy::Normal, nice),
        workload::Policy::Batch { nice } => (Policy::Batch, nice),
        workload::Policy::Idle { nice } => (Policy::Idle, nice),
        workload::Policy::Fifo { priority } => (Policy::Fifo(priority), nice),
        workload::Policy::Rr { priority } => (Policy::Rr(priority), nice),
        workload::Policy::Deadline(d) => {
            let (runtime, deadline, period) = (d.runtime.0, d.deadline.0, d.period.0);
            (Policy::Deadline { runtime, deadline, period }, nice)
        }
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// A task changes the CPUs it may use.
    pub fn set_cpus(&mut self, cpu: CpuId, task: TaskId, list: Option<CpuListId>) {
        self.charge(cpu, self.paths.syscall + self.kernel_span(&self.machine.cost.set_ns).0);
        let allowed = list.map_or(self.all_cpus.clone(), |list| self.masks[list.index()].clone());
        self.allow(cpu, task, allowed);
    }

    /// Sets the CPUs of a task that runs on `cpu`; it moves if it must.
    /// The call fails if none of them is in use.
    pub fn allow(&mut self, cpu: CpuId, task: TaskId, allowed: Arc<CpuMask>) {
        if !allowed.iter().any(|cpu| self.sched.is_active(cpu)) {
            return;
        }
        self.emit_affinity(cpu, task, &allowed);
        let to = self.sched.set_cpus_allowed(cpu, task, allowed, self.now);
        self.effects(cpu, Context::Task);
        if let Some(to) = to {
            self.ask_to_move(cpu, task, to, MigrationCause::Affinity);
            // The stopper preempts it where the kernel is preemptible; elsewhere the caller waits for the
            // stopper.
            if !self.preempt_enable(cpu) && !self.might_sleep(cpu) {
                self.sleep(cpu, task, TaskState::Uninterruptible, Wait::Stopper, Stage::Fetch);
            }
        }
    }

    /// Writes to the trace which CPUs a task may use.
    pub fn emit_affinity(&mut self, cpu: CpuId, task: TaskId, allowed: &CpuMask) {
        if self.tracing {
            let affinity = Affinity { pid: self.tasks[task.index()].pid, allowed: allowed.clone() };
            self.emit(cpu, Context::Task, Kind::Affinity(Box::new(affinity)));
        }
    }

    /// A task changes how it is scheduled.
    pub fn set_sched(&mut self, cpu: CpuId, task: TaskId, attr: AttrId) {
        self.charge(cpu, self.paths.syscall + self.kernel_span(&self.machine.cost.set_ns).0);
        self.change_sched(cpu, task, attr);
    }

    /// Changes how a task is scheduled, at the request of the task running on `by`.
    pub fn change_sched(&mut self, by: CpuId, task: TaskId, attr: AttrId) {
        let attr = self.workload.attrs[attr.index()];
        let pending = self.pending(by);
        let (policy, nice) = policy(attr.policy, self.sched.task(task).nice);
        self.sched.set_uclamp(task, attr.util_min.map(u32::from), attr.util_max.map(u32::from));
        if self.sched.task(task).policy != policy {
            self.sched.set_policy(by, task, policy, self.now);
        }
        if self.sched.task(task).nice != nice {
            self.sched.set_nice(task, nice, self.now);
        }
        if let Some(slice) = attr.slice {
            self.sched.set_slice(task, Some(slice.0), self.now);
        }
        self.emit_runtime(by, Context::Task, pending, task);
        self.effects(by, Context::Task);
    }

    /// A task moves to another group.
    pub fn set_group(&mut self, cpu: CpuId, task: TaskId, group: Option<GroupId>) {
        self.charge(cpu, self.paths.syscall + self.kernel_span(&self.machine.cost.set_ns).0);
        self.change_group(cpu, task, group);
        if let Some(cpuset) = group.and_then(|group| self.cpuset(group)) {
            self.allow(cpu, task, cpuset);
        }
    }

    /// Moves a task to a group, at the request of the task running on `by`.
    pub fn change_group(&mut self, by: CpuId, task: TaskId, group: Option<GroupId>) {
        let at = self.sched.task(task).cpu;
        let tg = group.map_or(schedlab_sched::TgId::ROOT, |group| self.groups[group.index()]);
        let pending = self.pending(by);
        if self.sched.task(task).tg != tg && self.curr(at) == Some(task) {
            // It is charged before it moves to a queue with another virtual time.
            self.sched.update_curr_of(at, task, self.now);
            self.emit_runtime(by, Context::Task, pending, task);
        }
        self.sched.move_task_to_group(task, tg, self.now);
        self.emit_runtime(by, Context::Task, pending, task);
        self.effects(by, Context::Task);
        self.emit_attach(by, task, group);
    }
}
