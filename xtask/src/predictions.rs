//! `cargo xtask predictions`: published changes that nothing was tuned on, and the simulator's prediction for each.
//!
//! A row of `predictions/rows.tsv` names a scenario, two of its kernels and one figure. Each runs with paired seeds.
//! The result is shown beside the published change in `docs/predictions.md`, wrong predictions included, and goes into
//! `predictions/results.tsv`. A row with which a constant was chosen is shown, but does not count.
//!
//! Arguments select rows by prefixes of their ids; the results of the others are kept. `--quick` runs the rows that
//! take seconds, writes nothing, and fails if fewer signs are right among them than the results have. `--ask` runs
//! nothing and prints the command of `schedlab` that prints each row's figures. `--with idle.exit_permille=300` runs
//! them with other values of constants, writes nothing, and prints the old prediction beside the new one. This shows
//! what depends on a constant that was never measured.

mod asked;
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

/// A row and its result.
struct Outcome {
    row: Row,
    result: Found,
}

/// The result of a row, as in the file of results.
#[derive(Clone, Debug, PartialEq)]
struct Found {
    foretold: Foretold,
    /// What its sign depends on, if that is a property of its machine that no source reports.
    hangs_on: Option<String>,
    seconds: f64,
}

/// Results by the ids of rows.
type Results = BTreeMap<String, Found>;

/// Runs the rows.
///
/// # Errors
/// A file that cannot be read or written, a run that fails, or fewer right signs than there were.
pub fn run(args: &[String]) -> Result<(), String> {
    let known = ["--quick", "--ask", "--with"];
    if let Some(other) = args.iter().find(|arg| arg.starts_with("--") && !known.contains(&arg.as_str())) {
        return Err(format!("{other} is none of {}", known.join(", ")));
    }
    let quick = args.iter().any(|arg| arg == "--quick");
    let others = others(args)?;
    let words: Vec<&String> =
        args.iter().filter(|arg| !arg.starts_with("--") && !arg.contains('=')).collect();
    let chosen = |row: &Row| {
        (!quick || row.quick) && (words.is_empty() || words.iter().any(|word| row.id.starts_with(*word)))
    };
    let rows = row::parse(ROWS, &read(&source::root().join(ROWS))?)?;
    if !rows.iter().any(chosen) {
        return Err(format!("{ROWS} has no such row"));
    }
    if args.iter().any(|arg| arg == "--ask") {
        for row in rows.iter().filter(|row| chosen(row)) {
            let sides = row.sides(&source::root().join("predictions/scenarios"))?;
            println!("{}\t{}", row.id, asked::command(row, &sides));
        }
        return Ok(());
    }
    let path = source::root().join(RESULTS);
    let mut results = if path.exists() { parse_results(&read(&path)?)? } else { Results::new() };
    results.retain(|id, _| rows.iter().any(|row| row.id == *id));
    let before = results.clone();
    for row in rows.iter().filter(|row| chosen(row)) {
        let found = foretell(row, !quick && others.is_empty(), &others)?;
        if !others.is_empty() {
            println!("{}", beside(row, results.get(&row.id), &found));
        }
        results.insert(row.id.clone(), found);
        if !quick && others.is_empty() {
            // After each row, so that a long run can be ended.
            let text = results_text(&outcomes(&rows, &results));
            fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        }
    }
    let all = outcomes(&rows, &results);
    if !others.is_empty() {
        println!("{}", totals(&all));
        return Ok(());
    }
    if quick {
        return hold(all.iter().filter(|outcome| chosen(&outcome.row)), &before);
    }
    let all = outcomes(&rows, &parse_results(&results_text(&all))?);
    SECTION.write(&format!("{}\n{}", totals(&all), table(&all)))
}

/// Other values of constants: the arguments after `--with`, each `NAME=VALUE`.
fn others(args: &[String]) -> Result<Vec<(String, u64)>, String> {
    let Some(at) = args.iter().position(|arg| arg == "--with") else { return Ok(Vec::new()) };
    let other = |word: &String| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_string(), value.parse().ok()?))
    };
    let words = args[at + 1..].iter().take_while(|arg| arg.contains('='));
    let others: Option<Vec<_>> = words.map(other).collect();
    others
        .filter(|others| !others.is_empty())
        .ok_or_else(|| "--with takes NAME=VALUE, e.g. idle.exit_permille=300".into())
}

