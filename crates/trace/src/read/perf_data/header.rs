//! The parts of a perf.data before and after its records.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use schedlab_topology::{Architecture, PerfSections, Topology, TopologyError};

use super::sample::Attrs;
use crate::binary::{Endian, until_nul};
use crate::read::Error;
use crate::read::meta::{Meta, Parser, Part, format_error};

/// What a perf.data contains about the recorded machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Info {
    /// The machine's name.
    pub hostname: String,
    /// The kernel's release.
    pub os_release: String,
    /// The architecture: `x86_64`.
    pub arch: String,
    /// The processor.
    pub cpu_desc: String,
    /// How many CPUs the machine has.
    pub nr_cpus: Option<usize>,
    /// The raw feature sections that describe topology and caches, by their numbers: 13, 14 and 20.
    pub topology: BTreeMap<u64, Vec<u8>>,
    /// Whether numbers in these sections have their highest byte first.
    pub big_endian: bool,
}

/// Everything needed to read the records.
pub(super) struct Header {
    pub info: Info,
    pub meta: Meta,
    pub attrs: Attrs,
    /// Where the records are.
    pub data: Range<u64>,
}

/// Numbers of feature sections.
mod feature {
    pub const TRACING_DATA: u64 = 1;
    pub const HOSTNAME: u64 = 3;
    pub const OSRELEASE: u64 = 4;
    pub const ARCH: u64 = 6;
    pub const NRCPUS: u64 = 7;
    pub const CPUDESC: u64 = 8;
    pub const CPU_TOPOLOGY: u64 = 13;
    pub const NUMA_TOPOLOGY: u64 = 14;
    pub const CACHE: u64 = 20;
    pub const DIR_FORMAT: u64 = 24;
}

/// A recorder that was killed leaves the size of the records at 0, and the sections after them are missing.
const NOT_ENDED: &str = "perf record did not come to its end, at which it writes how much it has recorded and in which form; \
                         record again, and end it by Ctrl-C";

/// `perf record --threads` writes a folder with a file for each thread; perf inject leaves such a folder as it is.
const IN_A_FOLDER: &str = "the recording is spread over a folder; record without --threads, or save the text that \
                           `perf script -i FOLDER --ns -F comm,tid,cpu,time,event,trace` prints";

const NO_FORMATS: &str = "the file is cut short: in which form its events are recorded stands at its end; copy it again, or \
                          record again";

/// No recorder writes a larger section.
const SECTION_MAX: u64 = 1 << 30;

impl Header {
    /// The order of the file's bytes.
    pub fn endian(&self) -> Endian {
        self.attrs.endian
    }

    /// Reads the header and the sections, and goes to the first record.
    pub fn read<R: Read + Seek>(input: &mut R) -> Result<Header, Error> {
        let end = input.seek(SeekFrom::End(0))?;
        let head = section(input, 0, 104)?;
        let endian = match head.get(..8) {
            Some(b"PERFILE2") => Endian::Little,
            Some(b"2ELIFREP") => Endian::Big,
            _ => {
                return Err(format_error(0, "this is not a perf.data file: it does not begin with its mark"));
            }
        };
        let mut header = Header {
            info: Info { big_endian: endian == Endian::Big, ..Info::default() },
            meta: Meta::new(endian, 4096),
            attrs: Attrs::new(endian),
            data: 16..end,
        };
        let word = |n: usize| endian.uint_at(&head, 8 * n, 8).unwrap_or(0);
        if word(1) != 16 {
            header.data = word(5)..word(5).saturating_add(word(6)).min(end);
            header.sections(input, &head, end)?;
        }
        input.seek(SeekFrom::Start(header.data.start))?;
        Ok(header)
    }

