//! What the scheduler touches that other CPUs touch as well.
//!
//! Nothing here has a price. A rule that takes another lock, or reads another word that several CPUs
//! write, says so in one line, `self.effects.push(Effect::write(cpu, Shared::...))`; the driver knows where
//! the lines of it are, and what it takes to get them.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::TaskId;

use crate::{Effect, TgId};

/// Something that several CPUs touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shared {
    /// A run queue, its lock included: `struct rq`.
    Rq(CpuId),
    /// The wake list of a CPU, and its mark that something is on it.
    WakeList(CpuId),
    /// A task: its state, where it is, its entity.
    Task(TaskId),
    /// Which CPUs have stopped their tick, and how many: `nohz`.
    Nohz,
    /// The lock of NUMA balancing: `sched_balance_running`.
    Serialize,
    /// The load average of a group: `tg->load_avg`.
    TgLoadAvg(TgId),
    /// A line with another atomic, less than [`Scheduler::nr_atomics`](crate::Scheduler::nr_atomics). Only the C code of
    /// a tree has these.
    Atomic(u32),
}

/// How something shared is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Written.
    Write,
    /// Its lock is taken, it is written, and the lock is released.
    Lock,
}

impl Effect {
    /// A CPU read something shared.
    pub fn read(by: CpuId, what: Shared) -> Effect {
        Effect::Touch { by, what, how: Access::Read }
    }

    /// A CPU wrote something shared.
    pub fn write(by: CpuId, what: Shared) -> Effect {
        Effect::Touch { by, what, how: Access::Write }
    }

    /// A CPU took the lock of something shared, and gave it back.
    pub fn lock(by: CpuId, what: Shared) -> Effect {
        Effect::Touch { by, what, how: Access::Lock }
    }
}

/// Run queues that were examined since the driver last took them. Nothing is recorded unless the driver requests it.
#[derive(Debug, Default)]
pub struct Looked(Vec<AtomicU64>);

impl Clone for Looked {
    fn clone(&self) -> Looked {
        Looked(self.0.iter().map(|word| AtomicU64::new(word.load(Ordering::Relaxed))).collect())
    }
}

impl Looked {
    /// Starts recording.
    pub fn of(nr_cpus: usize) -> Looked {
        Looked(vec![0; nr_cpus.div_ceil(64)].into_iter().map(AtomicU64::new).collect())
    }

    /// A run queue is examined. Deciders only read the state, so this is recorded separately; no other thread does so
    /// at the same time.
    #[inline]
    pub(crate) fn note(&self, cpu: CpuId) {
        if let Some(word) = self.0.get(cpu.index() / 64) {
            word.store(word.load(Ordering::Relaxed) | 1 << (cpu.index() % 64), Ordering::Relaxed);
        }
    }

    /// All CPUs of a mask are examined.
    #[inline]
    pub(crate) fn note_all(&self, cpus: &CpuMask) {
        let masks = cpus.words();
        for (at, word) in self.0.iter().enumerate() {
            let Some(&mask) = masks.get(at) else { break };
            word.store(word.load(Ordering::Relaxed) | mask, Ordering::Relaxed);
        }
    }

    /// Some of a word of 32 CPUs are examined.
    pub fn note_word(&mut self, number: usize, cpus: u32) {
        if let Some(word) = self.0.get_mut(number / 2) {
            *word.get_mut() |= u64::from(cpus) << (number % 2 * 32);
        }
    }

    /// Hands them to `each`, a word of 64 CPUs at a time, and forgets them.
    #[inline]
    pub fn take(&mut self, mut each: impl FnMut(usize, u64)) {
        for (index, word) in self.0.iter_mut().enumerate() {
            let cpus = core::mem::take(word.get_mut());
            if cpus != 0 {
                each(index, cpus);
            }
        }
    }
}

/// How long the kernel finds that its own work takes, by its clock: two rules decide by it, the bound of a scan and
/// newly idle balancing. The driver, which has the clock, updates this for the CPU that acts next. All ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Took {
    /// Looking at one CPU in an idle search.
    pub scan_cpu: u64,
    /// Fixed cost of a balance pass.
    pub pass: u64,
    /// Looking at one CPU in it.
    pub pass_cpu: u64,
    /// Moving one task.
    pub pass_task: u64,
    /// Updating blocked averages before newly idle balancing.
    pub blocked_update: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_at_is_reported_once() {
        let told = |looked: &mut Looked| {
            let mut cpus = Vec::new();
            looked.take(|word, set| {
                cpus.extend((0..64).filter(|bit| set >> bit & 1 != 0).map(|bit| word as u16 * 64 + bit));
            });
            cpus
        };
        let mut looked = Looked::of(130);
        for cpu in [129, 3, 64, 3] {
            looked.note(CpuId(cpu));
        }
        looked.note_all(&CpuMask::of(130, [CpuId(4), CpuId(64)]));
        assert_eq!(told(&mut looked), [3, 4, 64, 129]);
        assert_eq!(told(&mut looked), [0; 0]);
        for (number, cpus) in [(1, 1 << 8), (3, 1), (4, 2), (6, 1)] {
            looked.note_word(number, cpus);
        }
        assert_eq!(told(&mut looked), [40, 96, 129], "words of 32 CPUs, those that do not exist left out");
        let mut nobody_asks = Looked::default();
        nobody_asks.note(CpuId(3));
        assert_eq!(told(&mut nobody_asks), [0; 0]);
    }
}
