//! A little machine for tests: tasks run in user mode, requests to reschedule are
//! honoured at once, ticks and timers come when they are due, every step is checked.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::drawing::machine;
use crate::{
    Curr, Deactivate, Effect, EnqueueFlags, Kernel, MigrationCause, NewTask, Sched, Switched, TaskState,
    TgId, Took, wf,
};

/// A small generator, so that a failure repeats itself.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Tick(CpuId),
    Period(TgId),
    Slack(TgId),
    RtPeriod,
    Dl(TaskId),
    DlInactive(TaskId),
}

pub(crate) struct Lab {
    pub(crate) sched: Sched,
    pub(crate) now: u64,
    /// Every switch since the start.
    pub(crate) switches: Vec<(u64, CpuId, Switched)>,
    names: Vec<String>,
    /// By CPU, its stopper once a pass has woken it, and the CPU that a task is pushed to.
    stoppers: BTreeMap<CpuId, (TaskId, CpuId)>,
    timers: BTreeMap<(u64, Timer), ()>,
    ticking: bool,
    logged: u64,
}

pub(crate) const MS: u64 = 1_000_000;

impl Lab {
    pub(crate) fn new(kernel: &str, shape: &str) -> Lab {
        let sched = Sched::new(&machine(shape), &Kernel::parse(kernel).unwrap(), Took::default(), 1);
        let now = 1_000 * MS;
        let mut lab = Lab {
            sched,
            now,
            switches: Vec::new(),
            names: Vec::new(),
            stoppers: BTreeMap::new(),
            timers: BTreeMap::new(),
            ticking: true,
            logged: now,
        };
        for cpu in (0..lab.sched.rqs.len()).map(CpuId::from) {
            lab.timers.insert((now + lab.sched.tick_ns(), Timer::Tick(cpu)), ());
        }
        lab
    }

    /// No ticks: what happens between them.
    pub(crate) fn without_ticks(mut self) -> Lab {
        self.ticking = false;
        self
    }

    pub(crate) fn time(&self) -> Time {
        Time(self.now)
    }

    /// A description of a task to be made.
    pub(crate) fn spec(&self) -> NewTask {
        NewTask::plain(self.sched.rqs.len())
    }

    /// Creates a task and queues it on a CPU.
    pub(crate) fn fork(&mut self, name: &str, cpu: u16, spec: NewTask) -> TaskId {
        let now = self.time();
        let parent = self.sched.rqs[CpuId(cpu)].curr.task();
        let task = self.sched.new_task(&spec, parent, now);
        self.names.push(name.to_owned());
        self.sched.set_cpu(task, CpuId(cpu));
        self.sched.task_mut(task).state = TaskState::Running;
        self.sched.update_rq_clock(CpuId(cpu), now);
        self.sched.activate(task, CpuId(cpu), EnqueueFlags { initial: true, ..EnqueueFlags::default() }, now);
        self.sched.wakeup_preempt(CpuId(cpu), task, wf::FORK);
        self.sched.task_woken(CpuId(cpu), task, now);
        self.settle();
        task
    }

    /// A plain task.
    pub(crate) fn hog(&mut self, name: &str, cpu: u16) -> TaskId {
        let spec = self.spec();
        self.fork(name, cpu, spec)
    }

    pub(crate) fn nice_hog(&mut self, name: &str, cpu: u16, nice: i8) -> TaskId {
        let spec = NewTask { nice, ..self.spec() };
        self.fork(name, cpu, spec)
    }

    /// The running task sleeps.
    pub(crate) fn sleep(&mut self, task: TaskId) {
        let cpu = self.sched.task(task).cpu;
        assert_eq!(self.running(cpu.0), self.names[task.index()], "only the running task can sleep");
        self.schedule(cpu, Deactivate::Sleep(TaskState::Interruptible));
        self.settle();
    }

    /// Wakes a task where it slept.
    pub(crate) fn wake(&mut self, task: TaskId) {
        self.wake_on(task, self.sched.task(task).cpu);
    }

