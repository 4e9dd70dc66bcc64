//! Both sides, and the effect of an operation on them.

use std::fmt;
use std::sync::Arc;

use schedlab_kernel_tree::{GroupId, Heart, Kernel, KernelTask, WakeFlag};
use schedlab_sched::{
    AvgReference, Curr, Deactivate, FairPolicy, Feature, MigrationCause, NewTask, Policy, Sched, TaskState,
    TgId, Took, WakePath, Wakeup,
};
use schedlab_topology::{CpuId, CpuMask, Topology};
use schedlab_units::{TaskId, Time};
use serde::Serialize;

use crate::hotplug::begin_as;
use crate::settle::StopperWork;
use crate::timers::Timers;
use crate::{Difference, Operation};

/// The length of a tick, ns: libraries are built for 250 Hz.
pub(crate) const TICK: u64 = 4_000_000;

/// When runs begin, ns.
const START: u64 = 1_000_000_000;

/// Counts of what was done and compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Operations that were carried out.
    pub steps: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// Forks.
    pub forks: u64,
    /// Choices of a next task.
    pub picks: u64,
    /// Balance passes, periodic and on behalf of idle CPUs.
    pub passes: u64,
    /// Comparisons of the whole state.
    pub states: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        self.steps += other.steps;
        self.wakeups += other.wakeups;
        self.forks += other.forks;
        self.picks += other.picks;
        self.passes += other.passes;
        self.states += other.states;
    }
}

/// A kernel and our rules on the same machine.
pub struct Pair {
    pub(crate) kernel: Kernel,
    pub(crate) sched: Sched,
    pub(crate) now: u64,
    pub(crate) next_tick: u64,
    pub(crate) nohz: bool,
    pub(crate) tick_stopped: Vec<bool>,
    /// Shows the watcher that calls return.
    pub(crate) heart: Heart,
    /// When the timers of our rules are due, ns.
    pub(crate) timers: Timers,
    /// In the order of creation: ours and the kernel's.
    pub(crate) tasks: Vec<(TaskId, KernelTask)>,
    pub(crate) ended: Vec<bool>,
    pub(crate) groups: Vec<(TgId, GroupId)>,
    /// Number of processes so far. They matter to cache-aware balancing alone.
    pub(crate) processes: u32,
    /// What the stopper of each CPU must do.
    pub(crate) stopper_work: Vec<Vec<StopperWork>>,
    pub(crate) balance_due: Vec<bool>,
    pub(crate) kicked: Vec<bool>,
    /// CPUs that were interrupted to let queues run again, and to push RT tasks.
    pub(crate) unthrottles: Vec<bool>,
    pub(crate) pushes: Vec<bool>,
    /// CPUs that have something left to run before they go offline.
    pub(crate) leaving: Vec<bool>,
    pub(crate) offline: Vec<bool>,
    pub(crate) zero_vruntime: bool,
    pub(crate) counts: Counts,
    /// The first differences, and the last action before them.
    pub(crate) differ: Vec<Difference>,
    pub(crate) at_work: String,
    /// The actions of settling, if a story is wanted.
    pub(crate) told: Option<Vec<String>>,
}

