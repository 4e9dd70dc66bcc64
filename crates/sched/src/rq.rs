//! The run queue of one CPU.

use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::balance::cpu_load_idx::CPU_LOAD_IDX_MAX;
use crate::class::Class;
use crate::{CfsRqId, FairServer, NeedResched, NohzKick, SchedAvg, Wakees};

/// What a CPU executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Curr {
    /// Its idle task.
    #[default]
    Idle,
    /// A task.
    Task(TaskId),
}

impl Curr {
    /// The task, unless idle.
    #[inline]
    pub fn task(self) -> Option<TaskId> {
        match self {
            Curr::Idle => None,
            Curr::Task(task) => Some(task),
        }
    }
}

/// A CPU's run queue, as `struct rq`. Times are ns unless noted otherwise.
///
/// The order of fields is fixed: those that placement and balancing read on other CPUs come first, in one
/// cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Rq {
    /// Tasks of all classes, delayed ones included.
    pub nr_running: u32,
    /// Root util_est: sum over queued tasks.
    pub util_est_enqueued: u32,
    /// The running task, or idle.
    pub curr: Curr,
    /// Wake-ups queued by other CPUs, in order of arrival.
    pub wake_list: Vec<TaskId>,
    /// Some are queued or being processed.
    pub ttwu_pending: bool,
    /// Capacity before pressure, 1..=1024.
    pub cpu_capacity_orig: u64,
    /// Capacity left to the fair class, at least 1.
    pub cpu_capacity: u64,
    /// Load of a task that does not fit here; 0 if none.
    pub misfit_task_load: u64,
    /// Reschedule requests pending for `curr`.
    pub need_resched: NeedResched,
    /// Clock of the last update.
    pub clock: u64,
    /// Clock without interrupt and stolen time.
    pub clock_task: u64,
    /// Clock scaled by capacity and frequency.
    pub clock_pelt: u64,
    /// clock_pelt lost while a full CPU went idle.
    pub lost_idle_time: u64,
    /// v6.3+: PELT clock when the CPU went idle.
    pub clock_pelt_idle: u64,
    /// v6.3+: clock when the CPU went idle.
    pub clock_idle: u64,
    /// Interrupt time not yet subtracted from clock_task.
    pub irq_time_pending: u64,
    /// Time that the hypervisor took since the clock was last read.
    pub stolen: u64,
    /// When newly idle balancing began; 0 when not idle.
    pub idle_stamp: u64,
    /// Average idle time.
    pub avg_idle: u64,
    /// SIS_PROP from v5.18: jiffy of the last wake-up, and the budget left.
    pub wake_stamp: u64,
    /// SIS_PROP from v5.18: budget.
    pub wake_avg_idle: u64,
    /// Longest newly idle balancing so far.
    pub max_idle_balance_cost: u64,
    /// Jiffy of the next periodic balancing.
    pub next_balance: u64,
    /// Jiffy of the last blocked load update.
    pub last_blocked_load_update: u64,
    /// Queues whose averages must be decayed, children before parents.
    pub leaf_cfs_rqs: Vec<CfsRqId>,
    /// The last of them whose parent is not there yet (`tmp_alone_branch`).
    pub(crate) alone_branch: Option<CfsRqId>,
    /// It updates the load of the idle CPUs when it enters the idle loop (NOHZ_NEWILB_KICK).
    pub(crate) newilb: bool,
    /// The running task is back in its queues, as the pick starts again after it has throttled one.
    pub put_back: bool,
    /// Queues with new quota that this CPU was interrupted to unthrottle (v6.4).
    pub cfsb_csd_list: Vec<CfsRqId>,
    /// Blocked load may still decay.
    pub has_blocked_load: bool,
    /// Tick stopped because idle.
    pub nohz_tick_stopped: bool,
    /// Clock rate now, 1024 = full.
    pub freq_scale: u64,
    /// RT running average.
    pub avg_rt: SchedAvg,
    /// Deadline running average.
    pub avg_dl: SchedAvg,
    /// Interrupt and steal average.
    pub avg_irq: SchedAvg,
    /// v4.13: accumulated RT and interrupt time, ns * 1024.
    pub rt_avg: u64,
    /// v4.13: when it was last halved.
    pub age_stamp: u64,
    /// A stopper is moving a task away.
    pub active_balance: bool,
    /// v7.2: only one that prefers the destination's last-level cache.
    pub active_balance_llc: bool,
    /// The CPU was idle at its last tick.
    pub idle_balance: bool,
    /// What the CPU was interrupted to do for the idle ones.
    pub nohz_kick: NohzKick,
    /// The same once the interrupt has arrived, for the softirq.
    pub nohz_idle_balance: NohzKick,
    /// v4.13: past loads, each smoother than the one before.
    pub cpu_load: [u64; CPU_LOAD_IDX_MAX],
    /// v4.13: jiffy of their last update.
    pub last_load_update_tick: u64,
    /// v7.2: queued tasks by the last-level cache they prefer.
    pub llc_counts: Vec<u32>,
    /// v7.2: runnable tasks that are in the last-level cache they prefer.
    pub nr_pref_llc_running: u32,
    /// Head and tail of the list of fair tasks, most recently used first.
    pub cfs_tasks: (Option<TaskId>, Option<TaskId>),
    /// RT tasks, highest priority first, first come first.
    pub rt_queue: Vec<TaskId>,
    /// How many times an RT task began to wait here.
    pub(crate) rt_waits: u64,
    /// Deadline tasks in order of deadline.
    pub dl_queue: Vec<TaskId>,
    /// A task was set running, so others of its class that wait are pushed when the switch is done.
    pub(crate) push_queued: bool,
    /// RT tasks see this CPU as one with a deadline task. Its first such task sets this. The last one that leaves clears
    /// it, and so does a change of the highest RT priority, even beside a deadline task.
    pub cpupri_higher: bool,
    /// The CPU last taken of several suitable ones for an RT or deadline task, or for a task with a new
    /// affinity (distribute_cpu_mask_prev).
    pub any_cpu: CpuId,
    /// v7.2: the class that was picked last, or a higher one of which a task has come to wait since.
    pub(crate) next_class: Class,
    /// RT time used in this period, ns.
    pub rt_time: u64,
    /// RT tasks have used up their share of the period.
    pub rt_throttled: bool,
    /// v6.12: runs fair tasks that RT tasks keep waiting.
    pub fair_server: FairServer,
    /// When its idle task was set running or last charged (exec_start), by clock_task.
    pub idle_exec_start: u64,
    /// The expiry of the slice timer, if set.
    pub hrtick: Option<u64>,
    /// While the scheduler works, v7.2: what it wants the timer to be set to when it is done, ns from then.
    pub hrtick_deferred: Option<Option<u64>>,
    /// A task was queued that preempts the running one: the next call of the scheduler uses the clock of that time
    /// (RQCF_REQ_SKIP).
    pub skip_clock_update: bool,
    /// When the scheduler was last called, ns, whatever the clock says.
    pub called: u64,
    /// The stopper, when it wants to run.
    pub stop: Option<TaskId>,
    /// A pass has woken the stopper. The driver queues it when the pass is over, but it already counts.
    pub stop_asked: bool,
    /// Online.
    pub online: bool,
    /// Takes part in placement and balancing.
    pub active: bool,
    /// The idle loop polls, so no interrupt is needed to wake it. Set by the driver.
    pub polling: bool,
    /// Its idle task is chosen, but it still has to switch to it from this task: it looks for work elsewhere, for a
    /// driver whose passes take time.
    pub leaving: Option<TaskId>,
    /// Its first task is queued here as far as the state goes, but the CPU that does it has not come so far: wakers
    /// still see an idle CPU. Set by the driver while it asks for a decision.
    pub hides_queued: bool,
    /// Exit latency of its idle state, ns; `None` when unknown. Set by the driver.
    pub idle_exit_latency: Option<u64>,
    /// Generator of newly idle randomness (NI_RANDOM), seeded by the driver.
    pub random: u64,
    /// Wakees of interrupts on the idle CPU: the idle task counts like any waker.
    pub idle_wakees: Wakees,
    /// Context switches.
    pub nr_switches: u64,
}

