//! The absolute check: what a model does per second and per operation, beside the real program that it models.
//!
//! A model that is four times too fast, or that never sleeps, gives verdicts about something else. So its rates of
//! operations, switches and sleeps are printed beside published ones. Machines differ, so only the order of magnitude
//! counts. A scenario may have its own reference:
//!
//! ```toml
//! [reference]
//! program = "stress-ng --pipe 4"
//! where = "Raspberry Pi 5, 6.12.81"
//! operation = "write"
//! per_second = 1506572
//! switches = 1.32          # for each operation; may be left out, as may sleeps
//! ```

use std::borrow::Cow;

use schedlab_workload::models::Model;
use schedlab_workload::{MeasureRule, Workload};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::columns::Experiment;
use crate::experiment::{Results, Run};

/// A real program, measured.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// The program with its arguments.
    program: Cow<'static, str>,
    /// Machine, kernel and source.
    #[serde(rename = "where")]
    place: Cow<'static, str>,
    /// What it counts.
    operation: Cow<'static, str>,
    /// Operations per second.
    #[serde(deserialize_with = "positive")]
    per_second: f64,
    /// Context switches per operation.
    #[serde(default, deserialize_with = "count")]
    switches: Option<f64>,
    /// Sleeps per operation.
    #[serde(default, deserialize_with = "count")]
    sleeps: Option<f64>,
}

fn positive<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let rate = f64::deserialize(deserializer)?;
    match rate > 0.0 && rate.is_finite() {
        true => Ok(rate),
        false => Err(D::Error::custom(format!("per_second is a number above 0, not {rate}"))),
    }
}

fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let count = f64::deserialize(deserializer)?;
    match count >= 0.0 && count.is_finite() {
        true => Ok(Some(count)),
        false => Err(D::Error::custom(format!(
            "switches and sleeps for each operation are numbers from 0 on, not {count}"
        ))),
    }
}

/// References of models, by their name.
const OF_MODELS: &[(&str, Reference)] = &[
    (
        "hackbench",
        Reference {
            program: Cow::Borrowed("perf bench sched messaging -g 20 -t -l 5000"),
            place: Cow::Borrowed("machine not named, v6.6, commit 63304558ba5d"),
            operation: Cow::Borrowed("message"),
            per_second: 40e6 / 9.24,
            switches: Some(2_556_535.0 / 40e6),
            sleeps: None,
        },
    ),
    (
        "schbench",
        Reference {
            program: Cow::Borrowed("schbench -m 4 -t 256, workers without work"),
            place: Cow::Borrowed("machine not named, mail of 24 June 2025"),
            operation: Cow::Borrowed("request"),
            per_second: 3.4e6,
            switches: None,
            sleeps: None,
        },
    ),
    (
        "sysbench",
        Reference {
            program: Cow::Borrowed("sysbench on PostgreSQL with 224 clients"),
            place: Cow::Borrowed("two sockets of Sapphire Rapids, 224 CPUs, v6.6, commit 1528c661c24b"),
            operation: Cow::Borrowed("transaction"),
            per_second: 93_671.0,
            switches: None,
            sleeps: Some(2.8e6 / 93_671.0),
        },
    ),
];

/// What one column of a row did.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Did {
    per_second: f64,
    switches: f64,
    sleeps: f64,
}

/// For each row a line about the first column, and one about the real program. Empty if the workload is no model and
/// has no reference.
pub fn beside(experiment: &Experiment, results: &Results) -> Vec<String> {
    let base = &experiment.columns[0];
    let mut lines = Vec::new();
    let mut real = None;
    for (key, by_column) in experiment.keys.iter().zip(&results.runs) {
        let Some(row) = base.row(key) else { continue };
        let own = base.scenario.reference.as_ref();
        let reference = own.or_else(|| of_model(&row.workload.name));
        if reference.is_none() && !is_model(&row.workload.name) {
            continue;
        }
        let Some((measure, did)) = did(&row.workload, &by_column[0]) else { continue };
        let key = if key.is_empty() { String::new() } else { format!("{key}: ") };
        let operation = reference.map_or(singular(measure), |reference| &reference.operation);
        let numbers = numbers(did.per_second, operation, Some(did.switches), Some(did.sleeps));
        lines.push(format!("{key}{numbers}"));
        real = Some(reference);
    }
    lines.extend(real.map(|real| match real {
        Some(real) => {
            let numbers = numbers(real.per_second, &real.operation, real.switches, real.sleeps);
            format!("really: {numbers}; {} ({})", real.program, real.place)
        }
        None => "really: not known for this model; [reference] in a scenario says it".to_string(),
    }));
    lines
}

fn is_model(name: &str) -> bool {
    Model::NAMES.contains(&name)
}

/// `transaction` of `transactions`; of a measure that is no plural, `operation`.
fn singular(measure: &str) -> &str {
    measure.strip_suffix('s').unwrap_or("operation")
}

fn of_model(name: &str) -> Option<&'static Reference> {
    OF_MODELS.iter().find(|(model, _)| *model == name).map(|(_, reference)| reference)
}

