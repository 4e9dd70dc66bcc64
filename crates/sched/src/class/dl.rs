//! SCHED_DEADLINE: earliest deadline first, with a budget per period.
//!
//! Modelled for what it takes from the fair class: order, budgets (CBS), going where a CPU
//! is free of earlier deadlines, and the pressure on capacity. Admission control, bandwidth
//! reclaiming and priority inheritance are left out.

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::cfs_rq::before;
use crate::class::Class;
use crate::{Curr, Effect, EnqueueFlags, Policy, Pressure, Rq, Sched};

/// Parameters of a deadline task: budget, relative deadline, period.
fn params(policy: Policy) -> (u64, u64, u64) {
    match policy {
        Policy::Deadline { runtime, deadline, period } => (runtime, deadline, period),
        other => panic!("{other:?} is not a deadline policy"),
    }
}

impl Rq {
    /// Kernel: pick_task_dl(), kernel/sched/deadline.c, v6.12.
    #[inline]
    pub(crate) fn pick_task_dl(&self) -> Option<TaskId> {
        self.dl_queue.first().copied()
    }
}

impl Sched {
    /// Kernel: enqueue_task_dl(), update_dl_entity(), setup_new_dl_entity(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn enqueue_task_dl(&mut self, cpu: CpuId, task: TaskId, flags: EnqueueFlags) {
        let now = self.rqs[cpu].clock;
        let (runtime, deadline, _) = params(self.task(task).policy);
        let entry = self.task_mut(task);
        if flags.restore && !entry.dl_throttled && before(entry.dl_deadline, now) {
            entry.dl_deadline = now.wrapping_add(deadline);
            entry.dl_runtime = runtime as i64;
        } else if flags.wakeup || flags.initial {
            // What is left of the old budget may be kept if using it up by the old
            // deadline takes no more than the reserved bandwidth.
            let past = !before(now, entry.dl_deadline);
            let left = entry.dl_runtime.max(0) as u128;
            let overflow =
                left * deadline as u128 > runtime as u128 * entry.dl_deadline.wrapping_sub(now) as u128;
            if past || overflow {
                entry.dl_deadline = now.wrapping_add(deadline);
                entry.dl_runtime = runtime as i64;
                entry.dl_throttled = false;
            }
        }
        if !entry.dl_throttled {
            self.insert_dl(cpu, task);
        }
    }

    fn insert_dl(&mut self, cpu: CpuId, task: TaskId) {
        let deadline = self.task(task).dl_deadline;
        let queue = &self.rqs[cpu].dl_queue;
        let at = queue.partition_point(|&other| !before(deadline, self.task(other).dl_deadline));
        self.rqs[cpu].dl_queue.insert(at, task);
        self.add_nr_running(cpu, 1);
    }

    fn remove_dl(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let rq = &mut self.rqs[cpu];
        let Some(at) = rq.dl_queue.iter().position(|&other| other == task) else { return false };
        rq.dl_queue.remove(at);
        rq.nr_running -= 1;
        true
    }

    /// Kernel: dequeue_task_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn dequeue_task_dl(&mut self, cpu: CpuId, task: TaskId) {
        self.update_curr_dl(cpu);
        self.remove_dl(cpu, task);
    }

    /// Kernel: put_prev_task_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn put_prev_task_dl(&mut self, cpu: CpuId) {
        self.update_curr_dl(cpu);
        self.update_dl_rq_load_avg(cpu, true);
    }

    /// Kernel: set_next_task_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn set_next_task_dl(&mut self, cpu: CpuId, prev_class: Class) {
        if prev_class != Class::Dl {
            self.update_dl_rq_load_avg(cpu, false);
        }
    }

    /// Charges the running deadline task; out of budget, it leaves until replenished.
    ///
    /// Kernel: update_curr_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn update_curr_dl(&mut self, cpu: CpuId) {
        let Curr::Task(task) = self.rqs[cpu].curr else { return };
        if self.class_of(task) != Class::Dl {
            return;
        }
        let delta = self.update_curr_common(cpu);
        if delta == 0 {
            return;
        }
        if self.kernel.rules.pressure == Pressure::RtAvg {
            self.sched_rt_avg_update(cpu, delta);
        }
        let entry = self.task_mut(task);
        entry.dl_runtime -= delta as i64;
        if entry.dl_runtime <= 0 && !entry.dl_throttled {
            entry.dl_throttled = true;
            let (_, deadline, period) = params(entry.policy);
            let at = entry.dl_deadline.wrapping_sub(deadline).wrapping_add(period);
            self.remove_dl(cpu, task);
            self.effects.push(Effect::StartDlTimer { task, at });
            self.resched_now(cpu);
        }
    }

    /// A deadline task that was out of budget gets a new one.
    ///
    /// Kernel: dl_task_timer(), replenish_dl_entity(), kernel/sched/deadline.c, v6.12.
    pub fn dl_timer(&mut self, task: TaskId, now: Time) {
        if !self.task(task).dl_throttled || self.class_of(task) != Class::Dl {
            return;
        }
        let cpu = self.task(task).cpu;
        self.update_rq_clock(cpu, now);
        let (runtime, deadline, period) = params(self.task(task).policy);
        let entry = self.task_mut(task);
        while entry.dl_runtime <= 0 {
            entry.dl_deadline = entry.dl_deadline.wrapping_add(period);
            entry.dl_runtime += runtime.max(1) as i64;
        }
        if !before(now.0, entry.dl_deadline) {
            entry.dl_deadline = now.0 + deadline;
            entry.dl_runtime = runtime as i64;
        }
        entry.dl_throttled = false;
        if entry.on_rq {
            self.insert_dl(cpu, task);
            self.preempt_for(cpu, task, 0, now);
            self.push_task(cpu, Class::Dl, now);
        }
    }

    /// Kernel: task_tick_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn task_tick_dl(&mut self, cpu: CpuId) {
        self.update_curr_dl(cpu);
        self.update_dl_rq_load_avg(cpu, true);
    }

    /// Gives up the rest of the budget.
    ///
    /// Kernel: yield_task_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn yield_task_dl(&mut self, cpu: CpuId, task: TaskId) {
        self.update_curr_dl(cpu);
        let entry = self.task_mut(task);
        if !entry.dl_throttled {
            entry.dl_throttled = true;
            entry.dl_runtime = 0;
            let (_, deadline, period) = params(entry.policy);
            let at = entry.dl_deadline.wrapping_sub(deadline).wrapping_add(period);
            self.remove_dl(cpu, task);
            self.effects.push(Effect::StartDlTimer { task, at });
        }
    }

    /// Whether a woken deadline task goes before the running one, of the same class.
    ///
    /// Kernel: wakeup_preempt_dl(), kernel/sched/deadline.c, v6.12.
    pub(crate) fn dl_preempts(&self, cpu: CpuId, task: TaskId) -> bool {
        match self.rqs[cpu].curr {
            Curr::Task(curr) => before(self.task(task).dl_deadline, self.task(curr).dl_deadline),
            Curr::Idle => true,
        }
    }
}
