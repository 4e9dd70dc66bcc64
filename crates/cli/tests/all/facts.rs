//! The facts beside a recording in `facts/`, and what is reported about them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use expect_test::expect;

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name)
}

/// A recording of 6.1 on eight CPUs with its facts, some of them replaced.
fn with_facts(name: &str, replaced: &[(&str, &str)], args: &[&str]) -> String {
    let (output, told) = with_facts_but(name, "", replaced, args);
    assert!(output.status.success(), "{told}");
    told
}

/// The same without one of them, whether it succeeds or not.
fn with_facts_but(name: &str, without: &str, replaced: &[(&str, &str)], args: &[&str]) -> (Output, String) {
    let folder = std::env::temp_dir().join(format!("schedlab-{}-facts-{name}", std::process::id()));
    let facts = folder.join("facts");
    std::fs::create_dir_all(&facts).unwrap();
    for file in std::fs::read_dir(recording("6.1/1x1x8/facts")).unwrap().map(|file| file.unwrap().path()) {
        std::fs::copy(&file, facts.join(file.file_name().unwrap())).unwrap();
    }
    for (file, text) in replaced {
        std::fs::write(facts.join(file), text).unwrap();
    }
    std::fs::copy(recording("6.1/1x1x8/fork/trace.txt.gz"), folder.join("trace.txt.gz")).unwrap();
    let _ = std::fs::remove_file(facts.join(without));
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab")).args(args).arg(&folder).output();
    let output = output.expect("the command runs");
    let _ = std::fs::remove_dir_all(&folder);
    let told = String::from_utf8_lossy(&output.stderr).replace(&folder.display().to_string(), "FOLDER");
    (output, told)
}

#[test]
fn nonsense_among_the_facts_is_reported() {
    const NONSENSE: &str = "hello world\nthis is nonsense 17 = x\n";
    assert_eq!(with_facts("good", &[], &["audit"]), "");
    for name in [
        "debug_sched",
        "sched_features",
        "sysctl",
        "groups-before",
        "groups-after",
        "tasks",
        "cgroups",
        "config",
    ] {
        let told = with_facts(name, &[(&format!("{name}.txt"), NONSENSE)], &["audit"]);
        let expected = format!("FOLDER/facts/{name}.txt:1: \"hello world\" is not a line of this file");
        assert!(told.contains(&expected) && told.contains("no line in it is understood"), "{told}");
    }
    let some = with_facts("some", &[("sched_features.txt", "NO_SIS_UTIL\nwhat\n")], &["detect"]);
    expect![[r#"
        schedlab: FOLDER/facts/sched_features.txt:2: "what" is not a line of this file; "NO_HRTICK WAKEUP_PREEMPTION" would be one: 1 line of 2 is ignored
    "#]].assert_eq(&some);
}

#[test]
fn what_the_user_says_against_the_recording_is_reported() {
    let other = with_facts("kernel", &[], &["audit", "--kernel", "v6.12+NO_SIS_UTIL"]);
    expect![[r#"
        schedlab: FOLDER/trace.txt.gz: it was recorded on 6.1.0-50-cloud-amd64, and --kernel v6.12+NO_SIS_UTIL is taken instead: what differs may be what changed between them
    "#]].assert_eq(&other);
    assert_eq!(with_facts("same", &[], &["audit", "--kernel", "v6.1+NO_SIS_UTIL"]), "");
    for verb in ["audit", "detect"] {
        let machine = with_facts("machine", &[], &[verb, "--machine", "2x8x8"]);
        expect![[r#"
            schedlab: FOLDER/trace.txt.gz: it was recorded on 8 CPUs, as FOLDER/facts says, and --machine 2x8x8 has 128: caches and nodes are those of 2x8x8, and not where the recording was made
        "#]].assert_eq(&machine);
    }
}

/// A machine's missing name and settings in force are reported separately.
#[test]
fn facts_without_the_machine_are_used_with_one_that_is_named() {
    let without = |name: &str, args: &[&str]| with_facts_but(name, "topology.txt", &[], args);
    let named = ["--machine", "1x1x8"];
    let (audit, told) = without("named", &[&["audit"], &named[..]].concat());
    assert!(audit.status.success() && told.is_empty(), "{told}");
    let text = String::from_utf8(audit.stdout).unwrap();
    assert!(text.contains(" as v6.1 on 1x1x8, "), "the facts tell the kernel: {text}");
    // A line that does not belong in such a file shows that it was read.
    let strange = [("sched_features.txt", "NO_SIS_UTIL\nwhat\n")];
    for (verb, machine) in [("audit", "--machine"), ("replay", "--recorded-on"), ("detect", "--machine")] {
        let args = [verb, machine, "1x1x8"];
        let args = if verb == "replay" { [&args[..], &["--programs"]].concat() } else { args.to_vec() };
        let (output, told) = with_facts_but(verb, "topology.txt", &strange, &args);
        assert!(output.status.success(), "{told}");
        assert!(told.contains("FOLDER/facts/sched_features.txt:2: \"what\" is not a line"), "{verb}: {told}");
    }
    for (verb, machine) in [("audit", "--machine"), ("replay", "--recorded-on")] {
        let (output, told) = without(&format!("unnamed-{verb}"), &[verb]);
        assert_eq!(output.status.code(), Some(2));
        let expected = format!(
            "schedlab: FOLDER/facts: there is no topology.txt in it; a folder of facts has one (lines of /sys paths with their content), or name the machine with {machine}\n"
        );
        assert_eq!(told, expected);
    }
}
