//! Whether a task sleeps until fixed times or for fixed spans.
//!
//! A sleep that a timer ended may have been requested as a time (a period: however late the task is, the next end stays
//! where it is) or as a span from the moment it fell asleep. The recording does not show which, but the intended one of
//! the two is more regular.

use schedlab_units::Duration;

use crate::learned::{Sleep, Step};

/// Fewer sleeps show no regularity; they keep their times.
const ENOUGH: usize = 3;

/// Whether the timer sleeps among these steps last for spans rather than until times.
pub(crate) fn sleeps_for_spans(steps: &[Step]) -> bool {
    let timed = |step: &Step| match step {
        Step::Sleep(sleep @ Sleep { served: false, .. }) => Some(*sleep),
        _ => None,
    };
    let sleeps: Vec<Sleep> = steps.iter().filter_map(timed).collect();
    // The first period began before the task was seen, or when it started.
    let Some((_, later)) = sleeps.split_first().filter(|_| sleeps.len() >= ENOUGH) else { return false };
    spread(later.iter().map(|sleep| sleep.span)) <= spread(later.iter().map(|sleep| sleep.since_last))
}

/// Mean distance from the median, ns.
fn spread(spans: impl Iterator<Item = Duration>) -> u64 {
    let mut spans: Vec<u64> = spans.map(|span| span.0).collect();
    spans.sort_unstable();
    let median = spans[spans.len() / 2];
    spans.iter().map(|span| span.abs_diff(median)).sum::<u64>() / spans.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sleeps: &[(u64, u64)], expected: bool) {
        let steps: Vec<Step> = sleeps
            .iter()
            .map(|&(span, since_last)| {
                let (span, since_last) = (Duration::micros(span), Duration::micros(since_last));
                Step::Sleep(Sleep { span, since_last, served: false })
            })
            .collect();
        assert_eq!(sleeps_for_spans(&steps), expected, "{sleeps:?}");
    }

    #[test]
    fn the_more_regular_of_the_two_was_meant() {
        check(&[(9, 9), (700, 1000), (850, 1000), (400, 1000)], false);
        check(&[(9, 9), (500, 700), (500, 900), (501, 620)], true);
        check(&[(500, 700), (500, 900)], false);
    }
}
