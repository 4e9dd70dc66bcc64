//! Where a fork may lead, given everything that the trace leaves open.
//!
//! Groups are compared by idle CPUs, then by averages; within a group the CPU that went idle last is chosen. Averages
//! are known only within bounds, and CPUs that were idle before the recording have no idle stamp. So the decider first
//! runs with the best known values. Then, for each candidate CPU, it runs with the lowest averages around that CPU and
//! the highest elsewhere, to see whether the bounds allow it. A CPU that no averages within the bounds lead to is not
//! tried.

use schedlab_sched::wakeup::{ForkFacts, ForkReach};
use schedlab_sched::{Placement, Reason, Supposed};
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::judge::possibilities::Possibilities;
use crate::judge::spare::Spare;
use crate::report::verdict::Numbers;
use crate::unknown::Shadow;
use crate::unknown::list::Unknown;
use crate::unknown::loads::{ForkTables, LIKELY, Readings, WIDEST};
use crate::unknown::{idle_stamp, imbalance_mark};

/// On machines up to this size every CPU is tried; on larger ones only the recorded choice.
const CPUS_TRIED: usize = 64;

/// A fork of the recording.
#[derive(Clone, Copy)]
pub struct Forked {
    /// The new task.
    pub task: TaskId,
    /// The CPU of the parent.
    pub this: CpuId,
    /// Where the kernel sent it.
    pub chosen: CpuId,
    /// When that may have been decided.
    pub now: Time,
}

/// A fork whose child is not queued yet.
pub(crate) struct Forking {
    pub(super) task: TaskId,
    pub(super) this: CpuId,
    /// When the fork was traced.
    pub(super) at: Time,
    /// The CPU it will go to, seen ahead.
    pub(super) chosen: Option<CpuId>,
    /// The possible outcomes in the last state that allowed the chosen CPU.
    pub(super) possible: Option<Possibilities>,
}

/// Everything that a fork may lead to.
pub fn of_fork(shadow: &mut Shadow, spare: &mut Spare, fork: Forked) -> Possibilities {
    let only = (shadow.sched.rqs.len() > CPUS_TRIED).then_some(fork.chosen);
    with_tried(shadow, spare, fork, only, &LIKELY, &[])
}

/// What a fork may lead to, if that includes the kernel's choice.
pub fn if_possible(shadow: &mut Shadow, spare: &mut Spare, fork: Forked) -> Option<Possibilities> {
    if_supposed(shadow, spare, fork, &[])
}

/// The same with other assumed marks of groups.
fn if_supposed(
    shadow: &mut Shadow,
    spare: &mut Spare,
    fork: Forked,
    marks: &[(u32, bool)],
) -> Option<Possibilities> {
    let found = with_tried(shadow, spare, fork, Some(fork.chosen), &WIDEST, marks);
    if found.has(fork.chosen) {
        return Some(found);
    }
    spare.give_back_all(found);
    None
}

/// What a fork may lead to if affinity set or cleared the imbalance flag of a group above the forker, which no event
/// shows; or if only that group has the mark.
pub fn with_mark(shadow: &mut Shadow, spare: &mut Spare, fork: Forked) -> Option<Possibilities> {
    let mut marks = imbalance_mark::of_fork(shadow, fork.this);
    let mut found = marks.find_map(|marks| if_supposed(shadow, spare, fork, &marks))?;
    for possible in &mut found.list {
        possible.hidden = Some(Unknown::ImbalanceMark);
    }
    Some(found)
}

/// What a fork may lead to if every CPU that was held up on its way to idle, except the chosen one, went idle as early
/// as it may have.
pub fn with_held(shadow: &mut Shadow, spare: &mut Spare, fork: Forked) -> Option<Possibilities> {
    idle_stamp::as_if_held(shadow, fork.chosen, |shadow| if_possible(shadow, spare, fork))
}

