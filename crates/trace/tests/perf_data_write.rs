//! perf.data as it is written, compared with what `perf script` prints for it.

use std::io::Cursor;
use std::process::Command;

use schedlab_trace::read::{Record, ftrace};
use schedlab_trace::write::{Ftrace, PerfData, Precision};
use schedlab_trace::{Event, Sink};

fn events(text: &str) -> Vec<Event> {
    ftrace::Reader::new(text.as_bytes())
        .map(|record| match record.expect("memory can be read") {
            Record::Event(event) => event,
            other => panic!("{other:?}"),
        })
        .collect()
}

/// CPU, time, event and fields of a line of trace text, as `perf script` prints them.
fn as_script(line: &str) -> String {
    let (_, line) = line.split_once('[').expect("a CPU");
    let (cpu, line) = line.split_once("] ").expect("a CPU");
    let (_flags, line) = line.split_once(' ').expect("flags");
    let (time, line) = line.trim_start().split_once(": ").expect("a time");
    let (name, fields) = line.split_once(": ").expect("a name");
    format!("[{cpu}] {time}: {name}: {}", fields.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn perf_script_prints_the_events_that_were_written() {
    for text in [include_str!("data/tracefs-6.1.txt"), include_str!("data/tracefs-7.2-probes.txt")] {
        let events = events(text);
        let mut file = PerfData::new(Vec::new(), Cursor::new(Vec::new()), 16);
        let mut ours = Ftrace::new(Vec::new(), Precision::Nano);
        for event in &events {
            file.event(event);
            ours.event(event);
        }
        let path = std::env::temp_dir().join(format!("schedlab-{}-script.perf.data", std::process::id()));
        std::fs::write(&path, file.finish().unwrap()).expect("the folder for temporary files can be written");
        let output = Command::new("perf")
            .args(["script", "--ns", "-F", "trace:cpu,time,event,trace", "-i"])
            .arg(&path)
            .output();
        let _ = std::fs::remove_file(&path);
        let Ok(output) = output else {
            println!("skipped: perf is not installed");
            return;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.is_empty(), "{errors}");
        let theirs = String::from_utf8(output.stdout).unwrap();
        let mut theirs = theirs.lines().map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            // The system comes before the name.
            let system = words[2].split_once(':').map_or(0, |(system, _)| system.len() + 1);
            format!("{} {} {} {}", words[0], words[1], &words[2][system..], words[3..].join(" "))
        });
        let ours = String::from_utf8(ours.finish().unwrap()).unwrap();
        for line in ours.lines().filter(|line| !line.starts_with('#')) {
            assert_eq!(theirs.next().as_deref(), Some(as_script(line).as_str()));
        }
        assert_eq!(theirs.next(), None);
    }
}