/// A row's old prediction beside the new one.
fn beside(row: &Row, before: Option<&Found>, now: &Found) -> String {
    let said = |found: &Found| {
        let outcome = Outcome { row: row.clone(), result: found.clone() };
        format!("{} {}", outcome.sign().word(), outcome.simulated())
    };
    let before = before.map_or("-".to_string(), said);
    format!("{}\t{}\t{}\tbefore: {before}\tnow: {}", row.id, row.class, row.said, said(now))
}

/// Rows that have a result, in the order of the file.
fn outcomes(rows: &[Row], results: &Results) -> Vec<Outcome> {
    let of =
        |row: &Row| results.get(&row.id).map(|result| Outcome { row: row.clone(), result: result.clone() });
    rows.iter().filter_map(of).collect()
}

/// Runs one row with all its seeds; with `doubt`, a certain change also with other idle states and clocks.
fn foretell(row: &Row, doubt: bool, others: &[(String, u64)]) -> Result<Found, String> {
    let began = Instant::now();
    let mut sides = row.sides(&source::root().join("predictions/scenarios"))?;
    for side in &mut sides {
        for (name, value) in others {
            side.scenario.set_constant(name, *value).map_err(|e| e.to_string())?;
        }
    }
    let runs = sides[0].scenario.runs;
    let foretold = runs_of(row, &sides, runs)?;
    let mut hangs_on = None;
    if doubt && matches!(row.published, Published::Change(_)) && foretold.is_sure() {
        let machines: Vec<Machine> = sides.iter().map(|side| side.scenario.machine.clone()).collect();
        for without in ["idle-states", "frequency"] {
            for (side, machine) in sides.iter_mut().zip(&machines) {
                side.scenario.machine = machine.clone().without(Without::parse(without)?);
            }
            if foretold.is_contradicted(&runs_of(row, &sides, 1)?) {
                hangs_on = Some(without.to_string());
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let outcome = Outcome { row: row.clone(), result: Found { foretold, hangs_on, seconds } };
    eprintln!("{}\t{}\t{seconds:.1} s", row.id, outcome.sign().word());
    Ok(outcome.result)
}

/// The prediction from this many pairs of runs.
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
        if self.result.hangs_on.is_some() {
            Sign::Coin
        } else {
            self.row.published.sign(&self.result.foretold)
        }
    }

    fn within_two(&self) -> bool {
        self.row.published.within_two(&self.result.foretold)
    }

    fn counts(&self) -> bool {
        self.row.chosen.is_empty()
    }

    /// The simulated figures, in words.
    fn simulated(&self) -> String {
        let Foretold { before, after, change, interval } = self.result.foretold;
        let figures = format!("{} -> {}", short(before), short(after));
        match (self.row.published, interval) {
            (Published::State(_), _) => short(after),
            (_, Some([low, high])) if change.is_finite() => {
                let star = if self.result.foretold.is_sure() { "*" } else { "" };
                format!("{figures}, {}{star} [{:+.1}, {:+.1}]", percent(change), 100.0 * low, 100.0 * high)
            }
            _ => format!("{figures}, {}", percent(change)),
        }
    }
}

fn percent(change: f64) -> String {
    if change.is_finite() { format!("{:+.1} %", 100.0 * change) } else { "from nothing".to_string() }
}

/// Four significant digits.
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
        let word = outcome.sign().word();
        let sign = outcome.result.hangs_on.as_ref().map_or(word.to_string(), |what| format!("coin: {what}"));
        let (sign, within) = (sign, if outcome.within_two() { "yes" } else { "no" });
        _ = writeln!(
            text,
            "| {id}{mark} | {class} | {machine}: {workload} | {change} | {named} | {said}{null} | {} | {sign} | {within} |",
            outcome.simulated()
        );
    }
    text
}

/// A line for each class, over the rows that count.
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

