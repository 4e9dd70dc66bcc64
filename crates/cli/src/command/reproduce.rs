//! `schedlab reproduce`: published tables beside simulated ones.

use schedlab::kernels::TREE;
use schedlab::machine::{Mechanism, Without};
use schedlab::reproduce::{Cell, Options, Published, published, reproduce};
use schedlab::sched::Kernel;

use crate::args::Reproduce;
use crate::error::{Error, Status};
use crate::output::{self, Format};
use crate::progress::Progress;
use crate::scenario::named_kernel;

/// Prints the requested tables. Exit status 1 if a table misses its minimum.
pub fn run(args: &Reproduce) -> Result<Status, Error> {
    let options = Options {
        quick: args.quick,
        runs: runs(args)?,
        without: mechanisms(&args.without)?,
        threads: args.threads,
        instead: args.instead.iter().map(|text| instead(text)).collect::<Result<_, _>>()?,
    };
    let mut cells: Vec<Cell> = Vec::new();
    let mut met = true;
    for table in tables(&args.table)? {
        let progress = Progress::new(&table.name);
        let reproduced = reproduce(&table, &options, &|done, total| progress.at(done, total))?;
        drop(progress);
        met &= reproduced.met;
        match args.format {
            // Prints each table as soon as it is ready.
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

/// `v5.18=tree:~/linux`; a kernel string may have `=` in it, so the left side ends where a kernel begins.
fn instead(text: &str) -> Result<(String, Kernel), Error> {
    let sides = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let (name, kernel) = sides
        .filter(|(_, kernel)| kernel.starts_with(TREE) || kernel.starts_with('v'))
        .find(|(name, _)| Kernel::parse(name).is_ok())
        .ok_or_else(|| {
            Error::new(format!("--instead is KERNEL=KERNEL, as in v5.18=tree:~/linux, not \"{text}\""))
        })?;
    Ok((name.to_owned(), named_kernel(kernel)?))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_that_is_replaced_ends_where_the_other_begins() {
        let (name, kernel) = instead("v6.10+preempt=static/none+hz=100=v6.12+NO_SIS_UTIL").unwrap();
        assert_eq!(
            (name.as_str(), kernel.name.as_str()),
            ("v6.10+preempt=static/none+hz=100", "v6.12+NO_SIS_UTIL")
        );
        assert!(instead("v6.12").unwrap_err().to_string().contains("KERNEL=KERNEL"));
        assert!(instead("v6.12=tree:/nowhere").unwrap_err().to_string().contains("/nowhere"));
    }
}
