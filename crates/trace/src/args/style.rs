//! How one field of a tracepoint is printed and read.

use schedlab_topology::CpuId;
use schedlab_units::Pid;

use crate::comm::{COMM_LEN, Comm};
use crate::decision::Name;
use crate::event::Softirq;
use crate::read::{few_digits, number};
use crate::state::TaskState;

/// A text form of a field of type `T`. The forms that make up most lines are always inlined, so that the literals after
/// fields are compared as constants.
pub(super) trait Style<T> {
    /// Prints the field.
    fn print(field: &T, out: &mut Vec<u8>);

    /// Reads the field and the literal text that follows it.
    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<T>;
}

/// What is left of the text.
pub(super) struct Cursor<'a>(pub &'a [u8]);

impl<'a> Cursor<'a> {
    /// Skips text that must be there.
    #[inline]
    pub fn literal(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text.as_bytes())?;
        Some(())
    }

    /// Skips text that may be there.
    #[inline]
    fn optional(&mut self, text: &str) -> bool {
        let found = self.0.strip_prefix(text.as_bytes());
        self.0 = found.unwrap_or(self.0);
        found.is_some()
    }

    #[inline]
    fn unsigned(&mut self) -> Option<u64> {
        let (n, rest) = number(self.0)?;
        self.0 = rest;
        Some(n)
    }

    fn hex(&mut self) -> Option<u64> {
        self.optional("0x");
        let digits = self.0.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let text = std::str::from_utf8(&self.0[..digits]).ok()?;
        self.0 = &self.0[digits..];
        u64::from_str_radix(text, 16).ok()
    }

    /// Takes `len` bytes and the literal that follows them.
    #[inline(always)]
    fn take(&mut self, len: usize, after: &str) -> &'a [u8] {
        let taken = &self.0[..len];
        self.0 = &self.0[len + after.len()..];
        taken
    }

    /// The text before the first occurrence of `after`; all of it when `after` is empty.
    fn until(&mut self, after: &str) -> Option<&'a [u8]> {
        if after.is_empty() {
            return Some(self.take(self.0.len(), after));
        }
        let at = find(self.0, after.as_bytes())?;
        Some(self.take(at, after))
    }
}

/// The first occurrence of `needle`, which is not empty.
#[inline]
fn find(text: &[u8], needle: &[u8]) -> Option<usize> {
    let last = text.len().checked_sub(needle.len())?;
    (0..=last).find(|&at| text[at] == needle[0] && text[at..].starts_with(needle))
}

/// A number with an optional sign and any number of digits.
#[cold]
fn signed(text: &[u8]) -> Option<(i128, &[u8])> {
    match text.strip_prefix(b"-") {
        Some(text) => number(text).map(|(n, rest)| (-i128::from(n), rest)),
        None => number(text).map(|(n, rest)| (n.into(), rest)),
    }
}

/// The last occurrence of a literal that begins in the first 16 bytes; `None` if there are too few bytes to check all
/// positions.
#[inline(always)]
fn last_in_16(text: &[u8], literal: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 0xff;
    const LOW: u64 = ONES * 0x7f;
    let text = text.get(..15 + literal.len())?;
    for start in [8, 0] {
        let left = u64::from_le_bytes(*text[start..].first_chunk()?) ^ (ONES * u64::from(literal[0]));
        // Where the literal matches no bits are left, and only there does no carry or own bit set the highest bit.
        let mut found = !(((left & LOW) + LOW) | left | LOW);
        while found != 0 {
            let at = start + 7 - found.leading_zeros() as usize / 8;
            if text[at..].starts_with(literal) {
                return Some(at);
            }
            found ^= 1 << 63 >> found.leading_zeros();
        }
    }
    None
}

/// Prints a number without the machinery of formatting.
pub(crate) fn decimal(mut n: u64, width: usize, fill: u8, out: &mut Vec<u8>) {
    let mut digits = [fill; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at.min(digits.len().saturating_sub(width))..]);
}

/// A decimal number.
pub(super) struct Number;

