//! When CPUs balance their load.
//!
//! A busy CPU balances each of its domains once per interval (some tens to hundreds of milliseconds), counted from
//! when it did so last. No event tells of a pass but the moves that it makes: in a softirq, of a waiting task, to the CPU that runs it.
//! The first of them tells where in the interval all others fall.

use schedlab_topology::CpuId;
use schedlab_units::Time;

/// A pass of a busy CPU that moved a task to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Whose it was.
    pub cpu: CpuId,
    /// Where the task came from.
    pub from: CpuId,
    /// When it was.
    pub at: Time,
}

/// More say nothing new.
const PASSES_MAX: usize = 4096;

/// The passes that moved a task, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Passes(Vec<Pass>);

impl Passes {
    /// A busy CPU moved a task to itself.
    pub(crate) fn moved(&mut self, pass: Pass) {
        if self.0.len() < PASSES_MAX {
            self.0.push(pass);
        }
    }

    /// All.
    pub fn iter(&self) -> impl Iterator<Item = Pass> {
        self.0.iter().copied()
    }

    /// The first of each CPU from each other.
    pub fn firsts(&self) -> impl Iterator<Item = Pass> {
        let between = |pass: &Pass| (pass.cpu, pass.from);
        let is_first =
            move |at: usize| !self.0[..at].iter().any(|other| between(other) == between(&self.0[at]));
        (0..self.0.len()).filter(move |&at| is_first(at)).map(|at| self.0[at])
    }
}
