//! Results as tables.

use std::collections::BTreeSet;

use schedlab_report::metrics::Cause;
use schedlab_report::{Direction, Elapsed, PerfRow, PerfStat, Table};
use schedlab_sim::{OfCpu, Part};
use schedlab_workload::Measure;

use crate::columns::{Column, Experiment};
use crate::experiment::{Results, Run};
use crate::profile::{self, Function};
use crate::scenario::{Row, Scenario};

/// Percentiles of wake-up latency that are printed.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// A table without figures: what was run, with the columns of the experiment.
pub(crate) fn titled(experiment: &Experiment, results: &Results) -> Table {
    let counts = || results.runs.iter().flatten().map(Vec::len);
    let runs = match (counts().max().unwrap_or(0), experiment.columns.len()) {
        (1, _) => "1 run".to_string(),
        (runs, 1) => format!("{runs} runs"),
        (runs, _) => format!("{runs} paired runs"),
    };
    let (base, name) = (experiment.base(), experiment.workload());
    let title = format!("{name} on {}, {runs}, seed {}", base.machine.name(), base.seed);
    Table::new(experiment.title.clone().unwrap_or(title), experiment.names())
}

impl Results {
    /// The measures of the workload, with the columns of the experiment.
    ///
    /// A workload of one row with several measures alike (STREAM's four kernels) gives one table with a line
    /// each; otherwise each measure has its own. A row that no run measured has no samples.
    pub fn table(&self, experiment: &Experiment) -> Table {
        let measures = &experiment.base().rows[0].workload.measures;
        let alike = measures
            .windows(2)
            .all(|m| m[0].unit == m[1].unit && m[0].lower_is_better == m[1].lower_is_better);
        self.measured(experiment, experiment.keys.len() == 1 && measures.len() > 1 && alike)
    }

    /// The measures of the workload, each with a table of its own.
    pub fn table_of_each(&self, experiment: &Experiment) -> Table {
        self.measured(experiment, false)
    }

    fn measured(&self, experiment: &Experiment, joined: bool) -> Table {
        let mut table = titled(experiment, self);
        for (row, row_key) in experiment.keys.iter().enumerate() {
            for (at, column) in experiment.columns.iter().enumerate() {
                let Some(workload) = column.row(row_key).map(|row| &row.workload) else { continue };
                for (index, measure) in workload.measures.iter().enumerate() {
                    if !self.is_measured(experiment, &measure.name) {
                        continue;
                    }
                    let direction =
                        if measure.lower_is_better { Direction::Lower } else { Direction::Higher };
                    let (name, key) = if joined {
                        (workload.name.as_str(), measure.name.as_str())
                    } else {
                        (measure.name.as_str(), row_key.as_str())
                    };
                    // Two workloads may use one name for different measures.
                    let known = table.metrics().iter().find(|metric| metric.name == name);
                    let differs = known.is_some_and(|m| m.unit != measure.unit || m.direction != direction);
                    let other = format!("{name} ({})", column.name);
                    let metric = table.metric(if differs { &other } else { name }, measure.unit, direction);
                    metric.row(key);
                    for run in &self.runs[row][at] {
                        if let Some(value) = run.folds.marks[index].value() {
                            metric.record(key, at, run.seed, value);
                        }
                    }
                }
            }
        }
        table
    }

    /// Whether any run has a figure for a measure: a rate of nothing does not count.
    fn is_measured(&self, experiment: &Experiment, name: &str) -> bool {
        self.cells(experiment).any(|(_, _, row, runs)| {
            let named = |(_, measure): &(usize, &Measure)| measure.name == name;
            row.workload
                .measures
                .iter()
                .enumerate()
                .filter(named)
                .any(|(index, _)| runs.iter().any(|run| run.folds.marks[index].is_met()))
        })
    }

