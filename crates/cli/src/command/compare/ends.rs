//! `schedlab compare --ends`: the bounds of a change.

use schedlab::Experiment;
use schedlab::ends::{End, Ends, Span};
use schedlab::report::Comparison;
use serde_json::{Value, json};

use super::{Runner, answer, name_of, options, tables, two_columns};
use crate::args::Compare;
use crate::error::{Error, Status};

/// Maximum number of constants named per change.
const NAMED: usize = 5;

/// A constant is named if it moves a change by this fraction of it, or changes its sign.
const MOVES: f64 = 0.25;

/// Runs the sides at every end and prints the span of each change.
pub fn ends(args: &Compare, experiment: &Experiment) -> Result<Status, Error> {
    let [base, other] = two_columns("--ends", args, experiment)?;
    let options = options(args)?;
    let runner = Runner::new(args);
    // One run of each side shows which constants are used.
    let mut first = experiment.nothing();
    runner.extend(experiment, &mut first, 1)?;
    let plan = Ends::plan(base, other)?;
    let mut results = plan.experiment.nothing();
    runner.extend(&plan.experiment, &mut results, plan.experiment.base().runs)?;
    if runner.is_stopped() {
        return Ok(Status::Interrupted);
    }
    let found = tables(args, &plan.experiment, &results)?;
    let table = found.in_question(args);
    let whole = Comparison::new(&table.columns(&[0, 1]), options);
    let at_ends: Vec<(&End, Comparison)> = plan
        .ends
        .iter()
        .map(|end| (end, Comparison::new(&table.columns(&[end.columns.0, end.columns.1]), options)))
        .collect();
    let (mut text, mut values) = (String::new(), Vec::new());
    for (at, metric) in whole.metrics.iter().enumerate() {
        for (row, of) in metric.rows.iter().enumerate() {
            let Some(change) = of.cells[1].paired.change else { continue };
            let changes: Vec<(End, f64)> = at_ends
                .iter()
                .filter_map(|(end, comparison)| {
                    let cell = comparison.metrics.get(at)?.rows.get(row)?.cells.get(1)?;
                    Some(((*end).clone(), cell.paired.change?))
                })
                .collect();
            let span = Span::of(change, changes.iter().cloned());
            text += &block(&name_of(&metric.name, &of.key), &whole, change, &span, &changes);
            values.push(value(&metric.name, &of.key, change, &span, &changes));
        }
    }
    if values.is_empty() {
        return Err(Error::new("no figure has a change; ask for others by --metric"));
    }
    answer(args, &values, text)
}

fn percent(x: f64) -> String {
    format!("{:+.1} %", 100.0 * x)
}

fn block(name: &str, whole: &Comparison, change: f64, span: &Span, changes: &[(End, f64)]) -> String {
    let [low, high] = span.bounds.map(percent);
    let sign =
        if span.keeps_sign() { "" } else { ": the sign depends on constants that are not known better" };
    let mut text = format!(
        "{name}, {} against {}: {}, within the ranges of the machine's constants {low} to {high}{sign}\n",
        whole.kernels[1],
        whole.kernels[0],
        percent(change)
    );
    let mut movers: Vec<&(End, f64)> = changes
        .iter()
        .filter(|(_, at_end)| {
            (at_end - change).abs() >= MOVES * change.abs().max(0.01) || at_end * change < 0.0
        })
        .collect();
    movers.sort_by(|a, b| (b.1 - change).abs().total_cmp(&(a.1 - change).abs()));
    for (end, at_end) in movers.iter().take(NAMED) {
        text += &format!("  {} {} instead of {}: {}\n", end.name, end.value, end.usual, percent(*at_end));
    }
    text += &match (movers.len(), changes.len()) {
        (0, all) => format!("  none of {all} bounds changes it by a quarter\n"),
        (moving, all) if moving > NAMED => {
            format!("  {} more of {all} bounds change it by a quarter\n", moving - NAMED)
        }
        _ => String::new(),
    };
    text
}

fn value(metric: &str, row: &str, change: f64, span: &Span, changes: &[(End, f64)]) -> Value {
    let told: Vec<Value> = changes
        .iter()
        .map(|(end, at_end)| json!({"constant": end.name, "value": end.value, "usual": end.usual, "change": at_end}))
        .collect();
    json!({"metric": metric, "row": row, "change": change, "low": span.bounds[0], "high": span.bounds[1],
           "keeps_sign": span.keeps_sign(), "ends": told})
}
