//! Carries out the decision of a pass, whatever made it.

use alloc::vec::Vec;

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::{BalanceDecision, Step};
use crate::{CandidateOrder, DequeueFlags, Effect, EnqueueFlags, IdleType, MigrationCause, Sched, Shared};

impl Sched {
    /// Moves the tasks, starts the stopper, and sets the marks of the pass.
    ///
    /// Kernel: load_balance(), kernel/sched/fair.c, v6.12.
    pub fn apply_balance(&mut self, decision: &BalanceDecision, now: Time) {
        self.read_clocks(decision, now);
        self.apply_overload(decision);
        self.apply_moves(decision, now);
        self.apply_marks(decision);
    }

    /// Sets the marks of the pass and moves nothing.
    pub fn apply_balance_marks(&mut self, decision: &BalanceDecision, now: Time) {
        self.read_clocks(decision, now);
        self.apply_overload(decision);
        self.apply_marks(decision);
    }

    /// Whether some CPU has more than one task, as the statistics of the pass saw it: the tasks that it moves then, and
    /// the stopper that it wakes, can only set the flag.
    ///
    /// Kernel: update_sd_lb_stats(), kernel/sched/fair.c, v6.1; add_nr_running(), kernel/sched/sched.h.
    fn apply_overload(&mut self, decision: &BalanceDecision) {
        if let Some(overload) = decision.overload {
            self.domains.overload = overload;
        }
    }

    /// The lock of each source is taken and its clock read, whether anything can be moved or not.
    fn read_clocks(&mut self, decision: &BalanceDecision, now: Time) {
        for &src in &decision.sources {
            self.update_rq_clock(src, now);
        }
    }

    fn apply_marks(&mut self, decision: &BalanceDecision) {
        let sd = self.domains.sd_mut(decision.sd);
        sd.nr_balance_failed = decision.nr_balance_failed;
        sd.balance_interval = decision.balance_interval;
        let parent = sd.parent;
        if let (Some(mark), Some(parent)) = (decision.group_imbalance, parent) {
            let group = self.domains.sd(parent).groups.local();
            let sgc = self.domains.sg(group).sgc as usize;
            self.domains.sgcs[sgc].imbalance = mark;
        }
        if let Some((shared, scan)) = decision.nr_idle_scan {
            self.domains.shared[shared.0 as usize].nr_idle_scan = scan;
        }
        for &(shared, util, capacity) in &decision.llc_stats {
            let shared = &mut self.domains.shared[shared.0 as usize];
            (shared.util_avg, shared.capacity) = (util, capacity);
        }
        for &process in &decision.llc_unfit {
            if let Some(group) = self.sched_cache.groups.get_mut(process) {
                group.cpu = None;
            }
        }
        let (cpu, examined, moved) = (decision.cpu, decision.examined, decision.moved);
        self.effects.push(Effect::Balanced { cpu, examined, moved });
        if self.keeps_balance_reasons {
            self.balance_reasons.push(decision.reason);
        }
        if let Some(log) = &mut self.balance_log {
            log.push(decision.clone());
        }
    }

    /// Moves the tasks and requests the stopper to move the running one.
    fn apply_moves(&mut self, decision: &BalanceDecision, now: Time) {
        let Some(src) = decision.src else { return };
        let cause = match decision.idle {
            IdleType::NewlyIdle => MigrationCause::NewlyIdle,
            _ if self.nohz_balancing.is_some() => MigrationCause::Nohz,
            _ => MigrationCause::Periodic,
        };
        let by = decision.cpu;
        let mut batch: Vec<TaskId> = Vec::new();
        if !decision.steps.is_empty() {
            self.effects.push(Effect::lock(by, Shared::Rq(src)));
        }
        for step in &decision.steps {
            match *step {
                Step::Detach { task, to } => {
                    self.effects.push(Effect::write(by, Shared::Task(task)));
                    let flags = DequeueFlags { migrate: true, ..DequeueFlags::default() };
                    self.deactivate(task, flags, now);
                    self.set_task_cpu(task, to, cause, now);
                    batch.push(task);
                }
                // One round may refuse a task that another round moves, and repeated rounds may have examined another
                // CPU.
                Step::Skip { task, .. } => {
                    self.effects.push(Effect::read(by, Shared::Task(task)));
                    let cpu = self.task(task).cpu;
                    match self.kernel.rules.candidate_order {
                        CandidateOrder::LeastRecentlyRun => self.cfs_tasks_move_to_head(cpu, task),
                        CandidateOrder::NewestFirst => self.cfs_tasks_move_to_tail(cpu, task),
                    }
                }
                Step::Attach { to } => {
                    self.effects.push(Effect::lock(by, Shared::Rq(to)));
                    while let Some(task) = batch.pop() {
                        self.attach_task(task, to, now);
                    }
                }
            }
        }
        if decision.active {
            self.rqs[src].active_balance = true;
            self.rqs[src].active_balance_llc = decision.active_llc;
            let by = self.nohz_balancing.unwrap_or(decision.cpu);
            self.stopper_asked(by, src);
            self.effects.push(Effect::ActiveBalance { by, cpu: src, to: decision.cpu });
        }
    }

    /// Queues a task that was moved and lets it preempt.
    ///
    /// Kernel: attach_task(), kernel/sched/fair.c, v6.12.
    pub(super) fn attach_task(&mut self, task: TaskId, to: CpuId, now: Time) {
        let flags = EnqueueFlags { migrated: true, ..EnqueueFlags::default() };
        self.activate(task, to, flags, now);
        self.wakeup_preempt(to, task, 0);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use expect_test::expect;

    use crate::balance::drawings::Pass;
    use crate::drawing::{NOW, by_kernel};

    #[test]
    fn a_stopper_that_a_pass_wakes_marks_the_machine_as_overloaded() {
        let after = |kernel: &str| {
            let mut pass = Pass::new(kernel, "1x1x2 | 0[a* ;capacity=600] 1[]", "cpu=1 idle");
            let sched = &mut pass.drawn.sched;
            sched.domains.overload = false;
            let decision = sched.load_balance(pass.cpu, pass.sd, pass.idle, NOW);
            format!("active {}, overloaded {}", decision.active, sched.domains.overload)
        };
        expect![[r#"
            v4.13..v5.18: active false, overloaded false
            v6.1..v7.3: active true, overloaded true"#]]
        .assert_eq(&by_kernel("", after));
    }
}
