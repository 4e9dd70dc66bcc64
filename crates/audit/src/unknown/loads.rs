//! Bounds on the averages of a CPU, as far as a trace determines them.
//!
//! Three things are hidden. The averages a CPU had before the recording decay, but they still count for the first few
//! hundred milliseconds. Averages of an idle CPU are sometimes updated by ticks and balancing that leave no event. And
//! the time of an event is not exactly the time at which the averages were updated.

mod tables;

use schedlab_sched::{Curr, Wakeup, decay_load};
use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

pub use self::tables::{ForkTables, LIKELY, Readings, WIDEST};
use super::Shadow;
use super::about::{About, Reading};
use super::beyond::{Candidate, Case, Look, Of};
use super::otherwise::Otherwise;
use crate::follow::averages::Averages;

/// Tried where the likely error does not lead a fork to its CPU.
pub const FORK_AVERAGES: Reading = Reading::new("FORK_AVERAGES", "averages are off by their widest error");

/// Learned from forks.
pub const LEARNED_REST: Reading =
    Reading::new("LEARNED_REST", "decisions show whether averages from before the recording still matter");

pub(super) const ABOUT: About = About {
    readings: &[FORK_AVERAGES, LEARNED_REST],
    beyond,
    ..About::new("LOADS", "the exact load averages")
};

/// Weights of nice 19 and nice -20.
const WEIGHT_LEAST: u64 = 15;
const WEIGHT_MOST: u64 = 88_761;

/// What is learned of averages, and how far they are trusted.
#[derive(Clone, Copy, Debug)]
pub struct Trust {
    /// Number of choices among several CPUs that fit the assumption that all averages were zero when the recording
    /// began.
    pub nothing_before: u32,
    /// By how many times their error load averages may be off: one, except when looking for what would explain a
    /// disagreement.
    pub errors: u64,
}

impl Default for Trust {
    fn default() -> Trust {
        Trust { nothing_before: 0, errors: 1 }
    }
}

/// How wide the bounds are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// Covers the averages that probes usually show.
    Likely,
    /// Covers all averages that are possible.
    Widest,
}

impl Width {
    /// How far an average may be off.
    fn error(self, shadow: &Shadow, average: u64) -> u64 {
        shadow.learned.loads.errors
            * match self {
                Width::Likely => average / 32 + 16,
                Width::Widest => average / 8 + 48,
            }
    }

    /// What may remain from before the recording.
    fn residue(self, residue: u64) -> u64 {
        match self {
            Width::Likely => residue / 8,
            Width::Widest => residue,
        }
    }
}

impl Shadow {
    /// How far the load of a CPU may be from the shadow's. Three things add up: what may remain from before the
    /// recording, the uncertainty of event times, and the load of tasks that left for good, which a tick removes
    /// without an event.
    pub fn load_error(&self, cpu: CpuId) -> u64 {
        let root = self.sched.root_cfs(cpu);
        self.residue(cpu) + root.avg.load_avg / 16 + 16 + root.removed.load_avg
    }

    /// The part of one task's average that a CPU may still have from before the recording; it halves with every 32 ms
    /// of decay. Choices that follow without it are weaker evidence.
    pub fn residue(&self, cpu: CpuId) -> u64 {
        let aged = self.sched.root_cfs(cpu).avg.last_update_time.saturating_sub(self.pelt_start[cpu]);
        (1024 >> (aged >> 25).min(63)) >> self.learned.loads.nothing_before
    }

    /// How far the load of a sleeper may be from the shadow's: the load it had when it fell asleep before the recording
    /// decays only when it is queued again.
    pub fn sleeper_load_error(&self, task: TaskId, now: Time) -> u64 {
        let entity = &self.sched.task(task).se;
        if !self.known(task).lived_before {
            return 0;
        }
        let queued_since = entity.avg.last_update_time != 0;
        let aged = if queued_since { now.since(self.start).0 } else { 0 };
        (entity.load.weight >> 10) >> (aged >> 25).min(63)
    }

    /// When the averages of a CPU were last updated.
    pub fn updated_at(&self, cpu: CpuId) -> u64 {
        let last = self.sched.root_cfs(cpu).avg.last_update_time;
        self.start.0 + last.saturating_sub(self.pelt_start[cpu])
    }
}

impl Shadow {
    /// How far the difference of the loads that a wake-up compares may be off. The wakee is added to one side and
    /// subtracted from the other.
    pub fn error_of_difference(&self, wakeup: &Wakeup, prev: CpuId, now: Time) -> u64 {
        let wakee = 2 * self.sleeper_load_error(wakeup.task, now);
        let both = self.load_error(wakeup.this_cpu) + self.load_error(prev);
        self.learned.loads.errors * (both + wakee)
    }

    /// A choice among several that averages leave `open` says something about averages from before the recording: that
    /// nothing is left of them if it is the likeliest choice, and that something is left if it does not follow.
    pub fn learn_rest(&mut self, open: usize, follows: bool, likeliest: bool) {
        let before = &mut self.learned.loads.nothing_before;
        if !follows {
            *before = 0;
        } else if open >= 2 && likeliest {
            *before = (*before + 1).min(10);
        }
    }
}

/// The widest bounds of all CPUs.
fn widest(shadow: &Shadow, now: Time) -> Vec<(Averages, Averages)> {
    shadow.cpus().map(|cpu| bounds(shadow, cpu, Width::Widest, now)).collect()
}

