//! Perfetto traces: bundles of kernel events, plain and compact.
//!
//! A bundle contains one CPU's events in order, but the bundles of different CPUs are in the order in which the
//! recorder wrote them. So the file is read twice: first to find each CPU's bundles, then bundle by bundle, merging the
//! CPUs by time. The events of one bundle per CPU, the latest pieces of the file, the position of each bundle in it and the
//! names of tasks are kept in memory.
//!
//! A compact bundle does not contain the task that a CPU switched from: it is the one it switched to before. Before a
//! CPU's first switch it is unknown, and events that need it become a gap. Track events, which include the decisions
//! that the laboratory writes, are not read back; use trace text or JSON to keep those.

mod decode;
mod index;
mod pieces;
mod quick;

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Seek};

use schedlab_topology::CpuId;

use super::merge::{Merge, Queue};
use super::names::Names;
use super::{Error, Record};
use decode::{Current, decode};
use index::{Index, unpack};
use pieces::Pieces;

/// Reads a Perfetto trace.
pub struct Reader<R> {
    input: Pieces<R>,
    cpus: BTreeMap<CpuId, Cpu>,
    merge: Merge,
    /// Records that come before any event.
    first: VecDeque<Record>,
    names: Names,
    /// The last decompressed packets, and where they came from.
    unpacked: (Option<Packed>, Vec<u8>),
    failed: bool,
}

/// One CPU's part of the file.
#[derive(Default)]
struct Cpu {
    bundles: VecDeque<Location>,
    /// The running task, once it is known.
    current: Current,
}

/// Where a bundle is: in a packet of the file, or inside one that is compressed.
#[derive(Clone, Copy)]
struct Location {
    packed: Option<Packed>,
    /// From the beginning of the file, or of what was decompressed.
    offset: u64,
    len: u64,
}

/// A compressed run of packets.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Packed {
    offset: u64,
    len: u64,
    zstd: bool,
}

impl<R: Read + Seek> Reader<R> {
    /// Reads the file once to find everything.
    pub fn new(input: R) -> Result<Reader<R>, Error> {
        let mut input = Pieces::new(input)?;
        let Index { cpus, names, gaps } = Index::of(&mut input)?;
        let mut reader = Reader {
            input,
            cpus,
            merge: Merge::default(),
            first: gaps,
            names,
            unpacked: (None, Vec::new()),
            failed: false,
        };
        for (id, cpu) in &mut reader.cpus {
            let fill = |queue: &mut Queue| fill(&mut reader.input, &mut reader.unpacked, *id, cpu, queue);
            reader.merge.start(*id, fill)?;
        }
        Ok(reader)
    }

