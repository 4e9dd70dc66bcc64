//! Whether a woken task may interrupt the running one.
//!
//! Kernel: check_preempt_wakeup(), wakeup_preempt_fair(), kernel/sched/fair.c.

use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use crate::class::Class;
use crate::pick::cfs::{Lead, wakeup_preempt_entity};
use crate::{Curr, Entity, Feature, Policy, Reason, Sched, SeId, WakeupPreempt, wf};

/// The decision about a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreemptDecision {
    /// The current task must be preempted.
    pub preempt: bool,
    /// The request is a lazy one.
    pub lazy: bool,
    /// Why, or why not.
    pub reason: Reason,
    /// The number that decided, with its name; for people.
    pub number: Option<(&'static str, i64)>,
    /// Further actions.
    pub then: Then,
}

/// The actions that go with a decision about preemption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Then {
    /// Prefer this entity at the next pick.
    pub next_buddy: Option<SeId>,
    /// Prefer this entity at the pick after it.
    pub last_buddy: Option<SeId>,
    /// End the protection of this entity.
    pub cancel: Option<SeId>,
    /// Prefer this entity at the next pick, unless one with a shorter slice is preferred already.
    pub short_buddy: Option<SeId>,
    /// Clear the marks of this entity.
    pub clear_buddies: Option<SeId>,
    /// Shorten the protection of this entity to the shortest slice queued.
    pub lower: Option<SeId>,
    /// Queue this RT task before the others of its priority.
    pub first: Option<TaskId>,
    /// This entity was in the way but is asleep: complete its dequeue and decide again.
    pub dequeue: Option<SeId>,
}

fn keep(reason: Reason) -> PreemptDecision {
    PreemptDecision { preempt: false, lazy: false, reason, number: None, then: Then::default() }
}

fn preempt(reason: Reason) -> PreemptDecision {
    PreemptDecision { preempt: true, ..keep(reason) }
}

impl PreemptDecision {
    fn with(self, then: Then) -> PreemptDecision {
        PreemptDecision { then, ..self }
    }
}

impl Sched {
    /// Whether a task that was just queued on `cpu` preempts what runs there. The running
    /// entities must be charged up to now.
    ///
    /// Kernel: wakeup_preempt(), kernel/sched/core.c, v6.12.
    pub fn check_preempt(&self, cpu: CpuId, task: TaskId, wake_flags: u32) -> PreemptDecision {
        match self.preempt_by_state(cpu, task) {
            Ok(decision) => decision,
            Err(siblings) => self.preempt_by_time(cpu, siblings, wake_flags),
        }
    }

    /// Decides and acts on it.
    ///
    /// Kernel: wakeup_preempt(), kernel/sched/core.c, v6.12.
    pub fn wakeup_preempt(&mut self, cpu: CpuId, task: TaskId, wake_flags: u32) -> PreemptDecision {
        let decision = self.preempt_for(cpu, task, wake_flags);
        if self.kernel.has(Feature::NextClass) {
            let class = self.class_of(task);
            let rq = &mut self.rqs[cpu];
            rq.next_class = rq.next_class.max(class);
        }
        self.rq_clock_skip_update(cpu);
        decision
    }

    /// The same if no call of the scheduler is assumed to follow at once.
    ///
    /// Kernel: as dl_task_timer() asks, kernel/sched/deadline.c, v6.12.
    pub(crate) fn preempt_for(&mut self, cpu: CpuId, task: TaskId, wake_flags: u32) -> PreemptDecision {
        self.mark_woken(cpu, task, wake_flags);
        let mut decision = match self.preempt_by_state(cpu, task) {
            Ok(decision) => decision,
            Err(siblings) => {
                self.update_curr_fair(siblings.0);
                self.preempt_by_time(cpu, siblings, wake_flags)
            }
        };
        while let Some(se) = decision.then.dequeue {
            self.dequeue_delayed(se);
            decision = self.preempt_by_time(cpu, self.matching(cpu, task), wake_flags);
        }
        self.apply_preempt(cpu, &decision);
        decision
    }

