//! Simulated traces as files, in the requested format or in that of the file's ending.

use std::io::{self, Write};
use std::path::Path;

use schedlab::trace::{Sink, write};

use crate::args::TraceFormat;
use crate::error::Error;
use crate::output;

impl TraceFormat {
    /// The format of a file with this ending, if known.
    pub fn of(path: &Path) -> Option<TraceFormat> {
        Some(match path.extension()?.to_str()? {
            "pftrace" | "perfetto-trace" => TraceFormat::Perfetto,
            "dat" => TraceFormat::TraceDat,
            "data" => TraceFormat::PerfData,
            "json" | "jsonl" => TraceFormat::Json,
            _ => return None,
        })
    }

    /// The format by a file's name; text of tracefs if it has no ending.
    pub fn named(path: &Path) -> Result<TraceFormat, Error> {
        let ending = path.extension().and_then(|ending| ending.to_str());
        match (TraceFormat::of(path), ending) {
            (Some(format), _) => Ok(format),
            // Devices and pipes have no ending; text has one of these.
            (None, None | Some("txt" | "trace" | "text" | "ftrace" | "log")) => Ok(TraceFormat::Ftrace),
            (None, Some(ending)) => Err(Error::new(format!(
                "{}: no trace is written as .{ending}; the endings are .txt, .pftrace, .dat, .data and .json, or say --format",
                path.display()
            ))),
        }
    }
}

/// Writes the events of a run on a machine with the given number of CPUs to a file or to standard output. A run that
/// fails leaves no file that looks complete.
pub fn write(
    path: Option<&Path>,
    format: TraceFormat,
    nr_cpus: usize,
    run: impl FnOnce(&mut dyn Sink) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut ended = Ok(());
    let feed = |sink: &mut dyn Sink| -> io::Result<()> {
        ended = run(sink);
        if ended.is_err() { Err(io::Error::other("the run failed")) } else { Ok(()) }
    };
    let written = output::write(path, |out: &mut dyn Write| match format {
        TraceFormat::Ftrace | TraceFormat::FtraceDecisions => {
            let mut writer = write::Ftrace::new(out, write::Precision::Nano);
            if format == TraceFormat::FtraceDecisions {
                writer = writer.with_decisions();
            }
            feed(&mut writer)?;
            writer.finish().map(drop)
        }
        TraceFormat::TraceDat | TraceFormat::TraceDatDecisions => {
            let mut writer = write::TraceDat::new(out, tempfile::tempfile()?, nr_cpus);
            if format == TraceFormat::TraceDatDecisions {
                writer = writer.with_decisions();
            }
            feed(&mut writer)?;
            writer.finish().map(drop)
        }
        TraceFormat::PerfData => {
            let mut writer = write::PerfData::new(out, tempfile::tempfile()?, nr_cpus).with_decisions();
            feed(&mut writer)?;
            writer.finish().map(drop)
        }
        TraceFormat::Perfetto => {
            let mut writer = write::Perfetto::new(out, write::Extras::ALL);
            feed(&mut writer)?;
            writer.finish().map(drop)
        }
        TraceFormat::Json => {
            let mut writer = write::Jsonl::new(out).with_decisions();
            feed(&mut writer)?;
            writer.finish().map(drop)
        }
    });
    ended?;
    written
}
