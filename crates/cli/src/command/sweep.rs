//! `schedlab sweep`: thousands of runs of one scenario.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schedlab::sched::Kernel;
use schedlab_sweep::{
    Axis, Cache, Cluster, Draft, Estimate, Plan, ReportOptions, RunOptions, Sample, Shard, Store, Summary,
    estimate, report, run, spread_points, submit,
};
use serde_json::json;

use crate::args::sweep::{
    Engine, Points, ReportFormat, Sweep, SweepGather, SweepReport, SweepRun, SweepStatus, SweepSubmit,
    SweepVerb,
};
use crate::error::{Error, Status};
use crate::files::{self, Folder};
use crate::output::{self, Format};
use crate::progress::Progress;
use crate::scenario;

/// How long trial points run for an estimate.
const TRIAL: Duration = Duration::from_secs(3);
/// Number of points that a plan shows.
const SHOWN: u64 = 10;

/// Runs the subcommand.
pub fn sweep(args: &Sweep) -> Result<Status, Error> {
    match &args.verb {
        SweepVerb::Plan(args) => show(&plan_of(&args.what, &args.points)?, args.format),
        SweepVerb::Run(args) => go(args),
        SweepVerb::Status(args) => status(args),
        SweepVerb::Gather(args) => gather(args),
        SweepVerb::Report(args) => tell(args),
        SweepVerb::Submit(args) => write_job(args),
    }
}

/// The plan of a folder, or of a file and the command line.
fn plan_of(what: &Path, points: &Points) -> Result<Plan, Error> {
    if what.is_dir() {
        return Ok(opened(what, points)?.plan().clone());
    }
    let name = what.display().to_string();
    let text = match scenario::embedded(what) {
        Some(text) => text.to_owned(),
        None => files::read(what)?,
    };
    let folder = Folder::of(what);
    let mut draft = if Draft::is_plan(&text) {
        Draft::parse(&name, &text, &folder)?
    } else {
        let text = if scenario::is_rt_app(what) { around_rt_app(what, points)? } else { text };
        Draft {
            file: name,
            text,
            axes: Vec::new(),
            sample: Sample::Grid,
            seeds: None,
            seed: None,
            chunk: None,
        }
    };
    for text in &points.vary {
        let axis = Axis::parse(text).map_err(|error| Error::new(format!("--vary {error}")))?;
        // The command line takes precedence for a parameter.
        draft.axes.retain(|known| known.path != axis.path);
        draft.axes.push(axis);
    }
    if let Some(sample) = &points.sample {
        draft.sample = Sample::parse(sample).map_err(|error| Error::new(format!("--sample: {error}")))?;
    }
    draft.seeds = points.seeds.or(draft.seeds);
    draft.seed = points.seed.or(draft.seed);
    draft.chunk = points.chunk.or(draft.chunk);
    let plan = Plan::new(draft, &folder)?;
    plan.kernels
        .iter()
        .flat_map(|name| Kernel::parse(name))
        .for_each(|kernel| scenario::tell_stand_in(&kernel));
    Ok(plan)
}

/// A scenario that runs an rt-app file.
fn around_rt_app(what: &Path, points: &Points) -> Result<String, Error> {
    if !points.vary.iter().any(|text| text.trim_start().starts_with("machine=")) {
        return Err(Error::new(format!(
            "{}: an rt-app file names no machine; give --vary machine=zen3-2s",
            what.display()
        )));
    }
    let name = what.file_name().unwrap_or_default().to_string_lossy();
    let newest = schedlab::sched::PRESETS.last().expect("there are kernels");
    Ok(format!("machine = \"1x1x1x1\"\nkernels = [\"{newest}\"]\n[workload]\nrt-app = {}\n", json!(name)))
}

fn opened(folder: &Path, points: &Points) -> Result<Store, Error> {
    let Points { vary, seeds, sample, seed, chunk } = points;
    if !vary.is_empty() || seeds.is_some() || sample.is_some() || seed.is_some() || chunk.is_some() {
        return Err(Error::new(format!(
            "{}: the folder of a sweep has its plan already; name the scenario and another --output to run another one",
            folder.display()
        )));
    }
    Ok(Store::open(folder)?)
}

fn show(plan: &Plan, format: Format) -> Result<Status, Error> {
    let found = estimate(plan, TRIAL);
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let all = found.each.mul_f64(plan.points() as f64 / cores as f64);
    let bytes = found.chunk_bytes * plan.chunks();
    let shown: Vec<String> =
        spread_points(plan, SHOWN).iter().map(|&index| plan.point(index).to_string()).collect();
    match format {
        Format::Json => output::print_json(&json!({
            "points": plan.points(),
            "combinations": plan.combinations(),
            "rows": plan.rows.len(),
            "kernels": plan.kernels,
            "chunks": plan.chunks(),
            "chunk": plan.chunk,
            "tried": found.tried,
            "seconds_each": found.each.as_secs_f64(),
            "seconds": all.as_secs_f64(),
            "at_least": found.at_least,
            "cores": cores,
            "bytes": bytes,
            "engine": plan.engine,
            "shown": shown,
        }))?,
        Format::Text => output::print(|out| {
            writeln!(out, "{}", count(plan))?;
            writeln!(out, "{}", estimated(&found, all, cores, bytes))?;
            if let Some((index, error)) = &found.failed {
                writeln!(out, "a point that was tried failed: {}: {error}", plan.point(*index))?;
            }
            for point in &shown {
                writeln!(out, "  {point}")?;
            }
            let left = plan.points() - shown.len() as u64;
            if left > 0 { writeln!(out, "  and {left} more") } else { Ok(()) }
        })?,
    }
    Ok(Status::Done)
}

