//! Changes during a run: CPUs that go offline and online, features that are switched, tasks that are forked
//! or moved from outside.

use std::sync::Arc;

use schedlab_sched::{Kernel, MigrationCause, Policy, Scheduler};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{Duration, TaskId};
use schedlab_workload::{Plug, SpecId};

use crate::cpuhp;
use crate::emit::Context;
use crate::engine::Engine;
use crate::stopper::StopperWork;

/// A change from outside at a given time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A CPU is taken out of use.
    Offline(CpuId),
    /// A CPU comes back.
    Online(CpuId),
    /// A part of a kernel string is applied to the running kernel: `preempt=full`,
    /// `NO_SIS_UTIL`. It was read with [`Kernel::switch`] before the run.
    Switch(String),
    /// Nothing balances any more: every CPU leaves its domains, as when `cpuset.sched_load_balance`
    /// is cleared.
    NoDomains,
    /// A task forks another at this moment, whether it is running or not; the child may use only one CPU.
    Fork {
        /// The parent.
        parent: SpecId,
        /// The child.
        child: SpecId,
        /// The only CPU of the child.
        cpu: CpuId,
    },
    /// A task is bound to a CPU: a queued one moves there at once, a running one is moved by the stopper, a
    /// sleeping one wakes there.
    Bind {
        /// The task that is bound.
        task: SpecId,
        /// To which CPU.
        cpu: CpuId,
    },
    /// The tick of a CPU. With one of these among the changes no CPU ticks on its own.
    Tick(CpuId),
}

impl Change {
    /// The CPU it names.
    fn cpu(&self) -> Option<CpuId> {
        match *self {
            Change::Offline(cpu) | Change::Online(cpu) | Change::Tick(cpu) => Some(cpu),
            Change::Fork { cpu, .. } | Change::Bind { cpu, .. } => Some(cpu),
            Change::Switch(_) | Change::NoDomains => None,
        }
    }

    /// The tasks it names.
    fn specs(&self) -> impl Iterator<Item = SpecId> + use<> {
        let (one, other) = match *self {
            Change::Fork { parent, child, .. } => (Some(parent), Some(child)),
            Change::Bind { task, .. } => (Some(task), None),
            _ => (None, None),
        };
        one.into_iter().chain(other)
    }
}

/// A change and its time, counted from the start of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// When.
    pub at: Duration,
    /// What.
    pub change: Change,
}

/// Whether changes make sense for a machine, a kernel and a workload of so many tasks.
pub(crate) fn check(
    changes: &[Timed],
    nr_cpus: usize,
    nr_specs: usize,
    online: &CpuMask,
    kernel: &Kernel,
) -> Result<(), String> {
    let mut online = online.clone();
    let mut kernel = kernel.clone();
    for Timed { at, change } in changes {
        if let Some(cpu) = change.cpu().filter(|cpu| cpu.index() >= nr_cpus) {
            return Err(format!("CPU {cpu} is not one of {nr_cpus}"));
        }
        if let Some(spec) = change.specs().find(|spec| spec.index() >= nr_specs) {
            return Err(format!("task {} is not one of {nr_specs}", spec.index()));
        }
        match change {
            Change::Offline(cpu) => {
                online.clear(*cpu);
                if online.is_empty() {
                    return Err(format!("no CPU is left online at {at}; leave at least one"));
                }
            }
            Change::Online(cpu) => online.set(*cpu),
            Change::Switch(part) => kernel.switch(part).map_err(|error| error.to_string())?,
            Change::NoDomains | Change::Fork { .. } | Change::Bind { .. } | Change::Tick(_) => {}
        }
    }
    Ok(())
}

