//! The events of one bundle.

use std::borrow::Cow;

use schedlab_topology::CpuId;
use schedlab_units::{Pid, Time};

use super::quick::quick;

use crate::args::parse_mark;
use crate::comm::Comm;
use crate::event::{Event, Kind};
use crate::fields::{Value, lossy};
use crate::flags::Flags;
use crate::perfetto::{Payload, bundle, event as ftrace_event};
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

/// Decodes a bundle into a CPU's records, of which there are none yet.
pub(super) fn decode(bytes: &[u8], id: CpuId, offset: u64, current: &mut Current, records: &mut Queue) {
    // Whole events in their order become records at once. Others wait until their order is known.
    let mut partials: Vec<(Time, Partial)> = Vec::new();
    let (mut at_once, mut newest, mut switched) = (true, Time::ZERO, None);
    let mut lost = false;
    let mut bad = 0;
    let mut fields = Decoder::new(bytes);
    for (field, wire) in fields.by_ref() {
        match field {
            bundle::EVENT => match whole(wire.bytes(), id) {
                Ok(Some(event)) if at_once && event.time >= newest => {
                    newest = event.time;
                    if let Some(next) = next_of(&event) {
                        switched = Some(next);
                    }
                    records.push_back((event.time, Record::Event(event)));
                }
                Ok(Some(event)) => {
                    at_once = false;
                    partials.push((event.time, Partial::Whole(event)));
                }
                Ok(None) => {}
                Err(()) => bad += 1,
            },
            bundle::LOST_EVENTS => lost = wire.uint() != 0,
            bundle::COMPACT_SCHED => {
                at_once = false;
                bad += compact(wire.bytes(), &mut partials);
            }
            _ => {}
        }
    }
    bad += usize::from(fields.failed());
    if lost {
        *current = None;
    }
    if at_once {
        *current = switched.or(*current);
        let start = records.front().map_or(Time::ZERO, |(time, _)| *time);
        for record in remarks(id, offset, lost, bad).into_iter().rev() {
            records.push_front((start, record));
        }
    } else {
        // Those that came first stay first at their time.
        let first = records.drain(..).filter_map(|(time, record)| match record {
            Record::Event(event) => Some((time, Partial::Whole(event))),
            _ => None,
        });
        partials.splice(..0, first);
        in_order(partials, id, offset, remarks(id, offset, lost, bad), current, records);
    }
}

/// What is to be said about a bundle before its events.
fn remarks(id: CpuId, offset: u64, lost: bool, bad: usize) -> Vec<Record> {
    let lost = lost.then_some(Record::Lost(Lost { cpu: Some(id), count: None, after: None }));
    let why = || format!("{bad} events of CPU {id} make no sense");
    let bad = (bad > 0).then(|| Record::Gap(Gap { at: Some(Place::Byte(offset)), why: why() }));
    lost.into_iter().chain(bad).collect()
}

/// Sorts the events of a bundle and fills in their tasks.
fn in_order(
    mut partials: Vec<(Time, Partial)>,
    id: CpuId,
    offset: u64,
    remarks: Vec<Record>,
    current: &mut Current,
    records: &mut Queue,
) {
    partials.sort_by_key(|(time, _)| *time);
    let start = partials.first().map_or(Time::ZERO, |(time, _)| *time);
    records.extend(remarks.into_iter().map(|record| (start, record)));
    let mut unknown = 0;
    for (time, partial) in partials {
        match complete(time, partial, id, current) {
            Some(event) => records.push_back((time, Record::Event(event))),
            None => unknown += 1,
        }
    }
    if unknown > 0 {
        let why = format!("{unknown} events of CPU {id} before its first switch do not show which task ran");
        records.push_front((start, Record::Gap(Gap { at: Some(Place::Byte(offset)), why })));
    }
}

/// The task that runs from an event on, if it is a switch.
#[inline]
fn next_of(event: &Event) -> Option<(Pid, Comm, i32)> {
    match event.kind {
        Kind::SchedSwitch { next_comm, next_pid, next_prio, .. } => Some((next_pid, next_comm, next_prio)),
        _ => None,
    }
}

/// Sets the current task. `None` if it is not known.
fn complete(time: Time, partial: Partial, cpu: CpuId, current: &mut Current) -> Option<Event> {
    let event = |pid, comm, flags, kind| Event { time, cpu, pid, tgid: None, comm, flags, kind };
    match partial {
        Partial::Whole(event) => {
            *current = next_of(&event).or(*current);
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
                if let Some(payload) = Payload::numbered(number) {
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
const FIELDS_MAX: usize = 8;

/// The fields of a payload by their numbers. A missing one has its default, 0.
pub(super) type Found<'a> = [Wire<'a>; FIELDS_MAX];

/// A payload with a table row. A missing field has its default, 0 or empty text.
#[inline]
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
    quick(payload.number, &found).or_else(|| by_name(payload, &found))
}

/// The same for any payload of the table.
pub(super) fn by_name(payload: &Payload, found: &Found<'_>) -> Option<Kind> {
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
    let mut fields: Vec<(Cow<'_, str>, Wire<'_>)> = Vec::with_capacity(FIELDS_MAX);
    for (number, wire) in Decoder::new(bytes) {
        match number {
            ftrace_event::GENERIC_NAME => name = lossy(wire.bytes()),
            ftrace_event::GENERIC_FIELD => {
                let (mut key, mut value) = (Cow::Borrowed(""), Wire::Varint(0));
                for (number, wire) in Decoder::new(wire.bytes()) {
                    match number {
                        1 => key = lossy(wire.bytes()),
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
