//! Which task balancing moves, its source and destination, given everything that the trace leaves open.
//!
//! A recorded move shows for which CPU a pass was made and over which domain: the lowest domain of the destination that
//! spans the source, because in any higher one both are in the same group. It does not show how often the domain's
//! passes failed before, the exact averages, the order of tasks in the source's list, or the mark that affinity leaves
//! on a group. The balancer is asked with the shadow's values first, then with other values that these facts may have.

use schedlab_sched::{BalanceDecision, Curr, IdleType, SdId, Supposed};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::Event;
use schedlab_units::{Pid, TaskId, Time};

use crate::follow::leaving;
use crate::report::verdict::{Choice, Possible};
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;
use crate::unknown::loads;
use crate::unknown::{balance_time, imbalance_mark};

/// How a move was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A balancing pass for this CPU, with this idle type.
    Pass(CpuId, IdleType),
    /// The source's stopper, asked by a pass.
    Active,
    /// The push or pull of a real-time or deadline task.
    PushPull,
    /// Not balancing: a change of affinity or an exec.
    Other,
}

/// A recorded move.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// The task.
    pub task: TaskId,
    /// The source.
    pub from: CpuId,
    /// The destination.
    pub to: CpuId,
}

/// What caused a move; `asked`: the source's stopper was requested. `ahead` contains the events that follow.
pub fn occasion<'a>(
    shadow: &Shadow,
    asked: bool,
    event: &Event,
    moved: Moved,
    ahead: impl Iterator<Item = &'a Event>,
) -> Occasion {
    let Moved { task, from, to } = moved;
    let by_stopper = event.comm.as_bytes().starts_with(b"migration/");
    if !shadow.sched.task(task).policy.is_fair() {
        let here = event.cpu == from || event.cpu == to;
        return if here && !by_stopper { Occasion::PushPull } else { Occasion::Other };
    }
    if by_stopper {
        return if asked && event.cpu == from { Occasion::Active } else { Occasion::Other };
    }
    if event.flags.in_interrupt() || event.comm.as_bytes().starts_with(b"ksoftirqd/") {
        let idles = |cpu| shadow.sched.idle_cpu(cpu) || shadow.sched.rqs[cpu].curr == Curr::Idle;
        // A CPU that balances for others does so for idle CPUs, so the state of the destination shows it. If the
        // destination is busy and the task may not run on this CPU, the pass was for this CPU and picked a destination
        // that the task may use (LBF_DST_PINNED).
        let pinned = !idles(to) && !shadow.sched.task(task).allowed.contains(event.cpu);
        let by = if pinned { event.cpu } else { to };
        return Occasion::Pass(by, if idles(by) { IdleType::Idle } else { IdleType::NotIdle });
    }
    // An idle CPU with a pending reschedule can also find an empty queue.
    if to == event.cpu && (event.pid == Pid::IDLE || leaving::leaves(event, ahead).is_some()) {
        Occasion::Pass(to, IdleType::NewlyIdle)
    } else {
        Occasion::Other
    }
}

/// Idle CPUs for which a pass may have moved the task to another CPU of their group because the task may not run on
/// them.
pub fn idle_beside(shadow: &Shadow, moved: Moved) -> Vec<CpuId> {
    let below = shadow.sched.domains.walk(moved.to).map(|(_, sd)| &sd.span);
    let group = below.take_while(|span| !span.contains(moved.from)).last();
    let allowed = &shadow.sched.task(moved.task).allowed;
    let beside = |cpu: &CpuId| shadow.sched.idle_cpu(*cpu) && !allowed.contains(*cpu);
    group.map_or_else(Vec::new, |group| group.iter().filter(beside).collect())
}

