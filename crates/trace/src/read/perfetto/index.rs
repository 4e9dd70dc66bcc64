//! Where each CPU's bundles are in a Perfetto trace, and the names of tasks.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Seek};

use schedlab_topology::CpuId;
use schedlab_units::Pid;

use super::pieces::Pieces;
use super::{Cpu, Location, Packed};
use crate::comm::Comm;
use crate::perfetto::{bundle, packet};
use crate::proto::{Decoder, varint};
use crate::read::names::Names;
use crate::read::{Error, Gap, Place, Record};

/// No recorder writes a larger packet, compressed or not.
const PACKET_MAX: u64 = 1 << 28;

/// A packet's tag and its length take at most this many bytes.
const HEAD_MAX: u64 = 11;

/// What the first reading collects.
#[derive(Default)]
pub(super) struct Index {
    pub cpus: BTreeMap<CpuId, Cpu>,
    pub names: Names,
    pub gaps: VecDeque<Record>,
}

impl Index {
    /// Reads through the file.
    pub fn of<R: Read + Seek>(input: &mut Pieces<R>) -> Result<Index, Error> {
        let mut index = Index::default();
        let (mut at, end) = (0, input.len());
        while at < end {
            match next_packet(input.bytes(at, HEAD_MAX)?, end - at) {
                Some((head, len)) => {
                    index.packet(input.bytes(at + head, len)?, None, at + head);
                    at += head + len;
                }
                None if at == 0 => {
                    let why = "this is not a Perfetto trace: it does not begin with a packet".to_owned();
                    return Err(Error::Format { at: Place::Byte(0), why });
                }
                None => {
                    index.gap(at, "the next bytes are not a packet; the file was cut short or is damaged");
                    break;
                }
            }
        }
        Ok(index)
    }

    fn gap(&mut self, at: u64, why: &str) {
        self.gaps.push_back(Record::Gap(Gap { at: Some(Place::Byte(at)), why: why.to_owned() }));
    }

    /// Records the content of a packet.
    fn packet(&mut self, bytes: &[u8], packed: Option<Packed>, offset: u64) {
        let mut fields = Decoder::new(bytes);
        for (field, wire) in fields.by_ref() {
            let content = wire.bytes();
            let inside = || offset + place(bytes, content);
            match field {
                packet::FTRACE_EVENTS => {
                    let cpu = Decoder::new(content).find(|(field, _)| *field == bundle::CPU);
                    let cpu = cpu.map_or(0, |(_, cpu)| cpu.uint());
                    match u16::try_from(cpu) {
                        Ok(cpu) => {
                            let location = Location { packed, offset: inside(), len: content.len() as u64 };
                            self.cpus.entry(CpuId(cpu)).or_default().bundles.push_back(location);
                        }
                        Err(_) => self.gap(offset, "a bundle's CPU has a number over 65535"),
                    }
                }
                packet::PROCESS_TREE => self.process_tree(content),
                packet::COMPRESSED_PACKETS | packet::ZSTD_COMPRESSED_PACKETS if packed.is_none() => {
                    let zstd = field == packet::ZSTD_COMPRESSED_PACKETS;
                    self.packed(content, Packed { offset: inside(), len: content.len() as u64, zstd });
                }
                _ => {}
            }
        }
        if fields.failed() {
            self.gap(offset, "a packet ends in the middle of a field");
        }
    }

    /// Records the content of a compressed run of packets.
    fn packed(&mut self, bytes: &[u8], packed: Packed) {
        match unpack(bytes, packed.zstd) {
            Ok(unpacked) => {
                for (field, wire) in Decoder::new(&unpacked) {
                    let content = wire.bytes();
                    if field == 1 {
                        let offset = place(&unpacked, content);
                        self.packet(content, Some(packed), offset);
                    }
                }
            }
            Err(error) => self.gap(packed.offset, &format!("compressed packets are damaged: {error}")),
        }
    }

    fn process_tree(&mut self, bytes: &[u8]) {
        for (field, wire) in Decoder::new(bytes) {
            let (mut tid, mut tgid, mut name) = (None, None, None);
            for (inner, value) in Decoder::new(wire.bytes()) {
                match (field, inner) {
                    (1 | 2, 1) => tid = Some(Pid(value.uint() as i32)),
                    (2, 3) => tgid = Some(Pid(value.uint() as i32)),
                    (1, 3) if name.is_none() => name = Some(base_name(value.bytes())),
                    (2, 2) => name = Some(value.bytes()),
                    _ => {}
                }
            }
            let Some(tid) = tid else { continue };
            let task = self.names.task(tid);
            task.tgid = if field == 1 { Some(tid) } else { tgid.or(task.tgid) };
            if let Some(name) = name {
                task.comm = Comm::new(name);
            }
        }
    }
}

/// Where a part of some bytes begins in them.
fn place(whole: &[u8], part: &[u8]) -> u64 {
    // A field that contains a number instead of bytes has an empty part from elsewhere.
    (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize).min(whole.len()) as u64
}

/// The last part of a path.
fn base_name(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or(path)
}

/// The length of the next packet's head and body, or `None` if there is no valid packet.
fn next_packet(bytes: &[u8], left: u64) -> Option<(u64, u64)> {
    let (b'\x0a', mut rest) = bytes.split_first()? else { return None };
    let body = varint(&mut rest)?;
    let head = (bytes.len() - rest.len()) as u64;
    (body <= PACKET_MAX && head + body <= left).then_some((head, body))
}

/// Decompresses a run of packets.
pub(super) fn unpack(bytes: &[u8], zstd: bool) -> std::io::Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    if zstd {
        zstd::Decoder::new(bytes)?.take(PACKET_MAX).read_to_end(&mut unpacked)?;
    } else {
        flate2::read::ZlibDecoder::new(bytes).take(PACKET_MAX).read_to_end(&mut unpacked)?;
    }
    Ok(unpacked)
}
