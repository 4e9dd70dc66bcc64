//! The engine's version: a hash of every source file that a figure depends on, so that results of a changed
//! rule are never mixed with older ones.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The sources that a run depends on, and the machines.
const SOURCES: [&str; 13] = [
    "crates/units/src",
    "crates/topology/src",
    "crates/sched/src",
    "crates/machine/src",
    "crates/workload/src",
    "crates/trace/src",
    "crates/sim/src",
    "crates/stats/src",
    "crates/report/src/metrics",
    "crates/schedlab/src",
    "crates/columns/src",
    "crates/sweep/src",
    "machines",
];

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", root.join(source).display());
        gather(&root.join(source), &mut files);
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(fs::read(&file).unwrap_or_default());
        hash.update([0]);
    }
    let hex: String = hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    println!("cargo::rustc-env=SCHEDLAB_ENGINE={}-{hex}", env!("CARGO_PKG_VERSION"));
}

fn gather(path: &Path, files: &mut Vec<PathBuf>) {
    if path.is_file() {
        files.push(path.to_path_buf());
    } else if let Ok(entries) = fs::read_dir(path) {
        for entry in entries.flatten() {
            gather(&entry.path(), files);
        }
    }
}