    /// The decision of CFS for a woken task if its virtual time had led to this answer: the woken entity is preferred
    /// at the next pick if it preempts, and is not if it does not.
    pub fn preempt_with_answer(&self, cpu: CpuId, task: TaskId, preempts: bool) -> PreemptDecision {
        let (se, pse) = self.matching(cpu, task);
        if preempts {
            let then = Then { next_buddy: Some(pse), ..self.last_buddy(cpu, se) };
            return self.fair(Reason::PreemptVruntime).with(then);
        }
        let preferred = self.cfs(self.line_of(pse)).next == Some(pse);
        keep(Reason::KeepGranularity)
            .with(Then { clear_buddies: preferred.then_some(pse), ..Then::default() })
    }

    /// Carries out a decision about a task that was queued on `cpu`.
    #[inline]
    pub fn apply_preempt(&mut self, cpu: CpuId, decision: &PreemptDecision) {
        let then = &decision.then;
        if let Some(se) = then.next_buddy {
            self.set_next_buddy(se);
        }
        if let Some(se) = then.cancel {
            let rules = self.kernel.rules;
            self.se_mut(se).cancel_protection(&rules);
        }
        if let Some(se) = then.short_buddy {
            self.set_short_buddy(se);
        }
        if let Some(se) = then.clear_buddies {
            let cfs = self.line_of(se);
            self.clear_buddies(cfs, se);
        }
        if let Some(se) = then.lower {
            let cfs = self.line_of(se);
            self.update_protect_slice(cfs, se);
        }
        if let Some(task) = then.first {
            self.requeue_task_rt(cpu, task, true);
        }
        if decision.preempt {
            self.resched_curr(cpu, decision.lazy);
        }
        if let Some(se) = then.last_buddy {
            self.set_last_buddy(se);
        }
    }

    /// NEXT_BUDDY: the task woken last is marked even if it does not preempt.
    fn mark_woken(&mut self, cpu: CpuId, task: TaskId, wake_flags: u32) {
        let rules = &self.kernel.rules;
        if matches!(rules.wakeup_preempt, WakeupPreempt::PickOrLower | WakeupPreempt::PickOrCancel)
            || !self.kernel.has(Feature::NextBuddy)
            || wake_flags & wf::FORK != 0
            || self.curr_class(cpu) != Class::Fair
            || self.class_of(task) != Class::Fair
            || self.rqs[cpu].curr == Curr::Task(task)
            || self.throttled_hierarchy_of(task)
        {
            return;
        }
        let woken = SeId(task.0);
        let marks = match rules.wakeup_preempt {
            WakeupPreempt::Vruntime => self.is_crowded(cpu),
            WakeupPreempt::PickShort | WakeupPreempt::PickUnprotected => !self.se(woken).sched_delayed,
            _ => true,
        };
        if marks {
            self.set_next_buddy(woken);
        }
    }

    /// Under CFS the last buddy is used for queues with a latency's worth of entities.
    fn is_crowded(&self, cpu: CpuId) -> bool {
        let Curr::Task(curr) = self.rqs[cpu].curr else { return false };
        let cfs = self.cfs_rq_of(SeId(curr.0));
        self.cfs(cfs).nr_queued as u64 >= self.scaled.nr_latency
    }

    /// The running and the woken entity at the level where they are siblings.
    fn matching(&self, cpu: CpuId, task: TaskId) -> (SeId, SeId) {
        let curr = self.rqs[cpu].curr.task().expect("a task runs");
        self.find_matching_se(SeId(curr.0), SeId(task.0))
    }