macro_rules! numbers {
    ($($type:ty: $get:expr, $make:expr;)+) => {$(
        impl Style<$type> for Number {
            fn print(field: &$type, out: &mut Vec<u8>) {
                let n = i128::from($get(*field));
                if n < 0 {
                    out.push(b'-');
                }
                decimal(n.unsigned_abs() as u64, 0, b'0', out);
            }

            #[inline(always)]
            fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<$type> {
                let n = match few_digits(cursor.0) {
                    Some((n, digits)) => {
                        cursor.0 = &cursor.0[digits..];
                        n.try_into().ok()?
                    }
                    None => {
                        let (n, rest) = signed(cursor.0)?;
                        cursor.0 = rest;
                        n.try_into().ok()?
                    }
                };
                cursor.literal(after)?;
                Some($make(n))
            }
        }
    )+};
}

numbers! {
    i16: |n| n, |n: i16| n;
    i32: |n| n, |n: i32| n;
    u32: |n| n, |n: u32| n;
    u64: |n| n, |n: u64| n;
    Pid: |pid: Pid| pid.0, Pid;
    CpuId: |cpu: CpuId| cpu.0, CpuId;
}

/// The name of a task, which may contain any bytes, even part of the text that follows it. The last position at which
/// that text can begin counts, since a name has at most 15 bytes.
pub(super) struct Task;

impl Style<Comm> for Task {
    fn print(field: &Comm, out: &mut Vec<u8>) {
        out.extend(field.as_bytes().iter().map(|&b| if b == b'\n' || b == b'\r' { b' ' } else { b }));
    }

    #[inline(always)]
    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<Comm> {
        if after.is_empty() {
            return Some(Comm::new(cursor.until(after)?));
        }
        let text = cursor.0;
        let at = match last_in_16(text, after.as_bytes()) {
            Some(at) => at,
            None => name_end(text, after.as_bytes())?,
        };
        cursor.take(at, after);
        Some(Comm::in_front(text, at))
    }
}

/// Where the name of a task ends, checked position by position.
#[cold]
fn name_end(text: &[u8], after: &[u8]) -> Option<usize> {
    let follows = |&at: &usize| text[at..].starts_with(after);
    (0..text.len().min(COMM_LEN)).rev().find(follows).or_else(|| find(text, after))
}

/// The name of a task before `:pid [`, as pretty printers write it.
pub(super) struct TaskColon;

impl Style<Comm> for TaskColon {
    fn print(field: &Comm, out: &mut Vec<u8>) {
        Task::print(field, out);
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<Comm> {
        let text = cursor.0;
        let at = (0..text.len()).find(|&at| {
            let Some(rest) = text[at..].strip_prefix(after.as_bytes()) else { return false };
            let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
            digits > 0 && rest[digits..].starts_with(b" [")
        })?;
        Some(Comm::new(cursor.take(at, after)))
    }
}

/// The letters of a task's state.
pub(super) struct State;

impl Style<TaskState> for State {
    fn print(field: &TaskState, out: &mut Vec<u8>) {
        out.extend_from_slice(field.to_string().as_bytes());
    }

    #[inline(always)]
    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<TaskState> {
        // Most states have one letter, and the text that follows does not begin with a letter.
        if after.starts_with(' ')
            && let Some((&letter, rest)) = cursor.0.split_first()
            && let Some(state) = TaskState::letter(letter)
            && let Some(rest) = rest.strip_prefix(after.as_bytes())
        {
            cursor.0 = rest;
            return Some(state);
        }
        TaskState::parse(cursor.until(after)?)
    }
}

/// A task's state as the number in the record.
pub(super) struct RawState;

impl Style<TaskState> for RawState {
    fn print(field: &TaskState, out: &mut Vec<u8>) {
        Number::print(&field.bits(), out);
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<TaskState> {
        let bits = if cursor.0.starts_with(b"0x") { cursor.hex()? } else { cursor.unsigned()? };
        cursor.literal(after)?;
        Some(TaskState::from_bits(bits))
    }
}

/// The letters of a task's state as pretty printers print them: by an old order of the bits, in which a zombie is `X`
/// and an idle wait `W`, and without the `+` of a preemption. Newer printers use the kernel's letters; the two differ
/// only in the letters for dead tasks.
pub(super) struct PrettyState;

impl Style<TaskState> for PrettyState {
    fn print(field: &TaskState, out: &mut Vec<u8>) {
        State::print(field, out);
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<TaskState> {
        let kernels = |letter| match letter {
            b'X' => b'Z',
            b'Z' => b'X',
            b'x' => b'P',
            b'W' => b'I',
            other => other,
        };
        let letters: Vec<u8> = cursor.until(after)?.iter().copied().map(kernels).collect();
        TaskState::parse(&letters)
    }
}

/// A CPU with a fixed number of digits.
pub(super) struct CpuDigits<const N: usize>;

/// A CPU with three digits, as most events print it.
pub(super) type Cpu3 = CpuDigits<3>;

/// A CPU with four digits, as CPU hotplug events print it.
pub(super) type Cpu4 = CpuDigits<4>;

impl<const N: usize> Style<CpuId> for CpuDigits<N> {
    fn print(field: &CpuId, out: &mut Vec<u8>) {
        decimal(field.0.into(), N, b'0', out);
    }

