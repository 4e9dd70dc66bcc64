//! `schedlab trace`: one run of a scenario as a trace.

use std::path::Path;

use schedlab::trace::{Filter, Kind, NullSink, Sink, State};

use crate::args::{Trace, TraceFormat};
use crate::error::{Error, Status};
use crate::{output, scenario, trace_file};

/// Runs one row under one kernel and writes its trace.
pub fn run(args: &Trace) -> Result<Status, Error> {
    args.events.iter().try_for_each(|pattern| is_known(pattern))?;
    output::refuse_input(args.output.as_deref(), &[Path::new(&args.what.scenario)])?;
    let scenario = scenario::load(&args.what)?;
    let kernel = scenario::kernel(&scenario, args.kernel.as_deref())?;
    let row = scenario::row(&scenario, args.row.as_deref())?;
    let path = args.output.as_deref();
    let format = match (args.format, path) {
        (Some(format), _) => format,
        (None, Some(path)) => TraceFormat::named(path)?,
        (None, None) => TraceFormat::Ftrace,
    };
    let format = match format {
        TraceFormat::Ftrace if names_decisions(&args.events) => TraceFormat::FtraceDecisions,
        TraceFormat::TraceDat if names_decisions(&args.events) => TraceFormat::TraceDatDecisions,
        format => format,
    };
    let filter = Filter::new(args.events.iter().map(String::as_str), NullSink);
    if filter.wants_state()
        && matches!(format, TraceFormat::TraceDat | TraceFormat::TraceDatDecisions | TraceFormat::PerfData)
    {
        return Err(Error::new(
            "state (pelt_*, sched_util_est_*, ..) is written as text of tracefs, Perfetto or JSON lines: give --format ftrace, \
             perfetto or json",
        ));
    }
    trace_file::write(path, format, scenario.machine.topology.nr_cpus(), |sink| {
        let filter = Filter::new(args.events.iter().map(String::as_str), sink);
        Ok(scenario.run_row(&kernel, row, |_| filter).map(drop)?)
    })?;
    Ok(Status::Done)
}

/// Whether the events name decisions. A format that can contain decisions then does.
fn names_decisions(events: &[String]) -> bool {
    let decisions = ["placement", "balance", "newidle", "preemption", "pick"];
    events.iter().filter_map(|pattern| pattern.strip_prefix("schedlab_")).any(|name| {
        match name.strip_suffix('*') {
            Some(lead) => decisions.iter().any(|decision| decision.starts_with(lead)),
            None => decisions.contains(&name),
        }
    })
}

/// Checks that events of a name or prefix exist.
fn is_known(pattern: &str) -> Result<(), Error> {
    let name = pattern.split_once(':').map_or(pattern, |(_, name)| name);
    let fits = |known: &str| name.strip_suffix('*').map_or(known == name, |lead| known.starts_with(lead));
    if Kind::NAMES.iter().chain(&State::NAMES).any(|known| fits(known)) {
        return Ok(());
    }
    Err(Error::new(format!(
        "--events {pattern}: there is no such event; there are {}",
        Kind::NAMES.iter().chain(&State::NAMES).copied().collect::<Vec<_>>().join(", ")
    )))
}
