//! Which task balancing moves, from where to where, under all that the trace leaves open.
//!
//! A recorded move says for whom a pass was made and over which domain: the lowest of the
//! destination that spans the source, as in any higher one both are in one group. What
//! it does not say is how often the domain's passes failed before, averages to the last
//! bit, in which order tasks stand in the source's list, and the mark that affinity
//! leaves on a group. The balancer is asked with the shadow's values, then with others as
//! far as these facts may be otherwise.

use schedlab_sched::{BalanceDecision, Curr, IdleType, SdId};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_trace::Event;
use schedlab_units::{Pid, TaskId, Time};

use crate::averages::{self, Averages, Width};
use crate::leaving;
use crate::shadow::Shadow;
use crate::verdict::{Choice, Hidden, Possible};

/// How a move was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// By a pass for this CPU on this occasion.
    Pass(CpuId, IdleType),
    /// By the stopper of the source, at the request of a pass.
    Active,
    /// A real-time or deadline task, by its class.
    PushPull,
    /// Not by balancing: affinity or exec.
    Other,
}

/// A move that was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Moved {
    /// Who.
    pub task: TaskId,
    /// From.
    pub from: CpuId,
    /// To.
    pub to: CpuId,
}

/// On which occasion a move was made. `ahead` is what follows.
pub fn occasion<'a>(
    shadow: &Shadow,
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
        let asked = shadow.asked[from].is_some();
        return if asked && event.cpu == from { Occasion::Active } else { Occasion::Other };
    }
    if event.flags.in_interrupt() || event.comm.as_bytes().starts_with(b"ksoftirqd/") {
        let idles = |cpu| shadow.sched.idle_cpu(cpu) || shadow.sched.rqs[cpu].curr == Curr::Idle;
        // A CPU that balances for others does so for idle ones, by whether those are idle. Where else it put a task is
        // one that the task may use, if it may not use its own (LBF_DST_PINNED).
        let pinned = !idles(to) && !shadow.sched.task(task).allowed.contains(event.cpu);
        let by = if pinned { event.cpu } else { to };
        return Occasion::Pass(by, if idles(by) { IdleType::Idle } else { IdleType::NotIdle });
    }
    // Also an idle CPU that was asked to make way may find nobody there.
    if to == event.cpu && (event.pid == Pid::IDLE || leaving::leaves(event, ahead).is_some()) {
        Occasion::Pass(to, IdleType::NewlyIdle)
    } else {
        Occasion::Other
    }
}

/// Idle CPUs for which a pass may have been made that put a task on another CPU of their group, as it may not use theirs.
pub fn idle_beside(shadow: &Shadow, moved: Moved) -> Vec<CpuId> {
    let below = shadow.sched.domains.walk(moved.to).map(|(_, sd)| &sd.span);
    let group = below.take_while(|span| !span.contains(moved.from)).last();
    let allowed = &shadow.sched.task(moved.task).allowed;
    let beside = |cpu: &CpuId| shadow.sched.idle_cpu(*cpu) && !allowed.contains(*cpu);
    group.map_or_else(Vec::new, |group| group.iter().filter(beside).collect())
}

/// What a pass may move, the likeliest first; readings are tried until one leads to what
/// was moved.
pub fn of_pass(shadow: &mut Shadow, asked: Asked, moved: Moved, now: Time) -> Vec<Possible> {
    let both = |span: &CpuMask| span.contains(moved.from) && span.contains(moved.to);
    let common = shadow.sched.domains.walk(asked.by).find(|(_, sd)| both(&sd.span)).map(|(id, _)| id);
    let Some(sd) = common else { return Vec::new() };
    let pass = Pass { sd, asked, moved, now };
    let mut found = Vec::new();
    // Who does not balance for its group does not under any reading.
    let makes = pass.ask_all(shadow, None, &mut found);
    if makes && !pass.is_in(shadow, &found) {
        pass.with_mark(shadow, &mut found);
    }
    if makes && !pass.is_in(shadow, &found) {
        pass.with_averages(shadow, &mut found);
    }
    found
}

