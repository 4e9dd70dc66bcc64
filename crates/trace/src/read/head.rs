//! The front of a trace line: task, CPU, flags, time.
//!
//! ```text
//!             make-1       (    812) [000] d..2.     4.796689: sched_wakeup_new: ...   tracefs
//!             make-1       [000]     4.796689: sched_wakeup_new:     ...               trace-cmd report
//!     make-1         0d..2.     4.796689: sched_wakeup_new:     ...                    trace-cmd report -l
//!     make-1         0-0x5      4.796689: sched_wakeup_new:     ...                    trace-cmd report -R -l
//!             make-1       [000]     4.796689: (+12) sched_wakeup_new:     ...         trace-cmd report --ts-diff
//!             make-1       [000]4796689012: sched_wakeup_new:     ...                  trace-cmd report --raw-ts
//!     make-1         0d..2.  4796689us+: sched_wakeup_new: ...                         ftrace_dump_on_oops
//!             make-1       [000] dN..213     4.796689: sched_wakeup_new: ...           PREEMPT_RT
//! ```
//!
//! A name may contain dashes, digits and brackets. The writers align it to end in column 16, so the dash there is tried
//! first, then each dash from the left.
//!
//! Nearly every line of tracefs has everything in its columns. Such a line is read eight bytes at a time without any
//! search, and gives the same result as the reader that searches.

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use crate::comm::Comm;
use crate::event::{Event, Kind};
use crate::flags::Flags;

/// The CPU, time and current task of a line's event.
pub(super) struct Head {
    pub comm: Comm,
    pub pid: Pid,
    pub tgid: Option<Pid>,
    pub cpu: CpuId,
    pub flags: Flags,
    pub time: Time,
}

impl Head {
    /// The event of a front and of the text after it.
    #[inline(always)]
    pub fn before(self, kind: Kind) -> Event {
        Event {
            time: self.time,
            cpu: self.cpu,
            pid: self.pid,
            tgid: self.tgid,
            comm: self.comm,
            flags: self.flags,
            kind,
        }
    }
}

/// The column in which the name ends.
const NAME_WIDTH: usize = 16;

/// Splits a line into its front and the text after the time.
#[inline(always)]
pub(super) fn parse(line: &[u8]) -> Option<(Head, &[u8])> {
    match in_columns(line) {
        None => anywhere(line),
        found => found,
    }
}

/// Splits a line in which everything is in the columns of tracefs, which is the case if no number is too large for
/// its column and no process column was requested. Nearly every line is like that, and needs no search.
#[inline(always)]
fn in_columns(line: &[u8]) -> Option<(Head, &[u8])> {
    let (front, rest) = line.split_first_chunk::<37>()?;
    let (pid, digits) = few_digits(&front[17..])?;
    // Spaces from the number to its bracket.
    let after = few_spaces(&front[17..]) >> (8 * digits);
    // `[003] d.`, and the number made from its three digits.
    let bracket = eight(&front[25..]);
    let cpu = (bracket >> 8 & 0xff_ffff) ^ 0x30_3030;
    let others = ((cpu + 0x76_7676) | cpu) & 0x80_8080;
    let brackets = (bracket ^ u64::from_le_bytes(*b"[000] ..")) & 0x0000_ffff_0000_00ff;
    let flags = Flags::column(*front[31..].first_chunk()?)?;
    if front[NAME_WIDTH] != b'-' || front[36] != b' ' || after | others | brackets != 0 {
        return None;
    }
    let (time, rest) = match micros(rest) {
        Some(found) => found,
        None => {
            let (time, rest) = time(without_blanks(rest))?;
            (time, without_blanks(rest.strip_prefix(b":")?))
        }
    };
    let head = Head {
        comm: name(&front[..NAME_WIDTH]),
        pid: Pid(pid as i32),
        tgid: None,
        cpu: CpuId((100 * (cpu & 15) + 10 * (cpu >> 8 & 15) + (cpu >> 16)) as u16),
        flags,
        time,
    };
    Some((head, rest))
}

