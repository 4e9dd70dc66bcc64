//! When CPUs balance their load.
//!
//! A busy CPU balances each of its domains once per interval (some tens to hundreds of milliseconds) since its last
//! pass. A pass is visible only by its moves: of a waiting task, in a softirq, to the CPU that runs the softirq. The
//! first of these moves shows where in the interval all later passes fall.

use schedlab_topology::CpuId;
use schedlab_units::Time;

/// A pass of a busy CPU that moved a task to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The CPU that balanced.
    pub cpu: CpuId,
    /// The CPU of the task.
    pub from: CpuId,
    /// Time of the move.
    pub at: Time,
}

/// More passes add nothing.
const PASSES_MAX: usize = 4096;

/// The passes that moved a task, by time.
#[derive(Clone, Debug, Default)]
pub struct Passes(Vec<Pass>);

impl Passes {
    /// A busy CPU moved a task to itself.
    pub(crate) fn moved(&mut self, pass: Pass) {
        if self.0.len() < PASSES_MAX {
            self.0.push(pass);
        }
    }

    /// All passes.
    pub fn iter(&self) -> impl Iterator<Item = Pass> {
        self.0.iter().copied()
    }

    /// The first pass from each other CPU, for each CPU.
    pub fn firsts(&self) -> impl Iterator<Item = Pass> {
        let between = |pass: &Pass| (pass.cpu, pass.from);
        let is_first =
            move |at: usize| !self.0[..at].iter().any(|other| between(other) == between(&self.0[at]));
        (0..self.0.len()).filter(move |&at| is_first(at)).map(|at| self.0[at])
    }
}