/// Whether some reading of a pass may lead to what was moved, at a glance: the task is queued there and does not run,
/// and is not alone.
pub fn may_move(shadow: &Shadow, asked: Asked, moved: Moved) -> bool {
    let Moved { task, from, .. } = moved;
    let (entry, rq) = (shadow.sched.task(task), &shadow.sched.rqs[from]);
    asked.active || entry.on_rq && entry.cpu == from && rq.curr != Curr::Task(task) && rq.nr_running > 1
}

/// For whom and how a pass is made.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// The CPU it is made for.
    pub by: CpuId,
    /// The occasion.
    pub idle: IdleType,
    /// Whether it asks the stopper.
    pub active: bool,
}

/// One pass, asked under several readings.
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

    /// Adds what the pass does in the state of now, and after more or fewer failures if that does not lead to what was moved.
    /// Gives whether the pass is made at all.
    fn ask_all(&self, shadow: &mut Shadow, hidden: Option<Hidden>, found: &mut Vec<Possible>) -> bool {
        let (src, makes) = self.ask(shadow, hidden, found);
        let may_hang = src.is_some() || makes && shadow.sched.sched_cache_active();
        if may_hang && !self.is_in(shadow, found) {
            self.with_failures(shadow, src, Some(hidden.unwrap_or(Hidden::BalanceTime)), found);
        }
        makes
    }

    /// Adds what the pass does in the state of now; from which CPU it takes, and whether it is made at all.
    fn ask(
        &self,
        shadow: &Shadow,
        hidden: Option<Hidden>,
        found: &mut Vec<Possible>,
    ) -> (Option<CpuId>, bool) {
        let decision = shadow.sched.decide_balance(self.asked.by, self.sd, self.asked.idle, self.now);
        self.tell(shadow, &decision, hidden, found);
        (decision.src, decision.continue_balancing || decision.src.is_some())
    }

    fn tell(
        &self,
        shadow: &Shadow,
        decision: &BalanceDecision,
        hidden: Option<Hidden>,
        found: &mut Vec<Possible>,
    ) {
        let Moved { task, from, to } = self.moved;
        if self.asked.active {
            // The stopper comes later; who runs there by then is moved if it may be.
            let choice = match (decision.active, decision.src) {
                (true, Some(src)) if src == from => choice(shadow, self.moved),
                (true, Some(src)) => nobody(src, to),
                _ => Choice::Nothing,
            };
            return add(found, choice, decision, hidden);
        }
        if decision.moved == 0 {
            add(found, Choice::Nothing, decision, hidden);
            if decision.src == Some(from) && self.may_move(shadow) && self.ends_before_all(shadow) {
                add(found, choice(shadow, self.moved), decision, Some(hidden.unwrap_or(Hidden::TaskOrder)));
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
        let may_move = decision.moves().any(|(_, cpu)| cpu == to) && self.may_move(shadow);
        if src == from && may_move {
            // Which of its tasks is the order of a list that the trace shows in part.
            add(found, choice(shadow, self.moved), decision, Some(hidden.unwrap_or(Hidden::TaskOrder)));
        }
    }

    /// Whether a pass looks at fewer tasks than its list has: those that are out of quota stand there and do not count.
    fn ends_before_all(&self, shadow: &Shadow) -> bool {
        let from = self.moved.from;
        shadow.sched.cfs_tasks(from).count() > shadow.sched.rqs[from].nr_running as usize
    }

    /// Whether the task that was moved is one the pass could take.
    fn may_move(&self, shadow: &Shadow) -> bool {
        let Moved { task, from, to } = self.moved;
        let entry = shadow.sched.task(task);
        let runs = shadow.sched.rqs[from].curr == Curr::Task(task);
        entry.on_rq && entry.cpu == from && entry.allowed.contains(to) && !runs
    }

    /// With other counts of failed passes: they let a pass take what is hot or large, and at last ask for the stopper. From which
    /// CPU it takes, which is `src` now, hangs only on whether any failed, and more than tasks may be kept for their cache's sake.
    fn with_failures(
        &self,
        shadow: &mut Shadow,
        src: Option<CpuId>,
        hidden: Option<Hidden>,
        found: &mut Vec<Possible>,
    ) {
        let sd = shadow.sched.domains.sd(self.sd);
        let (before, tries) = (sd.nr_balance_failed, sd.cache_nice_tries);
        let kind = |failed: u32| usize::from(failed > 0) + usize::from(failed > tries);
        let mut takes_elsewhere = [false; 3];
        takes_elsewhere[kind(before)] = src != Some(self.moved.from);
        for failed in (0..=tries + 3).filter(|&failed| failed != before) {
            if takes_elsewhere[kind(failed)] {
                continue;
            }
            shadow.sched.domains.sd_mut(self.sd).nr_balance_failed = failed;
            let (src, _) = self.ask(shadow, hidden, found);
            if self.is_in(shadow, found) {
                break;
            }
            takes_elsewhere[kind(failed)] = src != Some(self.moved.from);
        }
        shadow.sched.domains.sd_mut(self.sd).nr_balance_failed = before;
    }

    /// With the mark of an imbalance by affinity on the source's group, or without it.
    fn with_mark(&self, shadow: &mut Shadow, found: &mut Vec<Possible>) {
        let domains = &shadow.sched.domains;
        let sd = domains.sd(self.sd);
        let group = sd.groups.iter().find(|&group| domains.sg(group).span.contains(self.moved.from));
        let Some(group) = group else { return };
        let capacity = domains.sg(group).sgc as usize;
        let before = domains.sgcs[capacity].imbalance;
        shadow.sched.domains.sgcs[capacity].imbalance = !before;
        self.ask_all(shadow, Some(Hidden::ImbalanceMark), found);
        shadow.sched.domains.sgcs[capacity].imbalance = before;
    }

    /// With the most load where the task came from and the least where it went; around the
    /// source alone, or in all of its group.
    fn with_averages(&self, shadow: &mut Shadow, found: &mut Vec<Possible>) {
        let Moved { from, to, .. } = self.moved;
        let cpus: Vec<CpuId> = shadow.cpus().collect();
        let bounds: Vec<(Averages, Averages)> =
            cpus.iter().map(|&cpu| averages::bounds(shadow, cpu, Width::Widest, self.now)).collect();
        let ours: Vec<Averages> = cpus.iter().map(|&cpu| Averages::of(shadow.sched.root_cfs(cpu))).collect();
        let below = shadow.sched.domains.walk(from).map(|(_, sd)| sd.span.clone());
        let group = below.take_while(|span| !span.contains(to)).last();
        for whole_group in [false, true] {
            let averages: Vec<Averages> = cpus
                .iter()
                .map(|&cpu| {
                    let in_group = group.as_ref().is_some_and(|group| group.contains(cpu));
                    match (cpu == from || whole_group && in_group, in_group && !whole_group) {
                        (true, _) => bounds[cpu.index()].1,
                        (_, true) => ours[cpu.index()],
                        _ => bounds[cpu.index()].0,
                    }
                })
                .collect();
            averages::as_if(shadow, &averages, |shadow| _ = self.ask_all(shadow, Some(Hidden::Loads), found));
            if self.is_in(shadow, found) {
                return;
            }
        }
    }
}

fn add(found: &mut Vec<Possible>, choice: Choice, decision: &BalanceDecision, hidden: Option<Hidden>) {
    if found.iter().any(|possible| possible.choice == choice) {
        return;
    }
    let hidden = if found.is_empty() && hidden != Some(Hidden::TaskOrder) { None } else { hidden };
    let numbers = decision.number.into_iter().collect();
    found.push(Possible { choice, reason: decision.reason.name(), hidden, numbers });
}

/// The choice as it is printed.
pub fn choice(shadow: &Shadow, moved: Moved) -> Choice {
    Choice::Move { pid: shadow.known(moved.task).pid, from: moved.from, to: moved.to }
}

fn nobody(from: CpuId, to: CpuId) -> Choice {
    Choice::Move { pid: Pid::IDLE, from, to }
}
