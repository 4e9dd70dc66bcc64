//! A scheduler that is kept in step with a recording.
//!
//! What the trace tells is applied to a [`Sched`]: who joins and leaves a queue, who runs,
//! who moves. From that the shadow carries what no event shows: averages, virtual times,
//! idle stamps, recently used CPUs, wakee flips. Ticks are not in a trace; they are made
//! up where a busy CPU must have had them.

use std::collections::BTreeMap;
use std::sync::Arc;

use schedlab_sched::{
    Curr, DequeueFlags, EnqueueFlags, Kernel, MigrationCause, NeedResched, NewTask, Policy, Prices, Sched,
    SeId, TaskState,
};
use schedlab_topology::{CpuId, CpuMask, PerCpu, Topology};
use schedlab_trace::Comm;
use schedlab_units::{Duration, Pid, TaskId, Time};

use crate::affinity::{AffinityHint, bound_kthread};
use crate::averages::Averages;
use crate::flips::{Flips, Guesses};
use crate::grouping::{Grouping, InGroups};
use crate::motion::{Slack, Turns};
use crate::pids::Pids;
use crate::runtime::{self, Charged};
use crate::spare::Spare;
use crate::verdict::Verdict;

/// The parent of all kernel threads.
const KTHREADD: Pid = Pid(2);

/// Utilisation of a task that ran when the recording began: a guess, but not nothing.
const UTIL_BEFORE: u64 = 256;

/// Idle stamp of a CPU that went idle before the recording, who knows when.
const IDLE_BEFORE: u64 = 1;

/// What is known of a task besides its state in the scheduler.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its number.
    pub pid: Pid,
    /// Its name, as last seen.
    pub comm: Comm,
    /// Its mask is known by its name, by a hint or from a parent.
    pub bound: bool,
    /// It lived before the recording began.
    pub lived_before: bool,
    /// Its recently used CPU is known.
    pub recent_known: bool,
    /// Whom it wakes, where its ancestor's flips are guessed; shared with its parent until it
    /// wakes somebody.
    pub flips: Option<Arc<Flips>>,
    /// Born while the recording ran, and not switched out since.
    pub first_run: bool,
    /// The priority it will have given itself when it first leaves a CPU.
    pub later_prio: Option<i32>,
    /// The priority it gives itself was seen ahead.
    pub nice_told: bool,
    /// How far its virtual time may be from the one here, ns.
    pub vruntime_error: u64,
    /// What it was owed when it last left a queue is known.
    pub lag_known: bool,
    /// When it began to run.
    pub began: Time,
    /// What the kernel said of its run time.
    pub charged: Charged,
    /// A kernel thread that was not woken since it was born, and so is not bound yet.
    pub newborn: bool,
    /// It was woken while it was leaving its CPU, which is to finish the wake-up.
    pub handed_over: bool,
    /// Its next wake-up comes without the sync flag, which is for interruptible sleepers and not
    /// given by hard interrupts.
    pub plainly_woken: bool,
    /// CPUs it was seen on.
    pub seen_on: CpuMask,
    /// Its groups.
    pub groups: InGroups,
}

impl Known {
    /// Who it is, for a verdict.
    pub fn who(&self) -> (Pid, Comm) {
        (self.pid, self.comm)
    }
}

/// A scheduler and what the recording told of its tasks.
pub struct Shadow {
    /// The state.
    pub sched: Sched,
    /// Begin of the recording.
    pub start: Time,
    /// Changes each time an event changes the state.
    pub generation: u64,
    /// In which groups tasks are is not known.
    pub groups_hidden: bool,
    /// In which groups tasks are.
    pub grouping: Grouping,
    /// How far the virtual times of groups' entities may be from those here, ns.
    pub group_errors: BTreeMap<SeId, u64>,
    /// The trace says what tasks are charged.
    pub runtime_told: bool,
    /// How far apart events of different CPUs can be and still overlap.
    pub slack: Slack,
    /// Which CPUs acted when.
    pub turns: Turns,
    /// Guesses of flips from before the recording.
    pub guesses: Guesses,
    /// Choices among several CPUs that followed as if all averages had been nothing when the
    /// recording began.
    pub nothing_before: u32,
    /// The move for which the stopper of a CPU was asked, judged then.
    pub asked: PerCpu<Option<Verdict>>,
    /// When a tick asked the task of a CPU to make way.
    pub tick_asked: PerCpu<Option<Time>>,
    /// Whether it is known what a CPU runs.
    pub cpu_known: PerCpu<bool>,
    /// Lists of what is possible, to be filled again.
    pub spare: Spare,
    tasks: Pids,
    known: Vec<Known>,
    hints: Vec<AffinityHint>,
    /// The flips that the first new task inherited, and the jiffy of its birth.
    pub first_born: Option<(Arc<Flips>, u64)>,
    /// Some task's flips are guessed.
    family: bool,
    /// Tasks that run for the first time and are about to change their priority.
    changing: Vec<TaskId>,
    next_tick: Time,
    /// How much earlier each CPU may have gone idle than the event says.
    pub idle_held: PerCpu<Duration>,
    /// Averages of each CPU when it went idle last.
    pub at_idle: PerCpu<Averages>,
    /// Clock of the averages of each CPU when the recording began.
    pelt_start: PerCpu<u64>,
}

