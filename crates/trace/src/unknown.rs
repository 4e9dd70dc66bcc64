//! An event outside the vocabulary: its text, and its fields by name.
//!
//! Probes that somebody placed on the kernel's own functions print what they
//! read as `key=value` pairs, after the place they sit at:
//!
//! ```text
//! sel: (select_task_rq_fair+0x4/0x29c0) pid=1333 prev=5 fl=0x4
//! ```

use std::fmt;
use std::iter;
use std::sync::Arc;

use crate::read::few_digits;

/// A tracepoint or probe that has no kind of its own.
#[derive(Clone)]
pub struct Unknown {
    /// Name and text in one piece, once for all copies: recordings with probes have millions of these.
    whole: Arc<str>,
    name_len: u32,
    text_at: u32,
}

impl Unknown {
    /// An event of that name and text.
    pub fn new(name: &str, text: &str) -> Unknown {
        Unknown::in_one(&[name, text].concat(), name.len(), name.len())
    }

    /// An event whose name and text are the beginning and the end of what a line has of it.
    pub(crate) fn in_one(whole: &str, name_len: usize, text_at: usize) -> Unknown {
        let short = |len| u32::try_from(len).expect("names are short");
        Unknown { whole: whole.into(), name_len: short(name_len), text_at: short(text_at) }
    }

    /// Its name.
    #[inline]
    pub fn name(&self) -> &str {
        &self.whole[..self.name_len as usize]
    }

    /// All that stood behind the name and its colon.
    #[inline]
    pub fn text(&self) -> &str {
        &self.whole[self.text_at as usize..]
    }

    /// The `key=value` pairs in their order. Words without `=` are passed over, and a
    /// value ends at the next space.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut pairs = self.pairs();
        iter::from_fn(move || Some((pairs.key()?, pairs.value())))
    }

    /// The value of a key, the first of that name.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields().find(|(k, _)| *k == key).map(|(_, value)| value)
    }

    /// The value of a key as a number: decimal with sign, or hexadecimal behind `0x`.
    /// What exceeds an `i64` wraps, as a 64-bit register read with a sign does.
    pub fn int(&self, key: &str) -> Option<i64> {
        int(self.field(key)?)
    }

    /// The fields that are numbers, in their order.
    #[inline]
    pub fn ints(&self) -> Ints<'_> {
        Ints(self.pairs())
    }

    /// The numbers that it has of each of several things, `nis12=4`, in their order: the letters, which
    /// thing, and the number. Keys of another form are passed over.
    #[inline]
    pub fn indexed(&self) -> Indexed<'_> {
        Indexed(self.pairs())
    }

    #[inline]
    fn pairs(&self) -> Pairs<'_> {
        Pairs { text: &self.whole, at: self.text_at as usize }
    }

    /// The place a probe sits at: the text in the leading parentheses.
    pub fn place(&self) -> Option<&str> {
        self.text().trim_start().strip_prefix('(')?.split_once(')').map(|(place, _)| place)
    }
}

impl PartialEq for Unknown {
    fn eq(&self, other: &Unknown) -> bool {
        (self.name(), self.text()) == (other.name(), other.text())
    }
}

impl Eq for Unknown {}

impl fmt::Debug for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unknown").field("name", &self.name()).field("text", &self.text()).finish()
    }
}

/// The numbers of an event, by their keys.
pub struct Ints<'a>(Pairs<'a>);

impl<'a> Iterator for Ints<'a> {
    type Item = (&'a str, i64);

    #[inline(always)]
    fn next(&mut self) -> Option<(&'a str, i64)> {
        loop {
            let key = self.0.key()?;
            if let Some(number) = self.0.int() {
                return Some((key, number));
            }
        }
    }
}

/// The numbers of an event, by the letters and the digits of their keys.
pub struct Indexed<'a>(Pairs<'a>);

