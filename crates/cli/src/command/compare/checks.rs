//! Whether starred verdicts depend on facts that no source reports: a few more runs, and a line for each.

use schedlab::checks::{Checked, Checks};
use schedlab::report::{Comparison, Interval, Options, Verdict};
use schedlab::{Experiment, Results};
use serde_json::{Value, json};

use super::{Runner, Tables, name_of, tables};
use crate::args::Compare;
use crate::error::Error;
use crate::width::wrapped;

/// A change that moves by less than this fraction of itself counts as unchanged.
const MOVES: f64 = 0.25;

/// The result of the checks of one starred change.
pub struct Told {
    metric: String,
    row: String,
    column: String,
    checked: Checked,
}

/// All of them.
#[derive(Default)]
pub struct Verdicts {
    told: Vec<Told>,
    names: Vec<String>,
    seeds: u32,
}

/// A starred change: its metric, row and column, and its checks.
struct Starred {
    at: (usize, usize, usize),
    known: (f64, Option<[f64; 2]>, usize),
}

/// Runs the checks of the starred changes in the table in question.
pub fn checks(
    args: &Compare,
    runner: &Runner,
    (experiment, results): (&Experiment, &Results),
    found: &Tables,
    options: Options,
) -> Result<Verdicts, Error> {
    let whole = Comparison::new(found.in_question(args), options);
    let starred = starred(&whole);
    let is_of = |key: &str, row: &str| {
        key.is_empty() || row == key || row.strip_prefix(key).is_some_and(|rest| rest.starts_with(' '))
    };
    let rows: Vec<usize> = (0..experiment.keys.len())
        .filter(|&row| {
            starred.iter().any(|of| is_of(&experiment.keys[row], &whole.metrics[of.at.0].rows[of.at.1].key))
        })
        .collect();
    if rows.is_empty() {
        return Ok(Verdicts::default());
    }
    let plan = Checks::plan(experiment, results, &rows)?;
    if plan.checks.is_empty() {
        return Ok(Verdicts::default());
    }
    let mut more = plan.begun(results, &rows);
    runner.extend(&plan.experiment, &mut more, plan.seeds)?;
    if runner.is_stopped() {
        return Ok(Verdicts::default());
    }
    let again = tables(args, &plan.experiment, &more)?;
    let table = again.in_question(args);
    let compare = |base: usize, other: usize| Comparison::new(&table.columns(&[base, other]), options);
    // Rows without a star did not run again, so the others are found by name.
    let names = compare(0, 0);
    let mut told = Vec::new();
    for Starred { at: (metric, row, column), known } in starred {
        let (of, key) = (&whole.metrics[metric], &whole.metrics[metric].rows[row].key);
        let Some(metric) = names.metrics.iter().position(|other| other.name == of.name) else { continue };
        let Some(row) = names.metrics[metric].rows.iter().position(|other| other.key == *key) else {
            continue;
        };
        let checked = plan.of(compare, (metric, row, column), known);
        let (metric, column) = (of.name.clone(), whole.kernels[column].clone());
        told.push(Told { metric, row: key.clone(), column, checked });
    }
    let names = plan.checks.iter().map(|check| check.name.clone()).collect();
    Ok(Verdicts { told, names, seeds: plan.seeds })
}

fn starred(whole: &Comparison) -> Vec<Starred> {
    let mut found = Vec::new();
    for (metric, of) in whole.metrics.iter().enumerate() {
        for (row, cells) in of.rows.iter().enumerate() {
            for (column, cell) in
                cells.cells.iter().enumerate().skip(1).filter(|(_, cell)| of.is_starred(cell))
            {
                let Some(change) = cell.paired.change.filter(|change| change.is_finite()) else { continue };
                let known = (change, cell.paired.interval.map(|i| [i.low, i.high]), cell.paired.n);
                found.push(Starred { at: (metric, row, column), known });
            }
        }
    }
    found
}

/// Names of checks, both ends of a part as one.
fn joined(names: &[String]) -> String {
    let mut told: Vec<String> = Vec::new();
    for name in names {
        match name.strip_prefix("at the highest ") {
            Some(what) if told.last().is_some_and(|last| *last == format!("at the lowest {what}")) => {
                told.pop();
                told.push(format!("at the lowest and highest {what}"));
            }
            _ => told.push(name.clone()),
        }
    }
    told.join(", ")
}

/// The checks with the least and the greatest change, if they move it by more than the spread of their few pairs.
fn movers(Checked { change, would_be, noise, .. }: &Checked) -> Vec<&(String, f64)> {
    let least = would_be.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = would_be.iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|most| Some(*most) != least);
    let moves = |(_, at): &&(String, f64)| (at - change).abs() > noise.max(MOVES * change.abs());
    [least, most].into_iter().flatten().filter(moves).collect()
}

/// From the least to the greatest change, if a check moves it.
fn span(checked: &Checked) -> Option<Interval> {
    let ends = movers(checked);
    let [low, high] =
        [f64::min, f64::max].map(|end| ends.iter().fold(checked.change, |x, (_, at)| end(x, *at)));
    (!ends.is_empty()).then_some(Interval { low, high })
}

