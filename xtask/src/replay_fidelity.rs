//! `cargo xtask replay-fidelity`: each recording replayed on its own machine, as a table.
//!
//! Writes the section between two marks of `docs/fidelity.md`; the test holds what must come back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Cursor;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use schedlab::audit::{GroupFiles, Groups, apply_features, apply_tunables, hints_of_command};
use schedlab::replay::{Fidelity, Form, Hears, Line, Listener, Wakers};
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
    let mut folders = recordings()?;
    folders.retain(|folder| only.is_empty() || only.iter().any(|word| name(folder).contains(word)));
    let found: Vec<(String, Fidelity)> = folders
        .par_iter()
        .map(|folder| Ok((name(folder), fidelity(folder, RUNS)?)))
        .collect::<Result<_, String>>()?;
    let within = found.iter().filter(|(_, fidelity)| fidelity.outside().is_empty()).count();
    let mut text = format!("{within} of {} recordings come back within all goals.\n\n", found.len());
    text += &by_load(&found);
    for (at, (name, fidelity)) in found.iter().enumerate() {
        let (head, row) = row(name, fidelity);
        if at == 0 {
            text += &head;
        }
        text += &row;
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

/// Folders with a recording: `traces/KERNEL/MACHINE/LOAD`.
fn recordings() -> Result<Vec<PathBuf>, String> {
    let mut folders = Vec::new();
    for kernel in folders_in(&source::root().join("traces"))? {
        for machine in folders_in(&kernel)? {
            folders.extend(folders_in(&machine)?.into_iter().filter(|folder| trace_in(folder).is_some()));
        }
    }
    Ok(folders)
}

fn name(folder: &Path) -> String {
    folder.strip_prefix(source::root().join("traces")).unwrap_or(folder).display().to_string()
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

fn fidelity(folder: &Path, runs: u32) -> Result<Fidelity, String> {
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
    let group = |name: &str| fs::read_to_string(folder.join("facts").join(name)).unwrap_or_default();
    let groups = Groups::read(&GroupFiles {
        before: &group("groups-before.txt"),
        after: &group("groups-after.txt"),
        cgroups: &group("cgroups.txt"),
        cgroups_after: &group("cgroups-after.txt"),
        sysctl: &text("sysctl.txt"),
    });
    recorded.known.members(groups.unwrap_or_default().0);
    recorded.known.groups(&group("cgroups.txt"));
    let form = recorded.fit(&topology, &kernel, 1, 1).map_err(|e| e.to_string())?;
    recorded.fidelity(&topology, form, &kernel, 1, runs, 1, |_, _| {}).map_err(|e| e.to_string())
}

/// How many recordings of each load come back, and how often each form was chosen.
fn by_load(found: &[(String, Fidelity)]) -> String {
    let mut loads: BTreeMap<&str, Vec<&Fidelity>> = BTreeMap::new();
    for (name, fidelity) in found {
        loads.entry(name.rsplit('/').next().unwrap_or(name)).or_default().push(fidelity);
    }
    let mut text = String::from(
        "| load | come back | usual form | each latency as recorded | median | quickest tenth | none | newly idle passes held for dear | wakers owe | owe and wake sync |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (load, all) in loads {
        let count = |with: &dyn Fn(&Fidelity) -> bool| all.iter().filter(|fidelity| with(fidelity)).count();
        let within = count(&|fidelity| fidelity.outside().is_empty());
        _ = write!(
            text,
            "| {load} | {within} of {} | {} |",
            all.len(),
            count(&|fidelity| fidelity.form == Form::USUAL)
        );
        for hears in [Hears::Each, Hears::Median, Hears::Quick, Hears::AtOnce] {
            _ = write!(text, " {} |", count(&|fidelity| fidelity.form.hears == hears));
        }
        _ = writeln!(
            text,
            " {} | {} | {} |",
            count(&|fidelity| fidelity.form.newidle_us > 0),
            count(&|fidelity| fidelity.form.wakers == Wakers::Owe),
            count(&|fidelity| fidelity.form.wakers == Wakers::OweSync)
        );
    }
    text + "\n"
}

/// The head of the table, and a row of it.
fn row(name: &str, fidelity: &Fidelity) -> (String, String) {
    let lines = || fidelity.counts.iter().chain(&fidelity.others);
    let mut head = String::from("| recording |");
    let mut row = format!("| {name} |");
    for line in lines() {
        _ = write!(head, " {} |", line.what);
        row += &cell(line);
    }
    let within = if fidelity.outside().is_empty() { "yes" } else { "no" };
    _ = writeln!(row, " {:.1} % | {within} |", fidelity.busy_off() * 100.0);
    _ = writeln!(
        head,
        " busy time per task off by | within the goals |\n|{}",
        "---|".repeat(lines().count() + 3)
    );
    (head, row)
}

/// Both values, with the ratio where it is outside the goal: in bold, or slanted if the recorded
/// value lies among those of the seeds.
fn cell(line: &Line) -> String {
    let Line { recorded, replayed, off, within, .. } = line;
    if *within {
        format!(" {recorded:.0}, {replayed:.0} |")
    } else if line.is_in_spread() {
        format!(" {recorded:.0}, {replayed:.0} (*{:.2}*) |", off + 1.0)
    } else {
        format!(" {recorded:.0}, {replayed:.0} (**{:.2}**) |", off + 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loads whose switches do not come back within a tenth; docs/fidelity.md says why.
    const SWITCHES_OFF: [&str; 6] =
        ["pipes", "hogs", "groups/mixed", "io-loop", "-scan", "6.1/2x2x4/stream-perllc-2"];

    /// The recording whose wake-ups do not; likewise.
    const WAKEUPS_OFF: &str = "6.1/2x2x2x2-smt-whitebox/sleepers-scan";

    #[test]
    fn work_and_wakeups_come_back_and_switches_in_most() {
        let folders = recordings().unwrap();
        let all: Vec<(String, Fidelity)> =
            folders.par_iter().map(|folder| (name(folder), fidelity(folder, 1).unwrap())).collect();
        assert!(all.len() >= 218, "{} recordings were found", all.len());
        let mut within = 0;
        for (name, fidelity) in &all {
            let busy_off = fidelity.busy_off();
            assert!(busy_off <= 0.02, "{name}: busy time of a task is off by {:.1} %", busy_off * 100.0);
            within += usize::from(fidelity.outside().is_empty());
            for line in &fidelity.counts {
                let held = match line.what.as_str() {
                    "wake-ups of sleepers" => name != WAKEUPS_OFF,
                    "switches" => !SWITCHES_OFF.iter().any(|load| name.contains(load)),
                    _ => false,
                };
                assert!(line.within || !held, "{name}: {line:?}");
            }
        }
        assert!(within * 100 >= all.len() * 68, "{within} of {} are within all goals", all.len());
    }
}
