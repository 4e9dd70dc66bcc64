//! The records of a perf.data, one after the other, decompressed.

use std::io::{BufRead, BufReader, Read};
use std::ops::Range;

use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use crate::binary::Endian;
use crate::read::Error;

/// Types of records that this module handles itself.
const AUXTRACE: u32 = 71;
const COMPRESSED: u32 = 81;
const COMPRESSED2: u32 = 83;

/// No recorder attaches more to a record.
const ATTACHED_MAX: u64 = 1 << 30;

/// No recorder packs more into one record.
const UNPACKED_MAX: usize = 1 << 26;

/// Reads records.
pub(super) struct Stream<R> {
    input: BufReader<R>,
    endian: Endian,
    at: u64,
    end: u64,
    /// Size of the last record if it lies at the start of the input's buffer, head included; otherwise 0.
    in_buffer: usize,
    /// The content of the last record if it is not there.
    body: Vec<u8>,
    /// Decompressed records, including the start of one that is not complete yet.
    unpacked: Vec<u8>,
    used: usize,
    decoder: Option<Decoder<'static>>,
    broken: Option<(u64, &'static str)>,
}

impl<R: Read> Stream<R> {
    /// The records in a part of the file; the input must be at its start.
    pub fn new(input: R, part: Range<u64>, endian: Endian) -> Stream<R> {
        Stream {
            input: BufReader::with_capacity(1 << 16, input),
            endian,
            at: part.start,
            end: part.end,
            in_buffer: 0,
            body: Vec::new(),
            unpacked: Vec::new(),
            used: 0,
            decoder: None,
            broken: None,
        }
    }

    /// Takes the next record: its position and its type.
    pub fn next_record(&mut self) -> Result<Option<(u64, u32)>, Error> {
        self.leave();
        loop {
            if let Some(kind) = self.next_unpacked() {
                return Ok(Some((self.at, kind)));
            }
            let start = self.at;
            if self.broken.is_some() || self.end.saturating_sub(start) < 8 {
                return Ok(None);
            }
            if let Some(kind) = self.take_at_hand() {
                return Ok(Some((start, kind)));
            }
            let mut head = [0; 8];
            let read = self.read_up_to(&mut head)?;
            if read == 0 {
                return Ok(None);
            }
            let head = &head[..read];
            let (Some(kind), Some(size)) = (self.endian.uint_at(head, 0, 4), self.endian.uint_at(head, 6, 2))
            else {
                self.broken = Some((start, "the file ends inside a record; it was cut short"));
                return Ok(None);
            };
            if size < 8 {
                self.broken = Some((start, "a record is shorter than its head; the rest makes no sense"));
                return Ok(None);
            }
            let mut body = std::mem::take(&mut self.body);
            // A record is shorter than 64 KB, whatever size it states.
            body.resize(size as usize - 8, 0);
            let read = self.read_up_to(&mut body)?;
            body.truncate(read);
            self.body = body;
            if self.body.len() as u64 != size - 8 {
                self.broken = Some((start, "the file ends inside a record; it was cut short"));
                return Ok(None);
            }
            match kind as u32 {
                COMPRESSED => self.unpack(start, 0..usize::MAX),
                COMPRESSED2 => {
                    let size = self.endian.uint_at(&self.body, 0, 8).unwrap_or(0);
                    let end = usize::try_from(size.saturating_add(8)).unwrap_or(usize::MAX);
                    self.unpack(start, 8..end);
                }
                AUXTRACE => self.skip()?,
                kind => return Ok(Some((start, kind))),
            }
        }
    }