    /// The answer if it needs no virtual times; otherwise the entities whose times are to be compared: the running one
    /// and the woken one.
    fn preempt_by_state(&self, cpu: CpuId, task: TaskId) -> Result<PreemptDecision, (SeId, SeId)> {
        let rq = &self.rqs[cpu];
        let Curr::Task(curr) = rq.curr else { return Ok(self.full(Reason::PreemptIdle, true)) };
        let (class, curr_class) = (self.class_of(task), self.class_of(curr));
        if class > curr_class {
            return Ok(self.full(Reason::PreemptClass, false));
        }
        if class < curr_class || self.kernel.has(Feature::NextClass) && class < rq.next_class {
            return Ok(keep(Reason::KeepClass));
        }
        if task == curr {
            return Ok(keep(Reason::KeepClass));
        }
        match class {
            Class::Fair => {}
            Class::Rt if self.rt_preempts(cpu, task) => return Ok(self.full(Reason::PreemptClass, false)),
            Class::Dl if self.dl_preempts(cpu, task) => return Ok(self.full(Reason::PreemptClass, false)),
            Class::Rt | Class::Dl if !rq.switches_at_once() && self.makes_room_for(cpu, task, curr) => {
                let then = Then { first: (class == Class::Rt).then_some(task), ..Then::default() };
                return Ok(self.full(Reason::PreemptEqual, false).with(then));
            }
            _ => return Ok(keep(Reason::KeepClass)),
        }
        if self.throttled_hierarchy_of(task) {
            return Ok(keep(Reason::KeepThrottled));
        }
        let asks_again = self.kernel.rules.wakeup_preempt == WakeupPreempt::PickOrCancel
            && self.kernel.has(Feature::PreemptShort);
        if rq.switches_at_once() && !asks_again {
            return Ok(keep(Reason::KeepPending));
        }
        self.preempt_by_policy(cpu, task, curr)
    }

    /// A request of a higher class.
    fn full(&self, reason: Reason, curr_idle: bool) -> PreemptDecision {
        PreemptDecision { lazy: self.kernel.preempt.lazy_request(true, curr_idle), ..preempt(reason) }
    }

    /// A request of a fair task.
    fn fair(&self, reason: Reason) -> PreemptDecision {
        PreemptDecision { lazy: self.kernel.preempt.lazy_request(false, false), ..preempt(reason) }
    }

    /// SCHED_IDLE, BATCH and idle groups.
    fn preempt_by_policy(
        &self,
        cpu: CpuId,
        task: TaskId,
        curr: TaskId,
    ) -> Result<PreemptDecision, (SeId, SeId)> {
        let form = self.kernel.rules.wakeup_preempt;
        let enabled = self.kernel.has(Feature::WakeupPreemption);
        let normal = self.task(task).policy == Policy::Normal;
        let early = matches!(form, WakeupPreempt::Vruntime | WakeupPreempt::Pick);
        if early {
            let (idle, curr_idle) = (self.task(task).has_idle_policy(), self.task(curr).has_idle_policy());
            if curr_idle && !idle {
                return Ok(self.fair(Reason::PreemptSchedIdle).with(self.last_buddy(cpu, SeId(curr.0))));
            }
            if !normal {
                return Ok(keep(Reason::KeepPolicy));
            }
        }
        if !enabled {
            return Ok(keep(Reason::KeepPolicy));
        }
        let (se, pse) = self.find_matching_se(SeId(curr.0), SeId(task.0));
        if !early || self.kernel.has(Feature::IdleGroups) {
            let (idle, curr_idle) = (self.se_is_idle(pse), self.se_is_idle(se));
            if curr_idle && !idle {
                let mut then = self.last_buddy(cpu, se);
                if form != WakeupPreempt::Vruntime && form != WakeupPreempt::Pick {
                    then.cancel = Some(se);
                }
                // The kernel looks for the mark in the running task's own queue, whatever the level is.
                if form == WakeupPreempt::PickOrLower && se.is_task() {
                    then.clear_buddies = Some(se);
                }
                return Ok(self.fair(Reason::PreemptSchedIdle).with(then));
            }
            if form == WakeupPreempt::PickOrCancel {
                return Err((se, pse));
            }
            if curr_idle != idle {
                return Ok(keep(Reason::KeepIdleGroup));
            }
        }
        if normal { Err((se, pse)) } else { Ok(keep(Reason::KeepPolicy)) }
    }

