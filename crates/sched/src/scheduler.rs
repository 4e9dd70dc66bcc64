//! The interface between an engine and a scheduler.
//!
//! Our rules ([`Sched`]) are one scheduler; the code of a kernel tree, compiled, is another. An engine that is generic
//! over [`Scheduler`] drives either. Methods that place a task come in two halves, as in [`Sched`]: `decide_` chooses,
//! and `apply_` carries that out. A scheduler that cannot separate them does all in the first half and only reports in
//! the second.
//!
//! Side effects of a call are reported by [`Scheduler::effects`], which the engine drains after each call.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cell::RefCell;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{Duration, TaskId, Time};

use crate::{
    BalanceDecision, Candidate, Curr, Deactivate, Domains, Effect, Experience, Kernel, KernelError, Lately,
    Looked, MigrationCause, NeedResched, NewTask, Newidle, Placement, Policy, PreemptDecision, Reason,
    Scaled, Sched, SdId, SeId, Switched, Task, TaskState, TgId, Ticked, Took, WakePath, Wakeup,
    WakeupDecision,
};

/// The list for rejected CPUs, if they are wanted.
pub type PassedOver<'a> = Option<&'a RefCell<Vec<Candidate>>>;

/// A scheduler of one machine, driven in virtual time. Times are ns since boot.
pub trait Scheduler {
    /// Its rules, or the closest ones: they determine where the engine honours a reschedule request.
    fn kernel(&self) -> &Kernel;
    /// Changes a rule while running.
    ///
    /// # Errors
    /// It has no such rule.
    fn switch(&mut self, part: &str) -> Result<(), KernelError>;
    /// The domains in which it balances, or those that our rules build for the same machine.
    fn domains(&self) -> &Domains;
    /// Length of a tick, ns.
    fn tick_ns(&self) -> u64;
    /// Costs of the kernel's own work, in the driver's time.
    fn took(&mut self) -> &mut Took;
    /// Run queues examined since the driver's last call. A scheduler that does not report them leaves it
    /// empty.
    fn looked(&mut self) -> &mut Looked;
    /// Effects since the engine's last call.
    fn effects(&mut self) -> &mut Vec<Effect>;
    /// Whether balance passes are recorded.
    fn log_balance(&mut self, on: bool);
    /// The passes since the last call.
    fn balance_log(&mut self) -> Vec<BalanceDecision>;
    /// What newly idle CPUs did since the last call, if passes are recorded.
    fn newidle_log(&mut self) -> Vec<Newidle>;
    /// Whether its passes can be recorded: those of a kernel tree cannot.
    fn keeps_passes(&self) -> bool {
        true
    }
    /// Whether only the rules of balance passes are recorded.
    fn log_balance_reasons(&mut self, _on: bool) {}
    /// The rules of the passes, in order, if they are recorded; the reader empties the list.
    fn balance_reasons(&mut self) -> Option<&mut Vec<Reason>> {
        None
    }

    /// What a CPU executes.
    fn curr(&self, cpu: CpuId) -> Curr;
    /// Reschedule requests pending for its current task.
    fn need_resched(&self, cpu: CpuId) -> NeedResched;
    /// Tasks on its queue, of all classes.
    fn nr_running(&self, cpu: CpuId) -> u32;
    /// Whether it is online.
    fn is_online(&self, cpu: CpuId) -> bool;
    /// Whether tasks may be placed on it.
    fn is_active(&self, cpu: CpuId) -> bool;
    /// Whether its idle task polls the flag, so that no interrupt is needed.
    fn is_polling(&self, cpu: CpuId) -> bool;
    /// Its idle task starts or stops polling the flag.
    fn set_polling(&mut self, cpu: CpuId, polling: bool);
    /// From now on a CPU whose last task leaves is not idle before [`Scheduler::is_at_idle`] is called. Returns whether
    /// that is supported.
    fn linger(&mut self) -> bool;
    /// A CPU has switched to its idle task.
    fn is_at_idle(&mut self, cpu: CpuId);
    /// Whether a task that has not left its CPU yet is put on the wake list of that CPU if it is woken now.
    fn hands_over(&self, wakeup: &Wakeup) -> bool;
    /// Exit latency of its idle state, ns; `None` if it is awake.
    fn set_idle_exit_latency(&mut self, cpu: CpuId, ns: Option<u64>);
    /// Whether its wake list contains tasks to queue.
    fn has_wake_list(&self, cpu: CpuId) -> bool;
    /// Whether an idle CPU has one task, queued or on its wake list, and no other.
    fn has_first_task(&self, cpu: CpuId) -> bool;
    /// Wakers see a CPU with its first task as idle, or no longer.
    fn hide_queued(&mut self, cpu: CpuId, hidden: bool);
    /// Whether newly idle CPUs look for work: some CPU of the root domain of this one is known to have two tasks.
    fn overload(&self, cpu: CpuId) -> bool;
    /// Sets that.
    fn set_overload(&mut self, cpu: CpuId, on: bool);
    /// The speed of a CPU, of 1024.
    fn set_freq_scale(&mut self, cpu: CpuId, scale: u64);
    /// Whether two CPUs share their last-level cache.
    fn cpus_share_cache(&self, a: CpuId, b: CpuId) -> bool;

