//! The `schedlab compare` command for each row, so that no row needs a script.

use super::figure::{Count, Figure};
use super::row::{Row, Side};

/// The `--metric` that prints a figure; `None` for a measure of the workload, which `compare` prints by
/// default.
pub fn metric(figure: &Figure) -> Option<String> {
    let of_kind = |name: &str, kind: &str| Some(format!("{name}:{kind}"));
    match figure {
        Figure::Measure(_) => None,
        Figure::Elapsed => Some("elapsed".to_string()),
        Figure::BalanceMax => Some("balance-max".to_string()),
        Figure::Count { what, per_second } => {
            let per = if *per_second { "/s" } else { "" };
            Some(format!("{}{per}", name(*what)))
        }
        Figure::Per { what: Count::Migrations, .. } => Some("migrations/mark".to_string()),
        Figure::Per { what: Count::TaskSwitches, .. } => Some("task-switches/mark".to_string()),
        Figure::Per { .. } => Some("switches/mark".to_string()),
        Figure::Latency { percent: None, of } => of_kind("latency-mean", of),
        Figure::Latency { percent: Some(100.0), of } => of_kind("latency-max", of),
        Figure::Latency { percent: Some(percent), of } => of_kind(&format!("latency-p{percent}"), of),
        Figure::Stint(of) => of_kind("run-mean", of),
        Figure::Wait(of) => of_kind("wait-mean", of),
        Figure::SwitchesOf(of) => of_kind("runs", of),
        Figure::Used(of) => of_kind("cpu-per-s", of),
        Figure::Fairness(of) => of_kind("cpu-least/most", of),
        Figure::Share(of) => of_kind("cpu-share", of),
        Figure::LastCpu(of) => of_kind("last-cpu", of),
        // How many new tasks each CPU got; the score only considers the first ones.
        Figure::Spread(_) => Some("forks-on".to_string()),
        Figure::Reason { kind, .. } => Some(format!("{kind}s-by")),
        Figure::Tried(_) => Some("wakeups-tried".to_string()),
    }
}

fn name(what: Count) -> &'static str {
    match what {
        Count::Switches => "switches",
        Count::TaskSwitches => "task-switches",
        Count::Involuntary => "involuntary",
        Count::Wakeups => "wakeups",
        Count::Migrations => "migrations",
        Count::Ipis => "ipis",
    }
}

/// The command that prints a row's figures.
pub fn command(row: &Row, sides: &[Side]) -> String {
    let mut words = vec!["schedlab".to_string(), if sides.len() > 1 { "compare" } else { "run" }.to_string()];
    let mut files: Vec<&str> = sides.iter().map(|side| side.scenario.file.as_str()).collect();
    files.dedup();
    words.extend(
        files.iter().map(|file| format!("predictions/scenarios/{}", file.rsplit('/').next().unwrap_or(file))),
    );
    let mut kernels: Vec<&str> = sides.iter().map(|side| side.scenario.kernels[0].name.as_str()).collect();
    if files.len() > 1 {
        kernels.dedup();
    }
    words.extend(["--kernel".to_string(), kernels.join(",")]);
    words.extend(metric(&row.figure).into_iter().flat_map(|metric| ["--metric".to_string(), metric]));
    words.join(" ")
}

/// Whether a row of a figure's table is of a kind whose name begins with that of the figure.
#[cfg(test)]
fn is_of(figure: &Figure, key: &str) -> bool {
    match figure {
        Figure::Latency { of, .. }
        | Figure::Stint(of)
        | Figure::Wait(of)
        | Figure::SwitchesOf(of)
        | Figure::Used(of)
        | Figure::Fairness(of)
        | Figure::Share(of)
        | Figure::LastCpu(of) => key.starts_with(of.as_str()),
        Figure::Reason { name, .. } | Figure::Tried(name) => key == name,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use schedlab::figures::{self, Asked};
    use schedlab::report::{Comparison, Options};
    use schedlab::{Experiment, Row as Runs};

    use super::*;
    use crate::predictions::{ROWS, one, row};
    use crate::source::{self, read};

    fn rows() -> Vec<Row> {
        row::parse(ROWS, &read(&source::root().join(ROWS)).unwrap()).unwrap()
    }

    fn sides(row: &Row) -> Vec<Side> {
        row.sides(&source::root().join("predictions/scenarios")).unwrap()
    }

    #[test]
    fn compare_has_a_metric_for_every_row() {
        for row in rows() {
            if let Some(metric) = metric(&row.figure) {
                assert!(Asked::parse(&metric).is_ok(), "{}: {metric}", row.id);
            }
            assert!(command(&row, &sides(&row)).contains("predictions/scenarios/"));
        }
    }

    #[test]
    fn compare_prints_the_same_number() {
        for row in rows().iter().filter(|row| row.quick) {
            let Some(metric) = metric(&row.figure).filter(|_| !matches!(row.figure, Figure::Spread(_)))
            else {
                continue;
            };
            let side = sides(row).remove(0);
            let expected = one(row, &side, 0).unwrap();
            let mut scenario = side.scenario.clone();
            scenario.rows = vec![Runs { key: String::new(), ..side.row.clone() }];
            let experiment = Experiment::of(&scenario);
            let mut results = experiment.nothing();
            experiment.extend(&mut results, 1, 1, true, || true, |_, _| ()).unwrap();
            let asked = Asked::parse(metric.split(':').next().unwrap()).unwrap();
            let (table, _) = figures::table(&experiment, &results, &asked);
            let comparison = Comparison::new(&table, Options::default());
            let of = &comparison.metrics[0];
            let scale = if of.unit == "ns" { unit_ns(&row.figure) } else { 1.0 };
            let found: Vec<f64> = of
                .rows
                .iter()
                .filter(|found| is_of(&row.figure, &found.key))
                .map(|found| found.cells[0].summary.mean() / scale)
                .collect();
            let near = |value: &f64| (value - expected).abs() <= 0.01 * expected.abs();
            assert!(found.iter().any(near), "{}: {metric} gives {found:?}, the score {expected}", row.id);
        }
    }

    /// The unit of a figure of the score, ns.
    fn unit_ns(figure: &Figure) -> f64 {
        match figure {
            Figure::Elapsed => 1e9,
            Figure::Latency { .. } | Figure::BalanceMax => 1e3,
            _ => 1e6,
        }
    }
}
