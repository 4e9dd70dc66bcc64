//! An event outside the vocabulary: its text, and its fields by name.
//!
//! Probes that somebody placed on the kernel's own functions print what they
//! read as `key=value` pairs, after the place they sit at:
//!
//! ```text
//! sel: (select_task_rq_fair+0x4/0x29c0) pid=1333 prev=5 fl=0x4
//! ```

use std::sync::Arc;

/// A tracepoint or probe that has no kind of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown {
    /// Name and text behind each other, once for all copies: recordings with probes have millions of these.
    whole: Arc<str>,
    name_len: u32,
}

impl Unknown {
    /// An event of that name and text.
    pub fn new(name: &str, text: &str) -> Unknown {
        let mut whole = String::with_capacity(name.len() + text.len());
        whole.push_str(name);
        whole.push_str(text);
        Unknown { whole: whole.into(), name_len: u32::try_from(name.len()).expect("names are short") }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.whole[..self.name_len as usize]
    }

    /// All that stood behind the name and its colon.
    pub fn text(&self) -> &str {
        &self.whole[self.name_len as usize..]
    }

    /// The `key=value` pairs in their order. Words without `=` are passed over, and a
    /// value ends at the next space.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text().split_ascii_whitespace().filter_map(|word| word.split_once('='))
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
    pub fn ints(&self) -> impl Iterator<Item = (&str, i64)> {
        self.fields().filter_map(|(key, value)| Some((key, int(value)?)))
    }

    /// The place a probe sits at: the text in the leading parentheses.
    pub fn place(&self) -> Option<&str> {
        self.text().trim_start().strip_prefix('(')?.split_once(')').map(|(place, _)| place)
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
}
