//! When the CPUs of the emulator tick, for recordings that do not show it.
//!
//! All ticks are due at the same instants, but the CPUs of the emulator take turns, and each sees its interrupt at the
//! start of its turn. With n CPUs a turn lasts 1/n of the time that is left until the next timer, so the turns get
//! shorter:
//!
//! ```text
//!   due                                              the timer after it
//!    | CPU 14  | CPU 15 | CPU 0 | CPU 1 | CPU 2 ...       |
//!    0         a/n      a (1 - (1 - 1/n)^2)               a
//! ```
//!
//! Recordings with `sched_stat_runtime` show exactly that, to the microsecond: the reach `a` is the same for all ticks
//! of a boot, between 0.2 and 3.6 ms, and the CPU that begins differs from tick to tick. If only switches are recorded,
//! both are chosen so that they best explain when tasks were preempted.

use schedlab_topology::CpuId;
use schedlab_units::{Duration, Time};

/// Time from a tick to the switch that it causes, ns.
const TO_SWITCH: u64 = 3_000;

/// A difference above which nothing is explained, ns.
const FAR: f64 = 30_000.0;

/// How late a CPU ticks whose turn comes after `turn` others, ns.
fn late(reach: f64, nr_cpus: usize, turn: usize) -> f64 {
    reach * (1.0 - (1.0 - 1.0 / nr_cpus as f64).powi(turn as i32))
}

/// The interval in which a tick is due, and the preemptions in it: the CPU, and how long after the due time.
struct Due {
    at: Time,
    seen: Vec<(usize, f64)>,
}

impl Due {
    /// How badly a start with one of the CPUs explains the preemptions.
    fn misfit(&self, reach: f64, nr_cpus: usize, first: usize) -> f64 {
        let turn = |cpu: usize| (cpu + nr_cpus - first) % nr_cpus;
        let off = |&(cpu, seen): &(usize, f64)| (seen - late(reach, nr_cpus, turn(cpu))).abs().min(FAR);
        self.seen.iter().map(off).sum()
    }

    /// The CPU that begins, if the previous tick began with `before`.
    fn first(&self, reach: f64, nr_cpus: usize, before: usize) -> (usize, f64) {
        let all = (0..nr_cpus).map(|step| (before + step) % nr_cpus);
        let misfits = all.map(|first| (first, self.misfit(reach, nr_cpus, first)));
        misfits.min_by(|a, b| a.1.total_cmp(&b.1)).expect("there is a CPU")
    }
}

/// Ticks of the CPUs between two times that explain the preemptions.
pub(crate) fn ticks(
    preempted: &[(Time, CpuId)],
    cpus: &[CpuId],
    (begin, end): (Time, Time),
    tick: Duration,
) -> Vec<(Time, CpuId)> {
    let due = |number: u64| {
        let at = Time(number * tick.0);
        let inside = preempted.iter().filter(|(time, _)| time.0 / tick.0 == number);
        let seen = inside.filter_map(|&(time, cpu)| {
            let index = cpus.binary_search(&cpu).ok()?;
            Some((index, time.since(at).0.saturating_sub(TO_SWITCH) as f64))
        });
        Due { at, seen: seen.collect() }
    };
    let all: Vec<Due> = (begin.0 / tick.0 + 1..=end.0 / tick.0).map(due).collect();
    let firsts = |reach: f64| {
        let mut before = 0;
        let mut misfit = 0.0;
        let firsts = all.iter().map(|due| {
            let (first, off) = due.first(reach, cpus.len(), before);
            before = first;
            misfit += off;
            first
        });
        (firsts.collect::<Vec<usize>>(), misfit)
    };
    // From 40 us in steps of a hundredth to the length of a tick.
    let reaches = std::iter::successors(Some(40_000.0), |reach: &f64| Some(reach * 1.01));
    let reaches = reaches.take_while(|&reach| reach < tick.0 as f64);
    let fits = reaches.map(|reach| (reach, firsts(reach)));
    let Some((reach, (firsts, _))) = fits.min_by(|a, b| a.1.1.total_cmp(&b.1.1)) else { return Vec::new() };
    let mut ticks = Vec::new();
    for (due, first) in all.iter().zip(firsts) {
        for turn in 0..cpus.len() {
            let at = due.at + Duration(late(reach, cpus.len(), turn) as u64);
            ticks.push((at, cpus[(first + turn) % cpus.len()]));
        }
    }
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reach_and_first_turn_are_found_from_a_few_preemptions() {
        let cpus: Vec<CpuId> = (0..16).map(CpuId).collect();
        let tick = Duration::millis(4);
        let turn = |number: u64, first: usize, cpu: usize| {
            let at = number * tick.0 + late(3_616_000.0, 16, (cpu + 16 - first) % 16) as u64;
            (Time(at), CpuId(cpu as u16))
        };
        let firsts = [12, 13, 14, 14, 13, 0, 13, 11];
        let mut preempted = Vec::new();
        for (number, first) in (1..).zip(firsts) {
            for cpu in [2, 7 + first % 3] {
                let (at, cpu) = turn(number, first, cpu);
                preempted.push((at + Duration(TO_SWITCH), cpu));
            }
            // A preemption by a wake-up.
            preempted.push((Time(number * tick.0 + 1_111_000), CpuId(5)));
        }
        let found = ticks(&preempted, &cpus, (Time(1), Time(9 * tick.0 - 1)), tick);
        assert_eq!(found.len(), 8 * 16);
        for (number, first) in (1..).zip(firsts) {
            for cpu in 0..16 {
                let (at, cpu) = turn(number, first, cpu);
                let near = |&&(found, on): &&(Time, CpuId)| on == cpu && found.0.abs_diff(at.0) < 30_000;
                assert!(found.iter().any(|found| near(&found)), "tick {number} of CPU {cpu}");
            }
        }
    }
}
