//! `cargo xtask predictions`: published changes that nothing was tuned on, and what the simulator foretells of each.
//!
//! A row of `predictions/rows.tsv` names a scenario, two of its kernels and one figure. Each runs with paired seeds; what comes
//! out stands beside what was published in `docs/predictions.md`, wrong predictions as well, and goes into
//! `predictions/results.tsv`. A row with which a constant was chosen is shown and does not count.
//!
//! `--quick` runs the rows that take seconds, and fails if fewer signs are right among them than the results have.
//! Words after it choose rows by the beginnings of their ids; then they are printed and nothing is written.

mod figure;
mod row;
mod verdict;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::time::Instant;

use rayon::prelude::*;
use schedlab::machine::{Machine, Without};
use schedlab::{Limits, run_one};
use schedlab_stats::Direction;

use crate::source::{self, Section, head, read};
use row::{CLASSES, Row, Side};
use verdict::{Foretold, Published, Sign};

const ROWS: &str = "predictions/rows.tsv";
const RESULTS: &str = "predictions/results.tsv";
const SECTION: Section =
    Section { document: "docs/predictions.md", name: "predictions", command: "predictions" };

/// A row and what came of it.
struct Outcome {
    row: Row,
    foretold: Foretold,
    /// What its sign hangs on, if it does on something that no source tells of its machine.
    hangs_on: Option<&'static str>,
    seconds: f64,
}

/// Runs the rows.
///
/// # Errors
/// A file that cannot be read or written, a run that fails, or fewer right signs than there were.
pub fn run(args: &[String]) -> Result<(), String> {
    let quick = args.iter().any(|arg| arg == "--quick");
    let words: Vec<&String> = args.iter().filter(|arg| *arg != "--quick").collect();
    let chosen = |row: &Row| {
        (!quick || row.quick) && (words.is_empty() || words.iter().any(|word| row.id.starts_with(*word)))
    };
    let mut rows = row::parse(ROWS, &read(&source::root().join(ROWS))?)?;
    rows.retain(chosen);
    if rows.is_empty() {
        return Err(format!("{ROWS} has no such row"));
    }
    let outcomes: Vec<Outcome> =
        rows.into_iter().map(|row| foretell(row, !quick)).collect::<Result<_, _>>()?;
    if quick {
        return hold(&outcomes);
    }
    if !words.is_empty() {
        print!("{}{}", table(&outcomes), totals(&outcomes));
        return Ok(());
    }
    let path = source::root().join(RESULTS);
    fs::write(&path, results(&outcomes)).map_err(|e| format!("{}: {e}", path.display()))?;
    SECTION.write(&format!("{}\n{}", totals(&outcomes), table(&outcomes)))
}

