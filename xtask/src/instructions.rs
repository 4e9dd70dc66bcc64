//! Instructions per dispatch: the work of a run, independent of the host and its load.
//!
//! Two tasks for each CPU run 500 us and sleep 500 us (an rt-app file, written here), and callgrind counts
//! what the whole process executes. The start is subtracted: a run of twice the length is also counted, and
//! the difference is the steady state. A dispatch is a switch to a task; a switch to idle does not count, as
//! in comparable tools. The figure per switch, including those to idle, is also printed.
//!
//! `--check` counts `run` on 64 CPUs in the `quick` profile, which the tests have built anyway, and fails when it is
//! more than 5 percent above `xtask/instructions.tsv`. `--write` creates that file: the table of a release build,
//! and the count of the quick one that is checked.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use schedlab::machine::Machine;
use schedlab::sched::Kernel;
use schedlab::trace::NullSink;
use schedlab::units::Duration;
use schedlab::workload::RtApp;
use schedlab_sim::Simulation;

use crate::source;

/// The counts when the file was written.
const FILE: &str = "xtask/instructions.tsv";

/// Allowed excess of a count over the file, percent.
const MARGIN: u64 = 5;

/// Numbers of CPUs, with their machines.
const MACHINES: [(u32, &str); 5] =
    [(4, "1x1x4"), (16, "1x2x8"), (64, "2x4x8"), (256, "2x16x8"), (1024, "4x32x8")];

/// The kernels of a full table; `--check` counts one of them.
const KERNELS: [&str; 3] = ["v5.18", "v6.12", "v7.2"];
const CHECKED: (u32, &str, &str) = (64, "2x4x8", "v6.12");
/// The name of its line in the file.
const CHECKED_NAME: &str = "run-quick";

/// A rule that has no effect here, so that `compare` has two kernels.
const ANOTHER: &str = "NO_RT_PUSH_IPI";

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

/// `cargo xtask instructions [--check | --write] [CPUS..]`.
///
/// # Errors
/// A tool that fails, or a count that is too large.
pub fn run(args: &[String]) -> Result<(), String> {
    if let [word, cpus, kernel, ms] = args
        && word == "--simulate"
    {
        return simulate(cpus, kernel, ms);
    }
    let (check, write) = (args.iter().any(|a| a == "--check"), args.iter().any(|a| a == "--write"));
    let only: Vec<u32> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions: skipped, there is no valgrind (tools/oracles.sh installs it)");
        return Ok(());
    }
    let known = parsed(&source::read(&source::root().join(FILE)).unwrap_or_default())?;
    if check {
        let per = checked()?;
        let ceiling = known.get(&key_of_checked()).copied();
        let ceiling = ceiling.ok_or_else(|| format!("{FILE} has no line {CHECKED_NAME}: run --write"))?;
        println!(
            "instructions: {per} for each dispatch of run, {} CPUs, {}; the file has {ceiling}",
            CHECKED.0, CHECKED.2
        );
        if per * 100 > ceiling * (100 + MARGIN) {
            return Err(format!(
                "more than {MARGIN} % more instructions for each dispatch; if that is worth it, say so in the commit \
                 and run cargo xtask instructions --write"
            ));
        }
        return Ok(());
    }
    let tools = Tools::build("release", &["--package", "schedlab-cli", "--package", "xtask"])?;
    let mut table = String::new();
    println!("{:8} {:>5} {:7} {:>12} {:>12}", "", "CPUs", "kernel", "per dispatch", "per switch");
    for what in What::ALL {
        for (cpus, machine) in MACHINES {
            for kernel in KERNELS {
                if !only.is_empty() && !only.contains(&cpus) || what == What::Compare && kernel != CHECKED.2 {
                    continue;
                }
                let count = tools.steady(what, cpus, machine, kernel)?;
                let (per, per_switch) = (count.per_dispatch(), count.instructions / count.switches.max(1));
                println!("{:8} {cpus:>5} {kernel:7} {per:>12} {per_switch:>12}", what.name());
                _ = writeln!(table, "{}\t{cpus}\t{kernel}\t{per}", what.name());
            }
        }
    }
    if write {
        _ = writeln!(table, "{CHECKED_NAME}\t{}\t{}\t{}", CHECKED.0, CHECKED.2, checked()?);
        let head = "# Instructions for each dispatch: `cargo xtask instructions --write` writes this file, `--check` compares with it.\n\
                    # what\tCPUs\tkernel\tinstructions\n";
        fs::write(source::root().join(FILE), format!("{head}{table}")).map_err(|e| format!("{FILE}: {e}"))?;
    }
    Ok(())
}

/// What `--check` counts.
fn checked() -> Result<u64, String> {
    let (cpus, machine, kernel) = CHECKED;
    // The whole workspace, as test.sh builds it: nothing is compiled again.
    let count = Tools::build("quick", &["--workspace"])?.steady(What::Run, cpus, machine, kernel)?;
    Ok(count.per_dispatch())
}

