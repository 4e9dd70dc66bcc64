//! The parts of a trace.dat before its events.
//!
//! Version 6 has them in a fixed order. In version 7 each is a section of its own, perhaps compressed, and a chain of
//! options contains their positions.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufReader, Read, Seek, SeekFrom};

use schedlab_topology::CpuId;

use super::Clock;
use super::source::{Packing, Source};
use crate::binary::{Endian, until_nul};
use crate::read::Error;
use crate::read::meta::{Meta, Parser, Part, format_error};

/// What a trace.dat contains about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// The version of the format.
    pub version: u32,
    /// How many CPUs the machine has.
    pub nr_cpus: usize,
    /// The clock of the times: `mono`.
    pub clock: String,
    /// The kernel and machine, as `uname` prints them.
    pub uname: String,
}

/// Everything needed to read the events.
pub(super) struct Header {
    pub info: Info,
    pub meta: Meta,
    pub clock: Clock,
    pub sources: BTreeMap<CpuId, Source>,
}

/// Ids of sections and of the options that lead to them.
mod id {
    pub const DONE: u16 = 0;
    pub const BUFFER: u16 = 3;
    pub const TRACECLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const CPUCOUNT: u16 = 8;
    pub const TSC2NSEC: u16 = 14;
    /// The parts follow in their order.
    pub const FIRST_PART: u16 = 16;
}

impl Header {
    /// Reads a file's header.
    pub fn read<R: Read + Seek>(input: &mut R) -> Result<Header, Error> {
        input.seek(SeekFrom::Start(0))?;
        let mut parser = Parser { input: BufReader::new(&mut *input), endian: Endian::Little };
        let mut magic = [0; 10];
        if parser.input.read_exact(&mut magic).is_err() || magic != *b"\x17\x08\x44tracing" {
            return Err(format_error(0, "this is not a trace.dat file: it does not begin with its mark"));
        }
        let version = parser.text()?.parse().unwrap_or(0);
        if !(6..=7).contains(&version) {
            let why =
                format!("version {version} of trace.dat is not known; convert the file to version 6 or 7");
            return Err(format_error(10, &why));
        }
        parser.endian = if parser.uint(1)? == 0 { Endian::Little } else { Endian::Big };
        let _long_size = parser.uint(1)?;
        let page_size = parser.uint(4)? as usize;
        if !(64..=1 << 20).contains(&page_size) {
            return Err(format_error(14, &format!("a page of {page_size} bytes cannot be")));
        }
        let endian = parser.endian;
        let header = Header {
            info: Info { version, ..Info::default() },
            meta: Meta::new(endian, page_size),
            clock: Clock::default(),
            sources: BTreeMap::new(),
        };
        let (mut header, buffers) =
            if version == 6 { header.version_6(parser)? } else { header.version_7(parser)? };
        header.choose(buffers);
        Ok(header)
    }

    /// Reads the parts one after the other.
    fn version_6<R: Read + Seek>(
        mut self,
        mut parser: Parser<BufReader<&mut R>>,
    ) -> Result<(Header, Vec<Buffer>), Error> {
        for part in Part::ALL {
            self.meta.read(part, &mut parser)?;
        }
        let nr_cpus = parser.uint(4)? as usize;
        self.info.nr_cpus = nr_cpus;
        let mut mark = parser.bytes(10)?;
        let mut others = Vec::new();
        if mark.starts_with(b"options") {
            loop {
                let option = parser.uint(2)? as u16;
                if option == id::DONE {
                    break;
                }
                let size = parser.uint(4)?;
                let data = parser.bytes(size)?;
                if option == id::BUFFER {
                    let name = until_nul(data.get(8..).unwrap_or_default());
                    let place = parser.endian.uint_at(&data, 0, 8).unwrap_or(0);
                    others.push((String::from_utf8_lossy(name).into_owned(), place));
                } else {
                    self.option(option, &data);
                }
            }
            mark = parser.bytes(10)?;
        }
        if !mark.starts_with(b"flyrecord") {
            let kind = String::from_utf8_lossy(until_nul(&mark)).trim().to_owned();
            let why =
                format!("the file holds {kind:?} data, not events; save its report as text and read that");
            return Err(format_error(0, &why));
        }
        let page_size = self.meta.layout.page_size;
        let clock = self.info.clock.clone();
        let read = |name: String, parser: &mut Parser<_>| -> Result<Buffer, Error> {
            let mut sources = BTreeMap::new();
            for cpu in 0..nr_cpus {
                let (offset, size) = (parser.uint(8)?, parser.uint(8)?);
                sources.insert(cpu_id(cpu as u64)?, Source::plain(offset, size));
            }
            Ok(Buffer { name, clock: clock.clone(), page_size, sources })
        };
        let mut buffers = vec![read(String::new(), &mut parser)?];
        for (name, place) in others {
            // After its own mark, like the first.
            parser.input.seek(SeekFrom::Start(place.saturating_add(10)))?;
            buffers.push(read(name, &mut parser)?);
        }
        Ok((self, buffers))
    }

