//! Trace text: the output of tracefs and of `trace-cmd report`.
//!
//! Both consist of lines of *front*, event name and fields. Pretty-printed fields are read as well as plain ones,
//! microseconds as well as nanoseconds. Other lines in between report how many events were lost.

use std::io::BufRead;

use schedlab_topology::CpuId;
use schedlab_units::Time;

use super::head;
use super::lines::{Line, Lines, Next, excerpt};
use super::{Error, Lost, NO_DURATION, Place, Record};
use crate::args;
use crate::event::Kind;
use crate::unknown::Unknown;

/// Reads trace text line by line.
pub struct Reader<R> {
    lines: Lines<R>,
    time: Option<Time>,
    nr_cpus: Option<usize>,
    /// A record that precedes anything read later.
    next: Option<Record>,
}

impl<R: BufRead> Reader<R> {
    /// A reader at the beginning of the text.
    pub fn new(input: R) -> Reader<R> {
        Reader { lines: Lines::new(input), time: None, nr_cpus: None, next: None }
    }

    /// The place of the last record.
    pub fn place(&self) -> Place {
        self.lines.place()
    }

    /// How many CPUs the header names, once it has been read.
    pub fn nr_cpus(&self) -> Option<usize> {
        self.nr_cpus
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        if self.next.is_some() {
            return self.next.take().map(Ok);
        }
        loop {
            let line = match self.lines.next() {
                Next::Line(line) => line,
                Next::Other(record) => return Some(record),
                Next::End => return None,
            };
            let Some((head, rest)) = head::parse(line.bytes) else {
                match other(&line, self.time, &mut self.nr_cpus) {
                    None => continue,
                    record => return record,
                }
            };
            let (name, args) = split_name(rest);
            let kind = match known(name, args) {
                Some(Some(kind)) => kind,
                Some(None) => return Some(line.gap(not_known(name, line.bytes))),
                None => Kind::Unknown(unknown(&line, rest, name, args)),
            };
            if self.time.is_none()
                && let Some(doubt) = doubt_of_time(&line.bytes[..line.bytes.len() - rest.len()])
            {
                self.next = line.gap(doubt).ok();
            }
            self.time = Some(head.time);
            return Some(Ok(Record::Event(head.before(kind))));
        }
    }
}

/// The message about times from a clock that is not in seconds.
const NO_SECONDS: &str =
    "times without a decimal point come from a clock that does not count time (x86-tsc, counter, uptime)";

/// The message about raw times.
const RAW: &str = "raw times (trace-cmd report --raw-ts) are taken for nanoseconds, as most clocks have them";

/// What is doubtful about the time at the end of a line's front, if it is not in seconds or microseconds.
#[cold]
fn doubt_of_time(front: &[u8]) -> Option<String> {
    let time = front.trim_ascii_end().strip_suffix(b":").unwrap_or(front);
    let digits = time.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    match time[..time.len() - digits].last() {
        _ if digits == 0 => None,
        Some(b'.') => None,
        Some(b']') => Some(RAW.into()),
        _ => Some(format!("{NO_SECONDS}; {NO_DURATION}")),
    }
}

/// What a line that is not an event reports, if it is of interest; `time` is the time of the last event.
#[cold]
fn other(
    line: &Line<'_>,
    after: Option<Time>,
    known_cpus: &mut Option<usize>,
) -> Option<Result<Record, Error>> {
    match remark(line.bytes) {
        Remark::Nothing => None,
        Remark::Cpus(nr_cpus) => {
            *known_cpus = Some(nr_cpus);
            None
        }
        Remark::Header { nr_cpus, overwritten } => {
            *known_cpus = nr_cpus.or(*known_cpus);
            let lost = Lost { count: Some(overwritten), ..Lost::default() };
            (overwritten > 0).then_some(Ok(Record::Lost(lost)))
        }
        Remark::Lost { cpu, count } => Some(Ok(Record::Lost(Lost { cpu: Some(cpu), count, after }))),
        Remark::None => {
            let (excerpt, option) = (excerpt(line.bytes), option_of_front(line.bytes));
            Some(line.gap(format!("no task, CPU and time in front: {excerpt}{option}")))
        }
    }
}

