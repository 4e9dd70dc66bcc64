//! `schedlab trace`: one run of a scenario as a trace.

use std::io::{self, Write};

use schedlab::trace::{Filter, Kind, Sink, write};
use schedlab::{Limits, run_one};

use crate::args::{Trace, TraceFormat};
use crate::error::{Error, Status};
use crate::output;
use crate::scenario;

/// Runs one row under one kernel and writes its trace.
pub fn run(args: &Trace) -> Result<Status, Error> {
    args.events.iter().try_for_each(|pattern| is_known(pattern))?;
    let scenario = scenario::load(&args.what)?;
    let kernel = scenario::kernel(&scenario, args.kernel.as_deref())?;
    let row = scenario::row(&scenario, args.row.as_deref())?;
    let limits = Limits { seed: scenario.seed, limit: scenario.limit };
    let mut ended = Ok(());
    let mut feed = |sink: &mut dyn Sink| -> io::Result<()> {
        let filter = Filter::new(args.events.iter().map(String::as_str), sink);
        ended = run_one(&scenario.machine, &kernel, row, limits, |_| filter).map(drop);
        // A run that failed must not leave a file that looks whole.
        if ended.is_err() { Err(io::Error::other("the run failed")) } else { Ok(()) }
    };
    let written = output::write(args.output.as_deref(), |out: &mut dyn Write| match args.format {
        TraceFormat::Ftrace | TraceFormat::FtraceDecisions => {
            let mut writer = write::Ftrace::new(out, write::Precision::Nano);
            if args.format == TraceFormat::FtraceDecisions {
                writer = writer.with_decisions();
            }
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
    written.map(|()| Status::Done)
}

/// Whether there are events of a name, or of one that begins so.
fn is_known(pattern: &str) -> Result<(), Error> {
    let name = pattern.split_once(':').map_or(pattern, |(_, name)| name);
    let fits = |known: &str| name.strip_suffix('*').map_or(known == name, |lead| known.starts_with(lead));
    if Kind::NAMES.iter().any(|known| fits(known)) {
        return Ok(());
    }
    Err(Error::new(format!(
        "--events {pattern}: there is no such event; there are {}",
        Kind::NAMES.join(", ")
    )))
}
