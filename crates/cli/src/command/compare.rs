//! `schedlab compare` and `schedlab run`: measures side by side.

mod account;
mod checks;
mod ends;
mod page;
mod parts;
mod per_cpu;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schedlab::figures::{self, Asked};
use schedlab::report::{Comparison, Options, Stat, Table, Verdict, render};
use schedlab::{Column, Experiment, Judgement, Results, What};
use serde_json::{Value, json};

use crate::args::{Compare, EndsOf, TableFormat};
use crate::compared::{self, Compared};
use crate::error::{Error, Status};
use crate::output;
use crate::progress::Progress;
use crate::width::{width, wrapped};

pub use page::pictures;
pub use parts::{Parted, json as parts_json, parts, text as parts_text};

/// Runs a scenario under all its kernels and prints their tables side by side.
pub fn compare(args: &Compare) -> Result<Status, Error> {
    if is_list(args) {
        return list();
    }
    refuse_input(args)?;
    let compared = compared::load(args, true)?;
    let experiment = &compared.experiment;
    if experiment.columns.len() < 2 {
        let file = &experiment.base().file;
        if compared.recorded.is_some() {
            return Err(Error::new(format!("{file} is one recording; compare needs two: name another")));
        }
        let who = if args.kernel.is_empty() { file } else { "--kernel" };
        return Err(Error::new(format!(
            "{who} names one kernel; compare needs two: give --kernel v6.12,v6.12+NO_SIS_UTIL, vary a parameter, as in \
             --vary workload.groups=1,4, or name another scenario"
        )));
    }
    if let Some(alike) = experiment.alike().into_iter().next() {
        return Err(Error::new(format!("{alike}, so there is nothing to compare; take one of them away")));
    }
    if args.attribute {
        return account::account(args, experiment);
    }
    if args.ends == Some(EndsOf::All) {
        return ends::ends(args, experiment);
    }
    run_and_print(args, compared)
}

/// Runs a scenario under one kernel: the one given, or its last.
pub fn run(args: &Compare) -> Result<Status, Error> {
    if is_list(args) {
        return list();
    }
    if args.kernel.len() > 1 {
        return Err(Error::new("run takes one kernel; `schedlab compare` takes several"));
    }
    if !args.vary.is_empty()
        || !args.more.is_empty()
        || args.pairwise
        || args.attribute
        || args.ends.is_some()
        || args.until_sure.is_some()
    {
        return Err(Error::new(
            "run has one column: --vary, --pairwise, --attribute, --ends, --until-sure and more scenarios are for `schedlab compare`",
        ));
    }
    refuse_input(args)?;
    let mut compared = compared::load(args, false)?;
    let columns = &mut compared.experiment.columns;
    columns.drain(..columns.len() - 1);
    let scenario = &mut columns[0].scenario;
    // Changes are relative to a baseline that is not run; placements and values can still be judged.
    scenario.expect.retain(|e| {
        matches!(e.what, What::Forks(_) | What::Value { .. })
            && e.kernel.as_ref().is_none_or(|k| k == &scenario.kernels[0].name)
    });
    run_and_print(args, compared)
}

/// Checks that the output is not one of the inputs.
fn refuse_input(args: &Compare) -> Result<(), Error> {
    let read: Vec<&Path> = std::iter::once(&args.what.scenario).chain(&args.more).map(Path::new).collect();
    for output in [&args.output, &args.html] {
        output::refuse_input(output.as_deref(), &read)?;
    }
    Ok(())
}

fn is_list(args: &Compare) -> bool {
    args.metric.iter().any(|name| name == "list")
}

/// Lists the available figures.
fn list() -> Result<Status, Error> {
    output::print(|out| {
        for figure in figures::FIGURES {
            let unit = match figure.unit {
                "ns" => "time",
                unit => unit,
            };
            writeln!(out, "{:<18}{:<6}{}", figure.name, unit, figure.about)?;
        }
        writeln!(out, "\nA scenario's own measures are printed first. NAME:KIND selects one kind of task.")
    })?;
    Ok(Status::Done)
}