impl Shadow {
    /// A machine of which nothing is known.
    pub fn new(topology: &Topology, kernel: &Kernel, hints: Vec<AffinityHint>) -> Shadow {
        let mut sched = Sched::new(topology, kernel, Prices::default(), 1);
        sched.balance_watches = true;
        Shadow {
            sched,
            start: Time::ZERO,
            generation: 0,
            groups_hidden: false,
            grouping: Grouping::default(),
            group_errors: BTreeMap::new(),
            runtime_told: false,
            slack: Slack::default(),
            turns: Turns::new(topology.nr_cpus()),
            first_born: None,
            guesses: Guesses::new(kernel.tunables.hz, 0),
            nothing_before: 0,
            asked: PerCpu::new(topology.nr_cpus(), |_| None),
            tick_asked: PerCpu::new(topology.nr_cpus(), |_| None),
            cpu_known: PerCpu::new(topology.nr_cpus(), |_| false),
            spare: Spare::default(),
            tasks: Pids::default(),
            known: Vec::new(),
            hints,
            family: false,
            changing: Vec::new(),
            next_tick: Time::ZERO,
            idle_held: PerCpu::new(topology.nr_cpus(), |_| Duration::ZERO),
            at_idle: PerCpu::new(topology.nr_cpus(), |_| Averages::default()),
            pelt_start: PerCpu::new(topology.nr_cpus(), |_| 0),
        }
    }

