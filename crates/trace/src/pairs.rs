//! `key=value` pairs, as probes print them: a hundred in a line.

use crate::read::{blank, digits_in, eight, position};

/// A text that is read pair by pair: the part that is left.
pub(crate) struct Pairs<'a>(pub &'a [u8]);

impl<'a> Pairs<'a> {
    /// The next key, from the last blank before its `=`; its value follows.
    #[inline(always)]
    pub fn key(&mut self) -> Option<&'a [u8]> {
        let end = position(self.0, [b'='; 2])?;
        let before = &self.0[..end];
        self.0 = &self.0[end + 1..];
        let start = before.iter().rposition(u8::is_ascii_whitespace).map_or(0, |blank| blank + 1);
        Some(&before[start..])
    }

    /// The value, up to the next blank.
    #[inline(always)]
    pub fn value(&mut self) -> &'a [u8] {
        let (value, behind) = self.0.split_at(blank(self.0));
        self.0 = behind;
        value
    }

    /// The value if it is a number; most have few digits.
    #[inline(always)]
    pub fn int(&mut self) -> Option<i64> {
        let bytes = eight(self.0);
        match digits_in(bytes) {
            Some((number, digits)) if (bytes >> (8 * digits)) as u8 == b' ' => {
                self.0 = &self.0[digits..];
                Some(number as i64)
            }
            _ => int(self.value()),
        }
    }
}

/// A number as the kernel prints one.
#[cold]
pub(crate) fn int(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|n| n as i64),
        None => text.parse::<i64>().ok().or_else(|| text.parse::<u64>().ok().map(|n| n as i64)),
    }
}
