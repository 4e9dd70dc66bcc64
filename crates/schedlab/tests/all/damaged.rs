//! Damaged recordings: lines that are missing, duplicated, misplaced or altered. Whatever a reader makes of them,
//! audits and replays reach the end.
//!
//! `SCHEDLAB_DAMAGED=5000` tries 5000 variants of each recording.

use std::io::{Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use schedlab::audit::{Audit, Options};
use schedlab::replay::{Form, Listener};
use schedlab::sched::Kernel;
use schedlab::topology::Topology;
use schedlab::trace::read::{Record, ftrace};
use schedlab::trace::{Event, Sink};

/// Short recordings of tasks that sleep, fork, are moved and bound, and with run times.
const RECORDINGS: [(&str, &str, &str); 5] = [
    ("6.1/1x1x8", "fork", "v6.1"),
    ("6.12/2x2x2x2-smt", "barrier-nospin", "v6.12"),
    ("6.12/2x2x4", "hogs-runtime", "v6.12"),
    ("6.12/1x1x8", "pipes", "v6.10"),
    ("7.2/2x1x8-cluster", "stream-half", "v7.2"),
];

/// Lines of each, starting at a random one.
const LINES: usize = 250;
const STARTS: [usize; 3] = [0, 150, 900];

/// Variants of each without that variable.
const VARIANTS: usize = 60;

/// Replacements for a number in a damaged line.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "-1",
    "99",
    "120",
    "140",
    "2147483647",
    "-2147483648",
    "4294967295",
    "86400000000000",
    "9223372036854775807",
    "18446744073709551615",
];

/// One named stream of random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// The ranges of the numbers in a line.
fn numbers(line: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (at, _) in line.char_indices().filter(|(_, c)| c.is_ascii_digit()) {
        match found.last_mut() {
            Some((_, end)) if *end == at => *end = at + 1,
            _ => found.push((at, at + 1)),
        }
    }
    found
}

fn alter(lines: &mut [String], dice: &mut Dice) {
    let at = dice.below(lines.len());
    let places = numbers(&lines[at]);
    if places.is_empty() {
        return;
    }
    let (start, end) = places[dice.below(places.len())];
    let other = match dice.below(3) {
        0 => NUMBERS[dice.below(NUMBERS.len())].to_owned(),
        // Changes one digit.
        1 => {
            let mut digits = lines[at][start..end].to_owned().into_bytes();
            let digit = dice.below(digits.len());
            digits[digit] = b'0' + dice.below(10) as u8;
            String::from_utf8(digits).unwrap()
        }
        // The number of another line: an existing task, a CPU, a time.
        _ => {
            let other = &lines[dice.below(lines.len())];
            let places = numbers(other);
            if places.is_empty() {
                return;
            }
            let (start, end) = places[dice.below(places.len())];
            other[start..end].to_owned()
        }
    };
    lines[at].replace_range(start..end, &other);
}

/// A recording with damage in a few places.
fn damaged(lines: &[&str], dice: &mut Dice) -> Vec<String> {
    let mut lines: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
    for _ in 0..1 + dice.below(12) {
        let (at, to) = (dice.below(lines.len()), dice.below(lines.len()));
        match dice.below(8) {
            0 => _ = lines.remove(at),
            1 => lines.swap(at, to),
            2 => lines.insert(to, lines[at].clone()),
            3 if at + 1 < lines.len() => lines.swap(at, at + 1),
            _ => alter(&mut lines, dice),
        }
    }
    lines
}

fn events(lines: &[String], nr_cpus: usize) -> Vec<Event> {
    let text = lines.join("\n");
    let event = |record| match record {
        Ok(Record::Event(event)) => Some(event),
        _ => None,
    };
    // The command refuses others.
    let fits = |event: &Event| event.highest_cpu().index() < nr_cpus;
    ftrace::Reader::new(Cursor::new(text)).filter_map(event).filter(fits).collect()
}

fn follow(events: &[Event], topology: &Topology, kernel: &Kernel) {
    let mut audit = Audit::new(topology, kernel, Options::default());
    let mut listener = Listener::new();
    for event in events {
        audit.event(event);
        listener.event(event);
    }
    audit.finish();
    if let Ok(recorded) = listener.finish("damaged") {
        let _ = recorded.row(&recorded.own(topology.clone(), Form::USUAL));
    }
}

#[test]
fn damaged_recordings_are_followed_to_their_end() {
    let variants = std::env::var("SCHEDLAB_DAMAGED").map_or(VARIANTS, |count| count.parse().unwrap());
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../traces");
    let mut failed = Vec::new();
    for (machine, load, kernel) in RECORDINGS {
        let facts = std::fs::read_to_string(traces.join(machine).join("facts/topology.txt")).unwrap();
        let topology = Topology::from_sysfs_lines(machine, &facts).unwrap();
        let kernel = Kernel::parse(kernel).unwrap();
        let packed = std::fs::read(traces.join(machine).join(load).join("trace.txt.gz")).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
        let all: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        for variant in 0..variants {
            let start = STARTS[variant % STARTS.len()].min(all.len().saturating_sub(LINES));
            let lines = &all[start..all.len().min(start + LINES)];
            let lines = damaged(lines, &mut Dice(variant as u64));
            let events = events(&lines, topology.nr_cpus());
            if catch_unwind(AssertUnwindSafe(|| follow(&events, &topology, &kernel))).is_err() {
                let file = std::env::temp_dir().join(format!("schedlab-damaged-{load}-{variant}.txt"));
                std::fs::write(&file, lines.join("\n")).unwrap();
                failed.push(file);
            }
        }
    }
    assert!(failed.is_empty(), "of these variants: {failed:?}");
}
