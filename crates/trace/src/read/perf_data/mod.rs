//! perf.data, as written by `perf sched record` and `perf record -e 'sched:*'`.
//!
//! Samples contain the bytes of the kernel's trace records, and a section of the file contains their formats. Records
//! of different CPUs are mixed; marks between them show up to which time everything has been seen, and only that part
//! is passed on. Both the file and its form for pipes are read, compressed or not.

mod header;
mod rounds;
mod sample;
mod stream;

use std::io::{Read, Seek, SeekFrom};

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use super::meta::at_end;
use super::names::Names;
use super::{Error, Gap, Lost, Place, Record};
use crate::comm::Comm;
use crate::event::Event;
use header::Header;
use rounds::Rounds;
use sample::Sample;
use stream::Stream;

pub use header::Info;

/// Reads a perf.data.
pub struct Reader<R> {
    header: Header,
    stream: Stream<R>,
    rounds: Rounds<Item>,
    names: Names,
    first: Vec<Record>,
    /// The time of the last event passed on.
    last: Time,
    /// How many events the kernel reported as lost and no count at the end has covered yet.
    told_lost: u64,
    done: bool,
}

/// An item that waits for its time.
enum Item {
    Record(Record),
    /// A task has this name, and perhaps this process, from here on.
    Name {
        pid: Pid,
        tgid: Option<Pid>,
        comm: Comm,
    },
    /// A task was forked and has its parent's name.
    Born {
        pid: Pid,
        tgid: Pid,
        parent: Pid,
    },
}

/// Types of records.
mod kind {
    pub const LOST: u32 = 2;
    pub const COMM: u32 = 3;
    pub const FORK: u32 = 7;
    pub const SAMPLE: u32 = 9;
    pub const LOST_SAMPLES: u32 = 13;
    pub const HEADER_ATTR: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const FINISHED_ROUND: u32 = 68;
    pub const HEADER_FEATURE: u32 = 80;
}

impl<R: Read + Seek> Reader<R> {
    /// Reads everything before the events.
    pub fn new(mut input: R) -> Result<Reader<R>, Error> {
        let mut header = Header::read(&mut input).map_err(|error| at_end(error, &mut input))?;
        let gap = |(at, why)| Record::Gap(Gap { at: Some(Place::Byte(at)), why });
        let first = std::mem::take(&mut header.meta.gaps).into_iter().rev().map(gap).collect();
        let rounds = Rounds::new(marks_rounds(&mut input, &header)?);
        Ok(Reader {
            stream: Stream::new(input, header.data.clone(), header.endian()),
            header,
            rounds,
            names: Names::default(),
            first,
            last: Time::ZERO,
            told_lost: 0,
            done: false,
        })
    }

    /// Leaves out decisions.
    pub fn without_decisions(&mut self) {
        self.header.meta.formats.without_decisions = true;
    }

    /// What the file contains about its machine. In a recording through a pipe this is known only after its first
    /// events.
    pub fn info(&self) -> &Info {
        &self.header.info
    }

    fn record(&mut self) -> Result<Option<Record>, Error> {
        if let Some(record) = self.first.pop() {
            return Ok(Some(record));
        }
        loop {
            match self.rounds.pop() {
                Some((time, item)) => {
                    if let Some(record) = self.pass(time, item) {
                        return Ok(Some(record));
                    }
                }
                None if self.done => return Ok(None),
                None => self.done = !self.take()?,
            }
        }
    }

    /// Passes on an item whose time has come, unless it only concerns the reader.
    fn pass(&mut self, time: Time, item: Item) -> Option<Record> {
        match item {
            Item::Record(Record::Event(mut event)) => {
                if time < self.last {
                    return Some(Record::Gap(Gap::out_of_order(event.cpu, time)));
                }
                self.last = time;
                self.names.name(&mut event);
                Some(Record::Event(event))
            }
            Item::Record(record) => Some(record),
            Item::Name { pid, tgid, comm } => {
                let task = self.names.task(pid);
                (task.comm, task.tgid) = (comm, tgid.or(task.tgid));
                None
            }
            Item::Born { pid, tgid, parent } => {
                let comm = self.names.task(parent).comm;
                let task = self.names.task(pid);
                (task.comm, task.tgid) = (comm, Some(tgid));
                None
            }
        }
    }

    /// Takes one record from the file; returns false at its end.
    fn take(&mut self) -> Result<bool, Error> {
        let Some((at, kind)) = self.stream.next_record()? else {
            if let Some((at, why)) = self.stream.broken() {
                let gap = Record::Gap(Gap { at: Some(Place::Byte(at)), why });
                self.rounds.push(self.last, Item::Record(gap));
            }
            self.rounds.finish();
            return Ok(false);
        };
        match kind {
            kind::FINISHED_ROUND => self.rounds.finish_round(),
            kind::HEADER_ATTR => self.header.attrs.add_record(self.stream.body()),
            kind::HEADER_FEATURE => {
                let body = self.stream.body();
                let endian = self.header.endian();
                let feature = endian.uint_at(body, 0, 8).unwrap_or(0);
                self.header.info.feature(feature, body.get(8..).unwrap_or_default(), endian);
            }
            kind::TRACING_DATA => {
                let data = self.stream.attached()?;
                self.header.tracing_data(&data)?;
            }
            kind::LOST | kind::LOST_SAMPLES => self.take_lost(kind),
            kind => {
                let body = self.stream.body();
                if let Some((time, item)) = item(kind, at, body, &mut self.header) {
                    self.rounds.push(time, item);
                }
            }
        }
        Ok(true)
    }

