//! `cargo xtask replay-fidelity`: each recording replayed on its own machine, as a table.
//!
//! Writes the section between two marks of `docs/fidelity.md`.

use std::fmt::Write as _;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use schedlab::audit::{apply_features, apply_tunables, hints_of_command};
use schedlab::replay::{Fidelity, Line, Listener};
use schedlab::sched::Kernel;
use schedlab::topology::{SavedSysfs, Topology};
use schedlab::trace::read::{feed, open};

use crate::source;

const BEGIN: &str = "<!-- replay: begin, written by `cargo xtask replay-fidelity` -->";
const END: &str = "<!-- replay: end -->";

/// Seeds whose mean is printed.
const RUNS: u32 = 5;

/// Replays all recordings and writes the table; with words, prints those alone whose path has one of them.
///
/// # Errors
/// A file that cannot be read or written, or a replay that cannot be made.
pub fn run(only: &[String]) -> Result<(), String> {
    let root = source::root().join("traces");
    let mut folders = Vec::new();
    for kernel in folders_in(&root)? {
        for machine in folders_in(&kernel)? {
            folders.extend(folders_in(&machine)?.into_iter().filter(|folder| trace_in(folder).is_some()));
        }
    }
    let name = |folder: &PathBuf| folder.strip_prefix(&root).unwrap_or(folder).display().to_string();
    folders.retain(|folder| only.is_empty() || only.iter().any(|word| name(folder).contains(word)));
    let rows: Vec<Result<String, String>> =
        folders.par_iter().map(|folder| Ok(row(&name(folder), &fidelity(folder)?))).collect();
    let mut text = String::from(
        "| recording | switches | involuntary | wake-ups | migrations | new tasks | elapsed ms | latency p50 us | latency p99 us | busy time per task off by | within |\n|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        text += &row?;
    }
    if !only.is_empty() {
        print!("{text}");
        return Ok(());
    }
    let path = source::root().join("docs/fidelity.md");
    let docs = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let (before, rest) = docs.split_once(BEGIN).ok_or(format!("docs/fidelity.md has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).ok_or(format!("docs/fidelity.md has no line {END}"))?;
    fs::write(&path, format!("{before}{BEGIN}\n\n{text}\n{END}{after}")).map_err(|e| e.to_string())
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut folders: Vec<PathBuf> = entries.flatten().map(|e| e.path()).filter(|p| p.is_dir()).collect();
    folders.sort();
    Ok(folders)
}

fn trace_in(folder: &Path) -> Option<PathBuf> {
    ["trace.txt.gz", "trace.dat.gz", "trace.dat"]
        .map(|name| folder.join(name))
        .into_iter()
        .find(|p| p.is_file())
}

fn fidelity(folder: &Path) -> Result<Fidelity, String> {
    let path = trace_in(folder).ok_or_else(|| format!("{}: no trace", folder.display()))?;
    let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let machine = folder.parent().ok_or_else(|| wrong(&"no machine"))?;
    let kernel = machine.parent().ok_or_else(|| wrong(&"no kernel"))?;
    let text = |name: &str| fs::read_to_string(machine.join("facts").join(name)).unwrap_or_default();
    let saved = SavedSysfs::from_lines("topology.txt", &text("topology.txt")).map_err(|e| wrong(&e))?;
    let machine_name = machine.file_name().unwrap_or_default().to_string_lossy();
    let topology = Topology::from_sysfs(&machine_name, &saved).map_err(|e| wrong(&e))?;
    let mut kernel =
        Kernel::parse(&kernel.file_name().unwrap_or_default().to_string_lossy()).map_err(|e| wrong(&e))?;
    apply_features(&mut kernel, &text("sched_features.txt"));
    apply_tunables(&mut kernel, &text("debug_sched.txt"), topology.online().weight());
    let bytes = fs::read(&path).map_err(|e| wrong(&e))?;
    let spool = || -> std::io::Result<Cursor<Vec<u8>>> { Ok(Cursor::default()) };
    let reader = open(Cursor::new(bytes), spool).map_err(|e| wrong(&e))?;
    let mut listener = Listener::new();
    feed(reader, &mut listener).map_err(|e| wrong(&e))?;
    let mut recorded = listener.finish(&path.display().to_string()).map_err(|e| e.to_string())?;
    let command = fs::read_to_string(folder.join("cmd.txt")).unwrap_or_default();
    recorded.affinity = hints_of_command(&command, topology.nr_cpus());
    let own = recorded.own_machine(topology);
    recorded.fidelity(&own, &kernel, 1, RUNS, 1, |_, _| {}).map_err(|e| e.to_string())
}

fn row(name: &str, fidelity: &Fidelity) -> String {
    let mut row = format!("| {name} |");
    for line in fidelity.counts.iter().chain(&fidelity.others) {
        row += &cell(line);
    }
    let within = if fidelity.outside().is_empty() { "yes" } else { "no" };
    _ = writeln!(row, " {:.1} % | {within} |", fidelity.busy_off() * 100.0);
    row
}

/// Both values, with the ratio in bold where it is outside the goal.
fn cell(line: &Line) -> String {
    let Line { recorded, replayed, off, within, .. } = line;
    if *within {
        format!(" {recorded:.0}, {replayed:.0} |")
    } else {
        format!(" {recorded:.0}, {replayed:.0} (**{:.2}**) |", off + 1.0)
    }
}
