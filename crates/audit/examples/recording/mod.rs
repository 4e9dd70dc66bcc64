//! A recording as the examples take it: a folder of `traces/`, read whole.

use std::fs;
use std::io::Read;
use std::path::Path;

use schedlab_audit::{GroupFiles, Groups, apply_features, apply_tunables};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::Event;
use schedlab_trace::read::{feed, ftrace};

/// A recording and what was recorded beside it.
pub struct Recording {
    pub topology: Topology,
    pub kernel: Kernel,
    pub text: Vec<u8>,
    pub groups: Groups,
}

impl Recording {
    pub fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        feed(ftrace::Reader::new(&self.text[..]), &mut events).unwrap();
        events
    }
}

/// Reads `KERNEL/MACHINE/LOAD`.
pub fn read(folder: &Path) -> Recording {
    let machine = folder.parent().unwrap();
    let version = machine.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let fact = |name: &str| fs::read_to_string(machine.join("facts").join(name)).unwrap();
    let topology = Topology::from_sysfs_lines("x", &fact("topology.txt")).unwrap();
    let mut kernel = Kernel::parse(&format!("v{version}")).unwrap();
    apply_features(&mut kernel, &fact("sched_features.txt"));
    apply_tunables(&mut kernel, &fact("debug_sched.txt"), topology.online().weight());
    let mut text = Vec::new();
    let file = fs::File::open(folder.join("trace.txt.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut text).unwrap();
    let own = folder.join("facts");
    let of_groups = |name: &str| fs::read_to_string(own.join(name)).unwrap_or_default();
    let groups = Groups::read(&GroupFiles {
        before: &of_groups("groups-before.txt"),
        after: &of_groups("groups-after.txt"),
        cgroups: &of_groups("cgroups.txt"),
        cgroups_after: &of_groups("cgroups-after.txt"),
        sysctl: &fact("sysctl.txt"),
    });
    Recording { topology, kernel, text, groups: groups.unwrap_or_default().0 }
}
