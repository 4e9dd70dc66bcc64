//! Figures that every run has, whatever its workload: delays, runs and waits, shares, counts.
//!
//! Each is requested by its name. A figure by kind of task has a row for each kind and one for all tasks;
//! `NAME:KIND` requests the figures of one kind.

use schedlab_report::metrics::{Cause, Kinds, OneKind, jain};
use schedlab_report::{Direction, Table};
use schedlab_sched::Reason;
use schedlab_stats::Histogram;
use schedlab_topology::nearest;
use schedlab_units::Duration;

use crate::columns::Experiment;
use crate::error::Error;
use crate::experiment::{Results, Run};

/// A figure.
#[derive(Clone, Copy)]
pub struct Figure {
    /// The name by which it is requested.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Unit of its values: `ns`, `%`, `/s`, or empty.
    pub unit: &'static str,
    /// Which direction is better; `None` if neither is.
    pub better: Option<Direction>,
    of: Of,
}

#[derive(Clone, Copy)]
enum Of {
    /// One value of a run.
    Run(fn(&Run) -> Option<f64>),
    /// One value of each kind of task.
    Kind(fn(&OneKind) -> Option<f64>),
    /// One value of each kind, of the CPU times of its tasks in ns.
    Times(fn(&[f64], &Run) -> Option<f64>),
    /// The CPU that a task of a kind got last.
    Last,
    /// Values by subject; a value that a run lacks is zero.
    Each(fn(&Run) -> Vec<(String, f64)>),
    /// Values by subject; a value that a run lacks is absent.
    Some(fn(&Run) -> Vec<(String, f64)>),
}

/// A requested figure, of one kind if specified.
#[derive(Clone)]
pub struct Asked {
    figure: &'static Figure,
    of: Option<String>,
}

const LOW: Option<Direction> = Some(Direction::Lower);
const HIGH: Option<Direction> = Some(Direction::Higher);

macro_rules! figures {
    ($($name:literal, $unit:literal, $better:expr, $about:literal, $of:expr;)*) => {
        &[$(Figure { name: $name, about: $about, unit: $unit, better: $better, of: $of }),*]
    };
}

