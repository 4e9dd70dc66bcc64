//! The `schedlab` command.
//!
//! Exit status 0 done, 1 an expectation was missed or a comparison found a
//! difference that was asked about, 2 wrong usage or bad input.

mod args;
mod boot_parameters;
mod command;
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
mod trace_file;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Arguments, Verb};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    output::clean_up_on_interrupt();
    output::survive_file_size_limit();
    let result = match &arguments.verb {
        Verb::Compare(args) => command::compare::compare(args),
        Verb::Run(args) => command::compare::run(args),
        Verb::Reproduce(args) => command::reproduce::run(args),
        Verb::Trace(args) => command::trace::run(args),
        Verb::Why(args) => command::why::run(args),
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
    };
    match result {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("schedlab: {error}");
            ExitCode::from(2)
        }
    }
}