    /// Handles a record of lost events. The kernel writes one among the events, on the CPU and as soon as there is
    /// space again. Since v6.0 it also counts losses per event, and perf writes these counts at the end, without a
    /// time; only losses not reported before are counted from them.
    fn take_lost(&mut self, kind: u32) {
        let (attrs, body) = (&self.header.attrs, self.stream.body());
        let count = attrs.endian.uint_at(body, if kind == kind::LOST { 8 } else { 0 }, 8);
        let lost = |cpu, count| Item::Record(Record::Lost(Lost { cpu, count, after: None }));
        let (time, cpu) = (attrs.time(body).unwrap_or(Time::ZERO), attrs.cpu(body));
        if kind == kind::LOST {
            self.told_lost = self.told_lost.saturating_add(count.unwrap_or(0));
        } else if time == Time::ZERO {
            let again = self.told_lost.min(count.unwrap_or(0));
            self.told_lost -= again;
            let count = count.map(|count| count - again);
            if count != Some(0) {
                self.rounds.push_last(lost(None, count));
            }
            return;
        }
        self.rounds.push(time, lost(cpu, count));
    }
}

impl<R: Read + Seek> Iterator for Reader<R> {
    type Item = Result<Record, Error>;

    fn next(&mut self) -> Option<Result<Record, Error>> {
        let record = self.record().transpose();
        if let Some(Err(_)) = record {
            self.done = true;
            self.rounds = Rounds::new(true);
        }
        record
    }
}

/// Whether a file marks the ends of rounds. The input is moved to the first record and left there.
fn marks_rounds<R: Read + Seek>(input: &mut R, header: &Header) -> Result<bool, Error> {
    let mut stream = Stream::new(&mut *input, header.data.clone(), header.endian());
    let mut found = false;
    while let Some((_, kind)) = stream.next_record()? {
        match kind {
            kind::FINISHED_ROUND => {
                found = true;
                break;
            }
            kind::TRACING_DATA => drop(stream.attached()?),
            _ => {}
        }
    }
    input.seek(SeekFrom::Start(header.data.start))?;
    Ok(found)
}

/// The item in a record of the file.
#[inline]
fn item(kind: u32, at: u64, body: &[u8], header: &mut Header) -> Option<(Time, Item)> {
    let endian = header.endian();
    let pid = |offset| endian.uint_at(body, offset, 4).map(|pid| Pid(pid as i32));
    let gap = |why: &str| {
        let gap = Gap { at: Some(Place::Byte(at)), why: why.to_owned() };
        Some((Time::ZERO, Item::Record(Record::Gap(gap))))
    };
    match kind {
        kind::SAMPLE => match header.attrs.sample(body) {
            Some(sample) => event(&sample, at, header),
            None => gap("a sample is not whole"),
        },
        kind::COMM => {
            let time = header.attrs.time(body).unwrap_or(Time::ZERO);
            let (tgid, pid) = (pid(0)?, pid(4)?);
            let comm = Comm::new(body.get(8..)?);
            Some((time, Item::Name { pid, tgid: Some(tgid), comm }))
        }
        kind::FORK => {
            let time = header.attrs.time(body).unwrap_or(Time::ZERO);
            Some((time, Item::Born { tgid: pid(0)?, pid: pid(8)?, parent: pid(12)? }))
        }
        _ => None,
    }
}

/// The event of a sample, if it is one of a tracepoint.
#[inline]
fn event(sample: &Sample<'_>, at: u64, header: &mut Header) -> Option<(Time, Item)> {
    let (raw, time) = (sample.raw?, sample.time.unwrap_or(Time::ZERO));
    let gap = |why: String| Some((time, Item::Record(Record::Gap(Gap { at: Some(Place::Byte(at)), why }))));
    let (Some(cpu), Some(_)) = (sample.cpu, sample.time) else {
        return gap("a sample without CPU and time; record with `perf sched record`".to_owned());
    };
    if header.meta.formats.leaves_out(raw) {
        return None;
    }
    match header.meta.formats.decode(raw) {
        Ok(decoded) => {
            // The current task comes from the record; perf no longer knows the process of a dying one.
            let tgid = match sample.task {
                Some((tgid, tid)) if tid == decoded.pid && tgid.0 > 0 => Some(tgid),
                _ => None,
            };
            let event = Event {
                time,
                cpu,
                pid: decoded.pid,
                tgid,
                comm: Comm::default(),
                flags: decoded.flags,
                kind: decoded.kind,
            };
            Some((time, Item::Record(Record::Event(event))))
        }
        Err(why) => gap(format!("CPU {cpu}: {why}")),
    }
}

/// A CPU's number, if it is valid.
fn cpu_id(cpu: u64) -> Option<CpuId> {
    cpu.try_into().ok().map(CpuId)
}