/// All of them, in the order of tables.
pub const FIGURES: &[Figure] = figures![
    "latency-p50", "ns", LOW, "from wake-up to running, median", Of::Kind(|k| at(&k.latency, 50.0));
    "latency-p90", "ns", LOW, "the same, the 90th percentile", Of::Kind(|k| at(&k.latency, 90.0));
    "latency-p99", "ns", LOW, "the same, the 99th percentile", Of::Kind(|k| at(&k.latency, 99.0));
    "latency-p99.9", "ns", LOW, "the same, the 99.9th percentile", Of::Kind(|k| at(&k.latency, 99.9));
    "latency-max", "ns", LOW, "the same, the longest", Of::Kind(|k| at(&k.latency, 100.0));
    "latency-mean", "ns", LOW, "the same, the mean", Of::Kind(|k| mean(&k.latency));
    "runs", "", None, "number of runs of a kind of task, from switch to switch", Of::Kind(|k| Some(k.runs.n() as f64));
    "run-p50", "ns", None, "length of a run, from switch to switch, median", Of::Kind(|k| at(&k.runs, 50.0));
    "run-p99", "ns", None, "the same, the 99th percentile", Of::Kind(|k| at(&k.runs, 99.0));
    "run-max", "ns", None, "the same, the longest", Of::Kind(|k| at(&k.runs, 100.0));
    "run-mean", "ns", None, "the same, the mean", Of::Kind(|k| mean(&k.runs));
    "wait-p50", "ns", LOW, "length of a wait for a CPU, woken or preempted, median", Of::Kind(|k| at(&k.waits, 50.0));
    "wait-p99", "ns", LOW, "the same, the 99th percentile", Of::Kind(|k| at(&k.waits, 99.0));
    "wait-max", "ns", LOW, "the same, the longest", Of::Kind(|k| at(&k.waits, 100.0));
    "wait-mean", "ns", LOW, "the same, the mean", Of::Kind(|k| mean(&k.waits));
    "wait-total", "ns", LOW, "all waits together", Of::Kind(|k| Some(k.waits.sum() as f64));
    "cpu-share", "%", None, "CPU time of a kind of task, as a share of that of all tasks",
        Of::Times(|times, run| share(times.iter().sum(), run));
    "cpu-per-s", "ns", None, "CPU time of a kind of task in a second",
        Of::Times(|times, run| seconds(run).map(|s| times.iter().sum::<f64>() / s));
    "cpu-time", "ns", None, "CPU time of a kind of task", Of::Times(|times, _| Some(times.iter().sum()));
    "cpu-least", "ns", None, "the least CPU time of a task of a kind",
        Of::Times(|times, _| times.iter().copied().reduce(f64::min));
    "cpu-most", "ns", None, "the most CPU time of a task of a kind",
        Of::Times(|times, _| times.iter().copied().reduce(f64::max));
    "cpu-least/most", "%", HIGH, "the least CPU time of a task of a kind, relative to the most",
        Of::Times(|times, _| {
            let most = times.iter().copied().fold(0.0, f64::max);
            (most > 0.0).then(|| 100.0 * times.iter().copied().fold(f64::INFINITY, f64::min) / most)
        });
    "cpu-jain", "", HIGH, "Jain's fairness index of the CPU times of a kind: 1 if all are equal, 1/n if one task has all",
        Of::Times(|times, _| jain(times));
    "marks/s", "/s", HIGH, "marks of a label per second", Of::Each(|r| marks(r, |count, _| count as f64));
    "mark-values/s", "/s", HIGH, "the sum of their values per second", Of::Each(|r| marks(r, |_, sum| sum as f64));
    "switches/mark", "", LOW, "context switches for each mark of a label",
        Of::Each(|r| for_each_mark(r, r.folds.counts.switches));
    "task-switches/mark", "", LOW, "switches away from a task for each mark of a label",
        Of::Each(|r| for_each_mark(r, r.folds.counts.task_switches()));
    "migrations/mark", "", LOW, "tasks moved for each mark of a label",
        Of::Each(|r| for_each_mark(r, r.folds.migrations.total()));
    "last-cpu", "", None, "the CPU on which a task of a kind ran last", Of::Last;
    "busy-on", "%", None, "the share of time in which each CPU ran tasks", Of::Each(busy_on);
    "elapsed", "ns", LOW, "how long a run took", Of::Run(|r| Some(r.elapsed.0 as f64));
    "task-clock", "ns", None, "CPU time of all tasks", Of::Run(|r| Some(r.folds.busy.total().0 as f64));
    "cpus-utilized", "", None, "CPU time of all tasks, divided by elapsed time",
        Of::Run(|r| (r.elapsed.0 > 0).then(|| r.folds.busy.total().0 as f64 / r.elapsed.0 as f64));
    "switches", "", LOW, "context switches, those from idle too, as perf stat -a counts them", Of::Run(|r| Some(r.folds.counts.switches as f64));
    "switches/s", "/s", LOW, "the same per second", Of::Run(|r| rate(r, r.folds.counts.switches));
    "task-switches", "", LOW, "switches away from a task, as perf stat COMMAND counts them",
        Of::Run(|r| Some(r.folds.counts.task_switches() as f64));
    "voluntary", "", None, "switches away from a task that goes to sleep", Of::Run(|r| Some(r.folds.counts.voluntary as f64));
    "voluntary/s", "/s", None, "the same per second", Of::Run(|r| rate(r, r.folds.counts.voluntary));
    "involuntary", "", LOW, "switches away from a task that is still runnable",
        Of::Run(|r| Some(r.folds.counts.involuntary as f64));
    "involuntary/s", "/s", LOW, "the same per second", Of::Run(|r| rate(r, r.folds.counts.involuntary));
    "wakeups", "", None, "wake-ups", Of::Run(|r| Some(r.folds.counts.wakeups as f64));
    "wakeups/s", "/s", None, "the same per second", Of::Run(|r| rate(r, r.folds.counts.wakeups));
    "migrations", "", LOW, "tasks moved to another CPU", Of::Run(|r| Some(r.folds.migrations.total() as f64));
    "migrations/s", "/s", LOW, "the same per second", Of::Run(|r| rate(r, r.folds.migrations.total()));
    "migrations-by", "", LOW, "the same by cause", Of::Each(|r| {
        Cause::ALL.iter().map(|&cause| (cause.name().to_string(), r.folds.migrations.of(cause) as f64)).collect()
    });
    "migrations-at", "ns", None, "times of the first ten, from the start", Of::Some(|r| {
        let firsts = r.folds.migrations.firsts().iter().enumerate();
        firsts.map(|(nth, after)| ((nth + 1).to_string(), after.0 as f64)).collect()
    });
    "forks", "", None, "new tasks", Of::Run(|r| Some(r.folds.counts.forks as f64));
    "forks-on", "", None, "new tasks by the CPU on which they were placed", Of::Each(|r| {
        let forks = r.folds.figures.iter().flat_map(|f| &f.traffic.forks);
        forks.map(|(cpu, n)| (format!("CPU {cpu}"), *n as f64)).collect()
    });
    "fork-cpus", "", HIGH, "number of CPUs on which new tasks were placed",
        Of::Run(|r| r.folds.figures.as_ref().map(|f| f.traffic.forks.len() as f64));
    "wakeups-by", "%", None, "wake-ups by the rule that placed them", Of::Each(|r| by_rule(r, "wakeup"));
    "wakeups-tried", "%", None, "by each step of a wake-up's search for a CPU, of those that reached the step", Of::Each(tried);
    "forks-by", "%", None, "new tasks by the rule that placed them", Of::Each(|r| by_rule(r, "fork"));
    "execs-by", "%", None, "placements at exec by their rule", Of::Each(|r| by_rule(r, "exec"));
    "preemptions-by", "%", None, "whether the running task is preempted, by rule", Of::Each(|r| by_rule(r, "preemption"));
    "newidle-by", "%", None, "results of newly idle balancing, by rule", Of::Each(|r| by_rule(r, "newidle"));
    "ipis", "", LOW, "interrupts sent to other CPUs, including nohz kicks", Of::Run(|r| Some(ipis(r) as f64));
    "ipis/s", "/s", LOW, "the same per second", Of::Run(|r| rate(r, ipis(r)));
    "interrupts", "", None, "interrupts of devices",
        Of::Run(|r| r.folds.figures.as_ref().map(|f| f.traffic.interrupts as f64));
    "ticks", "", None, "ticks of a simulated run", Of::Run(|r| Some(r.engine.ticks as f64));
    "balance-passes", "", LOW, "passes of the balancer over a domain; in a recording, its soft interrupts",
        Of::Run(|r| r.folds.figures.as_ref().map(|f| (f.traffic.passes + decided(r, "balance")) as f64));
    "balance-time", "ns", LOW, "time that passes of the balancer took, of a simulated run",
        Of::Run(|r| Some(r.engine.balance_ns as f64));
    "balance-max", "ns", LOW, "the longest of them", Of::Run(|r| Some(r.engine.balance_max_ns as f64));
    "load-avg-time", "%", LOW, "busy time that groups' load averages took, of a simulated run", Of::Run(load_avg);
    "balance-by", "", None, "balancing decisions by reason, if the trace contains them", Of::Each(|r| {
        r.folds.reasons.of("balance").into_iter().map(|(reason, n)| (reason.to_string(), n as f64)).collect()
    });
    "periods", "", None, "finished quota periods of groups", Of::Run(|r| Some(r.engine.periods as f64));
    "throttled-periods", "", LOW, "quota periods in which a CPU was throttled",
        Of::Run(|r| Some(r.engine.throttled_periods as f64));
    "throttled-time", "ns", LOW, "time in which group queues of CPUs were throttled",
        Of::Run(|r| Some(r.engine.throttled_ns as f64));
];