    #[inline(always)]
    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<CpuId> {
        Number::parse(cursor, after)
    }
}

/// A number right-aligned in three columns.
pub(super) struct Padded;

impl Style<i32> for Padded {
    fn print(field: &i32, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{field:3}").as_bytes());
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<i32> {
        while cursor.optional(" ") {}
        Number::parse(cursor, after)
    }
}

/// A CPU as pretty printers write it: ` CPU:003`, ` success=1 CPU:003`.
pub(super) struct CpuColon;

impl Style<CpuId> for CpuColon {
    fn print(field: &CpuId, out: &mut Vec<u8>) {
        out.extend_from_slice(b" CPU:");
        Cpu3::print(field, out);
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<CpuId> {
        cursor.optional(" success=1");
        cursor.optional(" <");
        cursor.optional(" ");
        cursor.literal("CPU:")?;
        Number::parse(cursor, after)
    }
}

/// Nanoseconds, with a unit after them if the printer wrote one.
pub(super) struct Nanoseconds;

impl Style<u64> for Nanoseconds {
    fn print(field: &u64, out: &mut Vec<u8>) {
        decimal(*field, 0, b'0', out);
        out.extend_from_slice(b" [ns]");
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<u64> {
        let n = cursor.unsigned()?;
        cursor.optional(" [ns]");
        cursor.literal(after)?;
        Some(n)
    }
}

/// The virtual time that kernels before 6.8 print after the run time.
pub(super) struct Vruntime;

impl Style<Option<u64>> for Vruntime {
    fn print(field: &Option<u64>, out: &mut Vec<u8>) {
        if let Some(vruntime) = field {
            out.extend_from_slice(b" vruntime=");
            Nanoseconds::print(vruntime, out);
        }
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<Option<u64>> {
        if cursor.optional(" vruntime=") {
            return Nanoseconds::parse(cursor, after).map(Some);
        }
        Some(None)
    }
}

/// Whether a task was the last of its process, which kernels since 6.16 print.
pub(super) struct GroupDead;

impl Style<Option<bool>> for GroupDead {
    fn print(field: &Option<bool>, out: &mut Vec<u8>) {
        out.extend_from_slice(match field {
            Some(true) => b" group_dead=true",
            Some(false) => b" group_dead=false",
            None => b"",
        });
    }

    fn parse(cursor: &mut Cursor<'_>, _: &str) -> Option<Option<bool>> {
        if !cursor.optional(" group_dead=") {
            return Some(None);
        }
        Some(Some(cursor.optional("true") || cursor.optional("1")))
    }
}

/// Text up to the literal that follows it.
pub(super) struct Word;

macro_rules! text {
    ($($type:ty)+) => {$(
        impl Style<$type> for Word {
            fn print(field: &$type, out: &mut Vec<u8>) {
                super::one_line(field, out);
            }

            fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<$type> {
                let text = cursor.until(after)?;
                Some(String::from_utf8_lossy(text).into_owned().into())
            }
        }
    )+};
}

text! { Name Box<str> }

/// Text up to the last occurrence of the literal that follows it: a path may contain anything.
pub(super) struct Path;

impl Style<Box<str>> for Path {
    fn print(field: &Box<str>, out: &mut Vec<u8>) {
        super::one_line(field, out);
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<Box<str>> {
        let at = cursor.0.windows(after.len()).rposition(|window| window == after.as_bytes())?;
        Some(String::from_utf8_lossy(cursor.take(at, after)).into())
    }
}

/// A hexadecimal number without a prefix.
pub(super) struct Hex;

impl Style<u64> for Hex {
    fn print(field: &u64, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{field:x}").as_bytes());
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<u64> {
        let n = cursor.hex()?;
        cursor.literal(after)?;
        Some(n)
    }
}

/// An address.
pub(super) struct Pointer;

impl Style<u64> for Pointer {
    fn print(field: &u64, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("{field:016x}").as_bytes());
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<u64> {
        Hex::parse(cursor, after)
    }
}

/// A work's function, where the kernel prints it.
pub(super) struct Function;

impl Style<Name> for Function {
    fn print(field: &Name, out: &mut Vec<u8>) {
        if !field.is_empty() {
            out.extend_from_slice(b" function=");
            Word::print(field, out);
        }
    }

