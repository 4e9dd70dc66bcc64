//! Protobuf's wire format, as far as a trace needs it.
//!
//! A message is a sequence of fields, each a tag (number and wire type) and a value: a varint, eight bytes, four bytes,
//! or a length and that many bytes. Unknown fields are skipped, which is how the format grows.

/// Appends fields to a message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Encoder {
    bytes: Vec<u8>,
}

impl Encoder {
    /// The message so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Clears the message and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// A number without sign, or an enum.
    pub fn uint(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    /// A number with sign; a negative one takes ten bytes.
    pub fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value as u64);
    }

    /// Eight bytes.
    pub fn fixed64(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3 | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Text. Readers refuse text that is not UTF-8, so invalid bytes are replaced.
    pub fn text(&mut self, field: u32, text: &[u8]) {
        self.raw(field, String::from_utf8_lossy(text).as_bytes());
    }

    /// A message encoded elsewhere.
    pub fn raw(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Fields encoded elsewhere.
    pub fn append(&mut self, fields: &[u8]) {
        self.bytes.extend_from_slice(fields);
    }

    /// A message inside this one.
    pub fn message(&mut self, field: u32, fill: impl FnOnce(&mut Encoder)) {
        self.varint(u64::from(field) << 3 | 2);
        let start = self.bytes.len();
        fill(self);
        let len = self.bytes.len() - start;
        // The length precedes the content, so the content moves up to make room.
        self.varint(len as u64);
        self.bytes[start..].rotate_left(len);
    }

    /// A bare number, as in packed fields.
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire<'a> {
    /// A number.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// Four bytes.
    Fixed32(u32),
    /// Text, a message, or packed numbers.
    Bytes(&'a [u8]),
}

impl Default for Wire<'_> {
    fn default() -> Self {
        Wire::Varint(0)
    }
}

impl<'a> Wire<'a> {
    /// The number; 0 if it is not a number.
    pub fn uint(self) -> u64 {
        match self {
            Wire::Varint(n) | Wire::Fixed64(n) => n,
            Wire::Fixed32(n) => n.into(),
            Wire::Bytes(_) => 0,
        }
    }

    /// The bytes; empty when there are none.
    pub fn bytes(self) -> &'a [u8] {
        match self {
            Wire::Bytes(bytes) => bytes,
            _ => &[],
        }
    }

    /// Numbers, packed or a single one.
    pub fn numbers(self) -> Numbers<'a> {
        match self {
            Wire::Bytes(bytes) => Numbers { packed: bytes, single: None },
            wire => Numbers { packed: &[], single: Some(wire.uint()) },
        }
    }
}

/// Reads the fields of a message. It ends where the bytes are not valid; [`Decoder::failed`] reports that.
#[derive(Clone, Debug)]
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    failed: bool,
}

impl<'a> Decoder<'a> {
    /// A reader at the beginning of a message.
    pub fn new(bytes: &'a [u8]) -> Decoder<'a> {
        Decoder { bytes, failed: false }
    }

    /// Whether the message ended in the middle of a field.
    pub fn failed(&self) -> bool {
        self.failed
    }

    #[inline(always)]
    fn field(&mut self) -> Option<(u32, Wire<'a>)> {
        let tag = varint(&mut self.bytes)?;
        let field = u32::try_from(tag >> 3).ok()?;
        let wire = match tag & 7 {
            0 => Wire::Varint(varint(&mut self.bytes)?),
            1 => Wire::Fixed64(u64::from_le_bytes(*take(&mut self.bytes)?)),
            2 => {
                let len = usize::try_from(varint(&mut self.bytes)?).ok()?;
                let (bytes, rest) = self.bytes.split_at_checked(len)?;
                self.bytes = rest;
                Wire::Bytes(bytes)
            }
            5 => Wire::Fixed32(u32::from_le_bytes(*take(&mut self.bytes)?)),
            _ => return None,
        };
        Some((field, wire))
    }
}

impl<'a> Iterator for Decoder<'a> {
    type Item = (u32, Wire<'a>);

    #[inline(always)]
    fn next(&mut self) -> Option<(u32, Wire<'a>)> {
        if self.bytes.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            (self.bytes, self.failed) = (&[], true);
        }
        field
    }
}

/// The numbers of a repeated field.
pub(crate) struct Numbers<'a> {
    packed: &'a [u8],
    single: Option<u64>,
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        self.single.take().or_else(|| varint(&mut self.packed))
    }
}