fn at(histogram: &Histogram, percent: f64) -> Option<f64> {
    histogram.percentile(percent).map(|ns| ns as f64)
}

fn mean(histogram: &Histogram) -> Option<f64> {
    (histogram.n() > 0).then(|| histogram.mean())
}

fn rate(run: &Run, count: u64) -> Option<f64> {
    (run.elapsed > Duration::ZERO).then(|| count as f64 * 1e9 / run.elapsed.0 as f64)
}

/// Duration of a run, if it took any time.
fn seconds(run: &Run) -> Option<f64> {
    (run.elapsed > Duration::ZERO).then(|| run.elapsed.0 as f64 / 1e9)
}

/// Percent of the decisions of a kind, by rule.
fn by_rule(run: &Run, kind: &str) -> Vec<(String, f64)> {
    let (rules, all) = (run.folds.reasons.of(kind), decided(run, kind));
    rules.into_iter().map(|(rule, n)| (rule.to_string(), 100.0 * n as f64 / all as f64)).collect()
}

/// For each step of select_idle_sibling(), the percentage of the wake-ups reaching it that it placed. Steps are in the
/// order of their reasons.
pub fn tried(run: &Run) -> Vec<(String, f64)> {
    let rules = run.folds.reasons.of("wakeup");
    let steps =
        Reason::ALL.iter().filter(|&&reason| (Reason::TargetIdle..=Reason::BestReduced).contains(&reason));
    let counts: Vec<(&str, u64)> = steps
        .map(|step| {
            (step.name(), rules.iter().filter(|(rule, _)| *rule == step.name()).map(|(_, n)| n).sum())
        })
        .collect();
    let left = |at: usize| counts[at..].iter().map(|(_, n)| n).sum::<u64>();
    let of = counts.iter().enumerate().filter(|(_, (_, n))| *n > 0);
    of.map(|(at, (rule, n))| (rule.to_string(), 100.0 * *n as f64 / left(at) as f64)).collect()
}