#[cold]
fn not_known(name: &[u8], line: &[u8]) -> String {
    let (name, excerpt) = (String::from_utf8_lossy(name), excerpt(line));
    let option = if excerpt.contains("=0x") {
        "; was the option fields on? `echo nofields > trace_options` in tracefs"
    } else {
        ""
    };
    format!("the fields of {name} are in no form that is known: {excerpt}{option}")
}

/// The tracefs option that would explain a line without its front.
///
/// Kernel: print_raw_fmt(), print_hex_fmt(), print_bin_fmt(), kernel/trace/trace.c.
fn option_of_front(line: &[u8]) -> &'static str {
    let text = String::from_utf8_lossy(line);
    let begins = text.split_once(':').is_some_and(|(name, _)| args::is_known(name));
    if text.rsplit_once("type: ").is_some_and(|(_, number)| number.parse::<u32>().is_ok()) {
        "; was one of the options raw, hex and bin on? `echo noraw > trace_options` in tracefs, or nohex, nobin"
    } else if begins {
        "; was the option context-info off? `echo context-info > trace_options` in tracefs"
    } else {
        ""
    }
}

/// The event's name and its fields. A line of the function tracer has no name.
#[inline(always)]
fn split_name(rest: &[u8]) -> (&[u8], &[u8]) {
    match head::position(rest, [b':', b' ']) {
        Some(end) if rest[end] == b':' => (&rest[..end], head::without_blanks(&rest[end + 1..])),
        _ => (b"function", rest),
    }
}

/// The event with that name, if it is known. trace-cmd calls text that programs print `print`.
#[inline(always)]
fn known(name: &[u8], args: &[u8]) -> Option<Option<Kind>> {
    if name == b"print"
        && let Some(text) = args.strip_prefix(b"tracing_mark_write:")
    {
        return args::parse_known(b"tracing_mark_write", text.trim_ascii_start());
    }
    args::parse_known(name, args)
}

/// An event that is not known. Usually its text can be shared with its line.
fn unknown(line: &Line<'_>, rest: &[u8], name: &[u8], args: &[u8]) -> Unknown {
    let (start, text) = (line.end - rest.len(), line.end - args.len()..line.end);
    let found = if args.len() < rest.len() {
        Unknown::within(line.chunk, start..start + name.len(), text)
    } else {
        None
    };
    found.unwrap_or_else(|| args::unknown(name, args))
}

/// A line that is not an event.
enum Remark {
    /// It says nothing about the trace.
    Nothing,
    /// trace-cmd's count of CPUs.
    Cpus(usize),
    /// The counts in tracefs's header.
    Header { nr_cpus: Option<usize>, overwritten: u64 },
    /// Events were lost here.
    Lost { cpu: CpuId, count: Option<u64> },
    /// It is not known.
    None,
}

fn remark(line: &[u8]) -> Remark {
    let text = String::from_utf8_lossy(line);
    let text = text.trim_start();
    if let Some(counts) = text.strip_prefix("# entries-in-buffer/entries-written:") {
        return header(counts).unwrap_or(Remark::Nothing);
    }
    if let Some(count) = text.strip_prefix("cpus=") {
        return count.parse().map_or(Remark::Nothing, Remark::Cpus);
    }
    if let Some(rest) = text.strip_prefix("CPU:") {
        return lost(rest).unwrap_or(Remark::None);
    }
    let known = text.is_empty()
        || text.starts_with('#')
        || text.starts_with("=> ")
        // The lines around a buffer that the kernel dumps.
        || text.ends_with("Dumping ftrace buffer:")
        || text.ends_with("---------------------------------")
        || text.starts_with("version = ")
        || (text.starts_with("CPU ") && text.ends_with(" is empty"));
    if known { Remark::Nothing } else { Remark::None }
}

/// `17896/17896   #P:16`: how many events the buffer contains, how many were written to it, and the CPUs.
fn header(counts: &str) -> Option<Remark> {
    let mut words = counts.split_ascii_whitespace();
    let (held, written) = words.next()?.split_once('/')?;
    let (held, written): (u64, u64) = (held.parse().ok()?, written.parse().ok()?);
    let nr_cpus = words.find_map(|word| word.strip_prefix("#P:")?.parse().ok());
    Some(Remark::Header { nr_cpus, overwritten: written.saturating_sub(held) })
}

