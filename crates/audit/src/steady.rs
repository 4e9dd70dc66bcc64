//! A clock that never goes back.
//!
//! That of one recording does not, but several may stand in one file, and a damaged line may
//! say anything. Averages and virtual times cannot be taken back, so time stands still for
//! a small step back, and goes on from where it was after a large one.

use schedlab_units::{Duration, Time};

/// A larger step back is another recording.
const RESET: Duration = Duration::millis(100);

/// The time of the last event, and what is added to those of the recording.
#[derive(Debug, Default)]
pub struct Steady {
    last: Time,
    ahead: Duration,
}

impl Steady {
    /// The time at which an event is followed.
    pub fn at(&mut self, recorded: Time) -> Time {
        let time = Time(recorded.0.saturating_add(self.ahead.0));
        let back = self.last.since(time);
        if back >= RESET {
            self.ahead = Duration(self.ahead.0.saturating_add(back.0));
        }
        self.last = self.last.max(time);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_or_goes_on_but_never_back() {
        let mut steady = Steady::default();
        let millis = [5000, 5001, 4999, 5002, 17, 18, 16, 20, 30_000, 5];
        let followed = millis.map(|ms| steady.at(Time(ms * 1_000_000)).0 / 1_000_000);
        assert_eq!(followed, [5000, 5001, 5001, 5002, 5002, 5003, 5003, 5005, 34_985, 34_985]);
    }
}
