//! Recordings of kernels between the presets: their own rules explain them better than those of the preset before.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

const DECISIONS: [&str; 5] = ["wakeup", "fork", "pick", "preempt", "balance"];

/// Of each decision: how many agree and how many differ.
fn audited(folder: &str, kernel: &[&str]) -> [(u64, u64); 5] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/between").join(folder);
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .arg("audit")
        .arg(folder)
        .args(["--format", "json"])
        .args(kernel)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    DECISIONS.map(|decision| {
        let count = |name: &str| report[decision][name].as_u64().unwrap();
        (count("agrees") + count("agrees_in_set"), count("differs"))
    })
}

#[test]
fn kernels_between_the_presets_have_rules_of_their_own() {
    // The least of a thousand that agree: wake-ups, forks, picks, answers to them, moves.
    for (folder, before, least) in [
        ("5.10/2x2x4", "v5.5", [999, 998, 999, 994, 990]),
        ("6.18/2x2x4", "v6.12", [999, 999, 999, 994, 989]),
    ] {
        let (own, other) = (audited(folder, &[]), audited(folder, &["--kernel", before]));
        for ((decision, (agree, differ)), least) in DECISIONS.iter().zip(own).zip(least) {
            assert!(agree * 1000 >= least * (agree + differ), "{folder}: {differ} of {decision} differ");
        }
        let differ = |all: [(u64, u64); 5]| all.iter().map(|(_, differ)| differ).sum::<u64>();
        assert!(differ(own) < differ(other), "{folder}: {} and {} by {before}", differ(own), differ(other));
    }
}
