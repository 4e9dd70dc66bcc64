//! The event vocabulary: what can happen on a CPU, named as the kernel's tracepoints.
//!
//! Recorded and simulated traces consist of the same events, so a report never knows which one it reads. An event is
//! small and mostly copied; only rare kinds own memory. A tracepoint that is not in the vocabulary is kept as text,
//! with its fields accessible by name.
//!
//! Two traps. `sched_waking` fires before the CPU is chosen, so its `target_cpu` is the previous one; `sched_wakeup`
//! and `sched_wakeup_new` contain the chosen CPU. And the task of a line is the one that ran where the event happened,
//! which for a wake-up in an interrupt is whichever task was interrupted.
//!
//! Kernel: include/trace/events/{sched,irq,ipi,power,workqueue,task,cgroup,cpuhp}.h.

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use crate::comm::{Comm, Label};
use crate::decision::{Affinity, Balance, Group, Name, Newidle, Pick, Placement, Preemption};
use crate::flags::Flags;
use crate::kernel_state::State;
use crate::state::TaskState;
use crate::unknown::Unknown;

/// Flag of `task_newtask` that makes the new task a thread of its parent's process. Kernel: CLONE_THREAD,
/// include/uapi/linux/sched.h.
pub const CLONE_THREAD: u64 = 0x10000;

/// One event: its time, CPU, current task, context and content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Time, by the clock of the trace.
    pub time: Time,
    /// The CPU that executed it.
    pub cpu: CpuId,
    /// The task that ran there.
    pub pid: Pid,
    /// The process of that task, if recorded.
    pub tgid: Option<Pid>,
    /// The name of that task; empty when the recording lost it.
    pub comm: Comm,
    /// The context it happened in.
    pub flags: Flags,
    /// What happened.
    pub kind: Kind,
}

impl Event {
    /// The task that runs on the CPU as the event happens; for a switch, the previous task.
    pub fn shown(&self) -> Pid {
        match self.kind {
            Kind::SchedSwitch { prev_pid, .. } => prev_pid,
            _ => self.pid,
        }
    }

    /// The higher of the event's CPU and the CPU to which it sends a task: the machine has both.
    pub fn highest_cpu(&self) -> CpuId {
        let target = match self.kind {
            Kind::SchedWakeup { target_cpu, .. } | Kind::SchedWakeupNew { target_cpu, .. } => target_cpu,
            Kind::SchedMigrateTask { dest_cpu, .. } => dest_cpu,
            _ => self.cpu,
        };
        self.cpu.max(target)
    }
}

