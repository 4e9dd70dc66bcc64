//! The part of a binary recording before its events: formats, and names of tasks and functions.
//!
//! trace.dat and perf.data contain the same parts in the same form; perf.data has them as one of its sections.

use std::collections::HashMap;
use std::io::{BufRead, Read, Seek, SeekFrom};

use schedlab_units::Pid;

use super::{Error, Place};
use crate::binary::Endian;
use crate::binary::page::Layout;
use crate::binary::record::Formats;
use crate::comm::Comm;

/// Everything needed to decode records.
pub(super) struct Meta {
    pub layout: Layout,
    pub formats: Formats,
    /// The names of tasks, as saved by the kernel.
    pub comms: HashMap<Pid, Comm>,
    /// What could not be read, and where.
    pub gaps: Vec<(u64, String)>,
}

/// One of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Header,
    FtraceFormats,
    EventFormats,
    Kallsyms,
    Printk,
    Cmdlines,
}

impl Part {
    /// The parts in the order of the file.
    pub const ALL: [Part; 6] =
        [Part::Header, Part::FtraceFormats, Part::EventFormats, Part::Kallsyms, Part::Printk, Part::Cmdlines];
}

impl Meta {
    /// Creates an empty one.
    pub fn new(endian: Endian, page_size: usize) -> Meta {
        Meta {
            layout: Layout { endian, page_size, ..Layout::USUAL },
            formats: Formats::new(endian),
            comms: HashMap::new(),
            gaps: Vec::new(),
        }
    }

    /// Reads the next part.
    pub fn read(&mut self, part: Part, parser: &mut Parser<impl BufRead>) -> Result<(), Error> {
        match part {
            Part::Header => {
                parser.text()?;
                let page = parser.sized(8)?;
                parser.text()?;
                parser.sized(8)?;
                let page = String::from_utf8_lossy(&page);
                self.layout = Layout::parse(&page, self.layout.endian, self.layout.page_size);
            }
            Part::FtraceFormats => self.formats(parser)?,
            Part::EventFormats => {
                for _ in 0..parser.uint(4)? {
                    parser.text()?;
                    self.formats(parser)?;
                }
            }
            Part::Kallsyms => self.formats.symbols.set_kallsyms(&parser.sized(4)?),
            Part::Printk => self.formats.symbols.set_printk(&parser.sized(4)?),
            Part::Cmdlines => {
                for line in parser.sized(8)?.split(|&byte| byte == b'\n') {
                    if let Some((pid, comm)) = cmdline(line) {
                        self.comms.insert(pid, comm);
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a counted list of formats.
    fn formats(&mut self, parser: &mut Parser<impl BufRead>) -> Result<(), Error> {
        for _ in 0..parser.uint(4)? {
            let text = parser.sized(8)?;
            if !self.formats.add(&String::from_utf8_lossy(&text)) {
                self.gaps.push((0, "an event's format has no name or no number".to_owned()));
            }
        }
        Ok(())
    }
}

/// A saved name: `812 make`.
fn cmdline(line: &[u8]) -> Option<(Pid, Comm)> {
    let line = std::str::from_utf8(line).ok()?.trim_start();
    let (pid, comm) = line.split_once(' ')?;
    Some((Pid(pid.parse().ok()?), Comm::from(comm)))
}

pub(super) fn format_error(at: u64, why: &str) -> Error {
    Error::Format { at: Place::Byte(at), why: why.to_owned() }
}

/// Takes numbers and texts off the front.
pub(super) struct Parser<I> {
    pub input: I,
    pub endian: Endian,
}

impl<I: BufRead> Parser<I> {
    /// Exactly `size` bytes. Memory is allocated as they arrive, whatever size a damaged file claims.
    pub fn bytes(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        (&mut self.input).take(size).read_to_end(&mut bytes)?;
        if bytes.len() as u64 == size { Ok(bytes) } else { Err(cut_short()) }
    }

    pub fn uint(&mut self, size: u64) -> Result<u64, Error> {
        self.bytes(size).map(|bytes| self.endian.uint(&bytes))
    }

    /// Text up to a NUL.
    pub fn text(&mut self) -> Result<String, Error> {
        let mut bytes = Vec::new();
        (&mut self.input).take(4096).read_until(0, &mut bytes)?;
        if bytes.pop() == Some(0) {
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        } else {
            Err(cut_short())
        }
    }

    /// Bytes after their length, which is itself a number of `size` bytes.
    pub fn sized(&mut self, size: u64) -> Result<Vec<u8>, Error> {
        let len = self.uint(size)?;
        self.bytes(len)
    }
}

const CUT_SHORT: &str = "the file ends inside its header; it was cut short: copy it again, or record again";

fn cut_short() -> Error {
    format_error(0, CUT_SHORT)
}

/// For a header that is cut short, reports the end of the file.
pub(super) fn at_end(error: Error, input: &mut impl Seek) -> Error {
    match error {
        Error::Format { why, .. } if why == CUT_SHORT => {
            format_error(input.seek(SeekFrom::End(0)).unwrap_or(0), &why)
        }
        other => other,
    }
}
