//! A file in pieces, of which the latest stay in memory.
//!
//! The bundles of different CPUs take turns in a file, and are read in the order of their times. They are a few pages long and
//! lie near each other, so most reads find their piece in memory, and the content is decoded where it lies.

use std::io::{self, Read, Seek, SeekFrom};

/// Size of a piece, bytes; a power of two.
const PIECE: u64 = 1 << 18;

/// At most this many pieces stay in memory.
const KEPT: usize = 32;

/// A file that is read in pieces.
pub(super) struct Pieces<R> {
    input: R,
    /// Bytes of the file.
    len: u64,
    kept: Vec<Piece>,
    /// The place in `kept` of the piece that was read last.
    last: usize,
    /// How many times the piece has changed, as a clock.
    turns: u64,
    /// Content that crosses the end of a piece.
    joined: Vec<u8>,
}

struct Piece {
    number: u64,
    bytes: Vec<u8>,
    /// The turn in which it was used last.
    used: u64,
}

impl<R: Read + Seek> Pieces<R> {
    /// # Errors
    /// The file has no end.
    pub fn new(mut input: R) -> io::Result<Pieces<R>> {
        let len = input.seek(SeekFrom::End(0))?;
        Ok(Pieces { input, len, kept: Vec::new(), last: 0, turns: 0, joined: Vec::new() })
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// The bytes at an offset; fewer if the file ends before.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn bytes(&mut self, offset: u64, len: u64) -> io::Result<&[u8]> {
        let end = offset.saturating_add(len).min(self.len);
        let (first, start) = (offset / PIECE, (offset % PIECE) as usize);
        if end <= (first + 1) * PIECE {
            let piece = self.piece(first)?;
            let end = piece.len().min(start + end.saturating_sub(offset) as usize);
            return Ok(piece.get(start..end).unwrap_or_default());
        }
        let mut joined = std::mem::take(&mut self.joined);
        joined.clear();
        let mut at = offset;
        while at < end {
            let piece = self.piece(at / PIECE)?;
            let start = (at % PIECE) as usize;
            let wanted = (end - at).min(PIECE - at % PIECE) as usize;
            joined.extend_from_slice(piece.get(start..piece.len().min(start + wanted)).unwrap_or_default());
            at += wanted as u64;
        }
        self.joined = joined;
        Ok(&self.joined)
    }

    fn piece(&mut self, number: u64) -> io::Result<&[u8]> {
        if self.kept.get(self.last).is_none_or(|piece| piece.number != number) {
            self.turns += 1;
            self.last = match self.kept.iter().position(|piece| piece.number == number) {
                Some(at) => at,
                None => self.load(number)?,
            };
            self.kept[self.last].used = self.turns;
        }
        Ok(&self.kept[self.last].bytes)
    }

    /// Reads a piece into the place of the one that was not used for longest.
    fn load(&mut self, number: u64) -> io::Result<usize> {
        if self.kept.len() < KEPT {
            self.kept.push(Piece { number, bytes: Vec::new(), used: 0 });
        }
        let at = (0..self.kept.len()).min_by_key(|&at| self.kept[at].used).unwrap_or(0);
        let piece = &mut self.kept[at];
        piece.number = number;
        piece.bytes.clear();
        piece.bytes.reserve(PIECE as usize);
        self.input.seek(SeekFrom::Start(number * PIECE))?;
        self.input.by_ref().take(PIECE).read_to_end(&mut piece.bytes)?;
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn any_part_is_read_from_any_piece() {
        let file: Vec<u8> = (0..PIECE * 40 + 7).map(|at| ((at * 31) >> 7) as u8).collect();
        let mut pieces = Pieces::new(Cursor::new(&file)).unwrap();
        assert_eq!(pieces.len(), file.len() as u64);
        let mut seed = 1u64;
        for _ in 0..500 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (seed >> 20) % pieces.len();
            let len = [0, 1, 900, PIECE, 3 * PIECE + 5][(seed >> 8) as usize % 5];
            let end = (at + len).min(pieces.len());
            assert!(pieces.bytes(at, len).unwrap() == &file[at as usize..end as usize], "{at} {len}");
        }
        assert_eq!(pieces.kept.len(), KEPT);
        assert_eq!(pieces.bytes(PIECE * 50, 3).unwrap(), b"");
    }
}
