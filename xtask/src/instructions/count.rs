//! Counts what a process executes by callgrind, and the dispatches of the same run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, thread};

use super::{Count, Line, MACHINES, What};
use crate::source;

/// A rule that has no effect here, so that `compare` has two kernels.
const ANOTHER: &str = "NO_RT_PUSH_IPI";

/// The rt-app file for this many CPUs.
pub(super) fn load(cpus: u32) -> String {
    let tasks = 2 * cpus;
    format!(
        "{{\"global\": {{\"duration\": 3600}}, \"tasks\": {{\"t\": {{\"instance\": {tasks}, \"loop\": -1, \"run\": 500, \"sleep\": 500}}}}}}\n"
    )
}

/// Lengths of the shorter and the longer run, ms, with about as many dispatches between them on any machine.
///
/// All tasks start at once. Until they have drifted apart, a newly idle CPU looks for work in more domains: under v5.18 on
/// 256 CPUs a dispatch takes 30,000 instructions between 40 and 80 ms and 17,000 after 200. A settled count begins there.
/// One that is only compared with the same count of another commit may begin earlier.
fn lengths_ms(cpus: u32, settled: bool) -> (u64, u64) {
    let between = (6_400 / u64::from(cpus)).clamp(40, 400);
    let start = if settled { (25_600 / u64::from(cpus)).clamp(200, 400) } else { between };
    (start, start + between)
}

/// The programs that are counted.
pub(super) struct Tools {
    folder: PathBuf,
    schedlab: PathBuf,
    xtask: PathBuf,
}

impl Tools {
    /// Builds the whole workspace, as test.sh does: parts of it would have other features and be compiled again.
    pub(super) fn build(profile: &str) -> Result<Tools, String> {
        let root = source::root();
        let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
        let mut cargo = Command::new("cargo");
        cargo.current_dir(root).args(["build", "--quiet", "--locked", "--workspace", "--profile", profile]);
        let done = cargo.status().map_err(|e| format!("cargo: {e}"))?;
        if !done.success() {
            return Err(format!("cargo build --profile {profile} failed"));
        }
        let folder = target.join("instructions");
        fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let built = target.join(profile);
        Ok(Tools { folder, schedlab: built.join("schedlab"), xtask: built.join("xtask") })
    }

    /// Counts all lines, as many at a time as there are cores, and returns them in the same order.
    pub(super) fn steady_all(&self, lines: &[Line], settled: bool) -> Result<Vec<(Line, Count)>, String> {
        let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let worker = || {
            while let Some(&line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                let count = self.steady(line, settled);
                done.lock().expect("no worker panics").insert(line, count);
            }
        };
        thread::scope(|scope| {
            for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
                scope.spawn(worker);
            }
        });
        let mut done = done.into_inner().expect("no worker panics");
        lines.iter().map(|line| Ok((*line, done.remove(line).expect("each line is counted")?))).collect()
    }

    /// The difference between two runs of different lengths.
    fn steady(&self, (what, cpus, kernel): Line, settled: bool) -> Result<Count, String> {
        let machine = MACHINES.iter().find(|(n, _)| *n == cpus).expect("a size of the table").1;
        let file = self.folder.join(format!("run-and-sleep-{}-{cpus}-{kernel}.json", what.name()));
        fs::write(&file, load(cpus)).map_err(|e| format!("{}: {e}", file.display()))?;
        let (short, long) = lengths_ms(cpus, settled);
        let of = |ms| self.count(what, &file, cpus, machine, kernel, ms);
        Ok(of(long)?.without(of(short)?))
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
        // The total is read from standard error; the functions are not needed.
        let out = file.with_extension("callgrind");
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
    fn a_settled_count_begins_when_the_tasks_have_drifted_apart() {
        assert_eq!([4, 64, 1024].map(|cpus| lengths_ms(cpus, false)), [(400, 800), (100, 200), (40, 80)]);
        assert_eq!([4, 64, 1024].map(|cpus| lengths_ms(cpus, true)), [(400, 800), (400, 500), (200, 240)]);
    }

    #[test]
    fn what_the_tools_print_is_read() {
        assert_eq!(collected("==1== Events    : Ir\n==1== Collected : 384778697\n"), Some(384_778_697));
        let run = "          3,089.96 msec task-clock\n             6,578      context-switches   #   65.780 K/sec\n\
                   \x20              302        from idle       #     4.59% of context-switches\n";
        assert_eq!(of_run(run), Some((6578, 302)));
        assert_eq!(numbers("15392 5137\n"), Some((15392, 5137)));
    }
}
