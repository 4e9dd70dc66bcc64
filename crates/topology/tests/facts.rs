//! The machines of recorded kernels come out of their sysfs as they were made.

use std::io::Read;
use std::path::Path;

use schedlab_topology::{SavedSysfs, Topology};

/// A kernel and machine under `traces/facts`, and the regular machine that it is.
const RECORDED: &[(&str, &str)] = &[
    ("6.1/1x1x8", "1x1x8:l2=4M,llc=16M"),
    ("6.1/2x1x4-tracedat", "2x1x4:l2=4M,llc=16M"),
    ("6.1/2x1x8-cluster", "2x1x8:cluster=4,l2=4M,llc=16M"),
    ("6.1/2x2x2x2-smt", "2x2x2x2:packages=llc,l2=4M,llc=16M"),
    ("6.1/2x2x4", "2x2x4:packages=llc,l2=4M,llc=16M"),
    ("6.12/1x1x8", "1x1x8:l2=4M,llc=16M"),
    ("6.12/2x1x8-cluster", "2x1x8:cluster=4,l2=4M,llc=16M"),
    ("6.12/2x2x2x2-smt", "2x2x2x2:packages=llc,l2=4M,llc=16M"),
    ("6.12/2x2x4", "2x2x4:packages=llc,l2=4M,llc=16M"),
    ("7.2/1x1x8", "1x1x8:l2=4M,llc=16M"),
    ("7.2/2x1x8-cluster", "2x1x8:cluster=4,l2=4M,llc=16M"),
    ("7.2/2x2x2x2-smt", "2x2x2x2:packages=llc,l2=4M,llc=16M"),
    ("7.2/2x2x4", "2x2x4:packages=llc,l2=4M,llc=16M"),
];

fn facts() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/facts"))
}

#[test]
fn recorded_machines_are_what_they_were_made_as() {
    for (machine, regular) in RECORDED {
        let path = facts().join(machine).join("topology.txt.gz");
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        let saved = SavedSysfs::from_lines(machine, &text).unwrap();
        let topology = Topology::from_sysfs(machine, &saved).unwrap();
        assert_eq!(topology, Topology::regular(regular).unwrap().named(machine), "{machine}");
    }
}

#[test]
fn no_recorded_machine_is_forgotten() {
    let mut found = Vec::new();
    for kernel in std::fs::read_dir(facts()).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        for machine in std::fs::read_dir(kernel.path()).unwrap().flatten() {
            if machine.path().join("topology.txt.gz").exists() {
                let kernel = kernel.file_name().into_string().unwrap();
                found.push(format!("{kernel}/{}", machine.file_name().into_string().unwrap()));
            }
        }
    }
    found.sort();
    assert_eq!(found, RECORDED.iter().map(|row| row.0).collect::<Vec<_>>());
}
