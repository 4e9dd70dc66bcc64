//! The command `sweep` as users and engines call it: exit statuses, signals, shares, bad input.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const TEXT: &str = "machine = \"1x1x2x1\"\nkernels = [\"v6.1\", \"v6.1+NO_SIS_UTIL\"]\nruns = 2\n[workload]\n\
                    model = \"hackbench\"\ngroups = 1\nloops = 2\n";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        fs::write(place.0.path().join("small.toml"), TEXT).unwrap();
        place
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
        command.args(args).current_dir(self.0.path()).env("XDG_CACHE_HOME", self.0.path().join("cache"));
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    #[track_caller]
    fn prints(&self, args: &[&str], status: i32) -> String {
        let output = self.run(args);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(status), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    fn chunks(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.0.path().join(folder).join("chunks")).unwrap().map(Result::unwrap);
        entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
    }
}

const LOOPS: &str = "workload.loops=1,2,3";

#[test]
fn from_plan_to_report() {
    let place = Place::new();
    let plan = place.prints(&["sweep", "plan", "small.toml", "--vary", LOOPS], 0);
    assert!(plan.contains("12 points: 3 combinations (grid), 1 row, 2 kernels, 2 seeds"), "{plan}");
    assert!(plan.contains("workload.loops=1 kernel=v6.1 repeat=0"), "{plan}");
    let dry = place.prints(&["sweep", "run", "small.toml", "--vary", LOOPS, "--dry-run"], 0);
    assert!(dry.contains("12 points") && !place.0.path().join("small.sweep").exists());

    let done = place.prints(&["sweep", "run", "small.toml", "--vary", LOOPS], 0);
    assert!(done.contains("small.sweep: 12 points done"), "{done}");
    let again = place.prints(&["sweep", "run", "small.sweep"], 0);
    assert!(again.contains("0 points done, 12 were done before"), "{again}");
    assert!(place.prints(&["sweep", "status", "small.sweep"], 0).starts_with("12 of 12 points done (100 %)"));
    let report = place.prints(&["sweep", "report", "small.sweep"], 0);
    assert!(report.contains("v6.1+NO_SIS_UTIL against v6.1"), "{report}");
    let csv = place.prints(&["sweep", "report", "small.sweep", "--format", "csv", "--metric", "switches"], 0);
    assert_eq!(csv.lines().count(), 7);
    let gathered = place.prints(&["sweep", "gather", "small.sweep"], 0);
    assert!(gathered.contains("small.sweep.parquet: 12 rows"), "{gathered}");
    assert!(fs::read(place.0.path().join("small.sweep.parquet")).unwrap().starts_with(b"PAR1"));

    // Another plan finds the results of the first in the cache.
    let more =
        place.prints(&["sweep", "run", "small.toml", "--vary", "workload.loops=3,4", "--output", "more"], 0);
    assert!(more.contains("8 points done, 4 of them found"), "{more}");
}

