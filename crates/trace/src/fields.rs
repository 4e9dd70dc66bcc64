//! An event's fields as names and values, for formats that store them separately.
//!
//! JSON, protobuf and binary records all contain the same fields and differ only in how they encode a value. To write,
//! each walks over [`Kind::fields`]; to read, each answers a question per field.

use std::borrow::Cow;
use std::fmt;

use schedlab_topology::{CpuId, CpuMask};
use schedlab_units::Pid;

use crate::comm::{Comm, Label};
use crate::decision::{Candidate, How, IdleType, Name, Number, Resched};
use crate::event::{Kind, Softirq};
use crate::state::TaskState;

/// The value of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number with a sign.
    Int(i64),
    /// A number without a sign.
    Uint(u64),
    /// Yes or no.
    Bool(bool),
    /// Text; a task's name may contain any bytes.
    Text(Cow<'a, [u8]>),
    /// The state in which a task left its CPU.
    State(TaskState),
    /// Numbers under their names.
    Numbers(Cow<'a, [Number]>),
    /// CPUs that a search examined.
    Candidates(Cow<'a, [Candidate]>),
    /// Tasks.
    Pids(Cow<'a, [Pid]>),
    /// CPUs.
    Cpus(Cow<'a, CpuMask>),
}

impl<'a> Value<'a> {
    /// Text other than a task's name.
    pub fn text(text: &'a str) -> Value<'a> {
        Value::Text(Cow::Borrowed(text.as_bytes()))
    }

    /// The number, also if it is given as text. A huge unsigned number is a negative one that lost its sign on the way,
    /// as 64-bit fields of binary formats do.
    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Int(n) => Some(*n),
            Value::Uint(n) => Some(*n as i64),
            Value::Bool(yes) => Some(i64::from(*yes)),
            Value::Text(text) => {
                let text = std::str::from_utf8(text).ok()?;
                text.parse().ok().or_else(|| text.parse::<u64>().ok().map(|n| n as i64))
            }
            _ => None,
        }
    }

    /// The text, with replacement marks for invalid bytes.
    pub fn str(&self) -> Option<Cow<'_, str>> {
        match self {
            Value::Text(text) => Some(lossy(text)),
            _ => None,
        }
    }
}

/// Text with replacement marks for invalid bytes. Nearly all text is valid, and checking that is faster.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// A type of fields.
pub(crate) trait Field: Sized {
    /// The value to write; `None` if there is nothing to write.
    fn value(&self) -> Option<Value<'_>>;

    /// The field for the value that was read, if there was one.
    fn from_value(value: Option<Value<'_>>) -> Option<Self>;
}

/// Fields that are numbers.
macro_rules! int_fields {
    ($($type:ty: $variant:ident, $get:expr, $make:expr;)+) => {$(
        impl Field for $type {
            fn value(&self) -> Option<Value<'_>> {
                Some(Value::$variant($get(*self).into()))
            }

            fn from_value(value: Option<Value<'_>>) -> Option<$type> {
                value?.int()?.try_into().ok().map($make)
            }
        }
    )+};
}

int_fields! {
    i16: Int, |n: i16| n, |n: i16| n;
    i32: Int, |n: i32| n, |n: i32| n;
    i64: Int, |n: i64| n, |n: i64| n;
    Pid: Int, |pid: Pid| pid.0, Pid;
    CpuId: Uint, |cpu: CpuId| cpu.0, CpuId;
    Softirq: Uint, |vec: Softirq| vec.0, Softirq;
}

impl Field for u32 {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Uint((*self).into()))
    }

    /// Accepts -1 for the largest value: the end of an idle state is written either way.
    fn from_value(value: Option<Value<'_>>) -> Option<u32> {
        let n = value?.int()?;
        n.try_into().ok().or_else(|| i32::try_from(n).ok().map(|n| n as u32))
    }
}

impl Field for u64 {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Uint(*self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<u64> {
        value?.int().map(|n| n as u64)
    }
}

impl Field for bool {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Bool(*self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<bool> {
        value?.int().map(|n| n != 0)
    }
}

/// A field that some kernels do not have.
impl<T: Field> Field for Option<T> {
    fn value(&self) -> Option<Value<'_>> {
        self.as_ref().and_then(T::value)
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Option<T>> {
        match value {
            None => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl Field for Comm {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Text(Cow::Borrowed(self.as_bytes())))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Comm> {
        match value? {
            Value::Text(text) => Some(Comm::new(&text)),
            _ => None,
        }
    }
}

impl Field for TaskState {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::State(*self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<TaskState> {
        match value? {
            Value::State(state) => Some(state),
            Value::Text(letters) => TaskState::parse(&letters),
            value => value.int().map(|bits| TaskState::from_bits(bits as u64)),
        }
    }
}

impl Field for Name {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::text(self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Name> {
        name(&value?).map(Name::Owned)
    }
}

impl Field for Box<str> {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::text(self))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Box<str>> {
        name(&value?).map(String::into_boxed_str)
    }
}

/// A name, or the address if the format has only that.
fn name(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Uint(address) => Some(format!("{address:#x}")),
        value => value.str().map(Cow::into_owned),
    }
}

impl Field for Label {
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::text(self.as_str()))
    }

