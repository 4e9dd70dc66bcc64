//! Explanations: what a decision chose and why, emitted just before the event it explains.
//!
//! Made only for a sink that requests them.

use schedlab_sched::{
    BalanceDecision, Curr, MigrationCause, PreemptDecision, Reason, Scheduler, Switched, WakePath,
    WakeupDecision,
};
use schedlab_topology::CpuId;
use schedlab_trace::{
    Balance, Candidate, Decided, How, IdleType, Kind, Name, Newidle, Number, Pick, Placement, Preemption,
    Resched, What,
};
use schedlab_units::{Pid, TaskId};

use crate::emit::Context;
use crate::engine::{Engine, Told};

fn numbers(number: Option<(&'static str, i64)>) -> Vec<Number> {
    number.map(|(name, value)| (Name::from(name), value)).into_iter().collect()
}

/// Rejected CPUs in the form of the trace.
fn candidates(passed_over: Vec<schedlab_sched::Candidate>) -> Vec<Candidate> {
    let told = |c: schedlab_sched::Candidate| Candidate { cpu: c.cpu, refused: c.refused.name().into() };
    passed_over.into_iter().map(told).collect()
}

/// The rule by which a woken task goes where it goes.
pub(crate) fn wakeup_reason(decision: &WakeupDecision) -> Reason {
    match (decision.path, &decision.placement) {
        (_, Some(placement)) => placement.reason,
        (WakePath::SelfWake, None) => Reason::WakeSelf,
        (WakePath::StillQueued, None) => Reason::StillQueued,
        (WakePath::StillDelayed, None) => Reason::StillDelayed,
        (WakePath::OnCpuHandover | WakePath::Select, None) => Reason::OnCpuHandover,
    }
}

impl<S: Scheduler> Engine<'_, S> {
    fn pid_of(&self, curr: Curr) -> Pid {
        curr.task().map_or(Pid::IDLE, |task| self.tasks[task.index()].pid)
    }

    /// A rule decided.
    #[inline]
    pub fn decided(&mut self, what: What, reason: Reason) {
        if self.counting {
            self.told.push(Told::Decided(Decided { time: self.now, what, reason }));
        }
    }

    /// The rules of the balance passes since the last call.
    #[inline]
    pub fn count_balance(&mut self) {
        if self.sched.balance_reasons().is_some_and(|reasons| !reasons.is_empty()) {
            self.tell_balance_reasons();
        }
    }

    fn tell_balance_reasons(&mut self) {
        let Some(reasons) = self.sched.balance_reasons() else { return };
        let time = self.now;
        let what = |reason: Reason| if reason.is_newidle() { What::Newidle } else { What::Balance };
        let told = |reason| Told::Decided(Decided { time, what: what(reason), reason });
        self.told.extend(reasons.drain(..).map(told));
    }

    /// Makes the scheduler log its balance passes as far as the sink wants them.
    pub fn log_balancing(&mut self) {
        self.sched.log_balance(self.explaining);
        self.sched.log_balance_reasons(self.counting);
    }

    /// Why a woken task goes where it goes.
    pub fn explain_wakeup(
        &mut self,
        cpu: CpuId,
        context: Context,
        task: TaskId,
        prev_cpu: CpuId,
        decision: &WakeupDecision,
        passed_over: Vec<schedlab_sched::Candidate>,
    ) {
        let reason = wakeup_reason(decision);
        let affine = decision.placement.as_ref().and_then(|placement| placement.affine);
        let mut told = Vec::new();
        if let Some(placement) = &decision.placement {
            told = numbers(placement.affine_number);
            told.extend(numbers(placement.number));
            told.push(("examined".into(), i64::from(placement.examined)));
        }
        if let Some((why, _)) = affine {
            told.push((why.name().into(), 1));
        }
        let placement = Placement {
            pid: self.tasks[task.index()].pid,
            how: How::Wakeup,
            prev_cpu,
            target: affine.map_or(prev_cpu, |(_, target)| target),
            cpu: decision.cpu,
            reason: reason.name().into(),
            numbers: told,
            examined: candidates(passed_over),
            remote: decision.remote,
        };
        self.emit(cpu, context, Kind::Placement(Box::new(placement)));
    }

    /// Why a new task, or one with a new program, is put where it is.
    pub fn explain_placement(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        how: How,
        chosen: &schedlab_sched::Placement,
        passed_over: Vec<schedlab_sched::Candidate>,
    ) {
        let mut told = numbers(chosen.number);
        told.push(("examined".into(), i64::from(chosen.examined)));
        let prev_cpu = self.sched.task(task).cpu;
        let placement = Placement {
            pid: self.tasks[task.index()].pid,
            how,
            prev_cpu,
            target: prev_cpu,
            cpu: chosen.cpu,
            reason: chosen.reason.name().into(),
            numbers: told,
            examined: candidates(passed_over),
            remote: false,
        };
        self.emit(cpu, Context::Task, Kind::Placement(Box::new(placement)));
    }

    /// Why a task was moved, if no placement and no balance pass explains it.
    pub fn explain_move(
        &mut self,
        cpu: CpuId,
        context: Context,
        task: TaskId,
        (from, to): (CpuId, CpuId),
        cause: MigrationCause,
    ) {
        let (how, reason) = match cause {
            MigrationCause::Push => (How::Push, Reason::PushLower),
            MigrationCause::Pull => (How::Pull, Reason::PullHigher),
            MigrationCause::Active if self.sched.keeps_passes() => (How::Move, Reason::MoveActive),
            MigrationCause::Affinity => (How::Move, Reason::MoveAffinity),
            MigrationCause::Wakeup | MigrationCause::Fork | MigrationCause::Exec => return,
            _ if self.sched.keeps_passes() => return,
            _ => (How::Move, Reason::TreeDecides),
        };
        self.decided(What::Placement(how), reason);
        if !self.explaining {
            return;
        }
        let placement = Placement {
            pid: self.tasks[task.index()].pid,
            how,
            prev_cpu: from,
            target: from,
            cpu: to,
            reason: reason.name().into(),
            numbers: Vec::new(),
            examined: Vec::new(),
            remote: false,
        };
        self.emit(cpu, context, Kind::Placement(Box::new(placement)));
    }

    /// Whether the running task of a CPU is preempted by a task that was queued there.
    pub fn explain_preemption(
        &mut self,
        cpu: CpuId,
        context: Context,
        task: TaskId,
        at: &'static str,
        decision: &PreemptDecision,
    ) {
        let there = self.sched.task(task).cpu;
        let resched = match (decision.preempt, decision.lazy) {
            (false, _) => Resched::None,
            (true, true) => Resched::Lazy,
            (true, false) => Resched::Full,
        };
        let preemption = Preemption {
            pid: self.tasks[task.index()].pid,
            curr: self.pid_of(self.sched.curr(there)),
            at: at.into(),
            reason: decision.reason.name().into(),
            resched,
            numbers: numbers(decision.number),
        };
        self.emit(cpu, context, Kind::Preemption(Box::new(preemption)));
    }

    /// Why the next task was picked.
    pub fn explain_pick(&mut self, cpu: CpuId, switched: &Switched) {
        let pick =
            Pick { pid: self.pid_of(switched.next), reason: switched.reason.name().into(), numbers: vec![] };
        self.emit(cpu, Context::Task, Kind::Pick(Box::new(pick)));
    }

    /// The balance passes since the last call.
    pub fn explain_balance(&mut self, cpu: CpuId, context: Context) {
        for pass in self.sched.balance_log() {
            let balance = self.told_balance(&pass);
            self.emit(cpu, context, Kind::Balance(Box::new(balance)));
        }
        for newidle in self.sched.newidle_log() {
            let outcome = newidle.outcome;
            let mut told = vec![("avg_idle".into(), newidle.avg_idle as i64)];
            told.extend(newidle.max_cost.map(|ns| ("max_newidle_lb_cost".into(), ns as i64)));
            told.push(("cost".into(), outcome.cost_ns as i64));
            told.push(("examined".into(), i64::from(outcome.examined)));
            let (dst_cpu, reason) = (newidle.cpu, outcome.reason.name().into());
            let newidle = Newidle { dst_cpu, reason, pulled: outcome.pulled, numbers: told };
            self.emit(cpu, context, Kind::Newidle(Box::new(newidle)));
        }
    }

    fn told_balance(&self, pass: &BalanceDecision) -> Balance {
        let domains = self.sched.domains();
        let span = |group| (*domains.sg(group).span).clone();
        let local = pass.groups.iter().find(|seen| seen.local).map(|seen| span(seen.group));
        let mut told = numbers(pass.number);
        told.push(("examined".into(), i64::from(pass.examined)));
        if pass.active {
            told.push(("active".into(), 1));
        }
        // A task that may not run on the balancing CPU goes to another CPU of its group.
        let elsewhere = pass.moves().find(|&(_, to)| to != pass.cpu);
        told.extend(elsewhere.map(|(_, to)| ("new_dst_cpu".into(), i64::from(to.0))));
        Balance {
            dst_cpu: pass.cpu,
            src_cpu: pass.src,
            domain: Name::from(domains.sd(pass.sd).name.to_string()),
            idle: match pass.idle {
                schedlab_sched::IdleType::NotIdle => IdleType::Busy,
                schedlab_sched::IdleType::Idle => IdleType::Idle,
                schedlab_sched::IdleType::NewlyIdle => IdleType::NewlyIdle,
            },
            local: local.unwrap_or_default(),
            busiest: pass.busiest.map(span).unwrap_or_default(),
            reason: pass.reason.name().into(),
            migration: pass.migration_type.name().into(),
            imbalance: pass.imbalance,
            numbers: told,
            moved: pass.moves().map(|(task, _)| self.tasks[task.index()].pid).collect(),
        }
    }
}
