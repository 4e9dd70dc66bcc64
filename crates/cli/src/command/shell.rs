//! `schedlab completions` and `schedlab man`.

use clap::CommandFactory;
use serde_json::json;

use crate::args::{Arguments, Completions, Man};
use crate::error::{Error, Status};
use crate::output::{self, Format};

/// Prints completions for a shell.
pub fn completions(args: &Completions) -> Result<Status, Error> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Arguments::command(), "schedlab", &mut text);
    print("completions", &text, args.format)
}

/// Prints the man page: the command, then each verb.
pub fn man(args: &Man) -> Result<Status, Error> {
    let mut command = Arguments::command();
    command.build();
    let mut text = Vec::new();
    let mut render = |command: &clap::Command| clap_mangen::Man::new(command.clone()).render(&mut text);
    render(&command).expect("a vector takes all");
    for verb in command.get_subcommands().filter(|v| v.get_name() != "help") {
        render(verb).expect("a vector takes all");
    }
    print("man", &text, args.format)
}

fn print(what: &str, text: &[u8], format: Format) -> Result<Status, Error> {
    match format {
        Format::Text => output::print(|out| out.write_all(text))?,
        Format::Json => output::print_json(&json!({ what: String::from_utf8_lossy(text) }))?,
    }
    Ok(Status::Done)
}
