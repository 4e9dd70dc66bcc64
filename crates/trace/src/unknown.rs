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
use std::ops::Range;
use std::sync::Arc;

use crate::pairs::{Pairs, int};

/// A tracepoint or probe that has no kind of its own.
#[derive(Clone)]
pub struct Unknown {
    /// Where name and text stand, once for all copies: recordings with probes have millions of these, so a
    /// reader of text gives what it has at hand.
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

/// Text that was found to be UTF-8.
fn str(text: &[u8]) -> &str {
    std::str::from_utf8(text).expect("it was looked at")
}

impl Unknown {
    /// An event of that name and text.
    pub fn new(name: &str, text: &str) -> Unknown {
        let whole = [name, text].concat();
        let (name, text) = (Part::new(0..name.len()), Part::new(name.len()..whole.len()));
        Unknown { within: whole.into_bytes().into(), name, text }
    }

    /// An event whose name and text stand in what a reader has at hand; none if they may be no UTF-8.
    pub(crate) fn within(whole: &Arc<[u8]>, name: Range<usize>, text: Range<usize>) -> Option<Unknown> {
        let is_ascii = whole[name.clone()].is_ascii() && whole[text.clone()].is_ascii();
        is_ascii.then(|| Unknown { within: Arc::clone(whole), name: Part::new(name), text: Part::new(text) })
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

    /// All that stood behind the name and its colon.
    pub fn text(&self) -> &str {
        str(self.text.of(&self.within))
    }

    /// The `key=value` pairs in their order. Words without `=` are passed over, and a
    /// value ends at the next space.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut pairs = self.pairs();
        iter::from_fn(move || Some((str(pairs.key()?), str(pairs.value()))))
    }

    /// The value of a key, the first of that name.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.value(key).map(str)
    }

    /// The value of a key as a number: decimal with sign, or hexadecimal behind `0x`.
    /// What exceeds an `i64` wraps, as a 64-bit register read with a sign does.
    pub fn int(&self, key: &str) -> Option<i64> {
        int(self.value(key)?)
    }

    /// The fields that are wanted and are numbers, in their order: what stands for the key, and the number.
    #[inline]
    pub fn ints<T>(&self, wanted: impl Fn(&[u8]) -> Option<T>) -> impl Iterator<Item = (T, i64)> {
        let mut pairs = self.pairs();
        iter::from_fn(move || {
            loop {
                match wanted(pairs.key()?) {
                    Some(what) => {
                        if let Some(number) = pairs.int() {
                            return Some((what, number));
                        }
                    }
                    None => _ = pairs.value(),
                }
            }
        })
    }

    /// The numbers that it has of each of several things, `nis12=4`, in their order: what stands for the letters,
    /// if they are wanted, which thing, and the number. Keys of another form are passed over.
    #[inline]
    pub fn indexed<T>(&self, wanted: impl Fn(&[u8]) -> Option<T>) -> impl Iterator<Item = (T, u64, i64)> {
        let mut pairs = self.pairs();
        iter::from_fn(move || {
            loop {
                let key = pairs.indexed_key()?;
                match key.and_then(|(letters, index)| Some((wanted(letters)?, index))) {
                    Some((what, index)) => {
                        if let Some(number) = pairs.int() {
                            return Some((what, index, number));
                        }
                    }
                    None => _ = pairs.value(),
                }
            }
        })
    }

    #[inline]
    fn pairs(&self) -> Pairs<'_> {
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
        let wanted = |key: &[u8]| (key != b"prev").then(|| str(key).to_owned());
        assert_eq!(probe.ints(wanted).map(|(key, _)| key).collect::<Vec<_>>(), ["pid", "fl", "mask", "pllc"]);
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
        let ints = plain.filter_map(|(key, value)| Some((key.to_owned(), int(value.as_bytes())?)));
        let found = probe.ints(|key| Some(str(key).to_owned())).collect::<Vec<_>>();
        assert_eq!(found, ints.collect::<Vec<_>>());
        let numbers: Vec<i64> = found.iter().map(|(_, number)| *number).collect();
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
        for unwanted in ["", "nis", "none"] {
            let wanted =
                |letters: &[u8]| expected.iter().map(|of| of.0).find(|&name| name.as_bytes() == letters);
            let wanted = |letters: &[u8]| wanted(letters).filter(|&name| name != unwanted);
            let expected = expected.into_iter().filter(|of| of.0 != unwanted);
            assert_eq!(probe.indexed(wanted).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn numbers_of_things_in_a_row_are_read_as_they_stand() {
        let of = |text: &str| -> Vec<(u8, u64, i64)> {
            Unknown::new("x", text).indexed(|letters| letters.first().copied()).collect()
        };
        let row: String = (0..130).map(|at| format!(" c{at}={}", at * at * at)).collect();
        assert_eq!(of(&row), (0..130).map(|at| (b'c', at, (at * at * at) as i64)).collect::<Vec<_>>());
        for (text, expected) in [
            (" c0=1 c1=2 c1=3 c2=4", vec![(0, 1), (1, 2), (1, 3), (2, 4)]),
            (" c0=1 c1x=2 c1=3", vec![(0, 1), (1, 3)]),
            (" c0=1 c1=2x c2=3", vec![(0, 1), (2, 3)]),
            (" c0=1 c1= c2=-3", vec![(0, 1), (2, -3)]),
            (" c0=1 c1=0x10\tc2=3 c3", vec![(0, 1), (1, 16), (2, 3)]),
            (" c0=1c1=2 c2=3", vec![(2, 3)]),
        ] {
            assert_eq!(
                of(text),
                expected.into_iter().map(|(at, n)| (b'c', at, n)).collect::<Vec<_>>(),
                "{text}"
            );
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
