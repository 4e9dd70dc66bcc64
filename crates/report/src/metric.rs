//! Results as numbers: what was measured, on which row, under which kernel, with which seed.
//!
//! A row is one setting of the workload (clients, groups, copy or triad). A cell holds the runs of one row
//! under one kernel, in order of their seeds; a run may have several samples, such as a benchmark that times
//! every file it loads. mmtests pools all samples of a cell; comparisons by seed use the mean of each run.

use schedlab_stats::{Direction, Summary};
use serde::{Deserialize, Serialize};

/// Units of time, in ns.
const TIMES: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// The largest unit of time in which `ns` is at least 1, and its length in ns; ns if there is none.
pub fn fitting_time(ns: f64) -> (&'static str, f64) {
    *TIMES.iter().rfind(|(_, size)| ns >= *size).unwrap_or(&TIMES[0])
}

/// What one experiment measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "RawTable")]
pub struct Table {
    /// The workload and the machine, for the first line.
    pub title: String,
    /// Invariant: not empty; the first is the baseline.
    kernels: Vec<String>,
    metrics: Vec<Metric>,
}

/// One quantity, on every row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// As its benchmark calls it: `loadfile time`.
    pub name: String,
    /// The unit of its samples: `ms`. Empty for plain counts.
    pub unit: String,
    /// Which direction is better.
    #[serde(with = "DirectionName")]
    pub direction: Direction,
    /// Whether neither direction is better: a change is then `more` or `less`, without a verdict.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub neutral: bool,
    /// How many kernels there are.
    #[serde(skip)]
    width: usize,
    rows: Vec<Row>,
}

/// One setting of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// As printed: `1`, `64`, `Copy`.
    pub key: String,
    /// Invariant: one per kernel.
    cells: Vec<Cell>,
}

/// The runs of one row under one kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Cell {
    /// Invariant: ordered by seed, each seed once, no run without a sample.
    runs: Vec<Run>,
}

/// What one run measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The seed it was run with.
    pub seed: u64,
    /// In the order they were taken. Invariant: finite numbers.
    samples: Vec<f64>,
}

impl Table {
    /// No results yet. The first kernel is the baseline.
    pub fn new<K: Into<String>>(title: impl Into<String>, kernels: impl IntoIterator<Item = K>) -> Table {
        let kernels: Vec<String> = kernels.into_iter().map(Into::into).collect();
        assert!(!kernels.is_empty(), "a table needs a kernel");
        Table { title: title.into(), kernels, metrics: Vec::new() }
    }

    /// The same with only these columns, in this order: the first is the baseline.
    pub fn columns(&self, columns: &[usize]) -> Table {
        let row = |row: &Row| Row {
            key: row.key.clone(),
            cells: columns.iter().map(|&column| row.cells[column].clone()).collect(),
        };
        let metrics = self.metrics.iter().map(|metric| Metric {
            width: columns.len(),
            rows: metric.rows.iter().map(row).collect(),
            ..metric.clone()
        });
        let kernels = columns.iter().map(|&column| self.kernels[column].clone());
        Table { title: self.title.clone(), kernels: kernels.collect(), metrics: metrics.collect() }
    }

    /// The same with times in readable units, if the median mean of a metric is less than 1 or has more than five
    /// digits.
    pub fn in_fitting_units(&self) -> Table {
        let mut table = self.clone();
        for metric in &mut table.metrics {
            let Some(at) = TIMES.iter().position(|(unit, _)| *unit == metric.unit) else { continue };
            let cells = metric.rows.iter().flat_map(|row| &row.cells).filter(|cell| !cell.runs.is_empty());
            let mut means: Vec<f64> = cells
                .map(|cell| {
                    Summary::new(cell.runs.iter().flat_map(|r| r.samples.iter().copied()), Direction::Lower)
                        .amean()
                })
                .filter(|mean| *mean > 0.0)
                .collect();
            means.sort_by(f64::total_cmp);
            let Some(&middle) = means.get(means.len() / 2) else { continue };
            if (1.0..1e5).contains(&middle) {
                continue;
            }
            let fits = fitting_time(middle * TIMES[at].1);
            let factor = TIMES[at].1 / fits.1;
            metric.unit = fits.0.to_owned();
            let samples =
                metric.rows.iter_mut().flat_map(|row| &mut row.cells).flat_map(|cell| &mut cell.runs);
            samples.flat_map(|run| &mut run.samples).for_each(|sample| *sample *= factor);
        }
        table
    }

