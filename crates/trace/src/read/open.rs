//! Reads a recording whatever its format, compressed or not.

use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom, Write};

use schedlab_topology::{Topology, TopologyError};

use super::{
    Error, Gap, Place, Record, ftrace, head, html, jsonl, perf_data, perf_script, perfetto, trace_dat,
};
use crate::proto::{Decoder, varint};

/// Input that can be read at any position: a file, or bytes in memory.
pub trait Input: Read + Seek {}

impl<T: Read + Seek> Input for T {}

/// Storage for a decompressed file that must be read at any position.
pub trait Spool: Read + Write + Seek {}

impl<T: Read + Write + Seek> Spool for T {}

/// A reader of any format.
pub enum Reader {
    /// Text of tracefs or of `trace-cmd report`.
    Ftrace(ftrace::Reader<Box<dyn BufRead>>),
    /// Text of `perf script`.
    PerfScript(perf_script::Reader<Box<dyn BufRead>>),
    /// JSON lines.
    Jsonl(jsonl::Reader<Box<dyn BufRead>>),
    /// A Perfetto trace.
    Perfetto(Box<perfetto::Reader<Box<dyn Input>>>),
    /// A trace.dat.
    TraceDat(Box<trace_dat::Reader<Box<dyn Input>>>),
    /// A perf.data.
    PerfData(Box<perf_data::Reader<Box<dyn Input>>>),
    /// The part that could be decompressed of a damaged file, and a gap for the rest.
    Cut(Option<Gap>, Box<Reader>),
}

impl Reader {
    /// Leaves out the decisions of a perf.data, which take longer to read than all other events. Other formats have
    /// decisions only if they were requested, and they are read.
    pub fn without_decisions(&mut self) {
        match self {
            Reader::PerfData(reader) => reader.without_decisions(),
            Reader::Cut(_, reader) => reader.without_decisions(),
            _ => {}
        }
    }

    /// How many CPUs the machine had, if recorded; in text it is known once the header has been read.
    pub fn nr_cpus(&self) -> Option<usize> {
        match self {
            Reader::Ftrace(reader) => reader.nr_cpus(),
            Reader::TraceDat(reader) => Some(reader.info().nr_cpus),
            Reader::PerfData(reader) => reader.info().nr_cpus,
            Reader::Cut(_, reader) => reader.nr_cpus(),
            Reader::PerfScript(_) | Reader::Jsonl(_) | Reader::Perfetto(_) => None,
        }
    }

    /// The place of the last record, for text only: binary files are not read front to back.
    pub fn place(&self) -> Option<Place> {
        match self {
            Reader::Ftrace(reader) => Some(reader.place()),
            Reader::PerfScript(reader) => Some(reader.place()),
            Reader::Jsonl(reader) => Some(reader.place()),
            Reader::Perfetto(_) | Reader::TraceDat(_) | Reader::PerfData(_) | Reader::Cut(..) => None,
        }
    }

    /// The release of the recorded kernel, such as `6.12.95-amd64`, if recorded.
    pub fn release(&self) -> Option<&str> {
        match self {
            // As printed by `uname`: system, name, release.
            Reader::TraceDat(reader) => reader.info().uname.split_whitespace().nth(2),
            Reader::PerfData(reader) => {
                Some(reader.info().os_release.as_str()).filter(|text| !text.is_empty())
            }
            Reader::Cut(_, reader) => reader.release(),
            _ => None,
        }
    }
}

impl Reader {
    /// The machine it was recorded on, if recorded.
    ///
    /// # Errors
    /// The recorded topology is not valid.
    pub fn machine(&self, name: &str) -> Option<Result<Topology, TopologyError>> {
        match self {
            Reader::PerfData(reader) => reader.info().machine(name),
            Reader::Cut(_, reader) => reader.machine(name),
            _ => None,
        }
    }
}

impl Iterator for Reader {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        match self {
            Reader::Ftrace(reader) => reader.next(),
            Reader::PerfScript(reader) => reader.next(),
            Reader::Jsonl(reader) => reader.next(),
            Reader::Perfetto(reader) => reader.next(),
            Reader::TraceDat(reader) => reader.next(),
            Reader::PerfData(reader) => reader.next(),
            Reader::Cut(gap, reader) => match gap.take() {
                Some(gap) => Some(Ok(Record::Gap(gap))),
                None => reader.next(),
            },
        }
    }
}

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text of tracefs or of `trace-cmd report`.
    Ftrace,
    /// Text of `perf script`.
    PerfScript,
    /// JSON lines.
    Jsonl,
    /// A Perfetto trace.
    Perfetto,
    /// A trace.dat.
    TraceDat,
    /// A perf.data.
    PerfData,
}