    /// Takes the next record if all of it is in the input's buffer and it is not handled here.
    #[inline]
    fn take_at_hand(&mut self) -> Option<u32> {
        // An error here occurs again where it is reported.
        let buffer = self.input.fill_buf().ok()?;
        let &[a, b, c, d, _, _, e, f] = buffer.first_chunk()?;
        let (kind, size) = match self.endian {
            Endian::Little => (u32::from_le_bytes([a, b, c, d]), u16::from_le_bytes([e, f])),
            Endian::Big => (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([e, f])),
        };
        let size = usize::from(size);
        if !(8..=buffer.len()).contains(&size) || matches!(kind, AUXTRACE | COMPRESSED | COMPRESSED2) {
            return None;
        }
        self.in_buffer = size;
        self.at += size as u64;
        Some(kind)
    }

    /// The last record has been used.
    #[inline]
    fn leave(&mut self) {
        self.input.consume(std::mem::take(&mut self.in_buffer));
    }

    /// The content of the last record.
    #[inline]
    pub fn body(&self) -> &[u8] {
        match self.in_buffer {
            0 => &self.body,
            size => &self.input.buffer()[8..size],
        }
    }

    /// Why the records ended before the file's end, if they did.
    pub fn broken(&mut self) -> Option<(u64, String)> {
        self.broken.take().map(|(at, why)| (at, why.to_owned()))
    }

    /// Reads the data attached to a record of formats; the record contains its size.
    pub fn attached(&mut self) -> Result<Vec<u8>, Error> {
        let size = self.endian.uint_at(self.body(), 0, 4).unwrap_or(0).min(ATTACHED_MAX);
        self.leave();
        let mut data = Vec::new();
        self.read(size.next_multiple_of(8), &mut data)?;
        data.truncate(size as usize);
        Ok(data)
    }

    /// Skips the data attached to a record of another tracer; the record contains its size.
    fn skip(&mut self) -> Result<(), Error> {
        let size = self.endian.uint_at(&self.body, 0, 8).unwrap_or(0);
        let skipped = std::io::copy(&mut (&mut self.input).take(size), &mut std::io::sink())?;
        self.at += skipped;
        Ok(())
    }

    /// Fills as much of a buffer as the file provides.
    fn read_up_to(&mut self, place: &mut [u8]) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < place.len() {
            match self.input.read(&mut place[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.at += filled as u64;
        Ok(filled)
    }

    fn read(&mut self, size: u64, into: &mut Vec<u8>) -> Result<(), Error> {
        self.at += (&mut self.input).take(size).read_to_end(into)? as u64;
        Ok(())
    }

    /// Takes a record out of the decompressed data.
    fn next_unpacked(&mut self) -> Option<u32> {
        let rest = &self.unpacked[self.used..];
        let kind = self.endian.uint_at(rest, 0, 4)?;
        let size = self.endian.uint_at(rest, 6, 2)? as usize;
        if size < 8 {
            if !rest.is_empty() {
                self.broken = Some((self.at, "compressed records make no sense"));
                self.used = self.unpacked.len();
            }
            return None;
        }
        let body = rest.get(8..size)?;
        self.body.clear();
        self.body.extend_from_slice(body);
        self.used += size;
        Some(kind as u32)
    }

    /// Decompresses a part of the content of a record. All such parts are one stream, and a record inside may begin in
    /// one part and end in the next.
    fn unpack(&mut self, at: u64, part: Range<usize>) {
        self.unpacked.drain(..self.used);
        self.used = 0;
        let end = part.end.min(self.body.len());
        let mut input = InBuffer::around(self.body.get(part.start..end).unwrap_or_default());
        if self.decoder.is_none() {
            self.decoder = Decoder::new().ok();
        }
        let Some(decoder) = &mut self.decoder else { return };
        let mut chunk = [0; 1 << 14];
        loop {
            let before = input.pos();
            let mut output = OutBuffer::around(&mut chunk[..]);
            if decoder.run(&mut input, &mut output).is_err() || self.unpacked.len() > UNPACKED_MAX {
                self.broken = Some((at, "compressed records are damaged"));
                return;
            }
            let filled = output.as_slice();
            self.unpacked.extend_from_slice(filled);
            if filled.is_empty() && input.pos() == before {
                return;
            }
        }
    }
}
