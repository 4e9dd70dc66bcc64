//! The tables of perf sched compared with those of perf itself for the same events.
//!
//! Recordings of real kernels are written as perf.data and passed to the installed perf. Without one, or with
//! a version other than 6.1, whose columns differ, the tests are skipped and say so.

use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use schedlab_report::perf_sched::{
    Latency, Map, MapRow, Reading, SortKey, Timehist, TimehistOptions, TimehistRow,
};
use schedlab_topology::CpuId;
use schedlab_trace::read::{Record, ftrace};
use schedlab_trace::write::PerfData;
use schedlab_trace::{Event, Sink};
use schedlab_units::{Pid, Time};

/// Recordings of every kernel and machine, of tasks that spin, sleep, fork and wait for I/O.
const RECORDINGS: [&str; 6] = [
    "6.1/1x1x8/hogs-runtime",
    "6.1/1x1x8/fork",
    "6.12/2x2x2x2-smt/sleepers",
    "6.12/2x2x4/io-loop",
    "7.2/2x2x4/pipes",
    "7.2/2x1x8-cluster/hogs",
];

/// The maximum of the recorded machines.
const NR_CPUS: usize = 16;

/// A recording, also as a perf.data that is deleted at the end.
struct Recording {
    name: &'static str,
    events: Vec<Event>,
    file: PathBuf,
}

impl Recording {
    fn new(name: &'static str) -> Recording {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces").join(name).join("trace.txt.gz");
        let packed = std::fs::read(&path).expect("the recording is in the tree");
        let mut text = Vec::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).expect("it is whole");
        let events: Vec<Event> = ftrace::Reader::new(&text[..])
            .filter_map(|record| match record.expect("memory can be read") {
                Record::Event(event) => Some(event),
                _ => None,
            })
            .collect();
        let mut writer = PerfData::new(Vec::new(), Cursor::new(Vec::new()), NR_CPUS);
        events.iter().for_each(|event| writer.event(event));
        let data = writer.finish().expect("memory can be written");
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unique = format!("schedlab-{}-{count}.perf.data", std::process::id());
        let file = std::env::temp_dir().join(unique);
        std::fs::write(&file, data).expect("the folder for temporary files can be written");
        Recording { name, events, file }
    }

    /// The output of `perf sched` for it.
    fn perf(&self, args: &str) -> String {
        let args: Vec<&str> = args.split_whitespace().collect();
        let output = Command::new("perf")
            .arg("sched")
            .args(&args)
            .arg("-i")
            .arg(&self.file)
            .output()
            .expect("perf runs, as it told its version");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "perf sched {args:?} of {}: {errors}", self.name);
        String::from_utf8(output.stdout).expect("names in the recordings are ASCII")
    }

    fn feed(&self, sink: &mut impl Sink) {
        self.events.iter().for_each(|event| sink.event(event));
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

/// Calls the function with each recording, if the right perf is installed.
fn with_perf(check: impl Fn(&Recording)) {
    let version = Command::new("perf").arg("--version").output();
    match version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()) {
        Ok(version) if version.starts_with("perf version 6.1.") => {
            RECORDINGS.map(Recording::new).iter().for_each(check);
        }
        Ok(version) => skip(&format!("{} is not perf 6.1", version.trim())),
        Err(error) => skip(&format!("perf: {error}")),
    }
}

/// Prints to standard error directly, as other output of a passing test is not shown.
fn skip(why: &str) {
    let test = std::thread::current();
    let _ = writeln!(std::io::stderr(), "skipped: {}: {why}", test.name().unwrap_or_default());
}

#[track_caller]
fn compare(recording: &Recording, args: &str, ours: &str, theirs: &str) {
    for (number, (our, their)) in ours.lines().zip(theirs.lines()).enumerate() {
        assert_eq!(our, their, "{}, perf sched {args}, line {}", recording.name, number + 1);
    }
    let counts = (ours.lines().count(), theirs.lines().count());
    assert_eq!(counts.0, counts.1, "lines of {}, perf sched {args}", recording.name);
}

