//! Where a CPU's pages are in a trace.dat.

use std::io::{Read, Seek, SeekFrom};

use crate::binary::Endian;
use crate::read::Error;

/// A CPU's pages, one after the other.
#[derive(Debug)]
pub(super) enum Source {
    /// Uncompressed.
    Plain { at: u64, left: u64, page: Vec<u8> },
    /// In chunks, each compressed separately.
    Chunks { at: u64, left: u64, end: u64, packing: Packing, chunk: Vec<u8>, used: usize },
}

/// How to read a file's compressed parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packing {
    pub endian: Endian,
    pub zstd: bool,
}

/// No recorder compresses more at once.
const CHUNK_MAX: u64 = 1 << 28;

impl Source {
    /// The pages between two places in the file.
    pub fn plain(at: u64, size: u64) -> Source {
        Source::Plain { at, left: size, page: Vec::new() }
    }

    /// The chunks between two positions in the file; their count comes first.
    pub fn chunks<R: Read + Seek>(
        input: &mut R,
        at: u64,
        size: u64,
        packing: Packing,
    ) -> Result<Source, Error> {
        let left = if size >= 4 { packing.word(input, at)? } else { 0 };
        let (at, end) = (at.saturating_add(4), at.saturating_add(size));
        Ok(Source::Chunks { at, left, end, packing, chunk: Vec::new(), used: 0 })
    }

    /// Whether it contains no page.
    pub fn is_empty(&self) -> bool {
        matches!(self, Source::Plain { left: 0, .. } | Source::Chunks { left: 0, .. })
    }

    /// The next page, and its position.
    pub fn page<R: Read + Seek>(
        &mut self,
        input: &mut R,
        page_size: usize,
    ) -> Result<Option<(u64, &[u8])>, Error> {
        match self {
            Source::Plain { at, left, page } => {
                if *left == 0 {
                    return Ok(None);
                }
                let (start, size) = (*at, (*left).min(page_size as u64));
                page.clear();
                input.seek(SeekFrom::Start(start))?;
                let read = input.take(size).read_to_end(page)? as u64;
                *at += read;
                // A file that was cut short ends here, whatever size it states.
                *left = if read < size { 0 } else { *left - size };
                Ok((read > 0).then_some((start, page.as_slice())))
            }
            Source::Chunks { at, left, end, packing, chunk, used } => {
                while *used >= chunk.len() {
                    let content = at.saturating_add(8);
                    if *left == 0 || content > *end {
                        return Ok(None);
                    }
                    let (packed, size) = (packing.word(input, *at)?, packing.word(input, *at + 4)?);
                    input.seek(SeekFrom::Start(content))?;
                    let mut bytes = Vec::new();
                    input.take(packed).read_to_end(&mut bytes)?;
                    if bytes.is_empty() {
                        // A file that was cut short ends here, whatever size it states.
                        *left = 0;
                        return Ok(None);
                    }
                    *left -= 1;
                    *at = content.saturating_add(packed);
                    *used = 0;
                    *chunk = match packing.unpack(&bytes, size) {
                        Ok(chunk) => chunk,
                        // Data that cannot be decompressed becomes one invalid page.
                        Err(_) => vec![0xff; 16],
                    };
                }
                let start = *used;
                *used = (start + page_size).min(chunk.len());
                Ok(Some((*at, &chunk[start..*used])))
            }
        }
    }
}

impl Packing {
    /// Decompresses one chunk or section.
    pub fn unpack(self, bytes: &[u8], size: u64) -> std::io::Result<Vec<u8>> {
        let mut unpacked = Vec::new();
        let limit = size.min(CHUNK_MAX);
        if self.zstd {
            zstd::Decoder::new(bytes)?.take(limit).read_to_end(&mut unpacked)?;
        } else {
            flate2::read::ZlibDecoder::new(bytes).take(limit).read_to_end(&mut unpacked)?;
        }
        Ok(unpacked)
    }

    /// A number of four bytes in the file; 0 after its end.
    fn word<R: Read + Seek>(self, input: &mut R, at: u64) -> Result<u64, Error> {
        let mut bytes = Vec::new();
        input.seek(SeekFrom::Start(at))?;
        input.take(4).read_to_end(&mut bytes)?;
        Ok(self.endian.uint_at(&bytes, 0, 4).unwrap_or(0))
    }
}