    /// Wakes a task on a CPU, if it may use that and has left its queue.
    pub(crate) fn wake_on(&mut self, task: TaskId, to: CpuId) {
        let from = self.sched.task(task).cpu;
        let delayed = self.sched.task(task).se.sched_delayed;
        let mut migrated = false;
        if !delayed && from != to && self.sched.task(task).allowed.contains(to) {
            migrated = true;
            self.sched.task_mut(task).state = TaskState::Waking;
            self.sched.set_task_cpu(task, to, MigrationCause::Wakeup, self.time());
        }
        let cpu = self.sched.task(task).cpu;
        let now = self.time();
        self.sched.task_mut(task).state = TaskState::Running;
        let flags = EnqueueFlags { wakeup: true, delayed, migrated, ..EnqueueFlags::default() };
        self.sched.activate(task, cpu, flags, now);
        self.sched.wakeup_preempt(cpu, task, wf::TTWU);
        self.sched.task_woken(cpu, task, now);
        self.settle();
    }

    fn schedule(&mut self, cpu: CpuId, how: Deactivate) {
        let switched = self.sched.schedule(cpu, how, self.time());
        if let (Curr::Task(prev), true) = (switched.prev, switched.prev != switched.next) {
            self.sched.finish_task_switch(prev);
        }
        self.sched.balance_callbacks(cpu, self.time());
        self.switches.push((self.now, cpu, switched));
    }

    /// Lets every CPU return to user mode: does the task's pending work on the way, and serves requests to reschedule.
    pub(crate) fn settle(&mut self) {
        for round in 0.. {
            assert!(round < 1_000, "somebody always asks for another switch");
            self.drain();
            for cpu in (0..self.sched.rqs.len()).map(CpuId::from) {
                if let Curr::Task(task) = self.sched.rqs[cpu].curr {
                    self.sched.exit_to_user(task, self.time());
                }
            }
            let asked = |(_, rq): &(CpuId, &crate::Rq)| rq.need_resched.any();
            let Some((cpu, _)) = self.sched.rqs.iter().find(asked) else { break };
            self.schedule(cpu, Deactivate::Preempted);
            if let Some(&(stopper, to)) = self.stoppers.get(&cpu)
                && self.sched.rqs[cpu].curr == Curr::Task(stopper)
            {
                self.sched.active_balance(cpu, to, self.time());
                self.schedule(cpu, Deactivate::Sleep(TaskState::Interruptible));
            }
        }
        self.sched.check();
    }

    /// A pass has woken the stopper of a CPU.
    fn wake_stopper(&mut self, cpu: CpuId, to: CpuId) {
        let stopper = match self.stoppers.get(&cpu) {
            Some(&(stopper, _)) => stopper,
            None => {
                let spec = NewTask::stopper(self.sched.rqs.len(), cpu);
                let stopper = self.sched.new_task(&spec, None, self.time());
                self.names.push("stopper".to_owned());
                self.sched.set_cpu(stopper, cpu);
                stopper
            }
        };
        self.stoppers.insert(cpu, (stopper, to));
        self.sched.task_mut(stopper).state = TaskState::Running;
        self.sched.activate(stopper, cpu, EnqueueFlags::default(), self.time());
        self.sched.wakeup_preempt(cpu, stopper, wf::TTWU);
    }

