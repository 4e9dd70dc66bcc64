//! When ticks occur on the clock of a recording.
//!
//! Ticks are in no event, but they cause many: a task loses its CPU without a wake-up, balancing moves tasks, timers
//! wake tasks. If most of these fall into one quarter of the time between two ticks, that quarter begins with the tick.
//! In an emulator a tick comes late to most CPUs, which wait for their turns, but never early. Where slices have their
//! own timers, tasks lose their CPUs at any time; then it is enough if nearly all the rest falls into one half. If the
//! rest is spread as well, as with devices that interrupt all the time, the tick is unknown.

use schedlab_topology::CpuId;
use schedlab_units::{Duration, Time};

/// More marks add nothing.
const MARKS_MAX: usize = 4096;

/// Time between two ticks for each choice of CONFIG_HZ, the longest first.
const PERIODS: [Duration; 4] =
    [Duration::millis(10), Duration::millis(4), Duration(10_000_000 / 3), Duration::millis(1)];

/// An event of a kind that ticks cause.
#[derive(Clone, Copy, Debug)]
struct Mark {
    time: Time,
    cpu: CpuId,
    /// The timer of a slice also causes it.
    by_slice: bool,
    /// A task had been queued there, which also causes it, unless the CPU waits for its turn.
    asked: bool,
}

/// The events of kinds that ticks cause.
#[derive(Clone, Debug, Default)]
pub struct Ticks(Vec<Mark>);

/// A tick that came late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateTick {
    /// The CPU.
    pub cpu: CpuId,
    /// When it was due.
    pub due: Time,
    /// By how much.
    pub late: Duration,
}

/// The phase of ticks in each period, ns.
#[derive(Clone, Copy, Debug)]
struct Phase {
    at: u64,
    /// They come late by less than this.
    latest: u64,
    /// Slices have their own timers.
    slices_apart: bool,
}

impl Ticks {
    /// Records an event that ticks cause; `by_slice` if the timer of a slice also causes it.
    pub(crate) fn mark(&mut self, time: Time, cpu: CpuId, by_slice: bool) {
        if self.0.len() < MARKS_MAX {
            self.0.push(Mark { time, cpu, by_slice, asked: false });
        }
    }

    /// A task was preempted after a request.
    pub(crate) fn mark_asked(&mut self, time: Time, cpu: CpuId) {
        if self.0.len() < MARKS_MAX / 2 {
            self.0.push(Mark { time, cpu, by_slice: true, asked: true });
        }
    }

    /// The time since the last tick, if ticks have this period; `None` if the recording does not show it.
    pub fn since_tick(&self, time: Time, period: Duration) -> Option<Duration> {
        Some(Duration((time.0 + period.0 - self.phase(period)?.at) % period.0))
    }

    /// How late each tick with an event came, in order; empty if the recording does not show it.
    pub fn late(&self, period: Duration) -> Vec<LateTick> {
        let mut seen: Vec<LateTick> = Vec::new();
        let Some(phase) = self.phase(period) else { return seen };
        for mark in self.0.iter().filter(|mark| !(mark.by_slice && phase.slices_apart)) {
            let late = Duration((mark.time.0 + period.0 - phase.at) % period.0);
            let (cpu, due) = (mark.cpu, Time(mark.time.0.saturating_sub(late.0)));
            let known = || seen.iter().rev().take_while(|tick| tick.due >= due).any(|tick| tick.cpu == cpu);
            if late.0 < phase.latest && !known() {
                seen.push(LateTick { cpu, due, late });
            }
        }
        seen
    }

    /// Whether a turn may end at a time: because a tick is due that has not come yet or, if it is not `early` for that,
    /// by the timer of its slice. `None` if the recording does not show the ticks.
    pub(crate) fn may_end_a_turn(&self, time: Time, cpu: CpuId, early: bool) -> Option<bool> {
        let phase = |&period: &Duration| Some((period, self.phase(period)?));
        // Events that coincide in one period coincide in every fraction of it.
        let (period, phase) = PERIODS.iter().find_map(phase)?;
        let late = (time.0 + period.0 - phase.at) % period.0;
        let due = time.0.saturating_sub(late);
        let has_come = || self.0.iter().any(|mark| mark.cpu == cpu && (due..time.0).contains(&mark.time.0));
        Some((late < phase.latest && !has_come()) || (phase.slices_apart && !early))
    }

    fn phase(&self, period: Duration) -> Option<Phase> {
        let of = |mark: &Mark| mark.time.0 % period.0;
        let all = self.0.iter().filter(|mark| !mark.asked).map(of).collect();
        if let Some(at) = QUARTER.begin(all, period.0) {
            return Some(Phase { at, latest: period.0 / 4, slices_apart: false });
        }
        let others = self.0.iter().filter(|mark| !mark.by_slice).map(of).collect();
        let at = HALF.begin(others, period.0)?;
        Some(Phase { at, latest: period.0 / 2, slices_apart: true })
    }
}

