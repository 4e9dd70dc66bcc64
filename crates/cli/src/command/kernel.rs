//! `schedlab kernel`: kernel trees that are built into libraries, and the cache of builds.

use std::time::SystemTime;

use schedlab::kernel_tree::{Cache, Kept};
use schedlab::kernels::Source;
use serde_json::json;

use crate::args::{KernelBuild, KernelList, KernelRemove, KernelVerb};
use crate::error::{Error, Status};
use crate::output::{self, Format};

/// Runs the subcommand.
pub fn run(verb: &KernelVerb) -> Result<Status, Error> {
    match verb {
        KernelVerb::Build(args) => build(args),
        KernelVerb::Identify(args) => super::lockstep::run_identify(args),
        KernelVerb::List(args) => list(args),
        KernelVerb::Remove(args) => remove(args),
    }
}

fn build(args: &KernelBuild) -> Result<Status, Error> {
    let source = Source::open(&args.tree).map_err(Error::new)?;
    let built = source.build(&mut |step| eprintln!("{step}"))?;
    match args.format {
        Format::Json => output::print_json(&json!({
            "key": built.key, "release": built.release, "tree": built.tree, "library": built.library,
        }))?,
        Format::Text => output::print(|out| {
            writeln!(out, "Linux {} is built: {} ({})", built.release, built.key, built.library.display())
        })?,
    }
    Ok(Status::Done)
}

fn list(args: &KernelList) -> Result<Status, Error> {
    let all = Cache::of_user()?.list();
    match args.format {
        Format::Json => {
            let rows = all.iter().map(|Kept { built, size, .. }| {
                json!({"key": built.key, "release": built.release, "size": size, "tree": built.tree, "library": built.library})
            });
            output::print_json(&rows.collect::<Vec<_>>())?;
        }
        Format::Text => output::print(|out| {
            if all.is_empty() {
                return writeln!(out, "no kernel is built; `schedlab kernel build DIR` builds one");
            }
            writeln!(out, "{:<16} {:>10} {:>7} {:>9}  tree", "key", "release", "MB", "days ago")?;
            for Kept { built, size, used } in &all {
                let age = SystemTime::now().duration_since(*used).unwrap_or_default().as_secs() / 86400;
                let mb = *size as f64 / 1e6;
                writeln!(
                    out,
                    "{:<16} {:>10} {mb:>7.1} {age:>9}  {}",
                    built.key,
                    built.release,
                    built.tree.display()
                )?;
            }
            Ok(())
        })?,
    }
    Ok(Status::Done)
}

fn remove(args: &KernelRemove) -> Result<Status, Error> {
    if args.kernel.is_none() && !args.all {
        return Err(Error::new(
            "say which kernel: its key, its release, or --all; `schedlab kernel list` shows them",
        ));
    }
    let count = Cache::of_user()?.remove(args.kernel.as_deref())?;
    output::print(|out| writeln!(out, "{count} removed"))?;
    Ok(Status::Done)
}