    /// A task.
    fn task(&self, task: TaskId) -> &Task;
    /// A task's run time and virtual time, ns.
    fn runtime(&self, task: TaskId) -> [u64; 2];
    /// Whether a task may run on a CPU now.
    fn is_cpu_allowed(&self, task: TaskId, cpu: CpuId) -> bool;
    /// About this many tasks will be created.
    fn expect_tasks(&mut self, _count: usize) {}
    /// Creates a task; tasks are numbered in the order of their creation.
    fn new_task(&mut self, spec: &NewTask, parent: Option<TaskId>, now: Time) -> TaskId;
    /// Sets the state of a task before its first wake-up.
    fn set_state(&mut self, task: TaskId, state: TaskState);
    /// A task begins to exit.
    fn set_exiting(&mut self, task: TaskId);
    /// A task's mask was never narrowed.
    fn set_never_restricted(&mut self, task: TaskId);
    /// The CPU a task used before its own.
    fn set_recent_used_cpu(&mut self, task: TaskId, cpu: CpuId);
    /// A task's wakee flips, and the time of the last halving.
    fn set_wakee_flips(&mut self, task: TaskId, count: u32, halved: Time);
    /// Clamps of a task's utilisation; `None` leaves one unchanged.
    fn set_uclamp(&mut self, task: TaskId, min: Option<u32>, max: Option<u32>);
    /// A sleeping task's lag.
    fn set_lag(&mut self, task: TaskId, owed: Duration);
    /// A task's averages: how much it ran and was runnable, of 1024.
    fn set_averages(&mut self, task: TaskId, running: u16, runnable: u16, now: Time);
    /// Policy.
    fn set_policy(&mut self, by: CpuId, task: TaskId, policy: Policy, now: Time);
    /// Nice value.
    fn set_nice(&mut self, task: TaskId, nice: i8, now: Time);
    /// Own slice, ns.
    fn set_slice(&mut self, task: TaskId, slice: Option<u64>, now: Time);
    /// CPU `by` changes the allowed CPUs of a task. If the task runs on another CPU, the stopper must move
    /// it: returns where to.
    fn set_cpus_allowed(
        &mut self,
        by: CpuId,
        task: TaskId,
        allowed: Arc<CpuMask>,
        now: Time,
    ) -> Option<CpuId>;
    /// The same for a task that is not queued.
    fn do_set_cpus_allowed(&mut self, task: TaskId, allowed: Arc<CpuMask>, now: Time);
    /// Updates a sleeping task's averages to the clock of its queue.
    fn sync_load_avg(&mut self, task: TaskId);
    /// Charges the running task of a task's queue.
    fn update_curr_of(&mut self, cpu: CpuId, task: TaskId, now: Time);
    /// A process executes another program (v7.2).
    fn sched_cache_exec(&mut self, task: TaskId, process: u32, now: Time);
    /// An exiting task leaves the group of its session.
    fn sched_autogroup_exit_task(&mut self, task: TaskId, now: Time);