    /// Follows the chain of options.
    fn version_7<R: Read + Seek>(
        mut self,
        mut parser: Parser<BufReader<&mut R>>,
    ) -> Result<(Header, Vec<Buffer>), Error> {
        let compression = parser.text()?;
        let _compression_version = parser.text()?;
        let zstd = match compression.as_str() {
            "zstd" | "none" => true,
            "zlib" => false,
            other => {
                let why =
                    format!("compression {other:?} is not known; use `trace-cmd convert --compression none`");
                return Err(format_error(16, &why));
            }
        };
        let mut next = parser.uint(8)?;
        let packing = Packing { endian: parser.endian, zstd };
        let mut file = Sections { input: parser.input.into_inner(), packing };
        let mut places: Vec<(Part, u64)> = Vec::new();
        let mut buffers = Vec::new();
        let mut seen = HashSet::new();
        while next != 0 {
            if !seen.insert(next) {
                return Err(format_error(next, "the chain of options runs in a circle"));
            }
            let options = file.section(next)?;
            let mut parser = Parser { input: options.as_slice(), endian: file.packing.endian };
            next = 0;
            while !parser.input.is_empty() {
                let (option, size) = (parser.uint(2)? as u16, parser.uint(4)?);
                let data = parser.bytes(size)?;
                match option {
                    id::DONE => {
                        next = file.packing.endian.uint_at(&data, 0, 8).unwrap_or(0);
                        break;
                    }
                    id::BUFFER => buffers.push(data),
                    option => match Part::ALL.get(usize::from(option.wrapping_sub(id::FIRST_PART))) {
                        Some(part) => {
                            places.push((*part, file.packing.endian.uint_at(&data, 0, 8).unwrap_or(0)));
                        }
                        None => self.option(option, &data),
                    },
                }
            }
        }
        for (part, place) in places {
            let bytes = file.section(place)?;
            self.meta.read(part, &mut Parser { input: bytes.as_slice(), endian: file.packing.endian })?;
        }
        if buffers.is_empty() {
            self.meta.gaps.push((0, "the file holds no buffer of events".to_owned()));
        }
        let buffers = buffers.iter().map(|buffer| file.buffer(buffer)).collect::<Result<_, _>>()?;
        Ok((self, buffers))
    }

    fn option(&mut self, option: u16, data: &[u8]) {
        let text = || String::from_utf8_lossy(until_nul(data)).trim().to_owned();
        let number = |at, size| self.meta.layout.endian.uint_at(data, at, size).unwrap_or(0);
        match option {
            id::TRACECLOCK => {
                let text = text();
                let chosen = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
                self.info.clock = chosen.map_or(text.clone(), |(clock, _)| clock.to_owned());
            }
            id::UNAME => self.info.uname = text(),
            id::CPUCOUNT => self.info.nr_cpus = number(0, 4) as usize,
            id::TSC2NSEC => {
                let (multiply, shift) = (number(0, 4) as u32, number(4, 4) as u32);
                self.clock.cycles = (multiply > 0).then_some((multiply, shift));
            }
            _ => {}
        }
    }

