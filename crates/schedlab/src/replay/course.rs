//! What happened by when, so that the second half of a run can be judged by itself.
//!
//! What is learned of the state is learned from the beginning, and what is said of the beginning confirms nothing.

use schedlab_report::metrics::{Counts, Migrations};
use schedlab_trace::Event;
use schedlab_units::{Duration, Time};

/// Switches and migrations up to the end of each millisecond.
#[derive(Clone, Debug, Default)]
pub struct Course {
    first: Option<Time>,
    by: Vec<(u64, u64)>,
}

impl Course {
    /// An event has been counted.
    pub(super) fn event(&mut self, event: &Event, counts: &Counts, migrations: &Migrations) {
        let since = event.time.since(*self.first.get_or_insert(event.time));
        let now = (counts.voluntary + counts.involuntary, migrations.total());
        let at = (since.0 / 1_000_000) as usize;
        // Events of several CPUs may be a little out of order.
        let at = at.max(self.by.len().saturating_sub(1));
        let last = self.by.last().copied().unwrap_or_default();
        self.by.resize(at + 1, last);
        self.by[at] = now;
    }

    /// Switches and migrations after so long, to the millisecond.
    pub(super) fn after(&self, time: Duration) -> (u64, u64) {
        let all = self.by.last().copied().unwrap_or_default();
        let whole = (time.0 / 1_000_000) as usize;
        let before = match whole {
            0 => (0, 0),
            _ => self.by.get(whole - 1).copied().unwrap_or(all),
        };
        (all.0 - before.0, all.1 - before.1)
    }
}
