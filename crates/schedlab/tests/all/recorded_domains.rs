//! The domains of every recorded machine, CPU by CPU, compared with those built here.

use std::fs;
use std::path::{Path, PathBuf};

use schedlab::facts::{Facts, domain_differences};
use schedlab::sched::{Domains, Kernel};
use schedlab::topology::Topology;

/// The machine of a recording by the name of its folder.
fn machine(folder: &str) -> Topology {
    let shape: String = folder.chars().take_while(|c| c.is_ascii_digit() || *c == 'x').collect();
    let shape = shape.trim_end_matches('x');
    let distance = if shape.starts_with('1') { "" } else { "distance=10/21" };
    let cluster = if folder.contains("cluster") { ",cluster=4" } else { "" };
    Topology::regular(&format!("{shape}:{distance}{cluster}")).unwrap()
}

fn recordings() -> Vec<(Kernel, PathBuf)> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut found = Vec::new();
    for preset in ["6.1", "6.12", "7.2"] {
        let kernel = Kernel::parse(preset).unwrap();
        let folders = fs::read_dir(traces.join(preset)).unwrap().map(|f| f.unwrap().path());
        found.extend(folders.map(|folder| (kernel.clone(), folder)));
    }
    found.sort_by(|a, b| a.1.cmp(&b.1));
    found
}

#[test]
fn domains_and_groups_equal_those_of_the_kernel() {
    let recordings = recordings();
    assert_eq!(recordings.len(), 29);
    for (kernel, folder) in recordings {
        let topology = machine(folder.file_name().unwrap().to_str().unwrap());
        let domains = Domains::build(&topology, &kernel, topology.online());
        let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
        let (debugfs, schedstat) = (read("facts/domains.txt"), read("facts/schedstat.txt"));
        let dmesg = read("dmesg.txt");
        let facts = Facts { domains: Some(&debugfs), schedstat: Some(&schedstat), dmesg: Some(&dmesg) };
        let differences = domain_differences(facts, &kernel, &domains);
        assert!(differences.is_empty(), "{}:\n{}", folder.display(), differences.join("\n"));
        assert!(dmesg.contains("attaching sched-domain(s)"), "{}", folder.display());
    }
}