fn decided(run: &Run, kind: &str) -> u64 {
    run.folds.reasons.of(kind).iter().map(|(_, n)| n).sum()
}

fn for_each_mark(run: &Run, count: u64) -> Vec<(String, f64)> {
    let Some(figures) = &run.folds.figures else { return Vec::new() };
    let marks = figures.traffic.marks.iter().filter(|(_, (marks, _))| *marks > 0);
    marks.map(|(label, (marks, _))| (label.to_string(), count as f64 / *marks as f64)).collect()
}

fn busy_on(run: &Run) -> Vec<(String, f64)> {
    let span = run.folds.busy.span().0;
    let cpus = run.folds.busy.cpus().filter(|_| span > 0);
    cpus.map(|(cpu, time)| (format!("CPU {cpu}"), 100.0 * time.0 as f64 / span as f64)).collect()
}

fn load_avg(run: &Run) -> Option<f64> {
    let sum =
        |of: fn(&schedlab_sim::NodeProfile) -> u64| run.profile.nodes.iter().map(of).sum::<u64>() as f64;
    let busy = sum(|node| node.busy.0);
    (busy > 0.0).then(|| 100.0 * sum(|node| node.update_cfs_group.0 + node.update_load_avg.0) / busy)
}

fn share(time: f64, run: &Run) -> Option<f64> {
    let total = run.folds.figures.as_ref()?.kinds.total().0;
    (total > 0).then(|| 100.0 * time / total as f64)
}

fn ipis(run: &Run) -> u64 {
    let traced = run.folds.figures.as_ref().map_or(0, |figures| figures.traffic.ipis);
    if traced > 0 { traced } else { run.engine.ipis }
}

fn marks(run: &Run, value: fn(u64, i64) -> f64) -> Vec<(String, f64)> {
    let Some(figures) = &run.folds.figures else { return Vec::new() };
    let seconds = run.elapsed.0 as f64 / 1e9;
    let each = figures.traffic.marks.iter().filter(|_| seconds > 0.0);
    each.map(|(label, &(count, sum))| (label.to_string(), value(count, sum) / seconds)).collect()
}

/// Merges all kinds into one.
fn together(kinds: &Kinds) -> OneKind {
    let mut all = OneKind {
        name: ALL.to_string(),
        latency: Histogram::new(),
        runs: Histogram::new(),
        waits: Histogram::new(),
    };
    for kind in kinds.iter() {
        all.latency.merge(&kind.latency);
        all.runs.merge(&kind.runs);
        all.waits.merge(&kind.waits);
    }
    all
}