/// `3 [LOST 12 EVENTS]` in tracefs, `3 [12 EVENTS DROPPED]` in a report.
fn lost(text: &str) -> Option<Remark> {
    let (cpu, rest) = text.split_once(' ')?;
    let words = rest.trim().strip_prefix('[')?.strip_suffix(']')?;
    if !words.contains("EVENTS") || !(words.contains("LOST") || words.contains("DROPPED")) {
        return None;
    }
    let count = words.split_ascii_whitespace().find_map(|word| word.parse().ok());
    Some(Remark::Lost { cpu: CpuId(cpu.parse().ok()?), count })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    /// Shows each record, events as the line that is printed for them.
    fn check(text: &str, expected: Expect) {
        let mut shown = String::new();
        for record in Reader::new(text.as_bytes()) {
            shown += &match record.unwrap() {
                Record::Event(event) => {
                    let mut fields = Vec::new();
                    args::print(&event, &mut fields);
                    let fields = String::from_utf8(fields).unwrap();
                    format!("{} [{}] {}: {fields}", event.time, event.cpu, event.kind.name())
                }
                Record::Lost(lost) => lost.to_string(),
                Record::Gap(gap) => gap.to_string(),
            };
            shown += "\n";
        }
        expected.assert_eq(&shown);
    }

    #[test]
    fn what_was_lost_is_reported_in_its_place() {
        check(
            "# tracer: nop\n\
             #\n\
             # entries-in-buffer/entries-written: 100/107   #P:16\n\
             ##### CPU 3 buffer started ####\n\
             \x20           make-7       [003] d..2.     4.000001: sched_wake_idle_without_ipi: cpu=2\n\
             CPU:3 [LOST 12 EVENTS]\n\
             CPU:2 [EVENTS DROPPED]\n",
            expect![[r#"
                7 events lost
                4.000001000 [3] sched_wake_idle_without_ipi: cpu=2
                12 events lost on CPU 3 after 4.000001000
                an unknown number of events lost on CPU 2 after 4.000001000
            "#]],
        );
    }

    #[test]
    fn times_of_a_clock_that_does_not_count_time_are_reported_once() {
        check(
            "a-7 [003] d..2. 762950852559027: e: f\n\
             a-7 [003] d..2. 762950852569027: e: f\n",
            expect![[r#"
                762950.852559027 [3] e: f
                line 1: times without a decimal point come from a clock that does not count time (x86-tsc, counter, uptime); they are taken for nanoseconds, and no duration is right; record with another: `echo mono > trace_clock` in tracefs, or trace-cmd record -C mono
                762950.852569027 [3] e: f
            "#]],
        );
    }

    #[test]
    fn raw_times_are_reported_to_be_taken_for_nanoseconds() {
        check(
            "a-7 [003]762950852559027: e: f\n\
             a-7 [003]762950852569027: e: f\n",
            expect![[r#"
                762950.852559027 [3] e: f
                line 1: raw times (trace-cmd report --raw-ts) are taken for nanoseconds, as most clocks have them
                762950.852569027 [3] e: f
            "#]],
        );
    }

    #[test]
    fn options_that_take_the_front_or_the_fields_away_are_named() {
        check(
            "14348 1 19508762049669 type: 355\n\
             sched_waking: comm=a pid=1 prio=120 target_cpu=003\n\
             a-7 [003] d..2. 4.000001: sched_waking: comm=a pid=0x7 (7) prio=0x78 (120) target_cpu=0x3 (3)\n",
            expect![[r#"
                line 1: no task, CPU and time in front: 14348 1 19508762049669 type: 355; was one of the options raw, hex and bin on? `echo noraw > trace_options` in tracefs, or nohex, nobin
                line 2: no task, CPU and time in front: sched_waking: comm=a pid=1 prio=120 target_cpu=003; was the option context-info off? `echo context-info > trace_options` in tracefs
                line 3: the fields of sched_waking are in no form that is known: a-7 [003] d..2. 4.000001: sched_waking: comm=a pid=0x7 (7) prio=0x78 (120) target_cpu=0x3 (3); was the option fields on? `echo nofields > trace_options` in tracefs
            "#]],
        );
    }

    #[test]
    fn what_the_kernel_dumps_is_read_without_its_frame() {
        check(
            "[10611.900000] Dumping ftrace buffer:\n\
             [10611.900001] ---------------------------------\n\
             [10611.907467]   rcub/1-17        1d..2. 10607794484us+: e: f\n\
             [10611.923999] ---------------------------------\n",
            expect![[r#"
                10607.794484000 [1] e: f
            "#]],
        );
    }

    #[test]
    fn what_is_not_understood_is_a_gap_with_its_line() {
        check(
            "hello\n\
             make-7 [003] d..2. 4.000001: sched_wakeup: comm=make pid=x prio=1 target_cpu=000\n\
             make-7 [003] d..2. 4.000001: sched_wakeup: comm=make pid=1 prio=1 target_cpu=000\n\
             make-7 [003] d..2. 4.000002: probe: (f+0x1/0x2) a=1\n\
             make-7 [003] d..2. 4.000003: schedule <-do_idle\n\
             => do_idle\n",
            expect![[r#"
                line 1: no task, CPU and time in front: hello
                line 2: the fields of sched_wakeup are in no form that is known: make-7 [003] d..2. 4.000001: sched_wakeup: comm=make pid=x prio=1 target_cpu=000
                4.000001000 [3] sched_wakeup: comm=make pid=1 prio=1 target_cpu=000
                4.000002000 [3] probe: (f+0x1/0x2) a=1
                4.000003000 [3] function: schedule <-do_idle
            "#]],
        );
    }

    #[test]
    fn pretty_printed_raw_and_old_fields_are_read_like_plain_ones() {
        check(
            "a-7 [003] 4.1: sched_switch:         kworker/0:1:12 [120] R+ ==> swapper/3:0 [120]\n\
             a-7 [003] 4.2: sched_switch:          prev_comm=a b prev_pid=12 prev_prio=120 prev_state=2 next_comm=c next_pid=1 next_prio=-1\n\
             a-7 [003] 4.3: sched_wakeup:         x:y:9 [98] CPU:002\n\
             a-7 [003] 4.4: sched_wakeup:         x:9 [98] success=1 CPU:002\n\
             a-7 [003] 4.5: sched_wakeup_new: comm=x pid=9 prio=98 success=1 target_cpu=002\n\
             a-7 [003] 4.6: sched_process_fork: parent_comm=x parent_pid=9 child_comm=y child_pid=10\n\
             a-7 [003] 4.7: sched_stat_runtime: comm=x pid=9 runtime=100 vruntime=7\n\
             a-7 [003] 4.8: print:                tracing_mark_write: C|9|ops|12\n",
            expect![[r#"
                4.100000000 [3] sched_switch: prev_comm=kworker/0:1 prev_pid=12 prev_prio=120 prev_state=R+ ==> next_comm=swapper/3 next_pid=0 next_prio=120
                4.200000000 [3] sched_switch: prev_comm=a b prev_pid=12 prev_prio=120 prev_state=D ==> next_comm=c next_pid=1 next_prio=-1
                4.300000000 [3] sched_wakeup: comm=x:y pid=9 prio=98 target_cpu=002
                4.400000000 [3] sched_wakeup: comm=x pid=9 prio=98 target_cpu=002
                4.500000000 [3] sched_wakeup_new: comm=x pid=9 prio=98 target_cpu=002
                4.600000000 [3] sched_process_fork: comm=x pid=9 child_comm=y child_pid=10
                4.700000000 [3] sched_stat_runtime: comm=x pid=9 runtime=100 [ns] vruntime=7 [ns]
                4.800000000 [3] tracing_mark_write: C|7|ops|12
            "#]],
        );
    }

    #[test]
    fn a_line_without_end_is_passed_over() {
        let mut text = vec![b'x'; 3 << 20];
        text.extend_from_slice(b"\na-7 [003] 4.1: e: f\n");
        let records: Vec<Record> = Reader::new(&text[..]).map(Result::unwrap).collect();
        assert!(matches!(&records[0], Record::Gap(gap) if gap.at == Some(Place::Line(1))));
        assert!(matches!(&records[1], Record::Event(event) if event.kind.name() == "e"));
        assert_eq!(records.len(), 2);
    }
}
