//! A scheduler that is kept in step with a recording.
//!
//! What the trace tells is applied to a [`Sched`]: who joins and leaves a queue, who runs,
//! who moves. From that the shadow carries what no event shows: averages, virtual times,
//! idle stamps, recently used CPUs, wakee flips. Ticks are not in a trace; they are made
//! up where a busy CPU must have had them.

use std::collections::BTreeMap;
use std::sync::Arc;

use schedlab_sched::{
    Curr, DequeueFlags, EnqueueFlags, Kernel, MigrationCause, NewTask, Policy, Prices, Sched, TaskState, TgId,
};
use schedlab_topology::{CpuId, CpuMask, PerCpu, Topology};
use schedlab_trace::Comm;
use schedlab_units::{Pid, TaskId, Time};

use crate::affinity::{AffinityHint, bound_kthread};

/// What is known of a task besides its state in the scheduler.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its number.
    pub pid: Pid,
    /// Its name, as last seen.
    pub comm: Comm,
    /// Born while the recording ran, so that its averages and flips are known.
    pub born: bool,
    /// Its mask is known by its name, by a hint or from a parent.
    pub bound: bool,
    /// Its recently used CPU is known.
    pub recent_known: bool,
    /// It was woken while it was leaving its CPU, which is to finish the wake-up.
    pub handed_over: bool,
    /// CPUs it was seen on.
    pub seen_on: CpuMask,
}

/// A scheduler and what the recording told of its tasks.
pub struct Shadow {
    /// The state.
    pub sched: Sched,
    /// Begin of the recording.
    pub start: Time,
    /// Changes each time an event changes the state.
    pub generation: u64,
    /// Whether it is known what a CPU runs.
    pub cpu_known: PerCpu<bool>,
    tasks: BTreeMap<Pid, TaskId>,
    known: Vec<Known>,
    hints: Vec<AffinityHint>,
    next_tick: Time,
    /// Clock of the averages of each CPU when the recording began.
    pelt_start: PerCpu<u64>,
}

impl Shadow {
    /// A machine of which nothing is known.
    pub fn new(topology: &Topology, kernel: &Kernel, hints: Vec<AffinityHint>) -> Shadow {
        Shadow {
            sched: Sched::new(topology, kernel, Prices::default(), 1),
            start: Time::ZERO,
            generation: 0,
            cpu_known: PerCpu::new(topology.nr_cpus(), |_| false),
            tasks: BTreeMap::new(),
            known: Vec::new(),
            hints,
            next_tick: Time::ZERO,
            pelt_start: PerCpu::new(topology.nr_cpus(), |_| 0),
        }
    }

    /// The recording begins: all CPUs idle until it says otherwise.
    pub fn begin(&mut self, now: Time) {
        self.start = now;
        let tick = self.sched.tick_ns();
        self.next_tick = Time(now.0.div_ceil(tick) * tick);
        for cpu in self.cpus() {
            self.sched.update_rq_clock(cpu, now);
            self.pelt_start[cpu] = self.sched.rq_clock_pelt(cpu);
            // Idle for long, since who knows when.
            self.sched.rqs[cpu].idle_stamp = 1;
            self.sched.update_idle_core(cpu);
            self.sched.nohz_balance_enter_idle(cpu);
        }
    }

    /// All CPUs.
    pub fn cpus(&self) -> impl Iterator<Item = CpuId> + use<> {
        (0..self.sched.rqs.len()).map(CpuId::from)
    }

    /// Whether the machine has a CPU.
    pub fn has_cpu(&self, cpu: CpuId) -> bool {
        cpu.index() < self.sched.rqs.len()
    }

    /// What is known of a task.
    pub fn known(&self, task: TaskId) -> &Known {
        &self.known[task.index()]
    }

    /// What is known of a task, to change.
    pub fn known_mut(&mut self, task: TaskId) -> &mut Known {
        &mut self.known[task.index()]
    }

    /// The task of a number, if it was met.
    pub fn find(&self, pid: Pid) -> Option<TaskId> {
        self.tasks.get(&pid).copied()
    }

    /// Lets time pass: the ticks of busy CPUs.
    pub fn advance(&mut self, now: Time) {
        let tick = self.sched.tick_ns();
        // A recording may stand still for hours; averages are gone after a few seconds.
        let gap = 2_000_000_000;
        if now.0 > self.next_tick.0 + gap {
            self.next_tick = Time((now.0 - gap).div_ceil(tick) * tick);
        }
        while self.next_tick <= now {
            let at = self.next_tick;
            for cpu in self.cpus() {
                if self.sched.rqs[cpu].curr != Curr::Idle {
                    self.sched.tick(cpu, at);
                }
            }
            self.next_tick = Time(at.0 + tick);
        }
        self.sched.effects.clear();
    }

