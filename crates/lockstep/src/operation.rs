//! The language of both sides: operations on a scheduler.
//!
//! An operation is complete by itself, so any part of a run is a run. An operation that is not possible at its time (an
//! idle CPU cannot sleep) is skipped on both sides.

use std::fmt;

use schedlab_kernel_tree::WakeFlag;
use schedlab_sched::Policy;
use schedlab_topology::{CpuId, CpuMask};

/// A run.
pub type Operations = Vec<Operation>;

/// One action of a CPU, in the context of the task running there. Tasks and groups are numbered in the order of their
/// creation.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "a field is what its name says, and the text above tells what numbers mean")]
pub enum Operation {
    /// Time passes, ns; ticks and timers come when they are due.
    Pass(u64),
    /// A new task is forked and woken: a thread of the current task's process, or of its own.
    Fork { cpu: CpuId, kthread: bool, process: bool },
    /// The current task sleeps.
    Sleep { cpu: CpuId },
    /// The CPU honours a request to reschedule, a lazy one too, as a task does on its way to user mode.
    ReschedLazy { cpu: CpuId },
    /// The current task returns to user mode, and does the work that waits for this.
    ExitToUser { cpu: CpuId },
    /// A task is woken.
    Wake { cpu: CpuId, task: usize, flag: WakeFlag, in_irq: bool },
    /// The current task yields.
    Yield { cpu: CpuId },
    /// The current task begins to exit (`PF_EXITING`): what it wakes from now on is not woken with the sync flag.
    Exiting { cpu: CpuId },
    /// The current task exits.
    Exit { cpu: CpuId },
    /// The current task executes another program; it may be moved for that.
    Exec { cpu: CpuId },
    /// The nice value of a task changes.
    Nice { cpu: CpuId, task: usize, nice: i8 },
    /// The policy of a task changes.
    Policy { cpu: CpuId, task: usize, policy: Policy },
    /// The CPUs that a task may use change.
    Affinity { cpu: CpuId, task: usize, mask: CpuMask },
    /// The kernel binds a sleeping thread of its own to a CPU. Such a thread stays there if the CPU leaves, and sleeps while it
    /// is offline.
    Bind { task: usize, cpu: CpuId },
    /// A new group below another; `None` is the root. The shares are as in `cpu.shares`.
    Group { cpu: CpuId, parent: Option<usize>, shares: u64 },
    /// The shares of a group change.
    Shares { group: usize, shares: u64 },
    /// The quota of a group changes: us per period in us.
    Quota { group: usize, period: u64, quota: Option<u64> },
    /// A group counts as SCHED_IDLE among its siblings, or no longer.
    IdleGroup { group: usize, idle: bool },
    /// A task requests a slice, ns; 0 for the kernel's own.
    Slice { cpu: CpuId, task: usize, slice: u64 },
    /// The clock rate of a CPU changes; 1024 is its full rate.
    Frequency { cpu: CpuId, scale: u64 },
    /// A CPU goes offline.
    Offline { cpu: CpuId },
    /// The CPU comes back.
    Online { cpu: CpuId },
    /// A hypervisor takes time from a CPU, ns. The CPU sees that when it next reads its clock.
    Steal { cpu: CpuId, ns: u64 },
    /// A task moves to a group.
    Move { cpu: CpuId, task: usize, group: Option<usize> },
}

impl Operation {
    /// The CPU that does it.
    pub(crate) fn by(&self) -> Option<CpuId> {
        match *self {
            Operation::Fork { cpu, .. }
            | Operation::Sleep { cpu }
            | Operation::ReschedLazy { cpu }
            | Operation::ExitToUser { cpu }
            | Operation::Wake { cpu, .. }
            | Operation::Yield { cpu }
            | Operation::Exiting { cpu }
            | Operation::Exit { cpu }
            | Operation::Exec { cpu }
            | Operation::Nice { cpu, .. }
            | Operation::Policy { cpu, .. }
            | Operation::Affinity { cpu, .. }
            | Operation::Group { cpu, .. }
            | Operation::Slice { cpu, .. }
            | Operation::Frequency { cpu, .. }
            | Operation::Steal { cpu, .. }
            | Operation::Move { cpu, .. } => Some(cpu),
            Operation::Pass(_)
            | Operation::Bind { .. }
            | Operation::Shares { .. }
            | Operation::Quota { .. }
            | Operation::IdleGroup { .. }
            | Operation::Offline { .. }
            | Operation::Online { .. } => None,
        }
    }
}

