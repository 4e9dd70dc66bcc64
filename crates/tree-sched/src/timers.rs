//! Timers of the library, one for each CPU: the engine knows when the next one is due.

use schedlab_sched::MigrationCause;
use schedlab_topology::CpuId;
use schedlab_units::Time;

use crate::TreeSched;
use crate::told::Call;

impl TreeSched {
    /// When the timer of a CPU that was just set is due; `Time::MAX`: another expires first. `None` if it is due now.
    pub(crate) fn next_timer(&mut self, cpu: CpuId, now: Time) -> Option<Time> {
        if now.0 < self.of(cpu).timer {
            // It was set to an earlier time meanwhile, and again when that came.
            return Some(Time::MAX);
        }
        let at = self.library.timer_at(self.of(cpu).timers);
        if at <= now.0 {
            return None;
        }
        let at = if at < i64::MAX as u64 { Time(at) } else { Time::MAX };
        self.of_mut(cpu).timer = at.0;
        Some(at)
    }

    /// The timer of a CPU expires. Returns when the next one is due, if any is set.
    pub(crate) fn timer(&mut self, cpu: CpuId, now: Time) -> Option<Time> {
        self.at(now);
        // While the timer runs no other call is needed.
        self.of_mut(cpu).timer = 0;
        let at = self.of(cpu).timers;
        self.library.timer(at);
        self.told(at, MigrationCause::Push, Call::Other);
        let next = self.library.timer_at(at);
        let is_set = next < i64::MAX as u64;
        self.of_mut(cpu).timer = if is_set { next } else { u64::MAX };
        is_set.then_some(Time(next))
    }
}
