//! The layout of a sample, which depends on what was requested when recording.

use std::collections::HashMap;

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use super::cpu_id;
use crate::binary::Endian;

/// Bits of `sample_type`, in the order of the fields in a sample.
mod bit {
    pub const IP: u64 = 1 << 0;
    pub const TID: u64 = 1 << 1;
    pub const TIME: u64 = 1 << 2;
    pub const ADDR: u64 = 1 << 3;
    pub const READ: u64 = 1 << 4;
    pub const CALLCHAIN: u64 = 1 << 5;
    pub const ID: u64 = 1 << 6;
    pub const CPU: u64 = 1 << 7;
    pub const PERIOD: u64 = 1 << 8;
    pub const STREAM_ID: u64 = 1 << 9;
    pub const RAW: u64 = 1 << 10;
    pub const IDENTIFIER: u64 = 1 << 16;
}

/// If this flag of the attributes is set, all other records end with part of a sample.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// What was requested when recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attr {
    pub sample_type: u64,
    pub read_format: u64,
    pub flags: u64,
    /// Where the fields of a sample are, if they are at the same place in each.
    places: Option<Places>,
}

/// Offsets of the fields that are read from a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Places {
    task: Option<u16>,
    time: Option<u16>,
    cpu: Option<u16>,
    /// The size of the raw data, before them.
    raw: Option<u16>,
    /// How long a sample is without them.
    len: u16,
    /// All of them, if a sample has all, as perf asks for.
    all: Option<All>,
}

/// Offsets of the fields of a sample that has all of them, the size of the raw data last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct All {
    task: u16,
    time: u16,
    cpu: u16,
    raw: u16,
}

impl All {
    /// The sample in a little-endian file. `None` if it is too short.
    #[inline]
    fn sample<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let head = body.get(..usize::from(self.raw) + 4)?;
        let word =
            |at: u16| -> Option<u64> { Some(u64::from_le_bytes(*head[usize::from(at)..].first_chunk()?)) };
        let (task, size) = (word(self.task)?, u32::from_le_bytes(*head.last_chunk()?));
        Some(Sample {
            task: Some((Pid(task as i32), Pid((task >> 32) as i32))),
            time: Some(Time(word(self.time)?)),
            cpu: cpu_id(u64::from(word(self.cpu)? as u32)),
            raw: Some(body.get(head.len()..head.len().checked_add(size as usize)?)?),
        })
    }
}

impl Places {
    /// `None` if the fields before the raw data have no fixed size.
    fn of(sample_type: u64) -> Option<Places> {
        if sample_type & (bit::READ | bit::CALLCHAIN) != 0 {
            return None;
        }
        let mut places = Places::default();
        for field in [
            bit::IDENTIFIER,
            bit::IP,
            bit::TID,
            bit::TIME,
            bit::ADDR,
            bit::ID,
            bit::STREAM_ID,
            bit::CPU,
            bit::PERIOD,
            bit::RAW,
        ] {
            if sample_type & field == 0 {
                continue;
            }
            match field {
                bit::TID => places.task = Some(places.len),
                bit::TIME => places.time = Some(places.len),
                bit::CPU => places.cpu = Some(places.len),
                bit::RAW => places.raw = Some(places.len),
                _ => {}
            }
            places.len += if field == bit::RAW { 4 } else { 8 };
        }
        if let Places { task: Some(task), time: Some(time), cpu: Some(cpu), raw: Some(raw), .. } = places {
            places.all = Some(All { task, time, cpu, raw });
        }
        Some(places)
    }

    #[inline]
    fn sample<'a>(&self, body: &'a [u8], endian: Endian) -> Option<Sample<'a>> {
        if body.len() < usize::from(self.len) {
            return None;
        }
        if let (Some(all), Endian::Little) = (self.all, endian) {
            return all.sample(body);
        }
        let half = |at: u16| -> Option<u32> {
            let bytes = *body.get(usize::from(at)..)?.first_chunk()?;
            Some(if endian == Endian::Little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
        };
        let word = |at: u16| -> Option<u64> {
            let bytes = *body.get(usize::from(at)..)?.first_chunk()?;
            Some(if endian == Endian::Little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
        };
        let pid = |at| half(at).map(|pid| Pid(pid as i32));
        let raw = |at: u16| {
            let start = usize::from(at) + 4;
            let size = half(at)? as usize;
            body.get(start..start.checked_add(size)?)
        };
        Some(Sample {
            task: self.task.and_then(|at| Some((pid(at)?, pid(at + 4)?))),
            time: self.time.and_then(word).map(Time),
            cpu: self.cpu.and_then(|at| cpu_id(half(at)?.into())),
            raw: match self.raw {
                Some(at) => Some(raw(at)?),
                None => None,
            },
        })
    }
}

