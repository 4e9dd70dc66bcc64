//! `schedlab why`: the decisions of one run as sentences.

use std::collections::BTreeSet;

use schedlab::trace::{Comm, Each, Event, Kind, Tee};
use schedlab::units::{Pid, Time};
use schedlab::why::{Answer, Question, Why};

use crate::args;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::scenario;

/// Runs one row under one kernel and tells its decisions.
pub fn run(args: &args::Why) -> Result<Status, Error> {
    let scenario = scenario::load(&args.what)?;
    let kernel = scenario::kernel(&scenario, args.kernel.as_deref())?;
    let row = scenario::row(&scenario, args.row.as_deref())?;
    let instant = |text: &Option<String>| -> Result<Option<Time>, Error> {
        text.as_deref()
            .map(|t| schedlab::parse_duration(t).map(|d| Time(d.0)).map_err(Error::new))
            .transpose()
    };
    let question = Question { task: args.task.clone(), from: instant(&args.from)?, to: instant(&args.to)? };
    let mut answers: Vec<Answer> = Vec::new();
    let mut more = 0usize;
    let mut names: BTreeSet<(Comm, Pid)> = BTreeSet::new();
    let mut end = Time::ZERO;
    if let (Some(from), Some(to)) = (question.from, question.to)
        && to < from
    {
        return Err(Error::new(format!("--from {from} is behind --to {to}")));
    }
    if args.most == 0 {
        return Err(Error::new("--most is at least 1"));
    }
    let (_, _) = scenario.run_row(&kernel, row, |_| {
        let why = Why::new(question, |answer: Answer| {
            if args.kind.as_ref().is_some_and(|kind| kind != answer.kind) {
                return;
            }
            if answers.len() < args.most { answers.push(answer) } else { more += 1 }
        });
        let names = Each(|event: &Event| {
            end = event.time;
            if let Kind::SchedSwitch { next_comm, next_pid, .. } = event.kind
                && next_pid != Pid::IDLE
            {
                names.insert((next_comm, next_pid));
            }
        });
        Tee(why, names)
    })?;
    if answers.is_empty() {
        tell_what_there_is(args, &names, end)?;
    }
    match args.format {
        Format::Json => output::print_json(&answers)?,
        Format::Text => output::print(|out| {
            for answer in &answers {
                writeln!(out, "{} CPU {:3}  {}", Time(answer.time_ns), answer.cpu, answer.sentence)?;
            }
            if more > 0 {
                writeln!(out, "and {more} more; --most shows more, --task, --from and --to narrow it down")?;
            }
            if answers.is_empty() {
                writeln!(out, "no decision was made about that")?;
            }
            if let Some(parted) = schedlab::kernels::parted(&kernel) {
                writeln!(
                    out,
                    "our nearest rules part from this tree at {parted}; reasons are told up to there"
                )?;
            }
            Ok(())
        })?,
    }
    Ok(Status::Done)
}

/// Tasks named where one was asked for that is not there.
const NAMED: usize = 12;

/// Says which tasks there are, and when, where nothing was found of those asked for.
fn tell_what_there_is(args: &args::Why, tasks: &BTreeSet<(Comm, Pid)>, end: Time) -> Result<(), Error> {
    if let Some(asked) = &args.task
        && !tasks.iter().any(|(comm, pid)| asked == &comm.to_string() || asked == &pid.to_string())
    {
        let names: BTreeSet<String> = tasks.iter().map(|(comm, _)| comm.to_string()).collect();
        let more = if names.len() > NAMED { ", .." } else { "" };
        let names: Vec<String> = names.into_iter().take(NAMED).collect();
        let names = names.join(", ");
        return Err(Error::new(format!("no task \"{asked}\" runs before {end}; there are {names}{more}")));
    }
    if args.from.is_some() || args.to.is_some() {
        eprintln!("schedlab: the run ends at {end}");
    }
    Ok(())
}