    /// CFS: the preempted entity is to be picked again soon.
    fn last_buddy(&self, cpu: CpuId, se: SeId) -> Then {
        let marks = self.kernel.rules.wakeup_preempt == WakeupPreempt::Vruntime
            && self.kernel.has(Feature::LastBuddy)
            && se.is_task()
            && self.se(se).on_rq
            && self.is_crowded(cpu);
        Then { last_buddy: marks.then_some(se), ..Then::default() }
    }

    /// The answers by virtual time, among siblings.
    fn preempt_by_time(&self, cpu: CpuId, (se, pse): (SeId, SeId), wake_flags: u32) -> PreemptDecision {
        match self.kernel.rules.wakeup_preempt {
            WakeupPreempt::Vruntime => self.preempt_by_vruntime(cpu, se, pse),
            WakeupPreempt::Pick => self.preempt_by_pick(se, pse, None),
            WakeupPreempt::PickShort => {
                let ends = self.do_preempt_short(se, pse);
                self.preempt_by_pick(se, pse, ends.then_some(se))
            }
            WakeupPreempt::PickUnprotected => self.preempt_unprotected(se, pse),
            WakeupPreempt::PickOrLower => self.preempt_or_lower(cpu, se, pse, wake_flags),
            WakeupPreempt::PickOrCancel => self.preempt_or_cancel(cpu, se, pse, wake_flags),
        }
    }

    /// Whether a running entity that is later in virtual time, or a woken one that is earlier, can only make the
    /// answer by virtual times a yes. Of two entities each is owed service unless it is ahead of the other; of three
    /// one may be owed it or not as the others move. A synchronous waker may keep its CPU once the woken one is marked.
    pub fn preempt_is_monotone(&self, running: SeId) -> bool {
        let two = || self.cfs(self.cfs_rq_of(running)).nr_queued == 2 && !self.kernel.has(Feature::NextBuddy);
        self.kernel.rules.wakeup_preempt == WakeupPreempt::Vruntime || two()
    }

    fn preempt_by_vruntime(&self, cpu: CpuId, se: SeId, pse: SeId) -> PreemptDecision {
        let (curr, woken) = (self.se(se), self.se(pse));
        let number = Some(("vdiff", curr.vruntime.wrapping_sub(woken.vruntime) as i64));
        if wakeup_preempt_entity(self.scaled.wakeup_granularity, curr, woken) != Lead::Beyond {
            return PreemptDecision { number, ..keep(Reason::KeepGranularity) };
        }
        let then = Then { next_buddy: Some(pse), ..self.last_buddy(cpu, se) };
        PreemptDecision { number, ..self.fair(Reason::PreemptVruntime) }.with(then)
    }

    /// Preempt if the woken entity would be picked; `cancel` has lost its protection.
    fn preempt_by_pick(&self, se: SeId, pse: SeId, cancel: Option<SeId>) -> PreemptDecision {
        let cfs = self.line_of(se);
        let (picked, reason) = self.pick_eevdf(cfs, cancel.is_none());
        let number = self.deadline_lead(self.se(se), self.se(pse));
        let then = Then { cancel, ..Then::default() };
        let decision = if picked == pse {
            let short = cancel.is_some();
            self.fair(if short { Reason::PreemptShort } else { Reason::PreemptDeadline })
        } else {
            keep(kept(reason))
        };
        PreemptDecision { number, ..decision }.with(then)
    }

    /// Kernel: check_preempt_wakeup_fair(), kernel/sched/fair.c, v6.17, v6.18.
    fn preempt_unprotected(&self, se: SeId, pse: SeId) -> PreemptDecision {
        let short = self.has_shorter_slice(se, pse);
        let mut decision = self.preempt_by_pick(se, pse, short.then_some(se));
        if short && !decision.preempt {
            let lower = self.kernel.has(Feature::RunToParity).then_some(se);
            decision.then = Then { lower, ..Then::default() };
        }
        decision
    }

