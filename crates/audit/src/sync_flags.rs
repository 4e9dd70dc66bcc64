//! Whether wake-ups carry the sync flag, by what became of earlier ones.
//!
//! No event shows the flag, but a task is mostly woken at the same place of the same programs: of 24,051 wake-ups by tasks in the
//! white-box recordings, whose probes show it, 38 carry another flag than most of their wakee. Where one flag alone leads to what
//! happened it is likely that this was the one. Not sure: a flag may also be without effect for a reason that is hidden.

use schedlab_sched::Wakeup;

use crate::placement::may_be_sync;
use crate::shadow::Shadow;

/// So many more wake-ups than had the other flag tell that it is this one.
const SURE: i8 = 3;

/// More are not counted, so that who is woken otherwise from some time on is soon known for it.
const MOST: i8 = 4;

/// How many more wake-ups of a task seem to have had the flag than not: of those by interrupts, and by tasks.
#[derive(Clone, Copy, Debug, Default)]
pub struct SyncFlags([i8; 2]);

impl SyncFlags {
    fn of(self, by_task: bool) -> Option<bool> {
        let more = self.0[usize::from(by_task)];
        (more.abs() >= SURE).then_some(more > 0)
    }

    fn learn(&mut self, by_task: bool, sync: bool) {
        let more = &mut self.0[usize::from(by_task)];
        *more = (*more + if sync { 1 } else { -1 }).clamp(-MOST, MOST);
    }
}

impl Shadow {
    /// The flag that a wake-up carries, if earlier ones tell.
    pub fn sync_flag(&self, wakeup: &Wakeup) -> Option<bool> {
        self.known(wakeup.task).sync_flags.of(wakeup.in_task).filter(|_| self.trusts)
    }

    /// Whether a wake-up may carry no flag, and whether it may carry it, as far as more of the earlier ones tell.
    pub fn likely_sync_flags(&self, wakeup: &Wakeup) -> [bool; 2] {
        let more = self.known(wakeup.task).sync_flags.0[usize::from(wakeup.in_task)];
        let may = may_be_sync(self, wakeup);
        [!may || more <= 0, may && more >= 0]
    }

    /// Only with this flag a wake-up leads where it led.
    pub fn learn_sync_flag(&mut self, wakeup: &Wakeup, sync: bool) {
        self.known_mut(wakeup.task).sync_flags.learn(wakeup.in_task, sync);
    }
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
