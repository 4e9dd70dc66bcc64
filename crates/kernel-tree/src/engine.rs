//! Additional calls for an engine that runs whole workloads in a kernel: `shim/engine.c`.

use std::ffi::c_int;

use schedlab_topology::{CpuId, CpuMask};

use crate::kernel::{group_number, words_of};
use crate::raw::Prices;
use crate::{GroupId, Kernel, KernelTask};

/// Something that a call did or examined, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A CPU was interrupted to reschedule.
    Resched(CpuId),
    /// A CPU was interrupted to call a function.
    Call(CpuId),
    /// The lock of another CPU's run queue was taken.
    RqLock(CpuId),
    /// The lock of a task was taken (`pi_lock`).
    TaskLock(KernelTask),
    /// Another lock was taken, last taken by that CPU.
    Line(CpuId),
    /// The load average of a group was read, or written.
    TgLoadAvg(GroupId, bool),
    /// The line of another atomic, by number, was read, or written.
    Atomic(u32, bool),
    /// The fair class examined this many other CPUs.
    Scanned(u32),
    /// The fair class chose a CPU for a task.
    Selected(KernelTask, CpuId),
    /// A task moved from one CPU to another.
    Migrated(KernelTask, CpuId, CpuId),
    /// The stopper of a CPU was woken.
    Stopper(CpuId),
    /// CPUs that the fair class examined: the number of a word of 32, and its bits.
    Looked(u32, u32),
}

/// How a task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// It is preempted.
    Preempted,
    /// It calls `schedule()` while runnable; or it is the idle task.
    Yielded,
    /// It sleeps.
    Sleeps,
    /// It sleeps and ignores signals.
    SleepsDeep,
    /// It ends.
    Exits,
}

/// The state of a task that an engine reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Its CPU.
    pub cpu: CpuId,
    /// On its queue.
    pub on_rq: bool,
    /// On its CPU.
    pub on_cpu: bool,
    /// Neither running nor about to run.
    pub sleeps: bool,
    /// Run time, ns.
    pub sum_exec_runtime: u64,
    /// Virtual time, ns.
    pub vruntime: u64,
    /// Asleep, but still queued.
    pub sched_delayed: bool,
    /// Woken, but not yet on the queue of its CPU.
    pub waking: bool,
    /// Never woken yet.
    pub is_new: bool,
}

/// The balancing history of a domain of a CPU, in jiffies and ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfDomain {
    /// Jiffy of the last pass.
    pub last_balance: u64,
    /// Jiffies between passes.
    pub balance_interval: u64,
    /// Longest newly idle pass, ns.
    pub max_newidle_lb_cost: u64,
    /// Jiffy in which that was last lowered.
    pub decayed: u64,
}

impl Kernel {
    /// Switches the recording of events on or off.
    pub fn note(&mut self, on: bool) {
        self.raw.lab_note(on.into());
    }

    /// Passes each event since the last call to `each`.
    #[inline]
    pub fn events(&mut self, mut each: impl FnMut(Event)) {
        self.raw.events(|event| {
            let cpu = |number: c_int| CpuId(number as u16);
            let task = |number: c_int| KernelTask(number as u32);
            each(match event.kind {
                0 => Event::Resched(cpu(event.a)),
                1 => Event::Call(cpu(event.a)),
                2 => Event::RqLock(cpu(event.a)),
                3 => Event::Line(cpu(event.a)),
                4 => Event::Scanned(event.a as u32),
                // The stopper itself, and tasks of the kernel's own boot, never move.
                5 | 6 if event.a < 0 => return,
                5 => Event::Selected(task(event.a), cpu(event.b)),
                6 => Event::Migrated(task(event.a), cpu(event.b), cpu(event.c)),
                9 => Event::TgLoadAvg(GroupId(event.a as u32), event.b != 0),
                10 => Event::Atomic(event.a as u32, event.b != 0),
                11 => Event::TaskLock(task(event.a)),
                8 => Event::Looked(event.a as u32, event.b as u32),
                _ => Event::Stopper(cpu(event.a)),
            });
        });
    }