/// `     4.796689: `, the time as tracefs prints it, and the text after it.
#[inline(always)]
fn micros(text: &[u8]) -> Option<(Time, &[u8])> {
    let column: &[u8; 24] = text.first_chunk()?;
    let spaces = few_spaces(column).trailing_zeros() as usize / 8;
    let (whole, digits) = few_digits(&column[spaces..])?;
    let point = spaces + digits;
    let fraction = u64::from_le_bytes(*column.get(point + 1..)?.first_chunk()?);
    // Six digits, a colon and a space; zeros in front make eight.
    let values = (fraction ^ (ONES * u64::from(b'0'))) << 16;
    let others = (values.wrapping_add(ONES * (0x80 - 10)) | values) & (ONES << 7);
    let rest = text.get(point + 9..)?;
    if column[point] != b'.' || others != 0 || fraction >> 48 != 0x203a || *rest.first()? <= b' ' {
        return None;
    }
    Some((Time(1_000_000_000 * whole + 1000 * joined(values)), rest))
}

/// Splits a line whose name ends in its column or at some other dash.
#[cold]
fn anywhere(line: &[u8]) -> Option<(Head, &[u8])> {
    if line.get(NAME_WIDTH) == Some(&b'-')
        && let Some(found) = at_dash(line, NAME_WIDTH)
    {
        return Some(found);
    }
    let dashes = line.iter().enumerate().filter(|(_, byte)| **byte == b'-');
    dashes.filter_map(|(at, _)| at_dash(line, at)).next()
}

/// Whether a line begins with a CPU and a time, as in excerpts without the task.
pub(super) fn lacks_task(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    line.starts_with(b"[")
        && cpu(line)
            .and_then(|(_, rest)| flags(rest))
            .and_then(|(_, rest)| time(rest))
            .is_some_and(|(_, rest)| rest.starts_with(b": "))
}

/// Splits a line whose name ends at a given dash.
fn at_dash(line: &[u8], dash: usize) -> Option<(Head, &[u8])> {
    let (pid, rest) = number(&line[dash + 1..])?;
    let rest = spaces(rest)?;
    let (tgid, rest) = tgid(rest)?;
    let (cpu, rest) = cpu(rest)?;
    let (flags, rest) = flags(rest)?;
    let (time, rest) = time(rest)?;
    let (time, comm, rest) = match rest.strip_prefix(b"us") {
        Some(rest) => latency(time, name(printed(&line[..dash])), rest)?,
        None => (time, name(&line[..dash]), rest),
    };
    let rest = rest.strip_prefix(b":")?;
    let head = Head {
        comm,
        pid: Pid(i32::try_from(pid).ok()?),
        tgid,
        cpu: CpuId(u16::try_from(cpu).ok()?),
        flags,
        time,
    };
    Some((head, without_difference(without_blanks(rest))))
}

/// The text after the time, without the difference from the previous event.
fn without_difference(rest: &[u8]) -> &[u8] {
    let behind = |text: &'_ [u8]| -> Option<usize> {
        let (_, rest) = number(text.strip_prefix(b"(+")?)?;
        let rest = spaces(rest.strip_prefix(b")")?)?;
        Some(text.len() - rest.len())
    };
    &rest[behind(rest).unwrap_or(0)..]
}

/// The differences of the latency format, in which the kernel dumps its buffers: microseconds, a mark for the time
/// since the last event, and only eight letters of each name. A name of eight letters may have been longer.
///
/// Kernel: trace_print_lat_context(), kernel/trace/trace_output.c.
#[cold]
fn latency(micros: Time, comm: Comm, rest: &[u8]) -> Option<(Time, Comm, &[u8])> {
    const NAME: usize = 8;
    let comm = if comm.as_bytes().len() >= NAME { Comm::default() } else { comm };
    Some((Time(micros.0.checked_mul(1000)?), comm, rest.get(1..)?))
}

