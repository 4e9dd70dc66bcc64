//! How fast recordings are read and audited: `speed traces/6.1/2x2x4/pipes ...`, events per
//! second of CPU time of reading alone and of reading and auditing, the recording repeated in time.

mod recording;

use std::fs;
use std::path::Path;

use schedlab_audit::{Audit, Options};
use schedlab_trace::read::{feed, ftrace};
use schedlab_trace::{NullSink, Sink};
use schedlab_units::Duration;

use recording::Recording;

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
        let recording = recording::read(folder);
        let events = recording.events();
        let Recording { topology, kernel, text } = recording;
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