/// The averages that speak most for a CPU: the lowest there and the highest elsewhere, first for the CPU alone, then for
/// each of its domains.
pub fn for_cpu(shadow: &Shadow, chosen: CpuId, now: Time) -> impl Iterator<Item = Vec<Averages>> + use<> {
    let bounds = widest(shadow, now);
    let mut spans = vec![CpuMask::of(bounds.len(), [chosen])];
    spans.extend(shadow.sched.domains.walk(chosen).map(|(_, sd)| (*sd.span).clone()));
    spans.into_iter().map(move |span| {
        let all = bounds.iter().enumerate();
        all.map(|(cpu, &(least, most))| if span.contains(CpuId::from(cpu)) { least } else { most }).collect()
    })
}

/// The averages that speak most for a move: the highest load at the source and the lowest at the destination, first for
/// the source alone, then for its whole group.
pub fn for_move(shadow: &Shadow, from: CpuId, to: CpuId, now: Time) -> [Vec<Averages>; 2] {
    let bounds = widest(shadow, now);
    let below = shadow.sched.domains.walk(from).map(|(_, sd)| &sd.span);
    let group = below.take_while(|span| !span.contains(to)).last();
    [false, true].map(|whole_group| {
        let averages = shadow.cpus().zip(&bounds).map(|(cpu, &(least, most))| {
            let in_group = group.is_some_and(|group| group.contains(cpu));
            match (cpu == from || whole_group && in_group, in_group && !whole_group) {
                (true, _) => most,
                (_, true) => Averages::of(shadow.sched.root_cfs(cpu)),
                _ => least,
            }
        });
        averages.collect()
    })
}

/// Lower and upper bounds of a CPU's averages. Inlined, so that callers that need one average do not compute three.
#[inline(always)]
pub fn bounds(shadow: &Shadow, cpu: CpuId, width: Width, now: Time) -> (Averages, Averages) {
    let sched = &shadow.sched;
    let cfs = sched.root_cfs(cpu);
    let ours = Averages::of(cfs);
    let residue = width.residue(shadow.residue(cpu));
    if let Curr::Task(curr) = sched.rqs[cpu].curr {
        let mut least = ours.each(|average| average.saturating_sub(width.error(shadow, average)));
        let mut most = ours.each(|average| average + width.error(shadow, average) + residue);
        if shadow.known(curr).first_run && !shadow.known(curr).nice_told {
            // The task may have changed its nice level; no event shows that before it is switched out.
            least.load = least.load * WEIGHT_LEAST / 1024;
            most.load = most.load * WEIGHT_MOST / 1024;
        }
        return with_groups(shadow, least, most);
    }
    let gone = Averages {
        load: cfs.removed.load_avg,
        runnable: cfs.removed.runnable_avg,
        util: cfs.removed.util_avg,
    };
    let periods = now.0.saturating_sub(shadow.updated_at(cpu)) >> 20;
    // Rounding leaves a small remainder of each task that goes; its size depends on the times of updates.
    let before = shadow.at_idle[cpu];
    let least = ours
        .with(gone, u64::saturating_sub)
        .each(|average| decay_load(average, periods))
        .with(before, |least, before| least.saturating_sub(shadow.learned.loads.errors * (before / 8 + 16)));
    let most = ours
        .with(before, u64::max)
        .each(|average| average + shadow.learned.loads.errors * (average / 16) + residue);
    with_groups(shadow, least, most)
}

/// A group divides its weight among its tasks, so any load is possible where groups are hidden.
fn with_groups(shadow: &Shadow, least: Averages, most: Averages) -> (Averages, Averages) {
    if !shadow.groups_hidden {
        return (least, most);
    }
    (Averages { load: 0, ..least }, Averages { load: most.load.max(1) * (WEIGHT_MOST / 1024), ..most })
}

/// Runs `look` on the shadow with other averages for all CPUs.
pub fn as_if<T>(shadow: &mut Shadow, averages: &[Averages], look: impl FnOnce(&mut Shadow) -> T) -> T {
    let swap = |shadow: &mut Shadow, values: &[Averages]| -> Vec<Averages> {
        let queues = shadow.sched.cfs_rqs.iter_mut().zip(values);
        queues
            .map(|(cfs, value)| {
                let before = Averages::of(cfs);
                (cfs.avg.load_avg, cfs.avg.runnable_avg, cfs.avg.util_avg) =
                    (value.load, value.runnable, value.util);
                before
            })
            .collect()
    };
    let before = swap(shadow, averages);
    let result = shadow.suppose(look);
    swap(shadow, &before);
    result
}

/// Asks with load averages that may be off by `times` times their assumed error.
fn with_errors(shadow: &mut Shadow, times: u64, look: Look<'_>) -> bool {
    let before = std::mem::replace(&mut shadow.learned.loads.errors, times);
    let leads = look(shadow);
    shadow.learned.loads.errors = before;
    leads
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    let errors: &[u64] = match case.of {
        Of::Wakeup { .. } => &[2, 3, 4, 6, 8, 12, 16, 32, 64, 128],
        Of::Placement { .. } => &[2, 3, 4, 6, 8, 16],
        Of::Move { .. } => &[2, 3, 4, 8, 16],
        Of::Order { .. } => &[],
    };
    candidates.extend(errors.iter().map(|&times| {
        let had = Otherwise::plain("LOADS", "load averages had been off");
        let had = Otherwise { times: Some(times), ..had };
        Candidate::new(had, move |shadow, look| with_errors(shadow, times, look))
    }));
}