    /// The columns, baseline first.
    pub fn kernels(&self) -> &[String] {
        &self.kernels
    }

    /// In the order of their first use.
    pub fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// The metric of that name, created if there is none.
    pub fn metric(&mut self, name: &str, unit: &str, direction: Direction) -> &mut Metric {
        let at = self.metrics.iter().position(|m| m.name == name).unwrap_or_else(|| {
            self.metrics.push(Metric {
                name: name.to_owned(),
                unit: unit.to_owned(),
                direction,
                neutral: false,
                width: self.kernels.len(),
                rows: Vec::new(),
            });
            self.metrics.len() - 1
        });
        let metric = &mut self.metrics[at];
        assert!(metric.unit == unit && metric.direction == direction, "two metrics are called {name:?}");
        metric
    }
}

impl Metric {
    /// In the order they were first recorded.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Marks it as a metric of which neither more nor less is better.
    pub fn neither_is_better(&mut self) {
        self.neutral = true;
    }

    /// The index of a row, created without samples if there is none: a row exists even if no run measured it.
    pub fn row(&mut self, key: &str) -> usize {
        self.rows.iter().position(|r| r.key == key).unwrap_or_else(|| {
            self.rows.push(Row { key: key.to_owned(), cells: vec![Cell::default(); self.width] });
            self.rows.len() - 1
        })
    }

    /// Adds a sample to the run of `seed` on row `key` under the kernel of that column.
    ///
    /// Runs may come in any order. Panics when the sample is not a finite number.
    pub fn record(&mut self, key: &str, kernel: usize, seed: u64, sample: f64) {
        assert!(kernel < self.width, "kernel {kernel} of {}", self.width);
        assert!(sample.is_finite(), "{}, row {key}, seed {seed}: a sample is {sample}", self.name);
        let at = self.row(key);
        let runs = &mut self.rows[at].cells[kernel].runs;
        match runs.binary_search_by_key(&seed, |run| run.seed) {
            Ok(at) => runs[at].samples.push(sample),
            Err(at) => runs.insert(at, Run { seed, samples: vec![sample] }),
        }
    }
}

impl Row {
    /// One per kernel, baseline first.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }
}

impl Cell {
    /// By seed.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// The samples of each run.
    pub fn samples(&self) -> Vec<&[f64]> {
        self.runs.iter().map(Run::samples).collect()
    }

    /// The runs that share a seed with a run of `base`, as (base, self) by their means.
    pub fn pairs(&self, base: &Cell, direction: Direction) -> Vec<(f64, f64)> {
        let partner = |run: &Run| {
            let at = base.runs.binary_search_by_key(&run.seed, |b| b.seed).ok()?;
            Some((base.runs[at].mean(direction), run.mean(direction)))
        };
        self.runs.iter().filter_map(partner).collect()
    }
}

impl Run {
    /// One or more.
    pub fn samples(&self) -> &[f64] {
        &self.samples
    }

    /// Its samples as one number, by the printed kind of mean if that exists.
    fn mean(&self, direction: Direction) -> f64 {
        let summary = Summary::new(self.samples.iter().copied(), direction);
        let mean = summary.mean();
        if mean.is_nan() { summary.amean() } else { mean }
    }
}