/// What a pass may move, the most likely first. Unknown facts are varied until one value leads to the recorded move.
pub fn of_pass(shadow: &mut Shadow, asked: Asked, moved: Moved, now: Time) -> Vec<Possible> {
    let both = |span: &CpuMask| span.contains(moved.from) && span.contains(moved.to);
    let common = shadow.sched.domains.walk(asked.by).find(|(_, sd)| both(&sd.span)).map(|(id, _)| id);
    let Some(sd) = common else { return Vec::new() };
    let pass = Pass { sd, asked, moved, now };
    let mut found = Vec::new();
    // A CPU that does not balance on behalf of its group does not do so whatever the hidden facts are.
    let makes = pass.ask_all(shadow, None, &mut found);
    if makes && !pass.is_in(shadow, &found) {
        pass.with_mark(shadow, &mut found);
    }
    if makes && !pass.is_in(shadow, &found) {
        pass.with_averages(shadow, &mut found);
    }
    found
}

/// A quick check whether a pass can lead to the recorded move at all: the task is queued there, is not running and is
/// not alone.
pub fn may_move(shadow: &Shadow, asked: Asked, moved: Moved) -> bool {
    let Moved { task, from, .. } = moved;
    let (entry, rq) = (shadow.sched.task(task), &shadow.sched.rqs[from]);
    asked.active || entry.on_rq && entry.cpu == from && rq.curr != Curr::Task(task) && rq.nr_running > 1
}

/// The CPU for which a pass is made, and how.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The CPU that pulls.
    pub by: CpuId,
    /// Its idle type.
    pub idle: IdleType,
    /// Whether the pass asks the stopper to move the running task.
    pub active: bool,
}

/// One pass, evaluated under several assumptions.
struct Pass {
    sd: SdId,
    asked: Asked,
    moved: Moved,
    now: Time,
}

impl Pass {
    fn is_in(&self, shadow: &Shadow, found: &[Possible]) -> bool {
        let choice = choice(shadow, self.moved);
        found.iter().any(|possible| possible.choice == choice)
    }

    /// Adds what the pass does in the current state. If that does not lead to the recorded move, also tries other
    /// numbers of failed passes. Returns whether the pass is made at all.
    fn ask_all(&self, shadow: &Shadow, hidden: Option<Unknown>, found: &mut Vec<Possible>) -> bool {
        self.ask_supposing(shadow, None, hidden, found)
    }

    /// The same, with other values of the state.
    fn ask_supposing(
        &self,
        shadow: &Shadow,
        supposed: Option<&Supposed>,
        hidden: Option<Unknown>,
        found: &mut Vec<Possible>,
    ) -> bool {
        let (src, makes) = self.ask(shadow, supposed, hidden, found);
        let may_hang = src.is_some() || makes && shadow.sched.sched_cache_active();
        if may_hang && !self.is_in(shadow, found) {
            let supposed = supposed.copied().unwrap_or(Supposed::NOTHING);
            self.with_failures(shadow, supposed, src, Some(hidden.unwrap_or(Unknown::BalanceTime)), found);
        }
        makes
    }

    /// Adds what the pass does. Returns the source CPU, if any, and whether the pass is made at all.
    fn ask(
        &self,
        shadow: &Shadow,
        supposed: Option<&Supposed>,
        hidden: Option<Unknown>,
        found: &mut Vec<Possible>,
    ) -> (Option<CpuId>, bool) {
        let view =
            supposed.map_or_else(|| shadow.view(self.now), |supposed| shadow.supposed(self.now, supposed));
        let decision = view.decide_balance(self.asked.by, self.sd, self.asked.idle);
        self.tell(shadow, &decision, hidden, found);
        (decision.src, decision.continue_balancing || decision.src.is_some())
    }

