//! `schedlab audit`: would our rules have done the same as a recorded kernel?

mod contest;
mod marks;
mod text;

use std::io::{self, Write};
use std::path::Path;

use schedlab::audit::{Audit as Shadow, AuditReport, Listener, Options};
use schedlab::html::{Packer, ROOM};
use schedlab::pages;
use schedlab::recording::Facts;
use schedlab::timeline::Builder;
use schedlab::trace::{NullSink, write};
use serde_json::{Value, json};

use crate::args::{Audit, AuditFormat};
use crate::error::{Error, Status};
use crate::facts::{Asked, gather};
use crate::output;
use crate::recorded::Recorded;

/// Follows each recording and prints the results of all of them.
pub fn run(args: &Audit) -> Result<Status, Error> {
    let recordings = Recorded::find(&args.file)?;
    for recorded in &recordings {
        output::refuse_input(args.output.as_deref(), &[&recorded.trace])?;
    }
    if args.format == AuditFormat::Perfetto {
        return perfetto(args, &recordings);
    }
    if args.html.is_some() && recordings.len() > 1 {
        return Err(several(args, &recordings, "a page"));
    }
    let mut audited = Vec::new();
    let mut sum = AuditReport::default();
    for recorded in &recordings {
        let (facts, _) = gather(&asked(args), recorded)?;
        let report = match &args.html {
            Some(path) => page(args, recorded, &facts, path)?,
            None => follow(args, recorded, &facts, NullSink)?.0,
        };
        audited.push((recorded, facts, report.events));
        sum.add(report, args.stories);
    }
    let kernels = joined(audited.iter().map(|(_, facts, _)| facts.kernel.name.as_str()));
    let machines = joined(audited.iter().map(|(_, facts, _)| facts.topology.name.as_str()));
    let output = args.output.as_deref();
    if args.format == AuditFormat::Text {
        let head = format!("{} as {kernels} on {machines}", args.file.display());
        let contest = contest::of(args, &audited)?;
        output::write_report(output, |out| text::print(out, &head, contest.as_ref(), &sum))?;
        return Ok(Status::Done);
    }
    let mut value = json!({
        "file": args.file.display().to_string(),
        "machine": machines,
        "kernel": kernels,
        "recordings": audited.iter().map(|(recorded, facts, events)| json!({
            "file": recorded.trace.display().to_string(),
            "machine": facts.topology.name,
            "kernel": facts.kernel.name,
            "events": events,
        })).collect::<Vec<_>>(),
    });
    if let Some(contest) = contest::of(args, &audited)? {
        value["contest"] = contest::as_json(&contest);
    }
    let report = serde_json::to_value(&sum).map_err(|error| Error::new(error.to_string()))?;
    if let (Value::Object(all), Value::Object(fields)) = (&mut value, report) {
        all.extend(fields);
    }
    output::write(output, |out| {
        serde_json::to_writer_pretty(&mut *out, &value)?;
        writeln!(out)
    })?;
    Ok(Status::Done)
}

/// Joins distinct names, as in `v6.1 and v6.12`.
fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut different: Vec<&str> = Vec::new();
    for name in names {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    match &different[..] {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [others @ .., last] => format!("{} and {last}", others.join(", ")),
    }
}

fn asked(args: &Audit) -> Asked<'_> {
    Asked {
        machine: args.machine.as_deref(),
        kernel: args.kernel.as_deref(),
        facts: args.facts.as_deref(),
        affinity: &args.affinity,
        machine_option: "--machine",
        kernel_option: "--kernel",
        machine_instead: None,
        kernel_instead: None,
    }
}

fn follow<S: Listener>(
    args: &Audit,
    recorded: &Recorded,
    facts: &Facts,
    sink: S,
) -> Result<(AuditReport, S), Error> {
    let options = Options {
        keep_verdicts: args.verdicts,
        nearest: args.verdicts || args.html.is_some() || args.format == AuditFormat::Perfetto,
        stories: args.stories,
        ..Options::of(facts)
    };
    follow_with(recorded, facts, options, sink, false)
}

fn follow_with<S: Listener>(
    recorded: &Recorded,
    facts: &Facts,
    options: Options,
    sink: S,
    is_repeated: bool,
) -> Result<(AuditReport, S), Error> {
    let topology = &facts.topology;
    let recording =
        recorded.open()?.of_kernel(&facts.kernel).on_machine(&topology.name, topology.nr_cpus(), "--machine");
    let recording = recording.whose_switches_are_counted();
    let recording = if is_repeated { recording.once_more() } else { recording };
    let mut shadow = Shadow::with_sink(topology, &facts.kernel, options, sink);
    if !recording.feed(&mut shadow, || false)?.wakings && !is_repeated {
        say!(
            "{}: there is no sched_waking in it: no wake-up is judged, and how one was made is not known to \
             what comes after; record sched:sched_waking too",
            recorded.trace.display()
        );
    }
    Ok(shadow.finish())
}

/// Follows a recording, and writes a page with the verdicts in its timeline.
fn page(args: &Audit, recorded: &Recorded, facts: &Facts, path: &Path) -> Result<AuditReport, Error> {
    let title = format!("{} as {}", args.file.display(), facts.kernel.name);
    let mut packer = Packer::new(ROOM);
    let builder = Builder::new(&title, Some(facts.topology.clone()), |chunk| packer.add(chunk));
    let (report, marks) = follow(args, recorded, facts, marks::Marks(builder))?;
    let head = marks.0.finish();
    let mut told = Vec::new();
    text::print(&mut told, &title, None, &report).map_err(|error| Error::new(error.to_string()))?;
    let page = pages::audited(&title, &report, &String::from_utf8_lossy(&told), packer.finish(head));
    output::write(Some(path), |out| page.write(out))?;
    Ok(report)
}

/// Refuses several recordings if only one can be shown.
fn several(args: &Audit, recordings: &[Recorded], what: &str) -> Error {
    Error::new(format!(
        "{}: there are {} recordings in it, and {what} can show one; name one of the folders in it",
        args.file.display(),
        recordings.len()
    ))
}

/// The recording as a Perfetto trace, with the verdicts in it.
fn perfetto(args: &Audit, recordings: &[Recorded]) -> Result<Status, Error> {
    let [recorded] = recordings else {
        return Err(several(args, recordings, "a Perfetto trace"));
    };
    let (facts, _) = gather(&asked(args), recorded)?;
    let mut followed = None;
    let written = output::write(args.output.as_deref(), |out: &mut dyn Write| {
        let marks = marks::Marks(write::Perfetto::new(out, write::Extras::ALL));
        match follow(args, recorded, &facts, marks) {
            Ok((report, marks)) => {
                followed = Some(Ok(report));
                marks.0.finish().map(drop)
            }
            // A file that was not read to its end must not look complete.
            Err(error) => {
                followed = Some(Err(error));
                Err(io::Error::other("the recording could not be read"))
            }
        }
    });
    // If nothing was read, nothing could be written.
    let report = followed.transpose()?;
    written?;
    let report = report.expect("it was written");
    if args.output.is_some() {
        let head = format!("{} as {} on {}", args.file.display(), facts.kernel.name, facts.topology.name);
        output::print(|out| text::print(out, &head, None, &report))?;
    }
    Ok(Status::Done)
}
