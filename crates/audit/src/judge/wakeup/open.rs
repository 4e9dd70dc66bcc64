//! Wake-ups that have begun and are not committed yet, by the CPU that began them.

use schedlab_sched::{Reason, Wakeup};
use schedlab_topology::{CpuId, CpuMask, PerCpu};

use crate::follow::pairing::Fate;
use crate::judge::possibilities::Possibilities;
use crate::report::verdict::{Answer, Choice, Possible, Verdict};
use crate::unknown::list::Unknown;

/// A wake-up that was begun on a CPU and is not committed yet.
pub(crate) struct Open {
    pub(crate) wakeup: Wakeup,
    pub(crate) fate: Fate,
    pub(crate) verdict: Verdict,
    pub(crate) possible: Possibilities,
    /// Generation of the state in which it was judged.
    pub(crate) judged: u64,
    pub(crate) applied: bool,
    /// The task may still be on its CPU, which then queued it without a choice.
    pub(crate) may_be_on_cpu: bool,
    /// That is so likely that the choice is no evidence.
    pub(crate) likely_on_cpu: bool,
    /// It must have happened without a choice: the task was still queued or still on its CPU.
    pub(crate) nobody_chose: bool,
}

impl Open {
    /// The task stays where it is, without a choice, if `hidden` holds.
    pub(crate) fn stays(&mut self, reason: Reason, hidden: Unknown) {
        let choice = Choice::Cpu(self.fate.cpu);
        let numbers = Default::default();
        self.verdict.ours.push(Possible { choice, reason: reason.name(), hidden: Some(hidden), numbers });
        self.verdict.answer = Answer::AgreesInSet;
        self.verdict.hidden = Some(hidden);
        self.nobody_chose = true;
    }
}

/// For each CPU, the wake-up that it began and has not committed yet. They are large, so each is boxed and stays where
/// it is.
pub(crate) struct Opens {
    by_cpu: PerCpu<Option<Box<Open>>>,
    /// The CPUs that have one; every event checks this mask.
    which: CpuMask,
    /// Boxes of committed wake-ups, for reuse.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Open>>,
}

impl Opens {
    pub fn new(nr_cpus: usize) -> Opens {
        Opens { by_cpu: PerCpu::new(nr_cpus, |_| None), which: CpuMask::new(nr_cpus), spare: Vec::new() }
    }

    /// Takes a box for a wake-up that begins.
    pub fn begin(&mut self, open: Open) -> Box<Open> {
        match self.spare.pop() {
            Some(mut place) => {
                *place = open;
                place
            }
            None => Box::new(open),
        }
    }

    /// Returns the box of a committed wake-up.
    pub fn give_back(&mut self, place: Box<Open>) {
        self.spare.push(place);
    }

    pub fn get(&self, cpu: CpuId) -> Option<&Open> {
        self.by_cpu[cpu].as_deref()
    }

    pub fn put(&mut self, cpu: CpuId, open: Box<Open>) {
        self.by_cpu[cpu] = Some(open);
        self.which.set(cpu);
    }

    pub fn take(&mut self, cpu: CpuId) -> Option<Box<Open>> {
        self.which.clear(cpu);
        self.by_cpu[cpu].take()
    }

    /// The first CPU at or after `from` whose wake-up satisfies `is`.
    pub fn find(&self, from: usize, is: impl Fn(&Open) -> bool) -> Option<CpuId> {
        let mut from = from;
        loop {
            let cpu = self.which.next_from(from)?;
            if self.get(cpu).is_some_and(&is) {
                return Some(cpu);
            }
            from = cpu.index() + 1;
        }
    }
}
