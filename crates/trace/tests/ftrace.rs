//! Trace text, read and written: recordings of real kernels, reports of trace-cmd, and
//! random events.

mod common;

use std::io::Read;
use std::path::Path;

use proptest::prelude::*;
use schedlab_trace::read::{self, Record, ftrace};
use schedlab_trace::write::{Ftrace, Precision};
use schedlab_trace::{Event, Kind, Sink};

fn read(text: &[u8]) -> Vec<Record> {
    ftrace::Reader::new(text).map(|record| record.expect("memory can be read")).collect()
}

fn events(text: &[u8]) -> Vec<Event> {
    read(text)
        .into_iter()
        .map(|record| match record {
            Record::Event(event) => event,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn write(events: &[Event], precision: Precision) -> String {
    let mut writer = Ftrace::new(Vec::new(), precision);
    events.iter().for_each(|event| writer.event(event));
    String::from_utf8(writer.finish().expect("memory can be written")).expect("text")
}

#[test]
fn recordings_of_real_kernels_are_written_as_they_were() {
    let body = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    for recorded in [include_str!("data/tracefs-6.1.txt"), include_str!("data/tracefs-7.2-probes.txt")] {
        let written = write(&events(recorded.as_bytes()), Precision::Micro);
        assert_eq!(body(&written), body(recorded));
    }
}

/// All recordings in the tree: every event is parsed, and written as the kernel wrote it.
#[test]
fn nothing_in_the_recordings_is_lost() {
    let mut traces = 0;
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the recordings are in the tree") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with("trace.txt.gz") {
                let mut recorded = Vec::new();
                let packed = std::fs::File::open(&path).expect("a file");
                flate2::read::GzDecoder::new(packed).read_to_end(&mut recorded).expect("it is whole");
                let mut writer = Ftrace::new(Vec::new(), Precision::Micro);
                let summary = read::feed(ftrace::Reader::new(&recorded[..]), &mut writer).unwrap();
                assert_eq!((summary.losses, summary.gaps), (0, 0), "{}", path.display());
                let written = writer.finish().unwrap();
                let body = |text: &[u8]| -> Vec<Vec<u8>> {
                    let lines = text.split(|&byte| byte == b'\n').filter(|line| !line.starts_with(b"#"));
                    lines.map(<[u8]>::to_vec).collect()
                };
                // Kernels that do not print the migrate-disable depth have one flag less.
                let newer = recorded.windows(15).any(|word| word == b"migrate-disable");
                let same = if newer {
                    body(&written) == body(&recorded)
                } else {
                    events(&written) == events(&recorded)
                };
                assert!(same, "{} is written differently", path.display());
                traces += 1;
            }
        }
    }
    assert!(traces > 100, "{traces} recordings");
}

#[test]
fn every_form_of_a_report_holds_the_same_events() {
    let plain = events(include_bytes!("data/report-plain.txt"));
    assert_eq!(plain.len(), 58);
    assert!(plain.iter().any(|event| event.time.0 % 1000 != 0), "times are in nanoseconds");
    for (form, report) in [
        ("plugin", include_str!("data/report-plugin.txt")),
        ("raw", include_str!("data/report-raw.txt")),
        ("latency", include_str!("data/report-latency.txt")),
    ] {
        let found = events(report.as_bytes());
        assert_eq!(found.len(), plain.len(), "{form}");
        for (mut found, plain) in found.into_iter().zip(plain.clone()) {
            if form == "latency" {
                // This form prints flags, microseconds, and eight bytes of the name.
                assert!(found.flags.is_known());
                assert!(found.time.0.abs_diff(plain.time.0) <= 1000);
                assert!(plain.comm.as_bytes().starts_with(found.comm.as_bytes()));
                (found.time, found.flags, found.comm) = (plain.time, plain.flags, plain.comm);
            }
            assert_eq!(found, plain, "{form}");
        }
    }
}

#[test]
fn a_probe_is_asked_for_its_fields() {
    let probes = events(include_bytes!("data/tracefs-7.2-probes.txt"));
    let chosen = probes.iter().find_map(|event| match &event.kind {
        Kind::Unknown(probe) if probe.name() == "selr" => probe.int("ret").zip(probe.place()),
        _ => None,
    });
    assert_eq!(chosen, Some((0, "wake_up_new_task+0x2a5/0x3c0 <- select_task_rq_fair")));
}

#[test]
fn a_summary_counts_what_was_read() {
    let text = b"CPU:1 [LOST 5 EVENTS]\nnonsense\n a-1 [000] 1.0: x: y\n";
    let mut sink = Vec::new();
    let summary = read::feed(ftrace::Reader::new(&text[..]), &mut sink).unwrap();
    assert_eq!((summary.events, summary.lost, summary.losses, summary.gaps), (1, 5, 1, 1));
    assert_eq!(summary.first_gaps[0].to_string(), "line 2: no task, CPU and time in front: nonsense");
    assert_eq!(sink.len(), 1);
}

#[test]
fn an_error_of_the_output_is_reported_at_the_end() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("no space left"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let error = Ftrace::new(Full, Precision::Nano).finish().err().expect("an error");
    assert_eq!(error.to_string(), "no space left");
}

/// The front of a line, as the expression that Python parsers commonly use, spelled out.
#[test]
fn a_line_has_the_columns_that_scripts_expect() {
    for line in include_str!("data/tracefs-6.1.txt").lines().filter(|line| !line.starts_with('#')) {
        let event = events(line.as_bytes()).remove(0);
        let written = write(std::slice::from_ref(&event), Precision::Nano);
        let line = written.lines().last().unwrap();
        assert_eq!(line.as_bytes()[16], b'-', "the name ends in column 16");
        let words: Vec<&str> = line.split_whitespace().collect();
        let [task, cpu, flags, time, name, ..] = words[..] else { panic!("{line}") };
        assert!(task.rsplit_once('-').unwrap().1.parse::<u32>().is_ok(), "{line}");
        let cpu = cpu.strip_prefix('[').and_then(|cpu| cpu.strip_suffix(']')).unwrap();
        assert!(cpu.len() == 3 && cpu.parse::<u32>().is_ok(), "{line}");
        assert_eq!(flags.len(), 5, "{line}");
        assert_eq!(time.strip_suffix(':').unwrap().split_once('.').unwrap().1.len(), 9, "{line}");
        assert!(name.ends_with(':'), "{line}");
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(trace in common::trace()) {
        let text = write(&trace, Precision::Nano);
        // The process has no column.
        let kept: Vec<Event> = trace.into_iter().map(|event| Event { tgid: None, ..event }).collect();
        prop_assert_eq!(events(text.as_bytes()), kept, "{}", text);
    }
}
