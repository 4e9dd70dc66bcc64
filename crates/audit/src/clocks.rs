//! How long before its event the clock of a CPU may have been read.
//!
//! A CPU reads its clock, does what it has to do and writes the event. Emulated CPUs take
//! turns, so in between others may have had theirs: one that was not seen to act while
//! another was may have been held up just after it read the clock.

use schedlab_topology::{CpuId, PerCpu};
use schedlab_units::{Duration, Time};

/// The clock of a CPU by which its scheduler goes.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// When it was read, by the events.
    pub read: Time,
    /// How long before that it may have been, as far as errors go.
    pub held: Duration,
    /// How long before that it may have been at most, if the CPU lost its turn just then.
    pub most: Duration,
}

/// What is known of one CPU's clock.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    /// When the CPU acted last.
    acted: Time,
    /// When somebody was queued there last, and how long before that the clock may have been read.
    queued: Time,
    queued_held: Duration,
    /// When the CPU went idle last, and how much earlier that may have been.
    went_idle: Time,
    idle_held: Duration,
    /// When it ran a task last after it was idle.
    roused: Time,
}

/// The clocks of all CPUs.
#[derive(Clone, Debug)]
pub struct Clocks {
    cpus: PerCpu<Known>,
    /// The CPU of the latest event, and when another than that acted last.
    last: (CpuId, Time),
}

impl Clocks {
    /// Nobody acted yet.
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

    /// When a CPU acted last.
    pub fn acted(&self, cpu: CpuId) -> Time {
        self.cpus[cpu].acted
    }

    /// How long before its event, which is told next, a CPU that acts may have been held up.
    pub fn held(&self, cpu: CpuId, now: Time) -> Duration {
        let before = self.cpus[cpu].acted;
        let others = if self.last.0 == cpu { self.last.1 } else { self.cpus[self.last.0].acted };
        if others > before { now.since(before) } else { Duration::ZERO }
    }

    /// Somebody is queued on a CPU by one that may have been held up so long.
    pub fn queued(&mut self, cpu: CpuId, held: Duration, now: Time) {
        let known = &mut self.cpus[cpu];
        (known.queued, known.queued_held) = (now, held);
    }

    /// When somebody was queued on a CPU last.
    pub fn queued_at(&self, cpu: CpuId) -> Time {
        self.cpus[cpu].queued
    }

    /// How long who queued somebody on a CPU last may have been held up.
    pub fn queued_held(&self, cpu: CpuId) -> Duration {
        self.cpus[cpu].queued_held
    }

    /// A CPU that was idle runs a task.
    pub fn rouses(&mut self, cpu: CpuId, now: Time) {
        self.cpus[cpu].roused = now;
    }

    /// When a CPU that was idle ran a task last.
    pub fn roused(&self, cpu: CpuId) -> Time {
        self.cpus[cpu].roused
    }

    /// A CPU goes idle.
    pub fn idles(&mut self, cpu: CpuId, held: Duration, now: Time) {
        let known = &mut self.cpus[cpu];
        (known.went_idle, known.idle_held) = (now, held);
    }

    /// When a CPU went idle last.
    pub fn went_idle(&self, cpu: CpuId) -> Time {
        self.cpus[cpu].went_idle
    }

    /// How much earlier than its event says a CPU may have gone idle.
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
