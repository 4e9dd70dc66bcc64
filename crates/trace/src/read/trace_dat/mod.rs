//! trace.dat, the binary file of trace-cmd, versions 6 and 7.
//!
//! The file begins with everything needed to decode it: the formats of the events, the names of tasks and functions.
//! Then, CPU by CPU, come pages of the kernel's ring buffers, in version 7 perhaps compressed. The reader keeps one
//! page (or one compressed chunk) of each CPU in memory and merges them by time.
//!
//! If there are several buffers, the first one with events is read, and the names of the others that contain events are
//! reported.

mod header;
mod source;

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use super::merge::{Merge, Queue};
use super::meta::{Meta, at_end};
use super::{Error, Gap, Lost, NO_DURATION, Place, Record};
use crate::binary::page::Page;
use crate::comm::Comm;
use crate::event::Event;
use header::Header;
use source::Source;

pub use header::Info;

/// Reads a trace.dat.
pub struct Reader<R> {
    input: R,
    info: Info,
    meta: Meta,
    clock: Clock,
    sources: BTreeMap<CpuId, Source>,
    merge: Merge,
    first: Vec<Record>,
    failed: bool,
}

/// How times in the file are converted to nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// For a counter of cycles: multiplier and right shift.
    cycles: Option<(u32, u32)>,
}

/// Clocks that do not count time. Kernel: trace_clocks with `in_ns` 0, kernel/trace/trace.c, and ARCH_TRACE_CLOCKS.
const NO_TIME: [&str; 4] = ["x86-tsc", "ppc-tb", "counter", "uptime"];

impl Clock {
    /// What is wrong with the times of a clock, if it does not count time and nothing describes its unit.
    fn wrong(self, name: &str) -> Option<String> {
        let wrong = self.cycles.is_none() && NO_TIME.contains(&name);
        wrong.then(|| format!("times come from the clock {name}, which does not count time; {NO_DURATION}"))
    }

    fn time(self, raw: u64) -> Time {
        Time(match self.cycles {
            Some((multiply, shift)) => {
                u64::try_from((u128::from(raw) * u128::from(multiply)) >> shift.min(127)).unwrap_or(u64::MAX)
            }
            None => raw,
        })
    }
}

impl<R: Read + Seek> Reader<R> {
    /// Reads everything before the events.
    pub fn new(mut input: R) -> Result<Reader<R>, Error> {
        let Header { info, mut meta, clock, sources } =
            Header::read(&mut input).map_err(|error| at_end(error, &mut input))?;
        let mut gaps = std::mem::take(&mut meta.gaps);
        gaps.extend(clock.wrong(&info.clock).map(|why| (0, why)));
        let gap = |(at, why)| Record::Gap(Gap { at: Some(Place::Byte(at)), why });
        let mut reader = Reader {
            input,
            info,
            meta,
            clock,
            sources,
            merge: Merge::default(),
            first: gaps.into_iter().rev().map(gap).collect(),
            failed: false,
        };
        let mut merge = Merge::default();
        let Reader { input, meta, clock, sources, .. } = &mut reader;
        for (&cpu, source) in sources.iter_mut() {
            merge.start(cpu, |queue| fill(cpu, source, input, *clock, meta, queue))?;
        }
        reader.merge = merge;
        Ok(reader)
    }

    /// What the file contains about itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    fn record(&mut self) -> Result<Option<Record>, Error> {
        if let Some(record) = self.first.pop() {
            return Ok(Some(record));
        }
        let Reader { input, meta, clock, sources, merge, .. } = self;
        merge.pop(|cpu, queue| match sources.get_mut(&cpu) {
            Some(source) => fill(cpu, source, input, *clock, meta, queue),
            None => Ok(()),
        })
    }
}

/// Decodes pages of a CPU until there is a record or no page is left.
fn fill<R: Read + Seek>(
    cpu: CpuId,
    source: &mut Source,
    input: &mut R,
    clock: Clock,
    meta: &mut Meta,
    queue: &mut Queue,
) -> Result<(), Error> {
    while queue.is_empty() {
        let Some((at, page)) = source.page(input, meta.layout.page_size)? else { break };
        PageDecoder { cpu, at, clock, meta }.decode(page, queue);
    }
    Ok(())
}

impl<R: Read + Seek> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        if self.failed {
            return None;
        }
        let record = self.record().transpose();
        self.failed = matches!(record, Some(Err(_)));
        record
    }
}

/// trace-cmd's name for idle tasks.
const IDLE: Comm = Comm::new(b"<idle>");

/// Decodes one page of a CPU.
struct PageDecoder<'a> {
    cpu: CpuId,
    at: u64,
    clock: Clock,
    meta: &'a mut Meta,
}

impl PageDecoder<'_> {
    fn decode(self, bytes: &[u8], queue: &mut Queue) {
        let (cpu, place) = (self.cpu, Place::Byte(self.at));
        let gap = |why: String| Record::Gap(Gap { at: Some(place), why });
        let Some(page) = Page::new(self.meta.layout, bytes) else {
            queue.push_back((Time::ZERO, gap(format!("a page of CPU {cpu} is not whole"))));
            return;
        };
        let mut missed = page.missed();
        let mut last = Time::ZERO;
        for record in page {
            let Ok((raw, record)) = record else {
                queue.push_back((last, gap(format!("the rest of a page of CPU {cpu} makes no sense"))));
                break;
            };
            last = self.clock.time(raw);
            if let Some(count) = missed.take() {
                queue.push_back((last, Record::Lost(Lost { cpu: Some(cpu), count, after: None })));
            }
            let record = match self.meta.formats.decode(record) {
                Ok(decoded) => Record::Event(Event {
                    time: last,
                    cpu,
                    pid: decoded.pid,
                    tgid: None,
                    comm: match decoded.pid {
                        Pid::IDLE => IDLE,
                        pid => self.meta.comms.get(&pid).copied().unwrap_or_default(),
                    },
                    flags: decoded.flags,
                    kind: decoded.kind,
                }),
                Err(why) => gap(format!("CPU {cpu}: {why}")),
            };
            queue.push_back((last, record));
        }
        if let Some(count) = missed {
            queue.push_back((last, Record::Lost(Lost { cpu: Some(cpu), count, after: None })));
        }
    }
}
