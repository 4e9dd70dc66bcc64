//! A line exactly as we write it, without escapes: nearly every line.
//!
//! The keys come in one order and nothing is between the tokens, so each token is expected where it is. Any other line
//! is left to the parser for all JSON.

use std::borrow::Cow;

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use crate::comm::Comm;
use crate::decision::{Candidate, Number};
use crate::event::{Event, Kind};
use crate::fields::Value;
use crate::flags::Flags;

/// The event of a line; `None` if the line does not look like ours, or is not an event.
pub(super) fn event(line: &[u8]) -> Option<Event> {
    let mut line = Rest(std::str::from_utf8(line).ok()?);
    let time = line.after("{\"time\":")?.uint()?;
    let cpu = line.after(",\"cpu\":")?.uint()?;
    let pid = line.after(",\"pid\":")?.int()?;
    let tgid = match line.after(",\"tgid\":") {
        Some(line) => Some(Pid(line.int()?.try_into().ok()?)),
        None => None,
    };
    let comm = match line.after(",\"comm\":") {
        Some(line) => Comm::from(line.string()?),
        None => Comm::default(),
    };
    let flags = match line.after(",\"flags\":") {
        Some(line) => Flags::parse(line.string()?.as_bytes())?,
        None => Flags::UNKNOWN,
    };
    let event = line.after(",\"event\":")?.string()?;
    let mut fields: Vec<(&str, Value<'_>)> = Vec::with_capacity(12);
    line.after(",\"fields\":{")?.items("}", |line| {
        fields.push((line.key()?, line.value()?));
        Some(())
    })?;
    if line.0 != "}" {
        return None;
    }
    let kind = Kind::from_fields(event, |key| {
        let (_, value) = fields.iter_mut().rev().find(|(name, _)| *name == key)?;
        Some(match value {
            // A list is asked for once.
            Value::Numbers(_) | Value::Candidates(_) | Value::Pids(_) => {
                std::mem::replace(value, Value::Bool(false))
            }
            value => value.clone(),
        })
    })?;
    Some(Event {
        time: Time(time),
        cpu: CpuId(cpu.try_into().ok()?),
        pid: Pid(pid.try_into().ok()?),
        tgid,
        comm,
        flags,
        kind,
    })
}

/// The part of a line that is not read yet. Each function takes something off its front, or returns `None`.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    #[inline]
    fn after(&mut self, token: &str) -> Option<&mut Rest<'a>> {
        self.0 = self.0.strip_prefix(token)?;
        Some(self)
    }

    /// Text without escapes.
    #[inline]
    fn string(&mut self) -> Option<&'a str> {
        let text = self.0.strip_prefix('"')?;
        let end = end_of_plain(text.as_bytes())?;
        let (text, rest) = text.split_at(end);
        self.0 = rest.strip_prefix('"')?;
        Some(text)
    }

    /// The name of a field.
    #[inline]
    fn key(&mut self) -> Option<&'a str> {
        let key = self.string()?;
        self.after(":")?;
        Some(key)
    }

    /// A number of at most 19 digits.
    #[inline]
    fn uint(&mut self) -> Option<u64> {
        let (mut number, mut digits) = (0u64, 0);
        let bytes = self.0.as_bytes();
        while let Some(digit) =
            bytes.get(digits).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10)
        {
            number = number.wrapping_mul(10).wrapping_add(digit.into());
            digits += 1;
        }
        let rest = &self.0[digits..];
        let is_plain = (1..20).contains(&digits) && (digits == 1 || bytes[0] != b'0');
        if !is_plain || rest.starts_with(['.', 'e', 'E']) {
            return None;
        }
        self.0 = rest;
        Some(number)
    }

    #[inline]
    fn int(&mut self) -> Option<i64> {
        match self.after("-") {
            Some(rest) => rest.uint()?.try_into().ok().filter(|&n: &i64| n > 0).map(|n| -n),
            None => self.uint()?.try_into().ok(),
        }
    }

    /// Items with commas between them, up to the token at their end.
    #[inline]
    fn items(&mut self, end: &str, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        if self.after(end).is_some() {
            return Some(());
        }
        loop {
            item(self)?;
            if self.after(",").is_none() {
                return self.after(end).map(|_| ());
            }
        }
    }

    #[inline]
    fn value(&mut self) -> Option<Value<'a>> {
        Some(match self.0.as_bytes().first()? {
            b'"' => Value::text(self.string()?),
            b'-' => Value::Int(self.int()?),
            b'0'..=b'9' => {
                let n = self.uint()?;
                i64::try_from(n).map_or(Value::Uint(n), Value::Int)
            }
            b't' => self.after("true").map(|_| Value::Bool(true))?,
            b'f' => self.after("false").map(|_| Value::Bool(false))?,
            b'{' => Value::Numbers(Cow::Owned(self.numbers()?)),
            b'[' if self.0.starts_with("[]") || self.0.starts_with("[{") => {
                Value::Candidates(Cow::Owned(self.candidates()?))
            }
            b'[' => Value::Pids(Cow::Owned(self.pids()?)),
            _ => return None,
        })
    }

    /// `{"nr_idle":3}`, each name once.
    fn numbers(&mut self) -> Option<Vec<Number>> {
        let mut numbers: Vec<Number> = Vec::new();
        self.after("{")?.items("}", |line| {
            let number = (Cow::Owned(line.key()?.to_owned()), line.int()?);
            let again = numbers.iter().any(|(name, _)| *name == number.0);
            numbers.push(number);
            (!again).then_some(())
        })?;
        Some(numbers)
    }

    /// `[{"cpu":3,"refused":"BUSY"},{"cpu":4}]`.
    fn candidates(&mut self) -> Option<Vec<Candidate>> {
        let mut candidates = Vec::new();
        self.after("[")?.items("]", |line| {
            let cpu = CpuId(line.after("{\"cpu\":")?.uint()?.try_into().ok()?);
            let refused = match line.after(",\"refused\":") {
                Some(line) => Cow::Owned(line.string()?.to_owned()),
                None => Cow::Borrowed(""),
            };
            candidates.push(Candidate { cpu, refused });
            line.after("}").map(|_| ())
        })?;
        Some(candidates)
    }

    /// `[12,13]`.
    fn pids(&mut self) -> Option<Vec<Pid>> {
        let mut pids = Vec::new();
        self.after("[")?.items("]", |line| {
            pids.push(Pid(line.int()?.try_into().ok()?));
            Some(())
        })?;
        Some(pids)
    }
}

/// Where the first quote, backslash or control character is.
#[inline]
fn end_of_plain(text: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    const HIGHS: u64 = ONES << 7;
    let mut at = 0;
    while let Some(eight) = text[at..].first_chunk() {
        let eight = u64::from_le_bytes(*eight);
        // The highest bit of each byte below `limit`; wrong only in bytes after the first one.
        let below = |bytes: u64, limit: u8| bytes.wrapping_sub(ONES * u64::from(limit)) & !bytes & HIGHS;
        let is = |byte: u8| below(eight ^ (ONES * u64::from(byte)), 1);
        let found = is(b'"') | is(b'\\') | below(eight, b' ');
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = text[at..].iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ');
    rest.map(|rest| at + rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_at_its_first_special_byte() {
        for special in 0..=u8::MAX {
            for at in 0..20 {
                for behind in [&b""[..], b"\"", b"\x80\x1f\"", b"abcdefghijk\"\\"] {
                    let mut text = vec![b'!'; at];
                    text.push(special);
                    text.extend_from_slice(behind);
                    let slow = text.iter().position(|byte| b"\"\\".contains(byte) || *byte < 0x20);
                    assert_eq!(end_of_plain(&text), slow, "{text:?}");
                }
            }
        }
    }
}
