//! `schedlab audit`: would our rules have done the same as a recorded kernel?

use std::io;
use std::path::{Path, PathBuf};

use schedlab::audit::{
    AffinityHint, Audit as Shadow, AuditReport, Counts, Decision, Options, apply_features, apply_tunables,
    hints_of_command,
};
use schedlab::sched::Kernel;
use schedlab::topology::{CpuMask, Topology};
use serde_json::json;

use crate::args::Audit;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::recording::Recording;
use crate::{files, machine};

/// Reasons of a kind that are printed; the rest are rare.
const REASONS_SHOWN: usize = 8;

/// Follows the recording and prints what was found.
pub fn run(args: &Audit) -> Result<Status, Error> {
    let facts = args.facts.clone().or_else(|| facts_near(&args.file)).filter(|_| args.machine.is_none());
    let topology = match (&args.machine, &facts) {
        (Some(name), _) => machine::machine(name)?.topology,
        (None, Some(folder)) => machine::folder(folder)?,
        (None, None) => {
            return Err(Error::new(format!(
                "{} does not say on which machine it was recorded; name it with --machine, or give a folder \
                 with its topology.txt with --facts",
                args.file.display()
            )));
        }
    };
    let mut kernel = Kernel::parse(&args.kernel)?;
    if let Some(folder) = &facts {
        apply(&mut kernel, folder, &topology, &args.kernel)?;
    }
    let options =
        Options { affinity: affinity(args, &topology)?, keep_verdicts: args.verdicts, stories: args.stories };
    let recording = Recording::open(&args.file)?;
    let mut shadow = Shadow::new(&topology, &kernel, options);
    recording.feed(&mut shadow, || false)?;
    let (report, _) = shadow.finish();
    match args.format {
        Format::Json => {
            let mut value = json!({
                "file": args.file.display().to_string(),
                "machine": topology.name,
                "kernel": kernel.name,
            });
            let report = serde_json::to_value(&report).map_err(|e| Error::new(e.to_string()))?;
            if let (Some(all), serde_json::Value::Object(fields)) = (value.as_object_mut(), report) {
                all.extend(fields);
            }
            output::print_json(&value)?;
        }
        Format::Text => output::print(|out| print(out, &report))?,
    }
    Ok(Status::Done)
}

/// Recordings of the project have their facts beside their folder.
fn facts_near(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    [folder.join("facts"), folder.join("../facts")]
        .into_iter()
        .find(|facts| facts.join("topology.txt").is_file())
}

/// Sets what was in force, then what the user asked for once more: that comes last.
fn apply(kernel: &mut Kernel, folder: &Path, topology: &Topology, asked: &str) -> Result<(), Error> {
    let text = |name: &str| {
        let path = folder.join(name);
        if path.is_file() { files::read(&path) } else { Ok(String::new()) }
    };
    apply_features(kernel, &text("sched_features.txt")?);
    apply_tunables(kernel, &text("debug_sched.txt")?, topology.online().weight());
    for part in asked.split('+').skip(1) {
        kernel.switch(part.trim())?;
    }
    Ok(())
}

/// Masks that the user names, and those that the command beside the trace tells.
fn affinity(args: &Audit, topology: &Topology) -> Result<Vec<AffinityHint>, Error> {
    let nr_cpus = topology.nr_cpus();
    let mut hints = Vec::new();
    for hint in &args.affinity {
        let (comm, list) = hint.split_once('=').ok_or_else(|| {
            Error::new(format!("--affinity is NAME=CPUS, as in 'st-*=0,4', not \"{hint}\""))
        })?;
        let allowed =
            CpuMask::parse_list(list, nr_cpus).map_err(|e| Error::new(format!("--affinity {hint}: {e}")))?;
        hints.push(AffinityHint { comm: comm.to_owned(), allowed });
    }
    let command = args.file.parent().map(|folder| folder.join("cmd.txt")).filter(|path| path.is_file());
    if let Some(path) = command {
        hints.extend(hints_of_command(&files::read(&path)?, nr_cpus));
    }
    Ok(hints)
}

fn print(out: &mut dyn io::Write, report: &AuditReport) -> io::Result<()> {
    writeln!(
        out,
        "{:<26} {:>9} {:>9} {:>9} {:>9}   agreement",
        "", "agrees", "in a set", "differs", "undecided"
    )?;
    for decision in Decision::ALL {
        let of = report.of(decision);
        if of.counts.all() == 0 {
            continue;
        }
        row(out, decision.name(), &of.counts)?;
        let mut reasons: Vec<_> = of.by_reason.iter().collect();
        reasons.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.all()));
        for (reason, counts) in reasons.into_iter().take(REASONS_SHOWN) {
            row(out, &format!("  {reason}"), counts)?;
        }
        for (hidden, counts) in &of.by_hidden {
            row(out, &format!("  without {hidden}"), counts)?;
        }
    }
    if !report.stories.is_empty() {
        writeln!(out, "\ndisagreements, the first of each kind and rule:")?;
    }
    for story in &report.stories {
        writeln!(out, "  {story}")?;
    }
    for verdict in &report.verdicts {
        writeln!(out, "{verdict}")?;
    }
    Ok(())
}

fn row(out: &mut dyn io::Write, name: &str, counts: &Counts) -> io::Result<()> {
    let Counts { agrees, agrees_in_set, differs, undecided } = counts;
    let agreement =
        counts.agreement().map_or_else(|| "-".to_owned(), |part| format!("{:.1} %", part * 100.0));
    writeln!(out, "{name:<26} {agrees:>9} {agrees_in_set:>9} {differs:>9} {undecided:>9} {agreement:>11}")
}
