//! Figures of one run, by name.
//!
//! A figure is a number or a list of CPUs. Its name is used only in the files under `published/`. Values that
//! the workload measures by marks have the name of the measure.

use schedlab_report::metrics::Cause;
use schedlab_units::Duration;
use schedlab_workload::{MeasureRule, Workload};
use serde::Serialize;

use crate::experiment::Run;
use crate::profile::{self, Function};

/// A figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Figure {
    /// A number.
    Number(f64),
    /// CPUs in order.
    Cpus(Vec<u16>),
}

impl Figure {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Figure::Number(number) => Some(*number),
            Figure::Cpus(_) => None,
        }
    }
}

type Read = fn(&Run, &Workload) -> Option<f64>;

/// Numbers that every run has, with what each one is.
pub const FIGURES: &[(&str, &str, Read)] = &[
    ("elapsed", "seconds the run took", |r, _| Some(seconds(r.elapsed))),
    ("switches", "context switches", |r, _| Some(r.folds.counts.switches as f64)),
    ("switches per second", "the same per second", |r, _| per_second(r, r.folds.counts.switches)),
    ("voluntary switches", "switches of tasks that went to sleep", |r, _| {
        Some(r.folds.counts.voluntary as f64)
    }),
    ("involuntary switches", "switches of tasks that could have gone on", |r, _| {
        Some(r.folds.counts.involuntary as f64)
    }),
    ("wake-ups", "wake-ups", |r, _| Some(r.folds.counts.wakeups as f64)),
    ("wake-ups per second", "the same per second", |r, _| per_second(r, r.folds.counts.wakeups)),
    ("migrations", "migrations by any cause, fork placement apart", |r, _| {
        Some(r.folds.migrations.total() as f64)
    }),
    ("migrations per second", "the same per second", |r, _| per_second(r, r.folds.migrations.total())),
    ("migrations by wake-up", "migrations by wake-up placement", |r, _| {
        Some(r.folds.migrations.of(Cause::Wakeup) as f64)
    }),
    ("migrations by balancing", "migrations by any other cause", |r, _| {
        Some((r.folds.migrations.total() - r.folds.migrations.of(Cause::Wakeup)) as f64)
    }),
    ("last migration", "seconds from the first event to the last migration; 0 without one", |r, _| {
        Some(seconds(r.folds.migrations.last_after()))
    }),
    ("busy", "CPU seconds that tasks ran", |r, _| Some(seconds(r.folds.busy.total()))),
    ("CPUs at work", "how many CPUs share the work evenly: (sum busy)^2 / sum busy^2", |r, _| {
        let busy = r.folds.busy.cpus().map(|(_, b)| seconds(b));
        let (sum, squares) = busy.fold((0.0, 0.0), |(s, q), b| (s + b, q + b * b));
        (squares > 0.0).then(|| sum * sum / squares)
    }),
    ("whole switches", "context switches of a whole run, of which a sample was simulated", |r, w| {
        whole(r, w, r.folds.counts.switches)
    }),
    ("whole voluntary switches", "likewise, of tasks that went to sleep", |r, w| {
        whole(r, w, r.folds.counts.voluntary)
    }),
    ("whole involuntary switches", "likewise, of tasks that could have gone on", |r, w| {
        whole(r, w, r.folds.counts.involuntary)
    }),
    ("whole migrations", "migrations of a whole run, of which a sample was simulated", |r, w| {
        whole(r, w, r.folds.migrations.total())
    }),
    ("load_avg reads per second", "reads of task groups' load averages", |r, _| {
        per_second(r, profile::reads(r))
    }),
    ("load_avg writes per second", "writes of task groups' load averages", |r, _| {
        per_second(r, profile::writes(r))
    }),
    ("wake-ups that migrate", "share of wake-ups that move the task, percent", |r, _| {
        let wakeups = r.folds.counts.wakeups;
        (wakeups > 0).then(|| 100.0 * r.folds.migrations.of(Cause::Wakeup) as f64 / wakeups as f64)
    }),
    ("wake-up latency p50", "microseconds from wake-up to running, median", |r, _| latency(r, 50.0)),
    ("wake-up latency p99", "the same, 99 of 100", |r, _| latency(r, 99.0)),
];

/// Reads a figure by its name; `None` if the run does not have it.
pub fn read(name: &str, run: &Run, workload: &Workload) -> Option<Figure> {
    if name == "fork CPUs" {
        return Some(Figure::Cpus(run.folds.placements.tasks.iter().map(|t| t.to.0).collect()));
    }
    if let Some(measure) = name.strip_prefix("wake-up migrations per ") {
        let index = workload.measures.iter().position(|m| m.name == measure)?;
        let spans = run.folds.marks[index].spans();
        let moved = run.folds.migrations.of(Cause::Wakeup);
        return (spans > 0).then(|| Figure::Number(moved as f64 / spans as f64));
    }
    if Function::parse(name).is_some() {
        return Function::figure(name, run).map(Figure::Number);
    }
    if let Some(n) = name.strip_prefix("fork gap ") {
        let n: usize = n.parse().ok()?;
        let tasks = &run.folds.placements.tasks;
        let (before, after) = (tasks.get(n.checked_sub(1)?)?, tasks.get(n)?);
        return Some(Figure::Number(after.time.since(before.time).0 as f64 / 1e3));
    }
    let measure = workload.measures.iter().position(|m| m.name == name);
    let value = match measure {
        Some(index) => run.folds.marks[index].value(),
        None => FIGURES.iter().find(|f| f.0 == name).and_then(|f| f.2(run, workload)),
    };
    value.map(Figure::Number)
}

/// Whether a run of this workload has a figure of that name.
pub fn is_known(name: &str, workload: &Workload) -> bool {
    let measured = |name: &str| workload.measures.iter().any(|m| m.name == name);
    name == "fork CPUs"
        || name.starts_with("fork gap ")
        || Function::parse(name).is_some()
        || name.strip_prefix("wake-up migrations per ").is_some_and(measured)
        || measured(name)
        || FIGURES.iter().any(|f| f.0 == name)
}

fn seconds(duration: Duration) -> f64 {
    duration.0 as f64 / 1e9
}

fn per_second(run: &Run, count: u64) -> Option<f64> {
    (run.elapsed > Duration::ZERO).then(|| count as f64 / seconds(run.elapsed))
}

/// A count of the sample, extrapolated to the whole run.
fn whole(run: &Run, workload: &Workload, count: u64) -> Option<f64> {
    let index = workload.measures.iter().position(|m| matches!(m.rule, MeasureRule::Whole { .. }))?;
    Some(per_second(run, count)? * run.folds.marks[index].value()?)
}

fn latency(run: &Run, percent: f64) -> Option<f64> {
    run.folds.latency.histogram.percentile(percent).map(|ns| ns as f64 / 1e3)
}
