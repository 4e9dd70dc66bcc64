//! Writing the trace: events in the form of the kernel's tracepoints.
//!
//! None of this is done unless the sink wants it.

use schedlab_sched::{Curr, FairPolicy, NeedResched, Policy, Scheduler};
use schedlab_topology::CpuId;
use schedlab_trace::{Comm, Event, Flags, Kind, Label, TaskState};
use schedlab_units::{Pid, TaskId};

use crate::engine::{Engine, Told};

/// In which context an event happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Context {
    /// In the current task.
    Task,
    /// In a hard interrupt.
    Hardirq,
    /// In a soft interrupt.
    Softirq,
}

impl<S: Scheduler> Engine<'_, S> {
    /// Writes to the trace that something happened on a CPU.
    pub fn emit(&mut self, cpu: CpuId, context: Context, kind: Kind) {
        let depth = if matches!(kind, Kind::SchedSwitch { .. }) { 2 } else { 1 };
        self.emit_with(cpu, context, self.pending(cpu), depth, kind);
    }

    fn emit_with(&mut self, cpu: CpuId, context: Context, pending: NeedResched, depth: u8, kind: Kind) {
        let (pid, tgid, comm) = match self.cpus[cpu].shown {
            Curr::Idle => (Pid::IDLE, Pid::IDLE, self.cpus[cpu].swapper),
            Curr::Task(task) => {
                let entry = &self.tasks[task.index()];
                (entry.pid, entry.tgid, entry.comm)
            }
        };
        let mut bits = match context {
            Context::Task => Flags::IRQS_OFF,
            Context::Hardirq => Flags::IRQS_OFF | Flags::HARDIRQ,
            Context::Softirq => Flags::SOFTIRQ,
        };
        if pending.full {
            bits |= Flags::NEED_RESCHED | Flags::PREEMPT_RESCHED;
        }
        if pending.lazy {
            bits |= Flags::NEED_RESCHED_LAZY;
        }
        let event = Event {
            time: self.now,
            cpu,
            pid,
            tgid: Some(tgid),
            comm,
            flags: Flags::new(bits, depth, 0),
            kind,
        };
        self.told.push(Told::Event(event));
        self.details = self.wants_details;
    }

    /// A detail happens; returns whether the sink does not want it.
    #[inline]
    pub fn omits(&mut self) -> bool {
        if self.details {
            return false;
        }
        self.omitted = (self.omitted.0 + 1, self.now);
        true
    }

    /// The reschedule requests pending on a CPU.
    pub fn pending(&self, cpu: CpuId) -> NeedResched {
        self.sched.need_resched(cpu)
    }

    /// Name and number of a task.
    pub fn who(&self, task: TaskId) -> (Comm, Pid) {
        let entry = &self.tasks[task.index()];
        (entry.comm, entry.pid)
    }

    /// The number by which the kernel orders tasks: lower goes first.
    pub fn prio(&self, task: TaskId) -> i32 {
        let task = self.sched.task(task);
        match task.policy {
            Policy::Normal | Policy::Batch | Policy::Idle => 120 + i32::from(task.nice),
            Policy::Fifo(priority) | Policy::Rr(priority) => 99 - i32::from(priority),
            Policy::Deadline { .. } => -1,
            Policy::Stop => 0,
        }
    }

    /// `sched_switch`.
    pub fn emit_switch(&mut self, cpu: CpuId, prev: Curr, prev_state: TaskState, next: Curr) {
        let side = |curr: Curr| match curr {
            Curr::Idle => (self.cpus[cpu].swapper, Pid::IDLE, 120),
            Curr::Task(task) => {
                let (comm, pid) = self.who(task);
                (comm, pid, self.prio(task))
            }
        };
        let (prev_comm, prev_pid, prev_prio) = side(prev);
        let (next_comm, next_pid, next_prio) = side(next);
        let kind =
            Kind::SchedSwitch { prev_comm, prev_pid, prev_prio, prev_state, next_comm, next_pid, next_prio };
        self.emit(cpu, Context::Task, kind);
    }

    /// `sched_stat_runtime` for the time a task ran since its last charge event. Before a queue changes, its
    /// running task is charged, so the event shows the requests that were `pending` before.
    pub fn emit_runtime(&mut self, cpu: CpuId, context: Context, pending: NeedResched, task: TaskId) {
        let [sum, vruntime] = self.sched.runtime(task);
        let entry = &mut self.tasks[task.index()];
        let runtime = sum - std::mem::replace(&mut entry.runtime_told, sum);
        if runtime == 0 || self.omits() {
            return;
        }
        // Until v6.7 the event contained the virtual time as well.
        let cfs = self.sched.kernel().rules.policy == FairPolicy::Cfs;
        let (comm, pid) = self.who(task);
        let kind = Kind::SchedStatRuntime { comm, pid, runtime, vruntime: cfs.then_some(vruntime) };
        let depth = if context == Context::Task { 2 } else { 1 };
        self.emit_with(cpu, context, pending, depth, kind);
    }

    /// The same for the task that runs on a CPU, charged because another task was queued there.
    pub fn emit_charged(&mut self, cpu: CpuId, context: Context, pending: NeedResched, at: CpuId) {
        if let Some(curr) = self.curr(at) {
            self.emit_runtime(cpu, context, pending, curr);
        }
    }

    /// `sched_migrate_task`.
    pub fn emit_migrate(&mut self, cpu: CpuId, context: Context, task: TaskId, from: CpuId, to: CpuId) {
        let ((comm, pid), prio) = (self.who(task), self.prio(task));
        self.emit(cpu, context, Kind::SchedMigrateTask { comm, pid, prio, orig_cpu: from, dest_cpu: to });
    }

    /// A mark of the workload.
    pub fn emit_mark(&mut self, cpu: CpuId, task: TaskId, label: schedlab_workload::LabelId, value: i64) {
        let text = self.workload.mark_text(label, &self.tasks[task.index()].cursor, self.now);
        let label = Label::new(&text);
        self.emit(cpu, Context::Task, Kind::Mark { label, value });
    }
}