/// Tries all CPUs, or `only` one.
fn with_tried(
    shadow: &mut Shadow,
    spare: &mut Spare,
    fork: Forked,
    only: Option<CpuId>,
    readings: &Readings,
    marks: &[(u32, bool)],
) -> Possibilities {
    let Forked { task, this, now, .. } = fork;
    let mut found = spare.possibilities();
    shadow.sched.update_group_sums();
    let supposed = Supposed { imbalance: marks, ..Supposed::NOTHING };
    let view = if marks.is_empty() { shadow.view(now) } else { shadow.supposed(now, &supposed) };
    let placement = view.decide_fork(task, this);
    let leans = view.leans();
    found.add(placement, None, Numbers::default());
    let sure = !leans.averages && leans.idle_stamp > shadow.newest_before();
    if sure || only.is_some_and(|cpu| found.has(cpu)) {
        return found;
    }
    let mut tables = std::mem::take(&mut spare.fork_tables);
    tables.fill(shadow, task, readings.width, now);
    let asked = Asked { shadow, fork, marks };
    let mut question = Question { asked, readings, tables: &mut tables, reach: None };
    let allowed = &shadow.sched.task(task).allowed;
    for cpu in shadow.cpus().filter(|&cpu| allowed.contains(cpu)) {
        let tried = match only {
            Some(only) => cpu == only,
            None => question.reach().cpus.contains(cpu),
        };
        if !tried || found.has(cpu) {
            continue;
        }
        if let Some(placement) = question.with_stamp(cpu) {
            found.add(placement, Some(Unknown::IdleStamp), Numbers::default());
        } else if let Some(placement) = question.with_averages(cpu) {
            let hidden = shadow.groups_or(Unknown::Loads);
            found.add(placement, Some(hidden), Numbers::default());
        }
    }
    spare.fork_tables = tables;
    found
}

/// A fork for which many assumptions are tried in one state.
struct Question<'a> {
    asked: Asked<'a>,
    readings: &'a Readings,
    tables: &'a mut ForkTables,
    /// CPUs that can be chosen at all within the bounds, once computed.
    reach: Option<ForkReach>,
}

/// What stays the same under all assumptions.
#[derive(Clone, Copy)]
struct Asked<'a> {
    shadow: &'a Shadow,
    fork: Forked,
    /// Assumed marks of groups.
    marks: &'a [(u32, bool)],
}

impl Question<'_> {
    fn reach(&mut self) -> &ForkReach {
        let Asked { shadow, fork: Forked { task, this, now, .. }, marks } = self.asked;
        let tables = &self.tables;
        self.reach.get_or_insert_with(|| {
            let (unknown, stamp) = (|cpu| shadow.idle_before(cpu), shadow.newest_before());
            shadow.sched.fork_reach(task, this, now, (&tables.least, &tables.most), marks, unknown, stamp)
        })
    }

    /// The placement on this CPU if it was the last to go idle of those that were idle before the recording.
    fn with_stamp(&mut self, cpu: CpuId) -> Option<Placement> {
        self.asked.with_stamp(&mut self.tables.ours, cpu)
    }

    /// The placement on this CPU if its averages, or those of all CPUs around it, are at their lowest and others at
    /// their highest.
    fn with_averages(&mut self, cpu: CpuId) -> Option<Placement> {
        if self.reach.as_ref().is_some_and(|reach| reach.sure.contains(cpu)) {
            return Some(Placement::new(cpu, Reason::IdlestOnly));
        }
        // Around one CPU alone all assumptions are the same: only its own averages are low.
        let ForkTables { least, most, .. } = &mut *self.tables;
        most.swap(least, cpu);
        let found = self.asked.chosen(most, cpu);
        most.swap(least, cpu);
        if found.is_some() || !self.reach().cpus.contains(cpu) {
            return found;
        }
        let Question { asked, readings, tables, .. } = self;
        tables.wider.clone_from(&tables.ours);
        let spans = asked.shadow.sched.domains.walk(cpu).map(|(_, sd)| &*sd.span);
        let mut readings = spans.flat_map(|span| readings.arounds.iter().map(move |&around| (span, around)));
        readings.find_map(|(span, around)| {
            tables.assume(asked.shadow, asked.fork.this, cpu, span, around);
            asked.chosen(&mut tables.wider, cpu)
        })
    }
}

impl Asked<'_> {
    fn ask(self, facts: &ForkFacts) -> Placement {
        let supposed = Supposed { fork: Some(facts), imbalance: self.marks, ..Supposed::NOTHING };
        self.shadow.supposed(self.fork.now, &supposed).decide_fork(self.fork.task, self.fork.this)
    }

    /// The placement on this CPU, with its idle stamp as it is known or may be.
    fn chosen(self, facts: &mut ForkFacts, cpu: CpuId) -> Option<Placement> {
        let plain = self.ask(facts);
        if plain.cpu == cpu { Some(plain) } else { self.with_stamp(facts, cpu) }
    }

    fn with_stamp(self, facts: &mut ForkFacts, cpu: CpuId) -> Option<Placement> {
        if !self.shadow.idle_before(cpu) {
            return None;
        }
        let before = facts.set_idle_stamp(cpu, self.shadow.newest_before());
        let placement = self.ask(facts);
        facts.set_idle_stamp(cpu, before);
        (placement.cpu == cpu).then_some(placement)
    }
}
