//! The events of one bundle.

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use crate::args::parse_mark;
use crate::comm::Comm;
use crate::event::{Event, Kind};
use crate::fields::Value;
use crate::flags::Flags;
use crate::perfetto::{LOSSY_PAYLOADS, PAYLOADS, Payload, bundle, event as ftrace_event};
use crate::proto::{Decoder, Wire};
use crate::read::merge::Queue;
use crate::read::{Gap, Lost, Place, Record};
use crate::state::TaskState;

/// An event whose current task is not filled in yet.
enum Partial {
    Whole(Event),
    Switch { prev_state: TaskState, next_comm: Comm, next_pid: Pid, next_prio: i32 },
    Waking { kind: Kind, flags: Flags },
}

/// The task that runs on a CPU: pid, name, priority.
pub(super) type Current = Option<(Pid, Comm, i32)>;

/// Decodes a bundle into a CPU's records.
pub(super) fn decode(bytes: &[u8], id: CpuId, offset: u64, current: &mut Current, records: &mut Queue) {
    let mut partials: Vec<(Time, Partial)> = Vec::new();
    let mut lost = false;
    let mut bad = 0;
    let mut fields = Decoder::new(bytes);
    for (field, wire) in fields.by_ref() {
        match field {
            bundle::EVENT => match whole(wire.bytes(), id) {
                Ok(Some(event)) => partials.push((event.time, Partial::Whole(event))),
                Ok(None) => {}
                Err(()) => bad += 1,
            },
            bundle::LOST_EVENTS => lost = wire.uint() != 0,
            bundle::COMPACT_SCHED => bad += compact(wire.bytes(), &mut partials),
            _ => {}
        }
    }
    bad += usize::from(fields.failed());
    partials.sort_by_key(|(time, _)| *time);
    let start = partials.first().map_or(Time::ZERO, |(time, _)| *time);
    if lost {
        *current = None;
        records.push_back((start, Record::Lost(Lost { cpu: Some(id), count: None, after: None })));
    }
    let gap = |why: String| Record::Gap(Gap { at: Some(Place::Byte(offset)), why });
    if bad > 0 {
        records.push_back((start, gap(format!("{bad} events of CPU {id} make no sense"))));
    }
    let mut unknown = 0;
    for (time, partial) in partials {
        match complete(time, partial, id, current) {
            Some(event) => records.push_back((time, Record::Event(event))),
            None => unknown += 1,
        }
    }
    if unknown > 0 {
        let why = format!("{unknown} events of CPU {id} before its first switch do not show which task ran");
        records.push_front((start, gap(why)));
    }
}

/// Sets the current task. `None` if it is not known.
fn complete(time: Time, partial: Partial, cpu: CpuId, current: &mut Current) -> Option<Event> {
    let event = |pid, comm, flags, kind| Event { time, cpu, pid, tgid: None, comm, flags, kind };
    match partial {
        Partial::Whole(event) => {
            if let Kind::SchedSwitch { next_comm, next_pid, next_prio, .. } = event.kind {
                *current = Some((next_pid, next_comm, next_prio));
            }
            Some(event)
        }
        Partial::Switch { prev_state, next_comm, next_pid, next_prio } => {
            let before = current.replace((next_pid, next_comm, next_prio));
            let (prev_pid, prev_comm, prev_prio) = before?;
            let kind = Kind::SchedSwitch {
                prev_comm,
                prev_pid,
                prev_prio,
                prev_state,
                next_comm,
                next_pid,
                next_prio,
            };
            Some(event(prev_pid, prev_comm, Flags::UNKNOWN, kind))
        }
        Partial::Waking { kind, flags } => {
            let (pid, comm, _) = (*current)?;
            Some(event(pid, comm, flags, kind))
        }
    }
}

/// Decodes one event. `None` for an unknown payload.
fn whole(bytes: &[u8], cpu: CpuId) -> Result<Option<Event>, ()> {
    let (mut time, mut pid, mut flags, mut kind) = (None, Pid::IDLE, Flags::UNKNOWN, None);
    let mut fields = Decoder::new(bytes);
    for (field, wire) in fields.by_ref() {
        match field {
            ftrace_event::TIMESTAMP => time = Some(Time(wire.uint())),
            ftrace_event::PID => pid = Pid(wire.uint() as i32),
            ftrace_event::COMMON_FLAGS => flags = Flags::from_record(wire.uint() as u8, 0),
            ftrace_event::PRINT => kind = Some(print(wire.bytes())),
            ftrace_event::GENERIC => kind = Some(generic(wire.bytes()).ok_or(())?),
            number => {
                let mut payloads = PAYLOADS.iter().chain(LOSSY_PAYLOADS);
                if let Some(payload) = payloads.find(|payload| payload.number == number) {
                    kind = Some(known(payload, wire.bytes()).ok_or(())?);
                }
            }
        }
    }
    let (Some(time), false) = (time, fields.failed()) else { return Err(()) };
    Ok(kind.map(|kind| Event { time, cpu, pid, tgid: None, comm: Comm::default(), flags, kind }))
}

