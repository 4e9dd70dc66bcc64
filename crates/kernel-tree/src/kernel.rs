//! A booted kernel and its operations.

use std::ffi::c_int;

use schedlab_topology::{CpuId, CpuMask};

use crate::raw::{MASK_WORDS, Raw};
use crate::{CpuState, DomainState, GroupState, ProcessState, TaskState};

/// A task of a kernel, by the order of forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelTask(pub u32);

/// A group of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// The task that runs on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curr {
    /// No task.
    Idle,
    /// The stopper.
    Stopper,
    /// A task.
    Task(KernelTask),
}

/// Pending work of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending(c_int);

impl Pending {
    /// Whether there is any work.
    pub fn any(self) -> bool {
        self.0 != 0
    }
    /// A request to reschedule.
    pub fn resched(self) -> bool {
        self.0 & 1 != 0
    }
    /// An interrupt from another CPU.
    pub fn ipi(self) -> bool {
        self.0 & 2 != 0
    }
    /// A softirq.
    pub fn softirq(self) -> bool {
        self.0 & 4 != 0
    }
    /// The stopper is running and waits for [`Kernel::stopper`].
    pub fn stopper(self) -> bool {
        self.0 & 8 != 0
    }
    /// A lazy request to reschedule.
    pub fn resched_lazy(self) -> bool {
        self.0 & 16 != 0
    }
}

/// A kernel running on its own machine.
///
/// A method with a CPU is an action of that CPU, in the context of the task running there. Invalid numbers raise a
/// [`crate::Fault`].
pub struct Kernel {
    pub(crate) raw: Raw,
    cpus: usize,
    pub(crate) tasks: u32,
}

/// What a waker says about a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeFlag {
    /// Nothing.
    None = 0,
    /// It will sleep soon (`WF_SYNC`).
    Sync = 1,
    /// The task is to come to its CPU (`WF_CURRENT_CPU`, from 6.6 on; nothing before).
    CurrentCpu = 2,
}

impl Kernel {
    pub(crate) fn new(raw: Raw, cpus: usize) -> Kernel {
        Kernel { raw, cpus, tasks: 0 }
    }

    #[inline]
    pub(crate) fn at(&self, cpu: CpuId) -> c_int {
        assert!(cpu.index() < self.cpus, "there is no CPU {}", cpu.0);
        c_int::from(cpu.0)
    }

    pub(crate) fn cpu(&self, number: c_int) -> CpuId {
        let cpu = CpuId(u16::try_from(number).unwrap_or(u16::MAX));
        assert!(cpu.index() < self.cpus, "the kernel refers to CPU {number}");
        cpu
    }

    /// `6.12.117`.
    pub fn release(&self) -> String {
        self.raw.release()
    }

    /// How many CPUs it has.
    pub fn nr_cpus(&self) -> usize {
        self.cpus
    }

    /// Sets the clock, ns.
    #[inline]
    pub fn now(&mut self, ns: u64) {
        self.raw.lab_now(ns);
    }

    /// Seeds the kernel's `get_random_u32()`.
    pub fn seed(&mut self, seed: u64) {
        self.raw.lab_seed(seed);
    }

    /// Seeds the scheduler's own generator of a CPU, `xorshift64*`.
    pub fn seed_cpu(&mut self, cpu: CpuId, seed: u64) {
        self.raw.lab_cpu_seed(self.at(cpu), seed);
    }

    /// Turns a `sched_feat` on or off. Returns its previous value, or `None` if the kernel has no such feature.
    pub fn feature(&mut self, name: &str, on: bool) -> Option<bool> {
        self.raw.feature(name, on)
    }

    /// Sets a tunable by the name of its variable, as a write to its file does: `sysctl_sched_base_slice`. Returns false
    /// if the kernel has no such variable.
    pub fn set_tunable(&mut self, variable: &str, value: u32) -> bool {
        self.raw.tunable(variable, value)
    }

