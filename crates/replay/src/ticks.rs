//! Where ticks fall on the clock of a recording.
//!
//! Ticks are in no event, but much happens in them: a task loses its CPU that nobody was woken for, tasks are moved by
//! balancing, timers wake. If most of that falls into one quarter of the time between two ticks, the quarter begins
//! with the tick. In an emulator it comes late to most CPUs, which wait for their turns, but never early. Where
//! it falls anywhere, as where devices interrupt all the time, the recording does not tell.

use schedlab_topology::CpuId;
use schedlab_units::{Duration, Time};

/// More say nothing new.
const MARKS_MAX: usize = 4096;

/// Times at which something happened that ticks do, and where.
#[derive(Clone, Debug, Default)]
pub struct Ticks(Vec<(Time, CpuId)>);

/// A tick that came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateTick {
    /// Where.
    pub cpu: CpuId,
    /// When it should have come.
    pub due: Time,
    /// By how much.
    pub late: Duration,
}

impl Ticks {
    pub(crate) fn mark(&mut self, time: Time, cpu: CpuId) {
        if self.0.len() < MARKS_MAX {
            self.0.push((time, cpu));
        }
    }

    /// How long after a tick a time is, if ticks come in this period; none if the recording does not tell.
    pub fn since_tick(&self, time: Time, period: Duration) -> Option<Duration> {
        Some(Duration((time.0 + period.0 - self.phase(period)?) % period.0))
    }

    /// How late ticks came in which something happened, in their order; none if the recording does not tell.
    pub fn late(&self, period: Duration) -> Vec<LateTick> {
        let mut seen: Vec<LateTick> = Vec::new();
        let Some(phase) = self.phase(period) else { return seen };
        for &(time, cpu) in &self.0 {
            let late = Duration((time.0 + period.0 - phase) % period.0);
            let due = Time(time.0 - late.0.min(time.0));
            let known = || seen.iter().rev().take_while(|tick| tick.due >= due).any(|tick| tick.cpu == cpu);
            if late.0 < period.0 / 4 && !known() {
                seen.push(LateTick { cpu, due, late });
            }
        }
        seen
    }

    /// When in each period ticks come.
    fn phase(&self, period: Duration) -> Option<u64> {
        let mut phases: Vec<u64> = self.0.iter().map(|(mark, _)| mark.0 % period.0).collect();
        phases.sort_unstable();
        let all = phases.len();
        let once_more = phases.iter().map(|phase| phase + period.0);
        let phases: Vec<u64> = phases.iter().copied().chain(once_more).collect();
        let within =
            |from: usize, span: u64| phases[from..].partition_point(|&phase| phase < phases[from] + span);
        // Of equals the first.
        let (found, mut from) = (0..all)
            .map(|from| (within(from, period.0 / 4), from))
            .max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)))?;
        // By chance a quarter would be there, give or take the root of all.
        let more = (4 * found).saturating_sub(all);
        if 4 * found < 3 * all || more * more < 36 * all {
            return None;
        }
        // What is there by chance lies thinly before the tick.
        while 16 * within(from, period.0 / 16) < found {
            from += 1;
        }
        Some(phases[from] % period.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::millis(4);

    /// Marks so many us after the ticks at 1 ms, 5 ms and so on; how long after a tick 10 ms is.
    fn check(marks: &[u64], expected: Option<u64>) {
        let mut ticks = Ticks::default();
        for (number, us) in marks.iter().enumerate() {
            ticks.mark(Time((1000 + number as u64 * 4000 + us) * 1000), CpuId(0));
        }
        assert_eq!(ticks.since_tick(Time(10_000_000), PERIOD), expected.map(Duration::micros), "{marks:?}");
    }

    #[test]
    fn the_earliest_of_what_comes_together_is_the_tick() {
        check(&[], None);
        check(&[0; 3], None);
        check(&[0; 12], Some(1000));
        check(&[0, 180, 340, 480, 600, 710, 800, 880, 0, 180, 340, 480], Some(1000));
        // One that lies apart, and one just before.
        check(&[2500, 0, 10, 20, 0, 10, 20, 0, 10, 20, 30, 0], Some(1000));
        let mut marks = vec![40; 40];
        marks.push(3400);
        check(&marks, Some(960));
    }

    #[test]
    fn what_comes_at_any_time_tells_nothing() {
        let anywhere: Vec<u64> = (0..400).map(|number| number * 1237 % 4000).collect();
        check(&anywhere, None);
        let half: Vec<u64> = anywhere.iter().map(|us| if us % 2 == 0 { 100 } else { *us }).collect();
        check(&half, None);
    }
}
