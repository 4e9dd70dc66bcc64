//! Pages in a real browser: they open without an error, load nothing else, zoom, find a task, show a decision.
//!
//! `tools/oracles.sh` installs Chromium and names a Python that drives it; without it these tests say that they were skipped.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn schedlab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
}

fn project(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Runs the command and returns its output.
fn run(command: &mut Command) -> String {
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// What a browser shows of a page; `None` if there is no browser.
fn browse(page: &str, args: &[&str]) -> Option<Value> {
    let Some(python) = std::env::var_os("SCHEDLAB_BROWSER_PYTHON") else {
        println!("skipped: SCHEDLAB_BROWSER_PYTHON names no Python that can drive a browser");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser.py");
    let output = Command::new(python).arg(script).arg(page).args(args).output().expect("Python runs");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    let seen: Value = serde_json::from_str(&stdout).expect("JSON");
    Some(seen)
}

/// The result of `schedlab diff` for two traces.
fn diff(a: &Path, b: &Path) -> Value {
    let text = run(schedlab().arg("diff").arg(a).arg(b).args(["--format", "json"]));
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn a_recording_opens_zooms_and_is_searched() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("pipes.html");
    let trace = project("traces/6.12/2x2x2x2-smt/pipes/trace.txt.gz");
    run(schedlab().arg("view").arg(&trace).arg("--output").arg(&page));
    let saved = folder.path().join("saved.pftrace");
    let args = ["--task", "pp-s8-1096", "--perfetto", saved.to_str().unwrap()];
    let Some(seen) = browse(page.to_str().unwrap(), &args) else { return };
    assert_eq!(seen["open"]["cpus"], 16);
    assert_eq!(seen["loaded"], serde_json::json!([]), "a page loads nothing but itself");
    let widths: Vec<f64> =
        seen["zoom"]["widths"].as_array().unwrap().iter().map(|width| width.as_f64().unwrap()).collect();
    assert!(widths.windows(2).all(|pair| pair[1] < pair[0]), "{widths:?}");
    assert_eq!(seen["task"]["highlighted"], "pp-s8-1096");
    assert!(seen["task"]["stretches"].as_u64().unwrap() > 10, "{}", seen["task"]);
    // The button writes what was recorded.
    let difference = diff(&trace, &saved);
    let switches = &difference["counts"][0]["counts"];
    assert!(switches[0].as_u64() > Some(3000) && switches[0] == switches[1], "{switches}");
    let kinds = difference["kinds"].as_array().unwrap();
    assert!(kinds.len() > 3);
    for kind in kinds {
        let ran = [0, 1].map(|side| kind["ran_ms"][side].as_f64().unwrap());
        assert!((ran[0] - ran[1]).abs() < 0.001 && kind["preempted"][0] == kind["preempted"][1], "{kind}");
    }
}

#[test]
fn a_decision_shows_its_reason_and_its_candidates() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, page) = (folder.path().join("run.dat"), folder.path().join("run.html"));
    let scenario = project("scenarios/stream-pinned-numa.toml");
    run(schedlab()
        .arg("trace")
        .arg(scenario)
        .args(["--kernel", "v5.18", "--limit", "50ms", "--format", "trace-dat-decisions", "--output"])
        .arg(&trace));
    run(schedlab().arg("view").arg(&trace).args(["--machine", "zen3-2s", "--output"]).arg(&page));
    let Some(seen) = browse(page.to_str().unwrap(), &["--reason", "IDLEST_SHALLOW"]) else { return };
    let shown = seen["reason"]["panel"].as_str().unwrap();
    assert!(shown.contains("IDLEST_SHALLOW") && shown.contains("imb_numa_nr"), "{shown}");
    assert!(shown.contains("Candidates:"), "{shown}");
    let clicked = seen["click"]["panel"].as_str().unwrap();
    assert!(clicked.contains(seen["click"]["expected"].as_str().unwrap()), "{clicked}");
}

#[test]
fn state_is_drawn_under_its_task_and_its_cpu() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, page) = (folder.path().join("run.txt"), folder.path().join("run.html"));
    run(schedlab()
        .arg("trace")
        .arg(project("scenarios/stream-pinned-numa.toml"))
        .args(["--kernel", "v6.12", "--limit", "50ms", "--events", "sched_switch,schedlab_se,pelt_cfs"])
        .arg("--output")
        .arg(&trace));
    run(schedlab().arg("view").arg(&trace).arg("--output").arg(&page));
    let Some(seen) = browse(page.to_str().unwrap(), &["--task", "stream-1000"]) else { return };
    let shown = seen["task"]["panel"].as_str().unwrap();
    assert!(shown.contains("schedlab_se vruntime") && shown.contains("schedlab_se deadline"), "{shown}");
    let seen = browse(page.to_str().unwrap(), &["--task", "cpu 16"]).unwrap();
    let shown = seen["task"]["panel"].as_str().unwrap();
    assert!(shown.contains("CPU 16 /: pelt_cfs util"), "{shown}");
}

#[test]
fn a_served_trace_is_asked_for_in_parts() {
    let trace = project("traces/6.12/2x2x2x2-smt/pipes/trace.txt.gz");
    let mut server =
        schedlab().arg("view").arg(&trace).arg("--serve").stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.split(' ').find(|word| word.starts_with("http://127.0.0.1:")).expect("a URL").to_owned();
    let seen = std::panic::catch_unwind(|| browse(&url, &["--task", "pp-s8-1096"]));
    server.kill().unwrap();
    server.wait().unwrap();
    let Some(seen) = seen.unwrap() else { return };
    assert_eq!(seen["zoom"]["levels"], serde_json::json!(["exact"]));
    let loaded = seen["loaded"].as_array().unwrap();
    assert!(loaded.iter().any(|name| name.as_str().unwrap().ends_with("/data")), "{loaded:?}");
}

#[test]
fn the_same_recording_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let trace = project("traces/6.1/1x1x8/hogs-runtime/trace.txt.gz");
    let pages = ["a.html", "b.html"].map(|name| {
        let page = folder.path().join(name);
        run(schedlab().arg("view").arg(&trace).arg("--output").arg(&page));
        std::fs::read(page).unwrap()
    });
    assert!(pages[0] == pages[1]);
    let text = String::from_utf8_lossy(&pages[0]);
    // For readers without scripts.
    assert!(text.contains("hg-10-1016") && text.contains("<noscript>"));
}