/// A line without the time that the console puts before it: `[10611.907467] `.
fn printed(text: &[u8]) -> &[u8] {
    let inside = text.trim_ascii_start().strip_prefix(b"[").map(|inside| inside.trim_ascii_start());
    let behind = inside.and_then(|inside| time(inside)?.1.strip_prefix(b"] "));
    behind.unwrap_or(text)
}

/// Splits a line of `perf script` into its front and the text after the time. Spaces separate the name from the task's
/// number, and the name may contain spaces, so the CPU's bracket is searched:
///
/// ```text
///     kworker/0:1-eve   812/812   [000]  1319.581649111:       sched:sched_switch: ...
/// ```
pub(super) fn parse_perf(line: &[u8]) -> Option<(Head, &[u8])> {
    let brackets = line.iter().enumerate().filter(|(_, byte)| **byte == b'[');
    brackets.filter_map(|(at, _)| at_bracket(line, at)).next()
}

/// Splits a line of `perf script` whose CPU is at a given bracket.
fn at_bracket(line: &[u8], bracket: usize) -> Option<(Head, &[u8])> {
    let before = line[..bracket].trim_ascii_end();
    // Without a name column (`-F tid,cpu,...`) nothing precedes the number.
    let start = before.iter().rposition(|&byte| byte == b' ').map_or(0, |space| space + 1);
    let (comm, task) = (before[..start].trim_ascii(), std::str::from_utf8(&before[start..]).ok()?);
    // The thread's number alone, or the process's and the thread's; -1 if perf does not know it.
    let (tgid, pid) = match task.split_once('/') {
        Some((tgid, tid)) => (tgid.parse().ok().filter(|tgid| *tgid > 0), tid),
        None => (None, task),
    };
    let pid = Pid(pid.parse().ok()?);
    let (cpu, rest) = cpu(&line[bracket..])?;
    let (time, rest) = time(rest)?;
    let rest = rest.strip_prefix(b":")?;
    let head = Head {
        comm: if pid == Pid::IDLE { Comm::from("<idle>") } else { Comm::new(comm) },
        pid,
        tgid: tgid.map(Pid),
        cpu: CpuId(u16::try_from(cpu).ok()?),
        flags: Flags::UNKNOWN,
        time,
    };
    Some((head, without_blanks(rest)))
}

/// The name without its alignment; `<...>` is a name that the recorder lost.
#[inline(always)]
pub(super) fn name(text: &[u8]) -> Comm {
    const LOST: Comm = Comm::new(b"<...>");
    let name = match text.try_into() {
        Ok(column) => Comm::aligned(column),
        Err(_) => Comm::new(text.trim_ascii_start()),
    };
    if name == LOST { Comm::default() } else { name }
}

/// A 1 in each of eight bytes.
const ONES: u64 = u64::MAX / 0xff;

/// The first eight bytes, with zeros where there are fewer.
#[inline(always)]
pub(crate) fn eight(text: &[u8]) -> u64 {
    match text.first_chunk() {
        Some(&bytes) => u64::from_le_bytes(bytes),
        None => text.iter().rev().fold(0, |bytes, &byte| bytes << 8 | u64::from(byte)),
    }
}

/// A decimal number of one to seven digits and its length, read at once; `None` if there are no digits or more.
#[inline(always)]
pub(crate) fn few_digits(text: &[u8]) -> Option<(u64, usize)> {
    digits_in(eight(text))
}

/// The number made of the leading digits of eight bytes, if there are one to seven, and their count.
#[inline(always)]
pub(crate) fn digits_in(bytes: u64) -> Option<(u64, usize)> {
    let values = bytes ^ (ONES * u64::from(b'0'));
    // From 10 on the highest bit is set in one of the two terms; any carry comes after that byte.
    let others = (values.wrapping_add(ONES * (0x80 - 10)) | values) & (ONES << 7);
    let digits = others.trailing_zeros() / 8;
    if digits == 0 || digits == 8 {
        return None;
    }
    Some((joined(values << (64 - 8 * digits)), digits as usize))
}

