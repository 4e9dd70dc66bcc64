//! What a recording shows about its initial state.
//!
//! Where a kernel puts a new task depends on what its CPUs did before the recording: their averages, and which of them
//! went idle last. No event shows that, but events show the choice. While averages still contain load from before, a
//! replay on the recorded machine puts new tasks where they went, provided that the state is the same: the parent
//! forks from the same CPU, and the chosen CPU is busy if it was. Tasks that existed before start with the lag and the
//! previous CPU that their first wake-ups show, and with averages as if they had always done what they do now. The
//! replay begins as long after a tick as the recording did, if events in ticks show how long that was. A busy CPU
//! balances a domain when its first move of a task shows that it did. The seed determines the rest of the state, such
//! as since when each CPU is idle.
//!
//! Replays elsewhere, and under other kernels, begin in the state of the seed, because where new tasks go is then
//! the question.

use std::collections::BTreeSet;

use schedlab_replay::PROLOGUE;
use schedlab_sched::{FairPolicy, Kernel, RecentUsedCpu};
use schedlab_sim::{LateTick, Pass, Past};
use schedlab_units::{Duration, Time};
use serde::Serialize;

use super::Recorded;

/// How long averages contain load from before the recording.
///
/// Kernel: `LOAD_AVG_MAX_N` periods of 1024 us, kernel/sched/pelt.c, after which what was before counts for nothing.
pub(super) const BEGINNING: Duration = Duration::micros(345 * 1024);

/// The part of a recording's initial state that is learned from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Beginning {
    /// How long after a tick it begins, ns, if known.
    pub since_tick_ns: Option<u64>,
    /// Number of ticks with a known delay.
    pub late_ticks: usize,
    /// New tasks that are placed as recorded, if possible.
    pub placed: usize,
    /// New tasks in all.
    pub new: usize,
    /// Tasks that start with lag.
    pub owed: usize,
    /// Tasks that start with a recently used CPU.
    pub recent: usize,
    /// Tasks that start with averages of what they are assumed to have done before.
    pub averages: usize,
    /// Number of CPUs that balance at the times shown by their first moves.
    pub balanced: usize,
    /// Number of later passes at the times when they moved a task in the recording.
    pub later_passes: usize,
}

/// Time between two ticks.
pub(super) fn tick_period(kernel: &Kernel) -> Duration {
    Duration(1_000_000_000 / kernel.tunables.hz)
}

impl Recorded {
    /// How long after a tick the recording begins, if known.
    pub(super) fn since_tick(&self, kernel: &Kernel) -> Option<Duration> {
        self.learned.ticks.since_tick(self.learned.first, tick_period(kernel))
    }

    /// What its events show about the time before.
    pub(super) fn told_past(&self, kernel: &Kernel) -> Past {
        let passes = self.early_passes().map(|pass| self.after(pass));
        let since_tick = self.since_tick(kernel);
        let period = tick_period(kernel);
        let last = Time(self.learned.first.0 - since_tick.unwrap_or_default().0.min(self.learned.first.0));
        let late = self.late_ticks(kernel).into_iter().filter(|tick| tick.due > last);
        let late_ticks = late.map(|tick| LateTick {
            cpu: tick.cpu,
            number: tick.due.since(last).0 / period.0,
            late: tick.late,
        });
        Past {
            at: PROLOGUE,
            since_tick,
            late_ticks: late_ticks.collect(),
            passes: passes.collect(),
            ..Past::default()
        }
    }

    /// Ticks with a known delay. Empty if tasks run for less than a tick: soft interrupts also wait for their turns, so
    /// events in them are later than the tick.
    fn late_ticks(&self, kernel: &Kernel) -> Vec<schedlab_replay::LateTick> {
        let period = tick_period(kernel);
        if self.runs_long(period) { self.learned.ticks.late(period) } else { Vec::new() }
    }

    /// The time of a pass.
    pub(super) fn after(&self, pass: schedlab_replay::Pass) -> Pass {
        Pass { cpu: pass.cpu, from: pass.from, after: pass.at.since(self.learned.first) }
    }

    /// Balance passes that show when the CPU balanced before the recording.
    fn early_passes(&self) -> impl Iterator<Item = schedlab_replay::Pass> {
        self.learned.passes.firsts().take_while(|pass| pass.at.since(self.learned.first) <= BEGINNING)
    }

    /// Passes that moved a task after averages had forgotten the time before the recording.
    pub(super) fn later_passes(&self) -> impl Iterator<Item = schedlab_replay::Pass> {
        self.learned.passes.iter().skip_while(|pass| pass.at.since(self.learned.first) <= BEGINNING)
    }