/// Why a saved table was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// No column.
    #[error("the table has no kernels: the first one is the baseline of all others")]
    NoKernels,
    /// Columns and cells disagree.
    #[error(
        "metric {metric:?}, row {row:?}: {cells} cells for {kernels} kernels; give each kernel one, even if it is empty"
    )]
    Cells {
        /// Where.
        metric: String,
        /// Where.
        row: String,
        /// Found.
        cells: usize,
        /// Expected.
        kernels: usize,
    },
    /// A cell's runs are not ordered by seed.
    #[error(
        "metric {metric:?}, row {row:?}: seed {seed} is repeated or out of order; list runs by seed, each seed once"
    )]
    Seeds {
        /// Where.
        metric: String,
        /// Where.
        row: String,
        /// The one out of order.
        seed: u64,
    },
    /// A run has no samples.
    #[error("metric {metric:?}, row {row:?}, seed {seed}: the run has no samples; leave it out")]
    NoSamples {
        /// Where.
        metric: String,
        /// Where.
        row: String,
        /// Where.
        seed: u64,
    },
}

/// A table as saved, before it is checked.
#[derive(Deserialize)]
struct RawTable {
    title: String,
    kernels: Vec<String>,
    metrics: Vec<Metric>,
}

impl TryFrom<RawTable> for Table {
    type Error = TableError;

    fn try_from(raw: RawTable) -> Result<Table, TableError> {
        let RawTable { title, kernels, mut metrics } = raw;
        if kernels.is_empty() {
            return Err(TableError::NoKernels);
        }
        for metric in &mut metrics {
            metric.width = kernels.len();
            for row in &metric.rows {
                check_row(&metric.name, row, kernels.len())?;
            }
        }
        Ok(Table { title, kernels, metrics })
    }
}

fn check_row(metric: &str, row: &Row, kernels: usize) -> Result<(), TableError> {
    let (metric, key) = (metric.to_owned(), row.key.clone());
    if row.cells.len() != kernels {
        return Err(TableError::Cells { metric, row: key, cells: row.cells.len(), kernels });
    }
    for cell in &row.cells {
        if let Some(late) = cell.runs.windows(2).find(|pair| pair[0].seed >= pair[1].seed) {
            return Err(TableError::Seeds { metric, row: key, seed: late[1].seed });
        }
        // JSON cannot represent a sample that is not finite.
        if let Some(empty) = cell.runs.iter().find(|run| run.samples.is_empty()) {
            return Err(TableError::NoSamples { metric, row: key, seed: empty.seed });
        }
    }
    Ok(())
}

/// A direction as saved: `"lower"` or `"higher"`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Direction", rename_all = "lowercase")]
enum DirectionName {
    Lower,
    Higher,
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn small() -> Table {
        let mut table = Table::new("dbench on uma-8c", ["v5.5", "v5.5+SIS_KTHREAD_STACK"]);
        let time = table.metric("loadfile time", "ms", Direction::Lower);
        time.record("1", 1, 8, 20.5);
        time.record("1", 0, 9, 22.0);
        time.record("1", 0, 7, 23.0);
        time.record("1", 0, 8, 22.5);
        time.record("1", 1, 7, 20.0);
        time.record("1", 1, 7, 22.0);
        table
    }

    #[test]
    fn runs_are_ordered_by_seed_whenever_they_come() {
        let table = small();
        let row = &table.metrics()[0].rows()[0];
        let seeds = |cell: &Cell| cell.runs().iter().map(|run| run.seed).collect::<Vec<_>>();
        assert_eq!(row.cells().iter().map(seeds).collect::<Vec<_>>(), [vec![7, 8, 9], vec![7, 8]]);
        assert_eq!(row.cells()[1].runs()[0].samples(), [20.0, 22.0]);
    }

    #[test]
    fn pairs_are_the_seeds_that_both_sides_have() {
        let table = small();
        let [base, patched] = table.metrics()[0].rows()[0].cells() else { panic!("two kernels") };
        assert_eq!(patched.pairs(base, Direction::Lower), [(23.0, 21.0), (22.5, 20.5)]);
    }

