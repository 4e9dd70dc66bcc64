//! The columns of a comparison: scenarios, rows by their keys, and seeds that all columns share.

use std::sync::atomic::{AtomicUsize, Ordering};

use schedlab_sched::Kernel;
use schedlab_trace::NullSink;

use crate::error::Error;
use crate::experiment::{Limits, Results, Run, nth_seed, run_folding, spread};
use crate::folds::Folds;
use crate::run_clock::RunClock;
use crate::scenario::{Row, Scenario};

/// An experiment. The first column is the baseline.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The title of its tables, if no scenario gives one.
    pub title: Option<String>,
    /// The columns; all share their seeds.
    pub columns: Vec<Column>,
    /// The rows of all columns, in order of first occurrence.
    pub keys: Vec<String>,
    /// Progress of the run that reported last.
    pub clock: RunClock,
}

/// One side of a comparison.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name in tables.
    pub name: String,
    /// The scenario; its first kernel is the column's.
    pub scenario: Scenario,
}

impl Column {
    /// A scenario under its first kernel.
    pub fn new(name: impl Into<String>, scenario: Scenario) -> Column {
        Column { name: name.into(), scenario }
    }

    /// The kernel it runs under.
    pub fn kernel(&self) -> &Kernel {
        &self.scenario.kernels[0]
    }

    /// Whether both have the same scenario and settings, whatever their kernels.
    pub fn is_same_scenario(&self, other: &Column) -> bool {
        let (a, b) = (&self.scenario, &other.scenario);
        a.file == b.file && a.settings == b.settings
    }

    /// The row of a key.
    pub fn row(&self, key: &str) -> Option<&Row> {
        self.scenario.rows.iter().find(|row| row.key == key)
    }
}

impl Experiment {
    /// Columns that are compared.
    pub fn new(columns: Vec<Column>) -> Experiment {
        let mut keys: Vec<String> = Vec::new();
        for row in columns.iter().flat_map(|column| &column.scenario.rows) {
            if !keys.contains(&row.key) {
                keys.push(row.key.clone());
            }
        }
        Experiment { title: None, columns, keys, clock: RunClock::default() }
    }

    /// A scenario's kernels as columns.
    pub fn of(scenario: &Scenario) -> Experiment {
        let column = |kernel: &Kernel| {
            Column::new(kernel.name.clone(), Scenario { kernels: vec![kernel.clone()], ..scenario.clone() })
        };
        Experiment::new(scenario.kernels.iter().map(column).collect())
    }

    /// The scenario of the baseline, which says how many runs there are.
    pub fn base(&self) -> &Scenario {
        &self.columns[0].scenario
    }

    /// Names of the columns.
    pub fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// Results without runs.
    pub fn nothing(&self) -> Results {
        Results { runs: vec![vec![Vec::new(); self.columns.len()]; self.keys.len()] }
    }

    /// The name of what runs.
    pub fn workload(&self) -> &str {
        &self.base().rows[0].workload.name
    }

    /// Columns with equal behaviour, such as a kernel compared with itself; one sentence per pair.
    pub fn alike(&self) -> Vec<String> {
        let mut told = Vec::new();
        for (at, one) in self.columns.iter().enumerate() {
            for other in &self.columns[..at] {
                let named = Kernel { name: other.kernel().name.clone(), ..one.kernel().clone() };
                // The rules of a tree do not describe its code: only the name says whether two are the same.
                let is_tree = [one, other].iter().any(|column| crate::kernels::is_tree(column.kernel()));
                let is_same = named == *other.kernel() && (!is_tree || one.kernel().name == named.name);
                if is_same && one.is_same_scenario(other) {
                    told.push(format!("{} does the same as {}", one.name, other.name));
                }
            }
        }
        told
    }

    /// Adds runs until every cell has `runs` of them, or until `goes_on` is false. The seed is the outermost loop,
    /// so that the results can be compared if it ends early.
    ///
    /// # Errors
    /// The error of the first run that could not be finished.
    pub fn extend(
        &self,
        results: &mut Results,
        runs: u32,
        threads: usize,
        figures: bool,
        goes_on: impl Fn() -> bool + Sync,
        progress: impl Fn(usize, usize) + Sync,
    ) -> Result<(), Error> {
        let first_seed = self.base().seed;
        let mut jobs: Vec<(usize, usize, u64)> = Vec::new();
        for nth in 0..u64::from(runs) {
            for (row, key) in self.keys.iter().enumerate() {
                for (column, of) in self.columns.iter().enumerate() {
                    let is_done = (results.runs[row][column].len() as u64) > nth;
                    if of.row(key).is_some() && !is_done {
                        jobs.push((row, column, nth));
                    }
                }
            }
        }
        let done = AtomicUsize::new(0);
        let job = |index: usize| -> Option<Result<Run, Error>> {
            if !goes_on() {
                return None;
            }
            let (row, column, nth) = jobs[index];
            let run =
                self.columns[column].run(&self.keys[row], nth_seed(first_seed, nth), figures, &self.clock);
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
            Some(run)
        };
        let came = spread(jobs.len(), threads, job)?;
        for (&(row, column, _), run) in jobs.iter().zip(came) {
            if let Some(run) = run {
                results.runs[row][column].push(run?);
            }
        }
        Ok(())
    }
}

impl Column {
    /// One run of a row.
    fn run(&self, key: &str, seed: u64, figures: bool, clock: &RunClock) -> Result<Run, Error> {
        let scenario = &self.scenario;
        let row = self.row(key).expect("a job has a row");
        let (machine, kernel) = (scenario.machine_of(row), scenario.kernel_of(self.kernel(), row)?);
        let folds = Folds::new(&row.workload).timed(clock);
        let folds = if figures { folds.with_figures() } else { folds };
        let limits = Limits { seed, ..scenario.limits_of(row) };
        let run = run_folding(machine, &kernel, row, limits, folds, |_| NullSink).map(|(run, _)| run);
        run.map_err(|e| {
            let mut place = scenario.name_of(row, &kernel);
            if self.name != kernel.name {
                place = format!("{place}, {}", self.name);
            }
            Error::new(format!("{}: {place}: {e}", scenario.file))
        })
    }
}
