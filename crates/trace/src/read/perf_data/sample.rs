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
}

/// The attributes of all events, and which event has which.
#[derive(Clone, Debug)]
pub(super) struct Attrs {
    pub endian: Endian,
    all: Vec<Attr>,
    by_id: HashMap<u64, usize>,
    /// Some event has others than the first.
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
        let attr = Attr { sample_type: word(24), read_format: word(32), flags: word(40) };
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
    fn of(&self, body: &[u8], sample: bool) -> Option<Attr> {
        let first = *self.all.first()?;
        if !self.differ || first.sample_type & bit::IDENTIFIER == 0 {
            return Some(first);
        }
        let offset = if sample { 0 } else { body.len().checked_sub(8)? };
        let id = self.endian.uint_at(body, offset, 8)?;
        Some(self.by_id.get(&id).map_or(first, |&i| self.all[i]))
    }

    /// Reads a sample. `None` if it is too short.
    pub fn sample<'a>(&self, body: &'a [u8]) -> Option<Sample<'a>> {
        let attr = self.of(body, true)?;
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
            attrs.all.push(Attr { sample_type, read_format: 0, flags: SAMPLE_ID_ALL });
            assert_eq!((attrs.time(&body), attrs.cpu(&body)), (Some(Time(1000)), Some(CpuId(3))));
            assert_eq!(attrs.time(&[0; 9]), None);
        }
    }
}
