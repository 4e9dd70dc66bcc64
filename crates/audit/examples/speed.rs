//! How fast recordings are read and audited: `speed traces/6.1/2x2x4/pipes ...`, events per
//! second of CPU time of reading alone and of reading and auditing, the recording repeated in time.

use std::fs;
use std::io::Read;
use std::path::Path;

use schedlab_audit::{Audit, Options, apply_features, apply_tunables};
use schedlab_sched::Kernel;
use schedlab_topology::Topology;
use schedlab_trace::read::{feed, ftrace};
use schedlab_trace::{Event, NullSink, Sink};
use schedlab_units::Duration;

/// Events that each measurement is made of, at least.
const EVENTS: usize = 400_000;

/// CPU time of this process, s.
fn cpu_time() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

fn main() {
    for folder in std::env::args().skip(1) {
        let folder = Path::new(&folder);
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
        let mut events: Vec<Event> = Vec::new();
        feed(ftrace::Reader::new(&text[..]), &mut events).unwrap();
        let rounds = EVENTS.div_ceil(events.len());
        let all = (rounds * events.len()) as f64;

        let start = cpu_time();
        for _ in 0..rounds {
            feed(ftrace::Reader::new(&text[..]), &mut NullSink).unwrap();
        }
        let read = cpu_time() - start;

        let span = events.last().unwrap().time.since(events[0].time) + Duration::millis(10);
        let mut audit = Audit::new(&topology, &kernel, Options::default());
        let start = cpu_time();
        for round in 0..rounds as u64 {
            for event in &events {
                let mut event = event.clone();
                event.time += Duration(span.0 * round);
                audit.event(&event);
            }
        }
        let (report, _) = audit.finish();
        let audited = cpu_time() - start;
        println!(
            "{:40} {} events, read {:.2} M/s, audit {:.3} M/s, both {:.3} M/s",
            folder.display(),
            report.events,
            all / read / 1e6,
            all / audited / 1e6,
            all / (read + audited) / 1e6
        );
    }
}
