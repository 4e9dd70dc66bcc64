//! What a compiler does not check: sizes, headers, words, generated files, links of documents, uses between crates.

use std::fs;
use std::process::Command;

use crate::{kernel_map, links, source, unknown, words};

/// Crates in the order in which they may use each other: each uses only earlier ones.
const ORDER: [(&str, &[&str]); 22] = [
    ("units", &[]),
    ("topology", &["units"]),
    ("sched", &["units", "topology"]),
    ("kernel-tree", &["units", "topology"]),
    ("lockstep", &["units", "topology", "sched", "kernel-tree"]),
    ("tree-sched", &["units", "topology", "sched", "kernel-tree", "lockstep"]),
    ("machine", &["units", "topology"]),
    ("workload", &["units", "topology"]),
    ("trace", &["units", "topology", "sched"]),
    ("sim", &["units", "topology", "sched", "machine", "workload", "trace"]),
    ("stats", &[]),
    ("report", &["units", "topology", "trace", "stats"]),
    ("timeline", &["units", "topology", "trace"]),
    ("diff", &["units", "topology", "trace", "stats", "report"]),
    ("html", &["timeline"]),
    ("recording", &["units", "topology", "sched", "trace"]),
    ("audit", &["units", "topology", "sched", "trace", "recording"]),
    ("replay", &["units", "topology", "sched", "workload", "trace", "recording"]),
    (
        "schedlab",
        &[
            "units",
            "topology",
            "sched",
            "machine",
            "workload",
            "trace",
            "sim",
            "stats",
            "report",
            "recording",
            "audit",
            "replay",
            "kernel-tree",
            "lockstep",
            "timeline",
            "diff",
            "html",
            "tree-sched",
        ],
    ),
    ("columns", &[]),
    ("sweep", &["units", "stats", "columns", "schedlab"]),
    (
        "closed-loop",
        &["units", "topology", "sched", "machine", "workload", "trace", "sim", "report", "audit", "replay"],
    ),
];

/// Maximum lines of a file.
const LINES_MAX: usize = 700;

/// Prints what is wrong.
///
/// # Errors
/// The number of problems.
pub fn check() -> Result<(), String> {
    let mut wrong = kernel_map::stale()?;
    let files = source::rust_files()?;
    for (file, text) in &files {
        if !text.starts_with("//!") && !text.starts_with("#!") {
            wrong.push(format!("{file}: the file does not begin by saying what it is about (`//!`)"));
        }
        let lines = text.lines().count();
        if lines > LINES_MAX {
            wrong.push(format!("{file}: {lines} lines; more than {LINES_MAX} are two ideas"));
        }
    }
    wrong.extend(links::dead()?);
    wrong.extend(words::odd()?);
    wrong.extend(dependencies()?);
    wrong.extend(folders(&files));
    wrong.extend(unknown::stale()?);
    wrong.extend(lock_of_fuzz());
    for line in &wrong {
        println!("{line}");
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("tidy: {} things to mend", wrong.len())) }
}

/// Uses that the order of crates forbids.
fn dependencies() -> Result<Vec<String>, String> {
    let mut wrong = Vec::new();
    for (name, may_use) in ORDER {
        let path = source::root().join("crates").join(name).join("Cargo.toml");
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let own = text.split("[dev-dependencies]").next().unwrap_or_default();
        let used = own.lines().filter_map(|line| line.strip_prefix("schedlab-")).map(|rest| {
            rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').next().unwrap_or_default()
        });
        for used in used.filter(|used| !may_use.contains(used)) {
            wrong.push(format!("crates/{name} uses {used}, which it must not know"));
        }
    }
    Ok(wrong)
}

/// The lock file of the fuzz targets, which are a workspace of their own, lacks a dependency that a crate has now.
/// Packages that are not there yet are no reason: only `fuzz/run.sh` fetches them.
fn lock_of_fuzz() -> Option<String> {
    let folder = source::root().join("fuzz");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["metadata", "--locked", "--offline", "--format-version", "1"]).current_dir(folder);
    let said = cargo.output().ok().filter(|output| !output.status.success())?.stderr;
    String::from_utf8_lossy(&said).contains("lock file").then(|| {
        "fuzz/Cargo.lock lacks a dependency; run `cargo metadata` in fuzz/ and commit it".to_string()
    })
}

/// Folders of the audit in the order in which they may use each other; `judge` also takes the options.
const AUDIT: [&str; 4] = ["follow", "unknown", "report", "judge"];

/// Uses between folders of the audit that their order forbids. A path that names no folder (`crate::Audit`) is one, too.
fn folders(files: &[(String, String)]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, text) in files {
        let Some(rest) = file.strip_prefix("crates/audit/src/") else { continue };
        let folder = rest.split('/').next().unwrap_or_default();
        let Some(at) = AUDIT.iter().position(|name| *name == folder) else { continue };
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for path in code.flat_map(|line| line.split("crate::").skip(1)) {
            let used =
                path.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            let may_use = AUDIT[..=at].contains(&used) || folder == "judge" && used == "options";
            if !may_use {
                wrong.push(format!("{file} uses `crate::{used}`, which it must not know"));
            }
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_the_audit_uses_only_earlier_ones() {
        let wrong = |file: &str, line: &str| {
            !folders(&[(format!("crates/audit/src/{file}"), line.to_owned())]).is_empty()
        };
        assert!(!wrong("judge/pick.rs", "use crate::unknown::quota;"));
        assert!(!wrong("judge/mod.rs", "use crate::options::Options;"));
        assert!(!wrong("follow/dead.rs", "// As crate::judge does."));
        assert!(wrong("follow/dead.rs", "use crate::unknown::quota;"));
        assert!(wrong("unknown/quota.rs", "use crate::report::verdict::Verdict;"));
        assert!(wrong("follow/dead.rs", "    use crate::{Audit, Options};"));
    }
}
