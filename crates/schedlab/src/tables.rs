//! Results as the tables people read.

use std::collections::BTreeSet;

use schedlab_report::metrics::Cause;
use schedlab_report::{Direction, Elapsed, PerfRow, PerfStat, Table};
use schedlab_workload::Measure;

use crate::experiment::{Results, Run};
use crate::profile::{self, Function};
use crate::scenario::Scenario;

/// Percentiles of wake-up latency that are printed.
const PERCENTILES: [f64; 3] = [50.0, 99.0, 99.9];

/// A table without figures: what was run, and a column per kernel.
pub(crate) fn titled(scenario: &Scenario) -> Table {
    let runs = match (scenario.runs, scenario.kernels.len()) {
        (1, _) => "1 run".to_string(),
        (runs, 1) => format!("{runs} runs"),
        (runs, _) => format!("{runs} paired runs"),
    };
    let name = &scenario.rows[0].workload.name;
    let title = format!("{name} on {}, {runs}, seed {}", scenario.machine.name(), scenario.seed);
    Table::new(title, scenario.kernels.iter().map(|k| k.name.as_str()))
}

impl Results {
    /// The measures of the workload, one column per kernel.
    ///
    /// A workload of one row with several measures alike (STREAM's four kernels)
    /// gives one table with a line each; otherwise each measure has its own.
    pub fn table(&self, scenario: &Scenario) -> Table {
        let mut table = titled(scenario);
        let measures = &scenario.rows[0].workload.measures;
        let alike = measures
            .windows(2)
            .all(|m| m[0].unit == m[1].unit && m[0].lower_is_better == m[1].lower_is_better);
        let joined = scenario.rows.len() == 1 && measures.len() > 1 && alike;
        for (row, by_kernel) in scenario.rows.iter().zip(&self.runs) {
            for (index, measure) in row.workload.measures.iter().enumerate() {
                let direction = if measure.lower_is_better { Direction::Lower } else { Direction::Higher };
                let (name, key) = if joined {
                    (row.workload.name.as_str(), measure.name.as_str())
                } else {
                    (measure.name.as_str(), row.key.as_str())
                };
                if !self.is_measured(scenario, &measure.name) {
                    continue;
                }
                let metric = table.metric(name, measure.unit, direction);
                for (kernel, runs) in by_kernel.iter().enumerate() {
                    for run in runs {
                        if let Some(value) = run.folds.marks[index].value() {
                            metric.record(key, kernel, run.seed, value);
                        }
                    }
                }
            }
        }
        table
    }

    /// Whether any run has a figure for a measure: a rate of nothing is none.
    fn is_measured(&self, scenario: &Scenario, name: &str) -> bool {
        scenario.rows.iter().zip(&self.runs).any(|(row, by_kernel)| {
            let named = |(_, measure): &(usize, &Measure)| measure.name == name;
            row.workload.measures.iter().enumerate().filter(named).any(|(index, _)| {
                by_kernel.iter().flatten().any(|run| run.folds.marks[index].value().is_some_and(|v| v != 0.0))
            })
        })
    }

    /// Measures that no run has a figure for, each in a sentence.
    pub fn unmeasured(&self, scenario: &Scenario) -> Vec<String> {
        let names: BTreeSet<&str> =
            scenario.rows.iter().flat_map(|row| &row.workload.measures).map(|m| m.name.as_str()).collect();
        let without = names.into_iter().filter(|name| !self.is_measured(scenario, name));
        let sentence = |name: &str| {
            format!("{name} has no figure: no run came to the marks it is read off; a longer limit may help")
        };
        without.map(sentence).collect()
    }

    /// Switches, migrations by cause and latencies of each row and kernel.
    pub fn perf_stats(&self, scenario: &Scenario) -> Vec<PerfStat> {
        let mut blocks = Vec::new();
        for (row, by_kernel) in scenario.rows.iter().zip(&self.runs) {
            for (kernel, runs) in scenario.kernels.iter().zip(by_kernel) {
                let key = if row.key.is_empty() { String::new() } else { format!(" {}", row.key) };
                let title = format!("{}{key} under {}", row.workload.name, kernel.name);
                let mut stat = perf_stat(title, runs);
                if !row.workload.groups.is_empty() {
                    stat.rows.extend(profile(scenario, runs));
                }
                blocks.push(stat);
            }
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

/// What a profile shows of groups' contended lines: accesses, and shares of busy time by node.
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