/// The number of runs, if it is allowed.
pub fn checked(runs: u32) -> Result<u32, Error> {
    schedlab::check_runs(runs).map_err(|e| Error::new(format!("--runs is {e}")))?;
    Ok(runs)
}

/// Runs until there are enough runs of each, and prints the finished runs if interrupted.
struct Runner<'a> {
    args: &'a Compare,
    stop: Arc<AtomicBool>,
}

impl<'a> Runner<'a> {
    fn new(args: &'a Compare) -> Runner<'a> {
        Runner { args, stop: output::stop_on_interrupt() }
    }

    fn extend(&self, experiment: &Experiment, results: &mut Results, runs: u32) -> Result<(), Error> {
        let progress = Progress::of_runs(experiment.workload(), &experiment.clock);
        let goes_on = || !self.stop.load(Ordering::Relaxed);
        experiment.extend(results, runs, self.args.threads, true, goes_on, |done, total| {
            progress.at(done, total)
        })?;
        Ok(())
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The tables of an experiment.
struct Tables {
    /// The workload's own measures.
    measures: Table,
    /// The figures of every run.
    figures: Table,
    notes: Vec<String>,
}

impl Tables {
    /// The table that a question about the difference concerns: the measures, or the requested figures.
    fn in_question(&self, args: &Compare) -> &Table {
        match args.metric.is_empty() && !self.measures.metrics().is_empty() {
            true => &self.measures,
            false => &self.figures,
        }
    }
}

/// Checks that there are two columns for a question about their difference, and that the format supports an
/// answer.
fn two_columns<'a>(
    option: &str,
    args: &Compare,
    experiment: &'a Experiment,
) -> Result<[&'a Column; 2], Error> {
    let [base, other] = &experiment.columns[..] else {
        return Err(Error::new(format!(
            "{option} is about two columns, and there are {}; name two kernels",
            experiment.columns.len()
        )));
    };
    if matches!(args.format, TableFormat::Csv | TableFormat::Md) {
        return Err(Error::new(format!("{option} is printed as text or json")));
    }
    Ok([base, other])
}

/// A figure and its row.
fn name_of(metric: &str, row: &str) -> String {
    if row.is_empty() { metric.to_owned() } else { format!("{metric} {row}") }
}

/// Writes the answer to a question about the difference.
fn answer(args: &Compare, values: &[Value], text: String) -> Result<Status, Error> {
    let output = args.output.as_deref();
    match args.format {
        TableFormat::Json => output::write(output, |out| {
            serde_json::to_writer_pretty(&mut *out, values)?;
            writeln!(out)
        })?,
        _ => output::write_report(output, |out| out.write_all(text.as_bytes()))?,
    }
    Ok(Status::Done)
}

fn tables(args: &Compare, experiment: &Experiment, results: &Results) -> Result<Tables, Error> {
    let mut notes = results.unmeasured(experiment);
    let mut asked: Vec<Asked> = Vec::new();
    let measures = results.table(experiment);
    for name in &args.metric {
        // A measure of the workload may be requested by its name; all of them are printed.
        if !measures.metrics().iter().any(|metric| &metric.name == name) {
            asked.extend(Asked::parse(name)?);
        }
    }
    if args.metric.is_empty() {
        asked = figures::usual(experiment, results);
    }
    let (figures, without) = figures::table(experiment, results, &asked);
    if !args.metric.is_empty() {
        notes.extend(without);
    }
    Ok(Tables { measures, figures, notes })
}

fn options(args: &Compare) -> Result<Options, Error> {
    Ok(Options { rule: args.rule.parse().map_err(|e| Error::new(format!("{e}")))?, ..Options::default() })
}

/// Where a column differs from the first in something that has no price, times and rates that do not differ are not
/// known.
fn not_priced(experiment: &Experiment, comparison: &mut Comparison, takes_time: impl Fn(&str) -> bool) {
    for (column, hides) in schedlab::hides_a_difference(experiment).into_iter().enumerate() {
        let metrics = comparison.metrics.iter_mut().filter(|metric| hides && takes_time(&metric.name));
        for cell in metrics.flat_map(|metric| &mut metric.rows).filter_map(|row| row.cells.get_mut(column)) {
            if cell.verdict == Verdict::NoDifference {
                cell.verdict = Verdict::NotPriced;
            }
        }
    }
}

/// Runs needed for the measures, or the requested figures; `None` if there are enough.
fn needed(tables: &Tables, args: &Compare, options: Options) -> Option<u32> {
    let is_measured = tables.measures.metrics().iter().any(|metric| !metric.rows().is_empty());
    let looked_at = match is_measured && args.metric.is_empty() {
        true => vec![&tables.measures],
        false => vec![&tables.measures, &tables.figures],
    };
    let mut most = None;
    for table in looked_at {
        let comparison = Comparison::new(table, options);
        let cells = comparison.metrics.iter().flat_map(|m| &m.rows).flat_map(|row| &row.cells[1..]);
        for cell in cells.filter(|cell| cell.paired.n > 0) {
            if cell.verdict == Verdict::TooFewRuns {
                let pairs = cell.pairs_needed.unwrap_or(2 * cell.paired.n).max(cell.paired.n + 1);
                most = most.max(Some(pairs as u32));
            }
        }
    }
    most
}

fn run_and_print(args: &Compare, compared: Compared) -> Result<Status, Error> {
    let Compared { experiment, recorded } = compared;
    let options = options(args)?;
    let runner = Runner::new(args);
    // Wrong requests are reported before anything runs.
    args.metric.iter().try_for_each(|name| {
        let measures =
            experiment.columns.iter().flat_map(|c| &c.scenario.rows).flat_map(|r| &r.workload.measures);
        let is_measure = measures.into_iter().any(|measure| &measure.name == name);
        if is_measure { Ok(()) } else { Asked::parse(name).map(drop) }
    })?;
    let is_recorded = recorded.is_some();
    if is_recorded && args.html.is_some() {
        return Err(Error::new(
            "--html draws a run; `schedlab diff A B --html` makes a page of two recordings",
        ));
    }
    let mut results = recorded.unwrap_or_else(|| experiment.nothing());
    let mut runs = experiment.base().runs;
    if !is_recorded {
        runner.extend(&experiment, &mut results, runs)?;
    }
    let mut found = tables(args, &experiment, &results)?;
    if let Some(most) = args.until_sure {
        let most = checked(most)?;
        while let Some(needed) = needed(&found, args, options).filter(|_| runs < most && !runner.is_stopped())
        {
            // An estimate from few runs is poor, so at most four times as many are made at once.
            runs = needed.clamp(runs + 1, 4 * runs).min(most);
            runner.extend(&experiment, &mut results, runs)?;
            found = tables(args, &experiment, &results)?;
        }
        if needed(&found, args, options).is_some() {
            found.notes.push(format!("after {runs} runs of each some figures still have too few"));
        }
    }
    let done: usize = results.runs.iter().flatten().map(Vec::len).sum();
    if done == 0 {
        return Ok(Status::Interrupted);
    }
    if runner.is_stopped() {
        found.notes.push(format!("interrupted: {done} runs are done"));
    }
    if !is_recorded {
        found.notes.extend(schedlab::slow_clocks::note(&experiment, &results));
    }
    let machine = &experiment.base().machine;
    if !is_recorded
        && machine.idle.states().is_empty()
        && machine.name().starts_with(|c: char| c.is_ascii_digit())
    {
        let colon = if machine.name().contains(':') { ',' } else { ':' };
        found.notes.push(format!(
            "{0} is of no class of hardware, so its idle CPUs have no idle states; {0}{colon}class=zen3 gives it those of one \
             (machines/class has them all)",
            machine.name()
        ));
    }
    if !is_recorded {
        let scenarios = experiment.columns.iter().map(|column| &column.scenario);
        let rows =
            scenarios.flat_map(|scenario| scenario.rows.iter().map(move |row| (&scenario.machine, row)));
        found
            .notes
            .extend(rows.filter_map(|(machine, row)| schedlab::deadline_note(machine, &row.workload)).next());
    }
    for note in &found.notes {
        say!("note: {note}");
    }
    let mut verdicts = checks::Verdicts::default();
    if !is_recorded && !args.no_ends && experiment.columns.len() > 1 && !runner.is_stopped() {
        verdicts = checks::checks(args, &runner, (&experiment, &results), &found, options)?;
    }
    let printed = Printed::new(args, &experiment, &results, &found, (options, verdicts));
    let is_explained = matches!(args.format, TableFormat::Text | TableFormat::Json);
    let is_explained = is_explained && !is_recorded && !runner.is_stopped();
    let parts = if is_explained { parts(&experiment)? } else { Vec::new() };
    let text = match args.format {
        TableFormat::Json => {
            let mut value = printed.json(args);
            if !parts.is_empty() {
                value["parts"] = parts_json(&parts);
            }
            serde_json::to_string_pretty(&value).expect("JSON of plain data") + "\n"
        }
        TableFormat::Csv => printed.csv(),
        TableFormat::Md => {
            let tables =
                [&printed.comparison, &printed.figures].into_iter().filter(|c| !c.metrics.is_empty());
            tables.map(render::markdown).collect::<Vec<_>>().join("\n")
        }
        TableFormat::Text => printed.text(args) + &parts_text(&parts),
    };
    let output = args.output.as_deref();
    match args.format {
        TableFormat::Text => output::write_report(output, |out| out.write_all(text.as_bytes()))?,
        _ => output::write(output, |out| out.write_all(text.as_bytes()))?,
    }
    if let Some(path) = &args.html {
        let page = page::page(&experiment, &results, printed.shown(), &printed.judgements)?;
        output::write(Some(path), |out| page.write(out))?;
    }
    Ok(match () {
        () if runner.is_stopped() => Status::Interrupted,
        () if printed.judgements.iter().all(|j| j.met) => Status::Done,
        () => Status::Missed,
    })
}

/// Everything that is printed.
struct Printed<'a> {
    experiment: &'a Experiment,
    results: &'a Results,
    comparison: Comparison,
    figures: Comparison,
    /// Comparisons of columns other than with the first: measures and figures of each pair.
    pairs: Vec<[Comparison; 2]>,
    judgements: Vec<Judgement>,
    verdicts: checks::Verdicts,
}

impl<'a> Printed<'a> {
    fn new(
        args: &Compare,
        experiment: &'a Experiment,
        results: &'a Results,
        tables: &Tables,
        (options, verdicts): (Options, checks::Verdicts),
    ) -> Printed<'a> {
        let compared = |table: &Table| match args.format {
            // Output for scripts has the same unit in every run.
            TableFormat::Json | TableFormat::Csv => Comparison::new(table, options),
            TableFormat::Text | TableFormat::Md => Comparison::new(&table.in_fitting_units(), options),
        };
        let mut comparison = compared(&tables.measures);
        verdicts.judge(&mut comparison);
        let columns = if args.pairwise { experiment.columns.len() } else { 0 };
        let pairs = (1..columns).flat_map(|base| (base + 1..columns).map(move |other| [base, other]));
        let of_pair =
            |pair: [usize; 2]| [&tables.measures, &tables.figures].map(|t| compared(&t.columns(&pair)));
        let base = experiment
            .base()
            .under(experiment.columns.iter().map(|column| column.kernel().clone()).collect());
        let mut figures = Comparison::new(&tables.figures, options);
        verdicts.judge(&mut figures);
        not_priced(experiment, &mut comparison, |_| true);
        not_priced(experiment, &mut figures, |name| name == "elapsed");
        let judgements = base.judge(results, &comparison);
        let pairs = pairs.map(of_pair).collect();
        Printed { experiment, results, comparison, figures, pairs, judgements, verdicts }
    }

