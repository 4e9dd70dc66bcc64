//! A task's short name, and a workload's label: text that is copied, never allocated.
//!
//! The kernel keeps 16 bytes for a comm, the last one NUL, and promises nothing about the other 15: spaces,
//! dashes, `=` and halves of UTF-8 sequences occur. So a comm is bytes here, and only its display converts it
//! to text.

use std::borrow::Cow;
use std::fmt;

/// Bytes of a comm with its closing NUL. Kernel: TASK_COMM_LEN.
pub const COMM_LEN: usize = 16;

/// The name of a task as the kernel keeps it: at most 15 bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Comm([u8; COMM_LEN]);

/// Masks of the first N bytes.
static FIRST: [u128; COMM_LEN] = {
    let mut first = [0; COMM_LEN];
    let mut len = 1;
    while len < COMM_LEN {
        first[len] = first[len - 1] << 8 | 0xff;
        len += 1;
    }
    first
};

/// A 1 in each byte.
const ONES: u128 = u128::MAX / 0xff;

/// Whether the bytes contain no control character such as a NUL or a tab: only a byte below a space causes a borrow.
#[inline(always)]
const fn is_plain(all: u128) -> bool {
    let (first, last) = (all as u64, (all >> 64) as u64);
    // The highest bit of each byte.
    (first.wrapping_sub(SPACES) & !first | last.wrapping_sub(SPACES) & !last) & (SPACES << 2) == 0
}

/// Eight spaces.
const SPACES: u64 = u64::from_le_bytes(*b"        ");

/// Number of bytes before the first NUL, checking all at once: a byte from which 1 borrows was 0, and the lowest such
/// byte is the first.
const fn length(bytes: [u8; COMM_LEN]) -> usize {
    let all = u128::from_le_bytes(bytes);
    ((all.wrapping_sub(ONES) & !all & (ONES << 7)).trailing_zeros() / 8) as usize
}

/// Zeroes everything from the first NUL on.
#[inline]
const fn up_to_nul(bytes: [u8; COMM_LEN]) -> [u8; COMM_LEN] {
    let len = length(bytes);
    let kept = if len < COMM_LEN { (1u128 << (8 * len)) - 1 } else { u128::MAX };
    (u128::from_le_bytes(bytes) & kept).to_le_bytes()
}

impl Comm {
    /// The name up to its first NUL, cut to 15 bytes as the kernel does.
    pub const fn new(name: &[u8]) -> Comm {
        let mut bytes = [0; COMM_LEN];
        let taken = if name.len() < COMM_LEN { name.len() } else { COMM_LEN - 1 };
        bytes.split_at_mut(taken).0.copy_from_slice(name.split_at(taken).0);
        Comm(up_to_nul(bytes))
    }

    /// The name as a record has it, up to its first NUL.
    #[inline]
    pub(crate) fn of_record(bytes: &[u8; COMM_LEN]) -> Comm {
        let mut bytes = *bytes;
        bytes[COMM_LEN - 1] = 0;
        Comm(up_to_nul(bytes))
    }

    /// [`Comm::new`], for many short names: two overlapping halves are copied instead of a length known only at run time.
    #[inline]
    pub(crate) fn of_text(name: &[u8]) -> Comm {
        if name.len() >= COMM_LEN {
            return Comm::new(name);
        }
        let all = if let (Some(&first), Some(&last)) = (name.first_chunk(), name.last_chunk()) {
            u128::from(u64::from_le_bytes(first))
                | u128::from(u64::from_le_bytes(last)) << (8 * (name.len() - 8))
        } else if let (Some(&first), Some(&last)) = (name.first_chunk(), name.last_chunk()) {
            u128::from(u32::from_le_bytes(first))
                | u128::from(u32::from_le_bytes(last)) << (8 * (name.len() - 4))
        } else {
            name.iter().rev().fold(0, |all, &byte| all << 8 | u128::from(byte))
        };
        Comm(up_to_nul(all.to_le_bytes()))
    }

    /// The name at the start of a longer text: [`Comm::new`] of `len` bytes, copied at once if there are enough bytes.
    #[inline(always)]
    pub fn in_front(text: &[u8], len: usize) -> Comm {
        match text.first_chunk::<COMM_LEN>().map(|&bytes| u128::from_le_bytes(bytes)) {
            Some(all) if is_plain(all) => Comm((all & FIRST[len.min(COMM_LEN - 1)]).to_le_bytes()),
            _ => Comm::apart(&text[..len]),
        }
    }

    /// The name at the end of a 16-byte column, with spaces before it.
    #[inline(always)]
    pub fn aligned(column: &[u8; COMM_LEN]) -> Comm {
        let all = u128::from_le_bytes(*column);
        let (first, last) = (all as u64, (all >> 64) as u64);
        // Spaces before the name in the first half, or in the last one.
        let spaces = |half: u64| (half ^ SPACES).trailing_zeros() & !7;
        let bytes = match (spaces(first), spaces(last)) {
            _ if !is_plain(all) => None,
            (0, _) | (64, 64) => None,
            (64, bits) => Some(u128::from(last >> bits)),
            (bits, _) => {
                Some(u128::from(first >> bits | last << (64 - bits)) | u128::from(last >> bits) << 64)
            }
        };
        match bytes {
            Some(bytes) => Comm(bytes.to_le_bytes()),
            None => Comm::trimmed(column),
        }
    }