/// The results in the form of the file.
fn results_text(outcomes: &[Outcome]) -> String {
    let mut text = format!("# Written by `cargo xtask predictions`.\n{}\n", COLUMNS.join("\t"));
    for outcome in outcomes {
        let Found { foretold: Foretold { before, after, change, interval }, hangs_on, seconds } =
            &outcome.result;
        let [low, high] =
            interval.map_or(["-".to_string(), "-".to_string()], |i| i.map(|x| format!("{x:.4}")));
        let yes = |is| if is { "yes" } else { "no" };
        let cells = [
            outcome.row.id.clone(),
            outcome.row.class.clone(),
            yes(outcome.counts()).to_string(),
            short(*before),
            short(*after),
            format!("{change:.4}"),
            low,
            high,
            hangs_on.clone().unwrap_or("-".to_string()),
            outcome.sign().word().to_string(),
            yes(outcome.within_two()).to_string(),
            format!("{:.0}", seconds.ceil()),
        ];
        _ = writeln!(text, "{}", cells.join("\t"));
    }
    text
}

/// Columns of the results.
const COLUMNS: [&str; 12] = [
    "id", "class", "counts", "before", "after", "change", "low", "high", "hangs_on", "sign", "within2x",
    "seconds",
];

fn parse_results(text: &str) -> Result<Results, String> {
    let mut results = Results::new();
    for (at, line) in
        text.lines().enumerate().filter(|(_, line)| !line.starts_with(['#']) && !line.starts_with("id\t"))
    {
        let cells: Vec<&str> = line.split('\t').collect();
        let number = |column: usize| cells.get(column).and_then(|cell| cell.parse::<f64>().ok());
        let read = || {
            let interval = number(6).zip(number(7)).map(|(low, high)| [low, high]);
            let foretold = Foretold { before: number(3)?, after: number(4)?, change: number(5)?, interval };
            let hangs_on = Some(*cells.get(8)?).filter(|what| *what != "-").map(str::to_string);
            Some((cells[0].to_string(), Found { foretold, hangs_on, seconds: number(11)? }))
        };
        let (id, result) = read().ok_or_else(|| format!("{RESULTS}:{}: no result", at + 1))?;
        results.insert(id, result);
    }
    Ok(results)
}

/// Whether as many signs are right as in the stored results of the same rows.
fn hold<'a>(outcomes: impl Iterator<Item = &'a Outcome>, results: &Results) -> Result<(), String> {
    let was_right = |outcome: &Outcome| {
        let known = results.get(&outcome.row.id).cloned();
        known.is_some_and(|result| Outcome { row: outcome.row.clone(), result }.sign() == Sign::Right)
    };
    let (mut rows, mut before, mut now, mut lost) = (0, 0, 0, Vec::new());
    for outcome in outcomes {
        let (was, is) = (was_right(outcome), outcome.sign() == Sign::Right);
        rows += 1;
        before += u32::from(was);
        now += u32::from(is);
        if was && !is {
            let Row { id, said, .. } = &outcome.row;
            lost.push(format!("{id}: published {said}, simulated {}", outcome.simulated()));
        }
    }
    println!("predictions: of {rows} quick rows {now} have the published sign, and {before} had it");
    if now < before {
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
    fn results_read_back_and_a_lost_sign_is_reported() {
        let rows = row::parse(ROWS, &read(&source::root().join(ROWS)).unwrap()).unwrap();
        let change = |change: f64| Found {
            foretold: Foretold {
                before: 2.0,
                after: 3.0,
                change,
                interval: Some([change - 0.1, change + 0.1]),
            },
            hangs_on: None,
            seconds: 2.0,
        };
        let results: Results = [(rows[0].id.clone(), change(0.5))].into();
        let all = outcomes(&rows, &results);
        assert_eq!(parse_results(&results_text(&all)), Ok(results.clone()));
        assert!(parse_results("A\tcost\tyes\n").unwrap_err().contains(":1: no result"));
        assert_eq!(hold(all.iter(), &results), Ok(()));
        let other: Results = [(rows[0].id.clone(), change(-0.5))].into();
        assert!(hold(outcomes(&rows, &other).iter(), &results).unwrap_err().contains(&rows[0].id));
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!([0.0, 0.012345, 12.3456, 123456.7].map(short), ["0", "0.01235", "12.35", "123457"]);
    }
}