    /// Updates the sums that forks and execs use.
    fn update_group_sums(&mut self);
    /// Where a new task is placed.
    fn decide_fork(&mut self, task: TaskId, this: CpuId, now: Time, passed_over: PassedOver<'_>)
    -> Placement;
    /// Carries out the placement.
    fn apply_fork(&mut self, task: TaskId, cpu: CpuId, now: Time) -> PreemptDecision;
    /// Where a task continues after an exec.
    fn decide_exec(&mut self, task: TaskId, now: Time, passed_over: PassedOver<'_>) -> Placement;
    /// Where a woken task is placed.
    fn decide_wakeup(&mut self, wakeup: &Wakeup, now: Time, passed_over: PassedOver<'_>) -> WakeupDecision;
    /// Carries out the placement.
    fn apply_wakeup(
        &mut self,
        wakeup: &Wakeup,
        decision: &WakeupDecision,
        now: Time,
    ) -> Option<PreemptDecision>;
    /// A task was queued by this CPU.
    fn task_woken(&mut self, by: CpuId, task: TaskId, now: Time);
    /// The tasks on the wake list of a CPU, in order.
    fn wake_list_in_turn(&mut self, cpu: CpuId, now: Time) -> Vec<TaskId>;
    /// The CPU queues one of them.
    fn drain_one(&mut self, task: TaskId, now: Time) -> PreemptDecision;

    /// The CPU calls the scheduler. It may be stopped meanwhile: after how many ns, for how many.
    fn schedule(&mut self, cpu: CpuId, how: Deactivate, stall: Option<(u64, u64)>, now: Time) -> Switched;
    /// The switch away from a task is complete.
    fn finish_task_switch(&mut self, prev: TaskId);
    /// The work after a switch.
    fn balance_callbacks(&mut self, cpu: CpuId, now: Time);
    /// The current task yields its CPU.
    fn yield_task(&mut self, cpu: CpuId, now: Time);
    /// Whether a task can have work to do before it returns to user mode.
    fn has_task_work(&self) -> bool;
    /// The current task, about to return to user mode, does the work that waits for this. Whether it must leave the
    /// queue because its group is out of quota.
    fn exit_to_user(&mut self, task: TaskId, now: Time) -> bool;

    /// The tick of a CPU.
    fn tick(&mut self, cpu: CpuId, now: Time) -> Ticked;
    /// When the slice timer of a CPU expires, if set.
    fn hrtick_at(&self, cpu: CpuId) -> Option<u64>;
    /// The slice timer expires.
    fn hrtick(&mut self, cpu: CpuId, now: Time);
    /// An interrupt took this many ns.
    fn steal(&mut self, cpu: CpuId, ns: u64, now: Time);
    /// Whether a CPU stops its tick, given its predicted idle time, ns, if there is a prediction, and the time to its
    /// next timer.
    fn stops_tick(&self, expected_ns: Option<u64>, timer_ns: u64) -> bool;
    /// It stops its tick.
    fn nohz_balance_enter_idle(&mut self, cpu: CpuId);
    /// It was kicked to balance for the idle CPUs: returns whether it does.
    fn nohz_kicked(&mut self, cpu: CpuId, now: Time) -> bool;
    /// The balance softirq.
    fn run_rebalance_domains(&mut self, cpu: CpuId, now: Time);
    /// The stopper of a CPU makes an active balance.
    fn active_balance(&mut self, cpu: CpuId, to: CpuId, now: Time);
    /// The stopper of a CPU moves a task that had to leave.
    fn stopper_moves(&mut self, cpu: CpuId, task: TaskId, to: CpuId, cause: MigrationCause, now: Time);

    /// Creates a group.
    fn new_group(&mut self, parent: TgId, shares: u64, creator: CpuId, now: Time) -> TgId;
    /// Makes a group SCHED_IDLE, or not.
    fn set_idle_group(&mut self, tg: TgId, idle: bool, now: Time);
    /// Bounds that a group requests for the utilisation of its tasks; `None` leaves one unchanged.
    fn set_group_uclamp(&mut self, tg: TgId, min: Option<u32>, max: Option<u32>);
    /// A group's weight, 1024 << 10 for a weight of 100.
    fn set_shares(&mut self, tg: TgId, shares: u64, now: Time);
    /// Its quota, period and burst, ns.
    fn set_bandwidth(&mut self, tg: TgId, quota: Option<u64>, period: u64, burst: u64, now: Time);
    /// A task moves to a group.
    fn move_task_to_group(&mut self, task: TaskId, tg: TgId, now: Time);
    /// Completed periods of all groups, and quota periods in which a CPU was throttled.
    fn periods(&self) -> [u64; 2] {
        [0, 0]
    }
    /// The state of our rules, if it has it, for reporting.
    fn state(&self) -> Option<&Sched> {
        None
    }
    /// The memory node of a group.
    fn home_node(&self, tg: TgId) -> u16;
    /// Counters of a group's load average.
    fn nr_load_avgs(&self) -> usize;
    /// How many lines with other atomics it distinguishes: our rules none.
    fn nr_atomics(&self) -> usize {
        0
    }
    /// The time to which a timer that would expire now was set meanwhile, `Time::MAX` if it was cancelled. The hardware
    /// was set again too, so no interrupt comes now.
    fn timer_was_set(&mut self, _tg: TgId, _cpu: CpuId, _now: Time) -> Option<Time> {
        None
    }
    /// A group's period is over: returns the end of the next one.
    fn period_timer(&mut self, tg: TgId, cpu: CpuId, now: Time) -> Option<Time>;
    /// Returned quota is handed out.
    fn slack_timer(&mut self, tg: TgId, cpu: CpuId, now: Time);
    /// A CPU unthrottles queues that have quota again.
    fn cfsb_csd_unthrottle(&mut self, cpu: CpuId, now: Time);
    /// The period of RT throttling is over: returns the end of the next one.
    fn rt_period_timer(&mut self, now: Time) -> Option<Time>;
    /// A CPU pushes RT tasks that wait on it.
    fn rto_push_irq_work(&mut self, cpu: CpuId, now: Time);
    /// A deadline task gets a new budget.
    fn dl_timer(&mut self, by: CpuId, task: TaskId, now: Time);
    /// The bandwidth of a sleeping deadline task is released.
    fn dl_inactive_timer(&mut self, task: TaskId, now: Time);
    /// Whether that timer is due, and has not been cancelled.
    fn dl_inactive_due(&self, task: TaskId, now: Time) -> bool;

    /// A CPU comes online.
    fn cpu_starting(&mut self, cpu: CpuId, now: Time);
    /// A CPU goes offline.
    fn set_offline(&mut self, cpu: CpuId, now: Time);
    /// Whether tasks may be placed on a CPU changes.
    fn set_active(&mut self, cpu: CpuId, active: bool, now: Time);
    /// All CPUs leave their domains.
    fn detach_domains(&mut self);

    /// The machine has been up and idle until now.
    fn has_been_up(&mut self, now: Time, draw: impl FnMut() -> u64);
    /// When domains were last balanced.
    fn was_balanced(&mut self, at: Time, lately: Lately, draw: impl FnMut() -> u64);
    /// The time between two periodic passes over a domain, at its present interval, of a CPU that is busy or not.
    fn balance_period(&self, sd: SdId, busy: bool) -> Duration;
    /// The initial cost estimate of newly idle balancing, ns.
    fn set_newidle_cost(&mut self, ns: u64);
    /// Limits searches in the cache of a CPU, as a pass that finds this utilisation.
    fn bound_scans(&mut self, cpu: CpuId, sum_util: u64);
    /// What balancing learned before.
    fn has_learned(&mut self, experience: &Experience);
    /// A pass of a CPU over the domain it shares with another is known to come at this time.
    fn balances_at(&mut self, cpu: CpuId, from: CpuId, pass: Time);
}

/// Methods that [`Sched`] has under the same name.
macro_rules! own {
    ($(fn $name:ident(&self $(, $arg:ident: $of:ty)*) $(-> $gives:ty)?;)*
     $(mut fn $mut_name:ident(&mut self $(, $mut_arg:ident: $mut_of:ty)*) $(-> $mut_gives:ty)?;)*) => {
        $(#[inline] fn $name(&self $(, $arg: $of)*) $(-> $gives)? { Sched::$name(self $(, $arg)*) })*
        $(#[inline] fn $mut_name(&mut self $(, $mut_arg: $mut_of)*) $(-> $mut_gives)? {
            Sched::$mut_name(self $(, $mut_arg)*)
        })*
    };
}

impl Scheduler for Sched {
    fn periods(&self) -> [u64; 2] {
        let pools = || self.tgs.iter().map(|tg| &tg.bandwidth);
        [pools().map(|pool| pool.nr_periods).sum(), pools().map(|pool| pool.nr_throttled).sum()]
    }

    fn state(&self) -> Option<&Sched> {
        Some(self)
    }

    own! {
        fn tick_ns(&self) -> u64;
        fn cpus_share_cache(&self, a: CpuId, b: CpuId) -> bool;
        fn task(&self, task: TaskId) -> &Task;
        fn is_cpu_allowed(&self, task: TaskId, cpu: CpuId) -> bool;
        fn balance_period(&self, sd: SdId, busy: bool) -> Duration;
        fn hrtick_at(&self, cpu: CpuId) -> Option<u64>;
        fn dl_inactive_due(&self, task: TaskId, now: Time) -> bool;
        fn stops_tick(&self, expected_ns: Option<u64>, timer_ns: u64) -> bool;
        mut fn set_freq_scale(&mut self, cpu: CpuId, scale: u64);
        mut fn new_task(&mut self, spec: &NewTask, parent: Option<TaskId>, now: Time) -> TaskId;
        mut fn set_lag(&mut self, task: TaskId, owed: Duration);
        mut fn set_averages(&mut self, task: TaskId, running: u16, runnable: u16, now: Time);
        mut fn set_policy(&mut self, by: CpuId, task: TaskId, policy: Policy, now: Time);
        mut fn set_nice(&mut self, task: TaskId, nice: i8, now: Time);
        mut fn set_slice(&mut self, task: TaskId, slice: Option<u64>, now: Time);
        mut fn set_cpus_allowed(
            &mut self, by: CpuId, task: TaskId, allowed: Arc<CpuMask>, now: Time
        ) -> Option<CpuId>;
        mut fn do_set_cpus_allowed(&mut self, task: TaskId, allowed: Arc<CpuMask>, now: Time);
        mut fn sched_cache_exec(&mut self, task: TaskId, process: u32, now: Time);
        mut fn sched_autogroup_exit_task(&mut self, task: TaskId, now: Time);
        mut fn update_group_sums(&mut self);
        mut fn apply_fork(&mut self, task: TaskId, cpu: CpuId, now: Time) -> PreemptDecision;
        mut fn apply_wakeup(
            &mut self, wakeup: &Wakeup, decision: &WakeupDecision, now: Time
        ) -> Option<PreemptDecision>;
        mut fn task_woken(&mut self, by: CpuId, task: TaskId, now: Time);
        mut fn drain_one(&mut self, task: TaskId, now: Time) -> PreemptDecision;
        mut fn finish_task_switch(&mut self, prev: TaskId);
        mut fn balance_callbacks(&mut self, cpu: CpuId, now: Time);
        mut fn yield_task(&mut self, cpu: CpuId, now: Time);
        mut fn exit_to_user(&mut self, task: TaskId, now: Time) -> bool;
        mut fn tick(&mut self, cpu: CpuId, now: Time) -> Ticked;
        mut fn hrtick(&mut self, cpu: CpuId, now: Time);
        mut fn steal(&mut self, cpu: CpuId, ns: u64, now: Time);
        mut fn nohz_balance_enter_idle(&mut self, cpu: CpuId);
        mut fn run_rebalance_domains(&mut self, cpu: CpuId, now: Time);
        mut fn new_group(&mut self, parent: TgId, shares: u64, creator: CpuId, now: Time) -> TgId;
        mut fn set_idle_group(&mut self, tg: TgId, idle: bool, now: Time);
        mut fn set_group_uclamp(&mut self, tg: TgId, min: Option<u32>, max: Option<u32>);
        mut fn set_shares(&mut self, tg: TgId, shares: u64, now: Time);
        mut fn set_bandwidth(&mut self, tg: TgId, quota: Option<u64>, period: u64, burst: u64, now: Time);
        mut fn move_task_to_group(&mut self, task: TaskId, tg: TgId, now: Time);
        mut fn period_timer(&mut self, tg: TgId, cpu: CpuId, now: Time) -> Option<Time>;
        mut fn slack_timer(&mut self, tg: TgId, cpu: CpuId, now: Time);
        mut fn cfsb_csd_unthrottle(&mut self, cpu: CpuId, now: Time);
        mut fn rt_period_timer(&mut self, now: Time) -> Option<Time>;
        mut fn rto_push_irq_work(&mut self, cpu: CpuId, now: Time);
        mut fn dl_timer(&mut self, by: CpuId, task: TaskId, now: Time);
        mut fn dl_inactive_timer(&mut self, task: TaskId, now: Time);
        mut fn set_active(&mut self, cpu: CpuId, active: bool, now: Time);
        mut fn detach_domains(&mut self);
        mut fn has_learned(&mut self, experience: &Experience);
        mut fn balances_at(&mut self, cpu: CpuId, from: CpuId, pass: Time);
    }

    #[inline]
    fn kernel(&self) -> &Kernel {
        &self.kernel
    }
    fn switch(&mut self, part: &str) -> Result<(), KernelError> {
        self.kernel.switch(part)?;
        // Tunables that depend on the number of CPUs are updated at once.
        self.scaled = Scaled::new(&self.kernel.tunables, self.nr_online());
        Ok(())
    }
    #[inline]
    fn domains(&self) -> &Domains {
        &self.domains
    }
    #[inline]
    fn took(&mut self) -> &mut Took {
        &mut self.took
    }
    #[inline]
    fn looked(&mut self) -> &mut Looked {
        &mut self.looked
    }
    #[inline]
    fn effects(&mut self) -> &mut Vec<Effect> {
        &mut self.effects
    }
    fn log_balance(&mut self, on: bool) {
        if self.balance_log.is_some() != on {
            self.balance_log = on.then(Vec::new);
        }
    }
    fn balance_log(&mut self) -> Vec<BalanceDecision> {
        self.balance_log.as_mut().map(core::mem::take).unwrap_or_default()
    }
    fn newidle_log(&mut self) -> Vec<Newidle> {
        core::mem::take(&mut self.newidle_log)
    }
    fn log_balance_reasons(&mut self, on: bool) {
        self.keeps_balance_reasons = on;
    }
    #[inline]
    fn balance_reasons(&mut self) -> Option<&mut Vec<Reason>> {
        Some(&mut self.balance_reasons).filter(|reasons| !reasons.is_empty())
    }

    #[inline]
    fn curr(&self, cpu: CpuId) -> Curr {
        self.rqs[cpu].curr
    }
    #[inline]
    fn need_resched(&self, cpu: CpuId) -> NeedResched {
        self.rqs[cpu].need_resched
    }
    #[inline]
    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.rqs[cpu].nr_running
    }
    #[inline]
    fn is_online(&self, cpu: CpuId) -> bool {
        self.rqs[cpu].online
    }
    #[inline]
    fn is_active(&self, cpu: CpuId) -> bool {
        self.rqs[cpu].active
    }
    #[inline]
    fn is_polling(&self, cpu: CpuId) -> bool {
        self.rqs[cpu].polling
    }
    #[inline]
    fn set_polling(&mut self, cpu: CpuId, polling: bool) {
        self.rqs[cpu].polling = polling;
    }
    fn expect_tasks(&mut self, count: usize) {
        self.tasks.reserve(count);
    }
    fn linger(&mut self) -> bool {
        self.lingers = true;
        true
    }
    #[inline]
    fn is_at_idle(&mut self, cpu: CpuId) {
        if self.rqs[cpu].leaving.take().is_some() {
            self.update_idle_core(cpu);
        }
    }
    fn hands_over(&self, wakeup: &Wakeup) -> bool {
        self.wake_path(wakeup) == WakePath::OnCpuHandover
    }
    #[inline]
    fn set_idle_exit_latency(&mut self, cpu: CpuId, ns: Option<u64>) {
        self.rqs[cpu].idle_exit_latency = ns;
    }
    #[inline]
    fn has_wake_list(&self, cpu: CpuId) -> bool {
        !self.rqs[cpu].wake_list.is_empty()
    }

    #[inline]
    fn has_first_task(&self, cpu: CpuId) -> bool {
        let rq = &self.rqs[cpu];
        rq.curr == Curr::Idle && rq.nr_running as usize + rq.wake_list.len() == 1
    }
    #[inline]
    fn hide_queued(&mut self, cpu: CpuId, hidden: bool) {
        self.rqs[cpu].hides_queued = hidden;
    }
    #[inline]
    fn overload(&self, _cpu: CpuId) -> bool {
        self.domains.overload
    }
    #[inline]
    fn set_overload(&mut self, _cpu: CpuId, on: bool) {
        self.domains.overload = on;
    }

    #[inline]
    fn runtime(&self, task: TaskId) -> [u64; 2] {
        let se = &Sched::task(self, task).se;
        [se.sum_exec_runtime, se.vruntime]
    }
    fn set_state(&mut self, task: TaskId, state: TaskState) {
        let entry = self.task_mut(task);
        entry.state = state;
        // It has slept for long.
        entry.se.vruntime = 0;
    }
    fn set_exiting(&mut self, task: TaskId) {
        self.task_mut(task).exiting = true;
    }
    fn set_never_restricted(&mut self, task: TaskId) {
        self.task_mut(task).never_restricted = true;
    }
    fn set_recent_used_cpu(&mut self, task: TaskId, cpu: CpuId) {
        self.task_mut(task).recent_used_cpu = Some(cpu);
    }
    fn set_wakee_flips(&mut self, task: TaskId, count: u32, halved: Time) {
        let halved = self.jiffies(halved);
        let task = self.task_mut(task);
        (task.wakee_flips, task.wakee_flip_decay) = (count, halved);
    }
    fn set_uclamp(&mut self, task: TaskId, min: Option<u32>, max: Option<u32>) {
        let task = self.task_mut(task);
        task.uclamp_req = task.uclamp_req.requested(min, max);
    }
    fn sync_load_avg(&mut self, task: TaskId) {
        self.sync_wakee(task);
    }
    fn update_curr_of(&mut self, cpu: CpuId, task: TaskId, now: Time) {
        self.update_rq_clock(cpu, now);
        self.update_curr(self.cfs_rq_of(SeId(task.0)));
    }

    #[inline]
    fn decide_fork(
        &mut self,
        task: TaskId,
        this: CpuId,
        now: Time,
        passed_over: PassedOver<'_>,
    ) -> Placement {
        Sched::decide_fork(self, task, this, now, passed_over)
    }
    #[inline]
    fn decide_exec(&mut self, task: TaskId, now: Time, passed_over: PassedOver<'_>) -> Placement {
        self.sync_exec(task);
        Sched::decide_exec(self, task, now, passed_over)
    }
    #[inline]
    fn decide_wakeup(&mut self, wakeup: &Wakeup, now: Time, passed_over: PassedOver<'_>) -> WakeupDecision {
        Sched::decide_wakeup(self, wakeup, now, passed_over)
    }
    #[inline]
    fn wake_list_in_turn(&mut self, cpu: CpuId, _now: Time) -> Vec<TaskId> {
        Sched::wake_list_in_turn(self, cpu)
    }
    #[inline]
    fn schedule(&mut self, cpu: CpuId, how: Deactivate, stall: Option<(u64, u64)>, now: Time) -> Switched {
        self.stall = stall;
        let switched = Sched::schedule(self, cpu, how, now);
        self.stall = None;
        switched
    }
    #[inline]
    fn has_task_work(&self) -> bool {
        self.has_task_work()
    }
    fn nohz_kicked(&mut self, cpu: CpuId, _now: Time) -> bool {
        Sched::nohz_kicked(self, cpu)
    }
    fn active_balance(&mut self, cpu: CpuId, to: CpuId, now: Time) {
        Sched::active_balance(self, cpu, to, now);
    }
    /// Moves a queued task; a sleeping one will be placed from there. A CPU that went offline meanwhile gets no task.
    ///
    /// Kernel: migration_cpu_stop(), __migrate_task(), kernel/sched/core.c, v6.12.
    fn stopper_moves(&mut self, cpu: CpuId, task: TaskId, to: CpuId, cause: MigrationCause, now: Time) {
        let entry = Sched::task(self, task);
        if entry.cpu != cpu || !Sched::is_cpu_allowed(self, task, to) {
            return;
        }
        if entry.on_rq {
            self.move_queued_task(task, to, cause, now);
        } else {
            self.task_mut(task).wake_cpu = to;
        }
    }
    fn home_node(&self, tg: TgId) -> u16 {
        self.tg(tg).home_node
    }
    fn nr_load_avgs(&self) -> usize {
        self.tg(TgId::ROOT).load_avg.len()
    }

    fn cpu_starting(&mut self, cpu: CpuId, _now: Time) {
        Sched::cpu_starting(self, cpu);
    }
    fn set_offline(&mut self, cpu: CpuId, now: Time) {
        self.set_online(cpu, false, now);
    }
    fn has_been_up(&mut self, now: Time, draw: impl FnMut() -> u64) {
        Sched::has_been_up(self, now, draw);
    }
    fn was_balanced(&mut self, at: Time, lately: Lately, draw: impl FnMut() -> u64) {
        Sched::was_balanced(self, at, lately, draw);
    }
    fn bound_scans(&mut self, cpu: CpuId, sum_util: u64) {
        self.bound_idle_scans(cpu, sum_util);
    }
    fn set_newidle_cost(&mut self, ns: u64) {
        for sd in &mut self.domains.sds {
            sd.max_newidle_lb_cost = ns;
        }
    }
}