#[test]
fn a_plan_is_a_file_too() {
    let place = Place::new();
    let plan =
        "scenario = \"small.toml\"\nseeds = 1\n[vary]\nworkload.loops = [1, 2]\nkernel = [\"v6.12\"]\n";
    fs::write(place.0.path().join("plan.toml"), plan).unwrap();
    assert!(place.prints(&["sweep", "plan", "plan.toml"], 0).contains("2 points"));
    fs::write(place.0.path().join("plan.toml"), plan.replace("[1, 2]", "[[1]]")).unwrap();
    let output = place.run(&["sweep", "plan", "plan.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("plan.toml:4: workload.loops is a list"));
}

#[test]
fn shares_find_out_which_they_are() {
    let place = Place::new();
    place.prints(&["sweep", "run", "small.toml", "--vary", LOOPS, "--chunk", "2", "--output", "whole"], 0);
    let first =
        ["sweep", "run", "small.toml", "--vary", LOOPS, "--chunk", "2", "--output", "s", "--shard", "0/3"];
    place.prints(&first, 0);
    for (name, value) in [("SLURM_ARRAY_TASK_ID", "1"), ("JOB_COMPLETION_INDEX", "2")] {
        let status =
            place.command(&["sweep", "run", "s", "--shard", "3"]).env(name, value).output().unwrap().status;
        assert!(status.success());
    }
    assert_eq!(place.chunks("s"), place.chunks("whole"));
}

#[test]
fn a_signal_keeps_what_is_done_and_the_next_run_goes_on() {
    let place = Place::new();
    let args =
        ["sweep", "run", "small.toml", "--vary", "workload.loops=200..215", "--no-cache", "--chunk", "50"];
    let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let chunks = place.0.path().join("small.sweep/chunks");
    let begun = Instant::now();
    while !chunks.exists() && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let status = child.wait().unwrap();
    if status.success() {
        eprintln!("skipped: all was done before the signal came");
        return;
    }
    assert_eq!(status.code(), Some(130));
    let told = place.prints(&["sweep", "status", "small.sweep", "--format", "json"], 0);
    assert!(!told.contains("\"in_parts\": 0") || !told.contains("\"done\": 0"), "{told}");
    place.prints(&["sweep", "run", "small.sweep"], 0);
    place.prints(&[&args[..], &["--output", "whole"]].concat(), 0);
    assert_eq!(place.chunks("small.sweep"), place.chunks("whole"));
}

#[test]
fn points_that_fail_make_exit_status_1() {
    let place = Place::new();
    let vary = ["--vary", "machine=1x1x4x1,1x1x2x1", "--vary", "workload.cpus=0-1,0-3"];
    let output = place.run(&[&["sweep", "run", "small.toml"][..], &vary].concat());
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("machine=1x1x2x1 workload.cpus=0-3") && said.contains("is not in machine"),
        "{said}"
    );
    assert!(place.prints(&["sweep", "status", "small.sweep"], 1).contains("4 failed"));
    assert!(place.prints(&["sweep", "run", "small.sweep"], 1).contains("4 failed"));
    place.prints(&["sweep", "run", "small.sweep", "--retry"], 1);
}

#[test]
fn bad_input_is_a_sentence_and_leaves_nothing() {
    let place = Place::new();
    for (args, says) in [
        (&["sweep", "run", "nothing.toml"][..], "nothing.toml"),
        (&["sweep", "run", "small.toml", "--vary", "workload.loopz=1"], "loopz"),
        (&["sweep", "run", "small.toml", "--vary", "workload.loops=8..2:x2"], "runs backwards"),
        (&["sweep", "run", "small.toml", "--sample", "latin"], "latin:N"),
        (&["sweep", "run", "small.toml", "--seeds", "0"], "at least one seed"),
        (&["sweep", "run", "small.toml", "--shard", "4/4"], "0 to 3"),
        (&["sweep", "run", "small.toml", "--shard", "4"], "SLURM_ARRAY_TASK_ID"),
        (&["sweep", "status", "."], "no plan.toml"),
        (&["sweep", "report", "nowhere"], "no plan.toml"),
        (&["bisect", "v6.1", "v6.12", "small.toml", "--metric", "speed"], "there is no figure"),
        (&["bisect", "v6.1", "small.toml"], "name the good kernel"),
        (&["bisect", "--between", "v6.12..v6.1", "small.toml"], "older"),
        (&["bisect", "v6.12", "tree:linux", "small.toml"], "linux: cannot open it"),
    ] {
        let output = place.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.starts_with("schedlab: ") && said.contains(says), "{args:?}: {said}");
        assert!(!place.0.path().join("small.sweep").exists(), "{args:?}");
    }
}

#[test]
fn a_known_culprit_is_found_among_decoys() {
    let place = Place::new();
    // A clock of 10000 ticks per second costs more than any other of these.
    let bad = "v6.1+hz=10000+nr_migrate=16+llc_imb_pct=30+rr_timeslice_ms=50";
    let said = place.prints(&["bisect", "v6.1", bad, "small.toml", "--metric", "task_clock_ns"], 0);
    assert!(said.contains("4 rules and numbers differ"), "{said}");
    let line = said.lines().find(|line| line.starts_with("hz=10000")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("yes") && line.contains("nothing"), "{said}");
    assert!(!said.contains("\nnr_migrate") && said.contains("one rule makes the change"), "{said}");
    let none = place.prints(&["bisect", "v6.1", "v6.1+rr_timeslice_ms=50", "small.toml"], 0);
    assert!(none.contains("none of them"), "{none}");
    // A release without rules of its own is named, with the kernel used instead.
    let output = place.run(&["bisect", "v6.6", "v6.6+rr_timeslice_ms=50", "small.toml"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("v6.6: there are no rules of that release: those of v6.10"), "{said}");
}

#[test]
fn the_folder_of_an_engine_is_written_for_it() {
    let place = Place::new();
    place.prints(&["sweep", "run", "small.toml", "--vary", LOOPS, "--chunk", "2", "--output", "s"], 0);
    let job = place.prints(&["sweep", "submit", "s", "--for", "slurm", "--shards", "3"], 0);
    assert!(job.starts_with("#!/bin/sh") && job.contains("--array=0-2"), "{job}");
    place.prints(&["sweep", "submit", "s", "--for", "k8s", "--shards", "3", "--output", "job.yaml"], 0);
    assert!(fs::read_to_string(Path::new(place.0.path()).join("job.yaml")).unwrap().contains("Indexed"));
}

#[test]
fn the_example_has_a_thousand_points() {
    let place = Place::new();
    let plan = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/sweeps/kthread-stack.plan.toml");
    // A share without a chunk creates the folder and runs nothing.
    place.prints(&["sweep", "run", plan, "--output", "s", "--shard", "999999/1000000"], 0);
    assert!(place.prints(&["sweep", "status", "s"], 0).starts_with("0 of 1000 points done"));
}