    fn text(&self, args: &Compare) -> String {
        let width = width();
        let mut text = match self.comparison.metrics.is_empty() {
            true => format!("{}\n\n", self.comparison.title),
            false => render::text_within(&self.comparison, &Stat::MAIL, width) + "\n",
        };
        let because = schedlab::because(self.experiment, self.results);
        if !self.comparison.metrics.is_empty() {
            // Keeps them below the tables, after the figures of every run.
            text.pop();
            because.iter().for_each(|line| text.push_str(&wrapped("why    ", line, width)));
            text.push('\n');
        }
        if !self.figures.metrics.is_empty() {
            text.push_str(&render::changes(&self.figures, width));
        }
        for [measures, figures] in &self.pairs {
            for comparison in [measures, figures].into_iter().filter(|c| !c.metrics.is_empty()) {
                text.push('\n');
                text.push_str(&render::changes(comparison, width));
            }
        }
        if text.contains("too few (~") {
            text.push_str("(~N): about N runs would do; --until-sure makes them\n");
        }
        if self.comparison.metrics.is_empty() {
            because.iter().for_each(|line| text.push_str(&wrapped("why    ", line, width)));
        }
        text.push_str(&self.verdicts.text(self.experiment.columns.len(), width));
        for line in schedlab::beside(self.experiment, self.results) {
            text.push_str(&wrapped("ops    ", &line, width));
        }
        for line in schedlab::unpriced(self.experiment) {
            text.push_str(&wrapped("no price for ", &line, width));
        }
        if args.stat {
            for stat in self.results.perf_stats(self.experiment) {
                text.push('\n');
                text.push_str(&render::perf_stat(&stat));
            }
        }
        if args.per_cpu {
            for accounts in self.results.accounts(self.experiment) {
                text.push('\n');
                text.push_str(&per_cpu::text(&accounts));
            }
        }
        if !self.judgements.is_empty() {
            text.push('\n');
        }
        for judgement in &self.judgements {
            let word = if judgement.met { "holds " } else { "missed" };
            text.push_str(&format!("{word} {}\n", judgement.sentence));
        }
        text
    }

