//! Averages and idle stamps with which a fork is evaluated.

use schedlab_sched::wakeup::ForkFacts;
use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::{TaskId, Time};

use super::{Width, bounds};
use crate::follow::averages::Averages;
use crate::unknown::Shadow;

/// The facts of each CPU under several assumptions. The tables are refilled for each fork.
#[derive(Default)]
pub struct ForkTables {
    pub bounds: Vec<(Averages, Averages)>,
    /// The shadow's values.
    pub ours: ForkFacts,
    /// All averages at their lowest, and at their highest.
    pub least: ForkFacts,
    pub most: ForkFacts,
    /// For assumptions that change more than one CPU.
    pub wider: ForkFacts,
}

impl ForkTables {
    /// Takes those of the shadow, and the bounds around them.
    pub fn fill(&mut self, shadow: &Shadow, task: TaskId, width: Width, now: Time) {
        self.bounds.clear();
        self.bounds.extend(shadow.cpus().map(|cpu| bounds(shadow, cpu, width, now)));
        self.ours.fill(&shadow.view(now), task);
        self.least.clone_from(&self.ours);
        self.most.clone_from(&self.ours);
        for (cpu, &(least, most)) in shadow.cpus().zip(&self.bounds) {
            least.give(&shadow.sched, &mut self.least, cpu);
            most.give(&shadow.sched, &mut self.most, cpu);
        }
    }

    /// Sets the averages of all CPUs, for assumptions that change more than one, to those of an assumption about a candidate
    /// and a span around it.
    pub fn assume(&mut self, shadow: &Shadow, this: CpuId, chosen: CpuId, span: &CpuMask, around: Around) {
        for (cpu, &(least, most)) in shadow.cpus().zip(&self.bounds) {
            let averages = match (cpu == chosen, span.contains(cpu), around) {
                (true, ..) => least,
                (false, false, _) => most,
                (false, true, Around::Ours) => Averages::of(shadow.sched.root_cfs(cpu)),
                (false, true, Around::LocalMost) if cpu == this => most,
                // Not below the candidate.
                _ => least.above(self.bounds[chosen.index()].0, most),
            };
            averages.give(&shadow.sched, &mut self.wider, cpu);
        }
    }
}

/// Averages of the CPUs around the candidate.
#[derive(Clone, Copy)]
pub enum Around {
    /// The shadow's values.
    Ours,
    /// The lowest values.
    Least,
    /// The lowest values, but the highest for the forker's own CPU, which pushes the child away.
    LocalMost,
}

/// Assumptions about averages: those tried for every CPU, and those tried only for the chosen one.
pub struct Readings {
    pub width: Width,
    pub arounds: &'static [Around],
}

/// Tried for every CPU.
pub const LIKELY: Readings = Readings { width: Width::Likely, arounds: &[Around::Ours, Around::Least] };
/// Tried for the chosen CPU.
pub const WIDEST: Readings =
    Readings { width: Width::Widest, arounds: &[Around::Ours, Around::Least, Around::LocalMost] };