    /// The recording begins: all CPUs idle until it says otherwise.
    pub fn begin(&mut self, now: Time) {
        self.start = now;
        self.guesses = Guesses::new(self.sched.kernel.tunables.hz, self.sched.jiffies(now));
        let tick = self.sched.tick_ns();
        self.next_tick = Time(now.0.div_ceil(tick) * tick);
        for cpu in self.cpus() {
            self.sched.update_rq_clock(cpu, now);
            self.pelt_start[cpu] = self.sched.rq_clock_pelt(cpu);
            self.sched.rqs[cpu].idle_stamp = IDLE_BEFORE;
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
        self.tasks.get(pid)
    }

    /// Lets time pass: the ticks of busy CPUs.
    pub fn advance(&mut self, now: Time) {
        let tick = self.sched.tick_ns();
        // A recording may stand still for hours; averages are gone after a few seconds.
        let gap = 2_000_000_000;
        if now.0 > self.next_tick.0 + gap {
            self.next_tick = Time((now.0 - gap).div_ceil(tick) * tick);
        }
        self.change_priorities(now);
        while self.next_tick <= now {
            let at = self.next_tick;
            for cpu in self.cpus() {
                if self.sched.rqs[cpu].curr != Curr::Idle {
                    self.tick(cpu, at);
                }
            }
            self.next_tick = Time(at.0 + tick);
        }
        self.sched.effects.clear();
    }

    /// A tick of a busy CPU, and the balancing it leads to, which only leaves its marks.
    fn tick(&mut self, cpu: CpuId, at: Time) {
        runtime::doubt(self, cpu);
        let asked = self.sched.rqs[cpu].need_resched.any();
        let ticked = self.sched.tick(cpu, at);
        if !asked && self.sched.rqs[cpu].need_resched.any() {
            self.tick_asked[cpu] = Some(at);
        }
        if self.sched.rqs[cpu].need_resched.any()
            && self.sched.choose_next(cpu).next == self.sched.rqs[cpu].curr
        {
            // Sleepers that came first left their queue, and who runs went on: no event tells.
            self.sched.rqs[cpu].need_resched = NeedResched::default();
        }
        if ticked.raise_balance {
            self.sched.run_rebalance_domains(cpu, at);
        }
        if let Some(ilb) = ticked.nohz_kick
            && self.sched.nohz_kicked(ilb)
        {
            self.sched.run_rebalance_domains(ilb, at);
        }
    }

    /// The task of an event, made if it was not met before; then it slept on `cpu`.
    pub fn task(&mut self, pid: Pid, comm: &Comm, prio: Option<i32>, cpu: CpuId, now: Time) -> TaskId {
        let task = match self.find(pid) {
            Some(task) => task,
            None => self.meet(pid, comm, cpu, now),
        };
        self.rename(task, comm);
        if let Some(prio) = prio {
            self.set_prio(task, prio, now);
        }
        task
    }

    /// A task that lived before the recording began.
    fn meet(&mut self, pid: Pid, comm: &Comm, cpu: CpuId, now: Time) -> TaskId {
        let task = self.make(pid, comm, None, now);
        self.sched.set_cpu(task, cpu);
        let queue = self.sched.cfs_rq_of(SeId(task.0));
        let floor = self.sched.cfs(queue).min_vruntime;
        let entry = self.sched.task_mut(task);
        // Asleep for long: nothing is left of its averages, and of any lag.
        entry.se.avg = Default::default();
        entry.se.vruntime = floor.wrapping_sub(1 << 40);
        entry.state = TaskState::Interruptible;
        task
    }

    fn make(&mut self, pid: Pid, comm: &Comm, parent: Option<TaskId>, now: Time) -> TaskId {
        let nr_cpus = self.sched.rqs.len();
        // A kernel thread is bound after it was born.
        let kthreadd = parent.is_some_and(|parent| self.known(parent).pid == KTHREADD);
        let (allowed, bound, kthread) = match self.allowed(comm).filter(|_| !kthreadd) {
            Some((allowed, kthread)) => (Arc::new(allowed), true, kthread),
            None => match parent {
                Some(parent) => (self.sched.task(parent).allowed.clone(), self.known(parent).bound, false),
                None => (Arc::new(CpuMask::all(nr_cpus)), false, false),
            },
        };
        let groups = match parent {
            Some(parent) => self.grouping.of_child(pid, &self.known(parent).groups),
            None => self.grouping.of_old(pid, comm),
        };
        let tg = self.tg_of(&groups, now);
        let spec = NewTask {
            policy: parent.map_or(Policy::Normal, |parent| self.sched.task(parent).policy),
            nice: parent.map_or(0, |parent| self.sched.task(parent).nice),
            allowed,
            tg,
            kthread,
            process: 0,
            slice: None,
        };
        let task = self.sched.new_task(&spec, parent, now);
        self.tasks.insert(pid, task);
        self.known.push(Known {
            pid,
            comm: *comm,
            bound,
            lived_before: parent.is_none(),
            recent_known: parent.is_some(),
            flips: parent.and_then(|parent| self.known(parent).flips.clone()),
            newborn: kthreadd,
            first_run: parent.is_some(),
            later_prio: None,
            nice_told: false,
            vruntime_error: 0,
            lag_known: parent.is_some(),
            began: now,
            charged: Charged::default(),
            handed_over: false,
            plainly_woken: false,
            seen_on: CpuMask::new(nr_cpus),
            groups,
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

    fn rename(&mut self, task: TaskId, comm: &Comm) {
        if comm.is_empty() || self.known(task).comm == *comm {
            return;
        }
        self.known_mut(task).comm = *comm;
        if !self.known(task).newborn {
            self.bind(task, comm);
        }
    }

    /// A task's first wake-up after it was born: by now a kernel thread is bound.
    pub fn grown(&mut self, task: TaskId) {
        if std::mem::take(&mut self.known_mut(task).newborn) {
            let comm = self.known(task).comm;
            self.bind(task, &comm);
        }
    }

    /// The mask that a name tells.
    fn bind(&mut self, task: TaskId, comm: &Comm) {
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
            if self.runs(task) {
                runtime::pin(self, task);
            }
        }
    }

    /// Whether a task runs.
    pub fn runs(&self, task: TaskId) -> bool {
        self.sched.rqs[self.sched.task(task).cpu].curr == Curr::Task(task)
    }

    /// The task changes its priority now, if it was seen ahead that it will.
    pub fn reprioritise(&mut self, task: TaskId, now: Time) {
        if let Some(prio) = self.known_mut(task).later_prio.take() {
            let before = self.sched.task(task).se.load;
            self.set_prio(task, prio, now);
            self.changed_weight(task, before, now);
        }
    }

    /// Lets those change their priority of whom it was seen ahead.
    fn change_priorities(&mut self, now: Time) {
        let mut changing = std::mem::take(&mut self.changing);
        changing.retain(|&task| {
            match self.changes_priority(task) {
                Some(at) if at <= now => self.reprioritise(task, at),
                Some(_) => return true,
                None => {}
            }
            false
        });
        self.changing = changing;
    }

    /// A task is born on the CPU of its parent; it waits to be woken.
    pub fn fork(&mut self, parent: TaskId, child: Pid, comm: &Comm, now: Time) -> TaskId {
        // The first to fork is the ancestor of what is recorded; kthreadd never is.
        if !self.family && self.known(parent).pid != KTHREADD {
            self.family = true;
            let flips = Arc::new(self.guesses.ancestor());
            self.first_born = Some((flips.clone(), self.sched.jiffies(now)));
            self.known_mut(parent).flips = Some(flips);
        }
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
        if first && !self.sched.task(task).on_rq {
            // It ran when the recording began, for all we know for a while.
            let entry = self.sched.task_mut(task);
            entry.se.avg.load_avg = entry.se.load.weight >> 10;
            (entry.se.avg.util_avg, entry.se.avg.runnable_avg) = (UTIL_BEFORE, UTIL_BEFORE);
        }
        self.join(task, cpu, now);
        self.run(cpu, Curr::Task(task), now);
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
            } else if !self.sched.task(task).se.sched_delayed {
                return self.migrate(&[task], cpu, now);
            }
            // Also one that just left may still be queued.
            if self.sched.task(task).se.sched_delayed {
                self.sched.complete_delayed_dequeue(task, now);
            }
        }
        for (_, rq) in self.sched.rqs.iter_mut() {
            rq.wake_list.retain(|&waiting| waiting != task);
            rq.ttwu_pending = !rq.wake_list.is_empty();
        }
        self.sched.task_mut(task).state = TaskState::Waking;
        if on != cpu {
            self.moved(task, 0);
        }
        self.sched.set_task_cpu(task, cpu, MigrationCause::Wakeup, now);
        let flags = EnqueueFlags { wakeup: true, migrated: on != cpu, ..EnqueueFlags::default() };
        self.sched.activate(task, cpu, flags, now);
        self.sched.task_mut(task).state = TaskState::Running;
        self.queued(task);
        self.generation += 1;
    }

    /// Notes who wakes whom.
    pub fn record_wakee(&mut self, waker: TaskId, wakee: TaskId, now: Time) {
        let jiffies = self.sched.jiffies(now);
        if let Some(flips) = &mut self.known[waker.index()].flips {
            self.guesses.record(Arc::make_mut(flips), wakee, jiffies);
        }
    }

    /// Charges what runs in the queues of a task and those above.
    pub fn charge_levels(&mut self, task: TaskId) {
        let mut level = Some(SeId(task.0));
        while let Some(se) = level {
            self.sched.update_curr(self.sched.cfs_rq_of(se));
            level = self.sched.se(se).parent;
        }
    }

    /// A task leaves its queue.
    pub fn leave(&mut self, task: TaskId, state: TaskState, now: Time) {
        if !self.sched.task(task).on_rq || self.sched.task(task).se.sched_delayed {
            return;
        }
        let cpu = self.sched.task(task).cpu;
        self.sched.update_rq_clock(cpu, now);
        self.charge_levels(task);
        self.steady(task);
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

    /// Tasks are moved, by one pass if there are several: all leave their queue before the
    /// last to leave is the first to be queued again.
    pub fn migrate(&mut self, tasks: &[TaskId], to: CpuId, now: Time) {
        let mut queued = Vec::new();
        for &task in tasks {
            let from = self.sched.task(task).cpu;
            if from == to || self.runs(task) {
                continue;
            }
            self.generation += 1;
            if !self.sched.task(task).on_rq {
                self.sched.set_task_cpu(task, to, MigrationCause::Affinity, now);
                continue;
            }
            let left = self.average_error(self.sched.cfs_rq_of(SeId(task.0)));
            self.sched.deactivate(task, DequeueFlags { migrate: true, ..DequeueFlags::default() }, now);
            self.sched.set_task_cpu(task, to, MigrationCause::Periodic, now);
            self.moved(task, left);
            queued.push(task);
        }
        for task in queued.into_iter().rev() {
            self.sched.activate(task, to, EnqueueFlags { migrated: true, ..EnqueueFlags::default() }, now);
            self.sched.wakeup_preempt(to, task, 0, now);
        }
    }

    /// A CPU switches to what the trace says.
    pub fn run(&mut self, cpu: CpuId, next: Curr, now: Time) {
        let prev = self.sched.rqs[cpu].curr;
        let held = self.turns.held(cpu, now).min(self.slack.time());
        if next == Curr::Idle {
            self.sched.update_rq_clock(cpu, now);
            self.at_idle[cpu] = Averages::of(self.sched.root_cfs(cpu));
            self.idle_held[cpu] = held;
            if self.sched.rqs[cpu].nr_running == 0 && prev != Curr::Idle {
                self.sched.newidle_balance(cpu, now);
            }
            let rq = &mut self.sched.rqs[cpu];
            if rq.idle_stamp == 0 {
                rq.idle_stamp = rq.clock;
            }
        }
        if let Curr::Task(prev) = prev {
            if Curr::Task(prev) != next {
                self.reprioritise(prev, now);
            }
            self.steady(prev);
        }
        self.sched.switch_to(cpu, next, now);
        if let Curr::Task(prev) = prev
            && Curr::Task(prev) != next
        {
            runtime::unpin(self, prev);
            let known = self.known_mut(prev);
            known.first_run = false;
            self.ran(prev, held, now);
            self.sched.finish_task_switch(prev);
        }
        match next {
            Curr::Idle => self.sched.nohz_balance_enter_idle(cpu),
            Curr::Task(task) => {
                let known = self.known_mut(task);
                known.seen_on.set(cpu);
                known.began = now;
                if Curr::Task(task) != prev {
                    self.begins(task, held);
                }
                runtime::pin(self, task);
                if self.changes_priority(task).is_some() {
                    self.changing.push(task);
                }
            }
        }
        self.generation += 1;
    }

    /// How far the load of a CPU may be from what the shadow has: what may still be left
    /// from before the recording, what the times of events leave uncertain, and the load of
    /// those who left for good, which is taken out by a tick that no event shows.
    pub fn load_error(&self, cpu: CpuId) -> u64 {
        let root = self.sched.root_cfs(cpu);
        self.residue(cpu) + root.avg.load_avg / 16 + 16 + root.removed.load_avg
    }

    /// Average of one task that may still be in those of a CPU from before the recording:
    /// half of it goes with every 32 ms that they have aged since. Choices that follow without
    /// it speak for less.
    pub fn residue(&self, cpu: CpuId) -> u64 {
        let aged = self.sched.root_cfs(cpu).avg.last_update_time.saturating_sub(self.pelt_start[cpu]);
        (1024 >> (aged >> 25).min(63)) >> self.nothing_before
    }

    /// How far the load of a sleeper may be from what the shadow has: what it had when it fell
    /// asleep before the recording, which ages only when it is queued again.
    pub fn sleeper_load_error(&self, task: TaskId, now: Time) -> u64 {
        let entity = &self.sched.task(task).se;
        if !self.known(task).lived_before {
            return 0;
        }
        let queued_since = entity.avg.last_update_time != 0;
        let aged = if queued_since { now.since(self.start).0 } else { 0 };
        (entity.load.weight >> 10) >> (aged >> 25).min(63)
    }

    /// When the averages of a CPU were aged last.
    pub fn updated_at(&self, cpu: CpuId) -> u64 {
        let last = self.sched.root_cfs(cpu).avg.last_update_time;
        self.start.0 + last.saturating_sub(self.pelt_start[cpu])
    }

    /// Idle stamp of a CPU that went idle just before the recording.
    pub fn newest_before(&self) -> u64 {
        self.start.0.max(IDLE_BEFORE + 1)
    }

    /// Whether a CPU was idle before the recording and is since.
    pub fn idle_before(&self, cpu: CpuId) -> bool {
        self.sched.rqs[cpu].idle_stamp == IDLE_BEFORE
    }
}