    /// [`Comm::new`] where too few bytes follow to copy at once.
    #[cold]
    fn apart(name: &[u8]) -> Comm {
        Comm::new(name)
    }

    /// [`Comm::aligned`] where too few bytes follow to copy at once.
    #[cold]
    #[inline(never)]
    fn trimmed(column: &[u8]) -> Comm {
        Comm::new(column.trim_ascii_start())
    }

    /// The idle task of a CPU: `swapper/3`.
    pub fn swapper(cpu: schedlab_topology::CpuId) -> Comm {
        let mut bytes = *b"swapper/\0\0\0\0\0\0\0\0";
        let mut digits = [0; 5];
        let (mut rest, mut first) = (cpu.0, digits.len());
        loop {
            first -= 1;
            digits[first] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        bytes[8..8 + digits.len() - first].copy_from_slice(&digits[first..]);
        Comm(bytes)
    }

    /// The name without its NULs.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0[..length(self.0)]
    }

    /// The name as text, with a replacement mark for each invalid byte.
    pub fn to_str_lossy(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }

    /// Whether the name is unknown.
    pub fn is_empty(&self) -> bool {
        self.0[0] == 0
    }
}

impl From<&str> for Comm {
    fn from(name: &str) -> Comm {
        Comm::new(name.as_bytes())
    }
}

impl PartialEq<&str> for Comm {
    fn eq(&self, other: &&str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Display for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_str_lossy())
    }
}

impl fmt::Debug for Comm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_str_lossy())
    }
}

/// What a workload's mark counts: `ops`, `latency_ns`; at most 16 bytes.
///
/// Invariant: UTF-8 without control characters and without `
/// `, which separates the fields of a marker line.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label([u8; Label::MAX]);

impl Label {
    /// The longest label in bytes.
    pub const MAX: usize = 16;

    /// The label, cut to 16 bytes at a character, with `_` for each character that it may not contain.
    pub fn new(text: &str) -> Label {
        let mut bytes = [0; Label::MAX];
        let mut len = 0;
        for c in text.chars() {
            let c = if c.is_control() || c == '|' { '_' } else { c };
            if len + c.len_utf8() > Label::MAX {
                break;
            }
            c.encode_utf8(&mut bytes[len..]);
            len += c.len_utf8();
        }
        Label(bytes)
    }

    /// The label as text.
    pub fn as_str(&self) -> &str {
        let len = self.0.iter().position(|&b| b == 0).unwrap_or(Label::MAX);
        std::str::from_utf8(&self.0[..len]).expect("a label is made of characters")
    }
}

impl From<&str> for Label {
    fn from(text: &str) -> Label {
        Label::new(text)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comm_holds_fifteen_bytes() {
        assert_eq!(Comm::from("a-name-of-twenty-one!").to_string(), "a-name-of-twent");
        assert_eq!(Comm::new(b"make\0leftover"), "make");
        for cpu in [0, 7, 10, 12, 999, 1000, 4095, u16::MAX] {
            let expected = format!("swapper/{cpu}");
            assert_eq!(Comm::swapper(schedlab_topology::CpuId(cpu)), expected.as_str());
        }
    }

    #[test]
    fn a_comm_is_taken_at_once_where_there_are_bytes_enough() {
        let text = b"a-name-of-twenty-one! and more";
        for len in 0..text.len() {
            assert_eq!(Comm::in_front(text, len), Comm::new(&text[..len]), "{len}");
            assert_eq!(Comm::in_front(&text[..len], len), Comm::new(&text[..len]), "{len}");
            assert_eq!(Comm::of_text(&text[..len]), Comm::new(&text[..len]), "{len}");
        }
        assert_eq!(Comm::in_front(b"make\0leftover and more", 12), "make");
        assert_eq!(Comm::of_text(b"make\0leftover"), "make");
        for column in [
            b"            make",
            b"a-name-of-twenty",
            b" -name-of-twenty",
            b"                ",
            b"   \t        make",
            b"     ma\0leftover",
            b"      \0leftovers",
        ] {
            assert_eq!(Comm::aligned(column), Comm::new(column.trim_ascii_start()), "{column:?}");
        }
    }

    #[test]
    fn a_comm_cut_inside_a_character_is_still_shown() {
        let comm = Comm::from("fourteen bytesé");
        assert_eq!(comm.as_bytes().len(), 15);
        assert_eq!(comm.to_string(), "fourteen bytes\u{fffd}");
    }

    #[test]
    fn a_label_is_cut_at_a_character_and_never_parts_a_marker_line() {
        assert_eq!(Label::new("latency|p99\n").as_str(), "latency_p99_");
        assert_eq!(Label::new("fifteen bytes..é").as_str(), "fifteen bytes..");
        assert_eq!(Label::new("sixteen bytes...!").as_str(), "sixteen bytes...");
    }
}