/// A part of a period, and how many events must fall into it to exclude chance.
struct Part {
    parts: u64,
    /// Required share of all events, as a fraction.
    least: [usize; 2],
    /// Required excess over chance, in square roots of the number of events.
    roots: usize,
}

const QUARTER: Part = Part { parts: 4, least: [3, 4], roots: 6 };

const HALF: Part = Part { parts: 2, least: [15, 16], roots: 4 };

impl Part {
    /// Where the part begins that contains most events.
    fn begin(&self, mut phases: Vec<u64>, period: u64) -> Option<u64> {
        phases.sort_unstable();
        let all = phases.len();
        let once_more = phases.iter().map(|phase| phase + period);
        let phases: Vec<u64> = phases.iter().copied().chain(once_more).collect();
        let within =
            |from: usize, span: u64| phases[from..].partition_point(|&phase| phase < phases[from] + span);
        // If several are equal, the first.
        let (found, mut from) = (0..all)
            .map(|from| (within(from, period / self.parts), from))
            .max_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)))?;
        let [part, of] = self.least;
        let more = (self.parts as usize * found).saturating_sub(all);
        if found * of < all * part || more * more < self.roots * self.roots * all {
            return None;
        }
        // Chance events are sparse before the tick.
        while 16 * within(from, period / 16) < found {
            from += 1;
        }
        Some(phases[from] % period)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::millis(4);

    fn ticks(marks: &[u64], by_slice: bool) -> Ticks {
        let mut ticks = Ticks::default();
        for (number, us) in marks.iter().enumerate() {
            let cpu = CpuId(number as u16 % 2);
            ticks.mark(Time((1000 + number as u64 * 4000 + us) * 1000), cpu, by_slice);
        }
        ticks
    }

    /// Marks at these us after the ticks at 1 ms, 5 ms and so on; compares the time since the last tick at 10 ms.
    fn check(marks: &[u64], expected: Option<u64>) {
        let ticks = ticks(marks, true);
        assert_eq!(ticks.since_tick(Time(10_000_000), PERIOD), expected.map(Duration::micros), "{marks:?}");
    }

    #[test]
    fn the_earliest_of_what_comes_together_is_the_tick() {
        check(&[], None);
        check(&[0; 3], None);
        check(&[0; 12], Some(1000));
        check(&[0, 180, 340, 480, 600, 710, 800, 880, 0, 180, 340, 480], Some(1000));
        // One far away, and one just before.
        check(&[2500, 0, 10, 20, 0, 10, 20, 0, 10, 20, 30, 0], Some(1000));
        let mut marks = vec![40; 40];
        marks.push(3400);
        check(&marks, Some(960));
    }

    #[test]
    fn what_comes_at_any_time_shows_nothing() {
        let anywhere: Vec<u64> = (0..400).map(|number| number * 1237 % 4000).collect();
        check(&anywhere, None);
        let half: Vec<u64> = anywhere.iter().map(|us| if us % 2 == 0 { 100 } else { *us }).collect();
        check(&half, None);
    }

    #[test]
    fn where_slices_end_at_any_time_the_rest_shows_if_it_is_in_one_half() {
        let slices = ticks(&(0..400).map(|number| number * 1237 % 4000).collect::<Vec<_>>(), true);
        let late = [0, 10, 20, 400, 900, 1300, 1700, 1900];
        for (others, since) in [(late.repeat(3), Some(1000)), (late.to_vec(), None)] {
            let mut all = slices.clone();
            all.0.extend(ticks(&others, false).0);
            assert_eq!(all.since_tick(Time(10_000_000), PERIOD), since.map(Duration::micros));
        }
    }

    #[test]
    fn ticks_are_as_late_as_the_first_that_happens_in_them() {
        let mut ticks = ticks(&[0, 0, 30, 40, 0, 60, 0, 0, 90, 0, 0, 0], true);
        ticks.mark(Time(45_050_000), CpuId(0), true);
        ticks.mark(Time(45_200_000), CpuId(1), true);
        let late = ticks.late(PERIOD);
        let late = late.iter().filter(|tick| tick.late > Duration::ZERO);
        let told: Vec<_> = late.map(|tick| (tick.cpu.0, tick.due.0 / 1000, tick.late.0 / 1000)).collect();
        assert_eq!(told, [(0, 9000, 30), (1, 13000, 40), (1, 21000, 60), (0, 33000, 90), (0, 45000, 50)]);
    }
}
