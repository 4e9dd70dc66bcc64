//! `schedlab bench`: the benchmarks of mails to the scheduler list, in one table.

use std::path::Path;
use std::sync::atomic::Ordering;

use schedlab::bench::{Bench, SET};
use schedlab::figures::{self, Asked};
use schedlab::pages::{self, Benched};
use schedlab::report::render::{Case, schedtests};
use schedlab::report::{Comparison, MetricComparison, Options, Table as Samples, render};
use schedlab::{Experiment, NoFiles, Scenario};
use serde_json::{Value, json};

use crate::args;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::progress::Progress;
use crate::width::width;
use crate::{machine, scenario};

/// Runs the set, or the named part of it, and prints one table.
pub fn run(args: &args::Bench) -> Result<Status, Error> {
    if args.list {
        output::print(|out| {
            for bench in SET {
                writeln!(out, "{:<26}{}", bench.name, bench.about)?;
            }
            Ok(())
        })?;
        return Ok(Status::Done);
    }
    let chosen = chosen(&args.only)?;
    let machine_name = args.machine.as_deref().unwrap_or("host");
    output::refuse_input(args.html.as_deref(), &[Path::new(machine_name)])?;
    let machine = machine::machine(machine_name)?;
    for kernel in &args.kernel {
        scenario::named_kernel(kernel)?;
    }
    if args.kernel.len() < 2 {
        return Err(Error::new("bench compares kernels: give --kernel A,B"));
    }
    let runs = super::compare::checked(args.runs)?;
    let stop = output::stop_on_interrupt();
    let mut compared: Vec<(&Bench, Comparison, Samples)> = Vec::new();
    let mut kernels = Vec::new();
    for bench in chosen {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        // For reading, any machine with as many CPUs is good enough; the real one is set afterwards.
        let nr_cpus = machine.topology.nr_cpus();
        let text = bench.scenario(&nr_cpus.to_string(), nr_cpus, &args.kernel, runs, args.seed);
        let mut scenario = Scenario::parse(bench.name, &text, &NoFiles)?;
        scenario.set_machine(machine.clone())?;
        let experiment = Experiment::of(&scenario);
        if let Some(alike) = experiment.alike().into_iter().next() {
            return Err(Error::new(format!("{alike}, so there is nothing to compare")));
        }
        let mut results = experiment.nothing();
        let progress = Progress::of_runs(bench.name, &experiment.clock);
        let goes_on = || !stop.load(Ordering::Relaxed);
        let is_figure = bench.measure.contains("latency-");
        experiment.extend(&mut results, runs, args.threads, is_figure, goes_on, |done, total| {
            progress.at(done, total)
        })?;
        drop(progress);
        let table = match is_figure {
            true => figures::table(&experiment, &results, &Asked::parse(bench.measure)?).0,
            false => results.table_of_each(&experiment),
        };
        kernels = table.kernels().to_vec();
        let table = table.in_fitting_units();
        compared.push((bench, Comparison::new(&table, Options::default()), table));
    }
    if compared.is_empty() {
        return Ok(Status::Interrupted);
    }
    let title =
        format!("{}: {} against {}, {runs} runs each", machine.name(), kernels[1..].join(", "), kernels[0]);
    if let Some(path) = &args.html {
        let benches: Vec<Benched> = compared
            .iter()
            .filter_map(|(bench, comparison, samples)| benched(bench, comparison, samples))
            .collect();
        let page = pages::bench(&title, &benches);
        output::write(Some(path), |out| page.write(out))?;
    }
    match args.format {
        Format::Json => {
            let cases: Vec<Value> = compared
                .iter()
                .map(|(bench, comparison, _)| json!({"bench": bench.name, "comparison": render::json(comparison)}))
                .collect();
            output::print_json(&cases)?;
        }
        Format::Text => {
            let cases: Vec<Case> =
                compared.iter().filter_map(|(bench, comparison, _)| case(bench, comparison)).collect();
            let text = schedtests(&cases, &kernels, width());
            output::print(|out| {
                writeln!(out, "{title}\n")?;
                out.write_all(text.as_bytes())
            })?;
        }
    }
    Ok(if stop.load(Ordering::Relaxed) { Status::Interrupted } else { Status::Done })
}

/// A line of the table.
fn case<'a>(bench: &'a Bench, comparison: &'a Comparison) -> Option<Case<'a>> {
    Some(Case { name: bench.name, load: bench.load, metric: judged_by(bench, comparison)? })
}

fn benched<'a>(bench: &'a Bench, comparison: &'a Comparison, samples: &'a Samples) -> Option<Benched<'a>> {
    let metric = judged_by(bench, comparison)?;
    Some(Benched { name: bench.name, about: bench.about, load: bench.load, metric, comparison, samples })
}

/// The measure by which a benchmark is judged, of all that its model measures.
fn judged_by<'a>(bench: &Bench, comparison: &'a Comparison) -> Option<&'a MetricComparison> {
    let name = bench.measure.split(':').next().unwrap_or(bench.measure);
    let found = comparison.metrics.iter().find(|metric| metric.name == name);
    found.or(comparison.metrics.first())
}

/// The named benchmarks in the order of the set, each once.
fn chosen(only: &[String]) -> Result<Vec<&'static Bench>, Error> {
    if let Some(name) = only.iter().find(|name| !SET.iter().any(|bench| fits(bench, name))) {
        let names: Vec<&str> = SET.iter().map(|bench| bench.name).collect();
        return Err(Error::new(format!("there is no benchmark \"{name}\"; there are {}", names.join(", "))));
    }
    Ok(SET.iter().filter(|bench| only.is_empty() || only.iter().any(|name| fits(bench, name))).collect())
}

/// Whether a benchmark has this name, begins with the prefix before a `*`, or is a form of it, as
/// `hackbench-thread-pipe` is of `hackbench`.
fn fits(bench: &Bench, name: &str) -> bool {
    match name.strip_suffix('*') {
        Some(lead) => bench.name.starts_with(lead),
        None => bench.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-')),
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn a_name_chooses_all_forms_and_each_once() {
        let names = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
            chosen(&only).map(|chosen| chosen.iter().map(|bench| bench.name).collect::<Vec<_>>())
        };
        assert_eq!(
            names(&["netperf", "hackbench-process-pipe", "netperf-tcp-*"]).unwrap(),
            [
                "hackbench-process-pipe",
                "netperf-tcp-rr",
                "netperf-udp-rr",
                "netperf-tcp-stream",
                "netperf-udp-stream"
            ]
        );
        assert_eq!(names(&["tbench"]).unwrap(), ["tbench"]);
        assert!(names(&["hack"]).is_err(), "half a word is no name");
        assert!(names(&[]).unwrap().len() > 20);
    }
}
