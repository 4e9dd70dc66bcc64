//! Carries out a pass, step by step.

use alloc::vec::Vec;
use core::ops::ControlFlow;

use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use super::env::LbEnv;
use super::{BalanceDecision, Step};
use crate::{
    CandidateOrder, DequeueFlags, Effect, EnqueueFlags, IdleType, MigrationCause, Sched, SdId, Shared, View,
};

/// How far a pass was carried out.
#[derive(Default)]
struct Done {
    /// Steps.
    steps: usize,
    /// Tasks that were taken off and are not queued again.
    batch: Vec<TaskId>,
}

impl Sched {
    /// Decides a pass and carries it out: moves the tasks, each before the pass examines the next candidate, starts the
    /// stopper, and sets the marks.
    ///
    /// Kernel: load_balance(), detach_tasks(), kernel/sched/fair.c, v6.12.
    pub fn decide_and_balance(&mut self, cpu: CpuId, sd: SdId, idle: IdleType, now: Time) -> BalanceDecision {
        let mut done = Done::default();
        let mut env = LbEnv::new(self, cpu, sd, idle, now);
        env.stops = true;
        let decision = loop {
            match env.decide() {
                ControlFlow::Break(decision) => break decision,
                ControlFlow::Continue(notes) => {
                    self.carry_out(&notes.decision, &mut done, now);
                    env = LbEnv::with(View::new(self, now, None), notes);
                }
            }
        };
        self.carry_out(&decision, &mut done, now);
        self.ask_for_active_balance(&decision);
        self.apply_marks(&decision);
        decision
    }

    /// Sets the marks of the pass and moves nothing.
    pub fn apply_balance_marks(&mut self, decision: &BalanceDecision, now: Time) {
        self.read_clocks(decision, now);
        self.apply_overload(decision);
        self.forget_preferences(decision);
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
        let (cpu, examined, moved) = (decision.cpu, decision.examined, decision.moved);
        self.effects.push(Effect::Balanced { cpu, examined, moved });
        if self.keeps_balance_reasons {
            self.balance_reasons.push(decision.reason);
        }
        if let Some(log) = &mut self.balance_log {
            log.push(decision.clone());
        }
    }

    /// Processes that the pass found too large for a cache prefer none: already when a task that it takes off charges the
    /// running one.
    ///
    /// Kernel: can_migrate_llc_task(), kernel/sched/fair.c, v7.2.
    fn forget_preferences(&mut self, decision: &BalanceDecision) {
        for &process in &decision.llc_unfit {
            if let Some(group) = self.sched_cache.groups.get_mut(process) {
                group.cpu = None;
            }
        }
    }

    /// Carries out the steps that were added since the last time.
    fn carry_out(&mut self, decision: &BalanceDecision, done: &mut Done, now: Time) {
        let begins = done.steps == 0;
        if begins {
            self.read_clocks(decision, now);
            self.apply_overload(decision);
        }
        self.forget_preferences(decision);
        let Some(src) = decision.src else { return };
        let cause = match decision.idle {
            IdleType::NewlyIdle => MigrationCause::NewlyIdle,
            _ if self.nohz_balancing.is_some() => MigrationCause::Nohz,
            _ => MigrationCause::Periodic,
        };
        let by = decision.cpu;
        if begins && !decision.steps.is_empty() {
            self.effects.push(Effect::lock(by, Shared::Rq(src)));
        }
        for step in &decision.steps[done.steps..] {
            match *step {
                Step::Detach { task, to } => {
                    self.effects.push(Effect::write(by, Shared::Task(task)));
                    let flags = DequeueFlags { migrate: true, ..DequeueFlags::default() };
                    self.deactivate(task, flags, now);
                    self.set_task_cpu(task, to, cause, now);
                    done.batch.push(task);
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
                    while let Some(task) = done.batch.pop() {
                        self.attach_task(task, to, now);
                    }
                }
            }
        }
        done.steps = decision.steps.len();
    }

    /// Requests the stopper of the source to move the running task.
    fn ask_for_active_balance(&mut self, decision: &BalanceDecision) {
        let Some(src) = decision.src.filter(|_| decision.active) else { return };
        self.rqs[src].active_balance = true;
        self.rqs[src].active_balance_llc = decision.active_llc;
        let by = self.nohz_balancing.unwrap_or(decision.cpu);
        self.stopper_asked(by, src);
        self.effects.push(Effect::ActiveBalance { by, cpu: src, to: decision.cpu });
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
    use schedlab_topology::CpuId;

    use crate::TgId;
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

    /// Tasks of a group within a group leave CPU 1, and then those of the outer group count for more of what is left there.
    #[test]
    fn a_task_that_was_taken_off_changes_what_the_next_candidate_counts() {
        let made = |at_once: bool| {
            move |kernel: &str| {
                let mut pass = Pass::new(
                    kernel,
                    "1x1x2 | 0[x* ;util=1000 load=900] 1[a* b c d e ;util=1000]",
                    "cpu=0 busy",
                );
                let tasks = ["b", "c", "d", "e"].map(|name| pass.drawn.task(name));
                let sched = &mut pass.drawn.sched;
                let outer = sched.new_group(TgId::ROOT, 1024 << 10, CpuId(1), NOW);
                let inner = sched.new_group(outer, 1024 << 10, CpuId(1), NOW);
                for (task, tg) in tasks.into_iter().zip([inner, inner, outer, outer]) {
                    sched.move_task_to_group(task, tg, NOW);
                }
                for (tg, load) in [(outer, 700), (inner, 200)] {
                    let (se, cfs) = (sched.tg(tg).se[1], sched.tg(tg).cfs_rq[1]);
                    (sched.se_mut(se).avg.load_avg, sched.cfs_mut(cfs).avg.load_avg) = (load, load);
                }
                for (task, load) in tasks.into_iter().zip([100, 100, 250, 250]) {
                    sched.task_mut(task).se.avg.load_avg = load;
                }
                let (cpu, sd, idle) = (pass.cpu, pass.sd, pass.idle);
                let decision = match at_once {
                    true => pass.drawn.sched.decide_balance(cpu, sd, idle, NOW),
                    false => pass.drawn.sched.load_balance(cpu, sd, idle, NOW),
                };
                pass.words(&decision)
            }
        };
        expect![[r#"
            v4.13: LB_LOAD load 573 from 1, e to 0, d to 0, c to 0
            v5.5: LB_LOAD load 576 from 1, a Running, b to 0, c to 0, d to 0, e TooLarge
            v5.18..v7.3: LB_LOAD load 574 from 1, a Running, b to 0, c to 0, d to 0, e TooLarge"#]]
        .assert_eq(&by_kernel("", made(true)));
        expect![[r#"
            v4.13: LB_LOAD load 573 from 1, e to 0, d to 0, c TooLarge, b TooLarge, a Running
            v5.5: LB_LOAD load 576 from 1, a Running, b to 0, c to 0, d to 0
            v5.18..v7.3: LB_LOAD load 574 from 1, a Running, b to 0, c to 0, d TooLarge, e TooLarge"#]]
        .assert_eq(&by_kernel("", made(false)));
    }
}