    /// What the recording shows about the state it began from.
    pub fn beginning(&self, kernel: &Kernel) -> Beginning {
        let placed = || self.learned.tasks.iter().filter_map(|task| task.placed);
        let early = placed().filter(|(at, _)| at.since(self.learned.first) <= BEGINNING);
        let since_tick_ns = self.since_tick(kernel).map(|since| since.0);
        let owed = self.learned.tasks.iter().filter(|task| task.lag > Duration::ZERO).count();
        let owed = if kernel.rules.policy == FairPolicy::Eevdf { owed } else { 0 };
        let recent = self.learned.tasks.iter().filter(|task| task.recent_used_cpu.is_some()).count();
        let recent = if kernel.rules.recent_used_cpu == RecentUsedCpu::Off { 0 } else { recent };
        let averages =
            self.learned.tasks.iter().filter(|task| task.did.is_some_and(|did| did.runnable > 0)).count();
        let balanced = self.early_passes().map(|pass| pass.cpu).collect::<BTreeSet<_>>().len();
        let later_passes = if self.tells_passes(kernel) { self.later_passes().count() } else { 0 };
        Beginning {
            since_tick_ns,
            late_ticks: self.late_ticks(kernel).len(),
            placed: early.count(),
            new: placed().count(),
            owed,
            recent,
            averages,
            balanced,
            later_passes,
        }
    }
}

impl Beginning {
    /// The same in words, as a separate line.
    pub fn text(self) -> String {
        let Beginning {
            since_tick_ns,
            late_ticks,
            placed,
            new,
            owed,
            recent,
            averages,
            balanced,
            later_passes,
        } = self;
        let mut seeded = vec!["when domains were balanced", "since when CPUs are idle"];
        let mut learned = Vec::new();
        match since_tick_ns {
            Some(since) => learned.push(format!("it begins {} us after a tick", since / 1000)),
            None => seeded.push("where between two ticks it begins"),
        }
        if late_ticks > 0 {
            learned.push(format!("how late {late_ticks} ticks come"));
        }
        match placed {
            0 => seeded.push("where new tasks go"),
            _ => learned.push(format!(
                "{placed} of {new} new tasks, from the first {} ms, go where they went if nothing else changed",
                BEGINNING.0 / 1_000_000
            )),
        }
        let mut tell = |count: usize, one: &str, some: &str| match count {
            0 => {}
            1 => learned.push(format!("one {one}")),
            _ => learned.push(format!("{count} {some}")),
        };
        tell(owed, "task brings lag", "tasks bring lag");
        tell(recent, "task has a recently used CPU", "tasks have a recently used CPU");
        tell(
            averages,
            "task starts with the averages of its recorded behaviour",
            "tasks start with the averages of their recorded behaviour",
        );
        tell(
            balanced,
            "CPU balances at the times that its first moves show",
            "CPUs balance at the times that their first moves show",
        );
        tell(
            later_passes,
            "later pass comes when it moved a task",
            "later passes come when they moved a task",
        );
        if balanced > 0 {
            seeded[0] = "when all other domains were balanced";
        }
        if learned.is_empty() {
            learned.push("nothing".to_string());
        }
        format!("beginning learned: {}; from the seed: {}\n", learned.join("; "), seeded.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_learned_stays_with_the_seed() {
        let text = |since_tick_ns, placed| {
            let (owed, recent, averages, balanced) = (placed / 6, placed / 12, placed / 4, placed / 2);
            let (late_ticks, later_passes) = (3 * placed, placed / 12);
            let beginning = Beginning {
                since_tick_ns,
                late_ticks,
                placed,
                new: 13,
                owed,
                recent,
                averages,
                balanced,
                later_passes,
            };
            beginning.text()
        };
        assert_eq!(
            text(Some(467_000), 12),
            "beginning learned: it begins 467 us after a tick; how late 36 ticks come; 12 of 13 new tasks, from the first 353 ms, go where \
             they went if nothing else changed; 2 tasks bring lag; one task has a recently used CPU; 3 tasks start with the averages of their recorded behaviour; 6 CPUs balance at the times that their first moves show; one later pass comes when it moved a task; from the seed: when \
             all other domains were balanced, since when CPUs are idle\n"
        );
        assert_eq!(
            text(None, 0),
            "beginning learned: nothing; from the seed: when domains were balanced, since when CPUs are idle, where \
             between two ticks it begins, where new tasks go\n"
        );
    }
}