/// How many bytes of a file are examined to detect its format.
pub const LOOK: u64 = 64 << 10;

/// Whether the first [`LOOK`] bytes of a file may be those of a recording, compressed or not.
///
/// # Errors
/// They are not; as [`detect`].
pub fn may_be_one(start: &[u8]) -> Result<(), Error> {
    let begin = mark_of_text(start);
    match Compression::of(start) {
        Some(_) => Ok(()),
        None if html::is_page(&start[begin..]) => Ok(()),
        None => detect(&start[begin..]).map(drop),
    }
}

/// Opens a recording. Text is read as it is decompressed; a compressed binary file is first decompressed into a spool,
/// which is created only in that case.
pub fn open<S: Spool + 'static>(
    mut input: impl Input + 'static,
    spool: impl FnOnce() -> io::Result<S>,
) -> Result<Reader, Error> {
    let start = look(&mut input)?;
    let Some(compression) = Compression::of(&start) else {
        let begin = mark_of_text(&start);
        input.seek(SeekFrom::Start(begin as u64))?;
        if html::is_page(&start[begin..]) {
            return page(BufReader::with_capacity(1 << 16, input));
        }
        let format = detect(&start[begin..])?;
        return match format {
            Format::Ftrace | Format::PerfScript | Format::Jsonl => {
                Ok(text(format, Box::new(BufReader::with_capacity(1 << 16, input))))
            }
            format => binary(format, Box::new(input)),
        };
    };
    input.seek(SeekFrom::Start(0))?;
    let mut unpacked = compression.unpack(input)?;
    let mut start = Vec::new();
    let failed = unpacked.by_ref().take(LOOK).read_to_end(&mut start).err();
    if let Some(error) = failed.as_ref().filter(|_| start.is_empty()) {
        return Err(Error::Format { at: Place::Byte(0), why: cut_short(error) });
    }
    let begin = mark_of_text(&start);
    let is_page = html::is_page(&start[begin..]);
    let format = if is_page { Format::Ftrace } else { detect(&start[begin..])? };
    let mut whole = Whole { start: Cursor::new(start), failed, rest: unpacked };
    whole.start.set_position(begin as u64);
    match format {
        _ if is_page => page(BufReader::new(whole)),
        Format::Ftrace | Format::PerfScript | Format::Jsonl => {
            Ok(text(format, Box::new(BufReader::new(whole))))
        }
        format => {
            let mut spool = spool()?;
            let mut cut = None;
            let mut buffer = vec![0; 1 << 16];
            loop {
                match whole.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(read) => spool.write_all(&buffer[..read])?,
                    Err(error) => {
                        let at = Place::Byte(spool.stream_position()?);
                        cut = Some(Gap { at: Some(at), why: cut_short(&error) });
                        break;
                    }
                }
            }
            spool.seek(SeekFrom::Start(0))?;
            let reader = binary(format, Box::new(spool))?;
            Ok(if cut.is_some() { Reader::Cut(cut, Box::new(reader)) } else { reader })
        }
    }
}

/// The length of the byte order mark that some editors put before a text.
fn mark_of_text(start: &[u8]) -> usize {
    const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
    if start.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 }
}

/// A reader of the trace inside a systrace page.
fn page(page: impl BufRead + 'static) -> Result<Reader, Error> {
    match html::Inside::find(page)? {
        Some(inside) => Ok(text(Format::Ftrace, Box::new(BufReader::with_capacity(1 << 16, inside)))),
        None => {
            let why = "this is a page without the text of a trace (`class=\"trace-data\"`, `# tracer:`); record with \
                       `systrace --no-compress`, or take the trace itself";
            Err(Error::Format { at: Place::Byte(0), why: why.to_owned() })
        }
    }
}

/// Why the rest of a compressed file cannot be read.
fn cut_short(error: &io::Error) -> String {
    format!("the compressed file is cut short or damaged: {error}; copy it again, or record again")
}