    /// The comparison that a page shows: the measures, or the figures if a workload measures nothing.
    fn shown(&self) -> &Comparison {
        if self.comparison.metrics.is_empty() { &self.figures } else { &self.comparison }
    }

    fn csv(&self) -> String {
        let mut text = render::csv(&self.comparison);
        text.extend(render::csv(&self.figures).lines().skip(1).map(|line| format!("{line}\n")));
        text
    }

    fn json(&self, args: &Compare) -> Value {
        let forks = |run: &schedlab::Run| -> Vec<u16> {
            run.folds.placements.tasks.iter().map(|task| task.to.0).collect()
        };
        let mut runs: Vec<Value> = Vec::new();
        for (key, by_column) in self.experiment.keys.iter().zip(&self.results.runs) {
            for (name, of) in self.experiment.names().into_iter().zip(by_column) {
                runs.extend(of.iter().map(|run| {
                    json!({
                        "row": key,
                        "kernel": name,
                        "seed": run.seed,
                        "elapsed_ns": run.elapsed.0,
                        "new_task_cpus": forks(run),
                    })
                }));
            }
        }
        let base = self.experiment.base();
        let pairs: Vec<Value> = self
            .pairs
            .iter()
            .map(|[measures, figures]| json!({"comparison": render::json(measures), "figures": render::json(figures)}))
            .collect();
        json!({
            "scenario": crate::files::label(Path::new(&base.file)),
            "story": base.story,
            "machine": base.machine.name(),
            "comparison": render::json(&self.comparison),
            "figures": render::json(&self.figures),
            "pairwise": pairs,
            "checks": self.verdicts.json(),
            "unpriced": schedlab::unpriced(self.experiment),
            "operations": schedlab::beside(self.experiment, self.results),
            "why": schedlab::because(self.experiment, self.results),
            "perf_stat": self.results.perf_stats(self.experiment),
            "accounts": if args.per_cpu { self.results.accounts(self.experiment) } else { Vec::new() },
            "runs": runs,
            "expectations": self.judgements,
        })
    }
}
