//! `schedlab record`: what the scheduler of this host does, with everything that an audit needs.
//!
//! ```text
//! DIR/trace.dat               pages of the kernel's ring buffers, as trace-cmd writes them
//!     facts/topology.txt ...  machine, domains, features, tunables, tasks, groups
//!     count.txt cmd.txt schedstat-before.txt schedstat-after.txt
//! ```
//!
//! Memory stays bounded: pages go to disk as they fill.

mod cgroups;
mod drain;
mod events;
mod facts;
mod folder;
mod host;
mod stop;
mod tasks;
#[cfg(test)]
mod tests;
mod trace_file;
mod tracefs;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use schedlab::parse_duration;
use serde_json::json;

use crate::args::Record;
use crate::count::counted;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::progress::Progress;

use drain::Drain;
use folder::Partial;
use host::Host;
use stop::{Ended, Stop};
use tasks::Tasks;
use tracefs::Instance;

/// Records this host.
pub fn run(args: &Record) -> Result<Status, Error> {
    let stop = Stop::new();
    output::on_interrupt(stop.interrupt());
    let done = record(&Host::own(), args, stop)?;
    for warning in &done.warnings {
        say!("{warning}");
    }
    match args.format {
        Format::Json => output::print_json(&json!({
            "folder": done.folder.display().to_string(),
            "seconds": done.time.as_secs_f64(),
            "cpus": done.nr_cpus,
            "events": done.events,
            "lost": done.lost,
            "warnings": done.warnings,
        }))?,
        Format::Text => output::print(|out| {
            let (folder, seconds) = (done.folder.display(), done.time.as_secs_f64());
            let lost = if done.lost == 0 { "none".to_owned() } else { done.lost.to_string() };
            writeln!(
                out,
                "{folder}: {} of {} in {seconds:.1} s, {lost} lost",
                counted(done.events, "event"),
                counted(done.nr_cpus as u64, "CPU")
            )?;
            writeln!(out, "next: schedlab detect {folder}, or schedlab audit {folder}")
        })?,
    }
    Ok(if done.cut_short { Status::Interrupted } else { Status::Done })
}

/// What was recorded.
struct Done {
    /// Where it is.
    folder: PathBuf,
    /// A signal ended it before the command or the time was over.
    cut_short: bool,
    time: Duration,
    nr_cpus: usize,
    events: u64,
    lost: u64,
    warnings: Vec<String>,
}

/// Records until something ends it.
fn record(host: &Host, args: &Record, mut stop: Stop) -> Result<Done, Error> {
    let time = args.duration.as_deref().map(parse_duration).transpose().map_err(Error::new)?;
    must_be_able(host)?;
    let tracefs = tracefs::find(host)?;
    let page_size = trace_file::page_size(host, &tracefs)?;
    let folder = Partial::new(&args.output)?;

    let (facts, mut warnings) = facts::facts(host);
    for (name, text) in facts {
        folder.write(&format!("facts/{name}"), &text)?;
    }
    folder.write("facts/cgroups.txt", &cgroups::cgroups(host))?;
    let mut tasks = Tasks::default();
    folder.write("facts/groups-before.txt", &tasks.look(host))?;
    schedstat(host, &folder, "schedstat-before.txt")?;

    let instance = Instance::new(host, &tracefs, args.buffer, &args.events)?;
    let mut drain = Drain::new(&instance, folder.path(), page_size, args.buffer)?;
    instance.start()?;
    let started = Instant::now();
    stop.with(&args.command)?;
    let time_asked = time.is_some();
    if let Some(time) = time {
        stop.after(Duration::from_nanos(time.0));
    }
    // A command has the terminal to itself.
    let progress = args.command.is_empty().then(|| begun(args));
    let ended = loop {
        drain.round()?;
        if let Some(progress) = &progress {
            progress.at(drain.bytes() as usize, 0);
        }
        if let Some(ended) = stop.wait(drain.wait()) {
            break ended;
        }
    };
    drop(progress);
    let goes_on = ended == Ended::Interrupt && !stop.end_command();
    instance.stop()?;
    let time = started.elapsed();
    let spooled = drain.finish()?;
    let (events, lost) = trace_file::counts(&instance);

    schedstat(host, &folder, "schedstat-after.txt")?;
    folder.write("facts/groups-after.txt", &tasks.look(host))?;
    folder.write("facts/cgroups-after.txt", &cgroups::cgroups(host))?;
    folder.write("facts/tasks.txt", &tasks.lines())?;
    folder.write("count.txt", &format!("events {events} lost {lost}\n"))?;
    if !args.command.is_empty() {
        folder.write("cmd.txt", &(args.command.join(" ") + "\n"))?;
    }
    let mut recorded = trace_file::describe(host, &tracefs, &instance, page_size, !args.events.is_empty());
    recorded.comms = tasks.comms();
    recorded.comms.extend(trace_file::saved_comms(host, &tracefs));
    trace_file::write(&folder.path().join("trace.dat"), &recorded, &spooled)?;
    let folder = folder.finish()?;

    if folder != args.output {
        warnings.push(format!(
            "something else appeared as {} meanwhile; the recording is {}",
            args.output.display(),
            folder.display()
        ));
    }
    if let Ended::Command(status) = ended
        && !status.success()
    {
        warnings.push(format!("the command ended with {status}"));
    }
    if ended == Ended::Interrupt {
        warnings.push("interrupted; what was recorded until then is kept".to_owned());
    }
    if goes_on {
        warnings.push("the command was asked to end and is still running".to_owned());
    }
    let cut_short = ended == Ended::Interrupt && (time_asked || !args.command.is_empty());
    if lost > 0 {
        warnings.push(format!(
            "{lost} events were lost; a larger buffer may hold them: --buffer {}",
            args.buffer.saturating_mul(4)
        ));
    }
    if events == 0 {
        warnings.push("no event was recorded".to_owned());
    }
    Ok(Done { folder, cut_short, time, nr_cpus: spooled.len(), events, lost, warnings })
}

/// Says that it has begun, and when it will end.
fn begun(args: &Record) -> Progress {
    let folder = args.output.display().to_string();
    let until = args.duration.as_ref().map_or("until Ctrl-C".to_owned(), |time| format!("for {time}"));
    say!("recording into {folder} {until}");
    Progress::of_recording(&folder)
}

/// Checks all requirements before anything is touched.
fn must_be_able(host: &Host) -> Result<(), Error> {
    if cfg!(target_endian = "big") {
        return Err(Error::new("on a big-endian machine record with trace-cmd; its trace.dat is read here"));
    }
    let status = host.text("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    if effective == Some("0") {
        Ok(())
    } else {
        Err(Error::new("recording needs root, because the kernel's tracing does: sudo schedlab record ..."))
    }
}

/// Counters before and after the recording, if the kernel keeps them.
fn schedstat(host: &Host, folder: &Partial, name: &str) -> Result<(), Error> {
    match host.text("/proc/schedstat") {
        Some(text) => folder.write(name, &(text + "\n")),
        None => Ok(()),
    }
}