    /// How many `WARN()`s the kernel has issued, and file and line of the first.
    pub fn warnings(&self) -> (u32, String) {
        self.raw.warnings()
    }

    /// The task running on a CPU forks another: `sched_fork()`. The child inherits policy, nice, mask and group; a
    /// child of the idle task is like one of task 1.
    pub fn fork(&mut self, cpu: CpuId, kthread: bool) -> KernelTask {
        let task = KernelTask(self.tasks);
        self.raw.lab_fork(self.at(cpu), task.0 as c_int, kthread.into());
        self.tasks += 1;
        task
    }

    /// `wake_up_new_task()`; returns the CPU of the task.
    pub fn wake_new(&mut self, cpu: CpuId, task: KernelTask) -> CpuId {
        self.cpu(self.raw.lab_wake_new(self.at(cpu), task.0 as c_int))
    }

    /// `try_to_wake_up()`; returns the CPU of the task, or `None` if it was awake.
    pub fn wake(&mut self, cpu: CpuId, task: KernelTask, flag: WakeFlag, in_irq: bool) -> Option<CpuId> {
        let to = self.raw.lab_wake(self.at(cpu), task.0 as c_int, flag as c_int, in_irq.into());
        (to >= 0).then(|| self.cpu(to))
    }

    /// The current task sleeps: `schedule()`. Returns whether another task now runs.
    pub fn sleep(&mut self, cpu: CpuId) -> bool {
        self.raw.lab_sleep(self.at(cpu)) != 0
    }

    /// The current task exits; its number is invalid afterwards.
    pub fn exit(&mut self, cpu: CpuId) {
        self.raw.lab_exit(self.at(cpu));
    }

    /// The current task calls `sched_yield()`.
    pub fn yield_now(&mut self, cpu: CpuId) {
        self.raw.lab_yield(self.at(cpu));
    }

    /// Carries out a pending request to reschedule. Returns whether another task now runs.
    pub fn resched(&mut self, cpu: CpuId) -> bool {
        self.raw.lab_resched(self.at(cpu)) != 0
    }

    /// Carries out a pending request to reschedule, a lazy one too, as on the way to user mode. Returns whether another
    /// task now runs.
    pub fn resched_lazy(&mut self, cpu: CpuId) -> bool {
        self.raw.lab_resched_lazy(self.at(cpu)) != 0
    }

    /// Switches to another preemption model, as the kernel's parameter `preempt=` does: `none`, `voluntary`, `full` or
    /// `lazy`. A booted kernel has full preemption. Returns false if the kernel does not have the model: see
    /// [`crate::Tree::preempt_models`].
    pub fn set_preempt(&mut self, model: &str) -> bool {
        self.raw.preempt(model)
    }

    /// The tick: `sched_tick()`, in an interrupt.
    pub fn tick(&mut self, cpu: CpuId) {
        self.raw.lab_tick(self.at(cpu));
    }

    /// Delivers the interrupt that other CPUs sent.
    pub fn ipi(&mut self, cpu: CpuId) {
        self.raw.lab_ipi(self.at(cpu));
    }

    /// The interrupt of high resolution timers.
    pub fn timer(&mut self, cpu: CpuId) {
        self.raw.lab_timer(self.at(cpu));
    }

    /// When the next such interrupt is due, ns; `i64::MAX` if never.
    #[inline]
    pub fn timer_at(&self, cpu: CpuId) -> u64 {
        self.raw.lab_timer_at(self.at(cpu))
    }

    /// Pending work of a CPU.
    #[inline]
    pub fn pending(&self, cpu: CpuId) -> Pending {
        Pending(self.raw.lab_pending(self.at(cpu)))
    }

    /// Runs the softirqs that are raised.
    pub fn softirq(&mut self, cpu: CpuId) {
        self.raw.lab_softirq(self.at(cpu));
    }

