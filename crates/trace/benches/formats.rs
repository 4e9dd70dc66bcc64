//! How fast each format is written and read, on recordings of real kernels.
//!
//! Prints events per second of this host's CPU time, bytes per event, and a hash of the
//! events read. With `--test` (as `cargo test` runs it) the input is tiny.

use std::io::{Cursor, Read};
use std::path::Path;

use schedlab_trace::read::{Error, Record, ftrace, jsonl, perfetto, trace_dat};
use schedlab_trace::write::{Extras, Ftrace, Jsonl, Perfetto, Precision, TraceDat};
use schedlab_trace::{Event, Sink};

fn main() {
    let tiny = std::env::args().any(|arg| arg == "--test") || cfg!(debug_assertions);
    let events = recorded(if tiny { 1_000 } else { 400_000 });
    println!("{} events of recorded kernels", events.len());
    let file =
        written("ftrace text", &events, |sink| sink.finish(), Ftrace::new(Vec::new(), Precision::Nano));
    read("ftrace text", ftrace::Reader::new(&file[..]));
    let file = written("JSON lines", &events, |sink| sink.finish(), Jsonl::new(Vec::new()));
    read("JSON lines", jsonl::Reader::new(&file[..]));
    let file = written("Perfetto", &events, |sink| sink.finish(), Perfetto::new(Vec::new(), Extras::NONE));
    read("Perfetto", perfetto::Reader::new(Cursor::new(&file)).expect("a trace"));
    written("Perfetto, all", &events, |sink| sink.finish(), Perfetto::new(Vec::new(), Extras::ALL));
    let spool = Cursor::new(Vec::new());
    let file = written("trace.dat", &events, |sink| sink.finish(), TraceDat::new(Vec::new(), spool, 16));
    read("trace.dat", trace_dat::Reader::new(Cursor::new(&file)).expect("a trace"));
}

/// Events of the recordings, up to a number.
fn recorded(count: usize) -> Vec<Event> {
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut events = Vec::new();
    for name in ["6.1/2x2x4/pipes", "7.2/2x2x4/pipes", "6.12/2x2x4/sleepers", "7.2/2x2x4/fork"] {
        let packed = std::fs::File::open(traces.join(name).join("trace.txt.gz")).expect("it is in the tree");
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut text).expect("it is whole");
        events.extend(ftrace::Reader::new(&text[..]).filter_map(|record| match record {
            Ok(Record::Event(event)) => Some(event),
            _ => None,
        }));
    }
    // One recording after the other, with increasing times.
    let mut shift = 0;
    let mut last = 0;
    for event in &mut events {
        if event.time.0 + shift < last {
            shift = last - event.time.0;
        }
        event.time.0 += shift;
        last = event.time.0;
    }
    events.truncate(count);
    events
}

fn written<S: Sink>(
    name: &str,
    events: &[Event],
    finish: impl Fn(S) -> std::io::Result<Vec<u8>>,
    mut sink: S,
) -> Vec<u8> {
    let begin = cpu_seconds();
    events.iter().for_each(|event| sink.event(event));
    let file = finish(sink).expect("memory can be written");
    let (rate, size) = (rate(events.len(), begin), file.len() / events.len());
    println!("{name:>14} written {rate:>6.2} M events/s, {size:>4} bytes each, hash {:016x}", hash(&file));
    file
}

fn read(name: &str, records: impl Iterator<Item = Result<Record, Error>>) {
    let begin = cpu_seconds();
    let (mut count, mut sum) = (0, 0u64);
    for record in records {
        if let Record::Event(event) = record.expect("memory can be read") {
            count += 1;
            sum = sum.rotate_left(5) ^ event.time.0 ^ u64::from(event.cpu.0) << 48 ^ event.pid.0 as u64;
        }
    }
    println!("{name:>14} read    {:>6.2} M events/s, hash {sum:016x}", rate(count, begin));
}

fn rate(count: usize, begin: f64) -> f64 {
    count as f64 / (cpu_seconds() - begin) / 1e6
}

/// CPU time of this thread so far, from the system, so that other programs do not disturb it.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
