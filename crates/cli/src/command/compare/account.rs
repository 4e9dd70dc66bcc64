//! `schedlab compare --attribute`: which rules and mechanisms account for a difference.

use schedlab::Experiment;
use schedlab::attribute::Account;
use schedlab::report::{Comparison, Verdict};
use serde_json::{Value, json};

use super::{Runner, answer, name_of, options, tables, two_columns};
use crate::args::Compare;
use crate::error::{Error, Status};
use crate::width::{width, wrapped};

/// A change below this share of the whole has no line of its own.
const CARRIES: f64 = 0.02;

/// A rule or mechanism, the change with it alone, and without it.
type Line = (String, Option<f64>, Option<f64>);

/// The account of one figure.
struct Figure {
    metric: String,
    row: String,
    /// Both, in a table.
    name: String,
    change: f64,
    word: String,
    lines: Vec<Line>,
}

/// Runs the sides of an account and prints it in one table.
pub fn account(args: &Compare, experiment: &Experiment) -> Result<Status, Error> {
    let [base, other] = two_columns("--attribute", args, experiment)?;
    let options = options(args)?;
    let account = Account::plan(base, other)?;
    let runner = Runner::new(args);
    let mut results = account.experiment.nothing();
    runner.extend(&account.experiment, &mut results, base.scenario.runs)?;
    if runner.is_stopped() {
        return Ok(Status::Interrupted);
    }
    let found = tables(args, &account.experiment, &results)?;
    let table = found.in_question(args);
    let whole = Comparison::new(&table.columns(&[0, 1]), options);
    let compare = |base: usize, other: usize| Comparison::new(&table.columns(&[base, other]), options);
    let mut figures = Vec::new();
    for (at, metric) in whole.metrics.iter().enumerate() {
        for (row, of) in metric.rows.iter().enumerate() {
            let cell = &of.cells[1];
            // If there is no change, nothing accounts for a part of it.
            let Some(change) = cell.paired.change.filter(|change| change.abs() >= 5e-5) else { continue };
            if cell.verdict == Verdict::NoDifference && args.metric.is_empty() {
                continue;
            }
            let name = name_of(&metric.name, &of.key);
            let lines = account.changes(compare, at, row);
            let (word, row) = (metric.word(cell), of.key.clone());
            figures.push(Figure { metric: metric.name.clone(), row, name, change, word, lines });
        }
    }
    if figures.is_empty() {
        return Err(Error::new(
            "nothing that was looked at changed, so there is nothing to account for; ask for other figures by --metric",
        ));
    }
    let values: Vec<Value> = figures.iter().map(Figure::json).collect();
    answer(args, &values, text(&whole, &figures))
}

fn percent(x: f64) -> String {
    format!("{:+.2} %", 100.0 * x)
}

fn text(whole: &Comparison, figures: &[Figure]) -> String {
    let shown: Vec<Vec<&Line>> = figures.iter().map(Figure::shown).collect();
    let names = figures.iter().map(|figure| figure.name.len());
    let rules = shown.iter().flatten().map(|(name, ..)| name.len() + 2);
    let first = names.chain(rules).max().unwrap_or(0);
    let mut text = format!("{} against {}\n", whole.kernels[1], whole.kernels[0]);
    text += &format!("{:<first$}  {:>11}  {:>11}  {:>7}\n", "turned over", "alone", "without it", "carries");
    for (figure, lines) in figures.iter().zip(&shown) {
        text += &format!("{:<first$}  {:>11}  {}\n", figure.name, percent(figure.change), figure.word);
        for (name, alone, without) in lines {
            let carries = without.map_or(String::new(), |w| format!("{:.0} %", 100.0 * figure.carries(w)));
            let line = format!(
                "  {name:<rule$}  {:>11}  {:>11}  {carries:>7}",
                alone.map_or("-".to_owned(), percent),
                without.map_or(String::new(), percent),
                rule = first - 2
            );
            text += line.trim_end();
            text.push('\n');
        }
    }
    let width = width();
    text.push('\n');
    for (name, about) in [
        (
            "alone       ",
            "the change with only this rule turned over, or with the mechanism off on both sides",
        ),
        ("without it  ", "the change with this rule as in the baseline"),
    ] {
        text += &wrapped(name, about, width);
    }
    let few = format!(
        "figures without a difference, unless --metric names them; what moves a figure by less than {:.0} % of its change",
        100.0 * CARRIES
    );
    text += &wrapped("left out    ", &few, width);
    text
}

impl Figure {
    fn carries(&self, without: f64) -> f64 {
        (self.change - without) / self.change
    }

    /// The lines that change it.
    fn shown(&self) -> Vec<&Line> {
        let is_seen = |x: f64| x.abs() >= CARRIES * self.change.abs();
        let moves = |line: &&Line| match line {
            (_, alone, None) => alone.is_some_and(|alone| is_seen(alone - self.change)),
            (_, alone, Some(without)) => {
                alone.is_some_and(is_seen) || self.carries(*without).abs() >= CARRIES
            }
        };
        self.lines.iter().filter(moves).collect()
    }

    fn json(&self) -> Value {
        let told = |(name, alone, without): &Line| json!({"what": name, "alone": alone, "without": without});
        let lines: Vec<Value> = self.lines.iter().map(told).collect();
        json!({"metric": self.metric, "row": self.row, "change": self.change, "verdict": self.word, "lines": lines})
    }
}
