//! The `schedlab` command.
//!
//! Exit status 0 done, 1 an expectation was missed or a requested comparison found a difference, 2 wrong
//! usage or bad input.

#[macro_use]
mod say;

mod args;
mod boot_parameters;
mod command;
mod compared;
mod count;
mod error;
mod facts;
mod files;
mod machine;
mod output;
mod progress;
mod recorded;
mod recording;
mod scenario;
mod serve;
mod trace_file;
mod width;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Verb};

/// The command: parses its arguments, runs, and returns its exit status.
pub fn main() -> ExitCode {
    ExitCode::from(main_with(std::env::args_os()))
}

/// The same with given arguments, the command's name first. Returns the exit status.
pub fn main_with(arguments: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> u8 {
    let arguments = Arguments::parse_from(arguments);
    output::clean_up_on_interrupt();
    output::survive_file_size_limit();
    match run(&arguments) {
        Ok(status) => status.code(),
        Err(error) => {
            say!("{error}");
            2
        }
    }
}

/// The command inside another program: exit status, and what it would have printed.
///
/// # Errors
/// The sentence of wrong usage or bad input, for which the command has exit status 2.
pub fn call(arguments: &[String]) -> Result<(u8, Vec<u8>), String> {
    let named = std::iter::once("schedlab").chain(arguments.iter().map(String::as_str));
    let arguments = Arguments::try_parse_from(named).map_err(|error| error.to_string())?;
    let (result, printed) = output::capture(|| run(&arguments));
    result.map(|status| (status.code(), printed)).map_err(|error| error.to_string())
}

/// From now on runs in progress in other threads end at their next progress report.
pub fn cancel(on: bool) {
    progress::cancel(on);
}

fn run(arguments: &Arguments) -> Result<error::Status, error::Error> {
    let result = execute(arguments);
    for warning in schedlab::kernels::take_warnings() {
        say!("{warning}");
    }
    result
}

fn execute(arguments: &Arguments) -> Result<error::Status, error::Error> {
    match &arguments.verb {
        Verb::Compare(args) => command::compare::compare(args),
        Verb::Run(args) => command::compare::run(args),
        Verb::Bisect(args) => command::bisect::run(args),
        Verb::Tune(args) => command::tune::run(args),
        Verb::Sweep(args) => command::sweep::sweep(args),
        Verb::Bench(args) => command::bench::run(args),
        Verb::Scenarios(args) => command::scenarios::list(args),
        Verb::New(args) => command::scenarios::new(args),
        Verb::Reproduce(args) => command::reproduce::run(args),
        Verb::Trace(args) => command::trace::run(args),
        Verb::Why(args) => command::why::run(args),
        Verb::Diff(args) => command::diff::run(args),
        Verb::View(args) => command::view::run(args),
        Verb::Sched(args) => command::sched::run(args),
        Verb::Detect(args) => command::detect::run(args),
        Verb::Audit(args) => command::audit::run(args),
        Verb::Replay(args) => command::replay::run(args),
        Verb::Record(args) => command::record::run(args),
        Verb::Measure(args) => command::measure::run(args),
        Verb::Features(args) => command::features::run(args),
        Verb::Explain(args) => command::explain::run(args),
        Verb::Topo(args) => command::topo::run(args),
        Verb::Lockstep(args) => command::lockstep::run_both(args),
        Verb::Kernel(verb) => command::kernel::run(verb),
        Verb::Completions(args) => command::shell::completions(args),
        Verb::Man(args) => command::shell::man(args),
    }
}
