//! Averages and idle stamps with which a fork is evaluated.

use schedlab_sched::wakeup::ForkFacts;
use schedlab_units::{TaskId, Time};

use crate::follow::averages::Averages;
use crate::unknown::Shadow;
use crate::unknown::loads::{self, Width};

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
        self.bounds.extend(shadow.cpus().map(|cpu| loads::bounds(shadow, cpu, width, now)));
        self.ours.fill(&shadow.view(now), task);
        self.least.clone_from(&self.ours);
        self.most.clone_from(&self.ours);
        for (cpu, &(least, most)) in shadow.cpus().zip(&self.bounds) {
            least.give(&shadow.sched, &mut self.least, cpu);
            most.give(&shadow.sched, &mut self.most, cpu);
        }
    }
}
