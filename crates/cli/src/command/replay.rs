//! `schedlab replay`: runs a recording on another machine or kernel.

use std::path::Path;

use schedlab::learned::Known;
use schedlab::machine::{Machine, Without};
use schedlab::pages;
use schedlab::replay::{Beginning, Fidelity, Listener, Runs, State, table};
use schedlab::report::{Comparison, Options, Stat, render};
use schedlab::{Experiment, Results, Scenario};
use serde_json::json;

use super::compare::{Parted, parts, parts_json, parts_text};
use crate::args::{Replay, TableFormat, TraceFormat};
use crate::error::{Error, Status};
use crate::facts::{Asked, gather};
use crate::progress::Progress;
use crate::recorded::Recorded as Found;
use crate::{machine, output, trace_file};

/// Learns, replays on the recorded machine, then on the requested one.
pub fn run(args: &Replay) -> Result<Status, Error> {
    let found = Found::one(&args.file)?;
    output::refuse_input(args.output.as_deref(), &[&found.trace])?;
    output::refuse_input(args.trace.as_deref(), &[&found.trace])?;
    if args.output.is_some() && args.output == args.trace {
        return Err(Error::new("--output and --trace name the same file; name another for one of them"));
    }
    let asked = Asked {
        machine: args.recorded_on.as_deref(),
        kernel: args.as_recorded.as_deref(),
        facts: args.facts.as_deref(),
        affinity: &args.affinity,
        machine_option: "--recorded-on",
        kernel_option: "--as-recorded",
        machine_instead: args.machine.as_deref(),
        kernel_instead: args.kernel.as_deref(),
    };
    let (facts, texts) = gather(&asked, &found)?;
    let targets = args.kernel.iter().chain(&args.vs);
    let mut kernels =
        targets.map(|name| crate::scenario::named_kernel(name)).collect::<Result<Vec<_>, _>>()?;
    if args.kernel.is_none() {
        kernels.insert(0, facts.kernel.clone());
    }
    args.runs.map(super::compare::checked).transpose()?;
    let options =
        Options { rule: args.rule.parse().map_err(|e| Error::new(format!("{e}")))?, ..Options::default() };
    let target = args.machine.as_deref().map(machine::machine).transpose()?;
    let without = args.without.as_deref().map(Without::parse).transpose();
    let without = without.map_err(|e| Error::new(format!("--without: {e}")))?;

    let topology = facts.topology;
    let recording = found.open()?.of_kernel(&facts.kernel).on_machine(
        &topology.name,
        topology.nr_cpus(),
        "--recorded-on",
    );
    let mut listener = Listener::knowing(Known::of(&texts, facts.groups)?.on(&topology));
    recording.feed(&mut listener, || false)?;
    let mut recorded = listener.finish(&found.trace.display().to_string())?;
    recorded.nr_cpus = topology.nr_cpus();
    if !recorded.gaps.is_empty() {
        say!("{}: {}", found.trace.display(), recorded.gaps);
    }
    for hint in &facts.affinity[..args.affinity.len()] {
        if !recorded.learned.tasks.iter().any(|task| hint.matches(&task.comm)) {
            say!("--affinity {}={}: no task of the recording has this name", hint.comm, hint.allowed);
        }
    }
    recorded.affinity = facts.affinity;
    recorded.sched_ext = facts.sched_ext;
    if args.programs {
        return output::print(|out| write!(out, "{}", recorded.learned)).map(|()| Status::Done);
    }
    let progress = Progress::new("replaying on its own machine");
    let home = recorded.at_home(&topology, &facts.kernel, args.seed, args.threads)?;
    let form = home.fit()?;
    let runs = args.runs.map_or(Runs::Enough, Runs::Exactly);
    let fidelity = home.fidelity(form, runs, |done, total| progress.at(done, total))?;
    let state = home.state(form)?;
    let beginning = recorded.beginning(&facts.kernel);
    drop(progress);
    let place = match target {
        Some(machine) => recorded.elsewhere(with(machine, without), &topology, form),
        None => recorded.own(topology.clone(), form),
    };
    let mut notes = recorded.notes(&place.machine, &topology);
    let scenario = recorded.scenario(place, kernels, args.runs.unwrap_or(Runs::LEAST), args.seed)?;
    notes.extend(schedlab::deadline_note(&scenario.machine, &scenario.rows[0].workload));
    let progress = Progress::new(&scenario.rows[0].workload.name);
    let results = scenario.run(args.threads, |done, total| progress.at(done, total))?;
    drop(progress);
    let comparison = Comparison::new(&table(&Experiment::of(&scenario), &results), options);
    let experiment = Experiment::of(&scenario);
    let is_explained = matches!(args.format, TableFormat::Text | TableFormat::Json);
    let parts = if is_explained { parts(&experiment)? } else { Vec::new() };
    let told =
        Told { beginning, fidelity, state, notes, scenario, results, comparison, stat: args.stat, parts };
    if args.format == TableFormat::Csv {
        eprint!("{}", told.head("schedlab: "));
    }
    let text = told.text(args.format);
    let output = args.output.as_deref();
    match args.format {
        TableFormat::Text => output::write_report(output, |out| out.write_all(text.as_bytes()))?,
        _ => output::write(output, |out| out.write_all(text.as_bytes()))?,
    }
    if let Some(path) = &args.html {
        let mut page = pages::compare(pages::Compared {
            story: "",
            comparison: &told.comparison,
            samples: &table(&told.experiment(), &told.results),
            judgements: &[],
            because: schedlab::because(&told.experiment(), &told.results),
            row: "",
            runs: &told.results.runs[0],
            counts: &told.results.perf_stats(&told.experiment()),
            pictures: super::compare::pictures(&told.scenario, 0)?,
        });
        pages::with_fidelity(&mut page, &told.head(""));
        output::write(Some(path), |out| page.write(out))?;
    }
    if let Some(path) = &args.trace {
        trace_of(&told.scenario, path)?;
    }
    Ok(Status::Done)
}

