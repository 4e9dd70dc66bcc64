//! Where a process ran lately: its run time by CPU, halved once per epoch.

use alloc::vec;
use alloc::vec::Vec;

use schedlab_topology::CpuId;

/// Run time that is halved once per epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EpochTime {
    /// Epoch up to which it has been halved.
    pub epoch: u64,
    /// ns.
    pub runtime: u64,
}

/// What is left of a run time after this many epochs.
fn halved(runtime: u64, epochs: u64) -> u64 {
    if epochs >= 64 { 0 } else { runtime >> epochs }
}

impl EpochTime {
    pub(super) fn age(&mut self, epoch: u64) {
        self.runtime = halved(self.runtime, epoch - self.epoch);
        self.epoch = epoch;
    }
}

/// Run time on a CPU, in as few bytes as it takes.
#[derive(Clone, Copy, Debug)]
struct Ran {
    /// ns.
    runtime: u64,
    /// Epoch up to which it has been halved: the 32-bit number of one lasts for 497 days of epochs of 10 ms.
    epoch: u32,
    cpu: CpuId,
}

impl Ran {
    fn age(&mut self, epoch: u64) {
        self.runtime = halved(self.runtime, epoch - u64::from(self.epoch));
        self.epoch = epoch as u32;
    }
}

/// Run time by CPU, only for CPUs where some is left: most processes run on few.
#[derive(Clone, Debug, Default)]
pub struct Runtimes(Few);

/// Run times in the order of their CPUs. Of a hundred thousand processes most run on one CPU: that one needs no allocation.
#[derive(Clone, Debug)]
enum Few {
    One([Ran; 1]),
    Any(Vec<Ran>),
}

impl Default for Few {
    fn default() -> Few {
        Few::Any(Vec::new())
    }
}

impl Few {
    fn all(&self) -> &[Ran] {
        match self {
            Few::One(one) => one,
            Few::Any(all) => all,
        }
    }

    fn all_mut(&mut self) -> &mut [Ran] {
        match self {
            Few::One(one) => one,
            Few::Any(all) => all,
        }
    }

    fn insert(&mut self, at: usize, new: Ran) {
        match self {
            Few::One([one]) => *self = Few::Any(if at == 0 { vec![new, *one] } else { vec![*one, new] }),
            Few::Any(all) if all.capacity() == 0 => *self = Few::One([new]),
            Few::Any(all) => all.insert(at, new),
        }
    }

    fn remove(&mut self, at: usize) {
        match self {
            Few::One(_) => *self = Few::default(),
            Few::Any(all) => _ = all.remove(at),
        }
    }
}

impl Runtimes {
    /// The time on a CPU that remains after the last decay, ns.
    pub fn of(&self, cpu: CpuId) -> u64 {
        self.place(cpu).map_or(0, |at| self.0.all()[at].runtime)
    }

    fn place(&self, cpu: CpuId) -> Result<usize, usize> {
        self.0.all().binary_search_by_key(&cpu, |ran| ran.cpu)
    }

    /// Decays the time on a CPU to an epoch, and returns what remains of it, ns.
    pub(super) fn age(&mut self, cpu: CpuId, epoch: u64) -> u64 {
        let Ok(at) = self.place(cpu) else { return 0 };
        let ran = &mut self.0.all_mut()[at];
        ran.age(epoch);
        let remains = ran.runtime;
        if remains == 0 {
            self.0.remove(at);
        }
        remains
    }

    /// Decays the time on a CPU to an epoch and adds to it.
    pub(super) fn add(&mut self, cpu: CpuId, epoch: u64, runtime: u64) {
        match self.place(cpu) {
            Ok(at) => {
                let ran = &mut self.0.all_mut()[at];
                ran.age(epoch);
                ran.runtime += runtime;
            }
            Err(at) => self.0.insert(at, Ran { runtime, epoch: epoch as u32, cpu }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_any_number_of_cpus_are_kept_in_their_order() {
        let mut times = Runtimes::default();
        let all = |times: &Runtimes| [1, 2, 3].map(|cpu| times.of(CpuId(cpu)));
        assert_eq!(times.age(CpuId(1), 5), 0);
        times.add(CpuId(2), 0, 8);
        times.add(CpuId(2), 1, 2);
        assert_eq!(all(&times), [0, 6, 0]);
        assert_eq!(times.age(CpuId(2), 4), 0, "of 6 ns nothing is left after three epochs");
        times.add(CpuId(3), 4, 8);
        times.add(CpuId(1), 4, 16);
        times.add(CpuId(2), 4, 1);
        assert_eq!(all(&times), [16, 1, 8]);
        assert_eq!((times.age(CpuId(2), 5), times.age(CpuId(1), 5), times.age(CpuId(3), 8)), (0, 8, 0));
        times.add(CpuId(2), 6, 4);
        assert_eq!(all(&times), [8, 4, 0]);
    }
}