    /// The state of a task that an engine reads.
    #[inline]
    pub fn read(&self, task: KernelTask) -> Read {
        let [cpu, on_rq, on_cpu, state, sum_exec_runtime, vruntime, delayed, waking, new] =
            self.raw.read(task.0 as c_int);
        Read {
            cpu: CpuId(cpu as u16),
            on_rq: on_rq != 0,
            on_cpu: on_cpu != 0,
            sleeps: state != 0 && waking == 0,
            sum_exec_runtime,
            vruntime,
            sched_delayed: delayed != 0,
            waking: waking != 0,
            is_new: new != 0,
        }
    }

    /// Like [`Kernel::wake`], for a task that may still be leaving its CPU. `pending`: that CPU's wake list has tasks.
    pub fn wake_of(
        &mut self,
        cpu: CpuId,
        task: KernelTask,
        sync: bool,
        in_irq: bool,
        pending: bool,
    ) -> Option<CpuId> {
        let flags = [sync.into(), in_irq.into(), pending.into()];
        let to = self.raw.lab_wake_of(self.at(cpu), task.0 as c_int, flags[0], flags[1], flags[2]);
        (to >= 0).then(|| self.cpu(to))
    }

    /// The CPU calls the scheduler. `pending`: its wake list has tasks. Returns whether the task that left sleeps but is still
    /// queued.
    pub fn schedule(&mut self, cpu: CpuId, how: How, pending: bool) -> bool {
        self.raw.lab_schedule(self.at(cpu), how as c_int, pending.into()) != 0
    }

    /// The switch away from a sleeping task is complete; until then the task is on its CPU.
    pub fn left(&mut self, task: KernelTask) {
        self.raw.lab_left(task.0 as c_int);
    }

    /// A CPU has switched to its idle task: until then others do not find it idle. `pending`: its wake list has tasks.
    pub fn is_at_idle(&mut self, cpu: CpuId, pending: bool) {
        self.raw.lab_at_idle(self.at(cpu), pending.into());
    }

    /// A task forks another into a group on a CPU, whatever runs there; without a parent, task 1 forks it.
    pub fn fork_of(
        &mut self,
        cpu: CpuId,
        kthread: bool,
        parent: Option<KernelTask>,
        group: Option<GroupId>,
    ) -> KernelTask {
        let task = KernelTask(self.tasks);
        let parent = parent.map_or(-1, |parent| parent.0 as c_int);
        let group = group_number(group);
        self.raw.lab_fork_of(self.at(cpu), task.0 as c_int, kthread.into(), parent, group);
        self.tasks += 1;
        task
    }

    /// Gives the stopper of a CPU the next task number.
    pub fn stopper_task(&mut self, cpu: CpuId) -> KernelTask {
        let task = KernelTask(self.tasks);
        self.raw.lab_is_stopper(self.at(cpu), task.0 as c_int);
        self.tasks += 1;
        task
    }

    /// A forked task sleeps before its first wake-up.
    pub fn sleeps(&mut self, task: KernelTask) {
        self.raw.lab_sleeps(task.0 as c_int);
    }

    /// A kernel thread is bound to this CPU by the kernel itself, as with `kthread_set_per_cpu()`; `None`: not, or no
    /// longer.
    pub fn set_per_cpu(&mut self, task: KernelTask, cpu: Option<CpuId>) {
        self.raw.lab_per_cpu(task.0 as c_int, cpu.map_or(-1, |cpu| self.at(cpu)));
    }

    /// The kernel binds a sleeping thread of its own to a CPU, as with `kthread_bind()` and `kthread_set_per_cpu()`.
    pub fn bind(&mut self, task: KernelTask, cpu: CpuId) {
        self.raw.lab_bind(task.0 as c_int, self.at(cpu));
    }

    /// The task is on its way out: `PF_EXITING`.
    pub fn exiting(&mut self, task: KernelTask) {
        self.raw.lab_exiting(task.0 as c_int);
    }

    /// Sets the CPU that a task used before its current one.
    pub fn set_recent_used_cpu(&mut self, task: KernelTask, cpu: CpuId) {
        self.raw.lab_recent_cpu(task.0 as c_int, self.at(cpu));
    }

    /// The choice of a CPU for a woken task sees an idle CPU with a queued task as idle, or no longer.
    pub fn hide_queued(&mut self, cpu: CpuId, hidden: bool) {
        self.raw.lab_hide_queued(self.at(cpu), hidden.into());
    }