    fn parse(cursor: &mut Cursor<'_>, after: &str) -> Option<Name> {
        if !cursor.optional(" function=") {
            return Some(Name::Borrowed(""));
        }
        let text = cursor.until(after)?.trim_ascii_end();
        Some(String::from_utf8_lossy(text).into_owned().into())
    }
}

/// Whether an interrupt's handler handled it.
pub(super) struct Handled;

impl Style<bool> for Handled {
    fn print(field: &bool, out: &mut Vec<u8>) {
        out.extend_from_slice(if *field { b"handled" } else { b"unhandled" });
    }

    fn parse(cursor: &mut Cursor<'_>, _: &str) -> Option<bool> {
        match cursor.until("")? {
            b"handled" | b"1" => Some(true),
            b"unhandled" | b"0" => Some(false),
            _ => None,
        }
    }
}

/// A soft interrupt's number and name.
pub(super) struct Action;

impl Style<Softirq> for Action {
    fn print(field: &Softirq, out: &mut Vec<u8>) {
        decimal(field.0.into(), 0, b'0', out);
        out.extend_from_slice(b" [action=");
        out.extend_from_slice(field.name().as_bytes());
        out.push(b']');
    }

    fn parse(cursor: &mut Cursor<'_>, _: &str) -> Option<Softirq> {
        let vec = cursor.unsigned()?;
        cursor.literal(" [action=")?;
        vec.try_into().ok().map(Softirq)
    }
}

/// A soft interrupt's number alone.
pub(super) struct BareAction;

impl Style<Softirq> for BareAction {
    fn print(field: &Softirq, out: &mut Vec<u8>) {
        decimal(field.0.into(), 0, b'0', out);
    }

    fn parse(cursor: &mut Cursor<'_>, _: &str) -> Option<Softirq> {
        cursor.unsigned()?.try_into().ok().map(Softirq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_found_among_eight_bytes_is_the_one_found_place_by_place() {
        let rests =
            ["7 prio=120 target_cpu=003", "-1 pid=2", "", "7", "\u{a0}\u{ff} pid=\u{7f}8 pid=9 and more"];
        for name in
            ["", "a", "swapper/3", "fifteen letters", " pid=1 pid=2", "a name of more than that", "   "]
        {
            for rest in rests {
                for literal in [" pid=", " ", " oom_score_adj=", "="] {
                    let text = format!("{name}{literal}{rest}");
                    let (text, literal) = (text.as_bytes(), literal.as_bytes());
                    if let Some(at) = last_in_16(text, literal) {
                        assert_eq!(Some(at), name_end(text, literal), "{text:?}");
                    }
                }
            }
        }
        assert_eq!(last_in_16(b"a pid=1 pid=2 prio=120 x", b" pid="), Some(7));
    }

    #[test]
    fn a_state_of_one_letter_is_read_like_any_other() {
        for state in ["R", "S", "D", "x", "R+", "S|D", "Q", "", "+", " ", "RR"] {
            for after in ["", " ==> ", "S"] {
                let text = format!("{state}{after}");
                let of = |parse: fn(&mut Cursor<'_>, &str) -> Option<TaskState>| {
                    let mut cursor = Cursor(text.as_bytes());
                    parse(&mut cursor, after).map(|state| (state, cursor.0))
                };
                let slowly = |cursor: &mut Cursor<'_>, after: &str| TaskState::parse(cursor.until(after)?);
                assert_eq!(of(State::parse), of(slowly), "{text:?}");
            }
        }
    }
}
