//! How far apart events of different CPUs can be and still overlap.
//!
//! Other CPUs see a CPU as idle a moment before its switch is traced, and see a queued task a moment before its wake-up
//! is traced. The length of that moment depends on the machine; on emulated CPUs that take turns it is a turn. It is
//! learned from how long wake-ups by interrupt take.

use schedlab_units::{Duration, Time};

/// How far apart in time events of different CPUs can be and still overlap.
#[derive(Clone, Copy, Debug)]
pub struct Slack {
    /// Mean time from a wake-up to its end by interrupt on an idle CPU, ns.
    delay: u64,
}

impl Default for Slack {
    fn default() -> Slack {
        Slack { delay: 10_000 }
    }
}

impl Slack {
    /// A wake-up by interrupt of an idle CPU took `delay`.
    pub fn learn(&mut self, delay: Duration) {
        let delay = delay.0.min(1_000_000);
        self.delay = (15 * self.delay + delay) / 16;
    }

    /// The time within which others may see a change sooner or later than it was traced.
    pub fn time(self) -> Duration {
        Duration((3 * self.delay).clamp(5_000, 1_000_000))
    }

    /// The start of the time that is looked back from an instant.
    pub fn from(self, now: Time) -> Time {
        Time(now.0.saturating_sub(self.time().0))
    }

    /// The end of the time that is looked ahead from an instant.
    pub fn until(self, now: Time) -> Time {
        now + self.time()
    }
}
