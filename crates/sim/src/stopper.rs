//! The stopper of a CPU: the thread of the highest class, which moves running tasks.
//!
//! Active balancing, a change of affinity of a running task and exec use it. It is made when a CPU first
//! needs it.

use std::sync::Arc;

use schedlab_sched::{MigrationCause, NewTask, Policy, Scheduler, TaskState, TgId};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::{Comm, How, What};
use schedlab_units::TaskId;
use schedlab_workload::Pc;

use crate::create::Birth;
use crate::emit::Context;
use crate::engine::Engine;
use crate::task::{Role, Stage, Wait};

/// Work for a stopper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StopperWork {
    /// Active balancing: move some task to this CPU.
    Balance { to: CpuId },
    /// Move this task.
    Move { task: TaskId, to: CpuId, cause: MigrationCause },
    /// Leave the CPU to kernel threads that are bound to it.
    Deactivate,
    /// Take the CPU offline.
    Offline,
}

impl<S: Scheduler> Engine<'_, S> {
    /// Active balancing is requested.
    pub fn ask_stopper(&mut self, by: CpuId, cpu: CpuId, to: CpuId) {
        self.give_stopper(by, cpu, StopperWork::Balance { to });
    }

    /// A running task must leave its CPU.
    pub fn ask_to_move(&mut self, by: CpuId, task: TaskId, to: CpuId, cause: MigrationCause) {
        let cpu = self.sched.task(task).cpu;
        self.give_stopper(by, cpu, StopperWork::Move { task, to, cause });
    }

    /// Queues work for the stopper of a CPU.
    pub fn give_stopper(&mut self, by: CpuId, cpu: CpuId, work: StopperWork) {
        self.stopper_work[cpu].push(work);
        let stopper = self.stopper(cpu);
        self.wake_up(by, Context::Task, stopper, false);
    }

    fn stopper(&mut self, cpu: CpuId) -> TaskId {
        if let Some(stopper) = self.cpus[cpu].stopper {
            return stopper;
        }
        let allowed = CpuMask::one(self.machine.topology.nr_cpus(), cpu);
        let comm = Comm::from(format!("migration/{cpu}").as_str());
        let stopper = self.make_kthread(Policy::Stop, 0, allowed, comm, Role::Stopper, Stage::Stopper);
        self.cpus[cpu].stopper = Some(stopper);
        stopper
    }

    /// Creates a thread of the kernel that waits for work.
    pub fn make_kthread(
        &mut self,
        policy: Policy,
        nice: i8,
        allowed: CpuMask,
        comm: Comm,
        role: Role,
        stage: Stage,
    ) -> TaskId {
        let new = NewTask {
            policy,
            nice,
            allowed: Arc::new(allowed),
            tg: TgId::ROOT,
            kthread: true,
            process: u32::MAX,
            slice: None,
        };
        let id = self.make_task(&new, Birth { comm, role, spec: None, entry: Pc(0), parent: None, stage });
        self.sched.set_state(id, TaskState::Interruptible);
        self.tasks[id.index()].wait = Wait::Work;
        id
    }

    /// The stopper has the CPU: it does all its work, then sleeps.
    pub fn stopper_runs(&mut self, cpu: CpuId, stopper: TaskId) {
        let items = std::mem::take(&mut self.stopper_work[cpu]);
        for item in items {
            self.charge(cpu, self.kernel_span(&self.machine.cost.stopper_ns).0);
            match item {
                StopperWork::Balance { to } => {
                    self.sched.active_balance(cpu, to, self.now);
                }
                StopperWork::Move { task, to, cause } => self.move_to(cpu, task, to, cause),
                StopperWork::Deactivate => self.deactivates(cpu),
                StopperWork::Offline => self.goes_offline(cpu),
            }
            self.effects(cpu, Context::Task);
        }
        self.sleep(cpu, stopper, TaskState::Interruptible, Wait::Work, Stage::Stopper);
    }

    /// Moves a task, and wakes it if it waits for that.
    fn move_to(&mut self, cpu: CpuId, task: TaskId, to: CpuId, cause: MigrationCause) {
        self.sched.stopper_moves(cpu, task, to, cause, self.now);
        if self.tasks[task.index()].wait == Wait::Stopper {
            self.wake_up(cpu, Context::Task, task, false);
        }
    }

    /// A task executes another program: the cheapest moment to move it.
    pub fn exec_balance(&mut self, task: TaskId) {
        let cpu = self.sched.task(task).cpu;
        self.sched.update_group_sums();
        let chosen = if self.explaining {
            let passed_over = std::cell::RefCell::new(Vec::new());
            let chosen = self.sched.decide_exec(task, self.now, Some(&passed_over));
            self.explain_placement(cpu, task, How::Exec, &chosen, passed_over.into_inner());
            chosen
        } else {
            self.sched.decide_exec(task, self.now, None)
        };
        self.decided(What::Placement(How::Exec), chosen.reason);
        self.searched(cpu, chosen.examined);
        if chosen.cpu != cpu {
            self.ask_to_move(cpu, task, chosen.cpu, MigrationCause::Exec);
            if !self.preempt_enable(cpu) {
                self.cond_resched(cpu);
            }
        }
    }
}