    /// If the stopper is running it does its work and sleeps. Returns whether it did.
    pub fn stopper(&mut self, cpu: CpuId) -> bool {
        self.raw.lab_stopper(self.at(cpu)) != 0
    }

    /// An idle CPU stops its tick.
    pub fn nohz_enter(&mut self, cpu: CpuId) {
        self.raw.lab_nohz_enter(self.at(cpu));
    }

    /// The CPU restarts its tick.
    pub fn nohz_exit(&mut self, cpu: CpuId) {
        self.raw.lab_nohz_exit(self.at(cpu));
    }

    /// A CPU begins to leave: `sched_cpu_deactivate()`. From 5.11 on it pushes away what it runs, each task as it switches to it.
    ///
    /// # Errors
    /// The kernel's error number: deadline tasks need the CPU.
    pub fn offline(&mut self, cpu: CpuId) -> Result<(), i32> {
        done(self.raw.lab_offline(self.at(cpu)))
    }

    /// The CPU is ready to leave: with the next work of its stopper it is down, by `sched_cpu_dying()`. Up to 5.10 this
    /// moves what it has to run.
    pub fn take_down(&mut self, cpu: CpuId) {
        self.raw.lab_take_down(self.at(cpu));
    }

    /// The stopper of a CPU is woken, with nothing to do.
    pub fn wake_stopper(&mut self, cpu: CpuId) {
        self.raw.lab_wake_stopper(self.at(cpu));
    }

    /// The CPU is there again, for kernel threads that are bound to it: `sched_cpu_starting()`.
    pub fn starting(&mut self, cpu: CpuId) {
        self.raw.lab_starting(self.at(cpu));
    }

    /// It takes tasks again: `sched_cpu_activate()`.
    pub fn activate(&mut self, cpu: CpuId) {
        self.raw.lab_activate(self.at(cpu));
    }

    /// A hypervisor takes this many ns from a CPU, which sees that when it next reads its clock.
    pub fn steal(&mut self, cpu: CpuId, ns: u64) {
        self.raw.lab_steal(self.at(cpu), ns);
    }

    /// A task becomes a thread of a process, as when it was forked or has executed another program. Until then it
    /// belongs to none. A kernel thread stays so.
    pub fn join_process(&mut self, task: KernelTask, process: u32) {
        self.raw.lab_join_process(task.0 as c_int, process as c_int);
    }

    /// Turns cache-aware balancing (`SCHED_CACHE`) on or off; it is on after boot. Returns false if the kernel has none.
    pub fn set_sched_cache(&mut self, on: bool) -> bool {
        self.raw.lab_sched_cache(on.into()) != 0
    }

    /// `set_user_nice()`.
    pub fn set_nice(&mut self, cpu: CpuId, task: KernelTask, nice: i8) {
        self.raw.lab_nice(self.at(cpu), task.0 as c_int, nice.into());
    }

    /// Before a task that was forked and not yet woken gets attributes of its own: it has no average that a change of its
    /// weight takes off a queue.
    pub fn forget_average(&mut self, task: KernelTask) {
        self.raw.lab_forget_average(task.0 as c_int);
    }

    /// After that: it begins with the load average of its weight, `init_entity_runnable_average()`.
    pub fn begin_average(&mut self, task: KernelTask) {
        self.raw.lab_begin_average(task.0 as c_int);
    }