/// The attributes of all events, and which event has which.
#[derive(Clone, Debug)]
pub(super) struct Attrs {
    pub endian: Endian,
    all: Vec<Attr>,
    by_id: HashMap<u64, usize>,
    /// Some event has different attributes from the first.
    differ: bool,
}

/// The fields that are read from a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample<'a> {
    /// Process and thread.
    pub task: Option<(Pid, Pid)>,
    pub time: Option<Time>,
    pub cpu: Option<CpuId>,
    pub raw: Option<&'a [u8]>,
}

impl Attrs {
    pub fn new(endian: Endian) -> Attrs {
        Attrs { endian, all: Vec::new(), by_id: HashMap::new(), differ: false }
    }

    /// Adds an event's attributes, as the kernel lays them out, and its ids.
    pub fn add(&mut self, attr: &[u8], ids: &[u8]) {
        let word = |offset| self.endian.uint_at(attr, offset, 8).unwrap_or(0);
        let sample_type = word(24);
        let places = Places::of(sample_type);
        let attr = Attr { sample_type, read_format: word(32), flags: word(40), places };
        self.all.push(attr);
        self.differ |= attr != self.all[0];
        for id in ids.chunks_exact(8) {
            self.by_id.insert(self.endian.uint(id), self.all.len() - 1);
        }
    }

    /// Adds the content of a record: the attributes, which contain their own size, then the ids.
    pub fn add_record(&mut self, body: &[u8]) {
        let size = self.endian.uint_at(body, 4, 4).unwrap_or(0) as usize;
        if let Some((attr, ids)) = body.split_at_checked(size) {
            self.add(attr, ids);
        }
    }

    /// The attributes of a record's event. If the events have different attributes, its id is first in a sample and
    /// last in other records.
    #[inline]
    fn of(&self, body: &[u8], sample: bool) -> Option<&Attr> {
        let first = self.all.first()?;
        if !self.differ || first.sample_type & bit::IDENTIFIER == 0 {
            return Some(first);
        }
        let offset = if sample { 0 } else { body.len().checked_sub(8)? };
        let id = self.endian.uint_at(body, offset, 8)?;
        Some(self.by_id.get(&id).map_or(first, |&i| &self.all[i]))
    }

    /// Reads a sample. `None` if it is too short.
    pub fn sample<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let attr = self.of(body, true)?;
        match &attr.places {
            Some(places) => places.sample(body, self.endian),
            None => self.sample_by_field(body, attr),
        }
    }

    /// The same for a sample whose fields may have any size.
    fn sample_by_field<'a>(&self, body: &'a [u8], attr: &Attr) -> Option<Sample<'a>> {
        let mut fields = Fields { rest: body, endian: self.endian };
        let mut sample = Sample::default();
        let has = |bit| attr.sample_type & bit != 0;
        for skipped in [bit::IDENTIFIER, bit::IP] {
            if has(skipped) {
                fields.word()?;
            }
        }
        if has(bit::TID) {
            sample.task = Some(fields.task()?);
        }
        if has(bit::TIME) {
            sample.time = Some(Time(fields.word()?));
        }
        for skipped in [bit::ADDR, bit::ID, bit::STREAM_ID] {
            if has(skipped) {
                fields.word()?;
            }
        }
        if has(bit::CPU) {
            sample.cpu = cpu_id(fields.half()?);
            fields.half()?;
        }
        if has(bit::PERIOD) {
            fields.word()?;
        }
        if has(bit::READ) {
            fields.read(attr.read_format)?;
        }
        if has(bit::CALLCHAIN) {
            let frames = fields.word()?;
            fields.words(frames)?;
        }
        if has(bit::RAW) {
            let size = usize::try_from(fields.half()?).ok()?;
            sample.raw = Some(fields.rest.get(..size)?);
        }
        Some(sample)
    }

    /// The time at the end of a record other than a sample.
    pub fn time(&self, body: &[u8]) -> Option<Time> {
        self.trailer(body, bit::TIME).map(|word| Time(self.endian.uint(word)))
    }

    /// The CPU at the end of a record other than a sample.
    pub fn cpu(&self, body: &[u8]) -> Option<CpuId> {
        // The second half of its word is unused.
        let (cpu, _) = self.trailer(body, bit::CPU)?.split_at(4);
        cpu_id(self.endian.uint(cpu))
    }

    /// One of the words at the end of a record other than a sample.
    fn trailer<'a>(&self, body: &'a [u8], wanted: u64) -> Option<&'a [u8]> {
        const ORDER: [u64; 6] = [bit::TID, bit::TIME, bit::ID, bit::STREAM_ID, bit::CPU, bit::IDENTIFIER];
        let attr = self.of(body, false)?;
        if attr.flags & SAMPLE_ID_ALL == 0 || attr.sample_type & wanted == 0 {
            return None;
        }
        let behind = ORDER.iter().skip_while(|&&bit| bit != wanted);
        let words = behind.filter(|&&bit| attr.sample_type & bit != 0).count();
        body.get(body.len().checked_sub(8 * words)?..)?.get(..8)
    }
}