    /// The task of an event, made if it was not met before; then it slept on `cpu`.
    pub fn task(&mut self, pid: Pid, comm: &Comm, prio: Option<i32>, cpu: CpuId, now: Time) -> TaskId {
        let task = match self.find(pid) {
            Some(task) => task,
            None => self.meet(pid, comm, cpu, now),
        };
        self.rename(task, comm, now);
        if let Some(prio) = prio {
            self.set_prio(task, prio, now);
        }
        task
    }

    /// A task that lived before the recording began.
    fn meet(&mut self, pid: Pid, comm: &Comm, cpu: CpuId, now: Time) -> TaskId {
        let task = self.make(pid, comm, None, now);
        self.sched.set_cpu(task, cpu);
        let floor = self.sched.root_cfs(cpu).min_vruntime;
        let entry = self.sched.task_mut(task);
        // Asleep for long: nothing is left of its averages, and of any lag.
        entry.se.avg = Default::default();
        entry.se.vruntime = floor.wrapping_sub(1 << 40);
        entry.state = TaskState::Interruptible;
        task
    }

    fn make(&mut self, pid: Pid, comm: &Comm, parent: Option<TaskId>, now: Time) -> TaskId {
        let nr_cpus = self.sched.rqs.len();
        let (allowed, bound, kthread) = match self.allowed(comm) {
            Some((allowed, kthread)) => (Arc::new(allowed), true, kthread),
            None => match parent {
                Some(parent) => (self.sched.task(parent).allowed.clone(), self.known(parent).bound, false),
                None => (Arc::new(CpuMask::all(nr_cpus)), false, false),
            },
        };
        let spec = NewTask {
            policy: parent.map_or(Policy::Normal, |parent| self.sched.task(parent).policy),
            nice: parent.map_or(0, |parent| self.sched.task(parent).nice),
            allowed,
            tg: TgId::ROOT,
            kthread,
            process: 0,
            slice: None,
        };
        let task = self.sched.new_task(&spec, parent, now);
        self.tasks.insert(pid, task);
        self.known.push(Known {
            pid,
            comm: *comm,
            born: parent.is_some(),
            bound,
            recent_known: parent.is_some(),
            handed_over: false,
            seen_on: CpuMask::new(nr_cpus),
        });
        task
    }

    /// The mask that a name tells, and whether it is that of a kernel thread.
    fn allowed(&self, comm: &Comm) -> Option<(CpuMask, bool)> {
        let nr_cpus = self.sched.rqs.len();
        if let Some(cpu) = bound_kthread(comm)
            && cpu.index() < nr_cpus
        {
            return Some((CpuMask::of(nr_cpus, [cpu]), true));
        }
        self.hints.iter().find(|hint| hint.matches(comm)).map(|hint| (hint.allowed.clone(), false))
    }

    fn rename(&mut self, task: TaskId, comm: &Comm, now: Time) {
        if comm.is_empty() || self.known(task).comm == *comm {
            return;
        }
        self.known_mut(task).comm = *comm;
        if let Some((allowed, kthread)) = self.allowed(comm) {
            self.known_mut(task).bound = true;
            let entry = self.sched.task_mut(task);
            entry.kthread |= kthread;
            if *entry.allowed != allowed {
                // What the trace does not show is not moved here either.
                entry.nr_cpus_allowed = allowed.weight() as u32;
                entry.allowed = Arc::new(allowed);
            }
        }
        let _ = now;
    }

    /// A priority as traces print it: 120 is nice 0, below 100 is real time.
    fn set_prio(&mut self, task: TaskId, prio: i32, now: Time) {
        let comm = self.known(task).comm;
        let policy = match prio {
            0 if comm.as_bytes().starts_with(b"migration/") => Policy::Stop,
            ..0 => return,
            0..100 => Policy::Fifo((99 - prio).max(1) as u8),
            _ => Policy::Normal,
        };
        let entry = self.sched.task(task);
        if entry.policy != policy {
            if entry.on_rq {
                self.sched.set_policy(task, policy, now);
            } else {
                self.sched.task_mut(task).policy = policy;
            }
        }
        let nice = (prio - 120) as i8;
        if prio >= 100 && self.sched.task(task).nice != nice {
            self.sched.set_nice(task, nice, now);
        }
    }

    /// A task is born on the CPU of its parent; it waits to be woken.
    pub fn fork(&mut self, parent: TaskId, child: Pid, comm: &Comm, now: Time) -> TaskId {
        let task = self.make(child, comm, Some(parent), now);
        self.generation += 1;
        task
    }

