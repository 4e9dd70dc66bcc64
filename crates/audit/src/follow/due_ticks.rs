//! Ticks that wait for their charge.
//!
//! A tick first charges the running task and then updates the weights of its groups. Where the recording contains
//! charges, the tick's charge is an event at the same time or soon after, so the tick waits for it. Otherwise a group's
//! time would be charged with its next weight, and the error would grow with each tick.
//!
//! Kernel: entity_tick(), kernel/sched/fair.c, v6.12.

use schedlab_topology::CpuId;
use schedlab_trace::{Event, Flags, Kind};
use schedlab_units::{Duration, Time};

use crate::follow::shadow::Shadow;
use crate::follow::watch::Watch;

/// A charge that comes later than this does not belong to the tick.
const PATIENCE: Duration = Duration::micros(100);

impl<W: Watch> Shadow<W> {
    /// Handles a tick of a CPU: at once, or together with the charge of the running task.
    pub fn tick_in_turn(&mut self, cpu: CpuId, at: Time) {
        self.come_due(|due, _| due == cpu);
        if self.tells_clock(cpu) {
            self.due_ticks.push((cpu, at));
        } else {
            self.tick(cpu, at, false);
        }
    }

    /// Handles the ticks whose charge can no longer come, before the given event.
    #[inline]
    pub fn ticks_before(&mut self, event: &Event) {
        if !self.due_ticks.is_empty() {
            let charges = matches!(event.kind, Kind::SchedStatRuntime { pid, .. } if pid == event.pid)
                && event.flags.has(Flags::HARDIRQ);
            let (cpu, now) = (event.cpu, event.time);
            self.come_due(|due, at| if due == cpu { !charges } else { now > at + PATIENCE });
        }
    }

    /// The task of a CPU was charged; `asked` says whether a reschedule was pending before.
    pub fn ticks_with(&mut self, cpu: CpuId, asked: bool) {
        if let Some(place) = self.due_ticks.iter().position(|&(due, _)| due == cpu) {
            let (_, at) = self.due_ticks.remove(place);
            self.tick(cpu, at, !asked && self.is_asked(cpu));
        }
    }

    fn come_due(&mut self, comes: impl Fn(CpuId, Time) -> bool) {
        while let Some(place) = self.due_ticks.iter().position(|&(cpu, at)| comes(cpu, at)) {
            let (cpu, at) = self.due_ticks.remove(place);
            self.tick(cpu, at, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use schedlab_trace::read::{Record, ftrace};

    use super::*;

    /// Whether the tick of CPU 0 at 1.004 still waits when an event comes, and after its charge was processed.
    fn waits(line: &str) -> [bool; 2] {
        let us = |us: u64| Time(1_000_000_000 + us * 1000);
        let (mut shadow, task) = <Shadow>::with_one("v6.12", us(100));
        crate::follow::runtime::charge(&mut shadow, task, 1, None, us(1000));
        let Some(Ok(Record::Event(event))) = ftrace::Reader::new(line.as_bytes()).next() else {
            panic!("{line}")
        };
        shadow.advance(event.time);
        shadow.ticks_before(&event);
        let before = !shadow.due_ticks.is_empty();
        shadow.ticks_with(CpuId(0), false);
        [before, !shadow.due_ticks.is_empty()]
    }

    #[test]
    fn a_tick_waits_for_the_charge_that_it_makes() {
        let charge = "sched_stat_runtime: comm=a pid=7 runtime=3000000 [ns]";
        for (line, before) in [
            (format!("a-7 [000] d.h1. 1.004000: {charge}"), true),
            (format!("a-7 [000] d.h1. 1.004030: {charge}"), true),
            // It does not come from an interrupt.
            (format!("a-7 [000] d..2. 1.004000: {charge}"), false),
            (
                "a-7 [000] d.h1. 1.004000: sched_waking: comm=b pid=8 prio=120 target_cpu=001".to_owned(),
                false,
            ),
            ("b-8 [001] d..1. 1.004010: sched_process_wait: comm=b pid=8 prio=120".to_owned(), true),
            ("b-8 [001] d..1. 1.004200: sched_process_wait: comm=b pid=8 prio=120".to_owned(), false),
        ] {
            assert_eq!(waits(&line), [before, false], "{line}");
        }
    }
}
