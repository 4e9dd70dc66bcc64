//! What `--output` leaves behind: a complete file or nothing, and inputs are never lost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SCENARIO: &str = "machine = \"2x4\"\nkernels = [\"v6.12\"]\nruns = 1\n\n[workload]\nmodel = \"hogs\"\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.toml"), SCENARIO).unwrap();
    folder
}

fn schedlab(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.args(args).current_dir(folder);
    command
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn two_commands_with_one_output_do_not_mix_their_bytes() {
    let folder = folder();
    let trace = |kernel| ["trace", "s.toml", "--kernel", kernel, "--output", "t.txt"].map(String::from);
    let whole: Vec<Vec<u8>> = ["v5.5", "v6.12"]
        .map(|kernel| {
            schedlab(folder.path(), &["trace", "s.toml", "--kernel", kernel]).output().unwrap().stdout
        })
        .into();
    let mut both: Vec<_> = ["v5.5", "v6.12"]
        .map(|kernel| {
            let args = trace(kernel);
            schedlab(folder.path(), &args.each_ref().map(String::as_str)).spawn().unwrap()
        })
        .into();
    assert!(both.iter_mut().all(|child| child.wait().unwrap().success()));
    let left = fs::read(folder.path().join("t.txt")).unwrap();
    assert!(whole.contains(&left), "the file is one of the two, whole");
    assert_eq!(names(folder.path()), ["s.toml", "t.txt"]);
}

#[test]
fn an_output_that_is_the_input_is_refused() {
    let folder = folder();
    fs::hard_link(folder.path().join("s.toml"), folder.path().join("same.toml")).unwrap();
    for (verb, output) in [("run", "s.toml"), ("trace", "./s.toml"), ("run", "same.toml")] {
        let output = schedlab(folder.path(), &[verb, "s.toml", "--output", output]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains("this is the input s.toml; writing there would destroy it"), "{message}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("s.toml")).unwrap(), SCENARIO);
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let folder = folder();
    let file = folder.path().join("out.txt");
    fs::write(&file, "").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(schedlab(folder.path(), &["run", "s.toml", "--output", "out.txt"]).status().unwrap().success());
    let found = fs::metadata(&file).unwrap();
    assert!(found.len() > 0);
    assert_eq!(found.permissions().mode() & 0o7777, 0o640);
}

#[test]
fn a_file_that_may_not_grow_leaves_nothing_behind() {
    let folder = folder();
    let line = format!("ulimit -f 8; exec {} trace s.toml --output t.txt", env!("CARGO_BIN_EXE_schedlab"));
    let output = Command::new("sh").args(["-c", &line]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("t.txt: File too large"), "{message}");
    assert_eq!(names(folder.path()), ["s.toml"]);
}
