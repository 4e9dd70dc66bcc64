//! Where a wake-up may lead, and what the one that happens tells.

use schedlab_sched::{Placement, SdId, SharedId};
use schedlab_topology::CpuId;

use crate::flips::Spread;
use crate::verdict::{Choice, Hidden, Numbers, Possible};

/// What is possible, each CPU once.
#[derive(Default)]
pub struct Possibilities {
    /// The likeliest first.
    pub list: Vec<Possible>,
    /// What the likeliest leaves behind: recently used CPU, hints.
    pub placements: Vec<Placement>,
    /// The CPUs that are possible around the previous CPU, and around the waker's.
    pub around: [Vec<CpuId>; 2],
    /// Where guesses of the flips differ: what they say.
    pub telling: Option<Telling>,
    /// Whether the wake-up may lead around the previous CPU and around the waker's: without the sync flag, and with it.
    pub by_flag: Option<[[bool; 2]; 2]>,
    /// The domain over which the affine step was asked, which may weigh loads.
    pub affine: Option<SdId>,
    /// Whether the wake-up is likely to spread, and so to pass that step by.
    pub spreads: bool,
    /// Where a search ends hangs on its limit.
    pub by_limit: Option<ByLimit>,
}

/// Where a search ends if its limit lets it come so far, and if it does not.
#[derive(Clone, Copy)]
pub struct ByLimit {
    /// The cache whose limit it is.
    pub llc: SharedId,
    /// The CPU that it finds.
    pub finds: CpuId,
    /// So many CPUs it has to look at.
    pub looks: u32,
    /// The CPU that is taken if it may look at fewer.
    pub else_takes: CpuId,
}

/// What the outcome of a wake-up may tell of the flips.
pub struct Telling {
    /// What the guesses say.
    pub spread: Spread,
    /// If the wake-up does not spread, and if it does: whether it may lead around the previous CPU and
    /// around the waker's.
    pub leads: [[bool; 2]; 2],
}

impl Possibilities {
    /// Whether the wake-up spread, if only that, or only the other, leads to a CPU.
    pub fn tells_spread(&self, cpu: CpuId) -> Option<bool> {
        self.tells(self.telling.as_ref()?.leads, cpu)
    }

    /// Whether the wake-up carried the sync flag, if only that, or only the other, leads to a CPU.
    pub fn tells_flag(&self, cpu: CpuId) -> Option<bool> {
        self.tells(self.by_flag?, cpu)
    }

    /// Which of two readings leads to a CPU, if one alone does.
    fn tells(&self, leads: [[bool; 2]; 2], cpu: CpuId) -> Option<bool> {
        let may = |leads: [bool; 2]| {
            leads.iter().zip(&self.around).any(|(&leads, cpus)| leads && cpus.contains(&cpu))
        };
        let [one, other] = leads.map(may);
        (one != other).then_some(other)
    }

    /// Whether a CPU is among them.
    pub fn has(&self, cpu: CpuId) -> bool {
        self.list.iter().any(|possible| possible.choice == Choice::Cpu(cpu))
    }

    /// Adds one, unless its CPU is there. The first needs no hidden fact.
    pub fn add(&mut self, placement: Placement, hidden: Option<Hidden>, mut numbers: Numbers) {
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