    /// Takes the first buffer that contains events, and reports the others.
    fn choose(&mut self, buffers: Vec<Buffer>) {
        let mut buffers: Vec<Buffer> = buffers.into_iter().filter(Buffer::has_events).collect();
        if buffers.is_empty() {
            return;
        }
        let chosen = buffers.remove(0);
        for Buffer { name, .. } in &buffers {
            let why = match chosen.name.as_str() {
                "" => format!("the buffer {name:?} beside the first one is not read"),
                read => format!("the buffer {name:?} beside {read:?} is not read"),
            };
            self.meta.gaps.push((0, why + "; record it alone"));
        }
        if !chosen.clock.is_empty() {
            self.info.clock = chosen.clock;
        }
        self.meta.layout.page_size = chosen.page_size;
        self.sources = chosen.sources;
    }
}

/// A buffer of the kernel: the first has no name, others are instances of tracefs (`trace-cmd record -B NAME`).
struct Buffer {
    name: String,
    clock: String,
    page_size: usize,
    sources: BTreeMap<CpuId, Source>,
}

impl Buffer {
    fn has_events(&self) -> bool {
        self.sources.values().any(|source| !source.is_empty())
    }
}

fn cpu_id(cpu: u64) -> Result<CpuId, Error> {
    let cpu = cpu.try_into().map_err(|_| format_error(0, &format!("CPU {cpu} is over 65535")))?;
    Ok(CpuId(cpu))
}

/// The sections of a version 7 file.
struct Sections<'a, R> {
    input: &'a mut R,
    packing: Packing,
}

/// The head of a section.
struct SectionHead {
    compressed: bool,
    size: u64,
}

impl<R: Read + Seek> Sections<'_, R> {
    fn bytes(&mut self, at: u64, size: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.input.seek(SeekFrom::Start(at))?;
        self.input.take(size).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn head(&mut self, at: u64) -> Result<SectionHead, Error> {
        let head = self.bytes(at, 16)?;
        match (self.packing.endian.uint_at(&head, 2, 2), self.packing.endian.uint_at(&head, 8, 8)) {
            (Some(flags), Some(size)) => Ok(SectionHead { compressed: flags & 1 != 0, size }),
            _ => Err(format_error(at, "the file ends where a section should begin; it was cut short")),
        }
    }

    /// Where a buffer's pages are.
    fn buffer(&mut self, option: &[u8]) -> Result<Buffer, Error> {
        let mut parser = Parser { input: option, endian: self.packing.endian };
        let place = parser.uint(8)?;
        let (name, clock) = (parser.text()?, parser.text()?);
        let page_size = parser.uint(4)? as usize;
        if !(64..=1 << 20).contains(&page_size) {
            return Err(format_error(place, &format!("a page of {page_size} bytes cannot be")));
        }
        let compressed = self.head(place)?.compressed;
        let mut sources = BTreeMap::new();
        for _ in 0..parser.uint(4)? {
            let (cpu, offset, size) = (parser.uint(4)?, parser.uint(8)?, parser.uint(8)?);
            let source = if compressed {
                Source::chunks(self.input, offset, size, self.packing)?
            } else {
                Source::plain(offset, size)
            };
            sources.insert(cpu_id(cpu)?, source);
        }
        Ok(Buffer { name, clock, page_size, sources })
    }

    /// A section's content.
    fn section(&mut self, at: u64) -> Result<Vec<u8>, Error> {
        let head = self.head(at)?;
        let bytes = self.bytes(at.saturating_add(16), head.size)?;
        if !head.compressed {
            return Ok(bytes);
        }
        let size = self.packing.endian.uint_at(&bytes, 4, 4).unwrap_or(0);
        let packed = bytes.get(8..).unwrap_or_default();
        self.packing
            .unpack(packed, size)
            .map_err(|error| format_error(at, &format!("a compressed section is damaged: {error}")))
    }
}