/// The row of all tasks.
const ALL: &str = "all";

impl Asked {
    /// Parses a request: a name, a prefix that ends in `*`, or `all`; with `:KIND` only for that kind.
    ///
    /// # Errors
    /// An unknown name, with the most similar known one.
    pub fn parse(text: &str) -> Result<Vec<Asked>, Error> {
        let (name, of) = text.split_once(':').map_or((text, None), |(name, of)| (name, Some(of.to_string())));
        let fits = |figure: &&Figure| match name.strip_suffix('*') {
            Some(lead) => figure.name.starts_with(lead),
            None => name == "all" || figure.name == name,
        };
        let found: Vec<Asked> =
            FIGURES.iter().filter(fits).map(|figure| Asked { figure, of: of.clone() }).collect();
        if found.is_empty() {
            let meant = nearest(name, FIGURES.iter().map(|figure| figure.name));
            let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant}?"));
            return Err(Error::new(format!(
                "there is no metric \"{name}\"{meant}; `--metric list` lists them"
            )));
        }
        Ok(found)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.figure.name
    }

    fn values(&self, run: &Run) -> Vec<(String, f64)> {
        let values = match self.figure.of {
            Of::Run(value) => value(run).map(|value| (String::new(), value)).into_iter().collect(),
            Of::Each(values) | Of::Some(values) => values(run),
            Of::Kind(value) => {
                let Some(figures) = &run.folds.figures else { return Vec::new() };
                let all = together(&figures.kinds);
                let kinds = figures.kinds.iter().chain([&all]);
                kinds.filter_map(|kind| Some((kind.name.clone(), value(kind)?))).collect()
            }
            Of::Last => {
                let Some(figures) = &run.folds.figures else { return Vec::new() };
                let of =
                    |kind: &OneKind| Some((kind.name.clone(), figures.kinds.last_cpu(&kind.name)?.0.into()));
                figures.kinds.iter().filter_map(of).collect()
            }
            Of::Times(value) => {
                let Some(figures) = &run.folds.figures else { return Vec::new() };
                let of = |kind: &OneKind| {
                    let times = figures.kinds.times(&kind.name);
                    let times: Vec<f64> = times.iter().map(|time| time.0 as f64).collect();
                    Some((kind.name.clone(), value(&times, run)?))
                };
                figures.kinds.iter().filter_map(of).collect()
            }
        };
        let is_meant = |key: &String| self.of.as_ref().is_none_or(|of| of == key);
        values.into_iter().filter(|(key, _)| is_meant(key)).collect()
    }
}

/// Number of kinds of task whose figures are shown by default.
const KINDS_SHOWN: usize = 3;

/// The few most informative figures; with many rows, fewer rows of each.
pub fn usual(experiment: &Experiment, results: &Results) -> Vec<Asked> {
    let mut asked = Vec::new();
    let mut ask = |name: &str, of: Option<&str>| {
        let figure = FIGURES.iter().find(|figure| figure.name == name).expect("it is one of them");
        asked.push(Asked { figure, of: of.map(str::to_string) });
    };
    let runs: Vec<&Run> = results.runs.iter().flatten().flatten().collect();
    let measured =
        experiment.columns.iter().flat_map(|c| &c.scenario.rows).any(|r| !r.workload.measures.is_empty());
    if !measured {
        ask("marks/s", None);
        ask("elapsed", None);
    }
    let few = experiment.keys.len() > 1;
    let of_wakes = shown(&runs, |kind| kind.latency.n());
    let of_runs = shown(&runs, |kind| (kind.runs.sum() / 1000) as u64);
    let latencies: &[&str] = if few {
        &["latency-p50", "latency-p99"]
    } else {
        &["latency-p50", "latency-p99", "latency-p99.9", "latency-max"]
    };
    for name in latencies {
        for kind in &of_wakes {
            ask(name, Some(kind));
        }
    }
    if !few {
        for name in ["run-mean", "wait-mean", "cpu-share", "cpu-jain"] {
            for kind in of_runs.iter().filter(|kind| kind.as_str() != ALL) {
                if name != "cpu-share" || of_runs.len() > 1 {
                    ask(name, Some(kind));
                }
            }
        }
    } else if !measured {
        for kind in of_runs.iter().filter(|kind| kind.as_str() != ALL) {
            ask("cpu-jain", Some(kind));
        }
    }
    for name in ["switches/s", "involuntary/s", "wakeups/s", "migrations/s"] {
        ask(name, None);
    }
    if runs.iter().any(|run| run.engine.periods > 0) {
        ask("throttled-periods", None);
        ask("throttled-time", None);
    }
    asked
}