/// What happened. The fields are those of the tracepoint, in its order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // a field is documented by the tracepoint it is named after
pub enum Kind {
    /// A CPU changes from one task to the next.
    SchedSwitch {
        prev_comm: Comm,
        prev_pid: Pid,
        prev_prio: i32,
        prev_state: TaskState,
        next_comm: Comm,
        next_pid: Pid,
        next_prio: i32,
    },
    /// A wake-up begins; `target_cpu` is the previous CPU.
    SchedWaking { comm: Comm, pid: Pid, prio: i32, target_cpu: CpuId },
    /// A wake-up is done: the task is runnable on `target_cpu`.
    SchedWakeup { comm: Comm, pid: Pid, prio: i32, target_cpu: CpuId },
    /// A new task is runnable on `target_cpu`.
    SchedWakeupNew { comm: Comm, pid: Pid, prio: i32, target_cpu: CpuId },
    /// A task is moved to another CPU's run queue.
    SchedMigrateTask { comm: Comm, pid: Pid, prio: i32, orig_cpu: CpuId, dest_cpu: CpuId },
    /// A task is created.
    SchedProcessFork { comm: Comm, pid: Pid, child_comm: Comm, child_pid: Pid },
    /// A task changes its program.
    SchedProcessExec { filename: Box<str>, pid: Pid, old_pid: Pid },
    /// A task exits; since 6.16 with whether it was the last of its group.
    SchedProcessExit { comm: Comm, pid: Pid, prio: i32, group_dead: Option<bool> },
    /// A dead task is freed.
    SchedProcessFree { comm: Comm, pid: Pid, prio: i32 },
    /// A task waits for a child.
    SchedProcessWait { comm: Comm, pid: Pid, prio: i32 },
    /// Time a task ran, in ns; its virtual time until 6.7.
    SchedStatRuntime { comm: Comm, pid: Pid, runtime: u64, vruntime: Option<u64> },
    /// Time a task waited on a run queue, ns.
    SchedStatWait { comm: Comm, pid: Pid, delay: u64 },
    /// Time a task slept, interruptibly, ns.
    SchedStatSleep { comm: Comm, pid: Pid, delay: u64 },
    /// Time a task waited for a device, ns.
    SchedStatIowait { comm: Comm, pid: Pid, delay: u64 },
    /// Time a task was blocked, ns.
    SchedStatBlocked { comm: Comm, pid: Pid, delay: u64 },
    /// An idle CPU that polls was woken without an interrupt.
    SchedWakeIdleWithoutIpi { cpu: CpuId },
    /// A task's priority changes to that of a task that waits for it.
    SchedPiSetprio { comm: Comm, pid: Pid, oldprio: i32, newprio: i32 },
    /// A task is created; sched_process_fork follows.
    TaskNewtask { pid: Pid, comm: Comm, clone_flags: u64, oom_score_adj: i16 },
    /// A task changes its name.
    TaskRename { pid: Pid, oldcomm: Comm, newcomm: Comm, oom_score_adj: i16 },
    /// An interrupt is sent to CPUs (the mask as the kernel prints it, in hexadecimal).
    IpiRaise { target_mask: Box<str>, reason: Name },
    /// An interrupt is sent to one CPU (6.4).
    IpiSendCpu { cpu: CpuId, callsite: Name, callback: Name },
    /// An interrupt from another CPU begins.
    IpiEntry { reason: Name },
    /// An interrupt from another CPU ends.
    IpiExit { reason: Name },
    /// A device's interrupt begins.
    IrqHandlerEntry { irq: i32, name: Name },
    /// A device's interrupt ends.
    IrqHandlerExit { irq: i32, handled: bool },
    /// A soft interrupt is raised.
    SoftirqRaise { vec: Softirq },
    /// A soft interrupt begins.
    SoftirqEntry { vec: Softirq },
    /// A soft interrupt ends.
    SoftirqExit { vec: Softirq },
    /// A CPU enters an idle state, or leaves it ([`IDLE_EXIT`]).
    CpuIdle { state: u32, cpu: CpuId },
    /// A CPU's clock changes, kHz.
    CpuFrequency { state: u32, cpu: CpuId },
    /// Work is queued.
    WorkqueueQueueWork { work: u64, function: Box<str>, workqueue: Box<str>, req_cpu: i32, cpu: i32 },
    /// Queued work may run.
    WorkqueueActivateWork { work: u64, function: Name },
    /// Work begins.
    WorkqueueExecuteStart { work: u64, function: Name },
    /// Work ends.
    WorkqueueExecuteEnd { work: u64, function: Name },
    /// A control group is created.
    CgroupMkdir { root: i32, id: u64, level: i32, path: Box<str> },
    /// A task moves to a control group.
    CgroupAttachTask { dst_root: i32, dst_id: u64, dst_level: i32, dst_path: Box<str>, pid: Pid, comm: Comm },
    /// A CPU hotplug callback begins, on a CPU's way to a target state.
    CpuhpEnter { cpu: CpuId, target: i32, idx: i32, fun: Name },
    /// The callback has ended, and the CPU is in this state.
    CpuhpExit { cpu: CpuId, state: i32, idx: i32, ret: i32 },
    /// A number that a workload reports, printed as a counter in a trace marker.
    Mark { label: Label, value: i64 },
    /// Text that a program wrote to the trace marker.
    Print(Box<str>),
    /// Why a task was placed where it was.
    Placement(Box<Placement>),
    /// Why load was moved, or not.
    Balance(Box<Balance>),
    /// What a CPU did before it went idle.
    Newidle(Box<Newidle>),
    /// Why the running task is preempted, or not.
    Preemption(Box<Preemption>),
    /// Why a task was picked.
    Pick(Box<Pick>),
    /// Which CPUs a task may use.
    Affinity(Box<Affinity>),
    /// The settings of a control group.
    Group(Box<Group>),
    /// A value of the scheduler's state that changed.
    State(Box<State>),
    /// A tracepoint or probe outside this vocabulary.
    Unknown(Unknown),
}

/// The `state` of a `cpu_idle` event that ends an idle period. Kernel: PWR_EVENT_EXIT.
pub const IDLE_EXIT: u32 = u32::MAX;

/// The number of a soft interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Softirq(pub u8);

impl Softirq {
    /// Timers.
    pub const TIMER: Softirq = Softirq(1);
    /// Network, sending.
    pub const NET_TX: Softirq = Softirq(2);
    /// Network, receiving.
    pub const NET_RX: Softirq = Softirq(3);
    /// Completion of block I/O.
    pub const BLOCK: Softirq = Softirq(4);
    /// Load balancing.
    pub const SCHED: Softirq = Softirq(7);

    const NAMES: [&str; 10] =
        ["HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"];

    /// The name the kernel prints, or the empty text.
    pub fn name(self) -> &'static str {
        Softirq::NAMES.get(self.0 as usize).copied().unwrap_or("")
    }
}

