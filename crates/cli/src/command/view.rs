//! `schedlab view`: a recording as a timeline.

use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use schedlab::html::{Block, Packer, Page, Places, ROOM, served_page};
use schedlab::pages::reasons;
use schedlab::timeline::{Builder, Chunk, Head};
use schedlab::topology::Topology;
use serde_json::json;

use crate::args::View;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::recorded::Recorded;
use crate::serve::{self, Site};
use crate::{facts, machine};

/// Writes or serves the page.
pub fn run(args: &View) -> Result<Status, Error> {
    let recorded = Recorded::one(&args.file)?;
    let topology = match (&args.machine, &args.facts) {
        (Some(name), _) => Some(machine::machine(name)?.topology),
        (None, Some(facts)) => Some(machine::folder(facts)?),
        (None, None) => recorded.machine()?,
    };
    if let (Some(named), Some(topology)) = (&args.machine, &topology) {
        facts::tell_other_machine(topology, named, "--machine", None, &recorded);
    }
    if args.serve { serve(args, &recorded, topology) } else { write(args, &recorded, topology) }
}

/// Follows the recording and passes on its chunks.
fn follow(
    args: &View,
    recorded: &Recorded,
    topology: Option<Topology>,
    give: impl FnMut(Chunk),
) -> Result<Head, Error> {
    let folder = args.facts.as_deref().or(recorded.facts.as_deref());
    let kernel = facts::known_kernel(None, folder, recorded)?;
    let mut recording = recorded.open()?;
    if let Some(topology) = &topology {
        recording = recording.on_machine(&topology.name, topology.nr_cpus(), "--machine");
    }
    if let Some(kernel) = &kernel {
        recording = recording.of_kernel(kernel);
    }
    let mut builder = Builder::new(&title(args, topology.as_ref()), topology, give);
    recording.feed(&mut builder, || false)?;
    Ok(builder.finish())
}

fn title(args: &View, topology: Option<&Topology>) -> String {
    let file = args.file.display();
    // A machine that was read from files is named after their path, which is not informative here.
    let named = topology.filter(|topology| !topology.name.contains('/'));
    named.map_or_else(|| file.to_string(), |topology| format!("{file} on {}", topology.name))
}

fn write(args: &View, recorded: &Recorded, topology: Option<Topology>) -> Result<Status, Error> {
    let time = |text: &Option<String>| -> Result<Option<u64>, Error> {
        text.as_deref().map(|t| schedlab::parse_duration(t).map(|d| d.0).map_err(Error::new)).transpose()
    };
    let (from, to) = (time(&args.from)?.unwrap_or(0), time(&args.to)?.unwrap_or(u64::MAX));
    if to < from {
        return Err(Error::new("--to is before --from"));
    }
    let mut packer = Packer::new(ROOM).only(from, to);
    let head = follow(args, recorded, topology, |chunk| packer.add(chunk))?;
    let (cpus, tasks, events) = (head.cpus.node.len(), head.tasks.pid.len() - 2, head.events);
    let mut page = Page::new(&head.title);
    page.reasons = reasons();
    page.push(Block::Text(format!(
        "{events} events of {tasks} tasks on {cpus} CPUs within {:.6} s.",
        head.duration as f64 / 1e9
    )));
    if head.losses > 0 {
        page.push(Block::Note(format!(
            "The recorder lost events in {} places; what is shown around them may be wrong.",
            head.losses
        )));
    }
    let packed = packer.finish(head);
    let left_out = packed.left_out.clone();
    page.push(Block::Timelines(vec![packed]));
    let path = args.output.clone().unwrap_or_else(|| named_after(&recorded.trace));
    output::write(Some(&path), |out| page.write(out))?;
    match args.format {
        Format::Json => output::print_json(&json!({
            "page": path, "events": events, "cpus": cpus, "tasks": tasks, "left_out": left_out,
        }))?,
        Format::Text => output::print(|out| {
            writeln!(out, "{}: {events} events, {cpus} CPUs, {tasks} tasks", path.display())?;
            left_out.iter().try_for_each(|sentence| writeln!(out, "{sentence}"))
        })?,
    }
    Ok(Status::Done)
}

/// `trace.html` for `there/trace.dat.gz`.
fn named_after(trace: &Path) -> PathBuf {
    let name = trace.file_name().map_or("trace".to_owned(), |name| name.to_string_lossy().into_owned());
    let stem = name.trim_end_matches(".gz").trim_end_matches(".zst");
    let stem = stem.rsplit_once('.').map_or(stem, |(stem, _)| stem);
    PathBuf::from(format!("{}.html", if stem.is_empty() || stem == "-" { "trace" } else { stem }))
}

fn serve(args: &View, recorded: &Recorded, topology: Option<Topology>) -> Result<Status, Error> {
    let place = |error: std::io::Error| Error::new(format!("127.0.0.1:{}: {error}", args.port));
    let listener = serve::listen(args.port).map_err(place)?;
    let temporary = |error: std::io::Error| Error::new(format!("a temporary file: {error}"));
    let mut data = BufWriter::new(tempfile::tempfile().map_err(temporary)?);
    let mut places = Places::default();
    let mut written = Ok(());
    let head = follow(args, recorded, topology, |chunk| {
        if written.is_ok() {
            written = places.add(&chunk, &mut data);
        }
    })?;
    written.map_err(temporary)?;
    data.flush().map_err(temporary)?;
    let mut data = data.into_inner().map_err(|error| temporary(error.into_error()))?;
    data.seek(SeekFrom::Start(0)).map_err(temporary)?;
    let site = Site {
        page: served_page(&head.title, &reasons()),
        head: places.head(&head),
        overview: places.overview(&head),
        data,
    };
    let url = format!("http://{}/", listener.local_addr().map_err(place)?);
    match args.format {
        Format::Json => output::print_json(&json!({ "url": url, "events": head.events }))?,
        Format::Text => output::print(|out| {
            writeln!(
                out,
                "{}: {} events; open {url} in a browser here, Ctrl-C ends it",
                head.title, head.events
            )
        })?,
    }
    drop(head);
    serve::serve(&listener, site).map_err(place)?;
    Ok(Status::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_named_after_its_recording() {
        for (trace, page) in
            [("a/trace.dat", "trace.html"), ("x.txt.gz", "x.html"), ("-", "trace.html"), ("run", "run.html")]
        {
            assert_eq!(named_after(Path::new(trace)), Path::new(page));
        }
    }
}
