//! Changes while a run is under way: CPUs that go and come, rules that are switched.

use schedlab_sched::{Kernel, Policy};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{Duration, TaskId};

use crate::emit::Context;
use crate::engine::Engine;
use crate::stopper::StopperWork;

/// Something that is changed from outside at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A CPU is taken out of use.
    Offline(CpuId),
    /// A CPU comes back.
    Online(CpuId),
    /// A part of a kernel string is applied to the running kernel: `preempt=full`,
    /// `NO_SIS_UTIL`. It was read with [`Kernel::switch`] before the run.
    Switch(String),
}

/// A change and when, counted from the start of the workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// When.
    pub at: Duration,
    /// What.
    pub change: Change,
}

/// Whether changes make sense for a machine and a kernel.
pub(crate) fn check(
    changes: &[Timed],
    nr_cpus: usize,
    online: &CpuMask,
    kernel: &Kernel,
) -> Result<(), String> {
    let mut online = online.clone();
    let mut kernel = kernel.clone();
    for Timed { at, change } in changes {
        match change {
            Change::Offline(cpu) | Change::Online(cpu) if cpu.index() >= nr_cpus => {
                return Err(format!("CPU {cpu} is not one of {nr_cpus}"));
            }
            Change::Offline(cpu) => {
                online.clear(*cpu);
                if online.is_empty() {
                    return Err(format!("no CPU is left online at {at}; leave at least one"));
                }
            }
            Change::Online(cpu) => online.set(*cpu),
            Change::Switch(part) => kernel.switch(part).map_err(|error| error.to_string())?,
        }
    }
    Ok(())
}

impl Engine<'_> {
    /// A change happens.
    pub fn change(&mut self, change: &Change) {
        match change {
            Change::Offline(cpu) => self.offline(*cpu),
            Change::Online(cpu) => self.online(*cpu),
            Change::Switch(part) => {
                self.sched.kernel.switch(part).expect("the change was read before the run");
            }
        }
    }

    fn offline(&mut self, cpu: CpuId) {
        let online = self.sched.rqs[cpu].online;
        if online && self.sched.rqs.iter().filter(|(_, rq)| rq.online).count() > 1 {
            let by = self.other_online(cpu);
            self.give_stopper(by, cpu, StopperWork::Offline);
        }
    }

    /// The stopper of a CPU takes it out of use: whatever is queued there moves away. A
    /// task all of whose CPUs are gone may run anywhere from then on, as the kernel has
    /// it when it next places the task.
    pub fn goes_offline(&mut self, cpu: CpuId) {
        let all = self.all_cpus.clone();
        let stranded: Vec<TaskId> = (0..self.tasks.len() as u32)
            .map(TaskId)
            .filter(|&task| !self.tasks[task.index()].ended && self.depends_on(task, cpu))
            .collect();
        for &task in &stranded {
            self.emit_affinity(cpu, task, &all);
        }
        self.sched.set_online(cpu, false, self.now);
        self.effects(cpu, Context::Task);
        for task in stranded {
            self.sched.set_cpus_allowed(task, all.clone(), self.now);
        }
        self.effects(cpu, Context::Task);
    }

    /// Whether a CPU is the last one in use that a task may run on. Stoppers stay where
    /// they are.
    fn depends_on(&self, task: TaskId, cpu: CpuId) -> bool {
        let entry = self.sched.task(task);
        let elsewhere = |other: CpuId| other != cpu && self.sched.rqs[other].online;
        entry.policy != Policy::Stop && !entry.allowed.iter().any(elsewhere)
    }

    fn online(&mut self, cpu: CpuId) {
        if self.sched.rqs[cpu].online {
            return;
        }
        self.sched.set_online(cpu, true, self.now);
        let by = self.other_online(cpu);
        self.effects(by, Context::Task);
        self.cpus[cpu].since = self.now;
        self.cpus[cpu].tick_stopped = false;
        self.cpus[cpu].predictor = schedlab_machine::IdlePredictor::new();
        self.enter_idle(cpu);
    }

    /// Some CPU that is online, another one if there is one.
    pub fn other_online(&self, cpu: CpuId) -> CpuId {
        let mut online = self.sched.rqs.iter().filter(|(_, rq)| rq.online).map(|(id, _)| id);
        online.find(|&other| other != cpu).unwrap_or(cpu)
    }

    /// The CPU that takes what is meant for `cpu`: itself, unless it is offline.
    pub fn instead_of(&self, cpu: CpuId) -> CpuId {
        if self.sched.rqs[cpu].online { cpu } else { self.other_online(cpu) }
    }
}
