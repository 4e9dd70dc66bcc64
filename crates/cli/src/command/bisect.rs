//! `schedlab bisect`: which rules between two kernels change a figure.

use schedlab::sched::Kernel;
use schedlab::{Limits, Scenario};
use schedlab_sweep::bisect::{
    Answer, Options, Part, Simulated, between, bisect, first_parting, kernel_with, parts, text,
};
use serde_json::{Value, json};

use crate::args::What;
use crate::args::bisect::Bisect;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::progress::Progress;
use crate::scenario;

/// Maximum number of rules whose first decisions are printed.
const PARTINGS: usize = 3;

/// Finds and prints them.
pub fn run(args: &Bisect) -> Result<Status, Error> {
    let (kernels, file) = kernels(args)?;
    let what = What {
        scenario: file,
        machine: args.machine.clone(),
        set: Vec::new(),
        limit: args.limit,
        seed: args.seed,
        without: None,
    };
    let scenario = scenario::load(&what)?;
    let row = scenario::row(&scenario, args.row.as_deref())?;
    let metric = match (&args.metric, row.workload.measures.first()) {
        (Some(metric), _) => metric.clone(),
        (None, Some(measure)) => measure.name.clone(),
        (None, None) => return Err(Error::new(format!("{}: name a figure with --metric", scenario.file))),
    };
    kernels.iter().for_each(scenario::tell_stand_in);
    if args.seeds < 2 || args.seeds_max < args.seeds {
        return Err(Error::new("--seeds must be at least 2, and --seeds-max at least as large"));
    }
    let mut told: Vec<Value> = Vec::new();
    for pair in kernels.windows(2) {
        let (answer, parts, partings) = between_two(args, &scenario, row, &metric, [&pair[0], &pair[1]])?;
        match args.format {
            Format::Text => {
                let table = text(&answer, &parts, &metric, &pair[0].name, &pair[1].name);
                output::print(|out| {
                    write!(out, "{table}")?;
                    partings.iter().try_for_each(|line| writeln!(out, "{line}"))?;
                    if kernels.len() > 2 { writeln!(out) } else { Ok(()) }
                })?;
            }
            Format::Json => told.push(json!({
                "good": pair[0].name,
                "bad": pair[1].name,
                "metric": metric,
                "parts": parts,
                "answer": answer,
                "partings": partings,
            })),
        }
    }
    if args.format == Format::Json {
        output::print_json(&told)?;
    }
    Ok(Status::Done)
}

/// The kernels, oldest first, and the file.
fn kernels(args: &Bisect) -> Result<(Vec<Kernel>, String), Error> {
    match (&args.what[..], &args.between) {
        ([file], Some(range)) => Ok((between(range)?, file.clone())),
        ([good, bad, file], None) => {
            Ok((vec![scenario::named_kernel(good)?, scenario::named_kernel(bad)?], file.clone()))
        }
        (_, Some(_)) => {
            Err(Error::new("with --between name the file alone: bisect --between v6.1..v6.12 FILE"))
        }
        _ => Err(Error::new("name the good kernel, the bad one and the file: bisect v6.1 v6.12 FILE")),
    }
}

fn between_two(
    args: &Bisect,
    scenario: &Scenario,
    row: &schedlab::Row,
    metric: &str,
    [good, bad]: [&Kernel; 2],
) -> Result<(Answer, Vec<Part>, Vec<String>), Error> {
    let parts = parts(good, bad)?;
    let progress = Progress::new(&format!("{} to {}", good.name, bad.name));
    let limits = scenario.limits();
    let made = |runs| progress.at(runs, runs);
    let mut probe = Simulated::new(&scenario.machine, row, limits, good, &parts, metric, args.threads, &made);
    let options = Options { seeds: args.seeds, seeds_max: args.seeds_max, first_seed: limits.seed };
    let answer = bisect(&mut probe, parts.len(), options)?;
    let mut partings = Vec::new();
    for culprit in answer.culprits.iter().take(PARTINGS) {
        // A part that needs other parts is compared with the bad kernel without it, not with the good one.
        let (before, after) = if culprit.with.is_empty() {
            (good.clone(), kernel_with(good, &parts, &[culprit.part])?)
        } else {
            let mut set = culprit.with.clone();
            let before = kernel_with(good, &parts, &set)?;
            set.push(culprit.part);
            (before, kernel_with(good, &parts, &set)?)
        };
        partings.extend(parting(scenario, row, limits, &parts[culprit.part], [&before, &after])?);
    }
    Ok((answer, parts, partings))
}

fn parting(
    scenario: &Scenario,
    row: &schedlab::Row,
    limits: Limits,
    part: &Part,
    kernels: [&Kernel; 2],
) -> Result<Vec<String>, Error> {
    let Some([before, after]) = first_parting(&scenario.machine, row, limits, kernels)? else {
        return Ok(vec![format!("{}: no traced decision differs with seed {}", part.text, limits.seed)]);
    };
    let line = |word: &str, answer: &schedlab::why::Answer| {
        let time = schedlab::units::Time(answer.time_ns);
        format!("  {word} {time} CPU {:3}  {}", answer.cpu, answer.sentence)
    };
    Ok(vec![
        format!("{}: the first decision that differs, seed {}", part.text, limits.seed),
        line("without", &before),
        line("with   ", &after),
    ])
}
