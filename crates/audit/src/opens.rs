//! The wake-ups that were begun and are not committed yet, by the CPU that began them.

use schedlab_topology::{CpuId, CpuMask, PerCpu};

use crate::waking::Open;

/// By CPU, the wake-up it began and did not commit yet. They are large, so each stays where it is.
pub(crate) struct Opens {
    by_cpu: PerCpu<Option<Box<Open>>>,
    /// Which have one: every event looks for them.
    which: CpuMask,
    /// Places of those that were committed, to be filled again.
    #[allow(clippy::vec_box)]
    spare: Vec<Box<Open>>,
}

impl Opens {
    pub fn new(nr_cpus: usize) -> Opens {
        Opens { by_cpu: PerCpu::new(nr_cpus, |_| None), which: CpuMask::new(nr_cpus), spare: Vec::new() }
    }

    /// A place for one that begins.
    pub fn begin(&mut self, open: Open) -> Box<Open> {
        match self.spare.pop() {
            Some(mut place) => {
                *place = open;
                place
            }
            None => Box::new(open),
        }
    }

    /// One was committed.
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

    /// The first CPU from one on whose wake-up is such.
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