/// Runs one row with all its seeds; with `doubt`, a sure change also under other idle states and clocks.
fn foretell(row: Row, doubt: bool) -> Result<Outcome, String> {
    let began = Instant::now();
    let mut sides = row.sides(&source::root().join("predictions/scenarios"))?;
    let runs = sides[0].scenario.runs;
    let foretold = runs_of(&row, &sides, runs)?;
    let mut hangs_on = None;
    if doubt && matches!(row.published, Published::Change(_)) && foretold.is_sure() {
        let machines: Vec<Machine> = sides.iter().map(|side| side.scenario.machine.clone()).collect();
        for without in ["idle-states", "frequency"] {
            for (side, machine) in sides.iter_mut().zip(&machines) {
                side.scenario.machine = machine.clone().without(Without::parse(without)?);
            }
            if foretold.is_contradicted(&runs_of(&row, &sides, runs.min(2))?) {
                hangs_on = Some(without);
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let outcome = Outcome { row, foretold, hangs_on, seconds };
    eprintln!("{}\t{}\t{seconds:.1} s", outcome.row.id, outcome.sign().word());
    Ok(outcome)
}

/// What so many pairs of runs foretell.
fn runs_of(row: &Row, sides: &[Side], runs: u32) -> Result<Foretold, String> {
    let jobs: Vec<(usize, u32)> =
        (0..sides.len()).flat_map(|side| (0..runs).map(move |nth| (side, nth))).collect();
    let values: Vec<f64> =
        jobs.par_iter().map(|&(side, nth)| one(row, &sides[side], nth)).collect::<Result<_, _>>()?;
    let (before, after) = values.split_at(if sides.len() == 1 { 0 } else { runs as usize });
    let before = if sides.len() == 1 { after } else { before };
    let direction: Direction = row.figure.direction(&sides[0].row.workload);
    let pairs: Vec<(f64, f64)> = before.iter().copied().zip(after.iter().copied()).collect();
    Ok(Foretold::of(&pairs, direction))
}

/// The figure of one run.
fn one(row: &Row, side: &Side, nth: u32) -> Result<f64, String> {
    let Side { scenario, row: runs } = side;
    let limits = Limits { seed: scenario.seed.wrapping_add(u64::from(nth)), ..scenario.limits() };
    let kernel = &scenario.kernels[0];
    let (run, of_kind) = run_one(&scenario.machine, kernel, runs, limits, |_| row.figure.sink())
        .map_err(|e| format!("{}: {}: {e}", row.id, kernel.name))?;
    let value = row.figure.value(&run, &of_kind, &runs.workload);
    value.ok_or_else(|| format!("{}: no run under {} has \"{}\"", row.id, kernel.name, row.named))
}

impl Outcome {
    fn sign(&self) -> Sign {
        if self.hangs_on.is_some() { Sign::Coin } else { self.row.published.sign(&self.foretold) }
    }

    fn within_two(&self) -> bool {
        self.row.published.within_two(&self.foretold)
    }

    fn counts(&self) -> bool {
        self.row.chosen.is_empty()
    }

    /// What was simulated, in words.
    fn simulated(&self) -> String {
        let Foretold { before, after, change, interval } = self.foretold;
        let figures = format!("{} -> {}", short(before), short(after));
        match (self.row.published, interval) {
            (Published::State(_), _) => short(after),
            (_, Some([low, high])) => {
                let star = if self.foretold.is_sure() { "*" } else { "" };
                format!("{figures}, {}{star} [{:+.1}, {:+.1}]", percent(change), 100.0 * low, 100.0 * high)
            }
            (_, None) => format!("{figures}, {}", percent(change)),
        }
    }
}

fn percent(change: f64) -> String {
    if change.is_finite() { format!("{:+.1} %", 100.0 * change) } else { "from nothing".to_string() }
}

/// Four digits that matter.
fn short(value: f64) -> String {
    let digits = if value == 0.0 { 0 } else { 3 - value.abs().log10().floor() as i32 };
    format!("{value:.*}", digits.clamp(0, 6) as usize)
}

/// A line for each row.
fn table(outcomes: &[Outcome]) -> String {
    let mut text = head(&[
        "row",
        "class",
        "machine and load",
        "change",
        "figure",
        "published",
        "simulated",
        "sign",
        "within two",
    ]);
    for outcome in outcomes {
        let Row { id, class, machine, workload, change, named, said, chosen, published, .. } = &outcome.row;
        let mark = if chosen.is_empty() { String::new() } else { format!(" (does not count: {chosen})") };
        let null = if matches!(published, Published::Null(_)) { " (no effect)" } else { "" };
        let sign = outcome.hangs_on.map_or(outcome.sign().word().to_string(), |what| format!("coin: {what}"));
        let (sign, within) = (sign, if outcome.within_two() { "yes" } else { "no" });
        _ = writeln!(
            text,
            "| {id}{mark} | {class} | {machine}: {workload} | {change} | {named} | {said}{null} | {} | {sign} | {within} |",
            outcome.simulated()
        );
    }
    text
}

/// A line for each class, of the rows that count.
fn totals(outcomes: &[Outcome]) -> String {
    let mut text = head(&[
        "effect",
        "rows",
        "right sign",
        "no sure change",
        "wrong sign",
        "within a factor of two",
        "nulls",
        "nulls held",
    ]);
    let counted: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.counts()).collect();
    let mut classes: BTreeMap<&str, Vec<&Outcome>> = BTreeMap::new();
    for outcome in &counted {
        classes.entry(&outcome.row.class).or_default().push(outcome);
    }
    let lines = CLASSES.iter().map(|class| (*class, classes.remove(class).unwrap_or_default()));
    for (class, of) in lines.chain([("all", counted.clone())]) {
        let (nulls, effects): (Vec<&Outcome>, Vec<&Outcome>) =
            of.into_iter().partition(|outcome| matches!(outcome.row.published, Published::Null(_)));
        let with = |rows: &[&Outcome], sign| rows.iter().filter(|outcome| outcome.sign() == sign).count();
        let within = effects.iter().filter(|outcome| outcome.within_two()).count();
        _ = writeln!(
            text,
            "| {class} | {} | {} | {} | {} | {within} | {} | {} |",
            effects.len(),
            with(&effects, Sign::Right),
            with(&effects, Sign::None) + with(&effects, Sign::Coin),
            with(&effects, Sign::Wrong),
            nulls.len(),
            with(&nulls, Sign::Right),
        );
    }
    text
}

/// The rows as the quick form and others read them.
fn results(outcomes: &[Outcome]) -> String {
    let mut text = "# Written by `cargo xtask predictions`.\nid\tclass\tcounts\tbefore\tafter\tchange\tlow\thigh\tsign\twithin2x\tseconds\n".to_string();
    for outcome in outcomes {
        let Foretold { before, after, change, interval } = outcome.foretold;
        let bounds = interval.map_or("\t".to_string(), |[low, high]| format!("{low:.4}\t{high:.4}"));
        let yes = |is| if is { "yes" } else { "no" };
        _ = writeln!(
            text,
            "{}\t{}\t{}\t{}\t{}\t{change:.4}\t{bounds}\t{}\t{}\t{:.0}",
            outcome.row.id,
            outcome.row.class,
            yes(outcome.counts()),
            short(before),
            short(after),
            outcome.sign().word(),
            yes(outcome.within_two()),
            outcome.seconds.ceil(),
        );
    }
    text
}

/// Whether as many signs are right as the results have of the same rows.
fn hold(outcomes: &[Outcome]) -> Result<(), String> {
    let text = read(&source::root().join(RESULTS))?;
    let was: BTreeMap<&str, bool> = text
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('\t').collect();
            Some((*cells.first()?, *cells.get(8)? == "right"))
        })
        .collect();
    let before = outcomes.iter().filter(|outcome| was.get(outcome.row.id.as_str()) == Some(&true)).count();
    let now = outcomes.iter().filter(|outcome| outcome.sign() == Sign::Right).count();
    println!(
        "predictions: of {} quick rows {now} have the published sign, and {before} had it",
        outcomes.len()
    );
    if now < before {
        let lost =
            outcomes.iter().filter(|o| o.sign() != Sign::Right && was.get(o.row.id.as_str()) == Some(&true));
        let lost: Vec<String> = lost
            .map(|o| format!("{}: published {}, simulated {}", o.row.id, o.row.said, o.simulated()))
            .collect();
        return Err(format!("predictions: lost since {RESULTS} was written:\n{}", lost.join("\n")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_a_scenario_with_its_kernels_and_its_row() {
        let rows = row::parse(ROWS, &read(&source::root().join(ROWS)).unwrap()).unwrap();
        for row in &rows {
            let sides = row.sides(&source::root().join("predictions/scenarios")).unwrap();
            for side in sides {
                if let figure::Figure::Measure(name) = &row.figure {
                    assert!(side.row.workload.measures.iter().any(|m| m.name == *name), "{}: {name}", row.id);
                }
            }
        }
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.012345, 12.3456, 123456.7].map(short), ["0", "0.01235", "12.35", "123457"]);
    }
}
