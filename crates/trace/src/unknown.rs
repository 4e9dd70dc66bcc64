//! An event outside the vocabulary: its text, and its fields by name.
//!
//! Probes on the kernel's own functions print values as `key=value` pairs, after their location:
//!
//! ```text
//! sel: (select_task_rq_fair+0x4/0x29c0) pid=1333 prev=5 fl=0x4
//! ```

use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use crate::pairs::{Pairs, int};

/// A tracepoint or probe that has no kind of its own.
#[derive(Clone)]
pub struct Unknown {
    /// Name and text, shared by all copies: recordings with probes contain millions of these, so a reader of text
    /// shares its own buffer.
    within: Arc<[u8]>,
    /// Invariant: UTF-8, as is the text.
    name: Part,
    text: Part,
}

/// A part of less than 4 GiB.
#[derive(Clone, Copy)]
struct Part {
    start: u32,
    end: u32,
}

impl Part {
    fn new(part: Range<usize>) -> Part {
        let short = |at| u32::try_from(at).expect("lines are short");
        Part { start: short(part.start), end: short(part.end) }
    }

    #[inline]
    fn of(self, whole: &[u8]) -> &[u8] {
        &whole[self.start as usize..self.end as usize]
    }
}

/// Whether a text is ASCII. The library checks up to 63 bytes at its end one by one.
fn is_ascii(text: &[u8]) -> bool {
    let Some(&end) = text.last_chunk() else { return text.is_ascii() };
    let (eights, _) = text.as_chunks();
    let all = eights.iter().fold(u64::from_ne_bytes(end), |all, &eight| all | u64::from_ne_bytes(eight));
    all & (u64::MAX / 0xff * 0x80) == 0
}

/// Text that is known to be UTF-8.
fn str(text: &[u8]) -> &str {
    std::str::from_utf8(text).expect("it was looked at")
}

impl Unknown {
    /// An event with that name and text.
    pub fn new(name: &str, text: &str) -> Unknown {
        let whole = [name, text].concat();
        let (name, text) = (Part::new(0..name.len()), Part::new(name.len()..whole.len()));
        Unknown { within: whole.into_bytes().into(), name, text }
    }

    /// An event whose name and, after it, text are in a reader's buffer; `None` if they may not be UTF-8.
    pub(crate) fn within(whole: &Arc<[u8]>, name: Range<usize>, text: Range<usize>) -> Option<Unknown> {
        is_ascii(&whole[name.start..text.end]).then(|| Unknown {
            within: Arc::clone(whole),
            name: Part::new(name),
            text: Part::new(text),
        })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        str(self.name_bytes())
    }

    /// The bytes of its name.
    #[inline]
    pub fn name_bytes(&self) -> &[u8] {
        self.name.of(&self.within)
    }

    /// The text after the name and its colon.
    pub fn text(&self) -> &str {
        str(self.text.of(&self.within))
    }

    /// The `key=value` pairs in their order. Words without `=` are skipped, and a value ends at the next space.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut pairs = self.pairs();
        iter::from_fn(move || Some((str(pairs.key()?), str(pairs.value()))))
    }

    /// The value of a key; the first one if there are several.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.value(key).map(str)
    }

    /// The value of a key as a number: signed decimal, or hexadecimal after `0x`. A value that exceeds an `i64` wraps,
    /// like a 64-bit register read as signed.
    pub fn int(&self, key: &str) -> Option<i64> {
        int(self.value(key)?)
    }

    #[inline]
    pub(crate) fn pairs(&self) -> Pairs<'_> {
        Pairs(self.text.of(&self.within))
    }

    fn value(&self, key: &str) -> Option<&[u8]> {
        let mut pairs = self.pairs();
        loop {
            let found = pairs.key()? == key.as_bytes();
            let value = pairs.value();
            if found {
                return Some(value);
            }
        }
    }

    /// The location of a probe: the text in the leading parentheses.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_shows_its_place_and_its_fields() {
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
    }

    #[test]
    fn a_key_inside_the_place_is_no_field() {
        let probe = Unknown::new("x", "(f+0x1/0x2 <- g) ret=18446744073709551615");
        assert_eq!(probe.place(), Some("f+0x1/0x2 <- g"));
        assert_eq!(probe.int("ret"), Some(-1));
    }

    #[test]
    fn fields_are_the_words_with_an_equal_sign() {
        let text = " a=1  b==2 =3 d=\t= e=12a f=1234567 g=12345678 h=+9 word i=0x1f j=-0 é=5 k=7";
        let probe = Unknown::new("x", text);
        let plain = text.split_ascii_whitespace().filter_map(|word| word.split_once('='));
        assert_eq!(probe.fields().collect::<Vec<_>>(), plain.clone().collect::<Vec<_>>());
        let numbers: Vec<i64> = plain.filter_map(|(_, value)| int(value.as_bytes())).collect();
        assert_eq!(numbers, [1, 3, 1_234_567, 12_345_678, 9, 31, 0, 5, 7]);
    }

    #[test]
    fn a_byte_that_is_no_ascii_is_found_wherever_it_stands() {
        for len in 0..40 {
            let mut text = vec![0x7f; len];
            assert!(is_ascii(&text), "{len}");
            for at in 0..len {
                text[at] = 0x80;
                assert!(!is_ascii(&text), "{at} of {len}");
                text[at] = b' ';
            }
        }
    }

    #[test]
    fn equal_is_what_says_the_same() {
        let line: Arc<[u8]> = b"4.7: sel:  pid=7\nand so on"[..].into();
        let line = Unknown::within(&line, 5..8, 11..16).unwrap();
        assert_eq!(line, Unknown::new("sel", "pid=7"));
        assert_ne!(line, Unknown::new("selp", "id=7"));
        assert_eq!(format!("{line:?}"), r#"Unknown { name: "sel", text: "pid=7" }"#);
    }
}
