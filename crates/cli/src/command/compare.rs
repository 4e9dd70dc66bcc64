//! `schedlab compare` and `schedlab run`: a scenario under its kernels.

use std::path::Path;

use schedlab::html::{Page, ROOM};
use schedlab::pages::{self, Picture};
use schedlab::report::{Comparison, Options, Stat, render};
use schedlab::sched::Kernel;
use schedlab::{Judgement, Results, Scenario, What};
use serde_json::{Value, json};

use schedlab::units::Time;

use crate::args::{Compare, TableFormat};
use crate::error::{Error, Status};
use crate::output;
use crate::progress::Progress;
use crate::scenario;

/// Runs a scenario under all its kernels and prints their tables side by side.
pub fn compare(args: &Compare) -> Result<Status, Error> {
    let scenario = load(args)?;
    if scenario.kernels.len() < 2 {
        let who = if args.kernel.is_empty() { &scenario.file } else { "--kernel" };
        return Err(Error::new(format!(
            "{who} names one kernel; compare needs two: give --kernel v6.12,v6.12+NO_SIS_UTIL"
        )));
    }
    run_and_print(args, &scenario)
}

/// Runs a scenario under one kernel: the one given, or its last.
pub fn run(args: &Compare) -> Result<Status, Error> {
    let mut scenario = load(args)?;
    if args.kernel.len() > 1 {
        return Err(Error::new("run takes one kernel; `schedlab compare` takes several"));
    }
    scenario.kernels.drain(..scenario.kernels.len() - 1);
    // Changes are against a baseline that is not run; placements can still be judged.
    scenario.expect.retain(|e| {
        matches!(e.what, What::Forks(_)) && e.kernel.as_ref().is_none_or(|k| k == &scenario.kernels[0].name)
    });
    run_and_print(args, &scenario)
}

fn load(args: &Compare) -> Result<Scenario, Error> {
    for output in [&args.output, &args.html] {
        output::refuse_input(output.as_deref(), &[Path::new(&args.what.scenario)])?;
    }
    let mut scenario = scenario::load(&args.what)?;
    if !args.kernel.is_empty() {
        scenario.kernels = args.kernel.iter().map(|k| scenario::named_kernel(k)).collect::<Result<_, _>>()?;
        // What the file expects was said about other kernels.
        scenario.expect.clear();
    } else {
        scenario.kernels.iter().for_each(scenario::tell_stand_in);
    }
    if let Some(runs) = args.runs {
        scenario.runs = checked(runs)?;
    }
    Ok(scenario)
}

/// So many runs, if there can be.
pub fn checked(runs: u32) -> Result<u32, Error> {
    schedlab::check_runs(runs).map_err(|e| Error::new(format!("--runs is {e}")))?;
    Ok(runs)
}

fn run_and_print(args: &Compare, scenario: &Scenario) -> Result<Status, Error> {
    let progress = Progress::new(&scenario.rows[0].workload.name);
    let results = scenario.run(args.threads, |done, total| progress.at(done, total))?;
    drop(progress);
    for note in results.unmeasured(scenario) {
        eprintln!("schedlab: note: {note}");
    }
    let options =
        Options { rule: args.rule.parse().map_err(|e| Error::new(format!("{e}")))?, ..Options::default() };
    let comparison = Comparison::new(&results.table(scenario), options);
    let judgements = scenario.judge(&results, &comparison);
    let parts = if args.format == TableFormat::Text { parts(scenario)? } else { String::new() };
    let text = match args.format {
        TableFormat::Json => {
            let value = as_json(scenario, &results, &comparison, &judgements);
            serde_json::to_string_pretty(&value).expect("JSON of plain data") + "\n"
        }
        TableFormat::Csv => render::csv(&comparison),
        TableFormat::Md => render::markdown(&comparison),
        TableFormat::Text => as_text(scenario, &results, &comparison, &judgements) + &parts,
    };
    output::write(args.output.as_deref(), |out| out.write_all(text.as_bytes()))?;
    if let Some(path) = &args.html {
        let page = page(scenario, &results, &comparison, &judgements)?;
        output::write(Some(path), |out| page.write(out))?;
    }
    Ok(if judgements.iter().all(|j| j.met) { Status::Done } else { Status::Missed })
}