impl Pair {
    /// Takes a kernel that has just booted. State that only its boot determines is copied: its clocks, which queues are to be
    /// aged as stoppers were made there, and two words of each LLC that start with whatever its memory contained.
    ///
    /// Our rules must be `prepared` with the settings of the library.
    pub fn new(
        kernel: Kernel,
        topology: &Topology,
        rules: &schedlab_sched::Kernel,
        seed: u64,
        nohz: bool,
    ) -> Pair {
        let mut sched = Sched::new(topology, rules, Took::default(), seed);
        let nr_cpus = topology.nr_cpus();
        let mut kernel = kernel;
        kernel.seed(seed);
        // Before the first group, so that their shape is the kernel's.
        sched.keep_slice_trees();
        for cpu in (0..nr_cpus).map(CpuId::from) {
            let booted = kernel.cpu_state(cpu);
            let rq = &mut sched.rqs[cpu];
            rq.clock = booted.clock;
            rq.clock_task = booted.clock_task;
            rq.clock_pelt = booted.clock_pelt;
            sched.cfs_rqs[cpu.index()].last_h_load_update.set(booted.last_h_load_update);
            if booted.on_list != 0 {
                sched.list_add_leaf_cfs_rq(sched.root_cfs_id(cpu));
            }
            kernel.seed_cpu(cpu, sched.rqs[cpu].random);
            sched.begin_epoch(cpu, booted.cpu_epoch, booted.cpu_epoch_next, booted.cpu_runtime);
            begin_as(&mut sched, cpu, &booted);
            let locals: Vec<u32> =
                sched.domains.walk(cpu).map(|(_, sd)| sched.domains.sg(sd.groups.local()).sgc).collect();
            for (level, sgc) in locals.into_iter().enumerate() {
                // Another rule can build other levels; the first comparison finds them.
                if let Some((theirs, _)) = kernel.domain(cpu, level) {
                    sched.domains.sgcs[sgc as usize].next_update = theirs.next_update;
                }
            }
            let spec = NewTask::stopper(nr_cpus, cpu);
            let stopper = sched.new_task(&spec, None, Time(1));
            sched.task_mut(stopper).state = TaskState::Interruptible;
        }
        let zero_vruntime = rules.rules.policy == FairPolicy::Eevdf
            && rules.rules.avg_reference == AvgReference::ZeroVruntime;
        Pair {
            kernel,
            sched,
            now: START,
            next_tick: START + TICK,
            nohz,
            tick_stopped: vec![false; nr_cpus],
            heart: Heart::default(),
            timers: Timers::default(),
            tasks: Vec::new(),
            ended: Vec::new(),
            groups: Vec::new(),
            processes: 0,
            stopper_work: vec![Vec::new(); nr_cpus],
            balance_due: vec![false; nr_cpus],
            kicked: vec![false; nr_cpus],
            unthrottles: vec![false; nr_cpus],
            pushes: vec![false; nr_cpus],
            leaving: vec![false; nr_cpus],
            offline: vec![false; nr_cpus],
            zero_vruntime,
            counts: Counts::default(),
            differ: Vec::new(),
            at_work: "boot".into(),
            told: None,
        }
    }

    /// Number of CPUs.
    pub fn nr_cpus(&self) -> usize {
        self.tick_stopped.len()
    }

    /// Whether a task is a kernel thread.
    pub(crate) fn is_kthread(&self, task: usize) -> bool {
        self.sched.task(self.tasks[task].0).kthread
    }

    pub(crate) fn time(&self) -> Time {
        Time(self.now)
    }

    /// Whether both sides have been equal so far.
    pub fn equal(&self) -> bool {
        self.differ.is_empty()
    }

    /// Compares the states, if they were equal so far.
    pub(crate) fn compare(&mut self, at_work: fmt::Arguments<'_>) {
        if !self.equal() {
            return;
        }
        self.counts.states += 1;
        self.differ = self.differences();
        if !self.equal() {
            self.at_work = at_work.to_string();
        }
    }

    pub(crate) fn differs(
        &mut self,
        at_work: &str,
        field: &'static str,
        of: String,
        kernel: String,
        ours: String,
    ) {
        if self.equal() {
            self.differ.push(Difference { field, of, kernel, ours });
            self.at_work = at_work.to_string();
        }
    }

    /// Whether a task exists and has not exited.
    fn lives(&self, task: usize) -> bool {
        task < self.tasks.len() && !self.ended[task]
    }

