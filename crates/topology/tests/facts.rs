//! The machines of recorded kernels, read from their sysfs, match how they were made.

use std::fs;
use std::path::Path;

use schedlab_topology::{SavedSysfs, Topology};

/// The machine that a recording's folder is named after. If a node has several LLCs, QEMU made each of them a package.
fn made_as(folder: &str) -> &'static str {
    const MADE: [&str; 6] = ["-whitebox", "-tracedat", "-scx-fifo", "-groups", "-programs", "-switches"];
    let shape = MADE.iter().fold(folder, |shape, made| shape.trim_end_matches(made));
    match shape {
        "1x1x8" => "1x1x8:l2=4M,llc=16M",
        "1x1x4" => "1x1x4:l2=4M,llc=16M",
        "2x1x4" => "2x1x4:l2=4M,llc=16M",
        "2x1x8-cluster" => "2x1x8:cluster=4,l2=4M,llc=16M",
        "2x2x4" => "2x2x4:packages=llc,l2=4M,llc=16M",
        "2x2x2x2-smt" => "2x2x2x2:packages=llc,l2=4M,llc=16M",
        _ => panic!("say here what machine {folder} is"),
    }
}

#[test]
fn recorded_machines_are_what_they_were_made_as() {
    let traces = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces"));
    let mut nr_checked = 0;
    for kernel in ["6.1", "6.12", "7.2"] {
        for folder in fs::read_dir(traces.join(kernel)).unwrap() {
            let folder = folder.unwrap();
            let Ok(text) = fs::read_to_string(folder.path().join("facts/topology.txt")) else { continue };
            let machine = folder.file_name().into_string().unwrap();
            let saved = SavedSysfs::from_lines(&machine, &text).unwrap();
            let topology = Topology::from_sysfs(&machine, &saved).unwrap();
            let expected = Topology::regular(made_as(&machine)).unwrap().named(&machine);
            assert_eq!(topology, expected, "{kernel}/{machine}");
            nr_checked += 1;
        }
    }
    assert!(nr_checked >= 20, "only {nr_checked} recorded machines were found");
}