    fn record(&mut self) -> Result<Option<Record>, Error> {
        if let Some(record) = self.first.pop_front() {
            return Ok(Some(record));
        }
        let mut record = self.merge.pop(|id, queue| match self.cpus.get_mut(&id) {
            Some(cpu) => fill(&mut self.input, &mut self.unpacked, id, cpu, queue),
            None => Ok(()),
        })?;
        if let Some(Record::Event(event)) = &mut record {
            self.names.name(event);
        }
        Ok(record)
    }
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

/// Decodes bundles of a CPU until it has a record, or no more bundles.
fn fill<R: Read + Seek>(
    input: &mut Pieces<R>,
    unpacked: &mut (Option<Packed>, Vec<u8>),
    id: CpuId,
    cpu: &mut Cpu,
    queue: &mut Queue,
) -> Result<(), Error> {
    while queue.is_empty() {
        let Some(location) = cpu.bundles.pop_front() else { break };
        let bytes = load(input, unpacked, location)?;
        decode(bytes, id, location.offset, &mut cpu.current, queue);
    }
    Ok(())
}

/// A bundle's bytes.
fn load<'a, R: Read + Seek>(
    input: &'a mut Pieces<R>,
    unpacked: &'a mut (Option<Packed>, Vec<u8>),
    location: Location,
) -> Result<&'a [u8], Error> {
    let Some(packed) = location.packed else { return Ok(input.bytes(location.offset, location.len)?) };
    if unpacked.0 != Some(packed) {
        *unpacked = (Some(packed), unpack(input.bytes(packed.offset, packed.len)?, packed.zstd)?);
    }
    let (start, len) = (location.offset as usize, location.len as usize);
    Ok(unpacked.1.get(start..start + len).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perfetto::{bundle, event as ftrace_event, packet};
    use crate::proto::Encoder;
    use expect_test::{Expect, expect};
    use std::io::{Cursor, Write};

    fn check(file: &[u8], expected: Expect) {
        expected.assert_eq(&show(file));
    }

    fn show(file: &[u8]) -> String {
        let mut shown = String::new();
        for record in Reader::new(Cursor::new(file)).expect("a trace") {
            shown += &match record.unwrap() {
                Record::Event(event) => {
                    let mut fields = Vec::new();
                    crate::args::print(&event, &mut fields);
                    let fields = String::from_utf8(fields).unwrap();
                    let (time, cpu, name) = (event.time.0, event.cpu, event.kind.name());
                    let (comm, pid, tgid) = (event.comm, event.pid, event.tgid.map_or(-1, |pid| pid.0));
                    format!("{comm}-{pid} ({tgid}) [{cpu}] {:?} {time}: {name}: {fields}\n", event.flags)
                }
                Record::Lost(lost) => format!("{lost}\n"),
                Record::Gap(gap) => format!("{gap}\n"),
            };
        }
        shown
    }

    fn packed(out: &mut Encoder, field: u32, numbers: &[i64]) {
        let mut column = Encoder::default();
        numbers.iter().for_each(|&n| column.varint(n as u64));
        out.raw(field, column.bytes());
    }

    /// A compact bundle of two switches and two wake-ups on CPU 1.
    fn compact_bundle(packet: &mut Encoder) {
        packet.message(packet::FTRACE_EVENTS, |bundle| {
            bundle.uint(bundle::CPU, 1);
            bundle.message(bundle::COMPACT_SCHED, |compact| {
                compact.text(5, b"make");
                compact.text(5, b"swapper/1");
                packed(compact, 1, &[1000, 500]);
                packed(compact, 2, &[1, 0x100]);
                packed(compact, 3, &[7, 0]);
                packed(compact, 4, &[120, 120]);
                packed(compact, 6, &[0, 1]);
                packed(compact, 7, &[900, 300]);
                packed(compact, 8, &[7, 7]);
                packed(compact, 9, &[1, 2]);
                packed(compact, 10, &[120, -1]);
                packed(compact, 11, &[0, 0]);
                packed(compact, 12, &[1, 9]);
            });
        });
    }

    #[test]
    fn a_compact_bundle_shows_what_ran_after_its_first_switch() {
        let mut file = Encoder::default();
        file.message(1, compact_bundle);
        file.message(1, |packet| {
            packet.message(packet::PROCESS_TREE, |tree| {
                tree.message(2, |thread| {
                    thread.int(1, 7);
                    thread.int(3, 5);
                });
            });
        });
        check(
            file.bytes(),
            expect![[r#"
                byte 0x4: 2 events of CPU 1 before its first switch do not show which task ran
                make-7 (5) [1] d.h.. 1200: sched_waking: comm=make pid=7 prio=-1 target_cpu=002
                make-7 (5) [1] ????? 1500: sched_switch: prev_comm=make prev_pid=7 prev_prio=120 prev_state=R+ ==> next_comm=swapper/1 next_pid=0 next_prio=120
            "#]],
        );
    }

    #[test]
    fn compressed_packets_are_read_like_plain_ones() {
        let mut plain = Encoder::default();
        plain.message(1, compact_bundle);
        let mut deflate = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        deflate.write_all(plain.bytes()).unwrap();
        for (field, bytes) in [
            (packet::COMPRESSED_PACKETS, deflate.finish().unwrap()),
            (packet::ZSTD_COMPRESSED_PACKETS, zstd::encode_all(plain.bytes(), 1).unwrap()),
        ] {
            let mut file = Encoder::default();
            file.message(1, |packet| packet.raw(field, &bytes));
            let events = |shown: String| shown.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(events(show(file.bytes())), events(show(plain.bytes())));
            assert_eq!(events(show(file.bytes())).len(), 2);
        }
    }

    #[test]
    fn bundles_are_merged_by_time_and_losses_reported() {
        let event = |bundle: &mut Encoder, time| {
            bundle.message(bundle::EVENT, |event| {
                event.uint(ftrace_event::TIMESTAMP, time);
                event.uint(ftrace_event::PID, 7);
                event.message(13, |idle| {
                    idle.uint(1, u32::MAX.into());
                    idle.uint(2, time);
                });
            });
        };
        let mut file = Encoder::default();
        for (cpu, times) in [(0, [10, 30]), (1, [20, 40]), (0, [50, 60]), (1, [45, 70]), (0, [5, 80])] {
            file.message(1, |packet| {
                packet.message(packet::FTRACE_EVENTS, |bundle| {
                    bundle.uint(bundle::CPU, cpu);
                    times.into_iter().for_each(|time| event(bundle, time));
                    bundle.uint(bundle::LOST_EVENTS, u64::from(times[0] == 45));
                });
            });
        }
        check(
            file.bytes(),
            expect![[r#"
                -7 (-1) [0] ????? 10: cpu_idle: state=4294967295 cpu_id=10
                -7 (-1) [1] ????? 20: cpu_idle: state=4294967295 cpu_id=20
                -7 (-1) [0] ????? 30: cpu_idle: state=4294967295 cpu_id=30
                -7 (-1) [1] ????? 40: cpu_idle: state=4294967295 cpu_id=40
                an unknown number of events lost on CPU 1
                -7 (-1) [1] ????? 45: cpu_idle: state=4294967295 cpu_id=45
                -7 (-1) [0] ????? 50: cpu_idle: state=4294967295 cpu_id=50
                -7 (-1) [0] ????? 60: cpu_idle: state=4294967295 cpu_id=60
                an event of CPU 0 at 0.000000005 is older than those before it
                -7 (-1) [1] ????? 70: cpu_idle: state=4294967295 cpu_id=70
                -7 (-1) [0] ????? 80: cpu_idle: state=4294967295 cpu_id=80
            "#]],
        );
    }

    #[test]
    fn a_file_cut_short_is_read_to_the_cut() {
        let mut file = Encoder::default();
        file.message(1, |packet| packet.uint(packet::TIMESTAMP, 5));
        file.message(1, compact_bundle);
        check(
            &file.bytes()[..30],
            expect![[r#"
                byte 0x4: the next bytes are not a packet; the file was cut short or is damaged
            "#]],
        );
        let error = Reader::new(Cursor::new(b"# tracer: nop")).err().unwrap();
        assert_eq!(
            error.to_string(),
            "byte 0x0: this is not a Perfetto trace: it does not begin with a packet"
        );
    }
}