    fn from_value(value: Option<Value<'_>>) -> Option<Label> {
        value?.str().map(|text| Label::new(&text))
    }
}

/// Fields that contain a word of a closed set.
macro_rules! word_fields {
    ($($type:ty)+) => {$(
        impl Field for $type {
            fn value(&self) -> Option<Value<'_>> {
                Some(Value::text(self.as_str()))
            }

            fn from_value(value: Option<Value<'_>>) -> Option<$type> {
                value?.str().and_then(|word| <$type>::parse(word.as_bytes()))
            }
        }
    )+};
}

word_fields! { How IdleType Resched }

/// Fields that are lists; an empty list is not written. A format without lists writes them as one text, as [`Value`]
/// displays it.
macro_rules! list_fields {
    ($($variant:ident: $type:ty, $parse:expr;)+) => {$(
        impl Field for $type {
            fn value(&self) -> Option<Value<'_>> {
                (!self.is_empty()).then(|| Value::$variant(Cow::Borrowed(self)))
            }

            fn from_value(value: Option<Value<'_>>) -> Option<$type> {
                match value {
                    None => Some(<$type>::default()),
                    Some(Value::$variant(items)) => Some(items.into_owned()),
                    Some(Value::Text(text)) => $parse(std::str::from_utf8(&text).ok()?),
                    Some(_) => None,
                }
            }
        }
    )+};
}

list_fields! {
    Numbers: Vec<Number>, |text| list(text, |item| {
        let (name, n) = item.split_at_checked(colon(item))?;
        Some((name.to_owned().into(), n.strip_prefix(':')?.parse().ok()?))
    });
    Candidates: Vec<Candidate>, |text| list(text, |item| {
        let (cpu, refused) = item.split_at(colon(item));
        let refused = refused.strip_prefix(':').unwrap_or("");
        Some(Candidate { cpu: CpuId(cpu.parse().ok()?), refused: refused.to_owned().into() })
    });
    Pids: Vec<Pid>, |text| list(text, |item| item.parse().ok().map(Pid));
    Cpus: CpuMask, cpus;
}

/// The items of a list in text.
fn list<T>(text: &str, item: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    // Items are short, so a search for their ends is byte by byte, and counts them first.
    let mut items = Vec::with_capacity(text.bytes().filter(|&byte| byte == b',').count() + 1);
    let mut rest = text;
    loop {
        let end = rest.bytes().position(|byte| byte == b',').unwrap_or(rest.len());
        items.push(item(&rest[..end])?);
        if end == rest.len() {
            return Some(items);
        }
        rest = &rest[end + 1..];
    }
}

/// The place of the first colon, or the end.
fn colon(item: &str) -> usize {
    item.bytes().position(|byte| byte == b':').unwrap_or(item.len())
}

/// A set of CPUs, as wide as its highest one.
fn cpus(list: &str) -> Option<CpuMask> {
    let highest = list.rsplit([',', '-']).next()?.parse::<u16>().ok()?;
    CpuMask::parse_list(list, usize::from(highest) + 1).ok()
}

impl fmt::Display for Value<'_> {
    /// A word without spaces: commas separate list items, and colons separate names from numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn list<T>(
            f: &mut fmt::Formatter<'_>,
            items: &[T],
            mut show: impl FnMut(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
        ) -> fmt::Result {
            items.iter().enumerate().try_for_each(|(i, item)| {
                if i > 0 {
                    f.write_str(",")?;
                }
                show(f, item)
            })
        }
        match self {
            Value::Int(n) => n.fmt(f),
            Value::Uint(n) => n.fmt(f),
            Value::Bool(yes) => u8::from(*yes).fmt(f),
            Value::Text(text) => f.write_str(&word(&String::from_utf8_lossy(text))),
            Value::State(state) => state.fmt(f),
            Value::Numbers(numbers) => list(f, numbers, |f, (name, n)| write!(f, "{}:{n}", word(name))),
            Value::Candidates(candidates) => list(f, candidates, |f, candidate| {
                write!(f, "{}", candidate.cpu)?;
                if candidate.refused.is_empty() { Ok(()) } else { write!(f, ":{}", word(&candidate.refused)) }
            }),
            Value::Pids(pids) => list(f, pids, |f, pid| pid.fmt(f)),
            Value::Cpus(cpus) => cpus.fmt(f),
        }
    }
}

/// A name without characters that separate fields or list items.
fn word(name: &str) -> String {
    let parts = |c: char| c.is_whitespace() || c.is_control() || ",:=".contains(c);
    name.chars().map(|c| if parts(c) { '_' } else { c }).collect()
}

impl Kind {
    /// Passes each field with its name to `field`, in the order of the tracepoint. Leaves out empty lists and fields
    /// that a kernel does not have.
    pub fn fields(&self, mut field: impl FnMut(&'static str, Value<'_>)) {
        match self {
            Kind::Mark { label, value } => {
                field("label", Value::text(label.as_str()));
                field("value", Value::Int(*value));
            }
            Kind::Print(text) => field("text", Value::text(text)),
            Kind::State(state) => state.fields(&mut field),
            Kind::Unknown(unknown) => field("text", Value::text(unknown.text())),
            kind => crate::args::visit(kind, &mut field),
        }
    }

    /// Whether the vocabulary has an event of that name with fields of its own.
    pub fn is_known(name: &str) -> bool {
        crate::args::is_known(name)
    }

    /// The event with that name, whose fields the function provides. `None` if a field is missing or has another type.
    /// An unknown name gives an unknown event made from the field `text`.
    pub fn from_fields<'a>(name: &str, mut field: impl FnMut(&str) -> Option<Value<'a>>) -> Option<Kind> {
        if let Some(kind) = crate::args::build(name, &mut field) {
            return kind;
        }
        if name == "tracing_mark_write" {
            if let Some(label) = field("label") {
                let (label, value) = (Field::from_value(Some(label))?, Field::from_value(field("value"))?);
                return Some(Kind::Mark { label, value });
            }
            return Field::from_value(field("text")).map(Kind::Print);
        }
        let text: Box<str> = Field::from_value(field("text"))?;
        Some(Kind::Unknown(crate::Unknown::new(name, &text)))
    }
}
