//! From a record's bytes to an event.

use std::borrow::Cow;

use schedlab_units::Pid;

use super::format::{FieldFormat, FieldKind, Format, States};
use super::quick::Quick;
use super::symbols::Symbols;
use super::{Endian, until_nul};
use crate::args::parse_mark;
use crate::event::Kind;
use crate::fields::Value;
use crate::flags::Flags;
use crate::unknown::Unknown;

/// The formats of a file's events, and the names of addresses in them.
#[derive(Clone, Debug)]
pub(crate) struct Formats {
    endian: Endian,
    by_id: Vec<Option<Box<Entry>>>,
    pub symbols: Symbols,
    /// Whether [`Formats::leaves_out`] decisions.
    pub without_decisions: bool,
}

/// An event's format, and everything that is the same in all its records, of which there may be millions.
#[derive(Clone, Debug)]
struct Entry {
    format: Format,
    states: States,
    /// Offset and size of flags, preemption count and task.
    common: [(usize, usize); 3],
    /// Whether they are where every kernel has them.
    usual: bool,
    sort: Sort,
    quick: Option<Quick>,
    /// Whether it explains a decision.
    is_decision: bool,
    /// How the fields of the vocabulary are answered, in the order in which they are requested.
    answers: Vec<Answer>,
}

/// What an event's records become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    /// Text that programs print.
    Print,
    /// A single text that our writer made.
    Text,
    /// An event of the vocabulary.
    Known,
    /// Another event.
    Unknown,
}

/// How a field of the vocabulary is answered.
#[derive(Clone, Debug)]
struct Answer {
    field: String,
    from: Option<FieldFormat>,
    /// It is a task's state, or the address of a function.
    state: bool,
    function: bool,
}

/// Events that explain decisions ([`Kind::is_decision`]).
const DECISIONS: [&str; 5] =
    ["schedlab_placement", "schedlab_balance", "schedlab_newidle", "schedlab_preemption", "schedlab_pick"];

impl Entry {
    fn new(format: Format, endian: Endian) -> Entry {
        let common = |name: &str, offset: usize, size: usize| {
            format.field(name).map_or((offset, size), |field| (field.offset, field.size))
        };
        let common =
            [common("common_flags", 2, 1), common("common_preempt_count", 3, 1), common("common_pid", 4, 4)];
        let mut own = own_fields(&format);
        let sort = match (own.next(), own.next()) {
            _ if format.name == "print" => Sort::Print,
            (Some(field), None) if field.name == "text" => Sort::Text,
            _ if Kind::is_known(&format.name) => Sort::Known,
            _ => Sort::Unknown,
        };
        drop(own);
        let quick = Quick::of(&format, endian);
        let is_decision = sort == Sort::Text && DECISIONS.contains(&format.name.as_str());
        let usual = endian == Endian::Little && common == [(2, 1), (3, 1), (4, 4)];
        Entry {
            states: format.states(),
            common,
            usual,
            sort,
            quick,
            is_decision,
            answers: Vec::new(),
            format,
        }
    }
}

impl Answer {
    fn of(format: &Format, field: &str) -> Answer {
        let renamed = NAMES.iter().find(|(event, ours, _)| *event == format.name && *ours == field);
        let renamed = renamed.and_then(|(_, _, kernels)| format.field(kernels));
        Answer {
            field: field.to_owned(),
            from: renamed.or_else(|| format.field(field)).cloned(),
            state: field == "prev_state",
            function: matches!(field, "function" | "callsite" | "callback" | "fun"),
        }
    }
}

