//! `schedlab lockstep`: a kernel tree's own scheduler compared with our rules, and `schedlab kernel identify`: which
//! rules it has.

use std::time::Instant;

use schedlab::kernel_tree::Library;
use schedlab::kernels::Source;
use schedlab::lockstep::{Ended, Length, Loads, Plan, Story, identify, nearest, prepared, run, shrink};
use serde_json::json;

use crate::args::{KernelIdentify, Lockstep};
use crate::error::{Error, Status};
use crate::machine::machine;
use crate::output::{self, Format};
use crate::scenario::tell_stand_in;

/// Runs both sides and prints what differs.
pub fn run_both(args: &Lockstep) -> Result<Status, Error> {
    if args.tasks == 0 || args.steps == 0 {
        return Err(Error::new("a run needs at least one task and one step: --tasks and --steps"));
    }
    let source = Source::open(&args.tree).map_err(Error::new)?;
    let tree = &source.tree;
    let kernel = args.kernel.clone().unwrap_or_else(|| nearest(tree));
    let rules = prepared(&kernel)?;
    tell_stand_in(&rules);
    let loads: Loads = args.load.parse().map_err(Error::new)?;
    loads.fit(tree).map_err(Error::new)?;
    let machine = machine(&args.machine)?.topology;
    let built = source.build(&mut |step| eprintln!("{step}"))?;
    let plan = Plan {
        library: Library::load(&built)?,
        rules,
        machine,
        tasks: args.tasks,
        steps: args.steps,
        seed: args.seed,
        loads,
    };
    let began = Instant::now();
    let ended = run(&plan).map_err(|fault| Error::new(fault.to_string()))?;
    eprintln!("{:.1} s", began.elapsed().as_secs_f64());
    let story = (!ended.equal()).then(|| Story::of(&plan, &shrink(&plan, &ended, args.shrink))).flatten();
    match args.format {
        Format::Json => output::print_json(&as_json(&built.release, &kernel, &plan, &ended))?,
        Format::Text => output::print(|out| {
            let counts = ended.counts;
            writeln!(
                out,
                "Linux {} and {kernel} on {}, {} tasks, load {}, seed {}: {}",
                built.release,
                args.machine,
                plan.tasks,
                plan.loads,
                plan.seed,
                if ended.equal() { "equal" } else { "different" }
            )?;
            writeln!(
                out,
                "{} steps to {:.3} s: {} wake-ups, {} forks, {} picks, {} balance passes, {} comparisons of the whole state",
                counts.steps,
                ended.at as f64 / 1e9,
                counts.wakeups,
                counts.forks,
                counts.picks,
                counts.passes,
                counts.states
            )?;
            if ended.warnings.0 > 0 {
                writeln!(out, "the kernel warned {} times, first at {}", ended.warnings.0, ended.warnings.1)?;
            }
            match &story {
                Some(story) => write!(out, "{story}"),
                None => Ok(()),
            }
        })?,
    }
    Ok(if ended.equal() { Status::Done } else { Status::Missed })
}

fn as_json(release: &str, kernel: &str, plan: &Plan, ended: &Ended) -> serde_json::Value {
    let counts = ended.counts;
    json!({
        "tree": release, "kernel": kernel, "machine": plan.machine.name, "tasks": plan.tasks,
        "seed": plan.seed, "load": plan.loads.to_string(),
        "steps": counts.steps, "wakeups": counts.wakeups, "forks": counts.forks, "picks": counts.picks,
        "passes": counts.passes, "states": counts.states, "differ": ended.differ, "after": ended.at_work,
    })
}

/// Looks for the rules of a tree.
pub fn run_identify(args: &KernelIdentify) -> Result<Status, Error> {
    let source = Source::open(&args.tree).map_err(Error::new)?;
    let tree = &source.tree;
    let built = source.build(&mut |step| eprintln!("{step}"))?;
    let begin = args.kernel.clone().unwrap_or_else(|| nearest(tree));
    let library = Library::load(&built)?;
    let found = identify(&library, &begin, args.steps, &mut |helps| eprintln!("{helps}"));
    let found = found.map_err(|error| Error::new(error.to_string()))?;
    match args.format {
        Format::Json => {
            let runs = found
                .runs
                .iter()
                .map(|run| json!({"run": run.name, "equal": run.equal, "differs": run.differs}));
            output::print_json(&json!({
                "tree": built.release, "begun_with": begin, "kernel": found.kernel, "equal": found.equal(),
                "rules_tried": found.tried, "runs": runs.collect::<Vec<_>>(),
            }))?;
        }
        Format::Text => output::print(|out| {
            let verdict = if found.equal() { "as" } else { "nearest to" };
            writeln!(out, "Linux {} is {verdict} {}", built.release, found.kernel)?;
            for Length { name, equal, differs } in &found.runs {
                match differs {
                    None => writeln!(out, "  {name}: equal, {equal} steps")?,
                    Some(differs) => writeln!(out, "  {name}: equal for {equal} steps, then {differs}")?,
                }
            }
            writeln!(out, "A rule that these runs do not turn on is as {begin} has it.")
        })?,
    }
    Ok(if found.equal() { Status::Done } else { Status::Missed })
}