/// The mean over the runs, with the name of the measure that counts; `None` if the workload counts no operations.
fn did<'a>(workload: &'a Workload, runs: &[Run]) -> Option<(&'a str, Did)> {
    let mut sum = Did { per_second: 0.0, switches: 0.0, sleeps: 0.0 };
    let mut name = "";
    for run in runs {
        let mut found = None;
        for (measure, mark) in workload.measures.iter().zip(&run.folds.marks) {
            let rate = match (measure.rule, workload.operations) {
                (MeasureRule::Rate { .. }, None) => mark.value(),
                (MeasureRule::Elapsed { .. } | MeasureRule::Whole { .. }, Some(count)) => {
                    mark.value().map(|seconds| count as f64 / seconds)
                }
                _ => None,
            };
            found = found.or(rate.map(|rate| (measure.name.as_str(), rate)));
        }
        let (measure, per_second) = found.filter(|&(_, rate)| rate > 0.0)?;
        name = measure;
        let for_each = |count: u64| count as f64 * 1e9 / run.elapsed.0.max(1) as f64 / per_second;
        sum.per_second += per_second;
        sum.switches += for_each(run.folds.counts.switches);
        sum.sleeps += for_each(run.folds.counts.voluntary);
    }
    let n = runs.len() as f64;
    let mean = Did { per_second: sum.per_second / n, switches: sum.switches / n, sleeps: sum.sleeps / n };
    (n > 0.0).then_some((name, mean))
}

fn numbers(per_second: f64, operation: &str, switches: Option<f64>, sleeps: Option<f64>) -> String {
    let rate = match per_second {
        rate if rate >= 1e6 => format!("{:.2} M", rate / 1e6),
        rate if rate >= 1e4 => format!("{:.1} k", rate / 1e3),
        rate => format!("{rate:.0}"),
    };
    let each = |count: Option<f64>, name: &str| count.map(|count| format!("{} {name}", three_digits(count)));
    let each: Vec<String> =
        [each(switches, "switches"), each(sleeps, "sleeps")].into_iter().flatten().collect();
    match each.is_empty() {
        true => format!("{rate} {operation}s/s"),
        false => format!("{rate} {operation}s/s with {} each", each.join(" and ")),
    }
}

fn three_digits(count: f64) -> String {
    match count {
        count if count >= 100.0 => format!("{count:.0}"),
        count if count >= 10.0 => format!("{count:.1}"),
        count if count >= 1.0 => format!("{count:.2}"),
        count => format!("{count:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Experiment, NoFiles, Scenario};

    fn lines(more: &str) -> String {
        let text = format!("machine = \"2\"\nkernels = [\"v6.12\"]\n{more}");
        let scenario = Scenario::parse("a scenario", &text, &NoFiles).unwrap();
        let experiment = Experiment::of(&scenario);
        let mut results = experiment.nothing();
        experiment.extend(&mut results, 1, 1, false, || true, |_, _| ()).unwrap();
        super::beside(&experiment, &results).join("\n")
    }

    #[test]
    fn a_model_stands_beside_its_program() {
        let all = lines("[workload]\nmodel = \"hackbench\"\ngroups = [1, 2]\npairs = 2\nloops = 50\n");
        let rows: Vec<&str> = all.lines().collect();
        assert_eq!(rows.len(), 3, "{all}");
        assert!(rows[0].starts_with("1: ") && rows[0].contains("messages/s with"), "{all}");
        assert_eq!(
            rows[2],
            "really: 4.33 M messages/s with 0.064 switches each; perf bench sched messaging -g 20 -t -l 5000 (machine not \
             named, v6.6, commit 63304558ba5d)"
        );
    }

    #[test]
    fn a_model_without_a_reference_prints_its_rate() {
        let all = lines("[workload]\nmodel = \"token\"\nwarmup = \"1ms\"\nwall = \"5ms\"\n");
        let (rate, really) = all.split_once('\n').unwrap();
        assert!(rate.contains(" operations/s with ") && rate.ends_with(" sleeps each"), "{all}");
        assert!(really.starts_with("really: not known"), "{all}");
    }

    #[test]
    fn a_scenario_has_a_reference_of_its_own_or_none() {
        let program = "[workload]\nduration = \"10ms\"\n[[workload.task]]\nname = \"sleeps\"\n\
                       program = [\"loop forever\", \"run 1ms\", \"sleep 1ms\", \"mark turn 1\", \"end\"]\n\
                       [[workload.measure]]\nname = \"turns\"\nrule = \"rate\"\nlabel = \"turn\"\n";
        assert_eq!(lines(program), "");
        let own = "[reference]\nprogram = \"a program\"\nwhere = \"here\"\noperation = \"turn\"\n\
                   per_second = 500\nsleeps = 1\n";
        let all = lines(&format!("{own}{program}"));
        assert!(
            all.contains("sleeps each\nreally: 500 turns/s with 1.00 sleeps each; a program (here)"),
            "{all}"
        );
        let without = own.replace("per_second = 500\n", "");
        let error = Scenario::parse(
            "f",
            &format!("machine = \"2\"\nkernels = [\"v6.12\"]\n{without}{program}"),
            &NoFiles,
        );
        assert!(error.unwrap_err().to_string().contains("per_second"));
        for (right, wrong) in [("per_second = 500", "per_second = -5"), ("sleeps = 1", "sleeps = nan")] {
            let text =
                format!("machine = \"2\"\nkernels = [\"v6.12\"]\n{}{program}", own.replace(right, wrong));
            let error = Scenario::parse("f", &text, &NoFiles).unwrap_err().to_string();
            assert!(error.starts_with("f:") && error.contains(", not "), "{error}");
        }
    }
}
