//! The two halves of what is measured, for runs that waited until they had settled.
//!
//! A run that begins from a guess, or too early, changes while it is measured. Its counts and rates of the second half are
//! then not those of the first.

use schedlab_report::metrics::{Counts, Marks, Migrations};
use schedlab_stats::{Direction, Paired};
use schedlab_units::Time;
use schedlab_workload::Workload;

use crate::experiment::Run;

/// What differs by less counts as the same.
const LEAST_CHANGE: f64 = 0.03;
/// The same for one run, which has no interval.
const LEAST_OF_ONE: f64 = 0.10;
/// Figures of one run that are counts of fewer events in a half say nothing.
const LEAST_EVENTS: f64 = 100.0;
const CONFIDENCE: f64 = 0.95;

/// Counts before the second half and, at the end, in it.
#[derive(Clone, Debug)]
pub struct Halves {
    at: Time,
    /// Switches, wake-ups, migrations, then the measures, if they are rates.
    before: Vec<Option<i64>>,
    /// Of each figure the rate per second in both halves, and the counts.
    rates: Vec<Option<[[f64; 2]; 2]>>,
}

impl Halves {
    /// The second half begins.
    pub(crate) fn begin(at: Time, counts: &Counts, migrations: &Migrations, marks: &[Marks]) -> Halves {
        Halves { at, before: so_far(counts, migrations, marks), rates: Vec::new() }
    }

    /// It ends, at the latest with the run: what comes after the window of a model belongs to neither.
    pub(crate) fn end(
        &mut self,
        from: Time,
        to: Time,
        counts: &Counts,
        migrations: &Migrations,
        marks: &[Marks],
    ) {
        let seconds = [self.at.since(from), to.since(self.at)].map(|span| span.0 as f64 / 1e9);
        if seconds.contains(&0.0) || !self.rates.is_empty() {
            return;
        }
        let whole = so_far(counts, migrations, marks);
        let of = |(before, whole): (&Option<i64>, Option<i64>)| {
            let (before, whole) = ((*before)?, whole?);
            let counts = [before as f64, (whole - before) as f64];
            Some([[counts[0] / seconds[0], counts[1] / seconds[1]], counts])
        };
        self.rates = self.before.iter().zip(whole).map(of).collect();
    }
}

fn so_far(counts: &Counts, migrations: &Migrations, marks: &[Marks]) -> Vec<Option<i64>> {
    let counted = [counts.switches, counts.wakeups, migrations.total()].map(|count| Some(count as i64));
    counted.into_iter().chain(marks.iter().map(Marks::tally)).collect()
}

/// The figures of which the second half is not like the first, with the change. With several runs the interval of the
/// change must exclude zero.
pub fn differences<'a>(workload: &'a Workload, runs: &[Run]) -> Vec<(&'a str, f64)> {
    let names = ["switches", "wake-ups", "migrations"].into_iter();
    let names = names.chain(workload.measures.iter().map(|measure| measure.name.as_str()));
    let settled = || runs.iter().filter(|run| run.settled.is_some());
    let differs = |(at, name): (usize, &'a str)| {
        let of = |run: &Run| run.folds.halves.as_ref()?.rates.get(at).copied().flatten();
        let halves: Vec<[[f64; 2]; 2]> = settled().filter_map(of).collect();
        let pairs: Vec<(f64, f64)> = halves.iter().map(|[rates, _]| (rates[0], rates[1])).collect();
        let paired = Paired::new(&pairs, Direction::Lower, CONFIDENCE);
        let change = paired.change?;
        let certain = match halves.as_slice() {
            [] => false,
            [[_, counts]] => {
                change.abs() >= LEAST_OF_ONE && counts.iter().all(|&count| count >= LEAST_EVENTS)
            }
            _ => {
                change.abs() >= LEAST_CHANGE
                    && paired.interval.is_some_and(|interval| !interval.contains(0.0))
            }
        };
        certain.then_some((name, change))
    };
    names.enumerate().filter_map(differs).collect()
}