fn count(plan: &Plan) -> String {
    let number = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let repeats = plan.points()
        / (plan.combinations().unwrap_or(1) * (plan.rows.len() * plan.kernels.len()) as u64).max(1);
    format!(
        "{}: {} ({}), {}, {}, {}; {} of up to {}",
        number(plan.points(), "point"),
        number(plan.combinations().unwrap_or(1), "combination"),
        plan.sample,
        number(plan.rows.len() as u64, "row"),
        number(plan.kernels.len() as u64, "kernel"),
        number(repeats, "seed"),
        number(plan.chunks(), "file"),
        number(u64::from(plan.chunk), "point"),
    )
}

fn estimated(found: &Estimate, all: Duration, cores: usize, bytes: u64) -> String {
    let all = indicatif::HumanDuration(all);
    let size = indicatif::HumanBytes(bytes);
    match found.at_least {
        true => format!(
            "the first point tried took longer than {TRIAL:?}: all take at least {all} on {cores} cores"
        ),
        false => format!(
            "{} points tried, {:.1} ms each: about {all} on {cores} cores of this machine, {size} of results",
            found.tried,
            found.each.as_secs_f64() * 1e3
        ),
    }
}

fn go(args: &SweepRun) -> Result<Status, Error> {
    if args.dry_run {
        return show(&plan_of(&args.what, &args.points)?, args.format);
    }
    let environment = |name: &str| std::env::var(name).ok();
    let shard = args.shard.as_deref().map_or(Ok(Shard::ALL), |text| Shard::parse(text, environment))?;
    let store = if args.what.is_dir() {
        if args.output.as_ref().is_some_and(|output| *output != args.what) {
            return Err(Error::new("a sweep continues in its folder; --output starts another one"));
        }
        opened(&args.what, &args.points)?
    } else {
        let default = || PathBuf::from(args.what.file_stem().unwrap_or_default()).with_extension("sweep");
        let folder = args.output.clone().unwrap_or_else(default);
        Store::create(&folder, plan_of(&args.what, &args.points)?)?
    };
    let limit = args.cache_limit.saturating_mul(1 << 20);
    let cache = match (&args.cache, args.no_cache) {
        (_, true) => None,
        (Some(folder), _) => Some(Cache::new(folder, limit)),
        (None, _) => default_cache().map(|folder| Cache::new(&folder, limit)),
    };
    let options = RunOptions { threads: args.threads, shard, retry: args.retry, cache };
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    output::on_interrupt(move || asked.store(true, Ordering::Relaxed));
    let progress = Progress::new("sweep");
    let summary = run(&store, options, &mut |at| {
        if at.total > 0 {
            progress.at(at.done as usize, at.total as usize);
        }
        !stop.load(Ordering::Relaxed)
    })?;
    drop(progress);
    tell_summary(&store, &summary, args.format)?;
    Ok(match () {
        () if summary.stopped => Status::Interrupted,
        () if summary.failed + summary.failed_before > 0 => Status::Missed,
        () => Status::Done,
    })
}

fn tell_summary(store: &Store, summary: &Summary, format: Format) -> Result<(), Error> {
    let folder = store.folder().display();
    if format == Format::Json {
        let failures = summary.failures.iter().map(|f| json!({ "point": f.point, "error": f.error }));
        return output::print_json(&json!({
            "folder": folder.to_string(),
            "points": store.plan().points(),
            "done": summary.done,
            "found": summary.found,
            "skipped": summary.skipped,
            "failed": summary.failed,
            "failed_before": summary.failed_before,
            "stopped": summary.stopped,
            "failures": failures.collect::<Vec<_>>(),
        }));
    }
    for failure in &summary.failures {
        say!("failed: {}: {}", failure.point, failure.error);
    }
    let more = summary.failed - summary.failures.len() as u64;
    if more > 0 {
        say!("and {more} more failed; `schedlab sweep status {folder} --most 1000` lists them");
    }
    output::print(|out| {
        let (done, found, skipped) = (summary.done, summary.found, summary.skipped);
        write!(out, "{folder}: {done} points done")?;
        if found > 0 {
            write!(out, ", {found} of them found in the cache or left by an earlier run")?;
        }
        if skipped > 0 {
            write!(out, ", {skipped} were done before")?;
        }
        match summary.failed + summary.failed_before {
            0 => {}
            failed => write!(out, ", {failed} failed (--retry runs them again)")?,
        }
        if summary.stopped {
            write!(out, "; stopped early, `schedlab sweep run {folder}` goes on")?;
        }
        writeln!(out)
    })
}

