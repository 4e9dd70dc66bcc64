//! Every verdict over recordings, to be compared before and after a change that may not change
//! any: `verdicts [--text] [--groups] [--perf] traces/6.1/2x2x4/pipes ...` prints a hash for each
//! recording, or the verdicts; as if groups were hidden, or as if `perf sched record` had
//! made the recording, which leaves out `sched_wakeup`.

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::Path;

use schedlab_audit::{Audit, Options, apply_features, apply_tunables, hints_of_command};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::read::{feed, ftrace};
use schedlab_trace::{Event, Kind, Sink};

fn main() {
    let (options, folders): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|arg| arg.starts_with("--"));
    let has = |name: &str| options.iter().any(|option| option == name);
    for folder in folders {
        let folder = Path::new(&folder);
        let machine = folder.parent().unwrap();
        let version = machine.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let fact = |name: &str| fs::read_to_string(machine.join("facts").join(name)).unwrap();
        let topology = Topology::from_sysfs_lines("x", &fact("topology.txt")).unwrap();
        let mut kernel = Kernel::parse(&format!("v{version}")).unwrap();
        apply_features(&mut kernel, &fact("sched_features.txt"));
        apply_tunables(&mut kernel, &fact("debug_sched.txt"), topology.online().weight());
        let command = fs::read_to_string(folder.join("cmd.txt")).unwrap();
        let mut text = Vec::new();
        let file = fs::File::open(folder.join("trace.txt.gz")).unwrap();
        flate2::read::GzDecoder::new(file).read_to_end(&mut text).unwrap();
        let mut events: Vec<Event> = Vec::new();
        feed(ftrace::Reader::new(&text[..]), &mut events).unwrap();
        let affinity = hints_of_command(&command, topology.nr_cpus());
        let options = Options {
            affinity,
            groups_hidden: has("--groups"),
            keep_verdicts: true,
            stories: 3,
            ..Options::default()
        };
        let mut audit = Audit::new(&topology, &kernel, options);
        for event in &events {
            if !has("--perf") || !matches!(event.kind, Kind::SchedWakeup { .. }) {
                audit.event(event);
            }
        }
        let (report, _) = audit.finish();
        let mut lines: Vec<String> =
            report.verdicts.iter().map(|verdict| format!("{verdict} {:?}", verdict.hidden)).collect();
        lines.push(serde_json::to_string(&report).unwrap());
        if has("--text") {
            lines.iter().for_each(|line| println!("{line}"));
        }
        let mut hasher = DefaultHasher::new();
        lines.iter().for_each(|line| hasher.write(line.as_bytes()));
        println!("{:50} {:016x} {} events", folder.display(), hasher.finish(), report.events);
    }
}