    /// Makes sure that a CPU runs what an event says it ran.
    pub fn sync_curr(&mut self, cpu: CpuId, pid: Pid, comm: &Comm, now: Time) {
        let first = !std::mem::replace(&mut self.cpu_known[cpu], true);
        let curr = self.sched.rqs[cpu].curr;
        if pid == Pid::IDLE {
            if let Curr::Task(task) = curr {
                self.leave(task, TaskState::Interruptible, now);
                self.run(cpu, Curr::Idle, now);
            }
            return;
        }
        let task = self.task(pid, comm, None, cpu, now);
        if curr == Curr::Task(task) {
            return;
        }
        if let Curr::Task(other) = curr {
            self.leave(other, TaskState::Interruptible, now);
        }
        self.join(task, cpu, now);
        self.run(cpu, Curr::Task(task), now);
        if first {
            // It ran before the recording began, for all we know for long.
            let entry = self.sched.task_mut(task);
            entry.se.avg.load_avg = entry.se.load.weight >> 10;
        }
    }

    /// A task joins the queue of a CPU by no decision that was seen.
    pub fn join(&mut self, task: TaskId, cpu: CpuId, now: Time) {
        let on = self.sched.task(task).cpu;
        if self.sched.task(task).on_rq {
            if on == cpu && !self.sched.task(task).se.sched_delayed {
                return;
            }
            if self.sched.rqs[on].curr == Curr::Task(task) {
                self.leave(task, TaskState::Interruptible, now);
                self.run(on, Curr::Idle, now);
            } else if self.sched.task(task).se.sched_delayed {
                self.sched.complete_delayed_dequeue(task, now);
            } else {
                return self.migrate(task, cpu, now);
            }
        }
        for (_, rq) in self.sched.rqs.iter_mut() {
            rq.wake_list.retain(|&waiting| waiting != task);
            rq.ttwu_pending = !rq.wake_list.is_empty();
        }
        self.sched.task_mut(task).state = TaskState::Waking;
        self.sched.set_task_cpu(task, cpu, MigrationCause::Wakeup, now);
        let flags = EnqueueFlags { wakeup: true, migrated: on != cpu, ..EnqueueFlags::default() };
        self.sched.activate(task, cpu, flags, now);
        self.sched.task_mut(task).state = TaskState::Running;
        self.generation += 1;
    }

    /// A task leaves its queue.
    pub fn leave(&mut self, task: TaskId, state: TaskState, now: Time) {
        if !self.sched.task(task).on_rq || self.sched.task(task).se.sched_delayed {
            return;
        }
        self.sched.task_mut(task).state = state;
        // A wake-up that was handed to this CPU found the task gone, not just asleep.
        let special = state == TaskState::Dead || self.known(task).handed_over;
        self.sched.deactivate(task, DequeueFlags { sleep: true, special, ..DequeueFlags::default() }, now);
        self.generation += 1;
    }

    /// A task that was woken while it was leaving its CPU has left it: now the wake-up waits
    /// on that CPU's wake list.
    pub fn hand_over(&mut self, task: TaskId) {
        if std::mem::take(&mut self.known_mut(task).handed_over) {
            self.sched.task_mut(task).state = TaskState::Waking;
            let cpu = self.sched.task(task).cpu;
            let rq = &mut self.sched.rqs[cpu];
            rq.wake_list.push(task);
            rq.ttwu_pending = true;
        }
    }

    /// A queued task is moved.
    pub fn migrate(&mut self, task: TaskId, to: CpuId, now: Time) {
        let from = self.sched.task(task).cpu;
        if from == to {
            return;
        }
        if self.sched.rqs[from].curr == Curr::Task(task) {
            return;
        }
        if !self.sched.task(task).on_rq {
            self.sched.set_task_cpu(task, to, MigrationCause::Affinity, now);
        } else {
            self.sched.move_queued_task(task, to, MigrationCause::Periodic, now);
        }
        self.generation += 1;
    }

    /// A CPU switches to what the trace says.
    pub fn run(&mut self, cpu: CpuId, next: Curr, now: Time) {
        let prev = self.sched.rqs[cpu].curr;
        if next == Curr::Idle && self.sched.rqs[cpu].idle_stamp == 0 {
            self.sched.update_rq_clock(cpu, now);
            self.sched.rqs[cpu].idle_stamp = self.sched.rqs[cpu].clock;
        }
        self.sched.switch_to(cpu, next, now);
        if let Curr::Task(prev) = prev
            && Curr::Task(prev) != next
        {
            self.sched.finish_task_switch(prev);
        }
        match next {
            Curr::Idle => self.sched.nohz_balance_enter_idle(cpu),
            Curr::Task(task) => self.known_mut(task).seen_on.set(cpu),
        }
        self.generation += 1;
    }

    /// How far the load of a CPU may be from what the shadow has: what may still be left
    /// from before the recording, and what the times of events leave uncertain.
    pub fn load_error(&self, cpu: CpuId) -> u64 {
        let avg = &self.sched.root_cfs(cpu).avg;
        let aged = avg.last_update_time.saturating_sub(self.pelt_start[cpu]);
        let residue = 1024u64 >> (aged >> 25).min(63);
        residue + avg.load_avg / 32 + 8
    }
}