/// The comparison as a page, with the first run of the row that changes most to look at.
pub fn page(
    scenario: &Scenario,
    results: &Results,
    comparison: &Comparison,
    judgements: &[Judgement],
) -> Result<Page, Error> {
    let row = pages::telling_row(scenario.rows.iter().map(|row| row.key.as_str()), comparison);
    let counts = &results.perf_stats(scenario)[row * scenario.kernels.len()..][..scenario.kernels.len()];
    Ok(pages::compare(pages::Compared {
        story: &scenario.story,
        comparison,
        samples: &results.table(scenario),
        judgements,
        because: schedlab::because(scenario, results),
        row: &scenario.rows[row].key,
        runs: &results.runs[row],
        counts,
        pictures: pictures(scenario, row)?,
    }))
}

/// The first run of a row under the first and the last kernel, to look at side by side.
pub fn pictures(scenario: &Scenario, row: usize) -> Result<Vec<Picture>, Error> {
    let last = scenario.kernels.last().filter(|_| scenario.kernels.len() > 1);
    let kernels: Vec<&Kernel> = scenario.kernels.first().into_iter().chain(last).collect();
    let room = ROOM / kernels.len().max(1);
    let picture = |kernel: &&Kernel| -> Result<Picture, Error> {
        Ok(pages::picture(scenario, kernel, &scenario.rows[row], room)?)
    };
    kernels.iter().map(picture).collect()
}

/// Where kernels part from the first, if any of them is a tree: in the first run of the first row.
fn parts(scenario: &Scenario) -> Result<String, Error> {
    let mut text = String::new();
    let (base, others) = scenario.kernels.split_first().expect("a scenario has a kernel");
    let trees = |kernel: &Kernel| kernel.name.starts_with("tree:");
    for other in others.iter().filter(|other| trees(base) || trees(other)) {
        let found = schedlab::parting::parting(scenario, &scenario.rows[0], [base, other])?;
        let Some(found) = found else {
            text.push_str(&format!("parts  {} never parts from {}\n", other.name, base.name));
            continue;
        };
        let [later, others_later] = found.later;
        text.push_str(&format!(
            "parts  {} from {} after {} equal decisions ({later} and {others_later} follow):\n",
            other.name, base.name, found.same
        ));
        for (kernel, first) in [base, other].into_iter().zip(&found.first) {
            let told = first.as_ref().map_or("the run is over".to_string(), |first| {
                format!("{} CPU {}  {}", Time(first.time_ns), first.cpu, first.sentence)
            });
            text.push_str(&format!("       {}: {told}\n", kernel.name));
        }
    }
    Ok(text)
}

fn as_text(
    scenario: &Scenario,
    results: &Results,
    comparison: &Comparison,
    judgements: &[Judgement],
) -> String {
    let mut text = render::text(comparison, &Stat::MAIL);
    for line in schedlab::because(scenario, results) {
        text.push_str(&format!("why    {line}\n"));
    }
    for stat in results.perf_stats(scenario) {
        text.push('\n');
        text.push_str(&render::perf_stat(&stat));
    }
    if !judgements.is_empty() {
        text.push('\n');
    }
    for judgement in judgements {
        let word = if judgement.met { "holds " } else { "missed" };
        text.push_str(&format!("{word} {}\n", judgement.sentence));
    }
    text
}

fn as_json(
    scenario: &Scenario,
    results: &Results,
    comparison: &Comparison,
    judgements: &[Judgement],
) -> Value {
    let forks = |run: &schedlab::Run| -> Vec<u16> {
        run.folds.placements.tasks.iter().map(|task| task.to.0).collect()
    };
    let runs: Vec<Value> = scenario
        .rows
        .iter()
        .zip(&results.runs)
        .flat_map(|(row, by_kernel)| {
            scenario.kernels.iter().zip(by_kernel).flat_map(move |(kernel, runs)| {
                runs.iter().map(move |run| {
                    json!({
                        "row": row.key,
                        "kernel": kernel.name,
                        "seed": run.seed,
                        "elapsed_ns": run.elapsed.0,
                        "new_task_cpus": forks(run),
                    })
                })
            })
        })
        .collect();
    json!({
        "scenario": scenario.file,
        "story": scenario.story,
        "machine": scenario.machine.name(),
        "comparison": render::json(comparison),
        "why": schedlab::because(scenario, results),
        "perf_stat": results.perf_stats(scenario),
        "runs": runs,
        "expectations": judgements,
    })
}
