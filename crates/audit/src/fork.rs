//! Where a fork may lead, under all that the trace leaves open.
//!
//! Groups are compared by idle CPUs, then by averages; within a group the CPU that went
//! idle last is taken. Averages are known within bounds, and CPUs that were idle before
//! the recording have no stamp. So the deciders are asked what follows from our best
//! knowledge, and then, for each CPU that could be meant, whether the bounds allow for it:
//! with the least averages around that CPU, and the most elsewhere. A CPU that no averages
//! within the bounds lead to is not asked about.

use schedlab_sched::Placement;
use schedlab_sched::wakeup::ForkFacts;
use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

use crate::averages::{self, Averages, Width};
use crate::placement::Possibilities;
use crate::shadow::Shadow;
use crate::verdict::{Hidden, Numbers};

/// Machines up to this size have all CPUs tried; on larger ones only the recorded choice.
const CPUS_TRIED: usize = 64;

/// A fork of the recording.
#[derive(Clone, Copy)]
pub struct Forked {
    /// Who was born.
    pub task: TaskId,
    /// The CPU of the parent.
    pub this: CpuId,
    /// Where the kernel sent it.
    pub chosen: CpuId,
    /// When that may have been decided.
    pub now: Time,
}

/// All that a fork may lead to.
pub fn of_fork(shadow: &mut Shadow, fork: Forked) -> Possibilities {
    let only = (shadow.sched.rqs.len() > CPUS_TRIED).then_some(fork.chosen);
    with_tried(shadow, fork, only, &LIKELY)
}

/// What a fork may lead to, if the choice of the kernel is among it.
pub fn if_possible(shadow: &mut Shadow, fork: Forked) -> Option<Possibilities> {
    let found = with_tried(shadow, fork, Some(fork.chosen), &WIDEST);
    if found.has(fork.chosen) {
        return Some(found);
    }
    shadow.spare.give_back_all(found);
    None
}

/// What a fork may lead to if affinity left the mark of an imbalance on a group above the
/// forker, or took it away, which no event tells; or if that group alone has it.
pub fn with_mark(shadow: &mut Shadow, fork: Forked) -> Option<Possibilities> {
    let marks = marks(shadow, fork.this);
    let known: Vec<bool> = marks.iter().map(|&at| shadow.sched.domains.sgcs[at].imbalance).collect();
    let set = |shadow: &mut Shadow, readings: &[bool]| {
        for (&at, &mark) in marks.iter().zip(readings) {
            shadow.sched.domains.sgcs[at].imbalance = mark;
        }
    };
    let other = (0..marks.len()).map(|at| {
        let mut reading = known.clone();
        reading[at] = !reading[at];
        reading
    });
    let alone = (0..marks.len()).map(|at| (0..marks.len()).map(|group| group == at).collect());
    let found = other.chain(alone).find_map(|reading| {
        set(shadow, &reading);
        if_possible(shadow, fork)
    });
    set(shadow, &known);
    let mut found = found?;
    for possible in &mut found.list {
        possible.hidden = Some(Hidden::ImbalanceMark);
    }
    Some(found)
}

/// What a fork may lead to if the CPUs that were held up on their way to idle went there as early
/// as they may have, but for the chosen one.
pub fn with_held(shadow: &mut Shadow, fork: Forked) -> Option<Possibilities> {
    let stamps: Vec<u64> = shadow.cpus().map(|cpu| shadow.sched.rqs[cpu].idle_stamp).collect();
    for (cpu, &stamp) in shadow.cpus().zip(&stamps).filter(|&(cpu, _)| cpu != fork.chosen) {
        let held = shadow.idle_held[cpu].0.min(stamp.saturating_sub(1));
        shadow.sched.rqs[cpu].idle_stamp = stamp - held;
    }
    let found = if_possible(shadow, fork);
    for (cpu, stamp) in shadow.cpus().zip(stamps) {
        shadow.sched.rqs[cpu].idle_stamp = stamp;
    }
    found
}

/// Groups of more than one CPU in the domains of a CPU, the widest first, by the place of
/// what they keep.
fn marks(shadow: &Shadow, this: CpuId) -> Vec<usize> {
    let domains = &shadow.sched.domains;
    let groups = domains.walk(this).flat_map(|(_, sd)| sd.groups.iter());
    let wide = groups.map(|group| domains.sg(group)).filter(|group| group.span.weight() > 1);
    let mut marks: Vec<usize> = wide.map(|group| group.sgc as usize).collect();
    marks.reverse();
    marks
}