impl<'a> Iterator for Indexed<'a> {
    type Item = (&'a [u8], u64, i64);

    #[inline(always)]
    fn next(&mut self) -> Option<(&'a [u8], u64, i64)> {
        loop {
            if let Some(found) = self.0.indexed() {
                return Some(found);
            }
            let key = self.0.key()?;
            let digits = key.bytes().position(|byte| byte.is_ascii_digit()).unwrap_or(key.len());
            if let (Ok(index), Some(number)) = (key[digits..].parse(), self.0.int()) {
                return Some((&key.as_bytes()[..digits], index, number));
            }
        }
    }
}

/// A text that is gone through pair by pair; a probe may tell a hundred of them.
struct Pairs<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Pairs<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The next key; its value follows.
    #[inline(always)]
    fn key(&mut self) -> Option<&'a str> {
        let mut start = self.at;
        for (at, &byte) in (self.at..).zip(self.rest()) {
            if byte == b'=' {
                self.at = at + 1;
                return Some(&self.text[start..at]);
            }
            if byte.is_ascii_whitespace() {
                start = at + 1;
            }
        }
        None
    }

    /// The next key's letters and index and its number, taken at once if all are short and plain.
    #[inline(always)]
    fn indexed(&mut self) -> Option<(&'a [u8], u64, i64)> {
        let rest = self.rest();
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        // This bit is set in letters, and not in digits, spaces and equal signs.
        let others = !u64::from_le_bytes(*rest.first_chunk()?) & (u64::MAX / 0xff * 0x40);
        let (letters, behind) = rest.split_at(others.trailing_zeros() as usize / 8);
        let (index, digits) = few_digits(behind)?;
        let behind = behind[digits..].strip_prefix(b"=")?;
        let (number, digits) = few_digits(behind)?;
        let behind = &behind[digits..];
        if behind.first().is_some_and(|&byte| byte != b' ') {
            return None;
        }
        self.at = self.text.len() - behind.len();
        Some((letters, index, number as i64))
    }

    /// The value, up to the next space.
    fn value(&mut self) -> &'a str {
        let (start, rest) = (self.at, self.rest());
        self.at += rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        &self.text[start..self.at]
    }

    /// The value if it is a number; most have few digits.
    #[inline(always)]
    fn int(&mut self) -> Option<i64> {
        let rest = self.rest();
        match few_digits(rest) {
            Some((number, digits)) if rest.get(digits).is_none_or(u8::is_ascii_whitespace) => {
                self.at += digits;
                Some(number as i64)
            }
            _ => int(self.value()),
        }
    }
}

/// A number as the kernel prints one.
fn int(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|n| n as i64),
        None => text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|n| n as i64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_tells_its_place_and_its_fields() {
        let probe = Unknown::new(
            "sel",
            "(select_task_rq_fair+0x4/0x29c0) pid=1333 prev=5 fl=0x4 mask=0xffffffffffffffff pllc=-1 grp=none",
        );
        assert_eq!(probe.place(), Some("select_task_rq_fair+0x4/0x29c0"));
        assert_eq!(probe.int("pid"), Some(1333));
        assert_eq!(probe.int("fl"), Some(4));
        assert_eq!(probe.int("mask"), Some(-1));
        assert_eq!(probe.int("pllc"), Some(-1));
        assert_eq!((probe.field("grp"), probe.int("grp")), (Some("none"), None));
        assert_eq!(probe.field("p"), None);
        assert_eq!(probe.fields().count(), 6);
        assert_eq!(
            probe.ints().map(|(key, _)| key).collect::<Vec<_>>(),
            ["pid", "prev", "fl", "mask", "pllc"]
        );
    }

    #[test]
    fn a_key_inside_the_place_is_no_field() {
        let probe = Unknown::new("x", "(f+0x1/0x2 <- g) ret=18446744073709551615");
        assert_eq!(probe.place(), Some("f+0x1/0x2 <- g"));
        assert_eq!(probe.int("ret"), Some(-1));
    }

    #[test]
    fn numbers_are_those_of_the_fields() {
        let text = " a=1  b==2 =3 d=\t= e=12a f=1234567 g=12345678 h=+9 word i=0x1f j=-0 é=5 k=7";
        let probe = Unknown::new("x", text);
        let plain = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        assert_eq!(probe.fields().collect::<Vec<_>>(), plain.clone().collect::<Vec<_>>());
        let ints = plain.filter_map(|(key, value)| Some((key, int(value)?)));
        assert_eq!(probe.ints().collect::<Vec<_>>(), ints.collect::<Vec<_>>());
        let numbers: Vec<i64> = probe.ints().map(|(_, number)| number).collect();
        assert_eq!(numbers, [1, 3, 1_234_567, 12_345_678, 9, 31, 0, 5, 7]);
    }

    #[test]
    fn numbers_of_several_things_are_told_apart() {
        let text = "(f+0x4/0x9) pid=7 c0=1404 c12=-1 nis4=0x1f  x2y3=5 é1=2 l99999999=3 busy8=12345678 7=8\tlettersmany3=4 t1=0";
        let probe = Unknown::new("cpus", text);
        let expected = [
            ("c", 0, 1404),
            ("c", 12, -1),
            ("nis", 4, 31),
            ("é", 1, 2),
            ("l", 99_999_999, 3),
            ("busy", 8, 12_345_678),
            ("", 7, 8),
            ("lettersmany", 3, 4),
            ("t", 1, 0),
        ];
        let expected = expected.map(|(letters, index, number)| (letters.as_bytes(), index, number));
        assert_eq!(probe.indexed().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn equal_is_what_says_the_same() {
        let line = Unknown::in_one("sel:  pid=7", 3, 6);
        assert_eq!(line, Unknown::new("sel", "pid=7"));
        assert_ne!(line, Unknown::new("selp", "id=7"));
        assert_eq!(format!("{line:?}"), r#"Unknown { name: "sel", text: "pid=7" }"#);
    }
}
