//! A task as the scheduler sees it.

use alloc::sync::Arc;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::TaskId;

use crate::{Entity, TaskWorks, TgId, Uclamp};

/// The scheduling policy that a task requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// SCHED_OTHER.
    #[default]
    Normal,
    /// SCHED_BATCH: fair, never preempts on wake-up.
    Batch,
    /// SCHED_IDLE: fair, weight 3.
    Idle,
    /// SCHED_FIFO with priority 1..=99.
    Fifo(u8),
    /// SCHED_RR with priority 1..=99.
    Rr(u8),
    /// SCHED_DEADLINE, all in ns.
    Deadline {
        /// Budget.
        runtime: u64,
        /// Relative deadline.
        deadline: u64,
        /// Period.
        period: u64,
    },
    /// The stopper: above all others, bound to its CPU.
    Stop,
}

impl Policy {
    /// Whether the fair class schedules it.
    pub fn is_fair(self) -> bool {
        matches!(self, Policy::Normal | Policy::Batch | Policy::Idle)
    }
}

/// What a task is doing, as far as it matters to placement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskState {
    /// Forked, not yet woken.
    #[default]
    New,
    /// Runnable or running.
    Running,
    /// Asleep, interruptible.
    Interruptible,
    /// Asleep, uninterruptible.
    Uninterruptible,
    /// Woken, but not yet queued (wake list).
    Waking,
    /// Ended.
    Dead,
}

/// The parameters of a new task.
#[derive(Clone, Debug)]
pub struct NewTask {
    /// Policy.
    pub policy: Policy,
    /// Nice level, -20..=19; kept for all policies.
    pub nice: i8,
    /// CPUs it may use.
    pub allowed: Arc<CpuMask>,
    /// Group.
    pub tg: TgId,
    /// Kernel thread.
    pub kthread: bool,
    /// Number shared by the threads of one process.
    pub process: u32,
    /// Own slice (EEVDF, v6.12 on), ns.
    pub slice: Option<u64>,
}

impl NewTask {
    /// A task of nice 0 in the root group that may use all of this many CPUs.
    pub fn plain(nr_cpus: usize) -> NewTask {
        NewTask {
            policy: Policy::Normal,
            nice: 0,
            allowed: Arc::new(CpuMask::all(nr_cpus)),
            tg: TgId::ROOT,
            kthread: false,
            process: 0,
            slice: None,
        }
    }

    /// The stopper of a CPU.
    pub fn stopper(nr_cpus: usize, cpu: CpuId) -> NewTask {
        NewTask {
            policy: Policy::Stop,
            allowed: Arc::new(CpuMask::one(nr_cpus, cpu)),
            kthread: true,
            ..NewTask::plain(nr_cpus)
        }
    }
}

/// A task, as `struct task_struct` as far as the scheduler is concerned.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its entity in the fair class.
    pub se: Entity,
    /// Policy.
    pub policy: Policy,
    /// Nice level.
    pub nice: i8,
    /// CPUs it may use.
    pub allowed: Arc<CpuMask>,
    /// Number of CPUs in `allowed`.
    pub nr_cpus_allowed: u32,
    /// The mask was never narrowed (weight still NR_CPUS in the kernel).
    pub never_restricted: bool,
    /// If it is a kernel thread with one CPU, sched_setaffinity(2) bound it, not the kernel.
    pub bound_by_user: bool,
    /// CPU it is on or was last on.
    pub cpu: CpuId,
    /// CPU from which the next wake-up starts looking.
    pub wake_cpu: CpuId,
    /// Recently used CPU (rule RECENT_USED_CPU).
    pub recent_used_cpu: Option<CpuId>,
    /// Being executed, or in the middle of switching out.
    pub on_cpu: bool,
    /// On its run queue (also if delayed).
    pub on_rq: bool,
    /// State.
    pub state: TaskState,
    /// How often it changed the task that it wakes.
    pub wakee_flips: u32,
    /// Jiffy of the last halving of `wakee_flips`.
    pub wakee_flip_decay: u64,
    /// Task it woke last.
    pub last_wakee: Option<TaskId>,
    /// Kernel thread.
    pub kthread: bool,
    /// It is exiting.
    pub exiting: bool,
    /// Group.
    pub tg: TgId,
    /// Number shared by the threads of one process.
    pub process: u32,
    /// util_est: last estimate.
    pub util_est_enqueued: u32,
    /// util_est: slow average.
    pub util_est_ewma: u32,
    /// Bounds of utilisation that it requests; [`Sched::uclamp_eff`](crate::Sched::uclamp_eff) are those that apply.
    pub uclamp_req: Uclamp,
    /// The largest capacity of its CPUs, when that was last looked at.
    pub(crate) max_allowed_capacity: u16,
    /// v7.2: last-level cache its process prefers.
    pub preferred_llc: Option<u16>,
    /// v7.2: where the state of its process is kept.
    pub(crate) cache_place: u32,
    /// v7.2: queued in that cache, and counted there.
    pub pref_llc_queued: bool,
    /// Next on the run queue's list of fair tasks (towards the tail).
    pub list_next: Option<TaskId>,
    /// Previous on that list.
    pub list_prev: Option<TaskId>,
    /// On that list.
    pub on_list: bool,
    /// RR: ticks left of its turn; 0 before its first.
    pub rr_ticks_left: u32,
    /// RT: its number among those that began to wait on its CPU.
    pub(crate) rt_waits_from: u64,
    /// DL: budget left, ns.
    pub dl_runtime: i64,
    /// DL: absolute deadline.
    pub dl_deadline: u64,
    /// DL: out of budget until replenished.
    pub dl_throttled: bool,
    /// Whether it gave up the rest of its budget, which it loses when it gets a new one.
    pub dl_yielded: bool,
    /// DL: the timer of its next budget is set. Leaving the class does not cancel it.
    pub(crate) dl_timer_queued: bool,
    /// DL: it sleeps, and its bandwidth is still in use.
    pub dl_non_contending: bool,
    /// DL: when its bandwidth is released if it sleeps until then, ns.
    pub dl_inactive_at: Option<u64>,
    /// What it must do before it returns to user mode; see [`crate::Sched::exit_to_user`].
    pub works: TaskWorks,
    /// v7.2: off the queue until its group has quota again.
    pub throttled: bool,
    /// WF flags kept until activation, for example if it was woken while its CPU was still switching it out.
    pub wake_flags: u32,
}

impl Task {
    /// Kernel thread that may run on one CPU only.
    ///
    /// Kernel: is_per_cpu_kthread(), kernel/sched/sched.h, v5.6.
    pub fn is_per_cpu_kthread(&self) -> bool {
        self.kthread && self.nr_cpus_allowed == 1
    }

    /// Kernel thread that the kernel has bound to its CPU.
    ///
    /// Kernel: kthread_is_per_cpu(), kernel/kthread.c, v5.12.
    pub fn kthread_is_per_cpu(&self) -> bool {
        self.is_per_cpu_kthread() && !self.bound_by_user
    }

    /// SCHED_IDLE.
    pub fn has_idle_policy(&self) -> bool {
        self.policy == Policy::Idle
    }
}
