//! When CPUs first balanced.
//!
//! A pass that moves no task leaves no event. The first pass that moves one shows how long after the start its CPU
//! balances, but not how often it did before: after a pass that found something to do, moved or not, the next follows
//! after the shortest interval, otherwise after the longest. So the first pass has several possible times; with each of
//! them different tasks are cache-hot, or are taken although they are heavy. All are tried: the start is replayed with
//! each, for one CPU after the other, and the time is kept that makes moves by busy CPUs most like the recorded ones.
//! Only single moves at the start are compared, tick by tick.
//!
//! Later passes that moved a task happen at their recorded times, whether they find a task to move in the
//! replay or not.

use schedlab_replay::{Learned, Learner};
use schedlab_sched::{Kernel, Sched, Took};
use schedlab_sim::{Pass, Past, Simulation};
use schedlab_topology::{CpuId, Topology};
use schedlab_units::{Duration, Time};

use super::beginning::{BEGINNING, tick_period};
use super::{Form, Place, Recorded};
use crate::error::Error;

/// Number of times tried for the first pass of a CPU over a domain.
const TRIED: usize = 8;

/// Moves by busy CPUs: in which tick of the beginning, to which CPU, from which.
type Moves = Vec<(u64, CpuId, CpuId)>;

/// The seed of everything else that is unknown, while they are tried.
const SEED: u64 = 1;

/// How similar moves are to the recorded ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Likeness {
    /// Number of moves in both, minus those that are not recorded.
    more: i64,
    /// The first tick in which they differ.
    until: u64,
}

impl Recorded {
    /// The state before the recording, from what is known about it on its own machine.
    ///
    /// # Errors
    /// A replay that cannot be made.
    pub(super) fn past(&self, topology: &Topology, kernel: &Kernel) -> Result<Past, Error> {
        let mut past = self.told_past(kernel);
        let period = tick_period(kernel);
        let since_tick = past.since_tick.unwrap_or_default();
        let sched = Sched::new(topology, kernel, Took::default(), SEED);
        keep_firsts(&sched, &mut past.passes);
        let possible = past.passes.iter().map(|pass| possible(&sched, pass, since_tick, period));
        let possible: Vec<Vec<Duration>> = possible.collect();
        for (pass, possible) in past.passes.iter_mut().zip(&possible) {
            pass.after = possible[0];
        }
        if !self.tells_passes(kernel) {
            return Ok(past);
        }
        let place = Place { placed: BEGINNING, ..self.own(topology.clone(), Form::USUAL) };
        let row = self.row(&place)?;
        let recorded = moves(&self.learned, self.learned.first, since_tick, period);
        let simulation = Simulation::new(&place.machine, kernel, &row.workload)
            .map_err(|e| Error::new(e.to_string()))?
            .seed(SEED)
            .limit(row.prologue + BEGINNING);
        let try_out = |past: &Past| {
            let mut learner = Learner::new();
            simulation.clone().past(past.clone()).run(&mut learner);
            let learned = learner.finish().map_err(|e| Error::new(e.to_string()))?;
            let made = moves(&learned, learned.first + row.prologue, since_tick, period);
            Ok(likeness(&recorded, &made))
        };
        let mut past = choose(past, &possible, try_out)?;
        past.passes.extend(self.later_passes().map(|pass| self.after(pass)));
        Ok(past)
    }

    /// Whether moves show the times of passes.
    pub(super) fn tells_passes(&self, kernel: &Kernel) -> bool {
        self.since_tick(kernel).is_some() && self.runs_long(tick_period(kernel))
    }

    /// Whether most tasks run for longer than a tick. With shorter runs, the tick in which a task waits is a matter
    /// of chance.
    pub(super) fn runs_long(&self, period: Duration) -> bool {
        let ticks = self.learned.last.since(self.learned.first).0 / period.0;
        self.figures.counts.switches < ticks * self.nr_cpus as u64
    }
}

/// Chooses the best of the possible times of each pass by changing one after the other until no change improves the
/// result.
fn choose(
    mut past: Past,
    possible: &[Vec<Duration>],
    try_out: impl Fn(&Past) -> Result<Likeness, Error>,
) -> Result<Past, Error> {
    let mut best = try_out(&past)?;
    loop {
        let before = best;
        for (at, possible) in possible.iter().enumerate() {
            for &after in possible {
                let kept = std::mem::replace(&mut past.passes[at].after, after);
                if after == kept {
                    continue;
                }
                match try_out(&past)? {
                    better if better > best => best = better,
                    _ => past.passes[at].after = kept,
                }
            }
        }
        if best == before {
            return Ok(past);
        }
    }
}

/// Keeps the first pass of each CPU over each of its domains.
fn keep_firsts(sched: &Sched, passes: &mut Vec<Pass>) {
    let mut seen = Vec::new();
    passes.retain(|pass| {
        let domain = sched.common_domain(pass.from, pass.cpu);
        let is_first = domain.is_some_and(|id| !seen.contains(&id));
        seen.extend(domain);
        is_first
    });
}

