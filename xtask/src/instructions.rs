//! Instructions per dispatch: the work of a run, independent of the host and its load.
//!
//! Two tasks for each CPU run 500 us and sleep 500 us (an rt-app file, written here), and callgrind counts
//! what the whole process executes. The start is subtracted: a longer run is also counted, and
//! the difference is what is left. A dispatch is a switch to a task; a switch to idle does not count, as
//! in comparable tools. The figure per switch, including those to idle, is also printed.
//!
//! `--check` counts the lines of [`CHECKED`] and fails when one is more than 5 percent above
//! `xtask/instructions.tsv`; `--write` creates that file. Both count the `quick` profile, which the tests have built
//! anyway, in short runs, in which the load above 16 CPUs has not settled. Without either, every size is counted
//! under every kernel in its steady state and printed; `--release` counts a release build.

mod count;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::trace::NullSink;
use schedlab::units::Duration;
use schedlab::workload::RtApp;
use schedlab_sim::Simulation;

use crate::source;
use count::{Tools, load};

/// The counts when the file was written.
const FILE: &str = "xtask/instructions.tsv";

/// Allowed excess of a count over the file, percent.
const MARGIN: u64 = 5;

/// Numbers of CPUs, with their machines. The largest is one node: on four, all tasks stay where they were forked until the nodes
/// are balanced after a second, so that a shorter count is one of 256 busy CPUs.
const MACHINES: [(u32, &str); 5] =
    [(4, "1x1x4"), (16, "1x2x8"), (64, "2x4x8"), (256, "2x16x8"), (1024, "1x128x8")];

/// The kernels of a full table.
const KERNELS: [&str; 3] = ["v5.18", "v6.12", "v7.2"];

/// The lines with a ceiling: 40 seconds on two cores, the longest first. All other sizes and kernels are only printed.
const CHECKED: [Line; 9] = [
    (What::Compare, 64, "v6.12"),
    (What::Bench, 4, "v6.12"),
    (What::Bench, 64, "v5.18"),
    (What::Bench, 64, "v6.12"),
    (What::Bench, 64, "v7.2"),
    (What::Bench, 256, "v6.12"),
    (What::Run, 4, "v6.12"),
    (What::Run, 64, "v6.12"),
    (What::Run, 256, "v6.12"),
];

/// Comparisons are counted under this kernel only, as they consist of runs.
const COMPARED: &str = "v6.12";

/// The quantity that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// Only the simulation, without any sink.
    Bench,
    /// `schedlab run`.
    Run,
    /// `schedlab compare`, two kernels with two seeds each.
    Compare,
}

impl What {
    const ALL: [What; 3] = [What::Bench, What::Run, What::Compare];

    fn name(self) -> &'static str {
        match self {
            What::Bench => "bench",
            What::Run => "run",
            What::Compare => "compare",
        }
    }
}

/// What is counted, on how many CPUs, under which kernel.
type Line = (What, u32, &'static str);

/// The counts of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    instructions: u64,
    dispatches: u64,
    switches: u64,
}

impl Count {
    fn per_dispatch(self) -> u64 {
        self.instructions / self.dispatches.max(1)
    }

    /// The count without the start.
    fn without(self, start: Count) -> Count {
        Count {
            instructions: self.instructions - start.instructions,
            dispatches: self.dispatches - start.dispatches,
            switches: self.switches - start.switches,
        }
    }
}

/// `cargo xtask instructions [--check | --write | --release] [CPUS..]`.
///
/// # Errors
/// A tool that fails, an unknown argument, or a count that is too large.
pub fn run(args: &[String]) -> Result<(), String> {
    if let [word, cpus, kernel, ms] = args
        && word == "--simulate"
    {
        return simulate(cpus, kernel, ms);
    }
    let (mut check, mut write, mut release, mut only) = (false, false, false, Vec::new());
    for arg in args {
        match arg.as_str() {
            "--check" => check = true,
            "--write" => write = true,
            "--release" => release = true,
            cpus => only.push(size(cpus)?),
        }
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions: skipped, there is no valgrind (tools/oracles.sh installs it)");
        return Ok(());
    }
    if check || write {
        let counts = Tools::build("quick")?.steady_all(&CHECKED, false)?;
        return if write { written(&counts) } else { checked(&counts) };
    }
    let profile = if release { "release" } else { "quick" };
    let tools = Tools::build(profile)?;
    let mut lines = Vec::new();
    for what in What::ALL {
        for (cpus, _) in MACHINES {
            for kernel in KERNELS {
                let asked = only.is_empty() || only.contains(&cpus);
                if asked && (what != What::Compare || kernel == COMPARED) {
                    lines.push((what, cpus, kernel));
                }
            }
        }
    }
    println!("{:8} {:>5} {:7} {:>12} {:>12}", "", "CPUs", "kernel", "per dispatch", "per switch");
    for ((what, cpus, kernel), count) in tools.steady_all(&lines, true)? {
        let (per, per_switch) = (count.per_dispatch(), count.instructions / count.switches.max(1));
        println!("{:8} {cpus:>5} {kernel:7} {per:>12} {per_switch:>12}", what.name());
    }
    Ok(())
}

