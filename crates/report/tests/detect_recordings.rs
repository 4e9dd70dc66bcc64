//! All detectors over all recordings: whatever they find, their findings must be possible.
//!
//! `cargo test -p schedlab-report --test detect_recordings -- --nocapture` prints the counts.

use std::io::Read;
use std::path::{Path, PathBuf};

use schedlab_report::detect::{Detect, Detected, Options};
use schedlab_topology::{SavedSysfs, Topology};
use schedlab_trace::read::{self, ftrace};

fn traces() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")
}

/// The folders in a folder, in order.
fn folders(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).expect("the recordings are in the tree");
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.expect("it is readable").path()).collect();
    found.retain(|path| path.is_dir());
    found.sort();
    found
}

fn detect(file: &Path, topology: Option<&Topology>) -> Detected {
    let packed = std::fs::read(file).expect("the recording is readable");
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).expect("it is whole");
    let mut detect = Detect::new(Options { topology: topology.cloned(), ..Options::default() });
    read::feed(ftrace::Reader::new(&text[..]), &mut detect).expect("memory can be read");
    detect.finish()
}

/// Conditions that all findings must meet.
fn check(detected: &Detected, topology: &Topology, name: &str) {
    let span = detected.to_ns - detected.from_ns;
    for findings in &detected.detectors {
        let kept = &findings.worst;
        assert!(kept.len() as u64 <= findings.count, "{name}: {findings:?}");
        assert!(kept.is_sorted_by_key(|f| std::cmp::Reverse((f.lost_ns, f.count))), "{name}: {findings:?}");
        let lost: u64 = kept.iter().map(|finding| finding.lost_ns).sum();
        assert!(lost <= findings.lost_ns, "{name}: {findings:?}");
        for finding in kept {
            assert!(
                detected.from_ns <= finding.from_ns && finding.from_ns <= finding.to_ns,
                "{name}: {finding:?}"
            );
            assert!(finding.to_ns <= detected.to_ns && finding.lost_ns <= span, "{name}: {finding:?}");
            assert!(finding.count > 0 && !finding.what.is_empty(), "{name}: {finding:?}");
            assert!(
                finding.cpus.iter().all(|cpu| usize::from(*cpu) < topology.nr_cpus()),
                "{name}: {finding:?}"
            );
            let named = finding.tasks.iter().all(|task| task.pid > 0 && !task.comm.is_empty());
            assert!(!finding.tasks.is_empty() && named, "{name}: {finding:?}");
        }
    }
}

#[test]
fn findings_are_possible_on_every_recording() {
    let mut read = 0;
    for kernel in folders(&traces()) {
        for machine in folders(&kernel) {
            let facts = machine.join("facts/topology.txt");
            let Ok(text) = std::fs::read_to_string(&facts) else { continue };
            let saved = SavedSysfs::from_lines("topology.txt", &text).expect("a saved sysfs");
            let topology = Topology::from_sysfs("recorded", &saved).expect("a machine");
            for load in folders(&machine) {
                let file = load.join("trace.txt.gz");
                if !file.is_file() {
                    continue;
                }
                let name = load.strip_prefix(traces()).expect("below the traces").display().to_string();
                let detected = detect(&file, Some(&topology));
                check(&detected, &topology, &name);
                let counts: Vec<String> = detected.detectors.iter().map(|f| f.count.to_string()).collect();
                println!("{name}: {}", counts.join(" "));
                read += 1;
            }
        }
    }
    assert!(read > 100, "{read} recordings");
}

/// Known problems of these recordings: many tasks over pipes on few CPUs wait long and preempt each other;
/// tasks that spin alone do none of that.
#[test]
fn known_troubles_are_found_and_quiet_recordings_are_quiet() {
    let count = |recording: &str, detector: &str| {
        let detected = detect(&traces().join(recording).join("trace.txt.gz"), None);
        let found = detected.detectors.into_iter().find(|findings| findings.detector == detector);
        found.expect("there is such a detector").count
    };
    for kernel in ["6.1", "6.12", "7.2"] {
        for detector in ["latency-outlier", "preemption-storm"] {
            assert!(count(&format!("{kernel}/1x1x8/pipes"), detector) > 10, "{kernel} {detector}");
        }
        for detector in ["preemption-storm", "llc-walk", "pile-up"] {
            assert_eq!(count(&format!("{kernel}/1x1x8/stream-perllc-1"), detector), 0, "{kernel} {detector}");
        }
    }
}
