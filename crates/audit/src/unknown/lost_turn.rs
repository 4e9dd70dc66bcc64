//! Turns that a CPU lost between reading its clock for a switch and writing the event.
//!
//! An emulated CPU that loses its turn at that point has read a clock that is too early by the length of the others'
//! turns, up to milliseconds: time that seems to belong to the task that stopped is charged to the next one. That is
//! rare, since it needs a few particular instructions, and no event shows it. So it is an assumption that is tried
//! where nothing else explains the outcome, and then kept. It is used only under CFS. Under EEVDF deadlines and the
//! average move with the virtual times, and delayed sleepers, which no event shows either, cause the same
//! disagreements.

use schedlab_sched::{Curr, FairPolicy, SeId, calc_delta_fair};
use schedlab_topology::CpuId;
use schedlab_units::TaskId;

use super::Shadow;
use super::about::{About, Reading};
use crate::follow::clocks::Clock;

/// Tried where nothing else explains a pick or an answer.
pub const LOST_TURN: Reading =
    Reading::new("LOST_TURN", "a CPU lost its turn between its clock and its event");

pub(super) const ABOUT: About = About {
    readings: &[LOST_TURN],
    ..About::new("LOST_TURN", "when a switch read its clock, on a CPU that may have lost its turn just then")
};

/// Fractions of the time in which a turn may have been lost that are tried, the smallest first.
const PARTS: u64 = 8;

/// Number of switches remembered for each CPU.
const SWITCHES: usize = 8;

/// Shorter turns are not considered, ns.
const LEAST: u64 = 50_000;

/// How long a switch is remembered, ns: after that most sleepers have been placed again.
const AGE: u64 = 100_000_000;

/// A switch whose clock may have been read long before its event.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The task that stopped, if any; it may have run less.
    pub prev: Option<TaskId>,
    /// The task that ran next; it may have been charged more.
    pub next: Option<TaskId>,
    /// Largest lost time, ns.
    pub most: u64,
    /// Clock of the CPU then.
    pub at: u64,
}

/// The latest switches of a CPU during which others had their turns, the latest last.
pub type Turns = Vec<Turn>;

impl Shadow {
    /// A CPU switches.
    #[inline(always)]
    pub(super) fn turned(&mut self, cpu: CpuId, prev: Curr, next: Curr, clock: Clock) {
        if clock.most.0 >= clock.held.0 + LEAST {
            self.may_have_lost(cpu, prev, next, clock.most.0 - clock.held.0);
        }
    }

    #[inline(never)]
    fn may_have_lost(&mut self, cpu: CpuId, prev: Curr, next: Curr, most: u64) {
        if prev == next || self.sched.kernel.rules.policy != FairPolicy::Cfs {
            return;
        }
        let fair = |curr: Curr| curr.task().filter(|&task| self.sched.task(task).policy.is_fair());
        let at = self.sched.rqs[cpu].clock;
        let turn = Turn { prev: fair(prev), next: fair(next), most, at };
        let turns = &mut self.learned.turns[cpu];
        turns.retain(|turn| turn.at + AGE > at);
        if turns.len() == SWITCHES {
            let least = (0..SWITCHES).min_by_key(|&at| turns[at].most).unwrap_or(0);
            if turns[least].most > most {
                return;
            }
            turns.remove(least);
        }
        turns.push(turn);
    }

    /// Looks for a lost turn of a CPU that makes `is_so` true, and keeps it: the latest switch, and the least time.
    pub fn find_lost_turn(&mut self, cpu: CpuId, mut is_so: impl FnMut(&mut Shadow) -> bool) -> bool {
        for at in (0..self.learned.turns[cpu].len()).rev() {
            let turn = self.learned.turns[cpu][at];
            if turn.at + AGE <= self.sched.rqs[cpu].clock {
                return false;
            }
            for part in 1..=PARTS {
                let time = turn.most * part / PARTS;
                let before = self.lose(cpu, turn, time);
                if is_so(self) {
                    self.learned.turns[cpu][at].most -= time;
                    return true;
                }
                self.put_back(&before);
            }
        }
        false
    }

    /// Moves a charge from the first task of a switch to the second, as far as both still exist. Returns the previous
    /// state.
    fn lose(&mut self, cpu: CpuId, turn: Turn, time: u64) -> Vec<(SeId, u64)> {
        let here = |task: Option<TaskId>| task.filter(|&task| self.sched.task(task).cpu == cpu);
        let (prev, next) = (here(turn.prev), here(turn.next));
        let (prev_top, next_top) = match (prev, next) {
            (Some(prev), Some(next)) => self.sched.find_matching_se(SeId(prev.0), SeId(next.0)),
            // The virtual times of groups are no longer known.
            _ => (SeId(prev.map_or(0, |task| task.0)), SeId(next.map_or(0, |task| task.0))),
        };
        let mut before = Vec::new();
        for (task, top, on) in [(prev, prev_top, false), (next, next_top, true)] {
            let mut level = task.map(|task| SeId(task.0));
            while let Some(se) = level {
                let entity = self.sched.se(se);
                let (vruntime, deadline) = (entity.vruntime, entity.deadline);
                let by = calc_delta_fair(time, &entity.load);
                level = entity.parent.filter(|_| top != se);
                before.push((se, vruntime));
                let moved = if on { vruntime.wrapping_add(by) } else { vruntime.wrapping_sub(by) };
                self.sched.set_virtual_time(se, moved, deadline);
            }
        }
        before
    }

    fn put_back(&mut self, before: &[(SeId, u64)]) {
        for &(se, vruntime) in before {
            let deadline = self.sched.se(se).deadline;
            self.sched.set_virtual_time(se, vruntime, deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_trace::Comm;
    use schedlab_units::{Duration, Pid, Time};

    #[test]
    fn the_least_time_that_explains_is_taken_from_the_one_and_charged_to_the_other() {
        let at = |ms: u64| Time(1_000_000_000 + ms * 1_000_000);
        let (mut shadow, prev) = Shadow::with_one("v6.1", at(0));
        let next = shadow.task(Pid(8), &Comm::from("b"), None, CpuId(0), at(1));
        shadow.join(next, CpuId(0), at(1));
        let clock = Clock { read: at(9), held: Duration(200_000), most: Duration(8_200_000) };
        shadow.run(CpuId(0), Curr::Task(next), clock, at(9));
        let time = |shadow: &Shadow, task| shadow.sched.task(task).se.vruntime;
        let (one, two) = (time(&shadow, prev), time(&shadow, next));
        let by = |shadow: &Shadow, task, from: u64| time(shadow, task).wrapping_sub(from) as i64;
        assert!(!shadow.find_lost_turn(CpuId(0), |_| false));
        assert_eq!((by(&shadow, prev, one), by(&shadow, next, two)), (0, 0), "all is as it was");
        assert!(shadow.find_lost_turn(CpuId(0), |shadow| by(shadow, next, two) >= 2_500_000));
        assert_eq!((by(&shadow, prev, one), by(&shadow, next, two)), (-3_000_000, 3_000_000));
        assert!(!shadow.find_lost_turn(CpuId(0), |shadow| by(shadow, next, two) > 8_000_000));
    }
}