/// Sorts lines, and puts a cross for run times where perf has none because the kernel's
/// accounting was not recorded.
fn latency_lines(table: &str, has_runtime: bool) -> String {
    let mut lines: Vec<String> = table
        .lines()
        .map(|line| match line.split_once("|").zip(line.split_once(" ms |")) {
            Some(((task, _), (_, rest))) if !has_runtime => format!("{task}| X |{rest}"),
            _ => line.to_owned(),
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

#[test]
fn latency_is_what_perf_prints() {
    with_perf(|recording| {
        let mut latency = Latency::default();
        recording.feed(&mut latency);
        let has_runtime = recording.events.iter().any(|event| event.kind.name() == "sched_stat_runtime");
        for (args, per_pid) in [("latency", false), ("latency -p", true)] {
            let ours = latency.text(Reading::Auto, per_pid, &SortKey::DEFAULT);
            let theirs = recording.perf(args);
            if has_runtime {
                compare(recording, args, &ours, &theirs);
            }
            let lines = |table| latency_lines(table, has_runtime);
            compare(recording, args, &lines(&ours), &lines(&theirs));
        }
    });
}

#[test]
fn a_map_is_what_perf_prints() {
    with_perf(|recording| {
        let mut ours = String::new();
        recording.feed(&mut Map::new(NR_CPUS as u16, |row: &MapRow| ours += &(row.line() + "\n")));
        // perf has columns for the CPUs of the host it runs on, and one too few for those beyond. Only its
        // columns can be compared, and its text about the switch.
        let theirs = recording.perf("map");
        let split = |line: &str| -> (String, String) {
            let (columns, rest) = line.split_once(" secs ").expect("a line of the map has a time");
            let (columns, time) = columns.rsplit_once(' ').expect("a time stands behind columns");
            (columns.trim_end().to_owned(), format!("{time} {rest}"))
        };
        let mut compared = 0;
        for (ours, theirs) in ours.lines().zip(theirs.lines()) {
            let ((our_cells, our_rest), (their_cells, their_rest)) = (split(ours), split(theirs));
            assert_eq!(our_rest, their_rest, "{}", recording.name);
            assert!(our_cells.starts_with(&their_cells), "{}:\n{ours}\n{theirs}", recording.name);
            compared += usize::from(!their_cells.is_empty());
        }
        assert_eq!(ours.lines().count(), theirs.lines().count(), "{}", recording.name);
        assert!(compared > ours.lines().count() / 2, "{}: {compared} lines have columns", recording.name);
    });
}

#[test]
fn a_map_of_some_cpus_is_what_perf_prints() {
    with_perf(|recording| {
        // The CPUs for which perf has columns on any host.
        let mut ours = String::new();
        let map = Map::new(NR_CPUS as u16, |row: &MapRow| ours += &(row.line() + "\n"));
        recording.feed(&mut map.only([CpuId(0)]));
        compare(recording, "map --cpus 0", &ours, &recording.perf("map --cpus 0"));
    });
}

/// The rows by some options, header first, and the summary.
fn timehist(recording: &Recording, options: &TimehistOptions) -> (String, String) {
    let mut text = options.header();
    let mut fold = Timehist::new(options.clone(), |row: &TimehistRow| text += &(options.line(row) + "\n"));
    recording.feed(&mut fold);
    let summary = fold.summary().text();
    (text, summary)
}

#[test]
fn timehist_is_what_perf_prints() {
    with_perf(|recording| {
        let all = TimehistOptions::default();
        let middle =
            Time((recording.events[0].time.0 + recording.events.last().unwrap().time.0) / 2_000 * 1_000);
        let half = format!("timehist --time {:.6},", middle.0 as f64 / 1e9);
        for (args, options) in [
            ("timehist", all.clone()),
            ("timehist -w -M", TimehistOptions { wakeups: true, migrations: true, ..all.clone() }),
            ("timehist -n -w", TimehistOptions { wakeups: true, next: true, ..all.clone() }),
            ("timehist -C 3", TimehistOptions { cpus: Some(vec![CpuId(3)]), ..all.clone() }),
            (half.as_str(), TimehistOptions { start: Some(middle), ..all.clone() }),
        ] {
            compare(recording, args, &timehist(recording, &options).0, &recording.perf(args));
        }
        // Letters of states differ: perf 6.1 has those of kernels before 4.14.
        let without_state = |text: &str| -> String {
            text.lines().map(|line| format!("{}\n", line.get(..line.len() - 3).unwrap_or(line))).collect()
        };
        let options = TimehistOptions { state: true, ..all };
        let (ours, theirs) = (timehist(recording, &options).0, recording.perf("timehist --state"));
        compare(recording, "timehist --state", &without_state(&ours), &without_state(&theirs));
    });
}

#[test]
fn the_summary_of_timehist_is_what_perf_prints() {
    with_perf(|recording| {
        // perf lists tasks in the order of a hash table, and counts migrations only if they are shown.
        let sorted = |text: &str| {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort();
            lines.join("\n")
        };
        let pid = recording.events.iter().find(|event| event.pid != Pid::IDLE).expect("some task ran").pid;
        let one = format!("timehist -s -M -t {pid}");
        for (args, options) in [
            ("timehist -s -M", TimehistOptions { nr_cpus: NR_CPUS as u16, ..TimehistOptions::default() }),
            (one.as_str(), TimehistOptions { tids: Some(vec![pid]), ..TimehistOptions::default() }),
        ] {
            let (_, ours) = timehist(recording, &options);
            compare(recording, args, &sorted(&ours), &sorted(&recording.perf(args)));
        }
    });
}