/// Takes a varint off the front. `None` if it does not end; the rest is then unusable.
#[inline]
pub(crate) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    match *bytes {
        &[byte, ref rest @ ..] if byte < 0x80 => {
            *bytes = rest;
            Some(byte.into())
        }
        _ => long_varint(bytes),
    }
}

fn long_varint(bytes: &mut &[u8]) -> Option<u64> {
    // Nearly all end within eight bytes: the one that ends it has no highest bit.
    if let Some(&eight) = bytes.first_chunk() {
        let word = u64::from_le_bytes(eight);
        let ends = !word & HIGHEST_BITS;
        if ends != 0 {
            let bits = ends.trailing_zeros();
            *bytes = &bytes[bits as usize / 8 + 1..];
            return Some(joined_sevens(word & (u64::MAX >> (63 - bits))));
        }
    }
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    *bytes = &[];
    None
}

/// The highest bit of each byte.
const HIGHEST_BITS: u64 = u64::from_le_bytes([0x80; 8]);

/// The lower seven bits of each byte, joined.
const fn joined_sevens(word: u64) -> u64 {
    let word = word & !HIGHEST_BITS;
    let word = word & 0x007f_007f_007f_007f | (word & 0x7f00_7f00_7f00_7f00) >> 1;
    let word = word & 0x0000_3fff_0000_3fff | (word & 0x3fff_0000_3fff_0000) >> 2;
    word & 0x0fff_ffff | (word & 0x0fff_ffff_0000_0000) >> 4
}

fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut encoder = Encoder::default();
        encoder.uint(1, 300);
        encoder.int(2, -1);
        encoder.fixed64(3, 7);
        encoder.text(4, b"make\xff");
        encoder.message(5, |inner| {
            inner.uint(1, 1);
            inner.message(2, |deeper| deeper.text(1, &[b'x'; 200]));
        });
        let fields: Vec<_> = Decoder::new(encoder.bytes()).collect();
        assert_eq!(fields[0], (1, Wire::Varint(300)));
        assert_eq!(fields[1].1.uint() as i64, -1);
        assert_eq!(fields[2], (3, Wire::Fixed64(7)));
        assert_eq!(fields[3].1.bytes(), "make\u{fffd}".as_bytes());
        let inner: Vec<_> = Decoder::new(fields[4].1.bytes()).collect();
        assert_eq!(inner[0], (1, Wire::Varint(1)));
        assert_eq!(Decoder::new(inner[1].1.bytes()).next().unwrap().1.bytes(), [b'x'; 200]);
    }

    #[test]
    fn the_bytes_are_those_of_the_specification() {
        let mut encoder = Encoder::default();
        encoder.uint(1, 150);
        assert_eq!(encoder.bytes(), [0x08, 0x96, 0x01]);
        encoder.clear();
        encoder.text(2, b"testing");
        assert_eq!(encoder.bytes(), b"\x12\x07testing");
    }

    #[test]
    fn a_message_cut_short_fails() {
        for bytes in [
            &b"\x08"[..],
            b"\x08\x96",
            b"\x12\x07test",
            b"\x09\0\0",
            b"\x0b",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            let mut decoder = Decoder::new(bytes);
            assert_eq!(decoder.next(), None, "{bytes:?}");
            assert!(decoder.failed(), "{bytes:?}");
        }
    }

    #[test]
    fn a_number_of_any_length_is_read() {
        for bits in 0..=64 {
            let number = u64::MAX.checked_shr(64 - bits).unwrap_or(0)
                ^ 0x1234_5678_9abc_def0u64.checked_shr(64 - bits).unwrap_or(0);
            for after in [0, 1, 20] {
                let mut encoder = Encoder::default();
                encoder.varint(number);
                let len = encoder.bytes().len();
                encoder.append(&vec![0x85; after]);
                let mut bytes = encoder.bytes();
                assert_eq!(varint(&mut bytes), Some(number));
                assert_eq!(bytes.len(), encoder.bytes().len() - len);
            }
        }
    }

    #[test]
    fn packed_numbers_are_read_one_by_one() {
        assert_eq!(Wire::Bytes(&[1, 0xac, 2, 3]).numbers().collect::<Vec<_>>(), [1, 300, 3]);
        assert_eq!(Wire::Varint(5).numbers().collect::<Vec<_>>(), [5]);
    }
}