fn key_of_checked() -> (String, u32, String) {
    (CHECKED_NAME.to_owned(), CHECKED.0, CHECKED.2.to_owned())
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

/// The rt-app file for this many CPUs.
fn load(cpus: u32) -> String {
    let tasks = 2 * cpus;
    format!(
        "{{\"global\": {{\"duration\": 3600}}, \"tasks\": {{\"t\": {{\"instance\": {tasks}, \"loop\": -1, \"run\": 500, \"sleep\": 500}}}}}}\n"
    )
}

/// Virtual time of the shorter run, ms, chosen so that it takes equally long on any machine.
fn limit_ms(cpus: u32) -> u64 {
    (6_400 / u64::from(cpus)).clamp(40, 400)
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

/// The programs that are counted.
struct Tools {
    folder: PathBuf,
    schedlab: PathBuf,
    xtask: PathBuf,
}

impl Tools {
    fn build(profile: &str, which: &[&str]) -> Result<Tools, String> {
        let root = source::root();
        let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root).args(["build", "--quiet", "--locked", "--profile", profile]).args(which);
        let done = cargo.status().map_err(|e| format!("cargo: {e}"))?;
        if !done.success() {
            return Err(format!("cargo build --profile {profile} failed"));
        }
        let folder = target.join("instructions");
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let built = target.join(profile);
        Ok(Tools { folder, schedlab: built.join("schedlab"), xtask: built.join("xtask") })
    }

    /// The difference between a run of twice the length and one of the length.
    fn steady(&self, what: What, cpus: u32, machine: &str, kernel: &str) -> Result<Count, String> {
        let file = self.folder.join(format!("run-and-sleep-{cpus}.json"));
        fs::write(&file, load(cpus)).map_err(|e| format!("{}: {e}", file.display()))?;
        let ms = limit_ms(cpus);
        let of = |ms| self.count(what, &file, cpus, machine, kernel, ms);
        Ok(of(2 * ms)?.without(of(ms)?))
    }

    fn count(
        &self,
        what: What,
        file: &Path,
        cpus: u32,
        machine: &str,
        kernel: &str,
        ms: u64,
    ) -> Result<Count, String> {
        let out = self.folder.join("callgrind.out");
        let limit = format!("{ms}ms");
        let mut valgrind = Command::new("valgrind");
        valgrind.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", out.display()));
        let scenario = |verb: &str, kernels: &str, runs: &str| -> Vec<String> {
            let file = file.display().to_string();
            let words = [verb, &file, "--machine", machine, "--kernel", kernels, "--limit", &limit];
            words.iter().chain(&["--threads", "1", "--runs", runs]).map(|word| (*word).to_owned()).collect()
        };
        match what {
            What::Bench => {
                let words = ["instructions", "--simulate", &cpus.to_string(), kernel, &ms.to_string()];
                valgrind.arg(&self.xtask).args(words)
            }
            What::Run => valgrind.arg(&self.schedlab).args(scenario("run", kernel, "1")),
            What::Compare => {
                let kernels = format!("{kernel},{kernel}+{ANOTHER}");
                valgrind.arg(&self.schedlab).args(scenario("compare", &kernels, "2"))
            }
        };
        let (printed, counted) = output(&mut valgrind)?;
        let (switches, to_idle) = match what {
            What::Bench => numbers(&printed).ok_or("the simulation printed no numbers")?,
            What::Run | What::Compare => {
                let runs = if what == What::Run { 1 } else { 2 };
                let mut run = Command::new(&self.schedlab);
                let words = scenario("run", kernel, &runs.to_string());
                let (printed, _) = output(run.args(words).arg("--stat"))?;
                let (switches, idle) =
                    of_run(&printed).ok_or("schedlab run --stat printed no context-switches")?;
                // The mean of the runs; a comparison makes two runs under each of two kernels.
                let times = if what == What::Run { 1 } else { 4 };
                (times * switches, times * idle)
            }
        };
        let instructions = collected(&counted).ok_or("callgrind printed no count")?;
        Ok(Count { instructions, dispatches: switches - to_idle, switches })
    }
}

/// What a command prints, to standard output and error.
fn output(command: &mut Command) -> Result<(String, String), String> {
    let name = format!("{command:?}");
    let done = command.output().map_err(|e| format!("{name}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !done.status.success() {
        return Err(format!("{name}: {}", text(&done.stderr)));
    }
    Ok((text(&done.stdout), text(&done.stderr)))
}

/// `==123== Collected : 456`.
fn collected(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.split_once("Collected :"))?;
    line.1.trim().parse().ok()
}

fn numbers(text: &str) -> Option<(u64, u64)> {
    let mut words = text.split_whitespace().map(str::parse);
    Some((words.next()?.ok()?, words.next()?.ok()?))
}

/// Context switches of a run, and those from the idle task, of which there are as many as to it.
fn of_run(text: &str) -> Option<(u64, u64)> {
    let of = |what: &str| {
        let line = text.lines().find(|line| line.contains(what))?;
        line.split_whitespace().next()?.replace(',', "").parse().ok()
    };
    Some((of("context-switches")?, of("from idle")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tools_print_is_read() {
        assert_eq!(collected("==1== Events    : Ir\n==1== Collected : 384778697\n"), Some(384_778_697));
        let run = "          3,089.96 msec task-clock\n             6,578      context-switches   #   65.780 K/sec\n\
                   \x20              302        from idle       #     4.59% of context-switches\n";
        assert_eq!(of_run(run), Some((6578, 302)));
        assert_eq!(numbers("15392 5137\n"), Some((15392, 5137)));
    }

    #[test]
    fn the_start_does_not_count() {
        let count = |instructions, dispatches, switches| Count { instructions, dispatches, switches };
        assert_eq!(count(900, 50, 70).without(count(300, 20, 30)), count(600, 30, 40));
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
