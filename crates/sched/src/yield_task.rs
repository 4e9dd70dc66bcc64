//! sched_yield(): the task lets others go first.

use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::calc_delta::calc_delta_fair;
use crate::class::Class;
use crate::{Curr, Policy, Sched, SeId, YieldRule};

impl Sched {
    /// What the running task of a CPU gives up. The driver calls [`Sched::schedule`] next. The clock is read only where
    /// that task is charged: a fair task alone on its CPU, or an RT task, leaves it to `schedule()`, which skips it if a
    /// wake-up has asked for that.
    ///
    /// Kernel: do_sched_yield(), kernel/sched/syscalls.c, v6.12.
    pub fn yield_task(&mut self, cpu: CpuId, now: Time) {
        let Curr::Task(task) = self.rqs[cpu].curr else { return };
        match self.class_of(task) {
            Class::Fair => self.yield_task_fair(cpu, SeId(task.0), now),
            Class::Rt => self.requeue_task_rt(cpu, task, false),
            Class::Dl => {
                self.update_rq_clock(cpu, now);
                self.yield_task_dl(cpu);
            }
            Class::Stop | Class::Idle => {}
        }
    }

    /// Kernel: yield_task_fair(), kernel/sched/fair.c, v6.1, v6.10, v6.12.
    fn yield_task_fair(&mut self, cpu: CpuId, se: SeId, now: Time) {
        if self.rqs[cpu].nr_running == 1 {
            return;
        }
        let reads_clock = self.kernel.rules.yield_rule != YieldRule::Skip
            || self.tasks[se.0 as usize].policy != Policy::Batch;
        if reads_clock {
            self.update_rq_clock(cpu, now);
        }
        let cfs = self.line_of(se);
        self.clear_buddies(cfs, se);
        match self.kernel.rules.yield_rule {
            YieldRule::Skip => {
                if reads_clock {
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

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use expect_test::expect;

    use super::*;
    use crate::Deactivate;
    use crate::drawing::{NOW, by_kernel, draw};

    /// A wake-up asked `schedule()` not to read the clock, and the request to reschedule was dropped: the task woken was
    /// moved away.
    #[test]
    fn a_task_that_is_alone_leaves_the_clock_to_the_scheduler() {
        let cpu = CpuId(0);
        let passes = |drawing: &'static str, policy: Policy| {
            move |kernel: &str| {
                let mut drawn = draw(kernel, drawing);
                let (a, sched) = (drawn.task("a"), &mut drawn.sched);
                sched.set_policy(cpu, a, policy, NOW);
                sched.rqs[cpu].clock = NOW.0;
                sched.rqs[cpu].skip_clock_update = true;
                let now = Time(NOW.0 + 1_300_000);
                sched.yield_task(cpu, now);
                sched.schedule(cpu, Deactivate::Yielded, now);
                (sched.rqs[cpu].clock - NOW.0).to_string()
            }
        };
        expect!["v4.13..v7.3: 0"].assert_eq(&by_kernel("", passes("1x1x2 | 0[a*]", Policy::Normal)));
        expect!["v4.13..v7.3: 1300000"].assert_eq(&by_kernel("", passes("1x1x2 | 0[a* b]", Policy::Normal)));
        expect!["v4.13..v7.3: 0"].assert_eq(&by_kernel("", passes("1x1x2 | 0[a* b]", Policy::Fifo(1))));
        expect![[r#"
            v4.13..v6.3: 0
            v6.10..v7.3: 1300000"#]]
        .assert_eq(&by_kernel("", passes("1x1x2 | 0[a* b]", Policy::Batch)));
    }
}