    /// Reads attributes and features of a file that was not written to a pipe.
    fn sections<R: Read + Seek>(&mut self, input: &mut R, head: &[u8], end: u64) -> Result<(), Error> {
        let endian = self.endian();
        let word = |n: usize| endian.uint_at(head, 8 * n, 8).unwrap_or(0);
        let attr_size = usize::try_from(word(2)).unwrap_or(0);
        if !(48 + 16..=4096).contains(&attr_size) {
            return Err(format_error(16, &format!("attributes of {attr_size} bytes cannot be")));
        }
        for entry in section(input, word(3), word(4))?.chunks_exact(attr_size) {
            let (attr, ids) = entry.split_at(attr_size - 16);
            let ids = section(input, endian.uint(&ids[..8]), endian.uint(&ids[8..]))?;
            self.attrs.add(attr, &ids);
        }
        let set = |bit: &u64| word(9 + *bit as usize / 64) >> (bit % 64) & 1 != 0;
        let features: Vec<u64> = (0..256).filter(set).collect();
        if word(6) == 0 {
            return Err(format_error(48, NOT_ENDED));
        }
        // The table follows the records, with one entry for each feature.
        let table_size = 16 * features.len() as u64;
        let table = section(input, word(5).saturating_add(word(6)), table_size)?;
        if features.contains(&feature::TRACING_DATA) && (table.len() as u64) < table_size {
            return Err(format_error(end, NO_FORMATS));
        }
        for (feature, entry) in features.into_iter().zip(table.chunks_exact(16)) {
            let content = section(input, endian.uint(&entry[..8]), endian.uint(&entry[8..]))?;
            match feature {
                feature::TRACING_DATA => self.tracing_data(&content)?,
                feature::DIR_FORMAT => {
                    return Err(format_error(0, IN_A_FOLDER));
                }
                feature => self.info.feature(feature, &content, endian),
            }
        }
        Ok(())
    }

    /// Reads the formats, which have the same form as in a trace.dat.
    pub fn tracing_data(&mut self, data: &[u8]) -> Result<(), Error> {
        let mut parser = Parser { input: data, endian: self.endian() };
        if parser.bytes(10)? != b"\x17\x08\x44tracing" {
            return Err(format_error(0, "the section of formats does not begin with its mark"));
        }
        let version = parser.text()?;
        parser.endian = if parser.uint(1)? == 0 { Endian::Little } else { Endian::Big };
        let (_long_size, page_size) = (parser.uint(1)?, parser.uint(4)?);
        let without_decisions = self.meta.formats.without_decisions;
        self.meta = Meta::new(parser.endian, page_size as usize);
        self.meta.formats.without_decisions = without_decisions;
        for part in Part::ALL {
            // Task names were added in version 0.6.
            if part != Part::Cmdlines || version != "0.5" {
                self.meta.read(part, &mut parser)?;
            }
        }
        Ok(())
    }
}

impl Info {
    /// The machine, if all necessary sections exist; `None` if the recorder left them out.
    ///
    /// # Errors
    /// Sections are incomplete or contradict each other.
    pub fn machine(&self, name: &str) -> Option<Result<Topology, TopologyError>> {
        let section = |feature| self.topology.get(&feature).map_or(&[][..], Vec::as_slice);
        let sections = PerfSections {
            cpu_topology: self.topology.get(&feature::CPU_TOPOLOGY)?,
            numa_topology: section(feature::NUMA_TOPOLOGY),
            cache: section(feature::CACHE),
            architecture: Architecture::named(&self.arch),
            big_endian: self.big_endian,
        };
        Some(Topology::from_perf_data(name, &sections))
    }

    /// Stores the content of a feature section.
    pub(super) fn feature(&mut self, feature: u64, content: &[u8], endian: Endian) {
        // A text follows its length and is padded with NULs.
        let text = || String::from_utf8_lossy(until_nul(content.get(4..).unwrap_or_default())).into_owned();
        match feature {
            feature::HOSTNAME => self.hostname = text(),
            feature::OSRELEASE => self.os_release = text(),
            feature::ARCH => self.arch = text(),
            feature::CPUDESC => self.cpu_desc = text(),
            feature::NRCPUS => self.nr_cpus = endian.uint_at(content, 0, 4).map(|n| n as usize),
            feature::CPU_TOPOLOGY | feature::NUMA_TOPOLOGY | feature::CACHE => {
                self.topology.insert(feature, content.to_owned());
            }
            _ => {}
        }
    }
}

/// The bytes of a section; fewer if the file is cut short.
fn section<R: Read + Seek>(input: &mut R, at: u64, size: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    input.seek(SeekFrom::Start(at))?;
    input.take(size.min(SECTION_MAX)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