    /// Whether the root domain of a CPU is marked as one in which some CPU has two tasks.
    pub fn overload(&self, cpu: CpuId) -> bool {
        self.raw.lab_overload(self.at(cpu)) != 0
    }

    /// Sets or clears that mark.
    pub fn set_overload(&mut self, cpu: CpuId, on: bool) {
        self.raw.lab_set_overload(self.at(cpu), on.into());
    }

    /// `wake_up_new_task()`, placed on `to` if given; returns the CPU of the task.
    pub fn wake_new_at(&mut self, cpu: CpuId, task: KernelTask, to: Option<CpuId>) -> CpuId {
        let to = to.map_or(-1, |to| self.at(to));
        self.cpu(self.raw.lab_wake_new_at(self.at(cpu), task.0 as c_int, to))
    }

    /// Changes the CPUs that a task may use. Returns whether the stopper must move it; the stopper is then awake, and
    /// the call continues after the stopper.
    ///
    /// # Errors
    /// The kernel's error number.
    pub fn affinity_of(&mut self, cpu: CpuId, task: KernelTask, mask: &CpuMask) -> Result<bool, i32> {
        let done = self.raw.affinity_of(self.at(cpu), task.0 as c_int, &words_of(mask));
        if done < 0 { Err(-done) } else { Ok(done != 0) }
    }

    /// The current task is about to execute another program; returns whether the stopper must move it.
    pub fn exec_of(&mut self, cpu: CpuId) -> bool {
        self.raw.lab_exec_of(self.at(cpu)) != 0
    }

    /// The running stopper does its work, but does not sleep yet. Returns whether it is running.
    pub fn stopper_works(&mut self, cpu: CpuId) -> bool {
        self.raw.lab_stopper_works(self.at(cpu)) != 0
    }

    /// Sets how long the work of the fair class takes by the clock with which it measures itself.
    pub fn set_prices(&mut self, prices: &Prices) {
        self.raw.lab_set_prices(prices);
    }

    /// The balance softirq.
    pub fn balance(&mut self, cpu: CpuId) {
        self.raw.lab_balance(self.at(cpu));
    }

    /// The current task gives up its CPU; it does not call `schedule()` yet.
    pub fn yields(&mut self, cpu: CpuId) {
        self.raw.lab_yields(self.at(cpu));
    }

    /// The speed of a CPU, out of 1024.
    pub fn set_freq_scale(&mut self, cpu: CpuId, scale: u64) {
        self.raw.lab_freq_scale(self.at(cpu), scale);
    }

    /// How long an idle CPU takes to leave its idle state, ns; `None` if it is awake.
    pub fn set_idle_exit_latency(&mut self, cpu: CpuId, ns: Option<u64>) {
        self.raw.lab_idle_state(self.at(cpu), ns.map_or(-1, |ns| ns as i64));
    }

    /// Sets the history of a CPU: when it went idle, ns, when it balances next, jiffies, and how its cache is searched:
    /// how many CPUs of the cache, and of the domain with all capacities, and whether there may be idle cores.
    pub fn set_past(
        &mut self,
        cpu: CpuId,
        idle_stamp: u64,
        next_balance: u64,
        scans: [u64; 2],
        idle_cores: bool,
    ) {
        let [llc, searched] = scans;
        self.raw.lab_past_cpu(self.at(cpu), idle_stamp, next_balance, llc, searched, idle_cores.into());
    }

    /// The same for a domain, counted from the lowest. Returns whether the domain exists.
    pub fn set_past_of_domain(&mut self, cpu: CpuId, level: usize, past: &OfDomain) -> bool {
        let OfDomain { last_balance, balance_interval, max_newidle_lb_cost, decayed } = *past;
        let level = level as c_int;
        self.raw.lab_past_domain(
            self.at(cpu),
            level,
            last_balance,
            balance_interval,
            max_newidle_lb_cost,
            decayed,
        ) != 0
    }

    /// Makes a group SCHED_IDLE, or not. Returns whether the kernel supports that.
    pub fn set_idle_group(&mut self, group: GroupId, idle: bool) -> bool {
        self.raw.lab_group_idle(group.0 as c_int, idle.into()) == 0
    }

    /// The work before a task returns to user mode; returns whether the task must be preempted.
    pub fn exit_to_user(&mut self, cpu: CpuId) -> bool {
        self.raw.lab_exit_to_user(self.at(cpu)) != 0
    }
}