    fn tell(
        &self,
        shadow: &Shadow,
        decision: &BalanceDecision,
        hidden: Option<Unknown>,
        found: &mut Vec<Possible>,
    ) {
        let Moved { task, from, to } = self.moved;
        if self.asked.active {
            // The stopper runs later; the task that is running by then is moved if it may be.
            let choice = match (decision.active, decision.src) {
                (true, Some(src)) if src == from => choice(shadow, self.moved),
                (true, Some(src)) => nobody(src, to),
                _ => Choice::Nothing,
            };
            return add(found, choice, decision, hidden);
        }
        if decision.moved == 0 {
            add(found, Choice::Nothing, decision, hidden);
            if decision.src == Some(from)
                && shadow.may_be_taken(task, from, to)
                && shadow.pass_ends_before_all(from)
            {
                add(found, choice(shadow, self.moved), decision, Some(hidden.unwrap_or(Unknown::TaskOrder)));
            }
            return;
        }
        let src = decision.src.unwrap_or(to);
        let mut moves = decision.moves();
        if src == from && moves.any(|moved| moved == (task, to)) {
            return add(found, choice(shadow, self.moved), decision, hidden);
        }
        if let Some((first, to)) = decision.moves().next() {
            add(found, choice(shadow, Moved { task: first, from: src, to }), decision, hidden);
        }
        let may_move = decision.moves().any(|(_, cpu)| cpu == to) && shadow.may_be_taken(task, from, to);
        if src == from && may_move {
            // Which task it takes depends on the order of a list, which the trace shows only in part.
            add(found, choice(shadow, self.moved), decision, Some(hidden.unwrap_or(Unknown::TaskOrder)));
        }
    }

    /// Tries other counts of failed passes. They allow a pass to take hot or large tasks, and in the end to request the
    /// stopper.
    fn with_failures(
        &self,
        shadow: &Shadow,
        supposed: Supposed,
        src: Option<CpuId>,
        hidden: Option<Unknown>,
        found: &mut Vec<Possible>,
    ) {
        balance_time::each_failure(shadow, self.sd, src != Some(self.moved.from), |failed| {
            let supposed = Supposed { nr_balance_failed: Some(failed), ..supposed };
            let (src, _) = self.ask(shadow, Some(&supposed), hidden, found);
            (!self.is_in(shadow, found)).then_some(src != Some(self.moved.from))
        });
    }

    /// Tries other flags of an affinity imbalance.
    fn with_mark(&self, shadow: &Shadow, found: &mut Vec<Possible>) {
        for marks in imbalance_mark::of_move(shadow, self.sd, self.moved.from) {
            let supposed = Supposed { imbalance: &marks, ..Supposed::NOTHING };
            self.ask_supposing(shadow, Some(&supposed), Some(Unknown::ImbalanceMark), found);
            if self.is_in(shadow, found) {
                return;
            }
        }
    }

    /// Tries the highest load at the source and the lowest at the destination, first for the source alone, then for its
    /// whole group.
    fn with_averages(&self, shadow: &mut Shadow, found: &mut Vec<Possible>) {
        let Moved { from, to, .. } = self.moved;
        for averages in loads::for_move(shadow, from, to, self.now) {
            loads::as_if(shadow, &averages, |shadow| _ = self.ask_all(shadow, Some(Unknown::Loads), found));
            if self.is_in(shadow, found) {
                return;
            }
        }
    }
}

fn add(found: &mut Vec<Possible>, choice: Choice, decision: &BalanceDecision, hidden: Option<Unknown>) {
    if found.iter().any(|possible| possible.choice == choice) {
        return;
    }
    let hidden = if found.is_empty() && hidden != Some(Unknown::TaskOrder) { None } else { hidden };
    let numbers = decision.number.into_iter().collect();
    found.push(Possible { choice, reason: decision.reason.name(), hidden, numbers });
}

/// The choice in printable form.
pub fn choice(shadow: &Shadow, moved: Moved) -> Choice {
    Choice::Move { pid: shadow.known(moved.task).pid, from: moved.from, to: moved.to }
}

fn nobody(from: CpuId, to: CpuId) -> Choice {
    Choice::Move { pid: Pid::IDLE, from, to }
}
