//! sched_yield(): the task lets others go first.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::calc_delta::calc_delta_fair;
use crate::class::Class;
use crate::{Curr, Policy, Sched, SeId, YieldRule};

impl Sched {
    /// What the running task of a CPU gives up. The driver calls [`Sched::schedule`] next.
    ///
    /// Kernel: do_sched_yield(), kernel/sched/syscalls.c, v6.12.
    pub fn yield_task(&mut self, cpu: CpuId, now: Time) {
        self.update_rq_clock(cpu, now);
        let Curr::Task(task) = self.rqs[cpu].curr else { return };
        match self.class_of(task) {
            Class::Fair => self.yield_task_fair(cpu, SeId(task.0)),
            Class::Rt => self.requeue_task_rt(cpu, task, false),
            Class::Dl => self.yield_task_dl(cpu),
            Class::Stop | Class::Idle => {}
        }
    }

    /// Kernel: yield_task_fair(), kernel/sched/fair.c, v6.1, v6.10, v6.12.
    fn yield_task_fair(&mut self, cpu: CpuId, se: SeId) {
        if self.rqs[cpu].nr_running == 1 {
            return;
        }
        let cfs = self.line_of(se);
        self.clear_buddies(cfs, se);
        match self.kernel.rules.yield_rule {
            YieldRule::Skip => {
                if self.tasks[se.0 as usize].policy != Policy::Batch {
                    self.update_curr(cfs);
                }
                self.set_skip_buddy(se);
            }
            YieldRule::Deadline => {
                self.update_curr(cfs);
                let entity = self.se_mut(se);
                let slice = calc_delta_fair(entity.slice, entity.line_load());
                entity.deadline = entity.deadline.wrapping_add(slice);
            }
            YieldRule::Request => {
                self.update_curr_line(cfs);
                if self.entity_eligible(cfs, se) {
                    let entity = self.se_mut(se);
                    entity.vruntime = entity.deadline;
                    self.renew_deadline(cfs, se);
                }
            }
        }
    }
}
