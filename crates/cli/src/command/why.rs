//! `schedlab why`: the decisions of one run as sentences.

use schedlab::units::Time;
use schedlab::why::{Answer, Question, Why};
use schedlab::{Limits, run_one};

use crate::args;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::scenario;

/// Runs one row under one kernel and tells its decisions.
pub fn run(args: &args::Why) -> Result<Status, Error> {
    let scenario = scenario::load(&args.what)?;
    let kernel = scenario::kernel(&scenario, args.kernel.as_deref())?;
    let row = scenario::row(&scenario, args.row.as_deref())?;
    let limits = Limits { seed: scenario.seed, limit: scenario.limit };
    let instant = |text: &Option<String>| -> Result<Option<Time>, Error> {
        text.as_deref()
            .map(|t| schedlab::parse_duration(t).map(|d| Time(d.0)).map_err(Error::new))
            .transpose()
    };
    let question = Question { task: args.task.clone(), from: instant(&args.from)?, to: instant(&args.to)? };
    let mut answers: Vec<Answer> = Vec::new();
    let mut more = 0usize;
    let (_, _) = run_one(&scenario.machine, &kernel, row, limits, |_| {
        Why::new(question, |answer: Answer| {
            if args.kind.as_ref().is_some_and(|kind| kind != answer.kind) {
                return;
            }
            if answers.len() < args.most { answers.push(answer) } else { more += 1 }
        })
    })?;
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
            Ok(())
        })?,
    }
    Ok(Status::Done)
}
