//! Event counts of one kernel, in the form of `perf stat -r`.
//!
//! Each row is one event: its mean over the runs, and how uncertain that mean is in percent of itself (the
//! standard error, as perf prints it). The events are not defined here; folds over traces fill the rows:
//! switches voluntary and involuntary, migrations by cause, percentiles of wake-up latency.

use schedlab_stats::Moments;
use serde::Serialize;

/// A block of rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PerfStat {
    /// The command, in quotes after "Performance counter stats for".
    pub title: String,
    /// How many runs the rows average over.
    pub runs: usize,
    /// One per event.
    pub rows: Vec<PerfRow>,
    /// How long a run took.
    pub elapsed: Option<Elapsed>,
}

/// One event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PerfRow {
    /// Its name, as perf would list it: `context-switches`.
    pub event: String,
    /// Empty for plain counts, which are printed as integers; otherwise `msec`, `usec`.
    pub unit: String,
    /// The mean over the runs.
    pub mean: f64,
    /// The standard error in percent of the mean; `None` for a single run or zero.
    pub error_percent: Option<f64>,
    /// What follows the `#`: a number and what it is.
    pub note: Option<(f64, String)>,
}

/// Elapsed time in seconds, the last line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Elapsed {
    /// The mean over the runs.
    pub mean: f64,
    /// Its standard error; `None` for a single run.
    pub stderr: Option<f64>,
    /// The standard deviation of a run, which determines how many digits make sense.
    pub stddev: Option<f64>,
}

impl PerfRow {
    /// The event's count or value in each run.
    pub fn new(event: impl Into<String>, unit: &str, runs: impl IntoIterator<Item = f64>) -> PerfRow {
        let moments: Moments = runs.into_iter().collect();
        let error = 100.0 * moments.stderr() / moments.mean();
        PerfRow {
            event: event.into(),
            unit: unit.to_owned(),
            mean: moments.mean(),
            error_percent: error.is_finite().then_some(error),
            note: None,
        }
    }

    /// Adds a note of its rate per second, given the length of a run.
    pub fn per_second(self, seconds: f64) -> PerfRow {
        let rate = self.mean / seconds;
        let (scale, unit) = match rate.abs() {
            r if r < 1e3 => (1.0, "/sec"),
            r if r < 1e6 => (1e3, "K/sec"),
            r if r < 1e9 => (1e6, "M/sec"),
            _ => (1e9, "G/sec"),
        };
        self.note(rate / scale, unit)
    }

    /// Adds a note of its share of `whole`, if there is any.
    pub fn share_of(self, whole: &PerfRow) -> PerfRow {
        if whole.mean == 0.0 {
            return self;
        }
        let percent = 100.0 * self.mean / whole.mean;
        self.note(percent, format!("% of {}", whole.event))
    }

    /// Adds any other note.
    pub fn note(self, value: f64, text: impl Into<String>) -> PerfRow {
        PerfRow { note: Some((value, text.into())), ..self }
    }
}

impl Elapsed {
    /// The seconds each run took.
    pub fn new(runs: impl IntoIterator<Item = f64>) -> Elapsed {
        let moments: Moments = runs.into_iter().collect();
        let known = |x: f64| x.is_finite().then_some(x);
        Elapsed { mean: moments.mean(), stderr: known(moments.stderr()), stddev: known(moments.stddev()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_is_that_of_the_mean() {
        let row = PerfRow::new("context-switches", "", [90.0, 100.0, 110.0, 100.0]);
        assert_eq!(row.mean, 100.0);
        // Deviation sqrt(200 / 3) = 8.165 %, divided by the root of four runs.
        assert!((row.error_percent.unwrap() - 4.0825).abs() < 1e-4);
    }

    #[test]
    fn one_run_or_a_zero_has_no_error() {
        assert_eq!(PerfRow::new("cpu-migrations", "", [3.0]).error_percent, None);
        assert_eq!(PerfRow::new("cpu-migrations", "", [0.0, 0.0]).error_percent, None);
        assert_eq!(Elapsed::new([2.0]).stderr, None);
    }

    #[test]
    fn rates_are_scaled_to_three_digits() {
        let rate = |count: f64| PerfRow::new("x", "", [count]).per_second(2.0).note.unwrap();
        assert_eq!(rate(0.0), (0.0, "/sec".to_owned()));
        assert_eq!(rate(1_998.0), (999.0, "/sec".to_owned()));
        assert_eq!(rate(2_000.0), (1.0, "K/sec".to_owned()));
        assert_eq!(rate(5e6), (2.5, "M/sec".to_owned()));
        assert_eq!(rate(4e9), (2.0, "G/sec".to_owned()));
    }
}
