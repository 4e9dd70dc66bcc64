//! Where a wake-up may lead, and what its outcome shows.

use schedlab_sched::{Placement, SdId};
use schedlab_topology::CpuId;

use crate::report::verdict::{Choice, Numbers, Possible};
use crate::unknown::idle_scan_limit::ByLimit;
use crate::unknown::list::Unknown;
use crate::unknown::wakee_flips::Spread;

/// The possible choices, each CPU once.
#[derive(Default)]
pub struct Possibilities {
    /// The likeliest first.
    pub list: Vec<Possible>,
    /// Side effects of the likeliest: recently used CPU, hints.
    pub placements: Vec<Placement>,
    /// The CPUs that are possible around the previous CPU, and around the waker's.
    pub around: [Vec<CpuId>; 2],
    /// Where guesses of the flips disagree: what they say.
    pub telling: Option<Telling>,
    /// Whether the wake-up may lead around the previous CPU and around the waker's: without the sync flag, and with it.
    pub by_flag: Option<[[bool; 2]; 2]>,
    /// The domain over which the affine step, which may weigh loads, was evaluated.
    pub affine: Option<SdId>,
    /// Whether the wake-up is likely to spread and so skip that step.
    pub spreads: bool,
    /// Set if the scan limit decides where a search ends.
    pub by_limit: Option<ByLimit>,
}

/// What the outcome of a wake-up may show about the flips.
pub struct Telling {
    /// What the guesses say.
    pub spread: Spread,
    /// Without and with spreading: whether the wake-up may lead around the previous CPU and around the waker's.
    pub leads: [[bool; 2]; 2],
}

impl Possibilities {
    /// Whether the wake-up spread, if the choice of `cpu` decides that.
    pub fn tells_spread(&self, cpu: CpuId) -> Option<bool> {
        self.tells(self.telling.as_ref()?.leads, cpu)
    }

    /// Whether the wake-up carried the sync flag, if the choice of `cpu` decides that.
    pub fn tells_flag(&self, cpu: CpuId) -> Option<bool> {
        self.tells(self.by_flag?, cpu)
    }

    /// Which of two assumptions leads to a CPU, if only one does.
    fn tells(&self, leads: [[bool; 2]; 2], cpu: CpuId) -> Option<bool> {
        let may = |leads: [bool; 2]| {
            leads.iter().zip(&self.around).any(|(&leads, cpus)| leads && cpus.contains(&cpu))
        };
        let [one, other] = leads.map(may);
        (one != other).then_some(other)
    }

    /// Whether a CPU is among the choices.
    pub fn has(&self, cpu: CpuId) -> bool {
        self.list.iter().any(|possible| possible.choice == Choice::Cpu(cpu))
    }

    /// Adds a choice unless its CPU is already there. The first choice needs no hidden fact.
    pub fn add(&mut self, placement: Placement, hidden: Option<Unknown>, mut numbers: Numbers) {
        let choice = Choice::Cpu(placement.cpu);
        if self.has(placement.cpu) {
            return;
        }
        numbers.extend(placement.number);
        let hidden = if self.list.is_empty() { None } else { hidden };
        self.list.push(Possible { choice, reason: placement.reason.name(), hidden, numbers });
        self.placements.push(placement);
    }
}
