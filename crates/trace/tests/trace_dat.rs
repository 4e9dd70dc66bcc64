//! trace.dat, read and written, compared with trace-cmd's output for the same files.

mod common;

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::process::Command;

use proptest::prelude::*;
use schedlab_trace::read::{Record, ftrace, trace_dat};
use schedlab_trace::write::{Recorded, TraceDat};
use schedlab_trace::{Comm, Event, Flags, Kind, Sink};
use schedlab_units::Pid;

fn write(events: &[Event]) -> Vec<u8> {
    let mut writer = TraceDat::new(Vec::new(), Cursor::new(Vec::new()), 4);
    events.iter().for_each(|event| writer.event(event));
    writer.finish().expect("memory can be written")
}

fn events(records: impl Iterator<Item = Result<Record, schedlab_trace::read::Error>>) -> Vec<Event> {
    records
        .map(|record| match record.expect("memory can be read") {
            Record::Event(event) => event,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn read(file: &[u8]) -> Vec<Event> {
    events(trace_dat::Reader::new(Cursor::new(file)).expect("a trace.dat"))
}

/// A trace.dat has one name per task, and no processes; it keeps the order of one CPU's events.
fn as_held(events: &[Event]) -> Vec<Event> {
    let mut events = events.to_vec();
    let names: HashMap<Pid, Comm> = events.iter().map(|event| (event.pid, event.comm)).collect();
    for event in &mut events {
        event.tgid = None;
        event.comm = names[&event.pid];
    }
    events.sort_by_key(|event| (event.time, event.cpu));
    events
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(trace in common::trace()) {
        prop_assert_eq!(read(&write(&trace)), as_held(&trace));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn many_pages_are_read_back(trace in proptest::collection::vec(common::event(), 400..500)) {
        let trace = common::sorted(trace);
        prop_assert_eq!(read(&write(&trace)), as_held(&trace));
    }
}

/// A recording of a real kernel, with trace-cmd's report of it.
fn recording(name: &str) -> (Vec<u8>, Vec<Event>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces/6.1/2x1x4-tracedat").join(name);
    let unpacked = |name: &str| {
        let packed = std::fs::read(folder.join(name)).expect("the recording is in the tree");
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut bytes).expect("it is whole");
        bytes
    };
    (unpacked("trace.dat.gz"), events(ftrace::Reader::new(&unpacked("report.txt.gz")[..])))
}

#[test]
fn a_recording_holds_what_trace_cmd_reports() {
    for (name, count) in [("pipes", 505), ("hogs", 881), ("barrier-nospin", 1209)] {
        let (file, report) = recording(name);
        let reader = trace_dat::Reader::new(Cursor::new(&file)).unwrap();
        let info = reader.info().clone();
        assert_eq!((info.version, info.nr_cpus, info.clock.as_str()), (7, 8, "mono"));
        assert!(info.uname.contains("6.1.0"), "{}", info.uname);
        let found = events(reader);
        assert_eq!((found.len(), report.len()), (count, count), "{name}");
        for (mut found, report) in found.into_iter().zip(report) {
            assert!(found.flags.is_known());
            // The report is in microseconds, rounded, and has no flags.
            assert!(found.time.0.abs_diff(report.time.0) <= 500);
            (found.time, found.flags) = (report.time, Flags::UNKNOWN);
            assert_eq!(found, report);
        }
    }
}

#[test]
fn a_clock_that_does_not_count_time_is_reported() {
    // The numbers that convert cycles to nanoseconds are a separate option.
    let known = [&14u16.to_le_bytes()[..], &8u32.to_le_bytes(), &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
    for (clock, option, is_told) in [
        ("local [mono] x86-tsc", &[][..], false),
        ("local mono [x86-tsc]", &[], true),
        ("local mono [x86-tsc]", &known, false),
        ("[counter] local", &[], true),
        ("uptime", &[], true),
    ] {
        let header_page = b"\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n".into();
        let recorded = Recorded { page_size: 4096, header_page, clock: clock.into(), ..Recorded::default() };
        let mut file = recorded.head(&[0]);
        let options = b"options  \0";
        let at = file.windows(options.len()).position(|bytes| bytes == options).unwrap() + options.len();
        file.splice(at..at, option.iter().copied());
        let told: Vec<Record> =
            trace_dat::Reader::new(Cursor::new(&file)).unwrap().map(Result::unwrap).collect();
        let says = |record: &Record| match record {
            Record::Gap(gap) => gap.why.contains("which does not count time; they are taken for nanoseconds"),
            _ => false,
        };
        assert!(told.iter().all(says) && told.len() == usize::from(is_told), "{clock}: {told:?}");
    }
}

/// Runs trace-cmd on a file, or reports that it cannot.
fn trace_cmd(args: &[&str], file: &Path) -> Option<Vec<u8>> {
    match Command::new("trace-cmd").args(args).arg(file).output() {
        Ok(output) => {
            let errors = String::from_utf8_lossy(&output.stderr);
            let complains = args[0] == "report" && !errors.is_empty();
            assert!(output.status.success() && !complains, "trace-cmd: {errors}");
            Some(output.stdout)
        }
        Err(_) => {
            println!("skipped: trace-cmd is not installed");
            None
        }
    }
}

struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str, content: &[u8]) -> Temporary {
        let path = std::env::temp_dir().join(format!("schedlab-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("the folder for temporary files can be written");
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A file of version 6 whose events are in a buffer with this name, and not in the first.
fn in_an_instance(file: &[u8], name: &str) -> Vec<u8> {
    let at = |mark: &[u8]| file.windows(mark.len()).position(|bytes| bytes == mark).expect("it is there");
    let (options, table) = (at(b"options  \0") + 10, at(b"flyrecord\0") + 10);
    let nr_cpus = u32::from_le_bytes(file[options - 14..options - 10].try_into().unwrap()) as usize;
    let table_end = table + 16 * nr_cpus;
    let shift = 2 + 4 + 8 + name.len() as u64 + 1;
    let words =
        file[table..table_end].chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap()));
    // Positions and sizes in turn.
    let moved: Vec<u8> =
        words.enumerate().flat_map(|(n, word)| (word + [shift, 0][n % 2]).to_le_bytes()).collect();
    let option = [
        &3u16.to_le_bytes()[..],
        &(8 + name.len() as u32 + 1).to_le_bytes(),
        &(file.len() as u64 + shift).to_le_bytes(),
        name.as_bytes(),
        b"\0",
    ];
    let empty = vec![0; 16 * nr_cpus];
    let (before, between, pages) = (&file[..options], &file[options..table], &file[table_end..]);
    [before, &option.concat(), between, &empty, pages, b"flyrecord\0", &moved].concat()
}

#[test]
fn where_the_first_buffer_is_empty_the_next_is_read() {
    let file = write(&recording("pipes").1);
    let found = read(&in_an_instance(&file, "foo"));
    assert!(found.len() == 505 && found == read(&file));
}

#[test]
fn both_versions_are_read_alike() {
    let (file, _) = recording("pipes");
    let original = Temporary::new("original.dat", &file);
    let converted = Temporary::new("converted.dat", &[]);
    let input = original.0.to_str().unwrap();
    for (version, compression) in [("6", "none"), ("7", "none"), ("7", "zstd")] {
        let args = ["convert", "--file-version", version, "--compression", compression, "-i", input, "-o"];
        let Some(_) = trace_cmd(&args, &converted.0) else { return };
        let found = read(&std::fs::read(&converted.0).unwrap());
        assert_eq!(found, read(&file), "version {version}, compression {compression}");
    }
}

#[test]
fn trace_cmd_reports_what_is_written() {
    let (file, _) = recording("pipes");
    let mut all = read(&file);
    // One event of each kind that the format can contain, at distinct CPUs and times.
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for i in 0..600u64 {
        let tree = proptest::strategy::Strategy::new_tree(&common::event(), &mut runner).unwrap();
        let mut event = proptest::strategy::ValueTree::current(&tree);
        event.time = schedlab_units::Time(4_000_000_000 + 10 * i);
        event.cpu.0 %= 8;
        all.push(event);
    }
    all.retain(|event| plain(&event.kind));
    let written = Temporary::new("written.dat", &write(&all));
    let Some(report) = trace_cmd(&["report", "-t", "-N", "-i"], &written.0) else { return };
    let mut found = events(ftrace::Reader::new(&report[..]));
    let mut expected = as_held(&all);
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter_mut().zip(&mut expected) {
        found.flags = expected.flags;
        assert_eq!(found, expected);
    }
}

/// Whether trace-cmd's text of an event can be read back at all: it splits a name at a space.
fn plain(kind: &Kind) -> bool {
    !matches!(kind, Kind::Unknown(unknown) if unknown.text().is_empty())
        && !matches!(kind, Kind::Print(text) if text.is_empty())
}