    /// Whether the woken entity's slice is the shorter one, and that matters.
    fn has_shorter_slice(&self, se: SeId, pse: SeId) -> bool {
        self.kernel.has(Feature::PreemptShort) && self.se(pse).slice < self.se(se).slice
    }

    fn deadline_lead(&self, curr: &Entity, woken: &Entity) -> Option<(&'static str, i64)> {
        Some(("deadline lead", curr.deadline.wrapping_sub(woken.deadline) as i64))
    }

    /// Whether a shorter slice ends the protection of the running entity.
    ///
    /// Kernel: do_preempt_short(), kernel/sched/fair.c, v6.12.
    fn do_preempt_short(&self, se: SeId, pse: SeId) -> bool {
        let cfs = self.line_of(se);
        let (curr, woken) = (self.se(se), self.se(pse));
        self.has_shorter_slice(se, pse)
            && self.entity_eligible(cfs, pse)
            && (crate::cfs_rq::before(woken.deadline, curr.deadline) || !self.entity_eligible(cfs, se))
    }

    /// Kernel: wakeup_preempt_fair(), kernel/sched/fair.c, v7.2.
    fn preempt_or_lower(&self, cpu: CpuId, se: SeId, pse: SeId, wake_flags: u32) -> PreemptDecision {
        let (curr, woken) = (self.se(se), self.se(pse));
        let short = self.has_shorter_slice(se, pse);
        let mut then = Then::default();
        if !short {
            if wake_flags & wf::FORK != 0 || woken.sched_delayed {
                return keep(Reason::KeepForkOrDelayed);
            }
            if self.kernel.has(Feature::NextBuddy) && self.becomes_buddy(se, pse) {
                then.next_buddy = Some(pse);
                if wake_flags & wf::SYNC != 0 {
                    return match self.preempt_sync(cpu, se, pse, wake_flags) {
                        true => self.fair(Reason::PreemptSync).with(then),
                        false => keep(Reason::KeepSync).with(then),
                    };
                }
            }
        }
        let cfs = self.line_of(se);
        if self.nr_competing(cfs) == 0 {
            // The running entity sleeps, and the only other one slept too and has left.
            then.lower = self.kernel.has(Feature::RunToParity).then_some(se);
            return keep(Reason::KeepForkOrDelayed).with(then);
        }
        let (picked, reason) = match then.next_buddy {
            // The mark set above would be found by the pick.
            Some(buddy) if self.picks_buddy(cfs, buddy) => (buddy, Reason::PickNextBuddy),
            _ => self.pick_eevdf(cfs, !short),
        };
        if self.se(picked).sched_delayed {
            then.dequeue = Some(picked);
            return keep(Reason::KeepDeadline).with(then);
        }
        let number = self.deadline_lead(curr, woken);
        if picked != pse {
            then.lower = self.kernel.has(Feature::RunToParity).then_some(se);
            return PreemptDecision { number, ..keep(kept(reason)) }.with(then);
        }
        if short {
            then.cancel = Some(se);
            then.clear_buddies = Some(se);
        }
        let reason = if short { Reason::PreemptShort } else { Reason::PreemptDeadline };
        PreemptDecision { number, ..self.fair(reason) }.with(then)
    }