    /// Every cell: the key of its row, its column, what runs there, and its runs.
    pub(crate) fn cells<'a>(
        &'a self,
        experiment: &'a Experiment,
    ) -> impl Iterator<Item = (&'a str, &'a Column, &'a Row, &'a [Run])> {
        experiment.keys.iter().zip(&self.runs).flat_map(|(key, by_column)| {
            experiment.columns.iter().zip(by_column).filter_map(move |(column, runs)| {
                Some((key.as_str(), column, column.row(key)?, runs.as_slice()))
            })
        })
    }

    /// Measures for which some row has no figure, one sentence each.
    pub fn unmeasured(&self, experiment: &Experiment) -> Vec<String> {
        let mut told: Vec<String> = Vec::new();
        let names: BTreeSet<&str> = self
            .cells(experiment)
            .flat_map(|(_, _, row, _)| &row.workload.measures)
            .map(|m| m.name.as_str())
            .collect();
        for name in names {
            if !self.is_measured(experiment, name) {
                told.push(format!(
                    "{name} has no figure: no run reached the marks it is computed from; a longer limit may help"
                ));
                continue;
            }
            for (key, column, row, runs) in self.cells(experiment) {
                let index = row.workload.measures.iter().position(|measure| measure.name == name);
                let Some(index) = index.filter(|_| !runs.is_empty()) else { continue };
                let without = runs.iter().filter(|run| run.folds.marks[index].value().is_none()).count();
                if without > 0 {
                    let key = if key.is_empty() { String::new() } else { format!(" of row {key}") };
                    told.push(format!(
                        "{name}{key} under {}: {without} of {} runs ended before the marks it is computed from",
                        column.name,
                        runs.len()
                    ));
                }
            }
        }
        told.extend(self.unsettled(experiment));
        told.extend(crate::slow_clocks::unlike_halves(experiment, self));
        told
    }

    /// A note if figures did not settle in some runs, or if no run could wait for that.
    fn unsettled(&self, experiment: &Experiment) -> Option<String> {
        let waits = experiment.columns.iter().any(|column| column.scenario.settles);
        if waits && self.runs.iter().flatten().flatten().all(|run| run.settled.is_none()) {
            return Some(
                "warmup = \"auto\" has no effect: the workload has neither a duration nor a window"
                    .to_string(),
            );
        }
        let settled = self.runs.iter().flatten().flatten().filter_map(|run| run.settled);
        let given_up: Vec<_> = settled.filter(|settled| !settled.stands).collect();
        let longest = given_up.iter().map(|settled| settled.after).max()?;
        let count = given_up.len();
        Some(format!(
            "figures did not stand still within {} of warm-up in {count} runs: they still change with time",
            crate::slow_clocks::told(longest)
        ))
    }

    /// Switches, migrations by cause and latencies of each row and column.
    pub fn perf_stats(&self, experiment: &Experiment) -> Vec<PerfStat> {
        let mut blocks = Vec::new();
        for (key, column, row, runs) in self.cells(experiment) {
            if runs.is_empty() {
                continue;
            }
            let key = if key.is_empty() { String::new() } else { format!(" {key}") };
            let title = format!("{}{key} under {}", row.workload.name, column.name);
            let mut stat = perf_stat(title, runs);
            if !row.workload.groups.is_empty() {
                stat.rows.extend(profile(&column.scenario, runs));
            }
            blocks.push(stat);
        }
        blocks
    }
}

fn perf_stat(title: String, runs: &[Run]) -> PerfStat {
    let row =
        |event: &str, unit, value: &dyn Fn(&Run) -> f64| PerfRow::new(event, unit, runs.iter().map(value));
    let seconds = seconds(runs);
    let switches = row("context-switches", "", &|r| r.folds.counts.switches as f64).per_second(seconds);
    let migrations = row("cpu-migrations", "", &|r| r.folds.migrations.total() as f64).per_second(seconds);
    let mut rows = vec![
        row("task-clock", "msec", &|r| r.folds.busy.total().0 as f64 / 1e6),
        switches.clone(),
        row("  voluntary", "", &|r| r.folds.counts.voluntary as f64).share_of(&switches),
        row("  involuntary", "", &|r| r.folds.counts.involuntary as f64).share_of(&switches),
        row("  from idle", "", &|r| r.folds.counts.from_idle() as f64).share_of(&switches),
        migrations.clone(),
    ];
    for cause in Cause::ALL {
        let name = format!("  by {}", cause.name());
        rows.push(row(&name, "", &|r| r.folds.migrations.of(cause) as f64).share_of(&migrations));
    }
    rows.push(row("wake-ups", "", &|r| r.folds.counts.wakeups as f64).per_second(seconds));
    rows.extend(account(runs));
    rows.push(row("forks", "", &|r| r.folds.counts.forks as f64));
    for percent in PERCENTILES {
        let name = format!("wake-up latency p{percent}");
        rows.push(row(&name, "usec", &|r| {
            r.folds.latency.histogram.percentile(percent).unwrap_or(0) as f64 / 1e3
        }));
    }
    let elapsed = Elapsed::new(runs.iter().map(|r| r.elapsed.0 as f64 / 1e9));
    PerfStat { title, runs: runs.len(), rows, elapsed: Some(elapsed) }
}

/// Where the busy time of the CPUs went.
fn account(runs: &[Run]) -> Vec<PerfRow> {
    let share = |name: &str, of: &dyn Fn(&OfCpu) -> u64| {
        let values = runs.iter().filter_map(|run| {
            let total = run.account.total();
            (total.busy() > 0).then(|| of(&total) as f64 * 100.0 / total.busy() as f64)
        });
        PerfRow::new(name, "%", values)
    };
    let parts =
        Part::ALL.iter().map(|&part| share(&format!("  time: {}", part.name()), &|total| total.part(part)));
    std::iter::once(share("time: own work", &OfCpu::own_work)).chain(parts).collect()
}

/// The contended lines of groups in a profile: accesses, and shares of busy time by node.
fn profile(scenario: &Scenario, runs: &[Run]) -> Vec<PerfRow> {
    let row = |event: String, unit, value: &dyn Fn(&Run) -> Option<f64>| {
        PerfRow::new(event, unit, runs.iter().filter_map(value))
    };
    let mut rows = Vec::new();
    for (what, count) in [("reads", profile::reads as fn(&Run) -> u64), ("writes", profile::writes)] {
        let rate = row(format!("tg->load_avg {what}"), "", &|run| Some(count(run) as f64));
        rows.push(rate.per_second(seconds(runs)));
    }
    for node in 0..scenario.machine.topology.nr_nodes() {
        for function in Function::ALL {
            let name = format!("{} node {node}", function.name());
            rows.push(row(name, "%", &|run| function.share(run, node)));
        }
    }
    rows
}

/// Mean length of the runs.
fn seconds(runs: &[Run]) -> f64 {
    runs.iter().map(|r| r.elapsed.0 as f64 / 1e9).sum::<f64>() / runs.len() as f64
}