impl Kind {
    /// The names of all events in the vocabulary.
    pub const NAMES: [&str; 46] = [
        "sched_switch",
        "sched_waking",
        "sched_wakeup",
        "sched_wakeup_new",
        "sched_migrate_task",
        "sched_process_fork",
        "sched_process_exec",
        "sched_process_exit",
        "sched_process_free",
        "sched_process_wait",
        "sched_stat_runtime",
        "sched_stat_wait",
        "sched_stat_sleep",
        "sched_stat_iowait",
        "sched_stat_blocked",
        "sched_wake_idle_without_ipi",
        "sched_pi_setprio",
        "task_newtask",
        "task_rename",
        "ipi_raise",
        "ipi_send_cpu",
        "ipi_entry",
        "ipi_exit",
        "irq_handler_entry",
        "irq_handler_exit",
        "softirq_raise",
        "softirq_entry",
        "softirq_exit",
        "cpu_idle",
        "cpu_frequency",
        "workqueue_queue_work",
        "workqueue_activate_work",
        "workqueue_execute_start",
        "workqueue_execute_end",
        "cgroup_mkdir",
        "cgroup_attach_task",
        "cpuhp_enter",
        "cpuhp_exit",
        "tracing_mark_write",
        "schedlab_placement",
        "schedlab_balance",
        "schedlab_newidle",
        "schedlab_preemption",
        "schedlab_pick",
        "schedlab_affinity",
        "schedlab_group",
    ];

    /// The tracepoint's name, as in a trace line.
    pub fn name(&self) -> &str {
        match self {
            Kind::SchedSwitch { .. } => "sched_switch",
            Kind::SchedWaking { .. } => "sched_waking",
            Kind::SchedWakeup { .. } => "sched_wakeup",
            Kind::SchedWakeupNew { .. } => "sched_wakeup_new",
            Kind::SchedMigrateTask { .. } => "sched_migrate_task",
            Kind::SchedProcessFork { .. } => "sched_process_fork",
            Kind::SchedProcessExec { .. } => "sched_process_exec",
            Kind::SchedProcessExit { .. } => "sched_process_exit",
            Kind::SchedProcessFree { .. } => "sched_process_free",
            Kind::SchedProcessWait { .. } => "sched_process_wait",
            Kind::SchedStatRuntime { .. } => "sched_stat_runtime",
            Kind::SchedStatWait { .. } => "sched_stat_wait",
            Kind::SchedStatSleep { .. } => "sched_stat_sleep",
            Kind::SchedStatIowait { .. } => "sched_stat_iowait",
            Kind::SchedStatBlocked { .. } => "sched_stat_blocked",
            Kind::SchedWakeIdleWithoutIpi { .. } => "sched_wake_idle_without_ipi",
            Kind::SchedPiSetprio { .. } => "sched_pi_setprio",
            Kind::TaskNewtask { .. } => "task_newtask",
            Kind::TaskRename { .. } => "task_rename",
            Kind::IpiRaise { .. } => "ipi_raise",
            Kind::IpiSendCpu { .. } => "ipi_send_cpu",
            Kind::IpiEntry { .. } => "ipi_entry",
            Kind::IpiExit { .. } => "ipi_exit",
            Kind::IrqHandlerEntry { .. } => "irq_handler_entry",
            Kind::IrqHandlerExit { .. } => "irq_handler_exit",
            Kind::SoftirqRaise { .. } => "softirq_raise",
            Kind::SoftirqEntry { .. } => "softirq_entry",
            Kind::SoftirqExit { .. } => "softirq_exit",
            Kind::CpuIdle { .. } => "cpu_idle",
            Kind::CpuFrequency { .. } => "cpu_frequency",
            Kind::WorkqueueQueueWork { .. } => "workqueue_queue_work",
            Kind::WorkqueueActivateWork { .. } => "workqueue_activate_work",
            Kind::WorkqueueExecuteStart { .. } => "workqueue_execute_start",
            Kind::WorkqueueExecuteEnd { .. } => "workqueue_execute_end",
            Kind::CgroupMkdir { .. } => "cgroup_mkdir",
            Kind::CgroupAttachTask { .. } => "cgroup_attach_task",
            Kind::CpuhpEnter { .. } => "cpuhp_enter",
            Kind::CpuhpExit { .. } => "cpuhp_exit",
            Kind::Mark { .. } | Kind::Print(_) => "tracing_mark_write",
            Kind::Placement(_) => "schedlab_placement",
            Kind::Balance(_) => "schedlab_balance",
            Kind::Newidle(_) => "schedlab_newidle",
            Kind::Preemption(_) => "schedlab_preemption",
            Kind::Pick(_) => "schedlab_pick",
            Kind::Affinity(_) => "schedlab_affinity",
            Kind::Group(_) => "schedlab_group",
            Kind::State(state) => state.point,
            Kind::Unknown(unknown) => unknown.name(),
        }
    }

    /// Whether this reports state; a sink has to request such events.
    #[inline]
    pub fn is_state(&self) -> bool {
        matches!(self, Kind::State(_))
    }

    /// Whether this explains a decision; a sink has to request such events.
    #[inline]
    pub fn is_decision(&self) -> bool {
        matches!(
            self,
            Kind::Placement(_) | Kind::Balance(_) | Kind::Newidle(_) | Kind::Preemption(_) | Kind::Pick(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_stays_small() {
        assert!(size_of::<Kind>() <= 56, "{}", size_of::<Kind>());
        assert!(size_of::<Event>() <= 104, "{}", size_of::<Event>());
    }

    #[test]
    fn soft_interrupts_have_the_names_the_kernel_prints() {
        assert_eq!(Softirq::SCHED.name(), "SCHED");
        assert_eq!(Softirq(10).name(), "");
    }
}
