//! White-box recordings as lists of events.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::read::{Record, ftrace};
use schedlab_trace::{Event, Kind, Unknown};

/// One load on one machine under one kernel.
pub struct Recording {
    pub kernel: Kernel,
    pub topology: Topology,
    pub load: String,
    /// In order of time over all CPUs.
    pub events: Vec<Event>,
}

impl Recording {
    /// Every white-box recording, by kernel, machine and load.
    pub fn all() -> impl Iterator<Item = Recording> {
        ["6.1", "6.12", "7.2"].into_iter().flat_map(Recording::of_kernel)
    }

    /// The recordings of one kernel.
    pub fn of_kernel(kernel: &'static str) -> impl Iterator<Item = Recording> {
        // Newly idle balancing tried every domain, as the recording job says.
        let rules = Kernel::parse(&format!("{kernel}+NO_NI_RANDOM")).unwrap();
        ["2x2x4", "2x2x2x2"].into_iter().flat_map(move |shape| {
            let folder = if shape == "2x2x4" { "2x2x4-whitebox" } else { "2x2x2x2-smt-whitebox" };
            let topology = Topology::regular(&format!("{shape}:distance=10/21")).unwrap();
            let rules = rules.clone();
            loads(kernel, folder).into_iter().map(move |path| {
                let load = path.file_name().unwrap().to_str().unwrap().to_string();
                let events = events(&path.join("trace.txt.gz"));
                Recording { kernel: rules.clone(), topology: topology.clone(), load, events }
            })
        })
    }
}

fn loads(kernel: &str, folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(kernel).join(folder);
    let mut loads: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.join("trace.txt.gz").exists())
        .collect();
    loads.sort();
    loads
}

fn events(path: &Path) -> Vec<Event> {
    let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let text = BufReader::new(flate2::read::GzDecoder::new(BufReader::new(file)));
    ftrace::Reader::new(text)
        .map(|record| match record.unwrap_or_else(|e| panic!("{}: {e:?}", path.display())) {
            Record::Event(event) => event,
            other => panic!("{}: {other:?}", path.display()),
        })
        .collect()
}

/// The probe of an event, if it is one.
pub fn probe(event: &Event) -> Option<&Unknown> {
    match &event.kind {
        Kind::Unknown(probe) => Some(probe),
        _ => None,
    }
}

/// A field that a probe always has.
#[track_caller]
pub fn int(probe: &Unknown, key: &str) -> i64 {
    probe.int(key).unwrap_or_else(|| panic!("{} has no {key}: {}", probe.name(), probe.text()))
}
