//! `schedlab why`: the decisions of one run as sentences.

use std::collections::BTreeSet;

use schedlab::kernels;
use schedlab::sched::Kernel;
use schedlab::trace::{Comm, Each, Event, Kind, Tee};
use schedlab::units::{Pid, Time};
use schedlab::why::{Answer, Question, Why};
use schedlab::why_diff::Side;

use crate::args;
use crate::count::counted;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::scenario;
use crate::width::{width, wrapped};

/// Runs one row under one kernel and prints its decisions.
pub fn run(args: &args::Why) -> Result<Status, Error> {
    if let [base, other] = &args.diff[..] {
        return diff(args, base, other);
    }
    let scenario = scenario::load(&args.what)?;
    let kernel = scenario::kernel(&scenario, args.kernel.as_deref())?;
    let row = scenario::row(&scenario, args.row.as_deref())?;
    let question = question(args)?;
    let mut answers: Vec<Answer> = Vec::new();
    let mut more = 0usize;
    let mut names: BTreeSet<(Comm, Pid)> = BTreeSet::new();
    let mut end = Time::ZERO;
    if args.most == 0 {
        return Err(Error::new("--most must be at least 1"));
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
    let width = width();
    match args.format {
        Format::Json => output::print_json(&answers)?,
        Format::Text => output::print(|out| {
            for answer in &answers {
                let at = format!("{} CPU {:3}  ", Time(answer.time_ns), answer.cpu);
                out.write_all(wrapped(&at, &answer.sentence, width).as_bytes())?;
            }
            if more > 0 {
                writeln!(out, "and {more} more; --most shows more, --task, --from and --to narrow it down")?;
            }
            if answers.is_empty() {
                writeln!(out, "no decision was made about that")?;
            }
            out.write_all(beside(&kernel).as_bytes())
        })?,
    }
    Ok(Status::Done)
}

/// How our nearest rules compare with the code of a tree.
fn beside(kernel: &Kernel) -> String {
    let (Some(near), Some(followed)) = (kernels::nearest(kernel), kernels::followed(kernel)) else {
        return String::new();
    };
    let mut text = String::new();
    let changes = kernels::changes(kernel);
    if !changes.is_empty() {
        text += &format!("the patch changes {}\n", changes.join(", "));
    }
    text += &format!(
        "{near}, our nearest rules, would have made {} of {} elsewhere",
        followed.elsewhere,
        counted(followed.placements, "placement")
    );
    if let Some(first) = followed.first {
        text += &format!(", the first at {first}");
    }
    text += &match followed.lost {
        Some((at, why)) => format!("; from {at} on they cannot follow: {why}\n"),
        None => "; they followed to the end\n".to_string(),
    };
    text
}

/// The question in the arguments.
fn question(args: &args::Why) -> Result<Question, Error> {
    let instant = |text: &Option<String>| -> Result<Option<Time>, Error> {
        text.as_deref()
            .map(|t| schedlab::parse_duration(t).map(|d| Time(d.0)).map_err(Error::new))
            .transpose()
    };
    let question = Question { task: args.task.clone(), from: instant(&args.from)?, to: instant(&args.to)? };
    if let (Some(from), Some(to)) = (question.from, question.to)
        && to < from
    {
        return Err(Error::new(format!("--from {from} is after --to {to}")));
    }
    Ok(question)
}

/// Percentage points by which a reason's share must differ to be reported.
const WORTH_TELLING: f64 = 1.0;

/// Prints where the decisions of two kernels differ.
fn diff(args: &args::Why, base: &str, other: &str) -> Result<Status, Error> {
    let scenario = scenario::load(&args.what)?;
    let row = scenario::row(&scenario, args.row.as_deref())?;
    let mut sides = Vec::new();
    for name in [base, other] {
        let kernel = scenario::kernel(&scenario, Some(name))?;
        let mut side = Side::default();
        scenario.run_row(&kernel, row, |_| {
            Why::new(question(args).unwrap_or_default(), |answer: Answer| {
                if args.kind.as_ref().is_none_or(|kind| kind == answer.kind) {
                    side.take(answer);
                }
            })
        })?;
        sides.push(side);
    }
    question(args)?;
    let partings = sides[0].partings(&sides[1]);
    let shares = sides[0].shares(&sides[1], WORTH_TELLING);
    if args.format == Format::Json {
        output::print_json(
            &serde_json::json!({"kernels": [base, other], "partings": partings, "shares": shares}),
        )?;
        return Ok(Status::Done);
    }
    let column = base.len().max(other.len());
    let columns = width();
    output::print(|out| {
        if partings.is_empty() {
            writeln!(out, "every decision of {base} and {other} is the same")?;
        }
        for parting in partings.iter().take(args.most) {
            writeln!(out, "{}: {} decisions are the same, then", parting.kind, parting.alike)?;
            for (name, answer) in [(base, &parting.base), (other, &parting.other)] {
                match answer {
                    Some(a) => {
                        let at = format!("  {name:<column$}  {} CPU {:3}  ", Time(a.time_ns), a.cpu);
                        out.write_all(wrapped(&at, &a.sentence, columns).as_bytes())?;
                    }
                    None => writeln!(out, "  {name:<column$}  no further decision")?,
                }
            }
        }
        if !shares.is_empty() {
            writeln!(out, "\nreasons whose share changed: {base} -> {other}")?;
        }
        for share in shares.iter().take(args.most) {
            let [before, after] = share.percent;
            let [n, m] = share.counts;
            writeln!(
                out,
                "  {:<11} {:<26} {before:5.1} % -> {after:5.1} %  ({n} -> {m})",
                share.kind, share.reason
            )?;
        }
        Ok(())
    })?;
    Ok(Status::Done)
}

/// Number of tasks named if the requested one does not exist.
const NAMED: usize = 12;

/// Says which tasks exist, and when, if nothing was found for the requested ones.
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
        say!("the run ends at {end}");
    }
    Ok(())
}