impl Rq {
    /// Whether its current task is to be switched out at once. A stopper that a pass woke requests that when the driver
    /// queues it, but counts from the start.
    ///
    /// Kernel: test_tsk_need_resched() of rq->curr.
    #[inline]
    pub fn switches_at_once(&self) -> bool {
        self.need_resched.full || self.stop_asked
    }

    /// The time of day when its clock was read or the scheduler called: `clock` is behind it if schedule() was asked not
    /// to read it.
    ///
    /// Kernel: ktime_get() and jiffies, as schedule() sees them.
    #[inline]
    pub fn ktime(&self) -> u64 {
        self.clock.max(self.called)
    }

    /// Its current task from the view of other CPUs.
    #[inline]
    pub fn curr_seen(&self) -> Curr {
        self.leaving.map_or(self.curr, Curr::Task)
    }

    /// An idle run queue of a CPU of the given original capacity.
    pub fn new(capacity: u64, migration_cost: u64, seed: u64) -> Rq {
        Rq {
            nr_running: 0,
            curr: Curr::Idle,
            need_resched: NeedResched::default(),
            clock: 0,
            clock_task: 0,
            clock_pelt: 0,
            lost_idle_time: 0,
            clock_pelt_idle: 0,
            clock_idle: 0,
            irq_time_pending: 0,
            stolen: 0,
            wake_list: Vec::new(),
            ttwu_pending: false,
            idle_stamp: 0,
            avg_idle: 2 * migration_cost,
            wake_stamp: 0,
            wake_avg_idle: 2 * migration_cost,
            max_idle_balance_cost: migration_cost,
            next_balance: 0,
            last_blocked_load_update: 0,
            leaf_cfs_rqs: Vec::new(),
            alone_branch: None,
            newilb: false,
            put_back: false,
            cfsb_csd_list: Vec::new(),
            has_blocked_load: false,
            nohz_tick_stopped: false,
            cpu_capacity_orig: capacity,
            cpu_capacity: capacity,
            freq_scale: 1024,
            avg_rt: SchedAvg::default(),
            avg_dl: SchedAvg::default(),
            avg_irq: SchedAvg::default(),
            rt_avg: 0,
            age_stamp: 0,
            util_est_enqueued: 0,
            misfit_task_load: 0,
            active_balance: false,
            active_balance_llc: false,
            idle_balance: false,
            nohz_kick: NohzKick::default(),
            nohz_idle_balance: NohzKick::default(),
            cpu_load: [0; CPU_LOAD_IDX_MAX],
            last_load_update_tick: 0,
            llc_counts: Vec::new(),
            nr_pref_llc_running: 0,
            cfs_tasks: (None, None),
            rt_queue: Vec::new(),
            rt_waits: 0,
            dl_queue: Vec::new(),
            push_queued: false,
            cpupri_higher: false,
            any_cpu: CpuId(0),
            rt_time: 0,
            rt_throttled: false,
            next_class: Class::Idle,
            fair_server: FairServer::default(),
            idle_exec_start: 0,
            hrtick: None,
            hrtick_deferred: None,
            skip_clock_update: false,
            called: 0,
            stop: None,
            stop_asked: false,
            online: true,
            active: true,
            polling: false,
            leaving: None,
            hides_queued: false,
            idle_exit_latency: None,
            random: seed,
            idle_wakees: Wakees::default(),
            nr_switches: 0,
        }
    }

    /// SIS_PROP from v5.14: the idle budget, halved for each jiffy since the last wake-up here, and the jiffy
    /// of that update.
    ///
    /// Kernel: select_idle_cpu(), kernel/sched/fair.c, v5.18.
    pub(crate) fn aged_wake_avg_idle(&self, jiffies: u64) -> (u64, u64) {
        let passed = jiffies.saturating_sub(self.wake_stamp);
        (self.wake_stamp.max(jiffies), self.wake_avg_idle.checked_shr(passed as u32).unwrap_or(0))
    }
}
