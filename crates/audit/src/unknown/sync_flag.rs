//! Whether wake-ups carry the sync flag, judged by the outcome of earlier ones.
//!
//! No event shows the flag, but a task is mostly woken at the same place of the same programs: of 24,051 wake-ups by
//! tasks in the white-box recordings, whose probes show it, 38 carry another flag than most wake-ups of the same wakee.
//! If only one value of the flag explains the outcome, it was probably that value. This is not certain: the flag may
//! also have no effect for a hidden reason.

use schedlab_sched::{Feature, Wakeup};

use super::Shadow;
use super::about::{About, Reading};
use super::beyond::{Candidate, Case, Of};
use super::otherwise::Otherwise;

/// Learned from wake-ups whose outcome follows with only one value.
pub const LEARNED: Reading = Reading::new("LEARNED_FLAG", "most wake-ups of a task have the same sync flag");

pub(super) const ABOUT: About = About {
    readings: &[LEARNED],
    beyond,
    ..About::new("SYNC_FLAG", "whether the wake-up carried the sync flag")
};

/// A value is assumed if it has been seen this many times more than the other.
const SURE: i8 = 3;

/// The count is limited, so that a change in how a task is woken is noticed soon.
const MOST: i8 = 4;

/// How many more wake-ups of a task seem to have had the flag than not: by interrupts, and by tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncFlags([i8; 2]);

impl SyncFlags {
    /// The flag, if it is known.
    pub fn of(self, by_task: bool) -> Option<bool> {
        let more = self.0[usize::from(by_task)];
        (more.abs() >= SURE).then_some(more > 0)
    }

    /// How many more wake-ups have had it than not.
    pub fn more(self, by_task: bool) -> i8 {
        self.0[usize::from(by_task)]
    }

    /// One more wake-up seems to have had the flag, or not.
    pub fn learn(&mut self, by_task: bool, sync: bool) {
        let more = &mut self.0[usize::from(by_task)];
        *more = (*more + if sync { 1 } else { -1 }).clamp(-MOST, MOST);
    }
}

impl Shadow {
    /// The flag that a wake-up carries, if earlier ones show it.
    pub fn sync_flag(&self, wakeup: &Wakeup) -> Option<bool> {
        self.known(wakeup.task).learned.sync_flags.of(wakeup.in_task).filter(|_| self.learned.trusts)
    }

    /// Whether a wake-up may carry no flag, and whether it may carry the flag, if more of the earlier ones agree.
    pub fn likely_sync_flags(&self, wakeup: &Wakeup) -> [bool; 2] {
        let more = self.known(wakeup.task).learned.sync_flags.more(wakeup.in_task);
        let may = may_be_sync(self, wakeup);
        [!may || more <= 0, may && more >= 0]
    }

    /// Learns from a wake-up whose outcome follows only with this flag.
    pub fn learn_sync_flag(&mut self, wakeup: &Wakeup, sync: bool) {
        self.known_mut(wakeup.task).learned.sync_flags.learn(wakeup.in_task, sync);
    }
}

/// Whether the wake-up may carry a sync flag that counts; the flag of a waker that exits does not.
pub fn may_be_sync(shadow: &Shadow, wakeup: &Wakeup) -> bool {
    let exits = shadow.sched.kernel.has(Feature::SyncWakerExiting)
        && wakeup.waker.is_some_and(|waker| shadow.sched.task(waker).exiting);
    !exits && !shadow.known(wakeup.task).plainly_woken
}

fn beyond(case: &Case<'_>, candidates: &mut Vec<Candidate>) {
    let Of::Wakeup { wakeup, .. } = case.of else { return };
    if may_be_sync(case.shadow, &wakeup) {
        return;
    }
    let had = Otherwise::plain("SYNC_FLAG", "the waker had said that it will sleep");
    candidates.push(Candidate::new(had, move |shadow, look| {
        let plainly = std::mem::take(&mut shadow.known_mut(wakeup.task).plainly_woken);
        let exits = |shadow: &mut Shadow, exits: bool| {
            let waker = wakeup.waker.map(|waker| shadow.sched.task_mut(waker));
            waker.is_some_and(|waker| std::mem::replace(&mut waker.exiting, exits))
        };
        let exiting = exits(shadow, false);
        let leads = look(shadow);
        shadow.known_mut(wakeup.task).plainly_woken = plainly;
        exits(shadow, exiting);
        leads
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_known_while_most_wakeups_seem_to_have_it() {
        let mut flags = SyncFlags::default();
        let mut after = |wakeups: &[bool]| {
            wakeups.iter().for_each(|&sync| flags.learn(true, sync));
            flags.of(true)
        };
        assert_eq!(after(&[true, true]), None, "too few");
        assert_eq!(after(&[true, true, true]), Some(true));
        assert_eq!(after(&[false]), Some(true), "one may have been without effect");
        assert_eq!(after(&[false, true, false]), None);
        assert_eq!(after(&[false; 5]), Some(false));
        assert_eq!(flags.of(false), None, "interrupts are another matter");
    }
}