/// What was decompressed to detect the format, the error that ended it early, and the rest.
struct Whole {
    start: Cursor<Vec<u8>>,
    failed: Option<io::Error>,
    rest: Box<dyn Read>,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.start.read(buffer)? {
            0 => self.failed.take().map_or_else(|| self.rest.read(buffer), Err),
            read => Ok(read),
        }
    }
}

fn text(format: Format, input: Box<dyn BufRead>) -> Reader {
    match format {
        Format::PerfScript => Reader::PerfScript(perf_script::Reader::new(input)),
        Format::Jsonl => Reader::Jsonl(jsonl::Reader::new(input)),
        _ => Reader::Ftrace(ftrace::Reader::new(input)),
    }
}

fn binary(format: Format, input: Box<dyn Input>) -> Result<Reader, Error> {
    Ok(match format {
        Format::TraceDat => Reader::TraceDat(Box::new(trace_dat::Reader::new(input)?)),
        Format::PerfData => Reader::PerfData(Box::new(perf_data::Reader::new(input)?)),
        _ => Reader::Perfetto(Box::new(perfetto::Reader::new(input)?)),
    })
}

/// The first bytes of a file.
fn look(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    input.take(LOOK).read_to_end(&mut start)?;
    Ok(start)
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    Gzip,
    Zstd,
}

impl Compression {
    fn of(start: &[u8]) -> Option<Compression> {
        match start {
            [0x1f, 0x8b, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
            _ => None,
        }
    }

    fn unpack(self, input: impl Read + 'static) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(input))),
            Compression::Zstd => Box::new(zstd::Decoder::new(input)?),
        })
    }
}

/// Detects the format of a file from its first bytes.
pub fn detect(start: &[u8]) -> Result<Format, Error> {
    if start.starts_with(b"\x17\x08\x44tracing") {
        return Ok(Format::TraceDat);
    }
    if start.starts_with(b"PERFILE2") || start.starts_with(b"2ELIFREP") {
        return Ok(Format::PerfData);
    }
    for line in start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end) {
        if line.starts_with(b"{\"") {
            return Ok(Format::Jsonl);
        }
        if line.starts_with(b"# tracer:") || line.starts_with(b"cpus=") || head::parse(line).is_some() {
            return Ok(Format::Ftrace);
        }
        if head::parse_perf(line).is_some() {
            return Ok(Format::PerfScript);
        }
    }
    if is_perfetto(start) {
        return Ok(Format::Perfetto);
    }
    let why = if start.trim_ascii().is_empty() {
        "the file is empty; was the recording started?"
    } else if start.starts_with(b"\xfd7zXZ\0") {
        "the file is compressed by xz, which is not read; unpack it first: unxz FILE"
    } else if start.starts_with(b"BZh") {
        "the file is compressed by bzip2, which is not read; unpack it first: bunzip2 FILE"
    } else if start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff") {
        "the file is text in UTF-16, which is not read; convert it first: iconv -f UTF-16 -t UTF-8 FILE"
    } else if start.split(|&byte| byte == b'\n').any(head::lacks_task) {
        "the lines lack the columns of tasks (`comm-pid`) in front of the CPUs; take the text as tracefs or trace-cmd \
         report print it"
    } else if memchr::memmem::find(start, b" sched:sched_").is_some() {
        "the text of perf script lacks a column of tasks, CPUs or times; print it with \
         perf script -F comm,tid,cpu,time,event,trace"
    } else {
        "the file is in none of the formats that are known: trace text of tracefs, trace-cmd or perf script, \
         JSON lines, trace.dat, perf.data, Perfetto"
    };
    Err(Error::Format { at: Place::Byte(0), why: why.to_owned() })
}

/// Whether the first bytes are a packet or the start of one.
fn is_perfetto(start: &[u8]) -> bool {
    let Some((0x0a, mut rest)) = start.split_first() else { return false };
    let Some(len) = varint(&mut rest) else { return false };
    match rest.get(..usize::try_from(len).unwrap_or(usize::MAX)) {
        Some(packet) => {
            let mut fields = Decoder::new(packet);
            fields.by_ref().for_each(drop);
            !fields.failed()
        }
        None => start.len() as u64 == LOOK,
    }
}
