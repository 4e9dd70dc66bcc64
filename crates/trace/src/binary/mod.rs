//! Binary records of the kernel's trace buffers, as trace.dat and perf.data contain them.
//!
//! A record consists of the bytes that a tracepoint wrote. The *format* of the event, a text in the same file,
//! describes where each field is. No offsets or ids are assumed.

pub(crate) mod format;
pub(crate) mod page;
mod quick;
pub(crate) mod record;
pub(crate) mod symbols;
pub(crate) mod tracepoints;

/// The order of bytes in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

impl Endian {
    /// An unsigned number of 1 to 8 bytes. The usual sizes are read at once.
    #[inline]
    pub fn uint(self, bytes: &[u8]) -> u64 {
        let join = |n: u64, &byte: &u8| n << 8 | u64::from(byte);
        match (self, bytes) {
            (Endian::Little, &[a, b]) => u16::from_le_bytes([a, b]).into(),
            (Endian::Little, &[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]).into(),
            (Endian::Little, &[a, b, c, d, e, f, g, h]) => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
            (Endian::Little, _) => bytes.iter().rev().fold(0, join),
            (Endian::Big, _) => bytes.iter().fold(0, join),
        }
    }

    /// A signed number of 1 to 8 bytes.
    pub fn int(self, bytes: &[u8]) -> i64 {
        let unused = 64 - 8 * bytes.len().clamp(1, 8) as u32;
        ((self.uint(bytes) << unused) as i64) >> unused
    }

    /// The number at an offset, if it is there.
    #[inline]
    pub fn uint_at(self, bytes: &[u8], offset: usize, size: usize) -> Option<u64> {
        bytes.get(offset..offset.checked_add(size)?).map(|bytes| self.uint(bytes))
    }
}

/// Text up to its NUL, or all of it.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    memchr::memchr(0, bytes).map_or(bytes, |end| &bytes[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_size_are_read_in_both_orders() {
        assert_eq!(Endian::Little.uint(&[1, 2, 3]), 0x030201);
        assert_eq!(Endian::Big.uint(&[1, 2, 3]), 0x010203);
        assert_eq!(Endian::Little.int(&[0xfe, 0xff]), -2);
        assert_eq!(Endian::Big.int(&[0xff, 0xff, 0xff, 0xfe]), -2);
        assert_eq!(Endian::Little.int(&[0xff; 8]), -1);
        assert_eq!(Endian::Little.uint(&[1, 2, 3, 4]), 0x0403_0201);
        assert_eq!(Endian::Little.uint(&[1, 2, 3, 4, 5, 6, 7, 8]), 0x0807_0605_0403_0201);
        assert_eq!(Endian::Little.uint_at(&[1, 2], 1, 2), None);
    }
}
