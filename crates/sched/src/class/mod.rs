//! Scheduling classes and their order: stop, deadline, RT, fair, idle.

mod dl;
mod dl_bandwidth;
mod dl_offline;
mod fair_server;
mod fair_server_idle;
mod find_later_rq;
mod find_lowest_rq;
mod nearest;
mod push_pull;
mod push_pull_dl;
mod push_pull_rt;
mod rt;
mod rt_push_ipi;
mod stop;

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::{Curr, Feature, Policy, Sched};

pub use fair_server::{FairServer, ServerState};
pub use nearest::Nearest;
pub use push_pull::Push;
pub use rt_push_ipi::RtPushLoop;

/// A scheduling class; a greater one is served first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The idle task.
    Idle,
    /// CFS or EEVDF.
    Fair,
    /// FIFO and RR.
    Rt,
    /// EDF with budgets.
    Dl,
    /// The stopper.
    Stop,
}

impl Policy {
    /// The class that serves this policy.
    #[inline]
    pub fn class(self) -> Class {
        match self {
            Policy::Normal | Policy::Batch | Policy::Idle => Class::Fair,
            Policy::Fifo(_) | Policy::Rr(_) => Class::Rt,
            Policy::Deadline { .. } => Class::Dl,
            Policy::Stop => Class::Stop,
        }
    }
}

impl Sched {
    /// The class of a task.
    #[inline]
    pub fn class_of(&self, task: TaskId) -> Class {
        self.task(task).policy.class()
    }

    /// The class of the current task of a CPU.
    #[inline]
    pub fn curr_class(&self, cpu: CpuId) -> Class {
        self.class_of_curr(self.rqs[cpu].curr)
    }

    #[inline]
    pub(crate) fn class_of_curr(&self, curr: Curr) -> Class {
        match curr {
            Curr::Idle => Class::Idle,
            Curr::Task(task) => self.class_of(task),
        }
    }

    /// Up to v6.11 a task is put back before the next one is picked, so one of a higher class may be throttled first. Later
    /// it is put back only if another was picked.
    ///
    /// Kernel: put_prev_task_balance(), kernel/sched/core.c, v5.10, v6.1; pick_next_task_dl(), pick_next_task_rt(), v4.13.
    pub(crate) fn charge_before_pick(&mut self, cpu: CpuId) {
        if self.kernel.has(Feature::IdleShortcut) {
            return;
        }
        match self.curr_class(cpu) {
            Class::Dl => self.update_curr_dl(cpu),
            Class::Rt => self.update_curr_rt(cpu),
            _ => {}
        }
    }

    /// Charges the running task of a higher class; the fair class charges by queue.
    /// Returns the time charged.
    ///
    /// Kernel: update_curr_common(), kernel/sched/fair.c, v6.12.
    pub(crate) fn update_curr_common(&mut self, cpu: CpuId) -> u64 {
        let rq = &self.rqs[cpu];
        let (Some(task), now) = (rq.curr.task(), rq.clock_task) else { return 0 };
        let se = &mut self.task_mut(task).se;
        let delta = now.wrapping_sub(se.exec_start) as i64;
        if delta <= 0 {
            return 0;
        }
        se.exec_start = now;
        se.sum_exec_runtime += delta as u64;
        delta as u64
    }
}