/// Text that a program wrote to the trace marker.
fn print(bytes: &[u8]) -> Kind {
    let text = Decoder::new(bytes).find(|(field, _)| *field == ftrace_event::PRINT_BUF);
    let text = String::from_utf8_lossy(text.map_or(b"", |(_, wire)| wire.bytes()));
    parse_mark(text.trim_end_matches('\n'))
}

fn value(wire: Wire<'_>) -> Value<'_> {
    match wire {
        Wire::Bytes(text) => Value::Text(text.into()),
        wire => Value::Uint(wire.uint()),
    }
}

/// Numbers of a payload's fields are below this.
const FIELDS_MAX: usize = 16;

/// A payload with a table row. A missing field has its default, 0 or empty text.
fn known(payload: &Payload, bytes: &[u8]) -> Option<Kind> {
    let mut found = [Wire::Varint(0); FIELDS_MAX];
    let mut read = 0u32;
    for (number, wire) in Decoder::new(bytes) {
        let place = number as usize;
        // The first of several counts.
        if place < FIELDS_MAX && read & 1 << place == 0 {
            (found[place], read) = (wire, read | 1 << place);
        }
    }
    // Fields are asked for in their order.
    let mut rows = payload.fields.iter();
    Kind::from_fields(payload.name, |name| {
        let is = |row: &&(&str, u32)| row.0 == name;
        let (_, number) = rows.next().filter(is).or_else(|| payload.fields.iter().find(is))?;
        found.get(*number as usize).map(|wire| value(*wire))
    })
}

/// An event that contains its name and its fields' names.
fn generic(bytes: &[u8]) -> Option<Kind> {
    let mut name = "generic".into();
    let mut fields: Vec<(String, Wire<'_>)> = Vec::new();
    for (number, wire) in Decoder::new(bytes) {
        match number {
            ftrace_event::GENERIC_NAME => name = String::from_utf8_lossy(wire.bytes()),
            ftrace_event::GENERIC_FIELD => {
                let (mut key, mut value) = (String::new(), Wire::Varint(0));
                for (number, wire) in Decoder::new(wire.bytes()) {
                    match number {
                        1 => key = String::from_utf8_lossy(wire.bytes()).into_owned(),
                        _ => value = wire,
                    }
                }
                fields.push((key, value));
            }
            _ => {}
        }
    }
    let known = Kind::from_fields(&name, |name| {
        let found = fields.iter().find(|(key, _)| key == name)?.1;
        Some(value(found))
    });
    known.or_else(|| {
        let text: Vec<String> = fields
            .iter()
            .map(|(key, wire)| match value(*wire) {
                Value::Text(text) => format!("{key}={}", String::from_utf8_lossy(&text)),
                value => format!("{key}={}", value.int().unwrap_or(0)),
            })
            .collect();
        Some(Kind::Unknown(crate::Unknown::new(&name, &text.join(" "))))
    })
}

/// Decodes a compact bundle's columns. Returns the number of incomplete entries.
fn compact(bytes: &[u8], partials: &mut Vec<(Time, Partial)>) -> usize {
    const COLUMNS: usize = 13;
    let mut names: Vec<Comm> = Vec::new();
    let mut columns: [Vec<u64>; COLUMNS] = Default::default();
    for (field, wire) in Decoder::new(bytes) {
        match field {
            5 => names.push(Comm::new(wire.bytes())),
            field if (field as usize) < COLUMNS => columns[field as usize].extend(wire.numbers()),
            _ => {}
        }
    }
    let mut bad = 0;
    let at = |column: usize, i: usize| columns[column].get(i).copied();
    let comm = |column, i| names.get(usize::try_from(at(column, i)?).ok()?).copied();
    let mut time = 0u64;
    for (i, delta) in columns[1].iter().enumerate() {
        time = time.wrapping_add(*delta);
        let switch = || {
            Some(Partial::Switch {
                prev_state: TaskState::from_bits(at(2, i)?),
                next_pid: Pid(at(3, i)? as i32),
                next_prio: at(4, i)? as i32,
                next_comm: comm(6, i)?,
            })
        };
        match switch() {
            Some(switch) => partials.push((Time(time), switch)),
            None => bad += 1,
        }
    }
    time = 0;
    for (i, delta) in columns[7].iter().enumerate() {
        time = time.wrapping_add(*delta);
        let waking = || {
            let kind = Kind::SchedWaking {
                comm: comm(11, i)?,
                pid: Pid(at(8, i)? as i32),
                prio: at(10, i)? as i32,
                target_cpu: CpuId(at(9, i)?.try_into().ok()?),
            };
            let flags = at(12, i).map_or(Flags::UNKNOWN, |flags| Flags::from_record(flags as u8, 0));
            Some(Partial::Waking { kind, flags })
        };
        match waking() {
            Some(waking) => partials.push((Time(time), waking)),
            None => bad += 1,
        }
    }
    bad
}
