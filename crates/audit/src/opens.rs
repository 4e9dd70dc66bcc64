//! Wake-ups that have begun and are not committed yet, by the CPU that began them.

use schedlab_topology::{CpuId, CpuMask, PerCpu};

use crate::waking::Open;

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