fn percent(x: f64) -> String {
    format!("{:+.1} %", 100.0 * x)
}

impl Verdicts {
    /// Replaces verdicts whose sign depends on a check, and changes that a check moves by their span.
    pub fn judge(&self, comparison: &mut Comparison) {
        for told in &self.told {
            let Some(column) = comparison.kernels.iter().position(|name| *name == told.column) else {
                continue;
            };
            let metrics = comparison.metrics.iter_mut().filter(|metric| metric.name == told.metric);
            for row in metrics.flat_map(|metric| &mut metric.rows).filter(|row| row.key == told.row) {
                let cell = &mut row.cells[column];
                if told.checked.turned.is_empty() {
                    cell.span = span(&told.checked);
                } else {
                    (cell.star.significant, cell.verdict) = (false, Verdict::Coin);
                }
            }
        }
    }

    /// A line for each change that depends on something or moves, and one for the others.
    pub fn text(&self, columns: usize, width: usize) -> String {
        let (mut text, mut held) = (String::new(), 0);
        for told in &self.told {
            let Checked { change, would_be, turned, .. } = &told.checked;
            let of = if columns > 2 { format!(", {}", told.column) } else { String::new() };
            let name = format!("{}{of}", name_of(&told.metric, &told.row));
            let at = |name: &String| would_be.iter().find(|(of, _)| of == name).map_or(0.0, |(_, at)| *at);
            if !turned.is_empty() {
                let turned: Vec<String> =
                    turned.iter().map(|name| format!("{} {name}", percent(at(name)))).collect();
                let line = format!(
                    "{name}: {} would be {}: its sign depends on that, so it is no verdict",
                    percent(*change),
                    turned.join(" and ")
                );
                text += &wrapped("coin   ", &line, width);
                continue;
            }
            let ends: Vec<String> =
                movers(&told.checked).iter().map(|(name, at)| format!("{} {name}", percent(*at))).collect();
            if ends.is_empty() {
                held += 1;
            } else {
                text +=
                    &wrapped("span   ", &format!("{name}: {}, {}", percent(*change), ends.join(", ")), width);
            }
        }
        if held > 0 {
            let what = if held == 1 {
                "one starred change stays".to_string()
            } else {
                format!("{held} starred changes stay")
            };
            let pairs =
                if self.seeds == 1 { "one pair".to_string() } else { format!("{} pairs", self.seeds) };
            let line = format!("{what} unchanged in {pairs} of runs {}", joined(&self.names));
            text += &wrapped("holds  ", &line, width);
        }
        text
    }

    /// For scripts.
    pub fn json(&self) -> Value {
        let told = self.told.iter().map(|told| {
            let checks: Vec<Value> =
                told.checked.would_be.iter().map(|(name, at)| json!({"check": name, "change": at})).collect();
            json!({"metric": told.metric, "row": told.row, "column": told.column, "change": told.checked.change,
                   "checks": checks, "turned": told.checked.turned})
        });
        Value::Array(told.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(change: f64, would_be: &[(&str, f64)], turned: &[&str]) -> Verdicts {
        let would_be: Vec<(String, f64)> =
            would_be.iter().map(|(name, at)| (name.to_string(), *at)).collect();
        let names = would_be.iter().map(|(name, _)| name.clone()).collect();
        let turned = turned.iter().map(|name| name.to_string()).collect();
        let checked = Checked { change, would_be, turned, noise: 0.01 };
        let told =
            Told { metric: "time".to_string(), row: "4".to_string(), column: "b".to_string(), checked };
        Verdicts { told: vec![told], names, seeds: 1 }
    }

    #[test]
    fn a_coin_a_span_and_what_holds_have_a_line_each() {
        let coin = told(0.06, &[("without idle states", -0.08)], &["without idle states"]);
        assert_eq!(
            coin.text(2, 200),
            "coin   time 4: +6.0 % would be -8.0 % without idle states: its sign depends on that, so it is no verdict\n"
        );
        let ends = [("at the lowest prices of calls", 0.05), ("at the highest prices of calls", 0.15)];
        assert_eq!(
            told(0.06, &ends, &[]).text(3, 200),
            "span   time 4, b: +6.0 %, +15.0 % at the highest prices of calls\n"
        );
        let moved = told(0.06, &ends, &[]);
        assert_eq!(span(&moved.told[0].checked), Some(Interval { low: 0.06, high: 0.15 }));
        assert_eq!(span(&coin.told[0].checked), Some(Interval { low: -0.08, high: 0.06 }));
        let ends = [("at the lowest prices of calls", 0.06), ("at the highest prices of calls", 0.061)];
        assert_eq!(
            told(0.06, &ends, &[]).text(2, 200),
            "holds  one starred change stays unchanged in one pair of runs at the lowest and highest prices of calls\n"
        );
        assert_eq!(span(&told(0.06, &ends, &[]).told[0].checked), None);
    }
}