/// Takes fields off the front.
struct Fields<'a> {
    rest: &'a [u8],
    endian: Endian,
}

impl Fields<'_> {
    fn take(&mut self, size: usize) -> Option<u64> {
        let (bytes, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(self.endian.uint(bytes))
    }

    fn word(&mut self) -> Option<u64> {
        self.take(8)
    }

    fn half(&mut self) -> Option<u64> {
        self.take(4)
    }

    fn words(&mut self, count: u64) -> Option<()> {
        let bytes = usize::try_from(count).ok()?.checked_mul(8)?;
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }

    fn task(&mut self) -> Option<(Pid, Pid)> {
        Some((Pid(self.half()? as i32), Pid(self.half()? as i32)))
    }

    /// Skips the counts that a sample may contain.
    fn read(&mut self, format: u64) -> Option<()> {
        const TIMES: u64 = 1 | 2;
        const PER_COUNT: u64 = 4 | 16;
        const GROUP: u64 = 8;
        let times = u64::from((format & TIMES).count_ones());
        let each = 1 + u64::from((format & PER_COUNT).count_ones());
        let counts = if format & GROUP != 0 { self.word()? } else { 1 };
        self.words(times.checked_add(counts.checked_mul(each)?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attr(sample_type: u64, read_format: u64) -> Vec<u8> {
        let mut attr = vec![0; 24];
        for word in [sample_type, read_format, SAMPLE_ID_ALL] {
            attr.extend_from_slice(&word.to_le_bytes());
        }
        attr
    }

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn fields_stand_in_the_order_of_the_format() {
        let mut attrs = Attrs::new(Endian::Little);
        let all = bit::IDENTIFIER | bit::IP | bit::TID | bit::TIME | bit::CPU | bit::PERIOD | bit::RAW;
        attrs.add(&attr(all, 0), &words(&[77]));
        attrs.add(&attr(all | bit::READ | bit::CALLCHAIN, 4 | 8), &words(&[78]));
        let expected = Sample {
            task: Some((Pid(5), Pid(7))),
            time: Some(Time(1000)),
            cpu: Some(CpuId(3)),
            raw: Some(&[1, 2, 3, 4]),
        };
        let raw = 4u64 | 0x0403_0201 << 32;
        let short = words(&[77, 1, 7 << 32 | 5, 1000, 3, 1, raw]);
        assert_eq!(attrs.sample(&short), Some(expected));
        let long = words(&[78, 1, 7 << 32 | 5, 1000, 3, 1, 2, 10, 78, 11, 79, 1, 0xff, raw]);
        assert_eq!(attrs.sample(&long), Some(expected));
        for cut in 0..short.len() {
            assert_eq!(attrs.sample(&short[..cut]), None, "cut at {cut}");
        }
    }

    #[test]
    fn other_records_end_with_time_and_cpu() {
        let little = words(&[1, 2, 7 << 32 | 5, 1000, 9 << 32 | 3, 77]);
        let big = [1, 2, 5 << 32 | 7, 1000, 3 << 32 | 9, 77].map(u64::to_be_bytes).concat();
        for (endian, body) in [(Endian::Little, little), (Endian::Big, big)] {
            let mut attrs = Attrs::new(endian);
            let sample_type = bit::IDENTIFIER | bit::TID | bit::TIME | bit::CPU;
            attrs.all.push(Attr { sample_type, flags: SAMPLE_ID_ALL, ..Attr::default() });
            assert_eq!((attrs.time(&body), attrs.cpu(&body)), (Some(Time(1000)), Some(CpuId(3))));
            assert_eq!(attrs.time(&[0; 9]), None);
        }
    }

    #[test]
    fn a_sample_reads_the_same_at_once_and_field_by_field() {
        let fields = [0, 1, 2, 3, 6, 7, 8, 9, 10, 16].map(|bit| 1u64 << bit);
        for endian in [Endian::Little, Endian::Big] {
            let attrs = Attrs::new(endian);
            for set in 0..1u32 << fields.len() {
                let chosen = fields.iter().enumerate().filter(|(n, _)| set >> n & 1 != 0);
                let sample_type = chosen.fold(0, |all, (_, bit)| all | bit);
                let attr = Attr { sample_type, ..Attr::default() };
                let places = Places::of(sample_type).unwrap();
                for len in [0, 3, 8, 12, 27, 40, 76, 90] {
                    let body: Vec<u8> =
                        (0..len).map(|n| if n % 4 == 3 { 0 } else { (n * 5 % 7) as u8 }).collect();
                    let slow = attrs.sample_by_field(&body, &attr);
                    assert_eq!(places.sample(&body, endian), slow, "{sample_type:#x}, {len} bytes");
                }
            }
        }
        assert_eq!(Places::of(bit::RAW | bit::CALLCHAIN), None);
    }
}
