//! The averages of a CPU.

use schedlab_sched::wakeup::ForkFacts;
use schedlab_sched::{CfsRq, Sched};
use schedlab_topology::CpuId;

/// Averages of a CPU's root queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Averages {
    /// Load.
    pub load: u64,
    /// Runnable time.
    pub runnable: u64,
    /// Utilisation.
    pub util: u64,
}

impl Averages {
    /// Averages of a queue.
    pub fn of(cfs: &CfsRq) -> Averages {
        Averages { load: cfs.avg.load_avg, runnable: cfs.avg.runnable_avg, util: cfs.avg.util_avg }
    }

    /// Sets the facts of a fork so that a CPU has these averages.
    pub fn give(self, sched: &Sched, facts: &mut ForkFacts, cpu: CpuId) {
        facts.set_averages(sched, cpu, self.load, self.runnable, self.util);
    }

    /// As far above `others` as the bound `most` allows.
    pub fn above(self, others: Averages, most: Averages) -> Averages {
        self.with(others, |average, other| average.max(other + 1)).with(most, u64::min)
    }

    #[inline(always)]
    pub fn each(self, change: impl Fn(u64) -> u64) -> Averages {
        Averages { load: change(self.load), runnable: change(self.runnable), util: change(self.util) }
    }

    #[inline(always)]
    pub fn with(self, other: Averages, join: impl Fn(u64, u64) -> u64) -> Averages {
        Averages {
            load: join(self.load, other.load),
            runnable: join(self.runnable, other.runnable),
            util: join(self.util, other.util),
        }
    }
}