    fn drain(&mut self) {
        while let Some(effect) = self.sched.effects.pop() {
            let (at, timer) = match effect {
                Effect::RtPush { cpu } => {
                    self.sched.rto_push_irq_work(cpu, self.time());
                    continue;
                }
                Effect::ActiveBalance { cpu, to, .. } => {
                    self.wake_stopper(cpu, to);
                    continue;
                }
                Effect::Unthrottle { cpu } => {
                    self.sched.cfsb_csd_unthrottle(cpu, self.time());
                    continue;
                }
                Effect::StartPeriodTimer { tg, at } => (at, Timer::Period(tg)),
                Effect::StartSlackTimer { tg, at } => (at, Timer::Slack(tg)),
                Effect::StartRtPeriodTimer { at } => (at, Timer::RtPeriod),
                Effect::StartDlTimer { task, after } => (self.time().0 + after, Timer::Dl(task)),
                Effect::StartDlInactiveTimer { task, after } => {
                    (self.time().0 + after, Timer::DlInactive(task))
                }
                _ => continue,
            };
            self.timers.insert((at, timer), ());
        }
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, ns: u64) {
        let end = self.now + ns;
        loop {
            let timer = self.timers.keys().next().copied();
            let at = timer.map_or(u64::MAX, |(at, _)| at);
            let hrticks = self.sched.rqs.iter().filter_map(|(cpu, rq)| Some((rq.hrtick?, cpu)));
            let hrtick = hrticks.min();
            let next = hrtick.map_or(at, |(hrtick, _)| at.min(hrtick));
            if next > end {
                break;
            }
            self.now = next;
            match hrtick {
                Some((hrtick, cpu)) if hrtick <= at => self.sched.hrtick(cpu, Time(next)),
                _ => {
                    let (at, timer) = timer.unwrap();
                    self.timers.remove(&(at, timer));
                    self.expire(timer);
                }
            }
            self.settle();
        }
        self.now = end;
    }

    fn expire(&mut self, timer: Timer) {
        let now = self.time();
        let again = match timer {
            Timer::Tick(cpu) => {
                if self.ticking {
                    self.sched.tick(cpu, now);
                }
                Some(Time(self.now + self.sched.tick_ns()))
            }
            Timer::Period(tg) => self.sched.period_timer(tg, CpuId(0), now),
            Timer::Slack(tg) => {
                self.sched.slack_timer(tg, CpuId(0), now);
                None
            }
            Timer::RtPeriod => self.sched.rt_period_timer(now),
            Timer::DlInactive(task) => {
                self.sched.dl_inactive_timer(task, now);
                None
            }
            Timer::Dl(task) => {
                self.sched.dl_timer(self.sched.task(task).cpu, task, now);
                None
            }
        };
        if let Some(at) = again {
            self.timers.insert((at.0, timer), ());
        }
    }

    /// The switches since the last call, each with its time since then.
    pub(crate) fn log(&mut self) -> String {
        let since = self.logged;
        self.logged = self.now;
        let mut text = String::new();
        for (at, cpu, switched) in core::mem::take(&mut self.switches) {
            let Switched { prev, next, reason, .. } = switched;
            if prev == next {
                continue;
            }
            let name = |curr: Curr| curr.task().map_or("idle", |task| self.names[task.index()].as_str());
            let us = (at - since) / 1000;
            text += &alloc::format!(
                "\n    {}.{:03} cpu {cpu} {} {}",
                us / 1000,
                us % 1000,
                name(next),
                reason.name()
            );
        }
        text
    }

    /// The task that runs on a CPU.
    pub(crate) fn running(&self, cpu: u16) -> &str {
        match self.sched.rqs[CpuId(cpu)].curr {
            Curr::Idle => "idle",
            Curr::Task(task) => &self.names[task.index()],
        }
    }

    /// Time a task has run, ns, up to now.
    pub(crate) fn ran(&mut self, task: TaskId) -> u64 {
        let cpu = self.sched.task(task).cpu;
        self.sched.update_rq_clock(cpu, Time(self.now));
        match self.sched.class_of(task) {
            crate::Class::Fair => {
                let cfs = self.sched.cfs_rq_of(crate::SeId(task.0));
                self.sched.update_curr(cfs);
            }
            _ => {
                self.sched.update_curr_common(cpu);
            }
        }
        self.sched.task(task).se.sum_exec_runtime
    }

    /// Part of the time from now on that each task gets, of a thousand.
    pub(crate) fn shares(&mut self, tasks: &[TaskId], ns: u64) -> Vec<u64> {
        let before: Vec<u64> = tasks.iter().map(|&task| self.ran(task)).collect();
        self.run(ns);
        let parts = tasks.iter().zip(before).map(|(&task, before)| self.ran(task) - before);
        parts.map(|part| part * 1000 / ns).collect()
    }
}

/// All presets.
pub(crate) const ALL: [&str; 9] = crate::PRESETS;