/// The event's own fields.
fn own_fields(format: &Format) -> impl Iterator<Item = &FieldFormat> {
    format.fields.iter().filter(|field| !field.name.starts_with("common_"))
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decoded {
    pub pid: Pid,
    pub flags: Flags,
    pub kind: Kind,
}

/// Fields whose printed name in the vocabulary differs from their name in the record.
const NAMES: &[(&str, &str, &str)] = &[
    ("sched_process_fork", "comm", "parent_comm"),
    ("sched_process_fork", "pid", "parent_pid"),
    ("cpu_idle", "cpu", "cpu_id"),
    ("cpu_frequency", "cpu", "cpu_id"),
    ("irq_handler_exit", "handled", "ret"),
    ("ipi_raise", "target_mask", "target_cpus"),
];

impl Formats {
    /// Creates an empty table of formats.
    pub fn new(endian: Endian) -> Formats {
        Formats { endian, by_id: Vec::new(), symbols: Symbols::default(), without_decisions: false }
    }

    /// Adds an event's format; returns false if the text is not a format.
    pub fn add(&mut self, text: &str) -> bool {
        let Some(format) = Format::parse(text) else { return false };
        let id = usize::from(format.id);
        if self.by_id.len() <= id {
            self.by_id.resize(id + 1, None);
        }
        self.by_id[id] = Some(Box::new(Entry::new(format, self.endian)));
        true
    }

    /// Whether a record is one that was not requested.
    #[inline]
    pub fn leaves_out(&self, record: &[u8]) -> bool {
        self.without_decisions
            && self.endian.uint_at(record, 0, 2).is_some_and(
                |id| matches!(self.by_id.get(id as usize), Some(Some(entry)) if entry.is_decision),
            )
    }

    /// Reads a record. An error describes what is wrong with it.
    pub fn decode(&mut self, record: &[u8]) -> Result<Decoded, String> {
        self.read(record, true)
    }

    /// The same without [`Quick`], for its tests.
    #[cfg(test)]
    pub fn decode_field_by_field(&mut self, record: &[u8]) -> Result<Decoded, String> {
        self.read(record, false)
    }

    #[inline]
    fn read(&mut self, record: &[u8], at_once: bool) -> Result<Decoded, String> {
        let common =
            |(offset, size)| self.endian.uint_at(record, offset, size).ok_or("a record is too short");
        let id = common((0, 2))? as u16;
        let Some(Some(entry)) = self.by_id.get_mut(usize::from(id)) else {
            return Err(format!("no format for event {id}"));
        };
        let Entry { format, states, common: places, usual, sort, quick, answers, .. } = &mut **entry;
        let (flags, preempt_count, pid) = match record.first_chunk() {
            Some(&[_, _, flags, preempt_count, a, b, c, d]) if *usual => {
                (flags, preempt_count, i32::from_le_bytes([a, b, c, d]))
            }
            _ => {
                let [flags, preempt_count, pid] = *places;
                (common(flags)? as u8, common(preempt_count)? as u8, common(pid)? as i32)
            }
        };
        let flags = Flags::from_record(flags, preempt_count);
        let quick = quick.as_ref().filter(|_| at_once);
        if let Some(kind) = quick.and_then(|quick| quick.read(record, states)) {
            return Ok(Decoded { pid: Pid(pid), flags, kind });
        }
        let mut reader = Reader { endian: self.endian, record, states, symbols: &mut self.symbols };
        let kind = match sort {
            Sort::Print => reader.print(format),
            Sort::Text => reader.one_text(format),
            Sort::Known => reader.known(format, answers),
            Sort::Unknown => Some(Kind::Unknown(Unknown::new(&format.name, &reader.text(format)))),
        };
        let kind = kind.ok_or_else(|| format!("the fields of {} are not whole", format.name))?;
        Ok(Decoded { pid: Pid(pid), flags, kind })
    }
}

/// Reads the fields of one record.
struct Reader<'a> {
    endian: Endian,
    record: &'a [u8],
    states: &'a States,
    symbols: &'a mut Symbols,
}

impl<'a> Reader<'a> {
    fn print(&mut self, format: &Format) -> Option<Kind> {
        let text = self.value(format.field("buf")?)?;
        Some(parse_mark(text.str()?.trim_end_matches('\n')))
    }

