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

/// The first pass of each CPU that moved a task from each other.
#[derive(Clone, Debug, Default)]
pub struct Passes(Vec<Pass>);

impl Passes {
    /// A busy CPU moved a task to itself.
    pub(crate) fn moved(&mut self, pass: Pass) {
        if !self.0.iter().any(|known| (known.cpu, known.from) == (pass.cpu, pass.from)) {
            self.0.push(pass);
        }
    }

    /// They in order of time.
    pub fn iter(&self) -> impl Iterator<Item = Pass> {
        self.0.iter().copied()
    }
}
