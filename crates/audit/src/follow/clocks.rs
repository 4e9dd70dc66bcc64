//! How long before its event a CPU may have read its clock.
//!
//! A CPU reads its clock, does its work and writes the event. Emulated CPUs take turns, so other CPUs may run between
//! these steps: a CPU that was silent while another acted may have been held up just after it read the clock.

use schedlab_topology::{CpuId, PerCpu};
use schedlab_units::{Duration, Time};

/// A task that was detached from one queue is attached to another within this time.
pub(crate) const ATTACH_PATIENCE: Duration = Duration::millis(1);

/// The clock that a CPU's scheduler used.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Time of the reading, according to the events.
    pub read: Time,
    /// How much earlier it may have been, given the usual errors.
    pub held: Duration,
    /// How much earlier it may have been at most, if the CPU lost its turn just then.
    pub most: Duration,
}

/// What is known about one CPU's clock.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// When the CPU last acted.
    acted: Time,
    /// When a task was last queued there, and how much earlier the clock may have been read.
    queued: Time,
    queued_held: Duration,
    /// When the CPU last went idle, and how much earlier that may have been.
    went_idle: Time,
    idle_held: Duration,
    /// When it last ran a task after it was idle.
    roused: Time,
}

/// The clocks of all CPUs.
#[derive(Clone, Debug)]
pub struct Clocks {
    cpus: PerCpu<Known>,
    /// The CPU of the latest event, and when another CPU last acted.
    last: (CpuId, Time),
}

impl Clocks {
    /// Creates the clocks of CPUs that have not acted yet.
    pub fn new(cpus: usize) -> Clocks {
        Clocks { cpus: PerCpu::new(cpus, |_| Known::default()), last: (CpuId(0), Time::ZERO) }
    }

    /// A CPU acts.
    pub fn act(&mut self, cpu: CpuId, now: Time) {
        if self.last.0 != cpu {
            self.last = (cpu, self.cpus[self.last.0].acted);
        }
        self.cpus[cpu].acted = now;
    }

    /// When a CPU last acted.
    pub fn acted(&self, cpu: CpuId) -> Time {
        self.cpus[cpu].acted
    }

    /// How long a CPU may have been held up before its event, which is processed next.
    pub fn held(&self, cpu: CpuId, now: Time) -> Duration {
        let before = self.cpus[cpu].acted;
        let others = if self.last.0 == cpu { self.last.1 } else { self.cpus[self.last.0].acted };
        if others > before { now.since(before) } else { Duration::ZERO }
    }

    /// A task is queued on a CPU by another CPU that may have been held up for `held`.
    pub fn queued(&mut self, cpu: CpuId, held: Duration, now: Time) {
        let known = &mut self.cpus[cpu];
        (known.queued, known.queued_held) = (now, held);
    }

    /// When a task was last queued on a CPU.
    pub fn queued_at(&self, cpu: CpuId) -> Time {
        self.cpus[cpu].queued
    }

    /// How long the CPU that last queued a task there may have been held up.
    pub fn queued_held(&self, cpu: CpuId) -> Duration {
        self.cpus[cpu].queued_held
    }

    /// A CPU that was idle runs a task.
    pub fn rouses(&mut self, cpu: CpuId, now: Time) {
        self.cpus[cpu].roused = now;
    }

    /// When a CPU that was idle last ran a task.
    pub fn roused(&self, cpu: CpuId) -> Time {
        self.cpus[cpu].roused
    }

    /// A CPU goes idle.
    pub fn idles(&mut self, cpu: CpuId, held: Duration, now: Time) {
        let known = &mut self.cpus[cpu];
        (known.went_idle, known.idle_held) = (now, held);
    }

    /// When a CPU last went idle.
    pub fn went_idle(&self, cpu: CpuId) -> Time {
        self.cpus[cpu].went_idle
    }

    /// How much earlier than its event a CPU may have gone idle.
    pub fn idle_held(&self, cpu: CpuId) -> Duration {
        self.cpus[cpu].idle_held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_was_held_up_if_another_acted_since_it_did() {
        let mut clocks = Clocks::new(2);
        let [zero, one] = [CpuId(0), CpuId(1)];
        clocks.act(zero, Time(100));
        assert_eq!(clocks.held(zero, Time(150)), Duration::ZERO, "nobody else acted");
        clocks.act(one, Time(120));
        assert_eq!(clocks.held(zero, Time(150)), Duration(50));
        clocks.act(zero, Time(150));
        assert_eq!(clocks.held(zero, Time(160)), Duration::ZERO, "it acted after the other");
        assert_eq!(clocks.held(one, Time(160)), Duration(40));
    }
}
