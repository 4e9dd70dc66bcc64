//! `schedlab completions` and `schedlab man`.

use clap::CommandFactory;

use crate::args::{Arguments, Completions};
use crate::error::{Error, Status};
use crate::output;

/// Prints completions for a shell.
pub fn completions(args: &Completions) -> Result<Status, Error> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "schedlab", &mut text);
    output::print(|out| out.write_all(&text))?;
    Ok(Status::Done)
}

/// Prints the man page: the command, then each verb.
pub fn man() -> Result<Status, Error> {
    let mut command = Arguments::command();
    command.build();
    output::print(|out| {
        clap_mangen::Man::new(command.clone()).render(out)?;
        for verb in command.get_subcommands().filter(|v| v.get_name() != "help") {
            clap_mangen::Man::new(verb.clone()).render(out)?;
        }
        Ok(())
    })?;
    Ok(Status::Done)
}