/// When the first pass may have come, the latest first, if one came at the time of this one.
fn possible(sched: &Sched, pass: &Pass, since_tick: Duration, period: Duration) -> Vec<Duration> {
    let intervals = sched.busy_balance_intervals(pass.cpu, pass.from);
    let [shortest, longest] = intervals.expect("it is a pass over a domain");
    let ahead = (pass.after + since_tick).0 / period.0;
    let longs = (0..=ahead / longest).map(|number| number * longest);
    let all =
        longs.flat_map(|long| (0..=(ahead - long) / shortest).map(move |number| long + number * shortest));
    let mut before: Vec<u64> = all.filter(|&before| before < ahead && ahead - before <= longest).collect();
    before.sort_unstable();
    before.dedup();
    before.truncate(TRIED);
    let after = |before: u64| Duration(pass.after.0.saturating_sub(before * period.0));
    if before.is_empty() { vec![pass.after] } else { before.into_iter().map(after).collect() }
}

fn moves(learned: &Learned, begins: Time, since_tick: Duration, period: Duration) -> Moves {
    let early = learned.passes.iter().filter(|pass| pass.at >= begins && pass.at.since(begins) <= BEGINNING);
    let tick = |at: Time| (at.since(begins) + since_tick).0 / period.0;
    let mut moves: Moves = early.map(|pass| (tick(pass.at), pass.cpu, pass.from)).collect();
    moves.sort_unstable();
    moves
}

fn likeness(recorded: &Moves, made: &Moves) -> Likeness {
    let both = made.iter().filter(|one| recorded.contains(one)).count() as i64;
    let same = recorded.iter().zip(made).take_while(|(one, other)| one == other).count();
    let tick = |moves: &Moves| moves.get(same).map_or(u64::MAX, |found| found.0);
    Likeness { more: 2 * both - made.len() as i64, until: tick(recorded).min(tick(made)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::millis(4);

    #[test]
    fn a_first_pass_comes_within_the_longest_interval_and_some_intervals_before_the_known_one() {
        let topology = Topology::regular("2x1x4").unwrap();
        let kernel = Kernel::parse("v6.12").unwrap();
        let sched = Sched::new(&topology, &kernel, Took::default(), SEED);
        let possible = |from, ticks: u64| {
            let pass = Pass { cpu: CpuId(1), from: CpuId(from), after: Duration(ticks * PERIOD.0 + 1000) };
            let all = possible(&sched, &pass, Duration::ZERO, PERIOD);
            all.iter().map(|after| after.0 / PERIOD.0).collect::<Vec<_>>()
        };
        // There are 15 or 31 ticks between two passes over an LLC of four, 31 or 63 between those over both.
        assert_eq!(possible(0, 0), [0]);
        assert_eq!(possible(0, 12), [12]);
        assert_eq!(possible(0, 24), [24, 9]);
        assert_eq!(possible(0, 54), [24, 23, 9, 8]);
        assert_eq!(possible(4, 54), [54, 23]);
    }

    #[test]
    fn moves_are_like_others_by_those_in_both_and_until_they_part() {
        let recorded: Moves = [(3, 0, 1), (9, 2, 0), (30, 1, 0)].map(moved).to_vec();
        let like = |made: &[(u64, u16, u16)]| {
            let made: Moves = made.iter().copied().map(moved).collect();
            let Likeness { more, until } = likeness(&recorded, &made);
            (more, until)
        };
        assert_eq!(like(&[]), (0, 3));
        assert_eq!(like(&[(3, 0, 1), (9, 2, 0), (30, 1, 0)]), (3, u64::MAX));
        assert_eq!(like(&[(3, 0, 1), (9, 2, 0)]), (2, 30));
        assert_eq!(like(&[(3, 0, 1), (7, 2, 0), (30, 1, 0)]), (1, 7));
    }

    fn moved((tick, cpu, from): (u64, u16, u16)) -> (u64, CpuId, CpuId) {
        (tick, CpuId(cpu), CpuId(from))
    }

    #[test]
    fn of_two_passes_that_go_together_both_are_found() {
        let ms = Duration::millis;
        let pass = |cpu| Pass { cpu: CpuId(cpu), from: CpuId(3), after: ms(9) };
        let past = Past { passes: vec![pass(0), pass(1)], ..Past::default() };
        // The second is of use only when the first is right, which is tried before.
        let try_out = |past: &Past| {
            let [one, two] = [0, 1].map(|at| past.passes[at].after);
            let more = i64::from(two == ms(5)) + 2 * i64::from(two == ms(5) && one == ms(1));
            Ok(Likeness { more, until: 0 })
        };
        let found = choose(past, &[vec![ms(9), ms(1)], vec![ms(9), ms(5)]], try_out).unwrap();
        assert_eq!(found.passes.iter().map(|pass| pass.after).collect::<Vec<_>>(), [ms(1), ms(5)]);
    }
}