/// The user's cache folder.
fn default_cache() -> Option<PathBuf> {
    let given = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = given("XDG_CACHE_HOME").or_else(|| given("HOME").map(|home| home.join(".cache")))?;
    Some(folder.join("schedlab").join("points"))
}

fn status(args: &SweepStatus) -> Result<Status, Error> {
    let store = Store::open(&args.folder)?;
    let status = store.status();
    let failures = if status.failed > 0 { store.failures(args.most)? } else { Vec::new() };
    let named = |index: u64| store.plan().point(index).to_string();
    match args.format {
        Format::Json => {
            let failures =
                failures.iter().map(|(index, error)| json!({ "point": named(*index), "error": error }));
            let damaged = status.damaged.iter().map(|path| path.display().to_string());
            output::print_json(&json!({
                "points": status.points,
                "done": status.done,
                "in_parts": status.in_parts,
                "failed": status.failed,
                "bytes": status.bytes,
                "damaged": damaged.collect::<Vec<_>>(),
                "failures": failures.collect::<Vec<_>>(),
            }))?;
        }
        Format::Text => output::print(|out| {
            let percent = status.done as f64 * 100.0 / status.points.max(1) as f64;
            let size = indicatif::HumanBytes(status.bytes);
            write!(out, "{} of {} points done ({percent:.0} %), {size}", status.done, status.points)?;
            if status.in_parts > 0 {
                write!(out, "; {} more lie in parts of files that are not whole yet", status.in_parts)?;
            }
            writeln!(out)?;
            for path in &status.damaged {
                writeln!(out, "{}: no whole file of this sweep; the next run makes it anew", path.display())?;
            }
            if status.failed > 0 {
                writeln!(out, "{} failed; --retry runs them again", status.failed)?;
            }
            for (index, error) in &failures {
                writeln!(out, "  {}: {error}", named(*index))?;
            }
            Ok(())
        })?,
    }
    Ok(if status.failed == 0 { Status::Done } else { Status::Missed })
}

fn gather(args: &SweepGather) -> Result<Status, Error> {
    let store = Store::open(&args.folder)?;
    let beside = || {
        let name = args.folder.file_name().unwrap_or_default().to_string_lossy();
        args.folder.with_file_name(format!("{name}.parquet"))
    };
    let file = args.output.clone().unwrap_or_else(beside);
    let rows = store.gather(&file)?;
    let (points, path) = (store.plan().points(), file.display());
    match args.format {
        Format::Json => {
            output::print_json(&json!({ "file": path.to_string(), "rows": rows, "points": points }))?
        }
        Format::Text => output::print(|out| writeln!(out, "{path}: {rows} rows of {points} points"))?,
    }
    Ok(Status::Done)
}

fn tell(args: &SweepReport) -> Result<Status, Error> {
    let store = Store::open(&args.folder)?;
    let options = ReportOptions { metric: args.metric.clone(), against: args.against.clone() };
    let report = report(&store, &options)?;
    if let Some(path) = &args.html {
        let page = report.page(&args.folder.display().to_string(), args.most);
        output::write(Some(path), |out| page.write(out))?;
    }
    let text = match args.format {
        ReportFormat::Text => report.text(args.most),
        ReportFormat::Csv => report.csv(),
        ReportFormat::Json => serde_json::to_string_pretty(&report).expect("JSON of plain data") + "\n",
    };
    let output = args.output.as_deref();
    match args.format {
        ReportFormat::Text => output::write_report(output, |out| out.write_all(text.as_bytes()))?,
        _ => output::write(output, |out| out.write_all(text.as_bytes()))?,
    }
    Ok(Status::Done)
}

/// The file that starts this command. As a part of the Python package the process is an interpreter, and the command is the
/// script that it was given.
fn own_program() -> std::io::Result<PathBuf> {
    let process = std::env::current_exe()?;
    let is_schedlab = |path: &Path| path.file_stem().is_some_and(|stem| stem == "schedlab");
    if is_schedlab(&process) {
        return Ok(process);
    }
    match std::env::args_os().map(PathBuf::from).find(|argument| is_schedlab(argument)) {
        Some(script) => std::path::absolute(script),
        None => Ok(process),
    }
}

fn write_job(args: &SweepSubmit) -> Result<Status, Error> {
    let store = Store::open(&args.folder)?;
    let (cluster, command) = match args.engine {
        Engine::Slurm => {
            let own = own_program().map_err(|error| Error::new(format!("schedlab itself: {error}")))?;
            (Cluster::Slurm, own.display().to_string())
        }
        Engine::K8s => (Cluster::Kubernetes, "schedlab".to_owned()),
    };
    let text = submit(&store, cluster, args.shards, args.cpus, &command, &args.image)?;
    match args.format {
        Format::Json => output::print_json(&json!({ "shards": args.shards, "file": text }))?,
        Format::Text => output::write(args.output.as_deref(), |out| out.write_all(text.as_bytes()))?,
    }
    Ok(Status::Done)
}