    fn one_text(&mut self, format: &Format) -> Option<Kind> {
        let text = self.value(own_fields(format).next()?)?;
        let name = format.name.as_bytes();
        if let Value::Text(text) = &text
            && let Some(annotation) = crate::args::parse_annotation(name, text)
        {
            return annotation;
        }
        crate::args::parse(name, text.str()?.as_bytes())
    }

    fn known(&mut self, format: &Format, answers: &mut Vec<Answer>) -> Option<Kind> {
        let mut asked = 0;
        Kind::from_fields(&format.name, |field| {
            // All records request the same fields in the same order as the first one.
            if answers.get(asked).is_none_or(|answer| answer.field != field) {
                answers.truncate(asked);
                answers.push(Answer::of(format, field));
            }
            let answer = &answers[asked];
            asked += 1;
            match self.value(answer.from.as_ref()?)? {
                Value::Int(bits) if answer.state => Some(Value::State(self.states.state(bits as u64))),
                Value::Uint(address) if answer.function => {
                    Some(Value::Text(Cow::Owned(self.symbols.function(address).into_bytes())))
                }
                value => Some(value),
            }
        })
    }

    /// The fields of an event without a kind of its own, as probes print them.
    fn text(&mut self, format: &Format) -> String {
        let shown = own_fields(format).map(|field| match (self.value(field), field.kind) {
            (Some(Value::Uint(address)), FieldKind::Pointer { .. }) => format!("{}={address:#x}", field.name),
            (Some(Value::Text(text)), _) => format!("{}={}", field.name, String::from_utf8_lossy(&text)),
            (Some(value), _) => format!("{}={value}", field.name),
            (None, _) => format!("{}=?", field.name),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// The value of a field.
    fn value(&mut self, field: &FieldFormat) -> Option<Value<'a>> {
        let end = if field.size == 0 { self.record.len() } else { field.offset.checked_add(field.size)? };
        let bytes = self.record.get(field.offset..end)?;
        Some(match field.kind {
            FieldKind::Int => Value::Int(self.endian.int(bytes)),
            FieldKind::Uint | FieldKind::Pointer { text: false } => Value::Uint(self.endian.uint(bytes)),
            FieldKind::Pointer { text: true } => {
                Value::Text(Cow::Owned(self.symbols.string(self.endian.uint(bytes)).into_bytes()))
            }
            FieldKind::Chars => Value::Text(Cow::Borrowed(until_nul(bytes))),
            FieldKind::Numbers { size } => {
                let numbers: Vec<String> =
                    bytes.chunks(size).map(|bytes| format!("{:#x}", self.endian.uint(bytes))).collect();
                Value::Text(Cow::Owned(numbers.join(",").into_bytes()))
            }
            FieldKind::Elsewhere { relative, chars } => {
                let place = self.endian.uint(bytes.get(..4)?);
                let (offset, length) = ((place & 0xffff) as usize, (place >> 16) as usize);
                let start = if relative { end + offset } else { offset };
                let content = self.record.get(start..start + length)?;
                if chars {
                    Value::Text(Cow::Borrowed(until_nul(content)))
                } else {
                    Value::Text(Cow::Owned(mask(self.endian, content).into_bytes()))
                }
            }
        })
    }
}

/// A set of CPUs as the kernel prints masks: groups of 32, the highest first.
fn mask(endian: Endian, longs: &[u8]) -> String {
    let mut groups = Vec::new();
    for long in longs.chunks(8) {
        let bits = endian.uint(long);
        groups.push(bits as u32);
        if long.len() > 4 {
            groups.push((bits >> 32) as u32);
        }
    }
    groups.iter().rev().map(|group| format!("{group:08x}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the content of a record, given the format's fields as (declaration, offset, size, signed).
    fn check(name: &str, fields: &[(&str, usize, usize, u8)], tail: &[u8], expected: &str) {
        let mut text = format!("name: {name}\nID: 9\nformat:\n");
        for (declaration, offset, size, signed) in fields {
            text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        }
        let mut formats = Formats::new(Endian::Little);
        assert!(formats.add(&text));
        formats.symbols.set_kallsyms(b"ff00 T do_work\n");
        formats.symbols.set_printk(b"0xaa : \"Function call interrupts\"\n");
        let mut record = vec![9, 0, Flags::HARDIRQ, 0x12, 7, 0, 0, 0];
        record.extend_from_slice(tail);
        let shown = match formats.decode(&record) {
            Ok(decoded) => {
                let event = crate::Event {
                    time: schedlab_units::Time::ZERO,
                    cpu: schedlab_topology::CpuId(0),
                    pid: decoded.pid,
                    tgid: None,
                    comm: crate::Comm::default(),
                    flags: decoded.flags,
                    kind: decoded.kind,
                };
                let mut out = Vec::new();
                crate::args::print(&event, &mut out);
                let text = String::from_utf8(out).unwrap();
                format!("{} {} {}: {text}", event.pid, event.flags, event.kind.name())
            }
            Err(error) => error,
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn each_sort_of_field_is_read() {
        let word = |n: u32| n.to_le_bytes();
        let long = |n: u64| n.to_le_bytes();
        check(
            "cpu_idle",
            &[("u32 state", 8, 4, 0), ("u32 cpu_id", 12, 4, 0)],
            &[word(u32::MAX), word(3)].concat(),
            "7 ..h21 cpu_idle: state=4294967295 cpu_id=3",
        );
        check(
            "ipi_entry",
            &[("const char * reason", 8, 8, 0)],
            &long(0xaa),
            "7 ..h21 ipi_entry: (Function call interrupts)",
        );
        check(
            "workqueue_execute_start",
            &[("void * work", 8, 8, 0), ("void * function", 16, 8, 0)],
            &[long(0x10), long(0xff04)].concat(),
            "7 ..h21 workqueue_execute_start: work struct 0000000000000010: function do_work+0x4",
        );
        check(
            "ipi_raise",
            &[("__data_loc unsigned long[] target_cpus", 8, 4, 0), ("const char * reason", 16, 8, 0)],
            &[word(8 << 16 | 24).to_vec(), word(0).to_vec(), long(1).to_vec(), long(1 << 33 | 1).to_vec()]
                .concat(),
            "7 ..h21 ipi_raise: target_mask=00000002,00000001 (0x1)",
        );
        check(
            "sched_process_exec",
            &[("__rel_loc char[] filename", 8, 4, 1), ("pid_t pid", 12, 4, 1), ("pid_t old_pid", 16, 4, 1)],
            &[&word(4 << 16 | 8)[..], &word(7), &word(8), b"/a\0\0"].concat(),
            "7 ..h21 sched_process_exec: filename=/a pid=7 old_pid=8",
        );
        check(
            "my_probe",
            &[
                ("unsigned long __probe_ip", 8, 8, 0),
                ("s32 cpu", 16, 4, 1),
                ("u8 pair[2]", 20, 2, 0),
                ("void *p", 24, 8, 0),
            ],
            &[&long(5)[..], &word(u32::MAX), &[1, 2, 0, 0], &long(16)].concat(),
            "7 ..h21 my_probe: __probe_ip=5 cpu=-1 pair=0x1,0x2 p=0x10",
        );
        check(
            "print",
            &[("unsigned long ip", 8, 8, 0), ("char buf[]", 16, 0, 1)],
            &[&long(5)[..], b"C|7|ops|9\n\0\0"].concat(),
            "7 ..h21 tracing_mark_write: C|7|ops|9",
        );
    }

    #[test]
    fn a_record_that_is_too_short_is_an_error() {
        check(
            "cpu_idle",
            &[("u32 state", 8, 4, 0), ("u32 cpu_id", 12, 4, 0)],
            &[0; 4],
            "the fields of cpu_idle are not whole",
        );
        assert_eq!(Formats::new(Endian::Little).decode(&[1]), Err("a record is too short".to_owned()));
        assert_eq!(Formats::new(Endian::Little).decode(&[1, 0, 0]), Err("no format for event 1".to_owned()));
    }
}
