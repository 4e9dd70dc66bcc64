//! Measures how fast recordings are read and audited: `speed [--events=N] traces/6.1/2x2x4/pipes ...`. It prints events
//! per second of CPU time for reading alone, for auditing alone, for both by the sum of their times, and for both in
//! one pass, event by event, with the recording repeated in time until it has N events; then for reading the same
//! events from a trace.dat and a perf.data. The last line covers all recordings together, unrepeated.

mod recording;

use std::fs;
use std::io::Cursor;
use std::path::Path;
use std::thread;

use schedlab_audit::{Audit, Options};
use schedlab_trace::read::{Error, Record, feed, ftrace, perf_data, trace_dat};
use schedlab_trace::write::{PerfData, TraceDat};
use schedlab_trace::{NullSink, Sink};
use schedlab_units::Duration;

use recording::Recording;

/// Minimum number of events in each measurement, by default.
const EVENTS: usize = 400_000;

/// CPU time of this process, s. The kernel updates it at ticks and when a task yields.
fn cpu_time() -> f64 {
    thread::yield_now();
    let text = fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Reads a file again and again; returns the time taken.
fn reading<I: Iterator<Item = Result<Record, Error>>>(rounds: usize, open: impl Fn() -> I) -> f64 {
    let start = cpu_time();
    for _ in 0..rounds {
        feed(open(), &mut NullSink).unwrap();
    }
    cpu_time() - start
}

fn main() {
    let mut at_least = EVENTS;
    // Totals over all recordings: number of events, and seconds for reading, for auditing and for both in one pass.
    let (mut nr_all, mut all_read, mut all_audited, mut all_in_one) = (0, 0.0, 0.0, 0.0);
    for folder in std::env::args().skip(1) {
        if let Some(events) = folder.strip_prefix("--events=") {
            at_least = events.parse().unwrap();
            continue;
        }
        let folder = Path::new(&folder);
        let recording = recording::read(folder);
        let mut events = recording.events();
        let Recording { facts, text } = recording;
        let rounds = at_least.div_ceil(events.len());
        let all = (rounds * events.len()) as f64;

        let read = reading(rounds, || ftrace::Reader::new(&text[..]));
        let spool = || Cursor::new(Vec::new());
        let mut writers = (
            TraceDat::new(Vec::new(), spool(), facts.topology.nr_cpus()),
            PerfData::new(Vec::new(), spool(), facts.topology.nr_cpus()),
        );
        events.iter().for_each(|event| {
            writers.0.event(event);
            writers.1.event(event);
        });
        let files = (writers.0.finish().unwrap(), writers.1.finish().unwrap());
        let of_dat = reading(rounds, || trace_dat::Reader::new(Cursor::new(&files.0)).unwrap());
        let of_perf = reading(rounds, || perf_data::Reader::new(Cursor::new(&files.1)).unwrap());

        let span = events.last().unwrap().time.since(events[0].time) + Duration::millis(10);
        let begun = || Audit::new(&facts.topology, &facts.kernel, Options::of(&facts));
        let mut audit = begun();
        let start = cpu_time();
        for _ in 0..rounds {
            for event in &mut events {
                audit.event(event);
                event.time += span;
            }
        }
        let (report, _) = audit.finish();
        let audited = cpu_time() - start;
        let mut audit = begun();
        let start = cpu_time();
        for round in 0..rounds as u64 {
            for record in ftrace::Reader::new(&text[..]) {
                if let Record::Event(mut event) = record.unwrap() {
                    event.time += Duration(round * span.0);
                    audit.take(event);
                }
            }
        }
        assert_eq!(audit.finish().0, report);
        let in_one = cpu_time() - start;
        println!(
            "{:40} {} events, read {:.2} M/s, audit {:.3} M/s, both {:.3}, in one go {:.3} M/s; trace.dat {:.2}, perf.data {:.2} M/s",
            folder.display(),
            report.events,
            all / read / 1e6,
            all / audited / 1e6,
            all / (read + audited) / 1e6,
            all / in_one / 1e6,
            all / of_dat / 1e6,
            all / of_perf / 1e6
        );
        nr_all += events.len();
        all_read += read / rounds as f64;
        all_audited += audited / rounds as f64;
        all_in_one += in_one / rounds as f64;
    }
    let rate = |time: f64| nr_all as f64 / time / 1e6;
    println!(
        "together: {nr_all} events, read {:.2} M/s, audit {:.3} M/s, both {:.3}, in one go {:.3} M/s",
        rate(all_read),
        rate(all_audited),
        rate(all_read + all_audited),
        rate(all_in_one)
    );
}