    /// The task that runs on a CPU, if it is not the stopper. Our stoppers are the first tasks.
    fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.sched.rqs[cpu].curr.task().filter(|task| task.index() >= self.nr_cpus())
    }

    /// Whether a task runs.
    pub(crate) fn runs(&self, task: usize) -> bool {
        let id = self.tasks[task].0;
        self.sched.rqs[self.sched.task(id).cpu].curr == Curr::Task(id)
    }

    /// Applies an operation to both sides, lets them settle, and compares. Returns false if the operation is not
    /// possible now.
    pub fn apply(&mut self, operation: &Operation) -> bool {
        let now = self.time();
        self.kernel.now(self.now);
        let done = match operation {
            _ if operation.by().is_some_and(|cpu| self.offline[cpu.index()]) => false,
            Operation::Pass(ns) => {
                self.pass(*ns);
                true
            }
            Operation::Fork { cpu, kthread, process } => self.fork(*cpu, *kthread, *process),
            Operation::ExitToUser { cpu } => self.exit_to_user(*cpu),
            Operation::Wake { cpu, task, flag, in_irq } => {
                self.lives(*task) && self.wake(*cpu, *task, *flag, *in_irq)
            }
            Operation::Exiting { cpu } => self.begin_to_exit(*cpu),
            Operation::Sleep { cpu } | Operation::Yield { cpu } | Operation::Exit { cpu } => {
                self.leave(*cpu, operation)
            }
            Operation::Exec { cpu } => self.exec(*cpu),
            Operation::ReschedLazy { cpu } => self.resched_lazy(*cpu),
            Operation::Nice { cpu, task, nice } if self.lives(*task) => {
                let (ours, theirs) = self.tasks[*task];
                self.kernel.set_nice(*cpu, theirs, *nice);
                self.sched.set_nice(ours, *nice, now);
                true
            }
            Operation::Policy { cpu, task, policy } if self.lives(*task) => {
                let (ours, theirs) = self.tasks[*task];
                let entry = self.sched.task(ours);
                let (number, prio, mut parameters) = policy_number(*policy, entry.nice);
                // sched_setscheduler(2) hands on the slice that the task has requested.
                if entry.se.custom_slice && matches!(policy, Policy::Normal | Policy::Batch) {
                    parameters[0] = entry.se.slice;
                }
                match self.kernel.set_policy(*cpu, theirs, number, prio, parameters) {
                    Ok(()) => self.sched.set_policy(*cpu, ours, *policy, now),
                    // Without bandwidth for a deadline task, the kernel refuses after it has read the clock.
                    Err(_) => self.sched.update_rq_clock(self.sched.task(ours).cpu, now),
                }
                true
            }
            Operation::Affinity { cpu, task, mask } => self.lives(*task) && self.affinity(*cpu, *task, mask),
            Operation::Bind { task, cpu } => self.lives(*task) && self.bind(*task, *cpu),
            Operation::Group { cpu, parent, shares } => {
                let above = parent.map(|parent| self.groups.get(parent).copied());
                match above {
                    Some(None) => false,
                    above => {
                        let above = above.flatten();
                        let theirs = self.kernel.new_group(above.map(|(_, theirs)| theirs), *shares);
                        let over = above.map_or(TgId::ROOT, |(ours, _)| ours);
                        let ours = self.sched.new_group(over, shares << 10, *cpu, now);
                        // From v6.4 on the periods of groups begin at random times.
                        let period_at = self.kernel.group_state(theirs, *cpu).period_at;
                        self.sched.tgs[ours.0 as usize].bandwidth.period_expires = period_at;
                        self.groups.push((ours, theirs));
                        true
                    }
                }
            }
            Operation::Shares { group, shares } if *group < self.groups.len() => {
                let (ours, theirs) = self.groups[*group];
                self.kernel.set_shares(theirs, *shares);
                self.sched.set_shares(ours, shares << 10, now);
                true
            }
            Operation::Quota { group, period, quota } if *group < self.groups.len() => {
                let (ours, theirs) = self.groups[*group];
                self.kernel.set_quota(theirs, *period, *quota).is_ok_and(|()| {
                    // The kernel has a file for each: the period changes first.
                    let before = self.sched.tg(ours).bandwidth.quota;
                    for quota in [before, quota.map(|us| us * 1000)] {
                        self.sched.set_bandwidth(ours, quota, period * 1000, 0, now);
                    }
                    true
                })
            }
            Operation::IdleGroup { group, idle } if *group < self.groups.len() => {
                let (ours, theirs) = self.groups[*group];
                self.kernel.set_idle_group(theirs, *idle) && {
                    self.sched.set_idle_group(ours, *idle, now);
                    true
                }
            }
            Operation::Slice { cpu, task, slice } if self.lives(*task) => {
                let (ours, theirs) = self.tasks[*task];
                let entry = self.sched.task(ours);
                let fair = matches!(entry.policy, Policy::Normal | Policy::Batch);
                let (number, nice, mut parameters) = policy_number(entry.policy, entry.nice);
                parameters[0] = *slice;
                // Kernels without slices have nothing that a call could change.
                let asks = fair && self.sched.kernel.has(Feature::CustomSlice);
                asks && self.kernel.set_policy(*cpu, theirs, number, nice, parameters).is_ok_and(|()| {
                    self.sched.set_slice(ours, (*slice > 0).then_some(*slice), now);
                    true
                })
            }
            Operation::Frequency { cpu, scale } => {
                self.kernel.set_freq_scale(*cpu, *scale);
                self.sched.set_freq_scale(*cpu, *scale);
                true
            }
            Operation::Offline { cpu } => self.go_offline(*cpu),
            Operation::Online { cpu } => self.come_online(*cpu),
            Operation::Steal { cpu, ns } => {
                self.kernel.steal(*cpu, *ns);
                self.sched.steal_by_hypervisor(*cpu, *ns);
                true
            }
            Operation::Move { cpu, task, group } if self.lives(*task) => {
                self.change_group(*cpu, *task, *group)
            }
            _ => false,
        };
        if done {
            self.counts.steps += 1;
            self.after(format_args!("{operation}"));
            self.settle();
        }
        done
    }

    /// After an action: handles the requests of our rules to a driver, and compares.
    pub(crate) fn after(&mut self, what: fmt::Arguments<'_>) {
        self.heart.beat(self.now);
        self.effects();
        self.compare(what);
    }

    fn fork(&mut self, cpu: CpuId, kthread: bool, process: bool) -> bool {
        let now = self.time();
        let nr_cpus = self.nr_cpus();
        let parent = self.current(cpu);
        if self.sched.rqs[cpu].curr.task().is_some() && parent.is_none() {
            return false; // the stopper forks nobody
        }
        // Children in these loads do not inherit policies above the fair one.
        if parent.is_some_and(|parent| !self.sched.task(parent).policy.is_fair()) {
            return false;
        }
        let theirs = self.kernel.fork(cpu, kthread);
        let of = parent.map(|parent| self.sched.task(parent)).filter(|parent| !process && !parent.kthread);
        let process = of.map_or(self.processes, |parent| parent.process);
        self.processes = self.processes.max(process + 1);
        self.kernel.join_process(theirs, process);
        let spec = match parent.map(|parent| self.sched.task(parent)) {
            Some(parent) => NewTask {
                policy: parent.policy,
                nice: parent.nice,
                allowed: parent.allowed.clone(),
                tg: parent.tg,
                kthread,
                slice: parent.se.custom_slice.then_some(parent.se.slice),
                process,
            },
            None => {
                let allowed = Arc::new(CpuMask::one(nr_cpus, cpu));
                NewTask { kthread, allowed, process, ..NewTask::plain(nr_cpus) }
            }
        };
        let ours = self.sched.new_task(&spec, parent, now);
        let unrestricted = parent.is_none_or(|parent| self.sched.task(parent).never_restricted);
        let task = self.sched.task_mut(ours);
        if parent.is_none() {
            // A child of the idle task: it begins on its CPU, and its mask was never narrowed.
            task.allowed = Arc::new(CpuMask::all(nr_cpus));
            task.nr_cpus_allowed = nr_cpus as u32;
        }
        task.never_restricted = unrestricted;
        task.bound_by_user = true;
        self.sched.set_task_max_allowed_capacity(ours);
        self.tasks.push((ours, theirs));
        self.ended.push(false);
        let decided = self.sched.decide_fork(ours, cpu, now, None);
        let to = self.kernel.wake_new(cpu, theirs);
        self.counts.forks += 1;
        if to != decided.cpu {
            let why = format!("CPU {} ({})", decided.cpu.0, decided.reason.name());
            let of = format!("t{}", self.tasks.len() - 1);
            self.differs(
                &format!("fork by CPU {}", cpu.0),
                "place of a new task",
                of,
                format!("CPU {}", to.0),
                why,
            );
        }
        self.sched.apply_fork(ours, to, now);
        self.sched.task_woken(cpu, ours, now);
        true
    }

    fn wake(&mut self, cpu: CpuId, task: usize, flag: WakeFlag, in_irq: bool) -> bool {
        let now = self.time();
        let (ours, theirs) = self.tasks[task];
        if self.sched.task(ours).state != TaskState::Interruptible {
            return false;
        }
        // A thread of a CPU that is offline is parked.
        let entry = self.sched.task(ours);
        if entry.kthread_is_per_cpu() && entry.allowed.iter().all(|cpu| self.offline[cpu.index()]) {
            return false;
        }
        let waker = self.sched.rqs[cpu].curr.task();
        self.sched.sync_wakee(ours);
        let (sync, current_cpu) = (flag == WakeFlag::Sync, flag == WakeFlag::CurrentCpu);
        let wakeup = Wakeup { task: ours, waker, this_cpu: cpu, sync, in_task: !in_irq, current_cpu };
        let decided = self.sched.decide_wakeup(&wakeup, now, None);
        let Some(to) = self.kernel.wake(cpu, theirs, flag, in_irq) else {
            let (awake, asleep) = ("awake".to_string(), "asleep".to_string());
            self.differs(&format!("CPU {} wakes t{task}", cpu.0), "state", format!("t{task}"), awake, asleep);
            return false;
        };
        self.counts.wakeups += 1;
        let mut taken = decided.clone();
        // An RT or deadline task may have been pushed on since; the states show where.
        if to != decided.cpu && self.sched.task(ours).policy.is_fair() {
            let why = format!("CPU {} ({})", decided.cpu.0, decided.reason().name());
            let at_work = format!("CPU {} wakes t{task}", cpu.0);
            self.differs(
                &at_work,
                "placement of a woken task",
                format!("t{task}"),
                format!("CPU {}", to.0),
                why,
            );
            taken.cpu = to;
        }
        self.sched.apply_wakeup(&wakeup, &taken, now);
        if taken.path == WakePath::Select && !taken.remote {
            self.sched.task_woken(cpu, ours, now);
        }
        true
    }

    /// The current task does the work that waits for its return to user mode.
    fn exit_to_user(&mut self, cpu: CpuId) -> bool {
        let Some(task) = self.current(cpu) else {
            return false;
        };
        if self.sched.task(task).kthread {
            return false;
        }
        self.kernel.exit_to_user(cpu);
        self.sched.exit_to_user(task, self.time());
        true
    }

    fn begin_to_exit(&mut self, cpu: CpuId) -> bool {
        let Some(task) = self.current(cpu) else {
            return false;
        };
        self.kernel.exiting(self.tasks[task.index() - self.nr_cpus()].1);
        self.sched.task_mut(task).exiting = true;
        true
    }

    /// The current task executes another program, and is moved for that.
    fn exec(&mut self, cpu: CpuId) -> bool {
        let nr_cpus = self.nr_cpus();
        let Some(task) = self.current(cpu) else {
            return false;
        };
        if !self.sched.task(task).policy.is_fair() {
            return false;
        }
        self.sched.sync_exec(task);
        let decided = self.sched.decide_exec(task, self.time(), None);
        let moves = self.kernel.exec_of(cpu);
        if moves != (decided.cpu != cpu) {
            let kernel = if moves { "another CPU".to_string() } else { format!("CPU {}", cpu.0) };
            let why = format!("CPU {} ({})", decided.cpu.0, decided.reason.name());
            let of = format!("t{}", task.index() - nr_cpus);
            self.differs(
                &format!("exec() on CPU {}", cpu.0),
                "placement of a task that calls exec()",
                of,
                kernel,
                why,
            );
        }
        if decided.cpu != cpu {
            let work = StopperWork::Move { task, to: decided.cpu, cause: MigrationCause::Exec };
            self.ask_stopper(cpu, cpu, work, true);
        }
        if !self.sched.task(task).kthread {
            self.kernel.join_process(self.tasks[task.index() - nr_cpus].1, self.processes);
            self.sched.sched_cache_exec(task, self.processes, self.time());
            self.processes += 1;
        }
        true
    }

    /// Binds a kernel thread that sleeps.
    fn bind(&mut self, task: usize, cpu: CpuId) -> bool {
        let (ours, theirs) = self.tasks[task];
        let entry = self.sched.task(ours);
        if !entry.kthread || entry.on_rq || entry.state != TaskState::Interruptible || !entry.policy.is_fair()
        {
            return false;
        }
        self.kernel.bind(theirs, cpu);
        self.sched.kthread_bind(ours, cpu, self.time());
        true
    }

    /// Changes the CPUs that a task may use. The stopper moves a task that runs.
    fn affinity(&mut self, by: CpuId, task: usize, mask: &CpuMask) -> bool {
        let (ours, theirs) = self.tasks[task];
        // A call that changes nothing, or is refused, is skipped: up to 6.12 the kernel reads a clock in it.
        let entry = self.sched.task(ours);
        let valid = |cpu: CpuId| {
            let rq = &self.sched.rqs[cpu];
            if entry.kthread { rq.online } else { rq.active }
        };
        let none = !mask.iter().any(valid);
        if none || !entry.bound_by_user || *entry.allowed == *mask {
            return false;
        }
        let Ok(moves) = self.kernel.affinity_of(by, theirs, mask) else {
            return false;
        };
        let runs = self.runs(task);
        let to = self.sched.set_cpus_allowed(by, ours, Arc::new(mask.clone()), self.time());
        let to = to.filter(|_| runs);
        if moves != to.is_some() {
            let (kernel, why) = (moves.to_string(), to.is_some().to_string());
            self.differs("a change of affinity", "must move", format!("t{task}"), kernel, why);
        }
        if let Some(to) = to {
            let work = StopperWork::Move { task: ours, to, cause: MigrationCause::Affinity };
            self.ask_stopper(by, self.sched.task(ours).cpu, work, true);
        }
        true
    }

    /// The current task sleeps, yields or exits.
    fn leave(&mut self, cpu: CpuId, operation: &Operation) -> bool {
        let nr_cpus = self.nr_cpus();
        let Some(task) = self.current(cpu) else {
            return false;
        };
        let now = self.time();
        let how = match operation {
            Operation::Yield { .. } => {
                self.kernel.yield_now(cpu);
                self.sched.yield_task(cpu, now);
                Deactivate::Yielded
            }
            Operation::Exit { .. } => {
                self.kernel.exit(cpu);
                self.ended[task.index() - nr_cpus] = true;
                Deactivate::Exit
            }
            _ => {
                self.kernel.sleep(cpu);
                Deactivate::Sleep(TaskState::Interruptible)
            }
        };
        self.schedule(cpu, how);
        true
    }

    fn change_group(&mut self, cpu: CpuId, task: usize, group: Option<usize>) -> bool {
        let to = match group.map(|group| self.groups.get(group).copied()) {
            Some(None) => return false,
            to => to.flatten(),
        };
        let (ours, theirs) = self.tasks[task];
        let tg = to.map_or(TgId::ROOT, |(tg, _)| tg);
        if self.sched.task(ours).tg == tg {
            return false;
        }
        let now = self.time();
        self.kernel.move_to_group(cpu, theirs, to.map(|(_, group)| group));
        self.sched.move_task_to_group(ours, tg, now);
        true
    }

    pub(crate) fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            let text = format!("{:.6} {}", self.now as f64 / 1e9, what());
            told.push(text);
        }
    }
}

/// The kernel's number of a policy, its nice value or priority, and the DEADLINE parameters.
pub fn policy_number(policy: Policy, nice: i8) -> (u32, i32, [u64; 3]) {
    match policy {
        Policy::Normal => (0, nice.into(), [0; 3]),
        Policy::Fifo(prio) => (1, prio.into(), [0; 3]),
        Policy::Rr(prio) => (2, prio.into(), [0; 3]),
        Policy::Batch => (3, nice.into(), [0; 3]),
        Policy::Idle => (5, nice.into(), [0; 3]),
        Policy::Deadline { runtime, deadline, period } => (6, 0, [runtime, deadline, period]),
        Policy::Stop => unreachable!("no task asks to be a stopper"),
    }
}
