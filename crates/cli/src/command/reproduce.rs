//! `schedlab reproduce`: published tables beside simulated ones.

use schedlab::machine::{Mechanism, Without};
use schedlab::reproduce::{Cell, Options, Published, published, reproduce};

use crate::args::Reproduce;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::progress::Progress;

/// Prints the tables asked for. Exit status 1 when a table misses its floors.
pub fn run(args: &Reproduce) -> Result<Status, Error> {
    let options = Options {
        quick: args.quick,
        runs: runs(args)?,
        without: mechanisms(&args.without)?,
        threads: args.threads,
    };
    let mut cells: Vec<Cell> = Vec::new();
    let mut met = true;
    for table in tables(&args.table)? {
        let progress = Progress::new(&table.name);
        let reproduced = reproduce(&table, &options, &|done, total| progress.at(done, total))?;
        drop(progress);
        met &= reproduced.met;
        match args.format {
            // One table after the other, as soon as it is there.
            Format::Text => output::print(|out| writeln!(out, "{}", reproduced.text()))?,
            Format::Json => cells.extend(reproduced.cells),
        }
    }
    if args.format == Format::Json {
        output::print_json(&cells)?;
    }
    Ok(if met { Status::Done } else { Status::Missed })
}

fn tables(names: &[String]) -> Result<Vec<Published>, Error> {
    let all = published();
    if let Some(name) = names.iter().find(|name| !all.iter().any(|table| table.name == **name)) {
        let known: Vec<&str> = all.iter().map(|table| table.name.as_str()).collect();
        return Err(Error::new(format!("there is no table \"{name}\"; there are {}", known.join(", "))));
    }
    Ok(all.into_iter().filter(|table| names.is_empty() || names.contains(&table.name)).collect())
}

fn runs(args: &Reproduce) -> Result<Option<u32>, Error> {
    args.runs.map(super::compare::checked).transpose()
}

fn mechanisms(names: &[String]) -> Result<Vec<Mechanism>, Error> {
    if names.iter().any(|name| name == "all") {
        return Ok(Mechanism::TABLE.iter().map(|row| row.0).collect());
    }
    let wanted = Without::parse(&names.join(",")).map_err(|e| Error::new(format!("--without: {e}")))?;
    Ok(Mechanism::TABLE.iter().map(|row| row.0).filter(|&mechanism| wanted.is_off(mechanism)).collect())
}
