//! Where a fork may lead, under all that the trace leaves open.
//!
//! Groups are compared by idle CPUs, then by averages; within a group the CPU that went
//! idle last is taken. Averages are known within bounds, and CPUs that were idle before
//! the recording have no stamp. So the deciders are asked what follows from our best
//! knowledge, and then, for each CPU that could be meant, whether the bounds allow for it:
//! with the least averages around that CPU, and the most elsewhere.

use schedlab_sched::Placement;
use schedlab_topology::CpuId;
use schedlab_units::{TaskId, Time};

use crate::averages::{self, Averages, Width};
use crate::placement::Possibilities;
use crate::shadow::Shadow;
use crate::verdict::Hidden;

/// Machines up to this size have all CPUs tried; on larger ones only the recorded choice.
const CPUS_TRIED: usize = 64;

/// All that a fork may lead to. `chosen` is what the kernel did.
pub fn of_fork(shadow: &mut Shadow, task: TaskId, this: CpuId, chosen: CpuId, now: Time) -> Possibilities {
    let tried = shadow.cpus().filter(|&cpu| shadow.sched.rqs.len() <= CPUS_TRIED || cpu == chosen);
    with_tried(shadow, task, this, tried.collect(), &LIKELY, now)
}

/// What a fork may lead to, if the choice of the kernel is among it.
pub fn if_possible(
    shadow: &mut Shadow,
    task: TaskId,
    this: CpuId,
    chosen: CpuId,
    now: Time,
) -> Option<Possibilities> {
    let found = with_tried(shadow, task, this, vec![chosen], &WIDEST, now);
    found.has(chosen).then_some(found)
}

/// What a fork may lead to if affinity left the mark of an imbalance on a group above the
/// forker, or took it away, which no event tells; or if that group alone has it.
pub fn with_mark(
    shadow: &mut Shadow,
    task: TaskId,
    this: CpuId,
    chosen: CpuId,
    now: Time,
) -> Option<Possibilities> {
    let marks = marks(shadow, this);
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
        if_possible(shadow, task, this, chosen, now)
    });
    set(shadow, &known);
    let mut found = found?;
    for possible in &mut found.list {
        possible.hidden = Some(Hidden::ImbalanceMark);
    }
    Some(found)
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

fn with_tried(
    shadow: &mut Shadow,
    task: TaskId,
    this: CpuId,
    tried: Vec<CpuId>,
    readings: &Readings,
    now: Time,
) -> Possibilities {
    let mut found = Possibilities::default();
    let placement = shadow.sched.decide_fork(task, this, now, None);
    found.add(placement, None, Vec::new());
    if tried.iter().all(|&cpu| found.has(cpu)) {
        return found;
    }
    let bounds: Vec<(Averages, Averages)> =
        shadow.cpus().map(|cpu| averages::bounds(shadow, cpu, readings.width, now)).collect();
    for cpu in tried {
        if !shadow.sched.task(task).allowed.contains(cpu) || found.has(cpu) {
            continue;
        }
        if let Some(placement) = with_stamp(shadow, task, this, cpu, now) {
            found.add(placement, Some(Hidden::IdleStamp), Vec::new());
        } else if let Some(placement) = with_averages(shadow, task, this, cpu, &bounds, readings.arounds, now)
        {
            let hidden = if shadow.groups_hidden { Hidden::Groups } else { Hidden::Loads };
            found.add(placement, Some(hidden), Vec::new());
        }
    }
    found
}

/// The CPU is chosen if it went idle last of those that were idle before the recording.
fn with_stamp(shadow: &mut Shadow, task: TaskId, this: CpuId, cpu: CpuId, now: Time) -> Option<Placement> {
    if !shadow.idle_before(cpu) {
        return None;
    }
    let before = std::mem::replace(&mut shadow.sched.rqs[cpu].idle_stamp, shadow.start.0.max(2));
    let placement = shadow.sched.decide_fork(task, this, now, None);
    shadow.sched.rqs[cpu].idle_stamp = before;
    (placement.cpu == cpu).then_some(placement)
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

/// The CPU is chosen if its averages are at their least, or all those around it, and others
/// at their most.
fn with_averages(
    shadow: &mut Shadow,
    task: TaskId,
    this: CpuId,
    cpu: CpuId,
    bounds: &[(Averages, Averages)],
    arounds: &[Around],
    now: Time,
) -> Option<Placement> {
    let mut spans: Vec<Vec<CpuId>> = vec![vec![cpu]];
    spans.extend(shadow.sched.domains.walk(cpu).map(|(_, sd)| sd.span.iter().collect()));
    let ours: Vec<Averages> = shadow.cpus().map(|cpu| Averages::of(shadow.sched.root_cfs(cpu))).collect();
    // Around one CPU alone all readings are the same.
    let readings = spans.iter().flat_map(|span| arounds.iter().map(move |&around| (span, around)));
    readings.skip(arounds.len() - 1).find_map(|(span, around)| {
        let averages: Vec<Averages> = (0..bounds.len())
            .map(|at| match (CpuId::from(at) == cpu, span.contains(&CpuId::from(at)), around) {
                (true, ..) => bounds[at].0,
                (false, false, _) => bounds[at].1,
                (false, true, Around::Ours) => ours[at],
                (false, true, Around::LocalMost) if CpuId::from(at) == this => bounds[at].1,
                // Not below the one that is to be chosen.
                _ => bounds[at].0.above(bounds[cpu.index()].0, bounds[at].1),
            })
            .collect();
        averages::as_if(shadow, &averages, |shadow| {
            let plain = shadow.sched.decide_fork(task, this, now, None);
            if plain.cpu == cpu { Some(plain) } else { with_stamp(shadow, task, this, cpu, now) }
        })
    })
}