/// Writes the trace of the first run under the last kernel.
fn trace_of(scenario: &Scenario, path: &Path) -> Result<(), Error> {
    let format = TraceFormat::of(path).unwrap_or(TraceFormat::FtraceDecisions);
    let kernel = scenario.kernels.last().expect("there is one at least");
    let (machine, row) = (&scenario.machine, &scenario.rows[0]);
    trace_file::write(Some(path), format, machine.topology.nr_cpus(), |sink| {
        Ok(scenario.run_row(kernel, row, |_| sink).map(drop)?)
    })
}

fn with(machine: Machine, without: Option<Without>) -> Machine {
    match without {
        Some(without) => machine.without(without),
        None => machine,
    }
}

/// Everything that is printed.
struct Told {
    beginning: Beginning,
    fidelity: Fidelity,
    state: State,
    notes: Vec<String>,
    scenario: Scenario,
    results: Results,
    comparison: Comparison,
    /// Whether the counts of events are printed.
    stat: bool,
    /// Where kernel trees diverge from the first kernel.
    parts: Vec<Parted>,
}

impl Told {
    fn experiment(&self) -> Experiment {
        Experiment::of(&self.scenario)
    }

    fn text(&self, format: TableFormat) -> String {
        match format {
            TableFormat::Json => {
                let value = json!({
                    "file": self.scenario.file,
                    "fidelity": self.fidelity,
                    "beginning": self.beginning,
                    "state": self.state,
                    "notes": self.notes,
                    "machine": self.scenario.machine.name(),
                    "comparison": render::json(&self.comparison),
                    "why": schedlab::because(&self.experiment(), &self.results),
                    "parts": parts_json(&self.parts),
                    "perf_stat": self.results.perf_stats(&self.experiment()),
                });
                serde_json::to_string_pretty(&value).expect("JSON of plain data") + "\n"
            }
            // Only the comparison has the form of a table; the rest would break its columns and is printed separately.
            TableFormat::Csv => render::csv(&self.comparison),
            TableFormat::Md => format!("{}\n{}", self.head("- "), render::markdown(&self.comparison)),
            TableFormat::Text => self.plain(),
        }
    }

    /// The fidelity lines, for the mean over states and for the best state, and caveats.
    fn head(&self, lead: &str) -> String {
        let fidelity = self.fidelity.text() + &self.beginning.text() + &self.state.text();
        let mut text: String = fidelity.lines().map(|line| format!("{lead}{line}\n")).collect();
        for note in &self.notes {
            text += &format!("{lead}note      {note}\n");
        }
        text
    }

    fn plain(&self) -> String {
        let mut text = format!("{}\n{}", self.head(""), render::text(&self.comparison, &Stat::MAIL));
        for line in schedlab::because(&self.experiment(), &self.results) {
            text += &format!("why    {line}\n");
        }
        text += &parts_text(&self.parts);
        if self.stat {
            for stat in self.results.perf_stats(&self.experiment()) {
                text.push('\n');
                text += &render::perf_stat(&stat);
            }
        }
        text
    }
}
