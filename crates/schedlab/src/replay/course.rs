//! Counts over time, so that the second half of a run can be judged separately.
//!
//! The state is learned from the start of the recording, so a figure about the start does not confirm it.

use schedlab_report::metrics::{Counts, Migrations};
use schedlab_trace::Event;
use schedlab_units::{Duration, Time};

/// Switches and migrations up to the end of each millisecond in which something happened.
#[derive(Clone, Debug, Default)]
pub struct Course {
    first: Option<Time>,
    by: Vec<(u64, (u64, u64))>,
}

impl Course {
    /// An event has been counted.
    pub(super) fn event(&mut self, event: &Event, counts: &Counts, migrations: &Migrations) {
        let since = event.time.since(*self.first.get_or_insert(event.time));
        let now = (counts.voluntary + counts.involuntary, migrations.total());
        let ms = since.0 / 1_000_000;
        match self.by.last_mut() {
            // Events of several CPUs may be a little out of order.
            Some((last, counted)) if ms <= *last => *counted = now,
            _ => self.by.push((ms, now)),
        }
    }

    /// Switches and migrations after the given time, to the millisecond.
    pub(super) fn after(&self, time: Duration) -> (u64, u64) {
        let counted = |events: &[(u64, (u64, u64))]| events.last().map_or((0, 0), |&(_, counted)| counted);
        let whole = time.0 / 1_000_000;
        let (all, before) =
            (counted(&self.by), counted(&self.by[..self.by.partition_point(|&(ms, _)| ms < whole)]));
        (all.0 - before.0, all.1 - before.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_later_is_counted_whatever_the_time_between() {
        let day = 86_400_000;
        let course = Course { first: None, by: vec![(0, (2, 0)), (3, (5, 1)), (day, (9, 4))] };
        let after = |ms| course.after(Duration(ms * 1_000_000));
        assert_eq!([0, 1, 3, 4, day, day + 1].map(after), [(9, 4), (7, 4), (7, 4), (4, 3), (4, 3), (0, 0)]);
    }
}