/// The kinds with the largest weight, and `all` if others are left out.
fn shown(runs: &[&Run], weight: impl Fn(&OneKind) -> u64) -> Vec<String> {
    let mut weights: Vec<(String, u64)> = Vec::new();
    for kind in runs.iter().filter_map(|run| run.folds.figures.as_ref()).flat_map(|f| f.kinds.iter()) {
        match weights.iter_mut().find(|(name, _)| *name == kind.name) {
            Some((_, sum)) => *sum += weight(kind),
            None => weights.push((kind.name.clone(), weight(kind))),
        }
    }
    let total: u64 = weights.iter().map(|(_, n)| n).sum();
    weights.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    // A kind with less than a hundredth says little.
    weights.retain(|&(_, n)| n > 0 && n * 100 >= total);
    let is_more = weights.len() > KINDS_SHOWN;
    let mut names: Vec<String> = weights.into_iter().take(KINDS_SHOWN).map(|(name, _)| name).collect();
    if is_more {
        names.push(ALL.to_string());
    }
    names
}

/// A table of figures, with a column for each of the experiment's. A figure without a value in any run is left out and
/// named in a note.
pub fn table(experiment: &Experiment, results: &Results, asked: &[Asked]) -> (Table, Vec<String>) {
    let mut table = crate::tables::titled(experiment, results);
    let mut without = Vec::new();
    for one in asked {
        let figure = one.figure;
        let mut any = false;
        for (key, by_column) in experiment.keys.iter().zip(&results.runs) {
            let values: Vec<Vec<Vec<(String, f64)>>> =
                by_column.iter().map(|runs| runs.iter().map(|run| one.values(run)).collect()).collect();
            let mut parts: Vec<String> = Vec::new();
            for (part, _) in values.iter().flatten().flatten() {
                if !parts.contains(part) {
                    parts.push(part.clone());
                }
            }
            for part in &parts {
                let name = [key.as_str(), part.as_str()]
                    .iter()
                    .filter(|s| !s.is_empty())
                    .copied()
                    .collect::<Vec<_>>()
                    .join(" ");
                let metric =
                    table.metric(figure.name, figure.unit, figure.better.unwrap_or(Direction::Lower));
                if figure.better.is_none() {
                    metric.neither_is_better();
                }
                metric.row(&name);
                for (column, runs) in values.iter().enumerate() {
                    for (run, values) in by_column[column].iter().zip(runs) {
                        let zero = matches!(figure.of, Of::Each(_)).then_some(0.0);
                        let value = values.iter().find(|(p, _)| p == part).map(|(_, v)| *v).or(zero);
                        if let Some(value) = value.filter(|v| v.is_finite()) {
                            any = true;
                            metric.record(&name, column, run.seed, value);
                        }
                    }
                }
            }
        }
        if !any {
            let of = one.of.as_ref().map_or(String::new(), |of| format!(":{of}"));
            without.push(format!("{}{of} has no figure: no run has such an event", figure.name));
        }
    }
    (table, without)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_alone_by_their_beginning_and_of_a_kind() {
        let names =
            |text: &str| Asked::parse(text).map(|all| all.iter().map(Asked::name).collect::<Vec<_>>());
        assert_eq!(names("cpu-jain").unwrap(), ["cpu-jain"]);
        assert_eq!(names("latency-*").unwrap().len(), 6);
        assert_eq!(names("all").unwrap().len(), FIGURES.len());
        assert_eq!(Asked::parse("run-max:w").unwrap()[0].of.as_deref(), Some("w"));
        assert!(names("latencyp99").unwrap_err().to_string().contains("did you mean latency-p99?"));
    }
}