/// Its name in a story.
fn group(group: &Option<usize>) -> String {
    group.map_or("the root".into(), |group| format!("group {group}"))
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Pass(ns) => write!(f, "{:.3} ms pass", *ns as f64 / 1e6),
            Operation::Fork { cpu, kthread, process } => {
                let what = match (kthread, process) {
                    (true, _) => "kernel thread",
                    (false, true) => "process",
                    (false, false) => "task",
                };
                write!(f, "CPU {} forks a {what}", cpu.0)
            }
            Operation::Sleep { cpu } => write!(f, "the task on CPU {} sleeps", cpu.0),
            Operation::ExitToUser { cpu } => write!(f, "the task on CPU {} returns to user mode", cpu.0),
            Operation::ReschedLazy { cpu } => write!(f, "CPU {} honours a lazy request", cpu.0),
            Operation::Wake { cpu, task, flag, in_irq } => {
                let flag = match flag {
                    WakeFlag::None => "",
                    WakeFlag::Sync => " (sync)",
                    WakeFlag::CurrentCpu => " (to its own CPU)",
                };
                let from = if *in_irq { " (from interrupt)" } else { "" };
                write!(f, "CPU {} wakes t{task}{flag}{from}", cpu.0)
            }
            Operation::Yield { cpu } => write!(f, "the task on CPU {} yields", cpu.0),
            Operation::Exiting { cpu } => write!(f, "the task on CPU {} begins to exit", cpu.0),
            Operation::Exit { cpu } => write!(f, "the task on CPU {} ends", cpu.0),
            Operation::Exec { cpu } => write!(f, "the task on CPU {} calls exec()", cpu.0),
            Operation::Nice { cpu, task, nice } => write!(f, "CPU {} makes t{task} nice {nice}", cpu.0),
            Operation::Policy { cpu, task, policy } => write!(f, "CPU {} makes t{task} {policy:?}", cpu.0),
            Operation::Affinity { cpu, task, mask } => {
                let cpus: Vec<String> = mask.iter().map(|cpu| cpu.0.to_string()).collect();
                write!(f, "CPU {} lets t{task} use CPUs {}", cpu.0, cpus.join(","))
            }
            Operation::Bind { task, cpu } => write!(f, "the kernel binds t{task} to CPU {}", cpu.0),
            Operation::Group { parent, shares, .. } => {
                write!(f, "a group of {shares} shares is made below {}", group(parent))
            }
            Operation::Shares { group, shares } => write!(f, "group {group} gets {shares} shares"),
            Operation::Quota { group, period, quota: Some(quota) } => {
                write!(f, "group {group} may run {quota} us in {period} us")
            }
            Operation::Quota { group, quota: None, .. } => write!(f, "group {group} may run without limit"),
            Operation::IdleGroup { group, idle } => {
                write!(f, "group {group} {} idle", if *idle { "becomes" } else { "is no longer" })
            }
            Operation::Slice { cpu, task, slice: 0 } => {
                write!(f, "CPU {} gives t{task} the default slice", cpu.0)
            }
            Operation::Slice { cpu, task, slice } => {
                write!(f, "CPU {} gives t{task} a slice of {} us", cpu.0, slice / 1000)
            }
            Operation::Frequency { cpu, scale } => {
                write!(f, "CPU {} runs at {scale}/1024 of its clock rate", cpu.0)
            }
            Operation::Offline { cpu } => write!(f, "CPU {} goes offline", cpu.0),
            Operation::Online { cpu } => write!(f, "CPU {} comes online", cpu.0),
            Operation::Steal { cpu, ns } => {
                write!(f, "the hypervisor takes {} us from CPU {}", *ns as f64 / 1e3, cpu.0)
            }
            Operation::Move { cpu, task, group: to } => {
                write!(f, "CPU {} moves t{task} to {}", cpu.0, group(to))
            }
        }
    }
}
