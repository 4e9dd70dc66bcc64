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

/// Prints the man page: the command, then each subcommand with its options, including reports. Or writes a page for
/// each.
pub fn man(args: &Man) -> Result<Status, Error> {
    let mut command = Arguments::command();
    command.build();
    let mut pages = Vec::new();
    page(&command, "schedlab", &mut pages);
    if let Some(folder) = &args.output {
        std::fs::create_dir_all(folder).map_err(|error| Error::file(folder, &error))?;
        for (name, text) in &pages {
            output::write(Some(&folder.join(format!("{name}.1"))), |out| out.write_all(text))?;
        }
        say!("wrote {} pages to {}", pages.len(), folder.display());
        return Ok(Status::Done);
    }
    let text: Vec<u8> = pages.into_iter().flat_map(|(_, text)| text).collect();
    print("man", &text, args.format)
}

/// The page of a command and its subcommands.
fn page(command: &clap::Command, name: &str, pages: &mut Vec<(String, Vec<u8>)>) {
    let mut text = Vec::new();
    // clap keeps names for as long as the program runs.
    let title = command.clone().name(&*Box::leak(name.to_owned().into_boxed_str()));
    clap_mangen::Man::new(title).render(&mut text).expect("a vector takes all");
    pages.push((name.to_owned(), text));
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        page(verb, &format!("{name}-{}", verb.get_name()), pages);
    }
}

fn print(what: &str, text: &[u8], format: Format) -> Result<Status, Error> {
    match format {
        Format::Text => output::print_as_is(|out| out.write_all(text))?,
        Format::Json => output::print_json(&json!({ what: String::from_utf8_lossy(text) }))?,
    }
    Ok(Status::Done)
}
