//! Tasks begin: at the start of the workload, by fork, by exec.

use std::cell::RefCell;
use std::sync::Arc;

use schedlab_machine::{Mechanism, Work};
use schedlab_sched::{NewTask, Policy, Scheduler, TgId};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Comm, How, Kind, What};
use schedlab_units::{Duration, Pid, TaskId, Time};
use schedlab_workload::{CommId, Cursor, Naming, Pc, Placed, Process, SpecId};

use crate::account::Part;
use crate::emit::Context;
use crate::engine::{Engine, FIRST_USER_PID};
use crate::few::Few;
use crate::outcome::{End, Stuck};
use crate::rng::Stream;
use crate::task::{Mode, PipeCall, Role, Stage, Task, Wait};

/// What the engine needs to know of a new task.
pub(crate) struct Birth {
    pub comm: Comm,
    pub role: Role,
    pub spec: Option<SpecId>,
    pub entry: Pc,
    pub parent: Option<TaskId>,
    pub stage: Stage,
}

impl<S: Scheduler> Engine<'_, S> {
    /// The CPU that starts tasks without a parent.
    pub(crate) fn launcher(&self) -> CpuId {
        self.sched.domains().span.first().or(self.machine.topology.online().first()).unwrap_or_default()
    }

    /// A random CPU, determined by the seed.
    fn launcher_drawn(&self, spec: SpecId) -> CpuId {
        let online: Vec<CpuId> = self.sched.domains().span.iter().collect();
        let draw = Stream::new(self.seed, "launcher", spec.0.into()).next();
        online[(draw % online.len() as u64) as usize]
    }

    /// A task without a parent begins.
    pub fn start(&mut self, spec: SpecId) {
        self.to_start -= 1;
        self.pending -= 1;
        let task = self.workload.task(spec);
        let launcher = match task.start_cpu {
            Some(cpu) => cpu,
            None if task.start_anywhere => self.launcher_drawn(spec),
            None => self.launcher(),
        };
        let id = self.make(spec, None);
        self.tasks[id.index()].origin = self.now;
        let fixed = task.start_cpu.filter(|&cpu| self.sched.task(id).allowed.contains(cpu));
        self.wake_up_new(launcher, id, fixed);
        if task.did.is_some_and(|did| did.awake) {
            self.bring_averages(id);
        }
        if self.is_idle(launcher) {
            // The start is an interrupt to whatever the CPU does.
            self.notify_self(launcher);
        } else {
            self.advance(launcher);
            self.arm_next(launcher);
        }
    }

    /// A CPU that acted while idle checks whether it has something to do.
    fn notify_self(&mut self, cpu: CpuId) {
        if self.sched.need_resched(cpu).any() || self.sched.nr_running(cpu) > 0 {
            self.notify(cpu, cpu);
        }
    }

    /// The number of the process of a new task that shares none.
    pub fn own_process(&self) -> u32 {
        self.shared_processes + self.tasks.len() as u32
    }

    /// Creates a task from a spec; it inherits from its parent what the spec leaves open.
    fn make(&mut self, spec: SpecId, parent: Option<TaskId>) -> TaskId {
        let task = self.workload.task(spec);
        let inherited = parent.map(|parent| {
            let parent = self.sched.task(parent);
            (
                parent.policy,
                parent.nice,
                parent.allowed.clone(),
                parent.tg,
                parent.se.custom_slice.then_some(parent.se.slice),
            )
        });
        let (mut policy, mut nice, mut allowed, mut tg, mut slice) =
            inherited.unwrap_or((Policy::Normal, 0, self.all_cpus.clone(), TgId::ROOT, None));
        if let Some(group) = task.group {
            tg = self.groups[group.index()];
        }
        let mut clamps = None;
        if let Some(attr) = self.workload.attr(spec) {
            (policy, nice) = crate::attributes::policy(attr.policy, nice);
            slice = attr.slice.map(|slice| slice.0);
            clamps = Some((attr.util_min, attr.util_max));
        }
        if let Some(list) = task.cpus {
            allowed = self.masks[list.index()].clone();
        }
        if let Some(cpus) = task.group.and_then(|group| self.cpuset(group)) {
            allowed = narrowed(&allowed, &cpus);
        }
        let restricted = task.cpus.is_some();
        let process = match task.process {
            Process::Thread(process) => process.0,
            Process::Own => self.own_process(),
        };
        let kthread = task.kthread;
        let new = NewTask { policy, nice, allowed, tg, kthread, process, slice };
        let comm = match parent {
            Some(parent) => self.tasks[parent.index()].comm,
            None => Comm::new(self.workload.task_name(spec).as_bytes()),
        };
        let entry = self.workload.programs[task.program.index()].entry;
        let birth = Birth { comm, role: Role::Program, spec: Some(spec), entry, parent, stage: Stage::Fetch };
        let id = self.make_task(&new, birth);
        if let Some(flips) = task.flips {
            let halved = Time(self.now.0.saturating_sub(flips.halved.0));
            self.sched.set_wakee_flips(id, flips.count, halved);
        }
        let entry = &mut self.tasks[id.index()];
        entry.has_past = task.lag > Duration::ZERO || task.recent_used_cpu.is_some();
        entry.has_done = task.did.is_some();
        entry.heard = task.placed.and_then(|placed| placed.heard);
        if !restricted && parent.is_none_or(|parent| self.sched.task(parent).never_restricted) {
            self.sched.set_never_restricted(id);
        }
        let allowed = &self.sched.task(id).allowed;
        let cpu = self.sched.task(id).cpu;
        if self.tracing && allowed.weight() < self.machine.topology.nr_cpus() {
            let allowed = allowed.clone();
            self.emit_affinity(cpu, id, &allowed);
        }
        if task.group.is_some() && tg != parent.map_or(TgId::ROOT, |parent| self.sched.task(parent).tg) {
            self.emit_attach(cpu, id, task.group);
        }
        if let Some((min, max)) = clamps {
            self.sched.set_uclamp(id, min.map(u32::from), max.map(u32::from));
        }
        id
    }

    /// The run is aborted, as it made more tasks than allowed.
    pub fn too_many_tasks(&self, limit: usize) -> End {
        let parent = self.tasks.iter().next_back().and_then(|last| last.parent);
        let by = parent.map(|parent| self.who(parent)).map(|(comm, pid)| (comm.to_string(), pid));
        End::Tasks { limit, by }
    }

    /// A pid that no task had before. Kernel threads have the small ones, as they start first when a kernel boots;
    /// beyond [`FIRST_USER_PID`] they draw from the same range as other tasks, so that no two tasks share a pid.
    fn new_pid(&mut self, kthread: bool) -> Pid {
        let small = kthread && self.next_kernel_pid < FIRST_USER_PID;
        let number = if small { &mut self.next_kernel_pid } else { &mut self.next_pid };
        let pid = Pid(*number);
        *number += 1;
        pid
    }

    /// Reserves room for the initial tasks and those of the kernel: a table that grows by doubling wastes as much
    /// memory again.
    pub fn expect_tasks(&mut self) {
        let count = self.workload.roots().count() + 2 * self.machine.topology.nr_cpus();
        self.tasks.reserve(count);
        self.sched.expect_tasks(count);
        self.places.expect_tasks(count);
    }

    /// Creates a task in the scheduler and in the engine.
    pub fn make_task(&mut self, new: &NewTask, birth: Birth) -> TaskId {
        let id = self.sched.new_task(new, birth.parent, self.now);
        debug_assert_eq!(id.index(), self.tasks.len(), "both number tasks alike");
        let born_on = birth.parent.map_or(CpuId(0), |parent| self.sched.task(parent).cpu);
        self.places.new_task(id, born_on);
        let pid = self.new_pid(new.kthread);
        let spec = birth.spec.map(|spec| self.workload.task(spec));
        let is_thread = matches!(spec.map(|spec| spec.process), Some(Process::Thread(_)))
            && birth.parent.is_some_and(|parent| self.sched.task(parent).process == new.process);
        let tgid = match birth.parent {
            Some(parent) if is_thread => self.tasks[parent.index()].tgid,
            _ => pid,
        };
        self.tasks.push(Task {
            pid,
            tgid,
            is_thread,
            comm: birth.comm,
            role: birth.role,
            spec: birth.spec,
            cursor: Cursor::new(birth.entry),
            stage: birth.stage,
            work: Work::NONE,
            streams: false,
            region: None,
            then: None,
            mode: Mode::User,
            wait: Wait::Nothing,
            spins_for: None,
            holds: Few::new(),
            owes: Few::new(),
            call: PipeCall::default(),
            noisy: false,
            serves: None,
            timer: 0,
            timer_set: false,
            timer_cpu: CpuId(0),
            wheel: new.kthread || spec.is_some_and(|spec| spec.wheel),
            killed: false,
            frozen: false,
            ended: false,
            background: spec.is_none_or(|spec| spec.background),
            memory_bound: spec.is_some_and(|spec| spec.memory_bound),
            footprint: spec.map_or(0, |spec| spec.footprint),
            warmth: None,
            dice: Stream::new(self.seed, "task", u64::from(id.0)),
            spread: Stream::new(self.seed, "calls", u64::from(id.0)),
            origin: self.now,
            own_timers: None,
            parent: birth.parent,
            children: 0,
            zombies: 0,
            forked: Few::new(),
            joiner: None,
            since: self.now,
            off_cpu_at: self.now,
            heard: None,
            interrupt_on: None,
            comes_to_waker: false,
            has_past: false,
            has_done: false,
            runtime_told: 0,
        });
        self.counts.forks += 1;
        id
    }

    /// A new task is placed and queued. `fixed` places it without a search.
    pub fn wake_up_new(&mut self, cpu: CpuId, task: TaskId, fixed: Option<CpuId>) {
        if fixed.is_none() {
            self.sched.update_group_sums();
        }
        let pending = self.pending(cpu);
        let chosen = match fixed {
            Some(fixed) => schedlab_sched::Placement::new(fixed, schedlab_sched::Reason::OnlyAllowed),
            None if self.explaining => {
                let passed_over = RefCell::new(Vec::new());
                let chosen = self.sched.decide_fork(task, cpu, self.now, Some(&passed_over));
                self.explain_placement(cpu, task, How::Fork, &chosen, passed_over.into_inner());
                chosen
            }
            None => self.sched.decide_fork(task, cpu, self.now, None),
        };
        if fixed.is_none() {
            self.decided(What::Placement(How::Fork), chosen.reason);
        }
        self.charge_to(cpu, Part::Wakeup, self.paths.wakeup);
        self.searched(cpu, chosen.examined);
        self.sched.apply_fork(task, chosen.cpu, self.now);
        self.cpus[chosen.cpu].heard = self.tasks[task.index()].heard.take();
        self.effects(cpu, Context::Task);
        self.cpus[chosen.cpu].heard = None;
        if self.tracing {
            let ((comm, pid), prio) = (self.who(task), self.prio(task));
            let kind = Kind::SchedWakeupNew { comm, pid, prio, target_cpu: chosen.cpu };
            self.emit_charged(cpu, Context::Task, pending, chosen.cpu);
            self.emit(cpu, Context::Task, kind);
        }
        self.sched.task_woken(cpu, task, self.now);
        self.effects(cpu, Context::Task);
        self.rearm_hrtick(chosen.cpu, 0);
    }

    /// Begins to fork: the child is there when that is paid for.
    pub fn fork(&mut self, _cpu: CpuId, task: TaskId, spec: SpecId) {
        let thread = matches!(self.workload.task(spec).process, Process::Thread(_));
        let cost = &self.machine.cost;
        let ns = if thread { &cost.clone_thread_ns } else { &cost.fork_ns };
        let ns = if self.machine.has(Mechanism::KernelCosts) { ns.get() } else { 1 };
        self.in_kernel_for(task, ns, Stage::Cloned(spec));
    }

    /// A task spends preemptible time in the kernel before a stage.
    pub fn in_kernel_for(&mut self, task: TaskId, ns: u64, stage: Stage) {
        let entry = &mut self.tasks[task.index()];
        entry.work = Work::nanos(ns);
        entry.mode = Mode::Kernel(schedlab_workload::Section { preempt_off: false, cond_resched_ns: 10_000 });
        entry.stage = stage;
    }

    /// The child is there.
    pub fn cloned(&mut self, cpu: CpuId, task: TaskId, spec: SpecId) {
        self.tasks[task.index()].stage = Stage::Fetch;
        let returns = self.kernel_ns(self.machine.cost.fork_return_ns.get());
        let thread = matches!(self.workload.task(spec).process, Process::Thread(_));
        if !thread && returns > 0 {
            self.in_kernel_for(task, returns, Stage::Fetch);
        }
        let fixed = self.placed(cpu, task, spec);
        self.born(cpu, task, spec, fixed);
    }

    /// Where a new task is known to go, if the state is the same as when that was recorded.
    fn placed(&self, cpu: CpuId, parent: TaskId, spec: SpecId) -> Option<CpuId> {
        let task = self.workload.task(spec);
        let Placed { from, to, was_idle, .. } = task.placed?;
        let allowed = match task.cpus {
            Some(list) => &self.masks[list.index()],
            None => &self.sched.task(parent).allowed,
        };
        let is_as_it_was = from == cpu && was_idle == (self.sched.nr_running(to) == 0);
        (is_as_it_was && self.sched.is_online(to) && allowed.contains(to)).then_some(to)
    }

    /// A task on a CPU has a child, which runs where it is placed or on `fixed`.
    pub fn born(&mut self, cpu: CpuId, task: TaskId, spec: SpecId, fixed: Option<CpuId>) -> TaskId {
        let child = self.make(spec, Some(task));
        let background = self.tasks[child.index()].background;
        self.foreground += u64::from(!background);
        let is_thread = self.tasks[child.index()].is_thread;
        let entry = &mut self.tasks[task.index()];
        if is_thread {
            entry.forked.retain(|&(known, _)| known != spec);
            entry.forked.push((spec, child));
        } else {
            entry.children += 1;
        }
        if self.tracing {
            let ((comm, pid), (child_comm, child_pid)) = (self.who(task), self.who(child));
            self.emit(cpu, Context::Task, Kind::SchedProcessFork { comm, pid, child_comm, child_pid });
        }
        self.charge(cpu, self.paths.syscall);
        self.wake_up_new(cpu, child, fixed);
        child
    }

    /// Begins to replace the program.
    pub fn exec(&mut self, _cpu: CpuId, task: TaskId, comm: CommId) {
        let ns = if self.machine.has(Mechanism::KernelCosts) { self.machine.cost.exec_ns.get() } else { 1 };
        self.in_kernel_for(task, ns, Stage::Execed(comm));
        self.exec_balance(task);
    }

    /// The new program is in place.
    pub fn execed(&mut self, cpu: CpuId, task: TaskId, comm: CommId) {
        self.tasks[task.index()].stage = Stage::Fetch;
        self.set_comm(cpu, task, comm);
        self.sched.sched_cache_exec(task, self.sched.task(task).process, self.now);
        let name = self.workload.comms[comm.index()].clone();
        if self.tracing {
            let pid = self.tasks[task.index()].pid;
            let kind = Kind::SchedProcessExec { filename: name.into(), pid, old_pid: pid };
            self.emit(cpu, Context::Task, kind);
        }
    }

    /// A task takes the name that its spec gives it.
    pub fn own_comm(&mut self, cpu: CpuId, task: TaskId) {
        self.charge(cpu, self.paths.syscall);
        let Some(spec) = self.tasks[task.index()].spec else { return };
        let name = self.workload.task_name(spec);
        let name = match self.workload.task(spec).naming {
            Naming::Exact => name,
            Naming::Counted { first } => {
                let name = format!("{name}-{}-{}", first + self.named, self.named_of[spec.index()]);
                self.named += 1;
                self.named_of[spec.index()] += 1;
                name.into()
            }
        };
        self.rename(cpu, task, Comm::new(name.as_bytes()));
    }

    /// A task takes a name.
    pub fn set_comm(&mut self, cpu: CpuId, task: TaskId, comm: CommId) {
        self.charge(cpu, self.paths.syscall);
        self.rename(cpu, task, Comm::new(self.workload.comms[comm.index()].as_bytes()));
    }

    fn rename(&mut self, cpu: CpuId, task: TaskId, newcomm: Comm) {
        if self.tracing {
            let (oldcomm, pid) = self.who(task);
            self.emit(cpu, Context::Task, Kind::TaskRename { pid, oldcomm, newcomm, oom_score_adj: 0 });
        }
        self.tasks[task.index()].comm = newcomm;
    }

    /// All remaining tasks wait: which ones, and for what.
    pub fn deadlock(&self) -> End {
        let objects = &self.workload.objects;
        let stuck = self.tasks.iter().filter(|task| !task.ended && task.wait != Wait::Work);
        let told = stuck.map(|task| {
            let waits_for = match task.wait {
                Wait::Nothing => "is runnable but never gets a CPU".to_string(),
                Wait::Timer => "waits for a timer".to_string(),
                Wait::Mutex(id) => self.waits_for_mutex(
                    self.objects.mutexes[id.index()].owner(),
                    &objects.mutexes[id.index()].name,
                ),
                Wait::KernelMutex(lock) => {
                    let (owner, name) = self.owner_of(lock);
                    self.waits_for_mutex(owner, name)
                }
                Wait::Cond(id) => format!("waits for condition \"{}\"", objects.conds[id.index()]),
                Wait::Sem(id) => format!("waits for semaphore \"{}\"", objects.sems[id.index()].name),
                Wait::Barrier(id) => format!("waits at barrier \"{}\"", objects.barriers[id.index()].name),
                Wait::Readable(id) => format!("waits to read from \"{}\"", objects.channels[id.index()].name),
                Wait::Writable(id) => format!("waits to write to \"{}\"", objects.channels[id.index()].name),
                Wait::Word(id) => format!("sleeps on word \"{}\"", objects.words[id.index()].name),
                Wait::Device(id) => format!("waits for device \"{}\"", objects.devices[id.index()].name),
                Wait::Children => format!("waits for {} of its processes to end", task.children),
                Wait::Join(other) => {
                    let (comm, pid) = self.who(other);
                    format!("waits for thread {comm} ({pid}) to end")
                }
                Wait::Stopper => "waits to be moved".to_string(),
                Wait::Thaw => "waits to be thawed".to_string(),
                Wait::Work => unreachable!("idle workers were left out"),
            };
            Stuck { pid: task.pid, comm: task.comm.to_string(), waits_for }
        });
        End::Deadlock(told.collect())
    }

    fn waits_for_mutex(&self, owner: Option<TaskId>, name: &str) -> String {
        match owner.map(|owner| self.who(owner)) {
            Some((comm, pid)) => format!("waits for mutex \"{name}\", which {comm} ({pid}) holds"),
            None => format!("waits for mutex \"{name}\""),
        }
    }

    /// A span of the kernel's own, or the minimum if its paths take no time.
    pub fn kernel_span(&self, cost: &schedlab_machine::Cost) -> Duration {
        Duration(if self.machine.has(Mechanism::KernelCosts) { cost.get().max(1) } else { 1 })
    }
}

/// The CPUs in both sets; those of the cpuset if there are none.
fn narrowed(allowed: &Arc<CpuMask>, cpuset: &Arc<CpuMask>) -> Arc<CpuMask> {
    let both = allowed.and(cpuset);
    if both.is_empty() { cpuset.clone() } else { Arc::new(both) }
}