/// All CPUs are tried, or `only` one.
fn with_tried(shadow: &mut Shadow, fork: Forked, only: Option<CpuId>, readings: &Readings) -> Possibilities {
    let Forked { task, this, now, .. } = fork;
    let mut found = shadow.spare.possibilities();
    shadow.sched.update_group_sums();
    let (placement, leans) = shadow.sched.decide_fork_leaning(task, this, now);
    found.add(placement, None, Numbers::default());
    let sure = !leans.averages && leans.idle_stamp > shadow.newest_before();
    if sure || only.is_some_and(|cpu| found.has(cpu)) {
        return found;
    }
    let question = Question::new(shadow, task, this, readings, now);
    let mut facts = question.ours.clone();
    for cpu in question.reach.iter().filter(|&cpu| only.is_none_or(|only| only == cpu)) {
        if !shadow.sched.task(task).allowed.contains(cpu) || found.has(cpu) {
            continue;
        }
        if let Some(placement) = question.with_stamp(&mut facts, cpu) {
            found.add(placement, Some(Hidden::IdleStamp), Numbers::default());
        } else if let Some(placement) = question.with_averages(&mut facts, cpu) {
            let hidden = if shadow.groups_hidden { Hidden::Groups } else { Hidden::Loads };
            found.add(placement, Some(hidden), Numbers::default());
        }
    }
    found
}

/// Averages of those around the CPU that is to be chosen.
#[derive(Clone, Copy)]
enum Around {
    /// As the shadow has them.
    Ours,
    /// At their least.
    Least,
    /// At their least, but for the forker's own at its most, which drives the child away.
    LocalMost,
}

/// Readings of averages: what is asked of every CPU, and what only of the one that was chosen.
struct Readings {
    width: Width,
    arounds: &'static [Around],
}

const LIKELY: Readings = Readings { width: Width::Likely, arounds: &[Around::Ours, Around::Least] };
const WIDEST: Readings =
    Readings { width: Width::Widest, arounds: &[Around::Ours, Around::Least, Around::LocalMost] };

/// A fork, about which many things are asked in one state.
struct Question<'a> {
    shadow: &'a Shadow,
    task: TaskId,
    this: CpuId,
    readings: &'a Readings,
    now: Time,
    bounds: Vec<(Averages, Averages)>,
    /// As the shadow has them.
    ours: ForkFacts,
    /// CPUs that can be chosen at all within the bounds.
    reach: CpuMask,
}

impl<'a> Question<'a> {
    fn new(shadow: &'a Shadow, task: TaskId, this: CpuId, readings: &'a Readings, now: Time) -> Question<'a> {
        let bounds: Vec<(Averages, Averages)> =
            shadow.cpus().map(|cpu| averages::bounds(shadow, cpu, readings.width, now)).collect();
        let ours = ForkFacts::of(&shadow.sched, task, now);
        let (mut least, mut most) = (ours.clone(), ours.clone());
        for (cpu, bounds) in shadow.cpus().zip(&bounds) {
            bounds.0.give(shadow, &mut least, cpu);
            bounds.1.give(shadow, &mut most, cpu);
        }
        let (unknown, stamp) = (|cpu| shadow.idle_before(cpu), shadow.newest_before());
        let reach = shadow.sched.fork_reach(task, this, now, (&least, &most), unknown, stamp);
        Question { shadow, task, this, readings, now, bounds, ours, reach }
    }

    fn ask(&self, facts: &ForkFacts) -> Placement {
        self.shadow.sched.decide_fork_by(self.task, self.this, self.now, facts)
    }

    /// The CPU is chosen if it went idle last of those that were idle before the recording.
    fn with_stamp(&self, facts: &mut ForkFacts, cpu: CpuId) -> Option<Placement> {
        if !self.shadow.idle_before(cpu) {
            return None;
        }
        let before = facts.set_idle_stamp(cpu, self.shadow.newest_before());
        let placement = self.ask(facts);
        facts.set_idle_stamp(cpu, before);
        (placement.cpu == cpu).then_some(placement)
    }

    /// The CPU is chosen if its averages are at their least, or all those around it, and others
    /// at their most.
    fn with_averages(&self, facts: &mut ForkFacts, cpu: CpuId) -> Option<Placement> {
        let alone = CpuMask::one(self.bounds.len(), cpu);
        let wider = self.shadow.sched.domains.walk(cpu).map(|(_, sd)| &*sd.span);
        let arounds = self.readings.arounds;
        // Around one CPU alone all readings are the same.
        let readings = std::iter::once(&alone)
            .chain(wider)
            .flat_map(|span| arounds.iter().map(move |&around| (span, around)));
        let found = readings.skip(arounds.len() - 1).find_map(|(span, around)| {
            self.read(facts, cpu, span, around);
            let plain = self.ask(facts);
            if plain.cpu == cpu { Some(plain) } else { self.with_stamp(facts, cpu) }
        });
        facts.clone_from(&self.ours);
        found
    }

    /// Gives all CPUs the averages of a reading.
    fn read(&self, facts: &mut ForkFacts, chosen: CpuId, span: &CpuMask, around: Around) {
        for (cpu, &(least, most)) in self.shadow.cpus().zip(&self.bounds) {
            let averages = match (cpu == chosen, span.contains(cpu), around) {
                (true, ..) => least,
                (false, false, _) => most,
                (false, true, Around::Ours) => Averages::of(self.shadow.sched.root_cfs(cpu)),
                (false, true, Around::LocalMost) if cpu == self.this => most,
                // Not below the one that is to be chosen.
                _ => least.above(self.bounds[chosen.index()].0, most),
            };
            averages.give(self.shadow, facts, cpu);
        }
    }
}