    #[test]
    fn a_saved_table_reads_back_the_same() {
        let table = small();
        let json = serde_json::to_string(&table).unwrap();
        expect![[r#"{"title":"dbench on uma-8c","kernels":["v5.5","v5.5+SIS_KTHREAD_STACK"],"metrics":[{"name":"loadfile time","unit":"ms","direction":"lower","rows":[{"key":"1","cells":[[{"seed":7,"samples":[23.0]},{"seed":8,"samples":[22.5]},{"seed":9,"samples":[22.0]}],[{"seed":7,"samples":[20.0,22.0]},{"seed":8,"samples":[20.5]}]]}]}]}"#]].assert_eq(&json);
        let mut back: Table = serde_json::from_str(&json).unwrap();
        assert_eq!(back, table);
        back.metric("loadfile time", "ms", Direction::Lower).record("2", 1, 7, 30.0);
        assert_eq!(back.metrics()[0].rows()[1].cells().len(), 2);
    }

    #[test]
    fn times_get_a_unit_that_fits_and_what_fits_stays() {
        let unit = |unit: &str, values: [f64; 3]| {
            let mut table = Table::new("", ["a"]);
            let metric = table.metric("time", unit, Direction::Lower);
            for (key, value) in ["1", "2", "3"].into_iter().zip(values) {
                metric.record(key, 0, 1, value);
            }
            let table = table.in_fitting_units();
            let metric = &table.metrics()[0];
            (metric.unit.clone(), metric.rows()[0].cells()[0].runs()[0].samples()[0])
        };
        assert_eq!(unit("s", [0.25, 0.5, 2.0]), ("ms".to_string(), 250.0));
        assert_eq!(unit("ns", [2_000_000_000.0, 3e9, 4e9]), ("s".to_string(), 2.0));
        assert_eq!(unit("ms", [1.5, 1345.0, 9000.0]), ("ms".to_string(), 1.5));
        assert_eq!(unit("s", [0.0, 0.0, 0.0]), ("s".to_string(), 0.0));
        assert_eq!(unit("MB/s", [0.25, 0.25, 0.25]), ("MB/s".to_string(), 0.25));
    }

    #[test]
    fn a_row_that_no_run_measured_is_there_and_columns_are_chosen() {
        let mut table = small();
        table.metric("loadfile time", "ms", Direction::Lower).row("2");
        assert_eq!(table.metrics()[0].rows()[1].cells().len(), 2);
        let other = table.columns(&[1, 0]);
        assert_eq!(other.kernels(), ["v5.5+SIS_KTHREAD_STACK", "v5.5"]);
        assert_eq!(other.metrics()[0].rows()[0].cells()[1].runs().len(), 3);
    }

    fn check_refused(json: &str, expected: Expect) {
        expected.assert_eq(&serde_json::from_str::<Table>(json).unwrap_err().to_string());
    }

    #[test]
    fn a_broken_table_is_refused_with_its_place() {
        let with_cells = |cells: &str| {
            format!(
                r#"{{"title":"","kernels":["a","b"],"metrics":[{{"name":"time","unit":"s","direction":"lower","rows":[{{"key":"4","cells":{cells}}}]}}]}}"#
            )
        };
        check_refused(
            r#"{"title":"","kernels":[],"metrics":[]}"#,
            expect!["the table has no kernels: the first one is the baseline of all others"],
        );
        check_refused(
            &with_cells("[[]]"),
            expect![[
                r#"metric "time", row "4": 1 cells for 2 kernels; give each kernel one, even if it is empty"#
            ]],
        );
        check_refused(
            &with_cells(r#"[[{"seed":2,"samples":[1]},{"seed":2,"samples":[1]}],[]]"#),
            expect![[
                r#"metric "time", row "4": seed 2 is repeated or out of order; list runs by seed, each seed once"#
            ]],
        );
        check_refused(
            &with_cells(r#"[[],[{"seed":2,"samples":[]}]]"#),
            expect![[r#"metric "time", row "4", seed 2: the run has no samples; leave it out"#]],
        );
        check_refused(
            &with_cells(r#"[[],[{"seed":2,"samples":[null]}]]"#),
            expect!["invalid type: null, expected f64 at line 1 column 146"],
        );
    }

    #[test]
    #[should_panic(expected = "two metrics are called \"loadfile time\"")]
    fn a_metric_keeps_its_unit() {
        small().metric("loadfile time", "s", Direction::Lower);
    }
}