impl<S: Scheduler> Engine<'_, S> {
    /// A change happens.
    pub fn change(&mut self, change: &Change) {
        match change {
            Change::Offline(cpu) => self.leave(self.other_online(*cpu), *cpu, StopperWork::Offline),
            Change::Online(cpu) => self.comes_back(self.other_online(*cpu), *cpu),
            Change::Switch(part) => {
                self.sched.switch(part).expect("the change was read before the run");
            }
            Change::NoDomains => self.sched.detach_domains(),
            Change::Fork { parent, child, cpu } => self.fork_from_outside(*parent, *child, *cpu),
            Change::Bind { task, cpu } => self.bind(*task, *cpu),
            Change::Tick(cpu) => self.tick(*cpu),
        }
    }

    /// The task that was made from a spec last, unless it has ended.
    pub(crate) fn living(&self, spec: SpecId) -> Option<TaskId> {
        let made = self.tasks.iter().rposition(|task| task.spec == Some(spec))?;
        (!self.tasks[made].ended).then_some(TaskId(made as u32))
    }

    pub(crate) fn one_cpu(&self, cpu: CpuId) -> Arc<CpuMask> {
        Arc::new(CpuMask::one(self.machine.topology.nr_cpus(), cpu))
    }

    fn fork_from_outside(&mut self, parent: SpecId, child: SpecId, cpu: CpuId) {
        let Some(parent) = self.living(parent) else { return };
        let forker = self.instead_of(self.sched.task(parent).cpu);
        let allowed = self.one_cpu(cpu);
        self.by_interrupt(forker, |engine| {
            let child = engine.born(forker, parent, child, Some(cpu));
            engine.emit_affinity(forker, child, &allowed);
            engine.sched.set_cpus_allowed(forker, child, allowed, engine.now);
        });
    }

    /// As `sched_setaffinity()` of another task, called on the CPU of this one.
    fn bind(&mut self, task: SpecId, to: CpuId) {
        let Some(task) = self.living(task).filter(|_| self.sched.is_active(to)) else { return };
        let by = self.instead_of(self.sched.task(task).cpu);
        let allowed = self.one_cpu(to);
        self.by_interrupt(by, |engine| engine.bind_there(by, task, allowed));
    }

    /// Binds a task, wherever it is, to CPUs, at least one of which is online.
    pub fn bind_there(&mut self, by: CpuId, task: TaskId, allowed: Arc<CpuMask>) {
        let cpu = self.sched.task(task).cpu;
        self.emit_affinity(by, task, &allowed);
        let must_move = self.sched.set_cpus_allowed(by, task, allowed, self.now);
        self.effects(by, Context::Task);
        if let Some(to) = must_move.filter(|_| self.sched.task(task).cpu == cpu) {
            self.ask_to_move(by, task, to, MigrationCause::Affinity);
        }
    }

    /// A task takes a CPU offline, or brings it online.
    pub fn plug(&mut self, by: CpuId, cpu: CpuId, to: Plug) {
        self.charge(by, self.paths.syscall);
        match to {
            Plug::Inactive => self.leave(by, cpu, StopperWork::Deactivate),
            Plug::Offline => self.leave(by, cpu, StopperWork::Offline),
            Plug::Online => self.comes_online(by, cpu),
            Plug::Active => self.comes_back(by, cpu),
        }
        if !self.preempt_enable(by) {
            self.cond_resched(by);
        }
    }

    /// Takes a CPU offline, as far as its stopper's work says, if it is not the last one.
    fn leave(&mut self, by: CpuId, cpu: CpuId, work: StopperWork) {
        let others = self.cpu_ids().any(|id| id != cpu && self.sched.is_active(id));
        if self.sched.is_online(cpu) && others {
            self.give_stopper(by, cpu, work);
        }
    }

    /// The stopper of a CPU takes it offline: all tasks queued there move away. A task without any CPU left
    /// may run anywhere from then on, as in the kernel when it next places the task. Threads bound by the
    /// kernel may do so until the CPU is back.
    pub fn goes_offline(&mut self, cpu: CpuId) {
        let all = self.all_cpus.clone();
        let stranded: Vec<TaskId> = (0..self.tasks.len() as u32)
            .map(TaskId)
            .filter(|&task| !self.tasks[task.index()].ended && self.depends_on(task, cpu))
            .collect();
        for &task in &stranded {
            self.emit_affinity(cpu, task, &all);
        }
        let bound = stranded.iter().filter(|&&task| self.sched.task(task).is_per_cpu_kthread());
        self.unbound[cpu].extend(bound.copied());
        self.deactivates(cpu);
        self.callback(cpu, cpu, cpuhp::DYING, |engine| engine.sched.set_offline(cpu, engine.now));
        for task in stranded {
            self.sched.do_set_cpus_allowed(task, all.clone(), self.now);
        }
        self.effects(cpu, Context::Task);
    }

    /// The stopper of a CPU leaves it to kernel threads that are bound to it.
    pub fn deactivates(&mut self, cpu: CpuId) {
        if self.sched.is_active(cpu) {
            self.callback(cpu, cpu, cpuhp::DEACTIVATE, |engine| {
                engine.sched.set_active(cpu, false, engine.now);
            });
        }
    }

    /// Whether a CPU is the last online one that a task may run on. Stoppers stay where they are.
    fn depends_on(&self, task: TaskId, cpu: CpuId) -> bool {
        let entry = self.sched.task(task);
        let elsewhere = |other: CpuId| other != cpu && self.sched.is_online(other);
        entry.policy != Policy::Stop && !entry.allowed.iter().any(elsewhere)
    }

    /// A CPU is back, for kernel threads that are bound to it.
    fn comes_online(&mut self, by: CpuId, cpu: CpuId) {
        if self.sched.is_online(cpu) {
            return;
        }
        self.callback(by, cpu, cpuhp::STARTING, |engine| engine.sched.cpu_starting(cpu, engine.now));
        self.cpus[cpu].since = self.now;
        self.cpus[cpu].tick_stopped = false;
        self.cpus[cpu].predictor = schedlab_machine::IdlePredictor::new();
        for task in std::mem::take(&mut self.unbound[cpu]) {
            if !self.tasks[task.index()].ended {
                self.bind_there(by, task, self.one_cpu(cpu));
                self.effects(by, Context::Task);
            }
        }
    }

    fn comes_back(&mut self, by: CpuId, cpu: CpuId) {
        self.comes_online(by, cpu);
        if !self.sched.is_active(cpu) {
            self.callback(by, cpu, cpuhp::ACTIVATE, |engine| engine.sched.set_active(cpu, true, engine.now));
        }
        if self.is_idle(cpu) {
            self.enter_idle(cpu);
        }
    }

    /// All CPUs.
    fn cpu_ids(&self) -> impl Iterator<Item = CpuId> + use<S> {
        (0..self.machine.topology.nr_cpus()).map(CpuId::from)
    }

    /// Some CPU that is online, another one if there is one.
    pub fn other_online(&self, cpu: CpuId) -> CpuId {
        let mut online = self.cpu_ids().filter(|&id| self.sched.is_online(id));
        online.find(|&other| other != cpu).unwrap_or(cpu)
    }

    /// The CPU that handles what is meant for `cpu`: `cpu` itself, unless it is offline.
    pub fn instead_of(&self, cpu: CpuId) -> CpuId {
        if self.sched.is_online(cpu) { cpu } else { self.other_online(cpu) }
    }
}