/// The number of eight digits, their values in bytes.
#[inline(always)]
fn joined(ones: u64) -> u64 {
    // Neighbours joined: to two digits each, to four, to eight.
    let twos = (ones.wrapping_mul(10 << 8 | 1) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(100 << 16 | 1) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(10_000 << 32 | 1) >> 32
}

/// For each of the first eight bytes, its bits that differ from a space.
#[inline(always)]
fn few_spaces(text: &[u8]) -> u64 {
    eight(text) ^ (ONES * u64::from(b' '))
}

/// An unsigned decimal number.
#[inline]
pub(crate) fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    match few_digits(text) {
        Some((n, digits)) => Some((n, &text[digits..])),
        None => any_number(text),
    }
}

/// An unsigned decimal number, digit by digit.
#[cold]
fn any_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let (mut n, mut digits) = (0u64, 0);
    while let Some(digit) = text.get(digits).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        n = n.checked_mul(10)?.checked_add(u64::from(digit))?;
        digits += 1;
    }
    (digits > 0).then_some((n, &text[digits..]))
}

/// Position of the first of two bytes, searched in eight bytes at once: a byte from which 1 borrows was 0, and the
/// lowest such byte is the first.
#[inline(always)]
pub(crate) fn position(text: &[u8], either: [u8; 2]) -> Option<usize> {
    let mut at = 0;
    while let Some(&bytes) = text[at..].first_chunk() {
        let borrows = |byte: u8| {
            let left = u64::from_le_bytes(bytes) ^ (ONES * u64::from(byte));
            left.wrapping_sub(ONES) & !left
        };
        let found = (borrows(either[0]) | borrows(either[1])) & (ONES << 7);
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    (at..text.len()).find(|&at| either.contains(&text[at]))
}

/// Position of the first blank or of the end of the text, searched in eight bytes at once: the first byte below 0x21 is
/// the first that borrows.
#[inline(always)]
pub(crate) fn blank(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&bytes) = text[at..].first_chunk() {
        let bytes = u64::from_le_bytes(bytes);
        let found = bytes.wrapping_sub(ONES * 0x21) & !bytes & (ONES << 7);
        at += found.trailing_zeros() as usize / 8;
        if found != 0 {
            break;
        }
    }
    // The last few bytes of the text, or those after a control character that is not a blank.
    at + text[at..].iter().position(u8::is_ascii_whitespace).unwrap_or(text.len() - at)
}

/// The text without the blanks it begins with.
#[inline(always)]
pub(super) fn without_blanks(text: &[u8]) -> &[u8] {
    let spaces = few_spaces(text).trailing_zeros() as usize / 8;
    match text.get(spaces) {
        Some(byte) if spaces < 8 && !byte.is_ascii_whitespace() => &text[spaces..],
        _ => many_blanks(text),
    }
}

#[cold]
fn many_blanks(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

/// Skips one space or more.
#[inline]
fn spaces(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b" ").map(without_blanks)
}

/// The process in parentheses: `(    812) `, `(-------) ` if it is unknown, or nothing.
fn tgid(text: &[u8]) -> Option<(Option<Pid>, &[u8])> {
    let Some(inside) = text.strip_prefix(b"(") else { return Some((None, text)) };
    let end = inside.iter().position(|&byte| byte == b')')?;
    let tgid = match number(inside[..end].trim_ascii()) {
        Some((pid, b"")) => Some(Pid(i32::try_from(pid).ok()?)),
        Some(_) => return None,
        None => None,
    };
    Some((tgid, spaces(&inside[end + 1..])?))
}

/// The CPU in brackets, or without them right before the flags.
fn cpu(text: &[u8]) -> Option<(u64, &[u8])> {
    match text.strip_prefix(b"[") {
        Some(inside) => {
            let (cpu, rest) = number(inside)?;
            let rest = rest.strip_prefix(b"]")?;
            // Raw times follow it directly.
            let raw = rest.first().is_some_and(u8::is_ascii_digit);
            Some((cpu, if raw { rest } else { spaces(rest)? }))
        }
        None => number(text),
    }
}

