//! Readers terminate on any damaged file, and report what can be read and what cannot.

mod common;

use std::io::{Cursor, Read};

use proptest::prelude::*;
use schedlab_trace::read::{
    Error, Record, detect, ftrace, jsonl, open, perf_data, perf_script, perfetto, trace_dat,
};
use schedlab_trace::write::{Extras, Ftrace, Jsonl, Perfetto, Precision, TraceDat};
use schedlab_trace::{Event, Sink};

/// More records than any of the small files here can contain.
const ENDLESS: usize = 1 << 20;

/// Reads everything with every reader, and queries each event as readers of traces do.
fn read_all(bytes: &[u8]) {
    fn exhaust(records: impl Iterator<Item = Result<Record, Error>>) {
        let mut times = 0;
        for record in records {
            times += 1;
            assert!(times < ENDLESS, "a reader does not end");
            match record {
                Ok(Record::Event(event)) => event.kind.fields(|_, value| drop(value.to_string())),
                Ok(Record::Lost(lost)) => drop(lost.to_string()),
                Ok(Record::Gap(gap)) => drop(gap.to_string()),
                Err(error) => drop(error.to_string()),
            }
        }
    }
    exhaust(ftrace::Reader::new(bytes));
    exhaust(perf_script::Reader::new(bytes));
    exhaust(jsonl::Reader::new(bytes));
    perfetto::Reader::new(Cursor::new(bytes)).into_iter().for_each(exhaust);
    trace_dat::Reader::new(Cursor::new(bytes)).into_iter().for_each(exhaust);
    perf_data::Reader::new(Cursor::new(bytes)).into_iter().for_each(exhaust);
    let _ = detect(bytes);
    open(Cursor::new(bytes.to_vec()), || Ok(Cursor::new(Vec::new()))).into_iter().for_each(exhaust);
}

/// A file of each format.
fn files(trace: &[Event]) -> Vec<Vec<u8>> {
    fn feed<S: Sink>(events: &[Event], mut sink: S) -> S {
        events.iter().for_each(|event| sink.event(event));
        sink
    }
    let spool = Cursor::new(Vec::new());
    let mut perf = Vec::new();
    let packed = &include_bytes!("data/perf-sched.data.gz")[..];
    flate2::read::GzDecoder::new(packed).read_to_end(&mut perf).expect("it is whole");
    vec![
        feed(trace, Ftrace::new(Vec::new(), Precision::Nano)).finish().unwrap(),
        feed(trace, Jsonl::new(Vec::new())).finish().unwrap(),
        feed(trace, Perfetto::new(Vec::new(), Extras::ALL)).finish().unwrap(),
        feed(trace, TraceDat::new(Vec::new(), spool, 2)).finish().unwrap(),
        perf,
        include_bytes!("../../../fuzz/seeds/trace_dat/version-7").to_vec(),
    ]
}

/// One way to damage a file.
#[derive(Clone, Debug)]
enum Damage {
    Set(u8),
    Remove(usize),
    Repeat(usize),
    Cut,
}

fn damages() -> impl Strategy<Value = Vec<(f64, Damage)>> {
    let damage = prop_oneof![
        6 => any::<u8>().prop_map(Damage::Set),
        2 => proptest::sample::select(vec![0, 1, 0x7f, 0x80, 0xff]).prop_map(Damage::Set),
        1 => (1..40usize).prop_map(Damage::Remove),
        1 => (1..40usize).prop_map(Damage::Repeat),
        1 => Just(Damage::Cut),
    ];
    // The front of a file decides most, so half of the damage is done there.
    let place = prop_oneof![0.0..1.0f64, (0.0..1.0f64).prop_map(|place| place * place * place)];
    proptest::collection::vec((place, damage), 1..12)
}

fn damaged(mut file: Vec<u8>, damages: &[(f64, Damage)]) -> Vec<u8> {
    for (place, damage) in damages {
        let at = (place * file.len() as f64) as usize;
        let end = |len: usize| (at + len).min(file.len());
        match damage {
            Damage::Set(byte) => {
                if let Some(place) = file.get_mut(at) {
                    *place = *byte;
                }
            }
            Damage::Remove(len) => drop(file.drain(at..end(*len))),
            Damage::Repeat(len) => {
                let part = file[at..end(*len)].to_vec();
                file.splice(at..at, part);
            }
            Damage::Cut => file.truncate(at),
        }
    }
    file
}

proptest! {
    #[test]
    fn bytes_at_random(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        read_all(&bytes);
        for mark in [&b"\x17\x08\x44tracing6\0\0\x08\0\x10\0\0"[..], b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0none\0\0", b"PERFILE2\x10\0\0\0\0\0\0\0", b"PERFILE2\x68\0\0\0\0\0\0\0", b"\x0a", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"] {
            read_all(&[mark, &bytes].concat());
        }
    }

    #[test]
    fn lines_at_random(lines in proptest::collection::vec("[ -~]{0,60}|[a-z <>-]{1,16}-[0-9]{1,7} *(\\([ 0-9-]{7}\\) )?\\[[0-9]{1,3}\\] [dDNnhs.0-9]{4,5} *[0-9]{1,6}\\.[0-9]{6,9}: [a-z_:]{1,20}: [ -~]{0,60}", 0..20)) {
        read_all(lines.join("\n").as_bytes());
    }

    #[test]
    fn damaged_files(trace in common::trace(), damages in damages()) {
        for file in files(&trace) {
            read_all(&damaged(file, &damages));
        }
    }
}

#[test]
fn seeds_of_the_fuzz_targets() {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds");
    let mut count = 0;
    for target in std::fs::read_dir(seeds).expect("the seeds are in the tree") {
        for seed in std::fs::read_dir(target.unwrap().path()).unwrap() {
            read_all(&std::fs::read(seed.unwrap().path()).unwrap());
            count += 1;
        }
    }
    assert!(count >= 10, "{count} seeds");
}

#[test]
fn files_cut_anywhere() {
    let text = &include_bytes!("data/tracefs-6.1.txt")[..];
    let trace: Vec<Event> = ftrace::Reader::new(text)
        .filter_map(|record| match record {
            Ok(Record::Event(event)) => Some(event),
            _ => None,
        })
        .take(10)
        .collect();
    for file in files(&trace).into_iter().take(4) {
        for end in 0..file.len() {
            // For long files only some of the cuts, including all of the first ones.
            if end < 600 || end % 37 == 0 {
                read_all(&file[..end]);
            }
        }
    }
}
