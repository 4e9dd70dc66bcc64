//! Changes that a task makes to other tasks or to groups during a run.
//!
//! The requesting task pays for a system call. A task that is frozen continues its work in the kernel and stops on its
//! way to user mode; a sleeping one stays asleep, and stops when it is woken.
//!
//! Left out: a task that sets the CPUs of a running one waits until the stopper has moved it, and a sleeper is woken to be
//! frozen.
//!
//! Kernel: do_freezer_trap(), kernel/signal.c; sched_setaffinity(), kernel/sched/syscalls.c, v6.12.

use schedlab_sched::{Scheduler, TaskState};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;
use schedlab_workload::{GroupAct, GroupId, SpecId, TaskAct, shares_of_weight};

use crate::emit::Context;
use crate::engine::Engine;
use crate::task::Wait;

impl<S: Scheduler> Engine<'_, S> {
    /// Acts on the task that was last made from a spec, if it lives.
    pub fn act_on_task(&mut self, by: CpuId, spec: SpecId, act: TaskAct) {
        self.charge(by, self.paths.syscall + self.kernel_span(&self.machine.cost.set_ns).0);
        let Some(task) = self.living(spec) else { return };
        let at = self.sched.task(task).cpu;
        match act {
            TaskAct::Cpus(list) => {
                let allowed = list.map_or(self.all_cpus.clone(), |list| self.masks[list.index()].clone());
                if self.curr(by) == Some(task) {
                    self.allow(by, task, allowed);
                } else if allowed.iter().any(|cpu| self.sched.is_active(cpu)) {
                    self.bind_there(by, task, allowed);
                    self.effects(by, Context::Task);
                }
            }
            TaskAct::Sched(attr) => self.change_sched(by, task, attr),
            TaskAct::Group(group) => {
                self.change_group(by, task, group);
                if let Some(cpuset) = group.and_then(|group| self.cpuset(group)) {
                    self.bind_there(by, task, cpuset);
                    self.effects(by, Context::Task);
                }
            }
            TaskAct::Freeze => {
                self.tasks[task.index()].frozen = true;
                if self.curr(at) == Some(task) {
                    self.notify(by, at);
                }
            }
            TaskAct::Thaw => {
                self.tasks[task.index()].frozen = false;
                if self.tasks[task.index()].wait == Wait::Thaw {
                    self.wake_up(by, Context::Task, task, false);
                }
            }
        }
    }

    /// A frozen task stops on its way to user mode, to continue later with the same stage.
    pub fn stops(&mut self, cpu: CpuId, task: TaskId) {
        let stage = self.tasks[task.index()].stage;
        self.sleep(cpu, task, TaskState::Interruptible, Wait::Thaw, stage);
    }

    /// Changes the settings of a group.
    pub fn act_on_group(&mut self, by: CpuId, group: GroupId, act: GroupAct) {
        self.charge(by, self.paths.syscall + self.kernel_span(&self.machine.cost.set_ns).0);
        let tg = self.groups[group.index()];
        match act {
            GroupAct::Weight(weight) => {
                self.sched.set_shares(tg, shares_of_weight(weight) << 10, self.now);
            }
            GroupAct::Shares(shares) => self.sched.set_shares(tg, u64::from(shares) << 10, self.now),
            GroupAct::Idle(idle) => self.sched.set_idle_group(tg, idle, self.now),
            GroupAct::Clamps { util_min, util_max } => {
                self.sched.set_group_uclamp(tg, util_min.map(u32::from), util_max.map(u32::from));
            }
            GroupAct::Quota { quota_us, period_us, burst_us } => {
                let [quota, period, burst] = [quota_us, period_us, burst_us].map(|us| u64::from(us) * 1_000);
                self.sched.set_bandwidth(tg, (quota > 0).then_some(quota), period, burst, self.now);
            }
        }
        self.effects(by, Context::Task);
    }
}