/// The flags column, if there is one before the time.
fn flags(text: &[u8]) -> Option<(Flags, &[u8])> {
    if let Some(raw) = text.strip_prefix(b"-0x") {
        // The bits as in the record, without the depths.
        let digits = raw.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let bits = u8::from_str_radix(std::str::from_utf8(&raw[..digits]).ok()?, 16).ok()?;
        return Some((Flags::new(bits, 0, 0), spaces(&raw[digits..])?));
    }
    let end = text.iter().take(8).position(|&byte| byte == b' ');
    match end.and_then(|end| Flags::parse(&text[..end]).map(|flags| (flags, end))) {
        Some((flags, end)) => Some((flags, spaces(&text[end..])?)),
        None => Some((Flags::UNKNOWN, text)),
    }
}

/// The value of the last digit of a fraction by its number of digits, ns.
const NANOS: [u64; 10] =
    [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

/// Seconds with a fraction of any length, or a plain count from a clock without seconds.
#[inline(always)]
pub(super) fn time(text: &[u8]) -> Option<(Time, &[u8])> {
    let (whole, rest) = number(text)?;
    let Some(fraction) = rest.strip_prefix(b".") else { return Some((Time(whole), rest)) };
    let (nanos, digits) = few_digits(fraction).unwrap_or_else(|| any_fraction(fraction));
    let nanos = nanos * NANOS[digits.min(9)];
    let time = whole.checked_mul(1_000_000_000)?.checked_add(nanos)?;
    (digits > 0).then_some((Time(time), &fraction[digits..]))
}

/// The digits of a fraction, of which nine count, and their number.
#[cold]
fn any_fraction(text: &[u8]) -> (u64, usize) {
    let (mut nanos, mut digits) = (0, 0);
    while let Some(digit) = text.get(digits).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10) {
        if digits < 9 {
            nanos = nanos * 10 + u64::from(digit);
        }
        digits += 1;
    }
    (nanos, digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(line: &str, expected: Expect) {
        show(parse(line.as_bytes()), expected);
    }

    fn show(parsed: Option<(Head, &[u8])>, expected: Expect) {
        let text = match parsed {
            Some((h, rest)) => format!(
                "{} pid {} tgid {:?} cpu {} {:?} {} | {}",
                h.comm,
                h.pid,
                h.tgid.map(|pid| pid.0),
                h.cpu,
                h.flags,
                h.time,
                String::from_utf8_lossy(rest)
            ),
            None => "none".to_owned(),
        };
        expected.assert_eq(&text);
    }

    #[test]
    fn each_writer_has_its_front() {
        check(
            "          <idle>-0       [006] d..2.     4.796730: sched_switch: x",
            expect!["<idle> pid 0 tgid None cpu 6 d..2. 4.796730000 | sched_switch: x"],
        );
        check(
            "            make-812     (    812) [000] dN.4  1314.000000001: x: y",
            expect!["make pid 812 tgid Some(812) cpu 0 dN.4. 1314.000000001 | x: y"],
        );
        check(
            "           <...>-4194304 (-------) [4095] .....     4.796730: x: y",
            expect![" pid 4194304 tgid None cpu 4095 ..... 4.796730000 | x: y"],
        );
        check(
            "         pp-main-332   [006]     3.921457192: sched_process_exec:   filename=/x",
            expect!["pp-main pid 332 tgid None cpu 6 ????? 3.921457192 | sched_process_exec:   filename=/x"],
        );
        check(
            " pp-main-332     6d..2.     3.921827: x: y",
            expect!["pp-main pid 332 tgid None cpu 6 d..2. 3.921827000 | x: y"],
        );
        check(
            " pp-main-332     6-0x5     3.921827: x: y",
            expect!["pp-main pid 332 tgid None cpu 6 dn... 3.921827000 | x: y"],
        );
        check(
            "         pp-main-332   [006]     3.921457: (+12)    sched_waking:   comm=x",
            expect!["pp-main pid 332 tgid None cpu 6 ????? 3.921457000 | sched_waking:   comm=x"],
        );
        check(
            "         pp-main-332   [006]3921457192: sched_waking:   comm=x",
            expect!["pp-main pid 332 tgid None cpu 6 ????? 3.921457192 | sched_waking:   comm=x"],
        );
        // The latency format cuts names to eight letters; the console may put its time before that.
        for mark in [" ", "+", "!"] {
            check(
                &format!("  rcub/1-17        1d..2. 10607794484us{mark}: x: y"),
                expect!["rcub/1 pid 17 tgid None cpu 1 d..2. 10607.794484000 | x: y"],
            );
        }
        check(
            "[10611.909164] rcu_tort-70        1dN.4. 10607794493us : x: y",
            expect![" pid 70 tgid None cpu 1 dN.4. 10607.794493000 | x: y"],
        );
        check(
            "     ksoftirqd/7-54      [007] dN..213    46.299754: x: y",
            expect!["ksoftirqd/7 pid 54 tgid None cpu 7 dN.23 46.299754000 | x: y"],
        );
        check("make-812 [000] 77: x: y", expect!["make pid 812 tgid None cpu 0 ????? 0.000000077 | x: y"]);
    }

    #[test]
    fn a_name_may_look_like_anything() {
        check(
            " a-1 [002] 3.0:x-812     [000] ..... 4.5: x: y",
            expect!["a-1 [002] 3.0:x pid 812 tgid None cpu 0 ..... 4.500000000 | x: y"],
        );
        check(
            "a-1 b-812     [000] ..... 4.5: x: y",
            expect!["a-1 b pid 812 tgid None cpu 0 ..... 4.500000000 | x: y"],
        );
        check(
            "   kworker/u8:1--1-8123  [000] d.h2. 4.5: x: y",
            expect!["kworker/u8:1--1 pid 8123 tgid None cpu 0 d.h2. 4.500000000 | x: y"],
        );
    }

    #[test]
    fn perf_puts_spaces_between_name_and_number() {
        show(
            parse_perf(b"            perf  9938 [000]  1319.581649:       sched:sched_waking: x"),
            expect!["perf pid 9938 tgid None cpu 0 ????? 1319.581649000 | sched:sched_waking: x"],
        );
        show(
            parse_perf(b"   my [1] task 4  9938/9940  [012]  1319.581649111: sched:sched_waking: x"),
            expect![
                "my [1] task 4 pid 9940 tgid Some(9938) cpu 12 ????? 1319.581649111 | sched:sched_waking: x"
            ],
        );
        show(
            parse_perf(b"         swapper     0/0     [001]  1.5: e: x"),
            expect!["<idle> pid 0 tgid None cpu 1 ????? 1.500000000 | e: x"],
        );
        show(
            parse_perf(b"20950 [000] 56496.336167:       sched:sched_waking: x"),
            expect![" pid 20950 tgid None cpu 0 ????? 56496.336167000 | sched:sched_waking: x"],
        );
        show(parse_perf(b"   ffffffff81 schedule ([kernel.kallsyms])"), expect!["none"]);
    }

    #[test]
    fn other_lines_have_no_front() {
        for line in [
            "",
            "#              | |         |   |||||     |         |",
            "CPU:3 [LOST 12 EVENTS]",
            "            make-812     [000] ..... : x: y",
            "            make-812     [000] ..... 4.: x: y",
            "            make-812     [70000] ..... 4.0: x: y",
            "            make-99999999999999999999 [0] ..... 4.0: x: y",
            "            make-812     [000] ..... 99999999999.0: x: y",
        ] {
            check(line, expect!["none"]);
        }
    }

    #[test]
    fn digits_read_at_once_are_those_read_one_by_one() {
        for digits in 0..=9 {
            for text in ["123456789", "000000000", "999999999", "908172635"] {
                for after in ["", " ", ":", "/", "\u{fffd}", "-12 and more", "é1234567"] {
                    let text = format!("{}{after}", &text[..digits]);
                    let text = text.as_bytes();
                    assert_eq!(number(text), any_number(text), "{text:?}");
                    if let Some(found) = few_digits(text) {
                        assert_eq!(found, any_fraction(text), "{text:?}");
                    }
                }
            }
        }
        assert_eq!(number(b"18446744073709551615 "), Some((u64::MAX, &b" "[..])));
        assert_eq!(number(b"18446744073709551616 "), None);
    }

    #[test]
    fn blanks_passed_over_at_once_are_those_of_the_library() {
        for blanks in ["", " ", "  \t", "       ", "        ", "          ", "\t", "\r \n"] {
            for after in ["", "x", "-and more", "\u{b}and more", "\0and more", "é and more"] {
                let text = format!("{blanks}{after}");
                let text = text.as_bytes();
                assert_eq!(without_blanks(text), text.trim_ascii_start(), "{text:?}");
            }
        }
    }

    #[test]
    fn a_blank_found_among_eight_bytes_is_the_first_one() {
        let text = b"a\x01b\x7fc\xffdefghi\x1fj k\tlm and\0more\x0bof\nit";
        for start in 0..text.len() {
            for end in start..text.len() {
                let text = &text[start..end];
                let first = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
                assert_eq!(blank(text), first, "{text:?}");
            }
        }
    }

    #[test]
    fn a_byte_found_among_eight_is_the_first_one() {
        let text = b"\x39\xba:\x1f\x21\xa0 and more: of it";
        for start in 0..text.len() {
            for end in start..text.len() {
                let text = &text[start..end];
                let first = text.iter().position(|byte| b": ".contains(byte));
                assert_eq!(position(text, [b':', b' ']), first, "{text:?}");
            }
        }
    }

    #[test]
    fn times_in_columns_are_those_read_bit_by_bit() {
        for blanks in 0..10 {
            for whole in ["", "4", "99999", "100000", "1234567", "12345678"] {
                for behind in
                    [".796689: x", ".000001: x", ".796689:  x", ".796689:x", ".7966890: x", ".796689: "]
                {
                    let text = format!("{}{whole}{behind} and what stands behind", " ".repeat(blanks));
                    let text = text.as_bytes();
                    if let Some(found) = micros(text) {
                        let (time, rest) = time(without_blanks(text)).unwrap();
                        let rest = without_blanks(rest.strip_prefix(b":").unwrap());
                        assert_eq!(found, (time, rest), "{text:?}");
                    }
                }
            }
        }
        assert!(micros(b"100000.796689: sched_waking: x").is_some());
    }

    #[test]
    fn what_stands_in_columns_is_what_is_found_anywhere() {
        let texts = [
            include_str!("../../tests/data/tracefs-6.1.txt"),
            include_str!("../../tests/data/tracefs-7.2-probes.txt"),
        ];
        let lines: Vec<&str> =
            texts.iter().flat_map(|text| text.lines().filter(|line| !line.starts_with('#'))).collect();
        let made = "            make-812     [003] dNh2.     4.796689: sched_wakeup_new: x=1";
        let in_many = lines.iter().filter(|line| in_columns(line.as_bytes()).is_some()).count();
        assert!(in_many > 20 && in_many == lines.len(), "{in_many} of {}", lines.len());
        lines.iter().step_by(7).for_each(|line| any_byte_may_be_another(line));
        any_byte_may_be_another(made);
    }

    fn any_byte_may_be_another(good: &str) {
        let shown = |(head, rest): (Head, &[u8])| {
            let Head { comm, pid, tgid, cpu, flags, time } = head;
            format!("{comm} {pid} {tgid:?} {cpu} {flags:?} {time} {rest:?}")
        };
        assert!(in_columns(good.as_bytes()).is_some());
        for at in 0..good.len() {
            for byte in *b" -.:09[]ad\0\t\xff" {
                let mut line = good.as_bytes().to_vec();
                line[at] = byte;
                if let Some(found) = in_columns(&line) {
                    let text = String::from_utf8_lossy(&line);
                    assert_eq!(Some(shown(found)), anywhere(&line).map(shown), "{text}");
                }
            }
        }
    }
}
