//! `cargo xtask rules`: every rule has a test that fails when the rule is flipped.
//!
//! The unit tests of `sched` run once for each rule, with that rule inverted in all presets (`turn_over` in
//! `kernel.rs`). If no test fails, the rule has no drawing that shows what it does.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rayon::prelude::*;
use schedlab::sched::{Feature, Rules};

/// Tests about switches as such, which would detect any change, and long random ones.
const SKIPPED: [&str; 4] = ["kernel::", "features::", "rules::", "disorder::"];

/// Rules that no unit test of `sched` can detect, and why.
const UNSEEN: [(&str, &str); 9] = [
    ("PIPE_WAKE", "the engine obeys it, in the crate sim"),
    ("TWO_SPARE_PAGES", "the engine obeys it, in the crate sim"),
    ("POOL_SENDS_BACK", "the audit obeys it"),
    ("SWITCH_STATE_PASSED", "the commands that read recordings obey it"),
    ("LATENCY_WARN", "a warning changes no decision, and nothing obeys it"),
    ("SERIALIZE_INSIDE", "passes of CPUs never overlap here, so their lock is always free; nothing obeys it"),
    ("HZ_BW", "nothing obeys it: no CPU is in full-dynticks mode, the tick never stops under a task"),
    ("RT_RUNTIME_SHARE", "nothing obeys it: lending of RT time between CPUs is left out"),
    ("TG_LOAD_CLOCK", "the two clocks are equal: all callers have just updated that of the run queue"),
];

/// Tries every rule, or the named ones, and reports those for which no test fails.
pub fn run(names: &[String]) -> Result<(), String> {
    let tests = test_binary()?;
    if !passes(&tests, "") {
        return Err("the unit tests of sched fail as they are; mend them first".to_string());
    }
    let all = Feature::TABLE.iter().map(|row| row.name).chain(Rules::TABLE.iter().map(|row| row.name));
    let chosen: Vec<&str> = all
        .filter(|name| names.is_empty() || names.iter().any(|chosen| chosen == name))
        .filter(|name| !UNSEEN.iter().any(|(unseen, _)| unseen == name))
        .collect();
    for (name, why) in UNSEEN {
        println!("not tried: {name}: {why}");
    }
    let missed: Vec<&str> = chosen.par_iter().copied().filter(|name| passes(&tests, name)).collect();
    println!(
        "{} of {} rules are noticed by a test when turned over",
        chosen.len() - missed.len(),
        chosen.len()
    );
    if missed.is_empty() { Ok(()) } else { Err(format!("no test notices: {}", missed.join(", "))) }
}

/// Whether all tests pass with a rule flipped.
fn passes(tests: &Path, rule: &str) -> bool {
    let mut command = Command::new(tests);
    command.env("SCHEDLAB_TURN_OVER", rule).env("RUST_BACKTRACE", "0").args(["--quiet", "--test-threads=1"]);
    command.args(SKIPPED.iter().flat_map(|skipped| ["--skip", skipped]));
    command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    command.current_dir("crates/sched").status().is_ok_and(|status| status.success())
}

/// Builds the unit tests of `sched` and finds the program.
fn test_binary() -> Result<PathBuf, String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--package", "schedlab-sched", "--lib", "--no-run", "--message-format=json"])
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let path = text.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        rest.split_once('"').map(|(path, _)| PathBuf::from(path))
    });
    path.ok_or_else(|| "cargo built no test program of schedlab-sched".to_string())
}