/// A number of CPUs for which there is a machine.
fn size(word: &str) -> Result<u32, String> {
    let known = word.parse().ok().filter(|cpus| MACHINES.iter().any(|(n, _)| n == cpus));
    known.ok_or_else(|| {
        format!("instructions: {word} is not --check, --write, --release or one of 4, 16, 64, 256, 1024 CPUs")
    })
}

/// Writes the file of ceilings.
fn written(counts: &[(Line, Count)]) -> Result<(), String> {
    let mut text = "# Instructions for each dispatch of short runs in the quick profile: `cargo xtask instructions --write` writes this file, \
                    `--check` compares with it.\n# what\tCPUs\tkernel\tinstructions\n"
        .to_owned();
    for ((what, cpus, kernel), count) in counts {
        _ = writeln!(text, "{}\t{cpus}\t{kernel}\t{}", what.name(), count.per_dispatch());
    }
    fs::write(source::root().join(FILE), text).map_err(|e| format!("{FILE}: {e}"))
}

/// Compares with the file.
fn checked(counts: &[(Line, Count)]) -> Result<(), String> {
    let known = parsed(&source::read(&source::root().join(FILE)).unwrap_or_default())?;
    let mut above = Vec::new();
    for &((what, cpus, kernel), count) in counts {
        let line = format!("{} on {cpus} CPUs under {kernel}", what.name());
        let was = known.get(&(what.name().to_owned(), cpus, kernel.to_owned()));
        let was = *was.ok_or_else(|| format!("{FILE} has no line for {line}: run --write"))?;
        let per = count.per_dispatch();
        println!("instructions: {per} for each dispatch of {line}; the file has {was}");
        if is_above(per, was) {
            above.push(format!("{line}: {per}, {FILE} has {was}"));
        }
    }
    if above.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{}\nmore than {MARGIN} % more instructions for each dispatch; if that is worth it, say so in the commit \
         and run cargo xtask instructions --write",
        above.join("\n")
    ))
}

fn is_above(per: u64, was: u64) -> bool {
    per * 100 > was * (100 + MARGIN)
}

/// The file, by what is counted.
fn parsed(text: &str) -> Result<BTreeMap<(String, u32, String), u64>, String> {
    let mut all = BTreeMap::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let bad = || format!("{FILE}:{}: not a count: {line}", at + 1);
        let [what, cpus, kernel, count] = line.split('\t').collect::<Vec<_>>()[..] else { return Err(bad()) };
        let (cpus, count) = (cpus.parse().map_err(|_| bad())?, count.parse().map_err(|_| bad())?);
        all.insert((what.to_owned(), cpus, kernel.to_owned()), count);
    }
    Ok(all)
}

/// The simulation without a sink, for counting: prints switches, and those to idle.
fn simulate(cpus: &str, kernel: &str, ms: &str) -> Result<(), String> {
    let bad = |word: &str| format!("{word} is not a number");
    let (cpus, ms) = (cpus.parse().map_err(|_| bad(cpus))?, ms.parse().map_err(|_| bad(ms))?);
    let name = MACHINES.iter().find(|(n, _)| *n == cpus).map_or("1x1x4", |(_, name)| name);
    let machine = Machine::preset(name).map_err(|e| e.to_string())?;
    let kernel = Kernel::parse(kernel).map_err(|e| e.to_string())?;
    let workload = RtApp::parse(&load(cpus), "load.json").map_err(|e| e.to_string())?.workload;
    let run = Simulation::new(&machine, &kernel, &workload).map_err(|e| e.to_string())?;
    let counts = run.limit(Duration::millis(ms)).run(&mut NullSink).counts;
    println!("{} {}", counts.switches, counts.switches - counts.dispatches);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_does_not_count() {
        let count = |instructions, dispatches, switches| Count { instructions, dispatches, switches };
        assert_eq!(count(900, 50, 70).without(count(300, 20, 30)), count(600, 30, 40));
    }

    #[test]
    fn a_count_may_be_five_percent_above_the_file() {
        assert!(!is_above(10_500, 10_000));
        assert!(is_above(10_501, 10_000));
    }

    #[test]
    fn each_ceiling_is_in_the_file_and_has_a_machine() {
        let known = parsed(include_str!("../instructions.tsv")).unwrap();
        for (what, cpus, kernel) in CHECKED {
            assert!(known.contains_key(&(what.name().to_owned(), cpus, kernel.to_owned())));
            assert_eq!(size(&cpus.to_string()), Ok(cpus));
        }
        assert_eq!(known.len(), CHECKED.len());
        assert!(size("65").is_err());
    }

    #[test]
    fn the_file_has_a_count_in_each_line() {
        let all = parsed("# what\nrun\t64\tv6.12\t6000\n").unwrap();
        assert_eq!(all[&("run".to_owned(), 64, "v6.12".to_owned())], 6000);
        assert_eq!(
            parsed("run\t64\tv6.12\n").unwrap_err(),
            "xtask/instructions.tsv:1: not a count: run\t64\tv6.12"
        );
    }
}