    /// `sched_setattr()`: `policy` by the kernel's number; a nice value, or the priority of FIFO and RR; ns for DEADLINE.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn set_policy(
        &mut self,
        cpu: CpuId,
        task: KernelTask,
        policy: u32,
        prio: i32,
        dl: [u64; 3],
    ) -> Result<(), i32> {
        let [runtime, deadline, period] = dl;
        done(self.raw.lab_policy(
            self.at(cpu),
            task.0 as c_int,
            policy as c_int,
            prio,
            runtime,
            deadline,
            period,
        ))
    }

    /// Creates a group below another, or below the root; `shares` as in `cpu.shares`.
    pub fn new_group(&mut self, parent: Option<GroupId>, shares: u64) -> GroupId {
        let group = self.raw.lab_group(group_number(parent), shares);
        GroupId(u32::try_from(group).expect("groups are few"))
    }

    /// Changes the shares of a group.
    pub fn set_shares(&mut self, group: GroupId, shares: u64) {
        self.raw.lab_group_shares(group.0 as c_int, shares);
    }

    /// Limits a group to a run time in us per period in us; `None` removes the limit.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn set_quota(&mut self, group: GroupId, period_us: u64, quota_us: Option<u64>) -> Result<(), i32> {
        done(self.raw.lab_group_quota(group.0 as c_int, period_us, quota_us.map_or(-1, |us| us as i64)))
    }

    /// Moves a task to a group, or to the root.
    pub fn move_to_group(&mut self, cpu: CpuId, task: KernelTask, group: Option<GroupId>) {
        self.raw.lab_move(self.at(cpu), task.0 as c_int, group_number(group));
    }

    /// The task that runs on a CPU.
    #[inline]
    pub fn curr(&self, cpu: CpuId) -> Curr {
        match self.raw.lab_curr(self.at(cpu)) {
            -1 => Curr::Idle,
            task if task >= 0 => Curr::Task(KernelTask(task as u32)),
            _ => Curr::Stopper,
        }
    }

    /// The current or last CPU of a task.
    pub fn task_cpu(&self, task: KernelTask) -> CpuId {
        self.cpu(self.raw.lab_task_cpu(task.0 as c_int))
    }

    /// Number of runnable tasks on a CPU.
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        self.raw.lab_nr_running(self.at(cpu)) as u32
    }

    /// Context switches so far.
    pub fn switches(&self) -> u64 {
        self.raw.lab_switches()
    }

    /// State of a task.
    #[inline]
    pub fn task_state(&self, task: KernelTask) -> TaskState {
        TaskState::of(self.raw.task(task.0 as c_int))
    }

    /// State of a CPU.
    #[inline]
    pub fn cpu_state(&self, cpu: CpuId) -> CpuState {
        CpuState::of(self.raw.cpu(self.at(cpu)))
    }

    /// State of a domain of a CPU, counted from the lowest, without the number of its groups.
    #[inline]
    pub fn domain_state(&self, cpu: CpuId, level: usize) -> Option<DomainState> {
        self.raw.domain_state(self.at(cpu), level as c_int).map(DomainState::of)
    }

    /// All of its state, and the CPUs that it spans.
    pub fn domain(&self, cpu: CpuId, level: usize) -> Option<(DomainState, CpuMask)> {
        let (words, span) = self.raw.domain(self.at(cpu), level as c_int)?;
        let cpus = (0..self.cpus).filter(|cpu| span[cpu / 64] >> (cpu % 64) & 1 == 1);
        Some((DomainState::of(words), CpuMask::of(self.cpus, cpus.map(CpuId::from))))
    }

    /// The state of a group on a CPU.
    #[inline]
    pub fn group_state(&self, group: GroupId, cpu: CpuId) -> GroupState {
        GroupState::of(self.raw.group(group.0 as c_int, self.at(cpu)))
    }

    /// The state of a process, with its time on a CPU.
    #[inline]
    pub fn process_state(&self, process: u32, cpu: CpuId) -> ProcessState {
        ProcessState::of(self.raw.process(process as c_int, self.at(cpu)))
    }
}

pub(crate) fn words_of(mask: &CpuMask) -> [u64; MASK_WORDS] {
    let mut words = [0; MASK_WORDS];
    for (word, of) in words.iter_mut().zip(mask.words()) {
        *word = *of;
    }
    words
}

pub(crate) fn group_number(group: Option<GroupId>) -> c_int {
    group.map_or(-1, |group| group.0 as c_int)
}

fn done(error: c_int) -> Result<(), i32> {
    if error == 0 { Ok(()) } else { Err(-error) }
}
