//! Whether a wake-up carries the sync flag.

use schedlab_sched::{Feature, Wakeup};

use crate::follow::shadow::Shadow;

impl Shadow {
    /// The flag that a wake-up carries, if earlier ones show it.
    pub fn sync_flag(&self, wakeup: &Wakeup) -> Option<bool> {
        self.known(wakeup.task).sync_flags.of(wakeup.in_task).filter(|_| self.trusts)
    }

    /// Whether a wake-up may carry no flag, and whether it may carry the flag, if more of the earlier ones agree.
    pub fn likely_sync_flags(&self, wakeup: &Wakeup) -> [bool; 2] {
        let more = self.known(wakeup.task).sync_flags.more(wakeup.in_task);
        let may = may_be_sync(self, wakeup);
        [!may || more <= 0, may && more >= 0]
    }

    /// Learns from a wake-up whose outcome follows only with this flag.
    pub fn learn_sync_flag(&mut self, wakeup: &Wakeup, sync: bool) {
        self.known_mut(wakeup.task).sync_flags.learn(wakeup.in_task, sync);
    }
}

/// Whether the wake-up may carry a sync flag that counts; the flag of a waker that exits does not.
pub fn may_be_sync(shadow: &Shadow, wakeup: &Wakeup) -> bool {
    let exits = shadow.sched.kernel.has(Feature::SyncWakerExiting)
        && wakeup.waker.is_some_and(|waker| shadow.sched.task(waker).exiting);
    !exits && !shadow.known(wakeup.task).plainly_woken
}
