//! A periodic timer: when it expires next, and what being late does to it.

use schedlab_units::{Duration, Time};
use schedlab_workload::Miss;

/// The result of waiting for a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// Sleep until then.
    At(Time),
    /// It has passed: continue.
    Missed,
}

/// Advances a timer by one period. `stands` is its last expiry, or the origin of the task that uses it first.
pub(crate) fn advance(stands: &mut Time, period: Duration, miss: Miss, now: Time) -> Expiry {
    *stands += period;
    if *stands > now {
        return Expiry::At(*stands);
    }
    if miss == Miss::Rebase {
        *stands = now;
    }
    Expiry::Missed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_miss_rebases_the_timer_or_leaves_it_on_its_grid() {
        let ms = |n: u64| Time(n * 1_000_000);
        for (miss, expiries) in [
            (Miss::Rebase, [Expiry::At(ms(10)), Expiry::Missed, Expiry::At(ms(45)), Expiry::At(ms(55))]),
            (Miss::KeepGrid, [Expiry::At(ms(10)), Expiry::Missed, Expiry::Missed, Expiry::At(ms(40))]),
        ] {
            let mut stands = Time::ZERO;
            let found = [ms(3), ms(35), ms(36), ms(37)]
                .map(|now| advance(&mut stands, Duration::millis(10), miss, now));
            assert_eq!(found, expiries, "{miss:?}");
        }
    }
}
