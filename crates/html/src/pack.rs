//! Chunks deflated for a page, within its size limit.
//!
//! Sections differ in value ([`Class`]): if the limit is exceeded, the least valuable sections are dropped first, and
//! of those the latest. Sentences report what was left out. Memory is bounded by the limit.

use std::io::Write;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use schedlab_timeline::{Chunk, ChunkHead, Class, Head};

/// Size limit of a page's data: 20 MB minus the space for scripts and tables.
pub const ROOM: usize = 19_000_000;

/// Bytes as deflated by zlib.
pub(crate) fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

/// Size of `bytes` bytes in base64.
fn in_base64(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// Takes chunks and keeps those that fit.
#[derive(Debug)]
pub struct Packer {
    room: usize,
    used: usize,
    /// Chunks outside this span are left out.
    span: (u64, u64),
    /// Deflated sections by chunk and class; `None` if one was left out.
    chunks: Vec<[Option<Vec<u8>>; Class::ALL.len()]>,
}

/// A timeline that fits into a page.
#[derive(Debug)]
pub struct Packed {
    pub(crate) head: Head,
    pub(crate) deflated_head: Vec<u8>,
    pub(crate) overview: Vec<u8>,
    pub(crate) chunks: Vec<[Option<Vec<u8>>; Class::ALL.len()]>,
    /// What was left out, each in a sentence.
    pub left_out: Vec<String>,
}

impl Packer {
    /// A packer for `room` bytes of a page.
    pub fn new(room: usize) -> Packer {
        Packer { room, used: 0, span: (0, u64::MAX), chunks: Vec::new() }
    }

    /// Keeps only chunks that overlap a span, ns since the start of the trace.
    pub fn only(self, from: u64, to: u64) -> Packer {
        Packer { span: (from, to), ..self }
    }

    /// Adds a chunk, and drops the least valuable sections if the limit is exceeded.
    pub fn add(&mut self, chunk: Chunk) {
        if chunk.to <= self.span.0 || chunk.from > self.span.1 {
            self.chunks.push(std::array::from_fn(|_| None));
            return;
        }
        let sections = chunk.sections.map(|section| {
            let deflated = if section.is_empty() { Vec::new() } else { deflate(&section) };
            self.used += in_base64(deflated.len());
            Some(deflated)
        });
        self.chunks.push(sections);
        self.shrink(0);
    }

    /// Drops sections until the used bytes and `more` additional ones fit.
    fn shrink(&mut self, more: usize) {
        for class in Class::ALL.into_iter().rev() {
            for sections in self.chunks.iter_mut().rev() {
                if self.used + more <= self.room {
                    return;
                }
                let section = &mut sections[class as usize];
                // An empty section takes no space.
                if section.as_ref().is_some_and(|section| !section.is_empty()) {
                    self.used -= in_base64(section.take().map_or(0, |section| section.len()));
                }
            }
        }
    }

    /// Ends the timeline.
    pub fn finish(mut self, head: Head) -> Packed {
        let deflated_head = deflate(&serde_json::to_vec(&head).expect("plain data"));
        let overview = deflate(&head.overview);
        self.shrink(in_base64(deflated_head.len()) + in_base64(overview.len()));
        let (mut left_out, mut without) = (Vec::new(), Vec::new());
        let overlaps = |chunk: &ChunkHead| chunk.to > self.span.0 && chunk.from <= self.span.1;
        if !head.chunks.iter().all(overlaps) {
            left_out.push("Only the span that was asked for has single events.".to_owned());
        }
        for class in Class::ALL {
            let asked = || head.chunks.iter().zip(&self.chunks).filter(|(chunk, _)| overlaps(chunk));
            if asked().all(|(_, sections)| sections[class as usize].is_some()) {
                continue;
            }
            let kept = asked()
                .take_while(|(_, sections)| sections[class as usize].is_some())
                .map(|(chunk, _)| chunk.to);
            match kept.last().map(|to| to as f64 / 1e9) {
                None => without.push(class.meaning()),
                Some(until) => left_out.push(format!(
                    "To stay below 20 MB this file has {} only up to {until:.6} s of {:.6} s.",
                    class.meaning(),
                    head.duration as f64 / 1e9
                )),
            }
        }
        if !without.is_empty() {
            left_out.push(format!("To stay below 20 MB this file leaves out {}.", without.join(", ")));
        }
        Packed { head, deflated_head, overview, chunks: self.chunks, left_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that cannot be deflated.
    fn noise(len: usize, mut seed: u64) -> Vec<u8> {
        (0..len)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (seed >> 56) as u8
            })
            .collect()
    }

    #[test]
    fn what_is_worth_least_goes_first_and_the_latest_of_it() {
        let mut packer = Packer::new(9_000);
        for nth in 0..3 {
            let mut chunk = Chunk { from: nth * 10, to: nth * 10 + 10, ..Chunk::default() };
            for class in [Class::Runs, Class::Placements, Class::Picks] {
                chunk.sections[class as usize] = noise(1000, nth * 7 + class as u64);
            }
            packer.add(chunk);
        }
        let kept = |class: Class| -> Vec<bool> {
            packer.chunks.iter().map(|sections| sections[class as usize].is_some()).collect()
        };
        assert_eq!(kept(Class::Runs), [true, true, true]);
        assert_eq!(kept(Class::Placements), [true, true, true]);
        assert_eq!(kept(Class::Picks), [false, false, false]);
        assert!(packer.used <= 9_000);
    }
}