    /// Kernel: wakeup_preempt_fair(), kernel/sched/fair.c, v7.3.
    fn preempt_or_cancel(&self, cpu: CpuId, se: SeId, pse: SeId, wake_flags: u32) -> PreemptDecision {
        let (curr, woken) = (self.se(se), self.se(pse));
        let cancel = Then { cancel: Some(se), ..Then::default() };
        let lower = Then { lower: self.kernel.has(Feature::RunToParity).then_some(se), ..Then::default() };
        if self.se_is_idle(se) != self.se_is_idle(pse) {
            return keep(Reason::KeepIdleGroup).with(lower);
        }
        if pse.is_task() && self.task(TaskId(pse.0)).policy != Policy::Normal {
            return keep(Reason::KeepPolicy).with(lower);
        }
        let short = self.has_shorter_slice(se, pse);
        if woken.sched_delayed || !short && wake_flags & wf::FORK != 0 {
            return keep(Reason::KeepForkOrDelayed).with(lower);
        }
        let marks = !short && self.kernel.has(Feature::NextBuddy) && self.becomes_buddy(se, pse);
        let next_buddy = marks.then_some(pse);
        if marks && wake_flags & wf::SYNC != 0 {
            return match self.preempt_sync(cpu, se, pse, wake_flags) {
                true => self.fair(Reason::PreemptSync).with(Then { next_buddy, ..cancel }),
                false => keep(Reason::KeepSync).with(Then { next_buddy, ..Then::default() }),
            };
        }
        let cfs = self.line_of(se);
        let (picked, reason) = match next_buddy {
            // The mark set above would be found by the pick.
            Some(buddy) if self.picks_buddy(cfs, buddy) => (buddy, Reason::PickNextBuddy),
            _ => self.pick_eevdf(cfs, !short),
        };
        if self.se(picked).sched_delayed {
            return keep(Reason::KeepDeadline).with(Then { dequeue: Some(picked), ..Then::default() });
        }
        let number = self.deadline_lead(curr, woken);
        let (short_buddy, why) = match short {
            true => (Some(pse), Reason::PreemptShort),
            false => (None, Reason::PreemptDeadline),
        };
        if picked == pse || short && self.entity_eligible(cfs, pse) {
            let then = Then { next_buddy, short_buddy, ..cancel };
            return PreemptDecision { number, ..self.fair(why) }.with(then);
        }
        PreemptDecision { number, ..keep(kept(reason)) }.with(Then { next_buddy, ..lower })
    }

    /// Kernel: set_short_buddy(), kernel/sched/fair.c, v7.3.
    fn set_short_buddy(&mut self, se: SeId) {
        let cfs = self.line_of(se);
        let slice = |se: SeId| self.se(se).slice;
        if self.cfs(cfs).next.is_none_or(|next| slice(next) >= slice(se)) {
            self.set_next_buddy(se);
        }
    }

    fn picks_buddy(&self, cfs: crate::CfsRqId, buddy: SeId) -> bool {
        self.nr_competing(cfs) > 1 && self.kernel.has(Feature::PickBuddy) && self.entity_eligible(cfs, buddy)
    }

    /// Whether the woken entity may take the mark from the one that has it.
    ///
    /// Kernel: set_preempt_buddy(), kernel/sched/fair.c, v7.2.
    fn becomes_buddy(&self, se: SeId, pse: SeId) -> bool {
        let cfs = self.line_of(se);
        let holder = self.cfs(cfs).next;
        !holder.is_some_and(|next| crate::cfs_rq::before(self.se(next).deadline, self.se(pse).deadline))
    }

    /// Whether a synchronous waker has run long enough to be preempted.
    ///
    /// Kernel: preempt_sync(), kernel/sched/fair.c, v7.2.
    fn preempt_sync(&self, cpu: CpuId, se: SeId, pse: SeId, wake_flags: u32) -> bool {
        let (curr, woken) = (self.se(se), self.se(pse));
        let mut threshold = self.kernel.tunables.migration_cost_ns;
        if wake_flags & wf::RQ_SELECTED != 0 {
            threshold >>= 2;
        }
        let ran = (self.rqs[cpu].clock_task.wrapping_sub(curr.exec_start) as i64).max(0) as u64;
        crate::cfs_rq::before(woken.deadline, curr.deadline) && ran >= threshold
    }
}

/// Why the woken entity was not picked.
fn kept(picked: Reason) -> Reason {
    match picked {
        Reason::PickProtected => Reason::KeepProtected,
        _ => Reason::KeepDeadline,
    }
}
